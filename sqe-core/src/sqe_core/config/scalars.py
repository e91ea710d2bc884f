"""Single values: words, numbers, truth values, choices, sizes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from enum import Enum
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from sqe_core.config.origin import Node
from sqe_core.config.values import Share, format_bytes, parse_bytes, parse_duration, parse_share, parse_url

_TRUE = frozenset({"true", "1", "yes"})
_FALSE = frozenset({"false", "0", "no"})


def read_scalar(node: Node, hint: Any, metadata: Mapping[str, Any]) -> Any:
    """Read a single value of the type that a key has; ValueError says what is wrong."""
    value = node.value
    refused = metadata.get("refused", {})
    if isinstance(value, str) and value in refused:
        raise ValueError(refused[value])
    if get_origin(hint) is Literal:
        return _choose(node, get_args(hint))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint(_choose(node, tuple(member.value for member in hint)))
    if hint is Share:
        return parse_share(value)
    if metadata.get("unit") == "bytes":
        return _within(parse_bytes(value), metadata)
    if metadata.get("unit") == "duration":
        return _within(parse_duration(value), metadata)
    if hint is bool:
        return _boolean(node)
    if hint is int or hint is float:
        return _within(_number(node, hint), metadata)
    if hint is str or hint is Path:
        return _string(node, hint, metadata)
    if hint is Any or hint is object:
        return node.plain()
    raise TypeError(f"no key can have the type {hint!r}")


def describe(node: Node) -> str:
    """Say what stands there, for a fault."""
    value = node.value
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return f"the number {value}"
        case str():
            return f'the text "{value}"' if len(value) <= 60 else "a text"
        case dict():
            return "a table"
        case list():
            return "an array"
        case _:
            return f"a {type(value).__name__}"


def _boolean(node: Node) -> bool:
    if isinstance(node.value, bool):
        return node.value
    if node.text and isinstance(node.value, str):
        word = node.value.strip().lower()
        if word in _TRUE | _FALSE:
            return word in _TRUE
        raise ValueError(f"expected true, 1, yes, false, 0 or no, not {describe(node)}")
    raise ValueError(f"expected true or false, not {describe(node)}")


def _number(node: Node, kind: type[int] | type[float]) -> float:
    value = node.value
    if node.text and isinstance(value, str):
        try:
            value = kind(value.strip())
        except ValueError:
            pass
    accepted = (int,) if kind is int else (int, float)
    if isinstance(value, bool) or not isinstance(value, accepted) or value != value:
        raise ValueError(f"expected a {'whole ' if kind is int else ''}number, not {describe(node)}")
    return kind(value)


def _within(number: float, metadata: Mapping[str, Any]) -> float:
    def shown(limit: float) -> str:
        return format_bytes(int(limit)) if metadata.get("unit") == "bytes" else f"{limit:g}"

    if "minimum" in metadata and number < metadata["minimum"]:
        raise ValueError(f"must be at least {shown(metadata['minimum'])}, not {number:g}")
    if "maximum" in metadata and number > metadata["maximum"]:
        raise ValueError(f"must be at most {shown(metadata['maximum'])}, not {number:g}")
    if "above" in metadata and number <= metadata["above"]:
        raise ValueError(f"must be above {shown(metadata['above'])}, not {number:g}")
    return number


def _choose(node: Node, choices: tuple[Any, ...]) -> Any:
    for choice in choices:
        if (type(choice) is type(node.value) and choice == node.value) or (node.text and str(choice) == node.value):
            return choice
    close = get_close_matches(str(node.value), [str(choice) for choice in choices], n=1)
    hint = f'; did you mean "{close[0]}"?' if close and isinstance(node.value, str) else ""
    raise ValueError(f"expected one of {', '.join(map(str, choices))}, not {describe(node)}{hint}")


def _string(node: Node, hint: type[Any], metadata: Mapping[str, Any]) -> Any:
    value = node.value
    if not isinstance(value, str):
        raise ValueError(f"expected text, not {describe(node)}")
    if "\0" in value:
        raise ValueError("cannot hold a NUL character")
    if "url" in metadata:
        value = value if value == "" and metadata.get("optional") else parse_url(value, metadata["url"])
    if "pattern" in metadata:
        pattern, expected = metadata["pattern"]
        if not re.fullmatch(pattern, value):
            raise ValueError(f"expected {expected}, not {describe(node)}")
    return Path(value) if hint is Path else value
