"""Files and folders that a configuration speaks of: what the server stands on, and nobody attaches as a catalog."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from sqe_core.config.loading import LoadedConfig
from sqe_core.config.origin import Node

# A path may be written without a folder, but then its key says that it is one.
_PATH_KEY = re.compile(r"(^|[_-])(path|paths|file|dir|directory|folder|home|warehouse)$")
_BEFORE_PATH = re.compile(r"(jdbc:)?(sqlite:(///)?|file:(//)?)")


def configured_places(loaded: LoadedConfig) -> frozenset[Path]:
    """Return every path of a configuration, those of plugins too, and the path of its file."""
    found = {Path(text).expanduser() for text in _paths(loaded.tree, "")}
    found |= {Path(text) for text in (loaded.config.coordinator.spill_dir, loaded.config.session.persistence_path)}
    if loaded.path is not None:
        found.add(loaded.path)
    return frozenset(found)


def _paths(node: Node, key: str) -> Iterator[str]:
    if isinstance(node.value, dict):
        for name, below in node.value.items():
            yield from _paths(below, name)
    elif isinstance(node.value, list):
        for below in node.value:
            yield from _paths(below, key)
    elif isinstance(node.value, str | Path) and str(node.value):
        text = str(node.value)
        scheme = _BEFORE_PATH.match(text)
        path = text[scheme.end() :].partition("?")[0] if scheme else text
        if scheme or path.startswith(("/", "~")) or ("://" not in path and _PATH_KEY.search(key.lower())):
            yield from {path, unquote(path)} if scheme else {path}
