"""Statements, prepared statements, updates and ingest over Flight SQL, message by message."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import grpc
import pyarrow as pa
import pytest
from raw_flight import Core, RawClient, Refused, basic, descriptor, packed, read_stream, refusal

from sqe_core.protocols.flight.wire import flight_pb2 as flight
from sqe_core.protocols.flight.wire import flight_sql_pb2 as sql
from sqe_core.spi.errors import ErrorCode, UserError
from sqe_core.spi.protocol import IngestMode
from sqe_core.testing.fakes import FakeAnswer

INVALID, MISSING = grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND
EVERYTHING = pa.table(
    {
        "bool": pa.array([True, None]),
        "i8": pa.array([1, None], pa.int8()),
        "i64": pa.array([-(2**63), None], pa.int64()),
        "f32": pa.array([1.5, None], pa.float32()),
        "dec": pa.array([Decimal("9" * 36 + ".99"), None], pa.decimal128(38, 2)),
        "text": pa.array(["ü\x00€😀", None]),
        "bytes": pa.array([b"\x00\xff", None]),
        "fixed": pa.array([b"abcd", None], pa.binary(4)),
        "day": pa.array([date(1, 1, 1), None]),
        "time": pa.array([time(23, 59, 59, 999999), None], pa.time64("us")),
        "ts": pa.array([datetime(2026, 1, 1, 1, 2, 3, 4), None], pa.timestamp("us")),
        "tsz": pa.array([datetime(2026, 1, 1, tzinfo=UTC), None], pa.timestamp("us", "UTC")),
        "months": pa.array([None, None], pa.month_day_nano_interval()),
        "list": pa.array([[1, None], None], pa.list_(pa.int32())),
        "map": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int32())),
        "struct": pa.array([{"a": 1, "b": [{"c": None}]}, None]),
        "words": pa.array(["x", None]).dictionary_encode(),
    },
)


def prepared(client: RawClient, text: str) -> sql.CommandPreparedStatementUpdate:
    return sql.CommandPreparedStatementUpdate(prepared_statement_handle=client.prepare(text).prepared_statement_handle)


def field(name: str, type: pa.DataType, **metadata: str) -> pa.Field:
    return pa.field(name, type, metadata=metadata or None)


# Queries


def test_the_announced_schema_is_the_streams_bit_for_bit(core: Core, alice: RawClient) -> None:
    fields = [each.with_metadata({"comment": f"of {each.name}"}) for each in EVERYTHING.schema]
    fields[1] = fields[1].with_nullable(True)
    core.answers["everything"] = EVERYTHING.cast(pa.schema(fields))
    info = alice.plan("everything")
    messages = alice.call("DoGet", info.endpoint[0].ticket)
    first = flight.FlightData.FromString(messages[0])
    assert info.schema[8:].rstrip(b"\0") == first.data_header.rstrip(b"\0")
    rows, _ = read_stream(messages)
    assert [each.metadata[b"comment"] for each in rows.schema] == [
        f"of {each.name}".encode() for each in EVERYTHING.schema
    ]
    assert rows.equals(core.answers["everything"])
    schema = alice.one("GetSchema", descriptor(sql.CommandStatementQuery(query="everything")), flight.SchemaResult)
    assert schema.schema == info.schema


def test_what_flight_info_says(core: Core, alice: RawClient) -> None:
    command = descriptor(sql.CommandStatementQuery(query="SELECT 1 AS one"))
    info = alice.one("GetFlightInfo", command, flight.FlightInfo)
    assert info.flight_descriptor == command
    assert (info.total_records, info.total_bytes) == (-1, -1)
    assert info.app_metadata.decode() == core.plans[-1].query_id
    (endpoint,) = info.endpoint
    assert not endpoint.location
    # It would promise that the ticket may be used more than once.
    assert not endpoint.HasField("expiration_time")


def test_batches_say_which_statement_they_are_of(core: Core, alice: RawClient) -> None:
    core.answers["many"] = pa.table({"n": range(2500)})
    _, told = read_stream(alice.call("DoGet", alice.plan("many").endpoint[0].ticket))
    counts = [json.loads(each) for each in told]
    assert [each["rows"] for each in counts] == [0, 1000, 2000, 2500]
    assert [each.get("done", False) for each in counts] == [False, False, False, True]
    assert counts[-1]["bytes"] >= 2500 * 8
    assert counts[-1]["elapsed_ms"] >= 0
    assert {each["query_id"] for each in counts} == {core.plans[-1].query_id}


def test_who_does_not_know_that_a_batch_is_the_last_one_says_so_after_it(core: Core, alice: RawClient) -> None:
    core.answers["lazy"] = FakeAnswer(
        table=pa.table({"n": [1]}), batches=lambda: iter([pa.record_batch({"n": [1]}), pa.record_batch({"n": [2]})])
    )
    rows, told = read_stream(alice.call("DoGet", alice.plan("lazy").endpoint[0].ticket))
    counts = [json.loads(each) for each in told]
    assert [each["rows"] for each in counts] == [0, 1, 2, 2]
    assert [each.get("done", False) for each in counts] == [False, False, False, True]
    assert rows.num_rows == 2


def test_of_a_last_batch_in_pieces_the_last_one_says_so(core: Core, alice: RawClient) -> None:
    core.answers["big"] = pa.table({"bytes": [bytes(4 << 20)] * 5})
    rows, told = read_stream(alice.call("DoGet", alice.plan("big").endpoint[0].ticket))
    counts = [json.loads(each) for each in told]
    assert [each["rows"] for each in counts] == sorted({each["rows"] for each in counts}), "each has rows of its own"
    assert [each.get("done", False) for each in counts] == [False] * (len(counts) - 1) + [True]
    assert len(counts) > 3
    assert counts[-1]["rows"] == rows.num_rows == 5


def test_a_result_without_rows_has_its_schema(core: Core, alice: RawClient) -> None:
    core.answers["none"] = EVERYTHING.slice(0, 0)
    assert alice.query("none").equals(EVERYTHING.slice(0, 0))


def test_no_message_is_bigger_than_clients_take(core: Core, alice: RawClient) -> None:
    rows = pa.table({"n": range(900), "bytes": [bytes([number % 256]) * 40_000 for number in range(900)]})
    core.answers["big"] = rows
    messages = alice.call("DoGet", alice.plan("big").endpoint[0].ticket)
    assert max(map(len, messages)) < 9 << 20
    assert read_stream(messages)[0].equals(rows)


def test_nothing_runs_before_it_is_fetched(core: Core, alice: RawClient) -> None:
    info = alice.plan("SELECT 1 AS one")
    assert not core.statements
    assert alice.fetch(info).to_pydict() == {"one": [1]}
    assert len(core.statements) == 1
    assert core.results[-1].closed


def test_a_statement_without_rows_runs_when_it_is_planned(core: Core, alice: RawClient) -> None:
    core.affected = 7
    info = alice.plan("update t")
    assert [each.sql for each in core.statements] == ["update t"]
    assert info.total_records == 7
    assert alice.fetch(info).num_columns == 0
    assert len(core.statements) == 1, "it ran once"


def test_the_trace_of_the_client_goes_on(core: Core, alice: RawClient) -> None:
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    alice.metadata += (("traceparent", trace),)
    alice.query("SELECT 1 AS one")
    assert core.statements[-1].trace_parent == trace


def test_an_error_while_rows_come_ends_the_stream_with_it(core: Core, alice: RawClient) -> None:
    core.answers["bad"] = UserError("Division by zero", code=ErrorCode.DIVISION_BY_ZERO, hint="use NULLIF")
    with pytest.raises(Refused) as caught:
        alice.plan("bad")
    assert (caught.value.status, caught.value.code) == (INVALID, "DIVISION_BY_ZERO")
    assert caught.value.text == "Division by zero (use NULLIF)"


# Prepared statements


def test_prepare_bind_run_close(core: Core, alice: RawClient) -> None:
    core.answers["SELECT ?"] = pa.table({"x": [1]})
    core.parameters["SELECT ?"] = pa.schema({"1": pa.int64()})
    made = alice.prepare("SELECT ?")
    assert pa.ipc.read_schema(pa.py_buffer(made.dataset_schema)) == pa.schema({"x": pa.int64()})
    assert pa.ipc.read_schema(pa.py_buffer(made.parameter_schema)) == pa.schema({"1": pa.int64()})
    handle = made.prepared_statement_handle
    command = sql.CommandPreparedStatementQuery(prepared_statement_handle=handle)
    (told,) = alice.put(command, pa.table({"whatever": [41]}))
    assert sql.DoPutPreparedStatementResult.FromString(told).prepared_statement_handle == handle
    assert alice.fetch(alice.info(command)).to_pydict() == {"x": [1]}
    assert [each.as_py() for each in core.statements[-1].parameters] == [41]
    # Bound values stay for the next run, until others are bound.
    alice.fetch(alice.info(command))
    assert [each.as_py() for each in core.statements[-1].parameters] == [41]
    assert (
        alice.action(
            "ClosePreparedStatement", sql.ActionClosePreparedStatementRequest(prepared_statement_handle=handle)
        )
        == []
    )
    assert refusal(lambda: alice.info(command)) == (MISSING, "INVALID_ARGUMENTS")


def test_a_statement_without_rows_and_parameters_says_so(alice: RawClient) -> None:
    made = alice.prepare("update t")
    assert (made.dataset_schema, made.parameter_schema) == (b"", b"")


@pytest.mark.parametrize("name", EVERYTHING.schema.names)
def test_parameters_of_every_type_arrive_as_they_are(core: Core, alice: RawClient, name: str) -> None:
    column = EVERYTHING.column(name).combine_chunks()
    core.parameters["update ?"] = pa.schema({"1": column.type})
    command = prepared(alice, "update ?")
    assert alice.update(command, pa.table({"p": column})) == 2
    given = [each.parameters[0] for each in core.statements]
    assert [each.as_py() for each in given] == column.to_pylist()
    assert {each.type for each in given} == {column.type}


def test_a_uuid_is_a_parameter(core: Core, alice: RawClient) -> None:
    value = UUID(int=7)
    core.parameters["update ?"] = pa.schema({"1": pa.uuid()})
    handle = alice.prepare("update ?").prepared_statement_handle
    rows = pa.table({"p": pa.array([value.bytes], pa.uuid())})
    assert alice.update(sql.CommandPreparedStatementUpdate(prepared_statement_handle=handle), rows) == 1
    assert core.statements[-1].parameters[0].as_py() == value


def test_java_is_asked_for_milliseconds(core: Core, connect: Callable[..., RawClient]) -> None:
    """Its JDBC driver writes them into whatever unit the parameter has, and only NULL where the type is unknown."""
    core.parameters["update ?"] = pa.schema(
        {
            "1": pa.timestamp("us"),
            "2": pa.timestamp("us", "UTC"),
            "3": pa.time64("us"),
            "4": pa.date32(),
            "5": pa.null(),
        }
    )
    asked = []
    for agent in ("grpc-java-netty/1.65.0", "grpc-go/1.70.0"):
        client = connect(basic("alice"), agent=agent)
        made = client.prepare("update ?")
        asked.append(pa.ipc.read_schema(pa.py_buffer(made.parameter_schema)).types)
    assert asked == [
        [pa.timestamp("ms"), pa.timestamp("ms", "UTC"), pa.time32("ms"), pa.date32(), pa.string()],
        [pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.time64("us"), pa.date32(), pa.null()],
    ]


def test_a_query_whose_columns_only_values_tell(core: Core, connect: Callable[..., RawClient]) -> None:
    """Java's driver takes what has no columns for an update, and would send it as one."""
    core.parameters["open ?"] = pa.schema({"1": pa.null()})
    client = connect(basic("alice"), agent="grpc-go/1.70.0")
    made = client.prepare("open ?")
    assert made.dataset_schema == b""
    assert pa.ipc.read_schema(pa.py_buffer(made.parameter_schema)).types == [pa.null()]
    for asked in (
        sql.CommandStatementQuery(query="open ?"),
        sql.CommandPreparedStatementQuery(prepared_statement_handle=made.prepared_statement_handle),
    ):
        with pytest.raises(Refused, match="depend on the values") as caught:
            client.one("GetSchema", descriptor(asked), flight.SchemaResult)
        assert caught.value.code == "TYPE_MISMATCH"
    with pytest.raises(Refused, match="depend on the values"):
        connect(basic("alice"), agent="grpc-java-netty/1.65.0").prepare("open ?")


