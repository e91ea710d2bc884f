"""Who sees and ends which sessions and statements, by SQL; through the composed server, without an engine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from testbed.composed import ComposedServer

from sqe_core.query.run.running import EndReason, RunningStatement
from sqe_core.session.fingerprint import session_hash
from sqe_core.spi.auth import BearerCredential, ClientInfo
from sqe_core.spi.errors import ErrorCode, InvalidCredentialsError, UserError
from sqe_core.spi.identity import Secret

CONFIG = """
[metrics]
audit_log_path = "{folder}/audit.log"
[policy]
engine = "passthrough"
i_understand_no_enforcement = true
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ComposedServer]:
    with closing(ComposedServer(tmp_path, CONFIG)) as made:
        yield made


def users(rows: list[dict[str, Any]]) -> list[str]:
    return [row["user"] for row in rows]


@pytest.mark.rule("TRI-9")
def test_everybody_sees_their_own_sessions_and_administrators_all(server: ComposedServer) -> None:
    alice, bob, root = server.log_in("alice"), server.log_in("bob"), server.log_in("root")
    second = server.log_in("alice", label="second")

    mine = server.rows(alice, "SHOW SESSIONS")
    assert users(mine) == ["alice", "alice"]
    assert [row["current"] for row in mine] == [True, False]
    assert {row["session_id"] for row in mine} == {session_hash(alice.session), session_hash(second.session)}
    assert mine[0]["state"] == "RUNNING", "this very statement runs in it"
    assert (mine[1]["state"], mine[1]["protocol"], mine[1]["client_address"]) == ("IDLE", "flight", "127.0.0.1")
    assert users(server.rows(bob, "SHOW SESSIONS")) == ["bob"]
    assert users(server.rows(root, "SHOW SESSIONS")) == ["alice", "bob", "root", "alice"]


@pytest.mark.rule("SESS-1")
def test_no_secret_of_a_session_is_listed(server: ComposedServer) -> None:
    alice, root = server.log_in("alice"), server.log_in("root")
    told = repr(server.rows(root, "SHOW SESSIONS")) + repr(server.rows(root, "SHOW QUERIES"))
    for secret in (alice.token.reveal(), alice.session.id, root.token.reveal(), "sqe_alice-0123456789"):
        assert secret not in told
    with pytest.raises(InvalidCredentialsError):
        server.store.authenticate(
            BearerCredential(token=Secret(session_hash(alice.session))), ClientInfo(protocol="flight")
        )


@pytest.mark.rule("TRI-9")
@pytest.mark.parametrize(
    "sql",
    ["KILL SESSION '{id}'", "CALL system.runtime.kill_session('{id}')", "kill connection '{id}' ;"],
)
def test_an_administrator_ends_a_session(server: ComposedServer, sql: str) -> None:
    alice, root = server.log_in("alice"), server.log_in("root")
    server.rows(root, sql.format(id=session_hash(alice.session)))

    assert alice.session.closed
    assert alice.session.identity.access_token is None
    with pytest.raises(UserError) as caught:
        server.store.authenticate(BearerCredential(token=alice.token), ClientInfo(protocol="flight"))
    assert caught.value.code is ErrorCode.SESSION_EXPIRED
    assert users(server.rows(root, "SHOW SESSIONS")) == ["root"]
    assert server.log_in("alice") is not alice, "her key still counts, for another session"


@pytest.mark.rule("TRI-3")
def test_another_users_session_is_answered_like_none(server: ComposedServer) -> None:
    alice, bob = server.log_in("alice"), server.log_in("bob")
    said = []
    for wanted in (session_hash(alice.session), "0123456789abcdef"):
        with pytest.raises(UserError) as caught:
            server.rows(bob, f"KILL SESSION '{wanted}'")
        said.append((str(caught.value), caught.value.hint, caught.value.code))
    assert said[0] == said[1]
    assert not alice.session.closed


def test_a_user_ends_their_other_session_but_not_the_one_they_are_in(server: ComposedServer) -> None:
    first, second = server.log_in("alice"), server.log_in("alice", label="second")
    server.rows(first, f"KILL SESSION '{session_hash(second.session)}'")
    assert second.session.closed
    with pytest.raises(UserError, match="the session that it runs in"):
        server.rows(first, f"KILL SESSION '{session_hash(first.session)}'")
    assert not first.session.closed


@pytest.mark.rule("SESS-6")
def test_those_who_share_an_identity_do_not_end_each_other(server: ComposedServer) -> None:
    one, other = server.log_in(None), server.log_in(None, label="other")
    assert one is not other
    server.rows(other, "SHOW CATALOGS")

    assert [row["current"] for row in server.rows(one, "SHOW SESSIONS")] == [True]
    assert {row["session_id"] for row in server.rows(one, "SHOW QUERIES")} == {session_hash(one.session)}
    with pytest.raises(UserError, match="There is no session of that id"):
        server.rows(one, f"KILL SESSION '{session_hash(other.session)}'")


