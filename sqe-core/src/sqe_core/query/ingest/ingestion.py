"""Record batches into a table: judged, received, judged again, and written by one ordinary statement.

    APPEND    INSERT INTO t BY NAME SELECT a, b FROM rows
    CREATE    CREATE TABLE t AS SELECT …
    REPLACE   CREATE OR REPLACE TABLE t AS SELECT …

`rows` is a name with a fresh nonce that only this statement's binder knows; in the plan it becomes files of ours. The
statement is judged before the client sends, so that nobody fills the disk with rows that he may not write, and again
when all rows are there, since rights and tables are those of the moment at which it runs (ENF-13).
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.types as kinds

from sqe_core.engine.port import NOT_NULL_ROWS, EngineSession
from sqe_core.query.context import StatementContext
from sqe_core.query.errors.suggestions import did_you_mean
from sqe_core.query.errors.wording import shown
from sqe_core.query.ingest.rows import RowFiles, row_files
from sqe_core.query.ingest.types import check_schema, fitted, storable
from sqe_core.query.judge.bind import SpooledRows
from sqe_core.query.judge.judge import Judgement
from sqe_core.query.judge.names import ResolvedName, schema_to_make, table_not_found
from sqe_core.query.judge.relation_text import append_text, create_text
from sqe_core.query.run.execution import Execution
from sqe_core.query.run.judging import Judging
from sqe_core.query.run.reading import recognise
from sqe_core.query.run.result import StatementResult
from sqe_core.query.run.running import Ending
from sqe_core.query.statements.created_meanwhile import CreatedMeanwhileError, tried
from sqe_core.spi.catalog import TableMetadata, ViewMetadata
from sqe_core.spi.errors import (
    CommitConflictError,
    EngineLostError,
    ErrorCode,
    NotSupportedError,
    SqeError,
    UserError,
)
from sqe_core.spi.names import quote_part
from sqe_core.spi.protocol import IngestMode, IngestRequest
from sqe_core.sql.statement import EngineStatement, Name, StatementKind

Rows = Mapping[str, SpooledRows]


class _NoPositions:
    """There is no text of the user's that a place could be in."""

    def locate(self, start: int | None, fragment: str | None) -> None:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Write:
    """The statement that writes the rows, and the types they are kept in until then."""

    statement: EngineStatement
    kept: pa.Schema

    @property
    def creates(self) -> bool:
        return self.statement.kind is StatementKind.CREATE_TABLE_AS


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """The name under which the statement's text has the rows, and what the verifier knows them by."""

    name: str
    token: str

    def filled(self, files: RowFiles) -> Rows:
        return {self.name: SpooledRows(token=self.token, files=files.files)}


def described(request: IngestRequest) -> str:
    """Return what history and audit call the statement; there is no SQL."""
    name = ".".join(quote_part(part) for part in (request.catalog, request.schema, request.table) if part is not None)
    return f"INGEST INTO {shown(name, 1024)} /* {request.mode.value} */"


