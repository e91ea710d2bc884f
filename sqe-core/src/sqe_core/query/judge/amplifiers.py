"""Bounds on literal arguments that make a few bytes of SQL into much memory (LIM-6)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from sqe_core.engine.port import FunctionCall
from sqe_core.spi.errors import NotSupportedError, Position, ResourcesError

_OWN_PREFIX = "_sqe_"
_OWN_NAMES = {"series": "sequence", "to_char_n": "char"}  # what users call these templates
_BIG_FACTOR = 1_000
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+?)s?\b", re.IGNORECASE)
_MOST_DURATION_CHARACTERS = 200  # a longer one would be searched from each of its places
_SECONDS = {
    "microsecond": 1e-6,
    "millisecond": 1e-3,
    "second": 1.0,
    "minute": 60.0,
    "hour": 3600.0,
    "day": 86_400.0,
    "week": 604_800.0,
}
_MOMENT = re.compile(r"(\d{1,6})-(\d\d)-(\d\d)(?: (\d\d):(\d\d):(\d\d))?")
_INTERVAL = re.compile(r"INTERVAL '-?(\d{1,12}(?:[ :]\d{1,2})*(?:\.\d{1,9})?)' (\w+)")
_FORMAT_DIRECTIVE = re.compile(r"%([^%a-zA-Z]*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class AmplifierLimits:
    """What literal arguments may ask for."""

    max_text: int = 1_000_000
    max_elements: int = 1_000_000
    max_rows: int = 10_000_000_000
    max_partitions: int = 10_000
    max_digits: int = 1_000
    max_product: int = 100_000_000
    """Nested calls multiply: repeat(repeat('x', 1000000), 1000000)."""


# function: (position of the argument, which limit, what the number counts)
_COUNTS: dict[str, tuple[int, str, str]] = {
    "repeat": (1, "max_text", "repetitions"),
    "space": (0, "max_text", "characters"),
    "lpad": (1, "max_text", "characters"),
    "rpad": (1, "max_text", "characters"),
    "randstr": (0, "max_text", "characters"),
    "array_repeat": (1, "max_elements", "elements"),
    "array_insert": (1, "max_elements", "elements"),
    "stack": (0, "max_elements", "rows"),
    "format_number": (1, "max_digits", "digits"),
    "histogram_numeric": (1, "max_elements", "bins"),
    "char": (1, "max_text", "characters"),
    "approx_percentile": (2, "max_elements", "steps of accuracy"),
    "percentile_approx": (2, "max_elements", "steps of accuracy"),
}
# function: (position, least value): the smaller, the more memory
_FINENESS: dict[str, tuple[int, float]] = {
    "approx_count_distinct": (1, 0.004),
    "count_min_sketch": (1, 0.00001),
}
_MULTIPLY = frozenset({"repeat", "space", "lpad", "rpad", "randstr", "array_repeat"})


def check_amplifiers(
    calls: Sequence[FunctionCall],
    limits: AmplifierLimits,
    *,
    position_of: Callable[[FunctionCall], Position | None],
) -> None:
    """Refuse calls whose literal arguments ask for too much, and nests of them that do together."""
    product = 1.0
    nested, inside = 1.0, ""  # what the calls around it come to, when the next one is this one
    for call in calls:
        name = _name(call.parts[-1])
        position = position_of(call)
        around = nested if name == inside else 1.0
        nested, inside = 1.0, ""
        if name in _COUNTS:
            place, limit, what = _COUNTS[name]
            count = abs(_number(call.literals, place) or 0)
            _check(name, count, getattr(limits, limit), what, position)
            if name in _MULTIPLY:
                product *= count if count > _BIG_FACTOR else 1
                # The element comes first: calls are told before those inside of them.
                nested, inside = around * max(count, 1), _name(call.calls.get(0, ""))
                _check_product(nested, limits)
        elif name in _FINENESS:
            place, least = _FINENESS[name]
            number = _number(call.literals, place)
            if number is not None and number < least:
                raise ResourcesError(f"{name} cannot be more exact than {least:g}", position=position)
        else:
            for count, limit, what in _special(name, call):
                _check(name, count, getattr(limits, limit), what, position)
    _check_product(product, limits)


def _name(name: str) -> str:
    name = name.lower()
    own = name.removeprefix(_OWN_PREFIX)
    return own if own == name else _OWN_NAMES.get(own, own)


def _check_product(product: float, limits: AmplifierLimits) -> None:
    if product > limits.max_product:
        raise ResourcesError("The texts and arrays that this statement builds from literals are too big")


def _check(name: str, count: float, most: int, what: str, position: Position | None) -> None:
    if count > most:
        raise ResourcesError(
            f"{name} asks for {count:,.0f} {what}; {most:,} are allowed",
            position=position,
            hint="range(n) in FROM makes rows without holding them in memory" if name == "sequence" else None,
        )


def _special(name: str, call: FunctionCall) -> Iterator[tuple[float, str, str]]:
    match name:
        case "sequence" | "generate_series":
            yield _length(call.literals), "max_elements", "elements"
        case "range":
            bounds = call.literals if len(call.literals) > 1 else (0, *call.literals)
            yield _length(bounds) - 1, "max_rows", "rows"  # the end is none of them
            yield _number(call.literals, 3) or 0, "max_partitions", "partitions"
        case "format_string" | "printf":
            text = call.literals[0] if call.literals else None
            if isinstance(text, str):
                directives = " ".join(_FORMAT_DIRECTIVE.findall(text.replace("%%", "")))
                yield (
                    max(map(float, re.findall(r"\d+", directives)), default=0),
                    "max_digits",
                    "characters in one place",
                )
        case "window" if len(call.literals) > 2 and not call.table_valued:
            length, slide = _seconds(call.literals[1]), _seconds(call.literals[2])
            if length is None or not slide:
                raise NotSupportedError("window takes literal durations such as '1 hour'")
            yield length / slide, "max_digits", "overlapping windows"


def _length(bounds: Sequence[Any]) -> float:
    """Return how many elements a sequence of literal bounds has; 0 when they are no literals."""
    if len(bounds) < 2:
        return 0
    start, stop, *rest = bounds
    first, last = _number((start,), 0), _number((stop,), 0)
    if first is not None and last is not None:
        step = _number(rest, 0) if rest else 1.0
        return abs(last - first) / abs(step) + 1 if step is not None and step != 0 else 0
    earliest, latest = _moment(start), _moment(stop)
    each = _step(rest[0]) if rest else _SECONDS["day"]
    return abs(latest - earliest) / each + 1 if earliest is not None and latest is not None and each else 0


def _moment(value: object) -> float | None:
    """Return about the second of a date or a time, as the engine writes them."""
    found = _MOMENT.match(value) if isinstance(value, str) else None
    if found is None:
        return None
    year, month, day, hour, minute, second = (int(part or 0) for part in found.groups())
    return (year * 365.2425 + month * 30.436875 + day) * 86_400 + hour * 3600 + minute * 60 + second


def _step(value: object) -> float | None:
    """Return the seconds of an interval, as the engine writes them; months are long enough for any sequence."""
    found = _INTERVAL.match(value) if isinstance(value, str) else None
    if found is None:
        return None
    units = ("day", "hour", "minute", "second")
    first = found[2].lower()
    if first not in units:
        return 30 * _SECONDS["day"]
    parts = zip(re.split("[ :]", found[1]), units[units.index(first) :], strict=False)
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


def _number(literals: Sequence[Any], place: int) -> float | None:
    """Return a literal as a number; texts count, since the engine casts them."""
    value = literals[place] if place < len(literals) else None
    if isinstance(value, str):
        try:
            value = Decimal(value.strip())
        except InvalidOperation:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    number = float(value)
    return math.inf if math.isnan(number) else number


def _seconds(value: object) -> float | None:
    """Return the length of a duration such as '1 hour 30 minutes'."""
    if not isinstance(value, str):
        return None
    text = value.strip().lower().removeprefix("interval ").strip()
    if len(text) > _MOST_DURATION_CHARACTERS:
        return None
    total, end = 0.0, 0
    for part in _DURATION.finditer(text):
        if part.start() != end or part.group(2).lower() not in _SECONDS:
            return None
        total += float(part.group(1)) * _SECONDS[part.group(2).lower()]
        end = part.end()
    return total if total and not text[end:].strip() else None
