"""trino-python-client: what a program reads, sends, is told, and can stop."""

from __future__ import annotations

import datetime
import math
import threading
import time
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import trino
from dateutil.relativedelta import relativedelta
from testbed.clocks import PROMPT_SECS, wait_for

DAY, MOMENT = datetime.date(2026, 2, 3), datetime.datetime(2026, 2, 3, 4, 5, 6, 7)
ZONED = MOMENT.replace(tzinfo=datetime.UTC)
IDENTITY = uuid.UUID("12151fd2-7586-11e9-8f9e-2a86e4085a59")
TWO_HOURS = datetime.timezone(datetime.timedelta(hours=2))
LONG = (
    "SELECT count(*) FROM UNNEST(sequence(1, 100000)) AS a(x) CROSS JOIN UNNEST(sequence(1, 100000)) AS b(y) "
    "CROSS JOIN UNNEST(sequence(1, 10000)) AS c(z) WHERE x * y % 7 = z"
)

Connect = Callable[..., Any]


@pytest.fixture
def connection(connect_trino: Connect) -> Any:
    return connect_trino()


def rows(connection: Any, sql: str, *parameters: Any) -> list[Any]:
    cursor = connection.cursor()
    cursor.execute(sql, parameters or None)
    return list(cursor.fetchall())


# What is read

VALUES: dict[str, tuple[Any, str]] = {
    "true": (True, "boolean"),
    "TINYINT '-8'": (-8, "tinyint"),
    "SMALLINT '-300'": (-300, "smallint"),
    "7": (7, "integer"),
    "BIGINT '9223372036854775807'": (2**63 - 1, "bigint"),
    "REAL '1.5'": (1.5, "real"),
    "DOUBLE '0.1'": (0.1, "double"),
    "infinity()": (math.inf, "double"),
    "DECIMAL '1234567890123456789012345678.0123456789'": (
        Decimal("1234567890123456789012345678.0123456789"),
        "decimal(38,10)",
    ),
    "CAST('ü€😀' AS varchar)": ("ü€😀", "varchar"),
    "X'00FF'": (b"\0\xff", "varbinary"),
    "DATE '2026-02-03'": (DAY, "date"),
    "TIME '04:05:06.000007'": (MOMENT.time(), "time(6)"),
    "TIMESTAMP '2026-02-03 04:05:06.000007'": (MOMENT, "timestamp(6)"),
    "TIMESTAMP '2026-02-03 04:05:06.000007 UTC'": (ZONED, "timestamp(6) with time zone"),
    "INTERVAL '36' HOUR": (datetime.timedelta(hours=36), "interval day to second"),
    "INTERVAL '14' MONTH": (relativedelta(years=1, months=2), "interval year to month"),
    """JSON '{"a":1}'""": ('{"a":1}', "json"),
    "ARRAY[1, NULL]": ([1, None], "array(integer)"),
    "MAP(ARRAY[CAST('a' AS varchar)], ARRAY[1])": ({"a": 1}, "map(varchar, integer)"),
    "CAST(ROW(1, 'x') AS ROW(a integer, b varchar))": ((1, "x"), "row(a integer, b varchar)"),
    "ARRAY[CAST(ROW(DATE '2026-02-03', 1.5) AS ROW(d date, p decimal(4,2)))]": (
        [(DAY, Decimal("1.50"))],
        "array(row(d date, p decimal(4,2)))",
    ),
    "NULL": (None, "unknown"),
}


def test_every_type_its_value_and_its_null(connection: Any) -> None:
    of_types = [literal for literal in VALUES if literal != "NULL"]
    nulls = [f"nullif({literal}, {literal})" for literal in of_types if "JSON" not in literal and "MAP" not in literal]
    cursor = connection.cursor()
    cursor.execute(f"SELECT {', '.join(VALUES)}")
    (found,) = cursor.fetchall()
    told = [column.type_code for column in cursor.description]
    for literal, value, type in zip(VALUES, found, told, strict=True):
        assert (value, type) == VALUES[literal], literal
    named = {column.type_code: column for column in cursor.description}
    assert named["decimal(38,10)"][4:6] == (38, 10)
    assert named["timestamp(6)"].precision == 6
    assert found[list(VALUES).index("CAST(ROW(1, 'x') AS ROW(a integer, b varchar))")].b == "x"
    cursor.execute(f"SELECT {', '.join(nulls)}")
    assert cursor.fetchall() == [[None] * len(nulls)]
    assert math.isnan(rows(connection, "SELECT nan()")[0][0])


