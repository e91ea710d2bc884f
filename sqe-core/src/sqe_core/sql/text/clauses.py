"""Clauses that several DDL statements share: property lists, partition transforms, literals, marked names."""

from __future__ import annotations

from dataclasses import dataclass

from sqe_core.sql.grammar.types import TYPE_WORDS, spark_identifier
from sqe_core.sql.spark.text import quote_name
from sqe_core.sql.statement import Name
from sqe_core.sql.text.context import StatementText
from sqe_core.sql.text.cursor import Cursor
from sqe_core.sql.text.positions import mark, unmark
from sqe_core.sql.text.tokens import Kind, Lexicon, Text, Token, tokenize

_TRANSFORMS = {
    **dict.fromkeys(("year", "years"), "years"),
    **dict.fromkeys(("month", "months"), "months"),
    **dict.fromkeys(("day", "days", "date"), "days"),
    **dict.fromkeys(("hour", "hours", "date_hour"), "hours"),
    "bucket": "bucket",
    "truncate": "truncate",
}
_SIZED = ("bucket", "truncate")


@dataclass(frozen=True, slots=True)
class MarkedName:
    """A name, and how it stands in the Spark text with its mark."""

    name: Name
    sql: str


def marked_name(cursor: Cursor, what: str = "the name of a table", *, most: int = 3) -> MarkedName:
    start = cursor.token.start
    name = cursor.name(what, most=most)
    return MarkedName(name, mark(start) + quote_name(name))


def column_path(cursor: Cursor) -> str:
    """Read the name of a column or of a field inside one; return it for Spark."""
    return marked_name(cursor, "the name of a column", most=64).sql


def column(cursor: Cursor) -> str:
    """Read the name of a column; return it for Spark."""
    start = cursor.token.start
    return mark(start) + spark_identifier(cursor.part("the name of a column"))


@dataclass(frozen=True, slots=True)
class Property:
    """A key and its value; the value of ARRAY[…] is a tuple, that of MAP(…) pairs, DEFAULT is None."""

    key: str
    value: str | tuple[str, ...] | None
    at: Token
    pairs: tuple[tuple[str, str], ...] | None = None


def property_list(cursor: Cursor, *, brackets: bool = True) -> list[Property]:
    """Read (key = value, …); keys are names or strings, values literals or ARRAY['…', …]."""
    return cursor.bracketed(_property) if brackets else cursor.items(_property)


def _property(cursor: Cursor) -> Property:
    at = cursor.token
    key = property_key(cursor)
    cursor.accept_symbol("=")
    if cursor.at("map") and cursor.peek().is_symbol("("):
        return Property(key, None, at, _map(cursor))
    return Property(key, _property_value(cursor), at)


def map_entries(cursor: Cursor, one: Property) -> tuple[tuple[str, str], ...]:
    """Return the entries of a property that is a map."""
    if one.pairs is None:
        cursor.refuse(f"{one.key} has to be MAP(ARRAY['key', …], ARRAY['value', …])", at=one.at)
    return one.pairs


def _map(cursor: Cursor) -> tuple[tuple[str, str], ...]:
    at = cursor.token
    cursor.expect("map")
    cursor.expect_symbol("(")
    cursor.expect("array")
    keys = _strings(cursor)
    cursor.expect_symbol(",")
    cursor.expect("array")
    values = _strings(cursor)
    cursor.expect_symbol(")")
    if len(keys) != len(values) or len(set(keys)) != len(keys):
        cursor.refuse("A map needs a value for each of its keys, which differ", at=at)
    return tuple(zip(keys, values, strict=True))


def _strings(cursor: Cursor) -> tuple[str, ...]:
    """Read ['a', 'b']."""
    cursor.expect_symbol("[")
    items: list[str] = []
    while not cursor.at_symbol("]"):
        items.append(cursor.string())
        if not cursor.accept_symbol(","):
            break
    cursor.expect_symbol("]")
    return tuple(items)


