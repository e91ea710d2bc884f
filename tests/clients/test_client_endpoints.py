"""Results with several endpoints, fetched side by side with the clients that can."""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import adbc_driver_flightsql.dbapi as flight_sql
import pyarrow as pa
import pyarrow.flight as flight
import pytest
from testbed.clocks import wait_for
from testbed.flight_client import RawClient

from sqe_core.protocols.flight.wire import flight_pb2

Connect = Callable[..., flight_sql.Connection]
ROWS = 400_000
MANY = f"SELECT id, 'row ' || CAST(id AS varchar) AS name, rand() AS r FROM range({ROWS}) AS r(id)"
ENDLESS = "SELECT id FROM range(9000000000) AS r(id)"
HEADER = "adbc.flight.sql.rpc.call_header.x-sqe-endpoints"
OPTION = "adbc.flight.sql.session.option.parallel_endpoints"


def whole(parts: list[pa.Table]) -> None:
    rows = pa.concat_tables(parts)
    assert rows.num_rows == ROWS
    assert sorted(rows["id"].to_pylist()) == list(range(ROWS))
    assert len(set(rows["r"].to_pylist())) > ROWS * 0.99


# ADBC


def read(connection: flight_sql.Connection, partition: bytes) -> pa.Table:
    with connection.cursor() as cursor:
        cursor.adbc_read_partition(partition)
        return cursor.fetch_arrow_table()


@pytest.fixture
def greedy(adbc: flight_sql.Connection) -> flight_sql.Connection:
    adbc.adbc_connection.set_options(**{OPTION: "4"})
    return adbc


def partitions(connection: flight_sql.Connection, text: str) -> list[bytes]:
    with connection.cursor() as cursor:
        found, schema = cursor.adbc_execute_partitions(text)
        assert schema.names == ["id", "name", "r"][: len(schema.names)]
        return list(found)


@pytest.fixture
def bearer(server: Any, connect: Connect) -> Callable[[], flight_sql.Connection]:
    """Opens connections of one session, which they name."""
    login = {
        "adbc.flight.sql.authorization_header": f"Bearer {server.keys['etl']}",
        "adbc.flight.sql.rpc.call_header.x-session-id": secrets.token_hex(8),
    }
    return lambda: connect("nobody by name", **login)


def test_partitions_side_by_side(bearer: Callable[[], flight_sql.Connection]) -> None:
    """Each on a connection of its own: on one connection the driver ends what it read before."""
    with bearer().cursor() as cursor:
        cursor.adbc_statement.set_options(**{HEADER: "4"})
        found, _ = cursor.adbc_execute_partitions(MANY)
    assert len(found) == 4
    readers = [bearer() for _ in found]
    with ThreadPoolExecutor(4) as pool:
        whole(list(pool.map(read, readers, found)))


def test_partitions_one_after_the_other(greedy: flight_sql.Connection) -> None:
    whole([read(greedy, partition) for partition in partitions(greedy, MANY)])


def test_a_result_that_is_not_divided_by_hand_is_complete(greedy: flight_sql.Connection) -> None:
    with greedy.cursor() as cursor:
        cursor.execute(MANY)
        whole([cursor.fetch_arrow_table()])
        cursor.execute(f"SELECT id FROM range({ROWS}) AS r(id) ORDER BY id DESC")
        assert cursor.fetch_arrow_table()["id"].to_pylist() == list(range(ROWS - 1, -1, -1))


def test_one_statement_may_ask_for_itself(adbc: flight_sql.Connection) -> None:
    assert len(partitions(adbc, MANY)) == 1
    with adbc.cursor() as cursor:
        cursor.adbc_statement.set_options(**{HEADER: "3"})
        found, _ = cursor.adbc_execute_partitions(MANY)
    assert len(found) == 3
    whole([read(adbc, partition) for partition in found])
    with adbc.cursor() as cursor:
        cursor.adbc_statement.set_options(**{HEADER: "99"})
        with pytest.raises(flight_sql.Error, match="x-sqe-endpoints must be a number from 1 to 16"):
            cursor.adbc_execute_partitions(MANY)


def test_the_option_is_bounded_and_is_a_property_of_sql(adbc: flight_sql.Connection) -> None:
    for value in ("0", "17", "many"):
        with pytest.raises(flight_sql.Error):
            adbc.adbc_connection.set_options(**{OPTION: value})
    with adbc.cursor() as cursor:
        cursor.execute("SET SESSION parallel_endpoints = 2")
        with pytest.raises(flight_sql.Error, match="an integer from 1 to 16"):
            cursor.execute("SET SESSION parallel_endpoints = 17")
    assert adbc.adbc_connection.get_option(OPTION) == "2"
    assert len(partitions(adbc, MANY)) == 2


