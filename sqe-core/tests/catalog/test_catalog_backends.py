"""The built-in catalogs without an engine: addresses, files, and what the mount is told."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from sqe_core.catalog.backends import HadoopBackend, JdbcBackend, SqliteBackend, location_of
from sqe_core.catalog.factories import HadoopFactory, JdbcFactory, SqliteConfig, SqliteFactory
from sqe_core.catalog.jdbc_url import parse_jdbc_url, sqlite_url
from sqe_core.catalog.sqlite_file import SqliteListing, read_stored_name
from sqe_core.spi import (
    AttachRequest,
    AttachSecret,
    CatalogContext,
    ConfigError,
    ExternalError,
    NotSupportedError,
    ObjectNotFoundError,
    Secret,
    UserError,
)
from sqe_core.testing import make_identity

ME = make_identity()


@contextmanager
def open_with_pyiceberg(file: Path, name: str) -> Iterator[SqlCatalog]:
    catalog = SqlCatalog(name, uri=f"sqlite:///{file}", warehouse=f"file://{file.parent}")
    yield catalog
    catalog.engine.dispose()


def test_new_embedded_warehouse_has_its_schema_and_name(tmp_path: Path) -> None:
    backend = SqliteBackend.at(tmp_path / "wäre house", "sqe.db")
    properties = backend.spark_properties(ME)
    folder = tmp_path / "wäre house"
    assert properties["uri"] == f"jdbc:sqlite:{folder}/sqe.db?busy_timeout=30000&journal_mode=WAL"
    assert properties["warehouse"] == f"file://{folder}"
    assert properties["sqe.catalog-name"] == "iceberg"
    assert properties["catalog-impl"] == "org.apache.iceberg.jdbc.JdbcCatalog"
    assert properties["jdbc.schema-version"] == "V1"
    assert backend.quick_metadata(ME).list_namespaces() == [("default",)]


def test_attached_folder_keeps_data_apart(tmp_path: Path) -> None:
    backend = SqliteBackend.at(tmp_path)
    assert backend.file == tmp_path / "catalog.db"
    assert backend.spark_properties(ME)["warehouse"] == f"file://{tmp_path}/warehouse"


def test_layout_is_the_one_that_pyiceberg_uses(tmp_path: Path) -> None:
    """PyIceberg reads and writes a file of ours, and we read one of PyIceberg's."""
    ours = SqliteBackend.at(tmp_path / "ours", "sqe.db")
    with open_with_pyiceberg(ours.file, "iceberg") as catalog:
        assert catalog.list_namespaces() == [("default",)]
        catalog.create_namespace("sales.eu", {"owner": "ann"})
        catalog.create_table("sales.eu.orders", schema=pa.schema([("id", pa.int64())]))
    listing = ours.quick_metadata(ME)
    assert listing.list_namespaces() == [("default",), ("sales",)]
    assert listing.list_namespaces(("sales",)) == [("sales", "eu")]
    assert listing.list_tables(("sales", "eu")) == ["orders"]
    assert listing.load_namespace(("sales", "eu")) == {"owner": "ann"}

    (tmp_path / "theirs").mkdir()
    with open_with_pyiceberg(tmp_path / "theirs" / "catalog.db", "lake") as theirs:
        theirs.create_namespace("hr")
    backend = SqliteBackend.at(tmp_path / "theirs")
    assert backend.spark_properties(ME)["sqe.catalog-name"] == "lake"
    assert backend.quick_metadata(ME).list_namespaces() == [("hr",)]


def test_existing_catalog_is_left_as_it_is(tmp_path: Path) -> None:
    SqliteBackend.at(tmp_path)
    with closing(sqlite3.connect(tmp_path / "catalog.db")) as connection, connection:
        connection.execute("DELETE FROM iceberg_namespace_properties")
    assert SqliteBackend.at(tmp_path).quick_metadata(ME).list_namespaces() == []


def test_many_processes_may_make_the_same_file(tmp_path: Path) -> None:
    with ThreadPoolExecutor(max_workers=8) as pool:
        backends = list(pool.map(lambda _: SqliteBackend.at(tmp_path), range(16)))
    assert all(backend.quick_metadata(ME).list_namespaces() == [("default",)] for backend in backends)


