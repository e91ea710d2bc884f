"""A client's rows in a plan: only those of this statement, once, covered, and where a query reads (ENF-11)."""

from __future__ import annotations

from typing import Any

import plan_trees
import pytest
from plan_trees import ALIAS, RELATION, Tree, alias, logical

from sqe_core.query.judge.verify import ExpectedRelation
from sqe_core.sql.statement import StatementKind

TARGET = ExpectedRelation(marker=None, identity=(ALIAS, "hr", "staff"), write_target=True)
TOKEN = "0123456789abcdef"


def rows(token: str | None = TOKEN, *, cover: bool = True, slot: str = "child", **fields: Any) -> Tree:
    leaf = Tree(
        RELATION, {"tableClass": "sqe.bridge.spool.SpoolTable", "spool": token, "options": {}, **fields}, (), slot
    )
    return alias("_sqe_i_1", leaf) if cover else leaf


def insert(*queries: Tree) -> Tree:
    named = {"catalog": ALIAS, "identifier": ["hr", "staff"], "options": {}, "tableClass": "SparkTable"}
    target = Tree(RELATION, named, (), "table")
    for query in queries:
        query.slot = "query"
    return logical("AppendData", target, *queries)


def accepted(tree: Tree, spools: frozenset[str] = frozenset({TOKEN})) -> bool:
    return plan_trees.accepted(tree, TARGET, kind=StatementKind.INSERT, spools=spools)


def projected(*below: Tree) -> Tree:
    return logical("Project", *below, projectList=["_sqe_i_1.a"])


def joined() -> Tree:
    return logical("Join", rows(), rows())


def in_a_subquery() -> Tree:
    hidden = rows()
    hidden.slot = "subquery"
    return logical("Filter", logical("OneRowRelation"), hidden, condition="x")


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
        projected(logical("OneRowRelation")),
    ],
    ids=["token", "class", "catalog", "name", "options", "cover", "none", "twice", "subquery", "missing"],
)
def test_other_rows_are_refused(query: Tree) -> None:
    assert not accepted(insert(query))


@pytest.mark.rule("ENF-11")
def test_a_statement_without_rows_may_read_none() -> None:
    assert not accepted(insert(projected(rows())), frozenset())
