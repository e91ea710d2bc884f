"""Arrow columns of a client, as tables keep them: which types there are, and values that fit without loss."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from sqe_core.engine.unwrapping import unwrapped_texts, unwrapped_type
from sqe_core.query.wording import shown
from sqe_core.spi.errors import ErrorCode, NotSupportedError, ResourcesError, UserError

_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
_MAX_DIGITS = 38
_NUMBERS = {"int": pa.int32(), "bigint": pa.int64(), "float": pa.float32(), "double": pa.float64()}
_UNITS = {8: pa.int32(), 16: pa.int32(), 32: pa.int64(), 64: pa.decimal128(20, 0)}
_TIME = pa.time64("ns")  # in which the engine reads times; tables keep microseconds


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaLimits:
    """Bounds on the columns that a client may send (FLT-7). Fields count those inside of structs, lists and maps."""

    columns: int = 5_000
    fields: int = 20_000
    depth: int = 32
    name_length: int = 255


def check_schema(schema: pa.Schema, limits: SchemaLimits) -> None:
    """Refuse columns that are too many, too deep, or not told apart by their names."""
    if not len(schema):
        raise UserError("The record batches have no columns", code=ErrorCode.INVALID_ARGUMENTS)
    if len(schema) > limits.columns:
        raise ResourcesError(f"The record batches have {len(schema)} columns; {limits.columns} are allowed")
    _check_names(schema, "Column", limits)
    fields = 0
    # Iteratively: how deep types are nested is the client's choice.
    pending = [(field.type, 1, field.name) for field in schema]
    while pending:
        type, depth, column = pending.pop()
        fields += 1
        if depth > limits.depth:
            raise ResourcesError(f"Column {shown(column)} is nested too deeply; {limits.depth} levels are allowed")
        if fields > limits.fields:
            raise ResourcesError(f"The record batches have too many fields; {limits.fields} are allowed")
        if kinds.is_struct(type):
            _check_names(list(type), f"Field in column {shown(column)}:", limits)
        pending.extend((child, depth + 1, column) for child in _children(type))


def _children(type: pa.DataType) -> Iterator[pa.DataType]:
    if kinds.is_dictionary(type):
        yield type.value_type
    elif isinstance(type, pa.BaseExtensionType):
        yield type.storage_type
    else:
        for place in range(type.num_fields):
            yield type.field(place).type


def _check_names(fields: Sequence[pa.Field] | pa.Schema, what: str, limits: SchemaLimits) -> None:
    seen: set[str] = set()
    for field in fields:
        name = field.name
        if not name or not name.isprintable() or len(name) > limits.name_length:
            raise UserError(f"{what} {shown(name)!r} is no usable name", code=ErrorCode.INVALID_ARGUMENTS)
        if name.lower() in seen:
            raise UserError(f"{what} {shown(name)} is given more than once", code=ErrorCode.DUPLICATE_COLUMN)
        seen.add(name.lower())


def storable(column: str, type: pa.DataType, *, kind: str = "Column") -> pa.DataType:
    """Return the type that a table keeps such values as; refuse what no table keeps.

    Args:
        column: its name, for the refusal.
        type: the client's type, of a schema that `check_schema` passed.
        kind: what the client knows it as.
    """

    def inner(one: pa.DataType) -> pa.DataType:
        found = _plain(one) or _nested(one, inner)
        if found is None:
            raise _refusal(column, one, kind)
        return found

    if isinstance(type, pa.BaseExtensionType):
        known = unwrapped_type(type)
        if isinstance(known, pa.BaseExtensionType):
            raise _refusal(column, type, kind)
        return known
    if kinds.is_null(type):
        raise NotSupportedError(
            f"{kind} {shown(column)} has the type null, which no column of a table can have",
            hint="give it a type, or append to a table that exists",
        )
    return inner(type)


def _refusal(column: str, type: pa.DataType, kind: str) -> NotSupportedError:
    return NotSupportedError(f"{kind} {shown(column)} has the Arrow type {shown(str(type))}, which tables cannot store")


def _plain(type: pa.DataType) -> pa.DataType | None:
    if kinds.is_boolean(type) or kinds.is_float32(type) or kinds.is_float64(type):
        return type
    if kinds.is_float16(type):
        return pa.float32()
    if kinds.is_unsigned_integer(type):
        return _UNITS[type.bit_width]
    if kinds.is_integer(type):
        return pa.int64() if type.bit_width == 64 else pa.int32()
    if kinds.is_decimal(type):
        scale = max(type.scale, 0)
        digits = max(type.precision + max(-type.scale, 0), scale)
        return pa.decimal128(digits, scale) if digits <= _MAX_DIGITS else None
    if kinds.is_string(type) or kinds.is_large_string(type) or kinds.is_string_view(type):
        return pa.string()
    if kinds.is_binary(type) or kinds.is_large_binary(type) or kinds.is_binary_view(type):
        return pa.binary()
    if kinds.is_fixed_size_binary(type):
        return pa.binary()
    if kinds.is_date(type):
        return pa.date32()
    if kinds.is_time(type):
        return _TIME
    if kinds.is_timestamp(type):
        return pa.timestamp("us", tz=None if type.tz is None else "UTC")
    if kinds.is_dictionary(type):
        return _plain(type.value_type)
    return None


def _nested(type: pa.DataType, inner: Callable[[pa.DataType], pa.DataType]) -> pa.DataType | None:
    """Rebuild a nested type with storable types inside. Everything may be NULL: the table says what may not."""
    if kinds.is_list(type) or kinds.is_large_list(type) or kinds.is_fixed_size_list(type):
        return pa.list_(inner(type.value_type))
    if kinds.is_map(type):
        return pa.map_(inner(type.key_type), inner(type.item_type))
    if kinds.is_struct(type) and type.num_fields:
        return pa.struct([pa.field(field.name, inner(field.type)) for field in type])
    return None


def fitted(stored: pa.DataType, target: str) -> pa.DataType:
    """Return the type to send values as, so that a cast shows which of them a column cannot keep without loss.

    The engine's own assignment only refuses what is too big, or types of which some values would be cut.

    Args:
        stored: what `storable` made of the client's type.
        target: the type of the table's column, in the engine's notation.
    """
    number = kinds.is_integer(stored) or kinds.is_floating(stored) or kinds.is_decimal(stored)
    if number and target in _NUMBERS:
        return _NUMBERS[target]
    decimal = _DECIMAL.fullmatch(target)
    if (kinds.is_decimal(stored) or kinds.is_floating(stored)) and decimal is not None:
        return pa.decimal128(int(decimal.group(1)), int(decimal.group(2)))
    if kinds.is_timestamp(stored) and stored.tz is None and target == "date":
        return pa.date32()
    if kinds.is_timestamp(stored) and target == ("timestamp_ns" if stored.tz is None else "timestamptz_ns"):
        return pa.int64()
    return stored


def converted(column: str, values: pa.Array, wanted: pa.DataType, *, kind: str = "Column") -> pa.Array:
    """Return the values in another type; a value that would lose something is an error.

    Args:
        column: its name, for the error.
        values: validated values.
        wanted: what `storable` or `fitted` returned for their type.
        kind: what the client knows it as.
    """
    try:
        if isinstance(values, pa.ExtensionArray):
            values = unwrapped_texts(values)
        if kinds.is_float16(values.type):
            values = values.cast(pa.float32())  # Arrow casts it to little else
        exact = _in_microseconds(wanted)
        if values.type.equals(wanted) and exact.equals(wanted):
            return values
        if kinds.is_timestamp(values.type) and kinds.is_int64(wanted):
            values = values.cast(pa.timestamp("ns", values.type.tz))  # what a column of nanoseconds counts
        result = _without_views(values).cast(exact).cast(wanted)
        if _may_round(values.type, wanted) and not _are_same(result.cast(values.type), values):
            raise pa.ArrowInvalid("a value was rounded")
    except pa.ArrowInvalid as error:
        raise UserError(
            f"{kind} {shown(column)} has a value that cannot be stored as {wanted} without loss",
            code=ErrorCode.INVALID_CAST,
            hint="convert it before sending",
        ) from error
    except pa.ArrowNotImplementedError as error:
        raise _refusal(column, values.type, kind) from error
    return result


def _may_round(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether Arrow gives the nearest value and no error where there is none that is the same."""
    if kinds.is_floating(given) and kinds.is_floating(wanted):
        return bool(given.bit_width > wanted.bit_width)
    return bool(
        (kinds.is_timestamp(given) and kinds.is_date(wanted))
        or (kinds.is_floating(given) and kinds.is_decimal(wanted))
        or (kinds.is_decimal(given) and kinds.is_floating(wanted))
    )


