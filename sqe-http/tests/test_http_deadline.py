"""Connections whose whole answer has to arrive in time, with and without TLS."""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from testbed.making import each_ended
from urllib3 import BaseHTTPResponse, HTTPConnectionPool, Timeout
from urllib3.exceptions import EmptyPoolError, HTTPError, ProtocolError, ReadTimeoutError, SSLError

from sqe_http.deadline import Tls, deadline_pool
from sqe_http.testing import make_certificate

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nOK"
HEADERS = b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 10_000
BODY = b"HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n"


@dataclass(frozen=True, kw_only=True)
class Reply:
    """Bytes to send: the first ones at once, one of the others each 50 ms. Then more requests are read, or none."""

    at_once: bytes = b""
    dripping: bytes = b""
    hang_up: bool = False


class Server:
    """Answers one request after another on each connection."""

    def __init__(self, replies: Sequence[Reply], tls: ssl.SSLContext | None) -> None:
        self.connections = 0
        self._replies = iter(replies)
        self._tls = tls
        self._ending = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(0.05)
        port = self._listener.getsockname()[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{port}/ignored"
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def _accept(self) -> None:
        while not self._ending.is_set():
            with suppress(TimeoutError):
                connection, _ = self._listener.accept()
                self.connections += 1
                self._threads.append(threading.Thread(target=self._serve, args=(connection,), daemon=True))
                self._threads[-1].start()

    def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(10)
        with suppress(OSError), connection:
            if self._tls is not None:
                connection = self._tls.wrap_socket(connection, server_side=True)
            with connection:
                while _read_request(connection):
                    reply = next(self._replies)
                    self._send(connection, reply)
                    if reply.hang_up:
                        return

    def _send(self, connection: socket.socket, reply: Reply) -> None:
        connection.sendall(reply.at_once)
        for byte in reply.dripping:
            if self._ending.wait(0.05):
                return
            connection.sendall(bytes([byte]))

    def stop(self) -> None:
        self._ending.set()
        for thread in self._threads:
            thread.join(5)
        self._listener.close()


def _read_request(connection: socket.socket) -> bool:
    raw = b""
    while not raw.endswith(b"\r\n\r\n"):
        more = connection.recv(4096)
        if not more:
            return False
        raw += more
    return True


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """A certificate that is its own authority, for 127.0.0.1."""

    cert: Path
    key: Path

    def for_server(self) -> ssl.SSLContext:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(self.cert, self.key)
        return tls


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    cert, key = make_certificate(tmp_path_factory.mktemp("certificate"), "IP:127.0.0.1", subject="far")
    return Certificate(cert=Path(cert), key=Path(key))


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    """Starts servers."""
    yield from each_ended(lambda *replies, tls=None: Server(replies, tls), lambda server: server.stop())


@pytest.fixture(params=["http", "https"])
def connect(
    request: pytest.FixtureRequest, certificate: Certificate, serve: Callable[..., Server]
) -> Iterator[Callable[..., tuple[Server, HTTPConnectionPool]]]:
    """Starts a server and makes a pool to it."""
    pools: list[HTTPConnectionPool] = []

    def make(*replies: Reply, max_connections: int = 2) -> tuple[Server, HTTPConnectionPool]:
        secure = request.param == "https"
        server = serve(*replies, tls=certificate.for_server() if secure else None)
        pools.append(deadline_pool(server.url, max_connections, tls=Tls(ca_file=certificate.cert).context))
        return server, pools[-1]

    yield make
    for pool in pools:
        pool.close()


def send(pool: HTTPConnectionPool, secs: float = 10, pool_timeout: float = 10) -> BaseHTTPResponse:
    return pool.urlopen(
        "GET",
        "/",
        retries=False,
        redirect=False,
        timeout=Timeout(total=secs),
        pool_timeout=pool_timeout,
        preload_content=False,
    )


def read(response: BaseHTTPResponse) -> bytes:
    """Read an answer in pieces, as the plugins do."""
    raw = b""
    while more := response.read(1000):
        raw += more
    response.release_conn()
    return raw


Connect = Callable[..., tuple[Server, HTTPConnectionPool]]


@pytest.mark.rule("POL-14")
@pytest.mark.parametrize(
    "reply",
    [Reply(), Reply(dripping=HEADERS), Reply(at_once=BODY, dripping=b"x" * 10_000)],
    ids=["nothing comes", "the headers drip", "the body drips"],
)
def test_an_answer_that_takes_too_long_is_given_up(connect: Connect, reply: Reply) -> None:
    _, pool = connect(reply)
    began = time.monotonic()
    with pytest.raises(ReadTimeoutError):
        read(send(pool, secs=0.5))
    assert 0.4 < time.monotonic() - began < 5


def test_an_answer_that_drips_and_arrives_in_time_is_read(connect: Connect) -> None:
    _, pool = connect(Reply(at_once=OK[:-2], dripping=OK[-2:]))
    assert read(send(pool)) == b"OK"


def test_each_request_on_a_connection_has_its_own_time(connect: Connect) -> None:
    slow = Reply(at_once=OK[:-8], dripping=OK[-8:])
    server, pool = connect(slow, slow, slow, Reply(dripping=HEADERS))
    began = time.monotonic()
    for _ in range(3):
        assert read(send(pool, secs=1)) == b"OK"
    assert time.monotonic() - began > 1
    with pytest.raises(ReadTimeoutError):
        send(pool, secs=0.3)
    assert server.connections == 1


def test_an_answer_that_is_cut_off_is_an_error(connect: Connect) -> None:
    _, pool = connect(Reply(at_once=BODY + b"half", hang_up=True))
    with pytest.raises(ProtocolError):
        read(send(pool))


def test_connections_are_bounded(connect: Connect) -> None:
    _, pool = connect(Reply(at_once=OK), Reply(at_once=OK), max_connections=1)
    unread = send(pool)
    with pytest.raises(EmptyPoolError):
        send(pool, pool_timeout=0.1)
    assert read(unread) == b"OK"
    assert read(send(pool)) == b"OK"


def test_an_address_without_tls_reads_no_certificates() -> None:
    def unwanted() -> ssl.SSLContext:
        raise AssertionError("the certificates were read")

    deadline_pool("http://far.example", 1, tls=unwanted).close()
    with pytest.raises(AssertionError):
        deadline_pool("https://far.example", 1, tls=unwanted)


def test_hosts_may_be_numbers() -> None:
    with deadline_pool("http://[::1]:8181/", 1, tls=Tls().context) as pool:
        assert (pool.host, pool.port) == ("::1", 8181)


def test_a_certificate_of_nobody_who_counts_is_refused(certificate: Certificate, serve: Callable[..., Server]) -> None:
    server = serve(tls=certificate.for_server())
    with deadline_pool(server.url, 1, tls=Tls().context) as pool, pytest.raises(SSLError):
        send(pool)


def test_a_certificate_for_another_name_is_refused(certificate: Certificate, serve: Callable[..., Server]) -> None:
    url = serve(tls=certificate.for_server()).url.replace("127.0.0.1", "localhost")
    known = Tls(ca_file=certificate.cert).context
    with deadline_pool(url, 1, tls=known) as pool, pytest.raises(SSLError):
        send(pool)


@pytest.mark.filterwarnings("ignore::urllib3.exceptions.InsecureRequestWarning")
def test_certificates_are_not_checked_where_that_is_switched_off(
    certificate: Certificate, serve: Callable[..., Server]
) -> None:
    server = serve(Reply(at_once=OK), tls=certificate.for_server())
    with deadline_pool(server.url, 1, tls=Tls(skip_verify=True).context) as pool:
        assert read(send(pool)) == b"OK"


def test_a_client_shows_its_certificate(certificate: Certificate, serve: Callable[..., Server]) -> None:
    asking = certificate.for_server()
    asking.load_verify_locations(certificate.cert)
    asking.verify_mode = ssl.CERT_REQUIRED
    server = serve(Reply(at_once=OK), tls=asking)

    known = Tls(ca_file=certificate.cert).context
    mine = Tls(ca_file=certificate.cert, client_cert_file=certificate.cert, client_key_file=certificate.key).context
    with deadline_pool(server.url, 1, tls=mine) as pool:
        assert read(send(pool)) == b"OK"
    with deadline_pool(server.url, 1, tls=known) as pool, pytest.raises(HTTPError):
        send(pool)


def test_tls_is_new_enough_and_checks() -> None:
    tls = Tls().context()
    assert tls.minimum_version is ssl.TLSVersion.TLSv1_2
    assert tls.verify_mode is ssl.CERT_REQUIRED
    assert tls.check_hostname


def test_a_key_with_a_password_is_an_error_and_no_question(certificate: Certificate, tmp_path: Path) -> None:
    locked = tmp_path / "locked.pem"
    lock = ("pkey", "-in", certificate.key, "-aes256", "-passout", "pass:word", "-out", locked)
    subprocess.run(["openssl", *map(str, lock)], check=True, capture_output=True)
    with pytest.raises(ssl.SSLError):
        Tls(client_cert_file=certificate.cert, client_key_file=locked).context()


def test_a_certificate_without_its_key_is_an_error(certificate: Certificate) -> None:
    with pytest.raises(ssl.SSLError):
        Tls(client_cert_file=certificate.cert).context()


def test_files_that_hold_something_else_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        Tls(ca_file=tmp_path / "missing.pem").context()
    (tmp_path / "text.pem").write_text("nothing")
    with pytest.raises(ssl.SSLError):
        Tls(ca_file=tmp_path / "text.pem").context()


class Proxy:
    """Connects to wherever it is told, and remembers where."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                head = b""
                while not head.endswith(b"\r\n\r\n"):
                    head += near.recv(1)
                self.asked.append(head.split()[1].decode())
                far = socket.create_connection(("127.0.0.1", int(self.asked[-1].rpartition(":")[2])))
                near.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                with near, far:
                    there = threading.Thread(target=self._carry, args=(near, far), daemon=True)
                    there.start()
                    self._carry(far, near)
                    there.join(10)

    def _carry(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while piece := source.recv(65536):
                target.sendall(piece)
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def stop(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


def test_a_proxy_stands_between_and_time_counts_all_the_same(
    certificate: Certificate, serve: Callable[..., Server]
) -> None:
    ends = Reply(at_once=OK, hang_up=True)
    server = serve(ends, ends, Reply(at_once=BODY, dripping=b"x" * 10_000), tls=certificate.for_server())
    proxy = Proxy()
    with deadline_pool(server.url, 1, tls=Tls(ca_file=certificate.cert).context, proxy=proxy.url) as pool:
        assert read(send(pool, secs=2)) == b"OK"
        time.sleep(2.1)  # the connection is made anew, after the first request's time
        assert read(send(pool, secs=10)) == b"OK"
        with pytest.raises(ReadTimeoutError):
            read(send(pool, secs=2))
    assert set(proxy.asked) == {server.url.removeprefix("https://").removesuffix("/ignored")}
    proxy.stop()
