"""How configured catalogs get their names."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqe_core.config.origin import KeyPath
from sqe_core.config.sections.catalog import CatalogConfig
from sqe_core.config.sections.root import SqeConfig

FALLBACK_NAME = "iceberg"
_PLAIN_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogMount:
    """A catalog to mount: the name that SHOW CATALOGS lists, and the other names that resolve to it.

    `config.options` holds the keys of the kind; `binder.bind` makes a plugin's settings of them.
    """

    name: str
    aliases: frozenset[str]
    config: CatalogConfig
    path: KeyPath
    default: bool
    """Whether names without a catalog mean this one."""

    @property
    def kind(self) -> str:
        return self.config.kind


def mounted_catalogs(config: SqeConfig) -> tuple[CatalogMount, ...]:
    if not config.catalogs:
        return () if config.catalog is None else (_only(config.catalog, config.query.default_catalog),)
    default = config.query.default_catalog
    named = dict(config.catalogs)
    if config.catalog is not None and default is not None:
        named.setdefault(default, config.catalog)
    return tuple(
        CatalogMount(
            name=name,
            aliases=frozenset(),
            config=catalog,
            path=("catalogs", name) if name in config.catalogs else ("catalog",),
            default=name == default or len(named) == 1,
        )
        for name, catalog in sorted(named.items())
    )


def _only(catalog: CatalogConfig, default: str | None) -> CatalogMount:
    name = default or _plain(catalog.warehouse) or catalog.type or FALLBACK_NAME
    others = {FALLBACK_NAME, catalog.kind} | ({catalog.warehouse} if catalog.warehouse else set())
    return CatalogMount(name=name, aliases=frozenset(others - {name}), config=catalog, path=("catalog",), default=True)


def _plain(name: str | None) -> str | None:
    return name if name and _PLAIN_IDENTIFIER.fullmatch(name) else None
