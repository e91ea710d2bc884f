"""Arrow values that are another value to SQL: extension types that are text here, dictionaries, views."""

from __future__ import annotations

import uuid
from typing import Any

import pyarrow as pa
import pyarrow.types as kinds

_UUID = "arrow.uuid"
_TEXTS = frozenset({_UUID, "arrow.json"})


def unwrapped_type(type: pa.DataType) -> pa.DataType:
    """Return the type that its values have in SQL; an extension type that is not known here stays."""
    if isinstance(type, pa.BaseExtensionType):
        return pa.string() if type.extension_name in _TEXTS else type
    if kinds.is_dictionary(type):
        return unwrapped_type(type.value_type)
    if kinds.is_string_view(type):
        return pa.string()
    if kinds.is_binary_view(type):
        return pa.binary()
    return type


def unwrapped(scalar: pa.Scalar[Any]) -> pa.Scalar[Any]:
    """Return one value without its extension type and its dictionary."""
    if isinstance(scalar, pa.DictionaryScalar):
        return unwrapped(scalar.value)
    if isinstance(scalar, pa.ExtensionScalar) and scalar.type.extension_name in _TEXTS:
        stored = None if scalar.value is None else scalar.value.as_py()
        return pa.scalar(_text(scalar.type, stored), pa.string())
    return scalar


def unwrapped_texts(values: pa.ExtensionArray[Any]) -> pa.Array[Any]:
    """Return the values of an extension type that is text in SQL."""
    if values.type.extension_name != _UUID:
        return values.storage
    return pa.array([_text(values.type, value) for value in values.storage.to_pylist()], pa.string())


def _text(type: pa.BaseExtensionType, stored: Any) -> str | None:
    if stored is None or type.extension_name != _UUID:
        return stored  # type: ignore[no-any-return]
    return str(uuid.UUID(bytes=stored))
