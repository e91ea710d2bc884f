"""The grant store in a real PostgreSQL: the contract, several servers, restarts, outages."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime

import psycopg
import pytest
from contract_variants import given
from testbed.making import each_ended
from testbed.postgres import Postgres

from sqe_core.policy.grants.enforcer import GrantsEnforcer
from sqe_core.policy.grants.factory import GrantsConfig, GrantsFactory
from sqe_core.policy.grants.postgres import PostgresStore
from sqe_core.spi import (
    ConfigError,
    Effect,
    ExternalError,
    Grant,
    Grantee,
    GrantTarget,
    ObjectName,
    PluginContext,
    Privilege,
    Secret,
    SqlExpression,
    StartupError,
)
from sqe_core.testing import PolicyEnforcerContract, make_identity, make_policy_request

ADMIN = make_identity("admin")
PEOPLE = ObjectName(catalog="lake", namespace=("hr",), name="people")
TABLE = GrantTarget(scope="table", catalog="lake", namespace=("hr",), name="people")
ANALYST = Grantee(type="role", name="analyst")
READ = Grant(privileges=frozenset({Privilege.SELECT}), target=TABLE, grantee=ANALYST)
Open = Callable[[], GrantsEnforcer]


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    """A server for all tests of this module."""
    with Postgres() as postgres:
        yield postgres


@pytest.fixture
def url(server: Postgres) -> Secret:
    """A database of the test's own."""
    with closing(psycopg.connect(server.url, autocommit=True)) as connection:
        connection.execute("DROP DATABASE IF EXISTS grants WITH (FORCE)")
        connection.execute("CREATE DATABASE grants")
    return Secret(server.url.removesuffix("postgres") + "grants")


@pytest.fixture
def opened(url: Secret) -> Iterator[Open]:
    """Opens the store as one more server would."""
    yield from each_ended(
        lambda: GrantsFactory().create("grants", GrantsConfig(url=url, timeout_secs=3), PluginContext())
    )


def reads(engine: GrantsEnforcer, *roles: str) -> bool:
    request = make_policy_request(PEOPLE, principal=make_identity("alice", roles=roles))
    return engine.decide(request).decisions[0].effect is Effect.ALLOW


class TestPostgresGrants(PolicyEnforcerContract):
    capabilities = frozenset({"denies", "restricts", "remote", "grants", "roles", "policies", "ownership"})

    factory = given(GrantsFactory)

    @pytest.fixture
    def config(self, url: Secret) -> GrantsConfig:
        config = GrantsConfig(url=url)
        engine = GrantsFactory().create("grants", config, PluginContext())
        engine.put_grant(replace(READ, target=replace(TABLE, name="closed")), author=ADMIN)
        engine.put_grant(replace(READ, target=replace(TABLE, name="part"), columns=("id",)), author=ADMIN)
        engine.close()
        return config

    allowed = given(lambda: make_policy_request(PEOPLE))
    denied = given(lambda: make_policy_request(replace(PEOPLE, name="closed")))
    restricted = given(
        lambda: make_policy_request(
            replace(PEOPLE, name="part"), principal=make_identity(roles=("analyst",)), columns=("id", "ssn")
        )
    )

    @pytest.fixture
    def broken(self, config: GrantsConfig, url: Secret) -> Iterator[GrantsEnforcer]:
        engine = GrantsFactory().create("grants", config, PluginContext())
        with closing(psycopg.connect(url.reveal(), autocommit=True)) as connection:
            connection.execute("DROP TABLE sqe_policy_meta")
        yield engine
        engine.close()

    grantee = given(lambda: ANALYST)


def test_one_servers_grant_shows_on_the_other_at_its_next_statement(opened: Open) -> None:
    one, other = opened(), opened()
    assert reads(other)
    one.put_grant(replace(READ, row_filter=SqlExpression(text="a LIKE 'ä%?'")), author=ADMIN)
    assert not reads(other)
    assert reads(other, "analyst")
    assert other.list_grants(author=ADMIN)[0].row_filter == SqlExpression(text="a LIKE 'ä%?'")
    assert other.delete_grant(READ, author=ADMIN)
    assert not reads(one, "analyst")
    assert [entry.operation for entry in one.store.audit()] == ["delete_grant", "put_grant"]


@pytest.mark.rule("POL-2", "TEST-9")
def test_an_outage_denies_with_an_error_and_ends(opened: Open, server: Postgres) -> None:
    engine = opened()
    engine.put_grant(READ, author=ADMIN)
    assert reads(engine, "analyst")
    server.stop()
    try:
        for _ in range(2):
            with pytest.raises(ExternalError, match="does not answer"):
                reads(engine, "analyst")
            with pytest.raises(ExternalError, match="does not answer"):
                engine.put_grant(READ, author=ADMIN)
    finally:
        server.start()
    assert reads(engine, "analyst")
    assert not reads(engine)


