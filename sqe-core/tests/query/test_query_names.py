"""From written names to objects."""

import pytest

from sqe_core.catalog.registry import CatalogRegistry, Mount
from sqe_core.query.judge.names import NameContext, NameResolver
from sqe_core.spi.catalog import CatalogBackend
from sqe_core.spi.errors import ErrorCode, ObjectNotFoundError, UserError
from sqe_core.spi.identity import Identity
from sqe_core.spi.names import ObjectName


class NoBackend(CatalogBackend):
    def spark_properties(self, identity: Identity) -> dict[str, str]:
        return {}


LAKE = Mount(name="lake", backend=NoBackend(), aliases=frozenset({"iceberg"}))
CONTEXT = NameContext(catalog="lake", schema=("main",))


class OneCase(NoBackend):
    ignores_case = True


@pytest.mark.rule("POL-10")
def test_where_case_is_ignored_policies_see_one_name(resolver: NameResolver) -> None:
    folded = NameResolver(CatalogRegistry([Mount(name="Lake", backend=OneCase())]))
    context = NameContext(catalog="Lake", schema=("Main",))
    for parts in (("People",), ("MAIN", "PEOPLE"), ("Lake", "main", "people")):
        found = folded.object(parts, context)
        assert found.name == ObjectName(catalog="Lake", namespace=("main",), name="people")
    assert folded.object(("People$Files",), context).metadata_table == "files"
    assert folded.schema(("HR.Staff",), context)[1].namespace == ("hr", "staff")
    assert resolver.object(("HR", "People"), CONTEXT).name.parts == ("lake", "HR", "People")


@pytest.fixture
def resolver() -> NameResolver:
    return NameResolver(CatalogRegistry([LAKE, Mount(name="other", backend=NoBackend())]))


@pytest.mark.rule("NAME-1", "NAME-2")
@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (("t",), ("lake", ("main",), "t")),
        (("s", "t"), ("lake", ("s",), "t")),
        (("other", "s", "t"), ("other", ("s",), "t")),
        (("iceberg", "s", "t"), ("lake", ("s",), "t")),
        (("other", "a.b", "t"), ("other", ("a", "b"), "t")),
        (("lake", "s", "T3"), ("lake", ("s",), "T3")),
    ],
)
def test_names_resolve_to_tuples_of_parts(resolver: NameResolver, parts: tuple[str, ...], expected: tuple) -> None:
    catalog, namespace, name = expected
    resolved = resolver.object(parts, CONTEXT)
    assert resolved.name == ObjectName(catalog=catalog, namespace=namespace, name=name)
    assert resolved.metadata_table is None


@pytest.mark.rule("NAME-3")
def test_a_metadata_table_is_its_table_with_a_kind(resolver: NameResolver) -> None:
    resolved = resolver.object(("s", "orders$Snapshots"), CONTEXT)
    assert (resolved.name.name, resolved.metadata_table) == ("orders", "snapshots")


@pytest.mark.rule("NAME-3", "NAME-4", "NAME-6")
@pytest.mark.parametrize(
    "parts",
    [
        ("parquet", "/etc/passwd"),
        ("text", "file:///etc/passwd"),
        ("lake", "s", "a\\b"),
        ("lake", "s", "a:b"),
        ("lake", "s", "a#b"),
        ("a", "b", "c", "d"),
        ("",),
        ("lake", "", "t"),
        ("lake", "a..b", "t"),
        ("lake", "s", "t$all_files"),
        ("lake", "s", "$files"),
        ("spark_catalog", "default", "t"),
        ("_sqe_c_0123456789abcdef0123456789abcdef", "default", "t"),
        ("lake", "s", "__sqe_hidden"),
        ("lake", "s", "bell\a"),
    ],
)
def test_what_names_no_object_of_ours_is_not_found(resolver: NameResolver, parts: tuple[str, ...]) -> None:
    with pytest.raises(ObjectNotFoundError) as raised:
        resolver.object(parts, CONTEXT)
    assert raised.value.code is ErrorCode.TABLE_NOT_FOUND
    assert raised.value.message.endswith("does not exist or you may not see it")


@pytest.mark.rule("ERR-5")
def test_an_unknown_catalog_suggests_a_known_one(resolver: NameResolver) -> None:
    with pytest.raises(UserError) as raised:
        resolver.schema(("othr", "s"), CONTEXT)
    assert raised.value.code is ErrorCode.CATALOG_NOT_FOUND
    assert "other" in (raised.value.hint or "")


def test_schemas_resolve_in_the_current_catalog(resolver: NameResolver) -> None:
    mount, schema = resolver.schema(("a.b",), CONTEXT)
    assert (mount.name, schema.namespace) == ("lake", ("a", "b"))


@pytest.mark.rule("POL-9")
def test_a_name_does_not_mean_another_catalog_while_it_is_judged() -> None:
    guest = Mount(name="guest", backend=NoBackend(), attached=True)
    registry = CatalogRegistry([LAKE, guest])
    resolver = NameResolver(registry)
    resolver.object(("guest", "s", "t"), NameContext(catalog="lake", schema=("default",)))
    resolver.ensure_mounted()
    registry.replace(guest, Mount(name="guest", backend=NoBackend(), attached=True))
    with pytest.raises(UserError, match="Catalog guest was detached") as caught:
        resolver.ensure_mounted()
    assert caught.value.code is ErrorCode.CATALOG_NOT_FOUND


@pytest.mark.rule("ERR-5")
def test_of_a_hidden_catalog_no_suffix_tells() -> None:
    mounts = [Mount(name=name, backend=NoBackend()) for name in ("sales_1", "sales_7")]
    resolver = NameResolver(CatalogRegistry(mounts), shows=lambda mount: mount.name == "sales_1")
    for name in ("sales_7", "sales_8"):
        with pytest.raises(ObjectNotFoundError) as caught:
            resolver.object((name, "s", "t$nope"), CONTEXT)
        assert caught.value.hint == 'did you mean "sales_1"?'
