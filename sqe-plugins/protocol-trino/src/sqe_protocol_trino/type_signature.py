"""The types of columns as Trino's clients are told them: a text, and the same as a tree."""

from __future__ import annotations

from typing import Any

from sqe_core.spi import ColumnType, ResultColumn

_LONGEST_VARCHAR = 2**31 - 1
_PRECISE = ("time", "time with time zone", "timestamp", "timestamp with time zone")
_OURS = {
    "variant": "json",
    "string": "varchar",
    "binary": "varbinary",
    "geometry": "varbinary",
    "geography": "varbinary",
}
"""What Trino has no word for; `json_rows` writes the values so."""


def column(result: ResultColumn, *, parametric: bool) -> dict[str, Any]:
    """Return a column of a result.

    Args:
        result: the column.
        parametric: whether the client knows of digits of time; it reads milliseconds otherwise.
    """
    return {
        "name": result.name,
        "type": type_text(result.type, parametric=parametric),
        "typeSignature": signature(result.type, parametric=parametric),
    }


def type_text(type: ColumnType, *, parametric: bool = True) -> str:
    """Return a type as Trino writes it."""
    match trino_name(type):
        case "array" | "map" as name:
            return f"{name}({', '.join(type_text(inner, parametric=parametric) for _, inner in type.fields)})"
        case "row":
            fields = (f"{name} {type_text(inner, parametric=parametric)}".lstrip() for name, inner in named(type))
            return f"row({', '.join(fields)})"
        case name if name in _PRECISE:
            first, _, rest = name.partition(" ")
            return f"{first}({precision(type)}) {rest}".rstrip() if parametric else name
        case name:
            numbers = ", ".join(map(str, type.arguments)) if name == "decimal" else ",".join(map(str, type.arguments))
            return f"{name}({numbers.replace(' ', '')})" if numbers else name


def trino_name(type: ColumnType) -> str:
    """Return the word that Trino has for a type."""
    return _OURS.get(type.name, type.name)


def precision(type: ColumnType) -> int:
    """Return how many digits of a second a time has."""
    return type.arguments[0] if type.arguments else 3


def named(type: ColumnType) -> tuple[tuple[str, ColumnType], ...]:
    """Return the fields of a row; the engine calls those without a name col1, col2, …"""
    if all(name == f"col{at}" for at, (name, _) in enumerate(type.fields, 1)):
        return tuple(("", inner) for _, inner in type.fields)
    return type.fields


def signature(type: ColumnType, *, parametric: bool = True) -> dict[str, Any]:
    """Return a type as a tree."""
    name = trino_name(type)
    arguments: list[dict[str, Any]]
    if name == "row":
        arguments = [
            {
                "kind": "NAMED_TYPE",
                "value": {
                    **({"fieldName": {"name": field}} if field else {}),
                    "typeSignature": signature(inner, parametric=parametric),
                },
            }
            for field, inner in named(type)
        ]
    elif type.fields:
        arguments = [{"kind": "TYPE", "value": signature(inner, parametric=parametric)} for _, inner in type.fields]
    else:
        arguments = [{"kind": "LONG", "value": number} for number in _numbers(name, type, parametric)]
    return {"rawType": name, "arguments": arguments}


def _numbers(name: str, type: ColumnType, parametric: bool) -> tuple[int, ...]:
    if name in _PRECISE:
        return (precision(type),) if parametric else ()
    if name == "varchar" and not type.arguments:
        return (_LONGEST_VARCHAR,)
    return type.arguments
