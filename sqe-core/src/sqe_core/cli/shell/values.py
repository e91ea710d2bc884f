"""Arrow values as text, the way SQL writes them, and as JSON.

Whole columns are turned at once, children of nested values included: one pass per column, not one call per value.
Temporal values are made from their integers, because Python's own types end at year 9999 and at microseconds.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from enum import Enum

import pyarrow as pa
import pyarrow.compute as pc

Texts = list[str | None]

_NANOSECONDS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
_DAY_NANOSECONDS = 86_400_000_000_000


class Notation(Enum):
    """How a value is written: on its own, inside a nested value, or as JSON."""

    PLAIN = "plain"
    SQL = "sql"
    JSON = "json"


def write_values(array: pa.Array, notation: Notation) -> Texts:
    """Write every value of an array; None stays None."""
    if isinstance(array, pa.ChunkedArray):
        return [text for chunk in array.chunks for text in write_values(chunk, notation)]
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return write_values(array.storage, notation)
    if pa.types.is_dictionary(kind):
        return write_values(array.dictionary_decode(), notation)
    if pa.types.is_run_end_encoded(kind):
        return write_values(pc.run_end_decode(array), notation)
    nested = _write_nested(array, notation)
    if nested is not None:
        return nested
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return _quoted(_strings(array), notation)
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        return _numbers(array)
    if pa.types.is_floating(kind):
        return _floats(array, notation)
    texts = _write_temporal_or_binary(array)
    return [None if text is None else f'"{text}"' for text in texts] if notation is Notation.JSON else texts


def json_object_members(names: Sequence[str]) -> list[str]:
    """Write the names of columns as JSON members, each followed by a colon; equal ones get a number."""
    members: list[str] = []
    used: set[str] = set()
    for name in names:
        unique, count = name, 1
        while unique in used:
            count += 1
            unique = f"{name}_{count}"
        used.add(unique)
        members.append(json.dumps(unique, ensure_ascii=False) + ": ")
    return members


def _strings(array: pa.Array) -> Texts:
    try:
        values: Texts = array.to_pylist()
    except UnicodeDecodeError:
        # The engine's strings are bytes to it, and need not be UTF-8.
        raw = [value.as_buffer() if value.is_valid else None for value in array]
        values = [None if value is None else value.to_pybytes().decode("utf-8", "replace") for value in raw]
    return values


def _quoted(texts: Texts, notation: Notation) -> Texts:
    if notation is Notation.PLAIN:
        return texts
    if notation is Notation.JSON:
        return [None if text is None else json.dumps(text, ensure_ascii=False) for text in texts]
    return [None if text is None else "'" + text.replace("'", "''") + "'" for text in texts]


def _numbers(array: pa.Array) -> Texts:
    if pa.types.is_decimal(array.type):
        # str() of a small Decimal has an exponent.
        decimals: list[Decimal | None] = array.to_pylist()
        return [None if value is None else format(value, "f") for value in decimals]
    texts: Texts = pc.cast(array, pa.string()).to_pylist()
    return texts


def _floats(array: pa.Array, notation: Notation) -> Texts:
    if pa.types.is_float64(array.type):
        texts: Texts = [None if value is None else repr(value) for value in array.to_pylist()]
    else:
        # Arrow writes the shortest text that gives the same 32 bits; Python would show them as 64.
        single: Texts = pc.cast(pc.cast(array, pa.float32()), pa.string()).to_pylist()
        texts = [text if text is None or not text.lstrip("-").isdigit() else text + ".0" for text in single]
    special = {"nan": "NaN", "-nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
    if notation is Notation.JSON:
        special = {key: f'"{value}"' for key, value in special.items()}
    return [special.get(text, text) if text is not None else None for text in texts]


def _write_temporal_or_binary(array: pa.Array) -> Texts:
    kind = array.type
    if pa.types.is_null(kind):
        return [None] * len(array)
    if pa.types.is_date32(kind):
        return [None if days is None else _date(days) for days in array.cast(pa.int32()).to_pylist()]
    if pa.types.is_date64(kind):
        return [None if value is None else _date(value // 86_400_000) for value in array.cast(pa.int64()).to_pylist()]
    if pa.types.is_timestamp(kind):
        unit = _NANOSECONDS[kind.unit]
        zone = "" if kind.tz is None else "+00:00"
        return [None if value is None else _timestamp(value * unit) + zone for value in _integers(array)]
    if pa.types.is_time(kind):
        unit = _NANOSECONDS[kind.unit]
        return [None if value is None else _time(value * unit) for value in _integers(array)]
    if pa.types.is_duration(kind):
        unit = _NANOSECONDS[kind.unit]
        return [None if value is None else _day_time_interval(value * unit) for value in _integers(array)]
    if pa.types.is_interval(kind):
        return [None if value is None else _interval(*value) for value in array.to_pylist()]
    binary = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary, pa.types.is_binary_view)
    if any(check(kind) for check in binary):
        return [None if value is None else value.hex() for value in array.to_pylist()]
    return [None if value is None else str(value) for value in array.to_pylist()]


def _integers(array: pa.Array) -> list[int | None]:
    values: list[int | None] = array.cast(pa.int32() if array.type.bit_width == 32 else pa.int64()).to_pylist()
    return values


def _date(days: int) -> str:
    """Write a day since 1970-01-01 in the Gregorian calendar, whatever the year.

    The algorithm is `civil_from_days` of https://howardhinnant.github.io/date_algorithms.html
    """
    shifted = days + 719_468
    era, day_of_era = divmod(shifted, 146_097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month_from_march = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month_from_march + 2) // 5 + 1
    month = month_from_march + 3 if month_from_march < 10 else month_from_march - 9
    year = year_of_era + era * 400 + (month <= 2)
    return f"{year:04d}-{month:02d}-{day:02d}" if year >= 0 else f"-{-year:04d}-{month:02d}-{day:02d}"


def _time(nanoseconds: int) -> str:
    seconds, fraction = divmod(nanoseconds, 1_000_000_000)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{text}.{fraction:09d}".rstrip("0") if fraction else text


def _timestamp(nanoseconds: int) -> str:
    days, rest = divmod(nanoseconds, _DAY_NANOSECONDS)
    return f"{_date(days)} {_time(rest)}"


def _day_time_interval(nanoseconds: int) -> str:
    days, rest = divmod(abs(nanoseconds), _DAY_NANOSECONDS)
    return f"{'-' if nanoseconds < 0 else ''}{days} {_time(rest)}"


def _interval(months: int, days: int, nanoseconds: int) -> str:
    years = f"{'-' if months < 0 else ''}{abs(months) // 12}-{abs(months) % 12}"
    if not days and not nanoseconds:
        return years
    day_time = _day_time_interval(days * _DAY_NANOSECONDS + nanoseconds)
    return f"{years} {day_time}" if months else day_time


def _write_nested(array: pa.Array, notation: Notation) -> Texts | None:
    kind = array.type
    inner = Notation.JSON if notation is Notation.JSON else Notation.SQL
    if pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind):
        return _write_nested(array.cast(pa.list_(kind.value_type)), notation)
    if pa.types.is_fixed_size_list(kind):
        return _write_nested(array.cast(pa.list_(kind.value_type)), notation)
    if pa.types.is_map(kind):
        return _maps(array, inner)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _lists(array, inner)
    if pa.types.is_struct(kind):
        return _structs(array, inner)
    return None


def _null(notation: Notation) -> str:
    return "null" if notation is Notation.JSON else "NULL"


def _lists(array: pa.Array, notation: Notation) -> Texts:
    offsets = array.offsets.to_pylist()
    first = offsets[0]
    null = _null(notation)
    children = write_values(array.values.slice(first, offsets[-1] - first), notation)
    values = [null if child is None else child for child in children]
    valid = array.is_valid().to_pylist()
    return [
        "[" + ", ".join(values[offsets[row] - first : offsets[row + 1] - first]) + "]" if valid[row] else None
        for row in range(len(array))
    ]


def _maps(array: pa.Array, notation: Notation) -> Texts:
    offsets = array.offsets.to_pylist()
    first, length = offsets[0], offsets[-1] - offsets[0]
    null = _null(notation)
    if notation is Notation.JSON:
        # The names of JSON members are strings whatever the type of the key.
        plain = write_values(array.keys.slice(first, length), Notation.PLAIN)
        keys: Texts = [json.dumps(key, ensure_ascii=False) for key in plain]
    else:
        keys = write_values(array.keys.slice(first, length), notation)
    values = write_values(array.items.slice(first, length), notation)
    entries = [f"{key}: {null if value is None else value}" for key, value in zip(keys, values, strict=True)]
    valid = array.is_valid().to_pylist()
    return [
        "{" + ", ".join(entries[offsets[row] - first : offsets[row + 1] - first]) + "}" if valid[row] else None
        for row in range(len(array))
    ]


def _structs(array: pa.Array, notation: Notation) -> Texts:
    names = [field.name for field in array.type]
    null = _null(notation)
    members = json_object_members(names) if notation is Notation.JSON else [f"{name}: " for name in names]
    columns = [write_values(array.field(index), notation) for index in range(len(names))]
    valid = array.is_valid().to_pylist()
    return [
        "{"
        + ", ".join(
            member + (null if (value := column[row]) is None else value)
            for member, column in zip(members, columns, strict=True)
        )
        + "}"
        if valid[row]
        else None
        for row in range(len(array))
    ]
