"""Whoever cannot log in keeps nobody out: threads, connections and memory are bounded before the login (LIM-2)."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import grpc
import pytest
from raw_flight import Core, RawClient, Refused, basic
from testbed.clocks import wait_for

from sqe_core.protocols.flight import places, sign_in
from sqe_core.protocols.flight import server as server_module
from sqe_core.protocols.flight.call_pools import CallPool
from sqe_core.protocols.flight.places import LoginPlaces
from sqe_core.protocols.flight.server import FlightConfig, FlightServer, TransportConfig
from sqe_core.protocols.flight.wire import flight_pb2 as flight
from sqe_core.spi.auth import BasicCredential
from sqe_core.spi.errors import InvalidCredentialsError, ResourcesError
from sqe_core.spi.protocol import Endpoint, ProtocolContext

PATIENCE_SECS = 20
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0" + b"\0\0\0\4\1\0\0\0\0"
HERE = "192.0.2.1"
FAR = "198.51.100.7"
LOGIN = flight.HandshakeRequest(payload=flight.BasicAuth(username="bob", password="builder").SerializeToString())


class Silence:
    """A client's messages that never come."""

    def __init__(self) -> None:
        self.over = threading.Event()

    def __iter__(self) -> Iterator[bytes]:
        self.over.wait(2 * PATIENCE_SECS)
        yield from ()


@pytest.fixture
def silence() -> Iterator[Silence]:
    made = Silence()
    yield made
    made.over.set()


@pytest.fixture
def server(context: ProtocolContext, monkeypatch: pytest.MonkeyPatch) -> Iterator[FlightServer]:
    """Nobody is ended for being slow while a test runs, and users have no more threads than one address may wait in."""
    monkeypatch.setattr(server_module, "_MOST_CALLS", places.LOGINS_HERE_OF_ADDRESS)
    made = FlightServer(FlightConfig(auth_handshake_timeout_secs=60), context)
    yield made
    made.stop(0)


def refusal(call: grpc.Call) -> Refused:
    with pytest.raises(grpc.RpcError) as caught:
        list(call)
    return Refused(caught.value)


# Threads


@pytest.mark.rule("LIM-2")
def test_handshakes_without_a_login_take_no_thread_of_a_user(
    connect: Callable[..., RawClient], silence: Silence, alice: RawClient
) -> None:
    nobody = connect()
    calls = [nobody.begin("Handshake", silence, timeout=60) for _ in range(100)]
    refused = [call for call in calls if not _waits(call, calls)]
    assert len(refused) == 100 - places.LOGINS_HERE_OF_ADDRESS
    for call in refused:
        told = refusal(call)
        assert (told.status, told.code) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "RESOURCE_EXHAUSTED")
        assert told.trailing["retry-after"] == "1"
        assert "send the login in the header" in told.text
    assert alice.query("SELECT 1 AS one").num_rows == 1
    assert nobody.call("Handshake", metadata=(("authorization", basic("alice")),))
    for call in calls:
        call.cancel()


def _waits(call: grpc.Future, calls: list[grpc.Future]) -> bool:
    wait_for(lambda: sum(each.done() for each in calls) >= len(calls) - places.LOGINS_HERE_OF_ADDRESS)
    return not call.done()


@pytest.mark.rule("LIM-2")
def test_calls_beyond_the_bound_get_our_code(
    core: Core, silence: Silence, monkeypatch: pytest.MonkeyPatch, context: ProtocolContext
) -> None:
    monkeypatch.setattr(server_module, "_MOST_CALLS", 2)
    server = FlightServer(FlightConfig(), context)
    try:
        address = f"127.0.0.1:{server.start(core).port}"
        with grpc.insecure_channel(address) as channel:
            alice = RawClient(channel, (("authorization", basic("alice")),))
            held = [alice.begin("DoPut", silence) for _ in range(2)]
            pools = server._pools
            assert pools is not None
            wait_for(lambda: pools.users.full)
            for name in ("GetFlightInfo", "DoGet", "Handshake", "DoAction"):
                told = refusal(alice.begin(name, []))
                assert (told.status, told.code) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "RESOURCE_EXHAUSTED"), name
                assert told.text == "The server has 2 calls open, the most that it takes (try again later)"
                assert told.trailing["retry-after"] == "1"
            # Threads of their own: who logs in by message does so still.
            assert RawClient(channel).call("Handshake", LOGIN)
            for call in held:
                call.cancel()
            silence.over.set()
            wait_for(lambda: not pools.users.full)
            assert alice.query("SELECT 1 AS one").num_rows == 1
    finally:
        server.stop(0)


