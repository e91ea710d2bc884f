"""`sqe-cli --login` and `--logout` with an identity provider on loopback, an honest and a hostile one."""

from __future__ import annotations

import json
import logging
import stat
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from cli_idp import CLIENT, FakeIdp, Reply, of_json
from testbed.clocks import wait_for
from testbed.making import each_ended

from sqe_core.cli import logs
from sqe_core.cli.arguments import ServerOptions, parse
from sqe_core.cli.exit_codes import UsageError
from sqe_core.cli.login import browser as login_browser
from sqe_core.cli.login import flow as login_flow
from sqe_core.cli.login.device import login_on_device
from sqe_core.cli.login.flow import TokenSource, log_in, log_out, saved_login, store_of
from sqe_core.cli.login.http import LoginError, ProviderSilentError, ask, is_safe_url
from sqe_core.cli.login.provider import Client, DeviceCode, Proof, Provider
from sqe_core.cli.login.store import LoginStore, SavedLogin, Vault
from sqe_core.cli.remote.backend import RemoteBackend, open_remote
from sqe_core.cli.remote.login import login_of
from sqe_core.protocols.flight.server import FlightConfig, FlightServer
from sqe_core.spi.auth import BearerCredential
from sqe_core.spi.errors import ErrorCode, StartupError, UserError
from sqe_core.spi.identity import Secret
from sqe_core.spi.protocol import ProtocolContext
from sqe_core.testing import FakeGateway

LOCAL = ServerOptions(host="127.0.0.1", port=50051)


class FakeVault:
    """A keyring."""

    priority = 5

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], str] = {}
        self.longest = 100_000
        self.broken = False

    def get_password(self, service: str, username: str) -> str | None:
        if self.broken:
            raise RuntimeError("the keyring is locked")
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        if self.broken:
            raise RuntimeError("the keyring is locked")
        self.kept[service, username] = password[: self.longest]

    def delete_password(self, service: str, username: str) -> None:
        del self.kept[service, username]


@pytest.fixture
def idp() -> Iterator[FakeIdp]:
    fake = FakeIdp()
    yield fake
    fake.stop()


@pytest.fixture
def vault(monkeypatch: pytest.MonkeyPatch) -> FakeVault:
    """A keyring that only the tests which ask for it have."""
    vault = FakeVault()
    monkeypatch.setattr(login_flow, "system_vault", lambda: vault)
    return vault


@pytest.fixture(autouse=True)
def _no_vault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login_flow, "system_vault", lambda: None)


@pytest.fixture
def environ(idp: FakeIdp, tmp_path: Path) -> dict[str, str]:
    return {"XDG_STATE_HOME": str(tmp_path), "SQE_OIDC_ISSUER": idp.issuer, "SQE_OIDC_CLIENT_ID": CLIENT}


@pytest.fixture
def browser(idp: FakeIdp, monkeypatch: pytest.MonkeyPatch) -> FakeIdp:
    """A browser in which alice logs in by herself."""
    monkeypatch.setattr(login_browser.webbrowser, "open", idp.browse)
    return idp


def login(environ: Mapping[str, str], how: str = "browser", **options: Any) -> TokenSource:
    server = ServerOptions(**{"host": "127.0.0.1", "port": 50051, "login": how, **options})
    return log_in(server, environ, store_of(server, environ))


def file_of(environ: Mapping[str, str]) -> Path:
    (file,) = (Path(environ["XDG_STATE_HOME"]) / "sqe" / "logins").glob("*.json")
    return file


# Logging in


def test_a_login_in_the_browser(browser: FakeIdp, environ: dict[str, str], capfd: pytest.CaptureFixture[str]) -> None:
    tokens = login(environ)

    assert tokens.user == "alice"
    assert tokens.access_token().reveal().startswith("access-")
    asked = dict(browser.forms)["/browser"]
    assert asked["code_challenge_method"] == "S256"
    assert asked["redirect_uri"].startswith("http://127.0.0.1:")
    assert min(len(asked[name]) for name in ("state", "nonce", "code_challenge")) >= 43
    told = capfd.readouterr()
    assert told.err.endswith("Logged in as alice.\n")
    assert "access-" not in told.out + told.err
    assert "code-" not in told.out + told.err


