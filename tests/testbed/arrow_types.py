"""Types of Arrow as tests compare them."""

from __future__ import annotations

import pyarrow as pa


def plain(type: pa.DataType) -> pa.DataType:
    """The type without the names of its elements and whether they may be NULL."""
    if pa.types.is_list(type):
        return pa.list_(plain(type.value_type))
    if pa.types.is_map(type):
        return pa.map_(plain(type.key_type), plain(type.item_type))
    if pa.types.is_struct(type):
        return pa.struct([pa.field(each.name, plain(each.type)) for each in type])
    return type