def test_a_connection_that_ended_while_idle_is_replaced(opened: Open, url: Secret) -> None:
    engine = opened()
    engine.put_grant(READ, author=ADMIN)
    assert reads(engine, "analyst")
    with closing(psycopg.connect(url.reveal(), autocommit=True)) as connection:
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'sqe'")
    assert reads(engine, "analyst")


@pytest.mark.rule("POL-2", "TEST-9")
def test_a_locked_store_denies_with_an_error(opened: Open, url: Secret) -> None:
    engine = opened()
    engine.put_grant(READ, author=ADMIN)
    with closing(psycopg.connect(url.reveal())) as other:
        other.execute("LOCK TABLE sqe_policy_meta IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(ExternalError, match="does not answer"):
            reads(engine, "analyst")
        with pytest.raises(ExternalError, match="does not answer"):
            engine.put_grant(READ, author=ADMIN)
        other.rollback()
        other.execute("LOCK TABLE sqe_policy_meta IN EXCLUSIVE MODE")
        assert reads(engine, "analyst")
        other.rollback()
    assert reads(engine, "analyst")


_WRITER = """
import sys
from sqe_core.policy.grants.factory import GrantsConfig, GrantsFactory
from sqe_core.spi import Grant, Grantee, GrantTarget, PluginContext, Privilege, Secret
from sqe_core.testing.fakes import make_identity

config = GrantsConfig(url=Secret(sys.stdin.readline().strip()), timeout_secs=30)
engine = GrantsFactory().create("grants", config, PluginContext())
target = GrantTarget(scope="table", catalog="lake", namespace=("hr",), name="people")
for number in range(25):
    grantee = Grantee(type="role", name=f"{sys.argv[1]}-{number}")
    grant = Grant(privileges=frozenset({Privilege.SELECT}), target=target, grantee=grantee)
    engine.put_grant(grant, author=make_identity(sys.argv[1]))
engine.close()
"""


def test_servers_that_start_and_write_at_once_lose_nothing(opened: Open, url: Secret) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", _WRITER, name], stdin=subprocess.PIPE, text=True) for name in "abc"
    ]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write(url.reveal() + "\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate(timeout=120)
    assert [writer.returncode for writer in writers] == [0, 0, 0]
    engine = opened()
    found = {grant.grantee.name for grant in engine.list_grants(author=ADMIN)}
    assert found == {f"{name}-{number}" for name in "abc" for number in range(25)}
    assert [entry.version for entry in engine.store.audit()] == list(range(75, 0, -1))


def test_what_stops_a_server(url: Secret, opened: Open) -> None:
    def start(address: str, *, production: bool = False) -> None:
        config = GrantsConfig(url=Secret(address), timeout_secs=3)
        GrantsFactory().create("grants", config, PluginContext(production_mode=production)).close()

    wrong = url.reveal().replace("sqe:", "sqe:hunter2-5d1f-", 1)
    with pytest.raises(StartupError) as caught:
        start(wrong)
    assert "hunter2-5d1f" not in str(caught.value)
    with pytest.raises(ConfigError, match="no address"):
        start("postgresql://sqe:hunter2@[")
    with pytest.raises(ConfigError, match="verify-full"):
        start("postgresql://sqe:x@db.example/grants", production=True)
    with pytest.raises(ConfigError, match="verify-full"):
        start("postgresql:///grants?hostaddr=192.0.2.1&sslmode=prefer", production=True)
    start(url.reveal(), production=True)
    with closing(psycopg.connect(url.reveal(), autocommit=True)) as connection:
        connection.execute("UPDATE sqe_policy_meta SET value = '99' WHERE key = 'schema_version'")
    with pytest.raises(StartupError, match="schema version 99"):
        start(url.reveal())


def test_a_closed_store_answers_nothing(url: Secret) -> None:
    store = PostgresStore(url, timeout_secs=3, now=lambda: datetime.now(UTC))
    store.prepare()
    engine = GrantsEnforcer(store, now=lambda: datetime.now(UTC))
    assert reads(engine)
    engine.close()
    with pytest.raises(ExternalError):
        reads(engine)
    with pytest.raises(ExternalError):
        engine.put_grant(READ, author=ADMIN)


def test_the_search_path_of_the_address_says_where_the_tables_are(url: Secret) -> None:
    with closing(psycopg.connect(url.reveal(), autocommit=True)) as connection:
        connection.execute("CREATE SCHEMA sqe")
    address = Secret(url.reveal() + "?options=-csearch_path%3Dsqe")
    GrantsFactory().create("grants", GrantsConfig(url=address), PluginContext()).close()
    with closing(psycopg.connect(url.reveal(), autocommit=True)) as connection:
        rows = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'sqe' ORDER BY 1").fetchall()
    assert rows == [("sqe_policy_audit",), ("sqe_policy_meta",), ("sqe_policy_records",)]