def _are_same(values: pa.Array, others: pa.Array) -> bool:
    different = pc.not_equal(values, others)
    if kinds.is_floating(values.type):
        different = pc.and_(different, pc.invert(pc.and_(pc.is_nan(values), pc.is_nan(others))))
    return not pc.any(different).as_py()


def _without_views(values: pa.Array) -> pa.Array:
    """Return the values with dictionaries that Arrow can resolve: it cannot where they hold views, as polars' do."""
    type = _viewless(values.type)
    return values if type.equals(values.type) else values.cast(type)


def _viewless(type: pa.DataType) -> pa.DataType:
    if kinds.is_dictionary(type):
        return pa.dictionary(type.index_type, unwrapped_type(type.value_type), type.ordered)
    return _rebuilt(type, _viewless)


def _rebuilt(type: pa.DataType, inner: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """Return a type with other types inside, and with everything else as it is."""
    if kinds.is_struct(type):
        return pa.struct([field.with_type(inner(field.type)) for field in type])
    if kinds.is_map(type):
        return pa.map_(type.key_field.with_type(inner(type.key_type)), type.item_field.with_type(inner(type.item_type)))
    if kinds.is_list(type):
        return pa.list_(type.value_field.with_type(inner(type.value_type)))
    if kinds.is_large_list(type):
        return pa.large_list(type.value_field.with_type(inner(type.value_type)))
    if kinds.is_fixed_size_list(type):
        return pa.list_(type.value_field.with_type(inner(type.value_type)), type.list_size)
    return type


def _in_microseconds(type: pa.DataType) -> pa.DataType:
    """Return the type with times that have no more digits than tables keep."""
    return pa.time64("us") if type.equals(_TIME) else _rebuilt(type, _in_microseconds)
