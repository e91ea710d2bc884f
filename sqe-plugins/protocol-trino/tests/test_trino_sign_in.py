"""Logins in a browser: Trino's dance, and those who would like to cut in."""

from __future__ import annotations

import hashlib
import http.client
import json
import re
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
import trino.auth
import trino.dbapi
import trino.exceptions
from trino_client import Connection

from sqe_core.spi import (
    BrowserLogin,
    ClientInfo,
    Endpoint,
    InvalidCredentialsError,
    NoCredential,
    ProtocolContext,
    ResourcesError,
    Secret,
)
from sqe_core.testing.fakes import FakeGateway
from sqe_protocol_trino import sign_in
from sqe_protocol_trino.config import TrinoConfig
from sqe_protocol_trino.plugin import TrinoFactory

IDP = "https://idp.example.com/authorize"


class Logins:
    """The core's logins, as far as a protocol sees them."""

    def __init__(self, gateway: FakeGateway, redirect_uri: str, most: int = 20) -> None:
        self.redirect_uri, self._gateway, self._most = redirect_uri, gateway, most
        self.begun: list[ClientInfo] = []
        self.refused: list[str] = []
        self._by_state: dict[str, str] = {}
        self._done: dict[str, Secret | None] = {}
        self._lock = threading.Lock()

    def begin(self, *, redirect_uri: str, client: ClientInfo) -> BrowserLogin:
        assert redirect_uri == self.redirect_uri
        if len(self.begun) >= self._most:
            raise ResourcesError("Too many logins are waiting", retry_after_secs=30)
        self.begun.append(client)
        id, state = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        self._by_state[state] = id
        url = f"{IDP}?{urlencode({'state': state, 'redirect_uri': redirect_uri})}"
        return BrowserLogin(id=Secret(id), url=url, expires_at=datetime.now(UTC) + timedelta(minutes=5))

    def finish(self, *, state: str, code: Secret) -> None:
        id = self._by_state.pop(state, None)
        if id is None or not code.reveal().startswith("good"):
            if id is not None:
                self._done[id] = None
            raise InvalidCredentialsError
        session = self._gateway._session("")
        self._done[id] = session.token

    def refuse(self, *, state: str) -> None:
        self.refused.append(state)
        self._done[self._by_state.pop(state)] = None

    def poll(self, id: Secret) -> Secret | None:
        with self._lock:
            time.sleep(0.05)  # so that two at once meet
            token = self._done.pop(id.reveal(), None)
        if token is None:
            raise InvalidCredentialsError
        return token


