"""SHOW SESSIONS, SHOW QUERIES and KILL: everybody sees and ends their own, administrators everything (TRI-3, TRI-9)."""

from __future__ import annotations

from collections.abc import Mapping

from sqe_core.policy.trail import StoredChange
from sqe_core.query.answers.sessions import RuntimeTables
from sqe_core.query.context import StatementContext
from sqe_core.query.statements.handler import answer, change
from sqe_core.query.statements.traits import DDL
from sqe_core.spi.errors import ErrorCode, UserError
from sqe_core.sql.statements.session_control import KillQuery, KillSession, ShowQueries, ShowSessions

show_sessions = answer(ShowSessions)(lambda statement, context: RuntimeTables(context).session_table())
show_queries = answer(ShowQueries)(lambda statement, context: RuntimeTables(context).query_table())


@change(KillQuery, traits=DDL)
def kill_query(statement: KillQuery, context: StatementContext) -> None:
    """KILL QUERY; one of somebody else is answered like one that does not run."""
    found = next((each for each in RuntimeTables(context).queries() if each.query_id == statement.query_id), None)
    if found is None or not context.others.cancel_any(found.query_id):
        raise UserError(
            "There is no running query of that id",
            code=ErrorCode.INVALID_ARGUMENTS,
            hint="SHOW QUERIES lists them",
            condition="NOT_FOUND",
        )
    whose = {"query_id": found.query_id, "issuer": found.user[0], "subject": found.user[1]}
    _tell(context, "KILL QUERY", found.query_id, whose, statement.message)


@change(KillSession, traits=DDL)
def kill_session(statement: KillSession, context: StatementContext) -> None:
    """KILL SESSION; one of somebody else is answered like one that is not there."""
    found = next((each for each in RuntimeTables(context).sessions() if each.id == statement.session_id), None)
    if found is None:
        raise UserError(
            "There is no session of that id", code=ErrorCode.INVALID_ARGUMENTS, hint="SHOW SESSIONS lists them"
        )
    if found.is_session(context.session.session):
        raise UserError(
            "A statement cannot end the session that it runs in",
            code=ErrorCode.INVALID_ARGUMENTS,
            hint="disconnect, or end it from another session",
        )
    context.parts.sessions.kill(found)
    issuer, subject = found.identity.key
    whose = {"session_id": found.id, "issuer": issuer, "subject": subject}
    _tell(context, "KILL SESSION", found.id, whose, statement.message)


def _tell(context: StatementContext, operation: str, name: str, whose: Mapping[str, str], message: str | None) -> None:
    """Tell the audit who was ended, and why."""
    if context.trail is not None:
        change = StoredChange(operation=operation, before={name: whose}, after={name: {"message": message}})
        context.trail.changed([change])
