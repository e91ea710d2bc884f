"""The one use case: a statement of a session becomes a result.

1 admit     admission.py             bounds and slots, before any parser
2 classify  sql/                     which statement is it? SQE's own are answered by answers.py and ddl.py
3 inspect   inspect.py               the parsed plan holds nothing that is not on the lists
4 resolve   names.py, bind.py        each name is one object, or none
5 decide    policy/authorizer.py     may this user, and what of it
6 secure    secure.py, secured.py    each relation becomes its secured form
7 verify    verify.py                the analysed plan is what was promised
8 execute   engine/port.py           tagged, streamed, cancelled, timed out
9 record    record.py                history, events
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from sqe_core.catalog.information_schema import InformationSchema
from sqe_core.catalog.registry import CatalogRegistry, Mount
from sqe_core.catalog.visible import INFORMATION_SCHEMA, VisibleCatalogs
from sqe_core.engine.port import (
    Engine,
    EngineExecutionError,
    EngineState,
    Progress,
    ResultStream,
)
from sqe_core.policy.authorizer import Authorizer, Circumstances
from sqe_core.query.admission import Admission, DeadlineWatch, QueryLimits
from sqe_core.query.answers import MetadataAnswers, text_table
from sqe_core.query.ddl import CatalogChanges
from sqe_core.query.errors import translate
from sqe_core.query.inspect import PlanLimits
from sqe_core.query.limits import bounded
from sqe_core.query.names import NameContext, NameResolver, ResolvedName
from sqe_core.query.parameters import bind_parameters
from sqe_core.query.record import Recorder
from sqe_core.query.result import StatementResult
from sqe_core.query.running import EndReason, RunningStatement, new_query_id
from sqe_core.query.scrubber import Scrubber
from sqe_core.query.secured import SecuredStatement, StatementSecurer
from sqe_core.session.properties import duration_seconds
from sqe_core.session.session import Session
from sqe_core.spi.catalog import CatalogMetadata, Column
from sqe_core.spi.errors import ErrorCode, InternalError, NotSupportedError, SqeError, UserError
from sqe_core.spi.names import ObjectName
from sqe_core.sql.statement import (
    DescribeQuery,
    EngineStatement,
    Explain,
    NoOperation,
    PositionMap,
    ResetSession,
    SetSession,
    SqlReader,
    Statement,
    StatementKind,
    TextLimits,
    TransactionControl,
    Use,
)

Parameters = Sequence[Any] | Mapping[str, Any]
FunctionRows = Callable[[], Sequence[tuple[str, str, str]]]


class QueryService:
    """Executes statements. One per process; safe for use from many threads."""

    def __init__(
        self,
        *,
        engine: Engine,
        reader: SqlReader,
        catalogs: CatalogRegistry,
        authorizer: Authorizer,
        recorder: Recorder,
        limits: QueryLimits,
        plan_limits: PlanLimits,
        template_functions: frozenset[str],
        functions: FunctionRows,
    ) -> None:
        self._engine = engine
        self._reader = reader
        self._catalogs = catalogs
        self._authorizer = authorizer
        self._recorder = recorder
        self._limits = limits
        self._plan_limits = plan_limits
        self._template_functions = template_functions
        self._functions = functions
        self._resolver = NameResolver(catalogs)
        self._admission = Admission(limits)
        self._deadlines = DeadlineWatch()
        self._lock = threading.Lock()
        self._running: dict[str, tuple[Session, RunningStatement]] = {}

    def execute(
        self, session: Session, sql: str, *, parameters: Parameters = (), dialect: str | None = None
    ) -> StatementResult:
        """Run one statement and return its result as soon as the first rows can be read.

        Raises:
            SqeError: what is wrong, in words that may be shown to the user.
        """
        running = RunningStatement(new_query_id())
        leave = self._admission.enter(session.identity)
        with self._lock:
            self._running[running.query_id] = (session, running)
        record = self._recorder.begin(running.query_id, session, sql)
        forget_deadline = self._set_deadline(session, running)

        def finish(error: SqeError | None, rows: int | None = None) -> None:
            forget_deadline()
            with self._lock:
                self._running.pop(running.query_id, None)
            leave()
            record.end(error, rows)

        attempt = _Attempt(self, session, running, record.planned)
        try:
            return attempt.run(sql, parameters, dialect or session.properties["dialect"], finish)
        except BaseException as error:
            shown = attempt.explain_error(error)
            finish(shown)
            if shown is error or not isinstance(error, Exception):
                raise
            raise shown from None

    def cancel(self, session: Session, query_id: str | None = None) -> int:
        """Cancel one statement of a session, or all of them; return how many there were (TRI-9)."""
        with self._lock:
            mine = [
                running
                for owner, running in self._running.values()
                if owner is session and query_id in (None, running.query_id)
            ]
        for running in mine:
            running.cancel()
        return len(mine)

    def progress(self, session: Session) -> Progress | None:
        """How far the newest running statement of a session is."""
        with self._lock:
            mine = [running for owner, running in self._running.values() if owner is session]
        return mine[-1].progress() if mine else None

    def close_session(self, session: Session) -> None:
        """End a session and everything it runs (SESS-6)."""
        with self._lock:
            mine = [running for owner, running in self._running.values() if owner is session]
        for running in mine:
            running.cancel(EndReason.CLOSED)
        session.close()

    def visible(self, session: Session, query_id: str = "") -> VisibleCatalogs:
        """Return what a session may see."""
        circumstances = Circumstances(protocol=session.protocol, query_id=query_id)

        def listing_of(mount: Mount) -> CatalogMetadata:
            # Listings are answered while the engine warms up, where the backend can (design §1, cold start).
            if self._engine.state is not EngineState.READY:
                quick = mount.backend.quick_metadata(session.identity)
                if quick is not None:
                    return quick
            return session.metadata(mount)

        return VisibleCatalogs(
            self._catalogs,
            listing_of=listing_of,
            metadata_of=session.metadata,
            visible_of=lambda names: self._authorizer.visible(session.identity, names, circumstances),
        )

    def _set_deadline(self, session: Session, running: RunningStatement) -> Callable[[], None]:
        own = session.properties["query_max_run_time"]
        bounds = [seconds for seconds in (self._limits.timeout_secs, duration_seconds(own) if own else 0) if seconds]
        if not bounds:
            return lambda: None
        running.timeout_secs = min(bounds)
        return self._deadlines.after(running.timeout_secs, lambda: running.cancel(EndReason.TIMEOUT))


Finish = Callable[..., None]


class _Attempt:
    """One statement on its way through the steps. Knows enough to explain an error in the user's terms."""

    def __init__(
        self,
        service: QueryService,
        session: Session,
        running: RunningStatement,
        planned: Callable[[StatementKind, SecuredStatement | None], None],
    ) -> None:
        self._service = service
        self._session = session
        self._running = running
        self._planned = planned
        self._positions: PositionMap | None = None
        self._kind = StatementKind.UTILITY
        self._resolver = service._resolver
        self._visible = service.visible(session, running.query_id)
        self._circumstances = Circumstances(protocol=session.protocol, query_id=running.query_id)
        self._answers = MetadataAnswers(
            session=session,
            visible=self._visible,
            resolver=self._resolver,
            visible_columns=self._visible_columns,
            functions=service._functions,
            system_columns=self._system_columns,
        )

    def run(self, sql: str, parameters: Parameters, dialect: str, finish: Finish) -> StatementResult:
        """Classify the statement and take the way that its kind has."""
        statement = self._service._reader.read(
            sql, dialect=dialect, limits=TextLimits(max_bytes=self._service._limits.max_sql_bytes)
        )
        self._kind = statement.kind
        self._running.check()
        if isinstance(statement, EngineStatement):
            return self._run_engine(statement, parameters, finish)
        if len(parameters):
            raise UserError("This statement takes no parameters", code=ErrorCode.INVALID_ARGUMENTS)
        rows = self._answer(statement)
        self._planned(statement.kind, None)
        result = StatementResult(
            query_id=self._running.query_id,
            kind=statement.kind,
            schema=rows.schema if rows is not None else None,
            batches=iter(rows.to_batches()) if rows is not None else iter(()),
        )
        finish(None, rows.num_rows if rows is not None else None)
        return result

    # Statements that Spark executes

    def _run_engine(self, statement: EngineStatement, parameters: Parameters, finish: Finish) -> StatementResult:
        stream: ResultStream
        values = bind_parameters(statement, parameters)
        with self._session.lock:
            engine = self._session.engine_session()
            self._running.attach(engine)
            with engine.statement_scope():
                if statement.if_exists and self._target_is_missing(statement):
                    finish(None)
                    return StatementResult(query_id=self._running.query_id, kind=statement.kind)
                secured = self._secure(statement, values)
                self._planned(statement.kind, secured)
                self._running.check()
                stream = engine.execute(secured.plan, tag=self._running.tag, settings=secured.settings)
        self._running.attach_stream(stream)
        if secured.plan.is_command:
            affected = stream.affected_rows
            stream.close()
            finish(None, affected)
            return StatementResult(query_id=self._running.query_id, kind=statement.kind, affected_rows=affected)
        schema = stream.schema
        names = statement.column_names
        if names is not None and len(names) == len(schema.names):
            schema = pa.schema([field.with_name(name) for field, name in zip(schema, names, strict=True)])
        ended = threading.Event()

        def end(error: SqeError | None, rows: int | None) -> None:
            if not ended.is_set():
                ended.set()
                stream.close()
                finish(error, rows)

        return StatementResult(
            query_id=self._running.query_id,
            kind=statement.kind,
            schema=schema,
            batches=self._batches(stream, schema, end),
            progress=stream.progress,
            on_close=lambda: end(None, None),
        )

    def _batches(
        self, stream: ResultStream, schema: pa.Schema, end: Callable[[SqeError | None, int | None], None]
    ) -> Iterator[pa.RecordBatch]:
        rows = 0
        try:
            for batch in bounded(iter(stream), self._max_rows()):
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
        bounds = [rows for rows in (self._service._limits.max_result_rows, own) if rows]
        return min(bounds, default=0)

    def _secure(self, statement: EngineStatement, values: Mapping[str, Any] | None = None) -> SecuredStatement:
        self._positions = statement.positions
        engine = self._session.engine_session()
        securer = StatementSecurer(
            session=self._session,
            engine=engine,
            reader=self._service._reader,
            authorizer=self._service._authorizer,
            circumstances=self._circumstances,
            resolver=self._resolver,
            visible=self._visible,
            system_rows=self._system_rows,
            extra_functions=self._service._template_functions,
            plan_limits=self._service._plan_limits,
        )
        return securer.secure(statement, values or {}, tag=self._running.tag)

    def _target_is_missing(self, statement: EngineStatement) -> bool:
        """ALTER TABLE IF EXISTS: whether the one table it names is missing."""
        parsed = self._session.engine_session().parse(statement.spark_sql)
        for relation in parsed.description.relations[:1]:
            resolved = self._resolver.object(relation.parts, self._context)
            return self._visible.find(resolved.mount, resolved.name) is None
        return False

    # Statements that SQE answers itself

    def _answer(self, statement: Statement) -> pa.Table | None:
        match statement:
            case Use():
                self._use(statement)
                return None
            case SetSession():
                self._session.properties.set(statement.name, statement.value)
                return None
            case ResetSession():
                self._session.properties.reset(statement.name)
                return None
            case TransactionControl():
                return None
            case NoOperation():
                if statement.must_exist is not None:
                    self._answers.find_columns(statement.must_exist)
                return None
            case Explain():
                return self._explain(statement)
            case DescribeQuery():
                return self._describe_query(statement)
        rows = self._answers.answer(statement)
        if rows is not None:
            return rows
        changes = CatalogChanges(
            session=self._session,
            authorizer=self._service._authorizer,
            circumstances=self._circumstances,
            resolver=self._resolver,
            visible=self._visible,
            answers=self._answers,
            secure=self._secure,
        )
        with self._session.lock:
            self._running.attach(self._session.engine_session())
            if not changes.apply(statement):
                raise NotSupportedError(f"{type(statement).__name__} is not supported")
        return None

    @property
    def _context(self) -> NameContext:
        return NameContext(catalog=self._session.catalog, schema=self._session.schema)

    def _use(self, statement: Use) -> None:
        """USE schema, USE catalog.schema; one part that is no schema but a catalog means the catalog."""
        mount, schema = self._resolver.schema(statement.name, self._context)
        namespace = schema.namespace
        if not self._visible.has_schema(mount, namespace):
            other = self._resolver.find(statement.name[0]) if len(statement.name) == 1 else None
            if other is None:
                known = [".".join(entry) for entry in self._visible.schemas(mount)]
                from sqe_core.query.suggestions import did_you_mean

                raise UserError(
                    f"Schema {schema} does not exist or you may not see it",
                    code=ErrorCode.SCHEMA_NOT_FOUND,
                    hint=did_you_mean(".".join(namespace), known),
                )
            mount, namespace = other, ("default",)
        self._session.catalog, self._session.schema = mount.name, namespace

    def _explain(self, statement: Explain) -> pa.Table:
        if not isinstance(statement.inner, EngineStatement):
            raise NotSupportedError(
                "EXPLAIN works for queries and for INSERT, UPDATE, DELETE, MERGE and CREATE TABLE AS"
            )
        if statement.mode != "plan":
            raise NotSupportedError(f"EXPLAIN {statement.mode.upper()} is not supported yet", hint="use EXPLAIN")
        with self._session.lock:
            engine = self._session.engine_session()
            self._running.attach(engine)
            with engine.statement_scope():
                plan = self._secure(statement.inner).plan
                return text_table(
                    ("plan_type", "plan"),
                    [(kind, self._scrubber().visible_text(text)) for kind, text in plan.explain()],
                )

    def _describe_query(self, statement: DescribeQuery) -> pa.Table:
        with self._session.lock:
            engine = self._session.engine_session()
            self._running.attach(engine)
            with engine.statement_scope():
                plan = self._secure(statement.query).plan
        from sqe_core.catalog.types import display_type

        return text_table(
            ("column_name", "data_type", "is_nullable"),
            [
                (field.name, display_type(type_text), "YES" if field.nullable else "NO")
                for field, type_text in zip(plan.schema, plan.column_types, strict=True)
            ],
        )

    # information_schema

    def _visible_columns(self, name: ObjectName, columns: tuple[Column, ...]) -> tuple[Column, ...]:
        return self._service._authorizer.visible_columns(self._session.identity, name, columns, self._circumstances)

    def _information_schema(self) -> InformationSchema:
        return InformationSchema(
            self._visible,
            visible_columns=self._visible_columns,
            settings=[(row[0], row[1]) for row in self._session.properties.rows()],
        )

    def _system_rows(self, name: ObjectName) -> pa.Table | None:
        mount = self._resolver.catalog(name.catalog)
        return self._information_schema().rows(mount, name.name)

    def _system_columns(self, resolved: ResolvedName) -> tuple[Column, ...] | None:
        from sqe_core.catalog.information_schema import SCHEMAS

        if resolved.name.namespace != (INFORMATION_SCHEMA,) or resolved.name.name not in SCHEMAS:
            return None
        types = {pa.string(): "string", pa.int64(): "bigint"}
        return tuple(Column(name=field.name, type=types[field.type]) for field in SCHEMAS[resolved.name.name])

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
                error.failure, positions=self._positions, kind=self._kind, query_id=self._running.query_id
            )
        elif isinstance(error, KeyboardInterrupt):
            self._running.cancel()
            shown = self._running.end_error() or InternalError("interrupted")
        else:
            self._service._recorder.unexpected(self._running.query_id, error)
            shown = InternalError(f"Query failed (query id {self._running.query_id})")
        self._scrubber().scrub(shown)
        shown.query_id = self._running.query_id
        return shown
