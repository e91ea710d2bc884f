"""The names of types, as users of the default dialect know them."""

from __future__ import annotations

from collections.abc import Iterator

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


def display_type(spark_type: str) -> str:
    """Return the SQL name of a type in Spark's notation.

    Example:
        >>> display_type("array<struct<a:int,b:string>>")
        'array(row(a integer, b varchar))'
    """
    text = spark_type.strip()
    head, _, rest = text.partition("<")
    if not rest.endswith(">"):
        return _NAMES.get(text.lower(), text.lower())
    inner = list(split_outside_brackets(rest[:-1], ","))
    match head.lower():
        case "struct":
            return "row(" + ", ".join(_field(part) for part in inner) + ")"
        case "array" | "map" as kind:
            return f"{kind}(" + ", ".join(display_type(part) for part in inner) + ")"
    return text.lower()


def _field(text: str) -> str:
    name, _, type_text = text.strip().partition(":")
    type_text = type_text.partition(" COMMENT ")[0].removesuffix(" NOT NULL")
    return f"{name} {display_type(type_text)}"


def split_outside_brackets(text: str, separator: str) -> Iterator[str]:
    """Split at separators outside brackets."""
    depth, start = 0, 0
    for place, character in enumerate(text):
        if character in "<(":
            depth += 1
        elif character in ">)":
            depth -= 1
        elif character == separator and depth == 0:
            yield text[start:place]
            start = place + 1
    yield text[start:]


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
