"""SQL's LIKE over a list of names: `%` any text, `_` one character, `\\` escapes."""

from __future__ import annotations

import re
from collections.abc import Callable


def like_filter(pattern: str | None) -> Callable[[str], bool]:
    """Return what tells whether a name matches; no pattern matches all. Case counts, as in Trino."""
    if pattern is None:
        return lambda _: True
    parts: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if character == "\\":
            parts.append(re.escape(next(characters, "\\")))
        elif character == "%":
            parts.append(".*")
        elif character == "_":
            parts.append(".")
        else:
            parts.append(re.escape(character))
    matcher = re.compile("".join(parts), re.DOTALL)
    return lambda name: matcher.fullmatch(name) is not None
