"""The providers that are asked, in order, whichever form of `[auth]` says so.

The short forms are the file's own words and each means one kind, so their names stand here; what a kind is, and which
keys it takes, says whoever provides it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from urllib.parse import quote, urlsplit

from sqe_core.config.origin import DEFAULT, KeyPath, Node, as_node
from sqe_core.config.plugin_table import PluginTable
from sqe_core.config.sections.auth import AuthConfig, ExternalLoginConfig
from sqe_core.config.sections.root import SqeConfig

_TOKENS_OF_CATALOGS = "/v1/oauth/tokens"
_SCOPE_OF_CATALOGS = "PRINCIPAL_ROLE:ALL"
# Keys of `[auth]` that every provider takes when it has none of its own. Not `role_mappings`: the chain applies it.
_OF_ALL_PROVIDERS = ("roles_claim", "token_refresh_buffer_secs")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginProvider:
    """A provider to create: its kind, and the keys of that kind."""

    kind: str
    options: PluginTable
    path: KeyPath


def login_chain(config: SqeConfig) -> tuple[LoginProvider, ...]:
    """The chain. Without `[auth]` everybody is one anonymous user."""
    auth = config.auth
    if auth is None:
        options = PluginTable(path=("auth",), node=Node(_nodes({"any_name": True}), DEFAULT))
        return (LoginProvider(kind="anonymous", options=options, path=("auth",)),)
    shared = _nodes(
        {key: getattr(auth, key) for key in _OF_ALL_PROVIDERS}
        | {"tls_skip_verify": not auth.verify_tls, "client_ca_file": config.coordinator.tls.ca_file or None}
    )
    chain = [
        LoginProvider(kind=provider.type, options=provider.options, path=("auth", "providers", index))
        for index, provider in enumerate(auth.providers)
    ]
    single = _single_provider(auth)
    if single is not None:
        chain.insert(0, single)
    if auth.external is not None:
        # Last: no credential is its to judge.
        path = ("auth", "external")
        chain.append(LoginProvider(kind="external", options=auth.external.options, path=path))
    return tuple(_with_shared(provider, shared, auth) for provider in chain)


def _with_shared(provider: LoginProvider, shared: Mapping[str, Node], auth: AuthConfig) -> LoginProvider:
    """Offer the keys of `[auth]`; its secret only to the kind that shares it, others' clients are not its client."""
    own: Mapping[str, Node] = {}
    if provider.kind == "oidc_password":
        own = _nodes({"client_secret": auth.client_secret})
    elif provider.kind == "external" and auth.external is not None and provider.path == ("auth", "external"):
        own = _keys_of(auth.external)
    return replace(provider, options=replace(provider.options, shared={**shared, **own}))


def _keys_of(external: ExternalLoginConfig) -> Mapping[str, Node]:
    """The keys of `[auth.external]` that the core checks; the kind takes the others from the table itself."""
    keys = {field.name: getattr(external, field.name) for field in fields(external) if field.name != "options"}
    device = keys.pop("device")
    if device is not None:
        keys["device"] = {field.name: getattr(device, field.name) for field in fields(device)}
        if device.client_id is None:
            del keys["device"]["client_id"]
    return _nodes(keys)


def _single_provider(auth: AuthConfig) -> LoginProvider | None:
    if auth.keycloak_url and auth.realm:
        base = f"{auth.keycloak_url.rstrip('/')}/realms/{quote(auth.realm, safe='')}"
        keys = {
            "token_url": f"{base}/protocol/openid-connect/token",
            "client_id": auth.client_id,
        }
        return _provider("oidc_password", keys)
    if auth.token_endpoint:
        # Polaris, which answers at the path of the REST catalog's specification, refuses a login without a scope.
        scope = _SCOPE_OF_CATALOGS if urlsplit(auth.token_endpoint).path.endswith(_TOKENS_OF_CATALOGS) else None
        return _provider("client_credentials_passthrough", {"token_url": auth.token_endpoint, "scope": scope})
    return None


def _provider(kind: str, keys: Mapping[str, object]) -> LoginProvider:
    options = PluginTable(path=("auth",), node=Node(_nodes(keys), DEFAULT))
    return LoginProvider(kind=kind, options=options, path=("auth",))


def _nodes(keys: Mapping[str, object]) -> dict[str, Node]:
    return {key: as_node(value, DEFAULT) for key, value in keys.items() if value is not None}
