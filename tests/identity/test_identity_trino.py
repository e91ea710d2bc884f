"""Trino's door in front of a real identity provider, over TLS: who its clients are, and who they are not."""

from __future__ import annotations

import html
import re
import shutil
import ssl
import subprocess
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from http.cookiejar import CookieJar, DefaultCookiePolicy
from pathlib import Path
from typing import Any

import pytest
import requests
import trino.auth
import trino.dbapi
import trino.exceptions
from testbed.keycloak import CLIENT, CLIENT_SECRET, Keycloak
from testbed.processes import free_ports
from testbed.sqe_server import NO_POLICY, SqeServer

from sqe_http.testing import make_certificate

_PROVIDERS = """
[[auth.providers]]
type = "bearer_token"
issuer = "{issuer}"
audience = "{client}"

[[auth.providers]]
type = "oidc_password"
issuer = "{issuer}"
client_id = "{client}"
client_secret = "{secret}"

[auth.external]
issuer = "{issuer}"
client_id = "{client}"
client_secret = "{secret}"
redirect_uri = "https://localhost:{port}/oauth2/callback"
challenge_timeout_secs = 300
"""


class TrinoDoor(SqeServer):
    """Our server with Trino's listener, over TLS."""

    def __init__(self, folder: Path, logins: Callable[[int], str], tls: str = "") -> None:
        self.certificate, key = make_certificate(folder, "DNS:localhost", "IP:127.0.0.1")
        (self.trino_port,) = free_ports(1)
        text = f'[coordinator.tls]\ncert_file = "{self.certificate}"\nkey_file = "{key}"\n{tls}\n'
        super().__init__(
            folder,
            f"{text}{NO_POLICY}{logins(self.trino_port)}",
            SQE_COORDINATOR__TRINO_HTTP_PORT=str(self.trino_port),
        )

    def connect(self, **more: Any) -> trino.dbapi.Connection:
        """A connection of Trino's Python client."""
        return trino.dbapi.connect(
            host="localhost", port=self.trino_port, http_scheme="https", **{"verify": self.certificate, **more}
        )

    @property
    def url(self) -> str:
        return f"https://localhost:{self.trino_port}"


class Browser:
    """Cookies, redirects, and forms that are filled in."""

    def __init__(self, certificate: str) -> None:
        policy = DefaultCookiePolicy(secure_protocols=("http", "https"))
        self._opener = urllib.request.build_opener(
            urllib.request.HTTPCookieProcessor(CookieJar(policy)),
            urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=certificate)),
        )
        self.at = ""

    def open(self, url: str, **fields: str) -> str:
        body = urllib.parse.urlencode(fields).encode() if fields else None
        try:
            with self._opener.open(url, body, timeout=30) as page:
                self.at = page.url
                return str(page.read().decode())
        except urllib.error.HTTPError as error:
            self.at = error.url
            with error:
                return error.read().decode()

    def log_in(self, url: str, user: str) -> str:
        """Open an address, fill the identity provider's form in, and return the page at the end."""
        page = self.open(url)
        form = re.search(r'<form[^>]*action="([^"]+)"', page)
        assert form, page[:2000]
        return self.open(html.unescape(form[1]), username=user, password=user, credentialId="")