@dataclass(frozen=True, slots=True)
class Ingestion:
    """Writes the batches of one client into one table."""

    context: StatementContext
    judging: Judging
    execution: Execution

    def run(
        self, request: IngestRequest, schema: pa.Schema, batches: Iterator[pa.RecordBatch], ending: Ending
    ) -> StatementResult:
        """Receive the rows and write them with one commit; on any error nothing is written."""
        _check_request(request)
        check_schema(schema, self.context.parts.limits.ingest.schema)
        schema = schema.remove_metadata()
        resolved = self._resolve(request)
        rows = _Source(name="_sqe_i_" + secrets.token_hex(16), token=secrets.token_hex(16))
        parts, limits = self.context.parts, self.context.parts.limits.ingest
        with ExitStack() as held:
            with self.judging.scope() as engine:
                write = self._write(request.mode, resolved, schema, rows)
                files = held.enter_context(
                    row_files(parts.engine, sent=schema, kept=write.kept, limits=limits, check=self._check)
                )
                self._judge(request.mode, write, resolved, rows.filled(files))
            self._receive(batches, files)

            def commit() -> StatementResult:
                return self._commit(engine, request.mode, write, resolved, schema, rows, files, ending)

            return tried(commit, commit, self._check)

    def _check(self) -> None:
        """Raise when the statement was cancelled or its time is over."""
        self.context.running.check()

    def _run(self, engine: EngineSession, statement: EngineStatement, rows: Rows, ending: Ending) -> StatementResult:
        return self.execution.run(engine, statement, self._judged(statement, rows), ending)

    def _judged(self, statement: EngineStatement, rows: Rows) -> Judgement:
        recognise(self.context, statement)
        judgement = self.judging.judge(statement, spooled=rows)
        return replace(judgement, settings={**judgement.settings, **NOT_NULL_ROWS})

    # Which table

    def _resolve(self, request: IngestRequest) -> ResolvedName:
        names = self.context.names
        parts: list[str] = [request.table]
        if request.schema is not None or request.catalog is not None:
            parts.insert(0, request.schema if request.schema is not None else ".".join(names.schema))
        if request.catalog is not None:
            parts.insert(0, request.catalog)
        resolved = self.context.resolver.object(parts, names)
        if not self.context.visible.shows(resolved.mount):
            raise table_not_found(parts, hint=self.context.near.hint(resolved))
        if resolved.metadata_table is not None:
            raise NotSupportedError(f"{shown('.'.join(parts))} is read-only")
        return resolved

    def _find(self, resolved: ResolvedName) -> TableMetadata | ViewMetadata | None:
        return self.context.visible.find(resolved.mount, resolved.name)

    # Which statement

    def _write(self, mode: IngestMode, resolved: ResolvedName, schema: pa.Schema, rows: _Source) -> _Write:
        found = self._find(resolved)
        if mode is IngestMode.APPEND or (mode is IngestMode.CREATE_APPEND and found is not None):
            if found is None:
                raise table_not_found(_parts(resolved), hint=self.context.near.hint(resolved))
            return self._append(resolved, found, schema, rows)
        return self._create(mode, resolved, schema, rows)

    def _append(
        self, resolved: ResolvedName, found: TableMetadata | ViewMetadata, schema: pa.Schema, rows: _Source
    ) -> _Write:
        columns = {column.name.lower(): column for column in self.judging.visible_columns(resolved.name, found)}
        if not columns:
            raise table_not_found(_parts(resolved))
        values: dict[str, str | None] = {}
        kept: list[pa.Field] = []
        for field in schema:
            target = columns.get(field.name.lower())
            if target is None:
                known = [column.name for column in columns.values()]
                raise UserError(
                    f"Table {resolved.name} exists and has no column {shown(field.name)}",
                    code=ErrorCode.DUPLICATE_TABLE,  # what ADBC wants to read of a table of other columns
                    hint=did_you_mean(field.name, known),
                )
            nothing = kinds.is_null(field.type)
            # NULLs without a type fit every column; Arrow needs some type for them on the way.
            type = pa.int32() if nothing else fitted(storable(field.name, field.type), target.type)
            values[target.name] = None if nothing else field.name
            kept.append(pa.field(field.name, type, nothing or field.nullable))
        text = append_text(_parts(resolved), values, rows.name)
        return _Write(statement=_statement(StatementKind.INSERT, text), kept=pa.schema(kept))

    def _create(self, mode: IngestMode, resolved: ResolvedName, schema: pa.Schema, rows: _Source) -> _Write:
        if not self.context.visible.has_schema(resolved.mount, resolved.name.namespace):
            raise schema_to_make(resolved.name.schema)
        kept = pa.schema([field.with_type(storable(field.name, field.type)) for field in schema])
        text = create_text(_parts(resolved), kept.names, rows.name, replace=mode is IngestMode.REPLACE)
        return _Write(statement=_statement(StatementKind.CREATE_TABLE_AS, text), kept=kept)

    def _judge(self, mode: IngestMode, write: _Write, resolved: ResolvedName, rows: Rows) -> None:
        """Refuse what would be refused in the end, before the client sends."""
        self._judged(write.statement, rows)
        if mode is IngestMode.CREATE and self._find(resolved) is not None:
            raise UserError(f"Table {resolved.name} already exists", code=ErrorCode.DUPLICATE_TABLE)

    # The rows

    def _receive(self, batches: Iterator[pa.RecordBatch], files: RowFiles) -> None:
        while True:
            self._check()
            try:
                batch = next(batches, None)
            except SqeError:
                raise
            except Exception as error:
                raise UserError(
                    "The stream of record batches ended before it was complete; nothing was written",
                    code=ErrorCode.INVALID_ARGUMENTS,
                ) from error
            if batch is None:
                break
            files.append(batch)
        files.finish()
        self._check()

    # The commit

    def _commit(
        self,
        engine: EngineSession,
        mode: IngestMode,
        write: _Write,
        resolved: ResolvedName,
        schema: pa.Schema,
        rows: _Source,
        files: RowFiles,
        ending: Ending,
    ) -> StatementResult:
        """Judge once more and run; CREATE_APPEND appends after all when somebody else created the table meanwhile."""
        self.context.session.look_again()  # roles may have gone while the rows came
        may_append = mode is IngestMode.CREATE_APPEND and write.creates
        with self._same(engine):
            if not may_append or self._find(resolved) is None:
                try:
                    return self._run(engine, write.statement, rows.filled(files), ending)
                except CreatedMeanwhileError:
                    if not may_append:
                        raise
        with self._same(engine):
            append = self._write(IngestMode.APPEND, resolved, schema, rows)
            if append.kept != write.kept:
                raise CommitConflictError(
                    f"Table {resolved.name} was created meanwhile, with other columns", hint="send the rows again"
                )
            return self._run(engine, append.statement, rows.filled(files), ending)

    @contextmanager
    def _same(self, engine: EngineSession) -> Iterator[None]:
        with self.judging.scope() as now:
            if now is not engine or not now.alive:
                raise EngineLostError("The query engine restarted while the rows came; nothing was written")
            yield


def _check_request(request: IngestRequest) -> None:
    if request.temporary:
        raise NotSupportedError(
            "Temporary tables are not supported", hint="write into a table, and drop it when it is not needed any more"
        )
    if request.options:
        raise NotSupportedError(
            f"Option {shown(next(iter(request.options)))} of an ingest is not supported", hint="leave it out"
        )


def _parts(resolved: ResolvedName) -> Name:
    name = resolved.name
    return (name.catalog, ".".join(name.namespace), name.name)


def _statement(kind: StatementKind, text: str) -> EngineStatement:
    return EngineStatement(kind=kind, text=text, spark_sql=text, positions=_NoPositions(), exact_writes=True)
