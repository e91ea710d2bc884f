"""Garbage, half messages, bombs and fuzz: the right status, our code, and a server that does not mind."""

from __future__ import annotations

import os
import random
import socket
import struct
import time
from collections.abc import Callable
from typing import Any

import grpc
import pyarrow as pa
import pytest
from raw_flight import (
    Core,
    RawClient,
    Refused,
    basic,
    descriptor,
    flight_data,
    ipc_messages,
    packed,
    put_messages,
    refusal,
)

from sqe_core.protocols.flight.message_bounds import MessageBounds
from sqe_core.protocols.flight.wire import flight_pb2 as flight
from sqe_core.protocols.flight.wire import flight_sql_pb2 as sql
from sqe_core.spi.errors import ResourcesError, UserError
from sqe_core.spi.protocol import Endpoint

INVALID = (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_ARGUMENTS")
INGEST = sql.CommandStatementIngest(table="t")
ROWS = pa.table({"n": [1, 2, 3], "text": ["a", "b", None]})


def refused(client: RawClient, name: str, *requests: Any) -> tuple[Any, Any]:
    with pytest.raises(Refused) as caught:
        client.call(name, *requests)
    assert "Traceback" not in caught.value.text
    assert "Exception" not in caught.value.text
    return caught.value.status, caught.value.code


@pytest.fixture(autouse=True)
def lives(request: pytest.FixtureRequest) -> Any:
    """Whatever a test does, the server answers afterwards."""
    alice = request.getfixturevalue("alice")
    yield
    assert alice.query("SELECT 1 AS one").to_pydict() == {"one": [1]}


# Messages

NO_PROTOBUF = b"\xff\xff\xff\xff\x0f"


@pytest.mark.parametrize("name", ["ListFlights", "GetFlightInfo", "PollFlightInfo", "GetSchema", "DoGet", "DoPut"])
def test_bytes_that_are_no_message(alice: RawClient, name: str) -> None:
    assert refused(alice, name, NO_PROTOBUF) == INVALID


@pytest.mark.parametrize("name", ["GetFlightInfo", "PollFlightInfo", "GetSchema", "DoGet", "DoPut", "DoAction"])
def test_no_message_at_all(alice: RawClient, name: str) -> None:
    status, code = refused(alice, name)
    assert (status, code) == INVALID


COMMANDS = [
    b"",
    NO_PROTOBUF,
    b"SELECT 1",
    packed(flight.Empty()),
    packed(sql.ActionClosePreparedStatementRequest()),
    packed(sql.CommandStatementQuery(query="x"))[:-3],
    packed(sql.CommandStatementQuery(query="x")).replace(b"type.googleapis.com", b"type.evil.com"),
    b"\n\x10type.google.com/",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_that_are_none(core: Core, alice: RawClient, command: bytes) -> None:
    for name in ("GetFlightInfo", "PollFlightInfo", "GetSchema"):
        status, code = refused(alice, name, descriptor(command))
        assert (status, code) in (INVALID, (grpc.StatusCode.INTERNAL, "GENERIC_INTERNAL_ERROR")), command
    assert refused(alice, "DoGet", flight.Ticket(ticket=command))[0] is grpc.StatusCode.INVALID_ARGUMENT
    assert refused(alice, "DoPut", flight.FlightData(flight_descriptor=descriptor(command))) == INVALID
    assert not core.statements


@pytest.mark.parametrize(
    "wrong",
    [
        flight.FlightDescriptor(),
        flight.FlightDescriptor(type=flight.FlightDescriptor.PATH, path=["a", "b"]),
        flight.FlightDescriptor(type=flight.FlightDescriptor.CMD),
        flight.FlightDescriptor(type=99, cmd=packed(sql.CommandGetCatalogs())),
    ],
)
def test_descriptors_that_are_no_command(alice: RawClient, wrong: flight.FlightDescriptor) -> None:
    for name in ("GetFlightInfo", "PollFlightInfo", "GetSchema"):
        assert refused(alice, name, wrong) == INVALID
    assert refused(alice, "DoPut", flight.FlightData(flight_descriptor=wrong)) == INVALID


def test_a_put_of_nothing_says_what_to_do(alice: RawClient) -> None:
    """What ADBC's driver sends for a reader without any batch."""
    with pytest.raises(Refused, match="No rows were sent, and no columns: nothing was done") as caught:
        alice.call("DoPut")
    assert (caught.value.status, caught.value.code) == INVALID
    assert "send at least one batch, which may have no rows" in caught.value.text


@pytest.mark.parametrize("action", ["CreatePreparedStatement", "ClosePreparedStatement", "CancelQuery"])
@pytest.mark.parametrize("body", [b"", NO_PROTOBUF, packed(sql.CommandGetCatalogs()), b"SELECT 1"])
def test_bodies_of_actions_of_flight_sql(alice: RawClient, action: str, body: bytes) -> None:
    assert refused(alice, "DoAction", flight.Action(type=action, body=body)) == INVALID


@pytest.mark.parametrize("action", ["CancelFlightInfo", "RenewFlightEndpoint", "SetSessionOptions"])
def test_bodies_of_actions_of_flight(alice: RawClient, action: str) -> None:
    assert refused(alice, "DoAction", flight.Action(type=action, body=NO_PROTOBUF)) == INVALID


@pytest.mark.parametrize("name", ["", "nonsense", "createpreparedstatement", "x" * 100_000, "heartbeat"])
def test_actions_that_there_are_not(alice: RawClient, name: str) -> None:
    expected = (grpc.StatusCode.UNIMPLEMENTED, "NOT_SUPPORTED")
    assert refused(alice, "DoAction", flight.Action(type=name)) == expected


def test_cancelling_with_metadata_that_is_no_query_id(alice: RawClient) -> None:
    for told in (b"\xff", b"{", b"[1]", b"[" * 50_000, b'{"query_id": {}}', b'{"query_id": 1}', b"null"):
        request = flight.CancelFlightInfoRequest(info=flight.FlightInfo(app_metadata=told))
        (body,) = alice.action("CancelFlightInfo", request.SerializeToString())
        assert flight.CancelFlightInfoResult.FromString(body).status == flight.CANCEL_STATUS_NOT_CANCELLABLE


# Schemas that Arrow reads and Python does not


def schema_with(type: pa.DataType, name: str = "n", *, instead: tuple[bytes, bytes] = (b"", b"")) -> flight.FlightData:
    (message,) = ipc_messages(pa.schema({name: type}).empty_table())[:1]
    data = flight_data(message)
    old, new = instead
    assert not old or data.data_header.count(old) == 1
    data.data_header = data.data_header.replace(old, new) if old else data.data_header
    return data


def of_interval(unit: int) -> flight.FlightData:
    """A column of another unit of intervals; pyarrow cannot make one."""
    data = schema_with(pa.month_day_nano_interval())
    assert data.data_header[-2:] == b"\x02\x00"
    data.data_header = data.data_header[:-2] + bytes([unit, 0])
    return data


ZONE = (b"Zone", b"\xff\xfe\xff\xfe")
UNREADABLE = {
    "name": schema_with(pa.int64(), "Zone", instead=ZONE),
    "name of a field": schema_with(pa.list_(pa.struct({"Zone": pa.int8()})), instead=ZONE),
    "zone": schema_with(pa.timestamp("us", "Zone"), instead=ZONE),
    "zone in a dictionary": schema_with(pa.dictionary(pa.int8(), pa.timestamp("us", "Zone")), instead=ZONE),
    "months": of_interval(0),
    "days": of_interval(1),
    "scale": schema_with(pa.decimal128(5, -77)),
    "scale in a map": schema_with(pa.map_(pa.string(), pa.decimal256(50, -(1 << 31)))),
}


@pytest.mark.rule("FLT-7")
@pytest.mark.parametrize("which", UNREADABLE)
@pytest.mark.parametrize("bound", [False, True])
def test_columns_that_cannot_be_read(
    core: Core, alice: RawClient, caplog: pytest.LogCaptureFixture, which: str, bound: bool
) -> None:
    core.parameters["update ?"] = pa.schema({"1": pa.int64()})
    command: Any = INGEST
    if bound:
        handle = alice.prepare("update ?").prepared_statement_handle
        command = sql.CommandPreparedStatementUpdate(prepared_statement_handle=handle)
    schema = flight.FlightData()
    schema.CopyFrom(UNREADABLE[which])
    schema.flight_descriptor.CopyFrom(descriptor(command))
    assert refused(alice, "DoPut", schema) == INVALID
    assert not core.ingested
    assert not core.statements
    assert not caplog.records, "nothing is wrong with the server"


# Sizes


@pytest.mark.rule("LIM-2")
def test_a_request_that_is_too_long(alice: RawClient) -> None:
    status, code = refused(alice, "GetFlightInfo", descriptor(sql.CommandStatementQuery(query="x" * (5 << 20))))
    assert (status, code) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "RESOURCE_EXHAUSTED")


@pytest.mark.rule("LIM-2")
def test_headers_that_are_too_long(core: Core, alice: RawClient) -> None:
    client = RawClient(alice.channel, (*alice.metadata, ("x-padding", "x" * 40_000)))
    with pytest.raises(Refused) as caught:
        client.plan("SELECT 1 AS one")
    assert caught.value.status is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert not core.plans


@pytest.mark.rule("LIM-2")
def test_a_client_that_sends_nothing_is_ended(core: Core, nobody: RawClient) -> None:
    """The login timeout of the test's server is two seconds."""
    began = time.monotonic()
    with pytest.raises(grpc.RpcError) as caught:
        list(nobody.begin("Handshake", iter(lambda: time.sleep(8) or b"", b""), timeout=15))
    assert caught.value.code() is grpc.StatusCode.CANCELLED
    assert 1.5 < time.monotonic() - began < 5


# Streams of rows


def test_a_stream_without_a_descriptor(alice: RawClient) -> None:
    for data in (flight.FlightData(), flight_data(ipc_messages(ROWS)[0]), b""):
        assert refused(alice, "DoPut", data) == INVALID


def test_rows_without_a_schema(core: Core, alice: RawClient) -> None:
    _, batch = ipc_messages(ROWS)
    assert refused(alice, "DoPut", flight_data(batch, descriptor(INGEST))) == INVALID
    assert refused(alice, "DoPut", flight.FlightData(flight_descriptor=descriptor(INGEST))) == INVALID
    assert not core.ingested


@pytest.mark.rule("FLT-7")
@pytest.mark.parametrize("what", ["header", "body", "both", "empty header", "schema again", "other body"])
def test_a_damaged_stream(core: Core, alice: RawClient, what: str) -> None:
    first, batch = put_messages(INGEST, ROWS)
    if what in ("header", "both"):
        batch.data_header = batch.data_header[:20]
    if what in ("body", "both"):
        batch.data_body = batch.data_body[: len(batch.data_body) // 2]
    if what == "empty header":
        batch.data_header = b"\0" * 16
    if what == "schema again":
        batch.data_header = first.data_header
    if what == "other body":
        batch.data_body = batch.data_body * 2
    status, code = refused(alice, "DoPut", first, batch)
    assert (status, code) == INVALID
    assert not core.ingested


def test_a_body_needs_no_padding(core: Core, alice: RawClient) -> None:
    first, batch = put_messages(INGEST, pa.table({"n": pa.array([1, 2, 3], pa.int8())}))
    batch.data_body = batch.data_body[:3]
    alice.call("DoPut", first, batch)
    assert core.ingested[-1][1].to_pydict() == {"n": [1, 2, 3]}


def compressed(rows: pa.Table) -> list[flight.FlightData]:
    return put_messages(INGEST, rows, pa.ipc.IpcWriteOptions(compression="zstd"))


@pytest.mark.rule("FLT-7")
def test_a_decompression_bomb(core: Core, alice: RawClient) -> None:
    first, batch = compressed(pa.table({"n": [bytes(300 << 20)]}))
    assert len(batch.data_body) < 1 << 20
    assert refused(alice, "DoPut", first, batch) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "RESOURCE_EXHAUSTED")
    assert not core.ingested


@pytest.mark.rule("FLT-7")
@pytest.mark.parametrize("declared", [1 << 40, 2**63 - 1, -2, 5])
def test_a_buffer_that_lies_about_its_size(core: Core, alice: RawClient, declared: int) -> None:
    first, batch = compressed(pa.table({"n": range(10_000)}))
    size = struct.unpack_from("<q", batch.data_body)[0]
    assert size == 80_000
    batch.data_body = struct.pack("<q", declared) + batch.data_body[8:]
    status, code = refused(alice, "DoPut", first, batch)
    assert status in (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.INVALID_ARGUMENT)
    assert code in ("RESOURCE_EXHAUSTED", "INVALID_ARGUMENTS")
    assert not core.ingested


def dictionary_stream(batches: int) -> list[Any]:
    """Messages of a stream whose dictionary is added to by each batch."""
    words = [f"word {number}" for number in range(100 * batches)]
    schema = pa.schema({"w": pa.dictionary(pa.int32(), pa.string())})
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
    with pa.ipc.new_stream(sink, schema, options=options) as writer:
        for number in range(1, batches + 1):
            indices = pa.array(range(100 * (number - 1), 100 * number), pa.int32())
            column = pa.DictionaryArray.from_arrays(indices, pa.array(words[: 100 * number]))
            writer.write_batch(pa.record_batch([column], schema=schema))
    return list(pa.ipc.MessageReader.open_stream(sink.getvalue()))


@pytest.mark.rule("FLT-7")
def test_dictionaries_are_bounded_in_all() -> None:
    messages = dictionary_stream(20)
    assert sum(message.type == "dictionary" for message in messages) == 20
    sizes = [message.body.size for message in messages if message.type == "dictionary"]

    def feed(bounds: MessageBounds) -> None:
        for message in messages:
            body = b"" if message.body is None else message.body.to_pybytes()
            bounds.check(message.metadata.to_pybytes(), body)

    feed(MessageBounds(dictionary_bytes=sum(sizes)))
    with pytest.raises(ResourcesError, match="dictionaries"):
        feed(MessageBounds(dictionary_bytes=sum(sizes) - 1))


def test_dictionaries_that_replace_each_other_count_once(core: Core, alice: RawClient) -> None:
    one = pa.array(["a" * 1000, "b" * 1000]).dictionary_encode()
    messages = ipc_messages(pa.table({"w": pa.chunked_array([one, pa.array(["c" * 1000]).dictionary_encode()])}))
    bounds = MessageBounds(dictionary_bytes=2500)
    for message in messages:
        bounds.check(message.metadata.to_pybytes(), b"" if message.body is None else message.body.to_pybytes())
    rows = pa.table({"w": pa.chunked_array([one, pa.array(["c" * 1000]).dictionary_encode()])})
    alice.put(INGEST, rows)
    assert core.ingested[-1][1]["w"].to_pylist() == rows["w"].to_pylist()


@pytest.mark.rule("FLT-7")
def test_headers_of_messages_are_read_with_care() -> None:
    """Every single byte of a header changed, and every length cut: an answer or our error."""
    for message in ipc_messages(ROWS, pa.ipc.IpcWriteOptions(compression="lz4")):
        header = message.metadata.to_pybytes()
        body = b"" if message.body is None else message.body.to_pybytes()
        tries = [header[:length] for length in range(len(header))]
        tries += [
            header[:place] + bytes([value]) + header[place + 1 :]
            for place in range(len(header))
            for value in (0, 1, 0x7F, 0x80, 0xFF)
        ]
        for each in tries:
            try:
                MessageBounds().check(each, body)
            except (UserError, ResourcesError):
                pass


@pytest.mark.rule("FLT-7")
def test_parameters_are_bounded(core: Core, alice: RawClient) -> None:
    core.parameters["update ?"] = pa.schema({"1": pa.string()})
    handle = alice.prepare("update ?").prepared_statement_handle
    command = sql.CommandPreparedStatementUpdate(prepared_statement_handle=handle)
    many = pa.table({"p": pa.nulls(100_001, pa.string())})
    big = pa.concat_tables([pa.table({"p": ["x" * (8 << 20)]})] * 9)
    for rows in (many, big):
        assert refusal(lambda rows=rows: alice.put(command, rows), match="bulk ingest") == INVALID
    assert not core.statements


@pytest.mark.rule("FLT-7")
def test_parameters_are_validated(core: Core, alice: RawClient) -> None:
    core.parameters["update ?"] = pa.schema({"1": pa.string()})
    handle = alice.prepare("update ?").prepared_statement_handle
    command = sql.CommandPreparedStatementUpdate(prepared_statement_handle=handle)
    messages = put_messages(command, pa.table({"p": ["valid text"]}))
    messages[1].data_body = messages[1].data_body.replace(b"valid", b"\xff\xfe\xfd\xfc\xfb")
    assert refused(alice, "DoPut", *messages) == INVALID
    assert not core.statements


# The port


@pytest.mark.rule("LIM-2")
@pytest.mark.parametrize(
    "garbage",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /v1/statement HTTP/1.1\r\nHost: x\r\nContent-Length: 8\r\n\r\nSELECT 1",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(600),
        bytes(4096),
        os.urandom(65536),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff\xff\xff\x00\x00\x00\x00\x00\x01" + os.urandom(2000),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\x00\x00\x00\x04\x00\x00\x00\x00\x00" * 2000,
    ],
)
def test_garbage_on_the_port(endpoint: Endpoint, garbage: bytes) -> None:
    with socket.create_connection(("127.0.0.1", endpoint.port), timeout=5) as connection:
        try:
            connection.sendall(garbage)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65536):
                pass
        except OSError:
            pass


