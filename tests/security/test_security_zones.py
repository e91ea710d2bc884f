"""No time zone that a session or a statement chooses changes what a policy lets through (POL-7)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from governed import Govern, allow

from sqe_core.bootstrap import EmbeddedSqe
from sqe_core.spi.policy import SqlExpression, SqlMask

ZONES = ("UTC", "America/Los_Angeles", "+14:00")
QUERIES = (
    "SELECT n FROM times WHERE at AT TIME ZONE 'Asia/Tokyo' > TIMESTAMP '1999-01-01 00:00:00 Asia/Tokyo' ORDER BY n",
    "SELECT t.n FROM times t JOIN (SELECT at AT TIME ZONE 'Asia/Tokyo' AS at FROM times) u ON t.at = u.at ORDER BY 1",
)


@pytest.fixture(scope="module", autouse=True)
def times(sqe: EmbeddedSqe) -> Iterator[None]:
    for sql in (
        "CREATE TABLE times (n integer, at timestamp(6) with time zone, local timestamp(6), day date)",
        "INSERT INTO times SELECT n, TIMESTAMP '2020-06-30 00:30:00 UTC' + n * INTERVAL '1' HOUR,"
        " TIMESTAMP '2020-06-30 00:30:00' + n * INTERVAL '1' HOUR, DATE '2020-06-30' FROM UNNEST(sequence(1, 48)) s(n)",
    ):
        sqe.execute(sql).close()
    yield
    sqe.execute("DROP TABLE times").close()


@pytest.mark.rule("POL-7")
@pytest.mark.parametrize(
    "policy",
    [
        "CAST(at AS varchar) LIKE '2020-06-30%'",
        "CAST(at AS date) = DATE '2020-06-30'",
        "date(at) = day",
        "hour(at) < 5",
        "day_of_week(at) = 2",
        "at < TIMESTAMP '2020-06-30 12:00:00'",
        "at < TIMESTAMP '2020-06-30 12:00:00 UTC'",
        "at = local",
        "at >= day AND at < day + INTERVAL '1' DAY",
        "CAST(local AS timestamp with time zone) = at",
        "CAST(at AS timestamp) = local AND n < 10",
        "date_trunc('day', at) = TIMESTAMP '2020-06-30 00:00:00 UTC'",
        "date_trunc('day', local) = at - n * INTERVAL '1' HOUR - INTERVAL '30' MINUTE",
        "format_datetime(at, 'dd HH') < '30 05'",
        "date_format(at, '%d %H') < '30 05'",
        "to_iso8601(at) < '2020-06-30T05'",
        "date_diff('day', at, TIMESTAMP '2020-07-02 00:00:00 UTC') = 1",
        "date_add('month', 1, at) < TIMESTAMP '2020-07-30 12:00:00 UTC'",
        "at + INTERVAL '1' MONTH < TIMESTAMP '2020-07-30 12:00:00 UTC'",
        "at BETWEEN DATE '2020-06-30' AND DATE '2020-07-01'",
        "at IN (local)",
        "CASE WHEN n < 10 THEN at ELSE local END = local",
        "coalesce(at, local) = CAST(local AS timestamp with time zone)",
        "CAST(CAST(at AS varchar) AS timestamp with time zone) = local",
        "with_timezone(local, 'UTC') = at",
        "from_iso8601_timestamp('2020-06-30T12:00:00') > at",
        "parse_datetime('2020-06-30 12', 'yyyy-MM-dd HH') > at",
        "current_timezone() = 'UTC' AND n < 10",
        "to_unixtime(local) = to_unixtime(at)",
        "json_format(CAST(at AS json)) LIKE '%06-30%'",
        "concat(CAST(at AS varchar), '') LIKE '2020-06-30%'",
    ],
)
def test_a_filter_lets_the_same_rows_through_in_every_zone(govern: Govern, policy: str) -> None:
    analyst = govern({"times": allow(policy)})
    expected = None
    for zone in ZONES:
        analyst.run(f"SET TIME ZONE '{zone}'", dialect="trino")
        for sql in QUERIES:
            found = analyst.run(sql, dialect="trino")
            expected = expected if expected is not None else found
            assert found == expected, (zone, sql)
    assert expected, "a filter that lets nothing through shows nothing"


@pytest.mark.rule("POL-7")
@pytest.mark.parametrize(
    "mask",
    [
        "CAST(at AS varchar)",
        "substr(CAST(at AS varchar), 1, 10)",
        "format_datetime(at, 'yyyy-MM-dd')",
        "CAST(CAST(at AS date) AS varchar)",
        "to_iso8601(date_trunc('day', at))",
        "CAST(date_trunc('month', at) AS varchar)",
    ],
)
def test_a_mask_shows_the_same_in_every_zone(govern: Govern, sqe: EmbeddedSqe, mask: str) -> None:
    sqe.execute("CREATE TABLE IF NOT EXISTS stamped AS SELECT n, at, CAST(n AS varchar) AS told FROM times").close()
    analyst = govern({"stamped": allow(told=SqlMask(expression=SqlExpression(text=mask)))})
    seen = set()
    for zone in ZONES:
        analyst.run(f"SET TIME ZONE '{zone}'", dialect="trino")
        seen.add(str(analyst.run("SELECT n, told FROM stamped ORDER BY n", dialect="trino")))
        elsewhere = "SELECT told, at AT TIME ZONE 'Asia/Tokyo' AS at, n FROM stamped"
        seen.add(str(analyst.run(f"SELECT n, told FROM ({elsewhere}) ORDER BY n", dialect="trino")))
    assert len(seen) == 1, seen
