"""Small messages that would become big ones are refused before Arrow, or anybody, makes them big (FLT-7, LIM-2)."""

from __future__ import annotations

import contextlib
import gc
import queue
import struct
import weakref
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import grpc
import pyarrow as pa
import pytest
from arrow_headers import batch_header, schema_header
from raw_flight import Core, RawClient, Refused, descriptor, flight_data, ipc_messages, put_messages
from testbed.clocks import wait_for

from sqe_core.protocols.flight import rpcs
from sqe_core.protocols.flight.header_bounds import HeaderLimits
from sqe_core.protocols.flight.incoming import PutStream
from sqe_core.protocols.flight.incoming_bytes import ByteBudget
from sqe_core.protocols.flight.message_bounds import MessageBounds
from sqe_core.protocols.flight.statements import MOST_PARAMETER_BYTES, Prepared
from sqe_core.protocols.flight.wire import flight_pb2 as flight
from sqe_core.protocols.flight.wire import flight_sql_pb2 as sql
from sqe_core.spi.errors import ResourcesError, UserError
from sqe_core.spi.protocol import StatementDescription

INGEST = sql.CommandStatementIngest(table="t")
SMALL = HeaderLimits(header_bytes=20_000, fields=10, depth=4, pairs=20, text_bytes=1_000)
USER = ("test", "alice")
TEXT = pa.string()


def put(*parts: tuple[bytes, bytes], **options: Any) -> PutStream:
    messages = [flight.FlightData(data_header=header, data_body=body) for header, body in parts]
    messages[0].flight_descriptor.CopyFrom(descriptor(INGEST))
    return PutStream(iter([message.SerializeToString() for message in messages]), **options)


# Headers


def test_what_is_crafted_here_can_be_read() -> None:
    """Else the refusals below would prove nothing."""
    assert put((schema_header(columns=3), b"")).schema.names == ["a", "a", "a"]
    nested = put((schema_header(nested=3, twice=True), b"")).schema
    assert str(nested.field(0).type).count("int32") == 8
    told = put((schema_header(metadata=2, field_metadata=1, message_metadata=3, text=b"v"), b"")).schema
    assert told.metadata == {b"k": b"v"}
    assert told.field(0).metadata == {b"k": b"v"}
    assert str(put((schema_header(zone=b"Asia/Tokyo"), b"")).schema.field(0).type) == "timestamp[s, tz=Asia/Tokyo]"
    rows = (batch_header(rows=2, body_bytes=8), struct.pack("<ii", 7, 8))
    assert [batch.to_pydict() for batch in put((schema_header(), b""), rows)] == [{"a": [7, 8]}]


@pytest.mark.rule("FLT-7")
@pytest.mark.parametrize(
    ("bomb", "excess"),
    [
        (schema_header(columns=11), "10 fields"),
        (schema_header(nested=3, twice=True), "10 fields"),
        (schema_header(union_numbers=40), "10 fields"),
        (schema_header(nested=4), "4 levels"),
        (schema_header(metadata=21), "20 entries"),
        (schema_header(field_metadata=21), "20 entries"),
        (schema_header(columns=3, field_metadata=7), "20 entries"),
        (schema_header(message_metadata=21), "20 entries"),
        (schema_header(metadata=3, text=b"x" * 400), "1000 bytes"),
        (schema_header(field_metadata=3, text=b"x" * 400), "1000 bytes"),
        (schema_header(columns=3, field_metadata=1, text=b"x" * 400), "1000 bytes"),
        (schema_header(message_metadata=3, text=b"x" * 400), "1000 bytes"),
        (schema_header(columns=3, name=b"x" * 400), "1000 bytes"),
        (schema_header(columns=3, zone=b"x" * 400), "1000 bytes"),
        (schema_header(metadata=1, text=b"x" * 20_000), "20000 are allowed"),
        (batch_header(rows=1, body_bytes=0, pairs=21), "20 entries"),
        (batch_header(rows=1, body_bytes=0, pairs=3, text=b"x" * 400), "1000 bytes"),
        (batch_header(rows=1, body_bytes=0, pairs=3, text=b"x" * 400, dictionary=True), "1000 bytes"),
    ],
)
def test_what_is_pointed_to_often_counts_each_time(bomb: bytes, excess: str) -> None:
    with pytest.raises(ResourcesError, match=excess) as caught:
        MessageBounds(header=SMALL).check(bomb, b"")
    assert caught.value.hint == "send fewer columns, or less metadata with them"


