"""QUALIFY: a condition on window functions becomes WHERE around the query."""

from __future__ import annotations

from sqlglot import exp

from sqe_core.sql.spark.lower_order import around, column, identifier, take_keys, wrapped

_CONDITION = "_sqe_q"


def lower_qualify(select: exp.Select) -> exp.Expression:
    """Return the query that asks for the rows which fulfil the condition; ORDER BY and LIMIT come after it."""
    condition = select.args["qualify"].this
    select.set("qualify", None)
    outside = {key: select.args.get(key) for key in ("with_", "limit", "offset", "distinct")}
    keys = take_keys(select, ordinals=True)
    for key in outside:
        select.set(key, None)
    condition = _with_windows(select, condition)
    select.append("expressions", exp.Alias(this=condition, alias=identifier(_CONDITION)))
    outer = wrapped(select, drop=[_CONDITION, *keys.hidden], alias="_sqe_i")
    outer.set("where", exp.Where(this=column(_CONDITION)))
    if keys.order:
        outer.set("order", exp.Order(expressions=keys.order))
    return around(outer, outside)


def _with_windows(select: exp.Select, condition: exp.Expression) -> exp.Expression:
    """Put window functions in place of the output names that stand for them: QUALIFY rn = 1."""
    windows = {
        projection.alias: projection.this
        for projection in select.expressions
        if isinstance(projection, exp.Alias) and projection.this.find(exp.Window) is not None
    }
    for name in list(condition.find_all(exp.Column)):
        if name.args.get("table") is None and name.name in windows:
            copied = exp.Paren(this=windows[name.name].copy())
            if name is condition:
                return copied
            name.replace(copied)
    return condition
