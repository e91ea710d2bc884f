"""The rows and columns of `information_schema` and of `system`, as one user sees them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.types as kinds

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
from sqe_core.spi.errors import UserError
from sqe_core.spi.names import ObjectName
from sqe_core.sql.simple_query import EVERYTHING, SimpleQuery, Wanted, wanted_of_table

if TYPE_CHECKING:
    from sqe_core.query.run.judging import Judging


_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class NoSystemRows:
    """Tables without rows, for who only wants to know what a view makes of them."""

    own: OwnTables = SQE_TABLES

    def rows(self, name: ObjectName, *, by_statement: bool = False) -> pa.Table | None:
        schema = ".".join(name.namespace)
        tables = self.own.information_schema if schema == INFORMATION_SCHEMA else self.own.system.get(schema, {})
        return tables[name.name].empty_table() if name.name in tables else None


@dataclass(frozen=True, slots=True)
class SystemTables:
    """Answers for one statement."""

    context: StatementContext
    judging: Judging
    narrowed: Sequence[SimpleQuery] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    text: str = ""
    """The statement for the engine, whose words may be names of hidden columns."""

    def rows(self, name: ObjectName, *, by_statement: bool = False) -> pa.Table | None:
        """Return the rows of a table; of what the statement itself names those that it asks for."""
        resolved = ResolvedName(name=name, mount=self.context.resolver.catalog(name.catalog))
        schema = self.schema(resolved)
        if schema is None:
            return None
        if self.context.trino:
            wanted = self._wanted(resolved, schema) if by_statement else EVERYTHING
            schema = self._named_in_text(resolved, schema)
            return to_table(schema, [row[: len(schema)] for row in self.stream(resolved, wanted)])
        if resolved.mount is SYSTEM:
            return RuntimeTables(self.context).rows(name)
        listing = InformationSchema(
            visible=self.context.visible,
            visible_columns=self.judging.columns_of,
            visible_text=self.judging.text_of,
            settings=[(row[0], row[1]) for row in self.context.session.properties.rows()],
        )
        return listing.rows(resolved.mount, name.name)

    def _wanted(self, resolved: ResolvedName, schema: pa.Schema) -> Wanted:
        queries: list[SimpleQuery] = []
        for query in self.narrowed:
            with suppress(UserError):
                if self.context.resolver.object(query.table, self.context.names).name == resolved.name:
                    queries.append(query)
        return wanted_of_table(queries, python_types(schema), plain_values(self.parameters))

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

    def _named_in_text(self, resolved: ResolvedName, schema: pa.Schema) -> pa.Schema:
        """Return the columns of a table for the engine: the hidden ones, too, where the text has one of their names."""
        whole = self.schema_when_named(resolved)
        hidden = set(whole.names) - set(schema.names) if whole is not None else set()
        words = set(_WORD.findall(self.text.lower()))
        return whole if whole is not None and hidden & words else schema

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


def python_types(schema: pa.Schema) -> Mapping[str, type]:
    """Return what the values of columns are compared as; `object` is what is not compared here."""
    return {field.name: _python_type(field.type) for field in schema}


def _python_type(stored: pa.DataType) -> type:
    if kinds.is_string(stored):
        return str
    if kinds.is_boolean(stored):
        return bool
    return int if kinds.is_integer(stored) else object


def plain_values(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the values of parameters as Python has them."""
    return {name: value.as_py() if isinstance(value, pa.Scalar) else value for name, value in parameters.items()}
