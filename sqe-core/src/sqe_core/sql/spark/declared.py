"""The types that a select list declares and Spark has no word for: lengths of texts, digits of times, uuid, ipaddress.

They are told to Trino's clients, which read values by them. What is computed further has Spark's type again.
"""

from __future__ import annotations

import re
from typing import Any

from sqlglot import exp

from sqe_core.spi.names import quote_part
from sqe_core.sql.grammar.nodes import Call, Conversion
from sqe_core.sql.grammar.types import MAX_TIME_PRECISION, SqlType
from sqe_core.sql.text.time_zone import has_zone

_TIMES = ("time", "timestamp", "timestamp with time zone")
_TEXTS = ("char", "varchar")
_WORDS = ("uuid", "ipaddress")
_CALLS = {
    **dict.fromkeys(("uuid", "gen_random_uuid"), "uuid"),
    **dict.fromkeys(("now", "current_timestamp"), "timestamp(3) with time zone"),
    "localtimestamp": "timestamp(3)",
    "localtime": "time(3)",
}
_MILLISECONDS = ("now", "current_timestamp", "from_unixtime", "from_iso8601_timestamp", "parse_datetime")
_SAME_DIGITS = {"at_timezone": 0, "with_timezone": 0, "date_trunc": 1, "date_add": 2}  # and the place of the time


def declared_type(node: exp.Expression) -> str | None:
    """Return the type that an expression of a select list declares; None where Spark's type says as much."""
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Literal) and node.is_string:
        return f"varchar({len(str(node.this))})"
    if isinstance(node, Call) and not node.expressions:
        return _CALLS.get(str(node.this))
    if not isinstance(node, Conversion):
        return None
    target = node.target
    if node.args.get("literal") and target.name in _TIMES:
        literal = str(node.this.this)
        zoned = target.name == "timestamp" and has_zone(literal)
        digits = _digits(literal)
        if digits == MAX_TIME_PRECISION:
            return None
        return _time("timestamp with time zone" if zoned else target.name, digits)
    return _text(target) if _says_more(target) else None


def declared_digits(node: exp.Expression) -> int | None:
    """Return how many digits of a second a timestamp has, where its expression says it."""
    while isinstance(node, exp.Paren | exp.AtTimeZone):
        node = node.this
    if isinstance(node, Call):
        if node.this in _MILLISECONDS:
            return 3
        at = _SAME_DIGITS.get(node.this)
        return None if at is None or len(node.expressions) <= at else declared_digits(node.expressions[at])
    found = re.match(r"timestamp\((\d)\)", declared_type(node) or "")
    return None if found is None else int(found[1])


def _says_more(type: SqlType) -> bool:
    if type.name in _TIMES:
        return _precision(type) != MAX_TIME_PRECISION
    return type.name in _WORDS or bool(type.name in _TEXTS and type.numbers) or any(map(_says_more, type.elements))


def _precision(type: SqlType) -> int:
    return type.numbers[0] if type.numbers else MAX_TIME_PRECISION


def _digits(literal: str) -> int:
    """Return how many digits of a second a literal has."""
    fraction = literal.partition(".")[2]
    return next((at for at, character in enumerate(fraction) if not character.isdigit()), len(fraction))


def _time(name: str, digits: int) -> str:
    word, _, zone = name.partition(" ")
    return f"{word}({digits}) {zone}".rstrip()


def _text(type: SqlType) -> str:
    if type.name in _TIMES:
        return _time(type.name, _precision(type))
    if type.name == "row":
        fields: list[Any] = [
            f"{_field(name, at)} {_text(inner)}"
            for at, (name, inner) in enumerate(zip(type.fields, type.elements, strict=True), 1)
        ]
        return f"row({', '.join(fields)})"
    if type.elements:
        return f"{type.name}({', '.join(map(_text, type.elements))})"
    return f"{type.name}({','.join(map(str, type.numbers))})" if type.numbers else type.name


def _field(name: str | None, at: int) -> str:
    name = f"col{at}" if name is None else name
    return name if name.isidentifier() else quote_part(name)
