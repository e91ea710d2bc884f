"""The grouping set () beside others has a row where there are no rows at all, which Spark leaves out.

A second query makes that row, of the same tables without rows, where the first one has nothing to group.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from sqlglot import exp

from sqe_core.sql.grammar.nodes import Call
from sqe_core.sql.spark import functions
from sqe_core.sql.spark.lower_order import around, take_keys, taken, wrapped

MOST_NODES = 5000  # of a query that is written three times: what nests must not multiply

_SETS = (exp.Rollup, exp.Cube, exp.GroupingSets)
_OTHERS = ("distinct", "windows", "qualify", "laterals")


def lower_groups(select: exp.Select) -> exp.Select | None:
    """Return the query with that row; None where it has no such grouping set, or too much beside it to say it twice."""
    group = select.args.get("group")
    sets = group.expressions if group is not None else []
    if len(sets) != 1 or not isinstance(sets[0], _SETS) or _empty_sets(sets[0]) != 1:
        return None
    if any(select.args.get(part) for part in _OTHERS) or select.args.get("from_") is None:
        return None
    if sum(1 for _ in islice(select.walk(), MOST_NODES)) == MOST_NODES:
        return None
    inner = select.copy()
    outside = taken(inner, "with_", "limit", "offset")
    keys = take_keys(inner, ordinals=True)
    row = _row_of_nothing(inner)
    names = [each.alias_or_name for each in inner.expressions]
    if row is None or (keys.order and len(set(names)) < len(names)):
        return None
    outer = wrapped(exp.Union(this=inner, expression=row, distinct=False), drop=keys.hidden, alias="_sqe_u")
    if keys.order:
        outer.set("order", exp.Order(expressions=keys.order))
    return around(outer, outside)


def _empty_sets(node: exp.Expression) -> int:
    """How many of the grouping sets are ()."""
    if isinstance(node, exp.Rollup | exp.Cube):
        return 1
    if isinstance(node, exp.GroupingSets):
        return sum(map(_empty_sets, node.expressions))
    return int(isinstance(node, exp.Tuple) and not node.expressions)


def _row_of_nothing(select: exp.Select) -> exp.Select | None:
    names = {one.alias for one in select.expressions if isinstance(one, exp.Alias)}
    grouped = [_meant(select, key) for key in _grouped(select.args["group"].expressions[0])]
    if any(isinstance(key, exp.Column) and key.args.get("table") is None and key.name in names for key in grouped):
        return None
    row = select.copy()
    row.set("group", None)
    told = [_of_nothing(each, grouped) for each in row.expressions]
    having = row.args.get("having")
    condition = _of_nothing(having.this, grouped) if having is not None else None
    if None in told or (having is not None and condition is None):
        return None
    row.set("expressions", told)
    row.set("having", condition and exp.Having(this=condition))
    return _only_of_nothing(row, select)


def _grouped(node: exp.Expression) -> Iterator[exp.Expression]:
    if isinstance(node, (*_SETS, exp.Tuple)):
        for each in node.expressions:
            yield from _grouped(each)
    elif isinstance(node, exp.Paren):
        yield from _grouped(node.this)
    else:
        yield node


def _meant(select: exp.Select, key: exp.Expression) -> exp.Expression:
    """A number counts the columns of the result."""
    if isinstance(key, exp.Literal) and str(key.this).isdigit() and 1 <= int(key.this) <= len(select.expressions):
        meant: exp.Expression = select.expressions[int(key.this) - 1].unalias()
        return meant
    return key


def _of_nothing(node: exp.Expression, grouped: list[exp.Expression]) -> exp.Expression | None:
    """Return what an expression is in the row of no rows, where the keys are NULL; None where it cannot be said."""
    if any(_same(node, key) for key in grouped):
        return Call(this="any_value", expressions=[node.copy()])
    if isinstance(node, Call) and node.this == "grouping":
        return exp.Literal.number(2 ** len(node.expressions) - 1)
    if isinstance(node, exp.Column | exp.Star | exp.Window | exp.Lambda | exp.Subquery | exp.Select | exp.SetOperation):
        return None
    if isinstance(node, Call) and (function := functions.find(str(node.this))) and function.kind == "aggregate":
        return node
    for child in list(node.iter_expressions()):
        if isinstance(child, exp.Identifier):
            continue
        told = _of_nothing(child, grouped)
        if told is None:
            return None
        if told is not child:
            child.replace(told)
    return node


def _same(node: exp.Expression, key: exp.Expression) -> bool:
    if isinstance(node, exp.Column) and isinstance(key, exp.Column):
        tables = {part.args["table"].name for part in (node, key) if part.args.get("table") is not None}
        return node.name == key.name and len(tables) < 2
    return node == key


def _only_of_nothing(row: exp.Select, select: exp.Select) -> exp.Select:
    """Take all rows away, and the one row, too, where the query has some."""
    where, having = row.args.get("where"), row.args.get("having")
    asked = exp.Select(
        expressions=[exp.Literal.number(1)],
        from_=select.args["from_"].copy(),
        joins=[join.copy() for join in select.args.get("joins") or ()] or None,
        where=where.copy() if where is not None else None,
    )
    never: exp.Expression = exp.Boolean(this=False)
    if where is not None:
        never = exp.And(this=exp.Paren(this=where.this), expression=never)
    none: exp.Expression = exp.Not(this=exp.Exists(this=asked))
    if having is not None:
        none = exp.And(this=exp.Paren(this=having.this), expression=none)
    row.set("where", exp.Where(this=never))
    row.set("having", exp.Having(this=none))
    return row
