"""Every statement form, as what it is recognised."""

from __future__ import annotations

from dataclasses import fields
from decimal import Decimal
from typing import Any

import pytest

from sqe_core.sql.reader import Reader
from sqe_core.sql.statement import (
    AddColumnWithDefault,
    CommentOn,
    CreateSchema,
    CreateTableLike,
    CreateView,
    DescribeQuery,
    DropSchema,
    DropTable,
    DropView,
    EngineStatement,
    Explain,
    NoOperation,
    RenameTable,
    RenameView,
    ResetSession,
    SetPath,
    SetSession,
    SetTimeZone,
    SetViewProperties,
    ShowCatalogs,
    ShowColumns,
    ShowCreate,
    ShowFunctions,
    ShowSchemas,
    ShowSession,
    ShowStats,
    ShowTables,
    Statement,
    StatementKind,
    TextLimits,
    TransactionControl,
    Use,
)

K = StatementKind


def read(sql: str, dialect: str = "sqe") -> Statement:
    return Reader().read(sql, dialect=dialect, limits=TextLimits())


def values(statement: Statement) -> dict[str, Any]:
    """All fields that differ from nothing."""
    found = {field.name: getattr(statement, field.name) for field in fields(statement)}
    return {name: value for name, value in found.items() if name != "kind" and value not in (None, False, (), {})}


