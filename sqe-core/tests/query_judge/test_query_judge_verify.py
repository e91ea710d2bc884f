"""The verifier against hand-written plans: the promised one passes, and each kind of deviation is refused (ENF-12)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from plan_trees import (
    ALIAS,
    ANALYSIS,
    BARRIER,
    EXPRESSIONS,
    MARKER,
    RELATION,
    Tree,
    alias,
    describe,
    logical,
    project,
    relation,
)

from sqe_core.engine.port import FunctionCall, TimeTravel
from sqe_core.query.judge.verify import ExpectedRelation, verify
from sqe_core.spi.errors import InternalError, NotSupportedError, ResourcesError
from sqe_core.sql.statement import StatementKind

OTHER_MARKER = "_sqe_r_00000000000000000000000000000002"


def raw(marker: str, *name: str, catalog: str = ALIAS, **fields: Any) -> Tree:
    """A table below its marker, as Spark analyses `FROM alias.ns.table AS marker`."""
    return alias(marker, alias([catalog, *name], relation(*name, catalog=catalog, **fields)))


def secured(
    marker: str = MARKER,
    name: Sequence[str] = ("hr", "staff"),
    columns: Sequence[str] = ("id", "name"),
    visible: Sequence[str] = ("c", "hr", "staff"),
    **fields: Any,
) -> Tree:
    return alias(visible, project([f"{marker}.{column}" for column in columns], raw(marker, *name, **fields)))


STAFF = ExpectedRelation(marker=MARKER, identity=(ALIAS, "hr", "staff"), columns=("id", "name"))
PAY = ExpectedRelation(marker=OTHER_MARKER, identity=(ALIAS, "hr", "pay"), columns=("id",))
TARGET = ExpectedRelation(marker=None, identity=(ALIAS, "hr", "target"), write_target=True)


def accept(tree: Tree, *expected: ExpectedRelation, kind: StatementKind = StatementKind.QUERY, **more: Any) -> None:
    verify(describe(tree, **more), expected=expected, kind=kind)


def refuse(tree: Tree, *expected: ExpectedRelation, kind: StatementKind = StatementKind.QUERY, **more: Any) -> str:
    """Return the text of the refusal, after checking that it tells nothing."""
    with pytest.raises(InternalError) as caught:
        verify(describe(tree, **more), expected=expected, kind=kind)
    assert str(caught.value) == "The statement could not be secured and was not run"
    return str(caught.value)


@pytest.mark.rule("ENF-11")
def test_promised_queries_pass() -> None:
    accept(project(["id"], secured()), STAFF)
    accept(logical("Join", secured(), secured(OTHER_MARKER, ("hr", "pay"), ("id",))), STAFF, PAY)
    accept(project(["1"], logical("OneRowRelation")))
    accept(logical("LocalRelation"))
    accept(project(["id"], logical("Range")))
    below = secured()
    below.slot = "subquery"
    accept(logical("Filter", logical("OneRowRelation"), below), STAFF)


@pytest.mark.rule("ENF-11")
def test_a_common_table_expression_may_repeat_a_relation() -> None:
    definition = logical("CTERelationDef", alias("x", secured()), slot="cteDefs", id=0)
    reference = logical("CTERelationRef", cteId=0)
    accept(logical("WithCTE", alias("x", reference, slot="plan"), definition), STAFF)
    accept(logical("Union", secured(), secured()), STAFF)


@pytest.mark.rule("ENF-11")
def test_a_reference_must_lead_to_a_definition_of_this_plan() -> None:
    reference = logical("CTERelationRef", cteId=7)
    definition = logical("CTERelationDef", logical("OneRowRelation"), slot="cteDefs", id=0)
    refuse(logical("WithCTE", alias("x", reference, slot="plan"), definition))
    refuse(logical("UnionLoopRef", loopId=3))


DEVIATIONS: dict[str, Callable[[], Tree]] = {
    "bare relation": lambda: relation("hr", "staff"),
    "relation under the user's alias only": lambda: alias("s", relation("hr", "staff")),
    "no marker": lambda: alias(["c", "hr", "staff"], project(["id", "name"], raw("s", "hr", "staff"))),
    "another table": lambda: secured(name=("hr", "pay")),
    "another namespace": lambda: secured(name=("finance", "staff")),
    "the parts of the name joined": lambda: secured(name=("hr.staff",)),
    "a metadata table of it": lambda: secured(name=("hr", "staff", "files")),
    "another catalog": lambda: secured(catalog="spark_catalog"),
    "the catalog's own alias missing": lambda: alias(
        "s", project([f"{MARKER}.id", f"{MARKER}.name"], alias(MARKER, relation("hr", "staff")))
    ),
    "Spark's alias names another table": lambda: alias(
        "s",
        project(
            [f"{MARKER}.id", f"{MARKER}.name"], alias(MARKER, alias([ALIAS, "hr", "pay"], relation("hr", "staff")))
        ),
    ),
    "no projection": lambda: alias("s", raw(MARKER, "hr", "staff")),
    "an extra column": lambda: secured(columns=("id", "name", "salary")),
    "a column less": lambda: secured(columns=("id",)),
    "columns in another order": lambda: secured(columns=("name", "id")),
    "another column": lambda: secured(columns=("id", "salary")),
    "a column of another case": lambda: secured(columns=("id", "NAME")),
    "a renamed column": lambda: alias(
        "s", project([f"{MARKER}.id", f"{MARKER}.x AS name"], raw(MARKER, "hr", "staff"))
    ),
    "a computed column": lambda: alias(
        "s", project([f"{MARKER}.id", f"upper({MARKER}.name)"], raw(MARKER, "hr", "staff"))
    ),
    "a column of another qualifier": lambda: alias(
        "s", project([f"{MARKER}.id", "s.name"], raw(MARKER, "hr", "staff"))
    ),
    "an unreadable projection": lambda: alias("s", logical("Project", raw(MARKER, "hr", "staff"), projectList=None)),
    "an unreadable column": lambda: alias("s", project([f"{MARKER}.id", None], raw(MARKER, "hr", "staff"))),  # type: ignore[list-item]
    "no cover": lambda: project([f"{MARKER}.id", f"{MARKER}.name"], raw(MARKER, "hr", "staff")),
    "a marker as cover": lambda: secured(visible=(MARKER,)),
    "a filter between": lambda: alias(
        "s",
        project([f"{MARKER}.id", f"{MARKER}.name"], logical("Filter", raw(MARKER, "hr", "staff"), condition="(1 = 1)")),
    ),
    "a sample between": lambda: alias(
        "s", project([f"{MARKER}.id", f"{MARKER}.name"], logical("Sample", raw(MARKER, "hr", "staff")))
    ),
    "options": lambda: secured(options={"snapshot-id": "1"}),
    "a version nobody named": lambda: secured(timeTravel="VERSION AS OF '1'"),
    "a snapshot nobody named": lambda: secured(snapshotId=1),
    "a branch nobody named": lambda: secured(branch="audit"),
    "no name": lambda: alias("s", Tree(RELATION, {"catalog": ALIAS})),
    "no catalog": lambda: secured(catalog=None),  # type: ignore[arg-type]
    "an extra leaf": lambda: logical("Join", secured(), relation("hr", "pay")),
    "an extra leaf below an expression": lambda: logical("Filter", secured(), relation("hr", "pay", slot="subquery")),
    "a secured relation that nobody expects": lambda: logical(
        "Join", secured(), secured(OTHER_MARKER, ("hr", "pay"), ("id",))
    ),
    "a file": lambda: logical("Join", secured(), Tree("org.apache.spark.sql.execution.datasources.LogicalRelation")),
    "a Hive table": lambda: logical("Join", secured(), Tree("org.apache.spark.sql.catalyst.catalog.HiveTableRelation")),
    "cached data": lambda: logical("Join", secured(), Tree("org.apache.spark.sql.execution.columnar.InMemoryRelation")),
    "an RDD": lambda: logical("Join", secured(), Tree("org.apache.spark.sql.execution.LogicalRDD")),
    "a view of Spark's": lambda: logical("View", secured()),
    "an unresolved relation": lambda: logical("Join", secured(), Tree(ANALYSIS + "UnresolvedRelation")),
    "a command": lambda: logical("Join", secured(), logical("DropTable")),
    "a command on top": lambda: logical("AppendData", secured(), relation("hr", "staff", slot="table")),
    "Spark's SET": lambda: Tree("org.apache.spark.sql.execution.command.SetCommand"),
    "a script": lambda: logical("ScriptTransformation", secured()),
    "a class that nobody classified": lambda: logical("Novel", secured()),
    "an operator without anything below it": lambda: logical("Join", secured(), logical("Project")),
    "a table that a statement could create": lambda: logical(
        "Join", secured(), Tree(ANALYSIS + "ResolvedTable", {"catalog": ALIAS, "identifier": ["hr", "staff"]})
    ),
}


@pytest.mark.rule("ENF-11", "ENF-12")
@pytest.mark.parametrize("deviation", DEVIATIONS)
def test_a_deviation_is_refused(deviation: str) -> None:
    refuse(DEVIATIONS[deviation](), STAFF)


@pytest.mark.rule("ENF-4")
def test_the_cover_may_not_be_replaced_by_a_projection() -> None:
    columns = [f"{MARKER}.id", f"{MARKER}.name"]
    refuse(project(["id"], project(columns, raw(MARKER, "hr", "staff"))), STAFF)
    accept(project(["id"], alias("anything", project(columns, raw(MARKER, "hr", "staff")))), STAFF)


@pytest.mark.rule("ENF-11")
def test_two_relations_swapped_are_refused() -> None:
    swapped = logical(
        "Join", secured(MARKER, ("hr", "pay"), ("id", "name")), secured(OTHER_MARKER, ("hr", "staff"), ("id",))
    )
    refuse(swapped, STAFF, PAY)


@pytest.mark.rule("ENF-11")
def test_an_expected_relation_that_is_missing_is_refused() -> None:
    refuse(secured(), STAFF, PAY)
    refuse(logical("OneRowRelation"), STAFF)
    append = logical("AppendData", relation("hr", "target", slot="table"), logical("LocalRelation", slot="query"))
    refuse(append, TARGET, STAFF, kind=StatementKind.INSERT)


@pytest.mark.rule("ENF-11")
def test_one_marker_for_two_tables_is_refused() -> None:
    refuse(secured(), STAFF, replace(PAY, marker=MARKER))
    refuse(secured(), STAFF, STAFF)


@pytest.mark.rule("ENF-11")
def test_a_description_that_is_no_tree_is_refused() -> None:
    plan = describe(secured())
    for nodes in (
        (),
        plan.nodes[1:],
        (plan.nodes[0], replace(plan.nodes[1], parent=4), *plan.nodes[2:]),
        (plan.nodes[0], replace(plan.nodes[1], parent=-1), *plan.nodes[2:]),
    ):
        with pytest.raises(InternalError):
            verify(replace(plan, nodes=nodes), expected=[STAFF], kind=StatementKind.QUERY)
    with pytest.raises(InternalError):
        verify(replace(plan, nodes=()), expected=[], kind=StatementKind.QUERY)
    renumbered = replace(describe(logical("LocalRelation")).nodes[0], id=5)
    with pytest.raises(InternalError):
        verify(replace(plan, nodes=(renumbered,)), expected=[], kind=StatementKind.QUERY)


# Versions


def at(version: str | None = None, timestamp: str | None = None) -> ExpectedRelation:
    return replace(STAFF, time_travel=TimeTravel(literal=True, version=version, timestamp=timestamp))


@pytest.mark.rule("NAME-5")
def test_the_version_is_the_one_that_the_user_named() -> None:
    accept(secured(timeTravel="VERSION AS OF '42'", snapshotId=42), at("42"))
    accept(secured(timeTravel="VERSION AS OF 'audit'", branch="audit"), at("audit"))
    accept(secured(timeTravel="TIMESTAMP AS OF 1577836800000000"), at(timestamp="2020-01-01 00:00:00"))
    accept(secured(timeTravel="TIMESTAMP AS OF 1577836800500000"), at(timestamp="2020-01-01 00:00:00.500000"))


@pytest.mark.rule("NAME-5")
@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        (at("42"), None),
        (at("42"), "VERSION AS OF '43'"),
        (at("42"), "TIMESTAMP AS OF 42"),
        (at(timestamp="2020-01-01 00:00:00"), None),
        (at(timestamp="2020-01-01 00:00:00"), "TIMESTAMP AS OF 1577836800000001"),
        (at(timestamp="yesterday"), "TIMESTAMP AS OF 1577836800000000"),
        (replace(STAFF, time_travel=TimeTravel(literal=False)), None),
    ],
)
def test_another_version_is_refused(expected: ExpectedRelation, actual: str | None) -> None:
    refuse(secured(timeTravel=actual), expected)


# Metadata tables

REFS = ExpectedRelation(
    marker=MARKER,
    identity=(ALIAS, "hr", "staff", "refs"),
    metadata=True,
    columns=("r.name", "to_json(r.summary) AS summary", "{partition} AS partition"),
)


def refs(*items: str, name: Sequence[str] = ("hr", "staff", "refs")) -> Tree:
    return alias(["c", "hr", "staff$refs"], project(items, raw(MARKER, *name)))


@pytest.mark.rule("ENF-11")
def test_a_metadata_table_is_read_with_its_projection() -> None:
    plain = (f"{MARKER}.name", f"to_json({MARKER}.summary) AS summary")
    accept(refs(*plain, f"to_json({MARKER}.partition) AS partition"), REFS)
    accept(refs(*plain, "CAST(NULL AS STRING) AS `partition`"), REFS)
    refuse(refs(*plain), REFS)
    refuse(refs(*plain, f"{MARKER}.lower_bounds AS partition"), REFS)
    refuse(refs(f"{MARKER}.name", f"{MARKER}.summary", "CAST(NULL AS STRING) AS partition"), REFS)
    refuse(refs(*plain, "CAST(NULL AS STRING) AS partition", name=("hr", "staff", "files")), REFS)
    refuse(refs(*plain, "CAST(NULL AS STRING) AS partition", name=("hr", "staff")), REFS)


@pytest.mark.rule("NAME-1")
def test_columns_with_dots_and_backticks_are_compared_as_names() -> None:
    expected = replace(STAFF, columns=("a.b", "c`d", "e"))
    accept(
        alias("s", project([f"{MARKER}.`a.b`", f"`{MARKER}`.`c``d`", f"{MARKER}.e"], raw(MARKER, "hr", "staff"))),
        expected,
    )
    refuse(
        alias("s", project([f"{MARKER}.a.b", f"{MARKER}.`c``d`", f"{MARKER}.e"], raw(MARKER, "hr", "staff"))), expected
    )


# Filter and barrier

FILTERED = replace(STAFF, filter_sql=f"({MARKER}.dept = 'ENG')")


def filtered(
    policy: str = f"({MARKER}.dept = 'ENG')", barrier: str = BARRIER, inner: str = f"{MARKER}.dept", name: str = MARKER
) -> Tree:
    policy_filter = logical("Filter", raw(MARKER, "hr", "staff"), condition=policy)
    below = alias(name, project([f"{MARKER}.id", inner], policy_filter))
    return alias("s", project([f"{MARKER}.id", f"{MARKER}.name"], logical("Filter", below, condition=barrier)))


@pytest.mark.rule("ENF-11", "ENF-14")
def test_filter_and_barrier_stand_where_they_were_expected() -> None:
    accept(filtered(), FILTERED)
    refuse(filtered(policy=f"({MARKER}.dept = 'eng')"), FILTERED)
    refuse(filtered(policy="true"), FILTERED)
    refuse(filtered(barrier="(SPARK_PARTITION_ID() >= -1)"), FILTERED)
    refuse(filtered(inner=f"upper({MARKER}.dept) AS dept"), FILTERED)
    refuse(filtered(name="q"), FILTERED)
    refuse(secured(), FILTERED)
    without_barrier = logical("Filter", raw(MARKER, "hr", "staff"), condition=f"({MARKER}.dept = 'ENG')")
    refuse(alias("s", project([f"{MARKER}.id", f"{MARKER}.name"], without_barrier)), FILTERED)
    only_barrier = logical("Filter", raw(MARKER, "hr", "staff"), condition=BARRIER)
    refuse(alias("s", project([f"{MARKER}.id", f"{MARKER}.name"], only_barrier)), FILTERED)


# Commands


def append(target: Tree, source: Tree) -> Tree:
    source.slot = "query"
    return logical("AppendData", target, source)


@pytest.mark.rule("ENF-11")
def test_an_insert_writes_its_target_and_reads_secured_relations() -> None:
    insert = StatementKind.INSERT
    accept(append(relation("hr", "target", slot="table"), secured()), TARGET, STAFF, kind=insert)
    branch = replace(TARGET, identity=(ALIAS, "hr", "target", "branch_b"))
    accept(
        append(relation("hr", "target", "branch_b", slot="table", branch="b"), logical("LocalRelation")),
        branch,
        kind=insert,
    )
    refuse(append(relation("hr", "staff", slot="table"), secured()), TARGET, STAFF, kind=insert)
    refuse(append(relation("hr", "target", slot="table", catalog="other"), secured()), TARGET, STAFF, kind=insert)
    refuse(append(relation("hr", "target", slot="table", branch="b"), secured()), TARGET, STAFF, kind=insert)
    refuse(append(relation("hr", "target", slot="table", options={"a": "b"}), secured()), TARGET, STAFF, kind=insert)
    refuse(append(relation("hr", "target", slot="table", snapshotId=1), secured()), TARGET, STAFF, kind=insert)
    refuse(append(relation("hr", "target", slot="table"), relation("hr", "target")), TARGET, kind=insert)
    refuse(append(relation("hr", "target", slot="table"), alias("t", relation("hr", "target"))), TARGET, kind=insert)
    refuse(append(relation("hr", "target", slot="table"), secured()), TARGET, STAFF, kind=StatementKind.QUERY)
    refuse(append(relation("hr", "target", slot="table"), secured()), TARGET, STAFF, kind=StatementKind.DELETE)
    refuse(append(relation("hr", "target", slot="table"), secured()), STAFF, kind=insert)


@pytest.mark.rule("ENF-11")
def test_a_statement_holds_one_command_on_top() -> None:
    inner = append(relation("hr", "target", slot="table"), logical("LocalRelation"))
    refuse(logical("Union", inner, logical("LocalRelation")), TARGET, kind=StatementKind.INSERT)
    twice = append(
        relation("hr", "target", slot="table"), append(relation("hr", "target", slot="table"), logical("LocalRelation"))
    )
    refuse(twice, TARGET, kind=StatementKind.INSERT)
    refuse(logical("LocalRelation"), kind=StatementKind.INSERT)
    below_with = append(relation("hr", "target", slot="table"), logical("LocalRelation"))
    below_with.slot = "plan"
    accept(logical("WithCTE", below_with), TARGET, kind=StatementKind.INSERT)
    below_with.slot = "cteDefs"
    refuse(logical("WithCTE", below_with), TARGET, kind=StatementKind.INSERT)


@pytest.mark.rule("ENF-11")
@pytest.mark.parametrize("kind", [StatementKind.UPDATE, StatementKind.DELETE, StatementKind.MERGE])
def test_a_change_of_rows_reads_its_target(kind: StatementKind) -> None:
    def change(read: Tree) -> Tree:
        read.slot = "query"
        return logical(
            "ReplaceData", relation("hr", "target", slot="table"), read, relation("hr", "target", slot="originalTable")
        )

    accept(change(logical("Filter", relation("hr", "target"))), TARGET, kind=kind)
    condition = secured()
    condition.slot = "subquery"
    accept(change(logical("Filter", relation("hr", "target"), condition)), TARGET, STAFF, kind=kind)
    refuse(change(logical("Filter", relation("hr", "staff"))), TARGET, kind=kind)
    refuse(
        change(logical("Filter", relation("hr", "target", slot="subquery"), logical("LocalRelation"))),
        TARGET,
        kind=kind,
    )
    refuse(
        change(logical("Filter", relation("hr", "staff", slot="subquery"), logical("LocalRelation"))), TARGET, kind=kind
    )


@pytest.mark.rule("ENF-11")
def test_definitions_name_their_target_only() -> None:
    def create(*name: str, catalog: str = ALIAS) -> Tree:
        return logical(
            "CreateTable", Tree(ANALYSIS + "ResolvedIdentifier", {"catalog": catalog, "identifier": list(name)})
        )

    accept(create("hr", "target"), TARGET, kind=StatementKind.CREATE_TABLE)
    refuse(create("hr", "other"), TARGET, kind=StatementKind.CREATE_TABLE)
    refuse(create("hr", "target", catalog="spark_catalog"), TARGET, kind=StatementKind.CREATE_TABLE)
    accept(logical("DropTag", table=[ALIAS, "hr", "target"], tag="x"), TARGET, kind=StatementKind.ALTER_TABLE)
    refuse(logical("DropTag", table=[ALIAS, "hr", "other"], tag="x"), TARGET, kind=StatementKind.ALTER_TABLE)
    refuse(logical("DropTag", tag="x"), TARGET, kind=StatementKind.ALTER_TABLE)
    refuse(logical("DropTag", table=[ALIAS, "hr", "target"]), TARGET, kind=StatementKind.SHOW)
    refuse(logical("LocalRelation"), kind=StatementKind.SHOW)


# Expressions and functions


@pytest.mark.rule("FUNC-1")
def test_expressions_are_judged_by_their_class() -> None:
    plan = describe(secured())
    for name in ("CurrentUser", "InputFileName", "CallMethodViaReflection", "ScalaUDF", "SparkVersion"):
        full = EXPRESSIONS + name
        with pytest.raises(NotSupportedError):
            verify(replace(plan, expressions=frozenset({full})), expected=[STAFF], kind=StatementKind.QUERY)
    with pytest.raises(InternalError):
        verify(replace(plan, expressions=frozenset({"com.example.Novel"})), expected=[STAFF], kind=StatementKind.QUERY)


@pytest.mark.rule("FUNC-1")
def test_only_transforms_of_iceberg_invoke_code() -> None:
    def calling(*parts: str) -> tuple[FunctionCall, ...]:
        return (FunctionCall(parts=parts),)

    accept(secured(), STAFF, functions=calling("org.apache.iceberg.spark.functions.BucketFunction$BucketInt", "invoke"))
    accept(secured(), STAFF, functions=calling("sqe.bridge.functions.SqlMath", "divide"))
    refuse(secured(), STAFF, functions=calling("sqe.bridge.functions.SqlMathToo", "divide"))
    refuse(secured(), STAFF, functions=calling("java.lang.Runtime", "getRuntime"))
    refuse(secured(), STAFF, functions=calling("org.apache.iceberg.util.Tasks", "run"))


@pytest.mark.rule("LIM-6")
def test_a_hint_cannot_ask_for_endless_partitions() -> None:
    accept(logical("Repartition", secured(), numPartitions=200), STAFF)
    with pytest.raises(ResourcesError):
        accept(logical("Repartition", secured(), numPartitions=1_000_000), STAFF)
    with pytest.raises(ResourcesError):
        accept(logical("RepartitionByExpression", secured(), optNumPartitions=1_000_000), STAFF)
