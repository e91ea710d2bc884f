"""IN with a query. Spark's join answers true or false; where a value is wanted, NULLs leave the answer open."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from sqe_core.sql.spark.write_calls import copied
from sqe_core.sql.spark.writer import Writer, operand

_DECIDING = (exp.Where, exp.Having, exp.Join, exp.Merge, exp.When, exp.If)


def member(writer: Writer, node: Any, value: Any, query: Any, *, negated: bool) -> str:
    """Write whether a value is among those of a query; `node` is what stands in the place of the answer."""
    if _decides(node) or isinstance(value, exp.Tuple):
        return f"{operand(writer, value)} {'NOT IN' if negated else 'IN'} {writer.write(query)}"
    with copied(writer, 2, "IN"):
        asked, rows = operand(writer, value), writer.write(query)
    summary = f"(SELECT named_struct('n', count(*), 't', count(*) = count(`_sqe_v`)) FROM {rows} AS `_sqe_q`(`_sqe_v`))"
    found = f"_sqe_member({asked} IN {rows}, {asked}, {summary})"
    return f"NOT {found}" if negated else found


def _decides(node: Any) -> bool:
    """Whether NULL means the same as false here: in the condition of a clause or a branch, and below no NOT."""
    while isinstance(node.parent, exp.And | exp.Or | exp.Paren):
        node = node.parent
    parent = node.parent
    if isinstance(parent, exp.If) and isinstance(parent.parent, exp.Case) and parent.parent.this is not None:
        return False
    return isinstance(parent, _DECIDING) and node.arg_key in ("this", "on", "condition")
