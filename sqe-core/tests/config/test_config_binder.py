"""`bind`: any frozen dataclass of a plugin, from a raw table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import pytest

from sqe_core.config import PluginTable, bind, load
from sqe_core.config.catalog_names import mounted_catalogs
from sqe_core.config.login_chain import login_chain
from sqe_core.spi.identity import Secret


class Mode(Enum):
    FAST = "fast"
    SAFE = "safe"


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    attempts: int = field(default=3, metadata={"minimum": 1, "maximum": 9})


@dataclass(frozen=True, slots=True, kw_only=True)
class LdapConfig:
    url: str = field(metadata={"url": ("ldap", "ldaps")})
    password: Secret | None = None
    timeout_secs: int = 5
    wait: float = field(default=1.0, metadata={"unit": "duration"})
    limit: int = field(default=10, metadata={"unit": "bytes"})
    mode: Mode = Mode.SAFE
    level: Literal[1, 2] = 1
    groups: frozenset[str] = frozenset()
    names: tuple[str, ...] = ()
    extra: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    keys_file: Path | None = None
    retry: Retry = Retry()
    base: str = field(default="", metadata={"aliases": ("base-dn",)})
    verify: bool = True
    anything: Any = None
    computed: str = field(default="", init=False)

    def __post_init__(self) -> None:
        if self.timeout_secs == 13:
            raise ValueError("timeout_secs cannot be 13 with this server")


def test_everything_at_once() -> None:
    value, faults = bind(
        {
            "url": "ldaps://h",
            "password": {"env": "PASSWORD"},
            "timeout_secs": 7,
            "wait": "2m",
            "limit": "64KB",
            "mode": "fast",
            "level": 2,
            "groups": ["a", "b", "a"],
            "names": ["x"],
            "extra": {"k": 1},
            "keys_file": "/keys",
            "retry": {"attempts": 9},
            "base-dn": "dc=x",
            "verify": False,
            "anything": {"a": [1, {"b": 2}]},
        },
        LdapConfig,
        environ={"PASSWORD": "hidden"},
    )

    assert faults == ()
    assert value == LdapConfig(
        url="ldaps://h",
        password=Secret("hidden"),
        timeout_secs=7,
        wait=120.0,
        limit=64 << 10,
        mode=Mode.FAST,
        level=2,
        groups=frozenset({"a", "b"}),
        names=("x",),
        extra={"k": 1},
        keys_file=Path("/keys"),
        retry=Retry(attempts=9),
        base="dc=x",
        verify=False,
        anything={"a": [1, {"b": 2}]},
    )


def test_defaults() -> None:
    assert bind({"url": "ldap://h"}, LdapConfig) == (LdapConfig(url="ldap://h"), ())


@pytest.mark.parametrize(
    ("table", "fault"),
    [
        ({}, "auth.url: is missing"),
        (
            {"url": "http://h"},
            "auth.url: expected a URL such as ldap://host:port/path; the scheme is",
        ),
        ({"mode": "quick"}, 'auth.mode: expected one of fast, safe, not the text "quick"'),
        ({"level": "1"}, 'auth.level: expected one of 1, 2, not the text "1"'),
        ({"level": True}, "auth.level: expected one of 1, 2, not true"),
        ({"retry": {"attempts": 10}}, "auth.retry.attempts: must be at most 9, not 10"),
        ({"retry": {"attempt": 1}}, 'auth.retry.attempt: unknown key; did you mean "attempts"? Known keys: attempts'),
        ({"groups": "a"}, 'auth.groups: expected an array, not the text "a"'),
        ({"extra": {"k": "v"}}, 'auth.extra.k: expected a whole number, not the text "v"'),
        ({"password": {"env": "UNSET"}}, "auth.password: the environment variable UNSET is not set"),
        ({"timeout_secs": 13}, "auth: timeout_secs cannot be 13 with this server"),
        ({"computed": "x"}, "auth.computed: unknown key. "),
    ],
)
def test_faults_have_the_path(table: dict[str, Any], fault: str) -> None:
    value, faults = bind({"url": "ldap://h", **table} if table else {}, LdapConfig, "auth")

    assert value is None
    assert len(faults) == 1
    assert faults[0].startswith(fault)


def test_all_faults_at_once() -> None:
    _, faults = bind({"uri": "ldap://h", "timeout_secs": "5", "verify": 1}, LdapConfig)

    assert len(faults) == 4


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeConfig:
    uri: str
    warehouse: str | None = None
    token: Secret | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RestConfig:
    catalog_url: str
    warehouse: str


def catalog_table(tmp_path: Path, text: str, environ: dict[str, str] | None = None) -> PluginTable:
    file = tmp_path / "sqe.toml"
    file.write_text(text)
    (mount,) = mounted_catalogs(load(file, environ=environ or {}).config)
    return mount.config.options


def test_the_keys_of_a_kind_keep_their_places(tmp_path: Path) -> None:
    table = catalog_table(tmp_path, '[catalogs.lake]\ntype = "acme"\n\nurl = "x"\nwarehouse = "w"\n')

    _, faults = bind(table, LakeConfig)
    assert faults[0] == f"{tmp_path}/sqe.toml:1: catalogs.lake.uri: is missing"
    assert faults[1].startswith(f'{tmp_path}/sqe.toml:4: catalogs.lake.url: unknown key; did you mean "uri"?')
    assert "metadata_cache_ttl_secs" in faults[1]


def test_a_kind_gets_the_shared_keys_that_it_asks_for(tmp_path: Path) -> None:
    table = catalog_table(tmp_path, '[catalog]\ncatalog_url = "http://c"\nwarehouse = "w"\n')

    assert bind(table, RestConfig) == (RestConfig(catalog_url="http://c", warehouse="w"), ())


def test_a_warehouse_names_any_catalog_and_a_url_does_not(tmp_path: Path) -> None:
    text = '[catalog]\ntype = "acme"\ncatalog_url = "http://c"\nwarehouse = "w"\nattempts = 2\n'
    _, faults = bind(catalog_table(tmp_path, text), Retry)

    assert len(faults) == 1
    assert "catalog.catalog_url: unknown key" in faults[0]


def test_secrets_of_a_kind_are_read_in_the_environment_of_the_load(tmp_path: Path) -> None:
    text = '[catalog]\ntype = "acme"\nuri = "x"\ntoken = { env = "TOKEN" }\n'

    value, faults = bind(catalog_table(tmp_path, text, {"TOKEN": "hidden"}), LakeConfig)
    assert faults == ()
    assert value is not None
    assert value.token == Secret("hidden")


def test_words_of_the_environment_get_the_type_of_the_plugin(tmp_path: Path) -> None:
    environ = {"SQE_CATALOG__ATTEMPTS": "7"}

    value, faults = bind(catalog_table(tmp_path, '[catalog]\ntype = "acme"\n', environ), Retry)
    assert (value, faults) == (Retry(attempts=7), ())


def test_tables_of_engines_and_plugins(tmp_path: Path) -> None:
    file = tmp_path / "sqe.toml"
    file.write_text(
        '[policy]\nengine = ["grants", "acme"]\n[policy.acme]\nattempts = 2\n[plugins.watch]\nattempts = 4\n'
    )
    loaded = load(file, environ={})

    assert bind(loaded.part("policy", "acme"), Retry) == (Retry(attempts=2), ())
    assert bind(loaded.config.plugins["watch"], Retry) == (Retry(attempts=4), ())
    assert bind(loaded.table("policy", "nowhere"), Retry) == (Retry(), ())


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    cache_ttl_secs: int = 1
    mask_key: Secret | None = None


def test_an_engine_may_ask_for_keys_of_the_policy_table(tmp_path: Path) -> None:
    file = tmp_path / "sqe.toml"
    file.write_text('[policy]\nengine = ["a","b"]\ncache_ttl_secs = 7\nmask_key = "k"\n[policy.b]\ncache_ttl_secs=8\n')
    loaded = load(file, environ={})

    assert bind(loaded.part("policy", "a"), EngineSettings)[0] == EngineSettings(cache_ttl_secs=7, mask_key=Secret("k"))
    assert bind(loaded.part("policy", "b"), EngineSettings)[0] == EngineSettings(cache_ttl_secs=8, mask_key=Secret("k"))
    assert bind(loaded.part("policy", "a"), Retry) == (Retry(), ())


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSettings:
    user: str = ""
    roles_claim: str = "none"
    token_refresh_buffer_secs: int = 0


def test_a_provider_may_ask_for_keys_of_the_auth_table(tmp_path: Path) -> None:
    file = tmp_path / "sqe.toml"
    file.write_text(
        '[auth]\nroles_claim = "groups"\ntoken_refresh_buffer_secs = 7\n'
        '[[auth.providers]]\ntype = "x"\n[[auth.providers]]\ntype = "x"\nroles_claim = "own"\n'
    )
    first, second = login_chain(load(file, environ={}).config)

    assert bind(first.options, ProviderSettings)[0] == ProviderSettings(
        roles_claim="groups", token_refresh_buffer_secs=7
    )
    assert bind(second.options, ProviderSettings)[0] == ProviderSettings(roles_claim="own", token_refresh_buffer_secs=7)
    assert bind(first.options, Retry) == (Retry(), ())


def test_settings_that_the_core_has_checked(tmp_path: Path) -> None:
    file = tmp_path / "sqe.toml"
    file.write_text("[query_cache]\nttl_secs = 7\nmax_entry_mb = 1\n")

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Wanted:
        ttl_secs: int = 0

    assert bind(load(file, environ={}).settings("query_cache"), Wanted) == (Wanted(ttl_secs=7), ())
