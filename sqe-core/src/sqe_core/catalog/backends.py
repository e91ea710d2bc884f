"""The catalogs that need nothing but Iceberg itself: SQLite, other SQL databases, and plain folders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from sqe_core.catalog.jdbc_url import JdbcAddress, sqlite_url
from sqe_core.catalog.sqlite_file import SqliteListing, create_catalog_file, read_stored_name
from sqe_core.spi.catalog import CatalogBackend, CatalogMetadata
from sqe_core.spi.errors import ConfigError
from sqe_core.spi.identity import Identity, Secret

EMBEDDED_FILE = "sqe.db"
ATTACHED_FILE = "catalog.db"

_NOTHING: Mapping[str, str] = MappingProxyType({})
_JDBC = {
    "catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
    # Without it a fresh database gets a layout that cannot hold views.
    "jdbc.schema-version": "V1",
}
# Iceberg's cache of loaded tables makes sessions blind for each other's commits.
_UNCACHED = {"cache-enabled": "false"}
# Read by the engine's catalog class: SQL catalogs keep their name in each row, and the mount's own is random.
STORED_NAME = "sqe.catalog-name"


def location_of(path: str) -> str:
    """Return a warehouse location: addresses stay, a local path becomes `file://…`.

    Hadoop does not decode `%20`, so the path stands there as it is.
    """
    if "://" in path or path.startswith("file:"):
        return path
    return f"file://{Path(path).expanduser().absolute()}"


class SqliteBackend(CatalogBackend):
    """A catalog in a SQLite file, with its data files in a folder. `at` opens one."""

    lists_without_engine = True  # the file answers in a fraction of a round trip to the engine

    def __init__(self, *, file: Path, warehouse: str, stored_name: str, storage: Mapping[str, str] = _NOTHING) -> None:
        self.file = file
        self.uri = f"sqlite:{file}"
        self._stored_name = stored_name
        self._properties = {
            **_JDBC,
            **_UNCACHED,
            **storage,
            "uri": sqlite_url(str(file)),
            "warehouse": warehouse,
            STORED_NAME: stored_name,
        }

    @classmethod
    def at(
        cls,
        folder: Path,
        file: str = ATTACHED_FILE,
        *,
        warehouse: str | None = None,
        catalog_name: str | None = None,
        storage: Mapping[str, str] = _NOTHING,
    ) -> SqliteBackend:
        """Open the catalog in a folder, and make it when there is none.

        Args:
            folder: where the file is.
            file: `sqe.db` is an embedded warehouse with its data beside it, others keep theirs in `warehouse/`.
            warehouse: another place for the data files.
            catalog_name: the name that the rows carry; None reads it from the file.
            storage: Iceberg properties of the store.
        """
        folder = folder.expanduser().absolute()
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as exc:
            raise ConfigError((f"the folder {folder} of a SQLite catalog cannot be made: {exc.strerror}",)) from exc
        path = folder / file
        create_catalog_file(path)
        data = folder if file == EMBEDDED_FILE else folder / "warehouse"
        return cls(
            file=path,
            warehouse=location_of(warehouse or str(data)),
            stored_name=read_stored_name(path, catalog_name),
            storage=storage,
        )

    def spark_properties(self, identity: Identity) -> Mapping[str, str]:
        """Return the options of the mount, the same for everybody."""
        return self._properties

    def quick_metadata(self, identity: Identity) -> CatalogMetadata:
        """Return listings straight from the file."""
        return SqliteListing(self.file, self._stored_name)

    def check(self) -> None:
        """Read the file."""
        SqliteListing(self.file, self._stored_name).list_namespaces()


class JdbcBackend(CatalogBackend):
    """A catalog in a SQL database, reached with one login for everybody."""

    def __init__(
        self,
        *,
        address: JdbcAddress,
        warehouse: str,
        stored_name: str,
        user: str | None = None,
        password: Secret | None = None,
        storage: Mapping[str, str] = _NOTHING,
    ) -> None:
        self.uri = address.public
        self._jars = address.jars
        self._properties = {
            **_JDBC,
            **_UNCACHED,
            **storage,
            "uri": address.url,
            "warehouse": location_of(warehouse),
            STORED_NAME: stored_name,
        }
        # A login of its own wins over the one in the address, and never mixes with it.
        if user is None:
            user, password = address.user, password or address.password
        if user is not None:
            self._properties["jdbc.user"] = user
        if password is not None:
            self._properties["jdbc.password"] = password.reveal()

    def spark_properties(self, identity: Identity) -> Mapping[str, str]:
        """Return the options of the mount, the same for everybody."""
        return self._properties

    def required_jars(self) -> Sequence[str]:
        """Return the database's driver."""
        return self._jars


class HadoopBackend(CatalogBackend):
    """A folder of tables, each with its `metadata/v*.metadata.json`. Read only: it has no safe way to commit."""

    read_only = True
    supports_views = False

    def __init__(self, *, warehouse: str, storage: Mapping[str, str] = _NOTHING) -> None:
        self._location = self.uri = location_of(warehouse)
        self._properties = {"type": "hadoop", **_UNCACHED, **storage, "warehouse": self._location}

    def spark_properties(self, identity: Identity) -> Mapping[str, str]:
        """Return the options of the mount, the same for everybody."""
        return self._properties

    def check(self) -> None:
        """Look for the folder, when it is a local one."""
        path = Path(self._location.removeprefix("file://"))
        if self._location.startswith("file://") and not path.is_dir():
            raise ConfigError((f"the folder {path} of a hadoop catalog does not exist",))
