"""JSON of strangers and of identity providers, read so that no two readers can understand it differently (JWT-6)."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

_MOST_VALUES = 20_000


def read_object(raw: bytes, *, depth: int) -> dict[str, Any]:
    """Read one object. Raises ValueError for everything that is not exactly one, without repeating any of it."""
    try:
        # json would guess UTF-16 from the first bytes.
        text = raw.decode("utf-8")
        document = json.loads(text, object_pairs_hook=_without_duplicates, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise ValueError("is no JSON") from None
    if not isinstance(document, dict):
        raise ValueError("is no JSON object")
    _check(document, depth)
    return document


def _check(document: dict[str, Any], depth: int) -> None:
    """Bound depth and size, and refuse what cannot be written again: half characters and infinite numbers."""
    level: list[Any] = [document]
    seen = 0
    while level:
        if depth < 0:
            raise ValueError("is nested too deeply")
        depth -= 1
        following: list[Any] = []
        for value in level:
            seen += 1
            if isinstance(value, str):
                if not value.isascii():
                    value.encode()  # a UnicodeEncodeError is a ValueError
            elif isinstance(value, dict):
                following += value.keys()
                following += value.values()
            elif isinstance(value, list):
                following += value
            elif isinstance(value, float) and not math.isfinite(value):
                raise ValueError("holds a number that is none")
        if seen > _MOST_VALUES:
            raise ValueError("holds too many values")
        level = following


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice in an object")
    return found


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON")
