"""The catalogs that need nothing but Iceberg itself: SQLite, other SQL databases, and plain folders."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

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
    """A catalog in a SQLite file, with its data files in a folder."""

    lists_without_engine = True  # the file answers in a fraction of a round trip to the engine

    def __init__(
        self,
        folder: Path,
        file: str | None = None,
        *,
        warehouse: str | None = None,
        catalog_name: str | None = None,
        storage: Mapping[str, str] = _NOTHING,
        rehearsal: bool = False,
    ) -> None:
        """Remember where the catalog is; the first use opens it, and makes it when there is none, but in a rehearsal.

        Without a `file` it is what is there: `sqe.db` of embedded mode, else `catalog.db`; without a `warehouse` data
        files are in the folder of `sqe.db`, or in `warehouse/` beside others; without a `catalog_name` the rows say it.
        """
        self._folder = folder.expanduser().absolute()
        self.file = self._folder / (file or found_file(self._folder))
        self.uri = f"sqlite:{self.file}"
        data = self._folder if self.file.name == EMBEDDED_FILE else self._folder / "warehouse"
        self._warehouse = location_of(warehouse or str(data))
        self._wanted_name = catalog_name
        self._storage = storage
        self._rehearsal = rehearsal
        self._opening = threading.Lock()
        self._name: str | None = None

    @classmethod
    def at(cls, folder: Path, file: str | None = None, **options: Any) -> SqliteBackend:
        """Open the catalog in a folder, or make it, at once."""
        backend = cls(folder, file, **options)
        backend._stored_name()
        return backend

    def check(self) -> None:
        """Read the file; one that is not there is made, or could be."""
        if self._rehearsal and not self.file.exists():
            place = next(folder for folder in self.file.parents if folder.exists())
            if not (place.is_dir() and os.access(place, os.W_OK | os.X_OK)):
                raise ConfigError((f"the folder {self._folder} of a SQLite catalog cannot be made in {place}",))
            return
        SqliteListing(self.file, self._stored_name()).list_namespaces()

    def spark_properties(self, identity: Identity) -> Mapping[str, str]:
        return {
            **_JDBC,
            **_UNCACHED,
            **self._storage,
            "uri": sqlite_url(str(self.file)),
            "warehouse": self._warehouse,
            STORED_NAME: self._stored_name(),
        }

    def quick_metadata(self, identity: Identity) -> CatalogMetadata:
        return SqliteListing(self.file, self._stored_name())

    def _stored_name(self) -> str:
        with self._opening:
            if self._name is None:
                if not self._rehearsal:
                    try:
                        self._folder.mkdir(parents=True, exist_ok=True)
                    except OSError as exc:
                        text = f"the folder {self._folder} of a SQLite catalog cannot be made: {exc.strerror}"
                        raise ConfigError((text,)) from exc
                    create_catalog_file(self.file)
                self._name = read_stored_name(self.file, self._wanted_name)
            return self._name


def found_file(folder: Path, fresh: str = ATTACHED_FILE) -> str:
    """Return the name of the catalog file that is in a folder, so that a warehouse of `sqe-cli` is opened as it is."""
    return next((name for name in (ATTACHED_FILE, EMBEDDED_FILE) if (folder / name).exists()), fresh)


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
        return self._properties

    def required_jars(self) -> Sequence[str]:
        return self._jars


class HadoopBackend(CatalogBackend):
    """A folder of tables, each with its `metadata/v*.metadata.json`. Read only: it has no safe way to commit."""

    read_only = True
    supports_views = False

    def __init__(self, *, warehouse: str, storage: Mapping[str, str] = _NOTHING) -> None:
        self._location = self.uri = location_of(warehouse)
        self._properties = {"type": "hadoop", **_UNCACHED, **storage, "warehouse": self._location}

    def spark_properties(self, identity: Identity) -> Mapping[str, str]:
        return self._properties

    def check(self) -> None:
        """Look for the folder, when it is a local one."""
        path = Path(self._location.removeprefix("file://"))
        if self._location.startswith("file://") and not path.is_dir():
            raise ConfigError((f"the folder {path} of a hadoop catalog does not exist",))