def test_times_have_the_zone_that_the_statement_names(connect_trino: Connect, table: str) -> None:
    in_table = "SELECT at AT TIME ZONE 'Europe/Amsterdam' AS there, at AT TIME ZONE '-03:30', at, nullif(at, at) FROM "
    for encoding in (None, "json+zstd"):
        connection = connect_trino(encoding=encoding)
        rows(connection, f"CREATE TABLE IF NOT EXISTS {table} (at timestamp(6) with time zone)")
        rows(connection, f"DELETE FROM {table}")
        rows(connection, f"INSERT INTO {table} VALUES TIMESTAMP '2026-02-03 04:05:06.000007 UTC'")
        ((there, west, stored, nothing),) = rows(connection, in_table + table)
        assert there == west == stored == ZONED
        assert nothing is None
        assert (there.tzinfo, there.hour) == (ZoneInfo("Europe/Amsterdam"), 5)
        assert (west.utcoffset(), west.hour) == (-datetime.timedelta(hours=3, minutes=30), 0)
        assert stored.utcoffset() == datetime.timedelta()
        ((day, count),) = rows(
            connection, f"SELECT date_trunc('day', there), count(*) FROM ({in_table}{table}) GROUP BY 1"
        )
        assert (day, day.tzinfo, count) == (day.replace(hour=0, minute=0), ZoneInfo("Europe/Amsterdam"), 1)


def test_values_come_back_from_a_table(connection: Any, table: str) -> None:
    columns = (
        "b boolean, i integer, l bigint, f real, d double, p decimal(20,4), s varchar, r varbinary, day date, "
        "at timestamp(6), zoned timestamp(6) with time zone, a array(varchar), m map(varchar, bigint), "
        "o row(x integer, y row(z varchar))"
    )
    rows(connection, f"CREATE TABLE {table} ({columns})")
    values = (
        "true, 1, 2, REAL '0.5', 0.25, 1.5, 'ü', X'01', DATE '2026-02-03', TIMESTAMP '2026-02-03 04:05:06.000007', "
        "TIMESTAMP '2026-02-03 04:05:06.000007 UTC', ARRAY['a', NULL], MAP(ARRAY['k'], ARRAY[3]), ROW(1, ROW('z'))"
    )
    assert rows(connection, f"INSERT INTO {table} VALUES ({values}), ({', '.join(['NULL'] * 14)})") == [[2]]
    first, second = rows(connection, f"SELECT * FROM {table} ORDER BY i")
    assert first[:11] == [True, 1, 2, 0.5, 0.25, Decimal("1.5"), "ü", b"\1", DAY, MOMENT, ZONED]
    assert first[11:] == [["a", None], {"k": 3}, (1, ("z",))]
    assert second == [None] * 14


@pytest.mark.parametrize("encoding", [None, "json", "json+lz4", "json+zstd"])
def test_big_results(connect_trino: Connect, encoding: str | None) -> None:
    """As rows of pages, and in each of the encodings that the client asks for, whatever the server then sends."""
    cursor = connect_trino(encoding=encoding).cursor()
    cursor.execute("SELECT id, 'row ' || CAST(id AS varchar) AS name FROM UNNEST(sequence(1, 200000)) AS r(id)")
    assert cursor.fetchone() == [1, "row 1"]
    assert cursor.fetchmany(2) == [[2, "row 2"], [3, "row 3"]]
    rest = cursor.fetchall()
    assert len(rest) == 199_997
    assert sum(row[0] for row in rest) == sum(range(4, 200_001))
    assert cursor.fetchone() is None
    assert cursor.stats["state"] == "FINISHED"
    assert cursor.stats["processedRows"] == 200_000


# What is sent

PARAMETERS: list[Any] = [
    True,
    7,
    -7,
    2**62,
    1.5,
    "o'neil ü€😀 ?",
    b"\0\xff",
    Decimal("-1.25"),
    DAY,
    MOMENT.time(),
    MOMENT,
    MOMENT.replace(tzinfo=TWO_HOURS),
    MOMENT.replace(tzinfo=ZoneInfo("Europe/Berlin")),
    ZONED,
    math.inf,
    [1, None, 3],
    ["a", "b"],
    {"a": 1, "b": None},
    (1, "x"),
]


