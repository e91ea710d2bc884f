"""SQE from its file to the rows, with Cedar deciding (TEST-1)."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from testbed.users import Users

from sqe_core.bootstrap import compose
from sqe_core.config.loading import load
from sqe_core.engine.spark.engine import SparkEngine
from sqe_core.spi import ErrorCode, StartupError
from sqe_core.testing import make_identity

ADMIN = make_identity("root", roles=["admin"])
ANALYST = make_identity("alice", roles=["analyst"])
STRANGER = make_identity("mallory", roles=["intern"])
HIDDEN, DENIED, VALUE = "salary_canary", "vault_canary", "424242"

POLICIES = f"""
@id("admins") permit(principal in Role::"admin", action, resource);
@id("analysts") permit(principal in Role::"analyst", action in Action::"read", resource in Catalog::"lake");
@id("analysts write people")
permit(principal in Role::"analyst", action == Action::"insert", resource == Table::"lake.default.notes");
@id("no salaries")
forbid(principal, action == Action::"read_column", resource == Column::"lake.default.people.{HIDDEN}")
unless {{ principal in Role::"admin" }};
@id("the vault")
forbid(principal, action, resource in Table::"lake.default.{DENIED}") unless {{ principal in Role::"admin" }};
"""


class Server(Users):
    """What a configuration file describes, and people who use it."""

    def __init__(self, folder: Path, engine: SparkEngine, engines: str = '"cedar"') -> None:
        self.policies = folder / "policies"
        self.policies.mkdir(exist_ok=True)
        self.write(POLICIES)
        self.file = folder / "sqe.toml"
        self.file.write_text(
            f"""
            [catalogs.lake]
            type = "sqlite"
            directory = "{folder}/lake"
            [policy]
            engine = {engines}
            cache_ttl_secs = 0
            i_understand_no_enforcement = true
            [policy.cedar]
            policies_path = "{self.policies}"
            """
        )
        super().__init__(compose(load(self.file, environ={}), engine=engine), canaries=(HIDDEN, DENIED, VALUE))

    def write(self, text: str) -> None:
        fresh = self.policies / "fresh"
        fresh.write_text(text)
        os.replace(fresh, self.policies / "main.cedar")

    def change(self, text: str) -> None:
        """Change the policies, and wait: files are looked at once a second, and answers reused for one."""
        self.write(text)
        time.sleep(2.1)


@pytest.fixture(scope="module")
def server(engine: SparkEngine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """SQE from a file, with some tables."""
    server = Server(tmp_path_factory.mktemp("cedar-server"), engine)
    for sql in (
        f"CREATE TABLE people (id integer, name varchar, {HIDDEN} integer)",
        f"INSERT INTO people VALUES (1, 'ann', {VALUE}), (2, 'bob', 434343)",
        f"CREATE TABLE {DENIED} (id integer)",
        "CREATE TABLE notes (id integer)",
    ):
        server.run(ADMIN, sql)
    yield server
    server.close()


@pytest.fixture
def changing(server: Server) -> Iterator[Server]:
    """The same, with policies that are changed back afterwards."""
    yield server
    server.change(POLICIES)


@pytest.mark.rule("TEST-1")
def test_the_engine_of_the_file_decides(server: Server) -> None:
    assert server.run(ADMIN, "SELECT * FROM people ORDER BY id") == [(1, "ann", 424242), (2, "bob", 434343)]
    assert server.run(ANALYST, "SELECT * FROM people ORDER BY id") == [(1, "ann"), (2, "bob")]
    assert server.run(ANALYST, "DESCRIBE people") == server.run(ADMIN, "DESCRIBE people")[:2]
    assert server.refusal(ANALYST, f"SELECT {HIDDEN} FROM people").code is ErrorCode.COLUMN_NOT_FOUND
    assert server.refusal(ANALYST, f"SELECT * FROM people ORDER BY {HIDDEN}").code is ErrorCode.COLUMN_NOT_FOUND


@pytest.mark.rule("TEST-1")
def test_without_the_engine_nothing_is_hidden(engine: SparkEngine, tmp_path: Path) -> None:
    """The other half: what the tests above see is Cedar's doing."""
    other = Server(tmp_path, engine, '"passthrough"')
    other.run(ADMIN, f"CREATE TABLE people (id integer, {HIDDEN} integer)")

    assert len(other.run(ANALYST, "DESCRIBE people")) == 2


