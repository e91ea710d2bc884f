"""Which word of SQL somebody may have meant. Only words of the language are offered, never a name of the data."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

_WORD = re.compile(r"[A-Z]{2,}")


def meant(word: str, known: Iterable[str]) -> str | None:
    """Return the hint for a word that is close to one of these, and none of them."""
    words = [each.lower() for each in known]
    found = [] if word.lower() in words else get_close_matches(word.lower(), words, n=1, cutoff=0.7)
    return f"did you mean {found[0].upper()}?" if found else None


def keywords(expected: str | None) -> list[str]:
    """The words of the language in a sentence about what was expected."""
    return _WORD.findall(expected or "")