@pytest.mark.parametrize("legacy", [False, True])
def test_parameters(connect_trino: Connect, legacy: bool) -> None:
    """By EXECUTE IMMEDIATE, and by statements that the client prepares and sends with each request."""
    connection = connect_trino(legacy_prepared_statements=legacy)
    (found,) = rows(connection, f"SELECT {', '.join('?' * len(PARAMETERS))}", *PARAMETERS)
    assert found == PARAMETERS
    assert [type(value) for value in found[:-1]] == [type(value) for value in PARAMETERS[:-1]]
    assert rows(connection, "SELECT 1 WHERE ? = UUID '12151fd2-7586-11e9-8f9e-2a86e4085a59'", IDENTITY) == [[1]]
    assert rows(connection, "SELECT coalesce(?, 'nothing')", None) == [["nothing"]]
    assert rows(connection, "SELECT x FROM UNNEST(sequence(1, 9)) AS r(x) WHERE x > ? AND x < ?", 3, 5) == [[4]]
    # What would end the text, if somebody put it together.
    assert rows(connection, "SELECT ?", "'; DROP TABLE t --") == [["'; DROP TABLE t --"]]


def test_many_and_how_many(connection: Any, table: str) -> None:
    cursor = connection.cursor()

    def written(sql: str) -> tuple[str, int]:
        cursor.execute(sql)
        cursor.fetchall()
        return cursor.update_type, cursor.rowcount

    assert written(f"CREATE TABLE {table} (id bigint, name varchar)") == ("CREATE TABLE", -1)
    cursor.executemany(f"INSERT INTO {table} VALUES (?, ?)", [(1, "one"), (2, None), (3, "o'three")])
    assert cursor.fetchall() == [[1]]
    assert written(f"INSERT INTO {table} SELECT id + 10, name FROM {table}") == ("INSERT", 3)
    assert written(f"UPDATE {table} SET name = 'x' WHERE id > 10") == ("UPDATE", 3)
    assert written(f"DELETE FROM {table} WHERE id = 11") == ("DELETE", 1)
    source = "(VALUES (1, 'new'), (99, 'more')) AS s(id, name)"
    merge = "WHEN MATCHED THEN UPDATE SET name = s.name WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, s.name)"
    assert written(f"MERGE INTO {table} AS t USING {source} ON t.id = s.id {merge}") == ("MERGE", 2)
    assert written(f"CREATE TABLE {table}_copy AS SELECT * FROM {table}") == ("CREATE TABLE", 6)
    assert rows(connection, f"SELECT * FROM {table}_copy ORDER BY id") == [
        [1, "new"],
        [2, None],
        [3, "o'three"],
        [12, "x"],
        [13, "x"],
        [99, "more"],
    ]
    assert written(f"DROP TABLE {table}_copy") == ("DROP TABLE", -1)


def test_columns_of_a_statement_that_does_not_run(connection: Any, table: str) -> None:
    rows(connection, f"CREATE TABLE {table} (id bigint, name varchar)")
    described = connection.cursor().describe(f"SELECT id, name AS called FROM {table} WHERE id = ?")
    assert [(column.name, column.type) for column in described] == [("id", "bigint"), ("called", "varchar")]


# What is told

ERRORS = {
    "SELECT 1 +": ("SYNTAX_ERROR", None),
    "SELECT\n  nope FROM (VALUES 1) AS t(x)": ("COLUMN_NOT_FOUND", (2, 3)),
    "SELECT * FROM nowhere": ("TABLE_NOT_FOUND", (1, 15)),
    "SELECT nope(1)": ("FUNCTION_NOT_FOUND", (1, 8)),
    "SELECT 1 / 0": ("DIVISION_BY_ZERO", None),
    "SELECT CAST('x' AS integer)": ("INVALID_CAST_ARGUMENT", None),
    "SELECT 2147483647 + 1": ("NUMERIC_VALUE_OUT_OF_RANGE", (1, 8)),
    "SELECT x, y FROM (VALUES (1, 2)) AS t(x, y) GROUP BY x": ("EXPRESSION_NOT_AGGREGATE", None),
}


@pytest.mark.parametrize("sql", ERRORS)
def test_errors_have_names_and_places(connection: Any, sql: str) -> None:
    name, place = ERRORS[sql]
    with pytest.raises(trino.exceptions.TrinoUserError) as raised:
        rows(connection, sql)
    error = raised.value
    assert (error.error_name, error.error_type) == (name, "USER_ERROR")
    assert error.query_id
    if place is not None:
        assert error.error_exception == "io.trino.spi.TrinoException"
        assert error.message.startswith(f"line {place[0]}:{place[1]}: ")
    assert "org.apache" not in str(error)
    assert rows(connection, "SELECT 1") == [[1]]


