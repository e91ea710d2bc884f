"""Running: a judged statement becomes a result, and what it made belongs to whoever ran it."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NoReturn

import pyarrow as pa

from sqe_core.engine.port import SCHEDULER_POOL, EngineExecutionError, EngineSession, ResultStream
from sqe_core.query.context import StatementContext
from sqe_core.query.judge.bind import Usage
from sqe_core.query.judge.judge import Judgement
from sqe_core.query.judge.names import ResolvedName
from sqe_core.query.run.failures import explained
from sqe_core.query.run.result import StatementResult
from sqe_core.query.run.running import Ending
from sqe_core.query.statements.created_meanwhile import created_table, is_created_meanwhile
from sqe_core.query.statements.lifecycle import ObjectLives, uuid_of
from sqe_core.spi.errors import ResourcesError, SqeError
from sqe_core.spi.identity import Identity
from sqe_core.spi.protocol import StatementState
from sqe_core.sql.statement import EngineStatement, Statement, StatementKind

_MOST_POOLS = 1024


@dataclass(frozen=True, slots=True)
class Execution:
    """Runs for one statement."""

    context: StatementContext

    def run(
        self, engine: EngineSession, statement: EngineStatement, judgement: Judgement, ending: Ending
    ) -> StatementResult:
        """Run a judged statement; `ending` is told when it is over, in every outcome that is no error of this call."""
        context = self.context
        context.watch.planned(statement.kind, judgement)
        context.running.check()
        context.running.state = StatementState.RUNNING
        new = self._new_tables(judgement)
        try:
            settings = {**judgement.settings, SCHEDULER_POOL: _pool_of(context.identity)}
            stream: ResultStream = engine.execute(judgement.plan, tag=context.running.tag, settings=settings)
        except EngineExecutionError as error:
            created = next((one for one in judgement.bound if one.usage is Usage.CREATE), None)
            if created is None or created.resolved is None or not is_created_meanwhile(error.failure):
                raise
            raise created_table(
                created.resolved.name,
                may_exist=judgement.may_exist,
                or_nothing=judgement.if_not_exists,
                seen=created.loaded is not None,
            ) from error
        release = context.session.begin_result()
        context.running.attach_stream(stream, counted=not judgement.facts.restricted)
        if judgement.plan.is_command:
            context.running.state = StatementState.FINISHING
            release()  # the statement holds on to its engine session itself
            affected = stream.affected_rows
            context.watch.scanned(stream)
            stream.close()
            self._tell_of(new)
            return self.done(statement, ending, affected)
        schema = shown_schema(statement, stream.schema)
        ended = threading.Event()

        def end(error: SqeError | None, rows: int | None) -> None:
            if not ended.is_set():
                ended.set()
                stream.close()
                release()
                ending.tell(error, rows)

        return StatementResult(
            query_id=context.running.query_id,
            kind=statement.kind,
            schema=schema,
            batches=self._batches(stream, schema, end),
            progress=context.running.progress,
            # Closed before its end it may have been cancelled, which nobody has read yet.
            on_close=lambda: end(context.running.end_error(), None),
            on_cancel=context.running.cancel,
        )

    def answered(self, statement: Statement, rows: pa.Table | None, ending: Ending) -> StatementResult:
        self.context.watch.planned(statement.kind, None)
        self.context.running.state = StatementState.FINISHING
        result = StatementResult(
            query_id=self.context.running.query_id,
            kind=statement.kind,
            schema=rows.schema if rows is not None else None,
            batches=rows.combine_chunks().to_batches() if rows is not None else (),  # one: all is known
            warnings=self.context.running.warnings,
        )
        ending.tell(None, rows.num_rows if rows is not None else None)
        return result

    def streamed(
        self, statement: Statement, schema: pa.Schema, batches: Iterator[pa.RecordBatch], ending: Ending
    ) -> StatementResult:
        """Answer rows that are made while they are read; until their end the statement has its slot."""
        self.context.watch.planned(statement.kind, None)
        self.context.running.state = StatementState.RUNNING
        ended = threading.Event()

        def end(error: SqeError | None, rows: int | None) -> None:
            if not ended.is_set():
                ended.set()
                ending.tell(error, rows)

        return StatementResult(
            query_id=self.context.running.query_id,
            kind=statement.kind,
            schema=schema,
            batches=self._checked(batches, end),
            on_close=lambda: end(self.context.running.end_error(), None),
            on_cancel=self.context.running.cancel,
        )

    def _checked(
        self, batches: Iterator[pa.RecordBatch], end: Callable[[SqeError | None, int | None], None]
    ) -> Iterator[pa.RecordBatch]:
        rows = 0
        try:
            for batch in bounded(batches, self._max_rows(), self.context.parts.limits.max_result_bytes):
                self.context.running.check()
                rows += batch.num_rows
                yield batch
            self.context.resolver.ensure_mounted()
        except GeneratorExit:
            raise
        except Exception as error:  # noqa: BLE001 - it becomes the end of the statement
            self._fail(error, end, rows)
        end(None, rows)

    def _fail(self, error: Exception, end: Callable[[SqeError | None, int | None], None], rows: int) -> NoReturn:
        """End the statement with what its client may read, and raise that."""
        shown = explained(self.context, error)
        end(shown, rows)
        if shown is error:
            raise error
        raise shown from None

    def nothing(self, statement: EngineStatement, ending: Ending) -> StatementResult:
        return self.done(statement, ending, 0 if statement.kind is StatementKind.CREATE_TABLE_AS else None)

    def done(self, statement: EngineStatement, ending: Ending, affected: int | None) -> StatementResult:
        ending.tell(None, affected)
        return StatementResult(query_id=self.context.running.query_id, kind=statement.kind, affected_rows=affected)

    def _batches(
        self, stream: ResultStream, schema: pa.Schema, end: Callable[[SqeError | None, int | None], None]
    ) -> Iterator[pa.RecordBatch]:
        rows = 0
        try:
            for batch in bounded(iter(stream), self._max_rows(), self.context.parts.limits.max_result_bytes):
                rows += batch.num_rows
                if stream.is_complete:
                    self.context.running.state = StatementState.FINISHING
                yield batch if batch.schema.equals(schema) else batch.rename_columns(schema.names)
            self.context.running.check()
        except GeneratorExit:
            raise
        except Exception as error:  # noqa: BLE001 - it becomes the end of the statement
            self._fail(error, end, rows)
        self.context.watch.scanned(stream)
        end(None, rows)

    def _max_rows(self) -> int:
        own = self.context.session.properties["query_max_result_rows"]
        return min([rows for rows in (self.context.parts.limits.max_result_rows, own) if rows], default=0)

    @property
    def _lives(self) -> ObjectLives:
        return ObjectLives(self.context.parts.authorizer, self.context.identity)

    def _new_tables(self, judgement: Judgement) -> Sequence[ResolvedName]:
        """What a statement is about to make; it fails when somebody else makes it first.

        The catalog is asked, and not what the user sees: who says CREATE TABLE IF NOT EXISTS about a table of which
        they know nothing does not come to own it.
        """
        if not self._lives.watched:
            return ()
        made = [one.resolved for one in judgement.bound if one.usage is Usage.CREATE and one.loaded is None]
        return [
            resolved
            for resolved in made
            if resolved is not None
            and uuid_of(self.context.session.metadata(resolved.mount).load_table, resolved.name) is None
        ]

    def _tell_of(self, new: Sequence[ResolvedName]) -> None:
        """What a statement of the engine's has made belongs to whoever ran it."""
        for resolved in new:
            self._lives.created(resolved.name, self.context.session.metadata(resolved.mount).load_table)


