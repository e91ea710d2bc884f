"""What protocols see of statements: clients that keep their state, history, and who is an administrator."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from handler_lake import ALICE, BOB, ROOT, Lake

from sqe_core.query.gateway import ConnectedSession
from sqe_core.spi.errors import ErrorCode, QueryCancelledError, SqeError
from sqe_core.spi.identity import Identity
from sqe_core.spi.protocol import ClientState, StatementRequest, StatementState
from sqe_core.testing.engine import FakeCatalog, FakeEngineSession


def connected(lake: Lake, who: Identity) -> ConnectedSession:
    live: Any = SimpleNamespace(session=lake.session(who), ensure_usable=lambda: None)
    return ConnectedSession(live, lake.sqe.service, take=lambda traffic: None, renew=lambda credential: None)


def test_prepared_statements_that_a_client_keeps(lake: Lake) -> None:
    session = connected(lake, ALICE)
    with session.execute(StatementRequest(sql="PREPARE p FROM SELECT 1 AS one", state=ClientState())) as prepared:
        added = prepared.changes.added_prepared
    assert list(added) == ["p"]
    with pytest.raises(SqeError):
        session.execute(StatementRequest(sql="EXECUTE p", state=ClientState()))
    with pytest.raises(SqeError):
        session.execute(StatementRequest(sql="EXECUTE p"))
    gone = session.execute(StatementRequest(sql="DEALLOCATE PREPARE p", state=ClientState(prepared=added)))
    assert gone.changes.removed_prepared == ("p",)


def test_names_that_a_client_keeps_are_nobody_elses(lake: Lake) -> None:
    session = connected(lake, ALICE)
    used = session.execute(StatementRequest(sql="USE other.default", state=ClientState(catalog="lake")))
    assert (used.changes.catalog, used.changes.schema) == ("other", ("default",))
    assert session.catalog == "lake"
    used = session.execute(StatementRequest(sql="USE other.default"))
    assert used.changes.catalog == "other"
    assert session.catalog == "other"


def test_roles_of_a_request_narrow_and_never_widen(lake: Lake) -> None:
    session = connected(lake, ROOT)
    sql = "SHOW GRANTS ON TABLE lake.hr.pay"
    session.execute(StatementRequest(sql=sql, state=ClientState()))
    none = ClientState(roles=())
    with pytest.raises(SqeError):
        session.execute(StatementRequest(sql="CREATE ROLE made", state=none))
    with pytest.raises(SqeError):
        connected(lake, BOB).execute(
            StatementRequest(sql="CREATE ROLE made", state=ClientState(roles=("service_admin",)))
        )


def test_what_cannot_be_read_is_in_the_history(lake: Lake) -> None:
    before = len(lake.events)
    rows = [pa.record_batch({"1": [1, 2]})]
    with pytest.raises(SqeError):
        lake.sqe.service.insert_rows(lake.session(ALICE), "INSRT INTO people VALUES (?)", rows)
    assert len(lake.events) > before
    assert lake.events[-1].error_code is ErrorCode.SYNTAX_ERROR


@pytest.mark.rule("TRI-9")
def test_who_gave_up_the_role_of_an_administrator_is_none(lake: Lake) -> None:
    service, session = lake.sqe.service, lake.session(ROOT)
    assert service.is_admin(session)
    lake.run(ROOT, "SET ROLE NONE")
    assert not service.is_admin(session)
    lake.run(ROOT, "SET ROLE ALL")
    assert service.is_admin(session)
    assert not service.is_admin(lake.session(BOB))


@pytest.mark.parametrize("plans", [True, False])
@pytest.mark.parametrize(
    "sql", ["CREATE TABLE made AS SELECT id FROM people", "CREATE SCHEMA made", "SELECT id FROM people"]
)
def test_while_it_works_a_statement_runs_and_with_its_last_rows_it_finishes(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, sql: str, plans: bool
) -> None:
    seen: list[StatementState] = []

    def watched(owner: type, name: str) -> None:
        original = getattr(owner, name)

        def method(*given: Any, **named: Any) -> Any:
            seen.append(statement.state)
            return original(*given, **named)

        monkeypatch.setattr(owner, name, method)

    watched(FakeEngineSession, "execute")
    watched(FakeCatalog, "create_namespace")
    statement = connected(lake, ROOT).begin(StatementRequest(sql=sql))
    if plans:
        statement.plan()
        assert statement.state is StatementState.PLANNING
    statement.start()
    assert seen == [StatementState.RUNNING]
    if statement.schema is not None:
        assert [statement.state for _ in statement] == [StatementState.FINISHING]
    assert statement.state is StatementState.FINISHED


def test_a_statement_can_be_cancelled_before_anything_was_done(lake: Lake) -> None:
    statement = connected(lake, ALICE).begin(StatementRequest(sql="SELECT 1 AS one"))
    statement.cancel()
    with pytest.raises(QueryCancelledError):
        statement.plan()
    assert statement.progress().state is StatementState.CANCELLED


def test_history_and_events_tell_what_the_client_calls_itself_and_its_trace(lake: Lake) -> None:
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    request = StatementRequest(sql="SHOW CATALOGS", source="dbt", trace_parent=f"00-{trace}-00f067aa0ba902b7-01")
    connected(lake, ALICE).execute(request).close()
    assert (lake.events[-1].source, lake.events[-1].trace_id) == ("dbt", trace)
    assert lake.events[-1].timings.queued_ms is not None
    for wrong in ("nonsense", f"00-{'0' * 32}-00f067aa0ba902b7-01", f"00-{trace}"):
        with pytest.raises(SqeError):
            connected(lake, ALICE).execute(StatementRequest(sql="nonsense", source="x" * 999, trace_parent=wrong))
        assert lake.events[-1].trace_id is None
        assert lake.events[-1].source == "x" * 256


@pytest.mark.rule("STMT-1")
@pytest.mark.parametrize("text", ["DESCRIBE OUTPUT p", "DESCRIBE INPUT p", "EXECUTE p", "PREPARE q FROM SELECT 1"])
@pytest.mark.parametrize("sql", ["DESCRIBE OUTPUT p", "DESCRIBE INPUT p"])
def test_what_a_client_keeps_may_not_stand_for_itself(lake: Lake, sql: str, text: str) -> None:
    with pytest.raises(SqeError, match="may not prepare or execute another one"):
        connected(lake, ALICE).execute(StatementRequest(sql=sql, state=ClientState(prepared={"p": text})))


@pytest.mark.rule("OBS-3")
@pytest.mark.parametrize("sql", ["DESCRIBE OUTPUT p", "DESCRIBE INPUT p", "EXECUTE p"])
def test_values_of_what_a_client_keeps_are_in_no_event(lake: Lake, sql: str) -> None:
    text = "SELECT EXTRACT('topsecret4711' FROM current_timestamp)"
    with pytest.raises(SqeError):
        connected(lake, ALICE).execute(StatementRequest(sql=sql, state=ClientState(prepared={"p": text})))
    assert lake.events
    assert "topsecret4711" not in str(lake.events)
