"""The login chain and the session store that a configuration file describes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from testbed.making import each_ended

from sqe_core.bootstrap import compose, login_providers, session_store
from sqe_core.config.loading import LoadedConfig, load
from sqe_core.plugins.manager import PluginManager
from sqe_core.session.login import LoginChain
from sqe_core.session.statement_session import StatementSession
from sqe_core.session.store import SessionStore
from sqe_core.spi.auth import (
    BasicCredential,
    BearerCredential,
    CertificateCredential,
    ClientInfo,
    LoginRequest,
    NoCredential,
)
from sqe_core.spi.errors import (
    AccessDeniedError,
    ConfigError,
    InvalidCredentialsError,
    NotSupportedError,
    ResourcesError,
    StartupError,
)
from sqe_core.spi.identity import Secret

KEY = "sqe_composed-0123456789"
HERE = ClientInfo(protocol="flight", address="127.0.0.1")
POLICY = '[policy]\nengine = "passthrough"\ni_understand_no_enforcement = true\n'


@pytest.fixture
def load_text(tmp_path: Path) -> Callable[[str], LoadedConfig]:
    def make(text: str) -> LoadedConfig:
        (tmp_path / "keys.toml").write_text(f'[[keys]]\nkey = "{KEY}"\nuser = "etl"\n')
        (tmp_path / "sqe.toml").write_text(text.replace("KEYS", str(tmp_path / "keys.toml")))
        return load(tmp_path / "sqe.toml", environ={})

    return make


@pytest.fixture
def make_store(load_text, tmp_path: Path) -> Iterator[Callable[[str], SessionStore]]:

    def make(text: str) -> SessionStore:
        catalogs = f'[catalogs.lake]\ntype = "sqlite"\ndirectory = "{tmp_path / "lake"}"\n'
        loaded, plugins = load_text(text + catalogs + POLICY), PluginManager()
        return session_store(compose(loaded, plugins), loaded, plugins)

    yield from each_ended(make)


def test_without_auth_there_is_one_anonymous_user(make_store) -> None:
    store = make_store("")
    live = store.authenticate(NoCredential(), HERE)

    assert (live.identity.username, live.identity.provider) == ("anonymous", "anonymous")
    assert (live.session.catalog, live.session.schema, live.session.protocol) == ("lake", ("default",), "flight")
    named = store.authenticate(BasicCredential(username="root", password=Secret("secret")), HERE)
    assert named.identity == live.identity, "a name that nobody vouches for is no name"
    with pytest.raises(InvalidCredentialsError):
        store.authenticate(BearerCredential(token=Secret("eyJ.eyJ.x")), HERE)


@pytest.mark.rule("SESS-2")
def test_roles_are_chosen_where_no_new_connection_gets_them_back(make_store) -> None:
    """A client whose connection broke goes on in another one, and would have all its roles there without a word."""
    store = make_store("")
    silent = replace(HERE, connection="7", reconnects=True)

    def statement(client: ClientInfo, *, own: bool = False) -> StatementSession:
        return StatementSession(store.authenticate(NoCredential(), client, own=own).session)

    alone = statement(silent)
    for roles in ((), ("reader",)):
        with pytest.raises(NotSupportedError, match="SET ROLE would be lost") as caught:
            alone.choose_roles(roles)
        assert alone.session.chosen_roles is None
    assert "x-session-id" in str(caught.value.hint)
    alone.choose_roles(None)
    found_again = (
        statement(replace(silent, label="mine")),
        statement(HERE, own=True),
        statement(replace(HERE, connection="8")),
    )
    for session in found_again:
        session.choose_roles(())
        assert session.session.chosen_roles == ()


def test_where_the_file_says_anonymous_a_user_name_is_refused(make_store) -> None:
    store = make_store('[[auth.providers]]\ntype = "anonymous"\n')
    with pytest.raises(InvalidCredentialsError):
        store.authenticate(BasicCredential(username="root", password=Secret("")), HERE)


CHAIN = """
[[auth.providers]]
type = "api_key"
keys_file = "KEYS"
[[auth.providers]]
type = "mtls"
extract_ou = false
[[auth.providers]]
type = "anonymous"
user = "guest"
[[auth.providers]]
type = "anonymous"
user = "second"
"""


def test_the_chain_of_the_file(make_store, load_text) -> None:
    names = [name for name, _ in login_providers(load_text(CHAIN), PluginManager())]
    assert names == ["api_key", "mtls", "anonymous", "anonymous-2"]

    store = make_store(CHAIN)
    certificate = CertificateCredential(
        der=b"", subject=(("commonName", "host"), ("organizationalUnitName", "x")), issuer=(("commonName", "CA"),)
    )
    credentials = (BearerCredential(token=Secret(KEY)), certificate, NoCredential())
    lives = [store.authenticate(credential, HERE) for credential in credentials]
    assert [live.identity.username for live in lives] == ["etl", "host", "guest"]
    assert not lives[1].identity.groups
    with pytest.raises(InvalidCredentialsError):
        store.authenticate(BearerCredential(token=Secret("eyJ.eyJ.x")), HERE)


def test_a_key_that_is_taken_from_the_file_ends_its_session(make_store, tmp_path: Path) -> None:
    store = make_store(CHAIN)
    live = store.authenticate(BearerCredential(token=Secret(KEY)), HERE)
    (tmp_path / "keys.toml").write_text("")

    with pytest.raises(InvalidCredentialsError):
        live.ensure_usable()
    assert live.session.closed
    with pytest.raises(InvalidCredentialsError):
        store.authenticate(BearerCredential(token=Secret(KEY)), HERE)


def test_the_limits_of_the_file(make_store) -> None:
    keys = (
        "[coordinator]\nauth_handshake_timeout_secs = 7\n[session]\nidle_timeout_secs = 5\nabsolute_timeout_secs = 9\n"
    )
    store = make_store(CHAIN + keys + "expiry_sweep_interval_secs = 3\n")
    limits = store._limits
    assert (limits.idle_secs, limits.absolute_secs, limits.sweep_secs) == (5, 9, 3)
    assert store.chain.timeout_secs == 7


@pytest.mark.rule("SESS-6")
def test_the_bounds_of_sessions_of_the_file(make_store, tmp_path: Path) -> None:
    assert (make_store(CHAIN)._limits.most, make_store(CHAIN)._limits.most_per_user) == (10_000, 200)
    store = make_store(CHAIN + "[session]\nmax_sessions = 3\nmax_sessions_per_user = 2\n")
    key = BearerCredential(token=Secret(KEY))
    mine = [store.authenticate(key, replace(HERE, protocol=f"p{number}")) for number in range(3)]
    assert [live.session.closed for live in mine] == [True, False, False]

    store.authenticate(NoCredential(), HERE)
    with pytest.raises(ResourcesError):
        store.authenticate(NoCredential(), replace(HERE, protocol="other"))
    assert [live.session.closed for live in mine] == [True, False, False]


@pytest.mark.rule("AUTHN-7")
@pytest.mark.parametrize(("text", "bound"), [("enabled = true\nauth_attempts_per_minute = 3", 3), ("", 10)])
def test_logins_are_limited_with_and_without_a_rate_limit(make_store, text: str, bound: int) -> None:
    store = make_store(f"{CHAIN}[rate_limit]\n{text}\n")
    for number in range(bound):
        with pytest.raises(InvalidCredentialsError):
            store.authenticate(BasicCredential(username="etl", password=Secret(f"sqe_{number}")), HERE)
    with pytest.raises(ResourcesError):
        store.authenticate(BasicCredential(username="etl", password=Secret(KEY)), HERE)


@pytest.mark.parametrize("allowed", [False, True])
def test_readable_connections_are_for_those_who_allow_them(make_store, allowed: bool) -> None:
    store = make_store(f"{CHAIN}[security]\nallow_insecure_transport = {str(allowed).lower()}\n")
    outside = ClientInfo(protocol="flight", address="10.0.0.1")
    if allowed:
        assert store.authenticate(BearerCredential(token=Secret(KEY)), outside).identity.username == "etl"
    else:
        with pytest.raises(AccessDeniedError):
            store.authenticate(BearerCredential(token=Secret(KEY)), outside)


def test_every_fault_of_the_providers_is_told(load_text) -> None:
    text = '[[auth.providers]]\ntype = "api_key"\n[[auth.providers]]\ntype = "mtls"\nextract = true\n'
    with pytest.raises(ConfigError) as caught:
        login_providers(load_text(text), PluginManager())
    assert len(caught.value.faults) == 2
    assert "auth.providers[0].keys_file: is missing" in caught.value.faults[0]
    assert "auth.providers[1].extract: unknown key" in caught.value.faults[1]


def test_a_file_of_keys_that_is_missing_stops_the_start(load_text) -> None:
    with pytest.raises(StartupError, match="The login provider 'api_key' cannot use its keys"):
        login_providers(load_text('[[auth.providers]]\ntype = "api_key"\nkeys_file = "/missing"'), PluginManager())


def test_a_provider_that_is_not_installed_stops_the_start(load_text) -> None:
    with pytest.raises(ConfigError, match=r"auth\.providers\[0\]\.type: The login provider 'ldap' is not known"):
        login_providers(load_text('[[auth.providers]]\ntype = "ldap"'), PluginManager())


@pytest.mark.rule("AUTHN-2")
def test_production_refuses_what_a_provider_objects_to(load_text) -> None:
    loaded = load_text('[[auth.providers]]\ntype = "anonymous"\n')
    from dataclasses import replace

    config = replace(loaded.config, coordinator=replace(loaded.config.coordinator, production_mode=True))
    with pytest.raises(ConfigError, match=r"auth\.providers\[0\].*refused by production_mode: the login provider"):
        login_providers(replace(loaded, config=config), PluginManager())


MAPPED = """
[auth]
[auth.role_mappings]
loaders = ["etl_writer", "catalog_admin"]
etl = "never"
"commonName=host" = "hosts"
[[auth.providers]]
type = "api_key"
keys_file = "KEYS"
[[auth.providers]]
type = "mtls"
"""


@pytest.mark.rule("AUTHN-9")
def test_outside_groups_and_subjects_stand_for_roles(make_store, tmp_path: Path) -> None:
    store = make_store(MAPPED)
    (tmp_path / "keys.toml").write_text(f'[[keys]]\nkey = "{KEY}"\nuser = "hal"\ngroups = ["loaders", "other"]\n')
    live = store.authenticate(BearerCredential(token=Secret(KEY)), HERE)
    assert live.identity.roles == {"etl_writer", "catalog_admin"}
    live.ensure_usable()

    host = CertificateCredential(der=b"", subject=(("commonName", "host"),), issuer=(("commonName", "CA"),))
    assert store.authenticate(host, HERE).identity.roles == {"hosts"}

    (tmp_path / "keys.toml").write_text(f'[[keys]]\nkey = "{KEY}"\nuser = "hal"\ngroups = ["other"]\n')
    with pytest.raises(InvalidCredentialsError):
        live.ensure_usable()


@pytest.mark.rule("AUTHN-9")
def test_a_name_that_people_choose_stands_for_nothing(make_provider) -> None:
    provider = make_provider(alice="wonderland")
    provider.changes = {"username": "service_admins", "groups": frozenset({"SERVICE_ADMINS"})}
    chain = LoginChain([("passwords", provider)], role_mappings={"service_admins": ("service_admin",)})
    request = LoginRequest(credential=BasicCredential(username="alice", password=Secret("wonderland")), client=HERE)

    assert not chain.authenticate(request).roles


def test_a_renewed_login_has_its_mapped_roles_too(make_provider) -> None:
    class Renewing(make_provider):
        def refresh(self, identity):
            return self.identity(identity.username)

    provider = Renewing(alice="wonderland")
    provider.changes = {"groups": frozenset({"staff"})}
    chain = LoginChain([("passwords", provider)], role_mappings={"staff": ("analyst",)})
    renewed = chain.refresh(provider.identity("alice"))
    assert renewed is not None
    assert renewed.roles == {"analyst"}
