"""CALL and its first procedure: who may, on what, and what an attacker learns."""

from __future__ import annotations

from dataclasses import replace

import pytest
from handler_lake import ALICE, BOB, Lake

from sqe_core.spi.errors import AccessDeniedError, ErrorCode, NotSupportedError, UserError
from sqe_core.spi.policy import SupportsOwnership

KEY = (("mine",), "t")


@pytest.fixture
def table(lake: Lake) -> Lake:
    """Alice's table, whose third snapshot is the current one; the fourth is none of its ancestors."""
    lake.root("CREATE SCHEMA mine", "GRANT CREATE ON SCHEMA mine TO USER alice")
    lake.run(ALICE, "CREATE TABLE mine.t AS SELECT id, name FROM lake.default.people")
    lake.root("GRANT SELECT, MANAGE ON mine.t TO USER alice")
    catalog = lake.engine.catalogs["lake"]
    catalog.snapshots[KEY] = [(1, None), (2, 1), (3, 2), (4, 1)]
    set_current(lake, 3)
    return lake


def set_current(lake: Lake, snapshot: int) -> None:
    catalog = lake.engine.catalogs["lake"]
    found, rows = catalog.tables[KEY]
    catalog.tables[KEY] = replace(found, current_snapshot_id=snapshot), rows


def current(lake: Lake) -> int | None:
    return lake.engine.catalogs["lake"].tables[KEY][0].current_snapshot_id


@pytest.mark.parametrize(
    "arguments",
    ["'mine.t', 1", "'mine', 't', 1", "table => 'mine.t', snapshot_id => 1", "snapshot_id => 1, table => 'mine.t'"],
)
@pytest.mark.parametrize("catalog", ["lake.", ""])
def test_a_table_is_rolled_back(table: Lake, catalog: str, arguments: str) -> None:
    rows = table.run(ALICE, f"CALL {catalog}system.rollback_to_snapshot({arguments})")
    assert rows == [("rollback_to_snapshot", "lake.mine.t", None, None, None, None, "ok")]
    assert current(table) == 1


@pytest.mark.rule("STMT-6")
@pytest.mark.parametrize("snapshot", [4, 99])
def test_to_ancestors_only(table: Lake, snapshot: int) -> None:
    error = table.refusal(ALICE, f"CALL lake.system.rollback_to_snapshot('mine.t', {snapshot})")
    assert error.message == f"Snapshot {snapshot} is no ancestor of the current one of lake.mine.t"
    assert current(table) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "rollback_to_snapshot takes the arguments table, snapshot_id"),
        ("'mine.t'", "rollback_to_snapshot takes the arguments table, snapshot_id"),
        ("'a', 'b', 1, 2", "rollback_to_snapshot takes the arguments table, snapshot_id"),
        ("table => 'mine.t', version => 1", "rollback_to_snapshot takes the arguments table, snapshot_id"),
        ("'mine.t', NULL", "snapshot_id cannot be null"),
        ("NULL, 1", "table cannot be null"),
        ("'mine.t', '1'", "snapshot_id has to be a whole number"),
        ("'mine.t', TRUE", "snapshot_id has to be a whole number"),
        ("7, 1", "table has to be a text"),
        ("'t', 1", "table has to be 'schema.table'"),
    ],
)
def test_arguments(table: Lake, arguments: str, message: str) -> None:
    error = table.refusal(ALICE, f"CALL lake.system.rollback_to_snapshot({arguments})")
    assert (error.message, error.code) == (message, ErrorCode.INVALID_ARGUMENTS)


@pytest.mark.parametrize(
    "sql",
    [
        "CALL lake.system.rollback_to_snapshot('mine.t', snapshot_id => 1)",
        "CALL lake.system.rollback_to_snapshot(table => 'mine.t', table => 'mine.t', snapshot_id => 1)",
        "CALL lake.system.rollback_to_snapshot('mine.t', (SELECT 1))",
        "CALL lake.system.rollback_to_snapshot('mine.t', 1) FROM x",
        "CALL rollback_to_snapshot('mine.t', 1)",
        "CALL lake.other.rollback_to_snapshot('mine.t', 1)",
    ],
)
def test_forms_that_are_none(table: Lake, sql: str) -> None:
    assert isinstance(table.refusal(ALICE, sql), UserError | NotSupportedError)
    assert current(table) == 3


