"""Connections and streams: counted, and bounded with a status that says so."""

from __future__ import annotations

import os
import random
import resource
import socket
import struct
import threading
import time
from collections.abc import Callable, ItemsView, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import grpc
import pytest
from raw_flight import Core, RawClient, Refused, basic
from testbed.clocks import wait_for

from sqe_core.protocols.flight.connections import ConnectionBounds, Connections
from sqe_core.protocols.flight.server import FlightConfig, FlightServer, TransportConfig
from sqe_core.protocols.flight.sockets import FarEnd, Sockets, close_sockets, default_bound, far_end
from sqe_core.spi.errors import InvalidCredentialsError, QueryCancelledError, ResourcesError
from sqe_core.spi.protocol import Endpoint, GatewaySession, ProtocolContext
from sqe_core.testing.fakes import RecordingMetrics


@pytest.fixture
def metrics() -> RecordingMetrics:
    return RecordingMetrics()


@pytest.fixture
def context(metrics: RecordingMetrics) -> ProtocolContext:
    return ProtocolContext(metrics=metrics)


@pytest.fixture
def server(context: ProtocolContext) -> Iterator[FlightServer]:
    transport = TransportConfig(max_connections=2, max_connections_per_user=2)
    server = FlightServer(FlightConfig(transport=transport), context)
    yield server
    server.stop(0)


@pytest.mark.rule("LIM-2")
def test_beyond_the_bound_a_connection_gets_a_status(connect: Callable[..., RawClient]) -> None:
    first, second, third = (connect(basic("alice")) for _ in range(3))
    assert first.query("SELECT 1 AS one").num_rows == second.query("SELECT 1 AS one").num_rows == 1
    with pytest.raises(Refused, match="The server has 2 connections") as caught:
        third.query("SELECT 1 AS one")
    assert (caught.value.status, caught.value.code) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "RESOURCE_EXHAUSTED")
    assert caught.value.trailing["retry-after"] == "5"
    assert first.query("SELECT 1 AS one").num_rows == 1, "those that are in stay"
    second.channel.close()

    def comes_in() -> bool:
        with suppress(Refused):
            return third.query("SELECT 1 AS one").num_rows == 1
        return False

    wait_for(comes_in, 5)


@pytest.mark.rule("LIM-2")
def test_beyond_the_bound_of_a_user_others_are_served(core: Core, context: ProtocolContext) -> None:
    server = FlightServer(FlightConfig(transport=TransportConfig(max_connections=2)), context)
    port = server.start(core).port
    try:
        with ExitStack() as opened:

            def client(user: str) -> RawClient:
                options = [("grpc.use_local_subchannel_pool", 1)]
                channel = opened.enter_context(grpc.insecure_channel(f"127.0.0.1:{port}", options=options))
                return RawClient(channel, (("authorization", basic(user)),))

            assert client("alice").query("SELECT 1 AS one").num_rows == 1
            with pytest.raises(Refused, match="One user may have 1 ") as caught:
                client("alice").query("SELECT 1 AS one")
            assert caught.value.status is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert client("bob").query("SELECT 1 AS one").num_rows == 1
    finally:
        server.stop(0)


def test_connections_and_streams_are_counted(
    core: Core, connect: Callable[..., RawClient], metrics: RecordingMetrics
) -> None:
    client = connect(basic("alice"))
    stream = client.begin("DoGet", [client.plan("slow").endpoint[0].ticket.SerializeToString()])
    next(stream), next(stream)
    assert metrics.values["sqe_protocol_streams"] == 1
    wait_for(lambda: metrics.values.get("sqe_protocol_connections") == 1, 5)
    stream.cancel()
    wait_for(lambda: not metrics.values["sqe_protocol_streams"], 5)


# Which connections have places, and which end


def session_of(user: tuple[str, str]) -> GatewaySession:
    return cast(GatewaySession, SimpleNamespace(identity=SimpleNamespace(key=user)))


