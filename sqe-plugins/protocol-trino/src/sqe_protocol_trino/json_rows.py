"""Rows as Trino's JSON, made from Arrow by columns: each step is one call into C++ for a whole column.

A column becomes a column of JSON texts (`json_values`), the columns of a row are joined, then the rows.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sqe_core.spi import ColumnType
from sqe_protocol_trino import json_times
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
    at_once = max(1, min(rows, rows * at_most // max(1, batch.nbytes)))
    for start in range(0, rows, at_once):
        part = batch.slice(start, at_once)
        yield part.num_rows, _rows(part, types, parametric)


def _rows(batch: pa.RecordBatch, types: Sequence[ColumnType], parametric: bool) -> bytes:
    if not types:
        return b",".join([b"[]"] * batch.num_rows)
    values = [json_values(column, type, parametric) for column, type in zip(batch.columns, types, strict=True)]
    return b"[" + _joined(_beside(values), "],[") + b"]"


def _beside(values: Sequence[pa.Array]) -> pa.Array:
    if len(values) == 1:
        return pc.fill_null(values[0], _NULL)
    return pc.binary_join_element_wise(*values, ",", null_handling="replace", null_replacement=_NULL)


def _joined(texts: pa.Array, separator: str) -> bytes:
    whole = pa.LargeListArray.from_arrays(pa.array([0, len(texts)], pa.int64()), texts)
    joined = pc.binary_join(whole, separator)
    buffer = joined.buffers()[2]
    return bytes(buffer) if buffer is not None else b""


def json_values(values: pa.Array, type: ColumnType, parametric: bool = True) -> pa.Array:
    """Return the JSON text of each value; NULL stays NULL."""
    if isinstance(values, pa.DictionaryArray):
        values = values.dictionary_decode()
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    name, arrow = trino_name(type), values.type
    if pa.types.is_null(arrow):
        return pa.nulls(len(values), pa.string())
    if name in ("array", "map", "row") and pa.types.is_nested(arrow):
        return _nested(values, type, parametric)
    if pa.types.is_floating(arrow):
        return _floating(values)
    if pa.types.is_boolean(arrow) or pa.types.is_integer(arrow):
        return values.cast(pa.string())
    if pa.types.is_timestamp(arrow) or pa.types.is_time(arrow):
        return _quoted(json_times.moment_texts(values, type, parametric))
    if pa.types.is_duration(arrow):
        return _quoted(json_times.duration_texts(values))
    if pa.types.is_interval(arrow):
        return _quoted(json_times.interval_texts(values))
    if pa.types.is_binary(arrow) or pa.types.is_large_binary(arrow) or pa.types.is_fixed_size_binary(arrow):
        return _quoted(_base64(values))
    if pa.types.is_string(arrow) or pa.types.is_large_string(arrow):
        return _quoted(_escaped(_padded(values, type) if name == "char" else values))
    return _quoted(_decimal_texts(values) if pa.types.is_decimal(arrow) else values.cast(pa.string()))


def _decimal_texts(values: pa.Array) -> pa.Array:
    texts = values.cast(pa.string())
    if not pc.any(pc.match_substring(texts, "E")).as_py():
        return texts
    # Very small ones: the kernel writes 1E-38, and clients show what they read.
    return pa.array([None if value is None else f"{value:f}" for value in values.to_pylist()], pa.string())


def _quoted(texts: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise('"', texts.cast(pa.string()), '"', "")


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
    if not _has_specials(texts):
        return texts
    texts = pc.replace_substring(pc.replace_substring(texts, "\\", "\\\\"), '"', '\\"')
    for character, escape in _ESCAPES.items():
        if pc.any(pc.match_substring(texts, character)).as_py():
            texts = pc.replace_substring(texts, character, escape)
    return texts


def _has_specials(texts: pa.Array) -> bool:
    """Whether a quote, a backslash or a control character is anywhere: looked for in all bytes at once."""
    _, offsets, data = texts.buffers()
    if data is None or not len(texts):
        return False
    places = np.frombuffer(offsets, np.int64 if pa.types.is_large_string(texts.type) else np.int32)
    start, end = places[texts.offset], places[texts.offset + len(texts)]
    octets = np.frombuffer(data, np.uint8)[start:end]
    return bool((octets < 0x20).any() or (octets == 0x22).any() or (octets == 0x5C).any())


def _base64(values: pa.Array) -> pa.Array:
    # The only type without a kernel in C++; it is rare in results.
    return pa.array(
        [None if value is None else base64.b64encode(value).decode() for value in values.to_pylist()], pa.string()
    )


def _nested(values: pa.Array, type: ColumnType, parametric: bool) -> pa.Array:
    if pa.types.is_struct(values.type):
        inside = [
            json_values(pc.struct_field(values, [place]), inner, parametric)
            for place, (_, inner) in enumerate(type.fields)
        ]
        texts = pc.binary_join_element_wise("[", _beside(inside), "]", "") if inside else pa.array(["[]"] * len(values))
        return pc.if_else(pc.is_valid(values), texts, pa.scalar(None, pa.string()))
    if pa.types.is_map(values.type):
        keys = _keys(json_values(_slice_of(values, values.keys), type.fields[0][1], parametric))
        items = pc.fill_null(json_values(_slice_of(values, values.items), type.fields[1][1], parametric), _NULL)
        inside_texts, opening, closing = pc.binary_join_element_wise(keys, items, ":"), "{", "}"
    else:
        if not pa.types.is_list(values.type):
            values = values.cast(pa.list_(values.type.value_type))
        inside_texts = pc.fill_null(json_values(_slice_of(values, values.values), type.fields[0][1], parametric), _NULL)
        opening, closing = "[", "]"
    offsets = pc.subtract(values.offsets, values.offsets[0]) if len(values) else values.offsets
    joined = pc.binary_join(pa.ListArray.from_arrays(offsets, inside_texts), ",")
    texts = pc.binary_join_element_wise(opening, joined, closing, "")
    return pc.if_else(pc.is_valid(values), texts, pa.scalar(None, pa.string()))


def _slice_of(values: pa.Array, inside: pa.Array) -> pa.Array:
    """Return what is inside of these lists, and not of all that their buffer holds."""
    if not len(values):
        return inside.slice(0, 0)
    start, end = values.offsets[0].as_py(), values.offsets[-1].as_py()
    return inside.slice(start, end - start)


def _keys(texts: pa.Array) -> pa.Array:
    """Return keys of an object: all are texts there."""
    if not len(texts) or texts[0].as_py().startswith('"'):
        return texts
    return pc.binary_join_element_wise('"', _escaped(texts), '"', "")
