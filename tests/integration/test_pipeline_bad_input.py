"""Bad input of every kind: a clear error of ours each time, quickly, and the next statement works."""

from __future__ import annotations

import time

import pytest
from testbed.clocks import PROMPT_SECS

from sqe_core.bootstrap import EmbeddedSqe
from sqe_core.query.judge.inspect import PlanLimits
from sqe_core.spi.errors import ErrorKind, SqeError

_FOREIGN = [
    "SHOW ENGINES",
    "PRAGMA table_info('t')",
    "SELECT TOP 5 * FROM t",
    "SELECT * FROM `t`",
    "SELECT * FROM [t]",
    "EXEC sp_help 't'",
    "DB.t.find({})",
    "from t | where x > 1",
    "CREATE TABLE t (id int) ENGINE=InnoDB",
    "SELECT * FROM t FOR UPDATE",
    "LOAD DATA LOCAL INPATH '/x' INTO TABLE t",
    "COPY t FROM '/tmp/x.csv'",
    "GRANT SELECT ON t TO bob",
    "CREATE INDEX i ON t (id)",
    "VACUUM t",
    "SELECT 1; SELECT 2",
    "SELECT * FROM t WHERE x === 1",
    "{'a': 1}",
    "SELECT 'open",
    'SELECT "open',
    "SELECT /* open",
    "",
    "   ",
    ";",
    "-- only a comment",
]


def refused(sqe: EmbeddedSqe, sql: str) -> SqeError:
    started = time.monotonic()
    with pytest.raises(SqeError) as raised:
        sqe.execute(sql).read_all()
    assert time.monotonic() - started < 4 * PROMPT_SECS
    error = raised.value
    assert error.kind in (ErrorKind.USER, ErrorKind.RESOURCES), error
    assert error.message
    for leak in ("Traceback", "org.apache", "sqlglot", "py4j", "_sqe_", "\x1b"):
        assert leak not in error.message + (error.hint or "")
    assert sqe.execute("SELECT 1 AS one").read_all().num_rows == 1
    return error


@pytest.mark.rule("STMT-1", "ERR-1")
@pytest.mark.parametrize("sql", _FOREIGN)
def test_a_statement_of_another_engine(sqe: EmbeddedSqe, sql: str) -> None:
    refused(sqe, sql)


@pytest.mark.rule("LIM-3")
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1" + " " * (20 << 20),
        "SELECT '" + "x" * (17 << 20) + "'",
        "SELECT '\0'",
        "SELECT '\ud800'",
        "\x7fELF\x02\x01\x01\0\0\0\0",
        "SELECT \x07 1",
    ],
    ids=["size", "literal", "nul", "surrogate", "binary", "control"],
)
def test_text_that_no_parser_should_see(sqe: EmbeddedSqe, sql: str) -> None:
    refused(sqe, sql)


@pytest.mark.rule("LIM-4")
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT " + "(" * 5000 + "1" + ")" * 5000,
        "SELECT " + "(" * 300 + "1" + ")" * 300,
        "SELECT " + "CASE WHEN true THEN " * 2000 + "1" + " END" * 2000,
        "SELECT " + "NOT " * 5000 + "true",
        "SELECT " + "-" * 1 + "(-" * 3000 + "1" + ")" * 3000,
        "SELECT * FROM " + "(SELECT * FROM " * 1000 + "t" + ")" * 1000,
        "WITH " + ", ".join(f"c{n} AS (SELECT 1)" for n in range(5000)) + " SELECT 1 FROM nowhere",
    ],
    ids=["parentheses", "300", "case", "not", "minus", "subqueries", "ctes"],
)
def test_depth(sqe: EmbeddedSqe, sql: str) -> None:
    refused(sqe, sql)


def test_wide_statements_that_are_fine_work(sqe: EmbeddedSqe) -> None:
    wide = "SELECT " + " OR ".join(f"1 = {number}" for number in range(5000)) + " AS yes"
    assert sqe.execute(wide).read_all().column(0).to_pylist() == [True]
    nested = "SELECT " + "(" * 100 + "1" + ")" * 100 + " AS one"
    assert sqe.execute(nested).read_all().column(0).to_pylist() == [1]
    listed = "SELECT 1 AS one WHERE 5 IN (" + ", ".join(map(str, range(5000))) + ")"
    assert sqe.execute(listed).read_all().num_rows == 1


