"""The time zone of an expression, where the statement's text says it: Spark's values are instants and have none.

What is not known is None: the zone is UTC then, in which tables keep their instants, or one for each row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from sqe_core.sql.grammar.nodes import Call, Conversion, Period
from sqe_core.sql.spark.zone_columns import Columns
from sqe_core.sql.text.time_zone import zone_at_end, zone_name

ZONED = "timestamp with time zone"
_TIMES = ("date", "timestamp", ZONED)
_MOST_STEPS = 40  # from expression to expression, through columns of subqueries: a longer way is not followed


@dataclass(frozen=True, slots=True)
class Zone:
    """A zone that is known: one by its name, the session's, or that of columns of tables."""

    name: str


SESSION = Zone("session")
STORED = Zone("stored")
"""A table's column: UTC where its type has a zone."""


class Zones:
    """Finds the zones of the expressions of one statement."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[exp.Expression, Zone | None]] = {}
        self.columns = Columns(self.of, STORED)
        self._steps = 0

    def of(self, node: Any) -> Zone | None:
        """Return the zone of an expression, in the dialect `trino`; None where it has none or nobody knows it."""
        rule = _RULES.get(type(node))
        if rule is None:
            return self.columns.of(node) if isinstance(node, exp.Column) else None
        known = self._known.get(id(node))
        if known is None and self._steps < _MOST_STEPS:
            self._steps += 1
            known = self._known[id(node)] = (node, rule(self, node))
            self._steps -= 1
        return known[1] if known is not None else None

    def agreed(self, nodes: Iterable[Any]) -> Zone | None:
        """Return the one zone of several expressions, of which NULL is no matter."""
        found = None
        for node in nodes:
            if not isinstance(node, exp.Null):
                zone = self.of(node)
                if zone is None or found not in (None, zone):
                    return None
                found = zone
        return found


def constant_zone(node: Any) -> Zone | None:
    """Return the zone that a literal names, a text or an interval; None where it is none."""
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Literal) and node.is_string:
        return _named(str(node.this))
    if isinstance(node, Period):
        minutes = _minutes(node)
        return None if minutes is None else _offset(minutes)
    return None


def _named(text: str) -> Zone | None:
    found = zone_name(text)
    # Regions are found in whatever case, and Java wants the right one.
    return Zone(found) if found is not None and ("/" not in found or found == text) else None


def _offset(minutes: int) -> Zone | None:
    hours, rest = divmod(abs(minutes), 60)
    return _named(f"{'-' if minutes < 0 else '+'}{hours:02}:{rest:02}")


_CLOCK = re.compile(r"\s*([+-]?)(\d{1,2})(?::(\d{2}))?\s*")


def _minutes(node: Any) -> int | None:
    found = _CLOCK.fullmatch(str(node.this))
    unit, to = node.args.get("unit"), node.args.get("to")
    if found is None or (unit, to) not in (("hour", None), ("minute", None), ("hour", "minute")):
        return None
    sign = (-1 if found[1] == "-" else 1) * (-1 if node.args.get("sign") == -1 else 1)
    count = int(found[2])
    if (found[3] is not None) != (to is not None):
        return None
    return sign * (count if unit == "minute" else count * 60 + int(found[3] or 0))


# --- by the kind of an expression


def _same(zones: Zones, node: Any) -> Zone | None:
    return zones.of(node.this)


def _at(zones: Zones, node: Any) -> Zone | None:
    return _to(node.args["zone"])


def _to(zone: Any) -> Zone | None:
    return SESSION if isinstance(zone, Call) and zone.this == "current_timezone" else constant_zone(zone)


def _case(zones: Zones, node: Any) -> Zone | None:
    branches = [branch.args["true"] for branch in node.args["ifs"]]
    default = node.args.get("default")
    return zones.agreed([*branches, *([] if default is None else [default])])


def _moved(zones: Zones, node: Any) -> Zone | None:
    left, right = node.this, node.expression
    if isinstance(right, Period):
        return zones.of(left)
    return zones.of(right) if isinstance(left, Period) and isinstance(node, exp.Add) else None


def _conversion(zones: Zones, node: Any) -> Zone | None:
    target, value = node.target, node.this
    while isinstance(value, exp.Paren):
        value = value.this
    if target.name not in ("timestamp", ZONED):
        return None
    if isinstance(value, exp.Literal) and value.is_string:
        written = zone_at_end(str(value.this))
        if written is not None:
            return _named(written) if target.name == ZONED or node.args.get("literal") else None
        return SESSION if target.name == ZONED else None
    if target.name != ZONED:
        return None
    if isinstance(value, exp.Null) or (isinstance(value, Conversion) and value.target.name == "time"):
        return SESSION
    if isinstance(value, Conversion) and value.target.name in _TIMES and zones.of(value) is None:
        return SESSION if value.target.name != ZONED else None
    found = zones.of(value)
    return None if found is STORED else found


def _query(zones: Zones, node: Any) -> Zone | None:
    return zones.columns.output(node, 0)


# --- functions


def _first(zones: Zones, arguments: list[Any]) -> Zone | None:
    return zones.of(arguments[0]) if arguments else None


def _last(zones: Zones, arguments: list[Any]) -> Zone | None:
    return zones.of(arguments[-1]) if arguments else None


def _all(zones: Zones, arguments: list[Any]) -> Zone | None:
    return zones.agreed(arguments)


def _branches(zones: Zones, arguments: list[Any]) -> Zone | None:
    return zones.agreed(arguments[1:])


def _neighbour(zones: Zones, arguments: list[Any]) -> Zone | None:
    return zones.agreed(arguments[:1] + arguments[2:3])


def _second(zones: Zones, arguments: list[Any]) -> Zone | None:
    return _to(arguments[1]) if len(arguments) == 2 else None


def _now(zones: Zones, arguments: list[Any]) -> Zone | None:
    return SESSION


def _of_seconds(zones: Zones, arguments: list[Any]) -> Zone | None:
    if len(arguments) != 3:
        return SESSION if len(arguments) == 1 else _second(zones, arguments)
    hours, minutes = map(_whole, arguments[1:])
    return None if hours is None or minutes is None else _offset(hours * 60 + minutes)


def _whole(node: Any) -> int | None:
    sign = 1
    while isinstance(node, exp.Paren | exp.Neg):
        sign *= -1 if isinstance(node, exp.Neg) else 1
        node = node.this
    number = str(node.this) if isinstance(node, exp.Literal) and not node.is_string else ""
    return sign * int(number) if number.isdigit() and len(number) < 4 else None


def _iso(zones: Zones, arguments: list[Any]) -> Zone | None:
    text = _text(arguments, 0)
    if text is None:
        return None
    date, _, clock = text.partition("T")
    written = zone_at_end(clock, after=2) if date else None
    return SESSION if written is None else _named(written)


def _parsed(zones: Zones, arguments: list[Any]) -> Zone | None:
    format = _text(arguments, 1)
    if format is None:
        return None
    if not says_zone(format):
        return SESSION
    text = _text(arguments, 0)
    written = None if text is None or not format.rstrip().endswith("Z") else zone_at_end(text)
    return None if written is None else _named(written)


def _text(arguments: list[Any], at: int) -> str | None:
    node = arguments[at] if len(arguments) > at else None
    return str(node.this) if isinstance(node, exp.Literal) and node.is_string else None


def says_zone(format: str) -> bool:
    """Whether a format of Joda's letters has the zone in it."""
    return any(letter in outside for outside in format.split("'")[::2] for letter in "zZ")


