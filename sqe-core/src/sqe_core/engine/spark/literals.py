"""Write Python and Arrow values as typed literals for the bridge, and rows of ours as Arrow that Spark can read."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.types as kinds

from sqe_core.engine.port import ParameterMarker
from sqe_core.spi.errors import ErrorCode, UserError

_EPOCH = datetime(1970, 1, 1)
_INT32 = range(-(1 << 31), 1 << 31)
_INT64 = range(-(1 << 63), 1 << 63)
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


def encode_parameters(parameters: Mapping[str, Any]) -> str:
    """Return the JSON that the bridge reads: a typed literal for each name."""
    return json.dumps({name: encode(value) for name, value in parameters.items()})


def encode(value: Any) -> dict[str, Any]:
    """Return the typed literal of a Python value or a pyarrow scalar, or what marks the place of one."""
    if isinstance(value, ParameterMarker):
        return {"marker": value.number}
    if isinstance(value, int) and not isinstance(value, bool):
        return _encode_int(value)
    if isinstance(value, Decimal):
        return _encode_decimal(value)
    scalar = value if isinstance(value, pa.Scalar) else _infer(value)
    if isinstance(scalar, pa.DictionaryScalar):
        scalar = scalar.as_py() if scalar.as_py() is None else pa.scalar(scalar.as_py(), scalar.type.value_type)
        if scalar is None:
            return {"type": "void", "value": None}
    if kinds.is_interval(scalar.type):
        return _encode_interval(scalar)
    return {"type": spark_type(scalar.type), "value": _encode_value(scalar)}


def _infer(value: Any) -> pa.Scalar[Any]:
    try:
        return pa.scalar(value)
    except UnicodeEncodeError as error:
        raise UserError(
            "A parameter holds a lone surrogate, which is not text", code=ErrorCode.INVALID_ARGUMENTS
        ) from error
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise UserError(f"A parameter cannot be a {type(value).__name__}", code=ErrorCode.INVALID_ARGUMENTS) from error


def _encode_int(value: int) -> dict[str, Any]:
    if value in _INT32:
        return {"type": "int", "value": value}
    if value in _INT64:
        return {"type": "bigint", "value": value}
    return _encode_decimal(Decimal(value))


def _encode_decimal(value: Decimal) -> dict[str, Any]:
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise UserError("A decimal parameter must be a number", code=ErrorCode.INVALID_ARGUMENTS)
    scale = max(0, -exponent)
    precision = max(len(digits) + max(0, exponent), scale, 1)
    if precision > 38:
        raise UserError("A decimal parameter has at most 38 digits", code=ErrorCode.INVALID_ARGUMENTS)
    return {"type": f"decimal({precision},{scale})", "value": format(value, "f")}


def _encode_interval(scalar: pa.Scalar[Any]) -> dict[str, Any]:
    value = scalar.as_py()
    if value is None:
        return {"type": "interval year to month", "value": None}
    if not value.months:
        micros = value.days * 86_400_000_000 + value.nanoseconds // 1000
        return {"type": "interval day to second", "value": micros}
    if value.days or value.nanoseconds:
        raise UserError(
            "An interval parameter has months, or days and seconds, not both", code=ErrorCode.INVALID_ARGUMENTS
        )
    return {"type": "interval year to month", "value": value.months}


def spark_type(type: pa.DataType) -> str:
    """Return the Spark type of an Arrow type, with timestamps spelt so that no setting changes their meaning."""
    simple = _SIMPLE.get(type)
    if simple is not None:
        return simple
    if kinds.is_decimal(type):
        return f"decimal({type.precision},{type.scale})"
    if kinds.is_string(type) or kinds.is_large_string(type) or kinds.is_string_view(type):
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
        fields = ",".join(f"`{f.name.replace('`', '``')}`:{spark_type(f.type)}" for f in type)
        return f"struct<{fields}>"
    raise UserError(f"Values of type {type} are not supported", code=ErrorCode.NOT_SUPPORTED)


def _encode_value(scalar: pa.Scalar[Any]) -> Any:
    if not scalar.is_valid:
        return None
    type = scalar.type
    if kinds.is_map(type):
        return [[_encode_value(pair["key"]), _encode_value(pair["value"])] for pair in scalar.values]
    if kinds.is_nested(type):
        if kinds.is_struct(type):
            return [_encode_value(scalar[index]) for index in range(type.num_fields)]
        return [_encode_value(element) for element in scalar.values]
    if kinds.is_timestamp(type) or kinds.is_duration(type):
        return _micros(scalar)
    return _encode_plain(scalar.as_py())


def _micros(scalar: pa.Scalar[Any]) -> int:
    return int(scalar.value * {"s": 1_000_000_000, "ms": 1_000_000, "us": 1000, "ns": 1}[scalar.type.unit] // 1000)


def _encode_plain(value: Any) -> Any:
    match value:
        case bool() | int() | str():
            return value
        case float():
            return _float_text(value)
        case Decimal():
            return format(value, "f")
        case bytes():
            return base64.b64encode(value).decode()
        case datetime():
            return (value.replace(tzinfo=None) - _EPOCH) // timedelta(microseconds=1)
        case date():
            return value.toordinal() - _EPOCH.toordinal()
        case time():
            return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000_000 + value.microsecond * 1000
    raise UserError(f"A parameter cannot be a {type(value).__name__}", code=ErrorCode.INVALID_ARGUMENTS)


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
