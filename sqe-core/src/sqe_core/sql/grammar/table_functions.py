"""Functions that stand in FROM."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from sqe_core.spi.errors import ErrorCode, UserError
from sqe_core.sql.grammar.nodes import Call
from sqe_core.sql.grammar.types import spark_identifier
from sqe_core.sql.spark.write_calls import argument
from sqe_core.sql.spark.writer import Writer

_SERIES = ("sequence", "generate_series", "range")
_SERIES_ARGUMENTS = ("start", "stop", "step")
_METADATA = ("snapshots", "manifests", "history", "files", "partitions", "refs")
_LATER = ("read_parquet", "read_csv", "read_json", "read_avro", "read_delta", "quack_query")


def write_table_function(writer: Writer, call: Call) -> str:
    name = str(call.this)
    metadata = name.removeprefix("table_")
    if name.startswith("table_") and metadata in _METADATA:
        return _metadata_table(writer, call, metadata)
    if name in _SERIES:
        return writer.place(call) + _series(writer, call, name)
    position = writer.text.position(call.meta.get("start", 0))
    if name in _LATER:
        writer.refuse(f"{name} is not supported yet", call, hint="it comes with a later release")
    raise UserError(
        f"Table function {name[:80]} does not exist",
        code=ErrorCode.FUNCTION_NOT_FOUND,
        hint="the table functions are unnest, sequence, generate_series, range and table_snapshots",
        position=position,
    )


def is_generated(table: Any) -> bool:
    """Whether a table is made by a function, which may use the tables to its left."""
    return (
        isinstance(table, exp.Table)
        and isinstance(table.this, Call)
        and str(table.this.this) in _SERIES
        and _bounds(table.this, str(table.this.this)) is None
    )


def table_function_alias(writer: Writer, table: Any) -> str:
    """The alias of a call in FROM; its column is called like it unless it has a name."""
    alias, name = table.args.get("alias"), str(table.this.this)
    if name not in _SERIES:
        return f" AS {writer.write(alias)}" if alias is not None else ""
    if alias is not None and alias.args.get("columns"):
        return f" AS {writer.write(alias)}"
    own = "sequential_number" if name == "sequence" else name
    table_name = writer.write(alias) if alias is not None else spark_identifier(name)
    return f" AS {table_name}({table_name if alias is not None else spark_identifier(own)})"


def _bounds(call: Call, name: str) -> tuple[int, int, int] | None:
    """Start, exclusive end and step of a series of whole numbers that are written out, else None."""
    numbers: list[int] = []
    for one in _in_order(call):
        sign, value = (-1, one.this) if isinstance(one, exp.Neg) else (1, one)
        if not (isinstance(value, exp.Literal) and not value.is_string and str(value.this).isdigit()):
            return None
        numbers.append(sign * int(str(value.this)))
    if name == "range":
        if len(numbers) == 1:
            numbers.insert(0, 0)
        return (numbers[0], numbers[1], 1) if len(numbers) == 2 else None
    if len(numbers) == 2:
        numbers.append(1)
    if len(numbers) != 3 or numbers[2] == 0:
        return None
    start, stop, step = numbers
    return start, stop + (1 if step > 0 else -1), step


def _series(writer: Writer, call: Call, name: str) -> str:
    bounds = _bounds(call, name)
    if bounds is not None and all(abs(bound) < 2**62 for bound in bounds):
        # The engine's own relation: made in parallel, batch by batch, where an array would have to fit in memory.
        return f"range({bounds[0]}, {bounds[1]}, {bounds[2]})"
    arguments = [argument(writer, _value(writer, one)) for one in _in_order(call)]
    if name == "range":
        if len(arguments) == 1:
            arguments.insert(0, "0")
        if len(arguments) != 2:
            writer.refuse("range takes a start and a stop", call, hint="with a step, use generate_series")
        return f"explode(_sqe_series({arguments[0]}, {arguments[1]} - 1))"
    if len(arguments) not in (2, 3):
        writer.refuse(f"{name} takes a start, a stop and perhaps a step", call)
    return f"explode(_sqe_series({', '.join(arguments)}))"


def _in_order(call: Call) -> list[Any]:
    """The values of start => 1 and the like in their order, where all are named and none is missing."""
    given = {str(one.this.name).lower(): one.expression for one in call.expressions if isinstance(one, exp.Kwarg)}
    order = _SERIES_ARGUMENTS[: len(given)]
    if not given or len(given) != len(call.expressions) or set(given) != set(order):
        return list(call.expressions)
    return [given[name] for name in order]


def _value(writer: Writer, node: Any) -> Any:
    if isinstance(node, exp.Kwarg):
        writer.refuse("Named arguments are not supported here", node, hint="give the values in order")
    return node


def _metadata_table(writer: Writer, call: Call, metadata: str) -> str:
    parts = []
    for one in call.expressions:
        if not (isinstance(one, exp.Literal) and one.is_string):
            writer.refuse(f"{call.this} takes names in single quotes", call)
        parts.append(str(one.this))
    if not 1 <= len(parts) <= 3:
        writer.refuse(f"{call.this} takes the name of a table", call, hint=f"as in {call.this}('schema', 'table')")
    parts[-1] = f"{parts[-1]}${metadata}"
    return writer.place(call) + ".".join(spark_identifier(part) for part in parts)
