"""The engine-backed contract of catalogs: ours and a vendor's keep it, and it notices those that do not."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
from contract_variants import given

from acme_metastore import MetastoreConfig, MetastoreFactory
from sqe_core.bootstrap import EmbeddedSqe
from sqe_core.catalog.backends import SqliteBackend
from sqe_core.catalog.factories import HadoopConfig, HadoopFactory, SqliteConfig, SqliteFactory
from sqe_core.engine.spark.engine import SparkEngine
from sqe_core.spi import CatalogMetadata, Identity
from sqe_core.spi.errors import ObjectNotFoundError
from sqe_core.testing.catalog_engine import CatalogEngineContract, Run, mounted


@pytest.fixture(scope="module")
def embedded(sqe: EmbeddedSqe) -> EmbeddedSqe:
    """The test run has one engine."""
    return sqe


class TestSqlite(CatalogEngineContract):
    capabilities: ClassVar[frozenset[str]] = frozenset({"writes", "views"})

    factory = given(SqliteFactory)
    config = given(lambda tmp_path: SqliteConfig(directory=tmp_path))


class TestHadoop(CatalogEngineContract):
    factory = given(HadoopFactory)
    config = given(lambda tmp_path: HadoopConfig(warehouse=str(tmp_path)))

    @pytest.fixture
    def readable(self, engine: SparkEngine, tmp_path: Path) -> str:
        session = engine.open_session()
        session.mount("_sqe_c_maker", {"type": "hadoop", "warehouse": f"file://{tmp_path}"})
        session.spark.sql("CREATE TABLE _sqe_c_maker.sales.orders USING iceberg AS SELECT 1 AS id")  # type: ignore[attr-defined]
        session.close()
        return "sales.orders"


class TestMetastore(CatalogEngineContract):
    capabilities = frozenset({"writes"})

    factory = given(MetastoreFactory)
    config = given(lambda tmp_path: MetastoreConfig(file=tmp_path / "names.db", warehouse=str(tmp_path / "data")))


# It notices what is broken


class ReadOnly(SqliteBackend):
    read_only = True


class WithoutViews(SqliteBackend):
    supports_views = False


class Listing:
    """A listing in front of the true one."""

    def __init__(self, true: CatalogMetadata) -> None:
        self.true = true

    def __getattr__(self, name: str) -> Any:
        return getattr(self.true, name)


class EmptyForMissing(Listing):
    def list_objects(self, namespace: tuple[str, ...]) -> tuple[Sequence[str], Sequence[str]]:
        try:
            return self.true.list_objects(namespace)
        except ObjectNotFoundError:
            return (), ()

    def list_tables(self, namespace: tuple[str, ...]) -> Sequence[str]:
        return self.list_objects(namespace)[0]

    def load_namespace(self, namespace: tuple[str, ...]) -> Mapping[str, str]:
        return {}


class Forgiving(SqliteBackend):
    def quick_metadata(self, identity: Identity) -> Any:
        return EmptyForMissing(super().quick_metadata(identity))


class FirstAnswers(Listing):
    def __init__(self, true: CatalogMetadata) -> None:
        super().__init__(true)
        self.first: dict[Any, Any] = {}

    def list_tables(self, namespace: tuple[str, ...]) -> Sequence[str]:
        return self.list_objects(namespace)[0]

    def list_objects(self, namespace: tuple[str, ...]) -> tuple[Sequence[str], Sequence[str]]:
        if namespace not in self.first:
            self.first[namespace] = self.true.list_objects(namespace)
        return self.first[namespace]


class Stale(SqliteBackend):
    listing: Any = None

    def quick_metadata(self, identity: Identity) -> Any:
        self.listing = self.listing or FirstAnswers(super().quick_metadata(identity))
        return self.listing


class AnotherFile(SqliteBackend):
    """What it lists is not what it mounts."""

    def quick_metadata(self, identity: Identity) -> Any:
        return SqliteBackend.at(self.file.parent / "elsewhere").quick_metadata(identity)


@pytest.mark.parametrize(
    ("kind", "test"),
    [
        (ReadOnly, "test_writes"),
        (WithoutViews, "test_views"),
        (Forgiving, "test_missing_schema"),
        (Stale, "test_names_come_and_go"),
        (AnotherFile, "test_listings_agree"),
        (SqliteBackend, "test_denied_is_missing"),  # everybody is the same to it
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_broken_catalog_fails(kind: type[SqliteBackend], test: str, sqe: EmbeddedSqe, tmp_path: Path) -> None:
    class Contract(TestSqlite):
        capabilities = frozenset({"writes", "views", "denies"})

    def outcome(backend: SqliteBackend, test: str) -> bool:
        with mounted(sqe, backend) as run:
            return fails(Contract(), test, run, backend)

    assert outcome(kind.at(tmp_path), test)
    # The same test passes where nothing is broken: it is the fault that it notices.
    assert kind is SqliteBackend or not outcome(SqliteBackend.at(tmp_path / "whole"), test)


class Asked:
    """The fixtures that a test asks for by name."""

    def __init__(self, **values: Any) -> None:
        self._values = values

    def getfixturevalue(self, name: str) -> Any:
        return self._values[name]


def fails(contract: Any, test: str, run: Run, backend: SqliteBackend) -> bool:
    schema = f"s_{secrets.token_hex(6)}"
    values = {"run": run, "backend": backend, "schema": schema, "denied": f"{schema}.secret"}
    values["request"] = Asked(**values)
    method = getattr(contract, test)
    wanted = method.__code__.co_varnames[1 : method.__code__.co_argcount]
    try:
        run(f"CREATE SCHEMA {schema}")
        if test == "test_denied_is_missing":
            run(f"CREATE TABLE {schema}.secret AS SELECT 1 AS id")
        method(**{name: values[name] for name in wanted})
    except (Exception, pytest.fail.Exception):
        return True
    return False