def test_what_is_small_or_ordered_has_one_partition(greedy: flight_sql.Connection) -> None:
    for text in (
        "SELECT 1 AS id",
        "SELECT id FROM range(100) AS r(id) ORDER BY id",
        "SELECT count(*) AS id FROM range(9)",
    ):
        assert len(partitions(greedy, text)) == 1


@pytest.mark.rule("FLT-3")
def test_nobody_else_reads_one_of_them_and_nobody_twice(
    greedy: flight_sql.Connection, connect: Connect, server: Any
) -> None:
    found = partitions(greedy, MANY)
    for stranger in (connect("ana"), connect("nobody in particular")):
        for partition in found:
            with pytest.raises(flight_sql.Error, match="does not exist, was used, or has expired"):
                read(stranger, partition)
    parts = [read(greedy, partition) for partition in found]
    whole(parts)
    for partition in found:
        with pytest.raises(flight_sql.Error, match="does not exist, was used, or has expired"):
            read(greedy, partition)


# pyarrow


class Client(RawClient):
    def stream(self, endpoint: flight.FlightEndpoint) -> flight.FlightStreamReader:
        return self.flight.do_get(endpoint.ticket, self.options)


def drain(stream: flight.FlightStreamReader) -> None:
    """Read to the end; `read_all` takes a statement that was cancelled for Ctrl-C."""
    for _ in stream:
        pass


@pytest.fixture
def client(server: Any) -> Iterator[Client]:
    made = Client(server.uri, "etl", server.keys["etl"], (b"x-sqe-endpoints", b"4"))
    yield made
    made.flight.close()


def test_threads_of_pyarrow(client: Client) -> None:
    info = client.info(MANY)
    assert len(info.endpoints) == 4
    assert not any(endpoint.locations for endpoint in info.endpoints)
    with ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(lambda endpoint: client.stream(endpoint).read_all(), info.endpoints))
    assert all(part.schema == info.schema for part in parts)
    whole(parts)
    assert sum(part.num_rows > 0 for part in parts) > 1


def test_it_is_one_statement_to_the_server(client: Client) -> None:
    info = client.info(ENDLESS)
    streams = [client.stream(endpoint) for endpoint in info.endpoints[:3]]
    told = [json.loads(stream.read_chunk().app_metadata.to_pybytes()) for stream in streams]
    assert len({each["query_id"] for each in told}) == 1
    assert str(client.query("SHOW QUERIES")).count(told[0]["query_id"]) == 1
    assert client.cancel(info) == flight_pb2.CANCEL_STATUS_CANCELLED
    for stream in streams:
        with pytest.raises(pa.ArrowCancelled):
            drain(stream)


def test_cancelling_with_one_endpoint_ends_all(client: Client) -> None:
    info = client.info(ENDLESS)
    streams = [client.stream(endpoint) for endpoint in info.endpoints[:2]]
    for stream in streams:
        stream.read_chunk()
    left = flight.FlightInfo(info.schema, info.descriptor, info.endpoints[3:], -1, -1)
    assert client.cancel(left) == flight_pb2.CANCEL_STATUS_CANCELLED
    for stream in streams:
        with pytest.raises(pa.ArrowCancelled):
            drain(stream)


def test_who_leaves_one_of_them_ends_the_others(client: Client) -> None:
    first, second, late, _ = client.info(ENDLESS).endpoints
    leaving, staying = client.stream(first), client.stream(second)
    leaving.read_chunk()
    staying.read_chunk()
    leaving.cancel()
    with pytest.raises(pa.ArrowCancelled, match="The statement was cancelled"):
        drain(staying)
    with pytest.raises(pa.ArrowCancelled, match="The statement was cancelled"):
        drain(client.stream(late))


def test_readers_that_leave_half_of_them_free_the_slots(client: Client) -> None:
    """A user may run twenty at a time."""
    for _ in range(25):
        stream = client.stream(client.info(ENDLESS).endpoints[0])
        stream.read_chunk()
        stream.cancel()

    def has_slot() -> bool:
        with suppress(pa.ArrowException):
            return client.query("SELECT 1 AS one") == [{"one": 1}]
        return False

    wait_for(has_slot, 10)


def test_a_slow_reader_holds_up_nobody(client: Client) -> None:
    slow, *others = client.info(MANY).endpoints
    stream = client.stream(slow)
    rows = [stream.read_chunk().data]
    done = threading.Event()

    def read_others() -> list[pa.Table]:
        found = [client.stream(endpoint).read_all() for endpoint in others]
        done.set()
        return found

    with ThreadPoolExecutor(1) as pool:
        rest = pool.submit(read_others)
        assert done.wait(30)
        whole([pa.Table.from_batches(rows), stream.read_all(), *rest.result()])
