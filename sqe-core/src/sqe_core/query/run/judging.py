"""Judging: the engine session that a statement has for itself, and steps 3 to 7 for what it gives to the engine."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from sqe_core.catalog.information_schema import view_text
from sqe_core.engine.port import EngineSession, EngineState
from sqe_core.query.answers.system_tables import NoSystemRows, SystemTables
from sqe_core.query.context import StatementContext
from sqe_core.query.judge.bind import BoundRelation, RelationBinder, SpooledRows, fields_of_command
from sqe_core.query.judge.judge import Judge, Judgement
from sqe_core.query.judge.sights import ViewSight, ViewSights
from sqe_core.query.statements.columns_in_use import ColumnsInUse
from sqe_core.query.statements.handler import RunsInEngine
from sqe_core.spi.catalog import Column, TableMetadata, ViewMetadata
from sqe_core.spi.errors import ObjectNotFoundError
from sqe_core.spi.identity import Identity
from sqe_core.spi.names import ObjectName
from sqe_core.spi.policy import Action
from sqe_core.sql.statement import SESSION_FUNCTIONS, EngineStatement, session_marker

_COMING = (EngineState.PREPARING, EngineState.STARTING, EngineState.LOST)
_LOOK_SECS = 0.05
_NO_ROWS: Mapping[str, SpooledRows] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Judging:
    """Judges for one statement."""

    context: StatementContext

    # The engine session

    @contextmanager
    def scope(self) -> Iterator[EngineSession]:
        """The statement has an engine session to itself, and loads each table once."""
        with self.session() as engine, engine.statement_scope():
            yield engine

    @contextmanager
    def session(self) -> Iterator[EngineSession]:
        self.wait_for_engine()
        with self.context.session.engine() as engine:
            self.context.running.attach(engine)
            yield engine

    def wait_for_engine(self) -> None:
        """Wait while the engine starts; a statement that is cancelled meanwhile waits no longer."""
        while self.context.parts.engine.state in _COMING:
            self.context.running.check()
            time.sleep(_LOOK_SECS)

    # Statements

    def judge(
        self,
        statement: EngineStatement,
        values: Mapping[str, Any] = MappingProxyType({}),
        spooled: Mapping[str, SpooledRows] = _NO_ROWS,
    ) -> Judgement:
        context = self.context
        context.terms.positions = statement.positions
        context.resolver.used.clear()
        judge = self.new_judge(spooled, command=self._command(statement))
        own = SystemTables(context, self, statement.narrowed, values, statement.spark_sql)
        judgement = replace(judge, system=own).judge(statement, values)
        context.resolver.ensure_mounted()
        return judgement

    def new_judge(self, spooled: Mapping[str, SpooledRows] = _NO_ROWS, *, command: Action | None = None) -> Judge:
        """Make what judges a statement; `command` is what that does with a table which it names as a command."""
        context, parts = self.context, self.context.parts
        return Judge(
            session=context.session,
            engine=context.session.engine_session(),
            reader=parts.reader,
            authorizer=parts.authorizer,
            circumstances=context.circumstances,
            resolver=context.resolver,
            visible=context.visible,
            system=SystemTables(context, self),
            near=context.near,
            extra_functions=parts.template_functions,
            plan_limits=parts.plan_limits,
            tag=context.running.tag,
            in_use=ColumnsInUse(parts.authorizer, context.identity, by_admin=context.is_admin),
            columns_seen=context.terms.columns,
            spooled=spooled,
            command=command,
            trino=context.trino,
        )

    def bind(
        self, statement: EngineStatement, seen: StatementContext
    ) -> tuple[Sequence[BoundRelation], Mapping[str, Any]]:
        """Say what the names of a statement are for whoever sees `seen`, and the fields of its command.

        Nothing is decided and nothing runs.
        """
        self.context.terms.positions = statement.positions
        values = dict.fromkeys((*map(session_marker, SESSION_FUNCTIONS), *statement.parameters))
        binder = RelationBinder(
            session=seen.session,
            resolver=seen.resolver,
            visible=seen.visible,
            near=self.context.near,
            command=self._command(statement),
            context=seen.names,
            positions=statement.positions,
        )
        with self.scope() as engine:
            description = engine.parse(statement.spark_sql, values).description
            return binder.bind(description), fields_of_command(description)

    def is_void(self, statement: EngineStatement) -> bool:
        """Whether nothing is to be done: ALTER TABLE IF EXISTS, and the one table that it names is missing."""
        if not statement.if_exists:
            return False
        parsed = self.context.session.engine_session().parse(statement.spark_sql)
        for relation in parsed.description.relations[:1]:
            try:
                resolved = self.context.resolver.object(relation.parts, self.context.names)
            except ObjectNotFoundError:
                return True
            return self.context.visible.find(resolved.mount, resolved.name) is None
        return False

    def _command(self, statement: EngineStatement) -> Action | None:
        handler = self.context.handlers.of(statement)
        assert isinstance(handler, RunsInEngine)
        return handler.command(statement)

    # What of tables and views exists for the user

    def visible_columns(self, name: ObjectName, loaded: TableMetadata | ViewMetadata) -> tuple[Column, ...]:
        context = self.context
        return context.parts.authorizer.visible_columns(context.identity, name, loaded, context.circumstances)

    def columns_of(self, name: ObjectName, loaded: TableMetadata | ViewMetadata) -> tuple[Column, ...]:
        """Return the columns of a table or view that exist for this user (STMT-9, VIEW-4)."""
        columns = self.visible_columns(name, loaded)
        if not isinstance(loaded, ViewMetadata) or not self.context.visible.enforced:
            return columns
        seen = self._sight_of(name, loaded).columns
        return tuple(column for column in columns if column.name in seen)

    def is_readable(self, name: ObjectName, view: ViewMetadata, somebody: Identity) -> bool:
        """Whether somebody else can read a view to the bottom, as far as the policies say."""
        context = self.context
        with self.scope():
            judge = replace(
                self.new_judge(),
                session=context.session.as_of(somebody),
                circumstances=context.circumstances.of_another().unrecorded(),
                system=NoSystemRows(context.visible.own),
            )
            return bool(ViewSights().of(name, view, judge).columns)

    def text_of(self, name: ObjectName, view: ViewMetadata) -> str | None:
        """Return the text of a view, or None for whoever may not read all of it."""
        if self.context.visible.enforced and not self._sight_of(name, view).complete:
            return None
        return view_text(view)

    def _sight_of(self, name: ObjectName, view: ViewMetadata) -> ViewSight:
        with self.scope():
            # What a listing leaves out is no refusal of the statement, and no view of listings lists for itself.
            judge = replace(
                self.new_judge(),
                circumstances=self.context.circumstances.unrecorded(),
                system=NoSystemRows(self.context.visible.own),
            )
            return self.context.sights.of(name, view, judge)
