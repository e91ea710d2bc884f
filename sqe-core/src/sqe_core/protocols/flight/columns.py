"""What Flight SQL's clients want to know of a column beside its Arrow type, for JDBC and ODBC."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

_PREFIX = b"ARROW:FLIGHT:SQL:"
_NAMES = {
    b"table_catalog": b"CATALOG_NAME",
    b"table_schema": b"SCHEMA_NAME",
    b"table_name": b"TABLE_NAME",
}
# Decimal digits, or letters, of a value, and the digits behind the point.
_SIZES: Mapping[pa.DataType, tuple[int, int]] = {
    pa.bool_(): (1, 0),
    pa.int8(): (3, 0),
    pa.int16(): (5, 0),
    pa.int32(): (10, 0),
    pa.int64(): (19, 0),
    pa.float32(): (9, 0),
    pa.float64(): (17, 0),
    pa.date32(): (10, 0),
    pa.time64("us"): (15, 6),
    pa.timestamp("us"): (26, 6),
    pa.timestamp("us", "UTC"): (32, 6),
    pa.timestamp("ns"): (29, 9),
    pa.timestamp("ns", "UTC"): (35, 9),
}


def described(schema: pa.Schema, table: tuple[str, str, str] | None = None) -> pa.Schema:
    """Add to each column what drivers ask for.

    Args:
        schema: the columns of a result, or of a table.
        table: catalog, schema and name of the table whose columns they are; each knows its own otherwise.
    """
    return pa.schema([_described(column, table) for column in schema])


def _described(column: pa.Field[pa.DataType], table: tuple[str, str, str] | None) -> pa.Field[pa.DataType]:
    known = dict(column.metadata or {})
    names = {told: known.pop(key, None) for key, told in _NAMES.items()}
    if table is not None:
        names = {told: part.encode() for told, part in zip(_NAMES.values(), table, strict=True)}
    told: dict[bytes, bytes | None] = {
        **names,
        b"TYPE_NAME": known.get(b"sql_type"),
        # JDBC calls a column of a result by its remarks.
        b"REMARKS": known.get(b"comment") if table is not None else None,
        b"IS_AUTO_INCREMENT": b"0",
        b"IS_CASE_SENSITIVE": b"1" if pa.types.is_string(column.type) else b"0",
        # What was computed can be written nowhere.
        b"IS_READ_ONLY": b"0" if names[b"TABLE_NAME"] else b"1",
        b"IS_SEARCHABLE": b"1",
    }
    size = _size(column.type)
    if size is not None:
        told[b"PRECISION"], told[b"SCALE"] = (str(number).encode() for number in size)
    return column.with_metadata(known | {_PREFIX + key: value for key, value in told.items() if value is not None})


def _size(type: pa.DataType) -> tuple[int, int] | None:
    if pa.types.is_decimal(type):
        return type.precision, type.scale
    if pa.types.is_timestamp(type) and type.tz is not None:
        type = pa.timestamp(type.unit, "UTC")
    return _SIZES.get(type)
