"""One statement on its way through steps 2 to 8. Knows enough to explain an error in the user's own terms."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from sqe_core.catalog.information_schema import SCHEMAS, InformationSchema, system_columns, view_text
from sqe_core.catalog.system import RUNTIME, SYSTEM, TABLES, runtime_columns
from sqe_core.catalog.types import display_type
from sqe_core.catalog.visible import INFORMATION_SCHEMA, VisibleCatalogs
from sqe_core.engine.port import (
    AnalysedPlan,
    EngineExecutionError,
    EngineSession,
    EngineState,
    ParameterMarker,
    ResultStream,
)
from sqe_core.policy.authorizer import Circumstances
from sqe_core.policy.trail import DecisionTrail, KeepsChanges
from sqe_core.query.answers.metadata import MetadataAnswers, text_table
from sqe_core.query.errors.scrubber import Scrubber
from sqe_core.query.errors.suggestions import did_you_mean
from sqe_core.query.errors.translate import MentionableNames, translate
from sqe_core.query.ingest.ingestion import Ingestion
from sqe_core.query.ingest.insert_rows import RowInsert
from sqe_core.query.judge.bind import BoundRelation, RelationBinder, SpooledRows, Usage
from sqe_core.query.judge.judge import Judge, Judgement
from sqe_core.query.judge.names import NameContext, NameResolver, ResolvedName, schema_not_found
from sqe_core.query.judge.relation_text import property_text
from sqe_core.query.parts import QueryParts
from sqe_core.query.run.limits import bounded
from sqe_core.query.run.parameters import bind_parameters
from sqe_core.query.run.result import StatementResult
from sqe_core.query.run.running import RunningStatement
from sqe_core.query.statements.attach_changes import AttachChanges
from sqe_core.query.statements.columns_in_use import ColumnUse
from sqe_core.query.statements.created_meanwhile import created_table, is_created_meanwhile, tried
from sqe_core.query.statements.ddl import CatalogChanges
from sqe_core.query.statements.governance import Governance
from sqe_core.query.statements.lifecycle import ObjectLives, uuid_of
from sqe_core.query.statements.session_control import SessionControl
from sqe_core.query.statements.steward import Steward
from sqe_core.session.statement_session import StatementSession
from sqe_core.spi.catalog import Column, TableMetadata, ViewMetadata
from sqe_core.spi.errors import ErrorCode, InternalError, NotSupportedError, ResourcesError, SqeError, UserError
from sqe_core.spi.names import ObjectName
from sqe_core.spi.policy import SupportsGrants, SupportsPolicies
from sqe_core.spi.protocol import IngestRequest
from sqe_core.sql.grammar.value_rows import ValueRow
from sqe_core.sql.statement import (
    SESSION_FUNCTIONS,
    DescribeQuery,
    EngineStatement,
    Explain,
    NoOperation,
    PositionMap,
    ResetSession,
    SetSession,
    Statement,
    StatementKind,
    TextLimits,
    TransactionControl,
    Use,
    session_marker,
)

Parameters = Sequence[Any] | Mapping[str, Any]
Finish = Callable[..., None]


# For so long a plan that was made before it is started stands.
_PLAN_SECS = 5.0
_COMING = (EngineState.PREPARING, EngineState.STARTING, EngineState.LOST)
_LOOK_SECS = 0.05
_EXPLAIN = ("plan_type", "plan")
_DESCRIBE = ("column_name", "data_type", "is_nullable")
# What asks a value for its type before it has one.
_TOO_EARLY = frozenset(
    {
        "INTERNAL_ERROR",  # the condition of UPDATE
        "INVALID_AGGREGATE_FILTER",
    }
)
# What the engine says when types or constants do not fit; a parameter without a value has no type and is no constant.
_ABOUT_VALUES = frozenset(
    {
        *_TOO_EARLY,
        "DATATYPE_MISMATCH",
        "INVALID_EXTRACT_BASE_FIELD_TYPE",
        "JOIN_CONDITION_IS_NOT_BOOLEAN_TYPE",
        "_LEGACY_ERROR_TEMP_1035",  # the offset of LAG
        "_LEGACY_ERROR_TEMP_1036",  # the bounds of a window's frame
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRun:
    """A statement that was judged.

    `schema` is None for statements without rows. `is_divisible` says whether the rows may go to several readers,
    `is_constant` whether there is one, of constants.
    """

    kind: StatementKind
    schema: pa.Schema | None
    start: Callable[[Finish], StatementResult]
    is_divisible: bool = False
    is_constant: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementShape:
    """What a statement expects and answers. A parameter whose type could not be found has the type null.

    `schema` is None for statements without rows, and for queries whose columns only values tell.
    """

    kind: StatementKind
    schema: pa.Schema | None
    parameters: pa.Schema = field(default_factory=lambda: pa.schema([]))


class StatementRun:
    """One statement of one session. `run` is the way in; `explain_error` the way out when it fails."""

    def __init__(
        self,
        parts: QueryParts,
        session: StatementSession,
        running: RunningStatement,
        visible: VisibleCatalogs,
        planned: Callable[[StatementKind, Judgement | None], None],
        *,
        trail: DecisionTrail | None = None,
        begins_change: Callable[[StatementKind], None] = lambda kind: None,
        recognised: Callable[[StatementKind], None] = lambda kind: None,
        cancel: Callable[[str], bool] = lambda query_id: False,
    ) -> None:
        """Make one.

        Args:
            parts: the collaborators.
            session: what it sees of its session.
            running: its life.
            visible: what its user may see.
            planned: is told when everything was decided, right before it runs.
            trail: where decisions are noted.
            begins_change: is told right before rights are changed.
            recognised: is told which statement it is, before anything is decided.
            cancel: ends the running statement of an id.
        """
        self._parts = parts
        self._session = session
        self._running = running
        self._planned = planned
        self._trail = trail
        self._begins_change = begins_change
        self._recognised = recognised
        self._cancel = cancel
        self._positions: PositionMap | None = None
        self._kind = StatementKind.UTILITY
        self._columns_seen: list[str] = []
        self._resolver = NameResolver(parts.catalogs, shows=visible.shows, discover=session.discovered.find)
        self._views_read: dict[ObjectName, bool | None] = {}
        self._visible = visible
        self._circumstances = Circumstances(
            protocol=session.protocol,
            query_id=running.query_id,
            client_address=session.client_address,
            trail=trail,
        )
        self._answers = MetadataAnswers(
            session=session,
            visible=self._visible,
            resolver=self._resolver,
            visible_columns=self.columns_of,
            visible_text=self._text_of,
            functions=parts.functions,
            system_columns=self._system_columns,
        )

    def run(self, sql: str, parameters: Parameters, dialect: str, finish: Finish) -> StatementResult:
        """Judge the statement and run it."""
        statement = self._read(sql, dialect)
        if not isinstance(statement, EngineStatement):
            return self._answered(statement, self._rows(statement, parameters), finish)
        values = bind_parameters(statement, parameters)
        return self._tried(lambda: self._judged(statement, values, finish), statement, values, finish)

    def _judged(self, statement: EngineStatement, values: Mapping[str, Any], finish: Finish) -> StatementResult:
        with self._engine_scope() as engine:
            if self._is_void(statement):
                return self._empty(statement, finish)
            return self._execute(engine, statement, self._judge(statement, values), finish)

    def _tried(
        self,
        first: Callable[[], StatementResult],
        statement: EngineStatement,
        values: Mapping[str, Any],
        finish: Finish,
    ) -> StatementResult:
        """Run a statement, and judge it anew when somebody else made its table meanwhile."""
        return tried(
            first,
            lambda: self._judged(statement, values, finish),
            self._running.check,
            lambda: self._empty(statement, finish),
        )

    def plan(self, sql: str, parameters: Parameters, dialect: str) -> PlannedRun:
        """Judge the statement, and run it when `PlannedRun.start` is called; nothing changes before."""
        statement = self._read(sql, dialect)
        if not isinstance(statement, EngineStatement):
            rows = self._rows(statement, parameters)
            return PlannedRun(
                kind=statement.kind,
                schema=rows.schema if rows is not None else None,
                start=lambda finish: self._answered(statement, rows, finish),
            )
        values = bind_parameters(statement, parameters)
        rights = self._parts.authorizer.generation
        with self._engine_scope() as opened:
            if self._is_void(statement):
                return PlannedRun(kind=statement.kind, schema=None, start=lambda finish: self._empty(statement, finish))
            judgement = self._judge(statement, values)
        planned_at = time.monotonic()

        def start(finish: Finish) -> StatementResult:
            with self._engine() as engine:
                # Rights and tables are those of the moment at which it runs, give or take a round trip (ENF-13); what
                # was revoked here meanwhile is gone at once.
                somebody_else = self._session.look_again()
                unchanged = rights == self._parts.authorizer.generation and not somebody_else
                stands = unchanged and engine is opened and time.monotonic() - planned_at <= _PLAN_SECS
                if stands and not judgement.plan.is_command:
                    return self._execute(engine, statement, judgement, finish)  # its tables are loaded
                with engine.statement_scope():
                    decided = judgement if stands else self._judge(statement, values)
                    # An order that a view has since is no order of parts.
                    divided = judgement.plan.is_divisible and not decided.plan.is_divisible
                    if divided or decided.plan.schema != judgement.plan.schema:
                        raise UserError(
                            "What the statement reads has changed since it was planned", hint="run it again"
                        )
                    return self._execute(engine, statement, decided, finish)

        schema = None if judgement.plan.is_command else self._shown_schema(statement, judgement.plan.schema)
        return PlannedRun(
            kind=statement.kind,
            schema=schema,
            start=lambda finish: self._tried(lambda: start(finish), statement, values, finish),
            is_divisible=judgement.plan.is_divisible,
            is_constant=judgement.plan.is_constant,
        )

    def describe(self, sql: str, dialect: str) -> StatementShape:
        """Judge the statement and say what it expects and answers, without values for its parameters."""
        statement = self._read(sql, dialect)
        inner = self._inner(statement)
        if inner is None or not (inner is statement or inner.parameters):
            rows = self._rows(statement, ())
            return StatementShape(kind=statement.kind, schema=rows.schema if rows is not None else None)
        with self._engine_scope():
            if self._is_void(inner):
                return StatementShape(kind=statement.kind, schema=None)
            names = tuple(dict.fromkeys(inner.parameters))
            plan = self._plan_without_values(inner, names)
        columns = None
        if inner is not statement:
            columns = text_table(_EXPLAIN if isinstance(statement, Explain) else _DESCRIBE, ()).schema
        elif plan is not None and not plan.is_command:
            columns = self._shown_schema(inner, plan.schema)
        # What is not found stood where only numbers of rows can: LIMIT, OFFSET.
        types = [
            pa.null() if plan is None else plan.parameter_types.get(number, pa.int64()) for number in range(len(names))
        ]
        expected = [
            pa.field(str(number) if inner.positional else name, type)
            for number, (name, type) in enumerate(zip(names, types, strict=True), 1)
        ]
        return StatementShape(kind=statement.kind, schema=columns, parameters=pa.schema(expected))

    def _plan_without_values(self, statement: EngineStatement, names: Sequence[str]) -> AnalysedPlan | None:
        """Judge a statement before it has values; None when only they show whether its types fit.

        What is not there, or may not be seen, is refused as ever.
        """
        markers = {name: ParameterMarker(number=number) for number, name in enumerate(names)}
        try:
            return self._judge(statement, markers).plan
        except (EngineExecutionError, UserError) as error:
            if not names:
                raise
            first = error
        try:
            # Some places take constants only; there a NULL may do, and mean a number of rows.
            plan = self._judge(statement, dict.fromkeys(names)).plan
            return None if _is_about_values(first, _TOO_EARLY) else plan
        except (EngineExecutionError, UserError) as error:
            for each in (error, first):
                if not _is_about_values(each):
                    raise each from None
            return None

    def ingest(
        self, request: IngestRequest, schema: pa.Schema, batches: Iterator[pa.RecordBatch], finish: Finish
    ) -> StatementResult:
        """Write record batches into a table."""
        self._columns_seen.extend(schema.names)

        def judge(statement: EngineStatement, rows: Mapping[str, SpooledRows]) -> Judgement:
            self._kind = statement.kind
            self._recognised(statement.kind)
            return self._judge(statement, spooled=rows)

        ingestion = Ingestion(
            engine=self._parts.engine,
            session=self._session,
            resolver=self._resolver,
            visible=self._visible,
            visible_columns=self._visible_columns,
            suggest=self._answers.suggest,
            limits=self._parts.limits.ingest,
            check=self._running.check,
            scope=self._engine_scope,
            judge=judge,
            execute=lambda engine, statement, judgement: self._execute(engine, statement, judgement, finish),
        )
        self._wait_for_engine()
        # The same engine session until the end: another one would not know the rows after a restart.
        with self._session.engine():
            return ingestion.run(request, schema, batches)

    def insert_rows(
        self, kind: StatementKind, row: ValueRow, batches: Sequence[pa.RecordBatch], finish: Finish
    ) -> StatementResult:
        """Insert a row for each row of parameters, with one commit; `row` is the one of VALUES that was read."""
        self._recognise(kind)
        with self._engine_scope() as session:
            insert = RowInsert(
                engine=self._parts.engine,
                limits=self._parts.limits.ingest,
                check=self._running.check,
                judge=self._judge,
                execute=lambda engine, written, judgement: self._execute(engine, written, judgement, finish),
            )
            return insert.run(session, row, batches)

    def _read(self, sql: str, dialect: str) -> Statement:
        statement = self._parts.reader.read(
            sql, dialect=dialect, limits=TextLimits(max_bytes=self._parts.limits.max_sql_bytes)
        )
        self._recognise(statement.kind)
        return statement

    def _recognise(self, kind: StatementKind) -> None:
        self._kind = kind
        self._recognised(kind)
        self._running.check()

    # Statements that Spark executes

    @contextmanager
    def _engine_scope(self) -> Iterator[EngineSession]:
        """The statement has an engine session to itself, and loads each table once."""
        with self._engine() as engine, engine.statement_scope():
            yield engine

    @contextmanager
    def _engine(self) -> Iterator[EngineSession]:
        """The statement has an engine session to itself."""
        self._wait_for_engine()
        with self._session.engine() as engine:
            self._running.attach(engine)
            yield engine

    def _wait_for_engine(self) -> None:
        """Wait while the engine starts; a statement that is cancelled meanwhile waits no longer."""
        while self._parts.engine.state in _COMING:
            self._running.check()
            time.sleep(_LOOK_SECS)

    def _is_void(self, statement: EngineStatement) -> bool:
        return statement.if_exists and self._target_is_missing(statement)

    def _empty(self, statement: EngineStatement, finish: Finish) -> StatementResult:
        rows = 0 if statement.kind is StatementKind.CREATE_TABLE_AS else None
        finish(None, rows)
        return StatementResult(query_id=self._running.query_id, kind=statement.kind, affected_rows=rows)

    def _execute(
        self, engine: EngineSession, statement: EngineStatement, judgement: Judgement, finish: Finish
    ) -> StatementResult:
        self._planned(statement.kind, judgement)
        self._running.check()
        new = self._new_tables(judgement)
        try:
            stream: ResultStream = engine.execute(judgement.plan, tag=self._running.tag, settings=judgement.settings)
        except EngineExecutionError as error:
            created = [
                one.resolved.name for one in judgement.bound if one.usage is Usage.CREATE and one.resolved is not None
            ]
            if not created or not is_created_meanwhile(error.failure):
                raise
            raise created_table(
                created[0], may_exist=judgement.may_exist, or_nothing=judgement.if_not_exists
            ) from error
        release = self._session.begin_result()
        self._running.attach_stream(stream, counted=not judgement.restricted)
        if judgement.plan.is_command:
            release()  # the statement holds on to its engine session itself
            affected = stream.affected_rows
            stream.close()
            self._tell_of(new)
            finish(None, affected)
            return StatementResult(query_id=self._running.query_id, kind=statement.kind, affected_rows=affected)
        schema = self._shown_schema(statement, stream.schema)
        ended = threading.Event()

        def end(error: SqeError | None, rows: int | None) -> None:
            if not ended.is_set():
                ended.set()
                stream.close()
                release()
                finish(error, rows)

        return StatementResult(
            query_id=self._running.query_id,
            kind=statement.kind,
            schema=schema,
            batches=self._batches(stream, schema, self._max_rows(), end),
            progress=self._running.progress,
            # Closed before its end it may have been cancelled, which nobody has read yet.
            on_close=lambda: end(self._running.end_error(), None),
            on_cancel=self._running.cancel,
        )

    @staticmethod
    def _shown_schema(statement: EngineStatement, schema: pa.Schema) -> pa.Schema:
        names = statement.column_names
        if names is None or len(names) != len(schema.names):
            return schema
        return pa.schema([field.with_name(name) for field, name in zip(schema, names, strict=True)])

    def _batches(
        self,
        stream: ResultStream,
        schema: pa.Schema,
        max_rows: int,
        end: Callable[[SqeError | None, int | None], None],
    ) -> Iterator[pa.RecordBatch]:
        rows = 0
        try:
            for batch in bounded(iter(stream), max_rows, self._parts.limits.max_result_bytes):
                rows += batch.num_rows
                yield batch if batch.schema.equals(schema) else batch.rename_columns(schema.names)
            self._running.check()
        except GeneratorExit:
            raise
        except Exception as error:
            shown = self.explain_error(error)
            end(shown, rows)
            if shown is error:
                raise
            raise shown from None
        end(None, rows)

    def _max_rows(self) -> int:
        own = self._session.properties["query_max_result_rows"]
        bounds = [rows for rows in (self._parts.limits.max_result_rows, own) if rows]
        return min(bounds, default=0)

    def _judge(
        self,
        statement: EngineStatement,
        values: Mapping[str, Any] | None = None,
        spooled: Mapping[str, SpooledRows] | None = None,
    ) -> Judgement:
        self._positions = statement.positions
        self._resolver.used.clear()
        judgement = self._new_judge(spooled or {}).judge(statement, values or {})
        self._resolver.ensure_mounted()
        return judgement

    def _new_judge(self, spooled: Mapping[str, SpooledRows] = MappingProxyType({})) -> Judge:
        return Judge(
            session=self._session,
            engine=self._session.engine_session(),
            reader=self._parts.reader,
            authorizer=self._parts.authorizer,
            circumstances=self._circumstances,
            resolver=self._resolver,
            visible=self._visible,
            system_rows=self._system_rows,
            suggest=self._answers.suggest,
            extra_functions=self._parts.template_functions,
            plan_limits=self._parts.plan_limits,
            tag=self._running.tag,
            in_use=self._columns_in_use,
            columns_seen=self._columns_seen,
            spooled=spooled,
        )

    def _columns_in_use(self, name: ObjectName, table: TableMetadata) -> frozenset[str]:
        """Return the columns of a table that are for administrators to drop and rename (STMT-7)."""
        author = self._session.identity
        if self._parts.admins(author):
            return frozenset()
        authorizer = self._parts.authorizer
        use = ColumnUse(
            grants=[grant for store in authorizer.stores(SupportsGrants) for grant in store.list_grants(author=author)],
            policies=[
                policy for store in authorizer.stores(SupportsPolicies) for policy in store.list_policies(author=author)
            ],
        )
        return use.of(name, table)

    def _target_is_missing(self, statement: EngineStatement) -> bool:
        """ALTER TABLE IF EXISTS: whether the one table it names is missing."""
        parsed = self._session.engine_session().parse(statement.spark_sql)
        for relation in parsed.description.relations[:1]:
            resolved = self._resolver.object(relation.parts, self._context)
            return self._visible.find(resolved.mount, resolved.name) is None
        return False

    # Statements that SQE answers itself

    def _rows(self, statement: Statement, parameters: Parameters) -> pa.Table | None:
        """Answer a statement that only asks; None for one that changes something."""
        inner = self._inner(statement)
        if inner is not None:
            return self._told_of(statement, inner, bind_parameters(inner, parameters))
        if len(parameters):
            raise UserError("This statement takes no parameters", code=ErrorCode.INVALID_ARGUMENTS)
        answer = self._answers.answer(statement)
        if answer is None:
            answer = self._session_control().answer(statement)
        if answer is None:
            answer = self._attaching().answer(statement)
        return self._governance().answer(statement) if answer is None else answer

    def _answered(self, statement: Statement, rows: pa.Table | None, finish: Finish) -> StatementResult:
        if rows is None:
            self._change(statement)
        self._planned(statement.kind, None)
        result = StatementResult(
            query_id=self._running.query_id,
            kind=statement.kind,
            schema=rows.schema if rows is not None else None,
            batches=iter(rows.to_batches()) if rows is not None else iter(()),
        )
        finish(None, rows.num_rows if rows is not None else None)
        return result

    def _change(self, statement: Statement) -> None:
        match statement:
            case Use():
                self._use(statement)
                return
            case SetSession():
                self._session.set_property(statement.name, statement.value)
                return
            case ResetSession():
                self._session.reset_property(statement.name)
                return
            case TransactionControl():
                return
            case NoOperation():
                if statement.must_exist is not None:
                    self._answers.find_columns(statement.must_exist)
                return
        attaching = self._attaching()
        if attaching.changes(statement):
            self._begins_change(statement.kind)
            attaching.apply(statement)
            return
        governance = self._governance()
        if governance.choose(statement) or self._session_control().apply(statement):
            return
        changes = CatalogChanges(
            session=self._session,
            authorizer=self._parts.authorizer,
            circumstances=self._circumstances,
            resolver=self._resolver,
            visible=self._visible,
            answers=self._answers,
            judge=self._judge,
            lives=self._lives(),
        )

        def carry_out() -> None:
            with self._engine_scope():
                if not (self._govern(governance, statement) or changes.apply(statement)):
                    words = re.sub(r"\B(?=[A-Z])", " ", type(statement).__name__).upper()
                    raise NotSupportedError(f"{words} is not supported")

        tried(carry_out, carry_out, self._running.check, lambda: None)

    def _govern(self, governance: Governance, statement: Statement) -> bool:
        """Carry out a statement that changes rights, and note what it changed; False for other statements."""
        if not governance.changes(statement):
            return False
        self._begins_change(statement.kind)
        stores = [*self._parts.authorizer.stores(KeepsChanges)]
        if self._parts.outside is not None:
            stores.append(self._parts.outside)
        before = [(store, store.last_change()) for store in stores] if self._trail is not None else []
        try:
            return governance.apply(statement)
        finally:
            for store, last in before:
                assert self._trail is not None
                # It is done: a store that cannot be read now has its own record of it.
                with suppress(SqeError):
                    self._trail.changed(store.changes_since(last, self._session.identity))

    @property
    def _context(self) -> NameContext:
        return NameContext(catalog=self._session.catalog, schema=self._session.schema)

    # Who may see and do what

    def _attaching(self) -> AttachChanges:
        return AttachChanges(
            session=self._session,
            attachments=self._parts.attachments,
            admins=self._parts.admins,
            engine_scope=self._engine_scope,
            check=self._running.check,
        )

    def _governance(self) -> Governance:
        visible, resolver = self._visible, self._resolver
        if self._parts.admins(self._session.identity):
            visible = visible.without_policies()
            resolver = NameResolver(self._parts.catalogs, shows=visible.shows, discover=self._session.discovered.find)
        steward = Steward(
            session=self._session,
            authorizer=self._parts.authorizer,
            outside=self._parts.outside,
            circumstances=self._circumstances,
            resolver=resolver,
            visible=visible,
            answers=self._answers,
            admins=self._parts.admins,
            check_restrictions=lambda name, mount, loaded, access: self._new_judge().check_restrictions(
                name, mount, loaded, access
            ),
            canonical=lambda expression: replace(
                expression, text=self._parts.reader.canonical(expression.text, dialect=expression.dialect)
            ),
            looks_up=lambda row_filter: bool(
                self._parts.reader.translate_filter(row_filter.text, dialect=row_filter.dialect, sizes=None)[1]
            ),
        )
        binder = RelationBinder(
            session=self._session, resolver=resolver, visible=visible, suggest=self._answers.suggest
        )
        return Governance(
            steward=steward,
            bind=lambda statement: self._bind(binder, statement),
            set_property=self._set_property,
        )

    def _session_control(self) -> SessionControl:
        whole = self._session.session
        return SessionControl(
            session=whole,
            identity=whole.identity,
            is_admin=self._parts.admins(self._session.identity),
            directory=self._parts.sessions,
            history=self._parts.recorder.history,
            cancel=self._cancel,
            changed=self._trail.changed if self._trail is not None else lambda changes: None,
        )

    def _lives(self) -> ObjectLives:
        return ObjectLives(self._parts.authorizer, self._session.identity)

    def _bind(self, binder: RelationBinder, statement: EngineStatement) -> Sequence[BoundRelation]:
        """Say what the names of a statement are; nothing is decided and nothing runs."""
        self._positions = statement.positions
        values = dict.fromkeys((*map(session_marker, SESSION_FUNCTIONS), *statement.parameters))
        with self._engine_scope() as engine:
            return binder.bind(
                engine.parse(statement.spark_sql, values).description,
                kind=statement.kind,
                context=self._context,
                positions=statement.positions,
            )

    def _set_property(self, resolved: ResolvedName, key: str, value: str) -> None:
        """Set a property of a table that users cannot set themselves."""
        engine = self._session.engine_session()
        name = resolved.name
        parts = (self._session.alias_of(resolved.mount), *name.namespace, name.name)
        plan = engine.analyse(engine.parse(property_text(parts, key, value)), tag=self._running.tag)
        engine.execute(plan, tag=self._running.tag).close()

    def _new_tables(self, judgement: Judgement) -> Sequence[ResolvedName]:
        """What a statement is about to make; it fails when somebody else makes it first.

        The catalog is asked, and not what the user sees: who says CREATE TABLE IF NOT EXISTS about a table of which
        they know nothing does not come to own it.
        """
        if not self._lives().watched:
            return ()
        made = [one.resolved for one in judgement.bound if one.usage is Usage.CREATE and one.loaded is None]
        return [
            resolved
            for resolved in made
            if resolved is not None and uuid_of(self._session.metadata(resolved.mount), resolved.name) is None
        ]

    def _tell_of(self, new: Sequence[ResolvedName]) -> None:
        """What a statement of the engine's has made belongs to whoever ran it."""
        for resolved in new:
            uuid = uuid_of(self._session.metadata(resolved.mount), resolved.name)
            if uuid is not None:
                self._lives().created(resolved.name, uuid)

    def _use(self, statement: Use) -> None:
        """USE schema, USE catalog.schema; one part that is no schema but a catalog means the catalog."""
        name = statement.name
        if len(name) == 1 and self._resolver.find(self._session.catalog) is None:
            # The current catalog was detached: the only names that mean anything are those of catalogs.
            name = (name[0], "default")
        mount, schema = self._resolver.schema(name, self._context)
        namespace = schema.namespace
        if not self._visible.has_schema(mount, namespace):
            other = self._resolver.find(statement.name[0]) if len(statement.name) == 1 else None
            if other is None or not self._visible.shows(other):
                known = [".".join(entry) for entry in self._visible.schemas(mount)]
                raise schema_not_found(schema, hint=did_you_mean(".".join(namespace), known))
            mount, namespace = other, ("default",)
        self._session.use(mount.name, namespace)

    def _inner(self, statement: Statement) -> EngineStatement | None:
        """Return what the engine is to judge: a statement of its own, or what EXPLAIN and DESCRIBE ask about."""
        match statement:
            case EngineStatement():
                return statement
            case DescribeQuery():
                return statement.query
            case Explain():
                if not isinstance(statement.inner, EngineStatement):
                    raise NotSupportedError(
                        "EXPLAIN works for queries and for INSERT, UPDATE, DELETE, MERGE and CREATE TABLE AS"
                    )
                if statement.mode != "plan":
                    raise NotSupportedError(
                        f"EXPLAIN {statement.mode.upper()} is not supported yet", hint="use EXPLAIN"
                    )
                return statement.inner
        return None

    def _told_of(self, statement: Statement, inner: EngineStatement, values: Mapping[str, Any]) -> pa.Table:
        with self._engine_scope():
            judgement = self._judge(inner, values)
            if isinstance(statement, Explain):
                return text_table(
                    _EXPLAIN,
                    [
                        (kind, self._scrubber().visible_text(text))
                        for kind, text in judgement.plan.explain()
                        # The physical plan tells of versions and conditions of tables (META-5).
                        if kind == "logical_plan" or not judgement.restricted
                    ],
                )
        return text_table(
            _DESCRIBE,
            [
                (field.name, display_type(type_text), "YES" if field.nullable else "NO")
                for field, type_text in zip(judgement.plan.schema, judgement.plan.column_types, strict=True)
            ],
        )

    # information_schema

    def _visible_columns(self, name: ObjectName, columns: tuple[Column, ...]) -> tuple[Column, ...]:
        return self._parts.authorizer.visible_columns(self._session.identity, name, columns, self._circumstances)

    def columns_of(self, name: ObjectName, loaded: TableMetadata | ViewMetadata) -> tuple[Column, ...]:
        """Return the columns of a table or view that exist for this user (STMT-9, VIEW-4)."""
        if isinstance(loaded, ViewMetadata) and self._reads_all_of(name, loaded) is None:
            return ()
        return self._visible_columns(name, loaded.columns)

    def _text_of(self, name: ObjectName, view: ViewMetadata) -> str | None:
        return view_text(view) if self._reads_all_of(name, view) else None

    def _reads_all_of(self, name: ObjectName, view: ViewMetadata) -> bool | None:
        """Whether the user may read everything below a view; None when the view cannot be read (VIEW-4)."""
        if not self._visible.enforced:
            return True
        if name not in self._views_read:
            with self._engine_scope():
                try:
                    # What a listing leaves out is no refusal of the statement.
                    judge = replace(self._new_judge(), circumstances=self._circumstances.unrecorded())
                    self._views_read[name] = judge.read_view(name, view)
                except (UserError, ResourcesError):
                    self._views_read[name] = None
        return self._views_read[name]

    def _information_schema(self) -> InformationSchema:
        return InformationSchema(
            self._visible,
            visible_columns=self.columns_of,
            visible_text=self._text_of,
            settings=[(row[0], row[1]) for row in self._session.properties.rows()],
        )

    def _system_rows(self, name: ObjectName) -> pa.Table | None:
        mount = self._resolver.catalog(name.catalog)
        if mount is SYSTEM:
            return self._session_control().rows(name) if name.namespace == RUNTIME else None
        return self._information_schema().rows(mount, name.name)

    def _system_columns(self, resolved: ResolvedName) -> tuple[Column, ...] | None:
        if resolved.mount is SYSTEM:
            known = resolved.name.namespace == RUNTIME and resolved.name.name in TABLES
            return runtime_columns(resolved.name.name) if known and not resolved.metadata_table else None
        if resolved.name.namespace != (INFORMATION_SCHEMA,) or resolved.name.name not in SCHEMAS:
            return None
        if resolved.metadata_table or not self._visible.shows(resolved.mount):
            return None
        return system_columns(resolved.name.name)

    # Errors

    def _scrubber(self) -> Scrubber:
        return Scrubber(self._session.secrets())

    def explain_error(self, error: BaseException) -> SqeError:
        """Turn whatever was raised into what the client may read (ERR-1, ERR-2)."""
        ended = self._running.end_error()
        if ended is not None:
            shown: SqeError = ended
        elif isinstance(error, SqeError):
            shown = error
        elif isinstance(error, EngineExecutionError):
            shown = translate(
                error.failure,
                positions=self._positions,
                kind=self._kind,
                query_id=self._running.query_id,
                names=MentionableNames(columns=lambda: self._columns_seen, catalogs=self._session.catalog_names()),
            )
        elif isinstance(error, KeyboardInterrupt):
            self._running.cancel()
            shown = self._running.end_error() or InternalError("interrupted")
        else:
            self._parts.recorder.unexpected(self._running.query_id, error)
            shown = InternalError(f"Query failed (query id {self._running.query_id})")
        self._scrubber().scrub(shown)
        shown.query_id = self._running.query_id
        return shown


def _is_about_values(error: EngineExecutionError | UserError, conditions: frozenset[str] = _ABOUT_VALUES) -> bool:
    """Whether a statement may be right once it has values; all that it reads was found and allowed by then."""
    return isinstance(error, EngineExecutionError) and error.failure.condition.partition(".")[0] in conditions
