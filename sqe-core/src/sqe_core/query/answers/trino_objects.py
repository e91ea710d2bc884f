"""Catalogs, schemas, tables and columns in the rows of Trino's tables: what this user may see, and no more (STMT-9)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqe_core.catalog.jdbc_types import ALL_TYPES, PARAMETRIC, jdbc_type
from sqe_core.catalog.own_tables import OwnTables, own_columns
from sqe_core.catalog.registry import Mount
from sqe_core.catalog.system import SYSTEM
from sqe_core.catalog.types import display_type
from sqe_core.catalog.visible import INFORMATION_SCHEMA, VisibleCatalogs, each_apart
from sqe_core.query.context import StatementContext
from sqe_core.spi.catalog import Column, ObjectType, TableMetadata, ViewMetadata
from sqe_core.spi.errors import ObjectNotFoundError, UserError
from sqe_core.spi.names import ObjectName
from sqe_core.sql.simple_query import Wanted

if TYPE_CHECKING:
    from sqe_core.query.run.judging import Judging

Rows = Iterator[Sequence[Any]]
_ALL_KINDS = (ObjectType.TABLE, ObjectType.VIEW)
_NULLABLE = 1
_SEARCHABLE, _NO_PREDICATES = 3, 0


@dataclass(frozen=True, slots=True)
class Places:
    """The columns of a table that hold the parts of names, from the catalog on."""

    catalog: str
    schema: str
    name: str


_JDBC = Places("table_cat", "table_schem", "table_name")
_STANDARD = Places("table_catalog", "table_schema", "table_name")
_METADATA = Places("catalog_name", "schema_name", "table_name")


@dataclass(frozen=True, slots=True)
class TrinoObjects:
    """Makes the rows for one statement; what `wanted` leaves out is not looked at."""

    context: StatementContext
    judging: Judging
    wanted: Wanted

    @property
    def visible(self) -> VisibleCatalogs:
        return self.context.visible

    @property
    def own(self) -> OwnTables:
        return self.context.visible.own

    # system.jdbc

    def jdbc_catalogs(self) -> Rows:
        for mount in self.mounts("table_cat"):
            yield (mount.name,)

    def jdbc_schemas(self) -> Rows:
        for mount in self.mounts("table_catalog"):
            for schema in self.schemas(mount, "table_schem"):
                yield schema, mount.name

    def jdbc_tables(self) -> Rows:
        nothing = (None,) * 6
        for mount in self.mounts("table_cat"):
            for name, kind in self.objects(mount, _JDBC):
                yield (*_parts(name), "VIEW" if kind is ObjectType.VIEW else "TABLE", *nothing)

    def jdbc_columns(self) -> Rows:
        for mount in self.mounts("table_cat"):
            for name, columns in self.columns(mount, _JDBC):
                for position, column in enumerate(columns, start=1):
                    kind = jdbc_type(column.type)
                    yield (
                        *(*_parts(name), column.name, kind.code, kind.name, kind.size, 0, kind.digits, kind.radix),
                        *(int(column.nullable), column.comment, None, None, None, kind.octets, position),
                        "YES" if column.nullable else "NO",
                        *(None,) * 6,
                    )

    @staticmethod
    def jdbc_types() -> Rows:
        for kind in ALL_TYPES:
            searchable = _NO_PREDICATES if kind.name in PARAMETRIC else _SEARCHABLE
            yield (
                *(kind.name, kind.code, kind.size, None, None, None, _NULLABLE, False, searchable),
                *(None, False, None, None, 0, 0, None, None, kind.radix),
            )

    # system.metadata

    def table_comments(self) -> Rows:
        def comments(name: ObjectName, loaded: TableMetadata | ViewMetadata) -> str | None:
            if isinstance(loaded, ViewMetadata) and loaded.comment and self.judging.text_of(name, loaded) is None:
                return None  # it may say what the text does (VIEW-4)
            return loaded.comment

        for mount in self.mounts("catalog_name"):
            for name, comment in self.loaded(mount, _METADATA, comments):
                yield (*_parts(name), comment)

    def catalogs(self) -> Rows:
        for mount in self.mounts("catalog_name"):
            connector = "system" if mount is SYSTEM else "iceberg"
            yield mount.name, mount.name, connector, "OPERATIONAL"

    # information_schema of a catalog

    def schemata(self, mount: Mount) -> Rows:
        for schema in self.schemas(mount, "schema_name"):
            yield mount.name, schema

    def tables(self, mount: Mount) -> Rows:
        for name, kind in self.objects(mount, _STANDARD):
            yield (*_parts(name), "VIEW" if kind is ObjectType.VIEW else "BASE TABLE")

    def views(self, mount: Mount) -> Rows:
        def text(name: ObjectName, loaded: TableMetadata | ViewMetadata) -> list[str | None]:
            return [self.judging.text_of(name, loaded)] if isinstance(loaded, ViewMetadata) else []

        for name, texts in self.loaded(mount, _STANDARD, text, kinds=(ObjectType.VIEW,)):
            yield from ((*_parts(name), each) for each in texts)

    def standard_columns(self, mount: Mount) -> Rows:
        for name, columns in self.columns(mount, _STANDARD):
            for position, column in enumerate(columns, start=1):
                nullable = "YES" if column.nullable else "NO"
                yield (
                    *(*_parts(name), column.name, position, column.default, nullable, display_type(column.type)),
                    *(column.comment, None),
                )

    # What there is

    def mounts(self, column: str) -> Iterator[Mount]:
        """Yield the visible catalogs that are wanted."""
        return (mount for mount in self.visible.mounts() if self.wanted.takes(column, mount.name))

    def schemas(self, mount: Mount, column: str) -> Iterator[str]:
        names = sorted(".".join(namespace) for namespace in self.visible.schemas(mount))
        return (name for name in names if self.wanted.takes(column, name))

    def objects(
        self, mount: Mount, places: Places, kinds: Sequence[ObjectType] = _ALL_KINDS
    ) -> Iterator[tuple[ObjectName, ObjectType]]:
        """Yield tables and views, those of ours among them, by schema and name."""
        if not self.wanted.takes(places.catalog, mount.name):
            return
        schemas = self._given(places.schema)
        if schemas is None:
            yield from self._listed(mount, places, kinds)
            return
        for schema in schemas:
            namespace = self._namespace(mount, schema)
            if schema == INFORMATION_SCHEMA:
                yield from self._own(mount, places, kinds)
            elif namespace is not None:
                with suppress(ObjectNotFoundError):
                    yield from self.visible.objects(
                        mount, namespace, kinds=kinds, matches=lambda name: self.wanted.takes(places.name, name)
                    )

    def _given(self, column: str) -> Sequence[str] | None:
        """The texts of which a column has to have one, where the query lists them."""
        only = self.wanted.only(column)
        if only is None:
            return None
        return sorted(each for each in only if isinstance(each, str) and self.wanted.takes(column, each))

    def _namespace(self, mount: Mount, schema: str) -> tuple[str, ...] | None:
        """A schema by its name as it is stored; None where that can be no name."""
        try:
            found = self.context.resolver.schema((mount.name, schema), self.context.names)[1]
        except UserError:
            return None
        return found.namespace if ".".join(found.namespace) == schema else None

    def _listed(
        self, mount: Mount, places: Places, kinds: Sequence[ObjectType]
    ) -> Iterator[tuple[ObjectName, ObjectType]]:
        """All that is wanted of a catalog, with its `information_schema` in its place among the schemas."""
        told = False
        for name, kind in self.visible.all_objects(
            mount,
            kinds=kinds,
            in_schema=lambda schema: self.wanted.takes(places.schema, schema),
            matches=lambda table: self.wanted.takes(places.name, table),
        ):
            if not told and ".".join(name.namespace) > INFORMATION_SCHEMA:
                told = True
                yield from self._own(mount, places, kinds)
            yield name, kind
        if not told:
            yield from self._own(mount, places, kinds)

    def _own(
        self, mount: Mount, places: Places, kinds: Sequence[ObjectType]
    ) -> Iterator[tuple[ObjectName, ObjectType]]:
        takes = self.wanted.takes
        if ObjectType.TABLE not in kinds or not takes(places.schema, INFORMATION_SCHEMA):
            return
        if not self.visible.shows(mount):
            return
        for name in sorted(self.own.information_schema):
            if takes(places.name, name):
                yield (
                    ObjectName(catalog=mount.name, namespace=(INFORMATION_SCHEMA,), name=name),
                    ObjectType.SYSTEM_TABLE,
                )

    def loaded(
        self,
        mount: Mount,
        places: Places,
        look: Callable[[ObjectName, TableMetadata | ViewMetadata], Any],
        kinds: Sequence[ObjectType] = _ALL_KINDS,
    ) -> Iterator[tuple[ObjectName, Any]]:
        """Yield what is seen of each table and view of somebody's: one that fails is left out."""

        def seen(name: ObjectName) -> Any:
            self.context.running.check()  # many may be looked at for one row, or none
            loaded = self.visible.find(mount, name)
            return _Seen(look(name, loaded)) if loaded is not None else None

        for name, found in each_apart(self._named(mount, places, kinds), seen):
            yield name, found.value

    def columns(self, mount: Mount, places: Places) -> Iterator[tuple[ObjectName, Iterable[Column]]]:
        """Yield the visible columns of each table and view, of ours too."""

        def seen(name: ObjectName) -> Sequence[Column] | None:
            self.context.running.check()
            own = self.own_schema(name)
            if own is not None:
                return own
            loaded = find(mount, name)
            return self.judging.columns_of(name, loaded) if loaded is not None else None

        # What was listed may be known; which of its columns is asked once.
        find = self.visible.find if self._are_given(mount, places) else self.visible.load
        return each_apart(self._named(mount, places, _ALL_KINDS), seen)

    def own_schema(self, name: ObjectName) -> tuple[Column, ...] | None:
        """Return the columns of a table of ours."""
        schema = ".".join(name.namespace)
        tables = self.own.information_schema if schema == INFORMATION_SCHEMA else None
        if tables is None and name.catalog == SYSTEM.name and self.context.resolver.find(SYSTEM.name) is SYSTEM:
            tables = self.own.system.get(schema)
        found = None if tables is None else tables.get(name.name)
        return None if found is None else own_columns(found)

    def _are_given(self, mount: Mount, places: Places) -> bool:
        """Whether the query says which tables it wants, by their schemas and names."""
        schemas = self._given(places.schema)
        given = schemas is not None and INFORMATION_SCHEMA not in schemas and self._given(places.name) is not None
        return given and mount is not SYSTEM

    def _named(self, mount: Mount, places: Places, kinds: Sequence[ObjectType]) -> Iterator[ObjectName]:
        """Yield names to be loaded: those that are given are not looked for in listings, which may be long."""
        if not self._are_given(mount, places):
            yield from (name for name, _ in self.objects(mount, places, kinds))
            return
        if not self.wanted.takes(places.catalog, mount.name):
            return
        for schema in self._given(places.schema) or ():
            for name in self._given(places.name) or ():
                try:
                    resolved = self.context.resolver.object((mount.name, schema, name), self.context.names)
                except UserError:
                    continue
                if resolved.metadata_table is None and _parts(resolved.name)[1:] == (schema, name):
                    yield resolved.name


@dataclass(frozen=True, slots=True)
class _Seen:
    """Something that was seen, which may be None."""

    value: Any


def _parts(name: ObjectName) -> tuple[str, str, str]:
    return name.catalog, ".".join(name.namespace), name.name
