"""The time zones of expressions, as far as a statement's text says them, in the dialect of Trino's clients."""

from __future__ import annotations

import re
import time

import pytest

from sqe_core.spi.errors import NotSupportedError
from sqe_core.sql.reader import Reader
from sqe_core.sql.statement import EngineStatement, TextLimits

STORED = "where nothing is said"
HERE = "TIMESTAMP '2020-07-01 12:00:00 Asia/Tokyo'"


def spark(sql: str, dialect: str = "trino") -> str:
    statement = Reader().read(sql, dialect=dialect, limits=TextLimits())
    assert isinstance(statement, EngineStatement)
    return statement.spark_sql


def zone(sql: str) -> str | None:
    """Return the zone in which CAST(x AS varchar) tells the one column of a query."""
    written = spark(sql + " FROM t")
    assert "_sqe_to_varchar(" in written
    found = re.search(r".*, ('([^']*)'|TRUE)\)(?: AS `\w+`)? FROM `t`$", written)
    return None if found is None else found[2] or STORED


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (HERE, "Asia/Tokyo"),
        (f"(({HERE}))", "Asia/Tokyo"),
        ("TIMESTAMP '2020-07-01 12:00:00.5 -3:30'", "-03:30"),
        ("TIMESTAMP '2020-07-01 12:00:00 Z'", "UTC"),
        ("a AT TIME ZONE 'Europe/Rome'", "Europe/Rome"),
        ("a AT TIME ZONE 'Europe/Rome' AT TIME ZONE '+2'", "+02:00"),
        ("a AT TIME ZONE INTERVAL '-3' HOUR", "-03:00"),
        ("a AT TIME ZONE INTERVAL '5:30' HOUR TO MINUTE", "+05:30"),
        ("a AT TIME ZONE INTERVAL -'90' MINUTE", "-01:30"),
        ("at_timezone(a, 'Europe/Rome')", "Europe/Rome"),
        ("with_timezone(a, 'Europe/Rome')", "Europe/Rome"),
        ("from_unixtime(a, 'Europe/Rome')", "Europe/Rome"),
        ("from_unixtime(a, -3, -30)", "-03:30"),
        ("from_unixtime(a, b, 0)", STORED),
        ("from_unixtime(a)", None),
        ("now()", None),
        ("current_timestamp", None),
        ("from_iso8601_timestamp('2020-05-11T11:15:05.055+01:00')", "+01:00"),
        ("from_iso8601_timestamp('2020-05-11T11:15:05Z')", "UTC"),
        ("from_iso8601_timestamp('2020-05-11T11:15:05')", None),
        ("from_iso8601_timestamp('2020-05-11')", None),
        ("from_iso8601_timestamp(a)", STORED),
        ("parse_datetime('2020-05-11 +02:00', 'yyyy-MM-dd ZZ')", "+02:00"),
        ("parse_datetime('2020-05-11', 'yyyy-MM-dd ''Z''')", None),
        ("parse_datetime(a, 'yyyy-MM-dd Z')", STORED),
        ("CAST('2020-07-01 12:00:00 Asia/Tokyo' AS timestamp with time zone)", "Asia/Tokyo"),
        ("CAST('2020-07-01 12:00:00' AS timestamp with time zone)", None),
        ("CAST(DATE '2020-07-01' AS timestamp with time zone)", None),
        (f"CAST({HERE} AS timestamp(0) with time zone)", "Asia/Tokyo"),
        (f"date_trunc('day', {HERE})", "Asia/Tokyo"),
        (f"date_add('day', 1, {HERE})", "Asia/Tokyo"),
        (f"{HERE} + INTERVAL '1' DAY", "Asia/Tokyo"),
        (f"INTERVAL '1' DAY + {HERE}", "Asia/Tokyo"),
        (f"{HERE} - INTERVAL '1' MONTH", "Asia/Tokyo"),
        (f"CASE WHEN a THEN {HERE} ELSE NULL END", "Asia/Tokyo"),
        (f"CASE WHEN a THEN {HERE} ELSE now() END", STORED),
        (f"if(a, {HERE})", "Asia/Tokyo"),
        (f"coalesce(NULL, {HERE})", "Asia/Tokyo"),
        (f"coalesce(a, {HERE})", STORED),
        (f"nullif({HERE}, a)", "Asia/Tokyo"),
        (f"max({HERE})", "Asia/Tokyo"),
        (f"lag({HERE}) OVER (ORDER BY a)", "Asia/Tokyo"),
        (f"lag({HERE}, 1, now()) OVER (ORDER BY a)", STORED),
        (f"(SELECT {HERE})", "Asia/Tokyo"),
        ("a", STORED),
        ("a.b", STORED),
        ("TIMESTAMP '2020-07-01 12:00:00'", None),
        ("a AT TIME ZONE 'europe/rome'", "europe/rome"),  # the engine refuses it
        ("f[1]", STORED),
    ],
)
def test_zones(expression: str, expected: str | None) -> None:
    assert zone(f"SELECT CAST({expression} AS varchar)") == expected


