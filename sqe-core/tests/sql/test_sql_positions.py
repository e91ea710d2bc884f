"""Places in the Spark text lead back to places in the user's own text (ERR-3)."""

from __future__ import annotations

import pytest

from sqe_core.spi.errors import Position
from sqe_core.sql.reader import Reader
from sqe_core.sql.statement import EngineStatement, TextLimits


def statement(sql: str, dialect: str = "sqe") -> EngineStatement:
    found = Reader().read(sql, dialect=dialect, limits=TextLimits())
    assert isinstance(found, EngineStatement)
    return found


def place(sql: str, fragment: str, *, occurrence: int = 1, dialect: str = "sqe") -> Position | None:
    """Where the user wrote what reads `fragment` in the Spark text."""
    found = statement(sql, dialect)
    start = -1
    for _ in range(occurrence):
        start = found.spark_sql.index(fragment, start + 1)
    return found.positions.locate(start, fragment)


@pytest.mark.rule("ERR-3")
@pytest.mark.parametrize(
    ("sql", "fragment", "occurrence", "line", "column"),
    [
        ("select a, b from t", "`b`", 1, 1, 11),
        ("select a,\n  bad from t", "`bad`", 1, 2, 3),
        ("select a from t where a = 1", "`a`", 2, 1, 23),
        ("select 'x' || a, a from t", "`a`", 2, 1, 18),
        ("select 1 / 0", "_sqe_div(1, 0)", 1, 1, 8),
        ("select a + b from t", "_sqe_add(`a`, `b`)", 1, 1, 8),
        ("select a.b.c from t", "`a`.`b`.`c`", 1, 1, 8),
        ('select "a`b" from t', "`a``b`", 1, 1, 8),
        ("select x from missing", "`missing`", 1, 1, 15),
        ("select x from a.b.missing", "`a`.`b`.`missing`", 1, 1, 15),
        ("select cast('x' as int)", "_sqe_to_integer('x')", 1, 1, 8),
        ("select nullif(a, 'é') , lower(b)", "lower(`b`)", 1, 1, 25),
        ("create table t as select a, q from u", "`q`", 1, 1, 29),
        ("insert into t select nope from u", "`nope`", 1, 1, 22),
        ("alter table t drop column nope", "`nope`", 1, 1, 27),
        ("create table t (a int, b int) partitioned by (nope)", "`nope`", 1, 1, 47),
        ("select a from t qualify rank() over (order by nope) = 1", "`nope`", 1, 1, 47),
        ("select a from t order by nope fetch first 1 row with ties", "`nope`", 1, 1, 26),
    ],
)
def test_fragments_lead_back(sql: str, fragment: str, occurrence: int, line: int, column: int) -> None:
    assert place(sql, fragment, occurrence=occurrence) == Position(line=line, column=column)


def test_a_part_of_a_statement_keeps_its_places() -> None:
    sql = "explain analyze\nselect nope from t"
    found = Reader().read(sql, dialect="sqe", limits=TextLimits())
    inner = found.inner  # type: ignore[attr-defined]
    start = inner.spark_sql.index("`nope`")
    assert inner.positions.locate(start, "`nope`") == Position(line=2, column=8)


def test_without_a_start_the_fragment_is_looked_for() -> None:
    found = statement("select a, nope from t")
    assert found.positions.locate(None, "`nope`") == Position(line=1, column=11)
    assert found.positions.locate(None, None) is None
    assert found.positions.locate(None, "absent") is None


def test_no_mark_reaches_the_engine() -> None:
    for sql in ("select a from t", "create table t (a int)", "update t set a = 1", "select U&'\\0001'"):
        assert not set(statement(sql).spark_sql) & {"\x01", "\x02"}


@pytest.mark.rule("ERR-3")
def test_the_spark_dialect_shifts_by_its_parameters() -> None:
    sql = "select ?, ?,\n `Bad` + 1L from T where x = ?"
    assert place(sql, "`Bad`", dialect="spark") == Position(line=2, column=2)
    assert place(sql, "x = ", dialect="spark") == Position(line=2, column=26)
    assert place("explain select nope from t".removeprefix("explain "), "nope", dialect="spark") == Position(
        line=1, column=8
    )
