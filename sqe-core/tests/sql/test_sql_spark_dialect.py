"""The spark dialect: Spark's own text, with folded names and named parameters, behind the same recogniser."""

from __future__ import annotations

import pytest

from sqe_core.spi.errors import SqeError, UserError
from sqe_core.sql.reader import Reader
from sqe_core.sql.statement import (
    CreateView,
    DropTable,
    EngineStatement,
    RenameTable,
    ShowTables,
    Statement,
    StatementKind,
    TextLimits,
)


def read(sql: str) -> Statement:
    return Reader().read(sql, dialect="spark", limits=TextLimits())


@pytest.mark.parametrize(
    ("sql", "spark", "kind"),
    [
        ("SELECT a FROM T", "select a from t", StatementKind.QUERY),
        (
            "SELECT `My Col`, 'It\\'s', \"Str\" FROM T -- C",
            "select `My Col`, 'It\\'s', \"Str\" from t",
            StatementKind.QUERY,
        ),
        (
            "SELECT /*+ BROADCAST(T) */ 1L, X'1F', R'\\N'",
            "select /*+ broadcast(t) */ 1L, X'1F', R'\\N'",
            StatementKind.QUERY,
        ),
        ("FROM t SELECT a", "from t select a", StatementKind.QUERY),
        (
            "WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a",
            "with a as (select 1) insert into t select * from a",
            StatementKind.INSERT,
        ),
        ("INSERT OVERWRITE t SELECT 1", "insert overwrite t select 1", StatementKind.INSERT),
        ("CREATE TABLE t (a INT) USING iceberg", "create table t (a int) using iceberg", StatementKind.CREATE_TABLE),
        (
            "CREATE TABLE t USING iceberg AS SELECT 1 a",
            "create table t using iceberg as select 1 a",
            StatementKind.CREATE_TABLE_AS,
        ),
        ("ALTER TABLE t ADD COLUMNS (a INT)", "alter table t add columns (a int)", StatementKind.ALTER_TABLE),
        ("SELECT ?, '?' WHERE a = ?", "select :sqe_p1, '?' where a = :sqe_p2", StatementKind.QUERY),
        (
            "SELECT current_user(), Current_Catalog(), a.user FROM t",
            "select :_sqe_current_user, :_sqe_current_catalog, a.user from t",
            StatementKind.QUERY,
        ),
        ("SELECT current_user, user()", "select :_sqe_current_user, :_sqe_current_user", StatementKind.QUERY),
    ],
)
def test_text_goes_to_spark_as_it_is(sql: str, spark: str, kind: StatementKind) -> None:
    statement = read(sql)
    assert isinstance(statement, EngineStatement)
    assert statement.spark_sql == spark
    assert statement.kind is kind


def test_own_statements_use_backticks() -> None:
    drop = read("DROP TABLE IF EXISTS Cat.`My S`.`a``b`")
    assert isinstance(drop, DropTable)
    assert drop.name == ("cat", "My S", "a`b")
    rename = read("ALTER TABLE A RENAME TO `B`")
    assert isinstance(rename, RenameTable)
    assert rename.target == ("B",)
    show = read("SHOW TABLES IN s 'a*'")
    assert isinstance(show, ShowTables)
    assert show.like == "a%"
    view = read("CREATE VIEW v AS SELECT `A` FROM T")
    assert isinstance(view, CreateView)
    assert view.query.spark_sql == "select `A` from t"


@pytest.mark.parametrize(
    "sql",
    [
        "SET x = 1",
        "ADD JAR '/x'",
        "CACHE TABLE t",
        "DFS -ls",
        "REFRESH TABLE t",
        "BEGIN SELECT 1; END",
        "DECLARE VARIABLE x",
        "!ls",
        "CREATE FUNCTION f AS 'x'",
        "CREATE GLOBAL TEMPORARY VIEW v AS SELECT 1",
        "DROP TEMPORARY FUNCTION f",
        "LOAD DATA INPATH 'x' INTO TABLE t",
        "REDUCE a USING 'cat'",
        "SHOW PROCEDURES",
        "IMPORT TABLE t",
        "select 1; select 2",
        "select 'open",
        "select /* open",
        "select `open",
    ],
)
def test_refused_before_spark(sql: str) -> None:
    with pytest.raises(UserError):
        read(sql)


def test_views_that_others_stored() -> None:
    reader = Reader()
    assert reader.translate_view({"spark": "SELECT a FROM T"}) == "SELECT a FROM T"
    assert reader.translate_view({"trino": 'SELECT a, 1/2 x FROM "T"'}) == "SELECT `a`, _sqe_div(1, 2) AS `x` FROM `T`"
    assert reader.translate_view({"trino": "SELECT 1", "spark": "SELECT 2"}) == "SELECT 2"
    for unbounded in ("SELECT " + "(" * 5000 + "1" + ")" * 5000, "SELECT 1; SELECT 2"):
        with pytest.raises(SqeError):
            reader.translate_view({"spark": unbounded})
    with pytest.raises(UserError, match="dialect that SQE reads"):
        reader.translate_view({"duckdb": "SELECT 1"})
    with pytest.raises(UserError, match="dialect that SQE reads"):
        reader.translate_view({"trino": "SHOW TABLES"})
