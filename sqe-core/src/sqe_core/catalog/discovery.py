"""Catalogs that a session finds by their names, `catalog_discovery = "polaris-auto"`."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from sqe_core.catalog.registry import CatalogRegistry, Mount
from sqe_core.spi.catalog import CatalogBackend, SupportsDiscovery
from sqe_core.spi.errors import ErrorCode, ExternalError, ResourcesError
from sqe_core.spi.identity import Identity

_log = logging.getLogger(__name__)

_MOST = 20
_MOST_OF_ALL = 1000
# Typing errors come again and again; a right that was given counts soon.
_UNKNOWN_SECS = 30.0
_MOST_UNKNOWN = 1000


class FoundCatalogs:
    """What all sessions found. A name means one catalog for everybody, so that what restricts it is found by its name.

    Safe for use from many threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._mounts: dict[str, tuple[str, Mount]] = {}

    def keep(self, service: str, name: str, backend: CatalogBackend) -> Mount | None:
        """Return the mount of a catalog that a service offers; None when the name is a catalog of another service.

        The service is called as the mounted catalog. The backend is closed when something serves the catalog already.
        """
        with self._lock:
            known = self._mounts.get(name)
            if known is None and len(self._mounts) < _MOST_OF_ALL:
                mount = Mount(name=name, backend=backend)
                self._mounts[name] = service, mount
                return mount
        backend.close()
        return known[1] if known is not None and known[0] == service else None

    def backends(self) -> Mapping[str, CatalogBackend]:
        with self._lock:
            return {name: mount.backend for name, (_, mount) in self._mounts.items()}

    def close(self) -> None:
        """Close them all. Idempotent."""
        with self._lock:
            mounts, self._mounts = tuple(self._mounts.values()), {}
        for _, mount in mounts:
            mount.backend.close()


class DiscoveredCatalogs:
    """Asks the services of mounted catalogs for others that they offer this user. Safe for use from many threads.

    What is mounted for everybody wins. Without what all sessions `found` nothing is looked for.
    """

    def __init__(
        self, registry: CatalogRegistry, identity: Callable[[], Identity], found: FoundCatalogs | None
    ) -> None:
        self._registry = registry
        self._identity = identity
        self._all = found
        self._lock = threading.Lock()
        self._found: dict[str, Mount] = {}
        self._unknown: dict[str, float] = {}

    def find(self, name: str) -> Mount | None:
        """Return the catalog of that name, mounted for this session from now on; None when nobody offers it."""
        if self._all is None or self._registry.find(name) is not None:
            return None
        with self._lock:
            if name in self._found:
                return self._found[name]
            if self._unknown.get(name, 0.0) > time.monotonic():
                return None
            mount = self._ask(self._all, name)
            if mount is not None:
                self._found[name] = mount
            return mount

    def mounts(self) -> Sequence[Mount]:
        with self._lock:
            return tuple(self._found.values())

    def holds(self, mount: Mount) -> bool:
        """Whether a mount is one that was found; never waits for a service."""
        return self._found.get(mount.name) is mount

    def _ask(self, everything: FoundCatalogs, name: str) -> Mount | None:
        for mounted in self._registry.mounts():
            # One service account would find for everybody what it may see itself.
            if not isinstance(mounted.backend, SupportsDiscovery) or mounted.backend.identity_mode != "user":
                continue
            if len(self._found) >= _MOST:
                raise ResourcesError(
                    f"A session can find {_MOST} catalogs", code=ErrorCode.RESOURCE_EXHAUSTED, hint="connect again"
                )
            try:
                backend = mounted.backend.discover(name, self._identity())
            except ExternalError as error:
                _log.warning("catalog %s could not be asked for others: %s", mounted.name, error)
                return None
            if backend is not None:
                if not self._is_mounted(backend):
                    return everything.keep(mounted.name, name, backend)
                backend.close()
        if len(self._unknown) >= _MOST_UNKNOWN:
            self._unknown.clear()
        self._unknown[name] = time.monotonic() + _UNKNOWN_SECS
        return None

    def _is_mounted(self, backend: CatalogBackend) -> bool:
        """Whether a catalog is mounted already. Policies are about names: a second one would be a way around them."""
        return any(
            isinstance(mounted.backend, SupportsDiscovery) and mounted.backend.is_same(backend, self._identity())
            for mounted in self._registry.mounts()
        )
