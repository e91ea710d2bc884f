"""The Python side of sessions and plans, with a bridge that only notes what it is asked."""

from __future__ import annotations

import base64
import json
from typing import Any

import pyarrow as pa
import pytest

from sqe_core.engine.port import (
    InlinedPlan,
    InlinedRows,
    RelationKind,
    RenamedTarget,
    SecuredTable,
    TimeTravel,
)
from sqe_core.engine.spark.catalog import decode_table, decode_view
from sqe_core.engine.spark.plan import decode_description
from sqe_core.engine.spark.session import SparkEngineSession
from sqe_core.spi.errors import InternalError

DESCRIPTION = {
    "nodes": [
        [-1, "", "org.apache.spark.sql.catalyst.plans.logical.Project", {}],
        [0, "child", "org.apache.spark.sql.catalyst.analysis.UnresolvedRelation", {"isStreaming": False}],
    ],
    "expressions": ["org.apache.spark.sql.catalyst.analysis.UnresolvedStar"],
    "relations": [
        {
            "kind": "relation",
            "parts": ["ns", "t"],
            "holder": "Project",
            "field": "child",
            "aliased": True,
            "time_travel": {"literal": True, "version": "5"},
            "options": {"a": "b"},
            "start": 14,
        },
        {"kind": "other", "parts": ["f"], "holder": "X", "field": "y"},
    ],
    "functions": [{"parts": ["repeat"], "literals": ["a", -5, None], "start": 3}],
    "hints": ["BROADCAST"],
    "parameters": ["p"],
    "expression_count": 4,
    "depth": 2,
}


