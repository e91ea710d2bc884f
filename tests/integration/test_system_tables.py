"""`system.runtime` in SELECT: the rows that SHOW has, for whom SHOW has them, in any query."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from testbed.composed import ComposedServer

from sqe_core.engine.spark.engine import SparkEngine
from sqe_core.session.fingerprint import session_hash
from sqe_core.spi import ErrorCode

CONFIG = """
[policy]
uncovered = "catalog"
[policy.grants]
path = "{folder}/grants.db"
"""


@pytest.fixture
def server(tmp_path: Path, engine: SparkEngine) -> Iterator[ComposedServer]:
    with closing(ComposedServer(tmp_path, CONFIG, engine)) as made:
        yield made


def users(rows: list[dict[str, Any]]) -> set[str]:
    return {row["user"] for row in rows}


@pytest.mark.rule("TRI-9")
@pytest.mark.parametrize("table", ["queries", "sessions"])
def test_everybody_selects_their_own_and_administrators_all(server: ComposedServer, table: str) -> None:
    alice, bob, root = server.log_in("alice"), server.log_in("bob"), server.log_in("root")
    nobody, other = server.log_in(None), server.log_in(None, label="second")
    for live in (alice, bob, root, nobody, other):
        server.rows(live, "SHOW SCHEMAS")
    select = f"SELECT * FROM system.runtime.{table}"

    assert users(server.rows(alice, select)) == {"alice"}
    assert users(server.rows(bob, select)) == {"bob"}
    assert users(server.rows(root, select)) >= {"alice", "bob", "root"}
    # Many people share this identity: a session sees itself alone.
    if table == "sessions":
        assert [row["session_id"] for row in server.rows(nobody, select)] == [session_hash(nobody.session)]
    # Neither a condition, nor a join, nor a view made by somebody else widens it.
    assert server.rows(alice, f"{select} WHERE \"user\" = 'bob' OR true") != []
    assert users(server.rows(alice, f"{select} WHERE \"user\" = 'bob' OR true")) == {"alice"}
    assert server.rows(alice, f"{select} WHERE \"user\" <> 'alice'") == []
    server.rows(root, "CREATE SCHEMA IF NOT EXISTS v")
    server.rows(root, f"CREATE OR REPLACE VIEW v.all_of_it AS {select}")
    assert users(server.rows(alice, "SELECT * FROM v.all_of_it")) == {"alice"}


def test_the_rows_are_those_of_show(server: ComposedServer) -> None:
    alice = server.log_in("alice")
    server.rows(alice, "SHOW CATALOGS")
    server.fails(alice, "SELECT * FROM nothing")
    shown = server.rows(alice, "SHOW QUERIES")
    selected = server.rows(alice, "SELECT * FROM system.runtime.queries ORDER BY created")

    same = ("query_id", "state", "user", "query", "error_code")
    known = {row["query_id"]: row for row in selected}
    for row in shown[:-1]:
        assert {key: known[row["query_id"]][key] for key in same} == {key: row[key] for key in same}
    mine = selected[-1]
    assert (mine["state"], mine["source"], mine["end"], mine["error_code"]) == ("RUNNING", "flight", None, None)
    failed = next(row for row in selected if row["state"] == "FAILED")
    assert (failed["error_type"], failed["error_code"]) == ("USER_ERROR", "TABLE_NOT_FOUND")
    assert failed["execution_time_ms"] >= 0
    assert failed["bytes_scanned"] is None, "what is not measured is no 0"
    sessions = server.rows(alice, "SELECT * FROM system.runtime.sessions")
    assert [row["current"] for row in sessions] == [True]
    assert list(sessions[0]) == list(server.rows(alice, "SHOW SESSIONS")[0])


def test_they_are_queried_like_any_table(server: ComposedServer) -> None:
    alice = server.log_in("alice")
    server.rows(alice, "CREATE SCHEMA s")
    server.rows(alice, "CREATE TABLE s.t AS SELECT 1 AS id UNION ALL SELECT 2")
    assert server.rows(alice, "SELECT count(*) AS n FROM system.runtime.sessions") == [{"n": 1}]
    joined = server.rows(
        alice,
        "SELECT q.query_id, s.protocol FROM system.runtime.queries q JOIN system.runtime.sessions s"
        ' ON q."user" = s."user" WHERE q.state = \'FINISHED\' AND q.rows_written IS NOT NULL LIMIT 5',
    )
    assert [row["protocol"] for row in joined] == ["flight"]
    assert len(server.rows(alice, "SELECT query_id FROM system.runtime.queries LIMIT 2")) == 2
    assert server.rows(alice, "SELECT max(created) <= now() AS past FROM SYSTEM.Runtime.QUERIES") == [{"past": True}]
    server.rows(alice, 'CREATE TABLE s.kept AS SELECT query_id, created, "end" FROM system.runtime.queries')
    assert server.rows(alice, "SELECT count(*) > 2 AS some FROM s.kept") == [{"some": True}]
    server.rows(alice, "USE system.runtime")
    assert users(server.rows(alice, "SELECT * FROM sessions")) == {"alice"}
    server.rows(alice, "USE lake.s")
    assert server.rows(alice, "SELECT count(*) AS n FROM t") == [{"n": 2}]


def test_they_can_be_found_and_described(server: ComposedServer) -> None:
    alice = server.log_in("alice")
    assert server.rows(alice, "SHOW SCHEMAS FROM system") == [{"schema": "runtime"}]
    assert server.rows(alice, "SHOW TABLES FROM system.runtime") == [{"table": "queries"}, {"table": "sessions"}]
    described = {row["column_name"]: row["data_type"] for row in server.rows(alice, "DESCRIBE system.runtime.queries")}
    assert described["query_id"] == "varchar"
    assert described["created"] == "timestamp(6) with time zone"
    assert described["output_rows"] == "bigint"
    sessions = server.rows(alice, "SHOW COLUMNS FROM system.runtime.sessions")
    assert {row["column_name"]: row["data_type"] for row in sessions}["current"] == "boolean"


@pytest.mark.rule("STMT-9")
@pytest.mark.parametrize(
    "name", ["system.runtime.tasks_of_others", "system.runtime.queries$files", "system.other.queries", "system.queries"]
)
def test_other_names_are_not_there(server: ComposedServer, name: str) -> None:
    quoted = ".".join(f'"{part}"' for part in name.split("."))
    assert server.fails(server.log_in("root"), f"SELECT * FROM {quoted}").code is ErrorCode.TABLE_NOT_FOUND


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO system.runtime.queries (query_id) VALUES ('x')",
        "DELETE FROM system.runtime.queries",
        "UPDATE system.runtime.sessions SET state = 'x'",
        "TRUNCATE TABLE system.runtime.queries",
        "DROP TABLE system.runtime.queries",
        "DROP VIEW system.runtime.queries",
        "ALTER TABLE system.runtime.queries RENAME TO system.runtime.q",
        "CREATE TABLE system.runtime.mine AS SELECT 1 AS id",
        "CREATE VIEW system.runtime.mine AS SELECT 1 AS id",
        "CREATE SCHEMA system.mine",
        "DROP SCHEMA system.runtime",
        "DROP SCHEMA system.runtime CASCADE",
        "SHOW CREATE TABLE system.runtime.queries",
        "SHOW STATS FOR system.runtime.queries",
        "SELECT * FROM system.runtime.queries VERSION AS OF 1",
        "SELECT * FROM system.runtime.queries FOR TIMESTAMP AS OF TIMESTAMP '2026-01-01'",
        "GRANT SELECT ON system.runtime.queries TO ROLE x",
        "GRANT SELECT ON SCHEMA system.runtime TO ROLE x",
        "GRANT USE ON CATALOG system TO ROLE x",
        "ALTER SCHEMA system.runtime SET AUTHORIZATION alice",
        "COMMENT ON TABLE system.runtime.queries IS 'x'",
    ],
)
def test_nobody_changes_them(server: ComposedServer, sql: str) -> None:
    root = server.log_in("root")
    error = server.fails(root, sql)
    assert error.kind.value == "USER_ERROR", error
    assert server.rows(root, "SELECT count(*) > 0 AS some FROM system.runtime.queries") == [{"some": True}]


@pytest.mark.rule("SESS-1", "OBS-2")
def test_no_secret_is_in_them(server: ComposedServer) -> None:
    alice, root = server.log_in("alice"), server.log_in("root")
    server.fails(alice, "SELECT 'canary-literal-51fa' FROM nothing")
    told = repr(server.rows(root, "SELECT * FROM system.runtime.sessions"))
    told += repr(server.rows(root, "SELECT * FROM system.runtime.queries"))
    for secret in (alice.token.reveal(), alice.session.id, root.token.reveal(), "sqe_alice-0123456789", "canary"):
        assert secret not in told
