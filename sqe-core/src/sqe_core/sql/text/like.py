"""SQL's LIKE over a list of names: `%` any text, `_` one character, `\\` escapes."""

from __future__ import annotations

import re
from collections.abc import Callable

from sqe_core.spi.errors import ErrorCode, UserError

_MOST_CHARACTERS = 1000


def like_filter(pattern: str | None) -> Callable[[str], bool]:
    """Return what tells whether a name matches; no pattern matches all. Case counts, as in Trino."""
    if pattern is None or pattern == "%":
        return lambda _: True
    if len(pattern) > _MOST_CHARACTERS:
        raise UserError(
            f"A pattern of LIKE has {_MOST_CHARACTERS} characters at most here",
            code=ErrorCode.INVALID_ARGUMENTS,
            hint="shorten it, and use % for the rest",
        )
    first, *others = _texts(pattern)
    # What stands between two % is found at its first place and stays there (`?>`): to try every other place too would
    # take time that doubles with each of them, and nobody could end it.
    inner = "".join(f"(?>.*?{text})" for text in others[:-1] if text)
    last = f".*{others[-1]}" if others else ""
    matcher = re.compile(first + inner + last, re.DOTALL)
    return lambda name: matcher.fullmatch(name) is not None


def escaped_pattern(pattern: str, escape: str) -> str:
    """Return a pattern of LIKE whose escape is the backslash."""
    written: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            following = next(characters, "")
            written.append(f"\\{following}" if following in ("%", "_", "\\") else following or "\\\\")
        else:
            written.append("\\\\" if character == "\\" else character)
    return "".join(written)


def _texts(pattern: str) -> list[str]:
    """What stands between the `%`, as regular expressions."""
    texts = [""]
    characters = iter(pattern)
    for character in characters:
        if character == "%":
            texts.append("")
        elif character == "_":
            texts[-1] += "."
        else:
            texts[-1] += re.escape(next(characters, "\\") if character == "\\" else character)
    return texts
