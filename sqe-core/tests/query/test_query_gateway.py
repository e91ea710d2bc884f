"""What stands between a protocol and the query service: what is counted when, and who is told what."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from sqe_core.catalog.registry import CatalogRegistry
from sqe_core.query.gateway import ConnectedSession
from sqe_core.query.ingest.ingestion import Ingestion
from sqe_core.query.run.result import StatementResult
from sqe_core.query.run.running import EndReason
from sqe_core.session.session import Session as StoredSession
from sqe_core.spi.errors import QueryCancelledError, QueryTimeoutError, ResourcesError, UserError
from sqe_core.spi.protocol import ClientState, SessionChanges, StatementRequest, StatementState
from sqe_core.spi.statement_kinds import StatementKind
from sqe_core.testing.fakes import make_identity

ROWS = [pa.record_batch({"1": [1, 2]})]


class Service:
    """Notes whether it was asked to read a text, which is not of the form that takes rows."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def insert_rows(self, session: object, sql: str, batches: object, **options: object) -> None:
        self.read.append(sql)


def connected(service: Any, take: Callable[[Any], None] = lambda traffic: None) -> ConnectedSession:
    session = StoredSession(
        identity=make_identity("alice"),
        engine=cast(Any, SimpleNamespace(open_session=None)),
        catalogs=CatalogRegistry(),
        catalog="lake",
    )
    live: Any = SimpleNamespace(session=session, ensure_usable=lambda: None)
    return ConnectedSession(live, service, take=take, renew=lambda credential: None)


@pytest.mark.rule("LIM-1")
def test_no_text_is_read_for_who_has_used_up_the_limit() -> None:
    def refuse(traffic: Any) -> None:
        raise ResourcesError("too many statements")

    service = Service()
    with pytest.raises(ResourcesError, match="too many"):
        connected(service, refuse).begin(StatementRequest(sql="INSERT")).start_with_rows(ROWS)
    assert not service.read


def test_rows_for_another_statement_than_an_insert_are_left_to_the_caller() -> None:
    counted: list[Any] = []
    service = Service()
    session = connected(service, counted.append)
    assert not session.begin(StatementRequest(sql="UPDATE")).start_with_rows([])
    assert (service.read, counted) == ([], [])
    assert not session.begin(StatementRequest(sql="UPDATE")).start_with_rows(ROWS)
    assert (service.read, len(counted)) == (["UPDATE"], 1)


@pytest.mark.rule("LIM-8")
def test_a_statement_that_is_over_says_so_when_its_client_has_gone() -> None:
    asked = 0

    def check() -> None:
        nonlocal asked
        asked += 1
        if asked == 2:  # it was not over yet when the next batch was asked for
            raise QueryTimeoutError("too long")

    context: Any = SimpleNamespace(running=SimpleNamespace(check=check))
    nothing: Any = None
    files: Any = SimpleNamespace(finish=lambda: None)
    with pytest.raises(QueryTimeoutError):
        Ingestion(context, nothing, nothing)._receive(iter(()), files)


class Executing(Service):
    """Runs whatever it is told to in the state that the test looks at."""

    def __init__(self, seen: list[Any]) -> None:
        super().__init__()
        self.seen = seen
        self.batches: list[Any] = []

    def execute(self, session: object, sql: str, *, options: Any, **more: object) -> StatementResult:
        options.running.check()
        at = options.at
        self.seen.append(at.state())
        at.use("lake", ("sales",))
        at.set_property("dialect", "trino")
        at.put_prepared("p", "SELECT 1")
        at.drop_prepared("old")
        at.choose_roles(("reader",))
        options.running.warn("be careful")
        schema = pa.schema({"n": pa.int64()})
        return StatementResult(
            query_id=options.running.query_id, kind=StatementKind.QUERY, schema=schema, batches=iter(self.batches)
        )


CHANGED = SessionChanges(
    schema=("sales",), set_properties={"dialect": "trino"}, added_prepared={"p": "SELECT 1"}, roles=("reader",)
)


def test_what_a_statement_changes_is_told_also_where_the_session_has_it() -> None:
    seen: list[Any] = []
    session = connected(Executing(seen))
    with session.execute(StatementRequest(sql="x")) as statement:
        assert statement.changes == CHANGED
        assert statement.warnings == ("be careful",)
    assert session.schema == ("sales",)
    assert session.execute(StatementRequest(sql="x")).changes == SessionChanges()


def test_what_a_client_keeps_is_seen_by_its_statement_alone() -> None:
    seen: list[Any] = []
    session = connected(Executing(seen))
    kept = ClientState(catalog="other", schema=("s",), prepared={"old": "SELECT 0"}, roles=("reader", "writer"))
    told = session.execute(StatementRequest(sql="x", state=kept)).changes
    assert (seen[0].catalog, seen[0].schema, seen[0].roles) == ("other", ("s",), ("reader", "writer"))
    assert told == replace(CHANGED, catalog="lake", removed_prepared=("old",))
    session.execute(StatementRequest(sql="x", state=ClientState()))
    assert (seen[1].catalog, seen[1].schema, dict(seen[1].prepared)) == ("lake", ("default",), {})
    assert (session.schema, session.properties()["dialect"]) == (("default",), "sqe")
    with pytest.raises(UserError, match="Session property nonsense does not exist"):
        session.execute(StatementRequest(sql="x", state=ClientState(properties={"nonsense": "1"})))


@pytest.mark.rule("JWT-9")
def test_before_each_statement_its_session_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    session = connected(Executing([]))
    looked: list[int] = []
    monkeypatch.setattr(session._live, "ensure_usable", lambda: looked.append(1))
    session.execute(StatementRequest(sql="x"))
    assert not looked, "whoever logged in a moment ago was looked at"
    session.execute(StatementRequest(sql="x"))
    assert len(looked) == 1
    late = connected(Executing([]))
    monkeypatch.setattr(late._live, "ensure_usable", lambda: looked.append(1))
    time.sleep(0.11)
    late.execute(StatementRequest(sql="x"))
    assert len(looked) == 2


def test_the_states_of_a_statement() -> None:
    service = Executing([])
    service.batches = [pa.record_batch({"n": [1]})]
    statement = connected(service).begin(StatementRequest(sql="x"))
    assert statement.query_id
    assert (statement.statement_kind, statement.schema, statement.columns) == ("", None, ())
    assert statement.progress().state is StatementState.QUEUED
    statement.start()
    assert statement.statement_kind == "query"
    assert [batch.num_rows for batch in statement] == [1]
    assert statement.progress().state is StatementState.FINISHED

    ended = connected(service).begin(StatementRequest(sql="x"))
    ended.cancel()
    assert ended.state is StatementState.CANCELLED
    with pytest.raises(QueryCancelledError):
        ended.start()
    assert ended.progress().state is StatementState.CANCELLED

    late = connected(service).begin(StatementRequest(sql="x"))
    late._running.cancel(EndReason.TIMEOUT)
    assert late.state is StatementState.FAILED

    failed = connected(SimpleNamespace(execute=lambda *more, **options: 1 / 0)).begin(StatementRequest(sql="x"))
    with pytest.raises(ZeroDivisionError):
        failed.start()
    assert failed.progress().state is StatementState.FAILED


def test_one_that_is_closed_while_it_begins_is_ended() -> None:
    service = Executing([])
    statement = connected(service).begin(StatementRequest(sql="x"))
    statement.close()
    with pytest.raises(QueryCancelledError):
        statement.start()