class Browser:
    """Cookies, by path and name, and nothing else that matters here."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self.cookies: dict[str, str] = {}

    def open(self, address: str, **headers: str) -> tuple[int, str, http.client.HTTPMessage]:
        parts = urlsplit(address)
        connection = http.client.HTTPConnection(self._endpoint.host, self._endpoint.port, timeout=30)
        cookies = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        connection.request(
            "GET",
            parts.path + (f"?{parts.query}" if parts.query else ""),
            headers={**({"Cookie": cookies} if cookies else {}), **headers},
        )
        answer = connection.getresponse()
        text = answer.read().decode()
        for line in answer.headers.get_all("Set-Cookie") or ():
            for name, morsel in SimpleCookie(line).items():
                self.cookies[name] = morsel.value
        connection.close()
        return answer.status, text, answer.headers

    def go(self, address: str) -> str:
        """Open the address of a login, and return the state that the identity provider is told."""
        status, _, headers = self.open(address)
        assert status == 303, status
        return parse_qs(urlsplit(headers["Location"]).query)["state"][0]

    def come_back(self, state: str, code: str = "good", **more: str) -> tuple[int, str, http.client.HTTPMessage]:
        return self.open("/oauth2/callback?" + urlencode({"state": state, "code": code, **more}))


@pytest.fixture
def gateway() -> FakeGateway:
    return FakeGateway()


@pytest.fixture
def logins(gateway: FakeGateway) -> Logins:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    made = gateway.browser_logins = Logins(gateway, f"http://127.0.0.1:{port}/oauth2/callback")
    return made


@pytest.fixture
def endpoint(gateway: FakeGateway, logins: Logins, monkeypatch: Any) -> Iterator[Endpoint]:
    monkeypatch.setattr(sign_in, "_WAIT_SECS", 1.0)
    # Tokens of tests do not go into the keyring of whoever runs them.
    monkeypatch.setattr(trino.auth._OAuth2KeyRingTokenCache, "is_keyring_available", lambda _: False)
    port = urlsplit(logins.redirect_uri).port
    assert port is not None
    server = TrinoFactory().create("trino", TrinoConfig(), ProtocolContext(port=port))
    yield server.start(gateway)
    server.stop(0)


@pytest.fixture
def browser(endpoint: Endpoint) -> Browser:
    return Browser(endpoint)


def asked(endpoint: Endpoint, **headers: str) -> tuple[str, str]:
    """Send a statement without a login; where the browser goes, and where the client waits."""
    status, _, answered = Connection(endpoint, NoCredential()).send("POST", "/v1/statement", b"SELECT 1", **headers)
    assert status == 401
    basic, bearer = answered.get_all("WWW-Authenticate")
    assert basic == 'Basic realm="Trino"'
    found = re.fullmatch(r'Bearer x_redirect_server="([^"]+)", x_token_server="([^"]+)"', bearer)
    assert found is not None
    return found[1], found[2]


def polled(endpoint: Endpoint, token: str) -> dict[str, str]:
    answer: dict[str, str] = Connection(endpoint, NoCredential()).ask("GET", token)
    return answer


def test_python_logs_in(endpoint: Endpoint, logins: Logins, browser: Browser) -> None:
    opened: list[str] = []

    def open_browser(url: str) -> None:
        opened.append(url)
        threading.Timer(0.3, lambda: browser.come_back(browser.go(url))).start()

    connection = trino.dbapi.connect(
        host=endpoint.host,
        port=endpoint.port,
        user="alice",
        auth=trino.auth.OAuth2Authentication(redirect_auth_url_handler=open_browser),
        http_scheme="http",
        allow_insecure_auth=True,
    )
    assert connection.cursor().execute("SELECT 1 AS one").fetchall() == [[1]]
    assert connection.cursor().execute("SELECT 1 AS one").fetchall() == [[1]]
    assert len(opened) == 1
    assert len(logins.begun) == 1


def test_python_is_told_that_it_was_refused(endpoint: Endpoint, browser: Browser) -> None:
    def open_browser(url: str) -> None:
        browser.come_back(browser.go(url), code="bad")

    connection = trino.dbapi.connect(
        host=endpoint.host,
        port=endpoint.port,
        user="alice",
        auth=trino.auth.OAuth2Authentication(redirect_auth_url_handler=open_browser),
        http_scheme="http",
        allow_insecure_auth=True,
    )
    with pytest.raises(trino.exceptions.TrinoAuthError, match="The login failed"):
        connection.cursor().execute("SELECT 1 AS one")


@pytest.mark.rule("TRI-8")
def test_who_began_it_gets_the_token_once(endpoint: Endpoint, browser: Browser, gateway: FakeGateway) -> None:
    redirect, token = asked(endpoint)
    assert polled(endpoint, token) == {"nextUri": token}, "nobody has opened the browser yet"
    state = browser.go(redirect)
    assert polled(endpoint, token) == {"nextUri": token}
    status, text, headers = browser.come_back(state)
    assert status == 200
    assert "You are logged in" in text
    assert "<script" not in text
    assert headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cache-Control"] == "no-store"
    given = polled(endpoint, token)
    assert set(given) == {"token"}
    assert given["token"] == gateway.sessions[-1].token.reveal()
    assert "token" not in polled(endpoint, token)
    stranger = Connection(endpoint, NoCredential(), Authorization=f"Bearer {given['token']}")
    assert list(stranger.rows("SELECT 1 AS one")) == [{"one": 1}]
    assert Connection(endpoint, NoCredential()).send("DELETE", token)[0] == 200
    for who in (browser, Browser(endpoint)):
        assert who.open(redirect)[0] == 409, "its address is good for nothing any more"


def test_a_client_that_gives_up_wants_no_token(endpoint: Endpoint, browser: Browser) -> None:
    redirect, token = asked(endpoint)
    state = browser.go(redirect)
    assert Connection(endpoint, NoCredential()).send("DELETE", token)[0] == 200
    assert browser.come_back(state)[0] == 400
    assert set(polled(endpoint, token)) == {"error"}


@pytest.mark.rule("TRI-8")
def test_two_polls_at_once_get_one_token(endpoint: Endpoint, browser: Browser) -> None:
    redirect, token = asked(endpoint)
    with ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(polled, endpoint, token) for _ in range(4)]
        time.sleep(0.2)
        browser.come_back(browser.go(redirect))
        answers = [each.result() for each in waiting]
    assert sum("token" in answer for answer in answers) == 1


def test_the_browser_does_not_see_what_the_client_waits_with(endpoint: Endpoint, browser: Browser) -> None:
    redirect, token = asked(endpoint)
    id = token.rpartition("/")[2]
    assert len(id) == 43, "256 bits"
    assert redirect.rpartition("/")[2] == hashlib.sha256(id.encode()).hexdigest()
    browser.come_back(browser.go(redirect))
    # Who read the browser's history has the hash, and waits in vain.
    assert "token" not in polled(endpoint, token.replace(id, redirect.rpartition("/")[2]))
    assert "token" not in polled(endpoint, token.replace(id, secrets.token_urlsafe(32)))
    assert "token" in polled(endpoint, token)


def test_a_401_keeps_nothing(endpoint: Endpoint, logins: Logins) -> None:
    for _ in range(50):
        asked(endpoint)
    assert not logins.begun


def test_a_flood_of_begun_logins_is_bounded(endpoint: Endpoint, logins: Logins) -> None:
    address = f"http://{endpoint.host}:{endpoint.port}/oauth2/token/initiate/"
    statuses = [Browser(endpoint).open(address + secrets.token_hex(32))[0] for _ in range(30)]
    assert statuses == [303] * 20 + [429] * 10


def test_the_same_browser_may_come_again_another_may_not(endpoint: Endpoint, logins: Logins, browser: Browser) -> None:
    redirect, token = asked(endpoint)
    state = browser.go(redirect)
    assert browser.go(redirect) == state
    other = Browser(endpoint)
    assert other.open(redirect)[0] == 409
    assert not other.cookies
    assert len(logins.begun) == 1
    assert other.come_back(state)[0] == 400, "the state alone is not enough"
    assert browser.come_back(state)[0] == 200
    assert "token" in polled(endpoint, token)


@pytest.mark.rule("TRI-8")
def test_nobody_finishes_with_somebody_elses_state(endpoint: Endpoint, browser: Browser) -> None:
    redirect, token = asked(endpoint)
    state = browser.go(redirect)
    mallory = Browser(endpoint)
    foreign = mallory.go(asked(endpoint)[0])
    # Alice's browser is sent to the callback with mallory's state, and the other way round.
    assert browser.come_back(foreign)[0] == 400
    assert mallory.come_back(state)[0] == 400
    assert browser.come_back("")[0] == 400
    assert browser.come_back(secrets.token_urlsafe(32))[0] == 400
    assert browser.open(f"/oauth2/callback?state={state}&state={foreign}&code=good")[0] == 400
    assert polled(endpoint, token) == {"nextUri": token}
    assert browser.come_back(state)[0] == 200
    assert browser.come_back(state)[0] == 400, "it counts once"


def test_refusals_reach_the_client(endpoint: Endpoint, logins: Logins, browser: Browser) -> None:
    for more in ({"error": "access_denied"}, {"code": ""}):
        redirect, token = asked(endpoint)
        state = browser.go(redirect)
        status, text, _ = browser.come_back(state, **more)
        assert status == 403
        assert "You are not logged in" in text
        assert state in logins.refused
        assert "error" in polled(endpoint, token)


def test_nothing_of_a_request_is_on_the_page(endpoint: Endpoint, browser: Browser) -> None:
    for text in ("<script>alert(1)</script>", '"><img src=x>', "canary-77"):
        for address in (
            "/oauth2/callback?" + urlencode({"state": text, "code": text, "error": text, "error_description": text}),
            "/oauth2/token/initiate/"
            + text.replace("<", "%3C").replace(">", "%3E").replace('"', "%22").replace(" ", "+"),
        ):
            _, body, headers = browser.open(address, **{"Referer": text})
            assert "alert" not in body
            assert "canary" not in body + str(headers)


def test_the_browser_goes_nowhere_else(endpoint: Endpoint, browser: Browser) -> None:
    redirect, _ = asked(endpoint)
    for more in ("?redirect_uri=https://evil.example", "?next=//evil.example", "?returnTo=https://evil.example"):
        status, _, headers = browser.open(redirect + more)
        assert status == 303
        assert headers["Location"].startswith(IDP + "?")
        assert "evil" not in headers["Location"]
    assert browser.open("/oauth2/token/initiate//evil.example")[0] == 404


@pytest.mark.parametrize("header", ["Host", "X-Forwarded-Host", "Forwarded"])
def test_addresses_do_not_come_from_headers(endpoint: Endpoint, header: str) -> None:
    for address in asked(endpoint, **{header: "evil.example"}):
        assert "evil" not in address


def test_the_browser_has_the_configured_address(gateway: FakeGateway) -> None:
    gateway.browser_logins = Logins(gateway, "https://sqe.example.com/trino/oauth2/callback")
    server = TrinoFactory().create("trino", TrinoConfig(), ProtocolContext(public_url="https://sqe.example.com/trino/"))
    endpoint = server.start(gateway)
    try:
        redirect, token = asked(endpoint)
        assert redirect.startswith("https://sqe.example.com/trino/oauth2/token/initiate/")
        assert token.startswith("https://sqe.example.com/trino/oauth2/token/")
        browser = Browser(endpoint)
        status, _, headers = browser.open(redirect.replace("https://sqe.example.com/trino", ""))
        assert status == 303
        cookie = headers["Set-Cookie"]
        assert cookie.startswith("__Host-sqe-login-")
        assert {"HttpOnly", "Secure", "SameSite=Lax", "Path=/"} <= set(cookie.split("; "))
    finally:
        server.stop(0)


def test_without_browser_logins_there_is_nothing(gateway: FakeGateway) -> None:
    server = TrinoFactory().create("trino", TrinoConfig(), ProtocolContext())
    endpoint = server.start(gateway)
    try:
        connection = Connection(endpoint, NoCredential())
        status, _, headers = connection.send("POST", "/v1/statement", b"SELECT 1")
        assert status == 401
        assert headers.get_all("WWW-Authenticate") == ['Basic realm="Trino"']
        for path in ("/oauth2/callback?state=x", "/oauth2/token/" + "a" * 43, "/oauth2/token/initiate/" + "0" * 64):
            assert connection.send("GET", path)[0] == 404
    finally:
        server.stop(0)


def test_logins_are_over_after_a_while(endpoint: Endpoint, browser: Browser, monkeypatch: Any) -> None:
    monkeypatch.setattr(sign_in, "_LONGEST_SECS", 0.5)
    redirect, token = asked(endpoint)
    state = browser.go(redirect)
    time.sleep(0.6)
    assert browser.come_back(state)[0] == 400
    assert json.loads(json.dumps(polled(endpoint, token))) == {"nextUri": token}
