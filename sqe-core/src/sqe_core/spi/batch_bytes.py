"""How many bytes a record batch has when each of its places has a value of its own.

What came is no measure: many places may use one value of a dictionary, or be views of one text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from sqe_core.spi.errors import NotSupportedError, ResourcesError

MOST_DICTIONARY_ENTRIES = 1 << 24
_FIXED_BYTES = 32  # the widest of the types whose values are all as wide
_LEAST_BYTES = 8  # of an element: it may be nothing or a bit here, and is something in every other type and language
_PIECE = 1 << 16
_UNREADABLE = frozenset({pa.lib.Type_INTERVAL_MONTHS, pa.lib.Type_INTERVAL_DAY_TIME})


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchBytes:
    """The sizes of a batch.

    Attributes:
        sent: its own buffers.
        dictionaries: those of its dictionaries.
        decoded: its own buffers, and what they grow by when dictionaries and views are resolved, and when each element
            of a list and each value without a width has some bytes.
    """

    sent: int
    dictionaries: int
    decoded: int


def batch_bytes(batch: pa.RecordBatch) -> BatchBytes:
    """Return about the sizes of a batch; nothing is decoded.

    Args:
        batch: one that was validated.

    Raises:
        NotSupportedError: it has values of a type that no table and no parameter has.
        ResourcesError: it has a dictionary of too many entries.
    """
    for type in batch.schema.types:
        _require_readable(type)
    sent = _buffers(batch)
    dictionaries = sum(map(_dictionary_bytes, batch.columns))  # first: their entries are counted before they are read
    return BatchBytes(
        sent=sent,
        dictionaries=dictionaries,
        decoded=sent + sum(map(_growth, batch.columns)),
    )


def _require_readable(type: pa.DataType) -> None:
    """Raise for what pyarrow has no class of arrays for: it fails with a KeyError."""
    if type.id in _UNREADABLE:
        raise NotSupportedError(f"Values of type {type} are not supported", hint="send month_day_nano intervals")
    if isinstance(type, pa.BaseExtensionType):
        _require_readable(type.storage_type)
    elif kinds.is_dictionary(type):
        _require_readable(type.value_type)
    else:
        for place in range(type.num_fields):
            _require_readable(type.field(place).type)


def _buffers(batch: pa.RecordBatch) -> int:
    # Not `nbytes`: it ends the process when a list of no lists has no offsets, which Arrow's own Java writes.
    return int(pa.ipc.get_record_batch_size(batch))


def _dictionary_bytes(values: pa.Array) -> int:
    if isinstance(values, pa.DictionaryArray):
        dictionary = values.dictionary
        if len(dictionary) > MOST_DICTIONARY_ENTRIES:
            raise ResourcesError(
                f"A dictionary has {len(dictionary)} entries; {MOST_DICTIONARY_ENTRIES} are allowed",
                hint="send the values without a dictionary",
            )
        return _buffers(pa.record_batch([dictionary], ["dictionary"])) + _dictionary_bytes(dictionary)
    return sum(map(_dictionary_bytes, values_inside(values)))


def _growth(values: pa.Array, *, element: bool = False) -> int:
    """Return how much values grow; a dictionary's value may be used often. An element is one of many in one row."""
    if not len(values):
        return 0
    if isinstance(values, pa.ExtensionArray):
        return _growth(values.storage, element=element)
    type = values.type
    width = _width(type)
    lacking = max(0, _LEAST_BYTES * len(values) - width * len(values) // 8) if element or not width else 0
    if isinstance(values, pa.DictionaryArray):
        return max(lacking, _used_bytes(values))
    if kinds.is_string_view(type) or kinds.is_binary_view(type):
        return _used_bytes(values)
    many = element or not kinds.is_struct(type)
    return lacking + sum(_growth(each, element=many) for each in values_inside(values))


def _width(type: pa.DataType) -> int:
    """Return the bits that each value has for itself, not counting those that it points to."""
    if isinstance(type, pa.BaseExtensionType):
        return _width(type.storage_type)
    if kinds.is_null(type):
        return 0
    if kinds.is_struct(type):
        return sum(_width(field.type) for field in type)
    if kinds.is_fixed_size_list(type):
        return int(type.list_size * _width(type.value_type))
    try:
        return int(type.bit_width)
    except ValueError:
        return 32  # an offset


def values_inside(values: pa.Array) -> list[pa.Array]:
    """Return the values inside of values; only of types where none of them is in several places at once.

    Those behind a NULL are among them: to leave them out takes memory, many times what they have. Empty lists have
    some too: a dictionary that nothing refers to is in memory all the same.
    """
    type = values.type
    if isinstance(values, pa.ExtensionArray):
        return [values.storage]
    if kinds.is_struct(type):
        return [values.field(place) for place in range(type.num_fields)]
    if kinds.is_fixed_size_list(type):
        return [values.values.slice(values.offset * type.list_size, len(values) * type.list_size)]
    if kinds.is_map(type):
        return _between_offsets(values, [values.keys, values.items])
    if kinds.is_list(type) or kinds.is_large_list(type):
        return _between_offsets(values, [values.values])
    if kinds.is_nested(type):
        raise NotSupportedError(f"Values of type {type} are not supported")
    return []


def _between_offsets(values: pa.Array, inside: list[pa.Array]) -> list[pa.Array]:
    if not len(values):
        return inside  # there may be no offsets
    first, end = values.offsets[0].as_py(), values.offsets[len(values)].as_py()
    return [each.slice(first, end - first) for each in inside]


def _used_bytes(values: pa.Array) -> int:
    """Return the bytes of the values that a dictionary has, or that are views, each as often as it is used."""
    if not isinstance(values, pa.DictionaryArray):
        return sum(_sum(_view_lengths(piece)) for piece in _pieces(values))
    size = _bytes_of_each(values.dictionary)
    if size is not None:
        return size * len(values)
    lengths = _lengths(values.dictionary)
    return sum(_sum(lengths.take(piece)) for piece in _pieces(values.indices))


def _pieces(values: pa.Array) -> Iterator[pa.Array]:
    """Yield the values in pieces: what is made of all of them at once may be many times as big."""
    return (values.slice(start, _PIECE) for start in range(0, len(values), _PIECE))


def _bytes_of_each(values: pa.Array) -> int | None:
    """Return the bytes of each value, or None when they have lengths of their own."""
    if isinstance(values, pa.ExtensionArray):
        return _bytes_of_each(values.storage)
    type = values.type
    if kinds.is_nested(type) or kinds.is_dictionary(type):
        # Each of them may be as big as all of them together.
        return _buffers(pa.record_batch([values], ["values"])) + _growth(values)
    if kinds.is_fixed_size_binary(type):
        return max(int(type.byte_width), _LEAST_BYTES)
    return _FIXED_BYTES if kinds.is_null(type) or kinds.is_primitive(type) or kinds.is_decimal(type) else None


def _lengths(values: pa.Array) -> pa.Array:
    """Return the bytes of each text or binary value."""
    if isinstance(values, pa.ExtensionArray):
        return _lengths(values.storage)
    if kinds.is_string_view(values.type) or kinds.is_binary_view(values.type):
        return _view_lengths(values)
    return pc.binary_length(values)


def _view_lengths(values: pa.Array) -> pa.Array:
    """Return the bytes of each view: 16 bytes that begin with the length. Many may point to the same text."""
    if not len(values):
        return pa.array([], pa.int64())
    numbers = pa.Array.from_buffers(pa.int32(), 4 * (values.offset + len(values)), [None, values.buffers()[1]])
    views = pa.FixedSizeListArray.from_arrays(numbers, 4).slice(values.offset)
    return pc.max_element_wise(pc.list_element(views, 0).cast(pa.int64()), pa.scalar(0, pa.int64()))


def _sum(lengths: pa.Array) -> int:
    return int(pc.sum(lengths).as_py() or 0)
