"""What is counted and logged of a statement."""

from __future__ import annotations

import logging

import pyarrow as pa
import pytest
from testbed.counting import Counted

from sqe_core.observe.history import QueryHistory
from sqe_core.query.run.record import Recorder
from sqe_core.query.run.result import StatementResult
from sqe_core.query.statements.traits import StatementTraits
from sqe_core.session.fingerprint import session_hash
from sqe_core.spi.errors import ErrorCode, QueryCancelledError, ResourcesError, ShuttingDownError, UserError
from sqe_core.spi.events import QueryEvent, QueryPhase
from sqe_core.spi.identity import Identity
from sqe_core.sql.statement import StatementKind

CANARY = "canary-9b3d"


class FakeSession:
    id = "secret-session-id"
    protocol = "flight"
    client_address = "10.1.2.3"
    identity = Identity(issuer="idp", subject="alice", username="alice", provider="test")


@pytest.fixture
def counted() -> Counted:
    return Counted()


def recorder(counted: Counted, *, slow_secs: float = 0) -> Recorder:
    return Recorder(QueryHistory(), notify=None, metrics=counted, slow_secs=slow_secs)


def begin(recorder: Recorder, kind: StatementKind | None = StatementKind.QUERY):  # type: ignore[no-untyped-def]
    record = recorder.begin("query-1", FakeSession(), f"SELECT '{CANARY}'", "sqe")  # type: ignore[arg-type]
    if kind is not None:
        record.recognised(kind, StatementTraits(writes_rows=kind is StatementKind.INSERT))
        record.planned(kind, None)
    return record


def test_a_finished_query(counted: Counted) -> None:
    record = begin(recorder(counted))
    batch = pa.record_batch({"n": [1, 2, 3]})
    result = StatementResult(query_id="query-1", kind=StatementKind.QUERY, schema=batch.schema, batches=[batch, batch])
    assert len(list(result.watched(record.delivered))) == 2
    record.end(None, 6)
    assert counted.values == {
        ("sqe_time_to_first_row_seconds",): 1,
        ("sqe_rows_returned_total",): 6,
        ("sqe_bytes_returned_total",): 2 * batch.nbytes,
        ("sqe_query_count_total", "success", "query", ""): 1,
        ("sqe_protocol_query_count_total", "flight", "success"): 1,
        ("sqe_query_duration_seconds", "query"): 1,
    }


def test_rows_that_were_written(counted: Counted) -> None:
    begin(recorder(counted), StatementKind.INSERT).end(None, 5)
    assert counted.values[("sqe_rows_written_total",)] == 5
    assert ("sqe_rows_returned_total",) not in counted.values


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (UserError("no", code=ErrorCode.TABLE_NOT_FOUND), "failure", "TABLE_NOT_FOUND"),
        (QueryCancelledError("no"), "cancelled", "QUERY_CANCELLED"),
        (ShuttingDownError("no"), "failure", "SERVER_SHUTTING_DOWN"),
    ],
)
def test_a_failed_statement(counted: Counted, error: UserError, status: str, code: str) -> None:
    begin(recorder(counted), None).end(error, None)
    assert counted.values[("sqe_query_count_total", status, "unknown", code)] == 1


def test_refusals(counted: Counted) -> None:
    records = recorder(counted)
    records.refused(ResourcesError("Too many concurrent queries"))
    records.refused(ShuttingDownError("bye"))
    assert counted.values[("sqe_query_refused_total", "concurrency")] == 1
    assert counted.values[("sqe_query_refused_total", "draining")] == 1


@pytest.mark.rule("OBS-2", "OBS-3")
def test_a_slow_statement_is_logged_without_its_text(counted: Counted, caplog: pytest.LogCaptureFixture) -> None:
    begin(recorder(counted, slow_secs=0.000001)).end(None, 1)
    (line,) = caplog.records
    assert line.levelno == logging.WARNING
    fields = line.fields  # type: ignore[attr-defined]
    assert (line.query_id, line.session) == ("query-1", session_hash(FakeSession()))  # type: ignore[attr-defined, arg-type]
    assert (fields["event"], fields["status"], fields["statement_type"]) == ("slow_query", "success", "query")
    assert counted.values[("sqe_slow_query_count_total",)] == 1
    assert CANARY not in str(vars(line))
    assert FakeSession.id not in str(vars(line))


@pytest.mark.parametrize("slow_secs", [0, 60])
def test_a_quick_statement_is_not(counted: Counted, caplog: pytest.LogCaptureFixture, slow_secs: float) -> None:
    begin(recorder(counted, slow_secs=slow_secs)).end(None, 1)
    assert not caplog.records


