"""The grant store from the configuration file to the rows (TEST-1)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from testbed.users import Users

from sqe_core.bootstrap import compose
from sqe_core.config.loading import load
from sqe_core.engine.spark.engine import SparkEngine
from sqe_core.policy.grants.enforcer import GrantsEnforcer
from sqe_core.policy.grants.records import Kind, name_key
from sqe_core.policy.grants.store import Draft
from sqe_core.spi import (
    ColumnMask,
    ConstantMask,
    Effect,
    ExternalError,
    Grant,
    Grantee,
    GrantTarget,
    NullMask,
    ObjectName,
    Privilege,
    SqeError,
    SqlExpression,
    StartupError,
    StoredPolicy,
)
from sqe_core.testing import make_identity

ADMIN = make_identity("root", roles=["admin"])
ALICE = make_identity("alice", roles=["analyst"])
MALLORY = make_identity("mallory", roles=["intern"])
ANALYST = Grantee(type="role", name="analyst")


class Server(Users):
    """What a configuration file describes."""

    def __init__(self, file: Path, engine: SparkEngine) -> None:
        self.file, self.environ = file, {"XDG_STATE_HOME": str(file.parent / "state")}
        super().__init__(compose(load(file, environ=self.environ), engine=engine))

    @property
    def grants(self) -> GrantsEnforcer:
        """The one policy engine."""
        (enforcer,) = self.sqe.enforcers
        assert isinstance(enforcer, GrantsEnforcer)
        return enforcer


def put(server: Server, table: str, grantee: Grantee, *privileges: Privilege, **more: Any) -> Grant:
    target = GrantTarget(scope="table", catalog="lake", namespace=("default",), name=table)
    grant = Grant(privileges=frozenset(privileges), target=target, grantee=grantee, **more)
    server.grants.put_grant(grant, author=ADMIN)
    return grant


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file without `[policy]`: the default engine, its store in the state folder."""
    folder = tmp_path_factory.mktemp("grants-server")
    file = folder / "sqe.toml"
    file.write_text(f'[catalogs.lake]\ntype = "sqlite"\ndirectory = "{folder}/lake"\n')
    return file


@pytest.fixture(scope="module")
def server(engine: SparkEngine, file: Path) -> Iterator[Server]:
    """SQE from that file."""
    server = Server(file, engine)
    for sql in (
        "CREATE TABLE people (id integer, name varchar, salary_canary integer)",
        "INSERT INTO people VALUES (1, 'ann', 424242), (2, 'bob', 434343)",
        "CREATE TABLE vault_canary (id integer)",
        "CREATE TABLE common (id integer)",
    ):
        server.run(ADMIN, sql)
    put(server, "people", ANALYST, Privilege.SELECT, columns=("id", "name"))
    put(server, "people", Grantee(type="role", name="admin"), Privilege.ALL)
    put(server, "vault_canary", Grantee(type="role", name="admin"), Privilege.ALL)
    yield server
    server.close()


@pytest.mark.rule("TEST-1")
def test_the_default_engine_decides(server: Server) -> None:
    assert (server.file.parent / "state" / "sqe" / "grants.db").exists()
    assert server.run(ADMIN, "SELECT * FROM people ORDER BY id") == [(1, "ann", 424242), (2, "bob", 434343)]
    assert server.run(ALICE, "SELECT * FROM people ORDER BY id") == [(1, "ann"), (2, "bob")]
    missing = server.refusal(ALICE, "SELECT no_such_column FROM people").message
    assert server.refusal(ALICE, "SELECT salary_canary FROM people").message == missing.replace(
        "no_such_column", "salary_canary"
    )
    nothing = server.refusal(ALICE, "SELECT * FROM nothing_here").message
    assert server.refusal(ALICE, "SELECT * FROM vault_canary").message == nothing.replace(
        "nothing_here", "vault_canary"
    )
    assert server.refusal(MALLORY, "SELECT * FROM people").message == nothing.replace("nothing_here", "people")


@pytest.mark.rule("TEST-1")
def test_what_was_never_covered_is_the_catalogs(server: Server) -> None:
    server.run(MALLORY, "INSERT INTO common VALUES (1)")
    assert server.run(ALICE, "SELECT * FROM common") == [(1,)]
    assert server.run(MALLORY, "SHOW TABLES") == [("common",)]
    assert server.run(ALICE, "SHOW TABLES") == [("common",), ("people",)]
    assert {row[0] for row in server.run(ALICE, "DESCRIBE people")} == {"id", "name"}
    for sql in ("INSERT INTO people VALUES (3, 'eve', 1)", "DELETE FROM people", "DROP TABLE people"):
        server.refusal(ALICE, sql)


@pytest.mark.rule("POL-9")
def test_grants_and_denials_show_on_the_next_statement(server: Server) -> None:
    wanted = "SELECT count(*) FROM vault_canary"
    server.refusal(MALLORY, wanted)
    grant = put(server, "vault_canary", Grantee(type="public"), Privilege.SELECT)
    assert server.run(MALLORY, wanted) == [(0,)]
    denial = put(server, "vault_canary", Grantee(type="user", name="mallory"), Privilege.SELECT, effect=Effect.DENY)
    server.refusal(MALLORY, wanted)
    assert server.run(ALICE, wanted) == [(0,)]
    assert server.grants.delete_grant(denial, author=ADMIN)
    assert server.run(MALLORY, wanted) == [(0,)]
    assert server.grants.delete_grant(grant, author=ADMIN)
    server.refusal(MALLORY, wanted)


