"""What a select list declares of types that Spark has no word for, for Trino's clients."""

from __future__ import annotations

import pytest

from sqe_core.sql.reader import Reader
from sqe_core.sql.statement import EngineStatement, TextLimits


def translated(sql: str, dialect: str) -> str:
    statement = Reader().read(sql, dialect=dialect, limits=TextLimits())
    assert isinstance(statement, EngineStatement)
    return statement.spark_sql


@pytest.mark.parametrize(
    ("expression", "declared"),
    [
        ("'abc'", "varchar(3)"),
        ("('ü')", "varchar(1)"),
        ("CAST(a AS char(3))", "char(3)"),
        ("a::varchar(5)", "varchar(5)"),
        ("UUID '12151fd2-7586-11e9-8f9e-2a86e4085a59'", "uuid"),
        ("CAST(a AS ipaddress)", "ipaddress"),
        ("TIMESTAMP '2020-01-01 10:00:00'", "timestamp(0)"),
        ("TIMESTAMP '2020-01-01 10:00:00.123'", "timestamp(3)"),
        ("TIMESTAMP '2020-01-01 10:00:00.1 Europe/Rome'", "timestamp(1) with time zone"),
        ("TIMESTAMP '2020-01-01 10:00:00.12 +02:00'", "timestamp(2) with time zone"),
        ("TIME '10:00:00.12'", "time(2)"),
        ("CAST(a AS timestamp(0) with time zone)", "timestamp(0) with time zone"),
        ("CAST(a AS array(varchar(2)))", "array(varchar(2))"),
        ('CAST(a AS row(b bigint, "c d" char(1)))', 'row(b bigint, "c d" char(1))'),
        ("CAST(a AS map(varchar, uuid))", "map(varchar, uuid)"),
        ("uuid()", "uuid"),
        ("now()", "timestamp(3) with time zone"),
        ("localtimestamp", "timestamp(3)"),
    ],
)
def test_declared(expression: str, declared: str) -> None:
    for text in (f"SELECT {expression} AS x FROM t", f"SELECT {expression} FROM t"):
        assert f", '{declared}'" in translated(text, "trino")
        assert "_sqe_declared" not in translated(text, "sqe")


@pytest.mark.parametrize(
    "expression",
    [
        "a",
        "1",
        "CAST(a AS varchar)",
        "CAST(a AS timestamp(6))",
        "TIMESTAMP '2020-01-01 10:00:00.123456'",
        "upper('a')",
        "DATE '2020-01-01'",
    ],
)
def test_what_spark_says_as_well(expression: str) -> None:
    assert "_sqe_declared" not in translated(f"SELECT {expression} FROM t", "trino")


@pytest.mark.parametrize(
    ("expression", "named"),
    [
        ("'ab'", "'varchar(2)'"),
        ("(('ab'))", "'varchar(2)'"),
        ("now()", "'timestamp(3) with time zone'"),
        ("ARRAY['a', 'bc']", "'array(varchar(2))'"),
        ("ARRAY['a', b]", "_sqe_typeof(array('a', `b`))"),
        ("MAP(ARRAY['a'], ARRAY[1])", "concat('map(', 'varchar(1)', ', ', _sqe_typeof_element(array(1)), ')')"),
        ("ROW(a, 'b')", "concat('row(', _sqe_typeof(`a`), ', ', 'varchar(1)', ')')"),
        ("a", "_sqe_typeof(`a`)"),
    ],
)
def test_typeof_tells_what_is_declared(expression: str, named: str) -> None:
    assert f"SELECT {named} AS `_col0`" in translated(f"SELECT typeof({expression}) FROM t", "trino")
    assert "SELECT _sqe_typeof(" in translated(f"SELECT typeof({expression}) FROM t", "sqe")


def test_only_columns_of_results_declare() -> None:
    sql = "SELECT a FROM t WHERE b = 'x' AND c < TIMESTAMP '2020-01-01 10:00:00' GROUP BY a, 'y' ORDER BY CAST(a AS char(3))"
    assert "_sqe_declared" not in translated(sql, "trino")
