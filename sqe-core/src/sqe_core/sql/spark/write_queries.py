"""Rules for queries, FROM and windows."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from sqe_core.sql.grammar.nodes import Call, Conversion, Frame
from sqe_core.sql.grammar.table_functions import is_generated, table_function_alias, write_table_function
from sqe_core.sql.spark import functions
from sqe_core.sql.spark.declared import declared_type
from sqe_core.sql.spark.text import quote_string
from sqe_core.sql.spark.write_calls import argument, write_call
from sqe_core.sql.spark.writer import Writer, condition, operand, rule
from sqe_core.sql.spark.zones import SESSION, STORED, ZONED
from sqe_core.sql.text.context import Dialect

_TAIL = ("order", "limit", "offset")
_RANKING = frozenset(
    ("row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead", "nth_value")
)


@rule(exp.Select, "with_", "distinct", "expressions", "from_", "joins", "where", "group", "having", "windows", *_TAIL)
def _select(writer: Writer, node: Any) -> str:
    pieces = [write_with(writer, node), "SELECT "]
    if node.args.get("distinct") is not None:
        pieces.append("DISTINCT ")
    pieces.append(", ".join(_selected(writer, each) for each in node.expressions))
    source = node.args.get("from_")
    if source is not None:
        pieces.append(f" FROM {write_joined(writer, source.this)}")
    # What follows a comma is a CROSS join, which binds like the comma when all before it is written first.
    pieces.extend(writer.write(join) for join in node.args.get("joins") or ())
    pieces += (write_condition(writer, node, "where"), _group_by(writer, node), write_condition(writer, node, "having"))
    windows = node.args.get("windows")
    if windows:
        pieces.append(" WINDOW " + ", ".join(_named_window(writer, window) for window in windows))
    pieces.append(_tail(writer, node))
    return "".join(pieces)


def _selected(writer: Writer, node: Any) -> str:
    """Write a column of a result, with the type that it declares to Trino's clients."""
    value = node.this if isinstance(node, exp.Alias) else node
    if writer.dialect is not Dialect.TRINO:
        return writer.write(node)
    # The engine finds what a column stands for by itself.
    declared, zone = declared_type(value), None if isinstance(value, exp.Column) else writer.zones.of(value)
    told = "" if zone is None or zone is STORED else f", {quote_string(zone.name)}"
    if zone is None and _is_column_with_zone(value):
        # The session's, unless the column is in UTC already.
        told = f", {quote_string(SESSION.name)}, {argument(writer, value.this)}"
    if declared is None and not told:
        return writer.write(node)
    said = quote_string(declared or "") + told
    written = f"_sqe_declared({writer.write(value)}, {said})"
    return f"{written} AS {writer.write(node.args['alias'])}" if isinstance(node, exp.Alias) else written


def _is_column_with_zone(node: Any) -> bool:
    return isinstance(node, Conversion) and node.target.name == ZONED and isinstance(node.this, exp.Column)


def write_condition(writer: Writer, node: Any, key: str) -> str:
    """The WHERE or HAVING of a statement, if it has one."""
    clause = node.args.get(key)
    return "" if clause is None else f" {key.upper()} {condition(writer, clause.this)}"


def _group_by(writer: Writer, node: Any) -> str:
    group = node.args.get("group")
    if group is None:
        return ""
    # () beside other groupings adds nothing; alone it makes one group of all rows, which an aggregate does by itself.
    keys = [one for one in group.expressions if not (isinstance(one, exp.Tuple) and not one.expressions)]
    if keys or group.args.get("all"):
        return f" GROUP BY {'ALL' if group.args.get('all') else writer.writes(keys)}"
    return "" if any(map(_aggregates, node.expressions)) else " GROUP BY GROUPING SETS (())"


def _aggregates(node: exp.Expression) -> bool:
    """Whether an aggregate stands in an expression, not over a window and not in a query inside."""
    if isinstance(node, exp.Window | exp.Select | exp.SetOperation):
        return False
    if isinstance(node, Call):
        function = functions.find(node.this)
        if function is not None and function.kind == "aggregate":
            return True
    return any(map(_aggregates, node.iter_expressions()))


def write_with(writer: Writer, node: Any) -> str:
    """The WITH clause of a statement, if it has one."""
    with_ = node.args.get("with_")
    return "" if with_ is None else f"{writer.write(with_)} "


