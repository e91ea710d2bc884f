"""pyarrow's own Flight client, which knows Flight but not Flight SQL: commands are packed by hand."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pyarrow.flight as flight
import pytest
from google.protobuf.any_pb2 import Any as AnyMessage

from sqe_core.protocols.flight.wire import flight_pb2
from sqe_core.protocols.flight.wire import flight_sql_pb2 as sql


def packed(message: Any) -> bytes:
    command = AnyMessage()
    command.Pack(message)
    return command.SerializeToString()


class Client:
    def __init__(self, uri: str, user: str, password: str) -> None:
        self.flight = flight.FlightClient(uri)
        self.headers = [self.flight.authenticate_basic_token(user, password)]
        self.options = flight.FlightCallOptions(headers=self.headers)

    def info(self, message: Any) -> flight.FlightInfo:
        return self.flight.get_flight_info(flight.FlightDescriptor.for_command(packed(message)), self.options)

    def read(self, info: flight.FlightInfo) -> pa.Table:
        return self.flight.do_get(info.endpoints[0].ticket, self.options).read_all()

    def query(self, text: str) -> pa.Table:
        return self.read(self.info(sql.CommandStatementQuery(query=text)))

    def update(self, text: str) -> int:
        descriptor = flight.FlightDescriptor.for_command(packed(sql.CommandStatementUpdate(query=text)))
        writer, reader = self.flight.do_put(descriptor, pa.schema([]), self.options)
        with writer:
            writer.done_writing()
            answer = sql.DoPutUpdateResult.FromString(reader.read().to_pybytes())
        return answer.record_count


@pytest.fixture
def client(server: Any) -> Iterator[Client]:
    made = Client(server.uri, "etl", server.keys["etl"])
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
def test_the_last_rows_say_that_they_are_the_last(client: Client, text: str) -> None:
    info = client.info(sql.CommandStatementQuery(query=text))
    chunks = list(client.flight.do_get(info.endpoints[0].ticket, client.options))
    *most, last = [json.loads(chunk.app_metadata.to_pybytes()) for chunk in chunks]
    assert all(chunk.data.num_rows for chunk in chunks)
    assert [told.get("done") for told in (*most, last)] == [None] * len(most) + [True]
    assert last["rows"] == sum(chunk.data.num_rows for chunk in chunks)


def test_query(client: Client) -> None:
    info = client.info(sql.CommandStatementQuery(query="SELECT 1 AS one, 'x' AS text"))
    rows = client.read(info)
    assert rows.to_pylist() == [{"one": 1, "text": "x"}]
    assert rows.schema == info.schema


def test_update(client: Client, table: str) -> None:
    assert client.update(f"CREATE TABLE {table} (id bigint)") == 0
    assert client.update(f"INSERT INTO {table} VALUES (1), (2)") == 2
    assert client.query(f"SELECT sum(id) AS s FROM {table}").to_pylist() == [{"s": 3}]


@pytest.mark.rule("LIM-7")
def test_clients_that_leave_their_updates_free_the_slots(client: Client, table: str) -> None:
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
    deadline = time.monotonic() + 5
    while True:
        try:
            assert client.query("SELECT 1 AS one").to_pylist() == [{"one": 1}]
            break
        except pa.ArrowException:  # no slot yet
            assert time.monotonic() < deadline
            time.sleep(0.1)
    assert client.query(f'SELECT count(*) AS n FROM "{table}$snapshots"').to_pylist() == [{"n": 0}]


def test_metadata(client: Client) -> None:
    assert "iceberg" in client.read(client.info(sql.CommandGetCatalogs()))["catalog_name"].to_pylist()
    schemas = client.read(client.info(sql.CommandGetDbSchemas(catalog="iceberg", db_schema_filter_pattern="def%")))
    assert schemas["db_schema_name"].to_pylist() == ["default"]


def test_a_ticket_is_used_once(client: Client) -> None:
    info = client.info(sql.CommandStatementQuery(query="SELECT 1 AS one"))
    client.read(info)
    with pytest.raises(KeyError, match="does not exist, was used, or has expired"):
        client.read(info)


def test_actions_and_options(client: Client) -> None:
    assert "CancelFlightInfo" in {action.type for action in client.flight.list_actions(client.options)}
    request = flight_pb2.GetSessionOptionsRequest().SerializeToString()
    (result,) = client.flight.do_action(flight.Action("GetSessionOptions", request), client.options)
    options = flight_pb2.GetSessionOptionsResult.FromString(result.body.to_pybytes()).session_options
    assert options["catalog"].string_value == "iceberg"


def test_readers_that_go_away_end_their_statements(client: Client) -> None:
    """A user may run twenty at a time: the slots of those who left are free."""
    for _ in range(30):
        info = client.info(sql.CommandStatementQuery(query="SELECT a.id FROM range(100000000) AS a(id)"))
        stream = client.flight.do_get(info.endpoints[0].ticket, client.options)
        stream.read_chunk()
        stream.cancel()
        time.sleep(0.05)
    assert client.query("SELECT 1 AS one").num_rows == 1


def test_a_wrong_login(server: Any) -> None:
    with flight.FlightClient(server.uri) as client, pytest.raises(flight.FlightUnauthenticatedError) as caught:
        client.authenticate_basic_token("etl", "sqe_wrong")
    assert "Authentication failed" in str(caught.value)
    assert "Traceback" not in str(caught.value)
