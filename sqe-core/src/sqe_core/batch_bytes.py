"""How many bytes a record batch has when each of its places has a value of its own.

What came is no measure: many places may use one value of a dictionary, or be views of one text.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from sqe_core.spi.errors import NotSupportedError

_NULL_BYTES = 4  # NULLs of no type have no bytes, and get some in every other type
_FIXED_BYTES = 32  # the widest of the types whose values are all as wide


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchBytes:
    """The sizes of a batch.

    Attributes:
        sent: its own buffers.
        dictionaries: those of its dictionaries.
        decoded: its own buffers, and what they grow by when dictionaries and views are resolved.
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
    """
    sent = _buffers(batch)
    return BatchBytes(
        sent=sent,
        dictionaries=sum(map(_dictionary_bytes, batch.columns)),
        decoded=sent + sum(map(_growth, batch.columns)),
    )


def _buffers(batch: pa.RecordBatch) -> int:
    # Not `nbytes`: it ends the process when a list of no lists has no offsets, which Arrow's own Java writes.
    return int(pa.ipc.get_record_batch_size(batch))


def _dictionary_bytes(values: pa.Array) -> int:
    if isinstance(values, pa.DictionaryArray):
        dictionary = values.dictionary
        return _buffers(pa.record_batch([dictionary], ["dictionary"])) + _dictionary_bytes(dictionary)
    return sum(map(_dictionary_bytes, _children(values)))


def _growth(values: pa.Array) -> int:
    """Return how much a column grows; a dictionary's value may be used often."""
    if not len(values):
        return 0
    if isinstance(values, pa.DictionaryArray):
        return _sum(_lengths(values.dictionary).take(values.indices))
    type = values.type
    if kinds.is_null(type):
        return _NULL_BYTES * len(values)
    if kinds.is_string_view(type) or kinds.is_binary_view(type):
        return _sum(_lengths(values))
    return sum(map(_growth, _children(values)))


def _children(values: pa.Array) -> list[pa.Array]:
    """Return the values inside of values; only of types where none of them is in several places at once.

    Empty lists have some too: a dictionary that nothing refers to is in memory all the same.
    """
    type = values.type
    if isinstance(values, pa.ExtensionArray):
        return [values.storage]
    if kinds.is_struct(type):
        return list(values.flatten())
    if kinds.is_map(type):
        return [values.keys, values.items]
    if kinds.is_list(type) or kinds.is_large_list(type) or kinds.is_fixed_size_list(type):
        # Not `flatten`, which ends the process when a list of no lists has no offsets.
        return [values.flatten() if len(values) else values.values]
    if kinds.is_nested(type):
        raise NotSupportedError(f"Values of type {type} are not supported")
    return []


def _lengths(values: pa.Array) -> pa.Array:
    """Return the bytes of each value."""
    if isinstance(values, pa.ExtensionArray):
        return _lengths(values.storage)
    type = values.type
    if kinds.is_string_view(type) or kinds.is_binary_view(type):
        return _view_lengths(values)
    if kinds.is_string(type) or kinds.is_large_string(type) or kinds.is_binary(type) or kinds.is_large_binary(type):
        return pc.binary_length(values).cast(pa.int64())
    if kinds.is_fixed_size_binary(type):
        return _each(type.byte_width, values)
    if kinds.is_nested(type) or kinds.is_dictionary(type):
        # Each of them may be as big as all of them together.
        return _each(_buffers(pa.record_batch([values], ["values"])) + _growth(values), values)
    return _each(_FIXED_BYTES, values)


def _view_lengths(values: pa.Array) -> pa.Array:
    """Return the bytes of each view: 16 bytes that begin with the length. Many may point to the same text."""
    if not len(values):
        return pa.array([], pa.int64())
    numbers = pa.Array.from_buffers(pa.int32(), 4 * (values.offset + len(values)), [None, values.buffers()[1]])
    views = pa.FixedSizeListArray.from_arrays(numbers, 4).slice(values.offset)
    return pc.max_element_wise(pc.list_element(views, 0).cast(pa.int64()), pa.scalar(0, pa.int64()))


def _each(size: int, values: pa.Array) -> pa.Array:
    return pa.repeat(pa.scalar(size, pa.int64()), len(values))


def _sum(lengths: pa.Array) -> int:
    return int(pc.sum(lengths).as_py() or 0)