def test_several_rows_change_several_times(core: Core, alice: RawClient) -> None:
    core.parameters["update ? ?"] = pa.schema({"1": pa.int64(), "2": pa.string()})
    core.affected = 2
    command = prepared(alice, "update ? ?")
    rows = pa.concat_tables([pa.table({"a": [1, 2], "b": ["x", "y"]}), pa.table({"a": [3], "b": ["z"]})])
    assert alice.update(command, rows) == 6
    assert [[each.as_py() for each in one.parameters] for one in core.statements] == [[1, "x"], [2, "y"], [3, "z"]]


def test_rows_for_one_row_of_values_go_together(core: Core, alice: RawClient) -> None:
    text = "update with VALUES (?, ?)"
    core.parameters[text] = pa.schema({"1": pa.int64(), "2": pa.string()})
    command = prepared(alice, text)
    rows = pa.concat_tables([pa.table({"a": [1, 2], "b": ["x", "y"]}), pa.table({"a": [3], "b": ["z"]})])
    assert alice.update(command, rows) == 3
    ((request, written),) = core.inserted
    assert (request.sql, written.to_pydict()) == (text, {"0": [1, 2, 3], "1": ["x", "y", "z"]})
    assert not core.statements
    alice.update(command, rows.slice(0, 1))
    assert len(core.inserted) == len(core.statements) == 1, "one row is an ordinary statement"