@pytest.fixture(scope="module")
def door(keycloak: Keycloak, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TrinoDoor]:
    def logins(port: int) -> str:
        return _PROVIDERS.format(issuer=keycloak.issuer, client=CLIENT, secret=CLIENT_SECRET, port=port)

    with TrinoDoor(tmp_path_factory.mktemp("door"), logins) as running:
        yield running


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is said in the environment counts for `requests` more than what a client says; and no keyring."""
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(trino.auth._OAuth2KeyRingTokenCache, "is_keyring_available", lambda _: False)


def asked(connection: trino.dbapi.Connection, sql: str = "SELECT current_user") -> list[Any]:
    cursor = connection.cursor()
    cursor.execute(sql)
    return list(cursor.fetchall())


def test_a_password(door: TrinoDoor) -> None:
    assert asked(door.connect(user="alice", auth=trino.auth.BasicAuthentication("alice", "alice"))) == [["alice"]]
    wrong = door.connect(user="alice", auth=trino.auth.BasicAuthentication("alice", "bob"))
    with pytest.raises(trino.exceptions.HttpError, match="401"):
        asked(wrong)


def test_a_token(door: TrinoDoor, keycloak: Keycloak) -> None:
    token = keycloak.access_token("alice")
    assert asked(door.connect(user="alice", auth=trino.auth.JWTAuthentication(token))) == [["alice"]]
    forged = token[:-20] + token[-20:][::-1]
    with pytest.raises(trino.exceptions.HttpError, match="401"):
        asked(door.connect(user="alice", auth=trino.auth.JWTAuthentication(forged)))


@pytest.mark.rule("AUTHN-9")
def test_nobody_is_somebody_else(door: TrinoDoor, keycloak: Keycloak) -> None:
    token = keycloak.access_token("alice")
    with pytest.raises(trino.exceptions.HttpError, match="403"):
        asked(door.connect(user="bob", auth=trino.auth.JWTAuthentication(token)))
    headers = {"Authorization": f"Bearer {token}", "X-Trino-User": "alice"}
    for more in (
        {"X-Trino-User": "carol"},
        {"X-Trino-Original-User": "carol"},
        {"X-Presto-User": "carol", "X-Trino-User": ""},
    ):
        answer = requests.post(
            f"{door.url}/v1/statement", "SELECT 1", headers={**headers, **more}, verify=door.certificate, timeout=30
        )
        assert answer.status_code == 403, more
    connection = door.connect(user="alice", auth=trino.auth.JWTAuthentication(token))
    with pytest.raises(trino.exceptions.TrinoUserError, match="SESSION AUTHORIZATION is not supported"):
        asked(connection, "SET SESSION AUTHORIZATION bob")
    asked(connection, "RESET SESSION AUTHORIZATION")
    assert asked(connection) == [["alice"]]


@pytest.mark.rule("TRI-8")
def test_a_browser(door: TrinoDoor) -> None:
    pages: list[str] = []
    browser = Browser(door.certificate)
    opened: list[str] = []

    def open_browser(url: str) -> None:
        opened.append(url)
        threading.Timer(0.2, lambda: pages.append(browser.log_in(url, "alice"))).start()

    auth = trino.auth.OAuth2Authentication(redirect_auth_url_handler=open_browser)
    connection = door.connect(user="alice", auth=auth)
    assert asked(connection) == [["alice"]]
    assert asked(connection) == [["alice"]]
    assert len(opened) == 1
    assert "You are logged in" in pages[0]
    assert browser.at.startswith(f"{door.url}/oauth2/callback?")
    # The address of the end is good for nothing any more.
    assert "You are not logged in" in browser.open(browser.at)
    assert "You are not logged in" in Browser(door.certificate).open(opened[0])


@pytest.mark.rule("TRI-8")
def test_a_browser_logs_somebody_else_in(door: TrinoDoor) -> None:
    auth = trino.auth.OAuth2Authentication(lambda url: Browser(door.certificate).log_in(url, "bob") and None)
    # Whoever the client says to be, it is who the browser says.
    with pytest.raises(trino.exceptions.HttpError, match="403"):
        asked(door.connect(user="alice", auth=auth))


def test_large_results_come_as_segments(door: TrinoDoor, keycloak: Keycloak) -> None:
    for login in (
        trino.auth.JWTAuthentication(keycloak.access_token("alice")),
        trino.auth.BasicAuthentication("alice", "alice"),
    ):
        connection = door.connect(user="alice", auth=login, encoding=["json+zstd", "json"])
        cursor = connection.cursor()
        cursor.execute("SELECT x, 'zeile ' || CAST(x AS varchar) FROM UNNEST(sequence(1, 200000)) AS t(x)")
        rows = cursor.fetchall()
        assert len(rows) == 200_000
        assert sorted(rows)[-1] == [200_000, "zeile 200000"]


# -- certificates of clients


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An authority, and certificates of alice and of a stranger with her name."""
    folder = tmp_path_factory.mktemp("people")
    openssl = shutil.which("openssl") or "openssl"

    def run(*words: str) -> None:
        subprocess.run([openssl, *words], check=True, capture_output=True, cwd=folder)

    new = ("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    for authority in ("ours", "theirs"):
        run(
            *new,
            "-x509",
            "-days",
            "2",
            "-subj",
            f"/CN={authority}",
            "-keyout",
            f"{authority}.key",
            "-out",
            f"{authority}.pem",
        )
        run(*new, "-subj", "/CN=alice", "-keyout", f"alice-{authority}.key", "-out", "alice.csr")
        run(
            *(
                "x509",
                "-req",
                "-days",
                "2",
                "-CA",
                f"{authority}.pem",
                "-CAkey",
                f"{authority}.key",
                "-set_serial",
                "7",
            ),
            *("-in", "alice.csr", "-out", f"alice-{authority}.pem"),
        )
    return folder


@pytest.fixture(scope="module")
def strict_door(people: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TrinoDoor]:
    folder = tmp_path_factory.mktemp("strict")
    mtls = '[[auth.providers]]\ntype = "mtls"\n'
    with TrinoDoor(folder, lambda _: mtls, f'ca_file = "{people / "ours.pem"}"') as running:
        yield running


def test_a_certificate(strict_door: TrinoDoor, people: Path) -> None:
    def connect(authority: str, **more: Any) -> trino.dbapi.Connection:
        pair = (str(people / f"alice-{authority}.pem"), str(people / f"alice-{authority}.key"))
        return strict_door.connect(auth=trino.auth.CertificateAuthentication(*pair), max_attempts=1, **more)

    assert asked(connect("ours", user="alice")) == [["alice"]]
    # Segments would be fetched without it: there are none.
    large = "SELECT x, repeat('x', 100) FROM UNNEST(sequence(1, 50000)) AS t(x)"
    assert len(asked(connect("ours", user="alice", encoding="json+zstd"), large)) == 50_000
    with pytest.raises(trino.exceptions.HttpError, match="403"):
        asked(connect("ours", user="bob"))
    with pytest.raises(trino.exceptions.TrinoConnectionError):
        asked(connect("theirs", user="alice"))
    with pytest.raises(trino.exceptions.TrinoConnectionError):
        asked(strict_door.connect(user="alice", max_attempts=1))
