"""EXPLAIN in the formats of Trino: the plan as a tree of JSON, as a graph, and what a statement reads and writes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from sqe_core.query.context import StatementContext
from sqe_core.query.judge.bind import BoundRelation, Usage
from sqe_core.query.judge.judge import Judgement
from sqe_core.spi.names import ObjectName

_LINE = re.compile(r"^((?:[:| ] {2})*(?:[:+]- )?)(.*)$")
_DEEP = 3  # characters of a level
_UNKNOWN = dict.fromkeys(("outputRowCount", "outputSizeInBytes", "cpuCost", "maxMemory", "networkCost"), "NaN")


@dataclass(slots=True)
class _Node:
    text: str
    children: list[_Node] = field(default_factory=list)

    @property
    def name(self) -> str:
        return re.split(r"[^A-Za-z]", self.text, maxsplit=1)[0] or self.text[:40]


def _tree(plan: str) -> _Node:
    """Read the tree that the engine writes with `+-` and `:-`."""
    root = _Node("Output")
    above: list[_Node] = [root]
    for line in plan.splitlines():
        found = _LINE.match(line)
        if found is None or not found[2].strip():
            continue
        depth = len(found[1]) // _DEEP
        node = _Node(found[2].strip())
        del above[depth + 1 :]
        above[-1].children.append(node)
        above.append(node)
    return root.children[0] if len(root.children) == 1 else root


def json_plan(plan: str) -> str:
    """Return the plan as nodes with children, with no word of costs."""
    numbers = iter(range(1_000_000))

    def made(node: _Node) -> Mapping[str, Any]:
        return {
            "id": str(next(numbers)),
            "name": node.name,
            "descriptor": {},
            "outputs": [],
            "details": [node.text],
            "estimates": [],
            "children": [made(child) for child in node.children],
        }

    return json.dumps(made(_tree(plan)), indent=2)


def graphviz_plan(plan: str) -> str:
    """Return the plan as a graph."""
    lines: list[str] = []
    numbers = iter(range(1, 1_000_000))

    def add(node: _Node) -> int:
        number = next(numbers)
        label = node.text.replace("\\", "\\\\").replace('"', '\\"')
        lines.append(f'plannode_{number}[label="{label}", style="rounded, filled", shape=record];')
        for child in node.children:
            lines.append(f"plannode_{number} -> plannode_{add(child)};")
        return number

    add(_tree(plan))
    return "\n".join(("digraph logical_plan {", *lines, "}"))


FORMATS: Mapping[Literal["text", "json", "graphviz"], Callable[[str], str]] = {
    "text": lambda plan: plan,
    "json": json_plan,
    "graphviz": graphviz_plan,
}


def io_plan(judgement: Judgement, context: StatementContext) -> str:
    """Return which tables are read and written, those that the user can name."""
    named = [each for each in judgement.bound if _is_named(each, context)]
    read = dict.fromkeys(each.name for each in named if each.usage is Usage.READ)
    written = [each.name for each in named if each.usage is not Usage.READ]
    plan: dict[str, Any] = {
        "inputTableColumnInfos": [
            {"table": _table(name), "columnConstraints": [], "estimate": _UNKNOWN} for name in read
        ]
    }
    if written:
        plan["outputTable"] = _table(written[0])
    return json.dumps({**plan, "estimate": _UNKNOWN}, indent=2)


def _is_named(entry: BoundRelation, context: StatementContext) -> bool:
    return entry.resolved is not None and (entry.system or context.visible.shows_object(entry.name))


def _table(name: ObjectName) -> Mapping[str, Any]:
    return {"catalog": name.catalog, "schemaTable": {"schema": ".".join(name.namespace), "table": name.name}}
