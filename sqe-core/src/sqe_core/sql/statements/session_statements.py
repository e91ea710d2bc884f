"""Statements about the session: USE, SET SESSION, transactions, and those that are accepted and do nothing."""

from __future__ import annotations

from typing import Any

from sqe_core.spi.errors import NotSupportedError
from sqe_core.sql.statement import (
    NoOperation,
    ResetSession,
    SetPath,
    SetSession,
    SetTimeZone,
    Statement,
    StatementKind,
    TransactionControl,
    Use,
)
from sqe_core.sql.statements.roles import set_role
from sqe_core.sql.text.context import StatementText
from sqe_core.sql.text.cursor import Cursor
from sqe_core.sql.text.time_zone import zone_name
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
    if cursor.accept("path"):
        return _path(statement, cursor)
    if cursor.at("transaction") or cursor.at("session", "characteristics"):
        return NoOperation(kind=StatementKind.TRANSACTION)
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
    """SET TIME ZONE 'Europe/Amsterdam' | '+02:00' | 2 | INTERVAL '2' HOUR | LOCAL."""
    start = cursor.token
    sign = "-" if cursor.accept_symbol("-") else ""
    if not sign and cursor.accept_any("local", "default") is not None:
        cursor.done()
        return SetTimeZone(zone=None)
    if cursor.accept("interval"):
        sign = "-" if cursor.accept_symbol("-") else ""
        written = sign + cursor.string()
        cursor.expect("hour")
        if cursor.accept("to"):
            cursor.expect("minute")
    elif cursor.token.kind is Kind.NUMBER or (cursor.token.kind is Kind.STRING and not sign):
        written = sign + str(cursor.advance().value)
    else:
        cursor.fail("a time zone in single quotes")
    cursor.done()
    zone = zone_name(f"+{written}" if written[:1].isdigit() else written)
    if zone is None:
        raise NotSupportedError(
            f"Time zone {written[:64]} does not exist",
            hint="write a region such as 'Europe/Amsterdam', or an offset such as '+02:00'",
            position=statement.text.position(start.start),
        )
    return SetTimeZone(zone=zone)


def _path(statement: StatementText, cursor: Cursor) -> Statement:
    """SET PATH catalog.schema, …"""
    first = cursor.index
    cursor.items(lambda cursor: cursor.name("catalog.schema", most=2))
    cursor.done()
    return SetPath(path=cursor.source(first, statement.last))


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
    """RESET SESSION name, RESET SESSION, RESET SESSION AUTHORIZATION: everybody is who logged in."""
    cursor = statement.cursor(1)
    if not cursor.accept("session"):
        cursor.refuse("RESET is not supported", hint="write RESET SESSION name, or RESET SESSION for all properties")
    if cursor.accept("authorization"):
        cursor.done()
        return NoOperation(kind=StatementKind.SESSION)
    name = None if cursor.at_end or cursor.accept("all") else ".".join(cursor.name("the name of a session property"))
    cursor.done()
    return ResetSession(name=name)


_LEVELS = ("read uncommitted", "read committed", "repeatable read", "serializable")


def begin(statement: StatementText) -> Statement:
    """BEGIN and START TRANSACTION [ISOLATION LEVEL …] [, READ ONLY | READ WRITE]."""
    cursor = statement.cursor()
    if cursor.advance().value == "start":
        cursor.expect("transaction")
    elif not cursor.at_end and cursor.accept_any("transaction", "work") is None:
        cursor.refuse("Scripts between BEGIN and END are not supported", hint="send the statements one by one")
    isolation: str | None = None
    read_only: bool | None = None
    while not cursor.at_end:
        if isolation is None and cursor.accept("isolation", "level"):
            found = [level for level in _LEVELS if cursor.accept(*level.split())]
            isolation = found[0].upper() if found else cursor.fail("an isolation level")
        elif read_only is None and cursor.accept("read"):
            read_only = (cursor.accept_any("only", "write") or cursor.fail("ONLY or WRITE")) == "only"
        else:
            cursor.fail("ISOLATION LEVEL, READ ONLY or READ WRITE")
        cursor.accept_symbol(",")
    return TransactionControl(what="start", read_only=bool(read_only), isolation=isolation)


def end_transaction(statement: StatementText) -> Statement:
    """COMMIT and ROLLBACK."""
    cursor = statement.cursor()
    committed = cursor.advance().value == "commit"
    cursor.accept_any("work", "transaction")
    if cursor.at("to"):
        cursor.refuse("Savepoints are not supported: each statement commits by itself")
    cursor.done()
    return TransactionControl(what="commit" if committed else "rollback")


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
