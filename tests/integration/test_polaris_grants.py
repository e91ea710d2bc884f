"""GRANT and REVOKE in SQL that go to Polaris: through the whole pipeline, with a stand-in that decides by them.

The stand-in has Polaris' management API and stands in front of a real REST catalog.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from testbed.connected import Connected
from testbed.polaris import CLIENT, StandInPolaris
from testbed.rest_fixture import RestFixture

from sqe_core.bootstrap import compose
from sqe_core.config.loading import load
from sqe_core.engine.spark.engine import SparkEngine
from sqe_core.spi import AccessDeniedError, ErrorCode, NotSupportedError, SqeError
from sqe_core.testing.fakes import make_identity

ROOT = make_identity("root", token="token-of-root-31fa", roles=frozenset({"catalog_admin"}))
ALICE = make_identity("alice", token="token-of-alice-5d1f", roles=frozenset({"analyst"}))
BOB = make_identity("bob", token="token-of-bob-77c3", roles=frozenset({"auditor"}))

CONFIG = """
[[auth.providers]]
type = "anonymous"
[catalogs.lake]
type = "polaris"
catalog_url = "{url}/api/catalog"
warehouse = "the-lake"
store = "local"
read_restrictions = false
[access_control]
backend = "polaris"
url = "{url}"
{more}
[policy.grants]
path = "{folder}/grants.db"
[metrics]
audit_log_path = "{folder}/audit.jsonl"
"""


@dataclass
class World:
    """Polaris, and three people: an administrator, an analyst and somebody else."""

    polaris: StandInPolaris
    folder: Path
    root: Connected
    alice: Connected
    bob: Connected

    def audit(self, kind: str) -> list[dict[str, Any]]:
        lines = (self.folder / "audit.jsonl").read_text("utf-8").splitlines()
        return [event for line in lines if (event := json.loads(line)).get("kind") == kind]


@pytest.fixture(scope="module")
def adapter() -> Iterator[RestFixture]:
    with RestFixture() as server:
        yield server.ready()


def worlds(engine: SparkEngine, adapter: RestFixture, folder: Path, more: str) -> Iterator[World]:
    with StandInPolaris(forward_to=adapter.url) as polaris:
        polaris.people |= {
            token.reveal(): who.username for who in (ROOT, ALICE, BOB) if (token := who.access_token) is not None
        }
        polaris.admins.add("root")
        polaris.principals |= {"root": {"service_admin"}, "alice": set(), "bob": set()}
        polaris.add_catalog("the-lake")
        file = folder / "sqe.toml"
        file.write_text(CONFIG.format(url=polaris.url, folder=folder, more=more))
        sqe = compose(load(file, environ={}), engine=engine)
        people = [Connected(sqe, who, "lake") for who in (ROOT, ALICE, BOB)]
        root = people[0]
        with suppress(SqeError):
            root("DROP TABLE hr.emp")
        root("CREATE SCHEMA IF NOT EXISTS hr")
        root("CREATE TABLE hr.emp AS SELECT 1 AS id, 'ann' AS name")
        yield World(polaris, folder, *people)
        for person in people:
            person.close()
        sqe.release()
        assert polaris.violations == []


@pytest.fixture
def world(engine: SparkEngine, adapter: RestFixture, tmp_path: Path) -> Iterator[World]:
    """Polaris sees the token of whoever sends the statement."""
    yield from worlds(engine, adapter, tmp_path, "")


@pytest.fixture
def service(engine: SparkEngine, adapter: RestFixture, tmp_path: Path) -> Iterator[World]:
    """Polaris sees SQE's service account."""
    yield from worlds(engine, adapter, tmp_path, f'client_id = "{CLIENT[0]}"\nclient_secret = "{CLIENT[1]}"')


def give_alice_a_role(world: World) -> None:
    world.root("CREATE ROLE analyst")
    world.root("GRANT analyst TO USER alice")


def test_a_grant_opens_a_table_and_a_revoke_closes_it_at_once(world: World) -> None:
    root, alice = world.root, world.alice
    give_alice_a_role(world)
    assert alice.fails("SELECT * FROM hr.emp").code is ErrorCode.TABLE_NOT_FOUND

    root("GRANT SELECT ON hr.emp TO ROLE analyst")
    assert alice("SELECT * FROM hr.emp") == [(1, "ann")]
    assert world.bob.fails("SELECT * FROM hr.emp").code is ErrorCode.TABLE_NOT_FOUND
    assert [row[:4] for row in root("SHOW GRANTS ON hr.emp")] == [("SELECT", "lake.hr.emp", "role", "analyst")]

    root("REVOKE SELECT ON hr.emp FROM ROLE analyst")
    assert alice.fails("SELECT * FROM hr.emp").code is ErrorCode.TABLE_NOT_FOUND
    assert root("SHOW GRANTS ON hr.emp") == []


