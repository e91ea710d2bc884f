"""From a TOML file to statements: catalogs, policy engine and limits come from the configuration."""

from __future__ import annotations

import hashlib
import hmac
from pathlib import Path

import pytest

from sqe_core.bootstrap import OWNER, compose
from sqe_core.config.loading import load
from sqe_core.engine.spark.engine import SparkEngine
from sqe_core.spi.errors import ConfigError, NotSupportedError, ResourcesError, UserError
from sqe_core.testing import make_identity


def write(folder: Path, text: str) -> Path:
    file = folder / "sqe.toml"
    file.write_text(text)
    return file


def test_two_catalogs_of_a_file_answer_one_query(engine: SparkEngine, tmp_path: Path) -> None:
    file = write(
        tmp_path,
        f"""
        [catalogs.west]
        type = "sqlite"
        directory = "{tmp_path}/west"
        [catalogs.east]
        type = "sqlite"
        directory = "{tmp_path}/east"
        [policy]
        engine = "passthrough"
        i_understand_no_enforcement = true
        [query]
        default_catalog = "west"
        max_result_rows = 3
        """,
    )
    sqe = compose(load(file, environ={}), engine=engine)
    session = sqe.open_session(OWNER, catalog="west", protocol="test")

    def run(sql: str) -> list[tuple[object, ...]]:
        table = sqe.service.execute(session, sql).read_all()
        return list(zip(*(column.to_pylist() for column in table.columns), strict=True))

    try:
        run("CREATE TABLE a AS SELECT 1 AS id, 'l' AS side")
        run("CREATE TABLE east.default.b AS SELECT 1 AS id, 'r' AS side")
        assert run("SHOW CATALOGS") == [("east",), ("west",)]
        assert run("SELECT a.side, b.side FROM a JOIN east.default.b ON a.id = b.id") == [("l", "r")]
        with pytest.raises(ResourcesError, match="more than 3 rows"):
            run("SELECT id FROM range(10) AS r(id)")
        run("USE east")
        assert run("SHOW TABLES") == [("b",)]
        with pytest.raises(NotSupportedError):
            run("ALTER TABLE b RENAME TO west.default.b")
        with pytest.raises(UserError, match="does not exist"):
            run('SELECT * FROM "b$nothing"')
    finally:
        sqe.service.close_session(session)


@pytest.mark.rule("POL-12")
def test_masks_and_decisions_are_as_the_file_says(engine: SparkEngine, tmp_path: Path) -> None:
    file = write(
        tmp_path,
        f"""
        [catalogs.lake]
        type = "sqlite"
        directory = "{tmp_path}/lake"
        [auth]
        admin_roles = ["root"]
        [[auth.providers]]
        type = "anonymous"
        [policy]
        engine = "in-memory"
        mask_key = "of the file"
        cache_ttl_secs = 0
        """,
    )
    sqe = compose(load(file, environ={}), engine=engine)
    root, alice = (
        sqe.open_session(make_identity(name, roles=[name]), catalog="lake", protocol="test")
        for name in ("root", "alice")
    )
    try:
        for sql in (
            "CREATE TABLE people AS SELECT 'Ann' AS name",
            "GRANT SELECT (name MASKED WITH 'HASH') ON people TO alice",
        ):
            sqe.service.execute(root, sql).close()
        found = sqe.service.execute(alice, "SELECT name FROM people").read_all().to_pylist()
        assert found == [{"name": hmac.new(b"of the file", b"Ann", hashlib.sha256).hexdigest()}]
    finally:
        sqe.service.close_session(root)
        sqe.service.close_session(alice)


def test_faults_of_plugin_settings_are_reported_together(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        """
        [catalogs.one]
        type = "sqlite"
        pth = "x"
        [catalogs.two]
        type = "sqlite"
        nonsense = 1
        [policy]
        engine = "passthrough"
        i_understand_no_enforcement = true
        """,
    )
    with pytest.raises(ConfigError) as raised:
        compose(load(file, environ={}))
    text = "\n".join(raised.value.faults)
    assert "pth" in text
    assert "nonsense" in text


def test_a_kind_that_nobody_provides_stops_the_start(tmp_path: Path) -> None:
    file = write(tmp_path, '[catalog]\ntype = "glue"\nregion = "eu-west-1"\nwarehouse = "s3://x"\n')
    with pytest.raises(
        ConfigError, match=r"sqe\.toml:\d+: catalog\.type: The catalog type 'glue' is not known, and no"
    ):
        compose(load(file, environ={}))
