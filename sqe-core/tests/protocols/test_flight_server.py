"""The server itself: the contract of protocols, TLS, draining, and what is left after many connections."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import grpc
import psutil
import pyarrow as pa
import pyarrow.flight as official
import pytest
from contract_variants import given
from raw_flight import Core, RawClient, Refused, basic, packed
from testbed.clocks import wait_for

from sqe_core.protocols.flight.idle import IdleWatch
from sqe_core.protocols.flight.plugin import FlightFactory
from sqe_core.protocols.flight.server import FlightConfig, FlightServer, TransportConfig
from sqe_core.protocols.flight.wire import flight_pb2 as flight
from sqe_core.protocols.flight.wire import flight_sql_pb2 as sql
from sqe_core.spi.auth import BasicCredential, BearerCredential, Credential
from sqe_core.spi.errors import StartupError
from sqe_core.spi.protocol import Endpoint, ProtocolContext, TlsFiles
from sqe_core.testing.protocol import ProtocolContract, soon


class OfficialConnection:
    """A connection of Arrow's own client."""

    def __init__(self, endpoint: Endpoint, credential: Credential) -> None:
        self.client = official.FlightClient(f"grpc://{endpoint.host}:{endpoint.port}")
        match credential:
            case BasicCredential(username=name, password=password):
                header = self.client.authenticate_basic_token(name, password.reveal())
            case BearerCredential(token=token):
                header = (b"authorization", f"Bearer {token.reveal()}".encode())
        self.options = official.FlightCallOptions(headers=[header])

    def rows(self, sql_text: str) -> Iterator[dict[str, Any]]:
        command = packed(sql.CommandStatementQuery(query=sql_text))
        info = self.client.get_flight_info(official.FlightDescriptor.for_command(command), self.options)
        self.reader = self.client.do_get(info.endpoints[0].ticket, self.options)
        for chunk in self.reader:
            yield from chunk.data.to_pylist()

    def cancel(self) -> None:
        assert soon(lambda: hasattr(self, "reader"))
        self.reader.cancel()

    def close(self) -> None:
        if hasattr(self, "reader"):
            self.reader.cancel()
        self.client.close()


class OfficialClient:
    """Arrow's own client."""

    def connect(self, endpoint: Endpoint, credential: Credential) -> OfficialConnection:
        return OfficialConnection(endpoint, credential)


class TestContract(ProtocolContract):
    """Flight keeps what every protocol promises."""

    capabilities = frozenset({"basic", "bearer"})

    factory = given(FlightFactory)
    config = given(FlightConfig)
    client = given(OfficialClient)


# TLS


@dataclass
class Authority:
    """Makes certificates."""

    folder: Path
    openssl: str

    def run(self, *arguments: str) -> None:
        subprocess.run([self.openssl, *arguments], check=True, capture_output=True, cwd=self.folder)

    def new(self, name: str) -> None:
        """A key and a certificate of this authority."""
        self.run(
            *["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"],
            *("-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr"),
        )
        (self.folder / "extensions").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1")
        self.run(
            *[
                "x509",
                "-req",
                "-days",
                "2",
                "-CA",
                "ca.pem",
                "-CAkey",
                "ca.key",
                "-extfile",
                "extensions",
                "-set_serial",
            ],
            *(str(time.time_ns()), "-in", f"{name}.csr", "-out", f"{name}.pem"),
        )

    def read(self, name: str) -> bytes:
        return (self.folder / name).read_bytes()


def make_authority(folder: Path) -> Authority:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not there to make certificates")
    authority = Authority(folder, openssl)
    authority.run(
        *("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"),
        *("-subj", "/CN=test-ca", "-keyout", "ca.key", "-out", "ca.pem"),
    )
    return authority


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    made = make_authority(tmp_path)
    made.new("server")
    return made


