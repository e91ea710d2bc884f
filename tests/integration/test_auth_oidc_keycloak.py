"""Every flow of sqe-auth-oidc with a real Keycloak, configured as docs/auth-oidc.md says."""

from __future__ import annotations

import html
import re
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from http.cookiejar import CookieJar, DefaultCookiePolicy
from pathlib import Path
from typing import Any

import pytest
from testbed.clocks import TurnedClock
from testbed.keycloak import CLIENT, CLIENT_SECRET, PUBLIC_CLIENT, SUBJECTS, Keycloak

from sqe_auth_oidc.basic import ClientProvider
from sqe_auth_oidc.bearer import BearerProvider
from sqe_auth_oidc.config import BearerConfig, ClientCredentialsConfig, ClientPassthroughConfig, ExchangeConfig
from sqe_auth_oidc.exchange import ExchangeProvider
from sqe_auth_oidc.provider import Surroundings
from sqe_auth_oidc.service import ClientCredentialsProvider
from sqe_core.bootstrap import browser_logins, device_logins, login_providers
from sqe_core.config import load
from sqe_core.config.loading import LoadedConfig
from sqe_core.plugins.manager import PluginManager
from sqe_core.session.login import LoginChain
from sqe_core.session.store import SessionStore
from sqe_core.spi import (
    BasicCredential,
    BearerCredential,
    ClientInfo,
    Credential,
    ExternalError,
    Identity,
    InvalidCredentialsError,
    LoginRequest,
    NoCredential,
    PluginContext,
    Secret,
)

PAGE = Path(__file__).parents[2] / "docs" / "auth-oidc.md"
REDIRECT = "http://127.0.0.1:8080/oauth2/callback"
HERE = ClientInfo(protocol="flight", address="127.0.0.1")
ROLES = {"alice": "data_engineer", "bob": "analyst"}
GROUPS = {"alice": "engineering", "bob": "analytics"}


class Browser:
    """As much of a browser as Keycloak's pages need: cookies, and forms that are filled in and sent."""

    def __init__(self) -> None:
        policy = DefaultCookiePolicy(secure_protocols=("http", "https"))
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar(policy)), _StopsAtSqe())

    def open(self, url: str, **fields: str) -> tuple[str, str]:
        """Return where a request ended, and the page there."""
        body = urllib.parse.urlencode(fields).encode() if fields else None
        with self._opener.open(url, body, timeout=30) as page:
            return page.url, page.read().decode()

    def log_in(self, url: str, user: str) -> tuple[str, str]:
        """Open an address and fill the login form in."""
        _, page = self.open(url)
        return self.open(_form(page), username=user, password=user, credentialId="")


