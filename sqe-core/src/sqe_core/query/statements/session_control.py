"""Who is connected and what runs, as far as a user may know, and its end (TRI-9).

Administrators see and end everything; everybody else what is their own. Of an identity that many people share nobody
knows whose is whose: there, a session sees itself alone. What is another's is answered like what is not there (TRI-3).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa

from sqe_core.catalog.information_schema import to_table
from sqe_core.catalog.system import TABLES
from sqe_core.observe.history import HistoryEntry, QueryHistory
from sqe_core.policy.trail import StoredChange
from sqe_core.session.directory import ListedSession, SessionDirectory
from sqe_core.session.fingerprint import session_hash
from sqe_core.session.session import Session
from sqe_core.spi.errors import ErrorCode, UserError
from sqe_core.spi.identity import Identity
from sqe_core.spi.names import ObjectName
from sqe_core.sql.statement import Statement
from sqe_core.sql.statements.session_control import KillQuery, KillSession, ShowQueries, ShowSessions

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


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionControl:
    """Answers and carries out for one statement of one session."""

    session: Session
    identity: Identity
    is_admin: bool
    directory: SessionDirectory
    history: QueryHistory
    cancel: Callable[[str], bool]
    """Ends a statement of anybody by its id; False when it does not run."""
    changed: Callable[[Sequence[StoredChange]], None]
    """Is told who was ended, and why, for the audit."""

    def answer(self, statement: Statement) -> pa.Table | None:
        """Return the rows of a statement that asks, or None when it is none of these."""
        match statement:
            case ShowSessions():
                return self._session_table()
            case ShowQueries():
                return to_table(_QUERIES, [_query_row(each) for each in self._queries()])
        return None

    def rows(self, name: ObjectName) -> pa.Table | None:
        """Return the rows of a table of `system.runtime`, of which SHOW has the same, or None when there is none."""
        match name.name:
            case "sessions":
                return self._session_table()
            case "queries":
                return to_table(TABLES["queries"], [_runtime_row(each) for each in self._queries()])
        return None

    def _session_table(self) -> pa.Table:
        return to_table(TABLES["sessions"], [self._session_row(each) for each in self._sessions()])

    def apply(self, statement: Statement) -> bool:
        """End what a statement names; False when it is none of these."""
        match statement:
            case KillQuery():
                self._kill_query(statement)
            case KillSession():
                self._kill_session(statement)
            case _:
                return False
        return True

    def _sessions(self) -> list[ListedSession]:
        return [
            each
            for each in self.directory.sessions()
            if self.is_admin
            or each.is_session(self.session)
            or (self.identity.personal and each.identity.key == self.identity.key)
        ]

    def _queries(self) -> list[HistoryEntry]:
        mine = session_hash(self.session)
        return [
            each
            for each in self.history.entries()
            if self.is_admin or each.session == mine or (self.identity.personal and each.user == self.identity.key)
        ]

    def _kill_query(self, statement: KillQuery) -> None:
        found = next((each for each in self._queries() if each.query_id == statement.query_id), None)
        if found is None or not self.cancel(found.query_id):
            raise UserError(
                "There is no running query of that id", code=ErrorCode.INVALID_ARGUMENTS, hint="SHOW QUERIES lists them"
            )
        whose = {"query_id": found.query_id, "issuer": found.user[0], "subject": found.user[1]}
        self._tell("KILL QUERY", whose, statement.message)

    def _kill_session(self, statement: KillSession) -> None:
        found = next((each for each in self._sessions() if each.id == statement.session_id), None)
        if found is None:
            raise UserError(
                "There is no session of that id", code=ErrorCode.INVALID_ARGUMENTS, hint="SHOW SESSIONS lists them"
            )
        if found.is_session(self.session):
            raise UserError(
                "A statement cannot end the session that it runs in",
                code=ErrorCode.INVALID_ARGUMENTS,
                hint="disconnect, or end it from another session",
            )
        self.directory.kill(found)
        issuer, subject = found.identity.key
        self._tell("KILL SESSION", {"session_id": found.id, "issuer": issuer, "subject": subject}, statement.message)

    def _tell(self, operation: str, whose: dict[str, str], message: str | None) -> None:
        name = whose.get("session_id") or whose["query_id"]
        self.changed([StoredChange(operation=operation, before={name: whose}, after={name: {"message": message}})])

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
            each.is_session(self.session),
        )


def _query_row(each: HistoryEntry) -> tuple[object, ...]:
    return (
        each.query_id,
        each.state,
        each.username,
        each.session,
        each.sql,
        datetime.fromtimestamp(each.started, UTC),
        None if each.ended is None else datetime.fromtimestamp(each.ended, UTC),
        None if each.planning_ms is None else int(each.planning_ms),
        each.rows,
        None if each.error_code is None else each.error_code.name,
    )


def _runtime_row(each: HistoryEntry) -> tuple[object, ...]:
    """What is not measured is NULL, and never 0."""
    started = datetime.fromtimestamp(each.started, UTC)
    ended = None if each.ended is None else datetime.fromtimestamp(each.ended, UTC)
    execution = None
    if each.ended is not None:
        execution = max(0, round((each.ended - each.started) * 1000 - (each.planning_ms or 0)))
    known: dict[str, object] = {
        "query_id": each.query_id,
        "state": each.state,
        "user": each.username,
        "source": each.protocol,
        "query": each.sql,
        "planning_time_ms": None if each.planning_ms is None else int(each.planning_ms),
        "execution_time_ms": execution,
        "created": started,
        "started": started,
        "last_heartbeat": datetime.now(UTC) if ended is None else ended,
        "end": ended,
        "output_rows": None if each.writes else each.rows,
        "error_type": each.error_type,
        "error_code": None if each.error_code is None else each.error_code.name,
        "rows_written": each.rows if each.writes else None,
    }
    return tuple(known.get(column) for column in TABLES["queries"].names)