class Network:
    """Connections as the kernel tells of them, and a time that passes when it is told to."""

    def __init__(self, most: int = 2, *, known: bool = True) -> None:
        self.now = 0.0
        self.known = known
        self.there: dict[FarEnd, int] = {}
        self.bounds = ConnectionBounds(most=most, stranger_secs=30)
        self.gone: list[str] = []
        self.opened = 1000
        self.names: list[str | None] = []
        self.connections = Connections(self.bounds, self, self.close, self.gone.append, lambda: self.now)

    def established(self) -> Mapping[int, FarEnd]:
        return {number: end for end, number in self.there.items()} if self.known else {}

    def number_of(self, peer: str) -> int | None:
        end = far_end(peer)
        return self.there.get(end) if end is not None and self.known else None

    def open(self, address: str, port: int) -> str:
        """Open a connection; return what gRPC calls its client."""
        self.opened += 1
        self.there[FarEnd(address, port)] = self.opened
        return f"ipv4:{address}:{port}" if "." in address else f"ipv6:%5B{address}%5D:{port}"

    def close(self, inodes: frozenset[int]) -> None:
        self.there = {end: inode for end, inode in self.there.items() if inode not in inodes}

    def log_in(self, peer: str, user: str = "", meanwhile: Callable[[], object] = lambda: None) -> None:
        """Log in, each connection as a user of its own unless it is told otherwise."""

        def authenticate(name: str | None) -> GatewaySession:
            meanwhile()
            self.names.append(name)
            return session_of(("here", user or peer))

        self.connections.login(peer, authenticate)

    def ports(self) -> set[int]:
        return {end.port for end in self.there}


def test_without_the_kernels_word_everybody_comes_in() -> None:
    network = Network(1, known=False)
    for number in range(10):
        network.log_in(network.open("127.0.0.1", number))
    assert not network.connections.look()
    assert network.connections.count == 0
    network.log_in("unix:")


def test_who_has_gone_is_forgotten() -> None:
    network = Network(2)
    network.log_in(network.open("127.0.0.1", 1))
    network.log_in(network.open("::1", 2))
    third = network.open("127.0.0.1", 3)
    with pytest.raises(ResourcesError):
        network.log_in(third)
    del network.there[FarEnd("127.0.0.1", 1)]
    network.now += 1
    network.log_in(third)
    # The same port of somebody else has no place by that.
    with pytest.raises(ResourcesError):
        network.log_in(network.open("192.0.2.1", 3))


def test_one_that_the_kernel_left_out_once_keeps_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    network = Network(2)
    network.log_in(network.open("127.0.0.1", 1))
    network.now = 100  # too old for a stranger

    def look(*, seen: bool) -> bool:
        with monkeypatch.context() as patch:
            if not seen:
                patch.setattr(network, "established", dict)
            return network.connections.look()

    for seen in (False, True, False, True):
        assert not look(seen=seen)
    assert not network.gone
    for _ in range(2):
        assert not look(seen=False)
    assert network.gone == ["1001"]
    assert not look(seen=True)
    network.now = 200
    assert look(seen=True), "gone for good, and another one since"


def test_who_asks_again_and_again_does_not_make_the_server_look(monkeypatch: pytest.MonkeyPatch) -> None:
    network = Network(1)
    looks: list[int] = []
    monkeypatch.setattr(network, "established", lambda: looks.append(1) or Network.established(network))
    network.log_in(network.open("127.0.0.1", 1))
    stranger = network.open("127.0.0.1", 2)
    for _ in range(50):
        with pytest.raises(ResourcesError):
            network.log_in(stranger)
    assert len(looks) == 1


@pytest.mark.rule("LIM-2")
def test_a_login_that_fails_gives_no_place() -> None:
    network = Network(1)

    def refuse(name: str | None) -> GatewaySession:
        raise InvalidCredentialsError

    with pytest.raises(InvalidCredentialsError):
        network.connections.login(network.open("127.0.0.1", 1), refuse)
    network.log_in(network.open("127.0.0.1", 2))
    with pytest.raises(ResourcesError):
        network.log_in(network.open("127.0.0.1", 1))


@pytest.mark.rule("LIM-2")
def test_of_logins_at_once_not_all_get_a_place() -> None:
    network = Network(1)
    first, second = network.open("127.0.0.1", 1), network.open("127.0.0.1", 2)
    with pytest.raises(ResourcesError):
        network.log_in(first, meanwhile=lambda: network.log_in(second))
    network.log_in(second)


