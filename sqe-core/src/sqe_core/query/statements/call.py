"""CALL: finds the procedure, and its arguments, by place or by name. A new procedure is a module of `procedures/`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from inspect import isabstract
from pkgutil import iter_modules
from typing import Any

from sqe_core.query.context import StatementContext
from sqe_core.query.statements import procedures
from sqe_core.query.statements.handler import Change, Need
from sqe_core.query.statements.procedures.procedure import Procedure
from sqe_core.query.statements.traits import DDL
from sqe_core.spi.errors import ErrorCode, NotSupportedError, UserError
from sqe_core.sql.statements.prepared import Call


def _procedures() -> Mapping[str, Procedure]:
    modules = [import_module(found.name) for found in iter_modules(procedures.__path__, f"{procedures.__name__}.")]
    classes = [value for module in modules for value in vars(module).values() if isinstance(value, type)]
    return {each.name: each() for each in classes if issubclass(each, Procedure) and not isabstract(each)}


PROCEDURES = _procedures()


def _needs(statement: Call) -> Sequence[Need]:
    procedure = _procedure(statement)
    return procedure.needs(statement.catalog, _arguments(procedure, statement))


def _call(statement: Call, context: StatementContext) -> Iterable[Sequence[Any]]:
    procedure = _procedure(statement)
    return procedure.call(statement.catalog, _arguments(procedure, statement), context)


call = Change(
    statement=Call,
    traits=DDL,
    in_engine=True,
    columns=lambda statement: _procedure(statement).columns,
    needs=_needs,
    apply=_call,
)


def _procedure(statement: Call) -> Procedure:
    """Find the procedure; whether its catalog is there is not looked at before."""
    found = PROCEDURES.get(statement.procedure)
    if found is None:
        raise NotSupportedError(
            f"There is no procedure {statement.procedure}",
            hint=f"there are: {', '.join(sorted(PROCEDURES))}",
            condition="PROCEDURE_NOT_FOUND",
        )
    return found


def _arguments(procedure: Procedure, statement: Call) -> Mapping[str, Any]:
    named = statement.named or procedure.by_places(statement.places)
    wanted = ", ".join(argument.name for argument in procedure.arguments)
    if named is None or named.keys() != {argument.name for argument in procedure.arguments}:
        raise _fault(f"{procedure.name} takes the arguments {wanted}")
    for argument in procedure.arguments:
        value = named[argument.name]
        if value is None:
            raise _fault(f"{argument.name} cannot be null")
        if type(value) is not argument.type:
            raise _fault(f"{argument.name} has to be {'a text' if argument.type is str else 'a whole number'}")
    return named


def _fault(message: str) -> UserError:
    return UserError(message, code=ErrorCode.INVALID_ARGUMENTS, condition="INVALID_PROCEDURE_ARGUMENT")
