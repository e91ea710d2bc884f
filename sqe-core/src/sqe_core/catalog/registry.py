"""The catalogs that are mounted, by the names that users know."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqe_core.spi.catalog import CatalogBackend
from sqe_core.spi.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """One catalog: its visible name, other names that resolve to it (features §5.2), and what serves it."""

    name: str
    backend: CatalogBackend
    aliases: frozenset[str] = frozenset()


class CatalogRegistry:
    """Visible names to mounts. Safe for use from several threads."""

    def __init__(self, mounts: Iterable[Mount] = ()) -> None:
        self._lock = threading.Lock()
        self._by_name: dict[str, Mount] = {}
        for mount in mounts:
            self.add(mount)

    def add(self, mount: Mount) -> None:
        """Mount a catalog; a name that is taken is an error, an alias that is taken is left to its owner."""
        with self._lock:
            owner = self._by_name.get(mount.name)
            if owner is not None and owner.name == mount.name:
                raise ConfigError((f"two catalogs are called {mount.name!r}",))
            self._by_name[mount.name] = mount
            for alias in mount.aliases:
                self._by_name.setdefault(alias, mount)

    def find(self, name: str) -> Mount | None:
        """Return the mount of that name or alias."""
        with self._lock:
            return self._by_name.get(name)

    def mounts(self) -> Sequence[Mount]:
        """Return every mount once, by name."""
        with self._lock:
            unique = {mount.name: mount for mount in self._by_name.values()}
        return [unique[name] for name in sorted(unique)]

    def close(self) -> None:
        """Close every backend."""
        for mount in self.mounts():
            mount.backend.close()
