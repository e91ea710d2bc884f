"""UPDATE … FROM and DELETE … USING, which Spark says with MERGE and EXISTS."""

from __future__ import annotations

from sqlglot import exp

from sqe_core.spi.errors import NotSupportedError
from sqe_core.sql.grammar.nodes import MergeBranch
from sqe_core.sql.text.context import StatementText


def lower_update(update: exp.Expression, statement: StatementText) -> exp.Expression:
    """UPDATE t SET … FROM s WHERE condition."""
    source = update.args["from_"].this
    where = update.args.get("where")
    if source.args.get("joins") or update.args.get("joins"):
        raise NotSupportedError(
            "UPDATE … FROM takes one table",
            hint="put the join into a subquery: FROM (SELECT … FROM a JOIN b …) AS s",
            position=statement.text.position(statement.tokens[0].start),
        )
    branch = MergeBranch(matched=True, by_source=False, action="update", assignments=update.expressions)
    condition = where.this if where is not None else exp.Boolean(this=True)
    return exp.Merge(with_=update.args.get("with_"), this=update.this, using=source, on=condition, whens=[branch])


def lower_delete(delete: exp.Expression) -> exp.Expression:
    """DELETE FROM t USING s WHERE condition."""
    tables = delete.args["using"]
    where = delete.args.get("where")
    select = exp.Select(expressions=[exp.Literal.number(1)], from_=exp.From(this=tables[0]))
    for table in tables[1:]:
        select.append("joins", exp.Join(this=table, kind="CROSS"))
    if where is not None:
        select.set("where", where)
    return exp.Delete(with_=delete.args.get("with_"), this=delete.this, where=exp.Where(this=exp.Exists(this=select)))
