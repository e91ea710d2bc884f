"""The embedded session as the command line's backend. It completes what the session sees, and nothing else (STMT-9)."""

from __future__ import annotations

from typing import Any

from sqe_core.bootstrap import EmbeddedSqe, Sqe
from sqe_core.catalog.registry import Mount
from sqe_core.catalog.visible import INFORMATION_SCHEMA, VisibleCatalogs
from sqe_core.cli.backend import Completions, SchemaKey, TableKey
from sqe_core.cli.names import NameCache, may_change_names
from sqe_core.engine.port import EngineState
from sqe_core.query.run.result import StatementResult
from sqe_core.query.service import Parameters
from sqe_core.spi.catalog import ViewMetadata
from sqe_core.spi.errors import SqeError

_NAMES_SECS = 5.0


class EmbeddedBackend(EmbeddedSqe):
    """Adds completion to the embedded session."""

    def __init__(self, sqe: Sqe, **options: Any) -> None:
        super().__init__(sqe, **options)
        self._names = NameCache(lambda: visible_names(self._visible(), ready=self._is_ready()), _NAMES_SECS)

    def execute(self, sql: str, parameters: Parameters = ()) -> StatementResult:
        result = super().execute(sql, parameters)
        if may_change_names(result.kind):
            self._names.expire()
        return result

    def completions(self) -> Completions:
        return self._names.known()

    def columns(self, table: TableKey) -> tuple[str, ...]:
        """Read the columns of a table; never waits for the engine to start."""
        return visible_columns(self._visible(), table) if self._is_ready() else ()

    def _visible(self) -> VisibleCatalogs:
        return self.sqe.service.visible(self.session)

    def _is_ready(self) -> bool:
        return self.engine_state() is EngineState.READY


def visible_names(visible: VisibleCatalogs, *, ready: bool) -> Completions:
    """Return the names; before the engine is `ready` those of catalogs alone, since listings may wait for it."""
    schemas: dict[str, tuple[str, ...]] = {}
    tables: dict[SchemaKey, tuple[str, ...]] = {}
    mounts = visible.mounts()
    for mount in mounts if ready else ():
        listed = visible.schemas(mount)
        schemas[mount.name] = tuple(".".join(namespace) for namespace in listed)
        for namespace in listed:
            if namespace != (INFORMATION_SCHEMA,):
                key = (mount.name, ".".join(namespace))
                tables[key] = tuple(name.name for name, _ in visible.objects(mount, namespace))
    return Completions(catalogs=tuple(mount.name for mount in mounts), schemas=schemas, tables=tables)


def visible_columns(visible: VisibleCatalogs, table: TableKey) -> tuple[str, ...]:
    """Return the columns of a table; none when it does not exist."""
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


def _columns_of(visible: VisibleCatalogs, mount: Mount, namespace: tuple[str, ...], name: str) -> tuple[str, ...]:
    for found, _ in visible.objects(mount, namespace):
        if found.name == name:
            loaded = visible.find(mount, found)
            if loaded is None or (visible.enforced and isinstance(loaded, ViewMetadata)):
                break  # what this user sees of a view takes the engine to tell (VIEW-4)
            return tuple(column.name for column in visible.columns_of(found, loaded))
    return ()
