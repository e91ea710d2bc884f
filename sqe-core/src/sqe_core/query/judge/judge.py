"""Steps 3 to 7 for a statement that Spark executes: inspect, resolve, decide, secure, verify.

Reading order: `Judge.judge` is the way of a statement; `_rewrite` is called again for each view in it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import pyarrow as pa

from sqe_core import __version__
from sqe_core.catalog.registry import Mount
from sqe_core.catalog.visible import VisibleCatalogs
from sqe_core.engine.port import (
    EXACT_WRITES,
    AnalysedPlan,
    EngineExecutionError,
    EngineFailure,
    EnginePlan,
    EngineSession,
    InlinedPlan,
    InlinedRows,
    InlinedSpool,
    RenamedTarget,
    Replacement,
    Restriction,
    SecuredTable,
    SourceColumn,
    TimeTravel,
)
from sqe_core.policy.authorizer import AccessRequest, Authorizer, Circumstances, Verdict
from sqe_core.query.judge import allowed as lists
from sqe_core.query.judge.bind import BoundRelation, RelationBinder, SpooledRows, Usage
from sqe_core.query.judge.facts import Findings, StatementFacts
from sqe_core.query.judge.inspect import PlanLimits, inspect
from sqe_core.query.judge.names import NameContext, NameResolver, action_denied, restricted_error, table_not_found
from sqe_core.query.judge.near_names import NearNames
from sqe_core.query.judge.relation_text import (
    METADATA_PROJECTIONS,
    VISIBLE_ROWS,
    all_columns_text,
    metadata_name,
    metadata_text,
    new_marker,
    no_rows_text,
    table_text,
)
from sqe_core.query.judge.restrict import CompiledRestriction, RestrictionCompiler, facts_of
from sqe_core.query.judge.verify import ExpectedRelation, verify
from sqe_core.query.statements.columns_in_use import ColumnsInUse
from sqe_core.session.session import SessionView
from sqe_core.session.statement_session import StatementSession
from sqe_core.spi.catalog import Column, TableMetadata, ViewMetadata
from sqe_core.spi.errors import AccessDeniedError, InternalError, NotSupportedError, ResourcesError, UserError
from sqe_core.spi.names import ObjectName, quote_part
from sqe_core.spi.policy import Action, SqlMask
from sqe_core.spi.sql import SqlExpression
from sqe_core.sql.statement import (
    SESSION_FUNCTIONS,
    EngineStatement,
    PositionMap,
    SqlReader,
    StatementKind,
    session_marker,
)

MAX_VIEW_DEPTH = 10
# Reads as nothing, and still derives from the column.
_VEIL = SqlMask(expression=SqlExpression(text="CASE WHEN false THEN {col} END"))
_LOOKED_AT = frozenset(
    {"InsertIntoStatement", "DeleteFromTable", "DropColumns", "RenameColumn", "CreateTable", "CreateTableAsSelect"}
)
_CHANGES_ROWS = frozenset({Action.UPDATE, Action.DELETE, Action.MERGE})
_MOST_LOOKED_UP = 1000
_LOOK_UP = "row filter"
VIEW_COLUMNS_PROPERTY = "sqe.view-query-columns"
VIEW_SECURITY_PROPERTY = "sqe.view-security"


Decisions = Mapping[tuple[ObjectName, Action], Verdict]


class SystemRows(Protocol):
    """Rows of ours."""

    def rows(self, name: ObjectName) -> pa.Table | None:
        """Return the rows of a table of ours, or None when there is none of that name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A statement that passed every check; `plan` is the object that executes (ENF-13)."""

    plan: AnalysedPlan
    settings: Mapping[str, str]
    bound: tuple[BoundRelation, ...]
    uses_session_views: bool
    facts: StatementFacts
    may_exist: bool = False
    """Whether it creates what may be there: OR REPLACE, IF NOT EXISTS."""
    if_not_exists: bool = False
    """Whether it does nothing then."""


@dataclass(slots=True, kw_only=True)
class _Collected:
    """What the rewriting of a statement and its views adds up to."""

    expected: list[ExpectedRelation] = field(default_factory=list)
    bound: list[BoundRelation] = field(default_factory=list)
    spools: set[str] = field(default_factory=set)
    session_views: bool = False
    restricted: bool = False
    veiled: set[tuple[tuple[str, ...], str]] = field(default_factory=set)
    """Hidden columns that the text of a stored view may name: of which table, and which."""
    findings: Findings = field(default_factory=Findings)
    check: Restriction | None = None
    """What has to hold for the rows that the statement writes."""
    rows: Restriction | None = None
    """What the statement sees of the rows that it changes."""
    command: Mapping[str, Any] = field(default_factory=dict)
    """The fields of the command as it was parsed, of those that are looked at."""

    def expect(
        self,
        parts: tuple[str, ...],
        *,
        marker: str | None = None,
        columns: tuple[str, ...] = (),
        metadata_table: str | None = None,
        time_travel: TimeTravel | None = None,
        write_target: bool = False,
        compiled: CompiledRestriction | None = None,
        view: bool = False,
        untouched: frozenset[str] = frozenset(),
        changed: bool = False,
    ) -> None:
        """Note what the verifier must find; `parts` begin with the catalog's alias."""
        self.expected.append(
            ExpectedRelation(
                marker=marker,
                catalog=parts[0],
                namespace=parts[1:-1],
                table=parts[-1],
                columns=columns,
                metadata_table=metadata_table,
                time_travel=time_travel,
                write_target=write_target,
                filter_sql=compiled.filter_sql if compiled else None,
                barrier=compiled is not None and compiled.filter_sql is not None,
                masks=compiled.masks if compiled else {},
                view=view,
                untouched=untouched,
                changed=changed,
            )
        )