def test_a_pool_knows_how_many_calls_it_has() -> None:
    pool = CallPool(1, 1, "test")
    over = threading.Event()
    first = pool.submit(over.wait, PATIENCE_SECS)
    assert not pool.full
    second = pool.submit(over.wait, PATIENCE_SECS)
    assert pool.full
    over.set()
    assert first.result()
    assert second.result()
    wait_for(lambda: not pool.full)
    pool.shutdown()


# Messages


@pytest.mark.rule("LIM-2")
def test_one_address_does_not_take_every_turn() -> None:
    turns = LoginPlaces()
    with ExitStack() as held:
        held.enter_context(turns.one(HERE, 0))
        with pytest.raises(ResourcesError) as caught, turns.one(HERE, 0):
            pass
        assert caught.value.retry_after_secs == 1
        with turns.one(FAR, 0), pytest.raises(ResourcesError), turns.one("203.0.113.5", 0):
            pass
        held.enter_context(turns.one("203.0.113.5", 0))
    with turns.one(HERE, 0):
        pass


@pytest.mark.rule("LIM-2")
def test_a_network_of_ipv6_is_one_address() -> None:
    turns = LoginPlaces()
    with turns.one("2001:db8::1", 0):
        with pytest.raises(ResourcesError), turns.one("2001:db8::ffff:2", 0):
            pass
        with turns.one("2001:db8:0:1::1", 0):
            pass


def test_who_waits_gets_the_next_turn() -> None:
    turns = LoginPlaces()
    came = threading.Event()

    def wait() -> None:
        with turns.one(HERE, PATIENCE_SECS):
            came.set()

    with turns.one(HERE, 0):
        waiting = threading.Thread(target=wait)
        waiting.start()
        wait_for(lambda: turns.here._taken[HERE] == 2)
        assert not came.is_set()
    assert came.wait(PATIENCE_SECS)
    waiting.join()
    assert not turns.here._taken
    assert not turns._of_address._taken


