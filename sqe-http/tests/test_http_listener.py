"""The HTTP listener: what it answers, and what nobody can make it hold."""

from __future__ import annotations

import http.client
import json
import os
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from testbed.clocks import wait_for

from sqe_http.listener import HttpAnswer, HttpBounds, HttpListener, HttpRequest, ListenError, ListenerTls
from sqe_http.testing import make_certificate

CANARY = "canary-77a1"


@pytest.fixture(scope="module")
def tls_files(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    return make_certificate(tmp_path_factory.mktemp("tls"), "DNS:localhost", "IP:127.0.0.1")


def answer_text(request: HttpRequest) -> HttpAnswer:
    return HttpAnswer.of_text("ok")


def fail(request: HttpRequest) -> HttpAnswer:
    raise RuntimeError(CANARY)


@contextmanager
def listening(**options: object) -> Iterator[HttpListener]:
    listener = HttpListener("test", "127.0.0.1", 0, {"/ok": answer_text, "/bad": fail}, **options)  # type: ignore[arg-type]
    listener.start()
    try:
        yield listener
    finally:
        listener.stop()


@pytest.fixture
def listener() -> Iterator[HttpListener]:
    with listening() as started:
        yield started


def ask(
    listener: HttpListener, path: str = "/ok", method: str = "GET", headers: Mapping[str, str] | None = None
) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", listener.port, timeout=5)
    connection.request(method, path, headers=dict(headers or {}))
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response, body


def send(listener: HttpListener, data: bytes, *, secs: float = 5) -> bytes:
    """Send bytes and return everything that comes until the listener closes."""
    with socket.create_connection(("127.0.0.1", listener.port), timeout=secs) as connection:
        with suppress(OSError):  # it may close while we still send
            connection.sendall(data)
        received = b""
        with suppress(ConnectionResetError):
            while chunk := connection.recv(65536):
                received += chunk
        return received


def test_a_route_is_answered(listener: HttpListener) -> None:
    response, body = ask(listener, "/ok?x=1")
    assert (response.status, body) == (200, b"ok\n")
    assert response.headers["Content-Length"] == "3"
    assert response.headers["Connection"] == "close"
    assert "Python" not in str(response.headers)


def test_head_has_the_headers_and_no_body(listener: HttpListener) -> None:
    raw = send(listener, b"HEAD /ok HTTP/1.1\r\nHost: x\r\n\r\n")
    head, _, body = raw.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.0 200")
    assert b"Content-Length: 3" in head
    assert body == b""


def test_an_unknown_path_is_not_found(listener: HttpListener) -> None:
    for path in ("/", "/okay", "/ok/", "/../etc/passwd", "/%6f%6b"):
        response, body = ask(listener, path)
        assert (response.status, body) == (404, b"not found\n")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "CONNECT", "X-Y"])
def test_other_methods_are_refused(listener: HttpListener, method: str) -> None:
    raw = send(listener, f"{method} /ok HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello".encode())
    assert raw.startswith(b"HTTP/1.0 405")
    assert b"Allow: GET, HEAD\r\n" in raw


@pytest.mark.rule("ERR-1")
def test_an_error_inside_says_nothing(listener: HttpListener) -> None:
    response, body = ask(listener, "/bad")
    assert (response.status, body) == (500, b"internal error\n")
    assert ask(listener)[0].status == 200


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x00\x01\x02\xff\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",  # the beginning of a TLS handshake
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET /ok HTTP/9.9.9\r\n\r\n",
        b"GET /ok HTTP/1.1\r\nno colon here\r\n\r\n",
        b"\r\n\r\n",
        b"GET " + b"/" * 9000 + b" HTTP/1.1\r\n\r\n",
        b"GET /ok HTTP/1.1\r\n" + b"".join(b"h%d: x\r\n" % number for number in range(500)) + b"\r\n",
    ],
)
def test_garbage_is_answered_or_closed_and_the_listener_lives(listener: HttpListener, garbage: bytes) -> None:
    raw = send(listener, garbage)
    assert b"Traceback" not in raw
    assert not raw or not raw.startswith(b"HTTP/1.0 5") or b"505" in raw
    assert ask(listener)[0].status == 200


@pytest.mark.rule("LIM-2")
def test_a_head_is_bounded() -> None:
    with listening(bounds=HttpBounds(head_bytes=1000)) as listener:
        raw = send(listener, b"GET /ok HTTP/1.1\r\nx: " + b"a" * 20_000 + b"\r\n\r\n")
        assert b"200 OK" not in raw
        assert b"431" in raw.partition(b"\r\n")[0] or raw == b""  # the rest that nobody read may reset the connection
        assert ask(listener)[0].status == 200


@pytest.mark.rule("LIM-2")
def test_whoever_sends_slowly_is_not_waited_for() -> None:
    """A byte now and then does not keep a connection: the time is that of the whole head."""
    with listening(bounds=HttpBounds(head_secs=0.4)) as listener:
        began = time.monotonic()
        with socket.create_connection(("127.0.0.1", listener.port), timeout=5) as connection:
            closed = False
            while not closed and time.monotonic() - began < 5:
                try:
                    connection.sendall(b"a")
                    connection.settimeout(0.1)
                    closed = b"408" in connection.recv(4096) or closed
                except TimeoutError:
                    continue
                except OSError:
                    closed = True
        assert time.monotonic() - began < 2