def property_key(cursor: Cursor) -> str:
    """Read the key of a property: 'a.b', "a.b" or a.b."""
    if cursor.token.kind is Kind.STRING:
        return cursor.string()
    parts = [cursor.part("the name of a property")]
    while cursor.at_symbol(".") or cursor.at_symbol("-"):
        parts.append(cursor.advance().value)
        parts.append(cursor.part("the name of a property"))
    return "".join(parts)


def _property_value(cursor: Cursor) -> str | tuple[str, ...] | None:
    token = cursor.token
    if token.kind is Kind.STRING:
        return cursor.string()
    if cursor.accept("default") or cursor.accept("null"):
        return None
    if cursor.at_any("true", "false"):
        return cursor.advance().value
    if cursor.accept("array"):
        return _strings(cursor)
    sign = "-" if cursor.accept_symbol("-") else ""
    if cursor.token.kind is Kind.NUMBER:
        return sign + cursor.advance().value
    cursor.fail("a literal", hint="strings stand in single quotes")


def transform(cursor: Cursor) -> str:
    """Read a partition transform: a column, day(c), bucket(8, c) in either order; return it for Spark."""
    if not (cursor.token.kind is Kind.WORD and cursor.peek().is_symbol("(")):
        return column_path(cursor)
    at = cursor.advance()
    cursor.expect_symbol("(")
    if at.value in ("void", "alwaysnull"):
        cursor.refuse("The transform void cannot be chosen", hint="leave the column out of the partitioning", at=at)
    spark = "" if at.value == "identity" else _TRANSFORMS.get(at.value)
    if spark is None:
        cursor.refuse(
            f"Unknown partition transform {at.value}",
            hint="the transforms are year, month, day, hour, bucket(n, column) and truncate(n, column)",
            at=at,
        )
    written = _sized_arguments(cursor) if spark in _SIZED else column_path(cursor)
    if cursor.at_symbol(","):
        cursor.refuse("A partition transform takes one column")
    cursor.expect_symbol(")")
    return f"{spark}({written})" if spark else written


def _sized_arguments(cursor: Cursor) -> str:
    if cursor.token.kind is Kind.NUMBER:
        size = cursor.integer()
        cursor.expect_symbol(",")
        return f"{size}, {column_path(cursor)}"
    path = column_path(cursor)
    cursor.expect_symbol(",")
    return f"{cursor.integer()}, {path}"


def transform_text(outer: Cursor, at: Token, written: str) -> str:
    """Read a transform that stands in a string, as in partitioning = ARRAY['day(ts)']."""
    text = Text(written)
    inner = Cursor(text, tokenize(text, Lexicon.ANSI))
    result = transform(inner)
    if not inner.at_end:
        outer.refuse(f"{written} is not a partition transform", at=at)
    # Places inside the string cannot be marked: they are places of the string.
    return unmark(text, result)[0]


def literal(statement: StatementText, cursor: Cursor, what: str) -> str:
    """Read a literal; return it for Spark."""
    first = cursor.index
    if cursor.accept_symbol("-") or cursor.accept_symbol("+"):
        if cursor.token.kind is not Kind.NUMBER:
            cursor.fail("a number")
        cursor.advance()
    elif cursor.token.kind in (Kind.STRING, Kind.NUMBER, Kind.BINARY) or cursor.at_any("true", "false", "null"):
        cursor.advance()
    elif cursor.token.kind is Kind.WORD and cursor.token.value in TYPE_WORDS and cursor.peek().kind is Kind.STRING:
        cursor.advance()
        cursor.advance()
    else:
        cursor.refuse(f"{what} must be a literal", hint="such as 0, 'text', TRUE or DATE '2026-01-01'")
    following = cursor.token
    if following.kind is Kind.SYMBOL and following.value not in (",", ")"):
        cursor.refuse(f"{what} must be a literal", hint="such as 0, 'text', TRUE or DATE '2026-01-01'")
    return statement.engine.marked_expression(statement, first, cursor.index)
