"""Clients that want the server to suffer: what they can make it hold is bounded, and others are served meanwhile."""

from __future__ import annotations

import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pyarrow as pa
import pytest
from trino_client import Connection, HttpRefused, Serve, StatementFailed

from sqe_core.spi import BearerCredential, Endpoint, ErrorCode, ProtocolContext, RequestLimits, ResourcesError, Secret
from sqe_core.testing import FakeAnswer, FakeGateway
from sqe_core.testing.protocol import soon


def dial(endpoint: Endpoint) -> socket.socket:
    return socket.create_connection((endpoint.host, endpoint.port), timeout=10)


def ended(connection: socket.socket) -> bool:
    """Whether the server closed a connection; waits for it."""
    try:
        return connection.recv(1 << 16) == b"" or ended(connection)
    except ConnectionError:
        return True
    except TimeoutError:
        return False


def post(endpoint: Endpoint, size: int) -> bytes:
    """The head of a request that is logged in."""
    login = f"Authorization: {Connection(endpoint).headers['Authorization']}"
    return f"POST /v1/statement HTTP/1.1\r\nHost: x\r\n{login}\r\nContent-Length: {size}\r\n\r\n".encode()


def answers(endpoint: Endpoint) -> bool:
    return list(Connection(endpoint).rows("SELECT 1 AS one")) == [{"one": 1}]


@pytest.mark.rule("LIM-2")
def test_a_slow_head_is_not_waited_for(serve: Serve) -> None:
    """Neither before the first request nor before a later one of the same connection."""
    endpoint = serve(head_timeout_secs=1)
    with dial(endpoint) as slow, dial(endpoint) as silent, dial(endpoint) as second:
        second.sendall(b"GET /v1/info HTTP/1.1\r\nHost: x\r\n\r\n")
        assert second.recv(1 << 16).startswith(b"HTTP/1.1 200")
        slow.sendall(b"POST /v1/statement HTTP/1.1\r\nX-A: ")
        second.sendall(b"GET /v1/info HTTP/1.1\r\n")
        began = time.monotonic()
        while time.monotonic() - began < 3:
            try:
                slow.sendall(b"a")
                second.sendall(b"X")
            except OSError:
                break
            time.sleep(0.1)
        assert time.monotonic() - began < 3
        assert ended(slow)
        assert ended(second)
        assert ended(silent)
    assert answers(endpoint)


@pytest.mark.rule("LIM-2")
def test_a_slow_body_is_not_waited_for(serve: Serve, gateway: FakeGateway) -> None:
    endpoint = serve(body_timeout_secs=1)
    with dial(endpoint) as slow:
        slow.sendall(post(endpoint, 100) + b"SELECT")
        assert b"did not arrive in time" in slow.recv(1 << 16)
    assert not gateway.statements


@pytest.mark.rule("LIM-2")
def test_strangers_make_room_for_others(serve: Serve) -> None:
    """The oldest of those who have not logged in go first; who has logged in stays."""
    endpoint = serve(max_strangers_per_address=8)
    known = Connection(endpoint)
    assert list(known.rows("SELECT 1 AS one"))
    with ExitStack() as stack:
        strangers = [stack.enter_context(dial(endpoint)) for _ in range(30)]
        assert ended(strangers[0])
        assert list(known.rows("SELECT 1 AS one"))
        assert answers(endpoint)


@pytest.mark.rule("LIM-2")
def test_bodies_before_a_login_are_not_read(endpoint: Endpoint, gateway: FakeGateway) -> None:
    stranger = Connection(endpoint, BearerCredential(token=Secret("wrong")))
    try:
        status, _, _ = stranger.send("POST", "/v1/statement", b"x" * (64 << 20))
    except OSError:
        return  # it was closed while we were still sending
    assert status == 401


@pytest.mark.rule("LIM-3")
def test_a_text_beyond_the_bound_has_trinos_error(serve: Serve, gateway: FakeGateway) -> None:
    """20 MB of SQL, announced or not: as little of it is read as can be."""
    endpoint = serve(context=ProtocolContext(limits=RequestLimits(sql_bytes=1 << 20)))
    with pytest.raises((StatementFailed, OSError)) as caught:
        Connection(endpoint).ask("POST", "/v1/statement", b"SELECT '" + b"x" * (20 << 20) + b"'")
    if isinstance(caught.value, StatementFailed):
        assert caught.value.error["errorName"] == "QUERY_TEXT_TOO_LARGE"
    assert not gateway.statements
    assert answers(endpoint)


def test_a_text_that_is_none(endpoint: Endpoint) -> None:
    with pytest.raises(StatementFailed, match="UTF-8"):
        Connection(endpoint).ask("POST", "/v1/statement", b"SELECT '\xff'")


