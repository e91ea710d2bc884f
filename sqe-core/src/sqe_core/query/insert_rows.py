"""Many rows of parameters for an INSERT of one row of VALUES: kept in files, as bulk ingests are, and one commit.

The statement is judged as it was written, with a marker for each parameter, and again as the query over the files that
it becomes: that plan is verified and runs.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as kinds

from sqe_core.engine.port import Engine, EngineSession, ParameterMarker
from sqe_core.query.bind import SpooledRows
from sqe_core.query.ingest_rows import IngestLimits, RowFiles
from sqe_core.query.ingest_types import converted, storable
from sqe_core.query.parameters import require_columns
from sqe_core.query.result import StatementResult
from sqe_core.query.secured import SecuredStatement
from sqe_core.spi.errors import ResourcesError
from sqe_core.sql.statement import EngineStatement
from sqe_core.sql.value_rows import ValueRow


@dataclass(frozen=True, slots=True, kw_only=True)
class RowInsert:
    """Inserts a row for each row of parameters.

    Attributes:
        check: raises when the statement was cancelled or its time is over.
        secure: steps 3 to 7 for a statement, with values or with rows in files.
        execute: steps 8 and 9.
    """

    engine: Engine
    limits: IngestLimits
    check: Callable[[], None]
    secure: Callable[[EngineStatement, Mapping[str, ParameterMarker], Mapping[str, SpooledRows]], SecuredStatement]
    execute: Callable[[EngineSession, EngineStatement, SecuredStatement], StatementResult]

    def run(self, session: EngineSession, row: ValueRow, batches: Sequence[pa.RecordBatch]) -> StatementResult:
        """Write all rows with one commit, or none. `session` is this statement's own."""
        names = tuple(dict.fromkeys(row.statement.parameters))
        given = batches[0].schema
        require_columns(names, len(given))
        markers = {name: ParameterMarker(number=number) for number, name in enumerate(names)}
        expected = self.secure(row.statement, markers, {}).plan.parameter_types
        kept = pa.schema(
            [
                pa.field(f"_sqe_v_{number + 1}", _kept(number, field.type, expected.get(number)))
                for number, field in enumerate(given)
            ]
        )
        nothing = [kinds.is_null(field.type) for field in given]
        columns = [None if empty else field.name for empty, field in zip(nothing, kept, strict=True)]
        source = "_sqe_i_" + secrets.token_hex(16)
        with ExitStack() as held:
            try:
                spool = held.enter_context(self.engine.open_spool())
            except OSError as error:
                raise ResourcesError("The server cannot keep these rows now", hint="try again later") from error
            files = held.enter_context(
                RowFiles(spool.folder, sent=kept, kept=kept, limits=self.limits, check=self.check)
            )
            for batch in batches:
                files.append(_fitted(batch, kept))
            files.finish()
            rows = {source: SpooledRows(token=secrets.token_hex(16), files=files.files)}
            statement = row.over(source, columns)
            return self.execute(session, statement, self.secure(statement, {}, rows))


def _kept(number: int, given: pa.DataType, expected: pa.DataType | None) -> pa.DataType:
    """Return the type that the values of a parameter are kept in: a number's is that of its column, when it fits."""
    if kinds.is_null(given):
        return pa.int32()  # Arrow needs some type for them on the way; the statement says NULL
    plain = storable(str(number + 1), given)
    if expected is None or not _is_number(plain) or not _is_number(expected) or kinds.is_float32(expected):
        return plain
    return storable(str(number + 1), expected)


def _is_number(type: pa.DataType) -> bool:
    return bool(kinds.is_integer(type) or kinds.is_floating(type) or kinds.is_decimal(type))


def _fitted(batch: pa.RecordBatch, kept: pa.Schema) -> pa.RecordBatch:
    columns = [
        converted(str(number), column, field.type)
        for number, (column, field) in enumerate(zip(batch.columns, kept, strict=True), 1)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=kept)
