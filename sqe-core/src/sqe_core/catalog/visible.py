"""What one session may see: schemas, tables, views and columns, after its policies (STMT-9)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import TypeVar

from sqe_core.catalog.own_tables import OwnTables
from sqe_core.catalog.registry import CatalogRegistry, Mount
from sqe_core.catalog.sqe_tables import SQE_TABLES
from sqe_core.catalog.system import SYSTEM
from sqe_core.engine.port import EngineExecutionError
from sqe_core.spi.catalog import CatalogMetadata, Column, ObjectType, TableMetadata, ViewMetadata
from sqe_core.spi.errors import (
    EngineLostError,
    ObjectNotFoundError,
    QueryCancelledError,
    QueryTimeoutError,
    ShuttingDownError,
    SqeError,
)
from sqe_core.spi.names import NamespaceName, ObjectName

INFORMATION_SCHEMA = "information_schema"

_log = logging.getLogger(__name__)
_Seen = TypeVar("_Seen")

# So many names are in one question to the policies when a whole catalog is listed.
_ASKED_AT_ONCE = 1000

MetadataOf = Callable[[Mount], CatalogMetadata]
AnyName = ObjectName | NamespaceName
VisibleOf = Callable[[Sequence[AnyName]], frozenset[AnyName]]
ColumnsOf = Callable[[ObjectName, TableMetadata | ViewMetadata | None], tuple[Column, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class VisibleCatalogs:
    """Listings and loads of one session. Names that a policy hides are absent, and load like missing ones.

    Attributes:
        registry: the mounted catalogs.
        listing_of: metadata for listings; may answer before the engine is up.
        metadata_of: metadata for loads.
        visible_of: which of some names the policies let this user see, asked in batches.
        columns_of: those columns of an object that the policies let this user see.
        enforced: whether any policy may keep something from this user.
        refused: is told of names that were looked for and are hidden, for the audit.
        discovered: further catalogs, which this session found by their names.
        own: the tables of ours, as this dialect has them.
    """

    registry: CatalogRegistry
    listing_of: MetadataOf
    metadata_of: MetadataOf
    visible_of: VisibleOf
    columns_of: ColumnsOf
    enforced: bool
    refused: Callable[[AnyName], None] = lambda name: None
    discovered: Callable[[], Sequence[Mount]] = tuple
    own: OwnTables = SQE_TABLES

    def without_policies(self) -> VisibleCatalogs:
        """Return what the catalogs alone show: who grants has to find what nobody has been granted yet."""
        return replace(
            self,
            visible_of=frozenset,
            columns_of=lambda name, loaded: loaded.columns if loaded is not None else (),
            enforced=False,
            refused=lambda name: None,
        )

    def mounts(self) -> list[Mount]:
        """List the catalogs, by name."""
        mounts = [*self.registry.mounts(), *self.discovered()]
        visible = self.visible_of([_namespace(mount) for mount in mounts])
        listed = [mount for mount in mounts if _namespace(mount) in visible]
        if self.own.lists_system and all(mount.name != SYSTEM.name for mount in mounts):
            listed.append(SYSTEM)
        return sorted(listed, key=lambda mount: mount.name)

    def shows(self, mount: Mount, namespace: tuple[str, ...] = ()) -> bool:
        """Whether a catalog, and a schema of it, may be known to this user; it may be missing."""
        if mount is SYSTEM:
            return True
        names = {_namespace(mount), _namespace(mount, namespace)}
        return names <= self.visible_of(tuple(names))

    def schemas(self, mount: Mount) -> list[tuple[str, ...]]:
        """List the namespaces of a catalog, nested ones after their parent, and information_schema last."""
        if not self.shows(mount):
            return []
        if mount is SYSTEM:
            return [(name,) for name in sorted(self.own.system)]
        found = sorted(self.listing_of(mount).all_namespaces())
        visible = self.visible_of([_namespace(mount, namespace) for namespace in found])
        return [*(name for name in found if _namespace(mount, name) in visible), (INFORMATION_SCHEMA,)]

    def has_schema(self, mount: Mount, namespace: tuple[str, ...]) -> bool:
        """Whether a schema exists for this user."""
        if mount is SYSTEM:
            return ".".join(namespace) in self.own.system
        if namespace == (INFORMATION_SCHEMA,):
            return self.shows(mount)
        if not self.shows(mount, namespace):
            self.refused(_namespace(mount, namespace))
            return False
        try:
            self.listing_of(mount).load_namespace(namespace)
        except ObjectNotFoundError:
            return False
        return True

    def objects(
        self,
        mount: Mount,
        namespace: tuple[str, ...],
        *,
        kinds: Collection[ObjectType] = (ObjectType.TABLE, ObjectType.VIEW),
        matches: Callable[[str], bool] = lambda name: True,
    ) -> list[tuple[ObjectName, ObjectType]]:
        """List tables and views of a namespace by name; raise when the namespace is missing.

        Policies are not asked about names that do not match.
        """
        if mount is SYSTEM:
            return self._system_objects(namespace, kinds, matches)
        if not self.shows(mount, namespace):
            self.refused(_namespace(mount, namespace))
            raise ObjectNotFoundError(f"Schema {_namespace(mount, namespace)} does not exist")
        return self._allowed(_objects(self.listing_of(mount), mount, namespace, kinds, matches))

    def all_objects(
        self,
        mount: Mount,
        *,
        kinds: Collection[ObjectType] = (ObjectType.TABLE, ObjectType.VIEW),
        in_schema: Callable[[str], bool] = lambda name: True,
        matches: Callable[[str], bool] = lambda name: True,
    ) -> Iterator[tuple[ObjectName, ObjectType]]:
        """List tables and views of all schemas, by schema and name; `information_schema` is not among them."""
        if mount is SYSTEM:
            for namespace in self.schemas(mount):
                if namespace != (INFORMATION_SCHEMA,) and in_schema(namespace[0]):
                    yield from self._system_objects(namespace, kinds, matches)
            return
        metadata = self.listing_of(mount)
        found: list[tuple[ObjectName, ObjectType]] = []
        for namespace in self.schemas(mount):
            if namespace == (INFORMATION_SCHEMA,) or not in_schema(".".join(namespace)):
                continue
            try:
                found += _objects(metadata, mount, namespace, kinds, matches)
            except ObjectNotFoundError:
                continue  # dropped by somebody else between two calls
            if len(found) >= _ASKED_AT_ONCE:
                yield from self._allowed(found)
                found = []
        yield from self._allowed(found)

    def _system_objects(
        self, namespace: tuple[str, ...], kinds: Collection[ObjectType], matches: Callable[[str], bool]
    ) -> list[tuple[ObjectName, ObjectType]]:
        tables = self.own.system.get(".".join(namespace))
        if tables is None:
            raise ObjectNotFoundError(f"Schema {_namespace(SYSTEM, namespace)} does not exist")
        names = sorted(name for name in tables if matches(name)) if ObjectType.TABLE in kinds else []
        return [
            (ObjectName(catalog=SYSTEM.name, namespace=namespace, name=name), ObjectType.SYSTEM_TABLE) for name in names
        ]

    def _allowed(self, listed: list[tuple[ObjectName, ObjectType]]) -> list[tuple[ObjectName, ObjectType]]:
        allowed = self.visible_of([name for name, _ in listed])
        if len(allowed) == len(listed):
            return listed
        return [entry for entry in listed if entry[0] in allowed]

    def find(self, mount: Mount, name: ObjectName) -> TableMetadata | ViewMetadata | None:
        """Load a table or a view, or None when it is missing or hidden, or all of its columns are."""
        shown = self.shows_object(name)
        loaded = self.load(mount, name) if shown else None
        # What is missing is asked about like what is hidden (ERR-5).
        columns = self.columns_of(name, loaded)
        if not shown or (loaded is not None and loaded.columns and not columns):
            self.refused(name)
            return None
        return loaded

    def shows_object(self, name: ObjectName) -> bool:
        """Whether an object may be known to this user; it may be missing."""
        return name in self.visible_of((name,))

    def load(self, mount: Mount, name: ObjectName) -> TableMetadata | ViewMetadata | None:
        """Load a table or a view for a decision about it, or None when it is missing."""
        if mount is SYSTEM:
            return None
        metadata = self.metadata_of(mount)
        try:
            return metadata.load_table(name.namespace, name.name)
        except ObjectNotFoundError:
            pass
        if not mount.backend.supports_views:
            return None
        try:
            return metadata.load_view(name.namespace, name.name)
        except ObjectNotFoundError:
            return None


def each_apart(
    names: Iterable[ObjectName], look: Callable[[ObjectName], _Seen | None]
) -> Iterator[tuple[ObjectName, _Seen]]:
    """Look at each object of a listing. One that fails takes itself out, with a line in the log, and no other (VIEW-7).

    Raises:
        SqeError: the statement has ended, or there is nothing that does not fail: no listing is empty for that (POL-2).
    """
    failure: Exception | None = None
    fails_all = True
    for name in names:
        try:
            seen = look(name)
        except (QueryCancelledError, QueryTimeoutError, EngineLostError, ShuttingDownError):
            raise
        except (SqeError, EngineExecutionError, RecursionError) as error:
            _log.warning("%s is left out of what is listed: %s", name, error)
            failure = error
            continue
        fails_all = False
        if seen is not None:
            yield name, seen
    if failure is not None and fails_all:
        raise failure


def _objects(
    metadata: CatalogMetadata,
    mount: Mount,
    namespace: tuple[str, ...],
    kinds: Collection[ObjectType],
    matches: Callable[[str], bool],
) -> list[tuple[ObjectName, ObjectType]]:
    tables, views = metadata.list_objects(namespace)
    found = [(name, ObjectType.TABLE) for name in tables if matches(name)] if ObjectType.TABLE in kinds else []
    if ObjectType.VIEW in kinds:
        found += [(name, ObjectType.VIEW) for name in views if matches(name)]
    catalog = mount.name
    return [
        (ObjectName(catalog=catalog, namespace=namespace, name=name), kind)
        for name, kind in sorted(found, key=itemgetter(0))
    ]


def _namespace(mount: Mount, namespace: tuple[str, ...] = ()) -> NamespaceName:
    return NamespaceName(catalog=mount.name, namespace=namespace)