@dataclass(frozen=True, slots=True)
class _Expanded:
    """A view's text, secured; `lost` are its columns, without case, that depend on what is hidden from the user."""

    plan: EnginePlan
    lost: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """Secures the statements of one session."""

    session: StatementSession
    engine: EngineSession
    reader: SqlReader
    authorizer: Authorizer
    circumstances: Circumstances
    resolver: NameResolver
    visible: VisibleCatalogs
    system: SystemRows
    near: NearNames
    extra_functions: frozenset[str]
    plan_limits: PlanLimits
    tag: str
    in_use: ColumnsInUse
    """The columns of a table that this user may not drop or rename, since policies name them."""
    columns_seen: list[str] = field(default_factory=list)
    """The visible columns of what the statement itself names, for the errors about it (ERR-5)."""
    spooled: Mapping[str, SpooledRows] = field(default_factory=dict)
    """Rows of the client that this statement reads, by the name that its text has for them."""
    command: Action | None = None
    """What the statement does with a table that its plan names as a command's."""
    looked_up: dict[Hashable, Sequence[Any]] = field(default_factory=dict)
    """What the row filters of this statement found in other tables."""

    def judge(self, statement: EngineStatement, parameters: Mapping[str, Any]) -> Judgement:
        """Return the verified plan of a statement; nothing was executed."""
        parsed = self.engine.parse(statement.spark_sql, {**self._session_values(), **parameters})
        collected = _Collected()
        collected.findings.note_text(statement.spark_sql)
        context = NameContext(catalog=self.session.catalog, schema=self.session.schema)
        plan = self._rewrite(parsed, statement.kind, context, statement.positions, collected, views=())
        settings = self._settings(statement, collected.bound)
        analysed = self.engine.analyse(
            plan, tag=self.tag, settings=settings, check=collected.check, rows=collected.rows
        )
        verify(analysed.description, expected=collected.expected, kind=statement.kind, spools=collected.spools)
        if_not_exists = bool(collected.command.get("ignoreIfExists"))
        return Judgement(
            plan=analysed,
            settings=settings,
            bound=tuple(collected.bound),
            uses_session_views=collected.session_views,
            facts=collected.findings.facts(
                collected.bound,
                analysed,
                {
                    self._alias_parts(entry): entry.resolved.name
                    for entry in collected.bound
                    if entry.resolved is not None and not entry.system
                },
                restricted=collected.restricted,
            ),
            may_exist=if_not_exists or any(one.replaces for one in collected.bound),
            if_not_exists=if_not_exists,
        )

    def reads_of_view(self, name: ObjectName, view: ViewMetadata) -> tuple[Sequence[BoundRelation], Decisions]:
        """Return what a stored view names and what is decided about that and about the view; nothing is expanded.

        Raises:
            SqeError: the user may not see something of it.
        """
        parsed = self.engine.parse(self.reader.translate_view(view.representations), self._session_values())
        bound, decisions = self._bound(parsed, StatementKind.QUERY, self._context_of(name, view), None, views=(name,))
        own = AccessRequest(name=name, action=Action.SELECT, loaded=view)
        return bound, {**decisions, **self.authorizer.decide(self.session.identity, [own], self.circumstances)}

    def columns_of_view(self, name: ObjectName, view: ViewMetadata) -> frozenset[str]:
        """Return the columns of a stored view that depend on nothing that is hidden from the user (VIEW-6).

        Raises:
            SqeError: the user cannot read the view at all.
        """
        expanded = self._view_plan(name, view, _Collected(), ())
        return frozenset(seen for inner, seen in _columns_of(name, view) if inner.casefold() not in expanded.lost)

    def _bound(
        self,
        parsed: EnginePlan,
        kind: StatementKind,
        context: NameContext,
        positions: PositionMap | None,
        *,
        views: tuple[object, ...],
    ) -> tuple[Sequence[BoundRelation], Decisions]:
        """Steps 3 to 5 of one text: what it names and what is decided about that; raises for what may not be."""
        inspect(
            parsed.description,
            kind=kind,
            limits=self.plan_limits,
            extra_functions=self.extra_functions,
            positions=positions,
        )
        binder = RelationBinder(
            session=self.session,
            resolver=self.resolver,
            visible=self.visible,
            near=self.near,
            spooled={} if views else self.spooled,
        )
        # A stored view never sees the session views of whoever reads it (VIEW-3).
        own_views = not views or isinstance(views[-1], SessionView)
        bound = binder.bind(
            parsed.description,
            command=None if views else self.command,
            context=context,
            positions=positions,
            session_views=own_views,
        )
        decisions = self._decide(bound)
        self._tell(bound, decisions, binder)
        return bound, decisions

    def _rewrite(
        self,
        parsed: EnginePlan,
        kind: StatementKind,
        context: NameContext,
        positions: PositionMap | None,
        collected: _Collected,
        *,
        views: tuple[object, ...],
    ) -> EnginePlan:
        bound, access = self._bound(parsed, kind, context, positions, views=views)
        collected.bound += bound
        collected.findings.note(parsed.description, access.values())
        if len(collected.bound) > self.plan_limits.max_relations:
            # VIEW-7: two views that read each other's bases twice double with each level.
            most = self.plan_limits.max_relations
            raise ResourcesError(f"The statement has more than {most} tables, those of its views included")
        if not views:
            commands = (node for node in parsed.description.nodes if node.simple_type in _LOOKED_AT)
            collected.command = next((node.fields for node in commands), {})
            self.columns_seen.extend(_seen_columns(access))
        # Who writes without reading is shown as little as who reads a part (META-5).
        collected.restricted |= any(not entry.unrestricted for entry in access.values())
        # Targets at last: how they are changed depends on what the statement reads.
        replacements = [
            self._replacement(entry, access, collected, views)
            for entry in sorted(bound, key=lambda entry: entry.usage is not Usage.READ)
        ]
        return self.engine.rewrite(parsed, replacements) if replacements else parsed

    def _decide(self, bound: Sequence[BoundRelation]) -> Decisions:
        """Step 5: one request for all objects of this plan, for names that mean nothing too (ERR-5)."""
        requests = {
            (entry.resolved.name, action): AccessRequest(name=entry.resolved.name, action=action, loaded=entry.loaded)
            for entry in bound
            if entry.resolved is not None and entry.absent is None and not entry.system
            for action in entry.asked
        }
        return self.authorizer.decide(self.session.identity, tuple(requests.values()), self.circumstances)

    def _tell(self, bound: Sequence[BoundRelation], decisions: Decisions, binder: RelationBinder) -> None:
        """ERR-7: what the user is told first of a statement is which of its names mean nothing to them.

        Only then what they may not do with the others, and only then what cannot be done with those.
        """
        for entry in bound:
            if not _is_seen(entry, decisions):
                if entry.resolved is not None and entry.loaded is not None:
                    self.circumstances.refused(entry.resolved.name)
                raise binder.not_found(entry)
        for entry in bound:
            if entry.resolved is None or entry.system:
                continue
            for action in entry.needed:
                if decisions[entry.resolved.name, action].denied:
                    self.circumstances.refused(entry.resolved.name)
                    raise action_denied(entry.resolved.name, action)
        for entry in bound:
            if entry.usage is Usage.WRITE and isinstance(entry.loaded, ViewMetadata):
                assert entry.resolved is not None
                raise UserError(f"{entry.resolved.name} is a view and cannot be written", position=entry.position)

    def _replacement(
        self,
        entry: BoundRelation,
        access: Decisions,
        collected: _Collected,
        views: tuple[object, ...],
    ) -> Replacement:
        if entry.session_view is not None:
            collected.session_views = True
            return self._session_view(entry, entry.session_view, collected, views)
        if entry.spooled is not None:
            return self._spooled_rows(entry, entry.spooled, collected)
        assert entry.resolved is not None
        if entry.system:
            return self._system_table(entry)
        decision = access[entry.resolved.name, entry.action]
        if entry.usage is not Usage.READ:
            return self._target(entry, access, collected)
        if isinstance(entry.loaded, ViewMetadata):
            return self._stored_view(entry, entry.loaded, decision, collected, views)
        assert isinstance(entry.loaded, TableMetadata)
        if entry.resolved.metadata_table is not None:
            return self._metadata_table(entry, entry.loaded, decision, collected)
        return self._table(entry, entry.loaded, decision, collected, stored_view=any(map(_is_stored, views)))

    def _alias_parts(self, entry: BoundRelation) -> tuple[str, ...]:
        assert entry.resolved is not None
        name = entry.resolved.name
        return (self.session.alias_of(entry.resolved.mount), *name.namespace, name.name)

    def _table(
        self,
        entry: BoundRelation,
        table: TableMetadata,
        access: Verdict,
        collected: _Collected,
        *,
        stored_view: bool,
    ) -> SecuredTable:
        assert entry.resolved is not None
        parts, marker, travel = self._alias_parts(entry), new_marker(), entry.relation.time_travel
        if travel is not None and access.current_only:
            raise unreadable_version()
        if travel is not None and access.restricted and not _is_snapshot(travel):
            raise UserError(
                "A table of which you see a part is read as it is now, or at the id of a snapshot",
                position=entry.position,
            )
        then = None
        if travel is not None:
            then = self.engine.analyse(self.engine.parse(all_columns_text(parts, travel)), tag=self.tag)
        if then is not None and self.authorizer.enforces:
            access = self._at_version(entry, table, access, then)
            collected.restricted |= access.restricted
        if stored_view and access.hidden:
            # VIEW-6: the text of a view may name them. They read as nothing, and what depends on them is not shown.
            collected.veiled.update((parts, column) for column in access.hidden)
            veiled = dict.fromkeys(access.hidden, _VEIL)
            access = replace(access, columns=table.columns, hidden=frozenset(), masks={**access.masks, **veiled})
        if access.filters or access.masks:
            return self._restricted_table(entry, access, collected, parts, marker)
        columns = tuple(column.name for column in access.columns)
        if then is not None:
            columns = _columns_at(then, hidden=access.hidden)
        if not columns:
            raise unreadable_version()  # ENF-10: an empty projection must not mean "all"
        collected.expect(parts, marker=marker, columns=columns, time_travel=travel)
        return SecuredTable(
            index=entry.relation.index,
            sql=table_text(parts, columns, marker=marker, travel=travel),
            visible_name=entry.resolved.name.parts,
        )

    def _at_version(self, entry: BoundRelation, table: TableMetadata, access: Verdict, plan: AnalysedPlan) -> Verdict:
        """Add what is kept of the columns that the table had then and has no more, on which nobody has decided yet.

        `plan` reads all of that version.
        """
        assert entry.resolved is not None
        known = {column.name: column for column in table.columns}
        columns = tuple(
            known.get(field.name) or Column(name=field.name, type=type_text, nullable=field.nullable)
            for field, type_text in zip(plan.schema, plan.column_types, strict=True)
        )
        names = frozenset(column.name for column in columns)
        gone = names - known.keys()
        if not gone or not (access.hidden | access.masks.keys()) <= names:
            return access
        asked = AccessRequest(name=entry.resolved.name, action=Action.SELECT, loaded=replace(table, columns=columns))
        decided = self.authorizer.decide(self.session.identity, [asked], self.circumstances.unrecorded())
        then = decided[asked.name, asked.action]
        shown = {column.name for column in then.columns if column.name not in then.masks}
        if not set(then.filters) <= set(access.filters):
            shown = set()
        return replace(access, hidden=access.hidden | (gone - shown))

    def _restricted_table(
        self, entry: BoundRelation, access: Verdict, collected: _Collected, parts: tuple[str, ...], marker: str
    ) -> SecuredTable:
        assert entry.resolved is not None
        travel = entry.relation.time_travel
        current = tuple(column.name for column in access.columns)

        def visible(columns: Sequence[str]) -> Sequence[str]:
            # Today's policy on old snapshots; what a table had then need not be what it has now (security §14).
            return current if travel is None else [name for name in columns if name not in access.hidden]

        relation = SecuredTable(
            index=entry.relation.index, sql=all_columns_text(parts, travel), visible_name=entry.resolved.name.parts
        )
        compiled = self._compiler().compile(entry.resolved.name, relation, access, marker=marker, visible=visible)
        if not compiled.columns:
            raise unreadable_version()  # ENF-10
        collected.expect(parts, marker=marker, columns=compiled.columns, time_travel=travel, compiled=compiled)
        return replace(relation, restriction=compiled.restriction)

    def _compiler(self) -> RestrictionCompiler:
        return RestrictionCompiler(
            engine=self.engine,
            reader=self.reader,
            masks=self.authorizer.masks.for_statement(self.tag),
            facts=facts_of(self.session.identity),
            values=self._session_values(),
            extra_functions=self.extra_functions,
            plan_limits=self.plan_limits,
            tag=self.tag,
            look_up=self._look_up,
        )

    def _look_up(self, sql: str, values: Mapping[str, Any]) -> Sequence[Any]:
        """Return the values of a query of a row filter, read with the policy's rights and by nobody's names (POL-5)."""
        key = sql, tuple(sorted(values.items()))
        if key not in self.looked_up:
            self.looked_up[key] = self._read_mapping(sql, values)
        return self.looked_up[key]

    def _read_mapping(self, sql: str, values: Mapping[str, Any]) -> Sequence[Any]:
        parsed = self.engine.parse(sql, values)
        names = parsed.description.relations
        if len(names) != 1 or names[0].cte or len(names[0].parts) != 3 or names[0].time_travel is not None:
            raise UserError("A row filter looks into one table, called catalog.schema.table")
        policies = replace(
            self,
            authorizer=self.authorizer.of_policies(),
            circumstances=self.circumstances.unrecorded(),
            resolver=self.resolver.without_policies(),
            visible=self.visible.without_policies(),
            columns_seen=[],
            spooled={},
        )
        collected = _Collected()
        context = NameContext(catalog=self.session.catalog, schema=self.session.schema)
        plan = policies._rewrite(parsed, StatementKind.QUERY, context, None, collected, views=(_LOOK_UP,))
        if any(not isinstance(each.loaded, TableMetadata) or each.resolved is None for each in collected.bound):
            raise UserError("A row filter looks into tables, not into views")
        if collected.restricted or any(each.resolved.metadata_table for each in collected.bound if each.resolved):
            raise UserError("A row filter looks into tables that are not restricted themselves")
        analysed = self.engine.analyse(plan, tag=self.tag)
        verify(analysed.description, expected=collected.expected, kind=StatementKind.QUERY)
        if analysed.description.expressions & lists.policies().denied:
            raise UserError("A row filter looks up what depends on nothing but the rows of the table")
        found: dict[Any, None] = {}
        stream = self.engine.execute(analysed, tag=self.tag)
        try:
            for batch in stream:
                found.update(dict.fromkeys(batch.column(0)))
                if len(found) > _MOST_LOOKED_UP:
                    raise UserError(f"A row filter may find {_MOST_LOOKED_UP} values at most")
        finally:
            stream.close()
        return tuple(found)

    def check_restrictions(
        self, name: ObjectName, mount: Mount, loaded: TableMetadata | ViewMetadata, access: Verdict
    ) -> None:
        """Raise a UserError that says what is wrong with filters and masks, at grant time (POL-15)."""
        relation: SecuredTable | InlinedPlan
        if isinstance(loaded, ViewMetadata):
            # Its columns are enough: what it reads is decided for each of its readers.
            plan = self.engine.parse(no_rows_text([(column.name, column.type) for column in loaded.columns]))
            relation = InlinedPlan(index=0, plan=plan, columns=None, visible_name=name.parts)
        else:
            parts = (self.session.alias_of(mount), *name.namespace, name.name)
            relation = SecuredTable(index=0, sql=all_columns_text(parts, None), visible_name=name.parts)
        self._compiler().check(relation, access, marker=new_marker())

    def _metadata_table(
        self, entry: BoundRelation, table: TableMetadata, access: Verdict, collected: _Collected
    ) -> SecuredTable:
        assert entry.resolved is not None
        kind = entry.resolved.metadata_table
        assert kind is not None
        if entry.relation.time_travel is not None:
            raise NotSupportedError("Metadata tables have no versions to travel to")
        parts, marker = self._alias_parts(entry), new_marker()
        collected.expect(parts, marker=marker, columns=METADATA_PROJECTIONS[kind], metadata_table=metadata_name(kind))
        name = entry.resolved.name
        return SecuredTable(
            index=entry.relation.index,
            sql=metadata_text(parts, kind, marker=marker, partitioned=bool(table.partitioning)),
            visible_name=(name.catalog, *name.namespace, f"{name.name}${kind}"),
        )

    def _target(self, entry: BoundRelation, access: Decisions, collected: _Collected) -> RenamedTarget:
        assert entry.resolved is not None
        parts, name = self._alias_parts(entry), entry.resolved.name
        if entry.replaces and isinstance(entry.loaded, ViewMetadata):
            raise UserError(f"{name} is a view, not a table", hint=f"drop it first: DROP VIEW {name}")
        kept = entry.usage is Usage.CREATE and entry.loaded is not None and not entry.replaces
        limits = [access[name, action] for action in entry.asked if access[name, action].restricted]
        # Spark takes no condition with a subquery below a barrier, but for targets that are changed as ours.
        conditioned = entry.action in (Action.UPDATE, Action.DELETE) and collected.restricted
        if kept or not (limits or conditioned):
            if entry.action is Action.ALTER and isinstance(entry.loaded, TableMetadata):
                self._check_columns(name, entry.loaded, collected.command)
            collected.expect(parts, write_target=True)
        elif entry.action is Action.INSERT and isinstance(entry.loaded, TableMetadata):
            self._restricted_insert(entry, name, entry.loaded, limits, collected, parts)
        elif entry.action in _CHANGES_ROWS:
            parts = self._visible_rows(entry, name, limits, collected, parts)
        else:
            raise restricted_error(name)  # DML-4: it needs the whole table
        absent = entry.usage is Usage.CREATE and entry.loaded is None
        return RenamedTarget(index=entry.relation.index, parts=parts, visible_name=name.parts, absent=absent)

    def _check_columns(self, name: ObjectName, table: TableMetadata, command: Mapping[str, Any]) -> None:
        """STMT-7: a column that a policy names is dropped and renamed by administrators only."""
        fields = [*(command.get("columnsToDrop") or ()), *filter(None, [command.get("column")])]
        gone = {str(field["name"][0]).casefold() for field in fields}
        if not gone:
            return
        for column in sorted(self.in_use.of(name, table)):
            if column.casefold() in gone:
                raise AccessDeniedError(
                    f"Column {quote_part(column)} of {name} is named by a policy or has tags;"
                    " only an administrator may drop or rename it"
                )

    def _restricted_insert(
        self,
        entry: BoundRelation,
        name: ObjectName,
        table: TableMetadata,
        limits: Sequence[Verdict],
        collected: _Collected,
        parts: tuple[str, ...],
    ) -> None:
        """DML-2, DML-3: rows of visible columns, all of which the policy allows to be written."""
        hidden = frozenset[str]().union(*(each.hidden for each in limits))
        masked = frozenset(column for each in limits for column in each.masks)
        visible = [column.name for column in table.columns if column.name not in hidden]
        self._check_insert(entry, collected.command, name, visible, hidden, masked)
        if any(not column.nullable and column.default is None for column in table.columns if column.name in hidden):
            raise restricted_error(name)
        self._expect_target(entry, name, limits, collected, parts, parts, untouched=hidden | masked)

    def _visible_rows(
        self,
        entry: BoundRelation,
        name: ObjectName,
        limits: Sequence[Verdict],
        collected: _Collected,
        parts: tuple[str, ...],
    ) -> tuple[str, ...]:
        """DML-3: what changes rows sees the visible ones and writes allowed ones. Returns what the target is called."""
        if any(each.hidden or each.masks for each in limits):
            raise restricted_error(name)  # DML-2
        if entry.action is Action.DELETE and _is_true(collected.command.get("condition")):
            raise restricted_error(name)
        filters = tuple(dict.fromkeys(one for each in limits for one in each.filters))
        seen = self._all_columns(entry, name, filters, parts)
        collected.rows = seen.restriction
        target = (*parts, VISIBLE_ROWS)
        collected.expect(target, marker=seen.restriction.marker, columns=seen.columns, compiled=seen, changed=True)
        self._expect_target(entry, name, limits, collected, parts, target)
        return target

    def _expect_target(
        self,
        entry: BoundRelation,
        name: ObjectName,
        limits: Sequence[Verdict],
        collected: _Collected,
        parts: tuple[str, ...],
        target: tuple[str, ...],
        *,
        untouched: frozenset[str] = frozenset(),
    ) -> None:
        """Expect that every row that is written satisfies the checks of the policy."""
        checks = tuple(dict.fromkeys(check for each in limits for check in each.checks))
        compiled = None
        if checks and entry.action is not Action.DELETE:
            compiled = self._all_columns(entry, name, checks, parts)
            collected.check = compiled.restriction
        collected.expect(
            target,
            marker=compiled.restriction.marker if compiled else None,
            write_target=True,
            compiled=compiled,
            untouched=untouched,
        )

    def _all_columns(
        self, entry: BoundRelation, name: ObjectName, filters: tuple[SqlExpression, ...], parts: tuple[str, ...]
    ) -> CompiledRestriction:
        """Compile conditions on a target, of which every column can be named."""
        relation = SecuredTable(index=entry.relation.index, sql=all_columns_text(parts, None), visible_name=name.parts)
        return self._compiler().compile(
            name,
            relation,
            Verdict(denied=False, filters=filters),
            marker=new_marker(),
            visible=lambda columns: columns,
        )

    def _check_insert(
        self,
        entry: BoundRelation,
        insert: Mapping[str, Any],
        name: ObjectName,
        visible: Sequence[str],
        hidden: frozenset[str],
        masked: frozenset[str],
    ) -> None:
        if insert.get("overwrite") is not False or insert.get("partitionSpec"):
            raise restricted_error(name)  # DML-4
        written = [str(column) for column in insert.get("userSpecifiedCols") or ()]
        if insert.get("byName") is True and self.spooled:
            # The rows of a bulk ingest, in text of ours. The verifier looks at what is written.
            if masked:
                raise NotSupportedError(f"Rows cannot be ingested into {name}, which has masked columns")
            return
        if not (hidden or masked):
            return
        if not written:
            raise NotSupportedError(
                f"INSERT into {name} needs the names of its columns", hint="write INSERT INTO table (a, b) …"
            )
        folded = {column.lower() for column in written}
        if any(column.lower() in folded for column in masked):
            raise NotSupportedError(f"INSERT may not write a masked column of {name}")
        known = {column.lower() for column in visible}
        unseen = [column for column in written if column.lower() not in known]
        if unseen:
            # What the engine says of a column that is not there, and before it says anything else (ERR-7).
            missing = {"objectName": f"`{unseen[0]}`", "proposal": ""}
            raise EngineExecutionError(
                EngineFailure(
                    condition="UNRESOLVED_COLUMN.WITH_SUGGESTION",
                    sql_state="42703",
                    parameters=missing,
                    fragment=entry.relation.parts[-1],
                    start=entry.relation.start,
                )
            )

    def _system_table(self, entry: BoundRelation) -> InlinedRows:
        assert entry.resolved is not None
        name = entry.resolved.name
        rows = None if entry.relation.time_travel else self.system.rows(name)
        if rows is None:
            raise table_not_found(entry.relation.parts, position=entry.position)
        return InlinedRows(index=entry.relation.index, rows=rows, visible_name=name.parts)

    def _spooled_rows(self, entry: BoundRelation, rows: SpooledRows, collected: _Collected) -> InlinedSpool:
        if rows.token in collected.spools:
            raise InternalError("The rows of a statement would be read twice")
        collected.spools.add(rows.token)
        return InlinedSpool(
            index=entry.relation.index, files=rows.files, token=rows.token, visible_name=entry.relation.parts
        )

    def _session_view(
        self, entry: BoundRelation, view: SessionView, collected: _Collected, views: tuple[object, ...]
    ) -> InlinedPlan:
        """STMT-5: the view's text is secured anew, under the names of its creation."""
        if entry.relation.time_travel is not None:
            raise UserError(f"View {view.name} has no versions to travel to", position=entry.position)
        context = NameContext(catalog=view.catalog, schema=view.schema)
        plan = self._expand(view, view.spark_sql, context, collected, views).plan
        return InlinedPlan(index=entry.relation.index, plan=plan, columns=view.renames, visible_name=(view.name,))

    def _stored_view(
        self,
        entry: BoundRelation,
        view: ViewMetadata,
        access: Verdict,
        collected: _Collected,
        views: tuple[object, ...],
    ) -> InlinedPlan:
        """VIEW-1: the stored text is judged like any statement, under the names stored with it."""
        assert entry.resolved is not None
        if entry.relation.time_travel is not None:
            raise UserError(f"View {entry.resolved.name} has no versions to travel to")
        name = entry.resolved.name
        expanded = self._view_plan(name, view, collected, views)
        columns = _columns_of(name, view)
        allowed = {column.name for column in access.columns}
        if not any(map(_is_stored, views)):
            allowed -= {seen for inner, seen in columns if inner.casefold() in expanded.lost}
        if not allowed:
            raise unreadable_view(str(name))
        everything = InlinedPlan(
            index=entry.relation.index, plan=expanded.plan, columns=columns, visible_name=entry.resolved.name.parts
        )
        if not access.filters and not access.masks:
            return replace(everything, columns=tuple(pair for pair in columns if pair[1] in allowed))
        # VIEW-2: a policy on the view holds besides those on what it reads. Columns that read as nothing mislead it.
        if expanded.lost:
            raise unreadable_view(str(name))
        marker = new_marker()
        compiled = self._compiler().compile(
            name,
            everything,
            access,
            marker=marker,
            visible=lambda names: [column for column in names if column in allowed],
        )
        collected.expect(("", name.name), marker=marker, columns=compiled.columns, compiled=compiled, view=True)
        return replace(everything, restriction=compiled.restriction)

    def _context_of(self, name: ObjectName, view: ViewMetadata) -> NameContext:
        known = self.resolver.find(view.default_catalog) if view.default_catalog else None
        return NameContext(
            catalog=known.name if known else name.catalog, schema=view.default_namespace or name.namespace
        )

    def _view_plan(
        self, name: ObjectName, view: ViewMetadata, collected: _Collected, views: tuple[object, ...]
    ) -> _Expanded:
        text = self.reader.translate_view(view.representations)
        return self._expand(name, text, self._context_of(name, view), collected, views)

    def _expand(
        self, view: object, spark_sql: str, context: NameContext, collected: _Collected, views: tuple[object, ...]
    ) -> _Expanded:
        if view in views:
            raise UserError(f"View {_view_name(view)} reads itself")
        if len(views) >= MAX_VIEW_DEPTH:
            raise UserError(f"Views may be nested {MAX_VIEW_DEPTH} deep")
        try:
            collected.findings.note_text(spark_sql)
            parsed = self.engine.parse(spark_sql, self._session_values())
            plan = self._rewrite(parsed, StatementKind.QUERY, context, None, collected, views=(*views, view))
            # Alone, before anything stands around it: a column that the view's table has lost must not be found in
            # the query that reads the view (VIEW-3).
            analysed = self.engine.analyse(plan, tag=self.tag)
            return _Expanded(plan, _lost_columns(analysed, collected.veiled) if collected.veiled else frozenset())
        except (UserError, EngineExecutionError) as error:
            # The text of a stored view is somebody else's, and names what this user may not know (VIEW-4, ERR-3).
            if isinstance(view, SessionView) or isinstance(error, AccessDeniedError):
                raise
            raise unreadable_view(_view_name(view)) from error

    def _session_values(self) -> Mapping[str, Any]:
        """FUNC-2: who and where are values of our session, the invoker's in views too; Spark knows neither."""
        session = self.session
        schema = ".".join(session.schema)
        values = {
            "current_user": session.identity.username,
            "session_user": session.identity.username,
            "current_catalog": session.catalog,
            "current_schema": schema,
            "current_database": schema,
            "current_role": ",".join(sorted(session.identity.roles)) or None,
            "version": f"SQE {__version__}",
        }
        return {session_marker(name): values[name] for name in SESSION_FUNCTIONS}

    def _settings(self, statement: EngineStatement, bound: Sequence[BoundRelation]) -> Mapping[str, str]:
        if statement.kind is StatementKind.QUERY:
            return {}  # they are all about what is written
        settings: dict[str, str] = dict(EXACT_WRITES) if statement.exact_writes else {}
        codec = self.session.properties["iceberg.compression_codec"]
        if codec != "zstd":
            settings["spark.sql.iceberg.compression-codec"] = "uncompressed" if codec == "none" else codec
        if statement.kind is StatementKind.INSERT:
            # Features §2.8: OVERWRITE replaces an unpartitioned table whole, else the partitions that occur.
            partitioned = any(
                isinstance(entry.loaded, TableMetadata) and entry.loaded.partitioning
                for entry in bound
                if entry.usage is Usage.WRITE
            )
            dynamic = partitioned if statement.overwrite_dynamic is None else statement.overwrite_dynamic
            settings["spark.sql.sources.partitionOverwriteMode"] = "dynamic" if dynamic else "static"
        return settings


