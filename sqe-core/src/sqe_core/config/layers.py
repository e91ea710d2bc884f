"""Laying one tree over another: tables merge, scalars and arrays replace."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sqe_core.config.environment import insert
from sqe_core.config.origin import DEFAULT, Fault, KeyPath, Node, Origin
from sqe_core.config.toml_lines import key_lines
from sqe_core.spi.errors import ConfigError


def file_layer(path: Path) -> Node:
    """Read a TOML file with the line of every key. ConfigError when it is no readable TOML."""
    text = _read(path)
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        # tomllib's text ends in "(at line 3, column 5)" or "(at end of document)".
        raise ConfigError((f"{path}: this is no TOML: {error}",)) from None
    return _located(document, str(path), (), key_lines(text), None)


def _read(path: Path) -> str:
    try:
        # utf-8-sig: editors of Windows put a mark at the start.
        return path.read_bytes().decode("utf-8-sig")
    except IsADirectoryError:
        raise ConfigError((f"{path}: this is a directory; name the file",)) from None
    except FileNotFoundError:
        raise ConfigError((f"{path}: there is no such file",)) from None
    except OSError as error:
        raise ConfigError((f"{path}: cannot be read: {error.strerror or type(error).__name__}",)) from None
    except UnicodeDecodeError as error:
        raise ConfigError((f"{path}: this is not UTF-8 text (byte {error.start})",)) from None


def _located(value: Any, name: str, path: KeyPath, lines: Mapping[KeyPath, int], above: int | None) -> Node:
    """Give every value the line of its key, or of the nearest key above it inside inline values."""
    line = lines.get(path, above)
    origin = Origin("file", name, line)
    if isinstance(value, dict):
        return Node({key: _located(item, name, (*path, key), lines, line) for key, item in value.items()}, origin)
    if isinstance(value, list):
        items = [_located(item, name, (*path, index), lines, line) for index, item in enumerate(value)]
        return Node(items, origin)
    return Node(value, origin)


def flag_layer(flags: Mapping[str, Any]) -> tuple[Node, tuple[Fault, ...]]:
    """Options of the command line: dotted key to value. None means that the option was not given."""
    tree: dict[str, Node] = {}
    faults: list[Fault] = []
    for key, value in flags.items():
        if value is None:
            continue
        leaf = Node(value, Origin("flag", key), text=isinstance(value, str))
        if isinstance(value, list | tuple):
            leaf = Node([Node(item, leaf.origin, text=isinstance(item, str)) for item in value], leaf.origin)
        fault = insert(tree, tuple(key.split(".")), leaf)
        if fault is not None:
            faults.append(fault)
    return Node(tree, DEFAULT), tuple(faults)


def merge(base: Node, over: Node) -> Node:
    if isinstance(base.value, list) and isinstance(over.value, dict):
        return _merge_entries(base, over)
    if not isinstance(base.value, dict) or not isinstance(over.value, dict) or _is_secret_place(over):
        return over
    merged = dict(base.value)
    for key, node in over.value.items():
        slot = _same_key(merged, key)
        merged[slot] = merge(merged[slot], node) if slot in merged else node
    return Node(merged, over.origin if base.origin is DEFAULT else base.origin)


def _is_secret_place(node: Node) -> bool:
    """`SQE_…__CLIENT_SECRET__FILE` replaces `{ env = … }` of the file instead of joining it."""
    return set(node.value) in ({"env"}, {"file"})


def _merge_entries(base: Node, over: Node) -> Node:
    """Array entries by index, `SQE_AUTH__PROVIDERS__0__CLIENT_SECRET`; the next index appends."""
    if not all(key.isdecimal() for key in over.value):
        return over
    items = list(base.value)
    for key in sorted(over.value, key=int):
        index, node = int(key), over.value[key]
        if index < len(items):
            items[index] = merge(items[index], node)
        elif index == len(items):
            items.append(node)
        else:
            return over  # a gap: the binder says so, with the variable's name
    return Node(items, base.origin)


def _same_key(table: Mapping[str, Node], key: str) -> str:
    """Environment names have no case and no hyphens; find the key of the file that is meant."""
    if key in table:
        return key
    plain = key.replace("-", "_").lower()
    return next((name for name in table if name.replace("-", "_").lower() == plain), key)
