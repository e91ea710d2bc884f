"""Alice and bob at one server at one time: each sees what the catalogs let them, and nothing of the other's."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import adbc_driver_flightsql.dbapi as flight_sql
import pyarrow as pa
import pyarrow.flight as flight
import pytest
from identity.people import ALICE, BOB, Bed, Server
from testbed.flight_client import RawClient

from sqe_core.protocols.flight.wire import flight_sql_pb2 as sql

# The driver closes a statement twice when its session has ended.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")

CATALOGS = ("lake", "nessie")


def without_names(text: str, *names: str) -> str:
    """An error, without what differs between two errors that shall be the same."""
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "<id>", text)
    for name in names:
        text = text.replace(name, "<name>")
    return text


@pytest.mark.parametrize("catalog", CATALOGS)
def test_each_reads_what_the_catalog_lets_them(
    server: Server, alice: flight_sql.Connection, bob: flight_sql.Connection, catalog: str
) -> None:
    emp = f"SELECT * FROM {catalog}.hr.emp ORDER BY id"
    rows = [(1, "ann"), (2, "ben"), (3, "cem")]
    assert server.run(alice, emp) == rows
    assert server.run(bob, emp) == rows
    assert server.run(alice, f"SELECT sum(amount) FROM {catalog}.fin.pay") == [(300,)]
    denied = server.refusal(bob, f"SELECT * FROM {catalog}.fin.pay")
    missing = server.refusal(bob, f"SELECT * FROM {catalog}.fin.nope")
    assert without_names(denied, "pay") == without_names(missing, "nope")
    # What alice has loaded meanwhile serves nobody else.
    assert server.run(alice, f"SELECT count(*) FROM {catalog}.fin.pay") == [(2,)]
    assert server.refusal(bob, f"SELECT count(*) FROM {catalog}.fin.pay")


def test_listings_are_what_the_catalog_lists(
    server: Server, alice: flight_sql.Connection, bob: flight_sql.Connection
) -> None:
    """Nessie lists for each what they may see; SeaweedFS lists everything to whoever may list."""
    schemas = "SHOW SCHEMAS FROM nessie"
    assert {("hr",), ("fin",)} <= set(server.run(alice, schemas))
    assert ("fin",) not in server.run(bob, schemas)
    assert ("hr",) in server.run(bob, schemas)
    of_bob = server.run(bob, "SELECT table_schema, table_name FROM nessie.information_schema.tables")
    assert ("hr", "emp") in of_bob
    assert "pay" not in str(of_bob)


@pytest.mark.parametrize("catalog", CATALOGS)
def test_nobody_writes_what_the_catalog_forbids(
    server: Server, alice: flight_sql.Connection, bob: flight_sql.Connection, catalog: str
) -> None:
    for statement in (
        f"INSERT INTO {catalog}.hr.emp VALUES (4, 'dan')",
        f"DELETE FROM {catalog}.hr.emp",
        f"DROP TABLE {catalog}.hr.emp",
        f"CREATE TABLE {catalog}.hr.bobs (id bigint)",
        f"INSERT INTO {catalog}.fin.pay VALUES (9, 9)",
        f"DROP TABLE {catalog}.fin.pay",
    ):
        server.refusal(bob, statement)
    assert server.run(alice, f"SELECT count(*) FROM {catalog}.hr.emp") == [(3,)]
    assert server.run(alice, f"SELECT count(*) FROM {catalog}.fin.pay") == [(2,)]


def test_the_catalogs_see_the_people_themselves(
    bed: Bed, server: Server, alice: flight_sql.Connection, bob: flight_sql.Connection
) -> None:
    lake, nessie = len(bed.store.log()), len(bed.nessie.log())
    for who in (alice, bob):
        for catalog in CATALOGS:
            assert server.run(who, f"SELECT count(*) FROM {catalog}.hr.emp WHERE name > 'a'") == [(3,)]
    log = bed.store.log()[lake:]
    principals = set(re.findall(r"CheckPermission operation=GetTable principal=(\S+)", log))
    assert principals == {ALICE, BOB}
    # The files were read with credentials that the catalog gave out for that table to that person, and no others.
    readers = set(re.findall(r"session token for principal: \S*assumed-role/TableAccess/(\S+),", log))
    assert readers == {f"iceberg-{ALICE}-hr-emp", f"iceberg-{BOB}-hr-emp"}
    accesses = re.findall(r"access user=(\S+) \w+ \S*/iceberg/\S*tables/emp", bed.nessie.log()[nessie:])
    assert set(accesses) == {"alice", "bob"}


def test_the_audit_log_says_who_it_was(
    server: Server, alice: flight_sql.Connection, bob: flight_sql.Connection
) -> None:
    mark = f"mark_{secrets.token_hex(6)}"
    for who in (alice, bob):
        server.run(who, f"SELECT id AS {mark} FROM lake.hr.emp")
    found = {
        (event["actor"]["username"], event["actor"]["subject"])
        for event in server.audit()
        if event["kind"] == "query" and mark in event["query"]["text"]
    }
    assert found == {("alice", ALICE), ("bob", BOB)}


# Five hundred see what two hundred see, if seldom.
@pytest.mark.parametrize("statements", [200, pytest.param(500, marks=pytest.mark.long)])
def test_interleaved_statements_do_not_cross(
    server: Server, connect: Callable[[str], flight_sql.Connection], statements: int
) -> None:
    mine = {
        "alice": "SELECT current_user, sum(amount) FROM {}.fin.pay",
        "bob": "SELECT current_user, sum(id) FROM {}.hr.emp",
    }
    answers = {"alice": ("alice", 300), "bob": ("bob", 6)}
    workers = [(user, connect(user)) for user in ("alice", "bob") for _ in range(2)]

    def work(user: str, connection: flight_sql.Connection, number: int) -> None:
        for step in range(number):
            catalog = CATALOGS[step % 2]
            assert server.run(connection, mine[user].format(catalog)) == [answers[user]]
            if user == "bob" and step % 10 == 0:
                server.refusal(connection, f"SELECT * FROM {catalog}.fin.pay")
            if step % 7 == 0:
                assert server.run(connection, f"SELECT current_user, '{user}' FROM {catalog}.hr.emp LIMIT 1") == [
                    (user, user)
                ]

    with ThreadPoolExecutor(len(workers)) as pool:
        done = [pool.submit(work, user, connection, statements // len(workers)) for user, connection in workers]
        for each in done:
            each.result()


# What one has in their hands is nobody else's


def refused(act: Callable[[], Any]) -> str:
    with pytest.raises((flight.FlightError, pa.ArrowException, OSError)) as raised:
        act()
    return without_names(str(raised.value))


@pytest.mark.rule("FLT-3")
def test_a_ticket_is_its_users(raw: Callable[..., RawClient]) -> None:
    alice, bob = raw("alice"), raw("bob")
    ticket = alice.ticket("SELECT sum(amount) AS s FROM lake.fin.pay")
    made_up = flight.Ticket(ticket.ticket[:-8] + bytes(8))
    assert refused(lambda: bob.read(ticket)) == refused(lambda: bob.read(made_up))
    assert alice.read(ticket).to_pylist() == [{"s": 300}]
    assert refused(lambda: bob.read(ticket)) == refused(lambda: bob.read(made_up))


def test_a_prepared_statement_is_its_users(raw: Callable[..., RawClient]) -> None:
    alice, bob = raw("alice"), raw("bob")
    handle = alice.prepare("SELECT sum(amount) AS s FROM lake.fin.pay")

    def use(who: RawClient, handle: bytes) -> flight.FlightInfo:
        return who.info(sql.CommandPreparedStatementQuery(prepared_statement_handle=handle))

    made_up = handle[:-8] + bytes(8)
    assert refused(lambda: use(bob, handle)) == refused(lambda: use(bob, made_up))
    assert alice.read(use(alice, handle).endpoints[0].ticket).to_pylist() == [{"s": 300}]


def test_a_query_id_is_its_users(raw: Callable[..., RawClient]) -> None:
    alice, bob = raw("alice"), raw("bob")
    info = alice.info("SELECT sum(amount) AS s FROM lake.fin.pay")
    ticket = info.endpoints[0].ticket
    foreign = refused_or_status(lambda: bob.cancel(info))
    made_up = flight.FlightInfo(
        info.schema, info.descriptor, [flight.FlightEndpoint(ticket.ticket[:-8] + bytes(8), [])], -1, -1
    )
    assert foreign == refused_or_status(lambda: bob.cancel(made_up))
    query_id = info.app_metadata.decode()
    nobodys = query_id[:-4] + "0000"
    foreign = refused(lambda: bob.query(f"KILL QUERY '{query_id}'"))
    assert foreign == refused(lambda: bob.query(f"KILL QUERY '{nobodys}'"))
    assert query_id not in str(bob.query("SHOW QUERIES"))
    assert alice.read(ticket).to_pylist() == [{"s": 300}]


def refused_or_status(act: Callable[[], int]) -> str:
    try:
        return str(act())
    except (flight.FlightError, pa.ArrowException) as error:
        return without_names(str(error))


def test_a_session_name_is_no_key(raw: Callable[..., RawClient]) -> None:
    """Two people who call their sessions the same have two."""
    name = (b"x-session-id", secrets.token_hex(8).encode())
    alice, bob = raw("alice", name), raw("bob", name)
    view = f"v_{secrets.token_hex(4)}"
    alice.query(f"CREATE TEMPORARY VIEW {view} AS SELECT sum(amount) AS s FROM lake.fin.pay")
    alice.query("USE lake.fin")
    assert alice.query(f"SELECT s FROM {view}") == [{"s": 300}]
    seen = refused(lambda: bob.query(f"SELECT s FROM {view}"))
    assert without_names(seen, view) == without_names(refused(lambda: bob.query("SELECT s FROM v_nope")), "v_nope")
    assert bob.query("SELECT current_user AS u, current_schema AS s") != alice.query(
        "SELECT current_user AS u, current_schema AS s"
    )


def test_sessions_are_shown_and_ended_by_their_users(raw: Callable[..., RawClient]) -> None:
    alice, bob = raw("alice"), raw("bob")
    (current,) = [row for row in alice.query("SHOW SESSIONS") if row["current"]]
    assert {row["user"] for row in bob.query("SHOW SESSIONS")} == {"bob"}
    session, nobodys = current["session_id"], "0" * len(current["session_id"])
    foreign = refused(lambda: bob.query(f"KILL SESSION '{session}'"))
    assert without_names(foreign, session) == without_names(
        refused(lambda: bob.query(f"KILL SESSION '{nobodys}'")), nobodys
    )
    assert alice.query("SELECT current_user AS u") == [{"u": "alice"}]


def test_the_same_statement_twice_is_two_results(
    server: Server, alice: flight_sql.Connection, bob: flight_sql.Connection
) -> None:
    """Nothing that was computed for one, and no file that was listed for one, answers the other."""
    statement = "SELECT count(*), current_user FROM lake.hr.emp"
    for _ in range(3):
        assert server.run(alice, statement) == [(3, "alice")]
        assert server.run(bob, statement) == [(3, "bob")]
