"""SQE's own DDL: what each handler does, who may not, and that EXPLAIN ACCESS says just what execution does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from handler_lake import ALICE, BOB, ROOT, Lake

from sqe_core.catalog.registry import Mount
from sqe_core.policy.grants.enforcer import GrantsEnforcer
from sqe_core.spi.errors import (
    AccessDeniedError,
    ErrorCode,
    NotSupportedError,
    ObjectNotFoundError,
    SqeError,
    UserError,
)
from sqe_core.spi.names import ObjectName
from sqe_core.testing.engine import FakeBackend


def explained(lake: Lake, sql: str) -> list[tuple[str, str, bool]]:
    return [row[:3] for row in lake.run(BOB, f"EXPLAIN ACCESS {sql}")]


def make(lake: Lake) -> None:
    """A table and a view that nobody but their owner root may use, and a schema of root's."""
    lake.root(
        "CREATE SCHEMA mine",
        "CREATE TABLE mine.t AS SELECT id, name FROM lake.default.people",
        "CREATE VIEW mine.v AS SELECT id FROM mine.t",
    )


@pytest.mark.rule("POL-9")
@pytest.mark.parametrize(
    "sql",
    [
        "DESCRIBE other.default.t",
        "SHOW COLUMNS FROM other.default.t",
        "SHOW TABLES FROM other.default",
        "DROP TABLE other.default.t",
        "ALTER TABLE other.default.t ADD COLUMN b int DEFAULT 1",
        "CREATE TABLE other.default.u (LIKE other.default.t)",
        "CREATE SCHEMA other.new",
        "DROP SCHEMA other.default CASCADE",
        "SELECT * FROM other.default.t",
    ],
)
def test_no_catalog_is_judged_as_the_one_that_took_its_name(
    lake: Lake, sql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.root("CREATE SCHEMA IF NOT EXISTS other.default", "CREATE TABLE other.default.t (id int)")
    catalogs = lake.sqe.catalogs
    for method in ("decide", "visible"):
        answer = getattr(GrantsEnforcer, method)

        def attach_anew(self: GrantsEnforcer, request: Any, answer: Any = answer) -> Any:
            former = catalogs.find("other")
            assert former is not None
            catalogs.replace(former, Mount(name="other", backend=FakeBackend("other"), attached=True))
            return answer(self, request)

        monkeypatch.setattr(GrantsEnforcer, method, attach_anew)
    lake.sqe.service._parts.authorizer.flush()
    assert "was detached" in lake.refusal(ROOT, sql).message
    assert set(lake.engine.catalogs["other"].schemas) == {("default",)}
    monkeypatch.undo()
    assert lake.run(ROOT, "SHOW COLUMNS FROM other.default.t") == [("id", "integer", "YES")]


def test_schemas(lake: Lake) -> None:
    lake.root("CREATE SCHEMA a", "CREATE SCHEMA IF NOT EXISTS a", "COMMENT ON SCHEMA a IS 'first'")
    assert lake.engine.catalogs["lake"].schemas["a",] == {"comment": "first"}
    assert lake.refusal(ROOT, "CREATE SCHEMA a").message == "Schema lake.a already exists"
    lake.root("CREATE TABLE a.t (id int)")
    assert lake.refusal(ROOT, "DROP SCHEMA a").message == "Schema lake.a is not empty"
    lake.root("DROP SCHEMA a CASCADE", "DROP SCHEMA IF EXISTS a")
    assert lake.refusal(ROOT, "DROP SCHEMA a").code is ErrorCode.SCHEMA_NOT_FOUND
    assert isinstance(lake.refusal(ROOT, "CREATE SCHEMA b LOCATION 's3://x'"), NotSupportedError)
    assert isinstance(lake.refusal(ROOT, "DROP SCHEMA information_schema"), NotSupportedError)


def test_tables(lake: Lake) -> None:
    make(lake)
    lake.root("CREATE TABLE mine.u (LIKE mine.t)", "ALTER TABLE mine.u RENAME TO w")
    lake.root(
        "ALTER TABLE mine.w ADD COLUMN age int DEFAULT 7",
        "ALTER TABLE mine.w ADD COLUMN IF NOT EXISTS age int DEFAULT 8",
    )
    assert lake.run(ROOT, "SHOW COLUMNS FROM mine.w") == [
        ("id", "integer", "YES"),
        ("name", "varchar", "YES"),
        ("age", "integer", "YES"),
    ]
    assert lake.refusal(ROOT, "ALTER TABLE mine.w RENAME TO t").code is ErrorCode.DUPLICATE_TABLE
    assert "another catalog" in lake.refusal(ROOT, "ALTER TABLE mine.w RENAME TO other.default.w").message
    assert lake.refusal(ROOT, "DROP TABLE mine.v").message == "lake.mine.v is a view"
    lake.root("DROP TABLE mine.w", "DROP TABLE IF EXISTS mine.w")
    assert isinstance(lake.refusal(ROOT, "DROP TABLE mine.w"), ObjectNotFoundError)


def test_views(lake: Lake) -> None:
    make(lake)
    lake.root("COMMENT ON VIEW mine.v IS 'ids'", "CREATE OR REPLACE VIEW mine.v AS SELECT name FROM mine.t")
    assert lake.run(ROOT, "SELECT * FROM mine.v") == [("ann",), ("ben",)]
    lake.root("ALTER VIEW mine.v RENAME TO names")
    assert lake.run(ROOT, "SHOW VIEWS FROM mine") == [("names",)]
    assert lake.run(ROOT, "SHOW CREATE VIEW mine.names")[0][0].startswith("CREATE VIEW lake.mine.names")
    assert lake.refusal(ROOT, "CREATE VIEW mine.names AS SELECT 1 AS x").code is ErrorCode.DUPLICATE_TABLE
    lake.root("CREATE TEMPORARY VIEW w AS SELECT id FROM mine.t")
    assert lake.refusal(ROOT, "CREATE VIEW mine.x AS SELECT * FROM w").message.startswith("A view cannot read")
    lake.root("DROP VIEW w", "DROP VIEW mine.names", "DROP VIEW IF EXISTS mine.names")
    assert lake.refusal(ROOT, "DROP VIEW mine.names").code is ErrorCode.VIEW_NOT_FOUND


HIDDEN = [
    "DROP TABLE mine.t",
    "ALTER TABLE mine.t RENAME TO u",
    "CREATE TABLE x (LIKE mine.t)",
    "ALTER TABLE mine.t ADD COLUMN age int DEFAULT 7",
    "DROP VIEW mine.v",
    "ALTER VIEW mine.v RENAME TO w",
    "COMMENT ON VIEW mine.v IS 'x'",
    "ALTER VIEW mine.v SET TBLPROPERTIES ('comment' = 'x')",
    "CREATE VIEW x AS SELECT * FROM mine.t",
    "SHOW CREATE TABLE mine.t",
    "SHOW COLUMNS FROM mine.t",
    "TRUNCATE TABLE mine.t",
    "SELECT * FROM mine.t",
]


@pytest.mark.rule("ERR-5")
@pytest.mark.parametrize("sql", HIDDEN)
def test_what_is_hidden_is_as_what_is_missing(lake: Lake, sql: str) -> None:
    make(lake)
    lake.root("GRANT SELECT ON mine.t TO USER alice", "GRANT SELECT ON mine.v TO USER alice")
    hidden = lake.refusal(BOB, sql)
    missing = lake.refusal(BOB, sql.replace("mine.", "none."))
    assert type(hidden) is type(missing)
    assert (hidden.code, hidden.message.replace("mine", "none"), hidden.hint) == (
        missing.code,
        missing.message,
        missing.hint,
    )


CREATED = [
    "CREATE TABLE {} (id integer)",
    "CREATE TABLE {} AS SELECT 1 AS id",
    "CREATE TABLE IF NOT EXISTS {} AS SELECT 1 AS id",
    "CREATE OR REPLACE TABLE {} (id integer)",
    "CREATE OR REPLACE TABLE {} AS SELECT 1 AS id",
    "CREATE TABLE {} (LIKE own)",
    "CREATE VIEW {} AS SELECT 1 AS id",
    "CREATE VIEW IF NOT EXISTS {} AS SELECT 1 AS id",
    "CREATE OR REPLACE VIEW {} AS SELECT 1 AS id",
    "ALTER TABLE own RENAME TO {}",
]


@pytest.mark.rule("ERR-7")
@pytest.mark.parametrize("sql", CREATED)
def test_whether_a_hidden_name_is_taken_is_told_by_no_statement_that_leaves_nothing_behind(
    lake: Lake, sql: str
) -> None:
    make(lake)
    lake.root("GRANT CREATE, CREATE VIEW ON SCHEMA mine TO USER bob", "GRANT SELECT ON mine.t TO USER alice")
    lake.root("CREATE TABLE mine.own (id integer)", "ALTER TABLE mine.own OWNER TO USER bob")
    lake.run(BOB, "USE mine")
    service, session = lake.sqe.service, lake.session(BOB)

    def told(sql: str) -> str:
        try:
            return str(
                [*service.execute(session, sql)] if sql.startswith("EXPLAIN") else service.describe(session, sql)
            )
        except SqeError as error:
            return f"{error.code} {error.message} {error.hint}"

    for asked in (f"EXPLAIN ACCESS {sql}", f"EXPLAIN {sql}", sql):
        never = told(asked.format("never"))
        for taken in ("t", "v"):
            assert told(asked.format(f"mine.{taken}")).replace(f"mine.{taken}", "mine.never") == told(
                asked.format("mine.never")
            )
            assert told(asked.format(taken)).replace(f"mine.{taken}", "mine.never") == never


@pytest.mark.rule("DML-4", "DML-8")
@pytest.mark.parametrize("sql", [each for each in CREATED if "own" not in each])
def test_what_is_hidden_is_not_replaced(lake: Lake, sql: str) -> None:
    make(lake)
    lake.root("GRANT CREATE, CREATE VIEW ON SCHEMA mine TO USER bob", "GRANT SELECT ON mine.t TO USER alice")
    for name in ("mine.t", "mine.v"):
        if "IF NOT EXISTS" in sql:
            lake.run(BOB, sql.format(name))
        else:
            assert lake.refusal(BOB, sql.format(name)).code is ErrorCode.DUPLICATE_TABLE
    assert lake.run(ROOT, "SELECT * FROM mine.t") == [(1, "ann"), (2, "ben")]
    assert lake.run(ROOT, "SELECT * FROM mine.v") == [(1,), (2,)]
    assert lake.refusal(BOB, "SELECT * FROM mine.t").code is ErrorCode.TABLE_NOT_FOUND


# What each statement needs, of the table t and the view v.
RIGHTS = [
    ("DROP TABLE mine.t", [("t", "drop")]),
    ("ALTER TABLE mine.t RENAME TO u", [("t", "alter"), ("t", "select"), ("u", "create")]),
    ("ALTER VIEW mine.v RENAME TO w", [("v", "alter_view"), ("v", "select"), ("w", "create_view")]),
    ("CREATE TABLE mine.x (LIKE mine.t)", [("x", "create"), ("t", "select")]),
    ("ALTER TABLE mine.t ADD COLUMN age int DEFAULT 7", [("t", "alter")]),
    ("DROP VIEW mine.v", [("v", "drop_view")]),
    ("COMMENT ON VIEW mine.v IS 'x'", [("v", "alter_view")]),
    ("CREATE VIEW mine.x AS SELECT id FROM mine.t", [("x", "create_view"), ("t", "select")]),
]


@pytest.mark.rule("META-3")
@pytest.mark.parametrize(("sql", "needs"), RIGHTS)
def test_explain_access_says_what_execution_needs(lake: Lake, sql: str, needs: list[tuple[str, str]]) -> None:
    """A second list of rights said that RENAME VIEW needs other ones than execution asks for."""
    make(lake)
    lake.root(
        "GRANT SELECT ON mine.t TO USER bob",
        "GRANT SELECT ON mine.v TO USER bob",
        "GRANT CREATE ON SCHEMA mine TO USER alice",
        "GRANT CREATE VIEW ON SCHEMA mine TO USER alice",
    )
    rows = explained(lake, sql)
    assert [(name.rpartition(".")[2], action) for name, action, _ in rows] == needs
    assert not all(allowed for _, _, allowed in rows)
    assert isinstance(lake.refusal(BOB, sql), ObjectNotFoundError | AccessDeniedError)
    lake.root("GRANT ALTER, DROP ON mine.t TO USER bob", "GRANT ALTER, DROP VIEW ON mine.v TO USER bob")
    lake.root("GRANT CREATE ON SCHEMA mine TO USER bob", "GRANT CREATE VIEW ON SCHEMA mine TO USER bob")
    assert all(allowed for _, _, allowed in explained(lake, sql))
    lake.run(BOB, sql)


@pytest.mark.rule("META-3")
def test_explain_access_of_another_looks_below_views(lake: Lake) -> None:
    make(lake)
    lake.root("GRANT SELECT ON mine.v TO USER bob", "GRANT SELECT ON mine.t TO USER alice")
    asked = "EXPLAIN ACCESS SELECT * FROM mine.v FOR USER bob"
    assert [row[:3] for row in lake.run(ROOT, asked)] == [("lake.mine.v", "select", False)]
    lake.root("GRANT SELECT ON mine.t TO USER bob")
    assert [row[:3] for row in lake.run(ROOT, asked)] == [("lake.mine.v", "select", True)]


@pytest.mark.rule("DML-4")
@pytest.mark.parametrize("sql", ["DROP TABLE mine.t", "TRUNCATE TABLE mine.t", "CREATE TABLE mine.x (LIKE mine.t)"])
def test_explain_access_knows_what_takes_the_whole_table(lake: Lake, sql: str) -> None:
    make(lake)
    lake.root(
        "GRANT SELECT ON mine.t TO USER bob ROWS WHERE id = 1",
        "GRANT ALL PRIVILEGES ON mine.t TO USER bob",
        "GRANT CREATE ON SCHEMA mine TO USER bob",
    )
    assert not all(allowed for _, _, allowed in explained(lake, sql))
    with pytest.raises(NotSupportedError, match="is restricted for you"):
        lake.run(BOB, sql)


def test_a_schema_that_holds_what_is_hidden(lake: Lake) -> None:
    make(lake)
    lake.root("GRANT DROP ON SCHEMA mine TO USER bob", "GRANT SELECT ON mine.v TO USER alice")
    assert explained(lake, "DROP SCHEMA mine") == [("lake.mine", "drop_schema", True)]
    assert explained(lake, "DROP SCHEMA mine CASCADE") == [("lake.mine", "drop_schema", False)]
    assert isinstance(lake.refusal(BOB, "DROP SCHEMA mine CASCADE"), AccessDeniedError)
    assert ("t",) in lake.run(ROOT, "SHOW TABLES FROM mine")


def test_explain_access_takes_what_reads_or_changes_objects(lake: Lake) -> None:
    for sql in ("SHOW CATALOGS", "SET SESSION query_max_run_time = '1m'", "GRANT SELECT ON people TO USER bob"):
        assert isinstance(lake.refusal(ALICE, f"EXPLAIN ACCESS {sql}"), UserError)


@pytest.mark.rule("POL-10")
def test_what_another_engine_made_anew_is_not_its_former_owners(lake: Lake) -> None:
    """Not its rows, not its columns, not to be given away: DESCRIBE and OWNER TO know as much as SELECT."""
    lake.root("CREATE SCHEMA mine", "GRANT CREATE, CREATE VIEW ON SCHEMA mine TO USER bob")
    for sql in (
        "CREATE TABLE mine.made (id integer)",
        "CREATE TABLE mine.alike (LIKE mine.made)",
        "CREATE OR REPLACE TABLE mine.made (id integer)",
        "CREATE VIEW mine.view AS SELECT 1 AS id",
        "CREATE OR REPLACE VIEW mine.view AS SELECT 2 AS id",
    ):
        lake.run(BOB, sql)
    lake.root("CREATE TABLE mine.given (id integer)", "ALTER TABLE mine.given OWNER TO USER bob")
    names = ("made", "alike", "given", "view")
    uses = ("SELECT * FROM mine.{}", "DESCRIBE mine.{}", "SHOW COLUMNS FROM mine.{}", "EXPLAIN SELECT * FROM mine.{}")
    for name in names:
        for sql in uses:
            assert lake.run(BOB, sql.format(name)) or sql == uses[0]
    catalog = lake.engine.catalogs["lake"]
    for name in names[:3]:
        catalog.put("mine", name, pa.table({"secret": pa.array([7], pa.int32())}))
    view = ("mine",), "view"
    catalog.views[view] = replace(catalog.views[view], uuid="new")

    def told() -> list[tuple[ErrorCode, str]]:
        owned = [f"ALTER {'VIEW' if name == 'view' else 'TABLE'} mine.{name} OWNER TO USER alice" for name in names]
        refused = [lake.refusal(BOB, sql) for sql in (*owned, *(sql.format(name) for sql in uses for name in names))]
        return [(error.code, error.message) for error in refused]

    anew = told()
    lake.root("GRANT SELECT ON mine.made TO USER bob")
    assert lake.refusal(BOB, "ALTER TABLE mine.made OWNER TO USER alice").code is ErrorCode.ACCESS_DENIED
    catalog.tables, catalog.views = {}, {}
    assert anew == told(), "as if it were gone"


@pytest.mark.rule("POL-10")
def test_a_cascade_that_fails_half_way_leaves_no_owner_of_what_is_gone(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(lake)
    grants = lake.sqe.enforcers[0]
    assert isinstance(grants, GrantsEnforcer)
    gone = ObjectName(catalog="lake", namespace=("mine",), name="t")
    assert grants.is_owner(gone, ROOT)

    def fails(namespace: tuple[str, ...]) -> None:
        raise UserError("somebody made a table meanwhile")

    monkeypatch.setattr(lake.engine.catalogs["lake"], "drop_namespace", fails)
    assert "meanwhile" in lake.refusal(ROOT, "DROP SCHEMA mine CASCADE").message
    assert not grants.is_owner(gone, ROOT)
