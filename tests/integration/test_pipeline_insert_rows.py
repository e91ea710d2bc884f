"""Many rows of parameters for one INSERT: one commit, the statement's own conversions, and all or nothing."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from testbed.joined_engine import spooled

from sqe_core.bootstrap import EmbeddedSqe
from sqe_core.engine.spark.engine import SparkEngine
from sqe_core.query.run.running import RunningStatement, new_query_id
from sqe_core.query.service import StatementOptions
from sqe_core.spi.errors import ErrorCode, QueryCancelledError, SqeError


class Inserter:
    def __init__(self, sqe: EmbeddedSqe) -> None:
        self.sqe = sqe
        self.service, self.session = sqe.sqe.service, sqe.session

    def run(self, sql: str) -> None:
        self.sqe.execute(sql).close()

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return [tuple(row.values()) for row in self.sqe.execute(sql).read_all().to_pylist()]

    def insert(self, sql: str, rows: pa.Table, **options: Any) -> int | None:
        batches = rows.to_batches(max_chunksize=1000)
        result = self.service.insert_rows(self.session, sql, batches, options=StatementOptions(**options))
        assert result is not None
        return result.affected_rows

    def snapshots(self, table: str) -> int:
        return int(self.rows(f'SELECT count(*) FROM "{table}$snapshots"')[0][0])

    def refusal(self, sql: str, rows: pa.Table) -> SqeError:
        with pytest.raises(SqeError) as caught:
            self.insert(sql, rows)
        assert caught.value.code is not ErrorCode.GENERIC_INTERNAL_ERROR
        assert "_sqe_" not in f"{caught.value} {caught.value.hint}"
        return caught.value


@pytest.fixture
def client(sqe: EmbeddedSqe, engine: SparkEngine) -> Iterator[Inserter]:
    yield Inserter(sqe)
    assert spooled(engine) == []


@pytest.fixture
def table(client: Inserter) -> str:
    name = "t_" + secrets.token_hex(4)
    client.run(f"CREATE TABLE {name} (id integer, name varchar, amount decimal(10, 2), day date, at timestamp)")
    return name


def test_a_hundred_thousand_rows_are_one_commit(client: Inserter, table: str) -> None:
    count = 100_000
    rows = pa.table({"1": range(count), "2": [f"name {number}" for number in range(count)]})
    assert client.insert(f"INSERT INTO {table} (id, name) VALUES (?, ?)", rows) == count
    assert client.snapshots(table) == 1
    assert client.rows(f"SELECT count(DISTINCT id), min(id), max(name) FROM {table}") == [(count, 0, "name 99999")]


def test_rows_are_converted_as_the_statement_says(client: Inserter, table: str) -> None:
    rows = pa.table(
        {
            "1": pa.array([1, 2, None], pa.int64()),
            "2": ["ada", "bob", None],
            "3": pa.array([Decimal("1.5"), Decimal("2"), None], pa.decimal128(20, 3)),
            "4": [date(2024, 2, 29), None, None],
            "5": pa.array([datetime(2026, 1, 2, 3, 4, 5), None, None], pa.timestamp("ns")),
        }
    )
    sql = f"INSERT INTO {table} VALUES (? + 1, upper(?), ?, ?, ?)"
    assert client.insert(sql, rows) == 3
    assert client.rows(f"SELECT * FROM {table} ORDER BY id NULLS LAST") == [
        (2, "ADA", Decimal("1.50"), date(2024, 2, 29), datetime(2026, 1, 2, 3, 4, 5)),
        (3, "BOB", Decimal("2.00"), None, None),
        (None, None, None, None, None),
    ]


def test_named_parameters_repeated_ones_and_nothing(client: Inserter, table: str) -> None:
    rows = pa.table({"x": [1, 2], "y": pa.nulls(2)})
    sql = f"INSERT INTO {table} (id, name, amount) VALUES (:x, :y, :x)"
    assert client.insert(sql, rows) == 2
    assert client.rows(f"SELECT id, name, amount FROM {table} ORDER BY id") == [
        (1, None, Decimal("1.00")),
        (2, None, Decimal("2.00")),
    ]


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("INSERT INTO {table} (id) VALUES (?)", pa.table({"1": [1, 2**40]})),
        ("INSERT INTO {table} (id) VALUES (?)", pa.table({"1": [1.0, 1.5]})),
        ("INSERT INTO {table} (id, name) VALUES (?, ?)", pa.table({"1": [1, 2]})),
        ("INSERT INTO {table} (id) VALUES (10 / ?)", pa.table({"1": [1, 0]})),
        ("INSERT INTO {table} (day) VALUES (?)", pa.table({"1": [True, False]})),
        ("INSERT INTO {table} (missing) VALUES (?)", pa.table({"1": [1, 2]})),
        ("INSERT INTO nowhere VALUES (?)", pa.table({"1": [1, 2]})),
    ],
)
def test_one_bad_row_writes_nothing(client: Inserter, table: str, sql: str, rows: pa.Table) -> None:
    client.refusal(sql.format(table=table), rows)
    assert client.snapshots(table) == 0


FLOATS, INTEGERS, DECIMALS = pa.float64(), pa.int64(), pa.decimal128(20, 3)


@pytest.mark.parametrize(
    ("value", "column", "type", "values"),
    [
        ("? / 2", "double", FLOATS, [7.0, 9.0]),
        ("? + 1", "double", FLOATS, [2.5, 3.5]),
        ("?", "decimal(10, 2)", FLOATS, [1.555, 2.0]),
        ("?", "decimal(10, 2)", INTEGERS, [1, 2]),
        ("?", "decimal(18, 0)", INTEGERS, [1, None]),
        ("?", "decimal(2, 0)", INTEGERS, [1, 200]),
        ("?", "integer", INTEGERS, [1, 2]),
        ("?", "integer", INTEGERS, [1, 2**40]),
        ("?", "bigint", FLOATS, [1.0, 2.0]),
        ("?", "varchar", DECIMALS, [Decimal("1.5"), Decimal("2")]),
        ("?", "varchar", pa.string(), ["x" * 100_000, "y"]),
        ("?", "real", pa.float16(), [1.0, 2.5]),
        ("cast(? AS decimal(10, 2))", "decimal(10, 2)", FLOATS, [1.555, 2.0]),
        ("cast(? AS decimal(10, 2))", "decimal(10, 2)", DECIMALS, [Decimal("1.555"), Decimal("2")]),
        ("cast(? AS bigint)", "bigint", FLOATS, [2.5, 3.5]),
        ("greatest(?, 1)", "bigint", INTEGERS, [2**40, -3]),
        ("mod(?, 5)", "bigint", INTEGERS, [2**40, 3]),
        ("coalesce(?, 1.5)", "double", INTEGERS, [None, 2]),
        ("typeof(?)", "varchar", pa.int8(), [1, 2]),
        ("typeof(?)", "varchar", pa.uint8(), [1, 2]),
        ("typeof(?)", "varchar", pa.int16(), [1, 2]),
        ("contains(?, 1)", "boolean", pa.list_(pa.int64()), [[1], [2]]),
        ("element_at(?, 1)", "varchar", pa.list_(pa.string()), [["a"], ["b"]]),
        ("? * rand()", "double", FLOATS, [0.0, 0.0]),
        ("sum(?)", "double", FLOATS, [1.0, 2.0]),
        ("row_number() OVER (ORDER BY ?)", "integer", INTEGERS, [1, 2]),
    ],
)
def test_many_rows_are_what_each_is_alone(
    client: Inserter, value: str, column: str, type: pa.DataType, values: list[Any]
) -> None:
    name = "t_" + secrets.token_hex(4)
    for table in (name, f"{name}_alone"):
        client.run(f"CREATE TABLE {table} (a {column})")
    rows = pa.table({"1": pa.array(values, type)})
    taken = True
    for one in rows.column(0):
        sql = f"INSERT INTO {name}_alone (a) VALUES ({value})"
        try:
            client.service.execute(client.session, sql, parameters=[one]).close()
        except SqeError:
            taken = False
    if not taken:
        client.refusal(f"INSERT INTO {name} (a) VALUES ({value})", rows)
        return
    client.insert(f"INSERT INTO {name} (a) VALUES ({value})", rows)
    assert client.rows(f"SELECT a FROM {name} ORDER BY a") == client.rows(f"SELECT a FROM {name}_alone ORDER BY a")


@pytest.mark.parametrize("sent", [pa.array([1, 2], pa.uint64()), pa.array([Decimal(1), Decimal(2)], DECIMALS)])
def test_a_type_that_is_wider_than_all_values_does_no_harm(client: Inserter, sent: pa.Array) -> None:
    name = "t_" + secrets.token_hex(4)
    client.run(f"CREATE TABLE {name} (a {'bigint' if sent.type == pa.uint64() else 'decimal(5, 2)'})")
    client.insert(f"INSERT INTO {name} VALUES (?)", pa.table({"1": sent}))
    assert client.rows(f"SELECT a FROM {name} ORDER BY a") == [(1,), (2,)]
    if sent.type == DECIMALS:
        too_long = pa.table({"1": pa.array([Decimal(1), Decimal("1.555")], DECIMALS)})
        assert "cannot be stored as decimal128(5, 2)" in str(client.refusal(f"INSERT INTO {name} VALUES (?)", too_long))
        # Beside anything else its type counts.
        client.refusal(f"INSERT INTO {name} VALUES (? + 1)", pa.table({"1": sent}))


@pytest.mark.parametrize("sent", [pa.array([1, 2]), pa.array([Decimal(1), Decimal(2)], DECIMALS)])
def test_defaults_beside_parameters(client: Inserter, sent: pa.Array) -> None:
    name = "t_" + secrets.token_hex(4)
    client.run(f"CREATE TABLE {name} (a decimal(5, 2), b varchar DEFAULT 'x', c integer)")
    client.insert(f"INSERT INTO {name} (a, b) VALUES (?, default)", pa.table({"1": sent}))
    client.insert(f"INSERT INTO {name} VALUES (?, DEFAULT, 1)", pa.table({"1": sent}))
    assert sorted(client.rows(f"SELECT a, b FROM {name}")) == [(1, "x"), (1, "x"), (2, "x"), (2, "x")]
    client.refusal(f"INSERT INTO {name} (a, b) VALUES (?, upper(DEFAULT))", pa.table({"1": sent}))


def test_lists_of_no_lists(client: Inserter) -> None:
    """Inside of them offsets are missing, as Arrow allows: what reads them all the same ends the process."""
    client.run("CREATE OR REPLACE TABLE deep (x array(array(array(integer))))")
    inner = pa.array([], pa.int32())
    for _ in range(2):
        inner = pa.Array.from_buffers(pa.large_list(inner.type), 0, [None, None], children=[inner])
    lists = pa.Array.from_buffers(pa.list_(inner.type), 2, [None, pa.py_buffer(bytes(12))], children=[inner])
    assert client.insert("INSERT INTO deep VALUES (?)", pa.table({"1": lists})) == 2
    assert client.rows("SELECT x FROM deep") == [([],), ([],)]


def test_a_statement_that_was_cancelled_writes_nothing(client: Inserter, table: str) -> None:
    cancelled = RunningStatement(new_query_id())
    cancelled.cancel()
    with pytest.raises(QueryCancelledError):
        client.insert(f"INSERT INTO {table} (id) VALUES (?)", pa.table({"1": [1, 2]}), running=cancelled)
    assert client.snapshots(table) == 0


# Statements of one session at once


def test_a_long_insert_holds_up_no_other_statement_of_its_session(client: Inserter, table: str) -> None:
    long = (
        f"INSERT INTO {table} (id) SELECT CAST(a.id AS integer) FROM range(15000) AS a(id)"
        " CROSS JOIN range(10000) AS b(id) WHERE a.id + b.id = 1"
    )
    client.rows("SELECT 1 AS x")
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(client.run, long)
        deadline = time.monotonic() + 20
        while not client.sqe.progress() and time.monotonic() < deadline:
            time.sleep(0.01)
        answered = 0
        while not running.done():
            client.run("SET SESSION query_max_run_time = '5m'")
            assert client.rows("SELECT 40 + 2 AS x") == [(42,)]
            assert (table,) in client.rows("SHOW TABLES")
            answered += not running.done()
        running.result()
    client.run("RESET SESSION query_max_run_time")
    assert answered >= 1, "the INSERT was over before anything else was answered"
    assert client.rows(f"SELECT count(*) FROM {table}") == [(2,)]


def test_overwrites_at_once_keep_their_own_meaning(client: Inserter) -> None:
    """Whether OVERWRITE replaces a table or its partitions is an option of the statement, and no other's."""
    parted, plain = "p_" + secrets.token_hex(4), "q_" + secrets.token_hex(4)
    client.run(f"CREATE TABLE {parted} (part integer, n integer) PARTITIONED BY (part)")
    client.run(f"CREATE TABLE {plain} (part integer, n integer)")
    for name in (parted, plain):
        client.run(f"INSERT INTO {name} VALUES (1, 0), (2, 0)")
    with ThreadPoolExecutor(2) as pool:
        for turn in range(1, 4):
            writes = [
                pool.submit(client.run, f"INSERT OVERWRITE {name} VALUES (1, {turn})") for name in (parted, plain)
            ]
            for each in writes:
                each.result()
            assert client.rows(f"SELECT * FROM {parted} ORDER BY part") == [(1, turn), (2, 0)]
            assert client.rows(f"SELECT * FROM {plain}") == [(1, turn)]


@pytest.mark.rule("LIM-1")
def test_a_statement_of_another_form_is_left_alone_and_keeps_no_slot(sqe: EmbeddedSqe) -> None:
    service, batches = sqe.sqe.service, pa.table({"1": [1, 2]}).to_batches()
    running = service.running
    assert service.insert_rows(sqe.session, "SELECT ?", batches) is None
    with pytest.raises(SqeError, match="ends too early"):
        service.insert_rows(sqe.session, "INSERT INTO t VALUES (?", batches)
    assert service.running == running
