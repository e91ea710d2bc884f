"""The line of each key of a TOML document that tomllib accepted, which reads it once more, statement by statement."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any

from sqe_core.config.origin import KeyPath


def key_lines(text: str) -> dict[KeyPath, int]:
    """Map every table and every key to the line where it begins, counted from 1."""
    lines: dict[KeyPath, int] = {}
    counts: dict[KeyPath, int] = {}
    table: KeyPath = ()
    for number, statement, document in _statements(text):
        if statement.lstrip().startswith("["):
            table = _header(document, counts)
            paths = [table]
        else:
            paths = [(*table, *path) for path in _paths(document)]
        for path in paths:
            lines[path] = number
            for length in range(1, len(path)):
                lines.setdefault(path[:length], number)
    return lines


def _statements(text: str) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Split at the ends of lines behind which everything is closed."""
    begun, first = "", 1
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        first = first if begun else number
        begun += line + "\n"
        if line.endswith(","):
            continue  # nothing ends so, and long arrays are not read again for each of their entries
        try:
            document = tomllib.loads(begun)
        except tomllib.TOMLDecodeError:
            continue
        yield first, begun, document
        begun = ""


def _header(document: dict[str, Any], counts: dict[KeyPath, int]) -> KeyPath:
    """Read `[a.b]` and `[[a.b]]`; one below an array of tables speaks of its last entry."""
    path: KeyPath = ()
    below: Any = document
    while below:
        ((key, below),) = below.items()
        path = (*path, key)
        if isinstance(below, list):
            counts[path] = counts.get(path, -1) + 1
            below = None
        if path in counts:
            path = (*path, counts[path])
    return path


def _paths(document: dict[str, Any]) -> Iterator[KeyPath]:
    for key, below in document.items():
        yield (key,)
        if isinstance(below, dict):
            yield from ((key, *path) for path in _paths(below))