@pytest.mark.rule("TRI-8")
def test_no_two_logins_share_a_secret(browser: FakeIdp, environ: dict[str, str]) -> None:
    login(environ)
    login(environ)
    first, second = (form for path, form in browser.forms if path == "/browser")
    for name in ("state", "nonce", "code_challenge"):
        assert first[name] != second[name]


def test_a_login_on_another_device(idp: FakeIdp, environ: dict[str, str], capfd: pytest.CaptureFixture[str]) -> None:
    idp.pending = 1
    assert login(environ, "device").user == "alice"
    told = capfd.readouterr().err
    assert "ABCD-EFGH" in told
    assert f"{idp.issuer}/activate" in told
    assert "device-code" not in told


def test_whoever_has_no_window_gets_a_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login_browser.sys, "platform", "linux")
    assert not login_browser.has_browser({})
    assert not login_browser.has_browser({"DISPLAY": ":0", "SSH_CONNECTION": "1.2.3.4 5 6.7.8.9 22"})
    monkeypatch.setattr(login_browser.webbrowser, "get", lambda: object())
    assert login_browser.has_browser({"DISPLAY": ":0"})


def test_a_device_that_asks_too_often_waits_longer(idp: FakeIdp) -> None:
    answers = [
        of_json({"error": "slow_down"}, 400),
        Reply(status=503),
        of_json({"error": "authorization_pending"}, 400),
    ]
    provider = Provider(Client(issuer=idp.issuer, client_id=CLIENT))
    answers.append(of_json(idp.tokens()))
    idp.replies["token"] = lambda form: answers.pop(0)
    pauses: list[float] = []

    login_on_device(provider, lambda text: None, pause=pauses.append)
    assert pauses == [1, 6, 11, 11]


@pytest.mark.parametrize("error", ["access_denied", "expired_token", "canary of the provider"])
def test_a_device_login_that_is_refused(idp: FakeIdp, environ: dict[str, str], error: str) -> None:
    idp.replies["token"] = lambda form: of_json({"error": error, "error_description": "canary"}, 400)
    with pytest.raises(LoginError) as caught:
        login(environ, "device")
    assert "canary" not in str(caught.value)


def test_a_device_login_ends_with_its_code(idp: FakeIdp) -> None:
    provider = Provider(Client(issuer=idp.issuer, client_id=CLIENT))
    idp.pending = 1000
    honest = provider.begin_device_login

    def short(proof: Proof) -> DeviceCode:
        code = honest(proof)
        return DeviceCode(
            device_code=code.device_code,
            user_code=code.user_code,
            url=code.url,
            complete_url=None,
            interval_secs=0.01,
            ends_at=time.monotonic() + 0.3,
        )

    provider.begin_device_login = short  # type: ignore[method-assign]
    with pytest.raises(LoginError, match="within the time"):
        login_on_device(provider, lambda text: None)


# Hostile answers


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"iss": "https://evil.example.com"}, "another issuer"),
        ({"iss": ""}, "another issuer"),
        ({"code": ""}, "no code"),
        ({"code": "", "error": "access_denied"}, "access_denied"),
        ({"code": "", "error": "<b>canary</b>"}, "no reason given"),
        ({"code": "stolen"}, "invalid_grant"),
    ],
)
def test_answers_to_the_browser(
    browser: FakeIdp, environ: dict[str, str], answer: dict[str, str], message: str
) -> None:
    browser.answer = answer
    with pytest.raises(LoginError, match=message):
        login(environ)


