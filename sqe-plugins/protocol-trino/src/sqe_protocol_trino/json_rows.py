"""Rows as Trino's JSON, made from Arrow by columns: each step is one call into C++ for a whole column.

A column becomes a column of JSON texts, the columns of a row are joined, then the rows.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sqe_core.spi import ColumnType
from sqe_protocol_trino import json_inside, json_times
from sqe_protocol_trino.type_signature import trino_name

_NULL = "null"
_ESCAPES = {chr(code): f"\\u{code:04x}" for code in range(0x20)} | {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def json_chunks(
    batch: pa.RecordBatch, types: Sequence[ColumnType], *, parametric: bool = True, at_most: int = 1 << 20
) -> Iterator[tuple[int, bytes]]:
    """Yield the rows of a batch as JSON, some at a time: how many, and `[1,"a"],[2,"b"]`.

    Args:
        batch: the rows.
        types: of the columns.
        parametric: whether the client knows of digits of time; it reads milliseconds otherwise.
        at_most: bytes of Arrow for one piece, which JSON makes more or less of.
    """
    rows = batch.num_rows
    if not rows:
        return
    # Not `nbytes`: of a list without elements inside of a map without entries it reads offsets that are not there.
    at_once = max(1, min(rows, rows * at_most // max(1, batch.get_total_buffer_size())))
    for start in range(0, rows, at_once):
        part = batch.slice(start, at_once)
        yield part.num_rows, _rows(part, types, parametric)


def _rows(batch: pa.RecordBatch, types: Sequence[ColumnType], parametric: bool) -> bytes:
    if not types:
        return b",".join([b"[]"] * batch.num_rows)
    values = [_texts(column, type, parametric) for column, type in zip(batch.columns, types, strict=True)]
    return b"[" + _joined(_beside(values), "],[") + b"]"


@dataclass(frozen=True, slots=True)
class _Texts:
    """The texts of a column, and whether they stand in quotes."""

    texts: pa.Array
    quoted: bool

    def written(self) -> pa.Array:
        """Return them with their quotes."""
        if not self.quoted:
            return self.texts
        return pc.binary_join_element_wise('"', self.texts, '"', "")


def _beside(columns: Sequence[_Texts]) -> pa.Array:
    """Put the columns of each row side by side. Quotes are written on the way, where nothing in a column is NULL."""
    pieces: list[str | pa.Array] = []
    before = ""
    for each in columns:
        quote = '"' if each.quoted and not each.texts.null_count else ""
        pieces += [before + quote, each.texts if quote else each.written()]
        before = quote + ","
    pieces += [before[:-1]]
    return pc.binary_join_element_wise(
        *(piece for piece in pieces if not isinstance(piece, str) or piece),
        "",
        null_handling="replace",
        null_replacement=_NULL,
    )


def _joined(texts: pa.Array, separator: str) -> bytes:
    whole = pa.LargeListArray.from_arrays(pa.array([0, len(texts)], pa.int64()), texts)
    joined = pc.binary_join(whole, separator)
    buffer = joined.buffers()[2]
    return bytes(buffer) if buffer is not None else b""


def _texts(values: pa.Array, type: ColumnType, parametric: bool) -> _Texts:
    """Return the JSON text of each value; NULL stays NULL."""
    if isinstance(values, pa.DictionaryArray):
        values = values.dictionary_decode()
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    name, arrow = trino_name(type), values.type
    if pa.types.is_null(arrow):
        return _Texts(pa.nulls(len(values), pa.string()), False)
    if name in ("array", "map", "row") and pa.types.is_nested(arrow):
        return _Texts(_nested(values, type, parametric), False)
    if name in ("array", "map", "row"):
        return _Texts(json_inside.opened(values, type), False)
    if pa.types.is_floating(arrow):
        return _Texts(_floating(values), False)
    if pa.types.is_boolean(arrow) or pa.types.is_integer(arrow):
        return _Texts(values.cast(pa.string()), False)
    if pa.types.is_timestamp(arrow) or pa.types.is_time(arrow):
        return _Texts(json_times.moment_texts(values, type, parametric), True)
    if pa.types.is_duration(arrow):
        return _Texts(json_times.duration_texts(values), True)
    if pa.types.is_interval(arrow):
        return _Texts(json_times.interval_texts(values), True)
    if pa.types.is_binary(arrow) or pa.types.is_large_binary(arrow) or pa.types.is_fixed_size_binary(arrow):
        return _Texts(_base64(values), True)
    if pa.types.is_string(arrow) or pa.types.is_large_string(arrow):
        return _Texts(_escaped(_padded(values, type) if name == "char" else values).cast(pa.string()), True)
    if pa.types.is_date(arrow):
        return _Texts(json_times.date_texts(values), True)
    return _Texts(_decimal_texts(values) if pa.types.is_decimal(arrow) else values.cast(pa.string()), True)


def _decimal_texts(values: pa.Array) -> pa.Array:
    texts = values.cast(pa.string())
    if not pc.any(pc.match_substring(texts, "E")).as_py():
        return texts
    # Very small ones: the kernel writes 1E-38, and clients show what they read.
    return pa.array([None if value is None else f"{value:f}" for value in values.to_pylist()], pa.string())


def _floating(values: pa.Array) -> pa.Array:
    if pa.types.is_float16(values.type):
        values = values.cast(pa.float32())
    texts = values.cast(pa.string())
    # Clients without types of their own tell 1.0 from 1 by its point.
    if pc.any(whole := pc.equal(values, pc.trunc(values))).as_py():
        pointed = pc.match_substring_regex(texts, "[.en]")
        texts = pc.if_else(pc.and_not(whole, pointed), pc.binary_join_element_wise(texts, ".0", ""), texts)
    finite = pc.is_finite(values)
    if pc.all(finite).as_py() is not False:
        return texts
    infinite = pc.if_else(pc.greater(values, 0), '"Infinity"', '"-Infinity"')
    return pc.if_else(finite, texts, pc.if_else(pc.is_nan(values), '"NaN"', infinite))


def _padded(values: pa.Array, type: ColumnType) -> pa.Array:
    return pc.utf8_rpad(values, type.arguments[0]) if type.arguments else values


def _escaped(texts: pa.Array) -> pa.Array:
    octets = _octets(texts)
    if (octets == 0x5C).any():
        texts = pc.replace_substring(texts, "\\", "\\\\")
    if (octets == 0x22).any():
        texts = pc.replace_substring(texts, '"', '\\"')
    if (octets < 0x20).any():
        for code in np.unique(octets[octets < 0x20]):
            texts = pc.replace_substring(texts, chr(code), _ESCAPES[chr(code)])
    return texts


def _octets(texts: pa.Array) -> Any:
    """Return the bytes of all texts: whether anything has to be escaped is seen in all of them at once."""
    _, offsets, data = texts.buffers()
    if data is None or not len(texts):
        return np.empty(0, np.uint8)
    places = np.frombuffer(offsets, np.int64 if pa.types.is_large_string(texts.type) else np.int32)
    return np.frombuffer(data, np.uint8)[places[texts.offset] : places[texts.offset + len(texts)]]


def _base64(values: pa.Array) -> pa.Array:
    # The only type without a kernel in C++; it is rare in results.
    return pa.array(
        [None if value is None else base64.b64encode(value).decode() for value in values.to_pylist()], pa.string()
    )


def _nested(values: pa.Array, type: ColumnType, parametric: bool) -> pa.Array:
    if pa.types.is_struct(values.type):
        inside = [
            _texts(pc.struct_field(values, [place]), inner, parametric) for place, (_, inner) in enumerate(type.fields)
        ]
        texts = pc.binary_join_element_wise("[", _beside(inside), "]", "") if inside else pa.array(["[]"] * len(values))
        return pc.if_else(pc.is_valid(values), texts, pa.scalar(None, pa.string()))
    if pa.types.is_map(values.type):
        # Keys of an object are texts, whatever their type.
        keys = _texts(_slice_of(values, values.keys), type.fields[0][1], parametric)
        keys = keys if keys.quoted else _Texts(_escaped(json_inside.shown(keys.texts, values.type.key_type)), True)
        items = pc.fill_null(_texts(_slice_of(values, values.items), type.fields[1][1], parametric).written(), _NULL)
        joined, opening, closing = pc.binary_join_element_wise(keys.written(), items, ":"), "{", "}"
    else:
        if not pa.types.is_list(values.type):
            values = values.cast(pa.list_(values.type.value_type))
        inner = _texts(_slice_of(values, values.values), type.fields[0][1], parametric)
        joined, opening, closing = pc.fill_null(inner.written(), _NULL), "[", "]"
    offsets = pc.subtract(values.offsets, values.offsets[0]) if len(values) else values.offsets
    lists = pc.binary_join(pa.ListArray.from_arrays(offsets, joined), ",")
    texts = pc.binary_join_element_wise(opening, lists, closing, "")
    return pc.if_else(pc.is_valid(values), texts, pa.scalar(None, pa.string()))


def _slice_of(values: pa.Array, inside: pa.Array) -> pa.Array:
    """Return what is inside of these lists, and not of all that their buffer holds."""
    if not len(values):
        return inside.slice(0, 0)
    start, end = values.offsets[0].as_py(), values.offsets[-1].as_py()
    return inside.slice(start, end - start)