def test_no_row_changes_nothing(core: Core, alice: RawClient) -> None:
    core.parameters["update ?"] = pa.schema({"1": pa.int64()})
    command = prepared(alice, "update ?")
    assert alice.update(command, pa.table({"a": pa.array([], pa.int64())})) == 0
    assert not core.statements


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_rows_without_columns_run_a_statement_without_parameters_once(core: Core, alice: RawClient, rows: int) -> None:
    """JDBC sends an empty batch with each update; without this, CREATE TABLE did nothing and said so to nobody."""
    command = prepared(alice, "update t")
    batch = pa.record_batch([pa.nulls(rows)], names=["n"]).select([])
    assert alice.update(command, pa.Table.from_batches([batch])) == 1
    assert [each.parameters for each in core.statements] == [()]


def test_what_counts_no_rows_has_changed_none(core: Core, alice: RawClient) -> None:
    """-1 would be "unknown": Arrow's JDBC driver takes it for a query and runs it a second time."""
    core.affected = None
    assert alice.update(sql.CommandStatementUpdate(query="update t")) == 0
    handle = alice.prepare("update t").prepared_statement_handle
    assert alice.update(sql.CommandPreparedStatementUpdate(prepared_statement_handle=handle)) == 0


@pytest.mark.parametrize(
    ("text", "columns", "bound"),
    [
        ("update :a :b", {"b": "x", "a": 1}, {"a": 1, "b": "x"}),
        ("update :x :id", {"ID": 7, "X": 100}, {"id": 7, "x": 100}),
        ("update :x :id", {"X": 7, "Id": 100}, {"id": 100, "x": 7}),
        ("update :x :id", {"1": 7, "2": 100}, {"x": 7, "id": 100}),
        ("update :x :id", {"a": 7, "b": 100}, {"x": 7, "id": 100}),
        ("update :x :X", {"X": 7, "x": 100}, {"x": 100, "X": 7}),
    ],
)
def test_parameters_go_by_name_in_any_case_or_not_at_all(
    core: Core, alice: RawClient, text: str, columns: dict[str, Any], bound: dict[str, Any]
) -> None:
    kinds = {"b": pa.string()} if text == "update :a :b" else {}
    core.parameters[text] = pa.schema({name: kinds.get(name, pa.int64()) for name in re.findall(r":(\w+)", text)})
    alice.update(prepared(alice, text), pa.table({name: [value] for name, value in columns.items()}))
    assert {name: each.as_py() for name, each in core.statements[-1].parameters.items()} == bound


