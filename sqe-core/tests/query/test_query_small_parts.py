"""Parameters, query ids, the bound on rows."""

import uuid

import pyarrow as pa
import pytest

from sqe_core.engine.port import TimeTravel
from sqe_core.query.judge.relation_text import table_text, time_travel_clause
from sqe_core.query.run.execution import bounded
from sqe_core.query.run.parameters import bind_parameters
from sqe_core.query.run.running import EndReason, RunningStatement, new_query_id
from sqe_core.spi.errors import QueryCancelledError, QueryTimeoutError, ResourcesError, UserError
from sqe_core.sql.grammar.types import spark_identifier
from sqe_core.sql.spark.text import quote_string
from sqe_core.sql.statement import EngineStatement, StatementKind


def statement(*names: str, positional: bool) -> EngineStatement:
    return EngineStatement(
        kind=StatementKind.QUERY,
        text="",
        spark_sql="",
        positions=None,  # type: ignore[arg-type]
        parameters=names,
        positional=positional,
    )


@pytest.mark.rule("STMT-4")
def test_parameters_must_fit_exactly() -> None:
    assert bind_parameters(statement("a", "b", positional=True), [1, "x"]) == {"a": 1, "b": "x"}
    assert bind_parameters(statement("a", "a", positional=False), {"a": 1}) == {"a": 1}
    assert bind_parameters(statement(positional=False), ()) == {}
    for markers, given in [
        (statement("a", positional=True), []),
        (statement("a", positional=True), [1, 2]),
        (statement("a", positional=True), {"a": 1}),
        (statement("a", positional=False), [1]),
        (statement("a", positional=False), {"b": 1}),
        (statement("a", positional=False), {"a": 1, "b": 1}),
        (statement(positional=False), [1]),
    ]:
        with pytest.raises(UserError):
            bind_parameters(markers, given)


def test_query_ids_are_sorted_uuids_of_version_7() -> None:
    ids = [new_query_id() for _ in range(50)]
    assert len(set(ids)) == 50
    assert {uuid.UUID(entry).version for entry in ids} == {7}
    assert {uuid.UUID(entry).variant for entry in ids} == {uuid.RFC_4122}


def test_more_rows_than_allowed_is_an_error_and_not_a_cut() -> None:
    batch = pa.record_batch({"a": [1, 2, 3]})
    assert sum(each.num_rows for each in bounded(iter([batch, batch]), 6)) == 6
    assert sum(each.num_rows for each in bounded(iter([batch, batch]), 0)) == 6
    with pytest.raises(ResourcesError, match="more than 5 rows"):
        list(bounded(iter([batch, batch]), 5))


@pytest.mark.rule("LIM-8")
def test_more_bytes_than_allowed_is_an_error_too() -> None:
    batch = pa.record_batch({"a": [1, 2, 3]})
    assert sum(each.num_rows for each in bounded(iter([batch, batch]), 0, 48)) == 6
    with pytest.raises(ResourcesError, match="more than 47 bytes"):
        list(bounded(iter([batch, batch]), 0, 47))


def test_the_first_reason_to_end_a_statement_counts() -> None:
    running = RunningStatement("q")
    running.check()
    running.cancel(EndReason.TIMEOUT)
    running.cancel()
    assert isinstance(running.end_error(), QueryTimeoutError)
    other = RunningStatement("q")
    other.cancel()
    with pytest.raises(QueryCancelledError):
        other.check()


@pytest.mark.rule("POL-7")
def test_text_and_names_of_ours_cannot_be_left() -> None:
    assert spark_identifier("a`b") == "`a``b`"
    assert quote_string("x\\' OR 1=1 -- ") == "'x\\\\\\' OR 1=1 -- '"
    sql = table_text(("c", "n", "t`"), ("a", "b`c"), marker="_sqe_r_1", travel=TimeTravel(literal=True, version="7"))
    assert sql == "SELECT `_sqe_r_1`.`a`, `_sqe_r_1`.`b``c` FROM `c`.`n`.`t``` VERSION AS OF 7 AS `_sqe_r_1`"
    assert time_travel_clause(TimeTravel(literal=True, version="x'y")) == " VERSION AS OF 'x\\'y'"
    assert time_travel_clause(TimeTravel(literal=True, timestamp="2026-01-01")) == " TIMESTAMP AS OF '2026-01-01'"
