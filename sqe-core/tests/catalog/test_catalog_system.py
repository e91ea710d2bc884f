"""The catalog `system`: there without being mounted, and never in anybody's way."""

from __future__ import annotations

from typing import Any

import pytest

from sqe_core.catalog.own_tables import own_columns
from sqe_core.catalog.registry import CatalogRegistry, Mount
from sqe_core.catalog.system import RUNTIME, SYSTEM, TABLES
from sqe_core.catalog.visible import VisibleCatalogs
from sqe_core.query.judge.names import NameContext, NameResolver
from sqe_core.spi.catalog import CatalogBackend, ObjectType
from sqe_core.spi.errors import NotSupportedError, ObjectNotFoundError
from sqe_core.spi.identity import Identity
from sqe_core.testing.fakes import make_identity

HERE = NameContext(catalog="lake", schema=("default",))


class Backend(CatalogBackend):
    def spark_properties(self, identity: Identity) -> dict[str, str]:
        return {}


def nobody_is_asked(*args: Any) -> Any:
    raise AssertionError("neither a policy nor a catalog has to do with it")


def visible(registry: CatalogRegistry) -> VisibleCatalogs:
    return VisibleCatalogs(
        registry=registry,
        listing_of=nobody_is_asked,
        metadata_of=nobody_is_asked,
        visible_of=nobody_is_asked,
        columns_of=nobody_is_asked,
        enforced=True,
    )


@pytest.mark.parametrize("written", [("system", "runtime", "queries"), ("SYSTEM", "Runtime", "QUERIES")])
def test_a_name_of_it(written: tuple[str, ...]) -> None:
    resolver = NameResolver(CatalogRegistry([Mount(name="lake", backend=Backend())]), shows=nobody_is_asked)
    found = resolver.object(written, HERE)
    assert found.mount is SYSTEM
    assert found.name.parts == ("system", "runtime", "queries")
    resolver.ensure_mounted()
    assert resolver.schema(("System", "RUNTIME"), HERE)[1].namespace == RUNTIME


def test_a_mounted_catalog_of_that_name_wins() -> None:
    own = Mount(name="system", backend=Backend())
    resolver = NameResolver(CatalogRegistry([own]), discover=nobody_is_asked)
    assert resolver.object(("system", "Runtime", "queries"), HERE).mount is own
    assert resolver.object(("system", "Runtime", "queries"), HERE).name.namespace == ("Runtime",)


def test_what_is_in_it() -> None:
    listed = visible(CatalogRegistry())
    assert listed.schemas(SYSTEM) == [RUNTIME]
    assert listed.has_schema(SYSTEM, RUNTIME)
    assert not listed.has_schema(SYSTEM, ("information_schema",))
    found = [(name.name, kind) for name, kind in listed.objects(SYSTEM, RUNTIME)]
    assert found == [(name, ObjectType.SYSTEM_TABLE) for name in sorted(TABLES)]
    assert listed.objects(SYSTEM, RUNTIME, kinds=(ObjectType.VIEW,)) == []
    assert [name.name for name, _ in listed.all_objects(SYSTEM, matches=lambda name: name == "queries")] == ["queries"]
    assert list(listed.all_objects(SYSTEM, in_schema=lambda name: name == "s")) == []
    with pytest.raises(ObjectNotFoundError):
        listed.objects(SYSTEM, ("elsewhere",))
    assert (
        listed.load(SYSTEM, NameResolver(CatalogRegistry()).object(("system", "runtime", "queries"), HERE).name) is None
    )
    for schema in TABLES.values():
        assert [column.name for column in own_columns(schema)] == schema.names


def test_no_engine_mounts_it() -> None:
    assert SYSTEM.backend.read_only
    with pytest.raises(NotSupportedError):
        SYSTEM.backend.spark_properties(make_identity("alice"))