def recorded(sql: str, *, error: UserError | None = None, dialect: str = "sqe", full_text: bool = False):  # type: ignore[no-untyped-def]
    """The events and the history of one statement."""
    events: list[QueryEvent] = []
    history = QueryHistory()
    records = Recorder(history, notify=events.append, full_text=full_text)
    record = records.begin("query-1", FakeSession(), sql, dialect)  # type: ignore[arg-type]
    record.planned(StatementKind.QUERY, None)
    record.end(error, None)
    return events, history.entries()[0]


@pytest.mark.rule("OBS-1", "OBS-3")
def test_neither_observers_nor_history_get_literals() -> None:
    error = UserError(f"The value '{CANARY}' cannot be cast to bigint")
    events, entry = recorded(f"SELECT CAST('{CANARY}' AS bigint) -- {CANARY}", error=error)
    assert [event.phase for event in events] == [QueryPhase.RECEIVED, QueryPhase.STARTED, QueryPhase.FAILED]
    assert {event.sql for event in events} == {"SELECT CAST(? AS bigint)"}
    assert events[-1].error_message == "The value ? cannot be cast to bigint"
    assert entry.sql == "SELECT CAST(? AS bigint)"
    assert CANARY not in str(events) + str(entry)


@pytest.mark.rule("OBS-3")
def test_the_hash_is_that_of_the_statement_as_sent() -> None:
    events, _ = recorded("SELECT 'a'")
    others, _ = recorded("SELECT 'b'")
    assert events[0].sql == others[0].sql
    assert events[0].sql_hash != others[0].sql_hash


@pytest.mark.rule("OBS-3")
def test_quotes_mean_what_the_dialect_says() -> None:
    events, _ = recorded(f'SELECT "{CANARY}"', dialect="spark")
    assert events[0].sql == "SELECT ?"
    events, _ = recorded('SELECT "name"')
    assert events[0].sql == 'SELECT "name"'


@pytest.mark.rule("OBS-2")
def test_a_history_may_keep_the_full_text_but_no_secrets() -> None:
    sql = f"SELECT 'text', connect('postgres://me:{CANARY}@db'), f(token => '{CANARY}')"
    events, entry = recorded(sql, full_text=True)
    assert entry.sql == "SELECT 'text', connect('postgres://***@db'), f(token => ***)"
    assert events[0].sql == "SELECT ?, connect(?), f(token => ?)"


@pytest.mark.rule("OBS-2")
@pytest.mark.parametrize(
    ("full_text", "kept"),
    [
        (False, "EXECUTE p USING ?: SELECT ?, f(token => ?)"),
        (True, "EXECUTE p USING ?: SELECT 'text', f(token => ***)"),
    ],
)
def test_the_history_keeps_what_a_statement_stands_for(full_text: bool, kept: str) -> None:
    history = QueryHistory()
    records = Recorder(history, notify=None, full_text=full_text)
    record = records.begin("query-1", FakeSession(), "EXECUTE p USING 1", "sqe")  # type: ignore[arg-type]
    record.stands_for(f"SELECT 'text', f(token => '{CANARY}')", "sqe")
    assert history.entries()[0].sql == kept


def test_a_long_statement_is_cut() -> None:
    _, entry = recorded("SELECT " + "a, " * 40_000)
    assert entry.sql.endswith("…")
    assert len(entry.sql) < 70_000


@pytest.mark.rule("OBS-3")
def test_an_error_of_ours_is_logged_with_its_trace_and_without_literals(
    counted: Counted, caplog: pytest.LogCaptureFixture
) -> None:
    records = recorder(counted)
    record = begin(records)
    try:
        raise RuntimeError(f"cannot do\nSELECT '{CANARY}'")
    except RuntimeError as error:
        records.unexpected("query-1", error)
        records.unexpected("of-nobody", ValueError("other"))
    line, other = caplog.records
    assert CANARY not in str(vars(line)) + line.getMessage()
    trace = line.fields["error"]  # type: ignore[attr-defined]
    assert "test_an_error_of_ours" in trace
    assert trace.endswith("RuntimeError: cannot do\nSELECT ?")
    assert (line.query_id, line.levelno) == ("query-1", logging.ERROR)  # type: ignore[attr-defined]
    assert other.getMessage() == "unexpected error in query of-nobody: ValueError: other"
    record.end(None, 1)
