"""The names on a server, for completion: read in the background, so that typing never waits."""

from __future__ import annotations

import re
import threading
import time

import pyarrow as pa

from sqe_core.cli.backend import Completions, SchemaKey, TableKey
from sqe_core.cli.remote.client import FlightClient
from sqe_core.cli.shell.keywords import KEYWORDS
from sqe_core.protocols.flight.wire import flight_sql_pb2 as sql
from sqe_core.spi.errors import SqeError

_REFRESH_SECS = 30.0


class RemoteNames:
    """Keeps the names of one session."""

    def __init__(self, client: FlightClient) -> None:
        self._client = client
        self._names = Completions(functions=_functions(), keywords=KEYWORDS)
        self._lock = threading.Lock()
        self._reading = False
        self._due = 0.0

    def known(self) -> Completions:
        """Return the newest names; when they are old, new ones are asked for and come later."""
        with self._lock:
            if not self._reading and time.monotonic() >= self._due:
                self._reading = True
                threading.Thread(target=self._refresh, name="sqe-completion", daemon=True).start()
            return self._names

    def expire(self) -> None:
        """Something was made, dropped or used: ask anew when names are wanted next."""
        with self._lock:
            self._due = 0.0

    def _refresh(self) -> None:
        with self._lock:
            self._due = time.monotonic() + _REFRESH_SECS
        try:
            self._read()
        except SqeError:
            # Completion is a convenience: the statement itself will say what is wrong.
            pass
        finally:
            with self._lock:
                self._reading = False

    def _read(self) -> None:
        catalogs = self._client.metadata(sql.CommandGetCatalogs()).column("catalog_name").to_pylist()
        schemas: dict[str, list[str]] = {catalog: [] for catalog in catalogs}
        for catalog, schema in _pairs(self._client.metadata(sql.CommandGetDbSchemas())):
            schemas.setdefault(catalog, []).append(schema)
        tables: dict[SchemaKey, list[str]] = {}
        found = self._client.metadata(sql.CommandGetTables())
        for key, name in zip(_pairs(found), found.column("table_name").to_pylist(), strict=True):
            tables.setdefault(key, []).append(name)
        names = Completions(
            catalogs=tuple(catalogs),
            schemas={catalog: tuple(found) for catalog, found in schemas.items()},
            tables={key: tuple(found) for key, found in tables.items()},
            functions=self._names.functions,
            keywords=KEYWORDS,
        )
        with self._lock:
            self._names = names

    def columns(self, table: TableKey) -> tuple[str, ...]:
        """Read the columns of a table; none when it does not exist or the server does not say."""
        catalog, schema, name = table
        command = sql.CommandGetTables(
            catalog=catalog,
            db_schema_filter_pattern=_pattern(schema),
            table_name_filter_pattern=_pattern(name),
            include_schema=True,
        )
        try:
            found = self._client.metadata(command)
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


def _functions() -> tuple[str, ...]:
    from sqe_core.sql.spark import functions

    return tuple(sorted({row[0] for row in functions.documented()}))
