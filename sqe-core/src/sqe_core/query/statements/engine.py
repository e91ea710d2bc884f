"""What the engine runs: queries, DML, and the DDL that it can say; EXPLAIN and DESCRIBE of these."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from sqe_core.catalog.types import display_type
from sqe_core.query.answers import trino_plans
from sqe_core.query.context import StatementContext
from sqe_core.query.errors.scrubber import Scrubber
from sqe_core.query.judge.judge import Judgement
from sqe_core.query.statements.handler import AnswerAboutQuery, PlanNeed, RunsInEngine
from sqe_core.query.statements.traits import DDL, DDL_IF_EXISTS, StatementTraits
from sqe_core.spi.errors import NotSupportedError
from sqe_core.spi.policy import Action
from sqe_core.sql.statement import (
    DescribeQuery,
    EngineStatement,
    Explain,
    ExplainPlan,
    ExplainValidate,
    StatementKind,
)


@dataclass(frozen=True, slots=True)
class _Form:
    """A kind of statement of the engine's, and what it does with a table that its plan names as a command's."""

    traits: StatementTraits
    command: Action | None = None


_WRITES = StatementTraits(writes_rows=True)
_FORMS: Mapping[StatementKind, _Form] = {
    StatementKind.QUERY: _Form(StatementTraits()),
    StatementKind.INSERT: _Form(_WRITES),
    StatementKind.UPDATE: _Form(_WRITES),
    StatementKind.DELETE: _Form(_WRITES),
    StatementKind.MERGE: _Form(_WRITES),
    StatementKind.TRUNCATE: _Form(_WRITES, Action.TRUNCATE),
    StatementKind.CREATE_TABLE: _Form(DDL, Action.CREATE),
    StatementKind.CREATE_TABLE_AS: _Form(_WRITES, Action.CREATE),
    StatementKind.ALTER_TABLE: _Form(DDL_IF_EXISTS, Action.ALTER),
    StatementKind.COMMENT: _Form(DDL, Action.ALTER),
}


engine_statement = RunsInEngine(
    statement=EngineStatement,
    needs=lambda statement: (PlanNeed(statement=statement),),
    traits_by=lambda statement: _FORMS[statement.kind].traits,
    command=lambda statement: _FORMS[statement.kind].command,
)


def _texts(*names: str) -> pa.Schema:
    return pa.schema([(name, pa.string()) for name in names])


def _described(
    statement: DescribeQuery, judgement: Judgement, context: StatementContext
) -> Iterator[Sequence[str | None]]:
    for field, type_text in zip(judgement.plan.schema, judgement.plan.column_types, strict=True):
        yield field.name, display_type(type_text), "YES" if field.nullable else "NO"


describe_query = AnswerAboutQuery(
    statement=DescribeQuery,
    columns=_texts("column_name", "data_type", "is_nullable"),
    query=lambda statement: statement.query,
    told=_described,
)


def _explained(statement: Explain) -> EngineStatement:
    if not isinstance(statement.inner, EngineStatement):
        raise NotSupportedError("EXPLAIN works for queries and for INSERT, UPDATE, DELETE, MERGE and CREATE TABLE AS")
    if statement.mode != "plan":
        raise NotSupportedError(f"EXPLAIN {statement.mode.upper()} is not supported yet", hint="use EXPLAIN")
    return statement.inner


def _plans(judgement: Judgement, context: StatementContext) -> Iterator[tuple[str, str]]:
    """The plans, in the user's own names."""
    scrubber = Scrubber(context.session.secrets())
    for kind, text in judgement.plan.explain():
        # The physical plan tells of versions and conditions of tables (META-5).
        if kind == "logical_plan" or not judgement.facts.restricted:
            yield kind, scrubber.visible_text(text)


explain = AnswerAboutQuery(
    statement=Explain,
    columns=_texts("plan_type", "plan"),
    query=_explained,
    told=lambda statement, judgement, context: _plans(judgement, context),
)


def _in_trino(statement: ExplainPlan, judgement: Judgement, context: StatementContext) -> Iterator[Sequence[str]]:
    if statement.type == "io":
        yield (trino_plans.io_plan(judgement, context),)
        return
    plans = dict(_plans(judgement, context))
    shown = plans["logical_plan"]
    if statement.type == "distributed" and statement.format == "text":
        shown = plans.get("physical_plan", shown)
    yield (trino_plans.FORMATS[statement.format](shown),)


explain_plan = AnswerAboutQuery(
    statement=ExplainPlan, columns=_texts("Query Plan"), query=lambda statement: statement.inner, told=_in_trino
)
explain_validate = AnswerAboutQuery(
    statement=ExplainValidate,
    columns=pa.schema([("Valid", pa.bool_())]),
    query=lambda statement: statement.inner,
    told=lambda statement, judgement, context: [(True,)],
)
