"""Reading: the statement that a text is, its handler, and the values of its parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqe_core.query.context import StatementContext
from sqe_core.query.run.result import Parameters
from sqe_core.query.statements.handler import Handler, StandsFor
from sqe_core.query.statements.transactions import TransactionOf
from sqe_core.spi.errors import ErrorCode, UserError
from sqe_core.sql.statement import Statement


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadStatement:
    """A statement that was recognised; nothing was looked up."""

    statement: Statement
    handler: Handler[Any]
    parameters: Parameters
    stands_for: bool = False
    """Whether it was sent as what stands for it, with its values."""


def read_statement(context: StatementContext, sql: str, parameters: Parameters) -> ReadStatement:
    """Read a statement; one that stands for another is that one."""
    statement = context.parts.read(sql, context.dialect)
    handler = recognise(context, statement)
    if not isinstance(handler, StandsFor):
        return ReadStatement(statement=statement, handler=handler, parameters=parameters)
    if parameters:
        message = "This statement takes no parameters"
        raise UserError(message, code=ErrorCode.INVALID_ARGUMENTS, condition="INVALID_PARAMETER_USAGE")
    meant, values = handler.meant(statement, context)
    inner = context.read_meant(meant)
    its_handler = recognise(context, inner)
    if isinstance(its_handler, StandsFor):
        raise UserError("A statement that is executed may not execute another one")
    return ReadStatement(statement=inner, handler=its_handler, parameters=values, stands_for=True)


def recognise(context: StatementContext, statement: Statement) -> Handler[Any]:
    """Tell which statement it is, and return its handler."""
    handler = context.handlers.of(statement)
    context.terms.kind = statement.kind
    context.watch.recognised(statement.kind, handler.traits_of(statement))
    context.running.check()
    TransactionOf(context).check(handler, statement)
    return handler
