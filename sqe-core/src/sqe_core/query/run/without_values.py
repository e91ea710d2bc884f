"""What a statement expects and answers before it has values for its parameters."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from sqe_core.engine.port import AnalysedPlan, EngineExecutionError, ParameterMarker
from sqe_core.query.run.judging import Judging
from sqe_core.spi.errors import UserError
from sqe_core.sql.statement import EngineStatement

# What asks a value for its type before it has one.
_TOO_EARLY = frozenset(
    {
        "INTERNAL_ERROR",  # the condition of UPDATE
        "INVALID_AGGREGATE_FILTER",
    }
)
# What the engine says when types or constants do not fit; a parameter without a value has no type and is no constant.
_ABOUT_VALUES = frozenset(
    {
        *_TOO_EARLY,
        "DATATYPE_MISMATCH",
        "INVALID_EXTRACT_BASE_FIELD_TYPE",
        "JOIN_CONDITION_IS_NOT_BOOLEAN_TYPE",
        "_LEGACY_ERROR_TEMP_1035",  # the offset of LAG
        "_LEGACY_ERROR_TEMP_1036",  # the bounds of a window's frame
    }
)


def plan_without_values(judging: Judging, statement: EngineStatement, names: Sequence[str]) -> AnalysedPlan | None:
    """Judge a statement before it has values; None when only they show whether its types fit.

    What is not there, or may not be seen, is refused as ever.
    """
    markers = {name: ParameterMarker(number=number) for number, name in enumerate(names)}
    try:
        return judging.judge(statement, markers).plan
    except (EngineExecutionError, UserError) as error:
        if not names:
            raise
        first = error
    try:
        # Some places take constants only; there a NULL may do, and mean a number of rows.
        plan = judging.judge(statement, dict.fromkeys(names)).plan
        return None if _is_about_values(first, _TOO_EARLY) else plan
    except (EngineExecutionError, UserError) as error:
        for each in (error, first):
            if not _is_about_values(each):
                raise each from None
        return None


def parameter_types(plan: AnalysedPlan | None, count: int) -> list[pa.DataType]:
    """Return what each parameter is. What is not found stood where only numbers of rows can: LIMIT, OFFSET."""
    return [pa.null() if plan is None else plan.parameter_types.get(at, pa.int64()) for at in range(count)]


def _is_about_values(error: EngineExecutionError | UserError, conditions: frozenset[str] = _ABOUT_VALUES) -> bool:
    """Whether a statement may be right once it has values; all that it reads was found and allowed by then."""
    return isinstance(error, EngineExecutionError) and error.failure.condition.partition(".")[0] in conditions