def test_writing_needs_what_it_says(world: World) -> None:
    root, alice = world.root, world.alice
    give_alice_a_role(world)
    root("GRANT SELECT ON hr.emp TO ROLE analyst")
    alice.fails("INSERT INTO hr.emp VALUES (2, 'bea')")
    assert "GRANT SELECT, MODIFY, ALTER" in str(root.fails("GRANT INSERT ON hr.emp TO ROLE analyst").hint)
    root("GRANT SELECT, MODIFY, ALTER ON hr.emp TO ROLE analyst")
    alice("INSERT INTO hr.emp VALUES (2, 'bea')")
    assert alice("SELECT count(*) FROM hr.emp") == [(2,)]


def test_a_schema_shows_when_it_may_be_seen(world: World) -> None:
    """What a session was told about schemas does not stay."""
    root, alice = world.root, world.alice
    give_alice_a_role(world)
    assert alice.fails("SHOW SCHEMAS").message == "The catalog refuses this to you"
    root("GRANT USE ON CATALOG lake TO ROLE analyst")
    assert ("hr",) in alice("SHOW SCHEMAS")
    root("REVOKE USE ON CATALOG lake FROM ROLE analyst")
    assert alice.fails("SHOW SCHEMAS").message == "The catalog refuses this to you"


def test_everybody_sees_what_their_roles_have(service: World) -> None:
    root, alice = service.root, service.alice
    give_alice_a_role(service)
    root("CREATE ROLE auditor")
    root("GRANT SELECT ON hr.emp TO ROLE analyst, ROLE auditor")
    before = len(service.polaris.asked())
    assert [row[3] for row in alice("SHOW GRANTS ON hr.emp")] == ["analyst"]
    assert all("auditor" not in what for what in service.polaris.asked()[before:])
    assert [row[3] for row in alice("SHOW GRANTS TO ROLE analyst")] == ["analyst"]
    assert isinstance(alice.fails("SHOW GRANTS TO ROLE auditor"), AccessDeniedError)
    assert isinstance(alice.fails("SHOW EFFECTIVE GRANTS FOR USER bob"), AccessDeniedError)
    assert alice("SHOW ROLES") == [("analyst",)]
    assert [row[0] for row in alice("SHOW ROLE GRANTS")] == ["analyst"]


def test_roles_in_sql(world: World) -> None:
    root = world.root
    root("CREATE ROLE reader")
    root("CREATE ROLE IF NOT EXISTS reader")
    assert "exists" in root.fails("CREATE ROLE reader").message
    assert ("reader",) in root("SHOW ROLES")
    root("GRANT reader TO USER alice, USER bob")
    assert world.polaris.principals["bob"] == {"reader"}
    root("REVOKE reader FROM USER bob")
    assert world.polaris.principals["bob"] == set()
    root("GRANT SELECT ON SCHEMA hr TO ROLE reader")
    assert {row[1] for row in root("SHOW EFFECTIVE GRANTS FOR USER alice")} == {"SELECT"}
    root("DROP ROLE reader")
    assert root.fails("DROP ROLE reader").message == "Role reader does not exist"
    root("DROP ROLE IF EXISTS reader")
    assert world.polaris.principals["alice"] == set()
    assert set(world.polaris.catalogs["the-lake"]) == {"catalog_admin"}


@pytest.mark.rule("POL-15")
@pytest.mark.parametrize(
    "sql",
    [
        "GRANT SELECT (id) ON hr.emp TO ROLE analyst",
        "GRANT SELECT (id, name MASKED WITH 'REDACT') ON hr.emp TO ROLE analyst",
        "GRANT SELECT ROWS WHERE id = 1 ON hr.emp TO ROLE analyst",
        "GRANT ROWS WHERE id = 1 ON hr.emp TO ROLE analyst",
        "GRANT SELECT ON hr.emp TO ROLE analyst WITH GRANT OPTION",
        "GRANT SELECT ON hr.emp TO PUBLIC",
        "GRANT SELECT ON hr.emp TO USER alice",
        "GRANT SELECT ON hr.emp TO GROUP staff",
        "GRANT SELECT ON ALL TABLES IN SCHEMA hr TO ROLE analyst",
        "GRANT SELECT ON FUTURE TABLES IN SCHEMA hr TO ROLE analyst",
        "GRANT MODIFY ON hr.emp TO ROLE analyst",
        "DENY SELECT ON hr.emp TO ROLE analyst",
        "REVOKE ROWS ON hr.emp FROM ROLE analyst",
        "REVOKE GRANT OPTION FOR SELECT ON hr.emp FROM ROLE analyst",
        "GRANT analyst TO USER alice WITH ADMIN OPTION",
        "GRANT analyst TO ROLE reader",
    ],
)
def test_what_polaris_cannot_hold_is_refused(world: World, sql: str) -> None:
    world.root("CREATE ROLE analyst")
    refused = world.root.fails(sql)
    assert isinstance(refused, NotSupportedError)
    assert refused.hint
    assert not world.polaris.rights_of("analyst", "the-lake")


