"""Statements about the session: USE, SET SESSION, transactions, and those that are accepted and do nothing."""

from __future__ import annotations

from typing import Any

from sqe_core.spi.errors import NotSupportedError
from sqe_core.sql.statement import (
    NoOperation,
    ResetSession,
    SetSession,
    Statement,
    StatementKind,
    TransactionControl,
    Use,
)
from sqe_core.sql.statements.roles import set_role
from sqe_core.sql.text.context import StatementText
from sqe_core.sql.text.cursor import Cursor
from sqe_core.sql.text.time_zone import is_utc
from sqe_core.sql.text.tokens import Kind

_PROPERTIES_HINT = "session properties are set with SET SESSION name = value; SHOW SESSION lists them"


def use(statement: StatementText) -> Statement:
    """USE catalog.schema, USE schema, USE catalog."""
    cursor = statement.cursor(1)
    if cursor.before_name("schema", "database", "catalog", "namespace"):
        cursor.advance()
    name = cursor.name("the name of a catalog or a schema", most=2)
    cursor.done()
    return Use(name=name)


def set_(statement: StatementText) -> Statement:
    """SET SESSION name = literal, SET TIME ZONE …, SET ROLE …"""
    cursor = statement.cursor(1)
    if cursor.at("session", "authorization"):
        cursor.refuse("SET SESSION AUTHORIZATION is not supported", hint="log in as that user")
    if cursor.accept("time", "zone"):
        return _time_zone(statement, cursor)
    if cursor.accept("role"):
        return set_role(cursor)
    if cursor.at("transaction") or cursor.at("session", "characteristics"):
        return TransactionControl()
    if cursor.at("write_branch"):
        cursor.refuse("SET WRITE_BRANCH is not supported", hint="it comes with a later release")
    if not cursor.accept("session"):
        cursor.refuse("SET is not supported", hint=_PROPERTIES_HINT)
    name = ".".join(cursor.name("the name of a session property"))
    cursor.expect_symbol("=")
    value = _value(cursor)
    cursor.done()
    return SetSession(name=name, value=value)


def _time_zone(statement: StatementText, cursor: Cursor) -> Statement:
    """Every session is in UTC; to accept another zone and stay there would give wrong times."""
    start = cursor.token
    if cursor.accept("interval"):
        zone = cursor.string()
        cursor.expect("hour")
        if cursor.accept("to"):
            cursor.expect("minute")
    elif cursor.accept_any("local", "default") is not None:
        zone = "UTC"
    elif start.kind in (Kind.STRING, Kind.NUMBER):
        zone = str(cursor.advance().value)
    else:
        cursor.fail("a time zone in single quotes")
    cursor.done()
    if not is_utc(zone):
        raise NotSupportedError(
            "The time zone of a session cannot be changed: it is UTC",
            hint="for the time in a zone write x AT TIME ZONE 'Europe/Amsterdam'",
            position=statement.text.position(start.start),
        )
    return NoOperation(kind=StatementKind.SESSION)


def _value(cursor: Cursor) -> Any:
    token = cursor.token
    if token.kind is Kind.STRING:
        return cursor.string()
    for word, value in (("true", True), ("false", False), ("null", None)):
        if cursor.accept(word):
            return value
    sign = -1 if cursor.accept_symbol("-") else 1
    if cursor.token.kind is not Kind.NUMBER:
        cursor.fail("a literal", hint="strings stand in single quotes")
    number = cursor.advance().value
    return sign * (int(number) if number.isdigit() else float(number))


def reset(statement: StatementText) -> Statement:
    """RESET SESSION name, RESET SESSION."""
    cursor = statement.cursor(1)
    if not cursor.accept("session"):
        cursor.refuse("RESET is not supported", hint="write RESET SESSION name, or RESET SESSION for all properties")
    if cursor.at("authorization"):
        cursor.refuse("RESET SESSION AUTHORIZATION is not supported")
    name = None if cursor.at_end or cursor.accept("all") else ".".join(cursor.name("the name of a session property"))
    cursor.done()
    return ResetSession(name=name)


def begin(statement: StatementText) -> Statement:
    """BEGIN and START TRANSACTION, with any isolation level: they do nothing."""
    cursor = statement.cursor()
    if cursor.advance().value == "start":
        cursor.expect("transaction")
    elif not cursor.at_end and cursor.accept_any("transaction", "work") is None:
        cursor.refuse("Scripts between BEGIN and END are not supported", hint="send the statements one by one")
    modes = ("isolation", "level", "read", "write", "only", "committed", "uncommitted", "repeatable", "serializable")
    while cursor.accept_any(*modes) or cursor.accept_symbol(","):
        pass
    cursor.done()
    return TransactionControl()


def end_transaction(statement: StatementText) -> Statement:
    """COMMIT and ROLLBACK: they do nothing."""
    cursor = statement.cursor(1)
    cursor.accept_any("work", "transaction")
    if cursor.at("to"):
        cursor.refuse("Savepoints are not supported: each statement commits by itself")
    cursor.done()
    return TransactionControl()


def analyze(statement: StatementText) -> Statement:
    """ANALYZE t: does nothing, but the table must exist."""
    cursor = statement.cursor(1)
    cursor.accept("table")
    name = cursor.name("the name of a table")
    if cursor.accept("with"):
        cursor.skip_brackets()
    elif cursor.accept("compute", "statistics"):
        # Which statistics are asked for does not matter: none are computed.
        cursor = statement.cursor(statement.last)
    cursor.done()
    return NoOperation(must_exist=name)
