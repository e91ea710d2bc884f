"""Arrow columns of a client, as tables keep them: which types there are, and values that fit without loss."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from sqe_core.catalog.types import nested_type
from sqe_core.engine.unwrapping import unwrapped_texts, unwrapped_type
from sqe_core.query.errors.wording import shown
from sqe_core.spi.batch_bytes import values_inside
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
    with _only_unicode("The record batches have"):
        _check_schema(schema, limits)


def _check_schema(schema: pa.Schema, limits: SchemaLimits) -> None:
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


@contextmanager
def _only_unicode(whose: str) -> Iterator[None]:
    """Arrow takes any bytes for names and time zones, and Python fails when it reads them."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise UserError(
            f"{whose} a name or a time zone that is no UTF-8", code=ErrorCode.INVALID_ARGUMENTS, hint="send Unicode"
        ) from error


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
            raise UserError(f"{what} {shown(name)} is given more than once", code=ErrorCode.INVALID_ARGUMENTS)
        seen.add(name.lower())


def storable(column: str, type: pa.DataType, *, kind: str = "Column") -> pa.DataType:
    """Return the type that a table keeps such values as; refuse what no table keeps.

    The type is of a schema that `check_schema` passed; `kind` is what the client knows the column as.
    """
    with _only_unicode(f"{kind} {shown(column)} has"):
        return _storable(column, type, kind)


def _storable(column: str, type: pa.DataType, kind: str) -> pa.DataType:
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
    """Rebuild a nested type with storable types inside. What is inside may be NULL: the table says what may not."""
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
    """
    if kinds.is_nested(stored):
        return _fitted_inside(stored, target)
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


def _fitted_inside(stored: pa.DataType, target: str) -> pa.DataType:
    """Fit the numbers inside; where the target is of another shape, the engine's own assignment refuses it."""
    kind, inside = nested_type(target)
    targets = {each.name.lower(): each.type for each in inside}

    def inner(one: pa.DataType, target: str | None) -> pa.DataType:
        # Times stay: only what is no value of a list, map or row is counted in nanoseconds.
        return one if target is None or kinds.is_timestamp(one) else fitted(one, target)

    if kind == "array" and kinds.is_list(stored):
        return pa.list_(inner(stored.value_type, targets["element"]))
    if kind == "map" and kinds.is_map(stored):
        return pa.map_(inner(stored.key_type, targets["key"]), inner(stored.item_type, targets["value"]))
    if kind == "struct" and kinds.is_struct(stored):
        # By name, as the engine assigns them; which case they have does not matter.
        return pa.struct([(field.name, inner(field.type, targets.get(field.name.lower()))) for field in stored])
    return stored


def converted(column: str, values: pa.Array, wanted: pa.DataType, *, kind: str = "Column") -> pa.Array:
    """Return validated values in what `storable` or `fitted` said; a value that would lose something is an error."""
    try:
        if isinstance(values, pa.ExtensionArray):
            values = unwrapped_texts(values)
        values = _castable(values)
        exact = _in_microseconds(wanted)
        if values.type.equals(wanted) and exact.equals(wanted):
            return values
        if kinds.is_timestamp(values.type) and kinds.is_int64(wanted):
            values = values.cast(pa.timestamp("ns", values.type.tz))  # what a column of nanoseconds counts
        result = values.cast(exact).cast(wanted)
        if _is_rounded(values, result):
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


def _is_rounded(values: pa.Array, result: pa.Array) -> bool:
    """Whether a cast made another value of one, at any depth."""
    if not len(values):
        return False
    if isinstance(values, pa.DictionaryArray):
        return _is_rounded(_decoded(values), result)
    if kinds.is_nested(values.type):
        return any(map(_is_rounded, values_inside(values), values_inside(result)))
    return _may_round(values.type, result.type) and not _are_same(result.cast(values.type), values)


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


def _castable(values: pa.Array) -> pa.Array:
    """Return the values as Arrow can cast them: it knows few casts of half floats, and none of dictionaries of views.

    A dictionary is resolved: what a cast of one rounds could not be seen.
    """
    if isinstance(values, pa.DictionaryArray):
        return _decoded(values)
    type = _castable_type(values.type)
    return values if type.equals(values.type) else values.cast(type)


def _decoded(values: pa.DictionaryArray) -> pa.Array:
    return _castable(values.dictionary).take(values.indices)


def _castable_type(type: pa.DataType) -> pa.DataType:
    if kinds.is_float16(type):
        return pa.float32()
    if kinds.is_dictionary(type):
        return pa.dictionary(type.index_type, _castable_type(unwrapped_type(type.value_type)), type.ordered)
    return _rebuilt(type, _castable_type) if kinds.is_nested(type) else unwrapped_type(type)


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
