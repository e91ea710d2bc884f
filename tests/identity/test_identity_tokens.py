"""Tokens end while statements run, people are signed out, the identity provider is away, keys come and go.

SQE_STATEMENT_SECS=120 SQE_AWAY_SECS=60  pytest …    a longer statement, and a longer outage
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import adbc_driver_flightsql.dbapi as flight_sql
import pytest
from identity.people import KEYS_SECS, Bed, Server

# The driver closes a statement twice when its session has ended.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")

LIFETIME_SECS = 12
STATEMENT_SECS = float(os.environ.get("SQE_STATEMENT_SECS", 2.2 * LIFETIME_SECS))
AWAY_SECS = float(os.environ.get("SQE_AWAY_SECS", "10"))
ENDLESS = "SELECT count(*) FROM range(30000) AS a(id) CROSS JOIN range(300000000) AS b(id) WHERE a.id * b.id % 7 = 3"


@contextmanager
def short_tokens(bed: Bed, seconds: int = LIFETIME_SECS) -> Iterator[None]:
    bed.keycloak.set_token_lifetime(seconds)
    try:
        yield
    finally:
        bed.keycloak.set_token_lifetime()


def rows_for(server: Server, connection: flight_sql.Connection, seconds: float) -> int:
    """Say how many rows keep one statement busy about so long, by the fastest of some runs: machines are busy."""
    number = 20_000
    while True:
        took = []
        for _ in range(3):
            began = time.monotonic()
            server.run(connection, busy(number))
            took.append(time.monotonic() - began)
            if took[-1] <= 1.5:
                break
        else:
            return int(number * (seconds / min(took)) ** 0.5)
        number *= 2


def busy(number: int) -> str:
    return (
        f"SELECT count(*) AS n FROM range({number}) AS a(id) CROSS JOIN range({number}) AS b(id) "
        "WHERE a.id * b.id % 7 = 3"
    )


@pytest.mark.rule("JWT-9")
def test_a_statement_outlives_its_token(
    bed: Bed, server: Server, connect: Callable[..., flight_sql.Connection]
) -> None:
    """It writes and commits with a token that did not exist when it began."""
    with short_tokens(bed):
        alice = connect("alice")
        server.run(alice, "CREATE TABLE lake.hr.long (n bigint)")
        number = rows_for(server, alice, STATEMENT_SECS)
        renewed = server.metric("sqe_auth_refreshes_total")
        began = time.monotonic()
        server.run(alice, f"INSERT INTO lake.hr.long {busy(number)}")
        took = time.monotonic() - began
        assert took > LIFETIME_SECS + 2, "the statement was too short to prove anything"
        assert server.metric("sqe_auth_refreshes_total") > renewed
        assert server.run(alice, "SELECT count(*) FROM lake.hr.long") == [(1,)]


@pytest.mark.rule("JWT-9")
def test_who_is_signed_out_ends_within_the_life_of_a_token(
    bed: Bed, server: Server, connect: Callable[..., flight_sql.Connection]
) -> None:
    with short_tokens(bed):
        bob = connect("bob")
        assert server.run(bob, "SELECT count(*) FROM lake.hr.emp") == [(3,)]
        bed.keycloak.log_out("bob")
        began = time.monotonic()
        text = server.refusal(bob, ENDLESS)
        assert time.monotonic() - began < LIFETIME_SECS + 15
        assert "session has ended" in text
        assert "ended" in server.refusal(bob, "SELECT 1")
    # Nobody else notices, and the password still counts.
    assert server.run(connect("bob"), "SELECT count(*) FROM lake.hr.emp") == [(3,)]


def test_tokens_that_clients_bring_end(bed: Bed, server: Server, tables: None) -> None:
    """There is nothing to renew them with: nothing new starts with them, whoever still has a connection."""
    with short_tokens(bed, 8):
        token = bed.keycloak.access_token("bob")
    with server.connect_with(token) as bob:
        assert server.run(bob, "SELECT count(*) FROM lake.hr.emp") == [(3,)]
        time.sleep(10)
        assert "Authentication failed" in server.refusal(bob, "SELECT count(*) FROM lake.hr.emp")
    with pytest.raises(flight_sql.Error), server.connect_with(token) as late:
        server.run(late, "SELECT 1")


def test_people_work_on_while_the_identity_provider_is_away(
    bed: Bed, server: Server, connect: Callable[..., flight_sql.Connection]
) -> None:
    alice, bob = connect("alice"), connect("bob")
    statement = "SELECT count(*) FROM lake.hr.emp"
    for who in (alice, bob):
        server.run(who, statement)
    token = bed.keycloak.access_token("bob")
    bed.keycloak.end()
    try:
        until = time.monotonic() + AWAY_SECS
        while time.monotonic() < until:
            for who in (alice, bob):
                assert server.run(who, statement) == [(3,)]
        # The keys are known: a token that was made before is judged, one that nobody made is refused.
        with server.connect_with(token) as fresh:
            assert server.run(fresh, statement) == [(3,)]
        with pytest.raises(flight_sql.Error) as raised:
            server.run(connect("carol"), "SELECT 1")
        assert "try again later" in str(raised.value)
    finally:
        bed.keycloak.start()
        bed.keycloak.ready()
    for who in (alice, bob, connect("carol")):
        server.run(who, "SELECT 1")


def works(server: Server, connection: flight_sql.Connection) -> bool:
    try:
        return server.run(connection, "SELECT 1") == [(1,)]
    except flight_sql.Error:
        return False


@pytest.mark.rule("JWT-8")
def test_keys_come_and_go_without_a_failed_statement(
    bed: Bed, server: Server, connect: Callable[..., flight_sql.Connection]
) -> None:
    statement = "SELECT count(*) FROM lake.hr.emp"
    stop = threading.Event()

    def work(user: str) -> int:
        connection, done = connect(user), 0
        while not stop.is_set():
            assert server.run(connection, statement) == [(3,)]
            done += 1
        return done

    with ThreadPoolExecutor(2) as pool, short_tokens(bed):
        busy = [pool.submit(work, user) for user in ("alice", "bob")]
        renewed = server.metric("sqe_auth_refreshes_total")
        try:
            time.sleep(2)
            key = bed.keycloak.add_signing_key()
            # Both are renewed with tokens that the new key signed.
            deadline = time.monotonic() + 2 * LIFETIME_SECS
            while server.metric("sqe_auth_refreshes_total") < renewed + 4 and time.monotonic() < deadline:
                time.sleep(0.5)
            assert all(not each.done() for each in busy)
        finally:
            stop.set()
        assert all(each.result() > 0 for each in busy)
    token = bed.keycloak.access_token("bob")
    with server.connect_with(token) as bob:
        assert server.run(bob, statement) == [(3,)]
        bed.keycloak.remove_key(key)
        began = time.monotonic()
        while works(server, bob):
            assert time.monotonic() - began < KEYS_SECS + 5, "the key still counts"
            time.sleep(0.2)
    with pytest.raises(flight_sql.Error), server.connect_with(token) as again:
        server.run(again, "SELECT 1")
    assert server.run(connect("bob"), statement) == [(3,)]
