"""Rules for arithmetic and comparisons: calls of templates, unless Spark means the same whatever the types are."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from sqe_core.sql.grammar.nodes import Conversion, Period
from sqe_core.sql.spark.clocks import zone_of
from sqe_core.sql.spark.write_membership import member
from sqe_core.sql.spark.writer import MappingQueries, Writer, operand, rule
from sqe_core.sql.statement import mapping_marker

_SIGNS: dict[type[exp.Expression], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*"}
_LOOKS_UP = "A row filter looks up values with SELECT column FROM catalog.schema.table WHERE …"
_CALLS = {"+": "_sqe_add", "-": "_sqe_sub", "*": "_sqe_mul"}

_COMPARISONS: dict[type[exp.Expression], tuple[str, str]] = {
    exp.EQ: ("=", "_sqe_eq"),
    exp.NEQ: ("<>", "_sqe_ne"),
    exp.LT: ("<", "_sqe_lt"),
    exp.LTE: ("<=", "_sqe_le"),
    exp.GT: (">", "_sqe_gt"),
    exp.GTE: (">=", "_sqe_ge"),
    exp.NullSafeEQ: ("<=>", "_sqe_same"),
}


def _arithmetic(writer: Writer, node: Any) -> str:
    # A chain of the same level is one call: a + b - c … may be hundreds of terms long.
    levels = (exp.Add, exp.Sub) if isinstance(node, exp.Add | exp.Sub) else (exp.Mul,)
    signs: list[str] = []
    terms: list[exp.Expression] = []
    while isinstance(node, levels):
        signs.append(_SIGNS[type(node)])
        terms.append(node.expression)
        node = node.this
    terms.append(node)
    signs.reverse()
    terms.reverse()
    if len(terms) == 2 and isinstance(terms[1], Period):
        zone = zone_of(writer, terms[0])
        if zone is not None:
            sign = "-" if signs == ["-"] else ""
            return f"_sqe_add_period({operand(writer, terms[0])}, {sign}{operand(writer, terms[1])}, {zone})"
    if all(_is_whole(term) for term in terms):
        following = "".join(f" {sign} {operand(writer, term)}" for sign, term in zip(signs, terms[1:], strict=True))
        return operand(writer, terms[0]) + following
    written = writer.writes(terms)
    return f"{_CALLS[signs[0]]}({written})" if len(signs) == 1 else f"_sqe_chain('{''.join(signs)}', {written})"


for _kind in _SIGNS:
    rule(_kind, "this", "expression")(_arithmetic)


def _comparison(writer: Writer, node: Any) -> str:
    left, right = node.this, node.expression
    sign, call = _COMPARISONS[type(node)]
    if _is_padded(left) or _is_padded(right):
        return f"{_trimmed(writer, left)} {sign} {_trimmed(writer, right)}"
    if sign[0] in "<>" and sign not in ("<>", "<=>") and (_is_address(left) or _is_address(right)):
        return f"_sqe_address_bytes({writer.write(left)}) {sign} _sqe_address_bytes({writer.write(right)})"
    larger, other = (right, left) if sign.startswith("<") else (left, right)
    # A whole number is no NaN, so only the side that could be larger than it matters.
    if _is_plain(left) or _is_plain(right) or (_is_whole(larger) or (_is_whole(other) and sign in ("=", "<>"))):
        return f"{operand(writer, left)} {sign} {operand(writer, right)}"
    return f"{call}({writer.write(left)}, {writer.write(right)})"


for _kind in _COMPARISONS:
    rule(_kind, "this", "expression")(_comparison)


@rule(exp.NullSafeNEQ, "this", "expression")
def _distinct(writer: Writer, node: Any) -> str:
    return f"NOT ({_comparison(writer, exp.NullSafeEQ(this=node.this, expression=node.expression))})"


@rule(exp.Between, "this", "low", "high")
def _between(writer: Writer, node: Any) -> str:
    value, low, high = node.this, node.args["low"], node.args["high"]
    if any(map(_is_padded, (value, low, high))):
        return f"{_trimmed(writer, value)} BETWEEN {_trimmed(writer, low)} AND {_trimmed(writer, high)}"
    if all(_is_plain(bound) or _is_whole(bound) for bound in (low, high)):
        return f"{operand(writer, value)} BETWEEN {operand(writer, low)} AND {operand(writer, high)}"
    return f"_sqe_between({writer.writes((value, low, high))})"


@rule(exp.Not, "this")
def _not(writer: Writer, node: Any) -> str:
    this = node.this
    if isinstance(this, exp.Is) and isinstance(this.expression, exp.Null):
        return f"{operand(writer, this.this)} IS NOT NULL"
    if isinstance(this, exp.In):
        return _in(writer, this, "NOT IN", node)
    return f"NOT {operand(writer, this)}"


@rule(exp.In, "this", "expressions", "query")
def _in(writer: Writer, node: Any, word: str = "IN", whole: Any = None) -> str:
    query, values = node.args.get("query"), node.expressions
    if query is not None and writer.mappings is not None:
        return _mapped(writer, writer.mappings, node, word)
    if query is not None:
        return member(writer, whole or node, node.this, query, negated=word != "IN")
    if any(map(_is_padded, (node.this, *values))):
        return f"{_trimmed(writer, node.this)} {word} ({', '.join(_trimmed(writer, value) for value in values)})"
    if all(_is_plain(value) or _is_whole(value) for value in values):
        return f"{operand(writer, node.this)} {word} ({writer.writes(values)})"
    call = f"_sqe_in({writer.writes((node.this, *values))})"
    return call if word == "IN" else f"NOT {call}"


def _mapped(writer: Writer, mappings: MappingQueries, node: Any, word: str) -> str:
    """A query in a row filter becomes the values that it has (POL-5)."""
    query = node.args["query"].this
    if mappings.inside or _mapping_table(query) is None or len(query.expressions) != 1:
        writer.refuse(_LOOKS_UP, node)
    left = operand(writer, node.this)  # before anything is left out: queries have the same numbers in each pass
    markers = _looked_up(writer, mappings, query)
    if not markers:
        return "true" if word.startswith("NOT") else "false"
    return f"{left} {word} ({', '.join(markers)})"


@rule(exp.Exists, "this")
def _exists(writer: Writer, node: Any) -> str:
    mappings = writer.mappings
    if mappings is None:
        return f"EXISTS ({writer.write(node.this)})"
    query = node.this
    table = _mapping_table(query)
    if mappings.inside or table is None:
        writer.refuse(_LOOKS_UP, node)
    # With a name for the mapping table, `m.region = region` says which of its values the row has to have.
    own, alias = [], table.alias
    met: list[tuple[exp.Expression, exp.Expression]] = []
    where = query.args.get("where")
    for condition in where.this.flatten() if isinstance(getattr(where, "this", None), exp.And) else _one(where):
        sides = [condition.this, condition.expression] if alias and isinstance(condition, exp.EQ) else []
        inner = [side for side in sides if _is_of(side, alias)]
        outer = [side for side in sides if _names(side, alias) == {False}]
        if len(inner) == len(outer) == 1:
            met.append((inner[0], outer[0]))
        elif alias and False in _names(condition, alias):
            writer.refuse(f"EXISTS in a row filter compares with =, and calls its own columns {alias}.column", node)
        else:
            own.append(condition)
    if len(met) > 1:
        writer.refuse("EXISTS in a row filter compares one column with the mapping table's", node)
    wanted = met[0][0] if met else exp.Literal.number(1)
    looked = exp.Select(expressions=[wanted], from_=exp.From(this=table))
    if own:
        looked.set("where", exp.Where(this=exp.and_(*own, copy=False)))
    left = operand(writer, met[0][1]) if met else ""
    markers = _looked_up(writer, mappings, looked)
    if not markers or not met:
        return "true" if markers else "false"
    return f"coalesce({left} IN ({', '.join(markers)}), false)"


def _mapping_table(query: Any) -> Any:
    """Return the one table of a query that looks up values, None for other queries."""
    simple = isinstance(query, exp.Select) and _only(query, "expressions", "from_", "from", "where", "distinct")
    source = (query.args.get("from_") or query.args.get("from")) if simple else None
    table = source.this if source is not None else None
    known = isinstance(table, exp.Table) and _only(table, "this", "db", "catalog", "alias")
    return table if known else None


def _looked_up(writer: Writer, mappings: MappingQueries, query: Any) -> list[str]:
    """Note a query, and return the markers of its values."""
    mappings.inside = True
    facts, writer.facts = writer.facts, frozenset()
    mappings.written.append(writer.write(query))
    mappings.inside, writer.facts = False, facts
    number = len(mappings.written) - 1
    size = 1 if mappings.sizes is None else mappings.sizes[number]
    return [f":{mapping_marker(number, place)}" for place in range(size)]


def _one(where: Any) -> list[Any]:
    return [where.this] if where is not None else []


def _names(node: Any, alias: str) -> set[bool]:
    """Say of the columns in an expression whether they are the mapping table's."""
    return {column.table == alias for column in node.find_all(exp.Column)}


