"""What a statement asks of tables of ours: simple queries, and what can be said of each table of others."""

from __future__ import annotations

import pytest

from sqe_core.sql.reader import Reader
from sqe_core.sql.simple_query import NotSimpleError, rows_of, wanted_of_table
from sqe_core.sql.statement import EngineStatement, TextLimits

TYPES = {"a": str, "b": str, "n": int, "yes": bool}
COLUMNS = list(TYPES)
ROWS = [("x", "p", 1, True), ("x", None, 2, False), ("y", "q%", 3, None), (None, "P", None, True)]


def read(sql: str) -> EngineStatement:
    statement = Reader().read(sql, dialect="trino", limits=TextLimits())
    assert isinstance(statement, EngineStatement)
    return statement


def answer(sql: str, **parameters: object) -> list[tuple[object, ...]]:
    query = read(sql).simple
    assert query is not None, sql
    return list(rows_of(query, COLUMNS, TYPES, parameters)(ROWS))


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("a = 'x'", [1, 2]),
        ("'x' = a AND n > 1", [2]),
        ("NOT a = 'x'", [3]),
        ("a <> 'x' OR n = 1", [1, 3]),
        ("b IS NULL", [2]),
        ("b IS NOT NULL AND n IS NOT NULL", [1, 3]),
        ("a IN ('y', 'z')", [3]),
        ("a NOT IN ('y', NULL)", []),
        ("b LIKE 'q%'", [3]),
        ("b LIKE 'q$%' ESCAPE '$'", [3]),
        ("b LIKE 'p$%' ESCAPE '$'", []),
        ("upper(b) = 'P' AND n = 1", [1]),
        ("lower(b) = lower('P')", [1, None]),
        ("yes = true", [1, None]),
        ("n <= 2 AND (a = 'y' OR n >= 2)", [2]),
        ("t.n = 1", [1]),
    ],
)
def test_conditions(condition: str, expected: list[int | None]) -> None:
    assert [row[0] for row in answer(f"SELECT n FROM s.t WHERE {condition}")] == expected


def test_orders_and_bounds() -> None:
    assert [row[0] for row in answer("SELECT n FROM s.t ORDER BY n DESC")] == [3, 2, 1, None]
    assert [row[0] for row in answer("SELECT n FROM s.t ORDER BY n DESC NULLS FIRST LIMIT 2")] == [None, 3]
    assert [row[0] for row in answer("SELECT n AS m, a FROM s.t ORDER BY a, m DESC OFFSET 1")] == [1, 3, None]
    assert answer("SELECT DISTINCT a FROM s.t WHERE a IS NOT NULL ORDER BY 1 DESC") == [("y",), ("x",)]
    assert answer("SELECT count(*) FROM s.t WHERE a = 'x'") == [(2,)]
    assert answer("SELECT * FROM s.t WHERE n = 3") == [ROWS[2]]
    assert answer("SELECT n FROM s.t WHERE a = ? AND n = ?", sqe_p1="x", sqe_p2=2) == [(2,)]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a FROM s.t WHERE n = 'x'",
        "SELECT a FROM s.t WHERE nothing = 1",
        "SELECT nothing FROM s.t",
        "SELECT a FROM s.t ORDER BY 2",
        "SELECT upper(n) FROM s.t",
        "SELECT a FROM s.t WHERE n LIKE '1'",
    ],
)
def test_what_the_engine_has_to_refuse(sql: str) -> None:
    query = read(sql).simple
    assert query is not None
    with pytest.raises(NotSimpleError):
        list(rows_of(query, COLUMNS, TYPES, {})(ROWS))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a FROM s.t, s.u",
        "SELECT max(a) FROM s.t",
        "SELECT a FROM s.t GROUP BY a",
        "SELECT a FROM (SELECT * FROM s.t)",
        "WITH t AS (SELECT 1 AS a) SELECT a FROM t",
        "SELECT a FROM s.t UNION SELECT a FROM s.u",
        "SELECT a || 'x' FROM s.t",
        "SELECT a FROM s.t WHERE a = (SELECT 'x')",
        "SELECT a FROM s.t FOR VERSION AS OF 1",
        "SELECT a FROM s.t TABLESAMPLE BERNOULLI (10)",
        "SELECT a FROM s.t ORDER BY a FETCH FIRST 1 ROW WITH TIES",
        "SELECT u.a FROM s.t",
        "SELECT row_number() OVER () FROM s.t",
    ],
)
def test_what_is_no_simple_query(sql: str) -> None:
    assert read(sql).simple is None


# The statement, what is asked for in the column `a` of `s.t`, and whether other values of it are, too.
NARROWED = [
    ("SELECT max(a) FROM s.t WHERE a = 'x' AND length(b) > 1", "x", False),
    ("SELECT * FROM s.t t JOIN s.u u ON t.n = u.n WHERE t.a = 'x' AND u.a = 'y'", "x", False),
    ("SELECT * FROM s.u u LEFT JOIN s.t t ON t.n = u.n WHERE t.a = 'x'", "x", True),
    ("SELECT * FROM s.t t LEFT JOIN s.u u ON t.n = u.n WHERE t.a = 'x'", "x", False),
    ("SELECT * FROM s.t t RIGHT JOIN s.u u ON t.n = u.n WHERE t.a = 'x'", "x", True),
    ("SELECT * FROM s.t t JOIN s.u u ON t.n = u.n WHERE a = 'x'", "x", True),
    ("SELECT * FROM s.t WHERE a = 'x' UNION ALL SELECT * FROM s.t WHERE a = 'y'", "xy", False),
    ("SELECT * FROM s.t WHERE a = 'x' UNION ALL SELECT * FROM s.t", "x", True),
    ("SELECT * FROM (SELECT * FROM s.t WHERE a = 'x') WHERE a = 'z'", "x", False),
    ("SELECT * FROM s.u WHERE EXISTS (SELECT 1 FROM s.t WHERE t.a = 'x' AND t.b = u.b)", "x", False),
    ("SELECT * FROM s.t TABLESAMPLE BERNOULLI (10) WHERE a = 'x'", "x", True),
    ("SELECT * FROM s.t WHERE a = 'x' OR n = 1", "x", True),
]


@pytest.mark.parametrize(("sql", "values", "others"), NARROWED, ids=[case[0][:60] for case in NARROWED])
def test_what_is_asked_of_a_table(sql: str, values: str, others: bool) -> None:
    asked = wanted_of_table([query for query in read(sql).narrowed if query.table == ("s", "t")], TYPES, {})
    assert all(asked.takes("a", value) for value in values)
    assert asked.takes("a", "other") is others
    assert (asked.only("a") is None) is others


def test_columns_keep_the_letters_of_their_names() -> None:
    assert read('SELECT T.X, y AS Yy, 1, "Q" FROM s.t').column_names == ("X", "Yy", "_col2", "Q")
    assert read("SELECT x FROM s.t").column_names is None
    assert read("SELECT *, X FROM s.t").column_names is None
    assert read("SELECT X FROM s.t UNION SELECT y FROM s.t").column_names == ("X",)


@pytest.mark.parametrize("digits", [19, 30, 5000])
def test_a_number_that_is_no_bigint_is_the_engines(digits: int) -> None:
    number = "9" * digits
    for sql in (
        f"SELECT a FROM s.t LIMIT {number}",
        f"SELECT {number} AS big FROM s.t",
        f"SELECT a FROM s.t WHERE n = {number}",
    ):
        assert read(sql).simple is None
