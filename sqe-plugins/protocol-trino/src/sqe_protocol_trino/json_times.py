"""Times, timestamps and intervals as the texts that Trino's clients read."""

from __future__ import annotations

from datetime import date

import pyarrow as pa
import pyarrow.compute as pc

from sqe_core.spi import ColumnType
from sqe_protocol_trino.type_signature import precision

_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_LAST_OF_FOUR_DIGITS = date(9999, 12, 31)
_MILLISECONDS = 3
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def moment_texts(values: pa.Array, type: ColumnType, parametric: bool = True) -> pa.Array:
    """Return times and timestamps with the digits of their type, and the zone behind it where it has one."""
    zone = values.type.tz if pa.types.is_timestamp(values.type) else None
    unit = values.type.unit
    digits = _MILLISECONDS if not parametric else precision(type) if type.arguments else _DIGITS[unit]
    if zone is not None:
        values = pc.local_timestamp(values)
    if not parametric and digits < _DIGITS[unit]:
        values = _rounded(values, _DIGITS[unit] - digits)
    texts = _with_digits(values.cast(pa.string()), _DIGITS[unit], digits)
    return texts if zone is None else pc.binary_join_element_wise(texts, zone, " ")


def _rounded(values: pa.Array, by: int) -> pa.Array:
    """Return moments rounded half up to fewer digits, in the unit that they have."""
    whole = pa.int32() if values.type.bit_width == 32 else pa.int64()
    step = 10**by
    counted = pc.add(values.cast(whole), pa.scalar(step // 2, whole))
    return pc.multiply(_floored(counted, step), pa.scalar(step, whole)).cast(values.type)


def _floored(counted: pa.Array, step: int) -> pa.Array:
    """Divide and round down; the kernel rounds to zero."""
    scale = pa.scalar(step, counted.type)
    quotient = pc.divide(counted, scale)
    below = pc.less(pc.subtract(counted, pc.multiply(quotient, scale)), 0)
    return pc.subtract(quotient, below.cast(counted.type))


def _with_digits(texts: pa.Array, have: int, want: int) -> pa.Array:
    if want < have:
        # The point goes with the last digit.
        return pc.utf8_slice_codeunits(texts, 0, -(have - want + (want == 0)))
    if want > have:
        return pc.binary_join_element_wise(texts, ("" if have else ".") + "0" * (want - have), "")
    return texts


def date_texts(values: pa.Array) -> pa.Array:
    """Return dates, those behind the year 9999 with the sign that Java gives them."""
    texts = values.cast(pa.string())
    far = pc.greater(values, pa.scalar(_LAST_OF_FOUR_DIGITS, values.type))
    return pc.if_else(far, pc.binary_join_element_wise("+", texts, ""), texts) if pc.any(far).as_py() else texts


def duration_texts(values: pa.Array) -> pa.Array:
    """Return intervals of days and seconds as `-1 02:03:04.567`."""
    per_second = _PER_SECOND[values.type.unit]
    counted = values.cast(pa.int64())
    sign = pc.if_else(pc.less(counted, 0), "-", "")
    left = pc.abs(counted)
    millis = pc.divide(left, per_second // 1000) if per_second >= 1000 else pc.multiply(left, 1000 // per_second)
    parts = []
    for size, width in ((1000, 3), (60, 2), (60, 2), (24, 2)):
        rest = pc.subtract(millis, pc.multiply(pc.divide(millis, size), size))
        parts.append(pc.utf8_lpad(rest.cast(pa.string()), width, "0"))
        millis = pc.divide(millis, size)
    fraction, seconds, minutes, hours = parts
    clock = pc.binary_join_element_wise(hours, minutes, seconds, ":")
    return pc.binary_join_element_wise(
        sign, millis.cast(pa.string()), pa.scalar(" "), clock, pa.scalar("."), fraction, ""
    )


def interval_texts(values: pa.Array) -> pa.Array:
    """Return intervals of months as `-1-2`, which are rare: one by one."""
    return pa.array([None if value is None else month_text(value.months) for value in values.to_pylist()], pa.string())


def month_text(months: int) -> str:
    """Return a number of months as `years-months`."""
    years, rest = divmod(abs(months), 12)
    return f"{'-' if months < 0 else ''}{years}-{rest}"
