"""From a tree to a simple query, where it is one (sql/simple_query.py)."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Literal

from sqlglot import exp

from sqe_core.sql.grammar.nodes import Call
from sqe_core.sql.simple_query import (
    Alike,
    Compared,
    Condition,
    Joined,
    Listed,
    Missing,
    Negated,
    Ordering,
    Output,
    SimpleQuery,
    Term,
)
from sqe_core.sql.spark.output_names import written_name

_COMPARISONS: Mapping[type[exp.Expression], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_DIGITS = 18
_SELECT = frozenset(("expressions", "from_", "where", "order", "limit", "offset", "distinct"))
_TABLE = frozenset(("this", "db", "catalog", "alias"))


class _NotSimpleError(Exception):
    """It is something else."""


def simple_query(tree: exp.Expression, source: str, parameters: Mapping[int, str]) -> SimpleQuery | None:
    """Return a query as a simple one, or None.

    Args:
        tree: as it was read, before anything was lowered.
        source: the user's text, whose names answers have.
        parameters: the name of the parameter at each place of the text.
    """
    if not isinstance(tree, exp.Select) or not _only(tree, _SELECT):
        return None
    try:
        return _Builder(source, parameters).query(tree)
    except _NotSimpleError:
        return None


def narrowed_tables(tree: exp.Expression, source: str, parameters: Mapping[int, str]) -> tuple[SimpleQuery, ...]:
    """Return what each SELECT asks of each table whose name has a schema: a query for every time that it is named."""
    found: list[SimpleQuery] = []
    for select in tree.find_all(exp.Select):
        from_ = select.args.get("from_")
        if from_ is None:
            continue
        joins = [*(from_.this.args.get("joins") or ()), *(select.args.get("joins") or ())]
        sides = [None, *(join.args.get("side") for join in joins)]
        sources = [from_.this, *(join.this for join in joins)]
        # What is missing on one side of an outer join has to stay missing.
        flat = not {"RIGHT", "FULL"} & set(sides) and not any(each.args.get("joins") for each in sources[1:])
        for table, side in zip(sources, sides, strict=True):
            if isinstance(table, exp.Table) and table.args.get("db"):
                kept = flat and side is None and _only(table, _TABLE | {"joins"})
                where = select.args.get("where") if kept else None
                found.append(_Builder(source, parameters).narrowed(table, where, alone=len(sources) == 1))
    # A table that stands anywhere else, too, is asked for all of itself.
    for table in tree.find_all(exp.Table):
        if table.args.get("db") and not isinstance(table.parent, exp.From | exp.Join):
            found.append(SimpleQuery(table=_table_name(table), outputs=()))
    return tuple(found)


def _table_name(table: exp.Table) -> tuple[str, ...]:
    parts = [table.args.get(key) for key in ("catalog", "db", "this")]
    return tuple(str(part.this) for part in parts if isinstance(part, exp.Identifier))


def _only(node: exp.Expression, allowed: frozenset[str]) -> bool:
    return all(value in (None, False, []) or key in allowed for key, value in node.args.items())


class _Builder:
    def __init__(self, source: str, parameters: Mapping[int, str]) -> None:
        self._source = source
        self._parameters = parameters
        self._table = ""
        self._alone = True

    def query(self, tree: exp.Select) -> SimpleQuery:
        from_ = tree.args.get("from_")
        table = from_.this if from_ is not None else None
        if not isinstance(table, exp.Table) or not _only(table, _TABLE):
            raise _NotSimpleError
        parts = [table.args.get(key) for key in ("catalog", "db", "this")]
        name = tuple(part.this for part in parts if isinstance(part, exp.Identifier))
        if len(name) != sum(part is not None for part in parts):
            raise _NotSimpleError
        alias = table.args.get("alias")
        if alias is not None and (not _only(alias, frozenset(("this",)))):
            raise _NotSimpleError
        self._table = alias.this.this if alias is not None else name[-1]
        where = tree.args.get("where")
        condition = self._condition(where.this) if where is not None else None
        if _counts(tree.expressions):
            if any(tree.args.get(key) for key in ("order", "limit", "offset", "distinct")):
                raise _NotSimpleError
            (one,) = tree.expressions
            called = written_name(one.args["alias"], self._source) if isinstance(one, exp.Alias) else "_col0"
            return SimpleQuery(table=name, outputs=(Output(called, Term(value=0)),), condition=condition, counts=True)
        outputs = tuple(self._output(at, each) for at, each in enumerate(tree.expressions))
        order = tree.args.get("order")
        return SimpleQuery(
            table=name,
            outputs=outputs,
            condition=condition,
            ordering=tuple(self._ordering(each, outputs) for each in (order.expressions if order is not None else ())),
            limit=self._number(tree.args.get("limit")),
            offset=self._number(tree.args.get("offset")) or 0,
            distinct=tree.args.get("distinct") is not None,
        )

    def narrowed(self, table: exp.Table, where: exp.Where | None, *, alone: bool) -> SimpleQuery:
        """Say what a WHERE asks of one of its tables; columns without a table's name are its own if it is `alone`."""
        name, alias = _table_name(table), table.args.get("alias")
        self._table = alias.this.this if alias is not None and alias.this is not None else name[-1]
        self._alone = alone
        parts: list[Condition] = []
        pending = [where.this] if where is not None else []
        while pending:
            node = pending.pop()
            if isinstance(node, exp.And):
                pending += [node.this, node.expression]
            elif isinstance(node, exp.Paren):
                pending.append(node.this)
            else:
                with suppress(_NotSimpleError):
                    parts.append(self._condition(node))
        return SimpleQuery(table=name, outputs=(), condition=Joined(tuple(parts), enough=False))

    @staticmethod
    def _number(node: exp.Expression | None) -> int | None:
        if node is None:
            return None
        count = node.expression
        if not _only(node, frozenset(("expression",))) or not isinstance(count, exp.Literal) or count.is_string:
            raise _NotSimpleError
        return _whole_number(count)

    def _output(self, at: int, node: exp.Expression) -> Output:
        if isinstance(node, exp.Star) and _only(node, frozenset()):
            return Output("", None)
        if isinstance(node, exp.Alias):
            return Output(written_name(node.args["alias"], self._source), self._term(node.this))
        term = self._term(node)
        if isinstance(node, exp.Column):
            return Output(written_name(node.this, self._source), term)
        return Output(f"_col{at}", term)

    def _ordering(self, node: exp.Expression, outputs: tuple[Output, ...]) -> Ordering:
        if not isinstance(node, exp.Ordered) or not _only(node, frozenset(("this", "desc", "nulls_first"))):
            raise _NotSimpleError
        descending, nulls_first = bool(node.args.get("desc")), bool(node.args.get("nulls_first"))
        by = node.this
        if isinstance(by, exp.Literal) and not by.is_string and by.this.isdigit():
            return Ordering(None, int(by.this), descending, nulls_first)
        term = self._term(by)
        if isinstance(by, exp.Column) and not by.args.get("table"):
            places = [at for at, each in enumerate(outputs, 1) if each.name.lower() == term.column]
            if len(places) > 1:
                raise _NotSimpleError
            if places and not any(each.term is None for each in outputs[: places[0]]):
                return Ordering(None, places[0], descending, nulls_first)
            if places:
                return Ordering(outputs[places[0] - 1].term, None, descending, nulls_first)
        if term.column is None:
            raise _NotSimpleError
        return Ordering(term, None, descending, nulls_first)

    def _term(self, node: exp.Expression) -> Term:
        match node:
            case exp.Paren():
                return self._term(node.this)
            case exp.Column():
                table = node.args.get("table")
                if node.args.get("db") or not isinstance(node.this, exp.Identifier):
                    raise _NotSimpleError
                if (table is None and not self._alone) or (table is not None and table.this != self._table):
                    raise _NotSimpleError
                return Term(column=node.this.this.lower())
            case exp.Literal():
                if node.is_string:
                    return Term(value=node.this)
                return Term(value=_whole_number(node))
            case exp.Null():
                return Term()
            case exp.Boolean():
                return Term(value=bool(node.this))
            case exp.Placeholder():
                name = self._parameters.get(node.meta.get("start", -1))
                if name is None:
                    raise _NotSimpleError
                return Term(parameter=name)
            case Call():
                word = node.this
                if word not in ("upper", "lower") or not _only(node, frozenset(("this", "expressions"))):
                    raise _NotSimpleError
                if len(node.expressions) != 1:
                    raise _NotSimpleError
                inner = self._term(node.expressions[0])
                if inner.case is not None:
                    raise _NotSimpleError
                case: Literal["upper", "lower"] = "upper" if word == "upper" else "lower"
                return Term(column=inner.column, value=inner.value, parameter=inner.parameter, case=case)
        raise _NotSimpleError

    def _condition(self, node: exp.Expression) -> Condition:
        comparison = _COMPARISONS.get(type(node))
        if comparison is not None:
            return Compared(self._term(node.this), comparison, self._term(node.expression))
        match node:
            case exp.Paren():
                return self._condition(node.this)
            case exp.And() | exp.Or():
                parts = (self._condition(node.this), self._condition(node.expression))
                return Joined(parts, enough=isinstance(node, exp.Or))
            case exp.Not():
                return Negated(self._condition(node.this))
            case exp.Is() if isinstance(node.expression, exp.Null):
                return Missing(self._term(node.this))
            case exp.In() if _only(node, frozenset(("this", "expressions"))) and node.expressions:
                return Listed(self._term(node.this), tuple(map(self._term, node.expressions)))
            case exp.Like():
                return Alike(self._term(node.this), self._term(node.expression), None)
            case exp.Escape() if isinstance(node.this, exp.Like) and isinstance(node.expression, exp.Literal):
                escape = node.expression.this
                if len(escape) != 1:
                    raise _NotSimpleError
                return Alike(self._term(node.this.this), self._term(node.this.expression), escape)
        raise _NotSimpleError


def _whole_number(literal: exp.Literal) -> int:
    """Return a number that is a BIGINT for sure; a longer one is another type's, or nothing that Python would read."""
    if not literal.this.isdigit() or len(literal.this) > _DIGITS:
        raise _NotSimpleError
    return int(literal.this)


def _counts(projections: list[exp.Expression]) -> bool:
    """Whether it is count(*) and nothing else."""
    if len(projections) != 1:
        return False
    one = projections[0].this if isinstance(projections[0], exp.Alias) else projections[0]
    return (
        isinstance(one, Call)
        and one.this == "count"
        and _only(one, frozenset(("this", "expressions")))
        and len(one.expressions) == 1
        and isinstance(one.expressions[0], exp.Star)
        and _only(one.expressions[0], frozenset())
    )
