"""pyarrow's own Flight client, which knows Flight but not Flight SQL: commands are packed by hand."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pyarrow.flight as flight
import pytest
from testbed.clocks import wait_for
from testbed.flight_client import RawClient, packed

from sqe_core.protocols.flight.wire import flight_pb2
from sqe_core.protocols.flight.wire import flight_sql_pb2 as sql


@pytest.fixture
def client(server: Any) -> Iterator[RawClient]:
    made = RawClient(server.uri, "etl", server.keys["etl"])
    yield made
    made.flight.close()


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1 AS one",
        "SHOW CATALOGS",
        "SELECT id FROM range(100) AS r(id) ORDER BY id DESC",
        "SELECT id, 'row ' || CAST(id AS varchar) FROM range(200000) AS r(id)",
        "SELECT count(*) FROM range(1000000) AS r(id)",
        "SELECT table_name FROM information_schema.tables",
    ],
)
def test_the_last_rows_say_that_they_are_the_last(client: RawClient, text: str) -> None:
    def ends_with_rows() -> bool:
        info = client.info(text)
        chunks = list(client.flight.do_get(info.endpoints[0].ticket, client.options))
        *most, last = [json.loads(chunk.app_metadata.to_pybytes()) for chunk in chunks]
        assert [told.get("done") for told in (*most, last)] == [None] * len(most) + [True]
        assert last["rows"] == sum(chunk.data.num_rows for chunk in chunks)
        assert all(chunk.data.num_rows for chunk in chunks[:-1])
        return chunks[-1].data.num_rows > 0

    # Rows whose end is not known when they are sent are followed by a batch of none: on a busy machine that happens.
    assert any(ends_with_rows() for _ in range(20))


def test_query(client: RawClient) -> None:
    info = client.info("SELECT 1 AS one, 'x' AS text")
    rows = client.read(info.endpoints[0].ticket)
    assert rows.to_pylist() == [{"one": 1, "text": "x"}]
    assert rows.schema == info.schema


def test_update(client: RawClient, table: str) -> None:
    assert client.update(f"CREATE TABLE {table} (id bigint)") == 0
    assert client.update(f"INSERT INTO {table} VALUES (1), (2)") == 2
    assert client.query(f"SELECT sum(id) AS s FROM {table}") == [{"s": 3}]


@pytest.mark.rule("LIM-7")
def test_clients_that_leave_their_updates_free_the_slots(client: RawClient, table: str) -> None:
    """As many as the user may run at once; the next statement would find no slot."""
    client.update(f"CREATE TABLE {table} (id bigint)")
    text = f"INSERT INTO {table} SELECT a.id FROM range(1000000000) AS a(id) CROSS JOIN range(1000) AS b(id)"
    command = packed(sql.CommandStatementQuery(query=text))

    def leave(_: int) -> None:
        hasty = flight.FlightCallOptions(timeout=2, headers=client.headers)
        with pytest.raises(flight.FlightTimedOutError):
            client.flight.get_flight_info(flight.FlightDescriptor.for_command(command), hasty)

    with ThreadPoolExecutor(20) as pool:
        list(pool.map(leave, range(20)))

    def has_slot() -> bool:
        with suppress(pa.ArrowException):
            return client.query("SELECT 1 AS one") == [{"one": 1}]
        return False

    wait_for(has_slot, 5)
    assert client.query(f'SELECT count(*) AS n FROM "{table}$snapshots"') == [{"n": 0}]


def test_metadata(client: RawClient) -> None:
    assert {"catalog_name": "iceberg"} in client.query(sql.CommandGetCatalogs())
    schemas = client.query(sql.CommandGetDbSchemas(catalog="iceberg", db_schema_filter_pattern="def%"))
    assert [row["db_schema_name"] for row in schemas] == ["default"]


def test_a_ticket_is_used_once(client: RawClient) -> None:
    ticket = client.ticket("SELECT 1 AS one")
    client.read(ticket)
    with pytest.raises(KeyError, match="does not exist, was used, or has expired"):
        client.read(ticket)


def test_actions_and_options(client: RawClient) -> None:
    assert "CancelFlightInfo" in {action.type for action in client.flight.list_actions(client.options)}
    (result,) = client.do("GetSessionOptions", flight_pb2.GetSessionOptionsRequest().SerializeToString())
    options = flight_pb2.GetSessionOptionsResult.FromString(result).session_options
    assert options["catalog"].string_value == "iceberg"


def test_readers_that_go_away_end_their_statements(client: RawClient) -> None:
    """A user may run twenty at a time: the slots of those who left are free."""
    for _ in range(30):
        ticket = client.ticket("SELECT a.id FROM range(100000000) AS a(id)")
        stream = client.flight.do_get(ticket, client.options)
        stream.read_chunk()
        stream.cancel()
        time.sleep(0.05)
    assert client.query("SELECT 1 AS one") == [{"one": 1}]


def test_a_wrong_login(server: Any) -> None:
    with flight.FlightClient(server.uri) as client, pytest.raises(flight.FlightUnauthenticatedError) as caught:
        client.authenticate_basic_token("etl", "sqe_wrong")
    assert "Authentication failed" in str(caught.value)
    assert "Traceback" not in str(caught.value)
