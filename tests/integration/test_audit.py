"""The audit of a real SQE: what is decided and how statements end, below real grants (OBS-4, OBS-5)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from testbed.users import ROOT, Users, granted

from sqe_core.engine.spark.engine import SparkEngine
from sqe_core.observe import audit
from sqe_core.observe.audit import AuditLog
from sqe_core.observe.audit_chain import verify
from sqe_core.spi.errors import ErrorCode, ExternalError
from sqe_core.spi.events import QueryEvent
from sqe_core.testing import make_identity

ALICE = make_identity("alice", roles=["analyst"])
CANARY = "canary-7d1f"

Event = dict[str, Any]


class Audited(Users):
    """An SQE with grants and an audit log."""

    def __init__(self, engine: SparkEngine, folder: Path, path: Path, *, refuse: bool = False) -> None:
        self.path = path
        self.events: list[QueryEvent] = []
        sqe = granted(engine, folder, notify=self.events.append, audit=AuditLog(path, refuse=refuse))
        super().__init__(sqe, client_address="10.9.8.7")

    def told(self, kind: str | None = None) -> list[Event]:
        written = [json.loads(line) for line in self.path.read_bytes().splitlines()]
        return [event for event in written if kind is None or event["kind"] == kind]

    def of(self, query_id: str | None, kind: str) -> Event:
        (event,) = [event for event in self.told(kind) if event["query_id"] == query_id]
        return event

    def last(self, kind: str = "query") -> Event:
        return self.told(kind)[-1]


@pytest.fixture(scope="module")
def warehouse(engine: SparkEngine, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("audited")
    lake = Audited(engine, folder, folder / "setup.log")
    lake.root(
        "CREATE SCHEMA IF NOT EXISTS default",
        "CREATE TABLE people (id INTEGER, name VARCHAR, ssn VARCHAR, salary INTEGER)",
        "INSERT INTO people VALUES (1, 'ann', '123', 10), (2, 'bob', '456', 20)",
        "CREATE TABLE secrets (id INTEGER)",
        "CREATE TABLE staff (id INTEGER)",
        "CREATE VIEW hidden_view AS SELECT id FROM secrets",
        "CREATE SCHEMA vault",
    )
    lake.close()
    return folder


@pytest.fixture
def open_lake(engine: SparkEngine, warehouse: Path, tmp_path: Path) -> Iterator[Callable[..., Audited]]:
    lakes: list[Audited] = []

    def open_it(**options: Any) -> Audited:
        lake = Audited(engine, warehouse, tmp_path / "audit.log", **options)
        lakes.append(lake)
        # Everything is covered by somebody's grant, so that others may not read it.
        lake.root(
            "GRANT SELECT ON people TO auditor",
            "GRANT ALL ON secrets TO auditor",
            "GRANT ALL ON VIEW hidden_view TO auditor",
            "GRANT ALL ON SCHEMA vault TO auditor",
        )
        return lake

    yield open_it
    for lake in lakes:
        lake.close()


@pytest.fixture
def lake(open_lake: Callable[..., Audited]) -> Audited:
    return open_lake()


@pytest.mark.rule("OBS-4")
def test_a_statement_with_restrictions(lake: Audited) -> None:
    lake.root("GRANT SELECT (id, name, ssn MASKED WITH 'REDACT') ROWS WHERE id < 2 ON people TO analyst")
    assert lake.run(ALICE, f"SELECT * FROM people WHERE name <> '{CANARY}'") == [(1, "ann", "***")]
    event = lake.last()
    assert event["status"] == "success"
    assert event["actor"]["username"] == "alice"
    assert event["client_ip"] == "10.9.8.7"
    (resource,) = map(dict, event["resources"])
    assert resource.pop("uuid")
    assert resource.pop("snapshot_id")
    assert sorted(resource.pop("columns")) == ["id", "name"]  # nothing of ssn: its mask is a constant
    assert resource == {"catalog": "lake", "namespace": ["default"], "name": "people", "object_type": "table"}
    policy = event["policy"]
    assert (policy["row_filters_applied"], policy["columns_masked"], policy["columns_restricted"]) == (1, 1, 1)
    assert policy["denied"] is False
    assert policy["policy_eval_duration_ms"] >= 0
    assert event["query"]["text"] == "SELECT * FROM people WHERE name <> ?"
    assert event["query"]["statement_type"] == "query"
    assert event["stats"]["rows_returned"] == 1
    assert event["timing"]["duration_ms"] >= event["timing"]["planning_ms"] > 0
    decision = lake.of(event["query_id"], "policy_decision")
    assert decision["decision_id"] == event["decision_id"]
    (about,) = decision["resources"]
    assert (about["action"], about["effect"], about["row_filters"]) == ("select", "allow", 1)
    assert (about["masked_columns"], about["hidden_columns"]) == (["ssn"], ["salary"])
    assert about["policy_version"] or about["reason"]
    assert lake.told().index(decision) < lake.told().index(event)
    lake.run(ALICE, "SELECT id FROM people")
    assert lake.last()["decision_id"] != event["decision_id"]


@pytest.mark.rule("OBS-4")
def test_observers_are_told_the_same(lake: Audited) -> None:
    lake.root("GRANT SELECT (id, ssn MASKED WITH 'REDACT') ROWS WHERE id < 2 ON people TO analyst")
    lake.run(ALICE, "SELECT * FROM people")
    event = lake.events[-1]
    assert (event.row_filters_applied, event.columns_masked, event.columns_restricted) == (1, 1, 2)
    assert (event.denied, event.decision_id) == (False, lake.last()["decision_id"])
    lake.refusal(ALICE, "SELECT * FROM secrets")
    assert lake.events[-1].denied
    assert lake.events[-1].error_code is ErrorCode.TABLE_NOT_FOUND
    assert lake.events[-1].principal.access_token is None


DENIED = [
    "SELECT * FROM {t}",
    "SELECT p.id FROM staff p JOIN {t} USING (id)",
    'SELECT * FROM "{t}$snapshots"',
    "INSERT INTO {t} VALUES (1)",
    "UPDATE {t} SET id = 1",
    "DELETE FROM {t}",
    "DROP TABLE {t}",
    "TRUNCATE TABLE {t}",
    "ALTER TABLE {t} ADD COLUMN x integer",
    "DESCRIBE {t}",
    "SHOW COLUMNS FROM {t}",
    "SHOW CREATE TABLE {t}",
    "EXPLAIN SELECT * FROM {t}",
    "CREATE TABLE copy_of_it AS SELECT * FROM {t}",
]


@pytest.mark.rule("OBS-4", "ERR-5")
@pytest.mark.parametrize("sql", DENIED)
def test_a_denial_reads_as_missing_and_is_recorded_as_a_denial(lake: Audited, sql: str) -> None:
    denied = lake.refusal(ALICE, sql.format(t="secrets"))
    missing = lake.refusal(ALICE, sql.format(t="missing"))
    # The same for the client, but for the names that it typed, and with an id of the same kind.
    assert str(denied) == str(missing).replace("missing", "secrets")
    assert (denied.code, type(denied), denied.hint) == (missing.code, type(missing), missing.hint)
    assert denied.may_be_denial
    assert missing.may_be_denial
    assert denied.query_id
    assert missing.query_id
    (recorded,) = [
        event
        for event in lake.told()
        if event.get("query_id") == denied.query_id and event["kind"] != "policy_decision"
    ]
    assert recorded["query"]["statement_type"] != "unknown"
    assert recorded["status"] == "failure"
    assert recorded["error"]["error_code"] == "ACCESS_DENIED"
    assert recorded["error"]["client_error_code"] == denied.code.name
    assert recorded["policy"]["denied"] is True
    decision = lake.of(denied.query_id, "policy_decision")
    assert decision["status"] == "failure"
    assert {about["name"] for about in decision["resources"] if about["effect"] == "deny"} == {"secrets"}
    same = [event for event in lake.told() if event.get("query_id") == missing.query_id]
    (end,) = [event for event in same if event["kind"] != "policy_decision"]
    assert (end["status"], end["error"]["error_code"]) == ("failure", missing.code.name)
    assert end["policy"]["denied"] is False


@pytest.mark.parametrize(
    ("sql", "name"),
    [
        ("DROP TABLE IF EXISTS secrets", "secrets"),
        ("ALTER TABLE IF EXISTS secrets ADD COLUMN x integer", "secrets"),
        ("DROP VIEW IF EXISTS hidden_view", "hidden_view"),
    ],
)
def test_a_denial_that_the_client_takes_for_a_success_is_recorded_as_one(lake: Audited, sql: str, name: str) -> None:
    lake.run(ALICE, sql)
    event = lake.last("admin_ddl")
    assert (event["status"], event["error"]["error_code"]) == ("failure", "ACCESS_DENIED")
    assert lake.of(event["query_id"], "policy_decision")["resources"][0]["name"] == name
    lake.run(ALICE, sql.replace(name, "missing"))
    assert lake.last("admin_ddl")["status"] == "success"


def test_listings_that_leave_something_out_are_no_denials(lake: Audited) -> None:
    for sql in (
        "SHOW TABLES",
        "SELECT * FROM information_schema.views",
        "SELECT * FROM information_schema.columns",
        "CHECK ACCESS SELECT ON secrets",
        "SHOW CATALOGS",
    ):
        lake.run(ALICE, sql)
        assert lake.last()["status"] == "success", sql
        assert lake.last()["policy"]["denied"] is False, sql


def test_what_may_not_be_done_is_a_denial_too(lake: Audited) -> None:
    error = lake.refusal(ALICE, "GRANT SELECT ON secrets TO USER alice")
    assert error.code is ErrorCode.ACCESS_DENIED
    event = lake.of(error.query_id, "grant")
    assert (event["status"], event["error"]["error_code"]) == ("failure", "ACCESS_DENIED")
    assert "changes" not in event


@pytest.mark.rule("OBS-4")
def test_administrators_who_look_at_others_are_recorded(lake: Audited) -> None:
    lake.run(ROOT, "CHECK ACCESS SELECT ON secrets FOR USER alice")
    decision = lake.last("policy_decision")
    assert decision["actor"]["username"] == "root"
    assert {about.get("for_user") for about in decision["resources"]} == {"alice"}


@pytest.mark.rule("OBS-2")
def test_a_grant_tells_what_was_before_and_after_and_no_policy_text(lake: Audited) -> None:
    lake.root(f"GRANT SELECT (id, name MASKED WITH 'REDACT') ROWS WHERE name <> '{CANARY}' ON people TO analyst")
    event = lake.last("grant")
    assert (event["status"], event["query"]["statement_type"]) == ("success", "grant")
    (change,) = event["changes"]
    assert change["operation"] == "put_grant"
    (made,) = [record for record in change["after"].values() if record and record.get("privilege") == "SELECT"]
    assert (made["grantee"]["name"], made["filter"]) == ("analyst", "set")
    assert list(made["masks"]) == ["name"]
    # What is new had no record; that the table is covered by a grant was known before.
    assert None in change["before"].values()
    assert made not in change["before"].values()
    lake.root("REVOKE SELECT ON people FROM analyst")
    (revoked,) = lake.last("grant")["changes"]
    assert made in revoked["before"].values()
    lake.root("CREATE ROLE r1", "DROP ROLE r1")
    assert [event["changes"][0]["operation"] for event in lake.told("grant")[-2:]] == ["create_role", "drop_role"]
    assert CANARY not in lake.path.read_text()


def test_the_chain_is_whole_and_goes_on(open_lake: Callable[..., Audited]) -> None:
    lake = open_lake()
    lake.run(ALICE, "SELECT 1")
    lake.close()
    again = open_lake()
    again.run(ALICE, "SELECT 1")
    assert verify(again.path.read_bytes().splitlines()).sound


def test_kinds_and_ends_of_statements(lake: Audited) -> None:
    lake.root("CREATE TABLE made (id INTEGER)")
    assert lake.last("admin_ddl")["query"]["statement_type"] == "create_table"
    lake.root("INSERT INTO made VALUES (1), (2)")
    assert lake.last()["stats"]["rows_written"] == 2
    lake.root("DROP TABLE made")
    error = lake.refusal(ROOT, f"SELECT CAST('{CANARY}' AS INTEGER)")
    assert lake.of(error.query_id, "query")["error"]["error_code"] == error.code.name
    lake.refusal(ROOT, f"SELEC '{CANARY}'")
    assert lake.last()["query"]["statement_type"] == "unknown"
    assert CANARY not in lake.path.read_text()


@pytest.mark.rule("OBS-5")
def test_what_cannot_be_recorded_is_not_done(
    open_lake: Callable[..., Audited], monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = open_lake(refuse=True)
    write = os.write

    def full(file: int, data: bytes) -> int:
        raise OSError("No space left on device")

    grants = lake.run(ROOT, "SHOW GRANTS")
    monkeypatch.setattr(audit.os, "write", full)
    # The first statement finds out; nothing was changed yet.
    for sql in ("GRANT SELECT ON secrets TO analyst", "SELECT * FROM people", "INSERT INTO staff VALUES (1)"):
        assert isinstance(lake.refusal(ROOT, sql), ExternalError)
    monkeypatch.setattr(audit.os, "write", write)
    assert lake.run(ROOT, "SHOW GRANTS") == grants
    assert lake.run(ROOT, "SELECT * FROM staff") == []
    assert verify(lake.path.read_bytes().splitlines()).sound
    assert [event["status"] for event in lake.told("grant") if event["status"] == "failure"] == ["failure"]


def test_without_refusing_things_go_on(lake: Audited, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: int, data: bytes) -> int:
        raise OSError("No space left on device")

    before = len(lake.told())
    with monkeypatch.context() as patched:
        patched.setattr(audit.os, "write", full)
        assert lake.run(ALICE, "SELECT 1 AS one") == [(1,)]
    assert len(lake.told()) == before
    lake.run(ALICE, "SELECT 2")
    assert [event["query"]["text"] for event in lake.told("query")[-2:]] == ["SELECT ? AS one", "SELECT ?"]
