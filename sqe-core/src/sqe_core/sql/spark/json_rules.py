"""The SQL standard's JSON functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp

from sqe_core.sql.grammar.nodes import Conversion
from sqe_core.sql.grammar.types import SqlType
from sqe_core.sql.spark.write_calls import Calling, named
from sqe_core.sql.text.context import Dialect

_WRAPPERS = {None: 0, "conditional": 1, "unconditional": 2}


def _options(calling: Calling) -> dict[str, Any]:
    return dict(calling.node.args.get("options") or {})


def _value(calling: Calling) -> str:
    options = _options(calling)
    on_empty, on_error = options.get("on_empty"), options.get("on_error")
    for handling in (on_empty, on_error):
        if handling not in (None, "null", "error") and not isinstance(handling, exp.Expression):
            raise calling.error("JSON_VALUE takes NULL, ERROR or DEFAULT … ON EMPTY or ON ERROR")
    if isinstance(on_error, exp.Expression):
        calling.writer.refuse("DEFAULT … ON ERROR is not supported", calling.node, hint="use DEFAULT … ON EMPTY")
    flags = f"{_flag(on_empty == 'error')}, {_flag(on_error == 'error')}"
    written = f"_sqe_json_value({calling.written(0)}, {calling.written(1)}, {flags})"
    returning = options.get("returning")
    if isinstance(on_empty, exp.Expression):
        exists = f"_sqe_json_exists({calling.written(0)}, {calling.written(1)})"
        default = calling.writer.write(on_empty)
        written = f"if({exists}, {written}, {default})"
    if isinstance(returning, SqlType) and returning.name != "varchar":
        return f"CAST({written} AS {returning.spark()})"
    return written


def _flag(value: bool) -> str:
    return "TRUE" if value else "FALSE"


def _query(calling: Calling) -> str:
    options = _options(calling)
    for key in ("on_empty", "on_error"):
        if options.get(key) not in (None, "null"):
            calling.writer.refuse(f"Only NULL {key.replace('_', ' ').upper()} is supported", calling.node)
    returning = options.get("returning")
    if isinstance(returning, SqlType) and returning.name != "varchar":
        calling.writer.refuse("Only RETURNING VARCHAR is supported", calling.node)
    wrapper = _WRAPPERS[options.get("wrapper")]
    omit = _flag(options.get("quotes") == "omit")
    return f"_sqe_json_query({calling.written(0)}, {calling.written(1)}, {wrapper}, {omit})"


def _exists(calling: Calling) -> str:
    if _options(calling).get("on_error") not in (None, "false"):
        calling.writer.refuse("Only FALSE ON ERROR is supported", calling.node)
    return f"_sqe_json_exists({calling.written(0)}, {calling.written(1)})"


def _object(calling: Calling) -> str:
    options = _options(calling)
    if not calling.arguments:
        return "'{}'"
    pairs: list[tuple[str, str]] = []
    for at in range(0, len(calling.arguments), 2):
        key = calling.literal(at)
        if key is None:
            calling.writer.refuse("The keys of JSON_OBJECT must be string literals", calling.node)
        pairs.append((key, _member(calling, at + 1, options)))
    keep = "'false'" if options.get("nulls", "null") == "null" else "'true'"
    return f"to_json({named(pairs)}, map('ignoreNullFields', {keep}))"


def _array(calling: Calling) -> str:
    options = _options(calling)
    members = [f"_sqe_to_json({_member(calling, at, options)})" for at in range(len(calling.arguments))]
    if not members:
        return "'[]'"
    array = f"array({', '.join(members)})"
    if options.get("nulls", "absent") == "absent":
        return f"to_json(to_variant_object(array_compact({array})))"
    return f"to_json(to_variant_object({array}))"


def _array_get(calling: Calling) -> str:
    calling.count(2)
    text, index = calling.written(0), calling.written(1)
    if calling.writer.dialect is Dialect.TRINO and _is_result(calling.node):
        # What Trino's clients see of a text has no quotes; what is computed of it needs JSON.
        return f"_sqe_declared(_sqe_json_array_shown({text}, {index}), 'json')"
    return f"_sqe_variant(_sqe_json_array_get({text}, {index}))"


def _is_result(node: Any) -> bool:
    """Whether an expression is a column of what the statement answers."""
    holder = node.parent.parent if isinstance(node.parent, exp.Alias) else node.parent
    return isinstance(holder, exp.Select) and holder.parent is None


def _member(calling: Calling, at: int, options: dict[str, Any]) -> str:
    """A member; what is JSON already is not quoted again."""
    node = calling.arguments[at]
    if at in options.get("json", ()):
        return f"parse_json({calling.written(at)})"
    if isinstance(node, Conversion) and node.target.name == "decimal":
        return f"CAST({calling.written(at)} AS DOUBLE)"
    return calling.written(at)


JSON_RULES: dict[str, Callable[[Calling], str]] = {
    "json_value": _value,
    "json_query": _query,
    "json_exists": _exists,
    "json_object": _object,
    "json_array": _array,
    "json_array_get": _array_get,
}