@dataclass
class TlsServer:
    authority: Authority
    endpoint: Endpoint

    def connect(self, header: str | None = None, *, identity: str | None = None) -> RawClient:
        read = self.authority.read
        pair = (read(f"{identity}.key"), read(f"{identity}.pem")) if identity else (None, None)
        credentials = grpc.ssl_channel_credentials(read("ca.pem"), *pair)
        channel = grpc.secure_channel(
            f"127.0.0.1:{self.endpoint.port}", credentials, options=[("grpc.use_local_subchannel_pool", 1)]
        )
        return RawClient(channel, (("authorization", header),) if header else ())


@pytest.fixture(params=[False, True], ids=["tls", "mtls"])
def tls(request: pytest.FixtureRequest, authority: Authority, core: Core) -> Iterator[TlsServer]:
    folder = authority.folder
    files = TlsFiles(
        cert_file=folder / "server.pem",
        key_file=folder / "server.key",
        ca_file=folder / "ca.pem" if request.param else None,
    )
    server = FlightServer(FlightConfig(), ProtocolContext(tls=files))
    yield TlsServer(authority, server.start(core))
    server.stop(0)


@pytest.mark.parametrize("tls", [False], indirect=True)
def test_tls(core: Core, tls: TlsServer) -> None:
    assert tls.endpoint.secure
    client = tls.connect(basic("alice"))
    assert client.query("SELECT 1 AS one").num_rows == 1
    assert core.logins[-1][1].secure is True
    call = client.begin("Handshake", [])
    list(call)
    assert "Secure" in dict(call.initial_metadata())["set-cookie"]
    with grpc.insecure_channel(f"127.0.0.1:{tls.endpoint.port}") as plain, pytest.raises(Refused) as caught:
        RawClient(plain, (("authorization", basic("alice")),)).call("ListActions", b"")
    assert caught.value.status is grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize("tls", [False], indirect=True)
def test_a_renewed_certificate_counts_for_the_next_connection(tls: TlsServer, tmp_path: Path) -> None:
    assert tls.connect(basic("alice")).query("SELECT 1 AS one").num_rows == 1
    old = tls.authority.read("ca.pem")
    # Half of a renewal changes nothing: the old certificate stays.
    (tmp_path / "server.pem").write_bytes(b"not a certificate")
    assert tls.connect(basic("alice")).query("SELECT 1 AS one").num_rows == 1
    tls.authority = make_authority(tmp_path)
    tls.authority.new("server")
    assert tls.authority.read("ca.pem") != old
    assert tls.connect(basic("alice")).query("SELECT 1 AS one").num_rows == 1
    (tmp_path / "ca.pem").write_bytes(old)
    with pytest.raises(Refused) as caught:
        tls.connect(basic("alice")).query("SELECT 1 AS one")
    assert caught.value.status is grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize("tls", [True], indirect=True)
def test_client_certificates(core: Core, tls: TlsServer) -> None:
    tls.authority.new("etl")
    client = tls.connect(identity="etl")
    assert client.query("SELECT 1 AS one").num_rows == 1
    assert core.sessions[-1].identity.username == "etl"
    # A login that is said counts more than the one that the connection brings.
    assert tls.connect(basic("bob"), identity="etl").query("SELECT 1 AS one").num_rows == 1
    assert core.sessions[-1].identity.username == "bob"
    with pytest.raises(Refused) as caught:
        tls.connect("Bearer wrong", identity="etl").query("SELECT 1 AS one")
    assert caught.value.status is grpc.StatusCode.UNAUTHENTICATED


