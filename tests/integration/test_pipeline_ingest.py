"""Record batches into tables through the whole pipeline: modes, types, concurrency, and clients that go away."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from datetime import time as clock
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from testbed.joined_engine import spooled

from sqe_core.bootstrap import EMBEDDED_CATALOG, OWNER, EmbeddedSqe, build
from sqe_core.engine.spark.engine import SparkEngine
from sqe_core.policy.builtin import AllowAllEnforcer
from sqe_core.query.run.admission import QueryLimits
from sqe_core.query.run.result import StatementResult
from sqe_core.session.session import Session
from sqe_core.spi.errors import ErrorCode, NotSupportedError, QueryCancelledError, SqeError, UserError
from sqe_core.spi.policy import Action, PolicyRequest, PolicyResponse
from sqe_core.spi.protocol import IngestMode, IngestRequest

Ingest = Callable[..., int | None]


class Client:
    """Sends rows in a session of its own."""

    def __init__(self, sqe: EmbeddedSqe) -> None:
        self.service = sqe.sqe.service
        self.session: Session = sqe.sqe.open_session(OWNER, catalog=EMBEDDED_CATALOG, protocol="test")

    def send(self, mode: IngestMode, name: str, table: pa.Table, **more: Any) -> StatementResult:
        request = IngestRequest(table=name, mode=mode, **more)
        return self.service.ingest(self.session, request, table.schema, iter(table.to_batches()))

    def stream(
        self, mode: IngestMode, name: str, schema: pa.Schema, batches: Iterator[pa.RecordBatch]
    ) -> StatementResult:
        return self.service.ingest(self.session, IngestRequest(table=name, mode=mode), schema, batches)

    def refusal(self, mode: IngestMode, name: str, table: pa.Table, **more: Any) -> SqeError:
        with pytest.raises(SqeError) as caught:
            self.send(mode, name, table, **more)
        assert caught.value.code is not ErrorCode.GENERIC_INTERNAL_ERROR
        return caught.value

    def rows(self, sql: str) -> list[dict[str, Any]]:
        return self.service.execute(self.session, sql).read_all().to_pylist()

    def value(self, sql: str) -> Any:
        (row,) = self.rows(sql)
        return next(iter(row.values()))

    def run(self, sql: str) -> None:
        self.service.execute(self.session, sql).close()


@pytest.fixture
def client(sqe: EmbeddedSqe, engine: SparkEngine) -> Iterator[Client]:
    sqe.execute("SELECT 1").close()
    opened = Client(sqe)
    yield opened
    opened.service.close_session(opened.session)
    assert spooled(engine) == []


def snapshots(client: Client, name: str) -> int:
    return int(client.value(f'SELECT count(*) FROM "{name}$snapshots"'))


PEOPLE = pa.table({"id": [1, 2, None], "name": ["ann", None, "cy"]})


# Modes


def test_create_then_exists(client: Client) -> None:
    result = client.send(IngestMode.CREATE, "made", PEOPLE)
    assert (result.affected_rows, result.schema, result.kind.value) == (3, None, "create_table_as")
    assert client.rows("SELECT * FROM made ORDER BY id") == PEOPLE.to_pylist()
    assert snapshots(client, "made") == 1
    error = client.refusal(IngestMode.CREATE, "made", PEOPLE)
    assert error.code is ErrorCode.DUPLICATE_TABLE
    assert client.value("SELECT count(*) FROM made") == 3


def test_append(client: Client) -> None:
    client.run("CREATE TABLE grown (id bigint, name varchar)")
    assert client.send(IngestMode.APPEND, "grown", PEOPLE).affected_rows == 3
    assert client.send(IngestMode.APPEND, "grown", PEOPLE.slice(0, 1)).affected_rows == 1
    assert client.value("SELECT count(*) FROM grown") == 4
    assert snapshots(client, "grown") == 2
    assert client.refusal(IngestMode.APPEND, "grownn", PEOPLE).code is ErrorCode.TABLE_NOT_FOUND


def test_replace_keeps_the_history(client: Client) -> None:
    assert client.send(IngestMode.REPLACE, "swapped", PEOPLE).affected_rows == 3
    other = pa.table({"when": [date(2024, 2, 29)]})
    assert client.send(IngestMode.REPLACE, "swapped", other).affected_rows == 1
    assert client.rows('SELECT * FROM "swapped"') == other.to_pylist()
    assert snapshots(client, "swapped") == 2


def test_create_append(client: Client) -> None:
    assert client.send(IngestMode.CREATE_APPEND, "either", PEOPLE).affected_rows == 3
    assert client.send(IngestMode.CREATE_APPEND, "either", PEOPLE).affected_rows == 3
    assert client.value("SELECT count(id) FROM either") == 4


def test_names_of_catalog_and_schema(client: Client) -> None:
    client.run("CREATE SCHEMA landing")
    client.send(IngestMode.CREATE, "Odd.Näme", PEOPLE, catalog=EMBEDDED_CATALOG, schema="landing")
    assert client.value('SELECT count(*) FROM landing."Odd.Näme"') == 3
    assert client.send(IngestMode.APPEND, "Odd.Näme", PEOPLE, schema="landing").affected_rows == 3
    assert client.refusal(IngestMode.CREATE, "t", PEOPLE, schema="nowhere").code is ErrorCode.SCHEMA_NOT_FOUND
    assert client.refusal(IngestMode.CREATE, "t", PEOPLE, catalog="nope").code is ErrorCode.TABLE_NOT_FOUND
    for name in ("made$files", "x.y/z", "_sqe_t", ""):
        assert isinstance(client.refusal(IngestMode.CREATE, name, PEOPLE), UserError)
    assert client.refusal(IngestMode.APPEND, "tables", PEOPLE, schema="information_schema").message


def test_no_rows(client: Client) -> None:
    empty = PEOPLE.slice(0, 0)
    assert client.stream(IngestMode.CREATE, "void", empty.schema, iter(())).affected_rows == 0
    assert client.rows("SELECT * FROM void") == []
    assert client.send(IngestMode.APPEND, "void", empty).affected_rows == 0
    assert [row["column_name"] for row in client.rows("DESCRIBE void")] == ["id", "name"]


def test_what_is_not_offered(client: Client) -> None:
    error = client.refusal(IngestMode.CREATE, "t1", PEOPLE, temporary=True)
    assert isinstance(error, NotSupportedError)
    assert error.hint
    assert isinstance(client.refusal(IngestMode.CREATE, "t1", PEOPLE, options={"x": "y"}), NotSupportedError)


def test_the_statement_is_in_the_history(client: Client, sqe: EmbeddedSqe) -> None:
    result = client.send(IngestMode.CREATE, "noted", PEOPLE)
    entry = next(entry for entry in sqe.sqe.history.entries() if entry.query_id == result.query_id)
    assert (entry.state, entry.kind, entry.rows) == ("FINISHED", "create_table_as", 3)
    assert entry.sql == "INGEST INTO noted"


# Columns


def test_columns_are_matched_by_name(client: Client) -> None:
    client.run(
        "CREATE TABLE matched "
        "(id bigint NOT NULL, name varchar, city varchar DEFAULT 'Utrecht', place row(x int, y int))"
    )
    place = pa.array([{"Y": 2, "X": 1}], pa.struct([("Y", pa.int64()), ("X", pa.int32())]))
    client.send(IngestMode.APPEND, "matched", pa.table({"PLACE": place, "Name": ["ann"], "ID": [7]}))
    assert client.rows("SELECT * FROM matched") == [
        {"id": 7, "name": "ann", "city": "Utrecht", "place": {"x": 1, "y": 2}}
    ]
    error = client.refusal(IngestMode.APPEND, "matched", pa.table({"id": [1], "nam": ["x"]}))
    assert (error.code, error.hint) == (ErrorCode.DUPLICATE_TABLE, 'did you mean "name"?')
    assert client.refusal(IngestMode.APPEND, "matched", pa.table({"name": ["x"]})).code is not None
    with pytest.raises(SqeError):
        client.send(IngestMode.APPEND, "matched", pa.table({"id": pa.array([1, None], pa.int64())}))
    duplicate = pa.table([[1], [2]], names=["id", "ID"])
    assert client.refusal(IngestMode.APPEND, "matched", duplicate).code is ErrorCode.INVALID_ARGUMENTS
    assert client.value("SELECT count(*) FROM matched") == 1


def test_what_is_never_null_is_not_null(client: Client) -> None:
    """Of what a query computes every column may be NULL, as ever."""
    nested = pa.list_(pa.field("element", pa.int64(), nullable=False))
    schema = pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            pa.field("at", pa.time32("s"), nullable=False),
            pa.field("name", pa.string()),
            pa.field("tags", nested, nullable=False),
        ]
    )
    rows = pa.Table.from_pylist([{"id": 1, "at": clock(1, 2, 3), "name": None, "tags": [7]}], schema)
    for mode, name in (
        (IngestMode.CREATE, "strict"),
        (IngestMode.CREATE_APPEND, "strict_too"),
        (IngestMode.REPLACE, "strict"),
    ):
        client.send(mode, name, rows)
        told = {
            row["column_name"]: row["is_nullable"]
            for row in client.rows(
                f"SELECT column_name, is_nullable FROM information_schema.columns WHERE table_name = '{name}'"
            )
        }
        assert told == {"id": "NO", "at": "NO", "name": "YES", "tags": "NO"}
    client.send(IngestMode.CREATE_APPEND, "strict_too", rows)
    client.send(IngestMode.APPEND, "strict_too", rows.cast(pa.schema([field.with_nullable(True) for field in schema])))
    assert client.value("SELECT count(*) FROM strict_too") == 3
    with pytest.raises(SqeError):
        client.run("INSERT INTO strict_too (name) VALUES ('x')")
    client.run("CREATE TABLE computed AS SELECT id FROM strict_too")
    client.run("INSERT INTO computed VALUES (NULL)")
    broken = pa.Table.from_batches([pa.record_batch([pa.array([None, 1])], pa.schema([schema.field("id")]))])
    refused = client.refusal(IngestMode.CREATE, "broken", broken)
    assert (str(refused), refused.code) == (
        "Column id is said to have no NULL, and has some",
        ErrorCode.INVALID_ARGUMENTS,
    )


def test_nulls_without_a_type_fit_every_column(client: Client) -> None:
    client.run("CREATE TABLE bare (id bigint, day date, tags array(varchar))")
    nothing = pa.table({"id": [1, 2], "day": pa.nulls(2), "tags": pa.nulls(2)})
    client.send(IngestMode.APPEND, "bare", nothing)
    assert client.rows("SELECT * FROM bare ORDER BY id") == nothing.to_pylist()
    only = pa.table({"day": pa.nulls(3)})
    assert client.send(IngestMode.CREATE_APPEND, "bare", only).affected_rows == 3
    assert isinstance(client.refusal(IngestMode.CREATE, "bare2", nothing), NotSupportedError)


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("int", pa.array([1, 3_000_000_000])),
        ("int", pa.array([1.0, 1.5])),
        ("double", pa.array([2**53 + 1])),
        ("decimal(4,1)", pa.array([Decimal("1.25")])),
        ("decimal(3,0)", pa.array([1, 1000])),
        ("date", pa.array([datetime(2020, 1, 1, 12)])),
        ("int", pa.array(["1"])),
        ("boolean", pa.array([1])),
        ("timestamp(6)", pa.array([1], pa.timestamp("ns"))),
        ("array(int)", pa.array([[1], [3_000_000_000]])),
        ("row(a int)", pa.array([{"a": 1, "b": 2}])),
        ("decimal(10,2)", pa.array([float("nan")])),
        ("decimal(10,2)", pa.array([1.5, 1.555])),
        ("real", pa.array([1e300])),
        ("array(int)", pa.array([[1.9], [2.0]])),
        ("row(d decimal(5,2))", pa.array([{"d": 1.555}])),
        ("row(r real)", pa.array([{"r": 1e300}])),
        ("map(varchar, int)", pa.array([[("a", 1.5)]], pa.map_(pa.string(), pa.float64()))),
        ("varchar", pa.array([b"a"])),
        ("date", pa.array([datetime(2020, 1, 1, tzinfo=UTC)])),
        ("real", pa.array([1e300, 0.1]).dictionary_encode()),
        ("decimal(5,1)", pa.array([1.55]).dictionary_encode()),
        ("date", pa.array([datetime(2020, 1, 1, 12)]).dictionary_encode()),
        ("double", pa.array([Decimal("0.12345678901234567890123")]).dictionary_encode()),
        ("array(double)", pa.array([[2**53 + 1]])),
        ("array(real)", pa.array([[16_777_217]], pa.list_(pa.int32()))),
        ("array(double)", pa.array([[Decimal("0.12345678901234567890123")]])),
        ("array(real)", pa.ListArray.from_arrays([0, 1], pa.array([0.1]).dictionary_encode())),
        ("array(date)", pa.array([[datetime(2020, 1, 1, 12)]])),
        ("array(timestamp(6))", pa.array([[1]], pa.list_(pa.timestamp("ns")))),
        ('row("A" double, b int)', pa.array([{"b": 1, "a": 2**53 + 1}])),
        ("map(varchar, double)", pa.array([[("a", 2**53 + 1)]], pa.map_(pa.string(), pa.int64()))),
        ("array(row(a array(double)))", pa.array([[{"a": [2**53 + 1]}]])),
    ],
    ids=lambda value: str(getattr(value, "type", value)),
)
def test_what_does_not_fit_is_an_error_and_writes_nothing(client: Client, column: str, values: pa.Array) -> None:
    client.run(f"CREATE OR REPLACE TABLE narrow (c {column})")
    error = client.refusal(IngestMode.APPEND, "narrow", pa.table({"c": values}))
    assert "Column c" in error.message or "narrow" in error.message or error.code is ErrorCode.INVALID_CAST
    assert client.value("SELECT count(*) FROM narrow") == 0
    assert snapshots(client, "narrow") == 0


def test_numbers_inside_of_values_fit_where_nothing_is_lost(client: Client) -> None:
    client.run(
        "CREATE TABLE roomy (l array(double), r array(real), d array(decimal(5,1)), i array(int), "
        'm map(varchar, double), s row(a double, "B,:" row(c real, d int)), w double, f array(real))'
    )
    rows = pa.table(
        {
            "l": pa.array([[2**53, None], None]),
            "r": pa.array([[0.5, float("inf")], []]),
            "d": pa.array([[1.5], [None]]),
            "i": pa.array([[Decimal("7.0")], None]),
            "m": pa.array([[("k", 3)], []], pa.map_(pa.string(), pa.int64())),
            "s": pa.array([{"b,:": {"d": 4.0, "C": 0.25}, "A": 5}, None]),
            "w": pa.array([Decimal("1.5"), None]).dictionary_encode(),
            "f": pa.ListArray.from_arrays([0, 1, 2], pa.array([0.5, 0.5]).dictionary_encode()),
        }
    )
    assert client.send(IngestMode.APPEND, "roomy", rows).affected_rows == 2
    first, second = client.rows("SELECT * FROM roomy ORDER BY w NULLS LAST")
    assert first == {
        "l": [2.0**53, None],
        "r": [0.5, float("inf")],
        "d": [Decimal("1.5")],
        "i": [7],
        "m": [("k", 3.0)],
        "s": {"a": 5.0, "B,:": {"c": 0.25, "d": 4}},
        "w": 1.5,
        "f": [0.5],
    }
    assert second == {"l": None, "r": [], "d": [None], "i": None, "m": [], "s": None, "w": None, "f": [0.5]}


# Types

_ID = uuid.UUID("12345678-1234-5678-9abc-123456789abc")
_AT = datetime(2024, 2, 29, 12, 30, 15, 123456)
_TYPES: dict[str, tuple[pa.Array, list[Any]]] = {
    "bool": (pa.array([True, False, None]), [True, False, None]),
    "i8": (pa.array([-128, 127, None], pa.int8()), [-128, 127, None]),
    "i16": (pa.array([-(2**15), 2**15 - 1, None], pa.int16()), [-(2**15), 2**15 - 1, None]),
    "i32": (pa.array([-(2**31), 2**31 - 1, None], pa.int32()), [-(2**31), 2**31 - 1, None]),
    "i64": (pa.array([-(2**63), 2**63 - 1, None], pa.int64()), [-(2**63), 2**63 - 1, None]),
    "u8": (pa.array([0, 255, None], pa.uint8()), [0, 255, None]),
    "u16": (pa.array([0, 2**16 - 1, None], pa.uint16()), [0, 2**16 - 1, None]),
    "u32": (pa.array([0, 2**32 - 1, None], pa.uint32()), [0, 2**32 - 1, None]),
    "u64": (pa.array([0, 2**64 - 1, None], pa.uint64()), [Decimal(0), Decimal(2**64 - 1), None]),
    "f16": (pa.array([1.5, -2.25, None], pa.float16()), [1.5, -2.25, None]),
    "f32": (pa.array([1.5, float("inf"), None], pa.float32()), [1.5, float("inf"), None]),
    "f64": (pa.array([0.1, -1e300, None]), [0.1, -1e300, None]),
    "d9": (
        pa.array([Decimal("1.25"), None, Decimal("-9.99")], pa.decimal32(5, 2)),
        [Decimal("1.25"), None, Decimal("-9.99")],
    ),
    "d38": (
        pa.array([Decimal("9" * 28 + "." + "9" * 10), None, Decimal(0)], pa.decimal128(38, 10)),
        [Decimal("9" * 28 + "." + "9" * 10), None, Decimal(0)],
    ),
    "d256": (pa.array([Decimal("1.5"), None, None], pa.decimal256(20, 1)), [Decimal("1.5"), None, None]),
    "text": (pa.array(["", "é\N{GRINNING FACE}\n", None]), ["", "é\N{GRINNING FACE}\n", None]),
    "large": (pa.array(["a", "b" * 100_000, None], pa.large_string()), ["a", "b" * 100_000, None]),
    "view": (pa.array(["a", "b" * 100, None]).cast(pa.string_view()), ["a", "b" * 100, None]),
    "words": (pa.array(["x", "y", None]).dictionary_encode(), ["x", "y", None]),
    "categories": (
        pa.array(["x", "y", None]).dictionary_encode().cast(pa.dictionary(pa.uint32(), pa.string_view())),
        ["x", "y", None],
    ),
    "bytes": (pa.array([b"", b"\x00\xff", None]), [b"", b"\x00\xff", None]),
    "fixed": (pa.array([b"abcd", b"\0\0\0\0", None], pa.binary(4)), [b"abcd", b"\0\0\0\0", None]),
    "uuid": (pa.array([_ID.bytes, None, _ID.bytes], pa.uuid()), [str(_ID), None, str(_ID)]),
    "day": (pa.array([date(2024, 2, 29), date(1, 1, 1), None]), [date(2024, 2, 29), date(1, 1, 1), None]),
    "day64": (pa.array([date(2024, 2, 29), None, None], pa.date64()), [date(2024, 2, 29), None, None]),
    "ts_s": (
        pa.array([_AT.replace(microsecond=0), None, None], pa.timestamp("s")),
        [_AT.replace(microsecond=0), None, None],
    ),
    "ts_us": (pa.array([_AT, datetime(1, 1, 1), None]), [_AT, datetime(1, 1, 1), None]),
    "ts_ns": (pa.array([_AT, None, None], pa.timestamp("ns")), [_AT, None, None]),
    "tz": (
        pa.array([_AT.replace(tzinfo=UTC), None, None], pa.timestamp("ms", "America/New_York"), safe=False),
        [_AT.replace(microsecond=123000, tzinfo=UTC), None, None],
    ),
    "clock": (pa.array([_AT.time(), clock.min, None], pa.time64("us")), [_AT.time(), clock.min, None]),
    "list": (pa.array([[1, None], [], None], pa.list_(pa.uint8())), [[1, None], [], None]),
    "large_list": (pa.array([["a"], [None], None], pa.large_list(pa.large_string())), [["a"], [None], None]),
    "pair": (pa.array([[1.5, 2.5], None, [0.0, 1.0]], pa.list_(pa.float64(), 2)), [[1.5, 2.5], None, [0.0, 1.0]]),
    "row": (
        pa.array(
            [{"a": 1, "b": ["x"]}, None, {"a": None, "b": None}],
            pa.struct([("a", pa.uint16()), ("b", pa.list_(pa.string()))]),
        ),
        [{"a": 1, "b": ["x"]}, None, {"a": None, "b": None}],
    ),
    "map": (
        pa.array([[("k", 1), ("l", None)], [], None], pa.map_(pa.string(), pa.int16())),
        [[("k", 1), ("l", None)], [], None],
    ),
    "deep": (
        pa.array(
            [[{"m": [(1, [True])]}], None, []], pa.list_(pa.struct([("m", pa.map_(pa.int8(), pa.list_(pa.bool_())))]))
        ),
        [[{"m": [(1, [True])]}], None, []],
    ),
}


@pytest.mark.parametrize("name", _TYPES)
def test_values_come_back(client: Client, name: str) -> None:
    sent, expected = _TYPES[name]
    table = pa.table({"n": [1, 2, 3], name: sent})
    client.send(IngestMode.REPLACE, "typed", table)
    client.send(IngestMode.APPEND, "typed", table)
    for row in range(3):
        found = client.rows(f'SELECT "{name}" AS v FROM typed WHERE n = {row + 1}')
        assert found == [{"v": expected[row]}] * 2


def test_all_types_at_once(client: Client) -> None:
    table = pa.table({name: sent for name, (sent, _) in _TYPES.items()})
    assert client.send(IngestMode.CREATE, "everything", table).affected_rows == 3
    found = client.rows("SELECT * FROM everything ORDER BY i32 DESC NULLS LAST")
    order = (1, 0, 2)
    assert found == [{name: expected[row] for name, (_, expected) in _TYPES.items()} for row in order]


@pytest.mark.parametrize(
    "sent", [pa.array([1], pa.duration("s")), pa.nulls(1, pa.month_day_nano_interval())], ids=["span", "months"]
)
def test_types_that_tables_do_not_store(client: Client, sent: pa.Array) -> None:
    error = client.refusal(IngestMode.CREATE, "refused", pa.table({"span": sent}))
    assert isinstance(error, NotSupportedError)
    assert "span" in error.message
    assert client.refusal(IngestMode.APPEND, "refused", PEOPLE).code is ErrorCode.TABLE_NOT_FOUND


@pytest.mark.parametrize("mode", IngestMode)
@pytest.mark.parametrize("name", ["kept$files", "kept$snapshots", "none$partitions", "KEPT$REFS"])
def test_a_metadata_table_is_no_target(client: Client, name: str, mode: IngestMode) -> None:
    client.run("CREATE OR REPLACE TABLE kept AS SELECT 1 AS id")
    assert "read-only" in client.refusal(mode, name, pa.table({"id": [9]})).message
    assert client.rows("SELECT * FROM kept") == [{"id": 1}]
    assert client.refusal(IngestMode.APPEND, "none", PEOPLE).code is ErrorCode.TABLE_NOT_FOUND


def test_a_view_is_no_target(client: Client) -> None:
    client.run("CREATE VIEW seen AS SELECT 1 AS id")
    assert "view" in client.refusal(IngestMode.APPEND, "seen", pa.table({"id": [1]})).message
    client.refusal(IngestMode.CREATE, "seen", pa.table({"id": [1]}))


def test_a_partitioned_table(client: Client) -> None:
    client.run("CREATE TABLE parted (id bigint, name varchar) PARTITIONED BY (name)")
    names = pa.table({"id": list(range(1000)), "name": [f"p{number % 4}" for number in range(1000)]})
    assert client.send(IngestMode.APPEND, "parted", names).affected_rows == 1000
    assert client.value("SELECT count(DISTINCT name) FROM parted") == 4


# Many, and many at once


def numbers(total: int, size: int, width: int = 0) -> Iterator[pa.RecordBatch]:
    for start in range(0, total, size):
        values = range(start, start + size)
        columns: dict[str, Any] = {"n": pa.array(values, pa.int64())}
        if width:
            columns["t"] = [f"{value:0{width}d}" for value in values]
        yield pa.RecordBatch.from_pydict(columns)


def test_two_clients_lose_and_double_nothing(sqe: EmbeddedSqe, engine: SparkEngine) -> None:
    clients = [Client(sqe), Client(sqe)]
    rounds = 4

    def send(place: int) -> int:
        written = 0
        for turn in range(rounds):
            batch = pa.table({"who": [place] * 100, "n": list(range(turn * 100, turn * 100 + 100))})
            written += clients[place].send(IngestMode.CREATE_APPEND, "shared", batch).affected_rows or 0
        return written

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(send, range(2))) == [rounds * 100] * 2
    assert clients[0].rows(
        "SELECT who, count(*) AS c, count(DISTINCT n) AS d FROM shared GROUP BY who ORDER BY who"
    ) == [{"who": place, "c": rounds * 100, "d": rounds * 100} for place in range(2)]
    assert snapshots(clients[0], "shared") == 2 * rounds
    assert spooled(engine) == []


def test_two_clients_make_the_same_table(sqe: EmbeddedSqe, engine: SparkEngine) -> None:
    clients = [Client(sqe), Client(sqe)]
    for turn in range(4):
        name, start = f"raced{turn}", threading.Barrier(2)

        def send(client: Client, name: str = name, start: threading.Barrier = start) -> int | None:
            def batches() -> Iterator[pa.RecordBatch]:
                yield from numbers(1000, 500)
                start.wait(30)

            schema = pa.schema([("n", pa.int64())])
            return client.stream(IngestMode.CREATE_APPEND, name, schema, batches()).affected_rows

        with ThreadPoolExecutor(2) as pool:
            assert list(pool.map(send, clients)) == [1000, 1000]
        assert clients[0].rows(f"SELECT count(*) AS c, sum(n) AS s FROM {name}") == [{"c": 2000, "s": 999_000}]


class Meddler(AllowAllEnforcer):
    """Allows everything, and does something between the last look at a table and the statement that makes it."""

    def __init__(self) -> None:
        self.on_create: Callable[[], None] = lambda: None

    def decide(self, request: PolicyRequest) -> PolicyResponse:
        if any(access.action is Action.CREATE for access in request.accesses):
            self.on_create()
        return super().decide(request)


@pytest.mark.parametrize(
    ("mode", "columns", "outcome"),
    [
        (IngestMode.CREATE_APPEND, "n bigint", 3),
        (IngestMode.CREATE_APPEND, "n integer", ErrorCode.COMMIT_CONFLICT),
        (IngestMode.CREATE_APPEND, "m bigint", ErrorCode.DUPLICATE_TABLE),
        (IngestMode.CREATE, "n bigint", ErrorCode.DUPLICATE_TABLE),
        (IngestMode.REPLACE, "n bigint", 3),
    ],
)
@pytest.mark.parametrize("when", ["while rows come", "at the last moment"])
def test_somebody_else_makes_the_table(
    sqe: EmbeddedSqe, engine: SparkEngine, mode: IngestMode, columns: str, outcome: object, when: str
) -> None:
    mount = sqe.session.catalogs.find(EMBEDDED_CATALOG)
    assert mount is not None
    meddler = Meddler()
    meddled = build(engine=engine, mounts=[mount], enforcers=[meddler], limits=QueryLimits())
    session = meddled.open_session(OWNER, catalog=EMBEDDED_CATALOG, protocol="test")
    sqe.execute("DROP TABLE IF EXISTS contested").close()

    def make() -> None:
        meddler.on_create = lambda: None
        sqe.execute(f"CREATE TABLE contested ({columns})").close()

    def batches() -> Iterator[pa.RecordBatch]:
        yield from numbers(3, 3)
        if when == "while rows come":
            make()
        else:
            meddler.on_create = make

    request = IngestRequest(table="contested", mode=mode)
    schema = pa.schema([("n", pa.int64())])
    if isinstance(outcome, ErrorCode):
        with pytest.raises(SqeError) as caught:
            meddled.service.ingest(session, request, schema, batches())
        assert caught.value.code is outcome
        outcome = 0
    else:
        assert meddled.service.ingest(session, request, schema, batches()).affected_rows == outcome
    assert sqe.execute("SELECT count(*) AS c FROM contested").read_all().to_pylist() == [{"c": outcome}]
    assert spooled(engine) == []
    meddled.service.close_session(session)


def test_one_session_ingests_while_it_receives(client: Client) -> None:
    """A slow sender does not hold the session: other statements of it run in between."""
    client.run("CREATE TABLE slow (n bigint)")

    def batches() -> Iterator[pa.RecordBatch]:
        yield from numbers(10, 10)
        assert client.value("SELECT count(*) FROM slow") == 0
        yield from numbers(10, 10)

    assert client.stream(IngestMode.APPEND, "slow", pa.schema([("n", pa.int64())]), batches()).affected_rows == 20


@pytest.mark.alone  # what all streams hold
@pytest.mark.rule("LIM-8")
def test_a_million_rows_in_bounded_memory(client: Client, engine: SparkEngine) -> None:
    schema = pa.schema([("n", pa.int64()), ("t", pa.string())])
    allocator = engine.context._jvm.org.apache.spark.sql.util.ArrowUtils.rootAllocator()
    before, peak, most_files = allocator.getPeakMemoryAllocation(), 0, 0
    idle = pa.total_allocated_bytes()

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal peak, most_files
        for batch in numbers(1_000_000, 20_000, width=200):
            yield batch
            peak = max(peak, pa.total_allocated_bytes() - idle)
            (folder,) = spooled(engine)
            most_files = max(most_files, len(list(folder.iterdir())))

    assert client.stream(IngestMode.CREATE, "million", schema, batches()).affected_rows == 1_000_000
    assert client.rows(
        "SELECT count(*) AS c, count(DISTINCT n) AS d, sum(n) AS s, max(length(t)) AS l FROM million"
    ) == [{"c": 1_000_000, "d": 1_000_000, "s": 499_999_500_000, "l": 200}]
    assert most_files >= 3  # more than one task reads them
    assert peak < 64 << 20  # while 216 MB went through
    # 4 MB for each of the tasks that run at once, and what one batch needs while it is read.
    assert allocator.getPeakMemoryAllocation() <= max(before, 64 << 20)
    assert allocator.getAllocatedMemory() == 0


# Ends before the end


def broken(error: BaseException) -> Iterator[pa.RecordBatch]:
    yield from numbers(100_000, 10_000)
    raise error


@pytest.mark.parametrize("mode", IngestMode)
@pytest.mark.parametrize(
    "error",
    [RuntimeError("cable"), OSError("reset"), pa.ArrowInvalid("bad"), UserError("mine"), GeneratorExit()],
    ids=repr,
)
def test_a_stream_that_breaks_writes_nothing(
    client: Client, engine: SparkEngine, mode: IngestMode, error: BaseException
) -> None:
    client.run("CREATE TABLE IF NOT EXISTS torn (n bigint)")
    name = "torn" if mode is not IngestMode.CREATE else "torn_new"
    with pytest.raises((SqeError, GeneratorExit)) as caught:
        client.stream(mode, name, pa.schema([("n", pa.int64())]), broken(error))
    if isinstance(caught.value, SqeError):
        assert caught.value.message in (
            "mine",
            "The stream of record batches ended before it was complete; nothing was written",
        )
    assert spooled(engine) == []
    assert snapshots(client, "torn") == 0
    assert client.value("SELECT count(*) FROM information_schema.tables WHERE table_name LIKE 'torn%'") == 1


def test_a_bad_batch_after_good_ones_writes_nothing(client: Client, engine: SparkEngine) -> None:
    client.run("CREATE TABLE half (n int)")

    def batches() -> Iterator[pa.RecordBatch]:
        yield from numbers(100_000, 10_000)
        yield pa.RecordBatch.from_pydict({"n": pa.array([2**40])})

    with pytest.raises(UserError, match="Column n has a value"):
        client.stream(IngestMode.APPEND, "half", pa.schema([("n", pa.int64())]), batches())
    assert client.value("SELECT count(*) FROM half") == 0
    assert spooled(engine) == []


def test_cancel_while_rows_come(client: Client, engine: SparkEngine) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(numbers(10_000_000, 1000)):
            if number == 5:
                assert client.service.cancel(client.session) == 1
            assert number < 8, "the statement goes on"
            yield batch

    with pytest.raises(QueryCancelledError):
        client.stream(IngestMode.CREATE, "stopped", pa.schema([("n", pa.int64())]), batches())
    assert client.rows("SHOW TABLES LIKE 'stopped'") == []
    assert spooled(engine) == []


def test_cancel_while_the_rows_are_written(client: Client, engine: SparkEngine) -> None:
    client.run("CREATE TABLE wide (n bigint, t varchar)")
    sent = threading.Event()

    def batches() -> Iterator[pa.RecordBatch]:
        yield from numbers(1_000_000, 50_000, width=300)
        sent.set()

    def cancel() -> None:
        assert sent.wait(60)
        time.sleep(0.4)
        client.service.cancel(client.session)

    canceller = threading.Thread(target=cancel)
    canceller.start()
    with pytest.raises(QueryCancelledError):
        client.stream(IngestMode.APPEND, "wide", pa.schema([("n", pa.int64()), ("t", pa.string())]), batches())
    canceller.join()
    assert client.value("SELECT count(*) FROM wide") == 0
    assert snapshots(client, "wide") == 0
    deadline = time.monotonic() + 10
    while spooled(engine) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert spooled(engine) == []
    assert client.send(IngestMode.APPEND, "wide", pa.table({"n": [1]})).affected_rows == 1


def test_the_session_ends_while_rows_come(sqe: EmbeddedSqe, engine: SparkEngine) -> None:
    client = Client(sqe)

    def batches() -> Iterator[pa.RecordBatch]:
        yield from numbers(1000, 1000)
        client.service.close_session(client.session)
        yield from numbers(1000, 1000)

    with pytest.raises(QueryCancelledError):
        client.stream(IngestMode.CREATE, "orphan", pa.schema([("n", pa.int64())]), batches())
    assert spooled(engine) == []
    assert sqe.execute("SHOW TABLES LIKE 'orphan'").read_all().num_rows == 0
