"""Writes the tables of docs/configuration.md: `python -m sqe_core.config.reference docs/configuration.md`.

The keys of a plugin's kind stand on the plugin's own page; `python -m sqe_core.config.reference package.module:Config`
writes their table.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from dataclasses import MISSING
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from sqe_core.config.sections.root import SqeConfig
from sqe_core.config.show import UNSET
from sqe_core.config.values import Share, format_bytes, format_duration
from sqe_core.config.walk import Key, keys
from sqe_core.spi.identity import Secret

_TITLES = {
    "catalog": "`[catalog]`, and the same keys in `[catalogs.<name>]`",
    "auth.providers.*": "`[[auth.providers]]`",
}


def page(current: str) -> str:
    """The page with the tables of the keys anew; what stands before them is written by hand."""
    return "\n".join([current[: current.index("\n\n### ")], *_tables()]) + "\n"


def plugin_table(config_type: type[Any]) -> str:
    """The keys of a plugin's kind, for the plugin's own page."""
    heading = "| key | type | default | meaning |\n|---|---|---|---|"
    return (
        "\n".join(
            [
                heading,
                *(
                    _cells(".".join(map(str, key.path)), _type(key), _default(key), _meaning(key))
                    for key in keys(config_type)
                ),
            ]
        )
        + "\n"
    )


def _tables() -> Iterator[str]:
    table = ""
    for key in keys(SqeConfig):
        if key.path[0] == "catalogs":
            continue  # the keys of [catalog]
        parent = ".".join(map(str, key.path[:-1]))
        if parent != table:
            table = parent
            yield f"\n### {_TITLES.get(parent, f'`[{parent}]`' if parent else 'Tables with free names')}\n"
            yield "| key | type | default | meaning | on Spark |\n|---|---|---|---|---|"
        yield _row(key)


def _row(key: Key) -> str:
    return _cells(key.path[-1], _type(key), _default(key), _meaning(key), _on_spark(key))


def _cells(name: object, *cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in (f"`{name}`", *cells)) + " |"


def _type(key: Key) -> str:
    unit = key.metadata.get("unit")
    if unit is not None:
        return {"bytes": "byte size", "duration": "duration"}[unit]
    return _type_name(key.hint)


def _type_name(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return ", ".join(f"`{choice}`" for choice in get_args(hint))
    arguments = get_args(hint)
    if get_origin(hint) is tuple:
        return f"array of {_type_name(arguments[0])}"
    if len(arguments) == 2:
        return f"table of {_type_name(arguments[1])}"
    names = {bool: "true, false", int: "whole number", float: "number", str: "text", Secret: "secret", Share: "share"}
    names[Path] = "path"
    return names.get(hint, "table")


def _default(key: Key) -> str:
    value = key.default
    if value is MISSING:
        return "required"
    if value is None:
        return UNSET
    if key.metadata.get("unit") == "bytes":
        return f"`{format_bytes(value)}`"
    if key.metadata.get("unit") == "duration":
        return f"`{format_duration(value)}`"
    return f"`{value if isinstance(value, Share) else json.dumps(value, default=dict)}`"


def _meaning(key: Key) -> str:
    limits = [
        f"at least {key.metadata['minimum']}" if key.metadata.get("minimum") not in (None, 0) else "",
        f"at most {key.metadata['maximum']}" if "maximum" in key.metadata else "",
    ]
    shown = ", ".join(limit for limit in limits if limit)
    return f"{key.metadata['doc']} ({shown})" if shown else str(key.metadata["doc"])


def _on_spark(key: Key) -> str:
    idle = key.metadata.get("no_effect")
    status = f"no effect: {idle}" if idle else "*not built yet*" if "unbuilt" in key.metadata else ""
    return "; ".join(part for part in (str(key.metadata.get("spark", "")), status) if part)


def _named(place: str) -> type[Any]:
    module, _, name = place.partition(":")
    config_type: type[Any] = getattr(importlib.import_module(module), name)
    return config_type


if __name__ == "__main__":
    if ":" in sys.argv[1]:
        sys.stdout.write(plugin_table(_named(sys.argv[1])))
    else:
        file = Path(sys.argv[1])
        file.write_text(page(file.read_text(encoding="utf-8")), encoding="utf-8")
