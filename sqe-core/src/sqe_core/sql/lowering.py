"""Rewrites of the tree for what Spark SQL says in another shape."""

from __future__ import annotations

from sqlglot import exp

from sqe_core.sql.context import StatementText


def lower(tree: exp.Expression, statement: StatementText) -> exp.Expression:
    """Return the tree as Spark can say it."""
    del statement
    return tree