@pytest.mark.rule("STMT-6")
@pytest.mark.parametrize("catalog", ["lake", "other", "none"])
def test_a_procedure_that_there_is_not(table: Lake, catalog: str) -> None:
    """It is told in the same words whatever catalog is named."""
    error = table.refusal(BOB, f"CALL {catalog}.system.register_table('mine.t', 's3://x')")
    assert (error.message, error.hint) == ("There is no procedure register_table", "there are: rollback_to_snapshot")


@pytest.mark.rule("STMT-6", "ERR-5")
def test_hidden_and_missing_tables_are_one(table: Lake) -> None:
    hidden = table.refusal(BOB, "CALL lake.system.rollback_to_snapshot('mine.t', 1)")
    missing = table.refusal(BOB, "CALL lake.system.rollback_to_snapshot('none.t', 1)")
    assert hidden.message.replace("mine", "none") == missing.message
    assert (hidden.code, hidden.hint, type(hidden)) == (missing.code, missing.hint, type(missing))
    elsewhere = table.refusal(BOB, "CALL nowhere.system.rollback_to_snapshot('none.t', 1)")
    assert elsewhere.message.replace("nowhere", "lake") == missing.message
    assert current(table) == 3


@pytest.mark.rule("STMT-6")
@pytest.mark.parametrize("rows", ["", " ROWS WHERE id = 1"])
def test_who_may_only_read_it_is_told_so(table: Lake, rows: str) -> None:
    table.root("REVOKE MANAGE ON mine.t FROM USER alice", "ALTER TABLE mine.t OWNER TO USER root")
    table.root(f"GRANT SELECT ON mine.t TO USER alice{rows}")
    assert isinstance(table.refusal(ALICE, "CALL lake.system.rollback_to_snapshot('mine.t', 1)"), AccessDeniedError)
    assert current(table) == 3


@pytest.mark.rule("STMT-6")
def test_it_takes_the_owner_who_sees_all_of_it(table: Lake) -> None:
    table.root("GRANT SELECT, MANAGE ON mine.t TO USER bob")
    denied = table.refusal(BOB, "CALL lake.system.rollback_to_snapshot('mine.t', 1)")
    assert isinstance(denied, AccessDeniedError)
    table.root("ALTER TABLE mine.t OWNER TO USER bob", "GRANT SELECT ON mine.t TO USER bob ROWS WHERE id = 1")
    restricted = table.refusal(BOB, "CALL lake.system.rollback_to_snapshot('mine.t', 1)")
    assert isinstance(restricted, NotSupportedError)
    assert current(table) == 3
    table.root("REVOKE ROWS ON mine.t FROM USER bob")
    table.root("GRANT SELECT, MANAGE ON mine.t TO USER bob")
    table.run(BOB, "CALL lake.system.rollback_to_snapshot('mine.t', 1)")
    assert current(table) == 1


@pytest.mark.rule("STMT-6")
def test_where_nobody_keeps_owners_administrators_roll_back(table: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    table.root(*(f"GRANT SELECT, MANAGE ON mine.t TO USER {name}" for name in ("bob", "root")))
    authorizer = table.sqe.service._parts.authorizer
    kept = authorizer.stores
    monkeypatch.setattr(authorizer, "stores", lambda kind: () if kind is SupportsOwnership else kept(kind))
    assert isinstance(table.refusal(BOB, "CALL lake.system.rollback_to_snapshot('mine.t', 1)"), AccessDeniedError)
    assert current(table) == 3
    table.root("CALL lake.system.rollback_to_snapshot('mine.t', 1)")
    assert current(table) == 1
