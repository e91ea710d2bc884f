"""Steps 3 to 7 for a statement that Spark executes: inspect, resolve, decide, secure, verify.

Reading order: `Judge.judge` is the way of a statement; `rewrite` is called again for each view in it. What becomes of a
name is in `reads.py`, `views.py` and `targets.py`, and what was promised of it in `promise.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import pyarrow as pa

from sqe_core import __version__
from sqe_core.catalog.registry import Mount
from sqe_core.catalog.visible import VisibleCatalogs
from sqe_core.engine.port import (
    EXACT_WRITES,
    TIME_ZONE,
    AnalysedPlan,
    EnginePlan,
    EngineSession,
    InlinedPlan,
    Replacement,
    SecuredTable,
)
from sqe_core.policy.authorizer import AccessRequest, Authorizer, Circumstances, Verdict
from sqe_core.query.judge.bind import BoundRelation, RelationBinder, SpooledRows, Usage, fields_of_command
from sqe_core.query.judge.facts import StatementFacts
from sqe_core.query.judge.inspect import PlanLimits, inspect
from sqe_core.query.judge.mappings import Mappings
from sqe_core.query.judge.names import NameContext, NameResolver, action_denied
from sqe_core.query.judge.near_names import NearNames
from sqe_core.query.judge.promise import Promise
from sqe_core.query.judge.reads import metadata_table, secured_table, spooled_rows, system_table
from sqe_core.query.judge.relation_text import all_columns_text, new_marker, no_rows_text
from sqe_core.query.judge.restrict import RestrictionCompiler, facts_of
from sqe_core.query.judge.targets import Target
from sqe_core.query.judge.verify import verify
from sqe_core.query.judge.views import (
    Views,
    columns_of,
    context_of,
    expand_stored,
    in_stored_view,
    session_view,
    stored_view,
)
from sqe_core.query.statements.columns_in_use import ColumnsInUse
from sqe_core.session.session import SessionView
from sqe_core.session.statement_session import StatementSession
from sqe_core.spi.catalog import TableMetadata, ViewMetadata
from sqe_core.spi.errors import NotSupportedError, ResourcesError, UserError
from sqe_core.spi.names import ObjectName
from sqe_core.spi.policy import Action
from sqe_core.sql.statement import (
    SESSION_FUNCTIONS,
    EngineStatement,
    PositionMap,
    SqlReader,
    StatementKind,
    session_marker,
)

Decisions = Mapping[tuple[ObjectName, Action], Verdict]


class SystemRows(Protocol):
    """Rows of ours."""

    def rows(self, name: ObjectName, *, by_statement: bool = False) -> pa.Table | None:
        """Return the rows of a table of ours, or None when there is none of that name.

        `by_statement` is whether the statement itself names it, and not a view.
        """


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
    trino: bool = False
    """Whether Trino's own columns are expected."""
    mappings: Mappings = field(default_factory=Mappings)
    """What the row filters of this statement found in other tables."""

    @property
    def names(self) -> NameContext:
        return NameContext(catalog=self.session.catalog, schema=self.session.schema)

    def judge(self, statement: EngineStatement, parameters: Mapping[str, Any]) -> Judgement:
        parsed = self.engine.parse(statement.spark_sql, {**self.session_values(), **parameters})
        promise = Promise()
        promise.findings.note_text(statement.spark_sql)
        plan = self.rewrite(parsed, statement.kind, self.names, statement.positions, promise, views=())
        settings = self._settings(statement, promise.bound)
        if settings[TIME_ZONE] != "UTC" and (promise.check is not None or promise.rows is not None):
            raise NotSupportedError(
                "A table of which you see some rows is changed in UTC only", hint="SET TIME ZONE 'UTC' first"
            )
        analysed = self.engine.analyse(plan, tag=self.tag, settings=settings, check=promise.check, rows=promise.rows)
        verify(analysed.description, expected=promise.expected, kind=statement.kind, spools=promise.spools)
        if_not_exists = bool(promise.command.get("ignoreIfExists"))
        return Judgement(
            plan=analysed,
            settings=settings,
            bound=tuple(promise.bound),
            uses_session_views=promise.session_views,
            facts=promise.findings.facts(
                promise.bound,
                analysed,
                {self.alias_parts(each): each.name for each in promise.bound if each.resolved and not each.system},
                restricted=promise.restricted,
            ),
            may_exist=if_not_exists or any(one.replaces for one in promise.bound),
            if_not_exists=if_not_exists,
        )

    def reads_of_view(self, name: ObjectName, view: ViewMetadata) -> tuple[Sequence[BoundRelation], Decisions]:
        """Return what a stored view names and what is decided about that and about the view; nothing is expanded."""
        parsed = self.engine.parse(self.reader.translate_view(view.representations), self.session_values())
        bound, decisions = self._bound(parsed, StatementKind.QUERY, context_of(self, name, view), None, views=(name,))
        own = AccessRequest(name=name, action=Action.SELECT, loaded=view)
        return bound, {**decisions, **self.authorizer.decide(self.session.identity, [own], self.circumstances)}

    def columns_of_view(self, name: ObjectName, view: ViewMetadata) -> frozenset[str]:
        """Return the columns of a stored view that depend on nothing that is hidden from the user (VIEW-6)."""
        expanded = expand_stored(self, name, view, Promise(), ())
        return frozenset(seen for inner, seen in columns_of(name, view) if inner.casefold() not in expanded.lost)

    def _bound(
        self,
        parsed: EnginePlan,
        kind: StatementKind,
        context: NameContext,
        positions: PositionMap | None,
        *,
        views: Views,
    ) -> tuple[Sequence[BoundRelation], Decisions]:
        """Steps 3 to 5 of one text: what it names and what is decided about that; raises for what may not be."""
        inspect(
            parsed.description,
            kind=kind,
            limits=self.plan_limits,
            extra_functions=self.extra_functions,
            positions=positions,
        )
        # A stored view never sees the session views of whoever reads it (VIEW-3).
        own_views = not views or isinstance(views[-1], SessionView)
        binder = RelationBinder(
            session=self.session,
            resolver=self.resolver,
            visible=self.visible,
            near=self.near,
            command=None if views else self.command,
            context=context,
            positions=positions,
            session_views=own_views,
            spooled={} if views else self.spooled,
        )
        bound = binder.bind(parsed.description)
        decisions = self._decide(bound)
        self._tell(bound, decisions, binder)
        return bound, decisions

    def rewrite(
        self,
        parsed: EnginePlan,
        kind: StatementKind,
        context: NameContext,
        positions: PositionMap | None,
        promise: Promise,
        *,
        views: Views,
    ) -> EnginePlan:
        """Return a text of which every name is in its secured form."""
        bound, access = self._bound(parsed, kind, context, positions, views=views)
        promise.bound += bound
        promise.findings.note(parsed.description, access.values())
        if len(promise.bound) > self.plan_limits.max_relations:
            # VIEW-7: two views that read each other's bases twice double with each level.
            most = self.plan_limits.max_relations
            raise ResourcesError(f"The statement has more than {most} tables, those of its views included")
        if not views:
            promise.command = fields_of_command(parsed.description)
            self.columns_seen.extend(_seen_columns(access))
        # Who writes without reading is shown as little as who reads a part (META-5).
        promise.restricted |= any(not entry.unrestricted for entry in access.values())
        # Targets at last: how they are changed depends on what the statement reads.
        replacements = [
            self._replacement(entry, access, promise, views)
            for entry in sorted(bound, key=lambda entry: entry.usage is not Usage.READ)
        ]
        return self.engine.rewrite(parsed, replacements) if replacements else parsed

    def _decide(self, bound: Sequence[BoundRelation]) -> Decisions:
        """Step 5: one request for all objects of this plan, for names that mean nothing too (ERR-5)."""
        requests = {
            (entry.name, action): AccessRequest(name=entry.name, action=action, loaded=entry.loaded)
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
                    self.circumstances.refused(entry.name)
                raise binder.not_found(entry)
        for entry in bound:
            if entry.resolved is None or entry.system:
                continue
            for action in entry.needed:
                if decisions[entry.name, action].denied:
                    self.circumstances.refused(entry.name)
                    raise action_denied(entry.name, action)
        for entry in bound:
            if entry.usage is Usage.WRITE and isinstance(entry.loaded, ViewMetadata):
                raise UserError(
                    f"{entry.name} is a view and cannot be written", position=entry.position, condition="NOT_SUPPORTED"
                )

    def _replacement(self, entry: BoundRelation, access: Decisions, promise: Promise, views: Views) -> Replacement:
        if entry.session_view is not None:
            return session_view(self, entry, entry.session_view, promise, views)
        if entry.spooled is not None:
            return spooled_rows(entry, entry.spooled, promise)
        if entry.system:
            return system_table(self, entry, by_statement=not views)
        if entry.usage is not Usage.READ:
            return Target.of(self, entry, access, promise).renamed()
        decision = access[entry.name, entry.action]
        if isinstance(entry.loaded, ViewMetadata):
            return stored_view(self, entry, entry.loaded, decision, promise, views)
        assert isinstance(entry.loaded, TableMetadata)
        assert entry.resolved is not None
        if entry.resolved.metadata_table is not None:
            return metadata_table(self, entry, entry.resolved.metadata_table, entry.loaded, promise)
        return secured_table(self, entry, entry.loaded, decision, promise, in_stored_view=in_stored_view(views))

    def alias_parts(self, entry: BoundRelation) -> tuple[str, ...]:
        assert entry.resolved is not None
        name = entry.name
        return (self.session.alias_of(entry.resolved.mount), *name.namespace, name.name)

    def compiler(self) -> RestrictionCompiler:
        return RestrictionCompiler(
            engine=self.engine,
            reader=self.reader,
            masks=self.authorizer.masks.for_statement(self.tag),
            facts=facts_of(self.session.identity),
            values=self.session_values(),
            extra_functions=self.extra_functions,
            plan_limits=self.plan_limits,
            tag=self.tag,
            look_up=partial(self.mappings.look_up, self),
        )

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
        self.compiler().check(name, relation, access, marker=new_marker())

    def session_values(self) -> Mapping[str, Any]:
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
            "current_timezone": session.time_zone,
            "version": f"SQE {__version__}",
        }
        return {session_marker(name): values[name] for name in SESSION_FUNCTIONS}

    def _settings(self, statement: EngineStatement, bound: Sequence[BoundRelation]) -> Mapping[str, str]:
        # UTC is said too: what was cancelled in this engine session may be about to end, with another zone.
        settings = {TIME_ZONE: self.session.time_zone}
        if statement.kind is StatementKind.QUERY:
            return settings  # the others are about what is written
        settings |= EXACT_WRITES if statement.exact_writes else {}
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


def _is_seen(entry: BoundRelation, decisions: Decisions) -> bool:
    """Whether a name means something to the user: what they may read, or else do with it all that they want."""
    if entry.missing or entry.resolved is None or entry.system or entry.loaded is None:
        return not entry.missing
    name = entry.name
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
