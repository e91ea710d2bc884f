"""Where clients are sent, and where they are said to be: nobody outside decides (TRI-5)."""

from __future__ import annotations

import http.client
import json
import os
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import trino.auth
import trino.dbapi
from multidict import CIMultiDict, CIMultiDictProxy
from trino_client import Connection, HttpRefused, Serve

from sqe_core.spi import Endpoint, ProtocolContext, TlsFiles
from sqe_core.testing import FakeGateway
from sqe_http.testing import make_certificate
from sqe_protocol_trino.certificate_names import CertificateNames
from sqe_protocol_trino.places import Places

PROXY = "10.0.0.1"


class Asked:
    """As much of a request as places look at."""

    def __init__(
        self, *headers: tuple[str, str], peer: str = PROXY, local: str = "10.0.0.9", tls: bool = False
    ) -> None:
        self.headers = CIMultiDictProxy(CIMultiDict(headers))
        self._about = {"peername": (peer, 5000), "sockname": (local, 8080), "ssl_object": object() if tls else None}

    def get_extra_info(self, name: str) -> Any:
        return self._about[name]


def places(*trusted: str, public_url: str | None = None, names: tuple[str, ...] = ()) -> Places:
    return Places(public_url=public_url, trusted_proxies=trusted, names=names)


LIES = (
    ("Host", "evil.example"),
    ("X-Forwarded-Host", "evil.example"),
    ("X-Forwarded-Proto", "https"),
    ("X-Forwarded-For", "127.0.0.1"),
    ("X-Forwarded-Port", "443"),
    ("Forwarded", "for=127.0.0.1;host=evil.example;proto=https"),
)


@pytest.mark.rule("TRI-5")
def test_a_stranger_decides_nothing() -> None:
    for trusted in ((), (PROXY,)):
        request: Any = Asked(*LIES, peer="203.0.113.7")
        found = places(*trusted)
        assert found.base(request) == "http://10.0.0.9:8080"
        assert found.client_address(request) == "203.0.113.7"
        assert not found.is_secure(request)


def test_a_trusted_proxy_is_believed() -> None:
    request: Any = Asked(
        ("Host", "10.0.0.9:8080"),
        ("X-Forwarded-Host", "sqe.example.com"),
        ("X-Forwarded-Proto", "https"),
        ("X-Forwarded-Port", "8443"),
        ("X-Forwarded-For", "203.0.113.7"),
    )
    found = places(PROXY)
    assert found.base(request) == "https://sqe.example.com:8443"
    assert found.client_address(request) == "203.0.113.7"
    assert found.is_secure(request)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["127.0.0.1, 203.0.113.7"], "203.0.113.7"),
        (["127.0.0.1", "203.0.113.7"], "203.0.113.7"),  # the client's line, then the proxy's
        (["127.0.0.1, 203.0.113.7, 10.0.0.2"], "203.0.113.7"),
        (["127.0.0.1, garbage"], PROXY),
        (["127.0.0.1, 203.0.113.7:4711"], PROXY),
        (["203.0.113.7,"], "203.0.113.7"),
        (["2001:db8::7"], "2001:db8::7"),
        ([""], PROXY),
    ],
)
def test_of_what_is_forwarded_only_what_a_proxy_added_counts(lines: list[str], expected: str) -> None:
    request: Any = Asked(*(("X-Forwarded-For", line) for line in lines))
    assert places(PROXY, "10.0.0.2").client_address(request) == expected


@pytest.mark.rule("TRI-5")
def test_the_nearest_proxy_has_the_last_word() -> None:
    request: Any = Asked(
        ("X-Forwarded-Proto", "https"),
        ("X-Forwarded-Proto", "http"),
        ("X-Forwarded-Host", "evil.example"),
        ("X-Forwarded-Host", "sqe.example.com"),
    )
    assert not places(PROXY).is_secure(request)
    assert places(PROXY).base(request) == "http://sqe.example.com"
    joined: Any = Asked(("X-Forwarded-Proto", "https, http"), ("X-Forwarded-Host", "evil.example, sqe.example.com"))
    assert places(PROXY).base(joined) == "http://sqe.example.com"