@pytest.mark.rule("LIM-2")
def test_one_user_does_not_get_every_place() -> None:
    network = Network(4)
    mine = [network.open("127.0.0.1", port) for port in (1, 2, 3)]
    for peer in mine[:2]:
        network.log_in(peer, "alice")
    with pytest.raises(ResourcesError, match="One user may have 2 "):
        network.log_in(mine[2], "alice")
    with pytest.raises(ResourcesError):  # asking again does not help
        network.log_in(mine[2], "alice")
    network.log_in(mine[0], "alice")
    network.log_in(network.open("127.0.0.1", 4), "bob")
    network.log_in(network.open("127.0.0.1", 5), "bob")
    with pytest.raises(ResourcesError, match="The server has 4 connections"):
        network.log_in(network.open("127.0.0.1", 6), "carol")
    del network.there[FarEnd("127.0.0.1", 1)]
    network.now += 1
    network.log_in(mine[2], "alice")


@pytest.mark.rule("LIM-2")
def test_of_users_who_log_in_at_once_on_a_connection_the_first_has_it() -> None:
    """The bound of the others was not looked at; nor may they fill the part of somebody else."""
    network = Network(4)
    for port in (1, 2):
        peer = network.open("127.0.0.1", port)
        network.log_in(peer, "alice", meanwhile=lambda peer=peer: network.log_in(peer, "bob"))
    with pytest.raises(ResourcesError, match="One user may have 2 "):
        network.log_in(network.open("127.0.0.1", 3), "bob")
    network.log_in(network.open("127.0.0.1", 4), "alice")


