"""Functions of dates and times whose unit or format decides what they become."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp

from sqe_core.sql.grammar.nodes import Call
from sqe_core.sql.spark.declared import declared_type
from sqe_core.sql.spark.text import quote_string
from sqe_core.sql.spark.write_calls import Calling, argument
from sqe_core.sql.spark.writer import Writer
from sqe_core.sql.text.context import Dialect

_UNITS = ("millisecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year", "microsecond")
_CLOCK = ("microsecond", "millisecond", "second", "minute", "hour")  # what a date does not have
_DIGITS = {"millisecond": 3, "microsecond": 6}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}

# The parts of a date, by all the names that functions and EXTRACT give them.
_PARTS = {
    **dict.fromkeys(("year", "years"), "_sqe_year({})"),
    **dict.fromkeys(("quarter",), "CAST(extract(QUARTER FROM {}) AS BIGINT)"),
    **dict.fromkeys(("month", "months"), "CAST(extract(MONTH FROM {}) AS BIGINT)"),
    **dict.fromkeys(("week", "week_of_year"), "CAST(extract(WEEK FROM {}) AS BIGINT)"),
    **dict.fromkeys(("day", "days", "day_of_month"), "_sqe_day({})"),
    **dict.fromkeys(("day_of_week", "dow", "isodow", "weekday"), "CAST(weekday({}) + 1 AS BIGINT)"),
    **dict.fromkeys(("day_of_year", "doy"), "CAST(extract(DOY FROM {}) AS BIGINT)"),
    **dict.fromkeys(("year_of_week", "yow", "isoyear"), "CAST(extract(YEAROFWEEK FROM {}) AS BIGINT)"),
    **dict.fromkeys(("hour", "hours"), "CAST(extract(HOUR FROM {}) AS BIGINT)"),
    **dict.fromkeys(("minute", "minutes"), "CAST(extract(MINUTE FROM {}) AS BIGINT)"),
    **dict.fromkeys(("second", "seconds"), "_sqe_second({})"),
    **dict.fromkeys(("millisecond", "milliseconds"), "_sqe_millisecond({})"),
    "epoch": "_sqe_to_unixtime({})",
}


def _part(calling: Calling) -> str:
    calling.count(1)
    return _PARTS[calling.name].format(local(calling.writer, calling.arguments[0]))


def _extract(calling: Calling) -> str:
    calling.count(2)
    part = (calling.literal(0) or "").lower()
    if part in ("timezone_hour", "timezone_minute"):
        calling.writer.refuse("Timestamps do not keep their time zone", calling.node)
    if part not in _PARTS:
        raise calling.error(f"Unknown part {part or '?'} of a date", hint="such as YEAR, MONTH, DAY, HOUR or DOW")
    return _PARTS[part].format(local(calling.writer, calling.arguments[1]))


def _date(calling: Calling) -> str:
    calling.count(1)
    return f"CAST({local(calling.writer, calling.arguments[0])} AS DATE)"


def _date_trunc(calling: Calling) -> str:
    calling.count(2)
    unit = _unit(calling, 0)
    template = _by_unit(unit, "_sqe_date_trunc", "_sqe_time_trunc")
    return f"{template}({quote_string(unit)}, {local(calling.writer, calling.arguments[1])})"


def _date_add(calling: Calling) -> str:
    calling.count(3)
    unit = _unit(calling, 0)
    template = _by_unit(unit, "_sqe_date_add", "_sqe_time_add")
    added = f"{template}({quote_string(unit)}, {calling.written(1)}, {calling.written(2)})"
    declared = declared_type(calling.arguments[2]) or ""
    digits = int(declared.partition("(")[2][:1] or 6) if declared.startswith("time") else 6
    if calling.writer.dialect is not Dialect.TRINO or digits >= _DIGITS.get(unit, 0):
        return added
    # The sum has the type of the time, which has fewer digits of a second than what is added.
    return f"{'_sqe_round_time' if declared.startswith('timestamp') else '_sqe_rounded_time'}({added}, {digits})"


def _date_diff(calling: Calling) -> str:
    calling.count(3)
    unit = _unit(calling, 0)
    first, second = calling.written(1), calling.written(2)
    months = _MONTHS.get(unit)
    if months is None:
        template = _by_unit(unit, "_sqe_date_diff", "_sqe_time_diff")
        return f"{template}({quote_string(unit)}, {first}, {second})"
    between = f"_sqe_months_between({first}, {second})"
    return between if months == 1 else f"({between} div {months})"


def _by_unit(unit: str, day: str, clock: str) -> str:
    """Choose between a template that takes dates and one that refuses them."""
    return clock if unit in _CLOCK else day


def _unit(calling: Calling, at: int) -> str:
    unit = (calling.literal(at) or "").lower()
    if unit.endswith("s") and unit[:-1] in _UNITS:
        unit = unit[:-1]
    if unit not in _UNITS:
        raise calling.error(
            f"{calling.name} needs a unit in single quotes",
            hint="'second', 'minute', 'hour', 'day', 'week', 'month' or 'year'",
        )
    return unit


def _formatted(template: str) -> Callable[[Calling], str]:
    def write(calling: Calling) -> str:
        calling.count(2)
        return f"{template}({local(calling.writer, calling.arguments[0])}, {calling.written(1)})"

    return write


def _at_timezone(calling: Calling) -> str:
    calling.count(2)
    return f"_sqe_at_zone({calling.written(0)}, {calling.written(1)})"


def local(writer: Writer, node: Any) -> str:
    """Write a time; one AT TIME ZONE becomes the clock of that zone, which is what its parts are asked of."""
    inner = node
    while isinstance(inner, exp.Paren):
        inner = inner.this
    if isinstance(inner, exp.AtTimeZone):
        return f"_sqe_local_time({argument(writer, inner.this)}, {argument(writer, inner.args['zone'])})"
    if isinstance(inner, Call) and inner.this == "at_timezone" and len(inner.expressions) == 2:
        time, zone = inner.expressions
        return f"_sqe_local_time({argument(writer, time)}, {argument(writer, zone)})"
    return argument(writer, node)


TIME_RULES: dict[str, Callable[[Calling], str]] = {
    "part": _part,
    "extract": _extract,
    "date": _date,
    "date_trunc": _date_trunc,
    "date_add": _date_add,
    "date_diff": _date_diff,
    "format_mysql": _formatted("_sqe_format_mysql"),
    "format_joda": _formatted("_sqe_format_joda"),
    "at_timezone": _at_timezone,
}