@rule(exp.With, "expressions", "recursive")
def _with_clause(writer: Writer, node: Any) -> str:
    word = "WITH RECURSIVE" if node.args.get("recursive") else "WITH"
    return f"{word} {writer.writes(node.expressions)}"


@rule(exp.TableAlias, "this", "columns")
def _table_alias(writer: Writer, node: Any) -> str:
    name = writer.write(node.this)
    columns = node.args.get("columns")
    return f"{name}({writer.writes(columns)})" if columns else name


def _tail(writer: Writer, node: Any) -> str:
    order = node.args.get("order")
    written = "" if order is None else f" ORDER BY {writer.write(order)}"
    for key in ("limit", "offset"):
        bound = node.args.get(key)
        written += "" if bound is None else f" {key.upper()} {operand(writer, bound.expression)}"
    return written


@rule(exp.Ordered, "this", "desc", "nulls_first")
def _ordered(writer: Writer, node: Any) -> str:
    direction = "DESC" if node.args.get("desc") else "ASC"
    nulls = "FIRST" if node.args.get("nulls_first") else "LAST"
    return f"{writer.write(node.this)} {direction} NULLS {nulls}"


@rule(exp.GroupingSets, "expressions")
def _grouping_sets(writer: Writer, node: Any) -> str:
    return f"GROUPING SETS ({', '.join(_bracketed(writer, one) for one in node.expressions)})"


def _bracketed(writer: Writer, node: Any) -> str:
    nested = isinstance(node, exp.GroupingSets | exp.Rollup | exp.Cube | exp.Tuple | exp.Paren)
    return writer.write(node) if nested else f"({writer.write(node)})"


def _set_operation(writer: Writer, node: Any) -> str:
    words = {exp.Union: "UNION", exp.Except: "EXCEPT", exp.Intersect: "INTERSECT"}
    pieces: list[str] = []
    current = node
    while isinstance(current, exp.Union | exp.Except | exp.Intersect) and (current is node or _bare(current)):
        word = words[type(current)] + ("" if current.args.get("distinct") else " ALL")
        pieces.append(f" {word} {_branch(writer, current.expression)}")
        current = current.this
        if isinstance(node, exp.Intersect) is not isinstance(current, exp.Intersect):
            break
    return write_with(writer, node) + _branch(writer, current) + "".join(reversed(pieces)) + _tail(writer, node)


def _bare(node: Any) -> bool:
    return not any(node.args.get(key) for key in ("with_", *_TAIL))


def _branch(writer: Writer, node: Any) -> str:
    written = writer.write(node)
    return (
        written if isinstance(node, exp.Subquery) or (isinstance(node, exp.Select) and _bare(node)) else f"({written})"
    )


for _kind in (exp.Union, exp.Except, exp.Intersect):
    rule(_kind, "with_", "this", "expression", "distinct", *_TAIL)(_set_operation)


@rule(exp.Subquery, "this", "alias", "with_", "joins", "pivots", "sample", *_TAIL)
def _subquery(writer: Writer, node: Any) -> str:
    # A query of nothing but rows reads like a call of a function where an expression may stand.
    rows = "SELECT * FROM " if isinstance(node.this, exp.Values) and not node.this.args.get("with_") else ""
    alone = rows and node.args.get("alias") is None
    return f"{write_with(writer, node)}({rows if alone else ''}{writer.write(node.this)}){_tail(writer, node)}"


@rule(exp.Values, "expressions", "with_", *_TAIL)
def _values(writer: Writer, node: Any) -> str:
    return f"{write_with(writer, node)}VALUES {writer.writes(node.expressions)}{_tail(writer, node)}"


@rule(exp.Table, "this", "db", "catalog", "alias", "joins", "version", "sample", "pivots")
def _table(writer: Writer, node: Any) -> str:
    if isinstance(node.this, Call):
        return write_table_function(writer, node.this)
    parts = [node.args.get(key) for key in ("catalog", "db", "this")]
    name = ".".join(writer.write(part) for part in parts if part is not None)
    version = node.args.get("version")
    return name if version is None else f"{name} {writer.write(version)}"


