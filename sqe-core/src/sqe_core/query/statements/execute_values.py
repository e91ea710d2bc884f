"""Values of EXECUTE as parameters have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.types as kinds

from sqe_core.spi.errors import ErrorCode, UserError
from sqe_core.sql.text.constants import ListedValues, MappedValues, Number, RowOfValues

_NUMBERS = {
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "integer": pa.int32(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "real": pa.float32(),
}
_INT32 = range(-(1 << 31), 1 << 31)


def parameters(values: Sequence[Any]) -> Sequence[Any]:
    """Return values to be bound.

    Args:
        values: as `sql/text/constants.py` reads them.

    Raises:
        UserError: an array or a map has values of several types.
    """
    return tuple(map(_parameter, values))


def _parameter(value: Any) -> Any:
    if not isinstance(value, Number | ListedValues | MappedValues | RowOfValues):
        return value
    try:
        return _scalar(value)
    except (pa.ArrowException, OverflowError, ValueError) as error:
        raise UserError(
            "A value of EXECUTE is too large for its type",
            code=ErrorCode.INVALID_ARGUMENTS,
            hint="a DECIMAL has 38 digits at most",
        ) from error


def _scalar(value: Any) -> pa.Scalar[Any]:
    match value:
        case Number(type, number):
            return pa.scalar(number, _NUMBERS[type])
        case ListedValues(items):
            inner = list(map(_scalar, items))
            type = _common([each.type for each in inner])
            return pa.scalar([each.as_py() for each in inner], pa.list_(type))
        case MappedValues(keys, values):
            found = _scalar(keys), _scalar(values)
            if len(keys.items) != len(values.items):
                raise _unlike("MAP takes as many keys as values")
            pairs = list(zip(*(each.as_py() for each in found), strict=True))
            return pa.scalar(pairs, pa.map_(found[0].type.value_type, found[1].type.value_type))
        case RowOfValues(items):
            # Rows of no names have those that SQE gives them.
            fields = {f"col{place}": _scalar(item) for place, item in enumerate(items, 1)}
            struct = pa.struct([(name, each.type) for name, each in fields.items()])
            return pa.scalar({name: each.as_py() for name, each in fields.items()}, struct)
        case bool():
            return pa.scalar(value)
        case int() if value in _INT32:
            return pa.scalar(value, pa.int32())
    return pa.scalar(value)


def _common(types: Sequence[pa.DataType]) -> pa.DataType:
    """Return the one type of the elements; whole numbers, and decimals, have that of the widest one."""
    found = [type for type in dict.fromkeys(types) if not kinds.is_null(type)]
    if not found:
        return pa.null()
    if all(map(kinds.is_integer, found)):
        return max(found, key=lambda type: type.bit_width)
    if all(map(kinds.is_decimal, found)):
        scale = max(type.scale for type in found)
        return pa.decimal128(min(38, scale + max(type.precision - type.scale for type in found)), scale)
    if len(found) > 1:
        raise _unlike("The values of an ARRAY or MAP have several types")
    return found[0]


def _unlike(message: str) -> UserError:
    return UserError(message, code=ErrorCode.INVALID_ARGUMENTS, hint="write each of them with its type, as BIGINT '1'")