@pytest.mark.parametrize(
    "host",
    [
        "evil.example/x?",
        "user@evil.example",
        "a b",
        'x"',
        "ü.example",
        "[::1",
        "a:1:2",
        "a:123456",
        "a" * 300,
        "evil\\x",
    ],
)
def test_a_host_that_is_none_is_not_passed_on(host: str) -> None:
    request: Any = Asked(("X-Forwarded-Host", host))
    assert places(PROXY).base(request) == "http://10.0.0.9:8080"


def test_proxies_have_addresses_of_both_kinds() -> None:
    request: Any = Asked(("X-Forwarded-Host", "sqe.example.com"), peer="::ffff:10.0.0.1")
    assert places(PROXY).base(request) == "http://sqe.example.com"
    six: Any = Asked(("X-Forwarded-Host", "[2001:db8::9]:8443"), peer="fd00::1", local="fd00::9")
    assert places("fd00::/8").base(six) == "http://[2001:db8::9]:8443"
    assert places().base(six) == "http://[fd00::9]:8080"


def test_the_public_address_is_the_only_one() -> None:
    request: Any = Asked(*LIES)
    assert places(PROXY, public_url="https://sqe.example.com/trino/").base(request) == "https://sqe.example.com/trino"


def test_names_of_the_certificate_may_be_used(tmp_path: Path) -> None:
    cert, _ = make_certificate(tmp_path, "DNS:sqe.example.com", "DNS:*.data.example.com", "IP:10.0.0.9")
    names = CertificateNames(Path(cert))
    assert "sqe.example.com" in names
    assert "one.data.example.com" in names
    for foreign in ("", "evil.example", "data.example.com", "x.one.data.example.com", "example.com", "*.evil.example"):
        assert foreign not in names
    found = Places(public_url=None, trusted_proxies=(), names=names)
    for host, expected in (
        ("sqe.example.com:8080", "https://sqe.example.com:8080"),
        ("SQE.example.com", "https://sqe.example.com:8080"),
        ("sqe.example.com:1", "https://sqe.example.com:8080"),
        ("evil.example:8080", "https://10.0.0.9:8080"),
    ):
        request: Any = Asked(("Host", host), peer="203.0.113.7", tls=True)
        assert found.base(request) == expected


def test_a_renewed_certificate_has_its_own_names(tmp_path: Path) -> None:
    cert, _ = make_certificate(tmp_path, "DNS:old.example.com")
    names = CertificateNames(Path(cert))
    assert "old.example.com" in names
    make_certificate(tmp_path, "DNS:new.example.com")
    os.utime(cert, ns=(1, 1))
    assert "new.example.com" in names
    assert "old.example.com" not in names
    Path(cert).write_text("no certificate")
    assert "new.example.com" in names, "half of a renewal changes nothing"
    Path(cert).unlink()
    assert "new.example.com" in names


# -- a server with TLS


@pytest.fixture
def tls(tmp_path: Path) -> TlsFiles:
    cert, key = make_certificate(tmp_path, "DNS:localhost", "IP:127.0.0.1")
    return TlsFiles(cert_file=Path(cert), key_file=Path(key))


def next_uri(endpoint: Endpoint, tls: TlsFiles, **headers: str) -> str:
    """Send a statement that goes on, and return where."""
    context = ssl.create_default_context(cafile=str(tls.cert_file))
    connection = http.client.HTTPSConnection("localhost", endpoint.port, context=context, timeout=20)
    login = {"Authorization": "Basic YWxpY2U6d29uZGVybGFuZA=="}
    connection.request("POST", "/v1/statement", b"SELECT 1 AS one", {**login, **headers})
    document = json.loads(connection.getresponse().read())
    connection.close()
    uri: str = document["infoUri"]
    return uri


@pytest.mark.rule("TRI-5")
def test_clients_are_sent_where_they_came(serve: Serve, tls: TlsFiles) -> None:
    endpoint = serve(ProtocolContext(tls=tls))
    assert endpoint.secure
    assert next_uri(endpoint, tls).startswith(f"https://localhost:{endpoint.port}/")
    for name, value in LIES:
        assert "evil" not in next_uri(endpoint, tls, **{name: value})


def test_python_over_tls(serve: Serve, tls: TlsFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):  # they count for more than `verify`
        monkeypatch.delenv(name, raising=False)
    connection = trino.dbapi.connect(
        host="localhost",
        port=serve(ProtocolContext(tls=tls)).port,
        user="alice",
        auth=trino.auth.BasicAuthentication("alice", "wonderland"),
        http_scheme="https",
        verify=str(tls.cert_file),
    )
    assert connection.cursor().execute("SELECT 1 AS one").fetchall() == [[1]]


