"""What happened to a statement, for the observers of `sqe_on_query_event`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Literal

from sqe_core.spi.errors import ErrorCode
from sqe_core.spi.identity import Identity
from sqe_core.spi.names import NamespaceName, ObjectName
from sqe_core.spi.policy import Action, ResourceType

ColumnUse = Literal["IDENTITY", "TRANSFORMATION", "AGGREGATION", "WINDOW", "FILTER", "JOIN", "GROUP_BY", "SORT"]


class QueryPhase(Enum):
    """Every statement has one RECEIVED, at most one STARTED, and exactly one of the last three."""

    RECEIVED = "received"  # admitted, nothing decided yet
    STARTED = "started"  # decided, secured, verified: it runs
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def final(self) -> bool:
        """Whether no further event of this statement follows."""
        return self in (QueryPhase.FINISHED, QueryPhase.FAILED, QueryPhase.CANCELLED)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectDecision:
    """What was decided about one object, in numbers and names of columns, never policy text.

    `columns` are those of its columns that the statement reads; with `uuid` and `snapshot_id` they are known once it
    runs.
    """

    name: ObjectName | NamespaceName
    action: Action
    allowed: bool
    row_filters: int = 0
    masked_columns: tuple[str, ...] = ()
    hidden_columns: tuple[str, ...] = ()
    reason: str = ""
    policy_version: str | None = None
    type: ResourceType = ResourceType.TABLE
    uuid: str | None = None
    snapshot_id: int | None = None
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnSource:
    """A column of a table, and how a statement uses it.

    `kind` is IDENTITY, TRANSFORMATION, AGGREGATION or WINDOW in a column that is made of it; FILTER, JOIN, GROUP_BY,
    SORT or WINDOW where it decides about rows.
    """

    name: ObjectName
    column: str
    kind: ColumnUse


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryTimings:
    """Milliseconds spent in each stage; None where a stage did not happen."""

    queued_ms: float | None = None
    analysis_ms: float | None = None
    policy_ms: float | None = None
    planning_ms: float | None = None
    execution_ms: float | None = None
    total_ms: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryCounts:
    """What a statement moved; None where nobody counted."""

    rows_returned: int | None = None
    rows_written: int | None = None
    rows_scanned: int | None = None
    bytes_scanned: int | None = None
    spill_bytes: int | None = None
    peak_memory_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryEvent:
    """One event of one statement. Texts are sanitised: no literal, token or policy text is in them (OBS-1).

    Args:
        query_id: a UUIDv7.
        phase: what happened.
        time: when, in UTC.
        principal: who, without tokens.
        protocol: the protocol's kind, or `embedded`.
        session_hash: a hash of the session's id; the id itself is a secret.
        statement_kind: the value of a `StatementKind`, for example `query` or `create_table`.
        sql: the statement without literals.
        sql_hash: a hash of the statement as sent.
        client_address: where from.
        source: what the client calls itself.
        trace_id: the client's trace.
        objects: the decisions, known from STARTED on, and for denied statements from FAILED.
        columns: what each column of the result, or of the table that is written, is made of; known from STARTED on.
        conditions: the columns that decide about its rows.
        policy_cache_hit: whether every decision came from the cache; None before deciding.
        timings: how long the stages took, filled in as they end.
        counts: how much was moved.
        error_code: set for FAILED and CANCELLED.
        error_message: the text that the client received.
        decision_id: the id of what was decided, in the audit too.
        denied: whether the statement came to nothing because of a policy, whatever the client received.
    """

    query_id: str
    phase: QueryPhase
    time: datetime
    principal: Identity
    protocol: str
    session_hash: str
    statement_kind: str
    sql: str
    sql_hash: str
    client_address: str | None = None
    source: str | None = None
    trace_id: str | None = None
    objects: tuple[ObjectDecision, ...] = ()
    columns: Mapping[str, tuple[ColumnSource, ...]] = field(default_factory=dict)
    conditions: tuple[ColumnSource, ...] = ()
    policy_cache_hit: bool | None = None
    timings: QueryTimings = QueryTimings()
    counts: QueryCounts = QueryCounts()
    error_code: ErrorCode | None = None
    error_message: str | None = None
    decision_id: str | None = None
    denied: bool = False

    @property
    def row_filters_applied(self) -> int:
        """How many row filters hold, over all objects."""
        return sum(max(filters) for filters in self._by_name(lambda each: each.row_filters))

    @property
    def columns_masked(self) -> int:
        """How many columns read as something else, over all objects."""
        return sum(max(columns) for columns in self._by_name(lambda each: len(each.masked_columns)))

    @property
    def columns_restricted(self) -> int:
        """How many columns do not exist for the user, over all objects."""
        return sum(max(columns) for columns in self._by_name(lambda each: len(each.hidden_columns)))

    def _by_name(self, count: Callable[[ObjectDecision], int]) -> Iterable[list[int]]:
        # Several actions on an object are restricted by the same policies.
        counts: dict[ObjectName | NamespaceName, list[int]] = {}
        for each in self.objects:
            counts.setdefault(each.name, []).append(count(each))
        return counts.values()