# fmt: off
OWN = [
    ("SHOW CATALOGS", ShowCatalogs, K.SHOW, {}),
    ("show catalogs like 'a%'", ShowCatalogs, K.SHOW, {"like": "a%"}),
    ("SHOW SCHEMAS", ShowSchemas, K.SHOW, {}),
    ("SHOW DATABASES", ShowCatalogs, K.SHOW, {}),
    ("SHOW SCHEMAS FROM \"C\" LIKE 'x'", ShowSchemas, K.SHOW, {"catalog": "C", "like": "x"}),
    ("SHOW SCHEMAS IN Cat", ShowSchemas, K.SHOW, {"catalog": "cat"}),
    ("SHOW TABLES", ShowTables, K.SHOW, {}),
    ("SHOW TABLES FROM c.s LIKE '%'", ShowTables, K.SHOW, {"schema": ("c", "s"), "like": "%"}),
    ("SHOW TABLES LIKE 'a$_b' ESCAPE '$'", ShowTables, K.SHOW, {"like": "a\\_b"}),
    ("SHOW TABLES LIKE 'a\\_b' ESCAPE '\\'", ShowTables, K.SHOW, {"like": "a\\_b"}),
    ("SHOW VIEWS IN s", ShowTables, K.SHOW, {"schema": ("s",), "views_only": True}),
    ("SHOW COLUMNS FROM a.b.c", ShowColumns, K.SHOW, {"name": ("a", "b", "c")}),
    ("SHOW COLUMNS IN t FROM s LIKE 'x%'", ShowColumns, K.SHOW, {"name": ("s", "t"), "like": "x%"}),
    ("SHOW CREATE TABLE t", ShowCreate, K.SHOW, {"object": "table", "name": ("t",)}),
    ("SHOW CREATE VIEW s.v", ShowCreate, K.SHOW, {"object": "view", "name": ("s", "v")}),
    ("SHOW CREATE SCHEMA s", ShowCreate, K.SHOW, {"object": "schema", "name": ("s",)}),
    ("SHOW FUNCTIONS", ShowFunctions, K.SHOW, {}),
    ("SHOW FUNCTIONS LIKE 'date%'", ShowFunctions, K.SHOW, {"like": "date%"}),
    ("SHOW SESSION", ShowSession, K.SHOW, {}),
    ("SHOW STATS FOR t", ShowStats, K.SHOW, {"name": ("t",)}),
    ("DESCRIBE t", ShowColumns, K.DESCRIBE, {"name": ("t",)}),
    ("DESC TABLE s.t", ShowColumns, K.DESCRIBE, {"name": ("s", "t")}),
    ('describe "table"', ShowColumns, K.DESCRIBE, {"name": ("table",)}),
    ("USE a", Use, K.USE, {"name": ("a",)}),
    ('USE a."b.c"', Use, K.USE, {"name": ("a", "b.c")}),
    ("USE SCHEMA a", Use, K.USE, {"name": ("a",)}),
    ("USE schema", Use, K.USE, {"name": ("schema",)}),
    ("SET SESSION a.b = 'x'", SetSession, K.SESSION, {"name": "a.b", "value": "x"}),
    ("SET SESSION a = -1.5", SetSession, K.SESSION, {"name": "a", "value": -1.5}),
    ("SET SESSION a = true", SetSession, K.SESSION, {"name": "a", "value": True}),
    ("SET SESSION a = 7", SetSession, K.SESSION, {"name": "a", "value": 7}),
    ("RESET SESSION a", ResetSession, K.SESSION, {"name": "a"}),
    ("RESET SESSION", ResetSession, K.SESSION, {}),
    ("SET TIME ZONE 'UTC'", SetTimeZone, K.SESSION, {"zone": "UTC"}),
    ("SET TIME ZONE LOCAL", SetTimeZone, K.SESSION, {}),
    ("SET TIME ZONE INTERVAL '0' HOUR", SetTimeZone, K.SESSION, {"zone": "UTC"}),
    ("SET PATH lake.a, b", SetPath, K.SESSION, {"path": "lake.a, b"}),
    ("BEGIN", TransactionControl, K.TRANSACTION, {"what": "start"}),
    ("BEGIN TRANSACTION", TransactionControl, K.TRANSACTION, {"what": "start"}),
    ("START TRANSACTION ISOLATION LEVEL READ COMMITTED, READ ONLY", TransactionControl, K.TRANSACTION, {"what": "start", "read_only": True, "isolation": "READ COMMITTED"}),
    ("COMMIT WORK", TransactionControl, K.TRANSACTION, {"what": "commit"}),
    ("ROLLBACK", TransactionControl, K.TRANSACTION, {"what": "rollback"}),
    ("ANALYZE t", NoOperation, K.UTILITY, {"must_exist": ("t",)}),
    ("ANALYZE TABLE t COMPUTE STATISTICS FOR ALL COLUMNS", NoOperation, K.UTILITY, {"must_exist": ("t",)}),
    ("ANALYZE t WITH (columns = ARRAY['a'])", NoOperation, K.UTILITY, {"must_exist": ("t",)}),
    ("CREATE SCHEMA s", CreateSchema, K.CREATE_SCHEMA, {"name": ("s",)}),
    (
        "CREATE DATABASE IF NOT EXISTS c.s LOCATION '/x' COMMENT 'y'",
        CreateSchema,
        K.CREATE_SCHEMA,
        {"name": ("c", "s"), "if_not_exists": True, "location": "/x", "properties": {"comment": "y"}},
    ),
    ("CREATE SCHEMA s WITH (location = 's3://b', \"a.b\" = 'c')", CreateSchema, K.CREATE_SCHEMA, {"name": ("s",), "location": "s3://b", "properties": {"a.b": "c"}}),
    ("DROP SCHEMA IF EXISTS s CASCADE", DropSchema, K.DROP_SCHEMA, {"name": ("s",), "if_exists": True, "cascade": True}),
    ("DROP DATABASE s RESTRICT", DropSchema, K.DROP_SCHEMA, {"name": ("s",)}),
    ("DROP TABLE IF EXISTS t PURGE", DropTable, K.DROP_TABLE, {"name": ("t",), "if_exists": True, "purge": True}),
    ("DROP VIEW v", DropView, K.DROP_VIEW, {"name": ("v",)}),
    ("DROP MATERIALIZED VIEW IF EXISTS v", NoOperation, K.DROP_VIEW, {}),
    ("ALTER TABLE t RENAME TO c.s.u", RenameTable, K.ALTER_TABLE, {"name": ("t",), "target": ("c", "s", "u")}),
    ("ALTER TABLE IF EXISTS t RENAME TO u", RenameTable, K.ALTER_TABLE, {"name": ("t",), "target": ("u",), "if_exists": True}),
    ("ALTER VIEW v RENAME TO w", RenameView, K.ALTER_VIEW, {"name": ("v",), "target": ("w",)}),
    ("ALTER VIEW v SET TBLPROPERTIES ('a' = 'b', c = DEFAULT)", SetViewProperties, K.ALTER_VIEW, {"name": ("v",), "properties": {"a": "b", "c": None}}),
    ("ALTER VIEW v UNSET TBLPROPERTIES ('a')", SetViewProperties, K.ALTER_VIEW, {"name": ("v",), "properties": {"a": None}}),
    ("COMMENT ON VIEW v IS 'x'", CommentOn, K.COMMENT, {"object": "view", "name": ("v",), "comment": "x"}),
    ("COMMENT ON SCHEMA s IS NULL", CommentOn, K.COMMENT, {"object": "schema", "name": ("s",)}),
    (
        "CREATE TABLE IF NOT EXISTS a (LIKE s.b INCLUDING PROPERTIES) WITH (format_version = 2)",
        CreateTableLike,
        K.CREATE_TABLE,
        {"name": ("a",), "source": ("s", "b"), "if_not_exists": True, "properties": {"format-version": "2"}},
    ),
    ("CREATE TABLE a LIKE b", CreateTableLike, K.CREATE_TABLE, {"name": ("a",), "source": ("b",)}),
    (
        "ALTER TABLE t ADD COLUMN c decimal(5, 2) DEFAULT 1.50 COMMENT 'x'",
        AddColumnWithDefault,
        K.ALTER_TABLE,
        {
            "name": ("t",),
            "column": "c",
            "type": "DECIMAL(5, 2)",
            "default": Decimal("1.50"),
            "comment": "x",
        },
    ),
    ("ALTER TABLE t ADD COLUMN IF NOT EXISTS c varchar", AddColumnWithDefault, K.ALTER_TABLE, {"name": ("t",), "column": "c", "type": "STRING", "if_not_exists": True}),
]
# fmt: on


