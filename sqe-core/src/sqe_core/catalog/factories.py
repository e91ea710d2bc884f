"""The factories of the built-in catalogs: their keys in TOML, and what ATTACH of them means."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sqe_core.catalog.backends import HadoopBackend, JdbcBackend, SqliteBackend
from sqe_core.catalog.jdbc_url import check_attached_url, parse_jdbc_url
from sqe_core.spi.catalog import AttachRequest, CatalogContext, CatalogFactory
from sqe_core.spi.errors import ErrorCode, UserError
from sqe_core.spi.factory import required, setting
from sqe_core.spi.identity import Secret

_STORES = ("file", "s3", "s3a", "gs", "abfs", "abfss", "wasbs", "oss", "hdfs")
_CATALOG_NAME = "the name that the rows of the catalog carry"


@dataclass(frozen=True, slots=True, kw_only=True)
class SqliteConfig:
    """The keys of `type = "sqlite"`."""

    directory: Path = required("the folder of the catalog file; made when it is missing")
    file: str | None = setting(
        None, "the name of the catalog file; unset = sqe.db of embedded mode where it is, else catalog.db"
    )
    warehouse: str | None = setting(None, "where data files go; unset = warehouse/ in the folder")
    catalog_name: str | None = setting(None, f"{_CATALOG_NAME}; unset = read from the file")


class SqliteFactory(CatalogFactory[SqliteConfig]):
    """Makes catalogs in a SQLite file."""

    kind = "sqlite"
    config_type = SqliteConfig

    def create(self, name: str, config: SqliteConfig, context: CatalogContext) -> SqliteBackend:
        backend = SqliteBackend(
            config.directory,
            config.file,
            warehouse=config.warehouse,
            catalog_name=config.catalog_name,
            storage=context.storage,
            rehearsal=context.rehearsal,
        )
        if context.rehearsal:
            backend.check()
        return backend

    def attach(self, request: AttachRequest) -> SqliteConfig:
        """`ATTACH '<directory>' AS x (TYPE sqlite)`."""
        request.check()
        location = _location(request, "a directory")
        if location.startswith("file:///"):  # with a host, or with a path that begins elsewhere, it is none
            location = location.removeprefix("file://")
        if ":" in location.partition("/")[0] or "?" in location:
            raise UserError(
                "ATTACH of this type needs the path of a directory",
                code=ErrorCode.INVALID_ARGUMENTS,
                hint="a file is attached with TYPE jdbc: ATTACH 'sqlite:/path/to/catalog.db' AS x (TYPE jdbc, …)",
            )
        return SqliteConfig(directory=Path(location))


@dataclass(frozen=True, slots=True, kw_only=True)
class JdbcConfig:
    """The keys of `type = "jdbc"`."""

    url: Secret = required("sqlite:…, postgresql://… or mysql://…; may hold user and password", secret=True)
    warehouse: str = required("where data files go")
    user: str | None = setting(None, "the login, when it is not in the url")
    password: Secret | None = setting(None, "its password", secret=True)
    catalog_name: str | None = setting(None, f"{_CATALOG_NAME}; unset = the name of the catalog here")


class JdbcFactory(CatalogFactory[JdbcConfig]):
    """Makes catalogs in a SQL database."""

    kind = "jdbc"
    config_type = JdbcConfig

    def create(self, name: str, config: JdbcConfig, context: CatalogContext) -> JdbcBackend:
        return JdbcBackend(
            address=parse_jdbc_url(config.url.reveal()),
            warehouse=config.warehouse,
            stored_name=config.catalog_name or name,
            user=config.user,
            password=config.password,
            storage=context.storage,
        )

    def attach(self, request: AttachRequest) -> JdbcConfig:
        """`ATTACH 'jdbc:postgresql://…' AS x (TYPE jdbc, WAREHOUSE '…', SECRET s)`."""
        request.check(required=("warehouse",), optional=("catalog_name",), secrets=("basic",))
        location = _location(request, "an address")
        check_attached_url(location)
        values = request.secret.values if request.secret else {}
        username = values.get("username")
        return JdbcConfig(
            url=Secret(location),
            warehouse=_warehouse(request.options["warehouse"]),
            user=username.reveal() if username else None,
            password=values.get("password"),
            catalog_name=request.options.get("catalog_name"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class HadoopConfig:
    """The keys of `type = "hadoop"`."""

    warehouse: str = required("the folder of the tables: a path, or an address such as s3://bucket/path")


class HadoopFactory(CatalogFactory[HadoopConfig]):
    """Makes read-only catalogs of a folder."""

    kind = "hadoop"
    config_type = HadoopConfig

    def create(self, name: str, config: HadoopConfig, context: CatalogContext) -> HadoopBackend:
        return HadoopBackend(warehouse=config.warehouse, storage=context.storage)

    def attach(self, request: AttachRequest) -> HadoopConfig:
        """`ATTACH '<warehouse>' AS x (TYPE hadoop)`."""
        request.check()
        return HadoopConfig(warehouse=_warehouse(_location(request, "a warehouse path")))


def _location(request: AttachRequest, what: str) -> str:
    if not request.location:
        raise UserError(f"ATTACH of this type needs {what} in quotes", code=ErrorCode.INVALID_ARGUMENTS)
    return request.location


def _warehouse(location: str) -> str:
    """Return a path, or the address of a store; Hadoop reads much more, such as web pages and archives."""
    scheme, colon, _ = location.partition(":")
    if (colon and "/" not in scheme and scheme not in _STORES) or not location.isprintable():
        raise UserError(
            "A warehouse is a path or the address of a store",
            code=ErrorCode.INVALID_ARGUMENTS,
            hint="addresses begin with " + ", ".join(f"{store}:" for store in _STORES),
        )
    return location
