"""Tickets, cancelling, polling, options, and clients that go away."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pyarrow as pa
import pytest
from raw_flight import (
    Core,
    CoreSession,
    RawClient,
    Refused,
    basic,
    descriptor,
    packed,
    put_messages,
    read_stream,
    refusal,
    unpacked,
)
from testbed.clocks import StoppedClock, wait_for

from sqe_core.protocols.flight.handles import Handles
from sqe_core.protocols.flight.leaving import Leaving
from sqe_core.protocols.flight.server import FlightServer
from sqe_core.protocols.flight.statements import Prepared, Statements
from sqe_core.protocols.flight.wire import flight_pb2 as flight
from sqe_core.protocols.flight.wire import flight_sql_pb2 as sql
from sqe_core.spi.errors import ErrorCode, QueryCancelledError, ResourcesError, UserError
from sqe_core.spi.protocol import GatewaySession, StatementDescription, StatementRequest, StatementState
from sqe_core.testing.fakes import FakeAnswer

PLENTY = {"most_bytes": 100, "most_bytes_per_user": 100}
NOT_THERE = (grpc.StatusCode.NOT_FOUND, "INVALID_ARGUMENTS")


def handle_of(info: flight.FlightInfo) -> bytes:
    return unpacked(info.endpoint[0].ticket.ticket, sql.TicketStatementQuery).statement_handle


def ticket(handle: bytes) -> flight.Ticket:
    return flight.Ticket(ticket=packed(sql.TicketStatementQuery(statement_handle=handle)))


# Tickets


@pytest.mark.rule("FLT-3")
def test_tickets_are_random_and_tell_nothing(core: Core, alice: RawClient) -> None:
    handles = [handle_of(alice.plan("SELECT 1 AS one")) for _ in range(50)]
    assert len(set(handles)) == 50
    assert all(len(handle) * 8 >= 128 for handle in handles)
    told = b"".join(handles)
    for secret in (b"SELECT", b"alice", core.plans[0].query_id.encode(), core.sessions[0].token.reveal().encode()):
        assert secret not in told


@pytest.mark.rule("FLT-3")
def test_unknown_foreign_used_and_expired_tickets_look_the_same(
    core: Core,
    alice: RawClient,
    bob: RawClient,
    connect: Callable[..., RawClient],
    server: FlightServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other_session = connect(basic("alice"))
    other_session.metadata += (("x-session-id", "other"),)
    used = alice.plan("SELECT 1 AS one")
    alice.fetch(used)
    mine = alice.plan("SELECT 1 AS one").endpoint[0].ticket
    expired = alice.plan("SELECT 1 AS one").endpoint[0].ticket
    tickets: Any = server._statements.tickets
    tickets._entries[handle_of(flight.FlightInfo(endpoint=[flight.FlightEndpoint(ticket=expired)]))].expires = 0.0
    attempts = {
        "unknown": (alice, ticket(b"x" * 24)),
        "empty": (alice, ticket(b"")),
        "used": (alice, used.endpoint[0].ticket),
        "expired": (alice, expired),
        "of another user": (bob, mine),
        "of another session": (other_session, mine),
    }
    outcomes = set()
    for client, presented in attempts.values():
        with pytest.raises(Refused) as caught:
            client.call("DoGet", presented)
        assert (caught.value.status, caught.value.code) == NOT_THERE
        outcomes.add((caught.value.text, tuple(sorted(caught.value.trailing))))
    assert len(outcomes) == 1
    # A stranger's attempt did not use the ticket up.
    assert len(alice.call("DoGet", mine)) == 2  # the schema, and the rows


@pytest.mark.rule("FLT-4")
def test_prepared_statements_of_others_do_not_exist(core: Core, alice: RawClient, bob: RawClient) -> None:
    handle = alice.prepare("update t").prepared_statement_handle
    attempts: list[Callable[[], Any]] = [
        lambda: bob.info(sql.CommandPreparedStatementQuery(prepared_statement_handle=handle)),
        lambda: bob.put(sql.CommandPreparedStatementUpdate(prepared_statement_handle=handle)),
        lambda: bob.put(sql.CommandPreparedStatementQuery(prepared_statement_handle=handle), pa.table({"a": [1]})),
        lambda: bob.action(
            "ClosePreparedStatement", sql.ActionClosePreparedStatementRequest(prepared_statement_handle=handle)
        ),
    ]
    for attempt in attempts:
        assert refusal(attempt) == NOT_THERE
    assert not core.statements
    assert alice.update(sql.CommandPreparedStatementUpdate(prepared_statement_handle=handle)) == 1


class Held:
    def __init__(self) -> None:
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


@pytest.mark.rule("LIM-10")
def test_handles_are_bounded_and_expire(core: Core) -> None:
    clock = StoppedClock()
    handles: Handles[Held] = Handles(
        "ticket", ttl_secs=10, most=3, most_per_session=2, most_per_user=3, monotonic=clock, **PLENTY
    )
    alice, bob = CoreSession(core, "alice"), CoreSession(core, "bob")
    first, second, third, fourth = Held(), Held(), Held(), Held()
    one = handles.put(alice, first, 1)
    two = handles.put(alice, second, 1)
    with pytest.raises(ResourcesError):
        handles.put(alice, third, 1)
    assert third.closed == 1
    handles.put(bob, Held(), 1)
    with pytest.raises(ResourcesError):
        handles.put(bob, fourth, 1)
    assert len(handles) == 3
    clock.now = 9
    assert handles.get(alice, two) is second  # used: it begins anew
    clock.now = 11
    handles.sweep()
    assert (first.closed, second.closed, len(handles)) == (1, 0, 1)
    with pytest.raises(UserError):
        handles.get(alice, one)
    clock.now = 20
    with pytest.raises(UserError):  # expired, even before the sweep
        handles.take(alice, two)
    handles.close()
    assert second.closed == 1


@pytest.mark.rule("LIM-10")
def test_one_user_with_many_sessions_leaves_handles_for_others(core: Core) -> None:
    clock = StoppedClock()
    handles: Handles[Held] = Handles(
        "ticket", ttl_secs=10, most=4, most_per_session=2, most_per_user=3, monotonic=clock, **PLENTY
    )
    first, second, bob = CoreSession(core, "alice"), CoreSession(core, "alice"), CoreSession(core, "bob")
    taken = [handles.put(first, Held(), 1), handles.put(first, Held(), 1), handles.put(second, Held(), 1)]
    refused = Held()
    with pytest.raises(ResourcesError):
        handles.put(second, refused, 1)
    assert refused.closed == 1
    kept = handles.put(bob, Held(), 1)
    handles.take(first, taken[0])
    clock.now = 5
    one_more = handles.put(second, Held(), 1)
    handles.end_session(second)
    assert len(handles) == 2
    clock.now = 11
    handles.sweep()
    for _ in range(2):
        handles.put(first, Held(), 1)
    handles.put(second, Held(), 1)
    for handle in (kept, one_more):
        with pytest.raises(UserError):
            handles.get(bob, handle)


@pytest.mark.rule("LIM-10")
def test_what_is_kept_is_bounded_in_bytes_too(core: Core) -> None:
    handles: Handles[Held] = Handles(
        "ticket", ttl_secs=10, most=9, most_per_session=9, most_per_user=9, most_bytes=100, most_bytes_per_user=60
    )
    alice, again, bob = CoreSession(core, "alice"), CoreSession(core, "alice"), CoreSession(core, "bob")
    first = handles.put(alice, Held(), 40)
    refused = Held()
    with pytest.raises(ResourcesError):
        handles.put(again, refused, 21)
    assert refused.closed == 1
    small = handles.put(again, Held(), 20)
    with pytest.raises(ResourcesError):  # of all
        handles.put(bob, Held(), 41)
    of_bob = handles.put(bob, Held(), 40)
    handles.resize(alice, first, 10)
    with pytest.raises(ResourcesError):
        handles.resize(again, small, 51)
    handles.resize(again, small, 50)
    with pytest.raises(UserError):
        handles.resize(alice, of_bob, 1)
    handles.take(again, small)
    handles.end_session(bob)
    handles.put(alice, Held(), 50)
    with pytest.raises(ResourcesError):
        handles.put(alice, Held(), 1)


@pytest.mark.rule("LIM-10")
def test_long_statements_and_parameters_that_are_kept_are_capped(core: Core, alice: RawClient, bob: RawClient) -> None:
    core.answers["SELECT ?"] = pa.table({"x": [1]})
    core.parameters["SELECT ?"] = pa.schema({"1": pa.string()})
    big = pa.table({"p": ["x" * (60 << 20)]})
    handles = [alice.prepare("SELECT ?").prepared_statement_handle for _ in range(6)]
    commands = [sql.CommandPreparedStatementQuery(prepared_statement_handle=handle) for handle in handles]
    for command in commands[:4]:
        alice.put(command, big)
    with pytest.raises(Refused, match="Too many open prepared statements"):
        alice.put(commands[4], big)
    alice.put(commands[0], pa.table({"p": ["small"]}))
    alice.put(commands[4], big)
    text = "SELECT ?" + " " * 4_000_000
    core.answers[text] = core.answers["SELECT ?"]
    alice.plan(text), alice.plan(text)
    with pytest.raises(Refused, match="Too many open tickets"):
        alice.plan(text)
    assert bob.plan(text)


@pytest.mark.rule("LIM-10")
def test_a_parameter_counts_with_its_dictionary(core: Core, alice: RawClient) -> None:
    core.answers["SELECT ?"] = pa.table({"x": [1]})
    core.parameters["SELECT ?"] = pa.schema({"1": pa.string()})
    words = pa.DictionaryArray.from_arrays(pa.array([0]), pa.array(["a", "x" * (50 << 20)]))
    handle = alice.prepare("SELECT ?").prepared_statement_handle
    command = sql.CommandPreparedStatementQuery(prepared_statement_handle=handle)
    alice.put(command, pa.table({"p": words}))
    for _ in range(5):
        alice.one("GetFlightInfo", descriptor(command), flight.FlightInfo)
    with pytest.raises(Refused, match="Too many open tickets"):
        alice.one("GetFlightInfo", descriptor(command), flight.FlightInfo)


@pytest.mark.rule("LIM-10")
@pytest.mark.parametrize("parts", [1, 4])
def test_columns_of_what_is_kept_are_capped(core: Core, alice: RawClient, bob: RawClient, parts: int) -> None:
    core.answers["SELECT *"] = pa.table({f"column_{number}": [1] for number in range(20_000)})
    alice.metadata += (("x-sqe-endpoints", str(parts)),)
    wide = len(alice.plan("SELECT *").schema)
    for _ in range((256 << 20) // (8 * wide) - 1):
        alice.plan("SELECT *")
    with pytest.raises(Refused, match="Too many open tickets"):
        alice.plan("SELECT *")
    refused = core.plans[-1]
    assert all(part.closed for part in refused.parts) if parts > 1 else refused.closed
    assert bob.plan("SELECT *")


@pytest.mark.rule("LIM-10")
def test_columns_of_what_is_polled_are_capped(core: Core, alice: RawClient) -> None:
    core.answers["SELECT *"] = pa.table({f"column_{number}": [1] for number in range(20_000)})
    command = descriptor(sql.CommandStatementQuery(query="SELECT *"))
    wide = len(alice.plan("SELECT *").schema)
    for _ in range((256 << 20) // (8 * wide) - 1):
        alice.call("PollFlightInfo", command)
    with pytest.raises(Refused, match="Too many open tickets"):
        alice.call("PollFlightInfo", command)
    assert core.plans[-1].closed


@pytest.mark.rule("LIM-10")
@pytest.mark.parametrize("parameters", [False, True])
def test_columns_of_prepared_statements_are_capped(core: Core, alice: RawClient, parameters: bool) -> None:
    wide = pa.schema({f"column_{number}": pa.int64() for number in range(40_000)})
    core.answers["SELECT *"] = pa.table({"x": [1]}) if parameters else wide.empty_table()
    core.parameters["SELECT *"] = wide if parameters else pa.schema([])
    prepared = alice.prepare("SELECT *")
    sent = len(prepared.dataset_schema) + len(prepared.parameter_schema)
    statements = Statements()
    session = CoreSession(core, "alice")
    description = statements.describe(session, StatementRequest(sql="SELECT *"), lambda end, over: True)
    most = (256 << 20) // (4 * sent)
    for _ in range(most):
        statements.prepare(session, Prepared("SELECT *", description))
    with pytest.raises(ResourcesError):
        statements.prepare(session, Prepared("SELECT *", description))


class Meeting:
    """Keeps one thread at the noting of a size until another one had the time to bind what it wants."""

    def __init__(self, statements: Statements, monkeypatch: pytest.MonkeyPatch) -> None:
        self.there = threading.Event()
        self.go_on = threading.Event()
        self._resize = statements.prepared.resize
        monkeypatch.setattr(statements.prepared, "resize", self)

    def __call__(self, session: GatewaySession, handle: bytes, size: int) -> None:
        if not self.there.is_set():
            self.there.set()
            self.go_on.wait(0.5)
        self._resize(session, handle, size)


@pytest.mark.rule("LIM-10")
@pytest.mark.parametrize("first", ["bind", "update"])
def test_what_is_bound_at_once_is_counted(core: Core, monkeypatch: pytest.MonkeyPatch, first: str) -> None:
    """The size of what was bound first, or of nothing, is not noted for what was bound last."""
    statements, session = Statements(), CoreSession(core, "alice")
    schema = pa.schema({"1": pa.string()})
    text = "update t"
    description = StatementDescription(schema=None, parameters=schema, statement_kind="update")
    held = Prepared(text, description)
    handle = statements.prepare(session, held)
    core.parameters[text] = schema

    def bind(size: int) -> None:
        rows = pa.record_batch({"1": ["x" * size]})
        statements.bind(session, handle, iter([rows]), schema, lambda size: None)

    def begin() -> None:
        if first == "bind":
            bind(10)
        else:
            ask = lambda text: StatementRequest(sql=text)  # noqa: E731
            statements.update_prepared(session, handle, ask, lambda end, over: True, lambda size: None)

    bind(20)
    meeting = Meeting(statements, monkeypatch)
    with ThreadPoolExecutor(2) as threads:
        one = threads.submit(begin)
        assert meeting.there.wait(10)
        other = threads.submit(bind, 1 << 20)
        other.add_done_callback(lambda _: meeting.go_on.set())
        one.result(20), other.result(20)
    assert held.size > 1 << 20
    assert statements.prepared._bytes == held.size


def test_who_sends_rows_slowly_keeps_nobody_from_binding(core: Core) -> None:
    statements, session = Statements(), CoreSession(core, "alice")
    schema = pa.schema({"1": pa.int64()})
    description = StatementDescription(schema=None, parameters=schema, statement_kind="update")
    handle = statements.prepare(session, Prepared("update t", description))
    rows = pa.record_batch({"1": [1]})

    def bound() -> int:
        now = statements.prepared.get(session, handle).bound
        return 0 if now is None else now.row_count

    def slowly() -> Iterator[pa.RecordBatch]:
        yield rows
        statements.bind(session, handle, iter([rows]), schema, lambda size: None)
        assert bound() == 1

    statements.bind(session, handle, slowly(), schema, lambda size: None)
    assert bound() == 1


@pytest.mark.rule("LIM-10")
def test_plans_and_prepared_statements_of_a_session_are_capped(core: Core, alice: RawClient, bob: RawClient) -> None:
    for _ in range(1000):
        alice.plan("SELECT 1 AS one")
    with pytest.raises(Refused, match="Too many open tickets") as caught:
        alice.plan("SELECT 1 AS one")
    assert (caught.value.status, caught.value.code) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "RESOURCE_EXHAUSTED")
    assert core.plans[-1].closed
    assert bob.query("SELECT 1 AS one").num_rows == 1


@pytest.mark.rule("LIM-10")
def test_what_was_done_is_not_refused_for_want_of_room(core: Core, alice: RawClient) -> None:
    text = "update t" + " " * 3_000_000
    for _ in range(5):  # two of them would fill what a user may keep
        alice.plan(text)
    assert len(core.statements) == 5
    core.answers[text[6:]] = pa.table({"x": [1]})
    alice.plan(text[6:]), alice.plan(text[6:])
    with pytest.raises(Refused, match="Too many open tickets"):
        alice.plan(text)
    assert len(core.statements) == 5, "what is refused was not done"


def test_a_ticket_can_be_kept_for_longer(alice: RawClient, bob: RawClient) -> None:
    endpoint = alice.plan("SELECT 1 AS one").endpoint[0]
    request = flight.RenewFlightEndpointRequest(endpoint=endpoint).SerializeToString()
    (body,) = alice.action("RenewFlightEndpoint", request)
    renewed = flight.FlightEndpoint.FromString(body)
    assert renewed.ticket == endpoint.ticket
    assert 290 <= renewed.expiration_time.seconds - time.time() <= 301
    assert refusal(lambda: bob.action("RenewFlightEndpoint", request)) == NOT_THERE


# Made before they are fetched


def test_a_constant_is_made_before_it_is_fetched(core: Core, alice: RawClient) -> None:
    core.answers["constant"] = pa.table({"one": [1]})
    info = alice.plan("constant")
    wait_for(lambda: bool(core.results) and core.results[-1].progress().state is StatementState.FINISHED)
    rows, told = read_stream(alice.call("DoGet", info.endpoint[0].ticket))
    assert rows.to_pydict() == {"one": [1]}
    assert [json.loads(each).get("done", False) for each in told] == [False, True], "its one batch is the last"
    assert len(core.statements) == 1, "it ran once"
    assert core.results[-1].closed
    with pytest.raises(Refused) as again:
        alice.fetch(info)
    assert (again.value.status, again.value.code) == NOT_THERE


def test_what_is_wrong_with_a_constant_is_said_when_it_is_fetched(core: Core, alice: RawClient) -> None:
    def fails() -> Iterator[pa.RecordBatch]:
        raise UserError("1/0", code=ErrorCode.DIVISION_BY_ZERO)
        yield

    core.answers["constant"] = FakeAnswer(table=pa.table({"one": [1]}), batches=fails)
    info = alice.plan("constant")
    with pytest.raises(Refused, match="1/0"):
        alice.fetch(info)


def test_a_constant_needs_no_slot_until_it_is_fetched(core: Core, alice: RawClient) -> None:
    core.answers["constant"] = pa.table({"text": ["x" * 10_000]})
    alice.plan("constant")
    wait_for(lambda: bool(core.results) and core.results[-1].progress().state is StatementState.FINISHED)


def test_a_constant_that_nobody_fetches_is_closed_with_its_session(core: Core, alice: RawClient) -> None:
    core.answers["constant"] = pa.table({"text": ["x" * 10_000]})
    alice.plan("constant")
    wait_for(lambda: bool(core.results))
    alice.action("CloseSession", flight.CloseSessionRequest().SerializeToString())
    wait_for(lambda: core.results[-1].closed)


@pytest.mark.rule("LIM-10")
@pytest.mark.parametrize("how", ["value", "text", "columns"])
@pytest.mark.parametrize("polled", [False, True])
def test_a_big_constant_waits_for_its_reader(core: Core, alice: RawClient, how: str, polled: bool) -> None:
    """A value may stand in its row as often as the text has room for its name: counted once."""
    text = "constant" + " " * (17_000 if how == "text" else 0)
    core.answers[text] = pa.table({f"c{number}": ["x"] for number in range(65 if how == "columns" else 1)})
    core.results.clear()
    request = descriptor(sql.CommandStatementQuery(query=text))
    if how == "value":
        core.parameters[text] = pa.schema({"a": pa.string()})
        handle = alice.prepare(text).prepared_statement_handle
        command = sql.CommandPreparedStatementQuery(prepared_statement_handle=handle)
        alice.put(command, pa.table({"a": ["x" * 4_000]}))
        request = descriptor(command)
    if polled:
        info = flight.PollInfo.FromString(alice.call("PollFlightInfo", request)[0]).info
        assert core.results[-1].progress().state != "finished", "its row is not kept without a slot"
    else:
        info = flight.FlightInfo.FromString(alice.call("GetFlightInfo", request)[0])
        time.sleep(0.2)
        assert not core.results
    assert alice.fetch(info).num_rows == 1


def test_more_constants_than_are_made_beforehand(core: Core, alice: RawClient) -> None:
    core.answers["constant"] = pa.table({"one": [1]})
    stuck = [alice.plan("stuck query, constant") for _ in range(16)]
    wait_for(lambda: all(plan.entered.is_set() for plan in core.plans))
    assert alice.query("constant").to_pydict() == {"one": [1]}
    for info in stuck:
        assert cancel(alice, info) == 1
    wait_for(lambda: all(plan.cancelled.is_set() for plan in core.plans[:16]))


# Cancelling


def cancel(client: RawClient, info: flight.FlightInfo) -> int:
    request = flight.CancelFlightInfoRequest(info=info).SerializeToString()
    (body,) = client.action("CancelFlightInfo", request)
    return flight.CancelFlightInfoResult.FromString(body).status


def cancel_query(client: RawClient, info: flight.FlightInfo) -> int:
    request = sql.ActionCancelQueryRequest(info=info.SerializeToString())
    (body,) = client.action("CancelQuery", request)
    return unpacked(body, sql.ActionCancelQueryResult).result


@pytest.mark.parametrize("action", [cancel, cancel_query])
def test_cancel_while_rows_come(core: Core, alice: RawClient, connect: Callable[..., RawClient], action: Any) -> None:
    info = alice.plan("slow")
    call = alice.begin("DoGet", [info.endpoint[0].ticket.SerializeToString()])
    next(call), next(call)
    assert action(connect(basic("alice")), info) == 1
    with pytest.raises(grpc.RpcError) as caught:
        list(call)
    assert caught.value.code() is grpc.StatusCode.CANCELLED
    assert dict(caught.value.trailing_metadata())["x-sqe-error-code"] == "QUERY_CANCELLED"
    wait_for(lambda: core.results[-1].closed)


@pytest.mark.parametrize("action", [cancel, cancel_query])
def test_cancel_before_the_first_row(
    core: Core, alice: RawClient, connect: Callable[..., RawClient], action: Any
) -> None:
    info = alice.plan("stuck query")
    call = alice.begin("DoGet", [info.endpoint[0].ticket.SerializeToString()])
    assert core.plans[-1].entered.wait(5)
    assert action(connect(basic("alice")), info) == 1
    with pytest.raises(grpc.RpcError) as caught:
        list(call)
    assert caught.value.code() is grpc.StatusCode.CANCELLED


@pytest.mark.parametrize("action", [cancel, cancel_query])
def test_cancel_before_it_runs(core: Core, alice: RawClient, action: Any) -> None:
    info = alice.plan("SELECT 1 AS one")
    assert action(alice, info) == 1
    assert core.plans[-1].closed
    assert refusal(lambda: alice.fetch(info)) == NOT_THERE


@pytest.mark.rule("FLT-3")
@pytest.mark.parametrize("action", [cancel, cancel_query])
def test_cancelling_what_is_anothers_looks_like_cancelling_nothing(
    core: Core, alice: RawClient, bob: RawClient, action: Any
) -> None:
    waiting = alice.plan("SELECT 1 AS one")
    running = alice.plan("slow")
    call = alice.begin("DoGet", [running.endpoint[0].ticket.SerializeToString()])
    next(call), next(call)
    nothing = flight.FlightInfo(endpoint=[flight.FlightEndpoint(ticket=ticket(b"x" * 24))])
    done = alice.plan("SELECT 1 AS one")
    alice.fetch(done)
    assert [action(bob, each) for each in (waiting, running, nothing)] == [3, 3, 3]
    assert [action(alice, each) for each in (nothing, done, flight.FlightInfo())] == [3, 3, 3]
    assert not core.results[0].cancelled.is_set()
    assert alice.fetch(waiting).num_rows == 1
    call.cancel()


# Clients that go away


@pytest.mark.parametrize("text", ["slow", "stuck query"])
def test_a_client_that_goes_away_cancels(core: Core, alice: RawClient, text: str) -> None:
    call = alice.begin("DoGet", [alice.plan(text).endpoint[0].ticket.SerializeToString()])
    if text == "slow":
        next(call), next(call)
        ended = lambda: core.results[-1].closed  # noqa: E731
    else:
        assert core.plans[-1].entered.wait(5)
        ended = core.plans[-1].cancelled.is_set
    began = time.monotonic()
    call.cancel()
    wait_for(ended)
    assert time.monotonic() - began < 1


def test_a_connection_that_breaks_cancels(core: Core, connect: Callable[..., RawClient]) -> None:
    client = connect(basic("alice"))
    call = client.begin("DoGet", [client.plan("slow").endpoint[0].ticket.SerializeToString()])
    next(call), next(call)
    client.channel.close()
    wait_for(lambda: core.results[-1].closed, 1)


@pytest.mark.parametrize("call", ["GetFlightInfo", "DoPut"])
def test_a_client_that_leaves_an_update_cancels_it(core: Core, alice: RawClient, call: str) -> None:
    if call == "DoPut":
        command = descriptor(sql.CommandStatementUpdate(query="stuck update"))
        request = flight.FlightData(flight_descriptor=command)
    else:
        request = descriptor(sql.CommandStatementQuery(query="stuck update"))
    running = alice.begin(call, [request.SerializeToString()])
    wait_for(lambda: bool(core.plans) and core.plans[-1].entered.is_set())
    running.cancel()
    wait_for(core.plans[-1].cancelled.is_set, 1)


def begin_endless(client: RawClient, core: Core, call: str) -> Any:
    """Begin a call whose statement is judged, or waits for its turn, until it is cancelled."""
    query = descriptor(sql.CommandStatementQuery(query="endless query"))
    prepare = packed(sql.ActionCreatePreparedStatementRequest(query="endless query"))
    request: Any = {
        "GetFlightInfo": query,
        "PollFlightInfo": query,
        "GetSchema": query,
        "DoPut": flight.FlightData(flight_descriptor=descriptor(sql.CommandStatementUpdate(query="endless update"))),
        "DoAction": flight.Action(type="CreatePreparedStatement", body=prepare),
    }[call]
    running = client.begin(call, [request.SerializeToString()])
    wait_for(lambda: bool(core.plans) and core.plans[-1].entered.is_set())
    return running


@pytest.mark.rule("LIM-7")
@pytest.mark.parametrize("how", ["cancel", "connection"])
@pytest.mark.parametrize("call", ["GetFlightInfo", "PollFlightInfo", "GetSchema", "DoPut", "DoAction"])
def test_a_client_that_leaves_while_its_statement_is_judged_cancels_it(
    core: Core, connect: Callable[..., RawClient], call: str, how: str
) -> None:
    client = connect(basic("alice"))
    running = begin_endless(client, core, call)
    assert not core.plans[-1].cancelled.is_set()
    running.cancel() if how == "cancel" else client.channel.close()
    wait_for(core.plans[-1].cancelled.is_set, 1)


def test_rows_of_parameters_end_with_their_client(core: Core, alice: RawClient) -> None:
    text = "update stuck"
    core.parameters[text] = pa.schema({"1": pa.int64()})
    command = sql.CommandPreparedStatementUpdate(
        prepared_statement_handle=alice.prepare(text).prepared_statement_handle
    )
    core.plans.clear()
    messages = [each.SerializeToString() for each in put_messages(command, pa.table({"1": [1, 2, 3]}))]
    running = alice.begin("DoPut", messages)
    wait_for(lambda: bool(core.plans) and core.plans[-1].entered.is_set())
    running.cancel()
    wait_for(core.plans[-1].cancelled.is_set, 1)
    time.sleep(0.2)
    assert len(core.plans) == 1, "the rows after it never begin"


def test_the_end_of_a_call_ends_nothing_that_its_ticket_stands_for(core: Core, alice: RawClient) -> None:
    for _ in range(50):
        info = alice.plan("slow")
        stream = alice.begin("DoGet", [info.endpoint[0].ticket.SerializeToString()])
        next(stream), next(stream)
        assert not core.plans[-1].cancelled.is_set()
        stream.cancel()


@pytest.mark.parametrize("gone_first", [True, False])
def test_who_goes_away_before_there_is_a_statement(core: Core, gone_first: bool) -> None:
    session, ended = CoreSession(core, "alice"), list[Callable[[], object]]()
    cancelled: list[str] = []
    session.cancel = lambda query_id: bool(cancelled.append(query_id))  # type: ignore[method-assign]
    if gone_first:
        leaving = Leaving(lambda callback, over: False)
    else:
        leaving = Leaving(lambda callback, over: bool(ended.append(callback)) or True)
        ended[0]()
    assert cancelled == []
    with pytest.raises(QueryCancelledError):
        leaving.check()
    statement = leaving.watch(session.begin(StatementRequest(sql="SELECT 1 AS one")))
    assert cancelled == [statement.query_id]


@pytest.mark.parametrize("attempt", range(20))
@pytest.mark.parametrize("how", ["cancel", "connection"])
def test_a_client_that_dies_half_way_writes_nothing(
    core: Core, connect: Callable[..., RawClient], caplog: pytest.LogCaptureFixture, how: str, attempt: int
) -> None:
    """gRPC shows it to the server as the end of the messages, about every second time; the rows were written then."""
    client = connect(basic("alice"))
    messages = put_messages(sql.CommandStatementIngest(table="t"), pa.table({"n": [1, 2, 3]}))
    sent, over = threading.Event(), threading.Event()

    def half() -> Iterator[bytes]:
        for message in messages:
            yield message.SerializeToString()
        sent.set()
        over.wait(20)

    call = client.begin("DoPut", half())
    assert sent.wait(5)
    time.sleep(0.02)
    call.cancel() if how == "cancel" else client.channel.close()
    over.set()
    deadline = time.monotonic() + 0.5  # it may not even have begun
    while not core.ingests_ended and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not core.ingested
    assert not caplog.records, "nothing is wrong with the server"


# Polling


def poll(client: RawClient, request: flight.FlightDescriptor) -> flight.PollInfo:
    return client.one("PollFlightInfo", request, flight.PollInfo)


def test_polling_a_quick_statement(core: Core, alice: RawClient) -> None:
    answer = poll(alice, descriptor(sql.CommandStatementQuery(query="SELECT 1 AS one")))
    assert (answer.progress, answer.HasField("flight_descriptor")) == (1.0, False)
    assert len(core.statements) == 1
    assert alice.fetch(answer.info).to_pydict() == {"one": [1]}
    assert len(core.statements) == 1


class SlowStart:
    """Answers after it was told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from raw_flight import SlowResult

        self.go = threading.Event()

        def iterate(result: Any) -> Any:
            self.go.wait(20)
            if result.cancelled.is_set():
                return
            yield pa.record_batch({"n": [1]})

        monkeypatch.setattr(SlowResult, "__iter__", iterate)


