"""AWS keys of mounts: two sets side by side, renewed in place, in one map of the engine and nowhere else."""

from __future__ import annotations

import json
import secrets
from typing import Any

import pytest

from sqe_core.engine.port import EngineExecutionError
from sqe_core.engine.spark.engine import SparkEngine
from sqe_core.engine.spark.session import SparkEngineSession
from sqe_core.spi import InternalError, Secret

FOLDER = {"type": "hadoop", "warehouse": "file:///tmp", "sqe.mount": "aws"}


def client_keys(session: SparkEngineSession, alias: str) -> tuple[str, ...]:
    """The keys that Iceberg's AWS clients of a mount sign with now."""
    jvm: Any = session.context._jvm
    spark = session.spark._jsparkSession
    options = jvm.java.util.HashMap()
    for key in ("client.credentials-provider", "client.credentials-provider.sqe.token-handle"):
        options.put(key, spark.conf().get(f"spark.sql.catalog.{alias}.{key}"))
    properties = jvm.org.apache.iceberg.aws.AwsClientProperties(options)
    found = properties.credentialsProvider(None, None, None).resolveCredentials()
    session_token = found.sessionToken() if "Session" in found.getClass().getSimpleName() else ""
    return found.accessKeyId(), found.secretAccessKey(), session_token


@pytest.mark.rule("ISO-7")
def test_each_mount_has_keys_of_its_own_and_they_are_renewed(engine: SparkEngine) -> None:
    session = engine.open_session()
    assert isinstance(session, SparkEngineSession)
    aliases = ["_sqe_c_" + secrets.token_hex(16) for _ in range(2)]
    marks = [secrets.token_hex(20) for _ in range(3)]
    for alias, mark in zip(aliases, marks, strict=False):
        session.mount(alias, FOLDER, token=Secret(f"AKIA{mark}\nsecret{mark}\ntoken{mark}"))
    assert [client_keys(session, alias)[0] for alias in aliases] == [f"AKIA{mark}" for mark in marks[:2]]
    assert client_keys(session, aliases[0])[1:] == (f"secret{marks[0]}", f"token{marks[0]}")

    session.renew_token(aliases[0], Secret(f"AKIA{marks[2]}\nsecret{marks[2]}\n"))
    assert client_keys(session, aliases[0]) == (f"AKIA{marks[2]}", f"secret{marks[2]}", "")
    assert client_keys(session, aliases[1])[0] == f"AKIA{marks[1]}"

    settings = json.dumps([str(each) for each in session.spark.sparkContext.getConf().getAll()])
    own = session.spark._jsparkSession.conf().getAll().toString()
    assert not [mark for mark in marks if mark in settings or mark in own]

    session.unmount(aliases[0])
    session.close()
    assert session.context.bridge.catalog.rest.MountTokens.count() == 0


@pytest.mark.rule("ISO-7")
@pytest.mark.parametrize("kind", [{"type": "rest"}, {"catalog-impl": "org.apache.iceberg.rest.RESTCatalog"}])
def test_a_rest_catalog_that_does_not_say_so_is_not_mounted(engine: SparkEngine, kind: dict[str, str]) -> None:
    session = engine.open_session()
    with pytest.raises((InternalError, EngineExecutionError), match="would share logins"):
        session.mount("_sqe_c_undeclared", {**kind, "uri": "http://127.0.0.1:1"})
    session.close()
