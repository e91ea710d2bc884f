"""Functions of dates and times whose unit or format decides what they become."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqe_core.sql.spark.clocks import STORED_ZONE, has_no_zone, in_zone, local, zone_name_of, zone_of
from sqe_core.sql.spark.declared import declared_digits, declared_type
from sqe_core.sql.spark.text import quote_string
from sqe_core.sql.spark.write_calls import Calling, argument
from sqe_core.sql.spark.zones import says_zone
from sqe_core.sql.statement import session_marker
from sqe_core.sql.text.context import Dialect

_UNITS = ("millisecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year", "microsecond")
_CLOCK = ("microsecond", "millisecond", "second", "minute", "hour")  # what a date does not have
_DIGITS = {"millisecond": 3, "microsecond": 6}
_MICROS = 6
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
_ZONE_PARTS = {
    "timezone_hour": "CAST({0} div 60 AS BIGINT)",
    "timezone_minute": "CAST({0} % 60 AS BIGINT)",
}


def _part(calling: Calling) -> str:
    calling.count(1)
    return _PARTS[calling.name].format(local(calling.writer, calling.arguments[0]))


def _extract(calling: Calling) -> str:
    calling.count(2)
    part = (calling.literal(0) or "").lower()
    time = calling.arguments[1]
    if part in _ZONE_PARTS:
        return _zone_part(calling, part, time)
    if part not in _PARTS:
        raise calling.error(f"Unknown part {part or '?'} of a date", hint="such as YEAR, MONTH, DAY, HOUR or DOW")
    return _PARTS[part].format(local(calling.writer, time))


def _timezone(calling: Calling) -> str:
    calling.count(1)
    time = calling.arguments[0]
    return f"_sqe_zone_of({argument(calling.writer, time)}, {_known_zones(calling, time)})"


def _timezone_part(calling: Calling) -> str:
    calling.count(1)
    return _zone_part(calling, calling.name, calling.arguments[0])


def _zone_part(calling: Calling, part: str, time: Any) -> str:
    if calling.writer.dialect is not Dialect.TRINO:
        calling.writer.refuse("Timestamps do not keep their time zone", calling.node)
    minutes = f"_sqe_zone_minutes({argument(calling.writer, time)}, {_known_zones(calling, time)})"
    return _ZONE_PARTS[part].format(minutes)


def _known_zones(calling: Calling, time: Any) -> str:
    """Write the zone of a time, and that of it if its type has none."""
    writer = calling.writer
    if writer.dialect is not Dialect.TRINO:
        writer.refuse("Timestamps do not keep their time zone", calling.node)
    if writer.zones.of(time) is None and not has_no_zone(time):
        writer.refuse(
            "The time zone of this value is not known",
            calling.node,
            hint="it is known of columns of tables and of expressions that name it, as in x AT TIME ZONE 'UTC'",
        )
    return f"{zone_name_of(writer, time)}, :{session_marker('current_timezone')}"


def _date(calling: Calling) -> str:
    calling.count(1)
    return f"CAST({local(calling.writer, calling.arguments[0])} AS DATE)"


def _date_trunc(calling: Calling) -> str:
    calling.count(2)
    unit = _unit(calling, 0)
    template = _by_unit(unit, "_sqe_date_trunc", "_sqe_time_trunc")
    time = calling.arguments[1]
    keeps = calling.writer.dialect is Dialect.TRINO
    written = in_zone(calling.writer, time) if keeps else local(calling.writer, time)
    return f"{template}({quote_string(unit)}, {written})"


def _date_add(calling: Calling) -> str:
    calling.count(3)
    unit = _unit(calling, 0)
    template = _by_unit(unit, "_sqe_date_add", "_sqe_time_add")
    time = calling.arguments[2]
    added = f"{template}({quote_string(unit)}, {calling.written(1)}, {in_zone(calling.writer, time)})"
    declared = declared_type(time) or ""
    digits = int(declared.partition("(")[2][:1] or 6) if declared.startswith("time") else 6
    if calling.writer.dialect is not Dialect.TRINO or digits >= _DIGITS.get(unit, 0):
        return added
    # The sum has the type of the time, which has fewer digits of a second than what is added.
    return f"{'_sqe_round_time' if declared.startswith('timestamp') else '_sqe_rounded_time'}({added}, {digits})"


def _date_diff(calling: Calling) -> str:
    """Days are counted on the clock of the first time's zone, hours are not counted on clocks."""
    calling.count(3)
    unit = _unit(calling, 0)
    first, second = calling.written(1), calling.written(2)
    zone = zone_of(calling.writer, calling.arguments[1])
    if unit in _CLOCK and calling.writer.dialect is Dialect.TRINO:
        zone = None if calling.writer.of_policy else STORED_ZONE
    if zone is not None:
        first, second = f"_sqe_clock({first}, {zone})", f"_sqe_clock({second}, {zone})"
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


def _format_joda(calling: Calling) -> str:
    format = calling.literal(1) if len(calling.arguments) == 2 else None
    if calling.writer.dialect is not Dialect.TRINO or (format is not None and not says_zone(format)):
        return _formatted("_sqe_format_joda")(calling)
    calling.count(2)
    time = calling.arguments[0]
    zone = zone_name_of(calling.writer, time)
    return f"_sqe_format_joda({argument(calling.writer, time)}, {calling.written(1)}, {zone})"


def _to_iso8601(calling: Calling) -> str:
    calling.count(1)
    writer, time = calling.writer, calling.arguments[0]
    if writer.dialect is not Dialect.TRINO:
        return f"_sqe_to_iso8601({argument(writer, time)})"
    digits = declared_digits(time)
    said = f"{zone_name_of(writer, time)}, {_MICROS if digits is None else digits}"
    return f"_sqe_to_iso8601({argument(writer, time)}, {said})"


def _last_day(calling: Calling) -> str:
    calling.count(1)
    return f"last_day({local(calling.writer, calling.arguments[0])})"


def _at_timezone(calling: Calling) -> str:
    calling.count(2)
    return f"_sqe_at_zone({calling.written(0)}, {calling.written(1)})"


TIME_RULES: dict[str, Callable[[Calling], str]] = {
    "part": _part,
    "extract": _extract,
    "date": _date,
    "date_trunc": _date_trunc,
    "date_add": _date_add,
    "date_diff": _date_diff,
    "format_mysql": _formatted("_sqe_format_mysql"),
    "format_joda": _format_joda,
    "format_teradata": _formatted("_sqe_format_teradata"),
    "to_iso8601": _to_iso8601,
    "last_day": _last_day,
    "timezone": _timezone,
    "timezone_part": _timezone_part,
    "at_timezone": _at_timezone,
}
