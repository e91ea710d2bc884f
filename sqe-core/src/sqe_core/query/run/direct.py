"""Queries of SQE's own tables that are answered here, row by row, and never reach the engine (STMT-2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pyarrow as pa

from sqe_core.catalog.information_schema import to_table
from sqe_core.catalog.system import SYSTEM
from sqe_core.catalog.visible import INFORMATION_SCHEMA
from sqe_core.query.answers.system_tables import SystemTables, plain_values, python_types
from sqe_core.query.answers.trino_shapes import with_sql_types
from sqe_core.query.context import StatementContext
from sqe_core.query.judge.names import ResolvedName
from sqe_core.query.run.judging import Judging
from sqe_core.spi.errors import UserError
from sqe_core.sql.simple_query import NotSimpleError, Output, SimpleQuery, Term, rows_of, wanted
from sqe_core.sql.statement import EngineStatement

_ROWS_OF_A_BATCH = 1000


@dataclass(frozen=True, slots=True)
class DirectAnswer:
    """The columns of the answer, and what makes its rows, in batches."""

    schema: pa.Schema
    _rows: Iterator[tuple[Any, ...]]

    def batches(self) -> Iterator[pa.RecordBatch]:
        while rows := list(islice(self._rows, _ROWS_OF_A_BATCH)):
            yield from to_table(self.schema, rows).to_batches()


def direct_answer(
    context: StatementContext, statement: EngineStatement, parameters: Mapping[str, Any]
) -> DirectAnswer | None:
    """Return the answer to a simple query of a table of ours; None leaves it to the engine, errors included."""
    query = statement.simple
    if query is None or not context.trino:
        return None
    resolved = _own_table(context, query)
    if resolved is None:
        return None
    system = SystemTables(context, Judging(context))
    stars = any(output.term is None for output in query.outputs)
    schema = system.schema(resolved) if stars else system.schema_when_named(resolved)
    if schema is None:
        return None
    values = plain_values(parameters)
    types = python_types(schema)
    try:
        asked = wanted(query, types, values)
        answer = rows_of(query, schema.names, types, values)
    except NotSimpleError:
        return None
    columns = [field for output in query.outputs for field in _fields(output, schema, values)]
    if query.counts:
        columns = [pa.field(query.outputs[0].name, pa.int64(), nullable=False)]
    return DirectAnswer(with_sql_types(pa.schema(columns)), answer(system.stream(resolved, asked)))


def _own_table(context: StatementContext, query: SimpleQuery) -> ResolvedName | None:
    if len(query.table) == 1 and context.session.find_view(query.table[0]) is not None:
        return None
    try:
        resolved = context.resolver.object(query.table, context.names)
    except UserError:
        return None
    if resolved.mount is not SYSTEM and resolved.name.namespace != (INFORMATION_SCHEMA,):
        return None
    return resolved if context.visible.shows(resolved.mount) else None


def _fields(output: Output, schema: pa.Schema, parameters: Mapping[str, Any]) -> Iterator[pa.Field]:
    term = output.term
    if term is None:
        yield from schema
    elif term.column is not None:
        yield pa.field(output.name, schema.field(term.column).type)
    else:
        yield pa.field(output.name, _type_of(term, parameters), nullable=term.value is None)


def _type_of(term: Term, parameters: Mapping[str, Any]) -> pa.DataType:
    value = term.value if term.parameter is None else parameters[term.parameter]
    if isinstance(value, bool):
        return pa.bool_()
    if isinstance(value, int):
        return pa.int32() if abs(value) < 2**31 else pa.int64()
    return pa.null() if value is None else pa.string()
