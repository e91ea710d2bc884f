"""The Arrow type of a column, as results carry it; the bridge's ArrowTypes.java decides for its own tables."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from sqe_core.catalog.types import display_type, nested_type
from sqe_core.spi.catalog import Column

_TYPES = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ltz": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "timestamp_ns": pa.timestamp("ns"),
    "timestamptz_ns": pa.timestamp("ns", "UTC"),
    "binary": pa.binary(),
    "void": pa.null(),
}


def arrow_schema(columns: Sequence[Column]) -> pa.Schema:
    """Return the columns of a table as a query of them has them, with their comments."""
    return pa.schema(
        [
            pa.field(
                column.name,
                column.arrow_type or arrow_type(column.type),
                nullable=column.nullable,
                metadata={"sql_type": display_type(column.type)}
                | ({"comment": column.comment} if column.comment else {}),
            )
            for column in columns
        ]
    )


def arrow_type(spark_type: str) -> pa.DataType:
    """Return the Arrow type of a type in Spark's notation; what Arrow has no word for travels as text.

    Example:
        >>> arrow_type("array<decimal(10,2)>")
        ListType(list<element: decimal128(10, 2)>)
    """
    text = spark_type.strip()
    if text in _TYPES:
        return _TYPES[text]
    if text.startswith("decimal"):
        precision, _, scale = text.removeprefix("decimal").strip("()").partition(",")
        return pa.decimal128(int(precision or 10), int(scale or 0))
    if text.startswith("fixed("):
        return pa.binary(int(text.removeprefix("fixed").strip("()")))
    if text.startswith("interval"):
        return pa.month_day_nano_interval() if "year" in text or text.endswith("month") else pa.duration("us")
    if text.startswith(("geometry", "geography")):
        return pa.binary()
    kind, inside = nested_type(text)
    inner = [pa.field(each.name, arrow_type(each.type), nullable=each.nullable) for each in inside]
    match kind:
        case "array":
            return pa.list_(inner[0])
        case "map":
            return pa.map_(inner[0].type, inner[1].type)
        case "struct":
            return pa.struct(inner)
    return pa.string()
