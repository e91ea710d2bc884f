"""FETCH FIRST n ROWS WITH TIES: rows are ranked, and all up to rank n stay."""

from __future__ import annotations

from sqlglot import exp

from sqe_core.sql.grammar.nodes import Call
from sqe_core.sql.spark.lower_order import Keys, column, identifier, take_keys, wrapped
from sqe_core.sql.text.context import StatementText

_RANK = "_sqe_rank"


def lower_ties(query: exp.Expression, statement: StatementText) -> exp.Expression:
    """Return the query that keeps the ties."""
    limit = query.args["limit"]
    if query.args.get("order") is None:
        place = next((part.meta["start"] for part in limit.walk() if part.meta.get("start") is not None), 0)
        raise statement.text.error("WITH TIES needs ORDER BY", place)
    query.set("limit", None)
    with_, offset = query.args.get("with_"), query.args.get("offset")
    query.set("with_", None)
    query.set("offset", None)
    keys = take_keys(query, ordinals=False) if isinstance(query, exp.Select) else _plain_keys(query, statement)
    if offset is not None:
        query.set("order", exp.Order(expressions=[key.copy() for key in keys.order]))
        query.set("offset", offset)
    ranked = wrapped(query, drop=[], alias="_sqe_i")
    rank = exp.Window(this=Call(this="rank"), order=exp.Order(expressions=[key.copy() for key in keys.order]))
    ranked.append("expressions", exp.Alias(this=rank, alias=identifier(_RANK)))
    outer = wrapped(ranked, drop=[_RANK, *keys.hidden], alias="_sqe_j")
    outer.set("where", exp.Where(this=exp.LTE(this=column(_RANK), expression=limit.expression)))
    outer.set("order", exp.Order(expressions=keys.order))
    if with_ is not None:
        outer.set("with_", with_)
    return outer


def _plain_keys(query: exp.Expression, statement: StatementText) -> Keys:
    """The keys of a set operation can only be its columns."""
    order = query.args["order"]
    query.set("order", None)
    keys = Keys()
    for ordered in order.expressions:
        if not isinstance(ordered.this, exp.Column):
            place = next((part.meta["start"] for part in ordered.walk() if part.meta.get("start") is not None), 0)
            raise statement.text.error("WITH TIES after a set operation needs ORDER BY with names of columns", place)
        keys.order.append(ordered)
    return keys