def test_columns_of_one_name_go_by_their_place(core: Core, alice: RawClient) -> None:
    core.parameters["update :x :id"] = pa.schema({"x": pa.int64(), "id": pa.int64()})
    alice.update(prepared(alice, "update :x :id"), pa.Table.from_arrays([pa.array([7]), pa.array([100])], ["a", "a"]))
    assert {name: each.as_py() for name, each in core.statements[-1].parameters.items()} == {"x": 7, "id": 100}


@pytest.mark.parametrize("columns", [1, 3])
def test_too_few_and_too_many_parameters(core: Core, alice: RawClient, columns: int) -> None:
    core.parameters["update ? ?"] = pa.schema({"1": pa.int64(), "2": pa.int64()})
    command = prepared(alice, "update ? ?")
    rows = pa.table({str(number): [1] for number in range(columns)})
    with pytest.raises(Refused, match=f"2 parameters, {columns} given") as caught:
        alice.put(command, rows)
    assert (caught.value.status, caught.value.code) == (INVALID, "INVALID_ARGUMENTS")
    assert not core.statements


def test_a_query_runs_for_each_row_of_its_parameters(core: Core, alice: RawClient) -> None:
    core.answers["SELECT ?"] = pa.table({"x": [1]})
    core.parameters["SELECT ?"] = pa.schema({"1": pa.int64()})
    handle = alice.prepare("SELECT ?").prepared_statement_handle
    command = sql.CommandPreparedStatementQuery(prepared_statement_handle=handle)
    alice.put(command, pa.table({"a": [1, 2]}))
    assert alice.fetch(alice.info(command)).to_pydict() == {"x": [1, 1]}
    assert [[value.as_py() for value in each.parameters] for each in core.statements] == [[1], [2]]


