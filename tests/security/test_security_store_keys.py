"""A catalog that wants to see keys of ours: it names a store of its own, wherever the protocol has a place for one."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from testbed.connected import Connected, composed
from testbed.issuer import Issuer
from testbed.meddler import Meddler
from testbed.rest_fixture import RestFixture
from testbed.seaweedfs import REGION, SeaweedFS

from sqe_core.engine.spark.engine import SparkEngine
from sqe_core.engine.spark.session import SparkEngineSession
from sqe_core.testing.fakes import make_identity
from sqe_http.testing import Loopback, QuietHandler

pytestmark = pytest.mark.rule("ISO-7")

THIEF = "http://127.0.0.1:9"
OURS = {"s3.access-key-id": "our-id", "s3.secret-access-key": "our-secret"}
THEIRS = {"s3.access-key-id": "their-id", "s3.secret-access-key": "their-secret"}
STORE = {"s3.endpoint": "http://127.0.0.1:10"}
VENDED_ONLY = dict.fromkeys(OURS, "vended-keys-only")
REGION_KEY = {"client.region": "eu-central-1"}

# What a catalog says in each of its groups of settings, the narrowest last.
Lies = Mapping[str, Mapping[str, str]]
_ENDPOINT = {"s3.endpoint": THIEF}
_SIGNED = {"s3.remote-signing-enabled": "true"}
_UNSIGNED = {"s3.remote-signing-enabled": "false"}
LIES: dict[str, Lies] = {
    "default": {"defaults": _ENDPOINT},
    "override": {"overrides": _ENDPOINT},
    "of a table": {"config": _ENDPOINT},
    "of a prefix": {"credentials": _ENDPOINT},
    "with an id alone": {"config": {**_ENDPOINT, "s3.access-key-id": "their-id"}},
    "with a secret alone": {"overrides": {**_ENDPOINT, "s3.secret-access-key": "their-secret"}},
    "with an empty secret": {"config": {**_ENDPOINT, **THEIRS, "s3.secret-access-key": ""}},
    "with a session alone": {"config": {**_ENDPOINT, "s3.session-token": "theirs"}},
    "with keys that lose": {"defaults": {**_ENDPOINT, **THEIRS}},
    "with keys of another group": {"defaults": THEIRS, "config": _ENDPOINT},
    "signed, then not": {"config": {**_ENDPOINT, **_SIGNED}, "credentials": _UNSIGNED},
    "signed, then not, from the start": {"overrides": {**_ENDPOINT, **_SIGNED}, "config": _UNSIGNED},
    "in another case": {"config": {"S3.Endpoint": THIEF, "s3.ENDPOINT": THIEF}},
    "through the region": {"config": {"client.region": "x.thief.example/?"}},
    "as no keys are needed": {"config": {**_ENDPOINT, "client.credentials-provider": "sqe.Any"}},
}

REST = {"type": "rest", "sqe.mount": "rest"}


def lie_with(lies: Lies) -> Any:
    def lie(method: str, path: str, body: Any) -> Any:
        if path.endswith("/config"):
            return {**body, **{group: dict(lies.get(group, {})) for group in ("defaults", "overrides")}}
        if "metadata" in body:
            body = {**body, "config": dict(lies.get("config", {}))}
            if "credentials" in lies:
                body["storage-credentials"] = [{"prefix": "s3://", "config": dict(lies["credentials"])}]
        return body

    return lie


@pytest.fixture(scope="module")
def adapter(engine: SparkEngine) -> Iterator[RestFixture]:
    with RestFixture() as server:
        server.ready()
        session = engine.open_session()
        assert isinstance(session, SparkEngineSession)
        session.mount(
            "_sqe_c_files",
            {
                "type": "rest",
                "sqe.mount": "rest",
                "uri": server.url,
                "io-impl": "org.apache.iceberg.hadoop.HadoopFileIO",
            },
        )
        session.catalog("_sqe_c_files").create_namespace(("hr",), {})
        session.spark._jsparkSession.sql("CREATE TABLE `_sqe_c_files`.hr.emp (id bigint) USING iceberg")
        session.close()
        yield server


@pytest.fixture
def meddler(adapter: RestFixture) -> Iterator[Meddler]:
    meddler = Meddler(adapter.url)
    yield meddler
    meddler.stop()


def settings_of_files(engine: SparkEngine, url: str, own: Mapping[str, str]) -> list[dict[str, str]]:
    """What the engine would open the files of a table with: under no prefix, and under each that the catalog names."""
    session = engine.open_session()
    assert isinstance(session, SparkEngineSession)
    alias = "_sqe_c_" + secrets.token_hex(16)
    files = {"io-impl": "org.apache.iceberg.aws.s3.S3FileIO", "s3.delete-enabled": "true"}
    session.mount(alias, {**REST, "uri": url, "rest.auth.type": "none", **files, **REGION_KEY, **own})
    session.catalog(alias)  # Spark loads it for its active session
    jvm = session.context._jvm
    catalog = session.spark._jsparkSession.sessionState().catalogManager().catalog(alias).icebergCatalog()
    table = catalog.loadTable(jvm.org.apache.iceberg.catalog.TableIdentifier.parse("hr.emp"))
    root = dict(table.io().properties())
    found = [root, *({**root, **dict(each.config())} for each in table.io().credentials())]
    session.close()
    return found


@pytest.mark.parametrize(
    "own", [OURS, {**OURS, **STORE}, {}, STORE], ids=["keys", "keys and store", "machine", "store"]
)
@pytest.mark.parametrize("lies", LIES.values(), ids=LIES.keys())
def test_no_other_store_gets_keys_of_ours(
    engine: SparkEngine, meddler: Meddler, own: Mapping[str, str], lies: Lies
) -> None:
    """Without keys of the configuration the machine's own would be used."""
    meddler.change = lie_with(lies)
    for found in settings_of_files(engine, meddler.url, own):
        theirs = all(found.get(key) == value for key, value in THEIRS.items())
        signed = found.get("s3.remote-signing-enabled") == "true"
        assert found.get("s3.endpoint") == own.get("s3.endpoint") or theirs or signed
        # Nothing of theirs completes, and nothing takes away, a key of ours.
        assert theirs or {key: found.get(key) for key in THEIRS} == {key: own.get(key) for key in THEIRS}
        assert "thief" not in found["client.region"]


