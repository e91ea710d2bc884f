"""What judging found out about a statement, once, as one value: for history, audit, observers, lineage and caches."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Literal, cast

from sqe_core.engine.port import AnalysedPlan, EngineExecutionError, PlanDescription, PlanLineage, SourceColumn
from sqe_core.policy.authorizer import Verdict
from sqe_core.query.judge import allowed
from sqe_core.query.judge.bind import BoundRelation, Usage
from sqe_core.spi.catalog import TableMetadata, ViewMetadata
from sqe_core.spi.events import ColumnSource, ColumnUse
from sqe_core.spi.names import ObjectName
from sqe_core.spi.policy import Action
from sqe_core.sql.statement import SESSION_FUNCTIONS, session_marker

_log = logging.getLogger(__name__)
_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions."
# Classes and functions that say what time it is; what depends on chance is on the list for policies.
_TIMES = frozenset(f"{_EXPRESSIONS}{name}" for name in ("CurrentDate", "CurrentTime", "CurrentTimestamp", "Now"))
_CLOCKS = frozenset(
    ("current_date", "current_time", "current_timestamp", "curdate", "localtimestamp", "now", "unix_timestamp")
)
_ABOUT_THE_USER = tuple(session_marker(name) for name in SESSION_FUNCTIONS if name != "version")


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectFact:
    """A table or a view that the statement reads, writes or makes, as its catalog had it when it was judged.

    Attributes:
        uuid: the catalog's own id; None for what is made.
        snapshot_id: the version that is read, where it is known by its number.
        columns: those that the statement reads.
        actions: what is done with it.
    """

    name: ObjectName
    usage: Usage
    actions: tuple[Action, ...]
    uuid: str | None = None
    snapshot_id: int | None = None
    columns: tuple[str, ...] = ()
    is_view: bool = False


@dataclass(frozen=True, kw_only=True)
class StatementFacts:
    """All of it; views are counted with what they read.

    Attributes:
        functions: what the statement and its views call, in lower case.
        deterministic: whether it answers the same as long as its objects are the same.
        policy_versions: of the policies that decided.
        restricted: whether something of what it reads is kept from the user.
        scope: `user` where the answer is that of one user alone: policies keep something, a catalog knows who asks, or
            the statement does.
    """

    functions: frozenset[str]
    deterministic: bool
    policy_versions: tuple[str, ...]
    restricted: bool
    scope: Literal["everybody", "user"]
    _named: tuple[BoundRelation, ...]
    _plan: AnalysedPlan
    _names: Mapping[tuple[str, ...], ObjectName]
    """What users call the objects, by the parts of the engine's names."""

    @cached_property
    def objects(self) -> tuple[ObjectFact, ...]:
        """Return them in the order of the text, those of views after their view."""
        read: dict[ObjectName, dict[str, None]] = {}
        for source in (*chain.from_iterable(self.columns.values()), *self.conditions):
            read.setdefault(source.name, {})[source.column] = None
        return tuple(_object(one, read) for one in self._named)

    @property
    def read(self) -> tuple[ObjectFact, ...]:
        """The tables and views that are read."""
        return tuple(one for one in self.objects if one.usage is Usage.READ or Action.SELECT in one.actions)

    @property
    def written(self) -> tuple[ObjectFact, ...]:
        return tuple(one for one in self.objects if one.usage is not Usage.READ)

    @cached_property
    def columns(self) -> Mapping[str, tuple[ColumnSource, ...]]:
        """Return what each column of the result, or of the table that is written, is made of."""
        return {name: self._sources(sources) for name, sources in self._lineage.columns}

    @cached_property
    def conditions(self) -> tuple[ColumnSource, ...]:
        """Return the columns that decide about its rows."""
        return self._sources(self._lineage.indirect)

    @cached_property
    def _lineage(self) -> PlanLineage:
        """The engine's word, asked once and only when somebody wants to know, while the statement runs."""
        nothing = PlanLineage(columns=(), indirect=())
        try:
            return self._plan.lineage() if self._names else nothing
        except EngineExecutionError as error:
            # Nobody's statement fails for what is told of it.
            _log.warning("The columns of a statement cannot be traced: %s", error.failure.condition)
            return nothing

    def _sources(self, found: Iterable[SourceColumn]) -> tuple[ColumnSource, ...]:
        return tuple(
            ColumnSource(name=self._names[each.relation], column=each.column, kind=cast(ColumnUse, each.kind))
            for each in found
            if each.relation in self._names
        )


@dataclass(slots=True)
class Findings:
    """What the parsed plans of a statement and its views add up to."""

    functions: set[str] = field(default_factory=set)
    expressions: set[str] = field(default_factory=set)
    verdicts: list[Verdict] = field(default_factory=list)
    about_the_user: bool = False

    def note(self, parsed: PlanDescription, verdicts: Iterable[Verdict]) -> None:
        """Note a plan, and what was decided about its objects."""
        self.functions.update(call.parts[-1].lower() for call in parsed.functions)
        self.expressions.update(parsed.expressions)
        self.verdicts.extend(verdicts)

    def note_text(self, spark_sql: str) -> None:
        """Note a text: it holds markers where it asks for the session."""
        self.about_the_user |= any(marker in spark_sql for marker in _ABOUT_THE_USER)

    def facts(
        self,
        bound: Sequence[BoundRelation],
        plan: AnalysedPlan,
        names: Mapping[tuple[str, ...], ObjectName],
        *,
        restricted: bool,
    ) -> StatementFacts:
        """Return what is known at the end; `names` says what users call what the engine knows by other names."""
        named = [one for one in bound if one.resolved is not None and not one.system]
        own = any(one.system or one.session_view is not None or one.spooled is not None for one in bound)
        personal = (
            own
            or self.about_the_user
            or any(verdict.restricted for verdict in self.verdicts)
            or any(one.resolved.mount.backend.identity_mode == "user" for one in named if one.resolved is not None)
        )
        varying = self.expressions | plan.description.expressions
        versions = (verdict.policy_version for verdict in self.verdicts)
        return StatementFacts(
            functions=frozenset(self.functions),
            deterministic=not (own or varying & (allowed.policies().denied | _TIMES) or self.functions & _CLOCKS),
            policy_versions=tuple(dict.fromkeys(version for version in versions if version)),
            restricted=restricted,
            scope="user" if personal else "everybody",
            _named=tuple(named),
            _plan=plan,
            _names=names,
        )


def _object(one: BoundRelation, read: Mapping[ObjectName, Iterable[str]]) -> ObjectFact:
    assert one.resolved is not None
    loaded, travel = one.loaded, one.relation.time_travel
    snapshot = loaded.current_snapshot_id if isinstance(loaded, TableMetadata) else None
    if travel is not None:
        numbered = travel.version is not None and travel.version.lstrip("-").isdigit()
        snapshot = int(travel.version) if numbered and travel.version is not None else None
    return ObjectFact(
        name=one.resolved.name,
        usage=one.usage,
        actions=one.needed,
        uuid=None if loaded is None else loaded.uuid,
        snapshot_id=snapshot,
        columns=tuple(read.get(one.resolved.name, ())),
        is_view=isinstance(loaded, ViewMetadata),
    )
