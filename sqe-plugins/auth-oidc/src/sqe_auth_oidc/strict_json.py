"""JSON of strangers and of identity providers, read so that no two readers can understand it differently (JWT-6)."""

from __future__ import annotations

from typing import Any

from sqe_core.spi import read_json

_MOST_VALUES = 20_000


def read_object(raw: bytes, *, depth: int) -> dict[str, Any]:
    """Read one object. Raises ValueError for everything that is not exactly one, without repeating any of it."""
    try:
        document = read_json(raw)
    except ValueError:
        raise ValueError("is no JSON") from None
    if not isinstance(document, dict):
        raise ValueError("is no JSON object")
    _check(document, depth)
    return document


def _check(document: dict[str, Any], depth: int) -> None:
    """Bound depth and size, and refuse what cannot be written again: half characters."""
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
        if seen > _MOST_VALUES:
            raise ValueError("holds too many values")
        level = following
