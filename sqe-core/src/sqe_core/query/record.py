"""Step 9: what happened, for the history and for the observers of query events."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime

from sqe_core.observe.history import HistoryEntry, QueryHistory
from sqe_core.query.secured import SecuredStatement
from sqe_core.session.session import Session
from sqe_core.spi.errors import ErrorCode, SqeError
from sqe_core.spi.events import ObjectDecision, QueryCounts, QueryEvent, QueryPhase, QueryTimings
from sqe_core.sql.statement import StatementKind

_log = logging.getLogger(__name__)
Notify = Callable[[QueryEvent], None]
Redact = Callable[[str], str]


class Recorder:
    """Writes history and tells observers. Observers get the statement without its literals (OBS-3)."""

    def __init__(self, history: QueryHistory, *, notify: Notify | None, redact: Redact) -> None:
        self._history = history
        self._notify = notify
        self._redact = redact

    def begin(self, query_id: str, session: Session, sql: str) -> StatementRecord:
        """A statement was admitted."""
        identity = session.identity
        entry = HistoryEntry(query_id=query_id, user=(identity.issuer, identity.subject), sql=sql[:65_536])
        self._history.add(entry)
        record = StatementRecord(entry, session, sql, self._notify, self._redact)
        record.tell(QueryPhase.RECEIVED)
        return record

    def unexpected(self, query_id: str, error: BaseException) -> None:
        """Log an error that is a fault of ours: its text is for the server's log only (ERR-1)."""
        _log.error("unexpected error in query %s", query_id, exc_info=error)


class StatementRecord:
    """The record of one statement."""

    def __init__(self, entry: HistoryEntry, session: Session, sql: str, notify: Notify | None, redact: Redact) -> None:
        self._entry = entry
        self._session = session
        self._sql = sql
        self._notify = notify
        self._redact = redact
        self._began = time.monotonic()
        self._planned_after: float | None = None
        self._objects: tuple[ObjectDecision, ...] = ()

    def planned(self, kind: StatementKind, secured: SecuredStatement | None) -> None:
        """Everything was decided and verified; the statement runs."""
        self._entry.kind = kind.value
        self._planned_after = (time.monotonic() - self._began) * 1000
        self._entry.planning_ms = self._planned_after
        if secured is not None:
            self._objects = tuple(
                ObjectDecision(name=bound.resolved.name, action=bound.action, allowed=True)
                for bound in secured.bound
                if bound.resolved is not None
            )
        self.tell(QueryPhase.STARTED)

    def end(self, error: SqeError | None, rows: int | None) -> None:
        """The statement ended."""
        self._entry.ended = time.time()
        self._entry.rows = rows
        phase = QueryPhase.FINISHED
        if error is not None:
            self._entry.error_code = error.code
            cancelled = error.code is ErrorCode.QUERY_CANCELLED
            phase = QueryPhase.CANCELLED if cancelled else QueryPhase.FAILED
        self._entry.state = {"cancelled": "CANCELED"}.get(phase.value, phase.value.upper())
        self.tell(phase, error)

    def tell(self, phase: QueryPhase, error: SqeError | None = None) -> None:
        """Tell the observers, if there are any."""
        if self._notify is None:
            return
        total = (time.monotonic() - self._began) * 1000
        self._notify(
            QueryEvent(
                query_id=self._entry.query_id,
                phase=phase,
                time=datetime.now(UTC),
                principal=self._session.identity,
                protocol=self._session.protocol,
                session_hash=hashlib.sha256(self._session.id.encode()).hexdigest()[:16],
                statement_kind=self._entry.kind,
                sql=self._redact(self._sql),
                sql_hash=hashlib.sha256(self._sql.encode(errors="replace")).hexdigest(),
                objects=self._objects,
                timings=QueryTimings(planning_ms=self._planned_after, total_ms=total if phase.final else None),
                counts=QueryCounts(rows_returned=self._entry.rows),
                error_code=error.code if error else None,
                error_message=error.message if error else None,
            )
        )
