"""Write Python and Arrow values as typed literals for the bridge, and rows of ours as Arrow that Spark can read."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa
import pyarrow.types as kinds

from sqe_core.engine.port import ParameterMarker
from sqe_core.engine.unwrapping import unwrapped, unwrapped_type
from sqe_core.spi.errors import ErrorCode, UserError

_INT32 = range(-(1 << 31), 1 << 31)
_INT64 = range(-(1 << 63), 1 << 63)
_POSITIONAL = re.compile(r"sqe_p(\d+)")  # what the translator writes for a `?`
_NANOSECONDS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1000, "ns": 1}
_DAY_NANOSECONDS = 86_400 * _NANOSECONDS["s"]
_MOST_DIGITS = 38
_MOST_CHARACTERS = 20_000_000  # Jackson reads no longer text
_MOST_ELEMENTS = 1_000_000  # of all parameters: each becomes a Python object, however few bytes it comes in
_SEND_A_NUMBER = "send microseconds; a column timestamp(9) takes a bigint, the nanoseconds since 1970"
_SIMPLE = {
    pa.null(): "void",
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.uint8(): "smallint",
    pa.uint16(): "int",
    pa.uint32(): "bigint",
    pa.uint64(): "decimal(20,0)",
    pa.float16(): "float",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.date32(): "date",
    pa.date64(): "date",
}


class _UnfitError(Exception):
    """What is wrong with a value; who calls knows which parameter it is."""

    def __init__(self, fault: str, hint: str, code: ErrorCode = ErrorCode.INVALID_ARGUMENTS) -> None:
        super().__init__(fault)
        self.hint = hint
        self.code = code


class _Elements:
    """Counts the elements of lists, maps and rows before they are looked at."""

    def __init__(self) -> None:
        self._left = _MOST_ELEMENTS

    def take(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise _UnfitError(
                f"has more than {_MOST_ELEMENTS} elements, with the parameters before it", "load them with bulk ingest"
            )


def encode_parameters(parameters: Mapping[str, Any]) -> str:
    """Return the JSON that the bridge reads: a typed literal for each name."""
    elements = _Elements()
    return json.dumps({name: _encode_called(value, _called(name), elements) for name, value in parameters.items()})


def _called(name: str) -> str:
    positional = _POSITIONAL.fullmatch(name)
    if positional is not None:
        return f"Parameter {positional[1]}"
    return "A parameter" if name.startswith("_") else f"Parameter :{name}"


def encode(value: Any, called: str = "A parameter") -> dict[str, Any]:
    """Return the typed literal of a Python value or a pyarrow scalar, or what marks the place of one.

    A value arrives as it is, or is refused: no digit of it is cut.

    Args:
        value: the value.
        called: what a refusal says about whose value it is.
    """
    return _encode_called(value, called, _Elements())


def _encode_called(value: Any, called: str, elements: _Elements) -> dict[str, Any]:
    try:
        return _encode(value, elements)
    except _UnfitError as error:
        raise UserError(f"{called} {error}", code=error.code, hint=error.hint) from error
    except UnicodeDecodeError as error:
        # Arrow takes any bytes for the name of a field and for a time zone.
        raise UserError(
            f"{called} has a name or a time zone that is no UTF-8",
            code=ErrorCode.INVALID_ARGUMENTS,
            hint="send Unicode",
        ) from error


def _encode(value: Any, elements: _Elements) -> dict[str, Any]:
    if isinstance(value, ParameterMarker):
        return {"marker": value.number}
    if isinstance(value, int) and not isinstance(value, bool):
        return _encode_int(value)
    if isinstance(value, Decimal):
        return _encode_decimal(value)
    scalar = unwrapped(value if isinstance(value, pa.Scalar) else _infer(value))
    if kinds.is_interval(scalar.type):
        return _encode_interval(scalar)
    return {"type": spark_type(scalar.type), "value": _encode_value(scalar, elements)}


def _infer(value: Any) -> pa.Scalar[Any]:
    if getattr(value, "nanosecond", 0) > 0 or getattr(value, "nanoseconds", 0) > 0:  # those of NaT are no number
        raise _nanoseconds("send microseconds")  # pyarrow cuts them from what pandas calls a datetime
    try:
        return pa.scalar(value)
    except UnicodeEncodeError as error:
        raise _UnfitError("holds a lone surrogate, which is not text", "send Unicode text, or bytes") from error
    except (pa.ArrowException, OverflowError, ValueError) as error:
        raise _UnfitError(f"cannot be a {type(value).__name__}", "send a pyarrow scalar of the type") from error


def _encode_int(value: int) -> dict[str, Any]:
    if value in _INT32:
        return {"type": "int", "value": value}
    if value in _INT64:
        return {"type": "bigint", "value": value}
    return _encode_decimal(Decimal(value))


def _encode_decimal(value: Decimal) -> dict[str, Any]:
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise _UnfitError("is a decimal that is no number", "send NaN and infinity as a double")
    scale = max(0, -exponent)
    precision = max(len(digits) + max(0, exponent), scale, 1)
    if precision > _MOST_DIGITS:
        raise _too_many_digits()
    return {"type": f"decimal({precision},{scale})", "value": format(value, "f")}


def _encode_interval(scalar: pa.Scalar[Any]) -> dict[str, Any]:
    value = scalar.as_py()
    if value is None:
        return {"type": "interval year to month", "value": None}
    if not value.months:
        nanoseconds = value.days * _DAY_NANOSECONDS + value.nanoseconds
        return {"type": "interval day to second", "value": _micros(nanoseconds)}
    if value.days or value.nanoseconds:
        raise _UnfitError(
            "is an interval of months and of days or seconds", "an interval has one or the other: send two"
        )
    return {"type": "interval year to month", "value": value.months}


def spark_type(type: pa.DataType) -> str:
    """Return the Spark type of an Arrow type, with timestamps spelt so that no setting changes their meaning."""
    type = unwrapped_type(type)
    simple = _SIMPLE.get(type)
    if simple is not None:
        return simple
    if kinds.is_decimal(type):
        return _decimal_type(type)
    if kinds.is_string(type) or kinds.is_large_string(type):
        return "string"
    if kinds.is_binary(type) or kinds.is_large_binary(type) or kinds.is_fixed_size_binary(type):
        return "binary"
    if kinds.is_timestamp(type):
        return "timestamp_ntz" if type.tz is None else "timestamp_ltz"
    if kinds.is_time(type):
        return "time(6)"
    if kinds.is_duration(type):
        return "interval day to second"
    if kinds.is_list(type) or kinds.is_large_list(type) or kinds.is_fixed_size_list(type):
        return f"array<{spark_type(type.value_type)}>"
    if kinds.is_map(type):
        return f"map<{spark_type(type.key_type)},{spark_type(type.item_type)}>"
    if kinds.is_struct(type):
        return _struct_type(type)
    raise _UnfitError(
        f"has the Arrow type {str(type)[:100]}, which parameters cannot have",
        "convert it before sending",
        ErrorCode.NOT_SUPPORTED,
    )


def _decimal_type(type: pa.DataType) -> str:
    """Return a type that holds the values which SQL can hold; SQL has neither negative scales nor more digits."""
    scale = max(type.scale, 0)
    if scale > _MOST_DIGITS:
        raise _too_many_digits()
    precision = max(type.precision + max(-type.scale, 0), scale)
    return f"decimal({min(precision, _MOST_DIGITS)},{scale})"


def _struct_type(type: pa.DataType) -> str:
    names = {field.name.lower() for field in type}
    if len(names) != type.num_fields or "" in names:
        raise _UnfitError("is a row with fields of no name, or of the same one", "give each field a name of its own")
    fields = ",".join(f"`{field.name.replace('`', '``')}`:{spark_type(field.type)}" for field in type)
    return f"struct<{fields}>"


def _encode_value(scalar: pa.Scalar[Any], elements: _Elements) -> Any:
    scalar = unwrapped(scalar)
    if not scalar.is_valid:
        return None
    type = scalar.type
    if kinds.is_struct(type):
        elements.take(type.num_fields)
        return [_encode_value(scalar[index], elements) for index in range(type.num_fields)]
    if kinds.is_nested(type):
        elements.take(len(scalar.values))
        if kinds.is_map(type):
            return _encode_entries(scalar, elements)
        return [_encode_value(element, elements) for element in scalar.values]
    if kinds.is_timestamp(type):
        return _micros(scalar.value * _NANOSECONDS[type.unit], _SEND_A_NUMBER)
    if kinds.is_duration(type):
        return _micros(scalar.value * _NANOSECONDS[type.unit])
    if kinds.is_time(type):
        return _encode_time(scalar.value * _NANOSECONDS[type.unit])
    if kinds.is_date32(type):
        return scalar.value  # Python's dates end with the year 9999, these do not
    if kinds.is_date64(type):
        return _encode_milliseconds(scalar.value)
    if kinds.is_decimal(type):
        return _encode_digits(scalar)
    return _encode_plain(scalar)


def _encode_entries(scalar: pa.Scalar[Any], elements: _Elements) -> Any:
    entries = [[_encode_value(pair[0], elements), _encode_value(pair[1], elements)] for pair in scalar.values]
    # To SQL both zeros are one key.
    keys = {json.dumps("0.0" if key == "-0.0" else key) for key, _ in entries}
    if len(keys) < len(entries) or "null" in keys:
        raise _UnfitError("is a map with a key twice, or with NULL as a key", "send each key once")
    return entries


def _micros(nanoseconds: int, hint: str = "send microseconds") -> int:
    micros, rest = divmod(nanoseconds, 1000)
    if rest:
        raise _nanoseconds(hint)
    if micros not in _INT64:
        raise _UnfitError("is a time that 64 bits of microseconds cannot hold", "send a time that is nearer")
    return micros


def _nanoseconds(hint: str) -> _UnfitError:
    return _UnfitError("has nanoseconds, which times in SQL do not have", hint)


def _encode_time(nanoseconds: int) -> int:
    if nanoseconds % 1000:
        raise _nanoseconds("send microseconds")
    if nanoseconds not in range(_DAY_NANOSECONDS):
        raise _UnfitError("is no time of a day", "send a time from 00:00 until before 24:00")
    return nanoseconds


def _encode_milliseconds(value: int) -> int:
    days, rest = divmod(value, 86_400_000)
    if rest or days not in _INT32:
        raise _UnfitError("is no date: it has hours, or is too far away", "send a timestamp, or a date without hours")
    return days


def _encode_digits(scalar: pa.Scalar[Any]) -> str:
    try:
        value = scalar.as_py()
    except InvalidOperation as error:  # its scale is one that Python's decimals do not have
        raise _too_many_digits() from error
    if value.copy_abs() >= Decimal(10) ** (_MOST_DIGITS - max(scalar.type.scale, 0)):
        raise _too_many_digits()
    return format(value, "f")


def _too_many_digits() -> _UnfitError:
    return _UnfitError("is a decimal of more than 38 digits", "SQL has no more; send text or a double")


def _encode_plain(scalar: pa.Scalar[Any]) -> Any:
    try:
        value = scalar.as_py()
    except UnicodeDecodeError as error:
        raise _UnfitError("is text that is no UTF-8", "send Unicode text, or bytes") from error
    match value:
        case bool() | int():
            return value
        case str():
            return _bounded(value)
        case float():
            return _float_text(value)
        case bytes():
            return _bounded(base64.b64encode(value).decode())
    raise _UnfitError(f"cannot be a {type(value).__name__}", "convert it before sending")


def _bounded(text: str) -> str:
    if 2 * len(text) > _MOST_CHARACTERS and len(text.encode("utf-16-le")) > 2 * _MOST_CHARACTERS:
        raise _UnfitError(
            f"is longer than {_MOST_CHARACTERS} characters, or {_MOST_CHARACTERS // 4 * 3} bytes",
            "load it with bulk ingest",
        )
    return text


def _float_text(value: float) -> str:
    if value != value:
        return "NaN"
    return {"inf": "Infinity", "-inf": "-Infinity"}.get(repr(value), repr(value))


def encode_rows(rows: pa.Table) -> str:
    """Return the table as an Arrow stream, base64, with only types that Spark reads."""
    fields = [pa.field(field.name, _readable(field.type), field.nullable) for field in rows.schema]
    schema = pa.schema(fields)
    if schema != rows.schema.remove_metadata():
        rows = rows.cast(schema)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_table(rows.replace_schema_metadata(None))
    return base64.b64encode(sink.getvalue()).decode()


def _readable(type: pa.DataType) -> pa.DataType:
    if kinds.is_unsigned_integer(type):
        return {8: pa.int16(), 16: pa.int32(), 32: pa.int64(), 64: pa.decimal128(20, 0)}[type.bit_width]
    if kinds.is_timestamp(type):
        return pa.timestamp("us", tz=None if type.tz is None else "UTC")
    if kinds.is_time(type):
        return pa.time64("ns")
    if kinds.is_duration(type):
        return pa.duration("us")
    if kinds.is_dictionary(type):
        return _readable(type.value_type)
    if kinds.is_large_string(type) or kinds.is_string_view(type):
        return pa.string()
    if kinds.is_large_binary(type) or kinds.is_binary_view(type) or kinds.is_fixed_size_binary(type):
        return pa.binary()
    if kinds.is_float16(type):
        return pa.float32()
    if kinds.is_date64(type):
        return pa.date32()
    if kinds.is_map(type):
        return pa.map_(_readable(type.key_type), _readable(type.item_type))
    if kinds.is_struct(type):
        return pa.struct([pa.field(field.name, _readable(field.type), field.nullable) for field in type])
    if kinds.is_nested(type) and type.num_fields == 1:
        return pa.list_(_readable(type.value_type))
    return type
