"""ORDER BY keys as columns, for queries that are wrapped into another one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from sqe_core.spi.errors import ErrorCode, UserError
from sqe_core.sql.grammar.nodes import Call
from sqe_core.sql.spark import functions
from sqe_core.sql.text.context import StatementText


@dataclass
class Keys:
    """The keys in terms of the wrapped query's columns, and the columns added to it for them."""

    order: list[exp.Expression] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)


def column(name: str) -> exp.Column:
    """A column of ours."""
    return exp.Column(this=identifier(name))


def identifier(name: str) -> exp.Identifier:
    """A name of ours."""
    return exp.Identifier(this=name, quoted=True)


def take_keys(select: exp.Select, *, ordinals: bool) -> Keys:
    """Take the ORDER BY off a SELECT; what is no output column becomes a hidden one.

    `ordinals` tells whether numbers still mean the same columns outside.
    """
    keys = Keys()
    order = select.args.get("order")
    if order is None:
        return keys
    select.set("order", None)
    for ordered in order.expressions:
        key = ordered.this
        if isinstance(key, exp.Literal) and not key.args.get("is_string"):
            outer = key if ordinals else _projected(select, keys, int(str(key.this)))
        elif select.args.get("distinct") is not None or is_output(select, key):
            outer = key
        else:
            outer = _hide(select, keys, key)
        keys.order.append(
            exp.Ordered(this=outer, desc=ordered.args.get("desc"), nulls_first=ordered.args.get("nulls_first"))
        )
    return keys


def is_output(select: exp.Select, key: exp.Expression) -> bool:
    """Whether a key is just the name of an output column."""
    if not isinstance(key, exp.Column) or key.args.get("table") is not None:
        return False
    name = key.name
    starred = False
    for projection in select.expressions:
        if projection.alias_or_name == name:
            return True
        starred = starred or projection.is_star
    return starred


def _projected(select: exp.Select, keys: Keys, number: int) -> exp.Expression:
    if not 1 <= number <= len(select.expressions) or any(one.is_star for one in select.expressions):
        return exp.Literal.number(number)
    projection = select.expressions[number - 1]
    if isinstance(projection, exp.Alias) or select.args.get("distinct") is not None:
        return column(projection.alias_or_name)
    return _hide(select, keys, projection.copy())


def _hide(select: exp.Select, keys: Keys, key: exp.Expression) -> exp.Expression:
    name = f"_sqe_o{len(keys.hidden) + 1}"
    keys.hidden.append(name)
    select.append("expressions", exp.Alias(this=key, alias=identifier(name)))
    return column(name)


def wrapped(inner: exp.Expression, *, drop: list[str], alias: str) -> exp.Select:
    """SELECT * EXCEPT (dropped) FROM (inner) AS alias."""
    star = exp.Star(except_=[identifier(name) for name in drop]) if drop else exp.Star()
    source = exp.Subquery(this=inner, alias=exp.TableAlias(this=identifier(alias)))
    return exp.Select(expressions=[star], from_=exp.From(this=source))


def check_distinct_order(select: exp.Select, statement: StatementText) -> None:
    """Rows that were made distinct have no other columns left to be ordered by."""
    order = select.args.get("order")
    if select.args.get("distinct") is None or order is None:
        return
    outputs = [one.unalias() for one in select.expressions]
    if any(one.find(exp.Star) for one in outputs):
        return
    names = {one.output_name for one in select.expressions}
    aliases = {
        one.this.name: one.args["alias"]
        for one in select.expressions
        if isinstance(one, exp.Alias) and isinstance(one.this, exp.Column)
    }
    for key in order.expressions:
        column = key.this
        if not isinstance(column, exp.Column):
            _name_key(select, key)
            continue
        if column.name in names:
            continue
        if column.name in aliases:
            key.set("this", exp.Column(this=aliases[column.name].copy()))
        else:
            start = column.meta.get("start")
            raise UserError(
                f"Column {column.name} is not in the SELECT list: with DISTINCT, ORDER BY takes only what is selected",
                code=ErrorCode.SEMANTIC_ERROR,
                hint="select the column too, or use GROUP BY",
                condition="EXPRESSION_NOT_IN_DISTINCT",
                position=None if start is None else statement.text.position(start),
            )


def _name_key(select: exp.Select, key: exp.Ordered) -> None:
    """An expression that is selected, too, is called by its name: Spark does not see that they are the same."""
    names = [one.output_name for one in select.expressions]
    for one in select.expressions:
        if isinstance(one, exp.Alias) and one.this == key.this and names.count(one.output_name) == 1:
            key.set("this", exp.Column(this=one.args["alias"].copy()))
            return


def orders_by_aggregate(select: exp.Select) -> bool:
    """Whether HAVING stands before an ORDER BY with an aggregate, which Spark cannot resolve."""
    order = select.args.get("order")
    if order is None or select.args.get("having") is None or select.args.get("distinct") is not None:
        return False
    return any(_is_aggregate(part) for key in order.expressions for part in key.walk())


def _is_aggregate(node: exp.Expression) -> bool:
    if not isinstance(node, Call) or isinstance(node.parent, exp.Window):
        return False
    function = functions.find(str(node.this))
    return function is not None and function.kind == "aggregate"


def lower_order(select: exp.Select) -> exp.Select:
    """Order around the query, by columns that it has for that only."""
    outside = taken(select, "with_", "limit", "offset")
    keys = take_keys(select, ordinals=True)
    outer = wrapped(select, drop=keys.hidden, alias="_sqe_i")
    outer.set("order", exp.Order(expressions=keys.order))
    return around(outer, outside)


def taken(query: exp.Expression, *clauses: str) -> dict[str, exp.Expression | None]:
    found = {key: query.args.get(key) for key in clauses}
    for key in clauses:
        query.set(key, None)
    return found


def around(outer: exp.Select, clauses: Mapping[str, exp.Expression | None]) -> exp.Select:
    """Put what was taken off a query around the one that wraps it."""
    for key, value in clauses.items():
        if value is not None:
            outer.set(key, value)
    return outer
