"""What stands above the plan of a view, and below an INSERT, when a policy restricts them (VIEW-2, DML-2, DML-3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from plan_trees import ALIAS, BARRIER, MARKER, Tree, accepted, alias, logical, project, relation

from sqe_core.engine.port import ROW_REFUSED
from sqe_core.query.judge.verify import ExpectedRelation
from sqe_core.sql.statement import StatementKind

POLICY = f"({MARKER}.dept = 'ENG')"
VIEW = ExpectedRelation(
    marker=MARKER,
    identity=("", "v"),
    columns=("id", "dept"),
    filter_sql=POLICY,
    masks={"dept": "NULL"},
    view=True,
)
TARGET = ExpectedRelation(marker=MARKER, identity=(ALIAS, "hr", "staff"), write_target=True, filter_sql=POLICY)


def view(policy: str = POLICY, barrier: str = BARRIER, dept: str = "NULL AS dept") -> Tree:
    rows = logical("Filter", alias(MARKER, logical("LocalRelation")), condition=policy)
    inner = alias(MARKER, project([f"{MARKER}.id", f"{MARKER}.dept"], rows))
    return alias("v", project([f"{MARKER}.id", dept], logical("Filter", inner, condition=barrier)))


@pytest.mark.rule("VIEW-2", "ENF-12")
def test_the_plan_of_a_view_stands_below_what_restricts_it() -> None:
    query = StatementKind.QUERY
    assert accepted(view(), VIEW, kind=query)
    for tree in (
        view(policy="true"),
        view(barrier="true"),
        view(dept=f"{MARKER}.dept"),
        alias(MARKER, logical("LocalRelation")),
        logical("LocalRelation"),
        logical("Union", view(), alias(MARKER, logical("LocalRelation"))),
    ):
        assert not accepted(tree, VIEW, kind=query)


@pytest.mark.rule("ENF-12", "ENF-15")
def test_nothing_is_copied_above_the_plan_of_a_view() -> None:
    copy = f"({MARKER}.id = 1)"
    condition = f"({POLICY} AND {copy})"
    tree = view(policy=condition)
    node = tree.below[0].below[0].below[0].below[0].below[0]
    assert node.fields["condition"] == condition
    node.fields = {"condition": condition, "spine": [[POLICY, copy, True]]}
    assert not accepted(tree, VIEW, kind=StatementKind.QUERY)


RAISED = f"raise_error('USER_RAISED_EXCEPTION', map('errorMessage', '{ROW_REFUSED}'))"
REFUSAL = f"(IF({BARRIER}, CAST({RAISED} AS BOOLEAN), true))"


def checked(policy: str = POLICY) -> str:
    return f"(IF(({BARRIER} AND {policy}), true, {REFUSAL}))"


def insert(query: Tree) -> Tree:
    query.slot = "query"
    return logical("AppendData", relation("hr", "staff", slot="table"), query)


def rows(*items: str) -> Tree:
    return project(items, logical("LocalRelation"))


@pytest.mark.rule("DML-3", "ENF-12")
def test_what_is_written_stands_below_the_check_of_the_policy() -> None:
    def written(condition: str, name: str = MARKER) -> bool:
        query = logical("Filter", alias(name, rows("id")), condition=condition)
        return accepted(insert(query), TARGET, kind=StatementKind.INSERT)

    assert written(checked())
    assert not written(checked("true"))
    assert not written("true")
    assert not written(checked(), "another")
    assert not accepted(insert(rows("id")), TARGET, kind=StatementKind.INSERT)


TABLE = (ALIAS, "hr", "staff", "_sqe_visible_rows")
CHANGED = ExpectedRelation(
    marker=MARKER,
    identity=(ALIAS, "hr", "staff", "_sqe_visible_rows"),
    columns=("id", "dept"),
    filter_sql=POLICY,
    changed=True,
)
IDENTITY = (f"{MARKER}._file", f"{MARKER}._pos")


def target(slot: str, operation: str | None = None) -> Tree:
    return relation(*TABLE[1:], slot=slot, **({} if operation is None else {"operation": operation}))


def visible_rows(policy: str = POLICY, barrier: str = BARRIER, extra: Sequence[str] = IDENTITY) -> Tree:
    items = [f"{MARKER}.id", f"{MARKER}.dept", *extra]
    named = logical("SubqueryAlias", target("child", "UPDATE"), identifier=list(TABLE))
    inner = alias(MARKER, project(items, logical("Filter", alias(MARKER, named), condition=policy)))
    return alias("target", project(items, logical("Filter", inner, condition=barrier)))


@pytest.mark.rule("DML-3", "DML-5", "ENF-12")
def test_rows_are_changed_below_the_policy_of_their_table() -> None:
    check = replace(TARGET, marker="_sqe_r_2", identity=(ALIAS, "hr", "staff", "_sqe_visible_rows"))
    holds = f"((_sqe_r_2.__row_operation = 1) OR ({BARRIER} AND {POLICY}))"

    def updated(
        rows: Tree, command: str = "WriteDelta", guard: str = POLICY, condition: str = holds, name: str = "_sqe_r_2"
    ) -> bool:
        checked = logical("Filter", alias(name, rows), condition=f"(IF({condition}, true, {REFUSAL}))")
        checked.slot = "query"
        tree = logical(command, target("table"), checked, target("originalTable"), guard=guard)
        return accepted(tree, CHANGED, check, kind=StatementKind.UPDATE)

    assert updated(visible_rows())
    assert updated(visible_rows(extra=()))
    assert not updated(visible_rows(policy="true"))
    assert not updated(visible_rows(barrier="true"))
    assert not updated(visible_rows(extra=(f"{MARKER}.pin",)))
    assert not updated(visible_rows(), command="ReplaceData")
    assert not updated(visible_rows(), guard="true")
    assert not updated(visible_rows(), condition=holds.replace("= 1", ">= 1"))
    assert not updated(visible_rows(), condition=holds.replace(POLICY, "true"))
    assert not updated(visible_rows(), name="another")
    assert not updated(target("child", "UPDATE"))
    assert not updated(logical("Union", visible_rows(), target("children", "UPDATE")))
    assert not updated(logical("LocalRelation"))


@pytest.mark.rule("DML-2", "ENF-12")
def test_a_column_that_is_kept_gets_nothing_but_its_default() -> None:
    target = replace(TARGET, marker=None, filter_sql=None, untouched=frozenset({"pin"}))

    def written(*items: str) -> bool:
        return accepted(insert(rows(*items)), target, kind=StatementKind.INSERT)

    assert written("id", "CAST(NULL AS STRING) AS pin")
    assert written("id", "'x' AS pin")
    assert not written("id", "pin")
    assert not written("id", "upper(name) AS pin")
    assert not written("id")
    assert not accepted(insert(logical("LocalRelation")), target, kind=StatementKind.INSERT)