@pytest.mark.parametrize("tls", [True], indirect=True)
def test_clients_without_a_certificate_of_the_authority_do_not_connect(
    core: Core, tls: TlsServer, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with pytest.raises(Refused) as caught:
        tls.connect(basic("alice")).query("SELECT 1 AS one")
    assert caught.value.status is grpc.StatusCode.UNAVAILABLE
    other = make_authority(tmp_path_factory.mktemp("other"))
    other.new("etl")
    for suffix in ("key", "pem"):
        shutil.copy(other.folder / f"etl.{suffix}", tls.authority.folder)
    with pytest.raises(Refused) as caught:
        tls.connect(identity="etl").query("SELECT 1 AS one")
    assert caught.value.status is grpc.StatusCode.UNAVAILABLE
    assert not core.logins


@pytest.mark.parametrize("fault", ["missing", "no certificate", "key of another"])
def test_files_that_cannot_be_used_stop_the_start(authority: Authority, core: Core, fault: str) -> None:
    folder = authority.folder
    match fault:
        case "missing":
            (folder / "server.key").unlink()
        case "no certificate":
            (folder / "server.pem").write_text("x")
        case _:
            authority.new("other")
            shutil.copy(folder / "other.key", folder / "server.key")
    files = TlsFiles(cert_file=folder / "server.pem", key_file=folder / "server.key")
    server = FlightServer(FlightConfig(), ProtocolContext(tls=files))
    with pytest.raises(StartupError, match="server"):
        server.start(core)
    server.stop(0)


# Settings


@pytest.mark.parametrize("codec", ["none", "lz4", "zstd"])
def test_compression_goes_by_the_configuration_and_the_distance(core: Core, codec: Any) -> None:
    """Nobody on this machine gets compressed rows; those far away do."""
    from sqe_core.protocols.flight import rpcs, sign_in

    core.answers["big"] = pa.table({"n": [7] * 100_000})
    sizes = []
    server = FlightServer(FlightConfig(flight_compression=codec), ProtocolContext())
    endpoint = server.start(core)
    patch = pytest.MonkeyPatch()
    for plain in (True, False):
        patch.setattr(rpcs.sign_in, "reads_plain_only", lambda client, plain=plain: plain)
        with grpc.insecure_channel(f"127.0.0.1:{endpoint.port}") as channel:
            client = RawClient(channel, (("authorization", basic("alice")),))
            ticket = client.plan("big").endpoint[0].ticket
            sizes.append(sum(map(len, client.call("DoGet", ticket))))
    patch.undo()
    assert sign_in.reads_plain_only
    server.stop(0)
    assert sizes[0] > 800_000
    assert (sizes[1] > 800_000) is (codec == "none")


def test_transport_settings_are_taken(core: Core) -> None:
    transport = TransportConfig(max_frame_size=16384, http2_keepalive_interval_secs=5)
    server = FlightServer(FlightConfig(transport=transport), ProtocolContext())
    endpoint = server.start(core)
    with grpc.insecure_channel(f"127.0.0.1:{endpoint.port}") as channel:
        assert RawClient(channel, (("authorization", basic("alice")),)).query("SELECT 1 AS one").num_rows == 1
    server.stop(0)


def test_ipv6(core: Core) -> None:
    server = FlightServer(FlightConfig(), ProtocolContext(bind_host="::1"))
    try:
        endpoint = server.start(core)
    except StartupError:
        pytest.skip("this machine has no IPv6")
    with grpc.insecure_channel(f"[::1]:{endpoint.port}") as channel:
        assert RawClient(channel, (("authorization", basic("alice")),)).query("SELECT 1 AS one").num_rows == 1
    assert core.logins[-1][1].address == "::1"
    server.stop(0)


# Those that keep a thread waiting


@pytest.fixture
def impatient(core: Core) -> Iterator[Endpoint]:
    """A server whose clients may be idle for a second."""
    server = FlightServer(FlightConfig(), replace(ProtocolContext(), stream_idle_secs=1.0))
    yield server.start(core)
    server.stop(0)


@pytest.mark.rule("LIM-8")
def test_a_client_that_does_not_read_is_ended(core: Core, impatient: Endpoint) -> None:
    core.answers["big"] = pa.table({"n": pa.array([bytes(1 << 10)] * 200_000)})
    with grpc.insecure_channel(
        f"127.0.0.1:{impatient.port}",
        options=[("grpc.http2.lookahead_bytes", 65536), ("grpc.http2.bdp_probe", 0)],
    ) as channel:
        client = RawClient(channel, (("authorization", basic("alice")),))
        call = client.begin("DoGet", [client.plan("big").endpoint[0].ticket.SerializeToString()], timeout=60)
        next(call)
        wait_for(lambda: core.results[-1].closed, 10)
        with pytest.raises(grpc.RpcError) as caught:
            list(call)
        assert caught.value.code() is grpc.StatusCode.CANCELLED


@pytest.mark.rule("LIM-8")
@pytest.mark.parametrize("name", ["DoPut", "GetFlightInfo", "DoAction"])
def test_a_client_that_does_not_send_is_ended(core: Core, impatient: Endpoint, name: str) -> None:
    over = threading.Event()

    def nothing() -> Iterator[bytes]:
        over.wait(20)
        yield from ()

    with grpc.insecure_channel(f"127.0.0.1:{impatient.port}") as channel:
        client = RawClient(channel, (("authorization", basic("alice")),))
        began = time.monotonic()
        with pytest.raises(grpc.RpcError) as caught:
            list(client.begin(name, nothing(), timeout=15))
        over.set()
    assert caught.value.code() is grpc.StatusCode.CANCELLED
    assert 0.9 < time.monotonic() - began < 5


@pytest.mark.rule("LIM-2")
def test_one_user_does_not_hold_the_threads_of_all(core: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sqe_core.protocols.flight.server._MOST_CALLS_OF_USER", 3)
    server = FlightServer(FlightConfig(), ProtocolContext())
    over = threading.Event()

    def nothing() -> Iterator[bytes]:
        over.wait(20)
        yield from ()

    def refusal(client: RawClient) -> Refused | None:
        try:
            client.query("SELECT 1 AS one")
        except Refused as refused:
            return refused
        return None

    endpoint = server.start(core)
    try:
        with grpc.insecure_channel(f"127.0.0.1:{endpoint.port}") as channel:
            alice = RawClient(channel, (("authorization", basic("alice")),))
            bob = RawClient(channel, (("authorization", basic("bob")),))
            planned = flight.CancelFlightInfoRequest(info=alice.plan("SELECT 1 AS one"))
            idle: list[Any] = []
            deadline = time.monotonic() + 10
            while (refused := refusal(alice)) is None:
                # One is refused itself where an earlier call has answered and is not over yet.
                idle.append(alice.begin("DoPut", nothing()))
                assert time.monotonic() < deadline
                time.sleep(0.02)
            assert (refused.status, refused.code) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "RESOURCE_EXHAUSTED")
            assert refusal(bob) is None
            (cancelled,) = alice.action("CancelFlightInfo", planned.SerializeToString())
            assert flight.CancelFlightInfoResult.FromString(cancelled).status == flight.CANCEL_STATUS_CANCELLED
            over.set()
            for call in idle:
                with pytest.raises(grpc.RpcError):
                    list(call)
            wait_for(lambda: refusal(alice) is None, 10)
    finally:
        over.set()
        server.stop(0)


def test_a_client_that_is_slow_but_comes_is_not(core: Core, impatient: Endpoint) -> None:
    core.answers["many"] = pa.table({"n": range(5000)})
    with grpc.insecure_channel(f"127.0.0.1:{impatient.port}") as channel:
        client = RawClient(channel, (("authorization", basic("alice")),))
        call = client.begin("DoGet", [client.plan("many").endpoint[0].ticket.SerializeToString()])
        count = 0
        for _ in call:
            time.sleep(0.4)
            count += 1
    assert count == 6


def test_the_watch_ends_only_what_is_over() -> None:
    class Call:
        ended = False

        def cancel(self) -> None:
            self.ended = True

    now = [0.0]
    watch = IdleWatch(monotonic=lambda: now[0])
    slow, quick, done = Call(), Call(), Call()
    with watch.waiting(done, 1):
        pass
    with watch.waiting(slow, 5), watch.waiting(quick, 50):
        now[0] = 10
        watch.look()
    assert (slow.ended, quick.ended, done.ended) == (True, False, False)


# The end


def test_stopping_lets_running_statements_finish_and_takes_no_new_ones(core: Core, monkeypatch: Any) -> None:
    from raw_flight import SlowResult

    go = threading.Event()

    def iterate(result: Any) -> Any:
        yield pa.record_batch({"n": [1]})
        go.wait(10)
        yield pa.record_batch({"n": [2]})

    monkeypatch.setattr(SlowResult, "__iter__", iterate)
    server = FlightServer(FlightConfig(), ProtocolContext())
    endpoint = server.start(core)
    with grpc.insecure_channel(f"127.0.0.1:{endpoint.port}") as channel:
        client = RawClient(channel, (("authorization", basic("alice")),))
        call = client.begin("DoGet", [client.plan("slow").endpoint[0].ticket.SerializeToString()])
        first = [next(call), next(call)]
        stopping = threading.Thread(target=server.stop, args=(10,))
        stopping.start()
        time.sleep(0.3)
        with pytest.raises(Refused) as caught:
            client.call("ListActions", b"")
        assert caught.value.status is grpc.StatusCode.UNAVAILABLE
        go.set()
        assert len(first + list(call)) == 4
        stopping.join(10)
        assert not stopping.is_alive()


def test_stopping_ends_what_does_not_finish(core: Core) -> None:
    server = FlightServer(FlightConfig(), ProtocolContext())
    endpoint = server.start(core)
    with grpc.insecure_channel(f"127.0.0.1:{endpoint.port}") as channel:
        client = RawClient(channel, (("authorization", basic("alice")),))
        waiting = client.plan("SELECT 1 AS one")
        call = client.begin("DoGet", [client.plan("slow").endpoint[0].ticket.SerializeToString()])
        next(call), next(call)
        began = time.monotonic()
        server.stop(0.5)
        assert time.monotonic() - began < 5
        assert waiting.endpoint
        with pytest.raises(grpc.RpcError):
            list(call)
    deadline = time.monotonic() + 20  # the client is told first
    while not core.results[-1].closed and time.monotonic() < deadline:
        time.sleep(0.02)
    assert core.results[-1].closed
    assert all(plan.closed for plan in core.plans)


# What is left


@pytest.mark.rule("LIM-10")
def test_two_hundred_connections_leave_nothing(core: Core, server: FlightServer, endpoint: Endpoint) -> None:
    process = psutil.Process()

    def visit(number: int) -> None:
        options = [("grpc.use_local_subchannel_pool", 1)]
        with grpc.insecure_channel(f"127.0.0.1:{endpoint.port}", options=options) as channel:
            client = RawClient(channel, (("authorization", basic("alice")),))
            client.query("SELECT 1 AS one")
            match number % 4:
                case 0:
                    client.begin("DoGet", [client.plan("slow").endpoint[0].ticket.SerializeToString()])
                case 1:
                    with pytest.raises(Refused):
                        client.call("DoGet", flight.Ticket(ticket=b"x"))
                case 2:
                    client.put(sql.CommandStatementIngest(table="t"), pa.table({"n": [1]}))

    def settled() -> tuple[int, int]:
        gc.collect()
        return len(os.listdir("/proc/self/fd")), process.num_threads()

    def many(count: int) -> None:
        threads = [threading.Thread(target=visit, args=(number,)) for number in range(count)]
        for start in range(0, count, 20):
            for thread in threads[start : start + 20]:
                thread.start()
            for thread in threads[start : start + 20]:
                thread.join(30)

    many(40)  # threads of the pool are made and kept
    time.sleep(1)
    before = settled()
    many(200)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        after = settled()
        if after[0] <= before[0] + 5 and after[1] <= before[1] + 25:
            break
        time.sleep(0.2)
    assert after[0] <= before[0] + 5, (before, after)
    assert after[1] <= before[1] + 25, (before, after)
    assert not server._statements._running
    assert all(result.closed for result in core.results)
    assert not server._watch._waits
