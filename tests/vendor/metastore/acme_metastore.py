"""A small metastore: names of Iceberg tables in a SQLite file, one level of schemas, no views.

Spark reads and commits through Iceberg's JDBC catalog; listings come from the file, also before the engine is up.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqe_core.spi import (
    AttachRequest,
    CatalogBackend,
    CatalogContext,
    CatalogFactory,
    CatalogMetadata,
    Identity,
    Jar,
    NotSupportedError,
    ObjectNotFoundError,
    SqePlugin,
    StartupContext,
    StartupError,
    TableMetadata,
    hookimpl,
    required,
    setting,
)

_STORED_NAME = "metastore"  # every row of the file carries it
_LAYOUT = """
CREATE TABLE IF NOT EXISTS iceberg_tables (
    catalog_name VARCHAR NOT NULL, table_namespace VARCHAR NOT NULL, table_name VARCHAR NOT NULL,
    metadata_location VARCHAR, previous_metadata_location VARCHAR, iceberg_type VARCHAR,
    PRIMARY KEY (catalog_name, table_namespace, table_name));
CREATE TABLE IF NOT EXISTS iceberg_namespace_properties (
    catalog_name VARCHAR NOT NULL, namespace VARCHAR NOT NULL, property_key VARCHAR, property_value VARCHAR,
    PRIMARY KEY (catalog_name, namespace, property_key));
INSERT OR IGNORE INTO iceberg_namespace_properties VALUES ('metastore', 'default', 'exists', 'true');
"""
_SCHEMAS = "SELECT DISTINCT namespace FROM iceberg_namespace_properties ORDER BY namespace"
_TABLES = "SELECT table_name FROM iceberg_tables WHERE table_namespace = ? ORDER BY table_name"
_PROPERTIES = (
    "SELECT property_key, property_value FROM iceberg_namespace_properties"
    " WHERE namespace = ? AND property_key <> 'exists'"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetastoreConfig:
    """`[catalogs.<name>]` with `type = "metastore"`."""

    file: Path = required("the SQLite file of the names; made when it is missing")
    warehouse: str = required("where data files go: a folder, or an address such as s3://bucket/path")
    jar: Path | None = setting(None, "the jar of `java/`, to note who keeps a table's name")
    writable: bool = setting(True, "whether statements may write")


class Names(CatalogMetadata):
    """What the file says."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def list_namespaces(self, parent: tuple[str, ...] = ()) -> Sequence[tuple[str, ...]]:
        """List the schemas; they have no children."""
        schemas = [(str(row[0]),) for row in self._rows(_SCHEMAS)]
        if parent and parent not in schemas:
            raise ObjectNotFoundError(f"Schema {'.'.join(parent)} does not exist")
        return [] if parent else schemas

    def list_tables(self, namespace: tuple[str, ...]) -> Sequence[str]:
        """List the tables of a schema."""
        self.list_namespaces(namespace)
        return [str(row[0]) for row in self._rows(_TABLES, *namespace)]

    def list_views(self, namespace: tuple[str, ...]) -> Sequence[str]:
        """There are none."""
        self.list_namespaces(namespace)
        return []

    def load_namespace(self, namespace: tuple[str, ...]) -> Mapping[str, str]:
        """Return the properties of a schema."""
        self.list_namespaces(namespace)
        return dict(self._rows(_PROPERTIES, *namespace))

    def load_table(self, namespace: tuple[str, ...], name: str) -> TableMetadata:
        """Leave it to the engine: the file knows where a table is described, not how."""
        raise NotSupportedError("loading a table needs the engine")

    def _rows(self, sql: str, *values: str) -> list[Any]:
        with closing(sqlite3.connect(self._file, timeout=30)) as connection:
            return connection.execute(sql, values).fetchall()


class Metastore(CatalogBackend):
    """One file, the same for everybody."""

    supports_views = False

    def __init__(self, config: MetastoreConfig, storage: Mapping[str, str], *, rehearsal: bool) -> None:
        file = config.file.expanduser().absolute()
        self.uri = f"metastore:{file}"
        self.read_only = not config.writable
        self._names = Names(file)
        self._jar = config.jar
        self._storage = storage
        place = config.warehouse
        self._mount = {
            "catalog-impl": "com.acme.Metastore" if config.jar else "org.apache.iceberg.jdbc.JdbcCatalog",
            "jdbc.schema-version": "V1",
            "uri": f"jdbc:sqlite:{file}?busy_timeout=30000",
            "warehouse": place if "://" in place else f"file://{Path(place).expanduser().absolute()}",
            "cache-enabled": "false",
            "sqe.catalog-name": _STORED_NAME,
        }
        self._unmade = rehearsal and not file.exists()
        if self._unmade:
            return
        try:
            with closing(sqlite3.connect(file, timeout=30)) as connection:
                connection.executescript(_LAYOUT)
        except sqlite3.Error as error:
            raise StartupError(f"The metastore {file} cannot be opened: {error}") from error

    def spark_properties(self, identity: Identity) -> Mapping[str, str]:
        """Mount the file, with what reaches the store."""
        return {**self._storage, **self._mount}

    def required_jars(self) -> Sequence[Jar]:
        """Our own class, when it is wanted: one that is not there stops the start."""
        return (Jar(path=self._jar),) if self._jar else ()

    def quick_metadata(self, identity: Identity) -> Names:
        """List from the file."""
        return self._names

    def check(self) -> None:
        """Read the file, which a rehearsal does not make."""
        if not self._unmade:
            self._names.list_namespaces()


class MetastoreFactory(CatalogFactory[MetastoreConfig]):
    """Makes catalogs of `type = "metastore"`."""

    kind = "metastore"
    config_type = MetastoreConfig

    def create(self, name: str, config: MetastoreConfig, context: CatalogContext) -> Metastore:
        """Open the file."""
        return Metastore(config, context.storage, rehearsal=context.rehearsal)

    def attach(self, request: AttachRequest) -> MetastoreConfig:
        """`ATTACH '<file>' AS x (TYPE metastore, WAREHOUSE '<folder>')`, for reading."""
        request.check(required=("warehouse",))
        return MetastoreConfig(file=Path(request.location), warehouse=request.options["warehouse"], writable=False)


class MetastorePlugin(SqePlugin):
    """Registers it."""

    @hookimpl
    def sqe_provide_catalogs(self, context: StartupContext) -> Sequence[CatalogFactory[Any]]:
        """Contribute `metastore`."""
        return (MetastoreFactory(),)
