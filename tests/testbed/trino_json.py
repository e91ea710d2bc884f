"""Values of results as Trino's JSON writes them, for answers that come without its protocol."""

from __future__ import annotations

import base64
import datetime
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa


def json_value(value: Any, type: Any) -> Any:
    """Return a value of Arrow as Trino's JSON."""
    if value is None:
        return None
    if pa.types.is_list(type) or pa.types.is_large_list(type):
        return [json_value(each, type.value_type) for each in value]
    if pa.types.is_map(type):
        return {str(json_value(key, type.key_type)): json_value(each, type.item_type) for key, each in value}
    if pa.types.is_struct(type):
        return [json_value(value[field.name], field.type) for field in type]
    if isinstance(value, float):
        if pa.types.is_float32(type) and math.isfinite(value):
            return float(str(pa.scalar(value, pa.float32()).cast(pa.string())))
        return value if math.isfinite(value) else str(value).replace("nan", "NaN").replace("inf", "Infinity")
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime.datetime):
        zone = " UTC" if value.tzinfo is not None else ""
        return value.replace(tzinfo=None).isoformat(" ", "microseconds") + zone
    if isinstance(value, datetime.time):
        return value.isoformat("microseconds")
    if isinstance(value, datetime.timedelta):
        return _duration(value)
    if isinstance(value, pa.MonthDayNano):
        sign, months = ("-" if value.months < 0 else ""), abs(value.months)
        return f"{sign}{months // 12}-{months % 12}"
    return str(value) if isinstance(value, Decimal | datetime.date) else value


def _duration(value: datetime.timedelta) -> str:
    millis = round(value / datetime.timedelta(milliseconds=1))
    sign, rest = ("-" if millis < 0 else ""), abs(millis)
    days, rest = divmod(rest, 86_400_000)
    hours, rest = divmod(rest, 3_600_000)
    minutes, rest = divmod(rest, 60_000)
    return f"{sign}{days} {hours:02}:{minutes:02}:{rest // 1000:02}.{rest % 1000:03}"