def test_what_is_within_the_bounds_passes() -> None:
    bounds = MessageBounds(header=SMALL)
    for fine in (
        schema_header(columns=10),
        schema_header(nested=2, twice=True),
        schema_header(nested=3),
        schema_header(metadata=20),
        schema_header(columns=2, field_metadata=1, text=b"x" * 400, name=b"x"),
        batch_header(rows=1, body_bytes=0, pairs=20),
    ):
        bounds.check(fine, b"")


def test_real_schemas_of_thousands_of_columns_pass() -> None:
    comment = {"comment": "what a column is for, in a sentence or two " * 4, "PARQUET:field_id": "1234"}
    schema = pa.schema(
        [
            pa.field(f"customer_attribute_{number}", pa.timestamp("us", "UTC"), metadata=comment)
            for number in range(5000)
        ]
    )
    header = ipc_messages(schema.empty_table())[0].metadata.to_pybytes()
    MessageBounds().check(header, b"")
    assert put((header, b"")).schema.equals(schema, check_metadata=True)


@pytest.mark.rule("FLT-7")
@pytest.mark.parametrize(
    "bomb",
    [schema_header(metadata=50, text=b"x" * 100_000), schema_header(nested=15, twice=True)],
    ids=["text", "fields"],
)
def test_arrow_never_sees_a_schema_that_is_refused(core: Core, alice: RawClient, bomb: bytes) -> None:
    stream = put((bomb, b""))
    with pytest.raises(ResourcesError):
        stream._bytes.read(8)  # what Arrow would be given
    data = flight.FlightData(flight_descriptor=descriptor(INGEST), data_header=bomb)
    with pytest.raises(Refused) as caught:
        alice.call("DoPut", data)
    assert caught.value.status is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert not core.ingested


# Bodies


def compressed_body(size: int) -> bytes:
    return struct.pack("<q", size) + pa.compress(bytes(size), codec="zstd", asbytes=True)


@pytest.mark.rule("FLT-7")
@pytest.mark.parametrize("dictionary", [False, True])
@pytest.mark.parametrize(
    "metadata",
    [{b"ARROW:experimental_compression": b"ZSTD"}, {b"arrow:Experimental_compression": b"zstd"}, {b"x": b""}],
)
def test_compression_of_the_old_format_is_refused(metadata: dict[bytes, bytes], dictionary: bool) -> None:
    body = compressed_body(4_000)
    header = batch_header(rows=1_000, body_bytes=len(body), version=4, dictionary=dictionary, metadata=metadata)
    with pytest.raises(UserError, match="old format"):
        MessageBounds().check(header, body)
    MessageBounds().check(batch_header(rows=1, body_bytes=8, version=4, dictionary=dictionary), bytes(8))
    MessageBounds().check(batch_header(rows=1, body_bytes=8, dictionary=dictionary, metadata=metadata), bytes(8))


def test_arrow_would_believe_the_old_format() -> None:
    """The day it does not, the refusal may go."""
    body = compressed_body(4_000)
    told = {b"ARROW:experimental_compression": b"zstd"}
    rows = batch_header(rows=1_000, body_bytes=len(body), version=4, metadata=told)
    pieces = []
    for header, content in ((schema_header(), b""), (rows, body)):
        pieces += [b"\xff\xff\xff\xff", len(header).to_bytes(4, "little"), header, content + bytes(-len(content) % 8)]
    batch = pa.ipc.open_stream(b"".join(pieces)).read_next_batch()
    assert batch.get_total_buffer_size() > 3_999 > len(body)