def test_logins(connect_trino: Connect, tls_server: Any) -> None:
    assert rows(connect_trino("ana"), "SELECT current_user") == [["ana"]]
    token = trino.auth.JWTAuthentication(tls_server.keys["ana"])
    assert rows(connect_trino("ana", auth=token), "SELECT current_user") == [["ana"]]
    assert rows(connect_trino(None), "SELECT current_user") == [["anonymous"]]
    for user, more in (("eve", {}), ("ana", {"auth": trino.auth.BasicAuthentication("ana", "sqe_wrong")})):
        with pytest.raises(trino.exceptions.HttpError, match="401"):
            rows(connect_trino(user, **more), "SELECT 1")
    ana = trino.auth.BasicAuthentication("ana", tls_server.keys["ana"])
    with pytest.raises(trino.exceptions.HttpError, match="403"):
        rows(connect_trino("root", auth=ana), "SELECT 1")


# What the client keeps for its session


def test_names_and_properties(connection: Any, connect_trino: Connect) -> None:
    rows(connection, "CREATE SCHEMA IF NOT EXISTS iceberg.python_client")
    rows(connection, "USE iceberg.python_client")
    kept = connection._client_session
    assert (kept.catalog, kept.schema) == ("iceberg", "python_client")
    assert rows(connection, "SELECT current_catalog, current_schema") == [["iceberg", "python_client"]]
    nowhere = connect_trino(catalog=None, schema=None)
    rows(nowhere, "USE iceberg.default")
    assert (nowhere._client_session.catalog, nowhere._client_session.schema) == ("iceberg", "default")
    rows(connection, "SET SESSION query_max_run_time = '5m'")
    assert kept.properties == {"query_max_run_time": "5m"}
    rows(connection, "RESET SESSION query_max_run_time")
    assert kept.properties == {}
    rows(connection, "PREPARE saved FROM SELECT ? + 1")
    assert rows(connection, "EXECUTE saved USING 41") == [[42]]
    assert rows(connection, "DESCRIBE OUTPUT saved")
    rows(connection, "DEALLOCATE PREPARE saved")
    assert kept.prepared_statements == {}
    other = connect_trino(session_properties={"query_max_run_time": "1m"})
    shown = {row[0]: row[1] for row in rows(other, "SHOW SESSION")}
    assert shown["query_max_run_time"] == "1m"
    with pytest.raises(trino.exceptions.TrinoUserError, match="nope does not exist"):
        rows(connect_trino(session_properties={"nope": "1"}), "SELECT 1")


def test_roles(connect_trino: Connect) -> None:
    def roles(user: str, **chosen: str) -> list[Any]:
        return rows(connect_trino(user, roles=chosen or None), "SHOW CURRENT ROLES")

    assert roles("root") == roles("root", system="ALL") == [["service_admin"]]
    assert roles("root", system="NONE") == []
    # Who does not have a role is none the stronger for saying it.
    assert ["service_admin"] not in roles("etl") + roles("ana", system="ALL")
    connection = connect_trino("root", roles={"system": "NONE"})
    rows(connection, "SET ROLE service_admin")
    assert connection._client_session.roles == {"system": "ROLE{service_admin}"}
    assert rows(connection, "SHOW CURRENT ROLES") == [["service_admin"]]


# What ends before its end


def test_cancel_from_another_thread(connection: Any) -> None:
    cursor = connection.cursor()
    seen: list[dict[str, Any]] = []

    def cancel() -> None:
        wait_for(lambda: (cursor.stats or {}).get("state") == "RUNNING", 30)
        seen.append(cursor.stats)
        cursor.cancel()

    other = threading.Thread(target=cancel)
    other.start()
    with pytest.raises(trino.exceptions.TrinoUserError) as raised:
        cursor.execute(LONG)
    other.join()
    assert raised.value.error_name == "USER_CANCELED"
    assert seen[0]["elapsedTimeMillis"] > 0
    assert rows(connection, "SELECT 1") == [[1]]


def test_closing_ends_what_runs(connection: Any) -> None:
    cursor = connection.cursor()
    cursor.execute("SELECT x FROM TABLE(sequence(1, 30000000)) AS r(x)")
    assert cursor.fetchone() == [1]
    cursor.close()
    state = f"SELECT 1 FROM system.runtime.queries WHERE query_id = '{cursor.query_id}' AND state = 'RUNNING'"
    wait_for(lambda: not rows(connection, state), 20)


def test_a_time_limit_of_the_session(connect_trino: Connect) -> None:
    began = time.monotonic()
    with pytest.raises(trino.exceptions.TrinoQueryError) as raised:
        rows(connect_trino(session_properties={"query_max_run_time": "1s"}), LONG)
    assert raised.value.error_name == "EXCEEDED_TIME_LIMIT"
    assert time.monotonic() - began < PROMPT_SECS
