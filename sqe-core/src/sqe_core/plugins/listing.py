"""`sqe plugins list`: what is installed, without importing any of it."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import TextIO

from sqe_core.plugins.discovery import CORE_DISTRIBUTION, DeclaredPlugin, discover, find_fault


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginRow:
    kind: str
    name: str
    plugin: str
    distribution: str
    version: str
    spi: str
    status: str


HEADER = ("kind", "name", "plugin", "distribution", "version", "SPI", "status")


def list_plugins(declared: Sequence[DeclaredPlugin] | None = None) -> tuple[PluginRow, ...]:
    """Return a row for each declared kind, by kind and name.

    Args:
        declared: the installed plugins; None looks for them.
    """
    plugins = discover() if declared is None else declared
    owners = Counter(kind for plugin in plugins for kind in plugin.kinds)
    rows = [
        PluginRow(
            kind=kind.point.value if kind else "-",
            name=kind.name if kind else "-",
            plugin=plugin.name,
            distribution=plugin.distribution,
            version=plugin.version,
            spi=plugin.spi or "-",
            status=_status(plugin, duplicated=kind is not None and owners[kind] > 1),
        )
        for plugin in plugins
        for kind in plugin.kinds or (None,)
    ]
    return tuple(sorted(rows, key=lambda row: (row.kind == "-", row.kind, row.name, row.distribution)))


def _status(plugin: DeclaredPlugin, *, duplicated: bool) -> str:
    fault = find_fault(plugin)
    if fault is not None:
        return f"broken: {fault}"
    if duplicated:
        return "duplicate: another distribution declares it too"
    return "built in" if plugin.distribution == CORE_DISTRIBUTION else "installed"


def render(rows: Sequence[PluginRow]) -> str:
    lines = [HEADER, *(astuple(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADER))]
    return "".join(
        "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() + "\n" for line in lines
    )


def main_list(output: TextIO | None = None) -> int:
    """Print the installed plugins; the exit code is 0 also when some are broken, since the list is the answer."""
    (output or sys.stdout).write(render(list_plugins()))
    return 0