@pytest.mark.rule("FLT-7")
def test_a_body_has_no_more_than_its_buffers() -> None:
    """All of it is kept for as long as one of its values."""
    table = pa.table({"n": pa.array([1, None, 3], pa.int8()), "t": ["a", "bc", None]})
    for message in ipc_messages(table)[1:]:
        MessageBounds().check(message.metadata.to_pybytes(), message.body.to_pybytes())
    message = bytearray(batch_header(rows=1, body_bytes=8_000))
    place = message.index(struct.pack("<qq", 0, 8_000))
    message[place + 8 : place + 16] = struct.pack("<q", 8)
    with pytest.raises(UserError, match="more bytes than its buffers"):
        MessageBounds().check(bytes(message), bytes(8_000))


@pytest.mark.rule("FLT-7")
def test_buffers_that_lie_upon_each_other_count_each() -> None:
    bounds = MessageBounds(expanded_bytes=1_000)
    assert bounds.check(batch_header(rows=1, body_bytes=400, buffers=2), bytes(400)).expanded_bytes == 800
    with pytest.raises(ResourcesError, match="1200 bytes"):
        bounds.check(batch_header(rows=1, body_bytes=400, buffers=3), bytes(400))


@pytest.mark.rule("FLT-7")
def test_other_kinds_and_versions_are_refused() -> None:
    fine = bytearray(batch_header(rows=1, body_bytes=8))
    (message,) = struct.unpack_from("<I", fine)
    (head,) = struct.unpack_from("<i", fine, message)
    version, kind = (message + struct.unpack_from("<H", fine, message - head + 4 + 2 * slot)[0] for slot in (0, 1))
    MessageBounds().check(bytes(fine), bytes(8))
    for place, values in ((version, (0, 1, 2, 5)), (kind, (0, 4, 5, 6))):
        for value in values:
            changed = bytearray(fine)
            changed[place] = value
            with pytest.raises(UserError, match="malformed"):
                MessageBounds().check(bytes(changed), bytes(8))


# Parameters


def prepared(core: Core, client: RawClient, kind: pa.DataType = TEXT) -> sql.CommandPreparedStatementUpdate:
    core.parameters["update ?"] = pa.schema({"1": kind})
    handle = client.prepare("update ?").prepared_statement_handle
    return sql.CommandPreparedStatementUpdate(prepared_statement_handle=handle)


def views(text: bytes, count: int) -> pa.Array:
    view = struct.pack("<i4sii", len(text), text[:4], 0, 0)
    buffers = [None, pa.py_buffer(view * count), pa.py_buffer(text)]
    return pa.Array.from_buffers(pa.string_view(), count, buffers)


BIG = b"x" * (1 << 20)


@pytest.mark.rule("FLT-7")
@pytest.mark.parametrize(
    "bomb",
    [
        pa.DictionaryArray.from_arrays(pa.array([0] * 65, pa.int8()), pa.array([BIG.decode()])),
        views(BIG, 65),
        pa.array([[None] * 1_700] * 10_000, pa.list_(pa.null())),
    ],
    ids=["dictionary", "views", "nulls"],
)
def test_parameters_count_with_what_they_become(core: Core, alice: RawClient, bomb: pa.Array) -> None:
    command = prepared(core, alice, bomb.type)
    with pytest.raises(Refused, match="67108864 bytes of parameters"):
        alice.put(command, pa.table({"p": bomb}))
    assert not core.statements
    alice.update(command, pa.table({"p": bomb[:1]}))
    assert len(core.statements) == 1


@pytest.mark.rule("FLT-7")
def test_parameters_of_no_width_count(core: Core, alice: RawClient) -> None:
    """Some hundred bytes of them would be gigabytes of objects."""
    rows = pa.Array.from_buffers(pa.struct([]), 1 << 30, [None], children=[])
    bits = pa.array([True] * (9 << 20))
    for elements in (rows, bits):
        offsets = pa.py_buffer(struct.pack("<ii", 0, len(elements)))
        bomb = pa.Array.from_buffers(pa.list_(elements.type), 1, [None, offsets], children=[elements])
        command = prepared(core, alice, bomb.type)
        query = sql.CommandPreparedStatementQuery(prepared_statement_handle=command.prepared_statement_handle)
        for each in (command, query):
            with pytest.raises(Refused, match="67108864 bytes of parameters"):
                alice.put(each, pa.table({"p": bomb}))
    assert not core.statements


