"""What a type in the engine's notation has inside: `array<int>`, ``struct<a:decimal(5,2),`b c`:map<string,int>>``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

_NESTED = re.compile(r"(array|map|struct)<(.*)>", re.DOTALL)
_FIELD = re.compile(r"(?:`((?:[^`]|``)*)`|([^`:]*)):(.*)", re.DOTALL)
_NAMES = {"array": ("element",), "map": ("key", "value")}


def type_arguments(type: str) -> tuple[str, Mapping[str, str]]:
    """Return the kind of a nested type and the types inside of it by name, in lower case; other types have none.

    Example:
        >>> type_arguments("struct<A:int,`b,c`:array<int>>")
        ('struct', {'a': 'int', 'b,c': 'array<int>'})
    """
    nested = _NESTED.fullmatch(type)
    if nested is None:
        return type, {}
    kind, inside = nested.groups()
    parts = list(_split(inside))
    if kind != "struct":
        return kind, dict(zip(_NAMES[kind], parts, strict=True))
    fields = (_FIELD.fullmatch(part) for part in parts)
    return kind, {_name(field).lower(): field[3] for field in fields if field is not None}


def _name(field: re.Match[str]) -> str:
    return field[2] if field[1] is None else field[1].replace("``", "`")


def _split(text: str) -> Iterator[str]:
    """Split at commas, but for those inside of brackets and of names in quotes."""
    depth, start, quoted = 0, 0, False
    for place, character in enumerate(text):
        if character == "`":
            quoted = not quoted
        elif not quoted:
            depth += (character in "<(") - (character in ">)")
            if character == "," and not depth:
                yield text[start:place]
                start = place + 1
    yield text[start:]