def test_views_and_tables_are_listed_apart(tmp_path: Path) -> None:
    backend = SqliteBackend.at(tmp_path)
    with closing(sqlite3.connect(backend.file)) as connection, connection:
        rows = [("t", "TABLE"), ("old", None), ("v", "VIEW")]
        for name, kind in rows:
            connection.execute(
                "INSERT INTO iceberg_tables VALUES ('iceberg', 'default', ?, 'file:///m.json', NULL, ?)", (name, kind)
            )
    listing = backend.quick_metadata(ME)
    assert listing.list_tables(("default",)) == ["old", "t"]
    assert listing.list_views(("default",)) == ["v"]


def test_layout_without_views_is_read_too(tmp_path: Path) -> None:
    """Files of version V0 have no column for the type."""
    file = tmp_path / "catalog.db"
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(
            "CREATE TABLE iceberg_tables (catalog_name TEXT, table_namespace TEXT, table_name TEXT,"
            " metadata_location TEXT, previous_metadata_location TEXT)"
        )
        connection.execute(
            "CREATE TABLE iceberg_namespace_properties (catalog_name TEXT, namespace TEXT, property_key TEXT,"
            " property_value TEXT)"
        )
        connection.execute("INSERT INTO iceberg_tables VALUES ('j', 'a.b', 't', 'x', NULL)")
    listing = SqliteBackend.at(tmp_path).quick_metadata(ME)
    assert listing.list_namespaces() == [("a",)]
    assert listing.list_tables(("a", "b")) == ["t"]
    assert list(listing.list_views(("a", "b"))) == []


def test_missing_namespaces_raise(tmp_path: Path) -> None:
    listing = SqliteBackend.at(tmp_path).quick_metadata(ME)
    for look in (listing.list_namespaces, listing.list_tables, listing.list_views, listing.load_namespace):
        with pytest.raises(ObjectNotFoundError, match="Schema no does not exist"):
            look(("no",))
    with pytest.raises(NotSupportedError, match="needs the engine"):
        listing.load_table(("default",), "t")


def test_several_names_in_one_file_need_a_choice(tmp_path: Path) -> None:
    for name in ("left", "right"):
        with open_with_pyiceberg(tmp_path / "catalog.db", name) as catalog:
            catalog.create_namespace(name)
    with pytest.raises(ConfigError, match="holds the catalogs left, right; choose one with catalog_name"):
        SqliteBackend.at(tmp_path)
    chosen = SqliteBackend.at(tmp_path, catalog_name="right")
    assert chosen.quick_metadata(ME).list_namespaces() == [("right",)]


