"""All that the rest of SQE may ask of an engine. Spark and py4j stay behind these types."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from dataclasses import field as computed
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from sqe_core.spi.catalog import CatalogMetadata, Column
from sqe_core.spi.identity import Secret

_EMPTY: Mapping[str, Any] = MappingProxyType({})


class EngineState(Enum):
    """Where the engine is in its life. Only READY runs statements."""

    STOPPED = "stopped"
    PREPARING = "preparing"  # first start: jars, bridge, class archive
    STARTING = "starting"
    READY = "ready"
    LOST = "lost"  # the JVM ended by itself; a restart is under way
    FAILED = "failed"  # it cannot start; `Engine.failure` says why


class RelationKind(Enum):
    """How a name stands in a parsed plan."""

    RELATION = "relation"  # UnresolvedRelation: read in a query, or target of INSERT, UPDATE, DELETE, MERGE
    TABLE = "table"  # UnresolvedTable
    TABLE_OR_VIEW = "table_or_view"  # UnresolvedTableOrView
    VIEW = "view"  # UnresolvedView
    IDENTIFIER = "identifier"  # UnresolvedIdentifier: what CREATE and DROP name
    NAMESPACE = "namespace"  # UnresolvedNamespace
    OTHER = "other"  # anything else that carries a multi-part name; never replaced


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeTravel:
    """A time-travel clause. `literal` is False when the clause is an expression (NAME-5 refuses it)."""

    literal: bool
    version: str | None = None
    timestamp: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """One name in a parsed plan. `index` addresses it in `EngineSession.rewrite`."""

    index: int
    kind: RelationKind
    parts: tuple[str, ...]
    holder: str  # simple class of the nearest ancestor that is no SubqueryAlias and no time travel, "" for the root
    field: str  # the field of the holder, for example "table", "child", "targetTable"
    cte: bool = False  # bound to a common table expression in scope
    aliased: bool = False  # the user gave it an alias, so its own name is not visible
    options: Mapping[str, str] = computed(default_factory=lambda: _EMPTY)
    time_travel: TimeTravel | None = None
    streaming: bool = False
    start: int | None = None  # offset in the parsed text, in code points


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionCall:
    """A function as the parsed plan names it. `literals` holds a literal argument's value, or None.

    `calls` names the function that an argument, counted from 0, is a call of.
    """

    parts: tuple[str, ...]
    table_valued: bool = False
    literals: tuple[Any, ...] = ()
    calls: Mapping[int, str] = computed(default_factory=lambda: MappingProxyType({}))
    start: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanNode:
    """One node of a plan, in the order of the walk: parents before children.

    `fields` holds every field that is neither a plan nor an expression, rendered as JSON values; for the nodes the
    verifier looks at it also holds their expressions as SQL: `projectList`, `condition`.
    """

    id: int
    parent: int  # -1 for the root
    slot: str  # the parent's field that holds it; "subquery" when it hangs on an expression
    type: str  # fully qualified class name
    fields: Mapping[str, Any] = computed(default_factory=lambda: _EMPTY)

    @property
    def simple_type(self) -> str:
        """The class name without its package."""
        return self.type.rsplit(".", 1)[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanDescription:
    """Everything an authoriser wants to know about a plan, parsed or analysed."""

    nodes: tuple[PlanNode, ...]
    expressions: frozenset[str]  # fully qualified class names
    relations: tuple[Relation, ...] = ()
    functions: tuple[FunctionCall, ...] = ()
    hints: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()  # names of unbound parameters
    expression_count: int = 0
    depth: int = 0

    @property
    def root(self) -> PlanNode:
        """The topmost node."""
        return self.nodes[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyExpression:
    """An expression of a policy above a relation.

    Args:
        plan: what `EngineSession.expression` returned.
        guarded: whether an error in it becomes NULL (POL-11).
        cast: the type that its value gets, as `JudgedExpression.cast` says; None leaves it.
    """

    plan: EnginePlan
    guarded: bool = True
    cast: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Restriction:
    """What of a relation a user sees (ENF-9, ENF-14).

    Args:
        marker: the fresh name that the relation's columns are qualified with.
        columns: all columns of the relation, which the policy may name.
        output: the visible columns in order, with the expression that a masked one reads as.
        filters: what holds for every visible row; above them stands the barrier.
    """

    marker: str
    columns: tuple[str, ...]
    output: tuple[tuple[str, PolicyExpression | None], ...]
    filters: tuple[PolicyExpression, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SecuredTable:
    """Replace a relation by text of ours: `SELECT … FROM <alias>.<ns>.<table> …`, under the visible name.

    With a restriction, what the text selects is left to that.
    """

    index: int
    sql: str
    visible_name: tuple[str, ...]
    restriction: Restriction | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InlinedPlan:
    """Replace a relation by a plan that was secured before: an expanded view, a session view."""

    index: int
    plan: EnginePlan
    columns: tuple[tuple[str, str], ...] | None  # (name in the plan, visible name), None keeps the plan's own
    visible_name: tuple[str, ...]
    restriction: Restriction | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InlinedRows:
    """Replace a relation by rows of ours, as information_schema does."""

    index: int
    rows: pa.Table
    visible_name: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class InlinedSpool:
    """Replace a relation by rows of ours that are too many for memory: Arrow streams of one schema, in files.

    Each file is a partition and lies in a `Spool` of this engine. The node carries `token` in its field `spool`.
    """

    index: int
    files: tuple[Path, ...]
    token: str
    visible_name: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RenamedTarget:
    """Give a relation that is written, created or dropped its internal name.

    Targets of UPDATE, DELETE and MERGE are covered by an alias of `visible_name` when the user gave none. What is
    `absent` when it is decided is not replaced, but created.
    """

    index: int
    parts: tuple[str, ...]
    visible_name: tuple[str, ...]
    absent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedExpression:
    """What an expression of a policy is once analysed; `classes` are fully qualified.

    `sql` is how the engine writes it, `guarded_sql` the same with errors turned into NULL, both with the cast to the
    type of its column where `cast` has one. `fits` is False where there is no such cast. `risky` are the classes
    without those of casts that fail for no value.
    """

    sql: str | None
    guarded_sql: str | None
    type: str
    deterministic: bool
    queries: bool
    classes: frozenset[str]
    risky: frozenset[str]
    columns: frozenset[str]
    cast: str | None = None
    fits: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedRelation:
    """A relation that a policy restricts: its columns with their types, and the policy's expressions over it."""

    columns: tuple[tuple[str, str], ...]
    expressions: tuple[JudgedExpression, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyFacts:
    """What the expressions of policies may ask about who sent a statement; they enter as literals (POL-7).

    Args:
        lists: functions without arguments that answer texts, as `current_available_roles()` does.
        members: functions that tell whether a text is one of these.
        attributes: functions that answer the text of a name; NULL where there is none.
    """

    lists: Mapping[str, Sequence[str]] = computed(default_factory=lambda: _EMPTY)
    members: Mapping[str, Sequence[str]] = computed(default_factory=lambda: _EMPTY)
    attributes: Mapping[str, Mapping[str, str | None]] = computed(default_factory=lambda: _EMPTY)


Replacement = SecuredTable | InlinedPlan | InlinedRows | InlinedSpool | RenamedTarget


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterMarker:
    """Stands for the value of a parameter in a statement that is analysed to learn what it expects there."""

    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceColumn:
    """A column of a table, by the parts of the name under which the engine knows it: the catalog's alias first.

    `kind` says how it is used: IDENTITY, TRANSFORMATION, WINDOW or AGGREGATION in an output column; FILTER, JOIN,
    GROUP_BY, SORT or WINDOW where it decides about rows.
    """

    relation: tuple[str, ...]
    column: str
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanLineage:
    """From which columns of tables a plan's output columns derive, and which others decide about its rows."""

    columns: tuple[tuple[str, tuple[SourceColumn, ...]], ...]
    indirect: tuple[SourceColumn, ...]


class EnginePlan(ABC):
    """An opaque plan of one engine session, parsed or analysed."""

    @property
    @abstractmethod
    def description(self) -> PlanDescription:
        """What the plan consists of."""


class AnalysedPlan(EnginePlan):
    """A plan with every name and type resolved, not executed."""

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The columns of the result, as they arrive in the stream."""

    @property
    @abstractmethod
    def column_types(self) -> tuple[str, ...]:
        """The columns' types in Spark's notation, as `spi.catalog.Column.type`."""

    @property
    @abstractmethod
    def parameter_types(self) -> Mapping[int, pa.DataType]:
        """What the statement expects in the place of each `ParameterMarker`, where that can be known."""

    @property
    @abstractmethod
    def is_command(self) -> bool:
        """Whether executing it changes something, and returns no rows of its own."""

    @property
    @abstractmethod
    def is_divisible(self) -> bool:
        """Whether its rows may go to several readers: they have no order, and nothing says that they are few."""

    @property
    @abstractmethod
    def is_constant(self) -> bool:
        """Whether it is one row of literals and little else: made in no time, of nothing that is stored."""

    @abstractmethod
    def lineage(self) -> PlanLineage:
        """Where the columns come from. What stands below the cover of a secured relation is ours, and left out."""

    @abstractmethod
    def explain(self) -> Sequence[tuple[str, str]]:
        """Rows (plan type, text) of the logical and physical plan, names as the user knows them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a running statement is. All numbers are zero before the first job."""

    stages: int = 0
    stages_done: int = 0
    tasks: int = 0
    tasks_done: int = 0
    tasks_active: int = 0
    rows: int = 0
    bytes: int = 0


class ResultStream(ABC):
    """The batches of one executed statement, in order, with bounded memory. Iterating to the end closes it."""

    is_complete = False
    """Whether the batch that came last is known to be the last one; it may be, and nobody knows yet."""

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The columns; known before the first batch."""

    @abstractmethod
    def __iter__(self) -> Iterator[pa.RecordBatch]: ...

    @property
    @abstractmethod
    def affected_rows(self) -> int | None:
        """Rows inserted, updated or deleted; None for queries and DDL. Known when the stream exists."""

    @abstractmethod
    def progress(self) -> Progress:
        """How far execution is; may be asked from another thread."""

    @abstractmethod
    def cancel(self) -> None:
        """End execution and free its slots; the iterator raises QueryCancelledError. Idempotent, from any thread."""

    @abstractmethod
    def close(self) -> None:
        """Free everything; cancels what still runs. Idempotent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFailure:
    """An error inside the engine, with nothing of its text that a client could see by accident.

    `condition` is Spark's error class (`UNRESOLVED_COLUMN.WITH_SUGGESTION`), or the Java exception's class name;
    `parameters` its message parameters, unchecked. `context` is the fragment of the *parsed* text, with its offset.
    """

    condition: str
    sql_state: str | None
    parameters: Mapping[str, str]
    fragment: str | None = None
    start: int | None = None
    generated: bool = False  # the error lies in text of ours or in a view's, not in the statement's own (ERR-3)
    causes: tuple[str, ...] = ()  # for the server's log: classes, places, what services say; no values (OBS-2)
    raw: str = ""  # for the server's own log at DEBUG only, never for a client (ERR-1)


class EngineExecutionError(Exception):
    """Raised by every method of this port when the engine refuses or fails; `query.errors` turns it into ours."""

    def __init__(self, failure: EngineFailure) -> None:
        super().__init__(failure.condition)
        self.failure = failure


# The text of the engine's error when a row that is written does not satisfy `check` of `analyse`.
ROW_REFUSED = "sqe.row.not.allowed"

# A setting for `execute`: those who share it share what they get of the engine (LIM-11).
SCHEDULER_POOL = "spark.scheduler.pool"

# An option for `analyse` and `execute`: the zone in which times without one are read, and clocks are.
TIME_ZONE = "spark.sql.session.timeZone"

# An option for `analyse`: a write whose values would lose digits in their columns is refused.
EXACT_WRITES: Mapping[str, str] = MappingProxyType({"sqe.exact.writes": "true"})

# An option for `execute` of what makes a table of rows: columns that are never NULL in these are NOT NULL.
NOT_NULL_ROWS: Mapping[str, str] = MappingProxyType({"sqe.not.null.rows": "true"})


class EngineSession(ABC):
    """An isolated session of the engine: its own catalogs, conf and functions. One statement at a time per session."""

    @property
    @abstractmethod
    def alive(self) -> bool:
        """False when the engine restarted since; open a new one then."""

    @abstractmethod
    def mount(self, alias: str, properties: Mapping[str, str], *, token: Secret | None = None) -> None:
        """Mount a catalog under a random alias.

        The token is what the catalog is sent with each request. It is kept apart from the properties, which Spark
        copies into settings, plans and tasks.
        """

    @abstractmethod
    def renew_token(self, alias: str, token: Secret) -> None:
        """Replace the token of a mounted catalog, also for the statement that uses it now. From any thread."""

    @abstractmethod
    def unmount(self, alias: str) -> None:
        """Forget a mounted catalog."""

    @abstractmethod
    def catalog(self, alias: str) -> EngineCatalog:
        """Return the metadata of a mounted catalog."""

    @abstractmethod
    def parse(self, sql: str, parameters: Mapping[str, Any] = _EMPTY) -> EnginePlan:
        """Parse Spark SQL. `:name` markers become typed literals of `parameters` (Python or pyarrow scalars).

        With a `ParameterMarker` among them the plan can be analysed, and not executed.
        """

    @abstractmethod
    def expression(self, sql: str, parameters: Mapping[str, Any], facts: PolicyFacts) -> EnginePlan:
        """Parse one expression of a policy; the plan is described like any other, and stands for it from here on."""

    @abstractmethod
    def conjuncts(self, plan: EnginePlan) -> Sequence[EnginePlan]:
        """Return the parts of what `expression` returned that all have to hold, in their order."""

    @abstractmethod
    def judge(
        self,
        relation: SecuredTable | InlinedPlan,
        marker: str,
        expressions: Sequence[tuple[EnginePlan, str | None]],
        *,
        tag: str,
    ) -> JudgedRelation:
        """Analyse expressions of a policy above a relation; with a column's name, as the mask of that column."""

    @abstractmethod
    def rewrite(self, plan: EnginePlan, replacements: Sequence[Replacement]) -> EnginePlan:
        """Return a new plan with the addressed relations replaced, and describe it anew."""

    @abstractmethod
    def analyse(
        self,
        plan: EnginePlan,
        *,
        tag: str,
        settings: Mapping[str, str] = _EMPTY,
        check: Restriction | None = None,
        rows: Restriction | None = None,
    ) -> AnalysedPlan:
        """Resolve names and types without executing anything, commands included. `tag` makes it cancellable.

        `settings` are engine options of this statement only; give the same ones to `execute`. The filters of `check`
        have to hold for every row that the statement writes, else it ends with `ROW_REFUSED` when it runs. `rows` is
        what an UPDATE, a DELETE or a MERGE sees of its target, in place of all of it.
        """

    @abstractmethod
    def execute(self, plan: AnalysedPlan, *, tag: str, settings: Mapping[str, str] = _EMPTY) -> ResultStream:
        """Run a verified plan. For commands and writes this returns when they are done.

        `settings` are engine options of this statement only, from the server's own vocabulary.
        """

    @abstractmethod
    def maintain(self, table: tuple[str, ...], action: str, options: Mapping[str, str], *, tag: str) -> None:
        """Maintain a table with the catalog's own means, and return when that is done.

        `table` begins with the catalog's alias. Actions: `optimize` (`threshold` in bytes), `optimize_manifests`,
        `expire_snapshots` and `remove_orphan_files` (`retention` in milliseconds), `drop_extended_stats`.
        """

    @abstractmethod
    def cancel(self, tag: str) -> None:
        """End whatever runs under that tag, analysis and planning included. From any thread."""

    @abstractmethod
    def statement_scope(self) -> AbstractContextManager[None]:
        """Within the scope every table is loaded once, so that decision and execution see the same metadata."""

    @abstractmethod
    def check_settings(self) -> bool:
        """Compare the pinned settings with what is set (CONF-1); False means somebody changed one."""

    @abstractmethod
    def close(self) -> None:
        """Unmount everything and forget the session."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnStatistics:
    """What metadata tells of a column; None is what it does not tell. Bounds are texts."""

    size: int | None = None
    distinct: int | None = None
    nulls: int | None = None
    low: str | None = None
    high: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableStatistics:
    """What the metadata of a table tells of its current rows, which counts those that were deleted in place too."""

    rows: int
    columns: Mapping[str, ColumnStatistics]


class EngineCatalog(CatalogMetadata):
    """Metadata of a mounted catalog, and the DDL that is not a statement of the engine's SQL."""

    @abstractmethod
    def table_statistics(self, namespace: tuple[str, ...], name: str) -> TableStatistics:
        """Say what the metadata of a table tells; nothing runs."""

    @abstractmethod
    def create_namespace(self, namespace: tuple[str, ...], properties: Mapping[str, str]) -> None: ...

    @abstractmethod
    def drop_namespace(self, namespace: tuple[str, ...]) -> None:
        """Drop an empty namespace."""

    @abstractmethod
    def set_namespace_properties(self, namespace: tuple[str, ...], properties: Mapping[str, str | None]) -> None:
        """Set properties; None removes one."""

    @abstractmethod
    def drop_table(self, namespace: tuple[str, ...], name: str, *, purge: bool) -> None: ...

    @abstractmethod
    def rename_table(self, source: tuple[tuple[str, ...], str], target: tuple[tuple[str, ...], str]) -> None: ...

    @abstractmethod
    def create_view(
        self,
        namespace: tuple[str, ...],
        name: str,
        *,
        columns: Sequence[Column],
        representations: Mapping[str, str],
        default_catalog: str | None,
        default_namespace: tuple[str, ...],
        properties: Mapping[str, str],
        replace: bool,
    ) -> None: ...

    @abstractmethod
    def drop_view(self, namespace: tuple[str, ...], name: str) -> None: ...

    @abstractmethod
    def rename_view(self, source: tuple[tuple[str, ...], str], target: tuple[tuple[str, ...], str]) -> None: ...

    @abstractmethod
    def set_view_properties(self, namespace: tuple[str, ...], name: str, properties: Mapping[str, str | None]) -> None:
        """Set properties; None removes one. `comment` is the view's comment."""

    @abstractmethod
    def create_table_like(
        self, namespace: tuple[str, ...], name: str, source: tuple[tuple[str, ...], str], properties: Mapping[str, str]
    ) -> None:
        """CREATE TABLE … (LIKE …): schema, partitioning, sort order and properties of `source`."""

    @abstractmethod
    def set_layout(
        self,
        namespace: tuple[str, ...],
        name: str,
        *,
        partitioning: Sequence[tuple[str, str, int | None]] | None,
        sort_order: Sequence[tuple[str, str, str]] | None,
    ) -> None:
        """Partition and sort otherwise what is written from now on; None leaves it.

        A partition field is a transform (`identity`, `day`, `bucket` …), a column, and its number; of the sort order
        each entry is a column, `asc` or `desc`, and where NULLs stand: `first` or `last`.
        """

    @abstractmethod
    def add_column(
        self, namespace: tuple[str, ...], name: str, column: str, type: str, *, default: Any, comment: str | None
    ) -> None:
        """Add a column with a default value, which the engine's SQL cannot say."""


class Spool(ABC):
    """A private folder for the rows of one statement that come from outside. Close it when the statement ended."""

    @property
    @abstractmethod
    def folder(self) -> Path:
        """Where the files go; the engine removes it with everything in it, at the latest when the engine ends."""

    @abstractmethod
    def close(self) -> None:
        """Delete the files. Idempotent."""

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class Engine(ABC):
    """The engine of one process."""

    @property
    @abstractmethod
    def state(self) -> EngineState: ...

    @property
    @abstractmethod
    def failure(self) -> Exception | None:
        """Why the state is FAILED."""

    @abstractmethod
    def start(self) -> None:
        """Begin to start in the background and return at once. Idempotent."""

    @abstractmethod
    def wait_ready(self, timeout_secs: float | None = None) -> None:
        """Block until READY; raise what stopped it, or ResourcesError when the time is over."""

    @abstractmethod
    def on_progress(self, listener: Callable[[str, float | None], None]) -> None:
        """Report the steps of a long first start: (what is being done, share done or None)."""

    @abstractmethod
    def open_session(self) -> EngineSession:
        """Open an isolated session; waits for READY."""

    @abstractmethod
    def open_spool(self) -> Spool:
        """Open a folder for rows that a statement shall read as `InlinedSpool`; the engine must be READY."""

    @abstractmethod
    def stop(self) -> None:
        """End every statement and the JVM. Idempotent."""
