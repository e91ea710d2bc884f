"""GROUPS frames: a range over the number of the group of peers, which a subquery counts."""

from __future__ import annotations

from sqlglot import exp

from sqe_core.spi.errors import NotSupportedError
from sqe_core.sql.grammar.nodes import Call, place_of
from sqe_core.sql.spark.lower_order import around, column, identifier, taken
from sqe_core.sql.text.context import StatementText


def lower_frames(select: exp.Select, statement: StatementText) -> None:
    """Exchange the GROUPS frames of a SELECT's own windows."""
    found = (window for window in select.find_all(exp.Window) if _counts_groups(window))
    windows = [window for window in found if window.find_ancestor(exp.Select) is select]
    if not windows:
        return
    source = select.args.get("from_")
    table = source.this if source is not None else None
    simple = (
        isinstance(table, exp.Table | exp.Subquery)
        and not table.args.get("joins")
        and not select.args.get("joins")
        and select.args.get("group") is None
        and not select.args.get("windows")
    )
    if not simple or table is None or not table.alias_or_name:
        raise NotSupportedError(
            "A GROUPS frame is supported over one table or subquery without GROUP BY",
            hint="put the joins and the grouping into a subquery",
            position=statement.text.position(place_of(windows[0]) or 0),
        )
    _count_groups(select, table, windows)


def _counts_groups(window: exp.Window) -> bool:
    spec = window.args.get("spec")
    return spec is not None and spec.args.get("kind") == "GROUPS"


def _count_groups(select: exp.Select, table: exp.Expression, windows: list[exp.Window]) -> None:
    name = table.alias_or_name
    inner = exp.Select(expressions=[exp.Star()])
    for number, window in enumerate(windows, 1):
        hidden = f"_sqe_g{number}"
        counted = exp.Window(
            this=Call(this="dense_rank"),
            partition_by=[part.copy() for part in window.args.get("partition_by") or ()] or None,
            order=window.args["order"].copy() if window.args.get("order") is not None else None,
        )
        inner.append("expressions", exp.Alias(this=counted, alias=identifier(hidden)))
        window.set("order", exp.Order(expressions=[exp.Ordered(this=column(hidden), desc=False)]))
        window.args["spec"].set("kind", "RANGE")
    for star in [one for one in select.expressions if one.is_star]:
        hidden_names = [identifier(f"_sqe_g{number}") for number in range(1, len(windows) + 1)]
        (star.this if isinstance(star, exp.Column) else star).set("except_", hidden_names)
    around(inner, taken(select, "where"))
    replacement = exp.Subquery(this=inner, alias=exp.TableAlias(this=identifier(name)))
    table.replace(replacement)
    inner.set("from_", exp.From(this=table))
