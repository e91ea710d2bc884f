"""Many rows of parameters for an INSERT of one row of VALUES: kept in files, as bulk ingests are, and one commit.

The statement is judged as it was written, with the first row of values, so that it may say what it may say for one row;
and again as the query over the files that it becomes: that plan is verified and runs. The values are kept in the types
that they have as literals, so that each row means what it means alone.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.types as kinds

from sqe_core.engine.port import EngineSession, ParameterMarker
from sqe_core.query.context import StatementContext
from sqe_core.query.ingest.rows import check_batch, row_files
from sqe_core.query.ingest.types import converted, storable
from sqe_core.query.judge.bind import SpooledRows
from sqe_core.query.run.execution import Execution
from sqe_core.query.run.judging import Judging
from sqe_core.query.run.parameters import require_columns
from sqe_core.query.run.result import StatementResult
from sqe_core.query.run.running import Ending
from sqe_core.spi.batch_bytes import batch_bytes
from sqe_core.sql.grammar.value_rows import ValueRow

_MOST_JUDGED_BYTES = 1 << 16  # of one value; a longer one says no more than its type


@dataclass(frozen=True, slots=True)
class RowInsert:
    """Inserts a row for each row of parameters."""

    context: StatementContext
    judging: Judging
    execution: Execution

    def run(
        self, session: EngineSession, row: ValueRow, batches: Sequence[pa.RecordBatch], ending: Ending
    ) -> StatementResult:
        """Write all rows with one commit, or none. `session` is this statement's own."""
        limits, check = self.context.parts.limits.ingest, self.context.running.check
        names = tuple(dict.fromkeys(row.statement.parameters))
        # Numbers, which is what errors call the columns.
        given = pa.schema([pa.field(str(number), field.type) for number, field in enumerate(batches[0].schema, 1)])
        require_columns(names, len(given))
        numbered = [pa.RecordBatch.from_arrays(batch.columns, given.names) for batch in batches]
        first = next((batch for batch in numbered if batch.num_rows), numbered[0])
        check_batch(first, given, limits)  # before anything reads it
        kept = self._kept(row, names, first)
        self.judging.judge(row.statement, _first_values(names, kept, first))
        columns = [None if kinds.is_null(sent.type) else field.name for sent, field in zip(given, kept, strict=True)]
        source = "_sqe_i_" + secrets.token_hex(16)
        engine = self.context.parts.engine
        with row_files(engine, sent=given, kept=kept, limits=limits, check=check, kind="Parameter") as files:
            for batch in numbered:
                files.append(batch)
            files.finish()
            rows = {source: SpooledRows(token=secrets.token_hex(16), files=files.files)}
            statement = row.over(source, columns)
            return self.execution.run(session, statement, self.judging.judge(statement, spooled=rows), ending)

    def _kept(self, row: ValueRow, names: Sequence[str], first: pa.RecordBatch) -> pa.Schema:
        """Return the columns that the values are kept in."""
        types = [_literal(field) for field in first.schema]
        # The client has one decimal type for all rows, wider than what each value needs: whether one fits is seen when
        # it is converted. It must be all of a column's value, as the type decides what an expression comes to.
        narrowed = [
            number for number, name in enumerate(names) if name in row.whole and kinds.is_decimal(types[number])
        ]
        if narrowed:
            values = dict(_first_values(names, _fields(types), first))
            values |= {names[number]: ParameterMarker(number=number) for number in narrowed}
            expected = self.judging.judge(row.statement, values).plan.parameter_types
            for number in narrowed:
                wanted = expected.get(number, pa.null())
                whole = kinds.is_integer(first.schema.field(number).type) and kinds.is_integer(wanted)
                if whole or kinds.is_decimal(wanted):
                    types[number] = wanted
        return _fields(types)


def _fields(types: Sequence[pa.DataType]) -> pa.Schema:
    return pa.schema([pa.field(f"_sqe_v_{number}", type) for number, type in enumerate(types, 1)])


def _literal(field: pa.Field) -> pa.DataType:
    """Return the type that a value of one row has as a literal."""
    type = field.type
    if kinds.is_null(type):
        return pa.int32()  # Arrow needs some type for them on the way; the statement says NULL
    small = {pa.int8(): pa.int8(), pa.int16(): pa.int16(), pa.uint8(): pa.int16()}.get(type)
    return small if small is not None else storable(field.name, type, kind="Parameter")


def _first_values(names: Sequence[str], kept: pa.Schema, first: pa.RecordBatch) -> Mapping[str, Any]:
    """Return the first row of values in the types that they are kept in."""
    values: dict[str, Any] = {}
    for name, sent, field in zip(names, first.schema, kept, strict=True):
        value = first.column(sent.name).slice(0, 1)
        if kinds.is_null(sent.type):
            values[name] = None
        elif not len(value) or batch_bytes(pa.record_batch([value], ["value"])).decoded > _MOST_JUDGED_BYTES:
            values[name] = pa.scalar(None, field.type)
        else:
            values[name] = converted(sent.name, value, field.type, kind="Parameter")[0]
    return values