def _is_of(node: Any, alias: str) -> bool:
    return isinstance(node, exp.Column) and node.table == alias


def _only(node: exp.Expression, *parts: str) -> bool:
    return not any(value for key, value in node.args.items() if key not in parts)


def _is_plain(node: Any) -> bool:
    """Whether a comparison with it is Spark's, whatever stands on the other side."""
    if isinstance(node, exp.Paren):
        return _is_plain(node.this)
    if isinstance(node, Conversion):
        return bool(node.args.get("literal")) and node.target.name in ("date", "time", "timestamp", "varchar")
    return isinstance(node, exp.Boolean | exp.Null) or (isinstance(node, exp.Literal) and node.is_string)


def _is_whole(node: Any) -> bool:
    while isinstance(node, exp.Paren | exp.Neg):
        node = node.this
    return isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdigit()


def _is_padded(node: Any) -> bool:
    """Whether it is a CHAR, for which blanks at the end do not count. No column is one: catalogs have no such type."""
    if isinstance(node, exp.Paren):
        return _is_padded(node.this)
    return isinstance(node, Conversion) and node.target.name == "char"


def _is_address(node: Any) -> bool:
    """Whether it is an address, whose order is that of its bytes and not of its text."""
    if isinstance(node, exp.Paren):
        return _is_address(node.this)
    return isinstance(node, Conversion) and node.target.name == "ipaddress"


def _trimmed(writer: Writer, node: Any) -> str:
    return f"rtrim({writer.write(node)})"