@pytest.mark.rule("POL-10")
def test_grants_follow_a_table_through_its_life(server: Server) -> None:
    carol, bob = make_identity("carol"), make_identity("bob")
    server.run(carol, "CREATE TABLE diary AS SELECT 1 AS id")
    assert server.run(bob, "SELECT * FROM diary") == [(1,)]
    put(server, "diary", Grantee(type="user", name="bob"), Privilege.SELECT)
    assert server.run(bob, "SELECT * FROM diary") == [(1,)]
    assert server.run(carol, "SELECT * FROM diary") == [(1,)]
    server.refusal(MALLORY, "SELECT * FROM diary")
    server.run(carol, "ALTER TABLE diary RENAME TO journal")
    assert server.run(bob, "SELECT * FROM journal") == [(1,)]
    assert server.run(carol, "SELECT * FROM journal") == [(1,)]
    server.refusal(MALLORY, "SELECT * FROM journal")
    # Whoever makes a table under a name that was covered keeps it to themselves.
    server.run(MALLORY, "CREATE TABLE diary (id integer)")
    server.refusal(bob, "SELECT * FROM diary")
    server.run(carol, "DROP TABLE journal")
    server.run(carol, "CREATE TABLE journal AS SELECT 2 AS id")
    assert server.run(carol, "SELECT * FROM journal") == [(2,)]
    server.refusal(bob, "SELECT * FROM journal")
    server.refusal(bob, "DROP TABLE journal")


@pytest.mark.rule("POL-10")
def test_nobody_comes_to_own_what_was_there_before(server: Server) -> None:
    """A table that the store did not see made is not new because somebody who does not see it says CREATE."""
    name = ObjectName(catalog="lake", namespace=("default",), name="elsewhere")
    server.run(ADMIN, "CREATE TABLE elsewhere AS SELECT 'canary' AS word")

    def forget(draft: Draft) -> None:
        for kind in (Kind.OWNER, Kind.OBJECT):
            draft.delete(kind, name_key(name))

    server.grants.store.change(ADMIN, "forget", forget)
    put(server, "elsewhere", ANALYST, Privilege.SELECT)
    for sql in (
        "CREATE TABLE IF NOT EXISTS elsewhere (word varchar)",
        "CREATE TABLE IF NOT EXISTS elsewhere AS SELECT 'x' AS word",
        "CREATE TABLE elsewhere (word varchar)",
        "CREATE OR REPLACE TABLE elsewhere AS SELECT 'x' AS word",
        "CREATE VIEW elsewhere AS SELECT 1 AS one",
        "CREATE SCHEMA IF NOT EXISTS default",
    ):
        with contextlib.suppress(SqeError):
            server.run(MALLORY, sql)
        assert server.grants.owner_of(name) is None, sql
        assert server.grants.owner_of(name.schema) is None, sql
        assert server.run(ALICE, "SELECT * FROM elsewhere") == [("canary",)], sql
    server.refusal(MALLORY, "SELECT * FROM elsewhere")


@pytest.mark.rule("POL-8")
def test_filters_and_masks_of_the_store_reach_the_rows(server: Server) -> None:
    server.run(ADMIN, "CREATE TABLE staff (id integer, name varchar, region varchar)")
    server.run(ADMIN, "INSERT INTO staff VALUES (1, 'ann', 'EU'), (2, 'bob', 'US')")
    put(server, "staff", ANALYST, Privilege.SELECT, column_masks=(ColumnMask(column="name", mask=ConstantMask()),))
    assert server.run(ALICE, "SELECT name FROM staff ORDER BY id") == [("***",), ("***",)]
    put(server, "staff", Grantee(type="user", name="alice"), row_filter=SqlExpression(text="region = 'EU'"))
    assert server.run(ALICE, "SELECT id, name FROM staff") == [(1, "***")]
    server.grants.put_policy(
        StoredPolicy(
            name="regions",
            kind="column_mask",
            target=ObjectName(catalog="lake", namespace=("default",), name="staff"),
            column="region",
            mask=NullMask(),
            grantees=(Grantee(type="public"),),
        ),
        replace=False,
        author=ADMIN,
    )
    assert server.run(ALICE, "SELECT id, region FROM staff") == [(1, None)]


@pytest.mark.rule("POL-2", "TEST-9")
def test_without_its_store_nobody_reads_anything(engine: SparkEngine, server: Server) -> None:
    """Last in the file: it damages the server's store."""
    store = server.file.parent / "state" / "sqe" / "grants.db"
    store.write_bytes(b"")
    for who in (ADMIN, ALICE, MALLORY):
        for sql in ("SELECT * FROM common", "SHOW TABLES", "INSERT INTO common VALUES (3)"):
            with pytest.raises(ExternalError) as raised:
                server.run(who, sql)
            assert "grants.db" not in f"{raised.value}{raised.value.hint}"
    with pytest.raises(StartupError, match=r"grants\.db"):
        compose(load(server.file, environ=server.environ), engine=engine)
