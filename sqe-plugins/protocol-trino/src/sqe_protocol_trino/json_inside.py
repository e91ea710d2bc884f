"""Arrays, maps and rows with JSON inside, which come as one text, and keys of maps that are no texts."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from sqe_core.spi import ColumnType, NotSupportedError
from sqe_protocol_trino.type_signature import trino_name


def opened(texts: pa.Array, type: ColumnType) -> pa.Array:
    """Return values with JSON inside, which the engine writes as one text, as clients read them: each JSON a text."""
    try:
        read = [None if text is None else _written(_opened(json.loads(text), type)) for text in texts.to_pylist()]
    except RecursionError as error:
        raise NotSupportedError("JSON is nested too deeply for a part of a value", hint="use json_format") from error
    return pa.array(read, pa.string())


def _opened(value: Any, type: ColumnType) -> Any:
    name = trino_name(type)
    if value is None:
        return None
    if name == "json":
        return _written(value)
    inside = [inner for _, inner in type.fields]
    if name == "array":
        return [_opened(each, inside[0]) for each in value]
    if name == "map":
        return {key: _opened(each, inside[1]) for key, each in value.items()}
    if name == "row":
        return [_opened(value.get(field), inner) for field, inner in type.fields]
    return value


def _written(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def shown(texts: pa.Array, type: pa.DataType) -> pa.Array:
    """Return keys as Trino's server shows them: rows and arrays as Java writes lists, anything else as it is."""
    if not pa.types.is_nested(type):
        return texts
    read = (json.loads(text, parse_float=str, parse_int=str) for text in texts.to_pylist())
    return pa.array([_java(value) for value in read], pa.string())


def _java(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_java, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}={_java(each)}" for key, each in value.items()) + "}"
    return value if isinstance(value, str) else json.dumps(value)
