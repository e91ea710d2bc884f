"""Names that are typed after a command, turned into quoted SQL names. Commands never paste text into SQL."""

from __future__ import annotations

import re

_PART = re.compile(r'"((?:[^"]|"")+)"|([^\s".;\']+)')


class BadNameError(ValueError):
    """A text that is no name of one to three parts."""


def parse_name(text: str, *, most: int = 3) -> tuple[str, ...]:
    """Read `table`, `schema.table` or `catalog.schema.table`; unquoted parts fold to lower case."""
    parts: list[str] = []
    position = 0
    while True:
        match = _PART.match(text, position)
        if match is None:
            raise BadNameError(f"{text!r} is no name; write it like schema.table, with double quotes where needed")
        quoted, plain = match.groups()
        parts.append(quoted.replace('""', '"') if quoted is not None else plain.lower())
        position = match.end()
        if position == len(text):
            break
        if text[position] != ".":
            raise BadNameError(f"{text!r} is no name; write it like schema.table, with double quotes where needed")
        position += 1
    if len(parts) > most:
        raise BadNameError(f"{text!r} has {len(parts)} parts; at most {most} are possible here")
    return tuple(parts)


def quote_name(parts: tuple[str, ...]) -> str:
    """Write a name with every part quoted, so that keywords are names too."""
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts)


def quote_text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
