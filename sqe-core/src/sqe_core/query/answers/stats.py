"""SHOW STATS, in the columns of Trino."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from sqe_core.catalog.information_schema import to_table
from sqe_core.engine.port import ColumnStatistics, EngineCatalog
from sqe_core.spi.catalog import Column
from sqe_core.spi.names import ObjectName

_NUMBER, _TEXT = pa.float64(), pa.string()
_STATS = pa.schema(
    [
        ("column_name", _TEXT),
        ("data_size", _NUMBER),
        ("distinct_values_count", _NUMBER),
        ("nulls_fraction", _NUMBER),
        ("row_count", _NUMBER),
        ("low_value", _TEXT),
        ("high_value", _TEXT),
    ]
)
_NOTHING = ColumnStatistics()


def unknown(columns: Sequence[Column]) -> pa.Table:
    """Return what is told of what somebody sees in part, and of views: the columns, and no number."""
    rows = [(column.name, *(None,) * 6) for column in columns]
    return to_table(_STATS, [*rows, (None,) * 7])


def known(columns: Sequence[Column], metadata: EngineCatalog, name: ObjectName) -> pa.Table:
    """Return what the metadata of a table tells."""
    found = metadata.table_statistics(name.namespace, name.name)
    rows: list[tuple[object, ...]] = []
    for column in columns:
        one = found.columns.get(column.name, _NOTHING)
        nulls = None if one.nulls is None or not found.rows else one.nulls / found.rows
        rows.append((column.name, one.size, one.distinct, nulls, None, one.low, one.high))
    return to_table(_STATS, [*rows, (None, None, None, None, found.rows, None, None)])
