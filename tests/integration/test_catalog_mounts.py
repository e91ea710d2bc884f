"""The built-in catalogs, and a vendor's, mounted in the engine under random aliases."""

from __future__ import annotations

import importlib
import secrets
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from sqe_core.catalog.backends import HadoopBackend, SqliteBackend
from sqe_core.catalog.factories import JdbcConfig, JdbcFactory
from sqe_core.engine.port import EngineCatalog, EngineSession
from sqe_core.engine.spark.engine import SparkEngine
from sqe_core.spi import CatalogBackend, CatalogContext, Column, Identity, ObjectNotFoundError, Secret

ME = Identity(issuer="test", subject="me", username="me", provider="test")
VENDOR = Path(__file__).resolve().parents[1] / "vendor" / "acme" / "src"


@pytest.fixture
def session(engine: SparkEngine) -> Iterator[EngineSession]:
    session = engine.open_session()
    yield session
    session.close()


def mount(session: EngineSession, backend: CatalogBackend) -> EngineCatalog:
    alias = "_sqe_c_" + secrets.token_hex(16)
    session.mount(alias, backend.spark_properties(ME))
    return session.catalog(alias)


def make_lake(folder: Path, name: str = "lake") -> SqlCatalog:
    """A catalog that PyIceberg made, under a name of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    catalog = SqlCatalog(name, uri=f"sqlite:///{folder / 'catalog.db'}", warehouse=f"file://{folder / 'warehouse'}")
    catalog.create_namespace("hr")
    catalog.create_table("hr.people", schema=pa.schema([("id", pa.int64()), ("name", pa.string())])).append(
        pa.table({"id": [1], "name": ["ann"]})
    )
    return catalog


def test_sqlite_file_is_found_under_its_stored_name(session: EngineSession, tmp_path: Path) -> None:
    make_lake(tmp_path)
    backend = SqliteBackend.at(tmp_path)
    mounted = mount(session, backend)
    assert list(mounted.list_namespaces()) == [("hr",)]
    assert list(mounted.list_tables(("hr",))) == ["people"]
    assert [column.name for column in mounted.load_table(("hr",), "people").columns] == ["id", "name"]
    mounted.create_namespace(("sales",), {})
    quick = backend.quick_metadata(ME)
    assert list(quick.list_namespaces()) == [("hr",), ("sales",)] == sorted(mounted.list_namespaces())


def test_new_sqlite_file_is_one_that_iceberg_understands(session: EngineSession, tmp_path: Path) -> None:
    backend = SqliteBackend.at(tmp_path / "wäre house", "sqe.db")
    mounted = mount(session, backend)
    assert list(mounted.list_namespaces()) == [("default",)]
    mounted.create_view(
        ("default",),
        "v",
        columns=(Column(name="one", type="int"),),
        representations={"spark": "SELECT 1 AS one"},
        default_catalog=None,
        default_namespace=("default",),
        properties={},
        replace=False,
    )
    quick = backend.quick_metadata(ME)
    assert list(quick.list_views(("default",))) == ["v"]
    assert list(quick.list_tables(("default",))) == []


def test_jdbc_reads_the_same_file(session: EngineSession, tmp_path: Path) -> None:
    make_lake(tmp_path)
    config = JdbcConfig(url=Secret(f"sqlite:{tmp_path / 'catalog.db'}"), warehouse=str(tmp_path / "warehouse"))
    mounted = mount(session, JdbcFactory().create("lake", config, CatalogContext()))
    assert list(mounted.list_tables(("hr",))) == ["people"]
    elsewhere = mount(session, JdbcFactory().create("other", config, CatalogContext()))
    assert list(elsewhere.list_namespaces()) == []


def make_hadoop_table(lake: SqlCatalog, folder: Path) -> None:
    """Lay a table out as Iceberg's Hadoop catalog does."""
    metadata = folder / "hr" / "people" / "metadata"
    metadata.mkdir(parents=True)
    source = lake.load_table("hr.people").metadata_location.removeprefix("file://")
    shutil.copy(source, metadata / "v1.metadata.json")
    (metadata / "version-hint.text").write_text("1")


def check_folder(mounted: EngineCatalog) -> None:
    assert list(mounted.list_namespaces()) == [("hr",)]
    assert list(mounted.list_tables(("hr",))) == ["people"]
    assert mounted.load_table(("hr",), "people").name == "people"
    with pytest.raises(ObjectNotFoundError):
        mounted.load_table(("hr",), "nobody")


def test_hadoop_folder_is_read(session: EngineSession, tmp_path: Path) -> None:
    make_hadoop_table(make_lake(tmp_path / "lake"), tmp_path / "files")
    backend = HadoopBackend(warehouse=str(tmp_path / "files"))
    backend.check()
    check_folder(mount(session, backend))


@pytest.fixture
def acme(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The vendor's catalog, without an installation."""
    monkeypatch.syspath_prepend(str(VENDOR))
    yield importlib.import_module("acme_sqe.folder")
    for name in [name for name in sys.modules if name.partition(".")[0] == "acme_sqe"]:
        del sys.modules[name]


def test_vendors_catalog_is_mounted_like_ours(session: EngineSession, tmp_path: Path, acme: ModuleType) -> None:
    make_hadoop_table(make_lake(tmp_path / "lake"), tmp_path / "files")
    factory = acme.FolderFactory()
    config = factory.config_type(path=tmp_path / "files")
    check_folder(mount(session, factory.create("files", config, CatalogContext())))