@pytest.mark.rule("TRI-8")
def test_an_answer_without_the_state_changes_nothing(
    idp: FakeIdp, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any page in the browser, and any program of the machine, can call the redirect address."""
    seen: list[int] = []

    def browse(url: str) -> bool:
        query = {name: values[0] for name, values in parse_qs(urlsplit(idp.led_to(url)).query).items()}
        where, state = query["redirect_uri"], query["state"]
        for path in (
            f"{where}?code=evil&state=guess",
            f"{where}?code=evil",
            f"{where}?error=access_denied",
            f"{where}?code=evil&state={state}&state={state}",
            f"{where}/more?code=evil&state={state}",
            f"{where}?{'&'.join('a=1' for _ in range(50))}&state={state}",
        ):
            seen.append(idp.visit(path))
        return bool(idp.visit(f"{where}?code=unknown&state={state}"))

    monkeypatch.setattr(login_browser.webbrowser, "open", browse)
    with pytest.raises(LoginError, match="another issuer"):  # of the last one, which knew the state
        login(environ)
    assert set(seen) == {404}


@pytest.mark.rule("TRI-8")
def test_the_browsers_arguments_tell_nothing_and_open_the_login_once(
    browser: FakeIdp, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another user of the machine reads them, and must not log in as himself in somebody else's place."""
    opened: list[str] = []

    def browse(url: str) -> bool:
        opened.append(url)
        return browser.browse(url)

    monkeypatch.setattr(login_browser.webbrowser, "open", browse)
    login(environ)
    asked = dict(browser.forms)["/browser"]
    assert not [value for name, value in asked.items() if len(value) >= 20 and value in opened[0]]

    def stolen(url: str) -> bool:
        browser.led_to(url)
        assert browser.led_to(url) == ""
        return True

    monkeypatch.setattr(login_browser.webbrowser, "open", stolen)
    with pytest.raises(LoginError, match="Somebody else") as caught:
        login(environ)
    assert caught.value.hint == "use --login=device"


@pytest.mark.parametrize(
    ("claims", "message"),
    [
        ({"iss": "https://evil.example.com"}, "another issuer"),
        ({"aud": "another-client"}, "another client"),
        ({"aud": ["another-client", "third"]}, "another client"),
        ({"aud": None}, "another client"),
        ({"aud": [CLIENT, "x"], "azp": "x"}, "another client"),
        ({"nonce": "of another login"}, "another login"),
        ({"nonce": None}, "another login"),
        ({"exp": 1}, "time is over"),
        ({"exp": "never"}, "time is over"),
        ({"exp": True}, "time is over"),
    ],
)
def test_tokens_of_others(browser: FakeIdp, environ: dict[str, str], claims: dict[str, Any], message: str) -> None:
    browser.claims = claims
    with pytest.raises(LoginError, match=message):
        login(environ)
    assert store_of(LOCAL, environ).read() is None


@pytest.mark.parametrize(
    "change",
    [
        {"access_token": None},
        {"access_token": ""},
        {"access_token": "two words"},
        {"access_token": "a\r\nb: c"},
        {"access_token": "x" * 20000},
        {"access_token": ["a"]},
        {"token_type": "mac"},
        {"token_type": None},
        {"id_token": None},
        {"id_token": "a.b"},
        {"id_token": "a.W10.c"},
        {"id_token": "a.!.c"},
    ],
)
def test_answers_that_hold_no_token(browser: FakeIdp, environ: dict[str, str], change: dict[str, Any]) -> None:
    browser.replies["token"] = lambda form: of_json({**browser.tokens(), **change})
    with pytest.raises(LoginError):
        login(environ)


@pytest.mark.parametrize("expiry", [None, "soon", -1, 0, True, 1e300, []])
def test_lifetimes_that_are_none(browser: FakeIdp, environ: dict[str, str], expiry: Any) -> None:
    browser.claims = {"nonce": None}
    idp_tokens = browser.tokens
    browser.replies["token"] = lambda form: of_json({**idp_tokens(), "expires_in": expiry})
    client = Client(issuer=browser.issuer, client_id=CLIENT, scope="api")
    tokens = Provider(client).redeem(Secret("c"), "http://127.0.0.1/", Proof())
    assert tokens.lifetime_secs == 300


REPLIES = [
    Reply(body=b"<!doctype html><p>canary"),
    Reply(body=b"[]"),
    Reply(body=b'"canary"'),
    Reply(body=b"\xff\xfe"),
    Reply(body=b'{"issuer": "a", "issuer": "b"}'),
    Reply(body=b'{"expires_in": NaN}'),
    Reply(body=b"[" * 100_000),
    Reply(body=b" " * 300_000),
    Reply(status=302, headers={"Location": "http://127.0.0.1:1/canary"}),
    Reply(status=307, headers={"Location": "http://127.0.0.1:1/canary"}),
    Reply(status=500, body=b"canary"),
    Reply(status=404, body=b"{}"),
    Reply(status=400, body=b"canary"),
]


@pytest.mark.parametrize("path", ["openid-configuration", "token", "device"])
@pytest.mark.parametrize("reply", REPLIES)
def test_answers_that_are_none(browser: FakeIdp, environ: dict[str, str], path: str, reply: Reply) -> None:
    browser.replies[path] = lambda form: reply
    with pytest.raises(LoginError) as caught:
        login(environ, "device" if path == "device" else "browser")
    assert "canary" not in str(caught.value)


def test_an_answer_that_drips_is_given_up(idp: FakeIdp) -> None:
    idp.replies["slow"] = lambda form: Reply(body=b" " * 1000, drip_secs=0.05)
    began = time.monotonic()
    with pytest.raises(ProviderSilentError):
        ask(f"{idp.issuer}/slow", secs=0.5)
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    "metadata",
    [
        {"issuer": "https://evil.example.com"},
        {"issuer": None},
        {"token_endpoint": "http://evil.example.com/token"},
        {"token_endpoint": None},
        {"token_endpoint": 17},
        {"token_endpoint": "file:///etc/passwd"},
        {"token_endpoint": "https://user:secret@idp/"},
        {"device_authorization_endpoint": "ftp://127.0.0.1/"},
        {"device_authorization_endpoint": None},
    ],
)
def test_endpoints_that_nobody_should_talk_to(idp: FakeIdp, environ: dict[str, str], metadata: dict[str, Any]) -> None:
    idp.metadata = metadata
    with pytest.raises(LoginError):
        login(environ, "device")


