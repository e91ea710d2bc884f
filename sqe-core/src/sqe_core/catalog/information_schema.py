"""information_schema as rows: what the session may see, never more (STMT-9)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from sqe_core.catalog.registry import Mount
from sqe_core.catalog.sqe_tables import SCHEMAS
from sqe_core.catalog.types import datetime_precision, display_type, numeric_precision
from sqe_core.catalog.visible import INFORMATION_SCHEMA, VisibleCatalogs, each_apart
from sqe_core.spi.catalog import Column, ObjectType, TableMetadata, ViewMetadata
from sqe_core.spi.names import ObjectName


@dataclass(frozen=True, slots=True, kw_only=True)
class InformationSchema:
    """Builds the tables of `information_schema` for one session.

    `visible_text` is None of a view for who may not read all that it reads (VIEW-4).
    """

    visible: VisibleCatalogs
    visible_columns: Callable[[ObjectName, TableMetadata | ViewMetadata], tuple[Column, ...]]
    visible_text: Callable[[ObjectName, ViewMetadata], str | None]
    settings: Sequence[tuple[str, str]]

    def rows(self, mount: Mount, table: str) -> pa.Table | None:
        """Return one table of a catalog's information_schema, or None when there is none of that name."""
        if table not in SCHEMAS:
            return None
        produce: Mapping[str, Callable[[Mount], Iterator[tuple[Any, ...]]]] = {
            "schemata": self._schemata,
            "tables": self._tables,
            "views": self._views,
            "columns": self._columns,
            "df_settings": lambda _: iter(self.settings),
        }
        return to_table(SCHEMAS[table], list(produce[table](mount)))

    def _schemata(self, mount: Mount) -> Iterator[tuple[Any, ...]]:
        for namespace in self.visible.schemas(mount):
            yield mount.name, ".".join(namespace)

    def _tables(self, mount: Mount) -> Iterator[tuple[Any, ...]]:
        for name, kind in self.visible.all_objects(mount):
            yield mount.name, ".".join(name.namespace), name.name, "VIEW" if kind is ObjectType.VIEW else "BASE TABLE"
        for system in SCHEMAS:
            yield mount.name, INFORMATION_SCHEMA, system, "SYSTEM VIEW"

    def _objects(
        self, mount: Mount, look: Callable[[ObjectName, TableMetadata | ViewMetadata], Iterable[tuple[Any, ...]]]
    ) -> Iterator[tuple[Any, ...]]:
        """Yield the rows about each object: one that fails has none."""

        def rows(name: ObjectName) -> list[tuple[Any, ...]]:
            loaded = self.visible.find(mount, name)
            return list(look(name, loaded)) if loaded is not None else []

        for name, found in each_apart((name for name, _ in self.visible.all_objects(mount)), rows):
            yield from ((mount.name, ".".join(name.namespace), name.name, *row) for row in found)

    def _views(self, mount: Mount) -> Iterator[tuple[Any, ...]]:
        return self._objects(
            mount,
            lambda name, loaded: [(self.visible_text(name, loaded),)] if isinstance(loaded, ViewMetadata) else (),
        )

    def _columns(self, mount: Mount) -> Iterator[tuple[Any, ...]]:
        return self._objects(
            mount,
            lambda name, loaded: (
                _column_row(column, position)
                for position, column in enumerate(self.visible_columns(name, loaded), start=1)
            ),
        )


def _column_row(column: Column, position: int) -> tuple[Any, ...]:
    precision, scale = numeric_precision(column.type)
    shown = display_type(column.type)
    return (
        column.name,
        position,
        "YES" if column.nullable else "NO",
        shown,
        None,
        precision,
        scale,
        datetime_precision(column.type),
        column.default,
        shown.partition("(")[0],
    )


def view_text(view: ViewMetadata) -> str | None:
    """Return the text of a view as its author wrote it, where we know it."""
    return (
        view.properties.get("sqe.view-text") or view.representations.get("spark") or view.representations.get("trino")
    )


def to_table(schema: pa.Schema, rows: Sequence[Sequence[Any]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
    return pa.Table.from_arrays(
        [pa.array(values, type=field.type) for values, field in zip(columns, schema, strict=True)], schema=schema
    )
