"""A login that cannot work, or that is configured twice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqe_core.config.checks.catalogs import configured_catalogs
from sqe_core.config.origin import Fault
from sqe_core.config.sections.catalog import CatalogAuthConfig
from sqe_core.config.sections.root import SqeConfig

# What each type needs, and what it may have.
_NEEDED_FOR_CATALOG_LOGIN = {
    "static": ("token",),
    "client_credentials": ("token_endpoint", "client_id", "client_secret"),
    "token_exchange": ("token_endpoint", "client_id"),
}
_KEYS_OF_CATALOG_LOGIN = {
    **_NEEDED_FOR_CATALOG_LOGIN,
    "token_exchange": ("token_endpoint", "client_id", "client_secret", "audience"),
    "aws": ("region", "access_key", "secret_key", "session_token"),
}


def check_login_is_complete(config: SqeConfig) -> Iterator[Fault]:
    """`[auth]` says how to log in, and says it whole."""
    auth = config.auth
    if auth is None:
        return
    if auth.keycloak_url and not auth.realm:
        yield Fault(("auth", "realm"), "is missing; `keycloak_url` needs it")
    if auth.realm and not auth.keycloak_url:
        yield Fault(("auth", "keycloak_url"), "is missing; `realm` needs it")
    if auth.keycloak_url and not auth.client_id:
        yield Fault(("auth", "client_id"), "is missing; `keycloak_url` needs it")
    if not (auth.keycloak_url or auth.realm or auth.token_endpoint or auth.providers or auth.external):
        yield Fault(
            ("auth",),
            "names no way to log in; write `token_endpoint`, or `keycloak_url` and `realm`, or [[auth.providers]]; "
            "without an [auth] table there is one anonymous user",
        )


def check_one_form_of_login(config: SqeConfig) -> Iterator[Fault]:
    """One single provider, or a chain."""
    auth = config.auth
    if auth is None:
        return
    if auth.keycloak_url and auth.token_endpoint:
        yield Fault(("auth", "token_endpoint"), "stands beside `keycloak_url`; only one of them can be the provider")
    for key in ("keycloak_url", "token_endpoint"):
        if getattr(auth, key) and auth.providers:
            yield Fault(("auth", key), "stands beside [[auth.providers]]; make it an entry of that chain")


def check_catalog_login(config: SqeConfig) -> Iterator[Fault]:
    """`[catalog.auth]` has the keys of its type, and no others."""
    for path, catalog in configured_catalogs(config):
        login = catalog.auth
        for key in _NEEDED_FOR_CATALOG_LOGIN.get(login.type, ()):
            if not getattr(login, key):
                yield Fault((*path, "auth", key), f'is missing; type "{login.type}" needs it')
        for key, owners in _keys_of_other_types(login).items():
            belongs = " or ".join(f'"{owner}"' for owner in owners)
            yield Fault((*path, "auth", key), f'has no meaning with type "{login.type}"; it belongs to {belongs}')


def _keys_of_other_types(login: CatalogAuthConfig) -> Mapping[str, list[str]]:
    """The keys that are set and that only other types have, with these types."""
    found: dict[str, list[str]] = {}
    own = _KEYS_OF_CATALOG_LOGIN.get(login.type, ())
    for kind, keys in _KEYS_OF_CATALOG_LOGIN.items():
        for key in keys:
            if key not in own and getattr(login, key):
                found.setdefault(key, []).append(kind)
    return found
