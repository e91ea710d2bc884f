"""What JDBC calls types: `java.sql.Types`, sizes and digits, as Trino's `system.jdbc` tells them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqe_core.catalog.types import display_type

_LONGEST = 2**31 - 1
_ZONE_NAME = 32  # the longest name of a time zone that Java knows
_PARAMETERS = re.compile(r"\(([0-9]+)(?:,\s*([0-9]+))?\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class JdbcType:
    """A type as JDBC describes it; what does not apply is None."""

    name: str
    code: int
    size: int | None = None
    digits: int | None = None
    radix: int | None = None
    octets: int | None = None


_PLAIN = {
    "boolean": JdbcType(name="boolean", code=16),
    "tinyint": JdbcType(name="tinyint", code=-6, size=3, radix=10),
    "smallint": JdbcType(name="smallint", code=5, size=5, radix=10),
    "integer": JdbcType(name="integer", code=4, size=10, radix=10),
    "bigint": JdbcType(name="bigint", code=-5, size=19, radix=10),
    "real": JdbcType(name="real", code=7, size=24, radix=2),
    "double": JdbcType(name="double", code=8, size=53, radix=2),
    "varchar": JdbcType(name="varchar", code=12, size=_LONGEST, octets=_LONGEST),
    "varbinary": JdbcType(name="varbinary", code=-3, size=_LONGEST, octets=_LONGEST),
    "date": JdbcType(name="date", code=91, size=14),
}
_OTHER, _ARRAY = 2000, 2003


def jdbc_type(spark_type: str) -> JdbcType:
    """Describe a type in Spark's notation.

    Example:
        >>> jdbc_type("decimal(10,2)").size
        10
    """
    return described(display_type(spark_type))


def described(name: str) -> JdbcType:
    """Describe a type by the name that Trino has for it."""
    plain = _PLAIN.get(name)
    if plain is not None:
        return plain
    word, found = name.partition("(")[0].strip(), _PARAMETERS.search(name)
    first = int(found[1]) if found else 0
    match word:
        case "decimal":
            scale = int(found[2] or 0) if found else 0
            return JdbcType(name=name, code=3, size=first, digits=scale, radix=10)
        case "varchar":
            return JdbcType(name=name, code=12, size=first, octets=first)
        case "char":
            return JdbcType(name=name, code=1, size=first, octets=first)
        case "array":
            return JdbcType(name=name, code=_ARRAY)
        case "time" | "timestamp":
            fraction = min(first, 1) + first
            zone = name.endswith("with time zone")
            if word == "time":
                return JdbcType(name=name, code=2013 if zone else 92, size=8 + fraction + 6 * zone, digits=first)
            size = (1 + 6 + 15 + fraction + 1 + _ZONE_NAME) if zone else (1 + 5 + 15 + fraction)
            return JdbcType(name=name, code=2014 if zone else 93, size=size, digits=first)
    return JdbcType(name=name, code=_OTHER)


PARAMETRIC = (
    *("array", "char", "decimal", "map", "row", "time", "time with time zone", "timestamp", "timestamp with time zone"),
    "varchar",
)
"""What has numbers or types behind it: without those, nothing is told of it but that it is there."""

ALL_TYPES = (
    *(each for each in _PLAIN.values() if each.name not in PARAMETRIC),
    *(JdbcType(name=name, code=_ARRAY if name == "array" else _OTHER) for name in PARAMETRIC),
    *map(described, ("interval day to second", "interval year to month", "json", "uuid", "ipaddress", "unknown")),
)
"""What `getTypeInfo` lists."""
