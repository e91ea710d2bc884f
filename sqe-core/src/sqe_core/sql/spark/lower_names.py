"""Names for result columns that the user did not name (docs/sql.md)."""

from __future__ import annotations

from bisect import bisect_left

from sqlglot import exp

from sqe_core.sql.spark.lower_order import identifier
from sqe_core.sql.text.context import Dialect, StatementText
from sqe_core.sql.text.tokens import Kind

_LONGEST = 60


def name_outputs(select: exp.Select, statement: StatementText) -> None:
    """Name every unnamed expression: _colN in the trino dialect, else as it is written."""
    projections = list(select.expressions)
    for at, projection in enumerate(projections):
        if _has_name(projection):
            continue
        if isinstance(projection, exp.Dot) and isinstance(projection.expression, exp.Identifier):
            # A field is called by its name, whatever it is a field of.
            projections[at] = exp.Alias(this=projection, alias=projection.expression.copy())
            continue
        name = f"_col{at}"
        if statement.dialect is not Dialect.TRINO:
            name = _as_written(projection, statement) or name
        projections[at] = exp.Alias(this=projection, alias=identifier(name))
    select.set("expressions", projections)


def name_values(tree: exp.Expression, statement: StatementText) -> exp.Expression:
    """The columns of VALUES that is the whole query are _colN in the trino dialect."""
    if statement.dialect is not Dialect.TRINO or not isinstance(tree, exp.Values):
        return tree
    columns = [identifier(f"_col{at}") for at in range(len(tree.expressions[0].expressions))]
    alias = exp.TableAlias(this=identifier("_sqe_v"), columns=columns)
    source = exp.Subquery(this=tree, alias=alias)
    return exp.Select(expressions=[exp.Star()], from_=exp.From(this=source))


def _has_name(node: exp.Expression) -> bool:
    if isinstance(node, exp.Dot):
        return isinstance(node.this, exp.Column) or isinstance(node.expression, exp.Star)
    return isinstance(node, exp.Alias | exp.Column | exp.Star)


def _as_written(node: exp.Expression, statement: StatementText) -> str | None:
    first, last = node.meta.get("first"), node.meta.get("last")
    if first is None or last is None or last - first > 4 * _LONGEST:
        return None
    text = statement.text.sql
    pieces: list[str] = []
    before: int | None = None
    tokens = statement.tokens
    at = bisect_left(tokens, first, key=lambda token: token.start)
    while at < len(tokens) and tokens[at].end <= last and tokens[at].kind is not Kind.END:
        token = tokens[at]
        if before is not None and token.start > before:
            pieces.append(" ")
        pieces.append(token.value if token.kind is Kind.WORD else text[token.start : token.end])
        before = token.end
        at += 1
    written = "".join(pieces)
    return written if written and len(written) <= _LONGEST and written.isprintable() else None