def _pool_of(identity: Identity) -> str:
    """Return the scheduler's pool of a user: a few users share one, since Spark never forgets a pool (LIM-10)."""
    digest = hashlib.sha256(repr(identity.key).encode()).digest()
    return f"user-{int.from_bytes(digest[:8]) % _MOST_POOLS}"


def shown_schema(statement: EngineStatement, schema: pa.Schema) -> pa.Schema:
    """Return the columns of a result under their visible names."""
    names = statement.column_names
    if names is None or len(names) != len(schema.names):
        return schema
    return pa.schema([field.with_name(name) for field, name in zip(schema, names, strict=True)])


def bounded(batches: Iterator[pa.RecordBatch], max_rows: int, max_bytes: int = 0) -> Iterator[pa.RecordBatch]:
    """Pass batches on until there were more rows or bytes than allowed (LIM-8); zero allows any number."""
    rows = size = 0
    for batch in batches:
        rows += batch.num_rows
        if max_rows and rows > max_rows:
            raise ResourcesError(
                f"The result has more than {max_rows} rows, the most that a query may return here",
                hint="add LIMIT or narrow the query; CREATE TABLE … AS keeps big results. The bound is the server's"
                " query.max_result_rows, or the session's query_max_result_rows",
            )
        # `nbytes` ends the process when a list of no lists has no offsets, as results of the engine may.
        size += batch.get_total_buffer_size()
        if max_bytes and size > max_bytes:
            raise ResourcesError(
                f"The result has more than {max_bytes} bytes, the most that a query may return here",
                hint="select fewer columns or rows; CREATE TABLE … AS keeps big results. The bound is the server's"
                " query.max_result_bytes",
            )
        yield batch