def _is_stored(view: object) -> bool:
    return isinstance(view, ObjectName)


def _columns_of(name: ObjectName, view: ViewMetadata) -> tuple[tuple[str, str], ...]:
    """Return (name in the view's text, visible name) of each column."""
    inner = [part for part in view.properties.get(VIEW_COLUMNS_PROPERTY, "").split("\n") if part]
    visible = [column.name for column in view.columns]
    if inner and len(inner) != len(visible):
        raise InternalError(f"View {name} is damaged: its columns do not fit its text")
    return tuple(zip(inner or visible, visible, strict=True))


def _lost_columns(plan: AnalysedPlan, veiled: Set[tuple[tuple[str, ...], str]]) -> frozenset[str]:
    """Return the output columns, without case, that derive from veiled ones; raise when its rows do."""
    lineage = plan.lineage()

    def is_veiled(source: SourceColumn) -> bool:
        return (source.relation, source.column) in veiled

    if any(map(is_veiled, lineage.indirect)):
        raise UserError("Which rows there are depends on what is hidden")
    return frozenset(name.casefold() for name, sources in lineage.columns if any(map(is_veiled, sources)))


def _is_seen(entry: BoundRelation, decisions: Decisions) -> bool:
    """Whether a name means something to the user: what they may read, or else do with it all that they want."""
    if entry.missing or entry.resolved is None or entry.system or entry.loaded is None:
        return not entry.missing
    name = entry.resolved.name
    select = decisions[name, Action.SELECT]
    if entry.resolved.metadata_table is not None:
        return isinstance(entry.loaded, TableMetadata) and select.unrestricted  # META-4
    if entry.usage is Usage.CREATE and decisions[name, entry.action].denied:
        return True  # whoever may not create anything here learns that, and not what is here
    return not select.denied or not any(decisions[name, action].denied for action in entry.needed)


