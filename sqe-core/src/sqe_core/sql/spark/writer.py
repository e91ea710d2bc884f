"""From the tree to Spark SQL. A node, or a part of one, that has no rule here refuses the statement (STMT-8)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NoReturn, TypeVar

from sqlglot import exp

from sqe_core.spi.errors import NotSupportedError, ResourcesError
from sqe_core.sql.grammar.nodes import Call, Conversion, DefaultMark, FileName, place_of
from sqe_core.sql.grammar.types import spark_identifier
from sqe_core.sql.spark.text import quote_string
from sqe_core.sql.spark.zones import Zones
from sqe_core.sql.text.context import Dialect
from sqe_core.sql.text.positions import mark
from sqe_core.sql.text.tokens import Text

# A policy knows the columns of a table; these tell where its rows are, and of those that it hides.
_HIDDEN_COLUMNS = frozenset(("$path", "$file_modified_time", "$partition", "$file_size", "$row_id"))

MAX_WRITTEN = 16 * 1024 * 1024  # templates can repeat their arguments; this bounds what nesting makes of that

Rule = Callable[[Any, Any], str]
R = TypeVar("R", bound=Callable[..., str])


@dataclass(slots=True)
class MappingQueries:
    """The queries in a row filter. They are run before it, and their values stand in their place.

    Args:
        sizes: how many values each of them has; None while that is not known.
    """

    sizes: Sequence[int] | None = None
    written: list[str] = field(default_factory=list)
    inside: bool = False


class Writer:
    """Writes trees. The mixins add the rules; this class chooses among them and checks that nothing is left over."""

    RULES: ClassVar[dict[type[exp.Expression], tuple[frozenset[str], Rule]]] = {}

    def __init__(self, text: Text, dialect: Dialect) -> None:
        self.text = text
        self.dialect = dialect
        self.positional: Mapping[int, str] = {}  # from the place of each ? to the name it gets
        self.facts: frozenset[str] = frozenset()
        """Functions that only the expressions of policies have; the engine puts values in their place."""
        self.mappings: MappingQueries | None = None
        """For the row filters that may look into other tables."""
        self.zones = Zones()
        self.copies = 1  # how often what is written now will stand in the plan

    @property
    def of_policy(self) -> bool:
        """Whether this is an expression of a policy."""
        return bool(self.facts)

    def write(self, node: Any) -> str:
        found = self.RULES.get(type(node))
        if found is None:
            self.refuse(f"{type(node).__name__} is not supported", node)
        allowed, rule = found
        for key, value in node.args.items():
            if key not in allowed and value not in (None, False, []):
                self.refuse(f"{key.strip('_').upper().replace('_', ' ')} is not supported here", node)
        written = rule(self, node)
        if len(written) > MAX_WRITTEN:
            raise ResourcesError("The statement is too complex", hint="split it with WITH or a temporary view")
        return self.place(node) + written

    def place(self, node: Any) -> str:
        """The mark of the place where the user wrote this node."""
        start = node.meta.get("start") if isinstance(node, exp.Expression) else None
        return "" if start is None else mark(start)

    def writes(self, nodes: Iterable[Any], separator: str = ", ") -> str:
        return separator.join(self.write(node) for node in nodes)

    def refuse(self, message: str, node: Any = None, *, hint: str | None = None) -> NoReturn:
        """Refuse the statement at a node."""
        place = place_of(node) if isinstance(node, exp.Expression) else None
        position = None if place is None else self.text.position(place)
        raise NotSupportedError(message, hint=hint, position=position)


def rule(kind: type[exp.Expression], *allowed: str) -> Callable[[R], R]:
    """Register a rule: the node class and the parts of it that the rule writes."""

    def register(write: R) -> R:
        Writer.RULES[kind] = (frozenset(allowed), write)
        return write

    return register


def says(kind: type[exp.Expression], text: str, *also: str, part: Callable[[Any, Any], str] | None = None) -> None:
    """Register a rule that is a text with the node's parts in it; `also` are parts that others write."""
    write = part or Writer.write

    def fill(writer: Writer, node: Any) -> str:
        def put(match: re.Match[str]) -> str:
            value = node.args.get(match[1]) or ()
            return ", ".join(write(writer, each) for each in (value if isinstance(value, list | tuple) else [value]))

        return _PART.sub(put, text)

    rule(kind, *_PART.findall(text), *also)(fill)


_PART = re.compile(r"\{(\w+)\}")

for _kind, _text in (
    (exp.Tuple, "({expressions})"),
    (exp.Null, "NULL"),
    (DefaultMark, "DEFAULT"),
    (exp.Array, "array({expressions})"),
    (exp.Kwarg, "{this} => {expression}"),
    (exp.CTE, "{alias} AS ({this})"),
    (exp.Order, "{expressions}"),
    (exp.Rollup, "ROLLUP ({expressions})"),
    (exp.Cube, "CUBE ({expressions})"),
    (exp.Alias, "{this} AS {alias}"),
):
    says(_kind, _text)
says(exp.Paren, "({this})", "joins", "alias")
says(exp.Lateral, "LATERAL {this}", "alias", "joins")


