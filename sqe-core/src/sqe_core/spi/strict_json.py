"""JSON of strangers, read so that no two readers can understand it differently (JWT-6)."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn


def read_json(text: str | bytes) -> Any:
    """Read one JSON document of which somebody else decides what stands in it.

    Python's own reader keeps the last of two equal keys, takes `NaN` and `Infinity` for numbers, makes infinity of a
    number that is too large for it, and guesses from the first bytes whether they are UTF-8. Another reader may see
    something else in each of these, and in half a surrogate pair (`"\\ud800"`), so they are refused.

    Args:
        text: the document; bytes are UTF-8, without a byte order mark.

    Returns:
        The document, of dicts, lists, strings, finite numbers, booleans and None.

    Raises:
        ValueError: it is no JSON, or one of the above. How deep a document may be nested depends on Python's stack;
            one that is too deep is refused, too. The message says where, and repeats no text of it.

    Example:
        >>> read_json('{"sub": "anna", "roles": ["analyst"]}')
        {'sub': 'anna', 'roles': ['analyst']}
        >>> read_json('{"sub": "anna", "sub": "bob"}')
        Traceback (most recent call last):
        ValueError: a key stands twice in an object
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8")
    try:
        found = json.loads(
            text, object_pairs_hook=_without_duplicates, parse_float=_finite, parse_constant=_refuse_constant
        )
        if "\\u" in text:  # nothing else can write one
            json.dumps(found, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except UnicodeEncodeError:
        raise ValueError("half a surrogate pair is no text") from None
    return found


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice in an object")
    return found


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number is too large")
    return number


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON")
