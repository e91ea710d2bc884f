"""Clients that are waited for: they go away, send nothing, or send what is nothing."""

from __future__ import annotations

import importlib
import threading
import time
from collections.abc import Hashable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, cast

import grpc
import pyarrow as pa
import pytest
from raw_flight import Core, CoreSession, RawClient, Refused, basic, descriptor, put_messages
from testbed.clocks import StoppedClock, wait_for

from sqe_core.protocols.flight import client_batches, rpcs, statements
from sqe_core.protocols.flight.client_batches import ClientBatches
from sqe_core.protocols.flight.idle import IdleWatch
from sqe_core.protocols.flight.places import Places
from sqe_core.protocols.flight.server import FlightConfig, FlightServer
from sqe_core.protocols.flight.wire import flight_pb2 as flight
from sqe_core.protocols.flight.wire import flight_sql_pb2 as sql
from sqe_core.spi.errors import ResourcesError
from sqe_core.spi.protocol import ProtocolContext, StatementState
from sqe_core.testing.fakes import FakeStatement

INGEST = sql.CommandStatementIngest(table="t")
ALICE, BOB = ("test", "alice"), ("test", "bob")


@pytest.fixture
def server(context: ProtocolContext) -> Iterator[FlightServer]:
    """A server that waits for as long as it does by default: nothing here depends on who is quick."""
    server = FlightServer(FlightConfig(), context)
    yield server
    server.stop(0)


class Sender:
    """Sends what it has, and then nothing until it is over."""

    def __init__(self, *messages: Any) -> None:
        self.over = threading.Event()
        self._messages = messages

    def __iter__(self) -> Iterator[bytes]:
        for message in self._messages:
            yield message.SerializeToString()
        self.over.wait(30)


def ended(call: Any) -> grpc.StatusCode:
    with pytest.raises(grpc.RpcError) as caught:
        list(call)
    return caught.value.code()


# Clients that go away


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that is told late that a call was cancelled, as gRPC's one thread is when there is much to do."""
    told: Any = importlib.import_module("grpc._server")._receive_close_on_server

    def told_late(state: Any) -> Any:
        tell = told(state)

        def late(event: Any) -> Any:
            time.sleep(0.4)
            return tell(event)

        return late

    monkeypatch.setattr("grpc._server._receive_close_on_server", told_late)


@pytest.mark.rule("FLT-4")
@pytest.mark.parametrize("attempt", range(4))
@pytest.mark.usefixtures("busy")
def test_a_busy_server_writes_nothing_of_an_ingest_that_was_cancelled(
    core: Core, alice: RawClient, monkeypatch: pytest.MonkeyPatch, attempt: int
) -> None:
    began, ingest = threading.Event(), CoreSession.ingest

    def watched(self: Any, request: Any, schema: Any, batches: Iterator[pa.RecordBatch], query_id: str) -> Any:
        began.set()
        return ingest(self, request, schema, batches, query_id)

    monkeypatch.setattr(CoreSession, "ingest", watched)
    sender = Sender(*put_messages(INGEST, pa.table({"n": [1, 2, 3]})))
    call = alice.begin("DoPut", sender)
    assert began.wait(10)
    call.cancel()
    sender.over.set()
    wait_for(lambda: core.ingests_ended)
    assert not core.ingested


@pytest.mark.rule("FLT-4")
@pytest.mark.parametrize("command", [sql.CommandPreparedStatementUpdate, sql.CommandPreparedStatementQuery])
@pytest.mark.parametrize("attempt", range(4))
@pytest.mark.usefixtures("busy")
def test_a_busy_server_binds_nothing_of_a_client_that_left_after_one_row(
    core: Core, alice: RawClient, monkeypatch: pytest.MonkeyPatch, command: Any, attempt: int
) -> None:
    core.parameters["update ?"] = pa.schema({"1": pa.int64()})
    handle = alice.prepare("update ?").prepared_statement_handle
    came, bound = threading.Event(), []
    size, bind = statements._checked_bytes, statements.Statements.bind

    def checked(batch: pa.RecordBatch) -> int:
        came.set()
        return size(batch)

    def watched(*args: Any) -> None:
        try:
            bind(*args)
            bound.append("all")
        except BaseException:
            bound.append("nothing")
            raise

    monkeypatch.setattr(statements, "_checked_bytes", checked)
    monkeypatch.setattr(statements.Statements, "bind", watched)
    rows = pa.Table.from_batches([pa.record_batch({"1": [number]}) for number in range(3)])
    sender = Sender(*put_messages(command(prepared_statement_handle=handle), rows)[:2])
    call = alice.begin("DoPut", sender)
    assert came.wait(10)
    call.cancel()
    sender.over.set()
    wait_for(lambda: bound)
    assert bound == ["nothing"]
    assert not core.statements