# Written without brackets beside AND and OR.
_COMPARISONS = (
    exp.EQ,
    exp.NEQ,
    exp.LT,
    exp.LTE,
    exp.GT,
    exp.GTE,
    exp.NullSafeEQ,
    exp.In,
    exp.Is,
    exp.Between,
    exp.Like,
)

# Nodes that end where they say, so that no bracket is needed around them.
_CLOSED = (
    exp.Column,
    exp.Literal,
    exp.Paren,
    exp.Subquery,
    exp.Null,
    exp.Boolean,
    exp.Placeholder,
    exp.Tuple,
    exp.Array,
    exp.HexString,
    exp.Case,
    exp.Exists,
    Call,
    Conversion,
)


def operand(writer: Writer, node: exp.Expression) -> str:
    """Write an operand, in brackets unless it cannot be misread."""
    written = writer.write(node)
    return written if isinstance(node, _CLOSED) else f"({written})"


def condition(writer: Writer, node: Any) -> str:
    """Write what stands where a condition must; NULL without a type is one."""
    inner = node
    while isinstance(inner, exp.Paren):
        inner = inner.this
    return "CAST(NULL AS BOOLEAN)" if isinstance(inner, exp.Null) else writer.write(node)


def _connector(writer: Writer, node: Any) -> str:
    word = "AND" if isinstance(node, exp.And) else "OR"
    terms: list[exp.Expression] = []
    kind = type(node)
    while isinstance(node, kind):
        terms.append(node.expression)
        node = node.this
    terms.append(node)
    return f" {word} ".join(_term(writer, term) for term in reversed(terms))


def _term(writer: Writer, node: exp.Expression) -> str:
    return writer.write(node) if isinstance(node, _COMPARISONS) else operand(writer, node)


rule(exp.And, "this", "expression")(_connector)
rule(exp.Or, "this", "expression")(_connector)


@rule(exp.Neg, "this")
def _neg(writer: Writer, node: Any) -> str:
    if isinstance(node.this, exp.Literal) and not node.this.is_string:
        if str(node.this.this) == str(2**63):
            # The smallest bigint, whose digits alone are none.
            return f"-{writer.place(node.this)}{2**63}L"
        return f"-{writer.write(node.this)}"
    return f"-{operand(writer, node.this)}"


@rule(exp.Is, "this", "expression")
def _is(writer: Writer, node: Any) -> str:
    if isinstance(node.expression, exp.JSON):
        return writer.write(
            Call(this="_sqe_is_json", expressions=[node.this, exp.Literal.string(node.expression.name)])
        )
    return f"{operand(writer, node.this)} IS {writer.write(node.expression)}"


@rule(exp.Case, "this", "ifs", "default")
def _case(writer: Writer, node: Any) -> str:
    start = "CASE" if node.this is None else f"CASE {writer.write(node.this)}"
    tested = condition if node.this is None else Writer.write
    branches = [
        f" WHEN {tested(writer, branch.this)} THEN {writer.write(branch.args['true'])}" for branch in node.args["ifs"]
    ]
    default = node.args.get("default")
    return start + "".join(branches) + ("" if default is None else f" ELSE {writer.write(default)}") + " END"


@rule(exp.Column, "this", "table", "db", "catalog")
def _column(writer: Writer, node: Any) -> str:
    parts = [node.args.get(key) for key in ("catalog", "db", "table", "this")]
    if writer.dialect is Dialect.TRINO and str(node.name).lower() in _HIDDEN_COLUMNS:
        writer.refuse(f"The column {node.name} is not supported", node, hint='files are listed by "t$files"')
    return ".".join(writer.write(part) for part in parts if part is not None)


@rule(exp.Identifier, "this", "quoted")
def _identifier(writer: Writer, node: Any) -> str:
    return spark_identifier(node.this)


@rule(exp.Star, "except_")
def _star(writer: Writer, node: Any) -> str:
    dropped = node.args.get("except_")
    return f"* EXCEPT ({writer.writes(dropped)})" if dropped else "*"


@rule(exp.Dot, "this", "expression")
def _dot(writer: Writer, node: Any) -> str:
    return f"{operand(writer, node.this)}.{writer.write(node.expression)}"


@rule(exp.Literal, "this", "is_string")
def _literal(writer: Writer, node: Any) -> str:
    if node.args.get("is_string"):
        return quote_string(node.this)
    number = str(node.this)
    # Python reads no number of thousands of digits.
    exact = len(number) > 1000 or int(number) >= 2**63 if number.isdigit() else "." in number and "e" not in number
    if len(number) > 18 and exact:
        return f"{number}BD"
    return f"{number}D" if "e" in number else number


@rule(exp.HexString, "this")
def _hex(writer: Writer, node: Any) -> str:
    return f"X'{node.this}'"


@rule(exp.Boolean, "this")
def _boolean(writer: Writer, node: Any) -> str:
    return "TRUE" if node.this else "FALSE"


@rule(exp.Lambda, "this", "expressions")
def _lambda(writer: Writer, node: Any) -> str:
    names = writer.writes(node.expressions)
    return f"{names if len(node.expressions) == 1 else f'({names})'} -> {writer.write(node.this)}"


@rule(FileName, "this")
def _file(writer: Writer, node: Any) -> str:
    writer.refuse("Files cannot be queried by name", node, hint="load the file into a table first")
