"""Text on a terminal: what must not reach it, and how much room it takes."""

from __future__ import annotations

import re
import unicodedata

# Control characters, and those that turn the direction of text.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
# The same for whole lines, where the end of a line and the tab are meant.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_NAMED_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_CUT = "…"


def escape_unprintable(text: str) -> str:
    """Write characters that would move the cursor, or worse, as escapes."""
    return text if text.isprintable() else _UNPRINTABLE.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    code = ord(character)
    return _NAMED_ESCAPES.get(character) or (f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}")


def clean(text: str) -> str:
    """Replace control characters in text that keeps its lines."""
    return _UNSAFE.sub("\N{REPLACEMENT CHARACTER}", text)


def display_width(text: str) -> int:
    """How many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(_character_width(character) for character in text)


def _character_width(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def cut(text: str, width: int) -> str:
    """Shorten a text to a width, marked by an ellipsis."""
    if display_width(text) <= width:
        return text
    kept, used = [], 0
    for character in text:
        used += _character_width(character)
        if used > width - 1:
            break
        kept.append(character)
    return "".join(kept) + _CUT
