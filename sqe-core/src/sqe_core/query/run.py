"""One statement on its way through steps 2 to 8. Knows enough to explain an error in the user's own terms."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from sqe_core.catalog.information_schema import SCHEMAS, InformationSchema
from sqe_core.catalog.types import display_type
from sqe_core.catalog.visible import INFORMATION_SCHEMA, VisibleCatalogs
from sqe_core.engine.port import EngineExecutionError, ResultStream
from sqe_core.policy.authorizer import Circumstances
from sqe_core.query.answers import MetadataAnswers, text_table
from sqe_core.query.ddl import CatalogChanges
from sqe_core.query.errors import VisibleNames, translate
from sqe_core.query.limits import bounded
from sqe_core.query.names import NameContext, ResolvedName
from sqe_core.query.parameters import bind_parameters
from sqe_core.query.parts import QueryParts
from sqe_core.query.result import StatementResult
from sqe_core.query.running import RunningStatement
from sqe_core.query.scrubber import Scrubber
from sqe_core.query.secured import SecuredStatement, StatementSecurer
from sqe_core.query.suggestions import did_you_mean
from sqe_core.session.session import Session
from sqe_core.spi.catalog import Column
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
    Statement,
    StatementKind,
    TextLimits,
    TransactionControl,
    Use,
)

Parameters = Sequence[Any] | Mapping[str, Any]
Finish = Callable[..., None]


class StatementRun:
    """One statement of one session. `run` is the way in; `explain_error` the way out when it fails."""

    def __init__(
        self,
        parts: QueryParts,
        session: Session,
        running: RunningStatement,
        visible: VisibleCatalogs,
        planned: Callable[[StatementKind, SecuredStatement | None], None],
    ) -> None:
        self._parts = parts
        self._session = session
        self._running = running
        self._planned = planned
        self._positions: PositionMap | None = None
        self._kind = StatementKind.UTILITY
        self._columns_seen: list[str] = []
        self._resolver = parts.resolver
        self._visible = visible
        self._circumstances = Circumstances(protocol=session.protocol, query_id=running.query_id)
        self._answers = MetadataAnswers(
            session=session,
            visible=self._visible,
            resolver=self._resolver,
            visible_columns=self._visible_columns,
            functions=parts.functions,
            system_columns=self._system_columns,
        )

    def run(self, sql: str, parameters: Parameters, dialect: str, finish: Finish) -> StatementResult:
        """Classify the statement and take the way that its kind has."""
        statement = self._parts.reader.read(
            sql, dialect=dialect, limits=TextLimits(max_bytes=self._parts.limits.max_sql_bytes)
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
        bounds = [rows for rows in (self._parts.limits.max_result_rows, own) if rows]
        return min(bounds, default=0)

    def _secure(self, statement: EngineStatement, values: Mapping[str, Any] | None = None) -> SecuredStatement:
        self._positions = statement.positions
        engine = self._session.engine_session()
        securer = StatementSecurer(
            session=self._session,
            engine=engine,
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
            columns_seen=self._columns_seen,
        )
        return securer.secure(statement, values or {})

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
            authorizer=self._parts.authorizer,
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
        return text_table(
            ("column_name", "data_type", "is_nullable"),
            [
                (field.name, display_type(type_text), "YES" if field.nullable else "NO")
                for field, type_text in zip(plan.schema, plan.column_types, strict=True)
            ],
        )

    # information_schema

    def _visible_columns(self, name: ObjectName, columns: tuple[Column, ...]) -> tuple[Column, ...]:
        return self._parts.authorizer.visible_columns(self._session.identity, name, columns, self._circumstances)

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
                error.failure,
                positions=self._positions,
                kind=self._kind,
                query_id=self._running.query_id,
                names=VisibleNames(columns=lambda: self._columns_seen, catalogs=self._session.catalog_names()),
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
