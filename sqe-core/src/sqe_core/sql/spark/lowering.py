"""Rewrites of the tree for what Spark SQL says in another shape."""

from __future__ import annotations

from sqlglot import exp

from sqe_core.sql.spark.lower_dml import lower_delete, lower_update
from sqe_core.sql.spark.lower_frames import lower_frames
from sqe_core.sql.spark.lower_names import name_outputs, name_values
from sqe_core.sql.spark.lower_order import check_distinct_order, lower_order, orders_by_aggregate
from sqe_core.sql.spark.lower_qualify import lower_qualify
from sqe_core.sql.spark.lower_ties import lower_ties
from sqe_core.sql.text.context import StatementText

_QUERIES = (exp.Select, exp.SetOperation, exp.Subquery, exp.Values)


def lower(tree: exp.Expression, statement: StatementText) -> exp.Expression:
    """Return the tree as Spark can say it."""
    tree = name_values(tree, statement)
    # From the inside out, so that what is wrapped is in its final shape already.
    for node in reversed(list(tree.walk())):
        if isinstance(node, exp.Select):
            name_outputs(node, statement)
            lower_frames(node, statement)
            check_distinct_order(node, statement)
        if isinstance(node, exp.Select) and node.args.get("qualify") is not None:
            tree = _exchange(tree, node, lower_qualify(node))
        elif isinstance(node, _QUERIES) and _has_ties(node):
            tree = _exchange(tree, node, lower_ties(node, statement))
        elif isinstance(node, exp.Select) and orders_by_aggregate(node):
            tree = _exchange(tree, node, lower_order(node))
    if isinstance(tree, exp.Update) and tree.args.get("from_") is not None:
        return lower_update(tree, statement)
    if isinstance(tree, exp.Delete) and tree.args.get("using"):
        return lower_delete(tree)
    return tree


def _exchange(tree: exp.Expression, old: exp.Expression, new: exp.Expression) -> exp.Expression:
    if old is tree:
        return new
    marker = exp.Null()
    old.replace(marker)
    marker.replace(new)
    return tree


def _has_ties(node: exp.Expression) -> bool:
    limit = node.args.get("limit")
    return limit is not None and limit.args.get("limit_options") is not None
