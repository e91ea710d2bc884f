"""`sqe config show`: every key with its value, secrets blanked, and where it came from."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime, time
from typing import Any

from sqe_core.config.loading import LoadedConfig
from sqe_core.config.origin import dotted
from sqe_core.config.values import Share, format_bytes, format_duration, without_passwords
from sqe_core.config.walk import Leaf, leaves
from sqe_core.spi.identity import Secret

REDACTED = "[redacted]"
UNSET = "(unset)"
# Which keys of a plugin's kind are secrets only the plugin knows; names like these are treated as such.
_SECRET_NAME = re.compile(r"(?i)(secret|password|passphrase|passwd|token|credentials?|key|sas)$")


def render(loaded: LoadedConfig, *, with_sources: bool) -> Iterator[str]:
    """One line per key, in the order of the documentation."""
    lines = [(f"{dotted(leaf.path)} = {format_value(leaf)}", leaf) for leaf in leaves(loaded.config)]
    width = min(max((len(text) for text, _ in lines), default=0), 60)
    for text, leaf in lines:
        yield f"{text:<{width}}  # {loaded.sources.origin(*leaf.path)}" if with_sources else text


def format_value(leaf: Leaf) -> str:
    """Write a value as in a file; a secret only says that it is there."""
    value = leaf.value
    if value is None:
        return UNSET
    if leaf.metadata.get("secret"):
        return REDACTED
    if leaf.metadata.get("unit") == "bytes":
        return json.dumps(format_bytes(value))
    if leaf.metadata.get("unit") == "duration":
        return json.dumps(format_duration(value))
    return _toml(value, str(leaf.path[-1]) if leaf.metadata.get("raw") else "")


def _toml(value: Any, raw_name: str) -> str:
    match value:
        case Secret():
            return REDACTED
        case Mapping():
            if set(value) in ({"env"}, {"file"}):
                raw_name = ""  # names the place of a secret and not the secret
            entries = (f"{json.dumps(str(key))} = {_toml(item, raw_name and str(key))}" for key, item in value.items())
            return "{ " + ", ".join(entries) + " }" if value else "{}"
        case list() | tuple():
            return "[" + ", ".join(_toml(item, raw_name) for item in value) + "]"
        case str() if _SECRET_NAME.search(raw_name):
            return REDACTED
        case str():
            return json.dumps(without_passwords(value), ensure_ascii=False)
        case Share():
            return json.dumps(str(value))
        case date() | datetime() | time():
            return value.isoformat()
        case _:
            return json.dumps(value)