_FUNCTIONS: dict[str, Callable[[Zones, list[Any]], Zone | None]] = {
    **dict.fromkeys(("now", "current_timestamp"), _now),
    **dict.fromkeys(("at_timezone", "with_timezone"), _second),
    **dict.fromkeys(("from_unixtime", "from_unixtime_nanos"), _of_seconds),
    **dict.fromkeys(("from_iso8601_timestamp", "from_iso8601_timestamp_nanos"), _iso),
    **dict.fromkeys(("date_trunc", "date_add"), _last),
    **dict.fromkeys(("coalesce", "greatest", "least"), _all),
    **dict.fromkeys(("lag", "lead"), _neighbour),
    **dict.fromkeys(
        (
            "max",
            "min",
            "max_by",
            "min_by",
            "any_value",
            "arbitrary",
            "first_value",
            "last_value",
            "nth_value",
            "nullif",
        ),
        _first,
    ),
    "parse_datetime": _parsed,
    "if": _branches,
    **dict.fromkeys(("nullif", "try"), _first),
}


def _call(zones: Zones, node: Any) -> Zone | None:
    rule = _FUNCTIONS.get(node.this)
    return None if rule is None else rule(zones, list(node.expressions))


_RULES: dict[type[exp.Expression], Callable[[Zones, Any], Zone | None]] = {
    exp.Paren: _same,
    exp.Window: _same,
    exp.AtTimeZone: _at,
    exp.Case: _case,
    exp.Add: _moved,
    exp.Sub: _moved,
    exp.Subquery: _query,
    Conversion: _conversion,
    Call: _call,
}