def test_a_renewed_certificate_counts_for_the_next_connection(serve: Serve, tls: TlsFiles, tmp_path: Path) -> None:
    endpoint = serve(ProtocolContext(tls=tls))

    def shown(name: str | None) -> bytes:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with (
            socket.create_connection((endpoint.host, endpoint.port), 10) as plain,
            context.wrap_socket(plain, server_hostname=name) as secured,
        ):
            return secured.getpeercert(binary_form=True) or b""

    for name in ("localhost", None):
        before = shown(name)
        make_certificate(tmp_path, "DNS:localhost", "IP:127.0.0.1")
        assert shown(name) != before, name
        assert shown(name) == ssl.PEM_cert_to_DER_cert(tls.cert_file.read_text())
    tls.cert_file.write_text("half of a renewal")
    assert shown("localhost"), "the old one stays"


def test_plain_http_is_not_answered(serve: Serve, tls: TlsFiles) -> None:
    endpoint = serve(ProtocolContext(tls=tls))
    with pytest.raises((http.client.HTTPException, OSError)):
        Connection(endpoint).send("POST", "/v1/statement", b"SELECT 1 AS one")


def closed(connection: socket.socket, secs: float) -> bool:
    """Whether the server ends a connection in time."""
    connection.settimeout(secs)
    try:
        return connection.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True


def test_who_does_not_shake_hands_is_ended(serve: Serve, tls: TlsFiles) -> None:
    endpoint = serve(ProtocolContext(tls=tls), head_timeout_secs=1)
    with socket.create_connection((endpoint.host, endpoint.port), 10) as silent:
        assert closed(silent, 8)


def test_many_who_do_not_shake_hands_keep_nobody_out(serve: Serve, tls: TlsFiles) -> None:
    endpoint = serve(ProtocolContext(tls=tls), head_timeout_secs=60, max_strangers_per_address=20)
    with ExitStack() as opened:
        silent = [opened.enter_context(socket.create_connection((endpoint.host, endpoint.port), 10)) for _ in range(60)]
        assert next_uri(endpoint, tls).startswith("https://localhost:")
        assert sum(closed(each, 0.2) for each in silent) >= 40


@pytest.fixture
def six(serve: Serve) -> Iterator[Endpoint]:
    try:
        yield serve(ProtocolContext(bind_host="::1"))
    except Exception:
        pytest.skip("this machine has no IPv6")


def test_an_address_of_version_six(six: Endpoint) -> None:
    connection = http.client.HTTPConnection("::1", six.port, timeout=20)
    login = {"Authorization": "Basic YWxpY2U6d29uZGVybGFuZA=="}
    connection.request("POST", "/v1/statement", b"SELECT 1 AS one", login)
    assert json.loads(connection.getresponse().read())["infoUri"].startswith(f"http://[::1]:{six.port}/v1/query/")
    connection.close()


@pytest.mark.parametrize("prefix", ["X-Trino-", "X-Presto-"])
def test_nobody_works_for_somebody_else(endpoint: Endpoint, gateway: FakeGateway, prefix: str) -> None:
    connection = Connection(endpoint, **{prefix + "User": "alice", prefix + "Original-User": "mallory"})
    with pytest.raises(HttpRefused) as refused:
        connection.ask("POST", "/v1/statement", b"SELECT 1 AS one")
    assert refused.value.status == 403
    assert not gateway.statements
    fine = Connection(endpoint, **{prefix + "User": "alice", prefix + "Original-User": "alice"})
    assert list(fine.rows("SELECT 1 AS one")) == [{"one": 1}]
    assert gateway.logins[-1][1].requested_user == "alice", "the core refuses another one"


@pytest.mark.rule("LIM-2")
def test_who_never_encrypts_is_not_waited_for(serve: Serve, tls: TlsFiles) -> None:
    """Neither held for long, nor in any number."""
    endpoint = serve(ProtocolContext(tls=tls), head_timeout_secs=1, max_strangers_per_address=4)
    with ExitStack() as stack:
        silent = [stack.enter_context(socket.create_connection((endpoint.host, endpoint.port), 10)) for _ in range(10)]
        assert all(connection.recv(1) == b"" for connection in silent[:5])
        assert next_uri(endpoint, tls) is not None
        assert all(connection.recv(1) == b"" for connection in silent[5:])
