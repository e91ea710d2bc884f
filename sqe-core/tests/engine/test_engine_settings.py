"""Which Spark settings are fixed, and what an operator may not touch."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

from sqe_core.engine.spark.conf import (
    PINNED_SESSION_SETTINGS,
    check_operator_settings,
    engine_settings,
    is_local,
    local_cores,
)
from sqe_core.engine.spark.options import EngineOptions, default_cache_dir
from sqe_core.spi.errors import StartupError


def settings(**given: Any) -> dict[str, str]:
    return engine_settings(EngineOptions(**given), Path("/run/sqe"), [Path("/jars/a.jar"), Path("/jars/b.jar")])


@pytest.mark.rule("CONF-1")
def test_every_setting_that_the_rule_names_is_pinned() -> None:
    expected = {
        "runSQLOnFiles": "false",
        "variable.substitute": "false",
        "ansi.enabled": "true",
        "ansi.doubleQuotedIdentifiers": "false",
        "ansi.enforceReservedKeywords": "false",
        "parser.escapedStringLiterals": "false",
        "parser.quotedRegexColumnNames": "false",
        "caseSensitive": "false",
        "scripting.enabled": "false",
        "session.timeZone": "UTC",
        "optimizer.excludedRules": "",
    }
    assert {key: PINNED_SESSION_SETTINGS[f"spark.sql.{key}"] for key in expected} == expected
    assert int(PINNED_SESSION_SETTINGS["spark.sql.maxPlanStringLength"]) < 100_000
    assert {key: settings()[key] for key in PINNED_SESSION_SETTINGS} == dict(PINNED_SESSION_SETTINGS)


@pytest.mark.rule("ISO-3", "ISO-4", "ISO-10", "ISO-11")
def test_what_isolates_is_set() -> None:
    found = settings()
    assert found["spark.sql.catalogImplementation"] == "in-memory"
    assert found["spark.sql.warehouse.dir"] == "file:///run/sqe/warehouse"
    assert found["spark.ui.enabled"] == found["spark.eventLog.enabled"] == found["spark.master.rest.enabled"] == "false"
    assert found["spark.authenticate"] == "true"
    assert found["spark.driver.bindAddress"] == found["spark.driver.host"] == "127.0.0.1"
    assert found["spark.sql.globalTempDatabase"] != settings()["spark.sql.globalTempDatabase"]
    assert len(found["spark.sql.globalTempDatabase"]) > 32


@pytest.mark.rule("ISO-6")
@pytest.mark.parametrize(
    "key",
    [
        "spark.jars",
        "spark.jars.packages",
        "spark.plugins",
        "spark.extraListeners",
        "spark.sql.extensions",
        "spark.sql.catalog.mine",
        "spark.sql.legacy.timeParserPolicy",
        "spark.sql.runSQLOnFiles",
        "spark.ui.enabled",
        "spark.authenticate.secret",
        "spark.driver.extraClassPath",
        "spark.local.dir",
        "spark.redaction.regex",
        "sqe.gateway.secret",
    ],
)
def test_an_operator_cannot_open_what_is_closed(key: str) -> None:
    with pytest.raises(StartupError, match=key.replace(".", r"\.")):
        check_operator_settings({key: "x"})


def test_an_operator_can_tune() -> None:
    mine = {"spark.sql.shuffle.partitions": "7", "spark.executor.memory": "2g", "spark.driver.maxResultSize": "1g"}
    found = settings(settings=mine)
    assert {key: found[key] for key in mine} == mine
    with pytest.raises(StartupError, match=r"must begin with spark\."):
        settings(settings={"executor.memory": "2g"})


@pytest.mark.rule("LIM-9")
def test_broadcasts_fit_into_the_heap() -> None:
    def broadcasts(memory: int, cores: int, **chosen: str) -> tuple[int, int]:
        found = settings(memory_bytes=memory, master=f"local[{cores}]", settings=chosen)
        return int(found["spark.sql.maxBroadcastTableSize"]), int(found["spark.sql.autoBroadcastJoinThreshold"])

    assert broadcasts(8 << 30, 2) == (256 << 20, 64 << 20)
    assert broadcasts(1 << 30, 2) == (32 << 20, 8 << 20)
    for memory, cores in ((1 << 30, 1), (2 << 30, 8), (8 << 30, 16), (64 << 30, 4)):
        most, guessed = broadcasts(memory, cores)
        assert guessed <= 64 << 20
        # Five times their size, in each task and in two more.
        assert 5 * most * (cores + 2) <= memory
    own = {"spark.sql.autoBroadcastJoinThreshold": str(100 << 20)}
    assert broadcasts(1 << 30, 2, **own) == (400 << 20, 100 << 20)
    off = {"spark.sql.autoBroadcastJoinThreshold": "-1"}
    assert settings(memory_bytes=1 << 30, settings=off)["spark.sql.autoBroadcastJoinThreshold"] == "-1"


@pytest.mark.parametrize(
    ("master", "local"),
    [
        ("local", True),
        ("local[*]", True),
        ("local[4]", True),
        ("local[4,2]", True),
        ("local-cluster[2,1,1024]", False),
        ("spark://host:7077", False),
        ("k8s://https://host", False),
        ("yarn", False),
    ],
)
def test_which_masters_are_local(master: str, local: bool) -> None:
    assert is_local(master) is local
    found = settings(master=master, auth_secret="s3cret")
    assert ("spark.jars" in found) is not local
    assert ("spark.sql.optimizer.runtime.bloomFilter.creationSideThreshold" in found) is local
    assert found.get("spark.sql.adaptive.coalescePartitions.parallelismFirst", "true") == str(local).lower()
    assert (found.get("spark.driver.host") == "127.0.0.1") is local
    assert (found.get("spark.io.encryption.enabled") == "true") is not local


def test_cores_of_a_local_master() -> None:
    assert (local_cores("local"), local_cores("local[3]"), local_cores("local[2,4]")) == (1, 3, 2)
    assert local_cores("local[*]") >= 1


def test_executors_get_our_jars() -> None:
    assert settings(master="yarn")["spark.jars"] == "file:///jars/a.jar,file:///jars/b.jar"


@pytest.mark.rule("ISO-11")
@pytest.mark.parametrize("master", ["spark://h:1", "yarn", "k8s://https://h", "local-cluster[1,1,1024]"])
def test_executors_elsewhere_authenticate_and_encrypt(master: str) -> None:
    found = settings(master=master, auth_secret="s3cret")
    assert found["spark.authenticate.secret"] == "s3cret"
    for key in ("spark.authenticate", "spark.network.crypto.enabled", "spark.io.encryption.enabled"):
        assert found[key] == "true"


@pytest.mark.rule("ISO-11")
@pytest.mark.parametrize("secret", [None, ""])
def test_a_standalone_cluster_needs_a_secret(secret: str | None) -> None:
    with pytest.raises(StartupError, match=r"master = 'spark://h:1' needs a secret") as refused:
        settings(master="spark://h:1", auth_secret=secret)
    assert refused.value.hint is not None
    assert "coordinator.worker_secret" in refused.value.hint


def test_a_cluster_on_this_machine_makes_a_secret_of_its_own() -> None:
    first, second = (settings(master="local-cluster[1,1,1024]")["spark.authenticate.secret"] for _ in range(2))
    assert first != second


def test_options_do_not_show_the_secret() -> None:
    assert "s3cret" not in repr(EngineOptions(auth_secret="s3cret"))


def test_the_cache_follows_the_desktop_specification(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    assert default_cache_dir({"XDG_CACHE_HOME": "/var/cache/x"}) == Path("/var/cache/x/sqe")
    assert default_cache_dir({"XDG_CACHE_HOME": "relative"}) == Path("/home/somebody/.cache/sqe")
    assert default_cache_dir({}) == Path("/home/somebody/.cache/sqe")


def test_a_user_without_a_home_has_a_cache_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert default_cache_dir({}) == tmp_path / f"sqe-cache-{os.geteuid()}"