@pytest.mark.parametrize(
    "change",
    [
        {"verification_uri": "javascript:alert(1)"},
        {"verification_uri": "http://evil.example.com"},
        {"verification_uri": None},
        {"user_code": "a b"},
        {"user_code": "\x1b[2J"},
        {"user_code": "x" * 65},
        {"device_code": None},
    ],
)
def test_device_codes_that_cannot_be_shown(idp: FakeIdp, environ: dict[str, str], change: dict[str, Any]) -> None:
    good = {"device_code": "d", "user_code": "u", "verification_uri": f"{idp.issuer}/activate", "expires_in": 600}
    idp.replies["device"] = lambda form: of_json({**good, **change})
    with pytest.raises(LoginError):
        login(environ, "device")


@pytest.mark.parametrize(
    ("url", "safe"),
    [
        ("https://idp.example.com/realms/r", True),
        ("http://localhost:8080", True),
        ("http://[::1]:8080", True),
        ("http://idp.example.com", False),
        ("http://127.0.0.1.example.com", False),
        ("https://u@idp", False),
        ("https://", False),
        ("https://idp/#x", False),
        ("https://idp:port/", False),
        ("https://idp/ x", False),
        ("https://idp/\n", False),
        ("ftp://127.0.0.1", False),
        (None, False),
    ],
)
def test_addresses(url: object, safe: bool) -> None:
    assert is_safe_url(url) is safe


# What is kept


def test_the_file_is_for_its_owner_alone(browser: FakeIdp, environ: dict[str, str]) -> None:
    login(environ)
    file = file_of(environ)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert not list(file.parent.glob(".*"))


def test_the_keyring_holds_the_tokens(browser: FakeIdp, environ: dict[str, str], vault: FakeVault) -> None:
    tokens = login(environ)
    assert tokens.access_token().reveal() not in file_of(environ).read_text()
    found = saved_login(LOCAL, environ, store_of(LOCAL, environ))
    assert found is not None
    assert found.access_token() == tokens.access_token()