# Statements that are ended while their client is waited for


def test_an_ended_statement_waits_a_little_for_its_client_and_no_longer() -> None:
    class Call:
        ended = False

        def cancel(self) -> None:
            self.ended = True

    clock, call, over = StoppedClock(), Call(), threading.Event()
    idle = IdleWatch(clock)
    seen: list[bool] = []

    class Ingest:
        @property
        def state(self) -> StatementState:
            return StatementState.FAILED if over.is_set() else StatementState.RUNNING

    def client() -> Iterator[pa.RecordBatch]:
        for is_over, secs in ((False, 10_000), (True, 0), (True, 1), (True, 1.5)):
            clock.now += secs
            if is_over:
                over.set()
            idle.look()
            seen.append(call.ended)
        yield pa.record_batch({"n": [1]})

    batches = ClientBatches(client(), call, idle, clock)
    batches.wanted_by(cast(Any, Ingest()))
    assert len(list(batches)) == 1
    assert seen == [False, False, False, True]
    call.ended = False
    idle.look()
    assert not call.ended, "nobody is waited for"


@pytest.mark.rule("LIM-8")
@pytest.mark.parametrize("sends", ["nothing", "messages without data"])
def test_an_ingest_that_is_ended_ends_whatever_its_client_does(
    core: Core, alice: RawClient, monkeypatch: pytest.MonkeyPatch, sends: str
) -> None:
    monkeypatch.setattr(client_batches, "_GRACE_SECS", 0.0)
    began, killed, ingest = threading.Event(), threading.Event(), CoreSession.ingest

    def watched(*given: Any) -> Any:
        began.set()
        return ingest(*given)

    def state(self: Any) -> StatementState:
        return StatementState.FAILED if killed.is_set() else StatementState.RUNNING

    monkeypatch.setattr(CoreSession, "ingest", watched)
    monkeypatch.setattr(FakeStatement, "state", property(state))
    over = threading.Event()

    def client() -> Iterator[bytes]:
        yield put_messages(INGEST, pa.table({"n": [1]}))[0].SerializeToString()
        while not over.wait(0.3):
            if sends != "nothing":
                yield flight.FlightData(app_metadata=b"x").SerializeToString()

    call = alice.begin("DoPut", client())
    assert began.wait(10)
    killed.set()
    assert ended(call) is grpc.StatusCode.CANCELLED
    over.set()
    wait_for(lambda: core.ingests_ended)
    assert not core.ingested


def test_a_stream_of_messages_without_data_ends(core: Core, alice: RawClient) -> None:
    first, *rest = put_messages(INGEST, pa.table({"n": [1]}))
    nothing = flight.FlightData(app_metadata=b"x")
    alice.call("DoPut", first, *[nothing] * 99, *rest)
    assert len(core.ingested) == 1
    with pytest.raises(Refused, match="messages without data") as caught:
        alice.call("DoPut", first, *[nothing] * 100, *rest)
    assert caught.value.code == "INVALID_ARGUMENTS"
    assert len(core.ingested) == 1


# How many are waited for


def test_places_are_few_and_of_each_user() -> None:
    places = Places(2, "The server waits for 2 messages of yours", "send them")
    with ExitStack() as taken:
        for _ in range(2):
            taken.enter_context(places.one(ALICE, 0))
        with pytest.raises(ResourcesError, match="waits for 2 messages") as caught, places.one(ALICE, 0):
            pass
        assert caught.value.retry_after_secs == 1
        with places.one(BOB, 0):
            pass
    with places.one(ALICE, 0), places.one(ALICE, 0):
        pass
    assert not places._taken


def test_who_waits_for_a_place_gets_the_next_one() -> None:
    places, got = Places(1, "too many", "end some"), threading.Event()

    def wait() -> None:
        with places.one(ALICE, 20):
            got.set()

    waiter = threading.Thread(target=wait)
    with places.one(ALICE, 0):
        waiter.start()
        assert not got.wait(0.05)
    waiter.join(20)
    assert got.is_set()


