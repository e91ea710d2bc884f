"""The catalogs that are mounted, by the names that users know."""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from sqe_core.spi.catalog import CatalogBackend
from sqe_core.spi.errors import ConfigError

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class Mount:
    """One catalog: its visible name, other names that resolve to it, and what serves it.

    Two mounts are two catalogs, even one after the other under one name.
    """

    name: str
    backend: CatalogBackend
    aliases: frozenset[str] = frozenset()
    attached: bool = False
    """Whether ATTACH made it: DETACH takes it away, and so does a restart."""
    secret: str | None = None
    """The name of the secret that it was attached with."""


class MountUser(Protocol):
    """Whoever holds on to mounts for longer than a statement."""

    def mounts_changed(self) -> None:
        """A mount was taken away. Called from any thread."""


class CatalogRegistry:
    """Visible names to mounts. Safe for use from several threads."""

    def __init__(self, mounts: Iterable[Mount] = ()) -> None:
        # Reentrant: the garbage collector may end a result, which asks what is mounted, in the middle of anything.
        self._lock = threading.RLock()
        self._by_name: dict[str, Mount] = {}
        self._users: weakref.WeakSet[MountUser] = weakref.WeakSet()
        for mount in mounts:
            self.add(mount)

    def add(self, mount: Mount) -> None:
        """Mount a catalog; a name that is taken is an error, an alias that is taken is left to its owner."""
        with self._lock:
            owner = self._by_name.get(mount.name)
            if owner is not None and owner.name == mount.name:
                raise ConfigError((f"the catalog name '{mount.name}' is taken",))
            self._by_name[mount.name] = mount
            for alias in mount.aliases:
                self._by_name.setdefault(alias, mount)

    def remove(self, mount: Mount) -> None:
        """Take a mount away. Who uses it goes on; its backend is closed when nobody does any more."""
        self._change(mount, None)

    def replace(self, old: Mount, new: Mount) -> None:
        """Put another catalog in the place of one, so that no statement finds none."""
        self._change(old, new)

    def _change(self, old: Mount, new: Mount | None) -> None:
        with self._lock:
            changed = {name: new if found is old else found for name, found in self._by_name.items()}
            self._by_name = {name: found for name, found in changed.items() if found is not None}
            users = tuple(self._users)
        weakref.finalize(old, _close, old.name, old.backend)
        for user in users:
            user.mounts_changed()

    def tell(self, user: MountUser) -> None:
        """Tell somebody of every mount that is taken away, for as long as they are there."""
        with self._lock:
            self._users.add(user)

    def find(self, name: str) -> Mount | None:
        with self._lock:
            return self._by_name.get(name)

    def holds(self, mount: Mount) -> bool:
        return self.find(mount.name) is mount

    def mounts(self) -> Sequence[Mount]:
        """Return every mount once, by name."""
        with self._lock:
            unique = {mount.name: mount for mount in self._by_name.values()}
        return [unique[name] for name in sorted(unique)]

    def names(self) -> frozenset[str]:
        with self._lock:
            return frozenset(self._by_name)

    def close(self) -> None:
        for mount in self.mounts():
            mount.backend.close()


def _close(name: str, backend: CatalogBackend) -> None:
    try:
        backend.close()
    except Exception as error:  # noqa: BLE001 - nobody is there any more who could be told
        _log.warning("catalog %s was detached, but not closed: %s", name, type(error).__name__)