class _StopsAtSqe(urllib.request.HTTPRedirectHandler):
    """Nobody listens at the redirect address: that the browser goes there is what the test wants to know."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        return None if newurl.startswith(REDIRECT) else super().redirect_request(req, fp, code, msg, headers, newurl)

    def http_error_302(self, req: Any, fp: Any, code: int, msg: str, headers: Any) -> Any:
        if headers["Location"].startswith(REDIRECT):
            fp.url = headers["Location"]
            return fp
        return super().http_error_302(req, fp, code, msg, headers)


def _form(page: str) -> str:
    found = re.search(r'<form[^>]*action="([^"]+)"', page)
    assert found, page[:2000]
    return html.unescape(found.group(1))


@pytest.fixture(scope="module")
def loaded(keycloak: Keycloak, tmp_path_factory: pytest.TempPathFactory) -> LoadedConfig:
    """The configuration of the page, with the addresses and names of this realm."""
    folder = tmp_path_factory.mktemp("oidc")
    (folder / "secret").write_text(CLIENT_SECRET)
    (text,) = re.findall(r"```toml\n(\[coordinator\.tls\]\n.*?)```", PAGE.read_text("utf-8"), flags=re.DOTALL)
    for old, new in {
        "https://keycloak.example.com/realms/analytics": keycloak.issuer,
        "https://sqe.example.com/oauth2/callback": REDIRECT,
        "/run/secrets/sqe-client": str(folder / "secret"),
        "/etc/sqe/tls.crt": str(folder / "secret"),
        "/etc/sqe/tls.key": str(folder / "secret"),
        '"sqe"': f'"{CLIENT}"',
        '"sqe-cli"': f'"{PUBLIC_CLIENT}"',
    }.items():
        assert old in text
        text = text.replace(old, new)
    (folder / "sqe.toml").write_text(text)
    return load(folder / "sqe.toml", environ={})


@pytest.fixture(scope="module")
def providers(loaded: LoadedConfig) -> Iterator[Mapping[str, Any]]:
    """The providers of that configuration."""
    made = dict(login_providers(loaded, PluginManager()))
    yield made
    for provider in made.values():
        provider.close()


class _Session:
    """As much of a session as the store knows; no engine is needed to log in."""

    def __init__(self, identity: Identity) -> None:
        self.identity = identity
        self.closed = False
        self.last_used = 0.0


@pytest.fixture
def store(providers: Mapping[str, Any]) -> SessionStore:
    """The sessions of that configuration."""

    def open_session(identity: Identity, client: ClientInfo) -> Any:
        return _Session(identity)

    chain = LoginChain(tuple(providers.items()))
    return SessionStore(
        chain,
        open_session=open_session,
        close_session=lambda session: None,
        expire_session=lambda session: None,
        is_busy=lambda session: False,
    )


def request(credential: Credential) -> LoginRequest:
    return LoginRequest(credential=credential, client=HERE)


def basic(user: str, password: str) -> LoginRequest:
    return request(BasicCredential(username=user, password=Secret(password)))


def bearer(token: str) -> LoginRequest:
    return request(BearerCredential(token=Secret(token)))


def check(identity: Identity | None, user: str, keycloak: Keycloak) -> Identity:
    assert identity is not None
    assert identity.key == (keycloak.issuer, SUBJECTS[user])
    assert identity.username == user
    assert identity.email == f"{user}@example.com"
    assert ROLES[user] in identity.roles
    assert identity.groups == {GROUPS[user]}
    assert identity.expires_at is not None
    return identity


def surroundings(ticks: TurnedClock | None = None) -> Surroundings:
    return Surroundings(name="idp", context=PluginContext(), monotonic=ticks or time.monotonic)


def bearers(keycloak: Keycloak, ticks: TurnedClock | None = None, **keys: Any) -> BearerProvider:
    return BearerProvider(
        BearerConfig(**{"issuer": keycloak.issuer, "audience": (CLIENT,), **keys}), surroundings(ticks)
    )


@pytest.mark.parametrize("user", ["alice", "bob"])
def test_password_and_refresh(keycloak: Keycloak, providers: Mapping[str, Any], user: str) -> None:
    provider = providers["oidc_password"]
    first = check(provider.authenticate(basic(user, user)), user, keycloak)
    second = check(provider.refresh(first), user, keycloak)

    assert second.access_token != first.access_token
    assert not provider.is_revoked(second)


@pytest.mark.rule("AUTHN-6")
def test_wrong_passwords_and_unknown_users_read_the_same(providers: Mapping[str, Any]) -> None:
    for login in (basic("alice", "wrong"), basic("nobody", "alice"), basic("alice", ""), basic("al*ce", "alice")):
        with pytest.raises(InvalidCredentialsError) as caught:
            providers["oidc_password"].authenticate(login)
        assert str(caught.value) == str(InvalidCredentialsError())


@pytest.mark.rule("JWT-9")
def test_a_refresh_after_a_logout_is_refused(keycloak: Keycloak, providers: Mapping[str, Any]) -> None:
    provider = providers["oidc_password"]
    carol = provider.authenticate(basic("carol", "carol"))
    keycloak.log_out("carol")

    with pytest.raises(InvalidCredentialsError):
        provider.refresh(carol)


def test_a_bearer_is_who_it_says(keycloak: Keycloak, providers: Mapping[str, Any]) -> None:
    for user in ("alice", "bob"):
        check(providers["bearer_token"].authenticate(bearer(keycloak.access_token(user))), user, keycloak)


@pytest.mark.rule("JWT-4", "JWT-7")
def test_what_keycloak_signs_besides_is_no_access_token(keycloak: Keycloak, providers: Mapping[str, Any]) -> None:
    tokens = keycloak.tokens("alice")
    provider = providers["bearer_token"]
    for name in ("id_token", "refresh_token"):
        with pytest.raises(InvalidCredentialsError):
            provider.authenticate(bearer(tokens[name]))
    other = bearers(keycloak, audience=("other-client",))
    with pytest.raises(InvalidCredentialsError):
        other.authenticate(bearer(tokens["access_token"]))
    other.close()
    admin = keycloak.post(
        f"{keycloak.url}/realms/master/protocol/openid-connect/token",
        grant_type="password",
        client_id="admin-cli",
        username="admin",
        password="admin",
    )
    assert provider.authenticate(bearer(admin["access_token"])) is None  # of another realm: not its to judge


@pytest.mark.rule("JWT-9")
def test_introspection_notices_a_logout(keycloak: Keycloak) -> None:
    provider = bearers(
        keycloak,
        introspect="always",
        introspection_cache_secs=0,
        introspection_grace_secs=0,
        client_id=CLIENT,
        client_secret=Secret(CLIENT_SECRET),
        groups_claim="groups",
    )
    token = keycloak.access_token("bob")
    bob = check(provider.authenticate(bearer(token)), "bob", keycloak)
    assert not provider.is_revoked(bob)
    keycloak.log_out("bob")

    assert provider.is_revoked(bob)
    with pytest.raises(InvalidCredentialsError):
        provider.authenticate(bearer(token))
    provider.close()


def test_exchange(keycloak: Keycloak) -> None:
    config = ExchangeConfig(
        issuer=keycloak.issuer,
        client_id=CLIENT,
        client_secret=Secret(CLIENT_SECRET),
        audience=(CLIENT,),
        groups_claim="groups",
    )
    provider = ExchangeProvider(config, surroundings())
    token = keycloak.access_token("alice")

    alice = check(provider.authenticate(bearer(token)), "alice", keycloak)

    assert alice.access_token != Secret(token)
    with pytest.raises(InvalidCredentialsError):
        provider.authenticate(bearer(token[:-8] + "AAAAAAAA"))
    provider.close()


def test_clients_in_the_place_of_people(keycloak: Keycloak) -> None:
    shared = ClientCredentialsProvider(
        ClientCredentialsConfig(
            token_endpoint=keycloak.token_url, client_id=CLIENT, client_secret=Secret(CLIENT_SECRET)
        ),
        surroundings(),
    )
    service = shared.authenticate(request(NoCredential()))
    assert service is not None
    assert (service.username, service.personal) == (f"service-account-{CLIENT}", False)
    assert shared.refresh(service).key == service.key
    shared.close()

    own = ClientProvider(ClientPassthroughConfig(token_url=keycloak.token_url), surroundings())
    caller = own.authenticate(basic(CLIENT, CLIENT_SECRET))
    assert caller is not None
    assert caller.key == service.key
    for login in (basic(CLIENT, "wrong"), basic("no-client", CLIENT_SECRET), basic("alice", "alice")):
        with pytest.raises(InvalidCredentialsError):
            own.authenticate(login)
    own.close()


@pytest.mark.rule("TRI-8")
def test_a_login_in_a_browser(
    keycloak: Keycloak, loaded: LoadedConfig, store: SessionStore, providers: Mapping[str, Any]
) -> None:
    logins = browser_logins(store, loaded.config.auth)
    assert logins is not None
    begun = logins.begin(redirect_uri=logins.redirect_uri, client=HERE)
    assert logins.poll(begun.id) is None

    came_back, _ = Browser().log_in(begun.url, "alice")
    answer = {name: values[0] for name, values in urllib.parse.parse_qs(urllib.parse.urlsplit(came_back).query).items()}
    assert came_back.startswith(REDIRECT)
    assert answer["iss"] == keycloak.issuer
    logins.finish(state=answer["state"], code=Secret(answer["code"]))
    token = logins.poll(begun.id)

    assert token is not None
    live = store.authenticate(BearerCredential(token=token), HERE)
    alice = check(live.session.identity, "alice", keycloak)
    check(providers["external"].refresh(alice), "alice", keycloak)
    with pytest.raises(InvalidCredentialsError):
        logins.poll(begun.id)

    # The code belongs to this login and this verifier: it is of no use in another one.
    second = logins.begin(redirect_uri=logins.redirect_uri, client=HERE)
    stolen, _ = Browser().log_in(second.url, "bob")
    code = urllib.parse.parse_qs(urllib.parse.urlsplit(stolen).query)["code"][0]
    third = logins.begin(redirect_uri=logins.redirect_uri, client=HERE)
    state = urllib.parse.parse_qs(urllib.parse.urlsplit(third.url).query)["state"][0]
    with pytest.raises(InvalidCredentialsError):
        logins.finish(state=state, code=Secret(code))
    with pytest.raises(InvalidCredentialsError):
        logins.poll(third.id)


@pytest.mark.rule("TRI-8")
def test_a_login_on_another_device(
    keycloak: Keycloak, loaded: LoadedConfig, store: SessionStore, providers: Mapping[str, Any]
) -> None:
    logins = device_logins(store, loaded.config.auth)
    assert logins is not None
    begun = logins.begin(client=HERE)
    assert begun.verification_uri_complete is not None
    assert logins.poll(begun.id) is None

    browser = Browser()
    url, page = browser.log_in(begun.verification_uri_complete, "bob")
    hidden = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', page))
    browser.open(urllib.parse.urljoin(url, _form(page)), **hidden, accept="Yes")
    deadline = time.monotonic() + 60
    while (token := logins.poll(begun.id)) is None:
        assert time.monotonic() < deadline
        time.sleep(0.2)

    live = store.authenticate(BearerCredential(token=token), HERE)
    bob = check(live.session.identity, "bob", keycloak)
    check(providers["external"].refresh(bob), "bob", keycloak)
    with pytest.raises(InvalidCredentialsError):
        logins.poll(begun.id)


@pytest.mark.rule("JWT-8", "JWT-9")
def test_keys_that_come_and_go(keycloak: Keycloak) -> None:
    ticks = TurnedClock()
    provider = bearers(keycloak, ticks, groups_claim="groups")
    old = check(provider.authenticate(bearer(keycloak.access_token("alice"))), "alice", keycloak)
    key = keycloak.add_signing_key()
    try:
        ticks.offset += 31  # unknown keys are asked for once per half minute
        fresh = check(provider.authenticate(bearer(keycloak.access_token("alice"))), "alice", keycloak)
        assert not provider.is_revoked(old)
    finally:
        keycloak.remove_key(key)
    assert not provider.is_revoked(fresh)  # within the bound
    ticks.offset += 301

    assert provider.is_revoked(fresh)
    assert not provider.is_revoked(old)
    provider.close()


def test_a_wrong_issuer_stops_the_check(keycloak: Keycloak) -> None:
    for issuer in (keycloak.issuer + "/", keycloak.issuer.upper(), keycloak.issuer + "x"):
        provider = bearers(keycloak, issuer=issuer)
        with pytest.raises(ExternalError, match="keys of the identity provider cannot be fetched"):
            provider.check()
        provider.close()
