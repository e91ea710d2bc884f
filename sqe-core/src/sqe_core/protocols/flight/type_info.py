"""The types of the SQL dialect, in the numbers of ODBC and JDBC (`CommandGetXdbcTypeInfo`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from sqe_core.protocols.flight.wire import flight_sql_pb2 as sql

_TEXT, _INT, _BOOL = pa.string(), pa.int32(), pa.bool_()
TYPE_INFO_SCHEMA = pa.schema(
    [
        pa.field("type_name", _TEXT, nullable=False),
        pa.field("data_type", _INT, nullable=False),
        pa.field("column_size", _INT),
        pa.field("literal_prefix", _TEXT),
        pa.field("literal_suffix", _TEXT),
        pa.field("create_params", pa.list_(pa.field("item", _TEXT, nullable=False))),
        pa.field("nullable", _INT, nullable=False),
        pa.field("case_sensitive", _BOOL, nullable=False),
        pa.field("searchable", _INT, nullable=False),
        pa.field("unsigned_attribute", _BOOL),
        pa.field("fixed_prec_scale", _BOOL, nullable=False),
        pa.field("auto_increment", _BOOL),
        pa.field("local_type_name", _TEXT),
        pa.field("minimum_scale", _INT),
        pa.field("maximum_scale", _INT),
        pa.field("sql_data_type", _INT, nullable=False),
        pa.field("datetime_subcode", _INT),
        pa.field("num_prec_radix", _INT),
        pa.field("interval_precision", _INT),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Type:
    name: str
    number: int
    size: int | None = None
    prefix: str | None = None
    suffix: str | None = None
    parameters: tuple[str, ...] = ()
    scales: tuple[int, int] | None = None
    radix: int | None = None
    subcode: int | None = None
    sql_number: int | None = None
    case_sensitive: bool = False

    def row(self) -> dict[str, Any]:
        numeric = self.radix is not None
        return {
            "type_name": self.name,
            "data_type": self.number,
            "column_size": self.size,
            "literal_prefix": self.prefix,
            "literal_suffix": self.suffix,
            "create_params": list(self.parameters) or None,
            "nullable": sql.NULLABILITY_NULLABLE,
            "case_sensitive": self.case_sensitive,
            "searchable": sql.SEARCHABLE_FULL if self.case_sensitive else sql.SEARCHABLE_BASIC,
            "unsigned_attribute": False if numeric else None,
            "fixed_prec_scale": False,
            "auto_increment": False if numeric else None,
            "local_type_name": self.name,
            "minimum_scale": self.scales[0] if self.scales else None,
            "maximum_scale": self.scales[1] if self.scales else None,
            "sql_data_type": self.sql_number if self.sql_number is not None else self.number,
            "datetime_subcode": self.subcode,
            "num_prec_radix": self.radix,
            "interval_precision": None,
        }


_TYPES = (
    _Type(name="boolean", number=sql.XDBC_BIT, size=1),
    _Type(name="tinyint", number=sql.XDBC_TINYINT, size=3, scales=(0, 0), radix=10),
    _Type(name="bigint", number=sql.XDBC_BIGINT, size=19, scales=(0, 0), radix=10),
    _Type(name="varbinary", number=sql.XDBC_VARBINARY, prefix="X'", suffix="'"),
    _Type(
        name="decimal", number=sql.XDBC_DECIMAL, size=38, parameters=("precision", "scale"), scales=(0, 38), radix=10
    ),
    _Type(name="integer", number=sql.XDBC_INTEGER, size=10, scales=(0, 0), radix=10),
    _Type(name="smallint", number=sql.XDBC_SMALLINT, size=5, scales=(0, 0), radix=10),
    _Type(name="real", number=sql.XDBC_REAL, size=24, radix=2),
    _Type(name="double", number=sql.XDBC_DOUBLE, size=53, radix=2),
    _Type(name="varchar", number=sql.XDBC_VARCHAR, prefix="'", suffix="'", case_sensitive=True),
    _Type(
        name="date",
        number=sql.XDBC_DATE,
        size=10,
        prefix="DATE '",
        suffix="'",
        sql_number=sql.XDBC_DATETIME,
        subcode=sql.XDBC_SUBCODE_DATE,
    ),
    _Type(
        name="time(6)",
        number=sql.XDBC_TIME,
        size=15,
        prefix="TIME '",
        suffix="'",
        scales=(6, 6),
        sql_number=sql.XDBC_DATETIME,
        subcode=sql.XDBC_SUBCODE_TIME,
    ),
    _Type(
        name="timestamp(6)",
        number=sql.XDBC_TIMESTAMP,
        size=26,
        prefix="TIMESTAMP '",
        suffix="'",
        scales=(6, 6),
        sql_number=sql.XDBC_DATETIME,
        subcode=sql.XDBC_SUBCODE_TIMESTAMP,
    ),
    _Type(
        name="timestamp(6) with time zone",
        number=sql.XDBC_TIMESTAMP,
        size=32,
        prefix="TIMESTAMP '",
        suffix="'",
        scales=(6, 6),
        sql_number=sql.XDBC_DATETIME,
        subcode=sql.XDBC_SUBCODE_TIMESTAMP_WITH_TIMEZONE,
    ),
)


def type_info(wanted: int | None) -> pa.Table:
    """Return the types with one number, or all, in the order of their numbers as ODBC wants it."""
    rows = [entry.row() for entry in sorted(_TYPES, key=lambda entry: entry.number) if wanted in (None, entry.number)]
    return pa.Table.from_pylist(rows, schema=TYPE_INFO_SCHEMA)