class SeenPlaces(Places):
    """Knows how many were taken at most."""

    most_taken = 0

    @contextmanager
    def one(self, key: Hashable, wait_secs: float = 0, *, spare: int = 0) -> Iterator[None]:
        with super().one(key, wait_secs, spare=spare):
            self.most_taken = max(self.most_taken, self._taken[key])
            yield


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> list[SeenPlaces]:
    """Two for messages of calls that have one, and two for streams, in the server that is started next."""
    made: list[SeenPlaces] = []

    def make(most: int, *refusal: str) -> SeenPlaces:
        seen = SeenPlaces(most, *refusal)
        if "waits for" in refusal[0]:
            made.append(seen)
        return seen

    monkeypatch.setattr(rpcs, "Places", make)
    monkeypatch.setattr(rpcs, "_MOST_AWAITED_REQUESTS", 2)
    monkeypatch.setattr(rpcs, "_MOST_AWAITED_STREAMS", 2)
    return made


@pytest.mark.rule("LIM-2")
@pytest.mark.parametrize("name", ["GetFlightInfo", "GetSchema", "PollFlightInfo", "DoGet", "DoAction", "ListActions"])
def test_few_calls_of_a_user_wait_for_their_one_message(
    places: list[SeenPlaces], alice: RawClient, bob: RawClient, name: str
) -> None:
    senders = [Sender() for _ in range(3)]
    calls = [alice.begin(name, sender) for sender in senders[:2]]
    requests, _ = places
    wait_for(lambda: requests._taken.total() == 2)
    calls.append(alice.begin(name, senders[2]))
    assert bob.query("SELECT 1 AS one").num_rows == 1
    for sender, call in zip(senders, calls, strict=True):
        sender.over.set()
        assert ended(call) is grpc.StatusCode.INVALID_ARGUMENT
    assert requests.most_taken == 2
    assert alice.query("SELECT 1 AS one").num_rows == 1


@pytest.mark.rule("LIM-2")
def test_the_one_message_of_a_call_is_waited_for_as_a_login_is(core: Core) -> None:
    """Rows may be long in coming, for 300 seconds here; it comes with the call."""
    server, sender = FlightServer(FlightConfig(auth_handshake_timeout_secs=1), ProtocolContext()), Sender()
    try:
        with grpc.insecure_channel(f"127.0.0.1:{server.start(core).port}") as channel:
            call = RawClient(channel, (("authorization", basic("alice")),)).begin("GetFlightInfo", sender, timeout=60)
            assert ended(call) is grpc.StatusCode.CANCELLED
    finally:
        sender.over.set()
        server.stop(0)


@pytest.mark.rule("LIM-2")
def test_few_streams_of_a_user_are_waited_for(
    places: list[SeenPlaces], core: Core, alice: RawClient, bob: RawClient
) -> None:
    schema, rows = put_messages(INGEST, pa.table({"n": [1]}))
    senders = [Sender(schema, rows) for _ in range(3)]
    calls = [alice.begin("DoPut", sender) for sender in senders[:2]]
    _, streams = places
    wait_for(lambda: streams._taken.total() == 2)
    calls.append(alice.begin("DoPut", senders[2]))
    bob.put(INGEST, pa.table({"n": [1]}))
    assert alice.query("SELECT 1 AS one").num_rows == 1, "these are others"
    for sender, call in zip(senders, calls, strict=True):
        sender.over.set()
        assert len(list(call)) == 1
    assert streams.most_taken == 2
    assert len(core.ingested) == 4


@pytest.mark.rule("LIM-2")
@pytest.mark.parametrize("prepared", [False, True])
def test_an_update_that_runs_waits_for_no_message(
    places: list[SeenPlaces], core: Core, alice: RawClient, prepared: bool
) -> None:
    command: Any = sql.CommandStatementUpdate(query="stuck update")
    if prepared:
        handle = alice.prepare("stuck update").prepared_statement_handle
        command = sql.CommandPreparedStatementUpdate(prepared_statement_handle=handle)
    (message,) = put_messages(command, None)
    calls = [alice.begin("DoPut", [message.SerializeToString()]) for _ in range(3)]
    wait_for(lambda: sum(plan.entered.is_set() for plan in core.plans) == 3)
    for plan in core.plans:
        plan.cancelled.set()
    assert {ended(call) for call in calls} == {grpc.StatusCode.CANCELLED}


@pytest.mark.rule("LIM-2")
def test_messages_are_not_compressed_by_the_transport(core: Core, alice: RawClient) -> None:
    """256 MiB of nothing would be sent as 256 KiB."""
    method = alice.channel.stream_stream("/arrow.flight.protocol.FlightService/GetFlightInfo")
    asked = descriptor(sql.CommandStatementQuery(query="SELECT 1 AS one" + " " * 10_000)).SerializeToString()
    call = method(iter([asked]), metadata=(("authorization", basic("alice")),), compression=grpc.Compression.Gzip)
    assert ended(call) is grpc.StatusCode.UNIMPLEMENTED
    assert not core.plans
