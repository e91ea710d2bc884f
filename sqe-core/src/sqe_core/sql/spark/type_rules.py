"""typeof(): what a text declares is told as Trino tells it, and the rest by the engine."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from sqe_core.sql.grammar.nodes import Call
from sqe_core.sql.spark.declared import declared_type
from sqe_core.sql.spark.text import quote_string
from sqe_core.sql.spark.write_calls import Calling, argument
from sqe_core.sql.text.context import Dialect


def _typeof(calling: Calling) -> str:
    calling.count(1)
    if calling.writer.dialect is not Dialect.TRINO:
        return f"_sqe_typeof({calling.written(0)})"
    return _name(calling, calling.arguments[0])


def _name(calling: Calling, node: Any) -> str:
    """Write an expression whose value is the name of a type."""
    while isinstance(node, exp.Paren):
        node = node.this
    if (declared := declared_type(node)) is not None:
        return quote_string(declared)
    if isinstance(node, exp.Array) and _element(node) is not None:
        return quote_string(f"array({_element(node)})")
    inside = list(node.expressions) if isinstance(node, Call) else []
    if isinstance(node, Call) and node.this == "map" and len(inside) == 2 and any(map(_element, inside)):
        return _joined("map(", [_of_elements(calling, each) for each in inside])
    if isinstance(node, Call) and node.this == "row":
        return _joined("row(", [_name(calling, each) for each in inside])
    return f"_sqe_typeof({argument(calling.writer, node)})"


def _of_elements(calling: Calling, node: Any) -> str:
    element = _element(node)
    return quote_string(element) if element else f"_sqe_typeof_element({argument(calling.writer, node)})"


def _element(node: Any) -> str | None:
    """Return what the elements of an array of literals declare: texts as long as the longest."""
    if not isinstance(node, exp.Array) or not node.expressions:
        return None
    texts = [each for each in node.expressions if isinstance(each, exp.Literal) and each.is_string]
    return f"varchar({max(len(str(text.this)) for text in texts)})" if len(texts) == len(node.expressions) else None


def _joined(opening: str, names: list[str]) -> str:
    pieces = [quote_string(opening)]
    for at, name in enumerate(names):
        pieces += [quote_string(", "), name] if at else [name]
    return f"concat({', '.join((*pieces, quote_string(')')))})"


TYPE_RULES = {"typeof": _typeof}
