"""The rows and columns of `information_schema` and of `system`, as one user sees them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sqe_core.catalog.information_schema import InformationSchema, to_table
from sqe_core.catalog.own_tables import OwnTables, own_columns
from sqe_core.catalog.sqe_tables import SQE_TABLES
from sqe_core.catalog.system import SYSTEM
from sqe_core.catalog.visible import INFORMATION_SCHEMA
from sqe_core.query.answers.sessions import RuntimeTables
from sqe_core.query.answers.trino_tables import TrinoTables
from sqe_core.query.context import StatementContext
from sqe_core.query.judge.names import ResolvedName
from sqe_core.spi.catalog import Column
from sqe_core.spi.names import ObjectName
from sqe_core.sql.simple_query import EVERYTHING, Wanted

if TYPE_CHECKING:
    from sqe_core.query.run.judging import Judging


@dataclass(frozen=True, slots=True)
class NoSystemRows:
    """Tables without rows, for who only wants to know what a view makes of them."""

    own: OwnTables = SQE_TABLES

    def rows(self, name: ObjectName) -> pa.Table | None:
        schema = ".".join(name.namespace)
        tables = self.own.information_schema if schema == INFORMATION_SCHEMA else self.own.system.get(schema, {})
        return tables[name.name].empty_table() if name.name in tables else None


@dataclass(frozen=True, slots=True)
class SystemTables:
    """Answers for one statement."""

    context: StatementContext
    judging: Judging

    def rows(self, name: ObjectName) -> pa.Table | None:
        resolved = ResolvedName(name=name, mount=self.context.resolver.catalog(name.catalog))
        schema = self.schema(resolved)
        if schema is None:
            return None
        if self.context.trino:
            return to_table(schema, [row[: len(schema)] for row in self.stream(resolved, EVERYTHING)])
        if resolved.mount is SYSTEM:
            return RuntimeTables(self.context).rows(name)
        listing = InformationSchema(
            visible=self.context.visible,
            visible_columns=self.judging.columns_of,
            visible_text=self.judging.text_of,
            settings=[(row[0], row[1]) for row in self.context.session.properties.rows()],
        )
        return listing.rows(resolved.mount, name.name)

    def stream(self, resolved: ResolvedName, wanted: Wanted) -> Iterator[Sequence[Any]]:
        """Yield the rows of one of Trino's tables one by one, those that are wanted."""
        return TrinoTables(self.context, self.judging).rows(resolved.mount, resolved.name, wanted)

    def schema(self, resolved: ResolvedName) -> pa.Schema | None:
        """Return the columns of a table, or None when the name is none of theirs."""
        own, name = self.context.visible.own, resolved.name
        if resolved.metadata_table:
            return None
        if resolved.mount is SYSTEM:
            return own.system.get(".".join(name.namespace), {}).get(name.name)
        if name.namespace != (INFORMATION_SCHEMA,) or not self.context.visible.shows(resolved.mount):
            return None
        return own.information_schema.get(name.name)

    def schema_when_named(self, resolved: ResolvedName) -> pa.Schema | None:
        """Return the columns of the rows of `stream`, those among them that `*` leaves out."""
        schema = self.schema(resolved)
        hidden = self.context.visible.own.hidden.get(resolved.name.name, ())
        if schema is None or not hidden or resolved.name.namespace != (INFORMATION_SCHEMA,):
            return schema
        return pa.schema([*schema, *hidden])

    def columns(self, resolved: ResolvedName) -> tuple[Column, ...] | None:
        schema = self.schema(resolved)
        return None if schema is None else own_columns(schema)
