"""One statement on its way: read (reading.py), judged (judging.py), run (execution.py), or left to its handler."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from sqe_core.catalog.information_schema import to_table
from sqe_core.engine.port import AnalysedPlan
from sqe_core.query.answers.trino_shapes import with_sql_types
from sqe_core.query.context import StatementContext
from sqe_core.query.ingest.ingestion import Ingestion
from sqe_core.query.ingest.insert_rows import RowInsert
from sqe_core.query.run.direct import direct_answer
from sqe_core.query.run.execution import Execution, shown_schema
from sqe_core.query.run.judging import Judging
from sqe_core.query.run.parameters import bind_parameters
from sqe_core.query.run.reading import ReadStatement, read_statement, recognise
from sqe_core.query.run.result import Parameters, PlanLifecycle, StatementPlan, StatementResult
from sqe_core.query.run.running import Ending
from sqe_core.query.run.without_values import parameter_types, plan_without_values
from sqe_core.query.statements.created_meanwhile import tried
from sqe_core.query.statements.handler import Answer, AnswerAboutQuery, Change
from sqe_core.spi.errors import ErrorCode, SqeError, UserError
from sqe_core.spi.protocol import IngestRequest, StatementDescription, StatementState
from sqe_core.sql.grammar.value_rows import ValueRow
from sqe_core.sql.statement import EngineStatement, Statement

# For so long a plan that was made before it is started stands.
_PLAN_SECS = 5.0


@dataclass(frozen=True, slots=True)
class StatementRun:
    """One statement of one session. What it raises becomes what the client reads in `failures.explained`."""

    context: StatementContext

    @property
    def _judging(self) -> Judging:
        return Judging(self.context)

    @property
    def _execution(self) -> Execution:
        return Execution(self.context)

    def run(self, sql: str, parameters: Parameters, ending: Ending) -> StatementResult:
        read = read_statement(self.context, sql, parameters)
        if not isinstance(read.statement, EngineStatement):
            return self._carry_out(read, self._rows(read), ending)
        statement, values = read.statement, bind_parameters(read.statement, read.parameters)
        direct = direct_answer(self.context, statement, values)
        if direct is not None:
            return self._execution.streamed(statement, direct.schema, direct.batches(), ending)
        return self._tried(lambda: self._judged(statement, values, ending), statement, values, ending)

    def plan(self, sql: str, parameters: Parameters, lifecycle: PlanLifecycle) -> StatementPlan:
        """Judge the statement, and run it when the plan is started; nothing changes before."""
        read = read_statement(self.context, sql, parameters)
        if not isinstance(read.statement, EngineStatement):
            rows = self._rows(read)
            return self._planned(
                read.statement,
                self._columns(read, rows),
                lambda ending: self._carry_out(read, rows, ending),
                lifecycle,
            )
        statement, values = read.statement, bind_parameters(read.statement, read.parameters)
        direct = direct_answer(self.context, statement, values)
        if direct is not None:
            # Its rows are looked for when somebody reads them: rights are those of that moment.
            schema, batches = direct.schema, direct.batches()
            return self._planned(
                statement,
                schema,
                lambda ending: self._execution.streamed(statement, schema, batches, ending),
                lifecycle,
            )
        rights = self.context.parts.authorizer.generation
        with self._judging.scope() as opened:
            if self._judging.is_void(statement):
                return self._planned(
                    statement, None, lambda ending: self._execution.nothing(statement, ending), lifecycle
                )
            judgement = self._judging.judge(statement, values)
        planned_at = time.monotonic()

        def start(ending: Ending) -> StatementResult:
            with self._judging.session() as engine:
                # Rights and tables are those of the moment at which it runs, give or take a round trip (ENF-13); what
                # was revoked here meanwhile is gone at once.
                somebody_else = self.context.session.look_again()
                unchanged = rights == self.context.parts.authorizer.generation and not somebody_else
                stands = unchanged and engine is opened and time.monotonic() - planned_at <= _PLAN_SECS
                if stands and not judgement.plan.is_command:
                    return self._execution.run(engine, statement, judgement, ending)  # its tables are loaded
                with engine.statement_scope():
                    decided = judgement if stands else self._judging.judge(statement, values)
                    # An order that a view has since is no order of parts.
                    divided = judgement.plan.is_divisible and not decided.plan.is_divisible
                    if divided or decided.plan.schema != judgement.plan.schema:
                        raise UserError(
                            "What the statement reads has changed since it was planned", hint="run it again"
                        )
                    return self._execution.run(engine, statement, decided, ending)

        return self._planned(
            statement,
            None if judgement.plan.is_command else shown_schema(statement, judgement.plan.schema),
            lambda ending: self._tried(lambda: start(ending), statement, values, ending),
            lifecycle,
            judgement.plan,
        )

    def _planned(
        self,
        statement: Statement,
        schema: pa.Schema | None,
        start: Callable[[Ending], StatementResult],
        lifecycle: PlanLifecycle,
        plan: AnalysedPlan | None = None,
    ) -> StatementPlan:
        return StatementPlan(
            query_id=self.context.running.query_id,
            kind=statement.kind,
            schema=schema,
            start=lambda: lifecycle.started(start),
            abandon=lifecycle.abandoned,
            is_divisible=plan is not None and plan.is_divisible,
            is_constant=plan is not None and plan.is_constant,
        )

    def describe(self, sql: str) -> StatementDescription:
        """Judge the statement and say what it expects and answers, without values for its parameters."""
        read = read_statement(self.context, sql, ())
        statement, inner, columns = read.statement, None, None
        if isinstance(read.handler, AnswerAboutQuery):
            inner = read.handler.query(statement)
            columns = read.handler.columns
        elif isinstance(statement, EngineStatement):
            inner = statement
        if inner is None or not (inner is statement or inner.parameters):
            return StatementDescription(
                schema=self._columns(read, self._rows(read)),
                parameters=pa.schema([]),
                statement_kind=statement.kind.value,
            )
        with self._judging.scope():
            if self._judging.is_void(inner):
                return StatementDescription(schema=None, parameters=pa.schema([]), statement_kind=statement.kind.value)
            names = () if read.stands_for else tuple(dict.fromkeys(inner.parameters))
            if read.stands_for:
                plan: AnalysedPlan | None = self._judging.judge(inner, bind_parameters(inner, read.parameters)).plan
            else:
                plan = plan_without_values(self._judging, inner, names)
        if columns is None and plan is not None and not plan.is_command:
            columns = shown_schema(inner, plan.schema)
        types = parameter_types(plan, len(names))
        expected = [
            pa.field(str(number) if inner.positional else name, type)
            for number, (name, type) in enumerate(zip(names, types, strict=True), 1)
        ]
        return StatementDescription(schema=columns, parameters=pa.schema(expected), statement_kind=statement.kind.value)

    def ingest(
        self, request: IngestRequest, schema: pa.Schema, batches: Iterator[pa.RecordBatch], ending: Ending
    ) -> StatementResult:
        self.context.terms.columns.extend(schema.names)
        self._judging.wait_for_engine()
        # The same engine session until the end: another one would not know the rows after a restart.
        with self.context.session.engine():
            return Ingestion(self.context, self._judging, self._execution).run(request, schema, batches, ending)

    def insert_rows(
        self, statement: Statement, row: ValueRow, batches: Sequence[pa.RecordBatch], ending: Ending
    ) -> StatementResult:
        """Insert a row for each row of parameters, with one commit; `row` is the one of VALUES that was read."""
        recognise(self.context, statement)
        with self._judging.scope() as engine:
            return RowInsert(self.context, self._judging, self._execution).run(engine, row, batches, ending)

    # Statements of the engine

    def _judged(self, statement: EngineStatement, values: Mapping[str, Any], ending: Ending) -> StatementResult:
        with self._judging.scope() as engine:
            if self._judging.is_void(statement):
                return self._execution.nothing(statement, ending)
            return self._execution.run(engine, statement, self._judging.judge(statement, values), ending)

    def _tried(
        self,
        first: Callable[[], StatementResult],
        statement: EngineStatement,
        values: Mapping[str, Any],
        ending: Ending,
    ) -> StatementResult:
        """Run a statement, and judge it anew when somebody else made its table meanwhile."""
        return tried(
            first,
            lambda: self._judged(statement, values, ending),
            self.context.running.check,
            lambda: self._execution.nothing(statement, ending),
        )

    # Statements that SQE carries out itself

    def _rows(self, read: ReadStatement) -> pa.Table | None:
        """Answer a statement that only asks; None for one that changes something."""
        handler = read.handler
        if isinstance(handler, AnswerAboutQuery):
            query = handler.query(read.statement)
            values = bind_parameters(query, read.parameters)
            with self._judging.scope():
                told = handler.told(read.statement, self._judging.judge(query, values), self.context)
            rows = to_table(handler.columns, list(told))
            return rows.cast(with_sql_types(rows.schema)) if self.context.trino else rows
        if len(read.parameters):
            message = "This statement takes no parameters"
            raise UserError(message, code=ErrorCode.INVALID_ARGUMENTS, condition="INVALID_PARAMETER_USAGE")
        if not isinstance(handler, Answer):
            return None
        handler.require_admin(self.context)
        rows = handler.rows(read.statement, self.context)
        self.context.resolver.ensure_mounted()
        return rows.cast(with_sql_types(rows.schema)) if self.context.trino else rows

    @staticmethod
    def _columns(read: ReadStatement, rows: pa.Table | None) -> pa.Schema | None:
        if rows is not None:
            return rows.schema
        assert isinstance(read.handler, Change)
        return read.handler.columns(read.statement)

    def _carry_out(self, read: ReadStatement, rows: pa.Table | None, ending: Ending) -> StatementResult:
        if rows is None:
            assert isinstance(read.handler, Change)
            columns = read.handler.columns(read.statement)
            told = self._change(read.handler, read.statement)
            rows = None if columns is None else to_table(columns, list(told or ()))
        return self._execution.answered(read.statement, rows, ending)

    def _change(self, handler: Change[Any], statement: Statement) -> Iterable[Sequence[Any]] | None:
        if not handler.in_engine:
            return self._apply(handler, statement)

        def carry_out() -> Iterable[Sequence[Any]] | None:
            with self._judging.scope():
                return self._apply(handler, statement)

        return tried(carry_out, carry_out, self.context.running.check, lambda: None)

    def _apply(self, handler: Change[Any], statement: Statement) -> Iterable[Sequence[Any]] | None:
        """Carry out a change; one of rights is recorded first, and with what it changed in their stores."""
        context = self.context
        if handler.changes_rights:
            context.watch.begins_change(statement.kind)
        handler.require_admin(context)
        context.running.state = StatementState.RUNNING
        keepers = handler.change_keepers(context) if context.trail is not None else ()
        before = [(store, store.last_change()) for store in keepers]
        try:
            return handler.apply(statement, context)
        finally:
            for store, last in before:
                assert context.trail is not None
                # It is done: a store that cannot be read now has its own record of it.
                with suppress(SqeError):
                    context.trail.changed(store.changes_since(last, context.identity))
