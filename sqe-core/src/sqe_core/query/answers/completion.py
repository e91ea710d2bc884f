"""Names for completion at a prompt: refreshed in the background, so that typing never waits."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from sqe_core.catalog.registry import Mount
from sqe_core.catalog.visible import INFORMATION_SCHEMA, VisibleCatalogs
from sqe_core.spi.catalog import ViewMetadata
from sqe_core.spi.errors import SqeError

_REFRESH_SECS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class VisibleNames:
    """The names that a session may see, at some moment of the last seconds."""

    catalogs: tuple[str, ...] = ()
    schemas: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    tables: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))


class CompletionCache:
    """Keeps `VisibleNames` of one session; `current` starts a refresh when they are old, and never waits for it."""

    def __init__(
        self,
        visible: Callable[[], VisibleCatalogs],
        *,
        ready: Callable[[], bool],
        catalogs: Callable[[], frozenset[str]] | None = None,
    ) -> None:
        """Keep names.

        Args:
            visible: what the session may see.
            ready: whether the engine is up.
            catalogs: the catalogs that are mounted now; when there are others than before, names are old at once.
        """
        self._visible = visible
        self._ready = ready
        self._catalogs = catalogs or frozenset
        self._known = self._catalogs()
        self._names = VisibleNames()
        self._read_at = 0.0
        self._lock = threading.Lock()
        self._refreshing = False

    def current(self) -> VisibleNames:
        """Return the newest names that are known."""
        mounted = self._catalogs()
        with self._lock:
            if mounted != self._known:
                gone, self._known, self._read_at = self._known - mounted, mounted, 0.0
                self._names = _without(self._names, gone)
            if not self._refreshing and time.monotonic() - self._read_at > _REFRESH_SECS:
                self._refreshing = True
                threading.Thread(target=self._refresh, name="sqe-completion", daemon=True).start()
            return self._names

    def columns(self, table: tuple[str, str, str]) -> tuple[str, ...]:
        """Read the columns of a table; none when it does not exist, or the engine is not up."""
        if not self._ready():
            return ()
        visible = self._visible()
        catalog, schema, name = table
        try:
            for mount in visible.mounts():
                for namespace in visible.schemas(mount) if mount.name == catalog else ():
                    if ".".join(namespace) == schema:
                        return _columns_of(visible, mount, namespace, name)
        except SqeError:
            # Completion is a convenience: the statement itself will say what is wrong.
            pass
        return ()

    def _refresh(self) -> None:
        try:
            self._names = self._read()
        except SqeError:
            # Completion is a convenience: the statement itself will say what is wrong.
            pass
        finally:
            with self._lock:
                self._read_at = time.monotonic()
                self._refreshing = False

    def _read(self) -> VisibleNames:
        visible = self._visible()
        if not self._ready():
            # Loading columns would wait for the engine; listings of some backends would too.
            return VisibleNames(catalogs=tuple(mount.name for mount in visible.mounts()))
        schemas: dict[str, tuple[str, ...]] = {}
        tables: dict[tuple[str, str], tuple[str, ...]] = {}
        for mount in visible.mounts():
            listed = visible.schemas(mount)
            schemas[mount.name] = tuple(".".join(namespace) for namespace in listed)
            for namespace in listed:
                if namespace == (INFORMATION_SCHEMA,):
                    continue
                key = (mount.name, ".".join(namespace))
                tables[key] = tuple(name.name for name, _ in visible.objects(mount, namespace))
        return VisibleNames(
            catalogs=tuple(mount.name for mount in visible.mounts()),
            schemas=schemas,
            tables=tables,
        )


def _columns_of(visible: VisibleCatalogs, mount: Mount, namespace: tuple[str, ...], name: str) -> tuple[str, ...]:
    for found, _ in visible.objects(mount, namespace):
        if found.name == name:
            loaded = visible.find(mount, found)
            if loaded is None or (visible.enforced and isinstance(loaded, ViewMetadata)):
                break  # what this user sees of a view takes the engine to tell (VIEW-4)
            return tuple(column.name for column in visible.columns_of(found, loaded))
    return ()


def _without(names: VisibleNames, catalogs: frozenset[str]) -> VisibleNames:
    return VisibleNames(
        catalogs=tuple(name for name in names.catalogs if name not in catalogs),
        schemas={name: schemas for name, schemas in names.schemas.items() if name not in catalogs},
        tables={key: tables for key, tables in names.tables.items() if key[0] not in catalogs},
    )
