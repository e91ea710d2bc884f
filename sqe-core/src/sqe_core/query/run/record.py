"""Step 9: what happened, for the history, the metrics, the log, and the observers of query events."""

from __future__ import annotations

import hashlib
import logging
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import UTC, datetime
from weakref import WeakValueDictionary

import pyarrow as pa

from sqe_core.engine.port import Progress, ResultStream
from sqe_core.observe.history import HistoryEntry, QueryHistory
from sqe_core.observe.logging import redact_secrets
from sqe_core.policy.trail import DecisionTrail, Trail
from sqe_core.query.context import StatementWatch
from sqe_core.query.judge.facts import StatementFacts
from sqe_core.query.judge.judge import Judgement
from sqe_core.query.run.audited import StatementAudit, is_denied
from sqe_core.query.statements.traits import StatementTraits
from sqe_core.session.fingerprint import session_hash
from sqe_core.session.session import Session
from sqe_core.spi.errors import ErrorCode, SqeError
from sqe_core.spi.events import ObjectDecision, QueryCounts, QueryEvent, QueryPhase, QueryTimings
from sqe_core.spi.factory import Metrics, NoMetrics
from sqe_core.spi.policy import Action
from sqe_core.sql.statement import StatementKind
from sqe_core.sql.text.redact import CUT, Redacted, redact, without_secrets

_log = logging.getLogger(__name__)
Notify = Callable[[QueryEvent], None]
_LONGEST_SQL = 65_536

