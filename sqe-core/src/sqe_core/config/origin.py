"""Where each value of the configuration came from, and faults that say so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal

KeyPath = tuple[str | int, ...]


def dotted(path: KeyPath) -> str:
    """Write a path as people write it: `auth.providers[0].type`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            shown = part if part.replace("_", "a").replace("-", "a").isalnum() else f'"{part}"'
            text += f".{shown}" if text else shown
    return text


@dataclass(frozen=True, slots=True)
class Origin:
    """The layer that a value came from, and the place in it."""

    layer: Literal["default", "file", "environment", "flag"]
    name: str = ""
    line: int | None = None

    def __str__(self) -> str:
        match self.layer:
            case "default":
                return "default"
            case "file":
                return self.name if self.line is None else f"{self.name}:{self.line}"
            case "environment":
                return f"environment variable {self.name}"
            case "flag":
                return f"command line {self.name}".rstrip()


DEFAULT = Origin("default")


@dataclass(frozen=True, slots=True)
class Node:
    """A value of one layer, before its type is known.

    `value` is a scalar, a `dict[str, Node]` or a `list[Node]`. `text` marks words of the environment, which become
    numbers and truth values only when the key's type says so.
    """

    value: Any
    origin: Origin
    text: bool = False

    def plain(self) -> Any:
        if isinstance(self.value, dict):
            return {key: node.plain() for key, node in self.value.items()}
        if isinstance(self.value, list):
            return [node.plain() for node in self.value]
        return self.value


def as_node(value: object, origin: Origin) -> Node:
    """Wrap plain TOML values; what is a Node already stays."""
    if isinstance(value, Node):
        return value
    if isinstance(value, Mapping):
        return Node({str(key): as_node(item, origin) for key, item in value.items()}, origin)
    if isinstance(value, list | tuple):
        return Node([as_node(item, origin) for item in value], origin)
    return Node(value, origin)


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong. `origin` None: look the path up among the sources."""

    path: KeyPath
    message: str
    origin: Origin | None = None

    def __str__(self) -> str:
        where = "" if self.origin is None or self.origin.layer == "default" else f"{self.origin}: "
        return f"{where}{dotted(self.path)}: {self.message}" if self.path else f"{where}{self.message}"


def unknown_key(key: str, known: Iterable[str]) -> str:
    """The text for a key that nobody knows: what was probably meant, and everything that could be."""
    names = sorted(set(known))  # a plugin may have a key that the core has too
    close = get_close_matches(key.lower().replace("-", "_"), names, n=1, cutoff=0.6)
    hint = f'; did you mean "{close[0]}"?' if close else "."
    return f"unknown key{hint} Known keys: {', '.join(names) if names else 'none'}"
