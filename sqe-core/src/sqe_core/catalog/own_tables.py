"""The tables that are nobody's but SQE's: `information_schema` of each catalog, and the catalog `system`.

Statements of Trino's dialect see Trino's tables with Trino's columns, as its drivers and tools ask for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from sqe_core.spi.catalog import Column

_TEXT, _LONG, _TIME = pa.string(), pa.int64(), pa.timestamp("us", tz="UTC")
_TYPES = {
    "": _TEXT,
    "long": _LONG,
    "time": _TIME,
    "bool": pa.bool_(),
    "double": pa.float64(),
    "texts": pa.list_(_TEXT),
    "doubles": pa.map_(_TEXT, pa.float64()),
}
_SPARK_TYPES = {
    _TEXT: "string",
    _LONG: "bigint",
    _TIME: "timestamp_ltz",
    pa.bool_(): "boolean",
    pa.float64(): "double",
    pa.list_(_TEXT): "array<string>",
    pa.map_(_TEXT, pa.float64()): "map<string,double>",
}

Tables = Mapping[str, pa.Schema]


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnTables:
    """What there is, with its columns: in each catalog, and by schema in `system`."""

    information_schema: Tables
    system: Mapping[str, Tables]
    lists_system: bool = False
    """Whether `system` is among the catalogs that are listed."""
    hidden: Tables = field(default_factory=dict)
    """Further columns of tables of `information_schema`, at the end of rows.

    Who names them reads them; `*` leaves them out, but for what the engine runs and that names one of them.
    """


def table(columns: str) -> pa.Schema:
    """Return the columns of a text: names, each with `:` and its type where it is no text.

    Example:
        >>> table("name size:long").names
        ['name', 'size']
    """
    parts = [each.partition(":") for each in columns.split()]
    return pa.schema([(name, _TYPES[type]) for name, _, type in parts])


def own_columns(schema: pa.Schema) -> tuple[Column, ...]:
    """Return the columns of a table of ours as those of any other."""
    return tuple(Column(name=field.name, type=_SPARK_TYPES[field.type]) for field in schema)