@pytest.mark.parametrize("fault", ["broken", "small"])
def test_without_a_useful_keyring_it_is_the_file(
    browser: FakeIdp, environ: dict[str, str], vault: FakeVault, fault: str
) -> None:
    vault.broken, vault.longest = fault == "broken", 20
    tokens = login(environ)
    found = saved_login(LOCAL, environ, store_of(LOCAL, environ))
    assert found is not None
    assert found.access_token() == tokens.access_token()
    assert not vault.kept


def test_a_login_that_others_can_read_is_not_used(browser: FakeIdp, environ: dict[str, str]) -> None:
    login(environ)
    file_of(environ).chmod(0o644)
    with pytest.raises(LoginError, match="used by others"):
        store_of(LOCAL, environ).read()


def test_a_link_is_not_followed(browser: FakeIdp, environ: dict[str, str], tmp_path: Path) -> None:
    login(environ)
    file = file_of(environ)
    file.rename(tmp_path / "elsewhere.json")
    file.symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(LoginError, match="cannot be read"):
        store_of(LOCAL, environ).read()


def test_a_folder_that_others_can_write_to_is_not_used(browser: FakeIdp, environ: dict[str, str]) -> None:
    folder = Path(environ["XDG_STATE_HOME"]) / "sqe" / "logins"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    with pytest.raises(LoginError, match="Others can write"):
        login(environ)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"version": 1}', '{"version": 2, "server": "x"}', "null"])
def test_a_file_that_is_none_is_no_login(browser: FakeIdp, environ: dict[str, str], text: str) -> None:
    login(environ)
    file_of(environ).write_text(text)
    assert store_of(LOCAL, environ).read() is None


@pytest.mark.rule("AUTHN-4")
@pytest.mark.parametrize(
    "other",
    [
        {"host": "127.0.0.2"},
        {"port": 50052},
        {"host": "localhost"},
        {"tls": True},
    ],
)
def test_a_login_is_for_one_server(browser: FakeIdp, environ: dict[str, str], other: dict[str, Any]) -> None:
    """A hostile server gets no token that was given for another one, whatever it calls itself."""
    login(environ)
    server = ServerOptions(**{"host": "127.0.0.1", "port": 50051, **other})
    assert saved_login(server, environ, store_of(server, environ)) is None
    # Not even when its file is put in the other one's place.
    mine = file_of(environ)
    theirs = store_of(server, environ)._path
    theirs.write_bytes(mine.read_bytes())
    theirs.chmod(0o600)
    assert saved_login(server, environ, store_of(server, environ)) is None


def test_a_login_is_for_one_issuer_and_client(browser: FakeIdp, environ: dict[str, str]) -> None:
    login(environ)
    for other in ({"issuer": "https://other.example.com"}, {"client_id": "other"}):
        server = ServerOptions(**{"host": "127.0.0.1", "port": 50051, **other})
        with pytest.raises(UsageError, match="another identity provider"):
            saved_login(server, environ, store_of(server, environ))


def test_tokens_of_the_keyring_go_to_their_own_issuer(
    browser: FakeIdp, environ: dict[str, str], vault: FakeVault
) -> None:
    """Whoever can write the file cannot read the keyring: it must not send the refresh token to him either."""
    login(environ)
    file = file_of(environ)
    document = json.loads(file.read_text())
    document["client"]["issuer"] = "https://evil.example.com"
    file.write_text(json.dumps(document))
    saved = store_of(LOCAL, environ).read()
    assert saved is not None
    assert saved.tokens is None


@pytest.mark.parametrize(
    "options",
    [
        {"host": "sql.example.com"},
        {"host": "127.0.0.1.example.com"},
        {"host": "sql.example.com", "tls": True, "check_certificate": False},
    ],
)
def test_tokens_go_to_nobody_unknown(browser: FakeIdp, environ: dict[str, str], options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="encrypted and known"):
        login(environ, **options)
    server = ServerOptions(**options)
    store = store_of(server, environ)
    tokens = login(environ)._tokens
    store.write(SavedLogin(client=Client(issuer=browser.issuer, client_id=CLIENT), tokens=tokens))
    with pytest.raises(UsageError, match="encrypted and known"):
        saved_login(server, environ, store)


