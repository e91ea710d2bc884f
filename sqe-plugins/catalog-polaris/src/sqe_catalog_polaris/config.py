"""The keys of catalogs that speak the Iceberg REST protocol."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

from sqe_core.spi import Secret, required, setting

POLARIS_SCOPE = "PRINCIPAL_ROLE:ALL"
_KEYS_OF_LOGINS = {
    "static": ("token",),
    "client_credentials": ("token_endpoint", "client_id", "client_secret"),
    "token_exchange": ("token_endpoint", "client_id", "client_secret", "audience"),
    "aws": ("region", "access_key", "secret_key", "session_token"),
}
_HEADER_TEXT = (r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?", "printable ASCII, as headers have it")


@dataclass(frozen=True, slots=True, kw_only=True)
class RestAuth:
    """`[catalog.auth]`: how SQE logs in to this catalog."""

    type: Literal["session_bearer", "token_exchange", "static", "anonymous", "client_credentials", "aws"] = setting(
        "session_bearer", "`session_bearer` sends the user's own token."
    )
    token: Secret | None = setting(None, "`static`: the token of everybody.", secret=True)
    token_endpoint: str | None = setting(None, "Where tokens are from.", url=("https", "http"), optional=True)
    client_id: str | None = setting(None, "SQE's own client at the token endpoint.")
    client_secret: Secret | None = setting(None, "Its secret.", secret=True)
    scope: str | None = setting(None, "Scope to ask for.")
    audience: str | None = setting(None, "`token_exchange`: whom the token is for.")
    region: str | None = setting(None, "`aws`: the region in the signature.")
    service: str = setting("execute-api", "`aws`: the service in the signature.")
    access_key: str | None = setting(None, "`aws`: access key.")
    secret_key: Secret | None = setting(None, "`aws`: its secret.", secret=True)
    session_token: Secret | None = setting(None, "`aws`: session token.", secret=True)

    def __post_init__(self) -> None:
        needs = {
            "static": ("token",),
            "client_credentials": ("token_endpoint", "client_id", "client_secret"),
            "token_exchange": ("token_endpoint", "client_id"),
            "aws": ("region",),
        }.get(self.type, ())
        missing = [name for name in needs if not getattr(self, name)]
        if missing:
            raise ValueError(f'`type = "{self.type}"` needs {", ".join(missing)}')
        own = _KEYS_OF_LOGINS.get(self.type, ())
        others = {key for keys in _KEYS_OF_LOGINS.values() for key in keys if key not in own}
        strange = sorted(key for key in others if getattr(self, key) is not None)
        if strange:
            raise ValueError(f'{", ".join(strange)} means nothing with `type = "{self.type}"`')
        if (self.access_key is None) != (self.secret_key is None):
            raise ValueError("access_key and secret_key belong together")


@dataclass(frozen=True, slots=True, kw_only=True)
class RestConfig:
    """`type = "rest"` and its relatives."""

    catalog_url: str = required(
        "Address of the catalog, without `/v1`.", url=("https", "http"), aliases=("polaris_url",)
    )
    warehouse: str | None = setting(None, "Warehouse at the catalog.")
    auth: RestAuth = field(default_factory=RestAuth, metadata={"doc": "How SQE logs in to this catalog."})
    namespace_visibility_filter: bool = setting(True, "Hide namespaces that the caller may not list.")
    read_restrictions: bool = setting(
        True, "Ask with each table what the catalog restricts; false if it never restricts anything."
    )
    store: Literal["s3", "local"] = setting(
        "s3", "Where the tables' files are; files anywhere else are refused. `local` is for development."
    )
    access_delegation: Literal["vended-credentials", "remote-signing", "none"] = setting(
        "vended-credentials", "What SQE asks of the catalog for the access to files."
    )
    headers: dict[str, str] = field(
        default_factory=dict, metadata={"doc": "Further headers of each request; no secrets.", "pattern": _HEADER_TEXT}
    )
    timeout_secs: int = setting(30, "Time for one request, retries included.", minimum=1, maximum=600)
    connect_timeout_secs: int = setting(5, "Time to connect.", minimum=1, maximum=60)
    max_retries: int = setting(2, "How often a request without an answer is sent again.", minimum=1, maximum=10)
    max_connections: int = setting(16, "Most listings that are on their way at a time.", minimum=1, maximum=256)
    max_response_bytes: int = setting(16 * 1024 * 1024, "Largest answer that is read.", unit="bytes", minimum=1024)
    page_size: int = setting(1000, "Names asked for at a time.", minimum=1, maximum=100_000)
    max_names: int = setting(100_000, "Most names that one listing may have.", minimum=1, maximum=10_000_000)
    breaker_failure_threshold: int = setting(5, "Failures in a row after which the catalog is left alone.", minimum=1)
    breaker_recovery_secs: int = setting(30, "For how long, until one request tries again.", minimum=1)

    def __post_init__(self) -> None:
        parts = urlsplit(self.catalog_url)
        if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
            raise ValueError("catalog_url holds a host, a port and a path only; logins stand in [catalog.auth]")
        if parts.path.rstrip("/").endswith("/v1"):
            raise ValueError("catalog_url ends before /v1, which SQE adds")
        forbidden = [name for name in self.headers if name.lower() in _OWN_HEADERS]
        if forbidden:
            raise ValueError(f"headers cannot contain {', '.join(forbidden)}: SQE sets these itself")

    @property
    def scope(self) -> str:
        """The scope to ask a token endpoint for."""
        return POLARIS_SCOPE if self.auth.scope is None else self.auth.scope

    @property
    def own_headers(self) -> Mapping[str, str]:
        return {}


_OWN_HEADERS = frozenset(
    {"authorization", "cookie", "host", "content-length", "transfer-encoding", "x-iceberg-access-delegation"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolarisConfig(RestConfig):
    realm: str | None = setting(None, "Realm at a Polaris that has several.", pattern=_HEADER_TEXT)
    realm_header: str = setting(
        "Polaris-Realm", "Header that carries the realm.", pattern=("[A-Za-z0-9-]+", "the name of a header")
    )

    @property
    def own_headers(self) -> Mapping[str, str]:
        """The realm: several may live behind one address."""
        return {self.realm_header: self.realm} if self.realm else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class PolarisGrantsConfig:
    """`[access_control] backend = "polaris"`; the keys of `[access_control]` stand there."""

    url: str = required("Address of Polaris, without `/api/management/v1`.", url=("https", "http"))
    timeout_secs: int = setting(30, "Time for one statement at Polaris.", minimum=1, maximum=600)
    client_id: str | None = setting(None, "Service account; unset = the administrator's own token.")
    client_secret: Secret | None = setting(None, "Its secret.", secret=True)
    scope: str = setting(POLARIS_SCOPE, "Scope of the service account.")
    realm: str | None = setting(None, "Realm at a Polaris that has several.", pattern=_HEADER_TEXT)
    realm_header: str = setting(
        "Polaris-Realm", "Header that carries the realm.", pattern=("[A-Za-z0-9-]+", "the name of a header")
    )

    def __post_init__(self) -> None:
        if (self.client_id is None) != (self.client_secret is None):
            raise ValueError("client_id and client_secret belong together")
        if re.search(r"/api(/|$)", urlsplit(self.url).path):
            raise ValueError("url ends before /api, which SQE adds: https://polaris.example.com")

    @property
    def server(self) -> PolarisConfig:
        """How the server is reached: as its catalogs are."""
        base = self.url.rstrip("/") + "/api/catalog"
        auth = RestAuth()
        if self.client_id is not None:
            auth = RestAuth(
                type="client_credentials",
                token_endpoint=f"{base}/v1/oauth/tokens",
                client_id=self.client_id,
                client_secret=self.client_secret,
                scope=self.scope,
            )
        return PolarisConfig(
            catalog_url=base,
            auth=auth,
            timeout_secs=self.timeout_secs,
            realm=self.realm,
            realm_header=self.realm_header,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NessieConfig(RestConfig):
    """`type = "nessie"`. A branch stands in the address: `…/iceberg/main`."""

    @property
    def scope(self) -> str:
        """Nessie's tokens have the identity provider's scopes, and none of Polaris."""
        return self.auth.scope or ""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnityConfig(NessieConfig):
    """`type = "unity"`. The warehouse is the name of the catalog there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HorizonConfig(NessieConfig):
    """`type = "horizon"`. The warehouse is the name of the database there."""
