"""Plans by hand, as the engine describes them, and what the verifier says of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqe_core.engine.port import PlanDescription, PlanNode
from sqe_core.query.judge.verify import ExpectedRelation, verify
from sqe_core.spi.errors import InternalError
from sqe_core.sql.statement import StatementKind

LOGICAL = "org.apache.spark.sql.catalyst.plans.logical."
ANALYSIS = "org.apache.spark.sql.catalyst.analysis."
EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions."
RELATION = "org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation"
ALIAS = "_sqe_c_0123456789abcdef0123456789abcdef"
MARKER = "_sqe_r_00000000000000000000000000000001"
BARRIER = "(SPARK_PARTITION_ID() >= 0)"


@dataclass
class Tree:
    """A node with what is below it; `slot` is the field of the node above."""

    type: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    below: Sequence[Tree] = ()
    slot: str = "child"


def describe(tree: Tree, **more: Any) -> PlanDescription:
    nodes: list[PlanNode] = []

    def add(node: Tree, parent: int, slot: str) -> None:
        place = len(nodes)
        nodes.append(PlanNode(id=place, parent=parent, slot=slot, type=node.type, fields=node.fields))
        for child in node.below:
            add(child, place, child.slot)

    add(tree, -1, "")
    return PlanDescription(nodes=tuple(nodes), expressions=frozenset({EXPRESSIONS + "AttributeReference"}), **more)


def logical(name: str, *below: Tree, slot: str = "child", **fields: Any) -> Tree:
    return Tree(LOGICAL + name, fields, below, slot)


def alias(name: str | Sequence[str], below: Tree, slot: str = "child") -> Tree:
    return logical("SubqueryAlias", below, slot=slot, identifier=[name] if isinstance(name, str) else list(name))


def project(items: Sequence[str], below: Tree) -> Tree:
    return logical("Project", below, projectList=list(items))


def relation(*name: str, catalog: str = ALIAS, slot: str = "child", **fields: Any) -> Tree:
    given = {"catalog": catalog, "identifier": list(name), "timeTravel": None, "options": {}, "branch": None, **fields}
    return Tree(RELATION, given, (), slot)


def accepted(tree: Tree, *expected: ExpectedRelation, kind: StatementKind, **more: Any) -> bool:
    try:
        verify(describe(tree), expected=expected, kind=kind, **more)
    except InternalError:
        return False
    return True
