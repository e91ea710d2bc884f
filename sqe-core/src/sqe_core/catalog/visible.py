"""What one session may see: schemas, tables, views and columns, after its policies (STMT-9)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqe_core.catalog.registry import CatalogRegistry, Mount
from sqe_core.spi.catalog import CatalogMetadata, Column, ObjectType, TableMetadata, ViewMetadata
from sqe_core.spi.errors import ObjectNotFoundError
from sqe_core.spi.names import NamespaceName, ObjectName

INFORMATION_SCHEMA = "information_schema"

MetadataOf = Callable[[Mount], CatalogMetadata]
AnyName = ObjectName | NamespaceName
VisibleOf = Callable[[Sequence[AnyName]], frozenset[AnyName]]
ColumnsOf = Callable[[ObjectName, tuple[Column, ...]], tuple[Column, ...]]


class VisibleCatalogs:
    """Listings and loads of one session. Names that a policy hides are absent, and load like missing ones.

    Args:
        registry: the mounted catalogs.
        listing_of: metadata for listings; may answer before the engine is up.
        metadata_of: metadata for loads.
        visible_of: which of some names the policies let this user see, asked in batches.
        columns_of: those columns of an object that the policies let this user see.
        enforced: whether any policy may keep something from this user.
        refused: is told of names that were looked for and are hidden, for the audit.
        discovered: further catalogs, which this session found by their names.
    """

    def __init__(
        self,
        registry: CatalogRegistry,
        *,
        listing_of: MetadataOf,
        metadata_of: MetadataOf,
        visible_of: VisibleOf,
        columns_of: ColumnsOf,
        enforced: bool,
        refused: Callable[[AnyName], None] | None = None,
        discovered: Callable[[], Sequence[Mount]] = tuple,
    ) -> None:
        self.columns_of = columns_of
        self.enforced = enforced
        self._registry = registry
        self._listing_of = listing_of
        self._metadata_of = metadata_of
        self._visible_of = visible_of
        self._refused = refused or (lambda name: None)
        self._discovered = discovered

    def without_policies(self) -> VisibleCatalogs:
        """Return what the catalogs alone show: who grants has to find what nobody has been granted yet."""
        return VisibleCatalogs(
            self._registry,
            listing_of=self._listing_of,
            metadata_of=self._metadata_of,
            visible_of=frozenset,
            columns_of=lambda name, columns: columns,
            enforced=False,
            discovered=self._discovered,
        )

    def mounts(self) -> list[Mount]:
        """List the catalogs, by name."""
        mounts = sorted((*self._registry.mounts(), *self._discovered()), key=lambda mount: mount.name)
        visible = self._visible_of([_namespace(mount) for mount in mounts])
        return [mount for mount in mounts if _namespace(mount) in visible]

    def shows(self, mount: Mount, namespace: tuple[str, ...] = ()) -> bool:
        """Whether a catalog, and a schema of it, may be known to this user; it may be missing."""
        names = {_namespace(mount), _namespace(mount, namespace)}
        return names <= self._visible_of(tuple(names))

    def schemas(self, mount: Mount) -> list[tuple[str, ...]]:
        """List the namespaces of a catalog, nested ones after their parent, and information_schema last."""
        if not self.shows(mount):
            return []
        metadata = self._listing_of(mount)
        found: list[tuple[str, ...]] = []
        pending = sorted(metadata.list_namespaces(), reverse=True)
        while pending:
            namespace = pending.pop()
            found.append(namespace)
            pending.extend(sorted(metadata.list_namespaces(namespace), reverse=True))
        visible = self._visible_of([_namespace(mount, namespace) for namespace in found])
        return [*(name for name in found if _namespace(mount, name) in visible), (INFORMATION_SCHEMA,)]

    def has_schema(self, mount: Mount, namespace: tuple[str, ...]) -> bool:
        """Whether a schema exists for this user."""
        if namespace == (INFORMATION_SCHEMA,):
            return self.shows(mount)
        if not self.shows(mount, namespace):
            self._refused(_namespace(mount, namespace))
            return False
        try:
            self._listing_of(mount).load_namespace(namespace)
        except ObjectNotFoundError:
            return False
        return True

    def objects(
        self, mount: Mount, namespace: tuple[str, ...], *, views_only: bool = False
    ) -> list[tuple[str, ObjectType]]:
        """List tables and views of a namespace by name; raise when the namespace is missing."""
        if not self.shows(mount, namespace):
            self._refused(_namespace(mount, namespace))
            raise ObjectNotFoundError(f"Schema {_namespace(mount, namespace)} does not exist")
        metadata = self._listing_of(mount)
        listed = [(name, ObjectType.VIEW) for name in metadata.list_views(namespace)]
        if not views_only:
            listed += [(name, ObjectType.TABLE) for name in metadata.list_tables(namespace)]
        names = {name: ObjectName(catalog=mount.name, namespace=namespace, name=name) for name, _ in listed}
        allowed = self._visible_of(tuple(names.values()))
        return sorted(((name, kind) for name, kind in listed if names[name] in allowed), key=lambda entry: entry[0])

    def find(self, mount: Mount, name: ObjectName) -> TableMetadata | ViewMetadata | None:
        """Load a table or a view, or None when it is missing or hidden."""
        if self.shows_object(name):
            return self.load(mount, name)
        self._refused(name)
        return None

    def shows_object(self, name: ObjectName) -> bool:
        """Whether an object may be known to this user; it may be missing."""
        return name in self._visible_of((name,))

    def load(self, mount: Mount, name: ObjectName) -> TableMetadata | ViewMetadata | None:
        """Load a table or a view for a decision about it, or None when it is missing."""
        metadata = self._metadata_of(mount)
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


def _namespace(mount: Mount, namespace: tuple[str, ...] = ()) -> NamespaceName:
    return NamespaceName(catalog=mount.name, namespace=namespace)