@pytest.mark.rule("LIM-2")
def test_who_is_refused_does_not_make_the_server_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock is held meanwhile, for which all logins wait."""
    counted: list[int] = []

    class Placed(dict[int, Any]):
        def items(self) -> ItemsView[int, Any]:
            counted.append(1)
            return super().items()

    network = Network(4)
    monkeypatch.setattr(network.connections, "_placed", Placed())
    for port in (1, 2):
        network.log_in(network.open("127.0.0.1", port), "alice")
    refused = network.open("127.0.0.1", 3)
    for _ in range(50):
        with pytest.raises(ResourcesError):
            network.log_in(refused, "alice")
    assert len(counted) == 1


# Whose session it is


def test_a_connection_that_is_gone_is_told_by_its_name() -> None:
    network = Network(4)
    network.log_in(network.open("127.0.0.1", 1))
    network.log_in(network.open("127.0.0.1", 2))
    network.log_in("ipv4:127.0.0.1:2")
    assert network.names == ["1001", "1002", "1002"]
    del network.there[FarEnd("127.0.0.1", 1)]
    network.connections.look()
    assert not network.gone, "the kernel may have left it out"
    network.connections.look()
    assert network.gone == network.names[:1]


@pytest.mark.rule("SESS-2")
def test_another_connection_from_the_same_port_is_another_one() -> None:
    network = Network(1)
    peer = network.open("127.0.0.1", 1)
    network.log_in(peer, "alice")
    assert network.open("127.0.0.1", 1) == peer, "before anybody looked again"
    network.log_in(peer, "bob")
    first, second = network.names
    assert first != second
    with pytest.raises(ResourcesError):
        network.log_in(network.open("127.0.0.1", 2), "alice")
    for _ in range(2):
        network.connections.look()
    assert network.gone == [first]


def test_a_session_without_a_place_ends() -> None:
    """Its connection was too many, or is gone before anybody could look: nobody would end it later."""
    network = Network(1)
    refused, placed = network.open("127.0.0.1", 1), network.open("127.0.0.1", 2)
    with pytest.raises(ResourcesError):
        network.log_in(refused, meanwhile=lambda: network.log_in(placed))
    assert network.gone == ["1001"]

    def leave() -> None:
        del network.there[FarEnd("127.0.0.1", 2)]
        network.connections.look()
        network.connections.look()

    network.log_in(placed, meanwhile=leave)
    assert network.gone[1:] == ["1002"] * 2


def test_how_many_one_user_gets() -> None:
    bounds = [
        ConnectionBounds(most=most, of_user=of_user, stranger_secs=30) for most, of_user in ((1, 0), (9, 0), (9, 9))
    ]
    assert [each.most_of_user for each in bounds] == [1, 4, 9]


@pytest.mark.rule("LIM-2")
def test_the_oldest_strangers_of_an_address_end() -> None:
    network = Network(2)
    most = network.bounds.strangers_of_address
    network.log_in(network.open("192.0.2.1", 1))
    for port in range(2, most + 5):
        network.open("192.0.2.1", port)
    network.open("198.51.100.7", 9999)
    assert network.connections.look()
    assert network.ports() == {1, 9999, *range(5, most + 5)}
    assert not network.connections.look()


@pytest.mark.rule("LIM-2")
def test_strangers_of_a_network_count_together() -> None:
    network = Network(2)
    most = network.bounds.strangers_of_address
    for port in range(1, most + 2):
        network.open(f"2001:db8::{port:x}", port)
    assert network.connections.look()
    assert len(network.there) == most


@pytest.mark.rule("LIM-2")
def test_strangers_are_bounded_in_all() -> None:
    network = Network(2)
    most = network.bounds.strangers
    for port in range(1, most + 4):
        network.open(f"192.0.2.{port}", port)
    assert network.connections.look()
    assert network.ports() == set(range(4, most + 4))


@pytest.mark.rule("LIM-2")
def test_strangers_have_as_long_as_a_login_may_take() -> None:
    network = Network(2)
    placed, slow = network.open("192.0.2.1", 1), network.open("192.0.2.1", 2)
    network.log_in(placed)
    network.open("192.0.2.1", 3)
    assert not network.connections.look()
    network.now = 31
    network.open("192.0.2.1", 4)

    def look() -> None:
        # Who is about to log in is waited for: by the login.
        assert network.connections.look()
        assert network.ports() == {1, 2, 4}

    network.log_in(slow, meanwhile=look)
    network.now = 100
    assert network.connections.look()
    assert network.ports() == {1, 2}


def test_the_bounds_leave_room() -> None:
    small, big = (ConnectionBounds(most=most, stranger_secs=30) for most in (2, 1000))
    assert (small.strangers_of_address, big.strangers_of_address) == (16, 250)
    for bounds in (small, big):
        assert bounds.strangers_of_address < bounds.strangers < bounds.hard - bounds.most
    assert big.hard == 2 * big.most, "as the default bound counts descriptors"


# What the kernel says


@pytest.mark.parametrize(
    ("peer", "end"),
    [
        ("ipv4:127.0.0.1:50004", ("127.0.0.1", 50004)),
        ("ipv6:%5B::1%5D:50004", ("::1", 50004)),
        ("ipv6:[::1]:50004", ("::1", 50004)),
        ("ipv6:%5Bfe80::1%25eth0%5D:7", ("fe80::1", 7)),
        ("ipv6:%5B::ffff:192.0.2.1%5D:7", ("192.0.2.1", 7)),
        ("unix:/run/x:7", None),
        ("ipv4:localhost:7", None),
        ("ipv4:127.0.0.1", None),
        ("", None),
    ],
)
def test_names_of_peers(peer: str, end: tuple[str, int] | None) -> None:
    assert far_end(peer) == end


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_a_connection_is_found_and_closed(family: socket.AddressFamily) -> None:
    host = "127.0.0.1" if family is socket.AF_INET else "::1"
    with socket.create_server((host, 0), family=family) as listener:
        port = listener.getsockname()[1]
        with socket.create_connection((host, port)) as client, socket.create_connection((host, port)) as other:
            client.settimeout(20)
            accepted = {peer[1]: connection for connection, peer in (listener.accept(), listener.accept())}
            mine = client.getsockname()[1]
            assert Sockets(port).established() == {
                os.fstat(served.fileno()).st_ino: FarEnd(host, far) for far, served in accepted.items()
            }
            close_sockets(frozenset({os.fstat(accepted[mine].fileno()).st_ino}))
            assert client.recv(1) == b""
            assert accepted[mine].recv(1) == b""
            accepted[other.getsockname()[1]].sendall(b"x")
            assert other.recv(1) == b"x"
            for connection in accepted.values():
                connection.close()


def reset(connection: socket.socket) -> None:
    """Close a connection so that its port is free at once."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def reusable(host: str) -> tuple[str, int]:
    """A free port that systems give to nobody by themselves, so that it is free a second time."""
    for port in random.sample(range(20_000, 32_000), 100):
        with (
            suppress(OSError),
            socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET),
        ):
            return host, port
    raise AssertionError("no port is free")


