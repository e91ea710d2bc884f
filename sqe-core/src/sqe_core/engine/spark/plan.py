"""Plans of the Spark engine: a number that the bridge knows, and its description decoded."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sqe_core.engine.port import (
    AnalysedPlan,
    EnginePlan,
    FunctionCall,
    PlanDescription,
    PlanLineage,
    PlanNode,
    Relation,
    RelationKind,
    SourceColumn,
    TimeTravel,
)
from sqe_core.engine.spark.failures import engine_errors

if TYPE_CHECKING:
    from sqe_core.engine.spark.session import SparkEngineSession


class SparkPlan(EnginePlan):
    """A parsed plan. `handle` is its number in the bridge; `text` is what was parsed."""

    def __init__(self, session: SparkEngineSession, answer: Mapping[str, Any], text: str) -> None:
        self.session = session
        self.text = text
        self.handle: int = answer["plan"]
        self._answer = answer

    @cached_property
    def description(self) -> PlanDescription:
        return decode_description(self._answer["description"])

    def __del__(self) -> None:
        # The bridge frees it with the next statement; a call from here could come at any moment, from any thread.
        handle = getattr(self, "handle", None)
        if handle is not None:
            self.session.forget(handle)


class SparkAnalysedPlan(SparkPlan, AnalysedPlan):
    """A plan with every name resolved. `settings` are those it was analysed with."""

    def __init__(
        self, session: SparkEngineSession, answer: Mapping[str, Any], text: str, tag: str, settings: Mapping[str, str]
    ) -> None:
        super().__init__(session, answer, text)
        self.tag = tag
        self.settings = settings

    @cached_property
    def schema(self) -> pa.Schema:
        return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(self._answer["schema"])))

    @property
    def column_types(self) -> tuple[str, ...]:
        return tuple(self._answer["column_types"])

    @cached_property
    def parameter_types(self) -> Mapping[int, pa.DataType]:
        if "parameters" not in self._answer:
            return {}
        types = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(self._answer["parameters"])))
        return {int(field.name): field.type for field in types}

    @property
    def is_command(self) -> bool:
        return bool(self._answer["is_command"])

    @property
    def is_divisible(self) -> bool:
        return bool(self._answer["divisible"])

    @property
    def is_constant(self) -> bool:
        return bool(self._answer["constant"])

    def explain(self) -> Sequence[tuple[str, str]]:
        with engine_errors(self.session.context, self.text):
            rows = json.loads(self.session.bridge.explain(self.handle))
        return [(kind, text) for kind, text in rows]

    def lineage(self) -> PlanLineage:
        with engine_errors(self.session.context, self.text):
            found: Mapping[str, Any] = json.loads(self.session.bridge.lineage(self.handle))
        return PlanLineage(
            columns=tuple(
                (name, tuple(_source(parts, column, kind) for parts, column, kind in sources))
                for name, sources in found["columns"]
            ),
            indirect=tuple(
                _source(parts, column, kind) for kind, sources in found["indirect"].items() for parts, column in sources
            ),
        )


def _source(parts: Sequence[str], column: str, kind: str) -> SourceColumn:
    return SourceColumn(relation=tuple(parts), column=column, kind=kind)


def decode_description(described: Mapping[str, Any]) -> PlanDescription:
    """Build the description from the answer of the bridge's `PlanWalk`."""
    return PlanDescription(
        nodes=tuple(
            PlanNode(id=index, parent=parent, slot=slot, type=type_name, fields=fields)
            for index, (parent, slot, type_name, fields) in enumerate(described["nodes"])
        ),
        expressions=frozenset(described["expressions"]),
        relations=tuple(_decode_relation(index, each) for index, each in enumerate(described["relations"])),
        functions=tuple(
            FunctionCall(
                parts=tuple(each["parts"]),
                table_valued=each.get("table_valued", False),
                literals=tuple(each["literals"]),
                calls={int(place): name for place, name in each.get("calls", {}).items()},
                start=each.get("start"),
            )
            for each in described["functions"]
        ),
        hints=tuple(described["hints"]),
        parameters=tuple(described["parameters"]),
        expression_count=described["expression_count"],
        depth=described["depth"],
    )


def _decode_relation(index: int, each: Mapping[str, Any]) -> Relation:
    travel = each.get("time_travel")
    return Relation(
        index=index,
        kind=RelationKind(each["kind"]),
        parts=tuple(each["parts"]),
        holder=each["holder"],
        field=each["field"],
        cte=each.get("cte", False),
        aliased=each.get("aliased", False),
        options=each.get("options", {}),
        time_travel=None if travel is None else TimeTravel(**travel),
        streaming=each.get("streaming", False),
        start=each.get("start"),
    )
