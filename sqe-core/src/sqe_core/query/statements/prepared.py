"""PREPARE, EXECUTE, EXECUTE IMMEDIATE, DEALLOCATE PREPARE, DESCRIBE INPUT and OUTPUT.

What is kept is text of the user's, by the session or by the client itself; it is read and judged at each EXECUTE like
any statement, with the rights of that moment, and its values are values: nothing is ever pasted (STMT-1, TRI-6).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.types as kinds

from sqe_core.catalog.information_schema import to_table
from sqe_core.catalog.types import display_type
from sqe_core.query.context import StatementContext
from sqe_core.query.run.judging import Judging
from sqe_core.query.run.without_values import parameter_types, plan_without_values
from sqe_core.query.statements.execute_values import parameters
from sqe_core.query.statements.handler import Answer, answer, change, stands_for
from sqe_core.spi.errors import ErrorCode, UserError
from sqe_core.sql.statement import EngineStatement, Statement
from sqe_core.sql.statements.prepared import Deallocate, DescribePrepared, Execute, ExecuteImmediate, Prepare

_INPUT = pa.schema([("Position", pa.int64()), ("Type", pa.string())])
_OUTPUT = pa.schema(
    [
        ("Column Name", pa.string()),
        ("Catalog", pa.string()),
        ("Schema", pa.string()),
        ("Table", pa.string()),
        ("Type", pa.string()),
        ("Type Size", pa.int64()),
        ("Aliased", pa.bool_()),
    ]
)
# What types of parameters are called; others are unknown, as Trino says.
_TYPES = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "integer",
    pa.int64(): "bigint",
    pa.float32(): "real",
    pa.float64(): "double",
    pa.string(): "varchar",
    pa.binary(): "varbinary",
    pa.date32(): "date",
    pa.timestamp("us"): "timestamp(6)",
    pa.timestamp("us", tz="UTC"): "timestamp(6) with time zone",
}

# The bytes of a value, as Trino counts them; other types have no size.
_SIZES = {"boolean": 1, "tinyint": 1, "smallint": 2, "integer": 4, "bigint": 8, "real": 4, "double": 8, "date": 4}


@change(Prepare, of_session=True)
def prepare(statement: Prepare, context: StatementContext) -> None:
    """PREPARE name FROM statement: the text was recognised, and is judged when it is executed."""
    context.session.put_prepared(statement.name, statement.prepared)


@change(Deallocate, of_session=True)
def deallocate(statement: Deallocate, context: StatementContext) -> None:
    if not context.session.drop_prepared(statement.name):
        raise _no_statement(statement.name)


@stands_for(Execute)
def execute(statement: Execute, context: StatementContext) -> tuple[str, Sequence[Any]]:
    return _text(context, statement.name), parameters(statement.values)


@stands_for(ExecuteImmediate)
def execute_immediate(statement: ExecuteImmediate, context: StatementContext) -> tuple[str, Sequence[Any]]:
    return statement.executed, parameters(statement.values)


@answer(DescribePrepared)
def describe_prepared(statement: DescribePrepared, context: StatementContext) -> pa.Table:
    """DESCRIBE INPUT and DESCRIBE OUTPUT, in the columns of Trino."""
    inner = context.read_meant(_text(context, statement.name))
    # PREPARE refuses these, but a client may keep its text itself.
    if isinstance(inner, Prepare | Execute | ExecuteImmediate | Deallocate | DescribePrepared):
        raise UserError("A prepared statement may not prepare or execute another one")
    told = _input(inner, context) if statement.what == "input" else _output(inner, context)
    table = to_table(_INPUT if statement.what == "input" else _OUTPUT, list(told))
    return table.cast(_with_integers(table.schema)) if context.trino else table


def _with_integers(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field.with_type(pa.int32()) if field.type == pa.int64() else field for field in schema])


def _input(inner: Statement, context: StatementContext) -> Iterator[Sequence[object]]:
    if not isinstance(inner, EngineStatement) or not inner.parameters:
        return
    names = tuple(dict.fromkeys(inner.parameters))
    judging = Judging(context)
    with judging.scope():
        plan = plan_without_values(judging, inner, names)
    types = dict(zip(names, parameter_types(plan, len(names)), strict=True))
    for place, name in enumerate(inner.parameters):
        yield place, _type_name(types[name])


def _output(inner: Statement, context: StatementContext) -> Iterator[Sequence[object]]:
    columns: list[tuple[str, str]] = []
    if isinstance(inner, EngineStatement):
        judging = Judging(context)
        with judging.scope():
            plan = plan_without_values(judging, inner, tuple(dict.fromkeys(inner.parameters)))
        if plan is not None and not plan.is_command:
            names = inner.column_names or plan.schema.names
            columns = list(zip(names, map(display_type, plan.column_types), strict=True))
    else:
        handler = context.handlers.of(inner)
        if isinstance(handler, Answer):
            handler.require_admin(context)
            columns = [(each.name, _type_name(each.type)) for each in handler.rows(inner, context).schema]
    aliased = inner.aliased if isinstance(inner, EngineStatement) else ()
    for at, (name, type_text) in enumerate(columns):
        size = _SIZES.get(type_text.partition("(")[0], 0) if context.trino else 0
        yield name, "", "", "", type_text, size, at in aliased


def _text(context: StatementContext, name: str) -> str:
    text = context.session.prepared.get(name)
    if text is None:
        raise _no_statement(name)
    return text


def _no_statement(name: str) -> UserError:
    return UserError(
        f"Prepared statement {name} does not exist",
        code=ErrorCode.INVALID_ARGUMENTS,
        hint="PREPARE name FROM statement makes one",
        condition="NOT_FOUND",
    )


def _type_name(type: pa.DataType) -> str:
    if kinds.is_decimal(type):
        return f"decimal({type.precision},{type.scale})"
    return _TYPES.get(type, "unknown")