def test_files_that_are_no_catalog_are_refused(tmp_path: Path) -> None:
    (tmp_path / "catalog.db").write_text("this is not a database, but a text of more than a hundred characters" * 4)
    with pytest.raises(ConfigError, match=r"catalog\.db cannot be opened: file is not a database"):
        SqliteBackend.at(tmp_path)
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as connection, connection:
        connection.execute("CREATE TABLE customers (id INT)")
    with pytest.raises(ConfigError, match="is a SQLite file, but no Iceberg catalog"):
        SqliteBackend.at(tmp_path, "other.db")
    with closing(sqlite3.connect(other)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        assert [row[0] for row in connection.execute("SELECT name FROM sqlite_master")] == ["customers"]


def test_a_file_that_went_away_is_an_external_error(tmp_path: Path) -> None:
    listing = SqliteListing(tmp_path / "gone.db", "iceberg")
    with pytest.raises(ExternalError, match=r"^The catalog file gone\.db cannot be read$"):
        listing.list_namespaces()
    with pytest.raises(ConfigError):
        read_stored_name(tmp_path / "gone.db")


def test_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be made: Not a directory"):
        SqliteBackend.at(tmp_path / "file" / "below")


def test_listing_reads_while_somebody_writes(tmp_path: Path) -> None:
    backend = SqliteBackend.at(tmp_path)
    with closing(sqlite3.connect(backend.file, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("INSERT INTO iceberg_namespace_properties VALUES ('iceberg', 'new', 'exists', 'true')")
        assert backend.quick_metadata(ME).list_namespaces() == [("default",)]
        writer.execute("COMMIT")
    assert backend.quick_metadata(ME).list_namespaces() == [("default",), ("new",)]


@pytest.mark.parametrize(
    ("text", "url", "user", "password", "jars"),
    [
        ("postgresql://db/lake", "jdbc:postgresql://db/lake", None, None, ("postgresql",)),
        ("postgres://ann:s%40fe@db:5432/lake", "jdbc:postgresql://db:5432/lake", "ann", "s@fe", ("postgresql",)),
        ("jdbc:postgresql://ann@db/lake?ssl=true", "jdbc:postgresql://db/lake?ssl=true", "ann", None, ("postgresql",)),
        ("postgresql+psycopg2://db/lake", "jdbc:postgresql://db/lake", None, None, ("postgresql",)),
        ("mysql://[::1]:3306/lake", "jdbc:mysql://[::1]:3306/lake", None, None, ("mysql",)),
        ("sqlite:/a/c.db", "jdbc:sqlite:/a/c.db?busy_timeout=30000&journal_mode=WAL", None, None, ()),
        ("jdbc:sqlite:c.db", "jdbc:sqlite:c.db?busy_timeout=30000&journal_mode=WAL", None, None, ()),
        ("sqlite:////a/c.db", "jdbc:sqlite:/a/c.db?busy_timeout=30000&journal_mode=WAL", None, None, ()),
    ],
)
def test_addresses(text: str, url: str, user: str | None, password: str | None, jars: tuple[str, ...]) -> None:
    address = parse_jdbc_url(text)
    assert (address.url, address.user, address.jars) == (url, user, jars)
    assert (address.password.reveal() if address.password else None) == password
    assert "s@fe" not in address.public
    assert "ann" not in address.public


@pytest.mark.parametrize("text", ["oracle://ann:hunter2@db/lake", "postgresql://db", "sqlite:", "lake", ""])
def test_bad_addresses_are_refused_without_their_text(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_jdbc_url(text)
    assert "hunter2" not in str(caught.value)


def test_sqlite_path_with_a_question_mark_is_refused() -> None:
    with pytest.raises(ConfigError, match="question mark"):
        sqlite_url("/a?b/c.db")


def test_own_login_never_mixes_with_the_one_in_the_address() -> None:
    address = parse_jdbc_url("postgresql://ann:hunter2@db/lake")
    properties = JdbcBackend(address=address, warehouse="s3://w", stored_name="lake", user="bob").spark_properties(ME)
    assert properties["jdbc.user"] == "bob"
    assert "jdbc.password" not in properties
    both = JdbcBackend(address=address, warehouse="s3://w", stored_name="lake").spark_properties(ME)
    assert (both["jdbc.user"], both["jdbc.password"]) == ("ann", "hunter2")
    assert both["sqe.catalog-name"] == "lake"


def test_storage_properties_reach_the_mount(tmp_path: Path) -> None:
    context = CatalogContext(storage={"s3.endpoint": "http://store"})
    backend = SqliteFactory().create("x", SqliteConfig(directory=tmp_path), context)
    assert backend.spark_properties(ME)["s3.endpoint"] == "http://store"


@pytest.mark.parametrize(
    ("path", "location"),
    [("s3://bucket/x", "s3://bucket/x"), ("file:/x", "file:/x"), ("/a b/ü%20", "file:///a b/ü%20")],
)
def test_locations(path: str, location: str) -> None:
    assert location_of(path) == location


def test_hadoop_is_read_only_and_checks_its_folder(tmp_path: Path) -> None:
    assert HadoopBackend(warehouse="s3://bucket/x").read_only
    HadoopBackend(warehouse="s3://bucket/x").check()
    HadoopBackend(warehouse=str(tmp_path)).check()
    with pytest.raises(ConfigError, match="does not exist"):
        HadoopBackend(warehouse=str(tmp_path / "missing")).check()


def test_attach_jdbc_takes_the_secret() -> None:
    login = AttachSecret(name="s", type="basic", values={"username": Secret("bob"), "password": Secret("pw")})
    request = AttachRequest(
        name="pg", location="postgresql://ann:x@db/lake", options={"warehouse": "s3://w"}, secret=login
    )
    backend = JdbcFactory().create("pg", JdbcFactory().attach(request), CatalogContext())
    properties = backend.spark_properties(ME)
    assert (properties["jdbc.user"], properties["jdbc.password"]) == ("bob", "pw")
    assert properties["sqe.catalog-name"] == "pg"


@pytest.mark.parametrize(
    ("factory", "request_", "text"),
    [
        (SqliteFactory(), AttachRequest(name="x", location=""), "needs a directory in quotes"),
        (HadoopFactory(), AttachRequest(name="x", location=""), "needs a warehouse path in quotes"),
        (JdbcFactory(), AttachRequest(name="x", location="sqlite:/x"), "ATTACH needs WAREHOUSE"),
        (SqliteFactory(), AttachRequest(name="x", location="/x", options={"region": "eu"}), "does not know REGION"),
    ],
)
def test_attach_faults(factory, request_: AttachRequest, text: str) -> None:
    with pytest.raises(UserError, match=text):
        factory.attach(request_)
