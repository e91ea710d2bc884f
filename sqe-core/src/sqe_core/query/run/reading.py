"""Reading: the statement that a text is, its handler, and the values of its parameters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from sqe_core.query.context import StatementContext
from sqe_core.query.run.result import Parameters
from sqe_core.query.statements.handler import Handler, StandsFor
from sqe_core.spi.errors import ErrorCode, UserError
from sqe_core.sql.statement import Statement, TextLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadStatement:
    """A statement that was recognised; nothing was looked up."""

    statement: Statement
    handler: Handler[Any]
    parameters: Parameters
    stands_for: bool = False
    """Whether it was sent as what stands for it, with its values."""


def read_statement(context: StatementContext, sql: str, parameters: Parameters, dialect: str) -> ReadStatement:
    """Read a statement; one that stands for another is that one."""
    read = _read(context, sql, parameters, dialect)
    if not isinstance(read.handler, StandsFor):
        return read
    if parameters:
        raise UserError("This statement takes no parameters", code=ErrorCode.INVALID_ARGUMENTS)
    meant = read.handler.meant(read.statement, context, dialect)
    context.stands_for(meant.sql, meant.dialect)
    inner = _read(context, meant.sql, meant.parameters, meant.dialect)
    if isinstance(inner.handler, StandsFor):
        raise UserError("A statement that is executed may not execute another one")
    return replace(inner, stands_for=True)


def recognise(context: StatementContext, statement: Statement) -> Handler[Any]:
    """Tell which statement it is, and return its handler."""
    handler = context.handlers.of(statement)
    context.terms.kind = statement.kind
    context.watch.recognised(statement.kind, handler.traits_of(statement))
    context.running.check()
    return handler


def _read(context: StatementContext, sql: str, parameters: Parameters, dialect: str) -> ReadStatement:
    limits = TextLimits(max_bytes=context.parts.limits.max_sql_bytes)
    statement = context.parts.reader.read(sql, dialect=dialect, limits=limits)
    return ReadStatement(statement=statement, handler=recognise(context, statement), parameters=parameters)
