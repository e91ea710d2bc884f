"""FETCH FIRST n ROWS WITH TIES: rows are ranked, and all up to rank n stay."""

from __future__ import annotations

from sqlglot import exp

from sqe_core.sql.grammar.nodes import Call, place_of
from sqe_core.sql.spark.lower_order import Keys, around, column, identifier, take_keys, taken, wrapped
from sqe_core.sql.text.context import StatementText

_RANK = "_sqe_rank"


def lower_ties(query: exp.Expression, statement: StatementText) -> exp.Expression:
    limit = query.args["limit"]
    if query.args.get("order") is None:
        raise statement.text.error("WITH TIES needs ORDER BY", place_of(limit) or 0, condition="MISSING_ORDER_BY")
    outside = taken(query, "limit", "offset", "with_")
    keys = take_keys(query, ordinals=False) if isinstance(query, exp.Select) else _plain_keys(query, statement)
    if outside["offset"] is not None:
        query.set("order", exp.Order(expressions=[key.copy() for key in keys.order]))
        query.set("offset", outside["offset"])
    ranked = wrapped(query, drop=[], alias="_sqe_i")
    rank = exp.Window(this=Call(this="rank"), order=exp.Order(expressions=[key.copy() for key in keys.order]))
    ranked.append("expressions", exp.Alias(this=rank, alias=identifier(_RANK)))
    outer = wrapped(ranked, drop=[_RANK, *keys.hidden], alias="_sqe_j")
    outer.set("where", exp.Where(this=exp.LTE(this=column(_RANK), expression=limit.expression)))
    outer.set("order", exp.Order(expressions=keys.order))
    return around(outer, {"with_": outside["with_"]})


def _plain_keys(query: exp.Expression, statement: StatementText) -> Keys:
    """The keys of a set operation can only be its columns."""
    order = query.args["order"]
    query.set("order", None)
    keys = Keys()
    for ordered in order.expressions:
        if not isinstance(ordered.this, exp.Column):
            message = "WITH TIES after a set operation needs ORDER BY with names of columns"
            raise statement.text.error(message, place_of(ordered) or 0)
        keys.order.append(ordered)
    return keys