@pytest.mark.rule("SESS-2")
@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_a_port_that_is_used_again_is_another_connection(family: socket.AddressFamily) -> None:
    host = "127.0.0.1" if family is socket.AF_INET else "::1"
    with socket.create_server((host, 0), family=family) as listener:
        sockets = Sockets(listener.getsockname()[1])
        source = reusable(host)
        client = socket.create_connection(listener.getsockname()[:2], source_address=source)
        peer = named(*source)
        served, _ = listener.accept()
        with served:
            number = sockets.number_of(peer)
            assert number == os.fstat(served.fileno()).st_ino == sockets.number_of(peer)
            with pytest.raises(QueryCancelledError):
                sockets.number_of(named(host, 1))
            reset(client)
            # The server has not noticed yet; its socket is there still.
            again = socket.create_connection(listener.getsockname()[:2], source_address=source)
            served_again, _ = listener.accept()
            with again, served_again:
                assert sockets.number_of(peer) == os.fstat(served_again.fileno()).st_ino != number


def named(host: str, port: int) -> str:
    """What gRPC calls a client."""
    return f"ipv6:%5B{host}%5D:{port}" if ":" in host else f"ipv4:{host}:{port}"


@contextmanager
def no_descriptors() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.rule("SESS-2")
def test_without_descriptors_nobody_comes_in_who_cannot_be_told_apart() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, ExitStack() as opened:
        sockets = Sockets(listener.getsockname()[1])
        peers = []
        for _ in range(2):
            client = opened.enter_context(socket.create_connection(listener.getsockname()))
            opened.enter_context(listener.accept()[0])
            peers.append(named(*client.getsockname()))
        known, unknown = peers
        number = sockets.number_of(known)
        connections = Connections(ConnectionBounds(most=1, stranger_secs=30), sockets, close_sockets)
        connections.login(known, lambda name: session_of(("here", "alice")))
        sockets._known = {far_end(known): sockets._known[far_end(known)]}  # type: ignore[dict-item, index]
        with no_descriptors():
            assert sockets.number_of(known) == number
            for asked in (lambda: sockets.number_of(unknown), sockets.established, connections.look):
                with pytest.raises(ResourcesError, match="The server cannot tell connections apart at the moment"):
                    asked()
            with pytest.raises(ResourcesError):
                connections.login(unknown, lambda name: pytest.fail("as somebody else"))
            assert sockets.number_of(known) == number, "it is not forgotten"
        with pytest.raises(ResourcesError, match="The server has 1 connections"):
            connections.login(unknown, lambda name: session_of(("here", "bob")))


def test_a_descriptor_that_is_no_socket_any_more_costs_none() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        sockets = Sockets(listener.getsockname()[1])
        with socket.create_connection(listener.getsockname()) as client, listener.accept()[0] as served:
            peer = named(*client.getsockname())
            sockets.number_of(peer)
            with open(os.devnull) as other:
                os.dup2(other.fileno(), served.fileno())
            before = len(os.listdir("/proc/self/fd"))
            for _ in range(20):
                with pytest.raises(QueryCancelledError):
                    sockets.number_of(peer)
            assert len(os.listdir("/proc/self/fd")) == before


@pytest.fixture
def twice() -> Iterator[tuple[int, str, Sequence[Callable[[], socket.socket]]]]:
    """One end of a client and a port, with what connects the one to two addresses of the other."""
    source = reusable("127.0.0.1")
    with socket.create_server(("127.0.0.1", 0)) as listener, ExitStack() as opened:
        port = listener.getsockname()[1]
        listeners = [listener, opened.enter_context(socket.create_server(("127.0.0.2", port)))]

        def connect(to: socket.socket) -> socket.socket:
            client = opened.enter_context(socket.socket())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            client.bind(source)
            client.connect(to.getsockname())
            return opened.enter_context(to.accept()[0])

        yield port, named(*source), [partial(connect, each) for each in listeners]


