"""Who is connected and what runs, as far as a user may know (TRI-9); KILL ends it (query/statements/kill.py).

Administrators see and end everything; everybody else what is their own. Of an identity that many people share nobody
knows whose is whose: there, a session sees itself alone. What is another's is answered like what is not there (TRI-3).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa

from sqe_core.catalog.information_schema import to_table
from sqe_core.catalog.system import TABLES
from sqe_core.observe.history import HistoryEntry
from sqe_core.query.context import StatementContext
from sqe_core.session.directory import ListedSession
from sqe_core.session.fingerprint import session_hash
from sqe_core.session.session import Session
from sqe_core.spi.names import ObjectName

_TEXT, _LONG, _TIME = pa.string(), pa.int64(), pa.timestamp("us", tz="UTC")
_QUERIES = pa.schema(
    [
        ("query_id", _TEXT),
        ("state", _TEXT),
        ("user", _TEXT),
        ("session_id", _TEXT),
        ("query", _TEXT),
        ("created", _TIME),
        ("end", _TIME),
        ("planning_time_ms", _LONG),
        ("output_rows", _LONG),
        ("error_code", _TEXT),
    ]
)


@dataclass(frozen=True, slots=True)
class RuntimeTables:
    """What is known to one user."""

    context: StatementContext

    @property
    def _session(self) -> Session:
        return self.context.session.session

    def rows(self, name: ObjectName) -> pa.Table | None:
        """Return the rows of a table of `system.runtime`, of which SHOW has the same, or None when there is none."""
        match name.name:
            case "sessions":
                return self.session_table()
            case "queries":
                return self._statements(TABLES["queries"], map(_known, self.queries()))
        return None

    def query_table(self) -> pa.Table:
        # The rows that were written are told as well.
        return self._statements(_QUERIES, ({**_known(each), "output_rows": each.rows} for each in self.queries()))

    @staticmethod
    def _statements(schema: pa.Schema, known: Iterable[Mapping[str, object]]) -> pa.Table:
        return to_table(schema, [tuple(map(each.get, schema.names)) for each in known])

    def session_table(self) -> pa.Table:
        return to_table(TABLES["sessions"], [self._session_row(each) for each in self.sessions()])

    def sessions(self) -> list[ListedSession]:
        identity = self._session.identity
        return [
            each
            for each in self.context.parts.sessions.sessions()
            if self.context.is_admin
            or each.is_session(self._session)
            or (identity.personal and each.identity.key == identity.key)
        ]

    def queries(self) -> list[HistoryEntry]:
        mine, identity, is_admin = session_hash(self._session), self._session.identity, self.context.is_admin
        return [
            each
            for each in self.context.parts.recorder.history.entries()
            if is_admin or each.session == mine or (identity.personal and each.user == identity.key)
        ]

    def _session_row(self, each: ListedSession) -> tuple[object, ...]:
        return (
            each.id,
            each.identity.username,
            each.protocol,
            each.client_address,
            "RUNNING" if each.busy else "IDLE",
            each.opened_at,
            int(each.idle_secs),
            each.expires_at,
            each.is_session(self._session),
        )


def _whole(milliseconds: float | None) -> int | None:
    return None if milliseconds is None else int(milliseconds)


def _known(each: HistoryEntry) -> Mapping[str, object]:
    """What is known of a statement, by the names of columns: what is not measured is NULL, and never 0."""
    started = datetime.fromtimestamp(each.started, UTC)
    ended = None if each.ended is None else datetime.fromtimestamp(each.ended, UTC)
    execution = None
    if each.ended is not None:
        execution = max(0, round((each.ended - each.started) * 1000 - (each.planning_ms or 0)))
    return {
        "query_id": each.query_id,
        "state": each.state,
        "user": each.username,
        "source": each.source or each.protocol,
        "session_id": each.session,
        "queued_time_ms": _whole(each.queued_ms),
        "trace_id": each.trace_id,
        "query": each.sql,
        "analysis_time_ms": _whole(each.analysis_ms),
        "planning_time_ms": _whole(each.planning_ms),
        "execution_time_ms": execution,
        "created": started,
        "started": started,
        "last_heartbeat": datetime.now(UTC) if ended is None else ended,
        "end": ended,
        "output_rows": None if each.writes else each.rows,
        "error_type": each.error_type,
        "error_code": None if each.error_code is None else each.error_code.name,
        "rows_scanned": each.rows_scanned,
        "bytes_scanned": each.bytes_scanned,
        "rows_written": each.rows if each.writes else None,
    }