@pytest.mark.rule("LIM-2")
def test_few_of_an_address_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many turns there are: so nobody waits in this test."""
    for name in ("_MOST_LOGINS", "_LOGINS_OF_ADDRESS"):
        monkeypatch.setattr(places, name, 2 * places.LOGINS_HERE_OF_ADDRESS)
    turns = LoginPlaces()
    with ExitStack() as held:
        for _ in range(places.LOGINS_HERE_OF_ADDRESS):
            held.enter_context(turns.one(HERE, 0))
        with pytest.raises(ResourcesError), turns.one(HERE, 0):
            pass
        with turns.one(FAR, 0):
            pass


@pytest.mark.rule("LIM-2")
def test_a_long_message_is_not_parsed_and_not_kept(core: Core, nobody: RawClient) -> None:
    padded = LOGIN.SerializeToString() + b"\x7a" + b"\x80\x80\x04" + b"x" * (64 << 10)  # an unknown field
    assert flight.HandshakeRequest.FromString(padded).payload
    with pytest.raises(Refused) as caught:
        nobody.call("Handshake", padded)
    assert caught.value.status is grpc.StatusCode.UNAUTHENTICATED
    assert not core.logins
    with pytest.raises(InvalidCredentialsError) as error:
        sign_in.credential_of_message(iter([padded]))
    frame = error.tb
    while frame is not None:
        if frame.tb_frame.f_code.co_name == "credential_of_message":
            assert not frame.tb_frame.f_locals["data"], "an error that is told later would keep it"
        frame = frame.tb_next


@pytest.mark.rule("LIM-2")
def test_a_turn_lasts_until_the_login_was_read(
    core: Core, connect: Callable[..., RawClient], silence: Silence, server: FlightServer
) -> None:
    first, second = connect(), connect()
    held = first.begin("Handshake", silence, timeout=60)
    rpcs = server._rpcs
    assert rpcs is not None
    wait_for(lambda: bool(rpcs._login_places._of_address._taken))
    login = second.begin("Handshake", [LOGIN.SerializeToString()], timeout=60)
    wait_for(lambda: rpcs._login_places.here._taken.total() == 2)
    assert not core.logins
    held.cancel()
    assert list(login)
    # That a client went away may be told as the end of its messages, and so as no credential.
    assert [type(credential) for credential, _ in core.logins].count(BasicCredential) == 1


# Connections


@pytest.fixture
def crowded(core: Core, context: ProtocolContext) -> Iterator[Endpoint]:
    server = FlightServer(FlightConfig(transport=TransportConfig(max_connections=1)), context)
    yield server.start(core)
    server.stop(0)


def channel_to(endpoint: Endpoint) -> grpc.Channel:
    return grpc.insecure_channel(
        f"127.0.0.1:{endpoint.port}", options=[("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)]
    )


def is_open(connection: socket.socket) -> bool:
    try:
        while connection.recv(1 << 16):
            pass
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False


@pytest.mark.rule("LIM-2")
@pytest.mark.parametrize("sent", [b"", PREFACE[:10], PREFACE], ids=["nothing", "half a preface", "a preface"])
def test_connections_without_a_call_keep_nobody_out(crowded: Endpoint, sent: bytes) -> None:
    with ExitStack() as opened:
        strangers = []
        for _ in range(120):
            stranger = opened.enter_context(socket.create_connection(("127.0.0.1", crowded.port)))
            stranger.sendall(sent)
            stranger.setblocking(False)
            strangers.append(stranger)
        wait_for(lambda: sum(map(is_open, strangers)) <= 16)
        alice = RawClient(opened.enter_context(channel_to(crowded)), (("authorization", basic("alice")),))

        def is_in() -> bool:
            """What has ended may be so for gRPC a little later."""
            try:
                return alice.query("SELECT 1 AS one").num_rows == 1
            except Refused:
                return False

        wait_for(is_in)


@pytest.mark.rule("LIM-2")
def test_a_failed_login_has_no_place(crowded: Endpoint) -> None:
    with ExitStack() as opened:
        for header in (None, basic("alice", "wrong"), "Bearer wrong"):
            stranger = RawClient(
                opened.enter_context(channel_to(crowded)), (("authorization", header),) if header else ()
            )
            for name in ("ListActions", "Handshake"):
                with pytest.raises(Refused) as caught:
                    stranger.call(name, b"")
                assert caught.value.status is grpc.StatusCode.UNAUTHENTICATED
        alice = RawClient(opened.enter_context(channel_to(crowded)), (("authorization", basic("alice")),))
        assert alice.query("SELECT 1 AS one").num_rows == 1
        late = RawClient(opened.enter_context(channel_to(crowded)), (("authorization", basic("alice")),))
        with pytest.raises(Refused, match="The server has 1 connections"):
            late.plan("SELECT 1 AS one")


@pytest.mark.rule("LIM-2")
def test_a_connection_without_a_login_ends(core: Core, context: ProtocolContext) -> None:
    """Also one that calls again and again, which is not idle."""
    server = FlightServer(FlightConfig(auth_handshake_timeout_secs=1), context)
    endpoint = server.start(core)
    try:
        with channel_to(endpoint) as alices, channel_to(endpoint) as strangers:
            alice = RawClient(alices, (("authorization", basic("alice")),))
            assert alice.query("SELECT 1 AS one").num_rows == 1
            states: list[grpc.ChannelConnectivity] = []
            alices.subscribe(states.append)
            ended: list[grpc.ChannelConnectivity] = []
            strangers.subscribe(ended.append)
            stranger = RawClient(strangers)

            def has_ended() -> bool:
                with pytest.raises(Refused):
                    stranger.call("ListActions", b"")
                return grpc.ChannelConnectivity.IDLE in ended[1:]

            wait_for(has_ended)
            assert states == [grpc.ChannelConnectivity.READY]
            assert alice.query("SELECT 1 AS one").num_rows == 1
    finally:
        server.stop(0)


@pytest.mark.rule("LIM-2")
def test_an_idle_connection_ends_and_its_client_does_not_notice(core: Core, context: ProtocolContext) -> None:
    transport = TransportConfig(connection_idle_timeout_secs=1)
    server = FlightServer(FlightConfig(transport=transport), context)
    endpoint = server.start(core)
    try:
        with channel_to(endpoint) as channel:
            nobody = RawClient(channel)
            (answer,) = nobody.call("Handshake", metadata=(("authorization", basic("alice")),))
            token = flight.HandshakeResponse.FromString(answer).payload.decode()
            client = nobody.signed_in(f"Bearer {token}")
            info = client.plan("SELECT 1 AS one")
            idle = threading.Event()
            channel.subscribe(lambda state: idle.set() if state is grpc.ChannelConnectivity.IDLE else None)
            # The session, its tickets and its bearer are of no connection.
            assert idle.wait(PATIENCE_SECS)
            assert client.fetch(info).num_rows == 1
            assert len(core.sessions) == 1
    finally:
        server.stop(0)
