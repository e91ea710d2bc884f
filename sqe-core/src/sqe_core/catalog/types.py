"""The names of types, as users of the default dialect know them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqe_core.spi.names import quote_part

_NAMES = {
    "tinyint": "tinyint",
    "smallint": "smallint",
    "int": "integer",
    "bigint": "bigint",
    "long": "bigint",  # Iceberg's own word
    "float": "real",
    "double": "double",
    "string": "varchar",
    "binary": "varbinary",
    "timestamp": "timestamp(6) with time zone",
    "timestamp_ltz": "timestamp(6) with time zone",
    "timestamp_ntz": "timestamp(6)",
    "timestamp_ns": "timestamp(9)",
    "timestamptz_ns": "timestamp(9) with time zone",
    "time": "time(6)",
    "void": "unknown",
}


_NESTED = re.compile(r"\s*(array|map|struct)<(.*)>\s*", re.DOTALL | re.IGNORECASE)
_FIELD = re.compile(
    r"\s*(?:`((?:[^`]|``)*)`|([^`:]*?))\s*:\s*(.*?)( NOT NULL)?(?: COMMENT '.*')?\s*", re.DOTALL | re.IGNORECASE
)
_INSIDE = {"array": ("element",), "map": ("key", "value")}


@dataclass(frozen=True, slots=True)
class InnerType:
    """A type inside of another one: a field, an element, a key or a value."""

    name: str
    type: str
    nullable: bool = True


def nested_type(spark_type: str) -> tuple[str, Sequence[InnerType]]:
    """Return the kind of a nested type and the types inside of it; other types have none.

    Example:
        >>> nested_type("map<string,array<int>>")[1][1]
        InnerType(name='value', type='array<int>', nullable=True)
    """
    nested = _NESTED.fullmatch(spark_type)
    if nested is None:
        return spark_type, ()
    kind, parts = nested[1].lower(), list(_split(nested[2]))
    if kind != "struct":
        return kind, [InnerType(name, part.strip()) for name, part in zip(_INSIDE[kind], parts, strict=True)]
    fields = [field for part in parts if (field := _FIELD.fullmatch(part)) is not None]
    return kind, [
        InnerType(field[2] if field[1] is None else field[1].replace("``", "`"), field[3], field[4] is None)
        for field in fields
    ]


def _split(text: str) -> Iterator[str]:
    """Split at commas, but for those inside of brackets, of names in quotes and of comments."""
    depth, start, quote = 0, 0, ""
    for place, character in enumerate(text):
        if quote or character in "`'":
            quote = "" if character == quote else quote or character
        else:
            depth += (character in "<(") - (character in ">)")
            if character == "," and not depth:
                yield text[start:place]
                start = place + 1
    yield text[start:]


def display_type(spark_type: str) -> str:
    """Return the SQL name of a type in Spark's notation.

    Example:
        >>> display_type("array<struct<a:int,`b c`:string>>")
        'array(row(a integer, "b c" varchar))'
    """
    kind, inside = nested_type(spark_type.strip())
    if not inside:
        return _NAMES.get(kind.lower(), kind.lower())
    if kind == "struct":
        return f"row({', '.join(f'{_field_name(each.name)} {display_type(each.type)}' for each in inside)})"
    return f"{kind}({', '.join(display_type(each.type) for each in inside)})"


def _field_name(name: str) -> str:
    """Names keep their case, and stand in quotes where they would be misread."""
    return name if name.isidentifier() else quote_part(name)


_INTEGER_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}


def numeric_precision(spark_type: str) -> tuple[int | None, int | None]:
    """Return (precision, scale) as information_schema.columns shows them; (None, None) for other types."""
    if spark_type in _INTEGER_BITS:
        return _INTEGER_BITS[spark_type], 0
    if spark_type.startswith("decimal("):
        precision, scale = spark_type[len("decimal(") : -1].split(",")
        return int(precision), int(scale)
    return None, None


def datetime_precision(spark_type: str) -> int | None:
    """Return the fractional digits of a time type, else None."""
    if spark_type in ("timestamp", "timestamp_ltz", "timestamp_ntz", "time"):
        return 6
    if spark_type.endswith("_ns"):
        return 9
    return 0 if spark_type == "date" else None