def test_the_schema_of_a_prepared_statement_needs_no_parameters(core: Core, alice: RawClient) -> None:
    core.answers["SELECT ?"] = pa.table({"x": [1]})
    core.parameters["SELECT ?"] = pa.schema({"1": pa.int64()})
    handle = alice.prepare("SELECT ?").prepared_statement_handle
    command = sql.CommandPreparedStatementQuery(prepared_statement_handle=handle)
    schema = alice.one("GetSchema", descriptor(command), flight.SchemaResult).schema
    assert pa.ipc.read_schema(pa.py_buffer(schema)) == pa.schema({"x": pa.int64()})


# Updates


def test_update_and_its_count(core: Core, alice: RawClient) -> None:
    core.affected = 5
    assert alice.update(sql.CommandStatementUpdate(query="update t")) == 5


def test_a_query_is_no_update(core: Core, alice: RawClient) -> None:
    with pytest.raises(Refused, match="returns rows") as caught:
        alice.put(sql.CommandStatementUpdate(query="SELECT 1 AS one"))
    assert caught.value.code == "INVALID_ARGUMENTS"
    assert not core.statements
    assert core.plans[-1].closed


# Ingest

_OPTIONS = sql.CommandStatementIngest.TableDefinitionOptions
_CREATE, _MUST_EXIST = _OPTIONS.TABLE_NOT_EXIST_OPTION_CREATE, _OPTIONS.TABLE_NOT_EXIST_OPTION_FAIL
_FAIL, _APPEND = _OPTIONS.TABLE_EXISTS_OPTION_FAIL, _OPTIONS.TABLE_EXISTS_OPTION_APPEND
_REPLACE = _OPTIONS.TABLE_EXISTS_OPTION_REPLACE