@pytest.mark.parametrize("group", ["overrides", "config", "credentials"])
@pytest.mark.parametrize("own", [OURS, {**OURS, **STORE}, {}], ids=["keys", "keys and store", "machine"])
def test_keys_of_a_catalog_open_the_store_that_it_names(
    engine: SparkEngine, meddler: Meddler, own: Mapping[str, str], group: str
) -> None:
    said = {**_ENDPOINT, **THEIRS, "client.region": "eu-west-1"}
    meddler.change = lie_with({group: said})
    found = settings_of_files(engine, meddler.url, own)[-1]

    assert {key: found[key] for key in said} == said


def test_a_store_may_be_named_apart_from_its_keys_where_there_is_no_key_of_ours(
    engine: SparkEngine, meddler: Meddler
) -> None:
    meddler.change = lie_with({"overrides": _ENDPOINT, "credentials": THEIRS})
    found = settings_of_files(engine, meddler.url, VENDED_ONLY)

    assert [each["s3.endpoint"] for each in found] == [THIEF, THIEF]
    assert [each["s3.secret-access-key"] for each in found] == ["vended-keys-only", "their-secret"]


class Thief(Loopback):
    """A store that notes who comes."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        thief = self

        class Handler(QuietHandler):
            def _note(self) -> None:
                self.read_body()
                thief.seen.append(self.headers.get("Authorization", ""))
                self.send_response(403)
                self.send_header("Content-Length", "0")
                self.end_headers()

            do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _note

        super().__init__(Handler)


@pytest.fixture
def thief() -> Iterator[Thief]:
    thief = Thief()
    yield thief
    thief.stop()


@pytest.fixture(scope="module")
def weed(weed: SeaweedFS) -> SeaweedFS:
    weed.allow({"alice": ["s3tables:*"]})
    return weed


def test_a_real_store_is_read_with_keys_of_ours_whatever_the_catalog_names(
    engine: SparkEngine, tmp_path: Path, thief: Thief, issuer: Issuer, weed: SeaweedFS
) -> None:
    meddler = Meddler(weed.catalog_url)
    text = f"""
    [catalogs.lake]
    catalog_url = "{meddler.url}"
    warehouse = "s3://warehouse"
    access_delegation = "none"
    [catalogs.lake.storage]
    s3_endpoint = "{weed.s3_url}"
    s3_region = "{REGION}"
    s3_access_key = "{weed.access_key}"
    s3_secret_key = "{weed.secret_key}"
    s3_path_style = true
    """
    sqe = composed(engine, tmp_path, text)
    with closing(Connected(sqe, make_identity("alice", token=issuer.token("alice")), "lake")) as run:
        meddler.change = lie_with({})
        run("CREATE SCHEMA hr")
        run("CREATE TABLE hr.emp AS SELECT 1 AS id")
        for name, lies in LIES.items():
            if "signed" not in name:
                meddler.change = lie_with(json.loads(json.dumps(lies).replace(THIEF, thief.url)))
                assert run("SELECT id FROM hr.emp") == [(1,)], name
        assert thief.seen == []

        # It would be seen.
        meddler.change = lie_with({"config": {"s3.endpoint": thief.url, **THEIRS}})
        run.fails("SELECT id FROM hr.emp")
        assert any("their-id" in each for each in thief.seen)
    sqe.release()
    meddler.stop()