@pytest.mark.rule("LIM-6")
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT repeat('x', 2000000000)",
        "SELECT sequence(1, 10000000000)",
        "SELECT lpad('x', 2000000000, 'y')",
    ],
)
def test_functions_that_amplify(sqe: EmbeddedSqe, sql: str) -> None:
    refused(sqe, sql)


WIDE = "(SELECT " + ", ".join(f"1 AS c{i}" for i in range(1000)) + ") AS t"


def doubled(levels: int) -> str:
    """A query whose columns double with each level."""
    return "SELECT t.*, t.* FROM (" * levels + "SELECT 1 AS a" + ") AS t" * levels


def planned_columns(sqe: EmbeddedSqe, sql: str) -> int:
    """How many columns a result has; nothing runs."""
    plan = sqe.sqe.service.plan(sqe.session, sql)
    plan.close()
    return len(plan.schema or ())


@pytest.mark.rule("LIM-5", "LIM-10")
def test_a_result_has_so_many_columns(sqe: EmbeddedSqe) -> None:
    most = PlanLimits().max_columns
    assert planned_columns(sqe, "SELECT t.*, t.*, t.*, t.*, t.* FROM " + WIDE) == most
    for sql in (
        "SELECT t.*, t.*, t.*, t.*, t.*, 1 AS one FROM " + WIDE,
        "WITH w AS (SELECT t.*, t.*, t.*, t.*, t.*, 1 AS one FROM " + WIDE + ") SELECT * FROM w",
    ):
        assert refused(sqe, sql).message == f"The result has {most + 1} columns; {most} are allowed"


@pytest.mark.rule("LIM-5")
def test_a_wide_table_is_read_and_a_wider_one_not_made(sqe: EmbeddedSqe) -> None:
    most = PlanLimits().max_columns
    sqe.execute("CREATE SCHEMA bounds").close()
    sqe.execute("CREATE TABLE bounds.wide (" + ", ".join(f"c{i} integer" for i in range(most)) + ")").close()
    assert planned_columns(sqe, "SELECT * FROM bounds.wide") == most
    both = "bounds.wide AS a JOIN bounds.wide AS b ON a.c1 = b.c1"
    assert sqe.execute(f"SELECT a.c1, b.c2 FROM {both}").read_all().num_rows == 0
    names = (f"a{i}" for i in range(most + 1))
    wider = f"CREATE TABLE bounds.wider ({', '.join(names)}) AS SELECT *, 1 AS one FROM bounds.wide"
    for sql in (f"SELECT * FROM {both}", wider):
        assert "columns" in refused(sqe, sql).message
    sqe.execute("DROP SCHEMA bounds CASCADE").close()


@pytest.mark.rule("LIM-5")
@pytest.mark.parametrize(
    "sql",
    [
        doubled(17),
        f"SELECT count(*) AS n FROM ({doubled(17)}) AS u",
        f"SELECT 1 AS one WHERE EXISTS ({doubled(17)})",
        "WITH c0 AS (SELECT 1 AS a)"
        + "".join(f", c{i} AS (SELECT t.*, t.* FROM c{i - 1} AS t)" for i in range(1, 18))
        + " SELECT count(*) AS n FROM c17",
        f"CREATE TABLE never AS {doubled(17)}",
        f"CREATE VIEW never AS {doubled(17)}",
    ],
    ids=["result", "inner", "subquery", "with", "table", "view"],
)
def test_stars_over_stars(sqe: EmbeddedSqe, sql: str) -> None:
    error = refused(sqe, sql)
    assert error.message == "The stars of the statement stand for more than 50000 columns"


@pytest.mark.rule("LIM-9")
def test_a_side_of_a_join_that_no_memory_holds(sqe: EmbeddedSqe) -> None:
    error = refused(sqe, "SELECT count(*) FROM range(9000000) AS a(x) LEFT JOIN range(8000000) AS b(y) ON a.x < b.y")
    assert error.message == "One side of a join is too big to be kept in memory"
    assert error.kind is ErrorKind.RESOURCES
    assert sqe.execute("SELECT 1 AS one").read_all().to_pylist() == [{"one": 1}]
