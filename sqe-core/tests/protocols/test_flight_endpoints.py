"""Results with several endpoints, which a client asks for: tickets, cancelling, and what is left of them."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pyarrow as pa
import pytest
from raw_flight import Core, RawClient, Refused, basic, descriptor, read_stream, unpacked

from sqe_core.protocols.flight.server import FlightServer
from sqe_core.protocols.flight.wire import flight_pb2 as flight
from sqe_core.protocols.flight.wire import flight_sql_pb2 as sql

MANY = pa.table({"n": range(20_000)})
NOT_THERE = (grpc.StatusCode.NOT_FOUND, "INVALID_ARGUMENTS")


@pytest.fixture(autouse=True)
def many(core: Core) -> None:
    core.answers |= {"many": MANY, "many ORDER BY n": MANY}


@pytest.fixture
def greedy(alice: RawClient) -> RawClient:
    """Alice, who asks for four endpoints with each call."""
    alice.metadata += (("x-sqe-endpoints", "4"),)
    return alice


def begin(client: RawClient, endpoint: flight.FlightEndpoint) -> Any:
    return client.begin("DoGet", [endpoint.ticket.SerializeToString()])


def fetch(client: RawClient, endpoint: flight.FlightEndpoint) -> pa.Table:
    return read_stream(client.call("DoGet", endpoint.ticket))[0]


def cancel(client: RawClient, info: flight.FlightInfo) -> int:
    (body,) = client.action("CancelFlightInfo", flight.CancelFlightInfoRequest(info=info).SerializeToString())
    return flight.CancelFlightInfoResult.FromString(body).status


def only(info: flight.FlightInfo, number: int) -> flight.FlightInfo:
    return flight.FlightInfo(endpoint=[info.endpoint[number]], app_metadata=info.app_metadata)


# Asking for them


@pytest.mark.rule("FLT-6")
def test_several_endpoints_on_this_very_server(core: Core, greedy: RawClient) -> None:
    info = greedy.plan("many")
    assert len(info.endpoint) == 4
    assert not any(endpoint.location for endpoint in info.endpoint)
    assert not any(endpoint.HasField("expiration_time") for endpoint in info.endpoint)
    assert not info.ordered
    assert info.app_metadata.decode() == core.plans[-1].query_id
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda endpoint: fetch(greedy, endpoint), info.endpoint))
    assert all(part.schema == MANY.schema for part in found)
    assert sorted(pa.concat_tables(found)["n"].to_pylist()) == list(range(20_000))
    assert len(core.statements) == 1


def test_one_after_the_other_they_are_complete_too(greedy: RawClient) -> None:
    found = [fetch(greedy, endpoint) for endpoint in greedy.plan("many").endpoint]
    assert sorted(pa.concat_tables(found)["n"].to_pylist()) == list(range(20_000))


def test_the_session_says_how_many_and_a_call_may_say_otherwise(
    core: Core, alice: RawClient, bob: RawClient, connect: Callable[..., RawClient]
) -> None:
    assert len(alice.plan("many").endpoint) == 1, "unless asked"
    core.sessions[0].set_properties({"parallel_endpoints": "3"})
    assert len(alice.plan("many").endpoint) == 3
    assert len(bob.plan("many").endpoint) == 1
    modest = connect(basic("alice"))
    modest.metadata += (("x-sqe-endpoints", "1"),)
    assert len(modest.plan("many").endpoint) == 1


@pytest.mark.parametrize("asked", ["0", "-1", "17", "999", "4.0", "nonsense", "", " 4", "1" * 5000])
def test_a_number_that_is_none_is_refused(core: Core, alice: RawClient, asked: str) -> None:
    alice.metadata += (("x-sqe-endpoints", asked),)
    with pytest.raises(Refused, match="x-sqe-endpoints must be a number from 1 to 16") as caught:
        alice.plan("many")
    assert (caught.value.status, caught.value.code) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_ARGUMENTS")
    assert not core.statements


def test_rows_in_order_have_one_endpoint(greedy: RawClient) -> None:
    info = greedy.plan("many ORDER BY n")
    assert len(info.endpoint) == 1
    assert greedy.fetch(info) == MANY


def test_what_has_no_rows_and_what_sqe_knows_have_one_endpoint(core: Core, greedy: RawClient) -> None:
    assert len(greedy.plan("update t").endpoint) == 1
    assert len(greedy.info(sql.CommandGetCatalogs()).endpoint) == 1
    assert len(core.statements) == 1


def test_a_prepared_statement_has_them_too(greedy: RawClient) -> None:
    handle = greedy.prepare("many").prepared_statement_handle
    info = greedy.info(sql.CommandPreparedStatementQuery(prepared_statement_handle=handle))
    assert len(info.endpoint) == 4
    assert sum(fetch(greedy, endpoint).num_rows for endpoint in info.endpoint) == 20_000


def test_what_is_polled_for_has_one(greedy: RawClient) -> None:
    command = descriptor(sql.CommandStatementQuery(query="many"))
    info = greedy.one("PollFlightInfo", command, flight.PollInfo).info
    assert len(info.endpoint) == 1
    assert greedy.fetch(info) == MANY


def test_one_of_several_can_be_polled_for(core: Core, greedy: RawClient) -> None:
    info = greedy.plan("many")
    again = flight.FlightDescriptor(type=flight.FlightDescriptor.CMD, cmd=info.endpoint[2].ticket.ticket)
    polled = greedy.one("PollFlightInfo", again, flight.PollInfo)
    assert polled.progress == 1.0
    found = [fetch(greedy, endpoint) for endpoint in info.endpoint]
    assert sum(part.num_rows for part in found) == 20_000
    assert len(core.statements) == 1


def test_each_stream_counts_what_came_through_it(greedy: RawClient) -> None:
    told = []
    for endpoint in greedy.plan("many").endpoint:
        rows, messages = read_stream(greedy.call("DoGet", endpoint.ticket))
        last = json.loads(messages[-1])
        assert last["done"] is True
        assert last["rows"] == rows.num_rows
        told.append(last)
    assert sum(each["rows"] for each in told) == 20_000
    assert len({each["query_id"] for each in told}) == 1


# Tickets


@pytest.mark.rule("FLT-3")
def test_each_ticket_is_random_bound_and_used_once(
    greedy: RawClient, bob: RawClient, connect: Callable[..., RawClient], server: FlightServer
) -> None:
    other_session = connect(basic("alice"))
    other_session.metadata += (("x-session-id", "other"),)
    info = greedy.plan("many")
    handles = [
        unpacked(endpoint.ticket.ticket, sql.TicketStatementQuery).statement_handle for endpoint in info.endpoint
    ]
    assert len(set(handles)) == 4
    assert all(len(handle) >= 16 for handle in handles)
    common = [sum(a == b for a, b in zip(handles[0], other, strict=True)) for other in handles[1:]]
    assert max(common) < 8, "one tells nothing about the others"

    def refused(client: RawClient, number: int) -> tuple[Any, ...]:
        with pytest.raises(Refused) as caught:
            fetch(client, info.endpoint[number])
        return caught.value.status, caught.value.code, caught.value.text

    outcomes = {refused(client, number) for client in (bob, other_session) for number in range(4)}
    fetch(greedy, info.endpoint[0])
    outcomes.add(refused(greedy, 0))
    tickets: Any = server._statements.tickets
    tickets._entries[handles[1]].expires = 0.0
    outcomes.add(refused(greedy, 1))
    assert len(outcomes) == 1
    assert outcomes.pop()[:2] == NOT_THERE
    # What strangers tried has used nothing up.
    assert fetch(greedy, info.endpoint[2]).schema == MANY.schema


def test_tickets_that_expire_forget_the_statement_when_the_last_one_does(
    core: Core, greedy: RawClient, server: FlightServer
) -> None:
    greedy.plan("many")
    tickets: Any = server._statements.tickets
    entries = list(tickets._entries.values())
    for entry in entries[:3]:
        entry.expires = 0.0
    tickets.sweep()
    parts = core.plans[-1].parts
    assert [part.closed for part in parts] == [True, True, True, False]
    entries[3].expires = 0.0
    tickets.sweep()
    assert all(part.closed for part in parts)
    assert not core.statements


@pytest.mark.rule("LIM-10")
def test_more_tickets_than_a_session_may_have_are_refused_together(
    core: Core, greedy: RawClient, server: FlightServer
) -> None:
    tickets: Any = server._statements.tickets
    tickets._most_per_session = 6
    greedy.plan("many")
    with pytest.raises(Refused, match="Too many open tickets"):
        greedy.plan("many")
    assert all(part.closed for part in core.plans[-1].parts)
    assert len(tickets) == 4, "none of half a result"


def test_a_session_that_ends_takes_all_of_them_with_it(core: Core, greedy: RawClient, server: FlightServer) -> None:
    greedy.plan("many")
    greedy.action("CloseSession", flight.CloseSessionRequest().SerializeToString())
    assert all(part.closed for part in core.plans[-1].parts)
    assert len(server._statements.tickets) == 0


# Ending


@pytest.mark.parametrize("number", range(4))
def test_cancelling_one_before_it_runs_cancels_all(core: Core, greedy: RawClient, number: int) -> None:
    info = greedy.plan("many")
    assert cancel(greedy, only(info, number)) == flight.CANCEL_STATUS_CANCELLED
    assert all(part.closed for part in core.plans[-1].parts)
    for endpoint in info.endpoint:
        with pytest.raises(Refused):
            fetch(greedy, endpoint)
    assert not core.statements


@pytest.mark.parametrize("numbers", [[0], [1], [2], [0, 1, 2, 3]])
def test_cancelling_any_of_them_ends_what_runs(core: Core, greedy: RawClient, numbers: list[int]) -> None:
    """0 and 1 are fetched, 2 and 3 not yet."""
    info = greedy.plan("slow")
    first, second = begin(greedy, info.endpoint[0]), begin(greedy, info.endpoint[1])
    next(first), next(second)
    named = flight.FlightInfo(endpoint=[info.endpoint[number] for number in numbers])
    assert cancel(greedy, named) == flight.CANCEL_STATUS_CANCELLED
    for call in (first, second):
        with pytest.raises(grpc.RpcError) as caught:
            list(call)
        assert caught.value.code() is grpc.StatusCode.CANCELLED
    assert core.results[-1].cancelled.is_set()
    assert core.results[-1].closed


@pytest.mark.rule("FLT-3")
def test_one_of_anothers_endpoints_cannot_be_cancelled(core: Core, greedy: RawClient, bob: RawClient) -> None:
    info = greedy.plan("many")
    for number in range(4):
        assert cancel(bob, only(info, number)) == flight.CANCEL_STATUS_NOT_CANCELLABLE
    assert cancel(bob, info) == flight.CANCEL_STATUS_NOT_CANCELLABLE
    assert sum(fetch(greedy, endpoint).num_rows for endpoint in info.endpoint) == 20_000


def test_a_client_that_leaves_one_endpoint_ends_the_statement(core: Core, greedy: RawClient) -> None:
    info = greedy.plan("slow")
    call = begin(greedy, info.endpoint[0])
    next(call), next(call)
    ended = threading.Event()
    result = core.results[-1]
    call.add_callback(ended.set)
    call.cancel()
    assert ended.wait(5)
    assert result.cancelled.wait(5)


def test_keeping_one_for_longer(greedy: RawClient) -> None:
    info = greedy.plan("many")
    for endpoint in info.endpoint:
        request = flight.RenewFlightEndpointRequest(endpoint=endpoint).SerializeToString()
        (body,) = greedy.action("RenewFlightEndpoint", request)
        assert flight.FlightEndpoint.FromString(body).ticket == endpoint.ticket


def test_an_older_cancel_takes_them_too(core: Core, greedy: RawClient) -> None:
    request = sql.ActionCancelQueryRequest(info=greedy.plan("many").SerializeToString())
    (body,) = greedy.action("CancelQuery", request)
    assert unpacked(body, sql.ActionCancelQueryResult).result == sql.ActionCancelQueryResult.CANCEL_RESULT_CANCELLED
    assert all(part.closed for part in core.plans[-1].parts)
