"""Metadata of a mounted catalog, through Iceberg's Java API in the bridge. One call for each method."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from sqe_core.engine.port import ColumnStatistics, EngineCatalog, EngineExecutionError, TableStatistics
from sqe_core.engine.spark.context import EngineContext
from sqe_core.engine.spark.failures import engine_errors
from sqe_core.engine.spark.literals import encode
from sqe_core.spi.catalog import Column, PartitionField, SnapshotRef, TableMetadata, ViewMetadata
from sqe_core.spi.errors import ErrorCode, NotSupportedError, ObjectNotFoundError, UserError

_MISSING = {
    "NoSuchTableException": ("Table", ErrorCode.TABLE_NOT_FOUND),
    "NoSuchIcebergTableException": ("Table", ErrorCode.TABLE_NOT_FOUND),
    "NoSuchViewException": ("View", ErrorCode.VIEW_NOT_FOUND),
    "NoSuchIcebergViewException": ("View", ErrorCode.VIEW_NOT_FOUND),
    "NoSuchNamespaceException": ("Schema", ErrorCode.SCHEMA_NOT_FOUND),
}

# What Glue and the metastore of Hive say of any kind of object, where Iceberg's catalog does not speak for them.
_NOT_THERE = frozenset({"EntityNotFoundException", "NoSuchObjectException", "UnknownDBException"})


_LAYOUT = "name columns of the table, of types that the transform takes"


class SparkEngineCatalog(EngineCatalog):
    """`catalogs` is the Java side, `sqe.bridge.catalog.Catalogs`."""

    def __init__(self, context: EngineContext, catalogs: Any) -> None:
        self._context = context
        self._catalogs = catalogs

    @contextmanager
    def _errors(
        self, namespace: tuple[str, ...], name: str | None = None, *, missing: str | None = None
    ) -> Iterator[None]:
        """Translate errors; the names in their texts are the catalog's own, without our alias.

        Args:
            namespace: what is asked for, or where it is.
            name: the table or view.
            missing: the condition that a denial counts as; None leaves it a denial.
        """
        try:
            with engine_errors(self._context):
                yield
        except EngineExecutionError as error:
            condition = error.failure.condition
            schema = ".".join(namespace)
            subject = schema if name is None else f"{schema}.{name}"
            if condition in _NOT_THERE:
                condition = missing or ("NoSuchNamespaceException" if name is None else "NoSuchTableException")
            if condition == "ForbiddenException" and missing is not None:
                # Denied, hidden and missing look the same (ERR-5).
                condition = missing
            if condition in _MISSING:
                kind, code = _MISSING[condition]
                named = schema if kind == "Schema" else subject
                raise ObjectNotFoundError(f"{kind} '{named}' does not exist", code=code) from error
            if condition == "AlreadyExistsException":
                raise UserError(f"'{subject}' already exists", code=ErrorCode.DUPLICATE_TABLE) from error
            if condition == "NamespaceNotEmptyException":
                raise UserError(
                    f"Schema '{schema}' is not empty",
                    hint="use CASCADE; tables that are not Iceberg's must be dropped where they were made",
                ) from error
            if condition in ("SQE_CATALOG_WITHOUT_VIEWS", "SQE_CATALOG_WITHOUT_NAMESPACES"):
                what = "views" if condition.endswith("VIEWS") else "schemas"
                raise NotSupportedError(f"This catalog has no {what}") from error
            if condition == "SQE_NO_ICEBERG_TYPE":
                raise NotSupportedError("Iceberg has no such type for a column", hint="cast the column") from error
            if condition in ("SQE_NO_SORT_COLUMN", "ValidationException"):
                raise UserError(
                    "A table cannot be partitioned or sorted so", code=ErrorCode.INVALID_ARGUMENTS, hint=_LAYOUT
                ) from error
            if condition == "SQE_DEFAULT_TYPE":
                raise UserError(
                    "The default value does not fit the column's type", code=ErrorCode.TYPE_MISMATCH
                ) from error
            raise

    # What is read

    def list_namespaces(self, parent: tuple[str, ...] = ()) -> Sequence[tuple[str, ...]]:
        try:
            with self._errors(parent, missing="NoSuchNamespaceException" if parent else None):
                found = json.loads(self._catalogs.listNamespaces(json.dumps(parent)))
        except ObjectNotFoundError:
            if parent:
                raise
            return []  # a file warehouse before its first schema has no folder either
        return [tuple(parts) for parts in found]

    def all_namespaces(self) -> Sequence[tuple[str, ...]]:
        try:
            with self._errors((), missing=None):
                return [tuple(parts) for parts in json.loads(self._catalogs.allNamespaces())]
        except ObjectNotFoundError:
            return []  # as above

    def list_objects(self, namespace: tuple[str, ...]) -> tuple[Sequence[str], Sequence[str]]:
        with self._errors(namespace, missing="NoSuchNamespaceException"):
            tables, views = json.loads(self._catalogs.listObjects(json.dumps(namespace)))
        return tables, views

    def list_tables(self, namespace: tuple[str, ...]) -> Sequence[str]:
        with self._errors(namespace, missing="NoSuchNamespaceException"):
            return list(json.loads(self._catalogs.listTables(json.dumps(namespace))))

    def list_views(self, namespace: tuple[str, ...]) -> Sequence[str]:
        with self._errors(namespace, missing="NoSuchNamespaceException"):
            return list(json.loads(self._catalogs.listViews(json.dumps(namespace))))

    def load_namespace(self, namespace: tuple[str, ...]) -> Mapping[str, str]:
        with self._errors(namespace, missing="NoSuchNamespaceException"):
            return dict(json.loads(self._catalogs.loadNamespace(json.dumps(namespace))))

    def load_table(self, namespace: tuple[str, ...], name: str) -> TableMetadata:
        with self._errors(namespace, name, missing="NoSuchTableException"):
            answer = self._catalogs.loadTable(json.dumps(namespace), name)
        return decode_table(namespace, name, json.loads(answer))

    def table_statistics(self, namespace: tuple[str, ...], name: str) -> TableStatistics:
        with self._errors(namespace, name, missing="NoSuchTableException"):
            found = json.loads(self._catalogs.tableStatistics(json.dumps(namespace), name))
        columns = {column.pop("name"): ColumnStatistics(**column) for column in found["columns"]}
        return TableStatistics(rows=found["rows"], columns=columns)

    def load_view(self, namespace: tuple[str, ...], name: str) -> ViewMetadata:
        with self._errors(namespace, name, missing="NoSuchViewException"):
            answer = self._catalogs.loadView(json.dumps(namespace), name)
        return decode_view(namespace, name, json.loads(answer))

    # Schemas

    def create_namespace(self, namespace: tuple[str, ...], properties: Mapping[str, str]) -> None:
        with self._errors(namespace):
            self._catalogs.createNamespace(json.dumps(namespace), json.dumps(dict(properties)))

    def set_namespace_properties(self, namespace: tuple[str, ...], properties: Mapping[str, str | None]) -> None:
        with self._errors(namespace):
            self._catalogs.setNamespaceProperties(json.dumps(namespace), json.dumps(dict(properties)))

    def drop_namespace(self, namespace: tuple[str, ...]) -> None:
        with self._errors(namespace):
            self._catalogs.dropNamespace(json.dumps(namespace))

    # Tables

    def drop_table(self, namespace: tuple[str, ...], name: str, *, purge: bool) -> None:
        with self._errors(namespace, name):
            self._catalogs.dropTable(json.dumps(namespace), name, purge)

    def rename_table(self, source: tuple[tuple[str, ...], str], target: tuple[tuple[str, ...], str]) -> None:
        with self._rename_errors(source, target):
            self._catalogs.renameTable(json.dumps(source[0]), source[1], json.dumps(target[0]), target[1])

    def create_table_like(
        self, namespace: tuple[str, ...], name: str, source: tuple[tuple[str, ...], str], properties: Mapping[str, str]
    ) -> None:
        with self._rename_errors(source, (namespace, name)):
            self._catalogs.createTableLike(
                json.dumps(namespace), name, json.dumps(source[0]), source[1], json.dumps(dict(properties))
            )

    def set_layout(
        self,
        namespace: tuple[str, ...],
        name: str,
        *,
        partitioning: Sequence[tuple[str, str, int | None]] | None,
        sort_order: Sequence[tuple[str, str, str]] | None,
    ) -> None:
        fields = None if partitioning is None else json.dumps(partitioning)
        order = None if sort_order is None else json.dumps(sort_order)
        with self._errors(namespace, name):
            self._catalogs.setLayout(json.dumps(namespace), name, fields, order)

    def add_column(
        self, namespace: tuple[str, ...], name: str, column: str, type: str, *, default: Any, comment: str | None
    ) -> None:
        value = json.dumps(None if default is None else encode(default))
        with self._errors(namespace, name):
            self._catalogs.addColumn(json.dumps(namespace), name, column, type, value, comment)

    @contextmanager
    def _rename_errors(
        self, source: tuple[tuple[str, ...], str], target: tuple[tuple[str, ...], str]
    ) -> Iterator[None]:
        """A missing object is the source, an existing one the target."""
        try:
            with self._errors(*source):
                yield
        except UserError as error:
            if error.code is ErrorCode.DUPLICATE_TABLE:
                name = ".".join((*target[0], target[1]))
                raise UserError(f"'{name}' already exists", code=ErrorCode.DUPLICATE_TABLE) from error
            raise

    # Views

    def create_view(
        self,
        namespace: tuple[str, ...],
        name: str,
        *,
        columns: Sequence[Column],
        representations: Mapping[str, str],
        default_catalog: str | None,
        default_namespace: tuple[str, ...],
        properties: Mapping[str, str],
        replace: bool,
    ) -> None:
        request = {
            "columns": [{"name": column.name, "type": column.type, "nullable": column.nullable} for column in columns],
            "comments": {column.name: column.comment for column in columns if column.comment},
            "representations": dict(representations),
            "default_catalog": default_catalog,
            "default_namespace": default_namespace,
            "properties": dict(properties),
            "replace": replace,
        }
        with self._errors(namespace, name):
            self._catalogs.createView(json.dumps(namespace), name, json.dumps(request))

    def drop_view(self, namespace: tuple[str, ...], name: str) -> None:
        with self._errors(namespace, name):
            self._catalogs.dropView(json.dumps(namespace), name)

    def rename_view(self, source: tuple[tuple[str, ...], str], target: tuple[tuple[str, ...], str]) -> None:
        with self._rename_errors(source, target):
            self._catalogs.renameView(json.dumps(source[0]), source[1], json.dumps(target[0]), target[1])

    def set_view_properties(self, namespace: tuple[str, ...], name: str, properties: Mapping[str, str | None]) -> None:
        with self._errors(namespace, name):
            self._catalogs.setViewProperties(json.dumps(namespace), name, json.dumps(dict(properties)))


def decode_table(namespace: tuple[str, ...], name: str, table: Mapping[str, Any]) -> TableMetadata:
    """Build the metadata from the answer of the bridge's `TableJson.table`."""
    properties = table["properties"]
    return TableMetadata(
        namespace=namespace,
        name=name,
        uuid=table["uuid"],
        location=table["location"],
        format_version=table["format_version"],
        schema_id=table["schema_id"],
        columns=_decode_columns(table),
        partitioning=tuple(
            PartitionField(name=field, source=source, transform=transform)
            for field, source, transform in table["partitioning"]
        ),
        sort_order=tuple(table["sort_order"]),
        properties=properties,
        current_snapshot_id=table["current_snapshot_id"],
        refs=tuple(
            SnapshotRef(name=ref, type=kind, snapshot_id=snapshot_id) for ref, kind, snapshot_id in table["refs"]
        ),
        comment=properties.get("comment"),
    )


def decode_view(namespace: tuple[str, ...], name: str, view: Mapping[str, Any]) -> ViewMetadata:
    """Build the metadata from the answer of the bridge's `TableJson.view`."""
    return ViewMetadata(
        namespace=namespace,
        name=name,
        uuid=view["uuid"],
        columns=_decode_columns(view),
        representations=view["representations"],
        default_catalog=view["default_catalog"],
        default_namespace=tuple(view["default_namespace"]),
        properties=view["properties"],
        comment=view["properties"].get("comment"),
    )


def _decode_columns(described: Mapping[str, Any]) -> tuple[Column, ...]:
    columns: Sequence[Mapping[str, Any]] = described["columns"]
    if "arrow" not in described:
        return tuple(Column(**column) for column in columns)
    exact = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(described["arrow"])))
    return tuple(Column(**column, arrow_type=type) for column, type in zip(columns, exact.types, strict=True))