@pytest.mark.rule("FLT-7")
def test_dictionaries_of_parameters_count(core: Core, alice: RawClient) -> None:
    """A dictionary of its own with each row: each of them is kept until the statement runs."""
    command = prepared(core, alice)
    words = [pa.array([str(number) * (8 << 20)]) for number in range(9)]
    index = pa.array([None], pa.int8())
    rows = pa.chunked_array([pa.DictionaryArray.from_arrays(index, word) for word in words])
    with pytest.raises(Refused, match="67108864 bytes of parameters"):
        alice.put(command, pa.table({"p": rows}))
    assert not core.statements


def test_parameters_that_no_literal_has_are_refused(core: Core, alice: RawClient) -> None:
    """Views of lists may all be of the same values."""
    command = prepared(core, alice)
    with pytest.raises(Refused, match="not supported") as caught:
        alice.put(command, pa.table({"p": pa.array([[1]], pa.list_view(pa.int8()))}))
    assert caught.value.code == "NOT_SUPPORTED"


@pytest.mark.rule("FLT-7")
def test_messages_of_parameters_are_smaller(core: Core, alice: RawClient) -> None:
    command = prepared(core, alice, pa.binary())
    rows = pa.table({"p": [bytes(MOST_PARAMETER_BYTES + HeaderLimits().header_bytes)]})
    query = sql.CommandPreparedStatementQuery(prepared_statement_handle=command.prepared_statement_handle)
    for each in (command, query):
        with pytest.raises(Refused, match="A message of parameters has") as caught:
            alice.put(each, rows)
        assert caught.value.status is grpc.StatusCode.RESOURCE_EXHAUSTED
        with pytest.raises(Refused, match="bytes when it is read"):
            alice.put(each, rows, options=pa.ipc.IpcWriteOptions(compression="zstd"))
    assert not core.statements


def test_rows_of_parameters_are_used_once(core: Core, alice: RawClient) -> None:
    command = prepared(core, alice, pa.int64())
    assert alice.update(command, pa.table({"p": [1, 2, 3]})) == 3
    with pytest.raises(Refused, match="1 parameter"):
        alice.update(command)
    assert len(core.statements) == 3


def test_no_row_and_no_column_is_no_row(core: Core, alice: RawClient) -> None:
    """ADBC sends it for an empty record batch."""
    command = prepared(core, alice, pa.int64())
    assert alice.update(command, pa.table({})) == 0
    assert alice.update(command, pa.table({"p": pa.array([], pa.int64())})) == 0
    assert not core.statements


# Metadata


@pytest.mark.rule("FLT-7")
def test_numbers_asked_for_often_are_answered_once(alice: RawClient) -> None:
    wanted = [sql.SQL_SUPPORTS_CONVERT, sql.FLIGHT_SQL_SERVER_NAME] * 1_000
    rows = alice.fetch(alice.info(sql.CommandGetSqlInfo(info=wanted)))
    assert rows["info_name"].to_pylist() == [sql.SQL_SUPPORTS_CONVERT, sql.FLIGHT_SQL_SERVER_NAME]
    types = alice.fetch(alice.info(sql.CommandGetTables(table_types=["TABLE"] * 1_000)))
    assert types.equals(alice.fetch(alice.info(sql.CommandGetTables(table_types=["TABLE"]))))


# What all calls hold


@pytest.mark.rule("LIM-2")
def test_a_budget_for_each_and_for_all() -> None:
    budget = ByteBudget(most=100, most_of_user=60)
    with budget.of(USER) as one, budget.of(USER) as other, budget.of(("test", "bob")) as third:
        one.message(40)
        with pytest.raises(ResourcesError, match="Your calls") as caught:
            other.message(21)
        assert caught.value.retry_after_secs
        assert caught.value.hint
        other.message(20)
        third.message(40)
        with pytest.raises(ResourcesError, match="The server"):
            third.dictionaries(1)
        one.message(10)
        third.dictionaries(1)
        assert budget.total == 10 + 20 + 40 + 1
    assert budget.total == 0


