"""How catalogs get their names (features §5.2), and which providers are asked (§1.3)."""

from __future__ import annotations

from pathlib import Path

import pytest
from config_files import written

from sqe_core.config.catalog_names import mounted_catalogs
from sqe_core.config.login_chain import login_chain


@pytest.mark.parametrize(
    ("text", "name", "aliases"),
    [
        ('warehouse = "sales"\ncatalog_url = "http://c"', "sales", {"iceberg", "rest"}),
        ('warehouse = "sales"\ntype = "sqlite"', "sales", {"iceberg", "sqlite"}),
        ('warehouse = "s3://b/w"\ntype = "hadoop"', "hadoop", {"iceberg", "s3://b/w"}),
        ('warehouse = "my-lake"\ntype = "hadoop"', "hadoop", {"iceberg", "my-lake"}),
        ('warehouse = "9lives"\ntype = "hadoop"', "hadoop", {"iceberg", "9lives"}),
        ('warehouse = "/data/w"\ncatalog_url = "http://c"', "iceberg", {"rest", "/data/w"}),
        ('catalog_url = "http://c"', "iceberg", {"rest"}),
        ('catalog_url = "http://c"\ntype = "polaris"', "polaris", {"iceberg"}),
        ('type = "sqlite"\nwarehouse = "w"\n[query]\ndefault_catalog = "main"', "main", {"iceberg", "w", "sqlite"}),
        ('type = "sqlite"\nwarehouse = "w"\n[query]\ndefault_catalog = "w"', "w", {"iceberg", "sqlite"}),
    ],
)
def test_the_one_catalog(tmp_path: Path, text: str, name: str, aliases: set[str]) -> None:
    (mount,) = mounted_catalogs(written(tmp_path, f"[catalog]\n{text}\n").config)

    assert (mount.name, mount.aliases, mount.default, mount.path) == (name, aliases, True, ("catalog",))


def test_several_catalogs_are_sorted_and_have_no_other_names(tmp_path: Path) -> None:
    text = (
        '[catalogs.b]\ntype = "sqlite"\nwarehouse = "x"\n[catalogs.a]\ntype = "jdbc"\n[catalogs.C]\ntype = "hadoop"\n'
    )
    mounts = mounted_catalogs(written(tmp_path, text).config)

    assert [(mount.name, mount.kind, mount.aliases, mount.default) for mount in mounts] == [
        ("C", "hadoop", frozenset(), False),
        ("a", "jdbc", frozenset(), False),
        ("b", "sqlite", frozenset(), False),
    ]
    assert mounts[1].path == ("catalogs", "a")


def test_the_one_of_several_is_the_default(tmp_path: Path) -> None:
    (mount,) = mounted_catalogs(written(tmp_path, '[catalogs.b]\ntype = "sqlite"\n').config)

    assert mount.default


TWO = '[catalog]\ntype = "sqlite"\n[catalogs.b]\ntype = "jdbc"\n'


@pytest.mark.parametrize(
    ("default", "names"),
    [
        (None, {"b": False}),
        ("b", {"b": True}),
        ("main", {"b": False, "main": True}),
    ],
)
def test_the_one_joins_several_only_under_the_default_name(
    tmp_path: Path, default: str | None, names: dict[str, bool]
) -> None:
    query = f'[query]\ndefault_catalog = "{default}"\n' if default else ""
    mounts = mounted_catalogs(written(tmp_path, TWO + query).config)

    if default is None:
        names = {"b": True}
    assert {mount.name: mount.default for mount in mounts} == names
    if default == "main":
        assert mounts[1].path == ("catalog",)
        assert mounts[1].kind == "sqlite"


def test_no_catalog_at_all(tmp_path: Path) -> None:
    assert mounted_catalogs(written(tmp_path, "").config) == ()


def test_no_auth_table_is_one_anonymous_user(tmp_path: Path) -> None:
    (login,) = login_chain(written(tmp_path, "").config)

    assert login.kind == "anonymous"
    assert list(login.options.entries) == ["any_name"]


def test_keycloak_is_a_password_provider(tmp_path: Path) -> None:
    text = '[auth]\nkeycloak_url = "https://k/auth/"\nrealm = "my realm"\nclient_id = "sqe"\nclient_secret = "s"\n'
    (login,) = login_chain(written(tmp_path, text).config)

    assert login.kind == "oidc_password"
    assert login.options.get("token_url") == "https://k/auth/realms/my%20realm/protocol/openid-connect/token"
    assert login.options.get("client_id") == "sqe"
    assert "client_secret" in login.options


def test_the_secret_of_the_auth_table_is_for_password_providers_only(tmp_path: Path) -> None:
    text = '[auth]\nclient_secret = "s"\n[[auth.providers]]\ntype = "oidc_password"\n[[auth.providers]]\ntype = "x"\n'
    password, other = login_chain(written(tmp_path, text).config)

    assert "client_secret" in password.options
    assert "client_secret" not in other.options


def test_a_token_endpoint_of_its_own_gets_no_scope_of_a_catalog(tmp_path: Path) -> None:
    (login,) = login_chain(
        written(tmp_path, '[auth]\ntoken_endpoint = "https://k/protocol/openid-connect/token"\n').config
    )

    assert login.kind == "client_credentials_passthrough"
    assert "scope" not in login.options


def test_the_chain_is_in_order(tmp_path: Path) -> None:
    text = '[[auth.providers]]\ntype = "b"\nuser = "x"\n[[auth.providers]]\ntype = "a"\n'
    first, second = login_chain(written(tmp_path, text).config)

    assert (first.kind, first.path, first.options.get("user")) == ("b", ("auth", "providers", 0), "x")
    assert (second.kind, second.path) == ("a", ("auth", "providers", 1))
