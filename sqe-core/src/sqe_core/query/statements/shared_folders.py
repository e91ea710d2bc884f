"""Whether a table has its folder for itself: to remove the files of nobody there would remove those of the others.

A catalog that names folders after tables puts `a.b.c` into the folder of `a.b`, and a new `x` where a table lies that
was called `x` once.
"""

from __future__ import annotations

from sqe_core.spi.catalog import CatalogMetadata, TableMetadata
from sqe_core.spi.errors import ObjectNotFoundError


def shares_its_folder(table: TableMetadata, metadata: CatalogMetadata) -> bool:
    """Whether another table or a view keeps files in the folder of a table.

    Args:
        table: it.
        metadata: its catalog, which may have other names than those that a user sees.
    """
    folder = table.location.rstrip("/")
    last = folder.rpartition("/")[2]
    for namespace in metadata.all_namespaces():
        try:
            tables, views = metadata.list_objects(namespace)
        except ObjectNotFoundError:
            continue  # dropped by somebody else between two calls
        inside = last in namespace
        if any(_may_lie_in(folder, (*namespace, view)) for view in views):
            return True
        others = (name for name in tables if (namespace, name) != (table.namespace, table.name))
        if any((inside or name == last) and _lies_in(folder, metadata, namespace, name) for name in others):
            return True
    return False


def _lies_in(folder: str, metadata: CatalogMetadata, namespace: tuple[str, ...], name: str) -> bool:
    try:
        other = metadata.load_table(namespace, name).location
    except ObjectNotFoundError:
        return False
    return f"{other.rstrip('/')}/".startswith(f"{folder}/")


def _may_lie_in(folder: str, view: tuple[str, ...]) -> bool:
    """Catalogs do not tell where the files of views lie: where those of a table of that name would."""
    return any(folder.endswith("/" + "/".join(view[:count])) for count in range(2, len(view) + 1))