@pytest.mark.rule("LIM-2")
def test_batches_count_as_they_are_read_and_dictionaries_stay() -> None:
    budget = ByteBudget()
    dictionary = pa.array(["x" * 50_000]).dictionary_encode()
    table = pa.table({"n": pa.array([0] * 20_000, pa.int64()), "d": pa.chunked_array([dictionary.take([0] * 20_000)])})
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    messages = put_messages(INGEST, table, options)
    assert sum(message.ByteSize() for message in messages) < 10_000
    with budget.of(USER) as held:
        stream = PutStream(iter([message.SerializeToString() for message in messages]), held)
        (batch,) = stream
        assert batch.num_rows == 20_000
        assert budget.total > 160_000 + 50_000
        held.message(0)
        assert 50_000 < budget.total < 51_000
    assert budget.total == 0


def test_a_descriptor_is_no_place_for_much(core: Core, alice: RawClient) -> None:
    """It is kept for as long as the call runs."""
    command = sql.CommandStatementIngest(table="t", options={"x": "y" * (5 << 20)})
    with pytest.raises(Refused, match="The descriptor has") as caught:
        alice.put(command, pa.table({"n": [1]}))
    assert caught.value.status is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert not core.ingested


@pytest.fixture
def budget(monkeypatch: pytest.MonkeyPatch) -> ByteBudget:
    """What the calls of the test's server may hold: little."""
    small = ByteBudget(most=3 << 20, most_of_user=2 << 20)
    monkeypatch.setattr(rpcs, "ByteBudget", lambda: small)
    return small


@pytest.mark.rule("LIM-2")
def test_calls_that_wait_with_big_messages(budget: ByteBudget, core: Core, alice: RawClient, bob: RawClient) -> None:
    rows = pa.table({"n": [bytes(1_200_000)]})
    open_call: queue.Queue[bytes | None] = queue.Queue()
    first, batch = put_messages(INGEST, rows)
    open_call.put(first.SerializeToString())
    open_call.put(batch.SerializeToString())

    def requests() -> Iterator[bytes]:
        while (each := open_call.get(timeout=20)) is not None:
            yield each

    answers = alice.begin("DoPut", requests())
    wait_for(lambda: budget.total > 1_200_000)
    with pytest.raises(Refused, match="Your calls would hold") as caught:
        alice.put(INGEST, rows)
    assert caught.value.status is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert caught.value.trailing["retry-after"] == "1"
    bob.put(INGEST, rows)
    open_call.put(None)
    assert len(list(answers)) == 1
    wait_for(lambda: budget.total == 0)
    alice.put(INGEST, rows)
    assert len(core.ingested) == 3


@pytest.mark.rule("LIM-2")
def test_what_is_sent_counts_whatever_it_is(budget: ByteBudget, core: Core, alice: RawClient) -> None:
    """Also what nobody reads: bytes beside the rows, and rows with a command that takes none."""
    beside = flight.FlightData(flight_descriptor=descriptor(INGEST), app_metadata=bytes(3 << 20))
    update = flight_data(ipc_messages(pa.table({"n": [bytes(3 << 20)]}))[1])
    update.flight_descriptor.CopyFrom(descriptor(sql.CommandStatementUpdate(query="update t")))
    for message in (beside, update):
        with pytest.raises(Refused, match="Your calls would hold"):
            alice.call("DoPut", message)
    wait_for(lambda: budget.total == 0)
    assert not core.statements


@pytest.mark.rule("LIM-2")
def test_rows_of_parameters_count_until_the_call_ends(budget: ByteBudget, core: Core, alice: RawClient) -> None:
    """Each message is small, and all of their rows are kept."""
    core.answers["SELECT ?"] = pa.table({"x": [1]})
    core.parameters["SELECT ?"] = pa.schema({"1": pa.binary()})
    handle = alice.prepare("SELECT ?").prepared_statement_handle
    command = sql.CommandPreparedStatementQuery(prepared_statement_handle=handle)
    rows = pa.table({"p": pa.chunked_array([[bytes(400_000)]] * 6)})
    with pytest.raises(Refused, match="Your calls would hold"):
        alice.put(command, rows)
    wait_for(lambda: budget.total == 0)
    alice.put(command, rows.slice(0, 3))
    wait_for(lambda: budget.total == 0)