@pytest.mark.parametrize(("sql", "kind", "statement_kind", "expected"), OWN, ids=[one[0][:60] for one in OWN])
def test_own_statements(
    sql: str, kind: type[Statement], statement_kind: StatementKind, expected: dict[str, Any]
) -> None:
    statement = read(sql)
    assert type(statement) is kind
    assert statement.kind is statement_kind
    assert values(statement) == expected


ENGINE = [
    ("select 1", K.QUERY),
    ("(select 1)", K.QUERY),
    ("with a as (select 1) select * from a", K.QUERY),
    ("values 1", K.QUERY),
    ("table t", K.QUERY),
    ("insert into t select 1", K.INSERT),
    ("with a as (select 1) insert into t select * from a", K.INSERT),
    ("update t set a = 1", K.UPDATE),
    ("update t set a = s.a from s where s.b = t.b", K.MERGE),
    ("delete from t", K.DELETE),
    ("merge into t using s on t.a = s.a when matched then delete", K.MERGE),
    ("truncate table t", K.TRUNCATE),
    ("create table t (a int)", K.CREATE_TABLE),
    ("create table t as select 1 as a", K.CREATE_TABLE_AS),
    ("alter table t drop column a", K.ALTER_TABLE),
    ("comment on table t is 'x'", K.COMMENT),
    ("comment on column t.c is 'x'", K.ALTER_TABLE),
]


@pytest.mark.parametrize(("sql", "kind"), ENGINE)
def test_engine_statements(sql: str, kind: StatementKind) -> None:
    statement = read(sql + ";")
    assert isinstance(statement, EngineStatement)
    assert statement.kind is kind
    assert statement.text == sql


