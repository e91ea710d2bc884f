"""A client's rows in a plan: only those of this statement, once, covered, and where a query reads (ENF-11)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from sqe_core.engine.port import PlanDescription, PlanNode
from sqe_core.query.judge.verify import ExpectedRelation, verify
from sqe_core.spi.errors import InternalError
from sqe_core.sql.statement import StatementKind

LOGICAL = "org.apache.spark.sql.catalyst.plans.logical."
RELATION = "org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation"
ALIAS = "_sqe_c_0123456789abcdef0123456789abcdef"
TARGET = ExpectedRelation(marker=None, catalog=ALIAS, namespace=("hr",), table="staff", write_target=True)
TOKEN = "0123456789abcdef"


@dataclass
class Tree:
    type: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    below: Sequence[Tree] = ()
    slot: str = "child"


def describe(tree: Tree) -> PlanDescription:
    nodes: list[PlanNode] = []

    def add(node: Tree, parent: int) -> None:
        place = len(nodes)
        nodes.append(PlanNode(id=place, parent=parent, slot=node.slot, type=node.type, fields=node.fields))
        for child in node.below:
            add(child, place)

    add(tree, -1)
    return PlanDescription(nodes=tuple(nodes), expressions=frozenset())


def rows(token: str | None = TOKEN, *, cover: bool = True, slot: str = "child", **fields: Any) -> Tree:
    leaf = Tree(
        RELATION, {"tableClass": "sqe.bridge.spool.SpoolTable", "spool": token, "options": {}, **fields}, (), slot
    )
    return Tree(LOGICAL + "SubqueryAlias", {"identifier": ["_sqe_i_1"]}, [leaf]) if cover else leaf


def insert(*queries: Tree) -> Tree:
    named = {"catalog": ALIAS, "identifier": ["hr", "staff"], "options": {}, "tableClass": "SparkTable"}
    target = Tree(RELATION, named, (), "table")
    for query in queries:
        query.slot = "query"
    return Tree(LOGICAL + "AppendData", {}, [target, *queries])


def accepted(tree: Tree, spools: frozenset[str] = frozenset({TOKEN})) -> bool:
    try:
        verify(describe(tree), expected=[TARGET], kind=StatementKind.INSERT, spools=spools)
    except InternalError:
        return False
    return True


def projected(*below: Tree) -> Tree:
    return Tree(LOGICAL + "Project", {"projectList": ["_sqe_i_1.a"]}, below)


def joined() -> Tree:
    return Tree(LOGICAL + "Join", {}, [rows(), rows()])


def in_a_subquery() -> Tree:
    hidden = rows()
    hidden.slot = "subquery"
    return Tree(LOGICAL + "Filter", {"condition": "x"}, [Tree(LOGICAL + "OneRowRelation"), hidden])


def test_the_rows_of_this_statement_pass() -> None:
    assert accepted(insert(projected(rows())))


@pytest.mark.rule("ENF-11")
@pytest.mark.parametrize(
    "query",
    [
        projected(rows("fedcba9876543210")),
        projected(rows(tableClass="org.apache.iceberg.spark.source.SparkTable")),
        projected(rows(catalog=ALIAS)),
        projected(rows(identifier=["hr", "pay"])),
        projected(rows(options={"path": "/etc"})),
        projected(rows(cover=False)),
        projected(rows(None)),
        joined(),
        in_a_subquery(),
        projected(Tree(LOGICAL + "OneRowRelation")),
    ],
    ids=["token", "class", "catalog", "name", "options", "cover", "none", "twice", "subquery", "missing"],
)
def test_other_rows_are_refused(query: Tree) -> None:
    assert not accepted(insert(query))


@pytest.mark.rule("ENF-11")
def test_a_statement_without_rows_may_read_none() -> None:
    assert not accepted(insert(projected(rows())), frozenset())