def test_denied_and_missing_tables_look_the_same(server: Server) -> None:
    denied = server.refusal(ANALYST, f"SELECT * FROM {DENIED}")
    missing = server.refusal(ANALYST, "SELECT * FROM vault_nowhere")

    assert denied.message.replace(DENIED, "x") == missing.message.replace("vault_nowhere", "x")
    assert denied.code is missing.code is ErrorCode.TABLE_NOT_FOUND
    assert sorted(server.run(ADMIN, "SHOW TABLES")) == [("notes",), ("people",), (DENIED,)]
    assert sorted(server.run(ANALYST, "SHOW TABLES")) == [("notes",), ("people",)]
    assert server.run(STRANGER, "SHOW CATALOGS") == []
    server.refusal(STRANGER, "SELECT * FROM people")


def test_actions_are_decided_one_by_one(server: Server) -> None:
    server.run(ANALYST, "INSERT INTO notes VALUES (1)")

    assert server.run(ANALYST, "SELECT * FROM notes") == [(1,)]
    for sql in (
        "INSERT INTO people VALUES (3, 'x')",
        "DELETE FROM notes",
        "UPDATE notes SET id = 2",
        "DROP TABLE notes",
        "CREATE TABLE mine (id integer)",
        f"CREATE TABLE copy AS SELECT * FROM {DENIED}",
        "ALTER TABLE notes ADD COLUMN x integer",
        "CREATE SCHEMA mine",
    ):
        server.refusal(ANALYST, sql)
    assert server.run(ADMIN, "SELECT * FROM notes") == [(1,)]


def test_a_revocation_shows_soon(changing: Server) -> None:
    assert changing.run(ANALYST, "SELECT count(*) FROM people") == [(2,)]
    changing.change(POLICIES.replace('Role::"analyst"', 'Role::"somebody"'))

    assert changing.refusal(ANALYST, "SELECT count(*) FROM people").code is ErrorCode.TABLE_NOT_FOUND
    assert changing.run(ADMIN, "SELECT count(*) FROM people") == [(2,)]


@pytest.mark.rule("TEST-9")
@pytest.mark.parametrize("text", ["permit(princ", "", "permit(principal, action, resource);"])
def test_broken_policies_refuse_everybody(changing: Server, text: str) -> None:
    changing.change(text)

    for who in (ADMIN, ANALYST):
        for sql in ("SELECT * FROM people", "SHOW TABLES", "INSERT INTO notes VALUES (2)"):
            assert changing.refusal(who, sql).message == "The policy engine gave no answer"
    with pytest.raises(StartupError):
        compose(load(changing.file, environ={}), engine=changing.sqe.engine)


@pytest.mark.rule("POL-6")
def test_a_column_that_was_renamed_away_denies(changing: Server) -> None:
    changing.run(ADMIN, "CREATE TABLE pay (id integer, secret integer)")
    forbid = '@id("f") forbid(principal == User::"alice", action == Action::"read_column", resource == Column::"%s");'
    changing.change(POLICIES + forbid % "lake.default.pay.secret")
    assert changing.run(ANALYST, "SELECT * FROM pay") == []
    assert len(changing.run(ANALYST, "DESCRIBE pay")) == 1

    changing.run(ADMIN, "ALTER TABLE pay RENAME COLUMN secret TO public")

    assert changing.refusal(ANALYST, "SELECT * FROM pay").code is ErrorCode.TABLE_NOT_FOUND