@pytest.mark.rule("LIM-2")
def test_connections_of_one_address_are_bounded() -> None:
    with listening(bounds=HttpBounds(connections_per_address=3, head_secs=30)) as listener, ExitStack() as open_ones:
        for _ in range(3):
            open_ones.enter_context(socket.create_connection(("127.0.0.1", listener.port), timeout=5))
        wait_for(lambda: send(listener, b"GET /ok HTTP/1.1\r\n\r\n") == b"")
        open_ones.close()
        wait_for(lambda: send(listener, b"GET /ok HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.0 200"))


def test_a_client_that_goes_away_costs_nothing(listener: HttpListener) -> None:
    for _ in range(50):
        connection = socket.create_connection(("127.0.0.1", listener.port), timeout=5)
        connection.sendall(b"GET /o")
        connection.close()
    assert ask(listener)[0].status == 200


@pytest.mark.rule("OBS-6")
@pytest.mark.parametrize(
    "given", [None, "", "Bearer", "Bearer wrong", "Bearer s3same", "Bearer s3sam\xe9", "Basic s3sam", "s3sam"]
)
def test_a_bearer_is_asked_for(given: str | None) -> None:
    with listening(bearer="s3sam") as listener:
        for path in ("/ok", "/nowhere"):  # whoever is not known does not learn what there is
            response, body = ask(listener, path, headers={} if given is None else {"Authorization": given})
            assert (response.status, body) == (401, b"unauthorized\n")
        assert ask(listener, headers={"Authorization": "bearer s3sam"})[1] == b"ok\n"


def test_a_taken_port_is_a_clear_error(listener: HttpListener) -> None:
    second = HttpListener("second", "127.0.0.1", listener.port, {})
    with pytest.raises(ListenError, match=f"Cannot listen on 127.0.0.1:{listener.port} \\(second\\)"):
        second.start()
    second.stop()


def test_it_stops_and_starts_again_on_the_same_port(listener: HttpListener) -> None:
    ask(listener)
    listener.stop()
    listener.stop()
    with pytest.raises(OSError, match="refused"):
        ask(listener)
    again = HttpListener("again", "127.0.0.1", listener.port, {"/ok": answer_text})
    again.start()
    assert ask(again)[0].status == 200
    again.stop()


def test_json_is_marked_as_such() -> None:
    answer = HttpAnswer.of_json({"a": [1]}, 503)
    assert (answer.status, json.loads(answer.body), answer.content_type) == (503, {"a": [1]}, "application/json")


@pytest.mark.rule("OBS-7")
def test_old_tls_is_refused(tls_files: tuple[str, str]) -> None:
    cert, key = map(Path, tls_files)
    with listening(tls=ListenerTls(cert, key)) as listener:
        trusting = ssl.create_default_context(cafile=str(cert))
        connection = http.client.HTTPSConnection("localhost", listener.port, timeout=5, context=trusting)
        connection.request("GET", "/ok")
        assert connection.getresponse().read() == b"ok\n"
        connection.close()
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
        with pytest.warns(DeprecationWarning, match="TLSv1_1"):
            old.maximum_version = ssl.TLSVersion.TLSv1_1
        with socket.create_connection(("127.0.0.1", listener.port), timeout=5) as raw, pytest.raises(OSError):  # noqa: PT011
            old.wrap_socket(raw)
        assert send(listener, b"GET /ok HTTP/1.1\r\n\r\n").find(b"200 OK") < 0


def test_a_client_certificate_is_demanded_with_an_authority(tls_files: tuple[str, str]) -> None:
    cert, key = map(Path, tls_files)
    with listening(tls=ListenerTls(cert, key, cert)) as listener:
        nobody = ssl.create_default_context(cafile=str(cert))
        connection = http.client.HTTPSConnection("localhost", listener.port, timeout=5, context=nobody)
        with suppress(OSError):  # TLS 1.3 tells the client only when it reads
            connection.request("GET", "/ok")
        with pytest.raises(OSError):  # noqa: PT011
            connection.sock.recv(1)
        connection.close()
        somebody = ssl.create_default_context(cafile=str(cert))
        somebody.load_cert_chain(cert, key)
        connection = http.client.HTTPSConnection("localhost", listener.port, timeout=5, context=somebody)
        connection.request("GET", "/ok")
        assert connection.getresponse().read() == b"ok\n"
        connection.close()


def test_unusable_tls_files_are_a_clear_error() -> None:
    with pytest.raises(ListenError, match="TLS files cannot be used: No such file"):
        ListenerTls(Path("/nonexistent/cert.pem"), Path("/nonexistent/key.pem"))


def test_a_renewed_certificate_counts_and_a_damaged_one_does_not(
    tls_files: tuple[str, str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    cert.write_bytes(Path(tls_files[0]).read_bytes())
    key.write_bytes(Path(tls_files[1]).read_bytes())
    tls = ListenerTls(cert, key)
    first = tls.context()
    assert tls.context() is first
    os.utime(cert, ns=(1, 1))
    second = tls.context()
    assert second is not first
    cert.write_text("damaged")
    assert tls.context() is second
    assert tls.context() is second
    cert.unlink()
    assert tls.context() is second
    assert "the old one stays" in caplog.text