class FakeBridge:
    """Records calls; answers plans with rising numbers."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self._plan = 0

    def _answer(self, name: str, *arguments: Any, **more: Any) -> str:
        self.calls.append((name, arguments))
        self._plan += 1
        return json.dumps({"plan": self._plan, "description": DESCRIPTION} | more)

    def parse(self, sql: str, parameters: str, released: str) -> str:
        return self._answer("parse", sql, json.loads(parameters), json.loads(released))

    def rewrite(self, plan: int, replacements: str) -> str:
        return self._answer("rewrite", plan, json.loads(replacements))

    def analyse(self, plan: int, tag: str, settings: str, check: str) -> str:
        schema = pa.schema([("a", pa.int32())])
        return self._answer(
            "analyse",
            plan,
            tag,
            json.loads(settings),
            is_command=False,
            divisible=True,
            constant=False,
            schema=base64.b64encode(schema.serialize()).decode(),
            column_types=["int"],
        )

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> None:
            self.calls.append((name, arguments))

        return call


class FakeEngine:
    process_alive = True
    context: Any = None


@pytest.fixture
def bridge() -> FakeBridge:
    return FakeBridge()


@pytest.fixture
def session(bridge: FakeBridge) -> SparkEngineSession:
    session = SparkEngineSession.__new__(SparkEngineSession)
    session.context = FakeEngine.context
    session.bridge = bridge
    session._engine = FakeEngine()  # type: ignore[assignment]  # a fake
    session._forgotten = []
    session._usable = True
    session._catalogs = {}
    return session


def test_description() -> None:
    description = decode_description(DESCRIPTION)
    assert [node.simple_type for node in description.nodes] == ["Project", "UnresolvedRelation"]
    assert description.root.parent == -1
    first, second = description.relations
    assert (first.index, first.kind, first.parts) == (0, RelationKind.RELATION, ("ns", "t"))
    assert first.time_travel == TimeTravel(literal=True, version="5")
    assert (first.aliased, first.cte, first.streaming, first.start) == (True, False, False, 14)
    assert first.options == {"a": "b"}
    assert (second.index, second.kind, second.time_travel) == (1, RelationKind.OTHER, None)
    assert description.functions[0].literals == ("a", -5, None)
    assert (description.hints, description.parameters) == (("BROADCAST",), ("p",))
    assert (description.expression_count, description.depth) == (4, 2)


def test_replacements_as_the_bridge_reads_them(session: SparkEngineSession, bridge: FakeBridge) -> None:
    plan, view = session.parse("SELECT 1"), session.parse("SELECT 2")
    session.rewrite(
        plan,
        [
            SecuredTable(index=0, sql="SELECT a FROM x", visible_name=("c", "t")),
            InlinedPlan(index=1, plan=view, columns=(("a", "b"),), visible_name=("v",)),
            InlinedRows(index=2, rows=pa.table({"a": [1]}), visible_name=("r",)),
            RenamedTarget(index=3, parts=("x", "t"), visible_name=("c", "t")),
        ],
    )
    name, (number, requests) = bridge.calls[-1]
    assert (name, number) == ("rewrite", 1)
    rows = requests[2].pop("rows")
    assert pa.ipc.open_stream(base64.b64decode(rows)).read_all().to_pylist() == [{"a": 1}]
    assert requests == [
        {"index": 0, "kind": "sql", "sql": "SELECT a FROM x", "name": ["c", "t"]},
        {"index": 1, "kind": "plan", "plan": 2, "columns": [["a", "b"]], "name": ["v"]},
        {"index": 2, "kind": "rows", "name": ["r"]},
        {"index": 3, "kind": "target", "parts": ["x", "t"], "name": ["c", "t"], "absent": False},
    ]


def test_plans_that_nobody_holds_are_released_with_the_next_statement(
    session: SparkEngineSession, bridge: FakeBridge
) -> None:
    kept = session.parse("SELECT 1")
    session.parse("SELECT 2")
    session.parse("SELECT 3")
    assert bridge.calls[-1] == ("parse", ("SELECT 3", {}, [2]))
    analysed = session.analyse(kept, tag="t", settings={"k": "v"})
    assert bridge.calls[-1] == ("analyse", (1, "t", {"k": "v"}))
    assert analysed.schema == pa.schema([("a", pa.int32())])
    assert analysed.column_types == ("int",)
    assert not analysed.is_command
    assert analysed.is_divisible
    assert not analysed.is_constant


def test_a_plan_of_another_session_is_refused(session: SparkEngineSession, bridge: FakeBridge) -> None:
    other = SparkEngineSession.__new__(SparkEngineSession)
    other.__dict__.update(session.__dict__)
    plan = other.parse("SELECT 1")
    with pytest.raises(InternalError):
        session.analyse(plan, tag="t")
    with pytest.raises(InternalError):
        session.rewrite(session.parse("SELECT 2"), [InlinedPlan(index=0, plan=plan, columns=None, visible_name=("v",))])


def test_a_session_lives_as_long_as_its_engine(session: SparkEngineSession, bridge: FakeBridge) -> None:
    assert session.alive
    session._engine.context = object()  # type: ignore[misc]  # another JVM took its place
    assert not session.alive
    session.close()
    with session.statement_scope():
        assert [name for name, _ in bridge.calls] == ["enterScope"]
    assert [name for name, _ in bridge.calls] == ["enterScope"]


def test_scopes_end_whatever_happens(session: SparkEngineSession, bridge: FakeBridge) -> None:
    with pytest.raises(ZeroDivisionError), session.statement_scope():
        raise ZeroDivisionError
    assert [name for name, _ in bridge.calls] == ["enterScope", "exitScope"]


def test_tables_and_views() -> None:
    column = {"name": "a", "type": "int", "nullable": True, "field_id": 1}
    table = decode_table(
        ("ns",),
        "t",
        {
            "uuid": "u",
            "location": "l",
            "format_version": 2,
            "schema_id": 3,
            "columns": [column | {"comment": "c", "default": "5"}],
            "partitioning": [["a_bucket", "a", "bucket[4]"]],
            "sort_order": ["a ASC NULLS FIRST"],
            "properties": {"comment": "table"},
            "current_snapshot_id": None,
            "refs": [["main", "branch", 7]],
        },
    )
    assert table.columns[0].default == "5"
    assert (table.partitioning[0].source, table.refs[0].snapshot_id, table.comment) == ("a", 7, "table")
    view = decode_view(
        ("ns",),
        "v",
        {
            "uuid": "u",
            "columns": [column],
            "representations": {"spark": "SELECT 1"},
            "default_catalog": None,
            "default_namespace": ["x"],
            "properties": {},
        },
    )
    assert (view.default_namespace, view.comment, view.columns[0].comment) == (("x",), None, None)