@pytest.mark.rule("LIM-2")
def test_rows_that_were_bound_count_with_the_update_that_runs_them(
    budget: ByteBudget, core: Core, alice: RawClient
) -> None:
    """Its statement holds them no more: others may be bound to it meanwhile."""
    text = "update stuck"
    core.parameters[text] = pa.schema({"1": pa.binary()})
    handle = alice.prepare(text).prepared_statement_handle
    query = sql.CommandPreparedStatementQuery(prepared_statement_handle=handle)
    update = sql.CommandPreparedStatementUpdate(prepared_statement_handle=handle)
    rows = pa.table({"p": [bytes(600_000)]})
    core.plans.clear()

    def begin() -> Any:
        before, plans = budget.total, len(core.plans)
        alice.put(query, rows)
        wait_for(lambda: budget.total == before)
        call = alice.begin("DoPut", [each.SerializeToString() for each in put_messages(update, None)])
        wait_for(lambda: len(core.plans) > plans and core.plans[-1].entered.is_set())
        assert budget.total - before > 600_000
        return call

    running = [begin(), begin()]
    with pytest.raises(Refused, match="Your calls would hold"):
        alice.put(query, rows)
    for each in running:
        each.cancel()
    wait_for(lambda: budget.total == 0)


@pytest.mark.rule("LIM-10")
def test_what_is_behind_the_rows_counts() -> None:
    """A column may come with more bytes than its rows have."""
    column = pa.Array.from_buffers(pa.int64(), 1, [None, pa.py_buffer(bytes(1 << 20))])
    schema = pa.schema({"1": pa.int64()})
    statement = Prepared("update ?", StatementDescription(schema=None, parameters=schema, statement_kind="update"))
    bound = statement.rows_of(iter([pa.record_batch({"1": column})]), schema, lambda size: None)
    assert bound is not None
    assert bound.size == 1 << 20


@pytest.mark.rule("LIM-2")
def test_what_is_written_is_not_held_while_it_is_committed() -> None:
    budget = ByteBudget()
    held = budget.of(USER)
    messages = iter([b"x" * 1000, None])
    call: Any = SimpleNamespace(held=held, context=None)
    watching: Any = SimpleNamespace(
        _watch=SimpleNamespace(waiting=lambda context, secs: contextlib.nullcontext()),
        _limits=SimpleNamespace(idle_secs=1),
    )
    incoming = rpcs.FlightRpcs._patiently(watching, messages, call)  # type: ignore[arg-type]
    assert len(next(incoming)) == 1000
    assert budget.total == 1000
    assert next(incoming, None) is None
    assert budget.total == 0


class _Gone(Exception):
    pass


@pytest.mark.parametrize("fault", ["gone", "malformed", "malformed at once", "refused"])
def test_a_stream_that_ends_in_an_error_is_forgotten(fault: str) -> None:
    """Arrow's reader holds what raised, whose traceback holds the last batch: the collector cannot see that."""

    class Held:
        """Stands for a session, or a batch."""

    def read() -> weakref.ref[Held]:
        kept = Held()
        schema, *batches = put_messages(INGEST, pa.table({"n": pa.chunked_array([[1], [2]])}))
        budget = ByteBudget(most_of_user=10 if fault == "refused" else 1 << 20)

        def messages() -> Iterator[bytes]:
            yield schema.SerializeToString()
            if fault != "malformed at once":
                yield batches[0].SerializeToString()
            if fault == "gone":
                raise _Gone
            yield flight.FlightData(data_header=b"garbage").SerializeToString()

        with pytest.raises((_Gone, UserError, ResourcesError)):  # noqa: PT012 - the frame is what is looked at
            stream = PutStream(messages(), budget.of(USER))
            assert stream.schema
            for batch in stream:
                assert batch.num_rows
                assert kept
        return weakref.ref(kept)

    left = read()
    gc.collect()
    assert left() is None
