"""A catalog or a schema that somebody may not see is to them as one that is not there, whatever they say of it."""

from __future__ import annotations

import pyarrow as pa
import pytest
from handler_lake import BOB, Lake

from sqe_core.catalog.registry import Mount
from sqe_core.spi.errors import SqeError
from sqe_core.spi.protocol import IngestMode, IngestRequest
from sqe_core.testing.engine import FakeBackend

_HIDDEN, _MISSING = "other", "othey"  # as close to what is visible, for the hints
_VISIBLE = "othex"
_STATEMENTS = [
    "SELECT * FROM {}.default.t",
    'SELECT * FROM {}.default."t$files"',
    'SELECT * FROM {}.default."t$nope"',
    "INSERT INTO {}.default.t SELECT 1",
    "DELETE FROM {}.default.t",
    "CREATE TABLE {}.default.made (id integer)",
    "CREATE TABLE {}.default.made AS SELECT 1 AS id",
    "CREATE TABLE {}.default.made (LIKE people)",
    'CREATE TABLE {}.default."made$files" (LIKE people)',
    "CREATE TABLE made (LIKE {}.default.t)",
    "CREATE VIEW {}.default.made AS SELECT 1 AS id",
    "CREATE SCHEMA {}.made",
    "DROP TABLE {}.default.t",
    "DROP TABLE IF EXISTS {}.default.t",
    "DROP VIEW {}.default.t",
    "DROP VIEW IF EXISTS {}.default.t",
    "DROP SCHEMA {}.default",
    "DROP SCHEMA IF EXISTS {}.default CASCADE",
    "TRUNCATE TABLE {}.default.t",
    "ALTER TABLE {}.default.t ADD COLUMN b integer",
    "ALTER TABLE {}.default.t ADD COLUMN b integer DEFAULT 1",
    "ALTER TABLE IF EXISTS {}.default.t ADD COLUMN b integer",
    "ALTER TABLE IF EXISTS {}.default.t RENAME TO made",
    "ALTER TABLE {}.default.t RENAME TO made",
    "ALTER TABLE people RENAME TO {}.default.made",
    "ALTER VIEW v RENAME TO {}.default.made",
    "ALTER VIEW {}.default.t RENAME TO made",
    "ALTER VIEW {}.default.t SET TBLPROPERTIES ('comment' = 'x')",
    "COMMENT ON VIEW {}.default.t IS 'x'",
    "COMMENT ON SCHEMA {}.default IS 'x'",
    "USE {}.default",
    "SHOW TABLES FROM {}.default",
    "SHOW SCHEMAS FROM {}",
    "SHOW CREATE VIEW {}.default.t",
    "DESCRIBE {}.default.t",
    'DESCRIBE {}.default."t$files"',
    'EXPLAIN ACCESS SHOW COLUMNS FROM {}.default."t$files"',
    "CALL {}.system.rollback_to_snapshot('default', 't', 1)",
    "EXPLAIN ACCESS SELECT * FROM {}.default.t",
    "EXPLAIN ACCESS DROP TABLE IF EXISTS {}.default.t",
    "EXPLAIN ACCESS CREATE TABLE {}.default.made (LIKE people)",
    "EXPLAIN ACCESS CREATE VIEW {}.default.made AS SELECT 1 AS id",
    "EXPLAIN ACCESS CREATE SCHEMA {}.made",
    "EXPLAIN ACCESS ALTER TABLE people RENAME TO {}.default.made",
    "GRANT SELECT ON {}.default.t TO ROLE r",
    "CHECK ACCESS SELECT ON {}.default.t",
    "SHOW TAGS ON {}.default.t",
    'SHOW TAGS ON {}.default."t$files"',
    "SHOW GRANTS ON {}.default.t",
    "SHOW EFFECTIVE POLICY ON {}.default.t",
    "ALTER TABLE {}.default.t SET AUTHORIZATION bob",
]


def told(lake: Lake, sql: str, name: str) -> tuple[object, ...]:
    try:
        answer: tuple[object, ...] = ("rows", lake.run(BOB, sql.replace("{}", name)))
    except SqeError as error:
        answer = (error.code, error.message, error.hint, error.position)
    return tuple(str(each).replace(name, "{}") for each in answer)


@pytest.mark.rule("ERR-5", "ERR-7")
@pytest.mark.parametrize("sql", _STATEMENTS)
def test_a_hidden_catalog(lake: Lake, sql: str) -> None:
    hide_other(lake)
    assert lake.run(BOB, "SHOW CATALOGS") == [("lake",), (_VISIBLE,)]
    assert told(lake, sql, _HIDDEN) == told(lake, sql, _MISSING)


@pytest.mark.rule("ERR-5", "ERR-7")
@pytest.mark.parametrize("mode", IngestMode)
@pytest.mark.parametrize("table", ["t", "t$files", "t$nope"])
def test_rows_for_a_hidden_catalog(lake: Lake, mode: IngestMode, table: str) -> None:
    hide_other(lake)
    rows = pa.record_batch({"id": [1]})

    def answer(catalog: str) -> tuple[str, ...]:
        request = IngestRequest(table=table, schema="default", catalog=catalog, mode=mode)
        with pytest.raises(SqeError) as caught:
            lake.sqe.service.ingest(lake.session(BOB), request, rows.schema, iter([rows]))
        error = caught.value
        return tuple(str(each).replace(catalog, "{}") for each in (error.code, error.message, error.hint))

    assert answer(_HIDDEN) == answer(_MISSING)


def hide_other(lake: Lake) -> None:
    lake.engine.catalogs[_VISIBLE] = type(lake.engine.catalogs["lake"])()
    lake.sqe.catalogs.add(Mount(name=_VISIBLE, backend=FakeBackend(_VISIBLE)))
    lake.root("CREATE VIEW v AS SELECT id FROM people", "DENY USE ON CATALOG other TO USER bob")


@pytest.mark.rule("ERR-5", "ERR-7")
@pytest.mark.parametrize("sql", [each.replace("{}.default", "{}") for each in _STATEMENTS if "{}.default" in each])
def test_a_hidden_schema(lake: Lake, sql: str) -> None:
    lake.root(
        "CREATE VIEW v AS SELECT id FROM people",
        "CREATE SCHEMA vault",
        "CREATE TABLE vault.t AS SELECT id FROM people",
        "DENY ALL PRIVILEGES ON SCHEMA vault TO USER bob",
    )
    assert told(lake, sql, "vault") == told(lake, sql, _MISSING)
