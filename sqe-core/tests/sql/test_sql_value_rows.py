"""Which INSERTs take many rows of parameters at once, and what they become."""

from __future__ import annotations

import pytest

from sqe_core.sql.grammar.value_rows import value_row
from sqe_core.sql.reader import Reader
from sqe_core.sql.statement import EngineStatement, TextLimits


def read(sql: str, dialect: str = "sqe") -> EngineStatement:
    statement = Reader().read(sql, dialect=dialect, limits=TextLimits())
    assert isinstance(statement, EngineStatement)
    return statement


@pytest.mark.parametrize(
    ("dialect", "sql", "written"),
    [
        ("sqe", "INSERT INTO t VALUES (?, ?)", "`_sqe_v_1`, `_sqe_v_2`"),
        ("sqe", "INSERT INTO s.t (b, a) VALUES (?, ?)", "`_sqe_v_1`, `_sqe_v_2`"),
        ("sqe", "INSERT INTO t VALUES (1, ? , '?), (')", "1, `_sqe_v_1`, '?), ('"),
        ("sqe", "INSERT INTO t VALUES (:b, :a, :b)", "`_sqe_v_1`, `_sqe_v_2`, `_sqe_v_1`"),
        ("trino", "INSERT INTO t VALUES (?, upper(?))", "`_sqe_v_1`, _sqe_upper(`_sqe_v_2`)"),
        ("spark", "insert into table t values (?, ?)", "`_sqe_v_1`, `_sqe_v_2`"),
        ("spark", 'INSERT INTO t /* ( */ VALUES (?, "a\\")")', '`_sqe_v_1`, "a\\")"'),
    ],
)
def test_one_row_of_values_becomes_a_query(dialect: str, sql: str, written: str) -> None:
    statement = read(sql, dialect)
    row = value_row(statement)
    assert row is not None
    count = len(dict.fromkeys(statement.parameters))
    made = row.over("_sqe_i_x", [f"_sqe_v_{number + 1}" for number in range(count)])
    head = made.spark_sql.partition("SELECT")[0]
    assert statement.spark_sql.startswith(head)
    assert made.spark_sql == f"{head}SELECT {written} FROM `_sqe_i_x`"
    assert made.parameters == ()
    assert made.kind is statement.kind


def test_a_column_of_nothing_is_null() -> None:
    row = value_row(read("INSERT INTO t VALUES (?, ?)"))
    assert row is not None
    assert row.over("_sqe_i_x", [None, "_sqe_v_2"]).spark_sql.endswith("SELECT NULL, `_sqe_v_2` FROM `_sqe_i_x`")


@pytest.mark.parametrize(
    ("sql", "whole"),
    [
        ("INSERT INTO t VALUES (?, ?)", {"sqe_p1", "sqe_p2"}),
        ("INSERT INTO t VALUES (:a, :b, :a)", {"b"}),
        ("INSERT INTO t VALUES (:a, :b + :a)", set()),
        ("INSERT INTO t VALUES (ARRAY[1, ?, 2], ?)", {"sqe_p2"}),
        ("INSERT INTO t VALUES (? + 1, greatest(?, 1, ?), 'a, b', ?)", {"sqe_p4"}),
    ],
)
def test_parameters_that_are_all_of_a_value(sql: str, whole: set[str]) -> None:
    row = value_row(read(sql))
    assert row is not None
    assert row.whole == whole


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO t VALUES (1, 2)",
        "INSERT INTO t VALUES (?, 1), (?, 2)",
        "INSERT OVERWRITE t VALUES (?)",
        "INSERT INTO t SELECT ?",
        "INSERT INTO t SELECT * FROM (VALUES (?)) AS v(a)",
        "INSERT INTO t VALUES ((SELECT max(a) FROM t) + ?)",
        "INSERT INTO t PARTITION (d = ?) VALUES (?)",
        "UPDATE t SET a = ?",
        "DELETE FROM t WHERE a = ?",
        "MERGE INTO t USING s ON t.a = s.a WHEN NOT MATCHED THEN INSERT (a) VALUES (?)",
        "SELECT ?",
    ],
)
def test_other_statements_run_once_for_each_row(sql: str) -> None:
    assert value_row(read(sql)) is None