@pytest.mark.rule("SESS-2")
def test_of_two_connections_of_one_end_nobody_knows_which_it_is(twice: Any) -> None:
    port, peer, (first, second) = twice
    numbers = {os.fstat(connect().fileno()).st_ino for connect in (first, second)}
    sockets = Sockets(port)
    assert sockets.established().keys() == numbers, "they are two"
    with pytest.raises(ResourcesError, match="connected to two addresses of the server"):
        sockets.number_of(peer)


@pytest.mark.rule("LIM-2")
def test_a_second_connection_of_one_end_has_no_place_by_the_first(twice: Any) -> None:
    port, peer, (first, second) = twice
    now = [0.0]
    ended: list[frozenset[int]] = []
    bounds = ConnectionBounds(most=9, stranger_secs=30)
    connections = Connections(bounds, Sockets(port), ended.append, monotonic=lambda: now[0])
    first()
    connections.login(peer, lambda name: session_of(("here", "alice")))
    number = os.fstat(second().fileno()).st_ino
    assert not connections.look()
    now[0] = 31
    assert connections.look()
    assert ended == [frozenset({number})]


class Relay:
    """Carries the bytes of one connection from a port of ours: what a client cannot choose, and an attacker can."""

    def __init__(self, target: tuple[str, int], source: tuple[str, int] | None = None) -> None:
        self._far = socket.create_connection(target, source_address=source or reusable("127.0.0.1"))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.source: tuple[str, int] = self._far.getsockname()
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        near, _ = self._listener.accept()
        near.settimeout(0.02)
        self._far.settimeout(0.02)  # a thread that reads on would keep the socket
        with near, suppress(OSError):
            while True:
                for here, there in ((near, self._far), (self._far, near)):
                    with suppress(TimeoutError):
                        there.sendall(here.recv(1 << 16))

    def reset(self) -> None:
        self._listener.close()
        reset(self._far)


@pytest.mark.rule("SESS-2")
def test_who_comes_from_the_port_of_a_closed_connection_gets_no_session_of_it(core: Core, endpoint: Endpoint) -> None:
    core.anonymous = True  # where everybody is the same user, nothing else tells them apart
    with ExitStack() as opened:

        def client(relay: Relay) -> RawClient:
            options = [("grpc.use_local_subchannel_pool", 1)]
            return RawClient(opened.enter_context(grpc.insecure_channel(relay.address, options=options)), ())

        first = Relay(("127.0.0.1", endpoint.port))
        client(first).query("SELECT 1 AS one")
        (mine,) = core.sessions
        first.reset()
        deadline = time.monotonic() + 10
        while True:
            try:
                second = Relay(("127.0.0.1", endpoint.port), first.source)
                break
            except OSError:  # the kernel is not done with it
                assert time.monotonic() < deadline
                time.sleep(0.01)
        client(second).query("SELECT 1 AS one")
        assert core.sessions == [mine, core.sessions[-1]]
        assert mine is not core.sessions[-1]
        wait_for(lambda: mine.closed, 10)
        assert not core.sessions[-1].closed
        second.reset()


@pytest.mark.rule("SESS-2")
def test_two_connections_with_one_login_are_independent(core: Core, connect: Callable[..., RawClient]) -> None:
    first, second = connect(basic("alice")), connect(basic("alice"))
    for client in (first, second, first):
        client.query("SELECT 1 AS one")
    one, two = core.sessions
    one.use("other", None)
    assert (one.catalog, two.catalog) == ("other", "iceberg")
    running = second.plan("SELECT 1 AS one")
    first.action("CloseSession")
    assert (one.closed, two.closed) == (True, False)
    assert second.fetch(running).num_rows == 1
    second.channel.close()
    wait_for(lambda: two.closed, 10)


def test_a_label_is_shared_and_outlives_its_connections(core: Core, connect: Callable[..., RawClient]) -> None:
    clients = [connect(basic("alice")) for _ in range(2)]
    for client in clients:
        client.metadata += (("x-session-id", "shared"),)
        client.query("SELECT 1 AS one")
    (shared,) = core.sessions
    clients[0].channel.close()
    wait_for(lambda: core.ended, 10)
    assert not shared.closed


def test_the_default_fits_the_descriptors() -> None:
    assert 16 <= default_bound() <= 10_000
    assert not Sockets(1).established()
