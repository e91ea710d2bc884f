"""What one session may see: schemas, tables, views and columns, after its policies (STMT-9)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqe_core.catalog.registry import CatalogRegistry, Mount
from sqe_core.spi.catalog import CatalogMetadata, ObjectType, TableMetadata, ViewMetadata
from sqe_core.spi.errors import ObjectNotFoundError
from sqe_core.spi.names import ObjectName

INFORMATION_SCHEMA = "information_schema"

MetadataOf = Callable[[Mount], CatalogMetadata]
VisibleOf = Callable[[Sequence[ObjectName]], frozenset[ObjectName]]


class VisibleCatalogs:
    """Listings and loads of one session. Names that a policy hides are absent, and load like missing ones.

    Args:
        registry: the mounted catalogs.
        listing_of: metadata for listings; may answer before the engine is up.
        metadata_of: metadata for loads.
        visible_of: which of some names the policies let this user see, asked in batches.
    """

    def __init__(
        self,
        registry: CatalogRegistry,
        *,
        listing_of: MetadataOf,
        metadata_of: MetadataOf,
        visible_of: VisibleOf,
    ) -> None:
        self.registry = registry
        self._listing_of = listing_of
        self._metadata_of = metadata_of
        self._visible_of = visible_of

    def schemas(self, mount: Mount) -> list[tuple[str, ...]]:
        """List every namespace of a catalog, nested ones after their parent, and information_schema last."""
        metadata = self._listing_of(mount)
        found: list[tuple[str, ...]] = []
        pending = sorted(metadata.list_namespaces(), reverse=True)
        while pending:
            namespace = pending.pop()
            found.append(namespace)
            pending.extend(sorted(metadata.list_namespaces(namespace), reverse=True))
        return [*found, (INFORMATION_SCHEMA,)]

    def has_schema(self, mount: Mount, namespace: tuple[str, ...]) -> bool:
        """Whether a schema exists for this user."""
        if namespace == (INFORMATION_SCHEMA,):
            return True
        try:
            self._listing_of(mount).load_namespace(namespace)
        except ObjectNotFoundError:
            return False
        return True

    def objects(
        self, mount: Mount, namespace: tuple[str, ...], *, views_only: bool = False
    ) -> list[tuple[str, ObjectType]]:
        """List tables and views of a namespace by name; raise when the namespace is missing."""
        metadata = self._listing_of(mount)
        listed = [(name, ObjectType.VIEW) for name in metadata.list_views(namespace)]
        if not views_only:
            listed += [(name, ObjectType.TABLE) for name in metadata.list_tables(namespace)]
        names = {name: ObjectName(catalog=mount.name, namespace=namespace, name=name) for name, _ in listed}
        allowed = self._visible_of(tuple(names.values()))
        return sorted(((name, kind) for name, kind in listed if names[name] in allowed), key=lambda entry: entry[0])

    def find(self, mount: Mount, name: ObjectName) -> TableMetadata | ViewMetadata | None:
        """Load a table or a view, or None when it is missing or hidden."""
        if name not in self._visible_of((name,)):
            return None
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
