"""Statements about who is connected and what runs: SHOW SESSIONS, SHOW QUERIES, KILL, and Trino's words for the last.

KILL [QUERY] 'id'           CALL system.runtime.kill_query(query_id => 'id', message => 'why')
KILL SESSION 'id'           CALL system.runtime.kill_session(session_id => 'id', message => 'why')
"""

from __future__ import annotations

from sqe_core.sql.statement import Statement, StatementKind
from sqe_core.sql.statements import prepared, refusals
from sqe_core.sql.text.context import StatementText
from sqe_core.sql.text.cursor import Cursor
from sqe_core.sql.text.tokens import NAMES, Kind

_LONGEST = 128
_LONGEST_MESSAGE = 1000


class ShowSessions(Statement, kind=StatementKind.SHOW):
    """The caller's own; for administrators everybody's."""


class ShowQueries(Statement, kind=StatementKind.SHOW):
    """The caller's own, those that run and the last ones; for administrators everybody's."""


class KillQuery(Statement, kind=StatementKind.KILL):
    query_id: str
    message: str | None = None
    """Why, for the audit log."""


class KillSession(Statement, kind=StatementKind.KILL):
    session_id: str
    message: str | None = None


def kill(statement: StatementText) -> Statement:
    """KILL [QUERY | SESSION] 'id'."""
    cursor = statement.cursor(1)
    what = cursor.accept_any("query", "session", "connection") or "query"
    found = _id(cursor, "query" if what == "query" else "session")
    cursor.done()
    return KillQuery(query_id=found) if what == "query" else KillSession(session_id=found)


def call(statement: StatementText) -> Statement:
    """CALL system.runtime.kill_query(…) and kill_session(…), and the procedures of catalogs."""
    cursor = statement.cursor(1)
    if cursor.token.kind not in NAMES:
        refusals.refuse(statement)
    name = statement.cursor(1).name("the name of a procedure")
    if name[-2:-1] == ("system",):
        return prepared.call(cursor)
    if name[:2] != ("system", "runtime"):
        hint = "those of a catalog are called catalog.system.procedure"
        cursor.refuse(f"There is no procedure {'.'.join(name)}", hint=hint, condition="PROCEDURE_NOT_FOUND")
    cursor.name()
    if name[2:] not in (("kill_query",), ("kill_session",)):
        hint = "there are kill_query and kill_session"
        cursor.refuse(f"There is no procedure {'.'.join(name)}", hint=hint, condition="PROCEDURE_NOT_FOUND")
    what = name[2].removeprefix("kill_")
    values = _arguments(cursor, (f"{what}_id", "message"))
    cursor.done()
    found, message = values.get(f"{what}_id"), values.get("message")
    if not found:
        cursor.fail(f"{what}_id => '…'")
    if what == "session":
        return KillSession(session_id=found, message=message)
    return KillQuery(query_id=found, message=message)


def _arguments(cursor: Cursor, names: tuple[str, ...]) -> dict[str, str]:
    """Read strings by their names, or in this order."""
    values: dict[str, str] = {}
    cursor.expect_symbol("(")
    while not cursor.at_symbol(")"):
        name = names[len(values)] if len(values) < len(names) else ""
        if cursor.peek().is_symbol("=>"):
            name = cursor.part()
            cursor.advance()
        if name not in names or name in values:
            cursor.fail(" or ".join(f"{each} => '…'" for each in names if each not in values) or '")"')
        values[name] = _text(cursor, name)
        if not cursor.accept_symbol(","):
            break
    cursor.expect_symbol(")")
    return values


def _text(cursor: Cursor, name: str) -> str:
    longest = _LONGEST_MESSAGE if name == "message" else _LONGEST
    token = cursor.token
    value = cursor.string()
    if len(value) > longest:
        cursor.refuse(f"{name} has at most {longest} characters", at=token)
    return value


def _id(cursor: Cursor, what: str) -> str:
    if cursor.token.kind is not Kind.STRING:
        shown = "SHOW QUERIES" if what == "query" else "SHOW SESSIONS"
        cursor.fail(f"the id of a {what} in single quotes", hint=f"{shown} lists them")
    return _text(cursor, f"The id of a {what}")
