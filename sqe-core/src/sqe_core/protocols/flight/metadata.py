"""The metadata commands of Flight SQL: catalogs, schemas, tables, keys. Each has its schema and its rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from sqe_core.protocols.flight.columns import described
from sqe_core.protocols.flight.messages import schema_bytes
from sqe_core.protocols.flight.sql_info import SQL_INFO_SCHEMA, sql_info
from sqe_core.protocols.flight.type_info import TYPE_INFO_SCHEMA, type_info
from sqe_core.protocols.flight.wire import flight_sql_pb2 as sql
from sqe_core.spi.catalog import ObjectType
from sqe_core.spi.protocol import GatewaySession, ServerStatus, TableFilter


def _schema(*columns: str, **types: pa.DataType) -> pa.Schema:
    """Columns of text, but for `types`; a name that ends with `?` may be NULL."""
    names = [(column.rstrip("?"), column.endswith("?")) for column in columns]
    return pa.schema([pa.field(name, types.get(name, pa.string()), nullable=nullable) for name, nullable in names])


_CATALOGS = _schema("catalog_name")
_SCHEMAS = _schema("catalog_name?", "db_schema_name")
_TABLES = _schema("catalog_name?", "db_schema_name?", "table_name", "table_type")
_TABLES_WITH_SCHEMA = _TABLES.append(pa.field("table_schema", pa.binary(), nullable=False))
_TABLE_TYPES = _schema("table_type")
_TABLE = ("catalog_name?", "db_schema_name?", "table_name", "column_name")
_PRIMARY_KEYS = _schema(*_TABLE, "key_name?", "key_sequence", key_sequence=pa.int32())
_FOREIGN_KEYS = _schema(
    *(f"pk_{name}" for name in _TABLE),
    *(f"fk_{name}" for name in _TABLE),
    *("key_sequence", "fk_key_name?", "pk_key_name?", "update_rule", "delete_rule"),
    key_sequence=pa.int32(),
    update_rule=pa.uint8(),
    delete_rule=pa.uint8(),
)


@dataclass(frozen=True, slots=True)
class MetadataAnswer:
    """The schema of an answer, and what makes its rows."""

    schema: pa.Schema
    rows: Callable[[GatewaySession], pa.Table]


def answer_to(command: object, status: Callable[[], ServerStatus]) -> MetadataAnswer | None:
    """Return the answer to a metadata command; None when it is none."""
    match command:
        case sql.CommandGetCatalogs():
            return MetadataAnswer(_CATALOGS, _catalogs)
        case sql.CommandGetDbSchemas():
            return MetadataAnswer(_SCHEMAS, lambda session: _schemas(session, command))
        case sql.CommandGetTables():
            schema = _TABLES_WITH_SCHEMA if command.include_schema else _TABLES
            return MetadataAnswer(schema, lambda session: _tables(session, command, schema))
        case sql.CommandGetTableTypes():
            return MetadataAnswer(_TABLE_TYPES, lambda session: _table(_TABLE_TYPES, [(kind,) for kind in _KINDS]))
        case sql.CommandGetPrimaryKeys():
            # Iceberg has no keys that it enforces.
            return MetadataAnswer(_PRIMARY_KEYS, lambda session: _PRIMARY_KEYS.empty_table())
        case sql.CommandGetExportedKeys() | sql.CommandGetImportedKeys() | sql.CommandGetCrossReference():
            return MetadataAnswer(_FOREIGN_KEYS, lambda session: _FOREIGN_KEYS.empty_table())
        case sql.CommandGetSqlInfo():
            return MetadataAnswer(SQL_INFO_SCHEMA, lambda session: sql_info(tuple(command.info), status()))
        case sql.CommandGetXdbcTypeInfo():
            wanted = command.data_type if command.HasField("data_type") else None
            return MetadataAnswer(TYPE_INFO_SCHEMA, lambda session: type_info(wanted))
    return None


_KINDS = {"SYSTEM TABLE": ObjectType.SYSTEM_TABLE, "TABLE": ObjectType.TABLE, "VIEW": ObjectType.VIEW}
_WORDS = {kind: word for word, kind in _KINDS.items()}


def _table(schema: pa.Schema, rows: list[tuple[Any, ...]]) -> pa.Table:
    columns = [pa.array([row[place] for row in rows], field.type) for place, field in enumerate(schema)]
    return pa.table(columns, schema)


def _catalogs(session: GatewaySession) -> pa.Table:
    return _table(_CATALOGS, [(name,) for name in session.catalogs()])


def _schemas(session: GatewaySession, command: sql.CommandGetDbSchemas) -> pa.Table:
    found = session.schemas(
        catalog=_optional(command, "catalog"), pattern=_optional(command, "db_schema_filter_pattern")
    )
    return _table(_SCHEMAS, [(name.catalog, ".".join(name.namespace)) for name in found])


def _tables(session: GatewaySession, command: sql.CommandGetTables, schema: pa.Schema) -> pa.Table:
    wanted = {word.upper() for word in command.table_types}
    filter = TableFilter(
        catalog=_optional(command, "catalog"),
        schema_pattern=_optional(command, "db_schema_filter_pattern"),
        table_pattern=_optional(command, "table_name_filter_pattern"),
        types=frozenset(_KINDS[word] for word in wanted if word in _KINDS) if wanted else None,
        with_columns=command.include_schema,
    )
    found = session.tables(filter)
    names = [(listed.name.catalog, ".".join(listed.name.namespace), listed.name.name) for listed in found]
    columns: list[Sequence[object]] = list(zip(*names, strict=True)) or [[], [], []]
    columns.append([_WORDS[listed.type] for listed in found])
    if command.include_schema:
        shown = zip((listed.columns or pa.schema([]) for listed in found), names, strict=True)
        columns.append([schema_bytes(described(columns, name)) for columns, name in shown])
    return pa.table([pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema)


def _optional(command: Any, name: str) -> str | None:
    return getattr(command, name) if command.HasField(name) else None