def write_joined(writer: Writer, node: Any) -> str:
    """A table with its alias, its sample and the joins that hang on it."""
    pieces = [writer.write(node)] if not isinstance(node, exp.Paren) else [f"({write_joined(writer, node.this)})"]
    sample = node.args.get("sample")
    if sample is not None:
        pieces.append(f" {writer.write(sample)}")
    alias = node.args.get("alias")
    if isinstance(node, exp.Table) and isinstance(node.this, Call):
        pieces.append(table_function_alias(writer, node))
    elif alias is not None:
        pieces.append(f" AS {writer.write(alias)}")
    pieces.extend(f" {writer.write(pivot)}" for pivot in node.args.get("pivots") or ())
    pieces.extend(writer.write(join) for join in node.args.get("joins") or ())
    return "".join(pieces)


@rule(exp.Join, "this", "kind", "side", "method", "on", "using")
def _join(writer: Writer, node: Any) -> str:
    words = [node.args.get(key) for key in ("method", "side", "kind")]
    if words[-1] == "CROSS":
        # The same rows; and through an inner join Spark passes filters of one side on to scans of the other.
        words = ["INNER"]
    head = " ".join(word for word in words if word)
    table = node.this
    right = write_joined(writer, table)
    generated = isinstance(table, exp.Unnest) or is_generated(table)
    if generated:
        if node.args.get("side") not in (None, "LEFT") or node.args.get("method"):
            writer.refuse("UNNEST can only be joined with CROSS, INNER or LEFT JOIN", table)
        right = f"LATERAL {right}"
    if table.args.get("joins"):
        right = f"({right})"
    joined = f" {head} JOIN {right}" if head else f" JOIN {right}"
    if node.args.get("on") is not None:
        return f"{joined} ON {condition(writer, node.args['on'])}"
    using = node.args.get("using")
    return f"{joined} USING ({writer.writes(using)})" if using else joined


@rule(exp.Unnest, "expressions", "offset", "alias", "joins")
def _unnest(writer: Writer, node: Any) -> str:
    ordinality = "TRUE" if node.args.get("offset") else "FALSE"
    return f"_sqe_unnest({ordinality}, {writer.writes(node.expressions)})"


@rule(exp.TableSample, "method", "percent", "seed")
def _sample(writer: Writer, node: Any) -> str:
    seed = node.args.get("seed")
    repeat = "" if seed is None else f" REPEATABLE ({writer.write(seed)})"
    return f"TABLESAMPLE ({writer.write(node.args['percent'])} PERCENT){repeat}"


@rule(exp.Window, "this", "alias", "partition_by", "order", "spec")
def _window(writer: Writer, node: Any) -> str:
    name = node.args.get("alias")
    # Without an order all rows are peers, as NULLs are; Spark insists on one.
    unordered = name is None and node.args.get("order") is None and _ranks(node.this)
    body = _window_body(writer, node, order="NULL" if unordered else None)
    only_name = name is not None and not any(node.args.get(key) for key in ("partition_by", "order", "spec"))
    return write_call(writer, node.this, body if only_name else f"({body})")


def _named_window(writer: Writer, node: Any) -> str:
    return f"{writer.write(node.this)} AS ({_window_body(writer, node)})"


def _ranks(function: Any) -> bool:
    return isinstance(function, Call) and function.this in _RANKING


def _window_body(writer: Writer, node: Any, order: str | None = None) -> str:
    pieces = []
    if node.args.get("alias") is not None:
        pieces.append(writer.write(node.args["alias"]))
    if node.args.get("partition_by"):
        pieces.append(f"PARTITION BY {writer.writes(node.args['partition_by'])}")
    if node.args.get("order") is not None:
        order = writer.write(node.args["order"])
    if order is not None:
        pieces.append(f"ORDER BY {order}")
    if node.args.get("spec") is not None:
        pieces.append(writer.write(node.args["spec"]))
    return " ".join(pieces)


@rule(Frame, "kind", "start", "start_side", "end", "end_side")
def _frame(writer: Writer, node: Any) -> str:
    start = _bound(writer, node.args["start"], node.args.get("start_side"))
    if node.args.get("end") is None:
        return f"{node.args['kind']} {start}"
    return f"{node.args['kind']} BETWEEN {start} AND {_bound(writer, node.args['end'], node.args.get('end_side'))}"


def _bound(writer: Writer, value: Any, side: str | None) -> str:
    written = value if isinstance(value, str) else operand(writer, value)
    return f"{written} {side}" if side else written