@pytest.mark.parametrize(
    ("sql", "mode"),
    [
        ("EXPLAIN select 1", "plan"),
        ("EXPLAIN VERBOSE select 1", "plan"),
        ("EXPLAIN (TYPE DISTRIBUTED, FORMAT TEXT) select 1", "plan"),
        ("EXPLAIN ANALYZE select 1", "analyze"),
        ("EXPLAIN ANALYZE VERBOSE select 1", "analyze"),
        ("EXPLAIN FULL delete from t", "full"),
    ],
)
def test_explain_reads_what_it_explains(sql: str, mode: str) -> None:
    statement = read(sql)
    assert isinstance(statement, Explain)
    assert statement.mode == mode
    assert isinstance(statement.inner, EngineStatement)
    assert sql.endswith(statement.inner.text)


def test_describe_of_a_query() -> None:
    statement = read("DESCRIBE select a from t")
    assert isinstance(statement, DescribeQuery)
    assert statement.query.spark_sql == "SELECT `a` FROM `t`"
    assert statement.query.text == "select a from t"


def test_create_view() -> None:
    statement = read(
        "CREATE OR REPLACE VIEW s.v (a COMMENT 'x', \"B\") COMMENT 'y' SECURITY DEFINER AS select 1, 2 from t order by 1"
    )
    assert isinstance(statement, CreateView)
    assert statement.kind is K.CREATE_VIEW
    assert statement.name == ("s", "v")
    assert statement.columns == (("a", "x"), ("B", None))
    assert statement.comment == "y"
    assert statement.security == "definer"
    assert statement.replace
    assert not statement.temporary
    assert statement.query.text == "select 1, 2 from t order by 1"


def test_create_temporary_view() -> None:
    statement = read("CREATE TEMP VIEW v AS select 1")
    assert isinstance(statement, CreateView)
    assert statement.temporary
    assert statement.security == "invoker"


def test_names_fold_and_quotes_keep() -> None:
    statement = read('drop table Cat."My Schema"."T""x"')
    assert isinstance(statement, DropTable)
    assert statement.name == ("cat", "My Schema", 'T"x')


@pytest.mark.parametrize("sql", ["select ? , ?", "select :b, :a, :b"])
def test_parameters(sql: str) -> None:
    statement = read(sql)
    assert isinstance(statement, EngineStatement)
    if "?" in sql:
        assert statement.parameters == ("sqe_p1", "sqe_p2")
        assert statement.positional
        assert statement.spark_sql == "SELECT :sqe_p1 AS `?`, :sqe_p2 AS `?`"
    else:
        assert statement.parameters == ("b", "a")
        assert not statement.positional
        assert statement.spark_sql == "SELECT :b AS `:b`, :a AS `:a`, :b AS `:b`"


def test_parameters_keep_their_order_when_the_query_is_turned_around() -> None:
    statement = read("select a + ? from t where b = ? qualify row_number() over (order by c) = ? limit ?")
    assert isinstance(statement, EngineStatement)
    assert statement.parameters == ("sqe_p1", "sqe_p2", "sqe_p3", "sqe_p4")
    sql = statement.spark_sql
    assert "_sqe_add(`a`, :sqe_p1)" in sql
    assert "_sqe_eq(`b`, :sqe_p2)" in sql
    assert ", :sqe_p3) AS `_sqe_q`" in sql
    assert sql.endswith("LIMIT :sqe_p4")


@pytest.mark.rule("FUNC-2")
def test_session_functions_are_markers() -> None:
    statement = read("select current_user, current_catalog, current_schema, current_role()")
    assert isinstance(statement, EngineStatement)
    for name in ("current_user", "current_catalog", "current_schema", "current_role"):
        assert f":_sqe_{name} AS" in statement.spark_sql
    assert statement.parameters == ()