@pytest.mark.parametrize(
    ("missing", "exists", "mode"),
    [
        (0, 0, IngestMode.APPEND),
        (_MUST_EXIST, _APPEND, IngestMode.APPEND),
        (_CREATE, _FAIL, IngestMode.CREATE),
        (_CREATE, _APPEND, IngestMode.CREATE_APPEND),
        (_CREATE, _REPLACE, IngestMode.REPLACE),
    ],
)
def test_ingest_modes(core: Core, alice: RawClient, missing: int, exists: int, mode: IngestMode) -> None:
    command = sql.CommandStatementIngest(
        table="t",
        catalog="iceberg",
        schema="a.b",
        table_definition_options=_OPTIONS(if_not_exist=missing, if_exists=exists),
    )
    assert alice.update(command, EVERYTHING) == 2
    request, rows = core.ingested[-1]
    assert (request.mode, request.table, request.schema, request.catalog) == (mode, "t", "a.b", "iceberg")
    assert rows.equals(EVERYTHING)


@pytest.mark.parametrize(
    ("missing", "exists", "code"),
    [(_MUST_EXIST, _FAIL, "INVALID_ARGUMENTS"), (_MUST_EXIST, _REPLACE, "NOT_SUPPORTED")],
)
def test_ingest_modes_that_do_not_exist(core: Core, alice: RawClient, missing: int, exists: int, code: str) -> None:
    options = _OPTIONS(if_not_exist=missing, if_exists=exists)
    with pytest.raises(Refused) as caught:
        alice.put(sql.CommandStatementIngest(table="t", table_definition_options=options), EVERYTHING)
    assert caught.value.code == code
    assert not core.ingested


def test_ingest_passes_on_what_the_core_refuses(core: Core, alice: RawClient) -> None:
    alice.put(sql.CommandStatementIngest(table="t", temporary=True, options={"a": "b"}), EVERYTHING)
    request, _ = core.ingested[-1]
    assert request.temporary
    assert request.options == {"a": "b"}
    assert request.catalog is None
    assert request.schema is None


@pytest.mark.parametrize("codec", ["lz4", "zstd", None])
def test_ingest_of_compressed_rows(core: Core, alice: RawClient, codec: str | None) -> None:
    rows = pa.table({"n": range(100_000), "text": ["x" * 10] * 100_000})
    options = pa.ipc.IpcWriteOptions(compression=codec)
    (told,) = alice.put(sql.CommandStatementIngest(table="t"), rows, options=options)
    assert sql.DoPutUpdateResult.FromString(told).record_count == 100_000
    assert core.ingested[-1][1].equals(rows)


# What is refused


@pytest.mark.parametrize("name", ["BeginTransaction", "EndTransaction", "BeginSavepoint", "EndSavepoint"])
def test_transactions_are_refused(alice: RawClient, name: str) -> None:
    with pytest.raises(Refused, match="Transactions are not supported") as caught:
        alice.action(name)
    assert (caught.value.status, caught.value.code) == (grpc.StatusCode.UNIMPLEMENTED, "NOT_SUPPORTED")


