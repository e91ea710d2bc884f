"""A SQL catalog in a SQLite file: made, named and listed from Python, before any engine is up.

The layout is the one of Iceberg's JDBC catalog, schema version V1, which PyIceberg and Spark read and write too. Each
row carries the *name* of the catalog that wrote it: under another name the file looks empty.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from sqe_core.spi.catalog import CatalogMetadata, TableMetadata
from sqe_core.spi.errors import ConfigError, ErrorCode, ExternalError, NotSupportedError, ObjectNotFoundError

DEFAULT_NAME = "iceberg"
DEFAULT_NAMESPACE = "default"

# What JdbcCatalog itself would create, and the mark that it sets on a namespace without properties.
_LAYOUT = (
    "CREATE TABLE iceberg_tables (catalog_name VARCHAR(255) NOT NULL, table_namespace VARCHAR(255) NOT NULL,"
    " table_name VARCHAR(255) NOT NULL, metadata_location VARCHAR(1000), previous_metadata_location VARCHAR(1000),"
    " iceberg_type VARCHAR(5), PRIMARY KEY (catalog_name, table_namespace, table_name))",
    "CREATE TABLE iceberg_namespace_properties (catalog_name VARCHAR(255) NOT NULL, namespace VARCHAR(255) NOT NULL,"
    " property_key VARCHAR(255), property_value VARCHAR(1000), PRIMARY KEY (catalog_name, namespace, property_key))",
)
_EXISTS = ("exists", "true")
_BUSY_SECS = 30.0


def create_catalog_file(path: Path) -> None:
    """Make the file, with an empty schema `default`, unless it holds something already. Safe in several processes."""
    try:
        if path.exists():
            with _reading(path) as connection:
                if _tables(connection):
                    return
        with closing(sqlite3.connect(path, timeout=_BUSY_SECS, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("BEGIN IMMEDIATE")
            if not _tables(connection):
                for statement in _LAYOUT:
                    connection.execute(statement)
                connection.execute(
                    "INSERT INTO iceberg_namespace_properties VALUES (?, ?, ?, ?)",
                    (DEFAULT_NAME, DEFAULT_NAMESPACE, *_EXISTS),
                )
            connection.execute("COMMIT")
    except sqlite3.Error as exc:
        raise ConfigError((f"the catalog file {path} cannot be opened: {exc}",)) from exc


def read_stored_name(path: Path, wanted: str | None = None) -> str:
    """Return the catalog name that the rows carry; `wanted` where they carry several, or none yet."""
    try:
        with _reading(path) as connection:
            tables = _tables(connection)
            if tables and "iceberg_tables" not in tables:
                raise ConfigError((f"{path} is a SQLite file, but no Iceberg catalog",))
            names = {
                str(row[0])
                for table in sorted(tables & {"iceberg_tables", "iceberg_namespace_properties"})
                for row in connection.execute(f"SELECT DISTINCT catalog_name FROM {table}")  # noqa: S608 - our names
            }
    except sqlite3.Error as exc:
        raise ConfigError((f"the catalog file {path} cannot be read: {exc}",)) from exc
    if wanted is not None:
        return wanted
    if len(names) > 1 and DEFAULT_NAME not in names:
        found = ", ".join(sorted(names))
        raise ConfigError((f"{path} holds the catalogs {found}; choose one with catalog_name",))
    return DEFAULT_NAME if len(names) != 1 else names.pop()


class SqliteListing(CatalogMetadata):
    """Namespaces, tables and views of one catalog in the file. Loading a table needs the engine."""

    def __init__(self, path: Path, catalog_name: str) -> None:
        self._path = path
        self._name = catalog_name

    def list_namespaces(self, parent: tuple[str, ...] = ()) -> Sequence[tuple[str, ...]]:
        known = self.all_namespaces()
        if parent and parent not in known:
            raise self._missing(parent)
        return [namespace for namespace in known if namespace[:-1] == parent]

    def all_namespaces(self) -> Sequence[tuple[str, ...]]:
        with self._open() as connection:
            return sorted(self._namespaces(connection))

    def list_tables(self, namespace: tuple[str, ...]) -> Sequence[str]:
        return self.list_objects(namespace)[0]

    def list_views(self, namespace: tuple[str, ...]) -> Sequence[str]:
        return self.list_objects(namespace)[1]

    def list_objects(self, namespace: tuple[str, ...]) -> tuple[Sequence[str], Sequence[str]]:
        with self._open() as connection:
            if namespace not in self._namespaces(connection):
                raise self._missing(namespace)
            # A file of schema version V0 knows tables only.
            columns = {row[1] for row in connection.execute("PRAGMA table_info(iceberg_tables)")}
            is_view = "iceberg_type IS 'VIEW'" if "iceberg_type" in columns else "FALSE"
            rows = connection.execute(
                f"SELECT table_name, {is_view} FROM iceberg_tables"  # noqa: S608 - our text
                " WHERE catalog_name = ? AND table_namespace = ? ORDER BY table_name",
                (self._name, ".".join(namespace)),
            ).fetchall()
        return [name for name, view in rows if not view], [name for name, view in rows if view]

    def load_namespace(self, namespace: tuple[str, ...]) -> Mapping[str, str]:
        with self._open() as connection:
            if namespace not in self._namespaces(connection):
                raise self._missing(namespace)
            rows = connection.execute(
                "SELECT property_key, property_value FROM iceberg_namespace_properties"
                " WHERE catalog_name = ? AND namespace = ?",
                (self._name, ".".join(namespace)),
            ).fetchall()
        return {key: value for key, value in rows if (key, value) != _EXISTS}

    def load_table(self, namespace: tuple[str, ...], name: str) -> TableMetadata:
        """Refuse: the file knows where a table's metadata is, not what it says."""
        raise NotSupportedError("loading a table needs the engine")

    def _namespaces(self, connection: sqlite3.Connection) -> frozenset[tuple[str, ...]]:
        rows = connection.execute(
            "SELECT namespace FROM iceberg_namespace_properties WHERE catalog_name = ?"
            " UNION SELECT table_namespace FROM iceberg_tables WHERE catalog_name = ?",
            (self._name, self._name),
        )
        # A namespace exists when it or something below it is mentioned.
        return frozenset(
            tuple(parts[:depth]) for parts in (row[0].split(".") for row in rows) for depth in range(1, len(parts) + 1)
        )

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            with _reading(self._path) as connection:
                yield connection
        except sqlite3.Error as exc:
            raise ExternalError(
                f"The catalog file {self._path.name} cannot be read", code=ErrorCode.CATALOG_ERROR
            ) from exc

    def _missing(self, namespace: tuple[str, ...]) -> ObjectNotFoundError:
        return ObjectNotFoundError(f"Schema {'.'.join(namespace)} does not exist", code=ErrorCode.SCHEMA_NOT_FOUND)


@contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    uri = f"file:{quote(str(path))}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True, timeout=_BUSY_SECS)) as connection:
        yield connection


def _tables(connection: sqlite3.Connection) -> frozenset[str]:
    return frozenset(row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'"))