def _seen_columns(access: Decisions) -> Iterator[str]:
    """Yield the columns that all that a statement does with a table may see: it may write what it cannot read."""
    for name in dict.fromkeys(name for name, _ in access):
        about = [entry for (of, _), entry in access.items() if of == name]
        if not any(entry.denied for entry in about):
            yield from (
                column.name for column in about[0].columns if not any(column.name in entry.hidden for entry in about)
            )


def _columns_at(plan: AnalysedPlan, *, hidden: frozenset[str]) -> tuple[str, ...]:
    """Return the visible columns of a plan that reads all of an old version."""
    names = plan.schema.names
    if hidden and not hidden <= set(names):
        # Today's policy on old snapshots: a column it names that did not exist then denies (security §14).
        raise unreadable_version()
    return tuple(name for name in names if name not in hidden)


def unreadable_version() -> UserError:
    """Return the error for a version that today's policy cannot be applied to."""
    return UserError("This version of the table cannot be read under today's policy")


def unreadable_view(name: str) -> UserError:
    """Return the error for whatever is wrong below a stored view."""
    return UserError(f"View {name} is out of date, or needs what you may not see")


def _is_snapshot(travel: TimeTravel) -> bool:
    """Whether it is the id of a snapshot, which nobody guesses; times and names would tell of a table's history."""
    return travel.version is not None and travel.version.lstrip("-").isdigit()


def _is_true(condition: object) -> bool:
    """Whether a condition is missing, or written as the literal."""
    return isinstance(condition, Mapping) and condition.get("value") is True


def _view_name(view: object) -> str:
    return view.name if isinstance(view, SessionView) else str(view)