def test_the_client_is_remembered_and_never_the_servers_word(browser: FakeIdp, environ: dict[str, str]) -> None:
    login(environ)
    state = {"XDG_STATE_HOME": environ["XDG_STATE_HOME"]}
    assert login(state).user == "alice"
    with pytest.raises(UsageError, match="--login needs --issuer"):
        login(state, port=50052)
    with pytest.raises(UsageError, match="--login needs --client-id"):
        login(state, issuer="https://other.example.com")
    with pytest.raises(UsageError, match="https"):
        login(state, issuer="http://other.example.com", client_id="x")


def test_scope_and_audience_are_asked_for(browser: FakeIdp, environ: dict[str, str]) -> None:
    login({**environ, "SQE_OIDC_AUDIENCE": "sqe"}, scope="openid api://sqe/.default")
    asked = dict(browser.forms)["/browser"]
    assert (asked["scope"], asked["audience"]) == ("openid api://sqe/.default", "sqe")


def test_nobody_waits_for_a_keyring_that_is_not_needed(
    browser: FakeIdp, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def needed() -> None:
        raise AssertionError("the keyring was looked for")

    monkeypatch.setattr(login_flow, "system_vault", needed)
    assert saved_login(LOCAL, environ, store_of(LOCAL, environ)) is None
    monkeypatch.undo()
    monkeypatch.setattr(login_browser.webbrowser, "open", browser.browse)
    monkeypatch.setattr(login_flow, "system_vault", lambda: None)
    login(environ)
    monkeypatch.setattr(login_flow, "system_vault", needed)
    assert saved_login(LOCAL, environ, store_of(LOCAL, environ)) is not None


# Renewal


def test_a_token_is_renewed_before_its_end(browser: FakeIdp, environ: dict[str, str]) -> None:
    browser.lifetime_secs = 0.4
    tokens = login(environ)
    first = tokens.access_token()
    time.sleep(0.35)
    second = tokens.access_token()
    assert first != second
    saved = store_of(LOCAL, environ).read()
    assert saved is not None
    assert saved.tokens is not None
    assert saved.tokens.access_token == second
    assert saved.tokens.user == "alice"


def test_many_shells_renew_once(browser: FakeIdp, environ: dict[str, str]) -> None:
    """A refresh token may be good for one use: the second would end the login."""
    browser.lifetime_secs = 0.2
    login(environ)
    browser.lifetime_secs = 300
    time.sleep(0.2)
    shells = [saved_login(LOCAL, environ, store_of(LOCAL, environ)) for _ in range(6)]
    got: list[str] = []
    threads = [
        threading.Thread(target=lambda one=one: got.append(one.access_token().reveal())) for one in shells if one
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(got) == 6
    assert len(set(got)) == 1
    assert len([form for _, form in browser.forms if form.get("grant_type") == "refresh_token"]) == 1


def test_a_login_that_was_withdrawn_has_ended(browser: FakeIdp, environ: dict[str, str]) -> None:
    browser.lifetime_secs = 0.1
    tokens = login(environ)
    time.sleep(0.1)
    browser.withdraw()
    with pytest.raises(LoginError, match=r"has ended: .*invalid_grant") as caught:
        tokens.access_token()
    assert caught.value.hint == "log in with --login"
    assert "canary" not in str(caught.value)


def test_a_provider_that_is_down_does_not_end_a_login(browser: FakeIdp, environ: dict[str, str]) -> None:
    browser.lifetime_secs = 2
    tokens = login(environ)
    first = tokens.access_token()
    time.sleep(1.55)
    browser.replies["openid-configuration"] = lambda form: Reply(status=503)
    assert tokens.access_token() == first
    time.sleep(0.5)
    with pytest.raises(ProviderSilentError):
        tokens.access_token()


def test_a_login_that_another_shell_ended_is_not_renewed(browser: FakeIdp, environ: dict[str, str]) -> None:
    browser.lifetime_secs = 0.1
    tokens = login(environ)
    assert log_out(LOCAL, environ, lambda text: None)
    time.sleep(0.1)
    with pytest.raises(LoginError, match="any more"):
        tokens.access_token()
    assert not [form for _, form in browser.forms if form.get("grant_type") == "refresh_token"]


# Logging out


def test_logging_out_revokes_and_deletes(browser: FakeIdp, environ: dict[str, str], vault: FakeVault) -> None:
    login(environ)
    told: list[str] = []
    assert log_out(LOCAL, environ, told.append)
    assert [token.partition("-")[0] for token in browser.revoked] == ["refresh", "access"]
    assert told == ["Logged out of 127.0.0.1:50051."]
    assert not vault.kept
    assert "refresh-" not in file_of(environ).read_text()
    assert saved_login(LOCAL, environ, store_of(LOCAL, environ)) is None
    assert log_out(LOCAL, environ, told.append)
    assert "Nobody is logged in" in told[1]


@pytest.mark.parametrize("fault", ["down", "refuses", "cannot"])
def test_what_is_not_revoked_is_deleted_all_the_same(browser: FakeIdp, environ: dict[str, str], fault: str) -> None:
    login(environ)
    if fault == "cannot":
        browser.metadata = {"revocation_endpoint": None}
    else:
        browser.replies["revoke"] = lambda form: Reply(status=503 if fault == "down" else 400)
    told: list[str] = []
    assert not log_out(LOCAL, environ, told.append)
    assert "is deleted here" in told[0]
    assert saved_login(LOCAL, environ, store_of(LOCAL, environ)) is None


# With a server


@pytest.fixture
def gateway() -> FakeGateway:
    return FakeGateway()


@pytest.fixture
def port(gateway: FakeGateway) -> Iterator[int]:
    server = FlightServer(FlightConfig(), ProtocolContext(port=0))
    yield server.start(gateway).port
    server.stop(0)


@pytest.fixture
def connect(
    port: int, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., RemoteBackend]]:
    monkeypatch.setattr(logs, "configure", lambda environ, file: None)

    def connect(*, interactive: bool = False, **options: Any) -> RemoteBackend:
        server = ServerOptions(**{"host": "127.0.0.1", "port": port, **options})
        return open_remote(server, environ, interactive=interactive)

    yield from each_ended(connect)


def test_a_session_goes_on_with_a_new_token(
    browser: FakeIdp, gateway: FakeGateway, connect: Callable[..., RemoteBackend]
) -> None:
    browser.lifetime_secs = 1
    gateway.bearer = Secret("access-2")  # the first number is the code's
    backend = connect(login="browser")
    assert backend.signed_in == "as alice"
    gateway.bearer = Secret("access-3")
    wait_for(lambda: bool(gateway.renewals))

    assert gateway.renewals[0] == BearerCredential(token=Secret("access-3"))
    assert len(gateway.sessions) == 1
    assert backend.execute("SELECT 1 AS one") is not None
    backend.close()
    wait_for(lambda: all(thread.name != "sqe-login-renewal" for thread in threading.enumerate()))


def test_the_kept_login_is_used_and_then_not(
    browser: FakeIdp, gateway: FakeGateway, connect: Callable[..., RemoteBackend], environ: dict[str, str], port: int
) -> None:
    gateway.bearer = Secret("access-2")
    connect(login="browser").close()
    assert connect().signed_in == "as alice"
    log_out(ServerOptions(host="127.0.0.1", port=port), environ, lambda text: None)
    with pytest.raises(StartupError, match=r"Authentication failed .*--login"):
        connect()


def test_a_session_that_ended_with_its_login_says_how_to_go_on(
    browser: FakeIdp, gateway: FakeGateway, connect: Callable[..., RemoteBackend]
) -> None:
    browser.lifetime_secs = 0.8
    gateway.bearer = Secret("access-2")
    backend = connect(login="browser", interactive=True)
    browser.withdraw()
    time.sleep(0.8)
    gateway.sessions.clear()
    with pytest.raises(UserError, match="The saved login has ended") as caught:
        backend.execute("SELECT 1 AS one")
    assert caught.value.code is ErrorCode.SESSION_EXPIRED
    assert caught.value.hint == "log in with --login"


def test_a_login_that_fails_says_why(
    idp: FakeIdp, connect: Callable[..., RemoteBackend], monkeypatch: pytest.MonkeyPatch
) -> None:
    idp.replies["device"] = lambda form: of_json({"error": "unauthorized_client"}, 400)
    with pytest.raises(StartupError, match="refused the login: unauthorized_client"):
        connect(login="device")


def test_what_the_options_say_goes_before_a_kept_login(browser: FakeIdp, environ: dict[str, str]) -> None:
    login(environ)
    assert login_of(LOCAL, environ, lambda prompt: "p").who == "as alice"
    assert login_of(LOCAL, {**environ, "SQE_TOKEN": "t"}, lambda prompt: "p").who == "with a token"
    assert login_of(ServerOptions(**{**_fields(LOCAL), "user": "bob"}), environ, lambda prompt: "p").who == "as bob"


def _fields(server: ServerOptions) -> dict[str, Any]:
    return {"host": server.host, "port": server.port}


@pytest.mark.rule("OBS-2")
def test_nothing_shows_a_token(
    browser: FakeIdp, environ: dict[str, str], capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        browser.lifetime_secs = 0.1
        tokens = login(environ)
        time.sleep(0.1)
        tokens.access_token()
        kept = login_of(LOCAL, environ, lambda prompt: "p")
        log_out(LOCAL, environ, lambda text: None)
    saved = store_of(LOCAL, environ).read()
    told = capfd.readouterr()
    for shown in (told.out, told.err, caplog.text, repr(tokens), repr(kept), repr(saved), repr(tokens._tokens)):
        for secret in ("access-", "refresh-", "code-"):
            assert secret not in shown


# The command line


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--login", "--user", "alice"], "exclude each other"),
        (["--login", "--token", "t"], "exclude each other"),
        (["--login", "--logout"], "exclude each other"),
        (["--logout", "-e", "SELECT 1"], "runs no statements"),
        (["--login", "--memory"], "exclude each other"),
        (["--login=telepathy"], "invalid choice"),
        (["--issuer", " "], "--issuer is empty"),
    ],
)
def test_options_that_do_not_fit(arguments: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse(arguments)


def test_options() -> None:
    for arguments, login in (
        (["--login"], "auto"),
        (["--login=device"], "device"),
        (["--login", "browser"], "browser"),
    ):
        server = parse([*arguments, "--host", "h", "--tls"]).server
        assert server is not None
        assert server.login == login
    assert parse(["--login", "-e", "SELECT 1"]).sources[0].value == "SELECT 1"


def test_a_keyring_that_keeps_nothing_safe_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys
    import types

    from sqe_core.cli.login import store as login_store

    for priority, wanted in ((0.5, False), (0, False), (5, True)):
        vault: Vault = FakeVault()
        vault.priority = priority  # type: ignore[attr-defined]
        library = types.SimpleNamespace(get_keyring=lambda vault=vault: vault)
        monkeypatch.setitem(sys.modules, "keyring", library)
        assert (login_store.system_vault() is not None) is wanted
    monkeypatch.setitem(sys.modules, "keyring", None)
    assert login_store.system_vault() is None


def test_where_logins_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from sqe_core.cli.login.store import default_folder

    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_folder({}) == tmp_path / ".local" / "state" / "sqe" / "logins"
    assert default_folder({"XDG_STATE_HOME": "relative"}) == tmp_path / ".local" / "state" / "sqe" / "logins"
    assert LoginStore("a", tmp_path, lambda: None)._path != LoginStore("b", tmp_path, lambda: None)._path