def test_polling_a_slow_statement(
    core: Core, alice: RawClient, bob: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = SlowStart(monkeypatch)
    first = poll(alice, descriptor(sql.CommandStatementQuery(query="slow")))
    assert not first.info.endpoint
    assert pa.ipc.read_schema(pa.py_buffer(first.info.schema)) == pa.schema({"n": pa.int64()})
    assert first.progress == 0.25
    assert first.expiration_time.seconds > time.time() + 200
    assert json.loads(first.info.app_metadata)["tasks_done"] == 1
    assert refusal(lambda: poll(bob, first.flight_descriptor)) == NOT_THERE
    second = poll(alice, first.flight_descriptor)
    assert second.flight_descriptor == first.flight_descriptor
    slow.go.set()
    last = poll(alice, second.flight_descriptor)
    assert (last.progress, last.HasField("flight_descriptor")) == (1.0, False)
    assert alice.fetch(last.info).to_pydict() == {"n": [1]}
    assert len(core.statements) == 1
    assert refusal(lambda: poll(alice, first.flight_descriptor)) == NOT_THERE


def test_two_polls_at_once_run_it_once(core: Core, alice: RawClient, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = SlowStart(monkeypatch)
    first = poll(alice, descriptor(sql.CommandStatementQuery(query="slow")))
    calls = [alice.begin("PollFlightInfo", [first.flight_descriptor.SerializeToString()]) for _ in range(8)]
    for call in calls:
        list(call)
    assert len(core.statements) == 1
    slow.go.set()


def test_a_polled_statement_without_rows(core: Core, alice: RawClient) -> None:
    core.affected = 9
    answer = poll(alice, descriptor(sql.CommandStatementQuery(query="update t")))
    assert (answer.progress, answer.info.total_records) == (1.0, 9)
    assert alice.fetch(answer.info).num_columns == 0
    assert len(core.statements) == 1


def test_a_polled_statement_that_fails_says_so(core: Core, alice: RawClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(session: Any, request: Any, query_id: str) -> Any:
        raise UserError("Division by zero")

    monkeypatch.setattr(CoreSession, "run", fail)
    with pytest.raises(Refused, match="Division by zero"):
        poll(alice, descriptor(sql.CommandStatementQuery(query="SELECT 1 AS one")))


def test_cancelling_a_polled_statement(core: Core, alice: RawClient, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = SlowStart(monkeypatch)
    first = poll(alice, descriptor(sql.CommandStatementQuery(query="slow")))
    running = flight.FlightInfo(
        endpoint=[flight.FlightEndpoint(ticket=flight.Ticket(ticket=first.flight_descriptor.cmd))]
    )
    assert cancel(alice, running) == 1
    assert core.results[-1].cancelled.is_set()
    slow.go.set()


def test_cancelling_what_poll_answered(core: Core, alice: RawClient, bob: RawClient, monkeypatch: Any) -> None:
    """The info of a poll that is not done has no endpoint; its query id says which statement it is."""
    slow = SlowStart(monkeypatch)
    first = poll(alice, descriptor(sql.CommandStatementQuery(query="slow")))
    assert cancel(alice, first.info) == 1
    assert core.results[-1].cancelled.is_set()
    slow.go.set()


# Options of the session


def options(client: RawClient) -> dict[str, str]:
    (body,) = client.action("GetSessionOptions", flight.GetSessionOptionsRequest().SerializeToString())
    answer = flight.GetSessionOptionsResult.FromString(body)
    return {name: value.string_value for name, value in answer.session_options.items()}


def set_options(client: RawClient, **values: Any) -> dict[str, int]:
    request = flight.SetSessionOptionsRequest()
    for name, value in values.items():
        option = request.session_options[name]
        match value:
            case bool():
                option.bool_value = value
            case int():
                option.int64_value = value
            case float():
                option.double_value = value
            case str():
                option.string_value = value
            case list():
                option.string_list_value.values.extend(value)
    (body,) = client.action("SetSessionOptions", request.SerializeToString())
    return {name: error.value for name, error in flight.SetSessionOptionsResult.FromString(body).errors.items()}


INVALID_NAME, INVALID_VALUE = flight.SetSessionOptionsResult.INVALID_NAME, flight.SetSessionOptionsResult.INVALID_VALUE


def test_options(core: Core, alice: RawClient, bob: RawClient) -> None:
    kept = {"parallel_endpoints": "1"}
    assert options(alice) == {
        "catalog": "iceberg",
        "schema": "default",
        "dialect": "sqe",
        "query_max_run_time": "",
        **kept,
    }
    assert set_options(alice, catalog="other", schema="a.b", dialect="trino", query_max_run_time=5) == {}
    assert options(alice) == {
        "catalog": "other",
        "schema": "a.b",
        "dialect": "trino",
        "query_max_run_time": "5",
        **kept,
    }
    assert options(bob)["dialect"] == "sqe"
    # Without a value an option goes back to its default.
    assert set_options(alice, dialect=None) == {}
    assert options(alice)["dialect"] == ""


def test_a_schema_may_be_a_list(alice: RawClient) -> None:
    assert set_options(alice, schema=["x", "y"]) == {}
    assert options(alice)["schema"] == "x.y"


def test_options_that_cannot_be_set(alice: RawClient) -> None:
    wrong = set_options(
        alice, nope="x", dialect="bad", catalog="missing", schema="missing", query_max_run_time=True, **{"": "x"}
    )
    assert wrong == {
        "nope": INVALID_NAME,
        "": INVALID_NAME,
        "dialect": INVALID_VALUE,
        "catalog": INVALID_VALUE,
        "schema": INVALID_VALUE,
    }
    assert options(alice)["query_max_run_time"] == "true"
    assert set_options(alice, catalog=None, schema="") == {"catalog": INVALID_VALUE, "schema": INVALID_VALUE}
    assert options(alice)["catalog"] == "iceberg"


def test_actions_take_requests_packed_and_bare(alice: RawClient) -> None:
    """The ones of Flight come bare from most clients and packed from some."""
    request = flight.GetSessionOptionsRequest()
    assert alice.action("GetSessionOptions", request.SerializeToString()) == alice.action("GetSessionOptions", request)


# Requests with a name


@pytest.mark.parametrize(
    ("label", "known"),
    [("req-1.a:b_C", True), ("x" * 128, True), ("x" * 129, False), ("a b", False), ('a"}', False), ("", False)],
)
def test_what_a_client_calls_its_request(core: Core, alice: RawClient, label: str, known: bool) -> None:
    alice.metadata += (("x-request-id", label),)
    alice.query("SELECT 1 AS one")
    assert core.statements[-1].request_id == (label if known else None)
    with pytest.raises(Refused) as caught:
        alice.action("nonsense")
    assert caught.value.trailing.get("x-request-id") == (label if known else None)