@pytest.mark.parametrize(
    "path", ["/", "/v1", "/v1/statement", "/v1/statement/x", "/ui/", "/v1/query/../info", "/v1/statement/queued/a/b/c"]
)
def test_what_is_not_there(endpoint: Endpoint, path: str) -> None:
    assert Connection(endpoint).send("GET", path)[0] == 404


def test_rubbish_is_no_request(endpoint: Endpoint) -> None:
    for rubbish in (b"\x16\x03\x01\x02\x00", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x00" * 1000):
        with dial(endpoint) as connection:
            connection.sendall(rubbish)
            connection.shutdown(socket.SHUT_WR)
            assert ended(connection)
    assert answers(endpoint)


def test_200_clients_at_once(endpoint: Endpoint, gateway: FakeGateway) -> None:
    gateway.answers["some"] = pa.table({"n": list(range(1000))})
    gateway.answers["others"] = pa.table({"n": list(range(1000, 2000))})

    def client(number: int) -> bool:
        connection = Connection(endpoint)
        for _ in range(3):
            first = 1000 * (number % 2)
            rows = [row["n"] for row in connection.rows("others" if first else "some")]
            if rows != list(range(first, first + 1000)):
                return False
        return True

    with ThreadPoolExecutor(200) as pool:
        assert all(pool.map(client, range(200)))
    assert soon(lambda: all(result.closed for result in gateway.results))


@pytest.mark.rule("LIM-8", "TRI-4")
def test_abandoned_statements_are_ended(serve: Serve, gateway: FakeGateway) -> None:
    """Nobody comes for their pages: they are cancelled, and what they held is free."""
    gateway.answers["large"] = pa.table({"text": ["x" * 1000] * 20_000})
    gateway.answers["long"] = FakeAnswer(table=pa.table({"n": [1]}), waits=True)
    endpoint = serve(context=ProtocolContext(stream_idle_secs=1), page_bytes=1 << 20)
    connections = [Connection(endpoint) for _ in range(6)]
    pages = [
        connection.ask("POST", "/v1/statement", sql)
        for connection, sql in zip(connections, [b"large", b"long"] * 3, strict=True)
    ]
    assert soon(lambda: all(result.closed or result.cancelled.is_set() for result in gateway.results))
    for connection, page in zip(connections, pages, strict=True):
        assert soon(lambda at=page["nextUri"], of=connection: of.send("GET", at)[0] == 404)


def test_who_polls_is_not_gone(serve: Serve, gateway: FakeGateway) -> None:
    gateway.answers["long"] = FakeAnswer(table=pa.table({"n": [1]}), waits=True)
    connection = Connection(serve(context=ProtocolContext(stream_idle_secs=1)))
    page = connection.ask("POST", "/v1/statement", b"long")
    for _ in range(5):
        page = connection.ask("GET", page["nextUri"] + "?maxWait=400ms")
    assert not gateway.results[-1].cancelled.is_set()
    connection.cancel()


@pytest.mark.rule("LIM-10")
def test_statements_are_bounded(serve: Serve, gateway: FakeGateway) -> None:
    """Those that ended make room; beyond that a client is told when to come back."""
    gateway.answers["long"] = FakeAnswer(table=pa.table({"n": [1]}), waits=True)
    endpoint = serve(max_statements=3)
    for _ in range(5):
        assert answers(endpoint)
    begun = [Connection(endpoint) for _ in range(3)]
    for connection in begun:
        connection.ask("POST", "/v1/statement", b"long")
    with pytest.raises(HttpRefused) as caught:
        answers(endpoint)
    assert caught.value.status == 429
    assert caught.value.headers["Retry-After"] == "1"
    for connection in begun:
        connection.cancel()


def test_logins_are_slowed_down(endpoint: Endpoint, gateway: FakeGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise ResourcesError("Too many attempts", code=ErrorCode.RESOURCE_EXHAUSTED, retry_after_secs=7)

    monkeypatch.setattr(gateway, "authenticate", refuse)
    with pytest.raises(HttpRefused) as caught:
        answers(endpoint)
    assert (caught.value.status, caught.value.headers["Retry-After"]) == (429, "7")


def test_a_killed_client_costs_nothing(endpoint: Endpoint, gateway: FakeGateway) -> None:
    """It goes away while it waits for its answer."""
    gateway.answers["long"] = FakeAnswer(table=pa.table({"n": [1]}), waits=True)
    before = threading.active_count()
    for number in range(20):
        with dial(endpoint) as connection:
            connection.sendall(post(endpoint, 4) + b"long")
            assert soon(lambda so_far=number: len(gateway.results) > so_far)
    for result in gateway.results:
        result.cancel()
    assert soon(lambda: all(result.closed for result in gateway.results))
    # A thread of each statement is kept for the next one.
    assert threading.active_count() <= before + 20 + 2
    assert answers(endpoint)