@pytest.mark.rule("TRI-9")
def test_queries_are_listed_without_literals_and_for_their_user(server: ComposedServer) -> None:
    alice, bob, root = server.log_in("alice"), server.log_in("bob"), server.log_in("root")
    server.rows(alice, "SHOW CATALOGS LIKE 'secret-4711'")

    assert users(server.rows(bob, "SHOW QUERIES")) == ["bob"]
    (listed, _) = server.rows(alice, "SHOW QUERIES")
    assert (listed["state"], listed["user"]) == ("FINISHED", "alice")
    assert listed["session_id"] == session_hash(alice.session)
    everything = server.rows(root, "SHOW PROCESSLIST")
    assert users(everything) == ["alice", "bob", "alice", "root"]
    assert "secret-4711" not in repr(everything)


@pytest.mark.rule("TRI-9")
def test_queries_are_ended_by_their_user_and_by_administrators(server: ComposedServer) -> None:
    alice, bob, root = server.log_in("alice"), server.log_in("bob"), server.log_in("root")
    service = server.sqe.service

    def begin() -> RunningStatement:
        """A statement of alice's that waits for the engine."""
        running = RunningStatement("019d4782-0000-7000-8000-00000000000" + str(len(service._running)))
        service._running[running.query_id] = (alice.session, running)
        server.sqe.service._parts.recorder.begin(running.query_id, alice.session, "SELECT 1", "sqe")
        return running

    first, second = begin(), begin()
    for wanted in (first.query_id, "019d4782-0000-7000-8000-ffffffffffff"):
        with pytest.raises(UserError, match="There is no running query of that id"):
            server.rows(bob, f"KILL '{wanted}'")
    assert first.reason is None
    server.rows(alice, f"KILL QUERY '{first.query_id}'")
    assert first.reason is EndReason.CANCELLED
    server.rows(root, f"CALL system.runtime.kill_query(query_id => '{second.query_id}', message => 'too large')")
    assert second.reason is EndReason.CANCELLED
    for running in (first, second):
        del service._running[running.query_id]


def test_what_runs_in_a_killed_session_is_told_so(server: ComposedServer) -> None:
    alice, root = server.log_in("alice"), server.log_in("root")
    running = RunningStatement("019d4782-0000-7000-8000-000000000000")
    server.sqe.service._running[running.query_id] = (alice.session, running)
    server.rows(root, f"KILL SESSION '{session_hash(alice.session)}'")
    del server.sqe.service._running[running.query_id]

    error = running.end_error()
    assert error is not None
    assert (error.code, str(error)) == (
        ErrorCode.SESSION_EXPIRED,
        "The session was ended by its user or by an administrator",
    )


def test_what_was_planned_in_a_killed_session_is_told_so_when_it_starts(server: ComposedServer) -> None:
    alice, root = server.log_in("alice"), server.log_in("root")
    server.rows(root, f"KILL SESSION '{session_hash(alice.session)}'")

    with pytest.raises(UserError, match=r"^The session was ended by its user or by an administrator$"):
        server.sqe.service.execute(alice.session, "SELECT 1")


@pytest.mark.rule("OBS-4")
def test_who_was_ended_and_why_is_in_the_audit(server: ComposedServer) -> None:
    alice, root = server.log_in("alice"), server.log_in("root")
    wanted = session_hash(alice.session)
    server.rows(root, f"CALL system.runtime.kill_session(message => 'left the company', session_id => '{wanted}')")

    (event,) = [event for event in server.audit() if event.get("query", {}).get("statement_type") == "kill"]
    assert (event["kind"], event["actor"]["username"], event["status"]) == ("admin_ddl", "root", "success")
    whose = {"session_id": wanted, "issuer": "sqe:api_key", "subject": "alice"}
    assert event["changes"] == [
        {"operation": "KILL SESSION", "before": {wanted: whose}, "after": {wanted: {"message": "left the company"}}}
    ]
    assert any(
        e["kind"] == "session" and e["activity"] == "ended" and e["session_id"] == wanted for e in server.audit()
    )


@pytest.mark.parametrize(
    "sql",
    [
        "KILL",
        "KILL 5",
        "KILL SESSION",
        "KILL SESSION alice",
        "KILL SESSION 'a' 'b'",
        "KILL QUERY 'a', 'b'",
        f"KILL SESSION '{'x' * 200}'",
        "CALL system.runtime.kill_session()",
        "CALL system.runtime.kill_session('')",
        "CALL system.runtime.kill_session(query_id => 'a')",
        "CALL system.runtime.kill_session('a', 'b', 'c')",
        "CALL system.runtime.kill_session('a', session_id => 'b')",
        "CALL system.runtime.kill_query(query_id => (SELECT 'a'))",
        "CALL system.runtime.kill_query(query_id => 'a') x",
        "CALL lake.runtime.kill_query('a')",
        "CALL system.kill_query('a')",
        "SHOW SESSIONS LIKE 'a'",
        "SHOW SESSIONS FOR USER alice",
        "EXPLAIN KILL 'a'",
    ],
)
def test_other_forms_are_refused(server: ComposedServer, sql: str) -> None:
    with pytest.raises(UserError) as caught:
        server.rows(server.log_in("root"), sql)
    assert caught.value.code in (ErrorCode.SYNTAX_ERROR, ErrorCode.NOT_SUPPORTED)
    assert re.search(r"Unexpected|supported|procedure|at most|too early|EXPLAIN", str(caught.value))
