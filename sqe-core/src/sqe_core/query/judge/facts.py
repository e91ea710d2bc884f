"""What judging found out about a statement, once, as one value: for history, audit, observers, lineage and caches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from sqe_core.engine.port import AnalysedPlan, PlanDescription, SourceColumn
from sqe_core.policy.authorizer import Verdict
from sqe_core.query.judge import allowed
from sqe_core.query.judge.bind import BoundRelation, Usage
from sqe_core.spi.catalog import TableMetadata, ViewMetadata
from sqe_core.spi.names import ObjectName
from sqe_core.spi.policy import Action
from sqe_core.sql.statement import SESSION_FUNCTIONS, session_marker

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
        columns: all that it has, by their names.
        actions: what is done with it.
    """

    name: ObjectName
    usage: Usage
    actions: tuple[Action, ...]
    uuid: str | None = None
    snapshot_id: int | None = None
    columns: tuple[str, ...] = ()
    is_view: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnSource:
    """A column of a table, and how it is used: IDENTITY, TRANSFORMATION, AGGREGATION, WINDOW, FILTER, JOIN, …"""

    name: ObjectName
    column: str
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnLineage:
    """What each column of the result is made of, and which columns decide about its rows."""

    columns: Mapping[str, tuple[ColumnSource, ...]]
    indirect: tuple[ColumnSource, ...]


@dataclass(frozen=True, kw_only=True)
class StatementFacts:
    """All of it; views are counted with what they read.

    Attributes:
        objects: in the order of the text, those of views after their view.
        functions: what the statement and its views call, in lower case.
        deterministic: whether it answers the same as long as its objects are the same.
        policy_versions: of the policies that decided.
        scope: `user` where the answer is that of one user alone: policies keep something, a catalog knows who asks, or
            the statement does.
    """

    objects: tuple[ObjectFact, ...]
    functions: frozenset[str]
    deterministic: bool
    policy_versions: tuple[str, ...]
    scope: Literal["everybody", "user"]
    _plan: AnalysedPlan
    _names: Mapping[tuple[str, ...], ObjectName]
    """What users call the objects, by the parts of the engine's names."""

    @property
    def read(self) -> tuple[ObjectFact, ...]:
        """The tables and views that are read."""
        return tuple(one for one in self.objects if one.usage is Usage.READ or Action.SELECT in one.actions)

    @property
    def written(self) -> tuple[ObjectFact, ...]:
        """The tables that are written or made."""
        return tuple(one for one in self.objects if one.usage is not Usage.READ)

    @cached_property
    def lineage(self) -> ColumnLineage:
        """The engine's word on columns, asked once and only when somebody wants to know, while the statement runs."""
        found = self._plan.lineage()
        return ColumnLineage(
            columns={name: self._sources(sources) for name, sources in found.columns},
            indirect=self._sources(found.indirect),
        )

    def _sources(self, found: Iterable[SourceColumn]) -> tuple[ColumnSource, ...]:
        return tuple(
            ColumnSource(name=self._names[each.relation], column=each.column, kind=each.kind)
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
        self, bound: Sequence[BoundRelation], plan: AnalysedPlan, names: Mapping[tuple[str, ...], ObjectName]
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
            objects=tuple(_object(one) for one in named),
            functions=frozenset(self.functions),
            deterministic=not (own or varying & (allowed.policies().denied | _TIMES) or self.functions & _CLOCKS),
            policy_versions=tuple(dict.fromkeys(version for version in versions if version)),
            scope="user" if personal else "everybody",
            _plan=plan,
            _names=names,
        )


def _object(one: BoundRelation) -> ObjectFact:
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
        columns=() if loaded is None else tuple(column.name for column in loaded.columns),
        is_view=isinstance(loaded, ViewMetadata),
    )
