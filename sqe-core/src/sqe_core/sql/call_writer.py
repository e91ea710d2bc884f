"""Rules for function calls, conversions and operators whose meaning depends on types."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from sqe_core.sql.nodes import Call, Conversion
from sqe_core.sql.writer import Writer, operand, rule


@rule(Call, "this", "expressions", "distinct", "filter", "nulls")
def _call(writer: Writer, node: Any) -> str:
    distinct = "DISTINCT " if node.args.get("distinct") else ""
    return f"{node.this}({distinct}{writer.writes(node.expressions)})"


@rule(Conversion, "this", "to", "safe", "literal")
def _conversion(writer: Writer, node: Any) -> str:
    word = "TRY_CAST" if node.args.get("safe") else "CAST"
    return f"{word}({writer.write(node.this)} AS {node.target.spark()})"


@rule(exp.DPipe, "this", "expression")
def _concat(writer: Writer, node: Any) -> str:
    return f"{operand(writer, node.this)} || {operand(writer, node.expression)}"


@rule(exp.Div, "this", "expression")
def _div(writer: Writer, node: Any) -> str:
    return f"{operand(writer, node.this)} / {operand(writer, node.expression)}"


@rule(exp.Mod, "this", "expression")
def _mod(writer: Writer, node: Any) -> str:
    return f"{operand(writer, node.this)} % {operand(writer, node.expression)}"


@rule(exp.Like, "this", "expression")
def _like(writer: Writer, node: Any) -> str:
    return f"{operand(writer, node.this)} LIKE {operand(writer, node.expression)}"


@rule(exp.Placeholder, "this")
def _parameter(writer: Writer, node: Any) -> str:
    name = node.this
    return f":{writer.positional[node.meta['start']]}" if name == "?" else name