# Fuzz

_FUZZ_SECS = float(os.environ.get("SQE_FUZZ_SECS", "2.5"))
_SEED = int(os.environ.get("SQE_FUZZ_SEED", "0"))


def valid_calls(alice: RawClient) -> list[tuple[str, list[bytes]]]:
    prepared = alice.prepare("update t").prepared_statement_handle
    update = sql.CommandPreparedStatementUpdate(prepared_statement_handle=prepared)
    bodies: list[tuple[str, Any]] = [
        ("CreatePreparedStatement", sql.ActionCreatePreparedStatementRequest(query="SELECT 1 AS one")),
        ("ClosePreparedStatement", sql.ActionClosePreparedStatementRequest(prepared_statement_handle=b"x")),
        ("CancelQuery", sql.ActionCancelQueryRequest(info=alice.plan("SELECT 1 AS one").SerializeToString())),
        ("CancelFlightInfo", flight.CancelFlightInfoRequest(info=alice.plan("SELECT 1 AS one"))),
        (
            "SetSessionOptions",
            flight.SetSessionOptionsRequest(session_options={"dialect": flight.SessionOptionValue()}),
        ),
    ]
    calls: list[tuple[str, list[Any]]] = [
        ("GetFlightInfo", [descriptor(sql.CommandStatementQuery(query="SELECT 1 AS one"))]),
        ("GetFlightInfo", [descriptor(sql.CommandGetTables(catalog="a", table_types=["TABLE"], include_schema=True))]),
        ("GetSchema", [descriptor(sql.CommandGetXdbcTypeInfo(data_type=4))]),
        ("PollFlightInfo", [descriptor(sql.CommandStatementQuery(query="SELECT 1 AS one"))]),
        ("DoGet", [flight.Ticket(ticket=packed(sql.CommandGetSqlInfo(info=[1, 2, 500])))]),
        ("DoGet", [alice.plan("SELECT 1 AS one").endpoint[0].ticket]),
        ("DoPut", put_messages(INGEST, ROWS)),
        ("DoPut", put_messages(INGEST, ROWS, pa.ipc.IpcWriteOptions(compression="lz4"))),
        ("DoPut", put_messages(INGEST, pa.table({"d": pa.array(["a", "b"]).dictionary_encode(), "l": [[1], [2, 3]]}))),
        ("DoPut", put_messages(update, ROWS)),
        ("Handshake", [flight.HandshakeRequest(payload=flight.BasicAuth(username="a").SerializeToString())]),
        *(("DoAction", [flight.Action(type=name, body=packed(body))]) for name, body in bodies),
    ]
    return [(name, [each.SerializeToString() for each in requests]) for name, requests in calls]


