"""What judging found, as one value, and what observers are told of it."""

from __future__ import annotations

import pytest
from handler_lake import ALICE, ROOT, Lake

from sqe_core.engine.port import EngineExecutionError, EngineFailure
from sqe_core.query.judge.bind import Usage
from sqe_core.query.judge.facts import StatementFacts
from sqe_core.query.run.record import StatementRecord
from sqe_core.query.service import StatementOptions
from sqe_core.spi.events import QueryEvent
from sqe_core.spi.policy import Action
from sqe_core.testing.engine import FakePlan


@pytest.fixture
def facts(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> list[StatementFacts]:
    """The facts of every statement that the lake runs."""
    found: list[StatementFacts] = []
    planned = StatementRecord.planned

    def noting(record: StatementRecord, kind, judgement) -> None:  # type: ignore[no-untyped-def]
        if judgement is not None:
            found.append(judgement.facts)
        planned(record, kind, judgement)

    monkeypatch.setattr(StatementRecord, "planned", noting)
    return found


def test_what_a_query_reads(lake: Lake, facts: list[StatementFacts]) -> None:
    lake.run(ALICE, "CREATE VIEW v AS SELECT lower(name) AS name FROM people")
    lake.run(ALICE, "SELECT count(*) AS n FROM v")
    (found,) = facts
    view, table = found.read
    assert (view.name.name, view.is_view) == ("v", True)
    assert (table.name.name, table.snapshot_id) == ("people", 1)
    assert table.uuid == lake.engine.catalogs["lake"].tables[("default",), "people"][0].uuid
    assert found.functions == {"count", "lower"}
    assert (found.written, found.deterministic, found.scope) == ((), True, "everybody")


def test_what_a_statement_writes(lake: Lake, facts: list[StatementFacts]) -> None:
    lake.run(ALICE, "CREATE TABLE more AS SELECT id FROM people")
    lake.run(ALICE, "DELETE FROM more WHERE id = 1")
    made, changed = facts
    assert [(one.name.name, one.usage, one.uuid) for one in made.written] == [("more", Usage.CREATE, None)]
    assert [one.name.name for one in made.read] == ["people"]
    assert [one.actions for one in changed.written] == [(Action.DELETE, Action.SELECT)]
    assert [one.name.name for one in changed.read] == ["more"]


def test_what_columns_are_made_of(lake: Lake, facts: list[StatementFacts]) -> None:
    lake.run(ALICE, "CREATE VIEW v AS SELECT upper(name) AS shout, id FROM people WHERE city = 'Rome'")
    lake.run(ALICE, "SELECT shout, id FROM v")
    found = facts[-1]
    assert {(str(one.name), one.column, one.kind) for one in found.columns["id"]} == {
        ("lake.default.people", "id", "IDENTITY")
    }
    assert {one.kind for one in found.columns["shout"]} == {"TRANSFORMATION"}
    assert [(one.column, one.kind) for one in found.conditions] == [("city", "FILTER")]
    assert set(found.read[-1].columns) == {"name", "id", "city"}


@pytest.mark.parametrize(
    ("sql", "deterministic", "scope"),
    [
        ("SELECT id FROM people", True, "everybody"),
        ("SELECT current_user AS who FROM people", True, "user"),
        ("SELECT table_name FROM information_schema.tables", False, "user"),
        ("SELECT now() AS t FROM people", False, "everybody"),
        ("SELECT id FROM w", False, "user"),
    ],
)
def test_whose_answer_it_is(lake: Lake, facts: list[StatementFacts], sql: str, deterministic: bool, scope: str) -> None:
    lake.run(ALICE, "CREATE TEMPORARY VIEW w AS SELECT id FROM people")
    lake.run(ALICE, sql)
    assert (facts[-1].deterministic, facts[-1].scope) == (deterministic, scope)


def test_a_policy_makes_an_answer_its_users(lake: Lake, facts: list[StatementFacts]) -> None:
    lake.root("GRANT SELECT ON people TO USER alice ROWS WHERE city = 'Rome'")
    lake.run(ALICE, "SELECT id FROM people")
    assert facts[-1].scope == "user"


def final(lake: Lake) -> QueryEvent:
    return next(event for event in reversed(lake.events) if event.phase.final)


def test_observers_are_told(lake: Lake) -> None:
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    options = StatementOptions(source="dbt\n\x00", trace_parent=f"00-{trace}-00f067aa0ba902b7-01")
    lake.sqe.service.execute(lake.session(ALICE), "SELECT id FROM people", options=options).read_all()
    event = final(lake)
    assert (event.source, event.trace_id) == ("dbt", trace)
    timings = event.timings
    for part in (timings.queued_ms, timings.analysis_ms, timings.planning_ms, timings.execution_ms):
        assert part is not None
        assert timings.total_ms is not None
        assert 0 <= part <= timings.total_ms
    assert event.counts.rows_scanned == 2
    assert event.counts.bytes_scanned
    (read,) = event.objects
    assert (str(read.name), read.snapshot_id, read.columns) == ("lake.default.people", 1, ("id",))
    assert read.uuid == lake.engine.catalogs["lake"].tables[("default",), "people"][0].uuid
    assert [(one.column, one.kind) for one in event.columns["id"]] == [("id", "IDENTITY")]


@pytest.mark.rule("TRI-7", "ENF-17")
def test_the_history_counts_what_its_user_may_know(lake: Lake) -> None:
    lake.run(ALICE, "SELECT id FROM people")
    lake.root("GRANT SELECT ON people TO USER alice ROWS WHERE city = 'Rome'")
    lake.run(ALICE, "SELECT name FROM people")
    sql = "SELECT query, rows_scanned, bytes_scanned, analysis_time_ms FROM system.runtime.queries"
    found = {query: (rows, size) for query, rows, size, analysis in lake.run(ALICE, sql) if analysis is not None}
    rows, size = found["SELECT id FROM people"]
    assert (rows, bool(size)) == (2, True)
    assert found["SELECT name FROM people"] == (None, None)


def test_a_statement_runs_whose_columns_cannot_be_traced(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(plan: FakePlan) -> None:
        raise EngineExecutionError(EngineFailure(condition="INTERNAL_ERROR", sql_state=None, parameters={}))

    monkeypatch.setattr(FakePlan, "lineage", fails)
    assert lake.run(ALICE, "SELECT id FROM people") == [(1,), (2,)]
    assert final(lake).objects[0].columns == ()


def test_nobody_asks_the_engine_for_what_nobody_wants_to_know(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakePlan, "lineage", lambda plan: pytest.fail("asked"))
    lake.sqe.service._parts.recorder.notify = None
    lake.run(ALICE, "SELECT id FROM people")


@pytest.mark.parametrize("header", ["", "00-" + "0" * 32 + "-00f067aa0ba902b7-01", "x" * 1000, "00-zz-1-1"])
def test_what_is_no_trace(lake: Lake, header: str) -> None:
    lake.sqe.service.execute(
        lake.session(ALICE), "SELECT 1 AS one", options=StatementOptions(trace_parent=header)
    ).close()
    assert final(lake).trace_id is None


def test_statements_that_are_not_judged_have_no_counts(lake: Lake) -> None:
    lake.run(ROOT, "SHOW CATALOGS")
    assert final(lake).counts.rows_scanned is None
