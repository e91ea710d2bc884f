"""The names on a server, for completion."""

from __future__ import annotations

import re

import pyarrow as pa

from sqe_core.cli.backend import Completions, SchemaKey, TableKey
from sqe_core.cli.remote.client import FlightClient
from sqe_core.protocols.flight.wire import flight_sql_pb2 as sql
from sqe_core.spi.errors import SqeError


def read_names(client: FlightClient) -> Completions:
    catalogs = client.metadata(sql.CommandGetCatalogs()).column("catalog_name").to_pylist()
    schemas: dict[str, list[str]] = {catalog: [] for catalog in catalogs}
    for catalog, schema in _pairs(client.metadata(sql.CommandGetDbSchemas())):
        schemas.setdefault(catalog, []).append(schema)
    tables: dict[SchemaKey, list[str]] = {}
    found = client.metadata(sql.CommandGetTables())
    for key, name in zip(_pairs(found), found.column("table_name").to_pylist(), strict=True):
        tables.setdefault(key, []).append(name)
    return Completions(
        catalogs=tuple(catalogs),
        schemas={catalog: tuple(found) for catalog, found in schemas.items()},
        tables={key: tuple(found) for key, found in tables.items()},
    )


def read_columns(client: FlightClient, table: TableKey) -> tuple[str, ...]:
    """Read the columns of a table; none when it does not exist or the server does not say."""
    catalog, schema, name = table
    command = sql.CommandGetTables(
        catalog=catalog,
        db_schema_filter_pattern=_pattern(schema),
        table_name_filter_pattern=_pattern(name),
        include_schema=True,
    )
    try:
        found = client.metadata(command)
    except SqeError:
        # Completion is a convenience: the statement itself will say what is wrong.
        return ()
    for key, one, columns in zip(
        _pairs(found), *(found.column(each).to_pylist() for each in ("table_name", "table_schema")), strict=True
    ):
        if (*key, one) == table:
            return tuple(pa.ipc.read_schema(pa.py_buffer(columns)).names)
    return ()


def _pattern(name: str) -> str:
    return re.sub(r"([\\%_])", r"\\\1", name)


def _pairs(found: pa.Table) -> list[SchemaKey]:
    return list(zip(found.column("catalog_name").to_pylist(), found.column("db_schema_name").to_pylist(), strict=True))