def mutated(chance: random.Random, requests: list[bytes]) -> list[bytes]:
    changed = [bytearray(each) for each in requests]
    for _ in range(chance.choice((1, 1, 2, 5, 30))):
        each = chance.choice(changed)
        place = chance.randrange(len(each)) if each else 0
        match chance.randrange(6):
            case 0 if each:
                each[place] = chance.randrange(256)
            case 1 if each:
                each[place] ^= 1 << chance.randrange(8)
            case 2:
                del each[place : place + chance.randrange(1, 20)]
            case 3:
                each[place:place] = chance.randbytes(chance.randrange(1, 20))
            case 4:
                each[place : place + 8] = struct.pack("<q", chance.choice((-1, 0, 1 << 31, 1 << 62, 7)))
            case 5:
                changed.insert(chance.randrange(len(changed) + 1), bytearray(chance.choice(changed)))
    return [bytes(each) for each in changed]


@pytest.mark.rule("FLT-7")
@pytest.mark.parametrize("seed", range(_SEED, _SEED + 3))
def test_mutated_messages(core: Core, alice: RawClient, seed: int) -> None:
    """Only statuses that a client can act on come back, each of our errors with its code, and none is ours to fix."""
    chance = random.Random(seed)
    calls = valid_calls(alice)
    fine = {
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.NOT_FOUND,
        grpc.StatusCode.UNIMPLEMENTED,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.UNAUTHENTICATED,
        grpc.StatusCode.CANCELLED,
    }
    outcomes: dict[Any, int] = {}
    deadline = time.monotonic() + _FUZZ_SECS
    while time.monotonic() < deadline:
        name, requests = chance.choice(calls)
        sent = mutated(chance, requests)
        error = outcome(lambda: alice.call(name, *sent, timeout=10))  # noqa: B023 - called at once
        outcomes[error and error.status] = outcomes.get(error and error.status, 0) + 1
        if error is not None and not (error.code == "GENERIC_INTERNAL_ERROR" and core_is_at_fault(sent)):
            assert error.status in fine, (name, error, sent)
            assert error.code or error.status is grpc.StatusCode.CANCELLED, (name, error, sent)
            assert "Traceback" not in error.text
    assert sum(outcomes.values()) > 100
    assert outcomes[None] > 10
    assert outcomes[grpc.StatusCode.INVALID_ARGUMENT] > 10


def outcome(attempt: Callable[[], object]) -> Refused | None:
    try:
        attempt()
    except Refused as error:
        return error
    return None


def core_is_at_fault(sent: list[bytes]) -> bool:
    """The fake core knows its statements by heart; another text is a KeyError of its own."""
    return any(b"Query" in each or b"PreparedStatement" in each or b"query" in each for each in sent)


def test_fuzz_of_logins(core: Core, nobody: RawClient) -> None:
    chance = random.Random(4)
    header = basic("alice")
    for _ in range(300):
        letters = list(header)
        for _ in range(chance.randrange(1, 4)):
            letters[chance.randrange(len(letters))] = chr(chance.randrange(0x20, 0x7F))
        changed = "".join(letters).strip()
        if not changed:
            continue
        error = outcome(lambda: nobody.signed_in(changed).call("ListActions", b""))  # noqa: B023 - called at once
        if error is not None:
            assert (error.status, error.code) == (grpc.StatusCode.UNAUTHENTICATED, "AUTHENTICATION_FAILED"), changed
