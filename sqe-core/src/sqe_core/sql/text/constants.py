"""Values of EXECUTE … USING as clients write them: literals, NULL of a type, and arrays, maps and rows of these.

5, -1.5, 'text', X'00', TRUE, NULL     BIGINT '5', TIMESTAMP '2026-01-01 00:00:00 Europe/Berlin', UUID '…'
CAST(NULL AS bigint)                   ARRAY[…], MAP(ARRAY[…], ARRAY[…]), ROW(…)
nan(), infinity(), -infinity()
"""

from __future__ import annotations

import datetime
import math
import re
import zoneinfo
from dataclasses import dataclass
from typing import Any

from sqe_core.sql.text.cursor import Cursor
from sqe_core.sql.text.literals import literal_value
from sqe_core.sql.text.tokens import Kind

_INTEGERS = {"tinyint": 8, "smallint": 16, "integer": 32, "int": 32, "bigint": 64}
_ZONED = re.compile(
    r"(\d{4}-\d\d?-\d\d?(?: \d\d?:\d\d(?::\d\d(?:\.\d+)?)?)?) ?(UTC|GMT)?([+-]\d\d?:\d\d|[A-Za-z][\w/+-]*)?"
)
_MOST_DEPTH = 20
_WHAT = "A value of EXECUTE"


@dataclass(frozen=True, slots=True)
class Number:
    """A number of a type that its digits do not tell: `real`, or a whole one of so many bits."""

    type: str
    value: Any


@dataclass(frozen=True, slots=True)
class ListedValues:
    """ARRAY[…]."""

    items: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class MappedValues:
    """MAP(ARRAY[…], ARRAY[…])."""

    keys: ListedValues
    values: ListedValues


@dataclass(frozen=True, slots=True)
class RowOfValues:
    """ROW(…)."""

    items: tuple[Any, ...]


def constant(cursor: Cursor, depth: int = 0) -> Any:
    """Read one value; nothing in it is evaluated.

    Raises:
        NotSupportedError: it is an expression.
        UserError: its text is none of its type.
    """
    if depth > _MOST_DEPTH:
        cursor.refuse(f"{_WHAT} is nested too deeply")
    if cursor.token.kind is not Kind.WORD and not (cursor.at_symbol("-") and cursor.peek().kind is Kind.WORD):
        return literal_value(cursor, what=_WHAT)
    following = cursor.peek()
    if cursor.token.is_word("array") and following.is_symbol("["):
        return _array(cursor, depth)
    if following.is_symbol("(") or cursor.at_symbol("-"):
        return _called(cursor, depth)
    if following.kind is Kind.STRING:
        return _typed(cursor)
    return literal_value(cursor, what=_WHAT)


def _array(cursor: Cursor, depth: int) -> ListedValues:
    cursor.expect("array")
    cursor.expect_symbol("[")
    items = [] if cursor.at_symbol("]") else cursor.items(lambda cursor: constant(cursor, depth + 1))
    cursor.expect_symbol("]")
    return ListedValues(tuple(items))


def _called(cursor: Cursor, depth: int) -> Any:
    sign = -1 if cursor.accept_symbol("-") else 1
    at = cursor.token
    word = at.value
    if word in ("nan", "infinity") and cursor.peek(2).is_symbol(")"):
        cursor.index += 3
        return sign * (math.nan if word == "nan" else math.inf)
    if sign == 1 and word == "row":
        cursor.advance()
        return RowOfValues(tuple(cursor.bracketed(lambda cursor: constant(cursor, depth + 1))))
    if sign == 1 and word == "map":
        cursor.advance()
        arrays = cursor.bracketed(lambda cursor: constant(cursor, depth + 1))
        if len(arrays) == 2 and all(isinstance(each, ListedValues) for each in arrays):
            return MappedValues(*arrays)
    if sign == 1 and word == "cast" and cursor.peek(2).is_word("null"):
        return _null(cursor)
    cursor.refuse(f"{_WHAT} must be a literal", hint="such as 0, 'text', TRUE or DATE '2026-01-01'", at=at)


def _null(cursor: Cursor) -> None:
    """CAST(NULL AS type): a NULL takes the type of its place."""
    cursor.index += 3
    cursor.expect("as")
    opened = 1
    while opened and not cursor.at_end:
        token = cursor.advance()
        opened += token.is_symbol("(") - token.is_symbol(")")
    if opened:
        cursor.fail('")"')


def _typed(cursor: Cursor) -> Any:
    token = cursor.token
    word, text = token.value, cursor.peek().value
    try:
        if word in _INTEGERS:
            number, bits = int(text), _INTEGERS[word]
            if not -(1 << bits - 1) <= number < 1 << bits - 1:
                raise ValueError
            value: Any = Number(word, number)
        elif word == "real":
            value = Number(word, float(text))
        elif word == "boolean":
            value = {"true": True, "false": False}[text.lower()]
        elif word == "timestamp":
            value = _moment(text)
        elif word == "time" and datetime.time.fromisoformat(text).tzinfo is not None:
            cursor.refuse("TIME WITH TIME ZONE is not supported", hint="write a TIME without a zone")
        else:
            return literal_value(cursor, what=_WHAT)
    except (ValueError, KeyError, zoneinfo.ZoneInfoNotFoundError):
        raise cursor.text.error(f"{text!r} is no {word.upper()}", token.start) from None
    cursor.index += 2
    return value


def _moment(text: str) -> datetime.datetime:
    """Read a timestamp; its zone is one by its name, or an offset as Python's client writes it: `UTC+02:00`."""
    found = _ZONED.fullmatch(text.strip())
    if found is None:
        raise ValueError(text)
    clock, utc, zone = found.groups()
    moment = datetime.datetime.fromisoformat(clock)
    if zone is None:
        return moment.replace(tzinfo=datetime.UTC) if utc else moment
    if zone[0] in "+-":
        hours, minutes = zone[1:].split(":")
        offset = datetime.timedelta(hours=int(hours), minutes=int(minutes))
        return moment.replace(tzinfo=datetime.timezone(-offset if zone[0] == "-" else offset))
    return moment.replace(tzinfo=zoneinfo.ZoneInfo(zone))