_STATUS = {QueryPhase.FINISHED: "success", QueryPhase.FAILED: "failure", QueryPhase.CANCELLED: "cancelled"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a statement comes from: what the client calls itself, its trace, and how long it waited for its slot."""

    source: str | None = None
    trace_id: str | None = None
    queued_ms: float | None = None


_UNKNOWN = Origin()


@dataclass(slots=True, eq=False)
class Recorder:
    """Writes history, counts, and tells observers.

    Observers get the statement without its literals, and the history too unless it keeps the `full_text`, but for its
    secrets (OBS-3); no other place writes statements anywhere. Statements are slow from `slow_secs` on; 0 logs none.
    """

    history: QueryHistory
    _: KW_ONLY
    notify: Notify | None
    metrics: Metrics = field(default_factory=NoMetrics)
    slow_secs: float = 0
    full_text: bool = False
    audit: StatementAudit | None = None
    _records: WeakValueDictionary[str, StatementRecord] = field(default_factory=WeakValueDictionary)

    def begin(
        self, query_id: str, session: Session, sql: str, dialect: str, origin: Origin = _UNKNOWN
    ) -> StatementRecord:
        """A statement was admitted; its dialect says what its quotes mean.

        Raises:
            ExternalError: it could not be audited, and must be.
        """
        if self.audit is not None:
            self.audit.check()
        identity = session.identity
        kept = _cut(sql)
        redacted = redact(kept, dialect)
        entry = HistoryEntry(
            query_id=query_id,
            user=(identity.issuer, identity.subject),
            username=identity.username,
            session=session_hash(session),
            protocol=session.protocol,
            source=origin.source,
            trace_id=origin.trace_id,
            queued_ms=origin.queued_ms,
            sql=self.remembered(kept, redacted, dialect),
        )
        self.history.add(entry)
        record = self._records[query_id] = StatementRecord(entry, session, sql, redacted, self, origin)
        record.tell(QueryPhase.RECEIVED)
        return record

    def remembered(self, sql: str, redacted: Redacted, dialect: str) -> str:
        """Return what the history keeps of a text."""
        return redact_secrets(without_secrets(sql, dialect)) if self.full_text else redacted.text

    def refused(self, error: SqeError) -> None:
        reason = "draining" if error.code is ErrorCode.SERVER_SHUTTING_DOWN else "concurrency"
        self.metrics.count("sqe_query_refused_total", labels={"reason": reason})

    def unexpected(self, query_id: str, error: BaseException) -> None:
        """Log an error that is a fault of ours: its text is for the server's log only (ERR-1).

        Whoever raised it may have repeated the statement, so its literals are taken out here too.
        """
        record = self._records.get(query_id)
        trace = "".join(traceback.format_exception(error)).rstrip()
        if record is not None:
            trace = record.hide(trace)
        _log.error(
            "unexpected error in query %s: %s",
            query_id,
            trace.splitlines()[-1],
            extra={"query_id": query_id, "fields": {"error": trace}},
        )


def _cut(sql: str) -> str:
    return sql if len(sql) <= _LONGEST_SQL else sql[:_LONGEST_SQL] + CUT


@dataclass(eq=False)
class StatementRecord(StatementWatch):
    """The record of one statement."""

    _entry: HistoryEntry
    _session: Session
    _sql: str
    _redacted: Redacted
    _recorder: Recorder
    _origin: Origin
    _began: float = field(default_factory=time.monotonic)
    _paused: float | None = None
    _traits: StatementTraits = field(default_factory=StatementTraits)
    _ended: threading.Lock = field(default_factory=threading.Lock)
    _delivered_any: bool = False
    _described: bool = False
    _facts: StatementFacts | None = None
    _scanned: Progress | None = None
    _decisions_told: bool = False
    _planned_after: float | None = None

    def __post_init__(self) -> None:
        self.trail = DecisionTrail(self._session.identity.key)
        """What is decided for the statement."""

    def hide(self, text: str) -> str:
        """Take the statement's literals out of a text about it."""
        return self._redacted.hide(text)

    def pause(self) -> None:
        """Nobody works for the statement until `resume`: a client holds its ticket."""
        self._paused = time.monotonic()

    def resume(self) -> None:
        """The time that the client took does not count."""
        if self._paused is not None:
            self._began += time.monotonic() - self._paused
            self._paused = None

    def recognised(self, kind: StatementKind, traits: StatementTraits) -> None:
        self._entry.kind = kind.value
        self._traits = traits

    def stands_for(self, sql: str, dialect: str) -> None:
        """What is told of it says what it stands for, and names no value of that either (OBS-1, OBS-4)."""
        kept, told = _cut(sql), self._redacted
        meant = redact(kept, dialect)
        self._redacted = replace(told, text=f"{told.text}: {meant.text}", values=told.values | meant.values)
        self._entry.sql += f": {self._recorder.remembered(kept, meant, dialect)}"

    def described(self) -> None:
        self._described = True

    def planned(self, kind: StatementKind, judgement: Judgement | None) -> None:
        """Everything was decided and verified; the statement runs."""
        self._entry.kind = kind.value
        self._planned_after = (time.monotonic() - self._began) * 1000
        self._entry.planning_ms = self._planned_after
        if judgement is not None:
            self._facts = judgement.facts
            self._entry.analysis_ms = self._timings(self.trail.read(), None).analysis_ms
        self.tell(QueryPhase.STARTED)
        if self._recorder.audit is not None:
            self._tell_decisions(self._event(QueryPhase.STARTED, None), must=True)

    def scanned(self, stream: ResultStream) -> None:
        """The engine is done, and knows what it read; nobody is asked where nobody wants to know."""
        if self._recorder.notify is not None or self._recorder.audit is not None:
            self._scanned = stream.progress()
            if self._facts is not None and not self._facts.restricted:
                self._entry.rows_scanned, self._entry.bytes_scanned = self._scanned.rows, self._scanned.bytes

    def begins_change(self, kind: StatementKind) -> None:
        """Rights are about to be changed.

        Raises:
            ExternalError: it could not be audited, and must be.
        """
        self._entry.kind = kind.value
        if self._recorder.audit is not None:
            self._recorder.audit.begins_change(self._event(QueryPhase.RECEIVED, None))

    def delivered(self, batch: pa.RecordBatch) -> None:
        """A batch of the result goes to the client."""
        metrics = self._recorder.metrics
        if not self._delivered_any:
            self._delivered_any = True
            metrics.observe("sqe_time_to_first_row_seconds", time.monotonic() - self._began)
        metrics.count("sqe_rows_returned_total", batch.num_rows)
        # `nbytes` ends the process when a list of no lists has no offsets, as results of the engine may.
        metrics.count("sqe_bytes_returned_total", batch.get_total_buffer_size())

    def end(self, error: SqeError | None, rows: int | None) -> None:
        """The statement ended; the first end counts."""
        if not self._ended.acquire(blocking=False):
            return
        self._entry.ended = time.time()
        self._entry.rows = rows
        self._entry.writes = self._traits.writes_rows
        phase = QueryPhase.FINISHED
        if error is not None:
            self._entry.error_code = error.code
            self._entry.error_type = error.kind.value
            cancelled = error.code is ErrorCode.QUERY_CANCELLED
            phase = QueryPhase.CANCELLED if cancelled else QueryPhase.FAILED
        self._entry.state = {"cancelled": "CANCELED"}.get(phase.value, phase.value.upper())
        self._count(phase, error)
        self.tell(phase, error)
        if self._recorder.audit is not None:
            event, trail = self._event(phase, error), self.trail.read()
            self._tell_decisions(event)
            self._recorder.audit.ended(event, trail, self._traits, described=self._described)

    def _tell_decisions(self, event: QueryEvent, *, must: bool = False) -> None:
        """Write them once, as soon as they are made."""
        if self._recorder.audit is None or self._decisions_told:
            return
        trail = self.trail.read()
        if trail.decided:
            self._decisions_told = True
            self._recorder.audit.decided(event, trail, must=must)

    def _count(self, phase: QueryPhase, error: SqeError | None) -> None:
        metrics, kind, seconds = self._recorder.metrics, self._entry.kind or "unknown", time.monotonic() - self._began
        status = _STATUS[phase]
        code = error.code.name if error else ""
        metrics.count("sqe_query_count_total", labels={"status": status, "statement_type": kind, "error_code": code})
        metrics.count("sqe_protocol_query_count_total", labels={"protocol": self._session.protocol, "status": status})
        metrics.observe("sqe_query_duration_seconds", seconds, {"statement_type": kind})
        if self._traits.writes_rows and self._entry.rows:
            metrics.count("sqe_rows_written_total", self._entry.rows)
        if self._recorder.slow_secs and seconds >= self._recorder.slow_secs:
            metrics.count("sqe_slow_query_count_total")
            self._log_slow(status, seconds)

    def _log_slow(self, status: str, seconds: float) -> None:
        _log.warning(
            "slow statement: %.1f s",
            seconds,
            extra={
                "query_id": self._entry.query_id,
                "session": session_hash(self._session),
                "fields": {
                    "event": "slow_query",
                    "status": status,
                    "statement_type": self._entry.kind or "unknown",
                    "protocol": self._session.protocol,
                    "duration_ms": round(seconds * 1000),
                    "planning_ms": None if self._planned_after is None else round(self._planned_after),
                    "rows": self._entry.rows,
                    "sql_hash": self._sql_hash(),
                },
            },
        )

    def _sql_hash(self) -> str:
        # The hash of a short password can be found by trying.
        text = self._redacted.text if self._redacted.guarded else self._sql
        return hashlib.sha256(text.encode(errors="replace")).hexdigest()

    def tell(self, phase: QueryPhase, error: SqeError | None = None) -> None:
        if self._recorder.notify is not None:
            self._recorder.notify(self._event(phase, error))

    def _event(self, phase: QueryPhase, error: SqeError | None) -> QueryEvent:
        trail = self.trail.read()
        total = (time.monotonic() - self._began) * 1000
        writes = self._traits.writes_rows
        return QueryEvent(
            query_id=self._entry.query_id,
            phase=phase,
            time=datetime.now(UTC),
            principal=self._session.identity.without_tokens(),
            protocol=self._session.protocol,
            session_hash=session_hash(self._session),
            statement_kind=self._entry.kind,
            sql=self._redacted.text,
            sql_hash=self._sql_hash(),
            client_address=self._session.client_address,
            objects=self._objects(trail),
            columns=self._facts.columns if self._facts is not None else {},
            conditions=self._facts.conditions if self._facts is not None else (),
            policy_cache_hit=trail.cache_hit,
            source=self._origin.source,
            trace_id=self._origin.trace_id,
            timings=self._timings(trail, total if phase.final else None),
            counts=QueryCounts(
                rows_returned=None if writes else self._entry.rows,
                rows_written=self._entry.rows if writes else None,
                rows_scanned=None if self._scanned is None else self._scanned.rows,
                bytes_scanned=None if self._scanned is None else self._scanned.bytes,
            ),
            error_code=error.code if error else None,
            error_message=self.hide(error.message) if error else None,
            decision_id=trail.decision_id if trail.decided else None,
            denied=phase.final and is_denied(self._traits, trail, error),
        )

    def _timings(self, trail: Trail, total: float | None) -> QueryTimings:
        policy = trail.milliseconds if trail.cache_hit is not None else None
        planning = self._planned_after
        return QueryTimings(
            queued_ms=self._origin.queued_ms,
            analysis_ms=None if planning is None else max(0.0, planning - (policy or 0)),
            policy_ms=policy,
            planning_ms=planning,
            execution_ms=None if total is None or planning is None else max(0.0, total - planning),
            total_ms=total,
        )

    def _objects(self, trail: Trail) -> tuple[ObjectDecision, ...]:
        """What the statement does to which object; for one that was not judged all that was decided."""
        if self._facts is None or not self._facts.objects:
            return trail.about_self
        decided = {(each.name, each.action): each for each in trail.about_self}
        found = {}
        for fact in self._facts.objects:
            for action in fact.actions:
                known = decided.get((fact.name, action)) or ObjectDecision(name=fact.name, action=action, allowed=True)
                columns = fact.columns if action is Action.SELECT else ()
                found[fact.name, action] = replace(known, uuid=fact.uuid, snapshot_id=fact.snapshot_id, columns=columns)
        return tuple(found.values())