L = "WITH l AS (SELECT a AT TIME ZONE 'Europe/Rome' AS x, b FROM t)"


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (f"{L} SELECT hour(x) FROM l", "Europe/Rome"),
        (f"{L} SELECT hour(l.x) FROM l", "Europe/Rome"),
        (f"{L} SELECT hour(m.x) FROM l AS m", "Europe/Rome"),
        (f"{L} SELECT hour(n.y) FROM l AS n(y, z)", "Europe/Rome"),
        (f"{L}, m AS (SELECT * FROM l) SELECT hour(x) FROM m", "Europe/Rome"),
        (f"{L}, m AS (SELECT l.* FROM l JOIN u ON b = c) SELECT hour(x) FROM m", "Europe/Rome"),
        (f"{L}, m AS (SELECT x FROM l UNION ALL SELECT x FROM l) SELECT hour(x) FROM m", "Europe/Rome"),
        (f"{L}, m AS (SELECT x FROM l UNION ALL SELECT now()) SELECT hour(x) FROM m", STORED),
        (f"{L} SELECT hour(x) FROM l JOIN u ON b = c", "Europe/Rome"),
        (f"{L} SELECT hour(x) FROM l JOIN u USING (x)", STORED),
        (f"{L} SELECT hour(x) FROM l NATURAL JOIN u", STORED),
        (f"{L} SELECT hour(l.x) FROM l, l AS m", "Europe/Rome"),
        (f"{L} SELECT (SELECT hour(l.x) FROM u) FROM l", "Europe/Rome"),
        (f"{L} SELECT hour(x) FROM s.l", STORED),
        (f"{L} SELECT hour(b) FROM l", STORED),
        (f"{L} SELECT 1 FROM l ORDER BY hour(x)", "Europe/Rome"),
        ("WITH l(y) AS (SELECT a AT TIME ZONE 'Europe/Rome' FROM t) SELECT hour(y) FROM l", "Europe/Rome"),
        ("SELECT hour(x) FROM (SELECT a AT TIME ZONE 'Europe/Rome' AS x FROM t)", "Europe/Rome"),
        ("SELECT a AT TIME ZONE 'Europe/Rome' AS x FROM t ORDER BY hour(x)", "Europe/Rome"),
        ("WITH t AS (SELECT a AT TIME ZONE 'Europe/Rome' AS a FROM t) SELECT hour(a) FROM t", "Europe/Rome"),
        (f"SELECT hour(x) FROM (VALUES {HERE}, {HERE}) v(x)", "Asia/Tokyo"),
        (f"SELECT hour(x) FROM (VALUES {HERE}, now()) v(x)", STORED),
        ("WITH RECURSIVE r(x) AS (SELECT now() UNION ALL SELECT x FROM r) SELECT hour(x) FROM r", STORED),
        ("SELECT hour(a) FROM t", STORED),
        ("SELECT transform(f, a -> hour(a)) FROM t", STORED),
    ],
)
def test_columns(sql: str, expected: str) -> None:
    # The innermost template says which zone is meant.
    found = re.findall(r"_sqe_(?:clock|local_time)\([^()]*?, (?:'([^']*)'|TRUE)\)", spark(sql))
    assert {each or STORED for each in found} == {expected}