def test_policies_stay_with_the_policy_engine(world: World) -> None:
    root, alice = world.root, world.alice
    give_alice_a_role(world)
    root("GRANT SELECT ON hr.emp TO ROLE analyst")
    root("CREATE POLICY p ON TABLE lake.hr.emp COLUMN MASK REDACT TO ROLE analyst ON COLUMN name")
    assert alice("SELECT * FROM hr.emp") == [(1, "***")]


# Attacks


@pytest.mark.rule("POL-15")
@pytest.mark.parametrize("which", ["world", "service"])
def test_nobody_grants_themselves_anything(which: str, request: pytest.FixtureRequest) -> None:
    """SQE is no deputy for whoever asks: neither with their own login nor with its service account."""
    world: World = request.getfixturevalue(which)
    give_alice_a_role(world)
    before = len(world.polaris.asked())
    for sql in (
        "GRANT SELECT ON hr.emp TO ROLE analyst",
        "GRANT SELECT ON hr.not_there TO ROLE analyst",
        "GRANT ALL ON CATALOG lake TO ROLE analyst",
        "REVOKE SELECT ON hr.emp FROM ROLE analyst",
        "GRANT analyst TO USER bob",
        "GRANT service_admin TO USER alice",
        "REVOKE analyst FROM USER alice",
        "CREATE ROLE mine",
        "DROP ROLE analyst",
    ):
        refused = world.alice.fails(sql)
        assert isinstance(refused, AccessDeniedError), sql
    assert world.polaris.asked()[before:] == []
    assert not world.polaris.rights_of("analyst", "the-lake")
    missing, there = (
        world.alice.fails(f"GRANT SELECT ON hr.{name} TO ROLE analyst").message for name in ("not_there", "emp")
    )
    assert missing == there


def test_an_administrator_of_sqe_is_none_of_polaris(service: World) -> None:
    for sql in ("GRANT service_admin TO USER alice", "DROP ROLE service_admin", "CREATE ROLE catalog_admin"):
        assert isinstance(service.root.fails(sql), NotSupportedError)
    assert service.polaris.principals["alice"] == set()


def test_without_a_service_account_polaris_has_the_last_word(world: World) -> None:
    give_alice_a_role(world)
    world.polaris.admins.remove("root")
    # What the catalog shows is not what its management allows.
    world.polaris.principals["root"] = {"analyst"}
    world.polaris.catalogs["the-lake"]["catalog_admin"].rights.add(("catalog", "CATALOG_MANAGE_CONTENT", (), None))
    world.polaris.assigned["analyst", "the-lake"] = {"catalog_admin"}
    refused = world.root.fails("GRANT SELECT ON hr.emp TO ROLE analyst")
    assert isinstance(refused, AccessDeniedError)
    assert "Principal" not in f"{refused} {refused.hint}"


@pytest.mark.parametrize("name", ["a/../b", "a%2fb", "..", "a\x1fb", "a;b", "a?cascade=true"])
def test_names_are_no_paths(service: World, name: str) -> None:
    quoted = f'"{name}"'
    for sql in (
        f"CREATE ROLE {quoted}",
        f"DROP ROLE {quoted}",
        f"GRANT SELECT ON hr.emp TO ROLE {quoted}",
        f"SHOW GRANTS TO ROLE {quoted}",
        f"GRANT {quoted} TO USER alice",
    ):
        service.root.fails(sql)
    assert all(name not in request.path for request in service.polaris.requests)


# Audit


@pytest.mark.rule("OBS-4")
def test_changes_are_audited_with_before_and_after(service: World) -> None:
    give_alice_a_role(service)
    service.root("GRANT SELECT ON hr.emp TO ROLE analyst")
    service.root("REVOKE SELECT ON hr.emp FROM ROLE analyst")
    service.alice.fails("GRANT SELECT ON hr.emp TO ROLE analyst")

    events = [event for event in service.audit("grant") if event["status"] != "begun"]
    changes = [(change["operation"], change) for event in events for change in event.get("changes", ())]
    assert [operation for operation, _ in changes] == ["create_role", "grant_role", "put_grant", "delete_grant"]
    put, deleted = changes[2][1], changes[3][1]
    (granted,) = put["after"].values()
    assert granted["grantee"] == ["role", "analyst"] or "analyst" in str(granted)
    assert list(put["before"].values()) == [None]
    assert list(deleted["after"].values()) == [None]
    assert events[-1]["status"] == "failure"
    text = (service.folder / "audit.jsonl").read_text("utf-8")
    assert CLIENT[1] not in text
    assert "token-of-" not in text
