"""Catalogs that cannot be mounted, or not under the name that is meant."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from sqe_core.config.origin import Fault, KeyPath
from sqe_core.config.sections.catalog import CatalogConfig, CatalogStorageConfig
from sqe_core.config.sections.root import SqeConfig
from sqe_core.spi.names import RESERVED_PREFIXES
from sqe_http.places import is_loopback

RESERVED_NAMES = frozenset({"system"})


def configured_catalogs(config: SqeConfig) -> Iterator[tuple[KeyPath, CatalogConfig]]:
    """`[catalog]` and every `[catalogs.<name>]`, with their paths."""
    if config.catalog is not None:
        yield ("catalog",), config.catalog
    for name, catalog in config.catalogs.items():
        yield ("catalogs", name), catalog


def check_catalog_names(config: SqeConfig) -> Iterator[Fault]:
    """Names that SQE keeps for itself, and names that differ in case only."""
    seen: dict[str, str] = {}
    for name in config.catalogs:
        folded = name.lower()
        if not name.strip() or folded in RESERVED_NAMES or folded.startswith(RESERVED_PREFIXES):
            yield Fault(("catalogs", name), "cannot be the name of a catalog; SQE keeps it for itself")
        if folded in seen:
            yield Fault(("catalogs", name), f'differs from "{seen[folded]}" in case only, which SQL does not see')
        seen.setdefault(folded, name)
    default = (config.query.default_catalog or "").lower()
    if default in RESERVED_NAMES or default.startswith(RESERVED_PREFIXES):
        yield Fault(("query", "default_catalog"), "cannot be the name of a catalog; SQE keeps it for itself")


def check_default_catalog(config: SqeConfig) -> Iterator[Fault]:
    """`query.default_catalog` is a catalog that exists."""
    default = config.query.default_catalog
    if default is None or not config.catalogs or config.query.catalog_discovery != "static":
        return
    if default not in config.catalogs and config.catalog is None:
        known = ", ".join(sorted(config.catalogs))
        yield Fault(("query", "default_catalog"), f'"{default}" is no configured catalog; there are: {known}')


def check_stores_are_encrypted(config: SqeConfig) -> Iterator[Fault]:
    """Files cross no network in plain text, unless somebody said so."""
    stores: list[tuple[KeyPath, CatalogStorageConfig | None]] = [(("storage",), config.storage)]
    stores += [((*path, "storage"), catalog.storage) for path, catalog in configured_catalogs(config)]
    for path, store in stores:
        if store is None:
            continue
        endpoint = urlsplit(store.s3_endpoint or "")
        if endpoint.scheme == "http" and not store.s3_allow_http and not is_loopback(endpoint.hostname or ""):
            yield Fault((*path, "s3_endpoint"), "is plain http; use https, or set s3_allow_http = true")
        if (store.s3_access_key is None) != (store.s3_secret_key is None):
            yield Fault((*path, "s3_access_key"), "belongs together with s3_secret_key")
