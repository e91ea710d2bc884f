"""The catalogs behind the kinds, and what is special about each."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from urllib.parse import urlsplit

from sqe_catalog_polaris.client import RestClient
from sqe_catalog_polaris.config import RestConfig, UnityConfig
from sqe_catalog_polaris.listing import RestListing, Verdicts
from sqe_catalog_polaris.login import AwsLogin, NoLogin, UserLogin, make_login
from sqe_core.spi import (
    CatalogBackend,
    CatalogContext,
    CatalogMetadata,
    ConfigError,
    ExternalError,
    Identity,
    PluginContext,
    ReadRestrictions,
    SqeError,
    SupportsDiscovery,
    SupportsLogout,
    SupportsReadRestrictions,
)
from sqe_http.places import is_loopback

_log = logging.getLogger("sqe_core.catalog_polaris")

_DELEGATION = "X-Iceberg-Access-Delegation"
_FILES = {"s3": "org.apache.iceberg.aws.s3.S3FileIO", "local": "org.apache.iceberg.hadoop.HadoopFileIO"}
_STATIC_KEYS = ("s3.access-key-id", "s3.secret-access-key", "s3.session-token")
# In the place of the machine's own: a table's vended keys take theirs, and nothing else opens with them. A provider of
# credentials would not do, because Iceberg prefers it to vended keys.
_NO_KEY = "vended-keys-only"
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_ANY_REGION = "us-east-1"
# Services of AWS that keep every name in lower case.
_LOWER_CASE = frozenset({"glue", "s3tables"})
_NOBODY = Identity(issuer="sqe:catalog", subject="check", username="check", provider="none", personal=False)


class RestBackend(CatalogBackend, SupportsDiscovery, SupportsReadRestrictions, SupportsLogout):
    lists_without_engine = True
    vends_credentials = True

    def __init__(self, name: str, config: RestConfig, context: CatalogContext) -> None:
        self.uri = config.catalog_url
        self._name = name
        self.config = config
        self._context = context
        self.login = make_login(config, context)
        self.identity_mode = self.login.identity_mode
        if isinstance(self.login, AwsLogin) and config.auth.service in _LOWER_CASE:
            self.ignores_case = True
        if config.access_delegation != "none" or context.require_vended_credentials:
            wanted = "vended-credentials" if context.require_vended_credentials else config.access_delegation
            delegation = {_DELEGATION: wanted}
        else:
            delegation = {}
        self._headers = {**config.headers, **config.own_headers, **delegation}
        self._properties = self._fixed_properties()
        self._client = RestClient(config, self.login, context, self._headers)
        self._verdicts = Verdicts(self._client)
        if isinstance(self.login, AwsLogin) and not self.login.signs:
            self.lists_without_engine = False
        if not isinstance(self.login, NoLogin):
            refuse_readable(f"catalog {name}", "catalog_url", config.catalog_url, context)
        if config.auth.type in ("token_exchange", "client_credentials"):
            refuse_readable(f"catalog {name}", "auth.token_endpoint", config.auth.token_endpoint or "", context)
        if context.production_mode and config.store == "local":
            raise ConfigError((f'catalog {name}: store = "local" is refused by production_mode',))

    def _fixed_properties(self) -> Mapping[str, str]:
        config, context = self.config, self._context
        millis = str(config.timeout_secs * 1000)
        properties = {
            **context.storage,
            "type": "rest",
            "sqe.mount": "rest",
            "uri": config.catalog_url.rstrip("/"),
            # Iceberg's cache of loaded tables makes sessions blind for each other's commits.
            "cache-enabled": "false",
            # Whatever the catalog says, the engine reads files by this and nothing else (ISO-7).
            "io-impl": _FILES[config.store],
            "rest.client.connection-timeout-ms": str(config.connect_timeout_secs * 1000),
            "rest.client.socket-timeout-ms": millis,
            # Iceberg's own five retries take 32 s.
            "rest.client.max-retries": str(config.max_retries),
            "rest-page-size": str(config.page_size),
            # A report holds the filters of a scan, those of policies too.
            "rest-metrics-reporting-enabled": "false",
        }
        if config.warehouse:
            properties["warehouse"] = config.warehouse
        properties |= {f"header.{name}": value for name, value in self._headers.items()}
        if context.require_vended_credentials:
            for key in _STATIC_KEYS:
                properties.pop(key, None)
            properties["s3.access-key-id"] = properties["s3.secret-access-key"] = _NO_KEY
            # Without one the AWS client would look for it around itself.
            properties.setdefault("client.region", _ANY_REGION)
        return properties

    def spark_properties(self, identity: Identity) -> Mapping[str, str]:
        return {**self._properties, **self.login.properties(identity)}

    def required_jars(self) -> Sequence[str]:
        """Return the AWS SDK, where the files are in S3 or the requests are signed."""
        return ("aws",) if self.config.store == "s3" or isinstance(self.login, AwsLogin) else ()

    def quick_metadata(self, identity: Identity) -> CatalogMetadata | None:
        if not self.lists_without_engine:
            return None
        filtered = self.config.namespace_visibility_filter and isinstance(self.login, UserLogin)
        return RestListing(self._client, identity, self.login.key(identity), self._verdicts if filtered else None)

    def check(self) -> None:
        """Ask for the catalog's configuration, as nobody where users bring their own tokens."""
        knows = not isinstance(self.login, UserLogin) and self.lists_without_engine
        self._client.probe(_NOBODY if knows else None)

    def discover(self, name: str, identity: Identity) -> CatalogBackend | None:
        """Return the warehouse of that name at the same address, when the catalog offers it to this user."""
        # One service account would find for everybody what it may see. And what Iceberg's client would take for
        # something else, as `env:NAME`, is the name of no warehouse.
        if self.identity_mode != "user" or not _PLAIN_NAME.fullmatch(name):
            return None
        if not self._client.knows_warehouse(name, identity):
            return None
        return type(self)(name, replace(self.config, warehouse=name), self._context)

    def is_same(self, other: CatalogBackend, identity: Identity) -> bool:
        """Whether requests to another catalog go where those to this one go, whatever its warehouse is called."""
        if not isinstance(other, RestBackend) or other._client.server != self._client.server:
            return False
        try:
            return other._client.place(identity) == self._client.place(identity)
        except SqeError:
            return True

    def read_restrictions(self, namespace: tuple[str, ...], name: str, identity: Identity) -> ReadRestrictions | None:
        if not self.config.read_restrictions:
            return None
        if not self.lists_without_engine:
            raise ExternalError(
                "SQE cannot ask this catalog what it restricts",
                hint="give the catalog keys of its own, or set read_restrictions = false",
            )
        return self._client.read_restrictions(identity, namespace, name)

    def forget_login(self, identity: Identity) -> None:
        """Forget the token that this login earned, and what it was told. A service account's stay."""
        if not isinstance(self.login, UserLogin) or not identity.access_token:
            return
        key = self.login.key(identity)
        self.login.forget(identity)
        self._verdicts.forget(key)
        self._client.forget(key)

    def flush(self) -> None:
        self._verdicts.clear()
        self._client.forget_all()

    def close(self) -> None:
        self._verdicts.clear()
        self._client.close()
        self.login.close()


class UnityBackend(RestBackend):
    """Unity Catalog offers its tables over this protocol for reading."""

    read_only = True
    supports_views = False
    ignores_case = True


def make_backend(name: str, config: RestConfig, context: CatalogContext) -> RestBackend:
    if isinstance(config, UnityConfig):
        return UnityBackend(name, config, context)
    return RestBackend(name, config, context)


def refuse_readable(whose: str, key: str, url: str, context: PluginContext) -> None:
    """Refuse an address over which others could read tokens in production, and warn elsewhere."""
    if not url.lower().startswith("http:") or is_loopback(urlsplit(url).hostname or ""):
        return
    if context.production_mode:
        raise ConfigError((f"{whose}: {key} has to be https in production_mode",))
    _log.warning("%s: tokens go over plain http (%s): whoever is between can read them", whose, key)