@pytest.mark.parametrize(
    ("expression", "written"),
    [
        ("hour(x AT TIME ZONE 'Asia/Tokyo')", "CAST(extract(HOUR FROM _sqe_local_time(`x`, 'Asia/Tokyo')) AS BIGINT)"),
        ("hour(x AT TIME ZONE INTERVAL '2' HOUR)", "CAST(extract(HOUR FROM _sqe_local_time(`x`, '+02:00')) AS BIGINT)"),
        ("hour(at_timezone(x, y))", "CAST(extract(HOUR FROM _sqe_local_time(`x`, `y`)) AS BIGINT)"),
        ("hour(x)", "CAST(extract(HOUR FROM _sqe_clock(`x`, TRUE)) AS BIGINT)"),
        ("hour(now())", "CAST(extract(HOUR FROM current_timestamp()) AS BIGINT)"),
        (
            "hour(TIMESTAMP '2020-01-01 10:00:00')",
            "CAST(extract(HOUR FROM TIMESTAMP_NTZ '2020-01-01 10:00:00') AS BIGINT)",
        ),
        ("date_trunc('day', x)", "_sqe_date_trunc('day', `x`, TRUE)"),
        ("date_trunc('day', now())", "_sqe_declared(_sqe_date_trunc('day', current_timestamp()), '', 'session')"),
        ("date_trunc('hour', at_timezone(x, y))", "_sqe_time_trunc('hour', _sqe_at_zone(`x`, `y`), `y`)"),
        ("date_add('month', 1, x)", "_sqe_date_add('month', 1, `x`, TRUE)"),
        ("date_diff('day', x, y)", "_sqe_date_diff('day', _sqe_clock(`x`, TRUE), _sqe_clock(`y`, TRUE))"),
        ("x + INTERVAL '1' MONTH", "_sqe_add_period(`x`, (INTERVAL '1' MONTH), TRUE)"),
        ("x - INTERVAL '1' DAY", "_sqe_add_period(`x`, -(INTERVAL '1' DAY), TRUE)"),
        ("timezone(x)", "_sqe_zone_of(`x`, 'UTC', :_sqe_current_timezone)"),
        ("timezone(now())", "_sqe_zone_of(current_timestamp(), :_sqe_current_timezone, :_sqe_current_timezone)"),
        ("timezone_minute(x)", "CAST(_sqe_zone_minutes(`x`, 'UTC', :_sqe_current_timezone) % 60 AS BIGINT)"),
    ],
)
def test_what_is_written(expression: str, written: str) -> None:
    assert spark(f"SELECT {expression} AS q FROM t") == f"SELECT {written} AS `q` FROM `t`"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT timezone(at_timezone(x, y)) FROM t",
        "SELECT timezone_hour(x) FROM (SELECT at_timezone(a, b) AS x FROM t)",
        "SELECT extract(TIMEZONE_MINUTE FROM f[1]) FROM t",
        "SELECT transform(f, x -> timezone(x)) FROM t",
    ],
)
def test_a_zone_that_nobody_knows_is_not_told(sql: str) -> None:
    with pytest.raises(NotSupportedError, match="The time zone of this value is not known"):
        spark(sql)


@pytest.mark.parametrize(
    "condition",
    [
        "hour(at) = 12",
        "CAST(at AS varchar) LIKE '%UTC' AND CAST(at AS varchar(9)) = 'x'",
        "date_trunc('day', at) = date_add('day', 1, at) + INTERVAL '1' MONTH",
        "date_diff('day', at, b) = 1 AND date_diff('hour', at, b) = 24",
        "to_iso8601(at) = format_datetime(at, 'Z') AND timezone(at) = 'UTC'",
        "hour(CAST(a AS timestamp with time zone)) = 1",
    ],
)
def test_a_policy_does_not_ask_for_the_sessions_zone(condition: str) -> None:
    """Its plan is compared with the one that was compiled in UTC (ENF-9)."""
    depends = re.compile(r"TRUE|_sqe_clock")
    assert depends.search(spark(f"SELECT 1 FROM t WHERE {condition}")) or "timezone" in condition
    assert not depends.search(Reader().translate_expression(condition, dialect="trino"))


def test_results_say_their_zone() -> None:
    assert ", '', 'Europe/Rome') AS `x`" in spark("SELECT a AT TIME ZONE 'Europe/Rome' AS x FROM t")
    assert ", 'timestamp(0) with time zone', 'Asia/Tokyo')" in spark(f"SELECT {HERE}")
    assert "_sqe_declared" not in spark("SELECT a FROM t")
    assert "_sqe_declared" not in spark("SELECT a AT TIME ZONE 'Europe/Rome' AS x FROM t", "sqe")


def test_the_way_of_a_column_is_not_followed_for_ever() -> None:
    doubled = ", ".join(
        f"c{n} AS (SELECT x FROM c{n - 1} AS a CROSS JOIN (SELECT y FROM c{n - 1}) b)" for n in range(1, 30)
    )
    starred = ", ".join(f"d{n} AS (SELECT * FROM d{n - 1} AS a CROSS JOIN d{n - 1} AS b)" for n in range(1, 30))
    start = "c0 AS (SELECT a AT TIME ZONE 'Europe/Rome' AS x, b AS y FROM t), d0 AS (SELECT * FROM c0)"
    began = time.monotonic()
    spark(f"WITH {start}, {doubled}, {starred} SELECT hour(c29.x), hour(d29.q) FROM c29, d29")
    spark(f"SELECT hour({'(' * 150}a{')' * 150}), hour({'coalesce(' * 60}now(){')' * 60}) FROM t")
    assert time.monotonic() - began < 10


def test_casts_inside_of_each_other_are_written_once_each() -> None:
    """Whoever writes an operand twice writes the innermost one a million times."""
    text = "x"
    for _ in range(40):
        text = f"cast({text} as varchar(9))"
    assert spark(f"select {text} as y from t").count("_sqe_to_varchar_n") == 40