@pytest.mark.parametrize(
    "command",
    [
        sql.CommandStatementQuery(query="SELECT 1 AS one", transaction_id=b"t"),
        sql.CommandStatementSubstraitPlan(plan=sql.SubstraitPlan(plan=b"x", version="1")),
    ],
)
@pytest.mark.parametrize("call", ["GetFlightInfo", "GetSchema", "PollFlightInfo"])
def test_what_is_not_offered_is_unimplemented(core: Core, alice: RawClient, command: object, call: str) -> None:
    assert refusal(lambda: alice.call(call, descriptor(command))) == (grpc.StatusCode.UNIMPLEMENTED, "NOT_SUPPORTED")
    assert not core.plans


@pytest.mark.parametrize(
    "command",
    [
        sql.CommandStatementUpdate(query="update t", transaction_id=b"t"),
        sql.CommandStatementIngest(table="t", transaction_id=b"t"),
    ],
)
def test_puts_in_a_transaction_are_refused(core: Core, alice: RawClient, command: object) -> None:
    with pytest.raises(Refused) as caught:
        alice.put(command, EVERYTHING)
    assert caught.value.code == "NOT_SUPPORTED"
    assert not core.statements
    assert not core.ingested


def test_preparing_in_a_transaction_and_substrait_is_refused(alice: RawClient) -> None:
    request = sql.ActionCreatePreparedStatementRequest(query="SELECT 1 AS one", transaction_id=b"t")
    plan = sql.ActionCreatePreparedSubstraitPlanRequest()
    for name, message in (("CreatePreparedStatement", request), ("CreatePreparedSubstraitPlan", plan)):
        with pytest.raises(Refused) as caught:
            alice.action(name, message)
        assert caught.value.code == "NOT_SUPPORTED"


def test_exchange_is_refused(alice: RawClient) -> None:
    data = flight.FlightData(flight_descriptor=descriptor(sql.CommandStatementQuery(query="SELECT 1 AS one")))
    assert refusal(lambda: alice.call("DoExchange", data)) == (grpc.StatusCode.UNIMPLEMENTED, "NOT_SUPPORTED")


@pytest.mark.parametrize(
    "put",
    [sql.CommandStatementQuery(query="SELECT 1 AS one"), sql.CommandGetCatalogs()],
)
def test_commands_that_cannot_be_put(alice: RawClient, put: object) -> None:
    assert refusal(lambda: alice.put(put), match="cannot be put") == (INVALID, "INVALID_ARGUMENTS")


def test_commands_that_return_no_rows(alice: RawClient) -> None:
    for command in (
        sql.CommandStatementUpdate(query="update t"),
        sql.CommandStatementIngest(table="t"),
        sql.CommandPreparedStatementUpdate(prepared_statement_handle=b"x"),
        sql.TicketStatementQuery(statement_handle=b"x"),
    ):
        with pytest.raises(Refused, match="returns no rows") as caught:
            alice.info(command)
        assert caught.value.code == "INVALID_ARGUMENTS"


def test_a_statement_is_no_ticket(core: Core, alice: RawClient) -> None:
    ticket = flight.Ticket(ticket=packed(sql.CommandStatementQuery(query="SELECT 1 AS one")))
    with pytest.raises(Refused, match="no ticket of this server") as caught:
        alice.call("DoGet", ticket)
    assert caught.value.code == "INVALID_ARGUMENTS"
    assert not core.statements


def test_there_are_no_flights_to_list(alice: RawClient) -> None:
    assert alice.call("ListFlights", flight.Criteria(expression=b"anything")) == []


def test_sessions_of_a_user_are_apart(connect: Callable[..., RawClient], core: Core) -> None:
    one, two = connect(basic("alice")), connect(basic("alice"))
    one.metadata += (("x-session-id", "one"),)
    two.metadata += (("x-session-id", "two"),)
    handle = one.prepare("SELECT 1 AS one").prepared_statement_handle
    command = sql.CommandPreparedStatementQuery(prepared_statement_handle=handle)
    assert one.fetch(one.info(command)).num_rows == 1
    with pytest.raises(Refused) as caught:
        two.info(command)
    assert caught.value.status is MISSING
