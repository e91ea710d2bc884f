"""Pages: their chain, their size, what is asked for twice, and who may ask."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from trino_client import MALLORY, Connection, HttpRefused, Serve, StatementFailed

from sqe_core.spi import BearerCredential, Endpoint, ErrorCode, QueryProgress, Secret, StatementState, UserError
from sqe_core.testing import FakeAnswer, FakeGateway
from sqe_core.testing.protocol import soon

MEGABYTE = pa.table({"text": ["x" * 1000] * 1000})


def begin(connection: Connection, sql: str) -> dict[str, Any]:
    page = connection.ask("POST", "/v1/statement", sql.encode())
    assert isinstance(page, dict)
    return page


def test_a_small_answer_is_one_request(endpoint: Endpoint, gateway: FakeGateway) -> None:
    connection = Connection(endpoint)
    page = begin(connection, "SELECT 1 AS one")
    assert page["data"] == [[1]]
    assert "nextUri" not in page
    assert page["stats"]["state"] == "FINISHED"
    assert page["stats"]["progressPercentage"] == 100
    stage = page["stats"]["rootStage"]
    assert (stage["state"], stage["done"], stage["subStages"]) == ("FINISHED", True, [])
    assert "updateType" not in page
    assert page["infoUri"].endswith(f"/v1/query/{page['id']}")
    assert soon(lambda: gateway.results[-1].closed)


def test_a_statement_without_columns_has_no_data(endpoint: Endpoint, gateway: FakeGateway) -> None:
    """JDBC since 465 takes `data` for rows, however empty."""
    gateway.answers["made"] = FakeAnswer(kind="create_table")
    page = begin(Connection(endpoint), "made")
    assert page["updateType"] == "CREATE TABLE"
    assert page["columns"] == []
    assert not {"data", "updateCount", "nextUri"} & page.keys()


def test_what_writes_answers_how_many_rows(endpoint: Endpoint, gateway: FakeGateway) -> None:
    gateway.answers["written"] = FakeAnswer(kind="merge", affected_rows=3)
    page = begin(Connection(endpoint), "written")
    assert (page["updateType"], page["updateCount"], page["data"]) == ("MERGE", 3, [[3]])
    assert page["columns"][0]["name"] == "rows"


def test_pages_have_a_size_in_bytes(serve: Serve, gateway: FakeGateway) -> None:
    gateway.answers["large"] = MEGABYTE
    connection = Connection(serve(page_bytes=64 << 10))
    assert len(list(connection.rows("large"))) == 1000
    assert len(connection.pages) >= 15
    assert all(page["columns"][0]["name"] == "text" for page in connection.pages if page.get("data"))


@pytest.mark.rule("TRI-4")
def test_the_same_number_is_the_same_page(serve: Serve, gateway: FakeGateway) -> None:
    """The last page can be read again, older ones are gone, and nobody gets ahead (TRI-4)."""
    gateway.answers["large"] = MEGABYTE
    connection = Connection(serve(page_bytes=64 << 10))
    first = begin(connection, "large")["nextUri"]
    status, once, _ = connection.send("GET", first)
    assert status == 200
    again = connection.send("GET", first)[1]
    assert page_of(once) == page_of(again)
    second = page_of(once)["nextUri"]
    assert connection.send("GET", second)[0] == 200
    assert connection.send("GET", first)[0] == 410
    ahead = second.rpartition("/")[0] + "/99"
    assert connection.send("GET", ahead)[0] == 404


def page_of(text: bytes) -> dict[str, Any]:
    """A page without what changes while one looks."""
    import json

    page: dict[str, Any] = json.loads(text)
    del page["stats"]
    return page


@pytest.mark.rule("TRI-4")
def test_the_last_page_can_be_read_again(serve: Serve, gateway: FakeGateway) -> None:
    gateway.answers["large"] = MEGABYTE
    connection = Connection(serve(page_bytes=64 << 10))
    uri = begin(connection, "large")["nextUri"]
    while True:
        text = connection.send("GET", uri)[1]
        if "nextUri" not in page_of(text):
            break
        uri = page_of(text)["nextUri"]
    assert page_of(connection.send("GET", uri)[1]) == page_of(text)


def test_waiting_pages_are_empty_and_numbered(endpoint: Endpoint, gateway: FakeGateway) -> None:
    """Who waits is answered in time, and asks under another address each time."""
    gateway.answers["long"] = FakeAnswer(
        table=MEGABYTE, waits=True, progress=QueryProgress(state=StatementState.RUNNING, tasks=4, tasks_done=1)
    )
    connection = Connection(endpoint)
    first = begin(connection, "long")
    assert "data" not in first
    assert first["stats"]["state"] == "RUNNING"
    assert first["stats"]["progressPercentage"] == 25
    began = time.monotonic()
    second = connection.ask("GET", first["nextUri"] + "?maxWait=200ms")
    assert 0.15 < time.monotonic() - began < 5
    assert second["nextUri"] != first["nextUri"]
    connection.cancel()


@pytest.mark.rule("TRI-4")
def test_delete_ends_a_statement(endpoint: Endpoint, gateway: FakeGateway) -> None:
    gateway.answers["long"] = FakeAnswer(table=MEGABYTE, waits=True)
    connection = Connection(endpoint)
    page = begin(connection, "long")
    assert connection.send("DELETE", page["nextUri"])[0] == 204
    assert gateway.results[-1].cancelled.wait(5)
    with pytest.raises(StatementFailed) as caught:
        connection.ask("GET", page["nextUri"])
    assert caught.value.error["errorName"] == "USER_CANCELED"
    assert connection.send("DELETE", page["nextUri"])[0] == 204


def test_delete_by_id(endpoint: Endpoint, gateway: FakeGateway) -> None:
    gateway.answers["long"] = FakeAnswer(table=MEGABYTE, waits=True)
    connection = Connection(endpoint)
    page = begin(connection, "long")
    assert connection.send("DELETE", f"/v1/query/{page['id']}")[0] == 204
    assert gateway.results[-1].cancelled.wait(5)


def test_a_partial_cancel_keeps_the_rows_that_are_there(serve: Serve, gateway: FakeGateway) -> None:
    more = threading.Event()

    def batches() -> Iterator[pa.RecordBatch]:
        yield from pa.table({"n": [1, 2]}).to_batches()
        more.wait(10)
        yield from pa.table({"n": [3]}).to_batches()

    gateway.answers["slow"] = FakeAnswer(table=pa.table({"n": [1]}), batches=batches)
    connection = Connection(serve())
    page = begin(connection, "slow")
    assert page["data"] == [[1], [2]]
    assert connection.send("DELETE", page["partialCancelUri"])[0] == 204
    more.set()
    rest = connection.ask("GET", page["nextUri"])
    assert "error" not in rest
    assert "data" not in rest
    assert rest["stats"]["state"] == "FINISHED"


@pytest.mark.rule("TRI-1", "TRI-2", "TRI-3")
def test_pages_are_their_owners(endpoint: Endpoint, gateway: FakeGateway) -> None:
    """Somebody else's page, cancel and info are the 404 of what does not exist (TRI-1, TRI-2, TRI-3)."""
    gateway.answers["long"] = FakeAnswer(table=MEGABYTE, waits=True)
    alice = Connection(endpoint)
    page = begin(alice, "long")
    unknown = page["nextUri"].replace(page["id"], "00000000-0000-7000-8000-000000000000")
    mallory = Connection(endpoint, MALLORY)
    for method, address in (
        ("GET", page["nextUri"]),
        ("DELETE", page["nextUri"]),
        ("GET", page["infoUri"]),
        ("DELETE", f"/v1/query/{page['id']}"),
    ):
        answers = {mallory.send(method, each)[:2] for each in (address, address.replace(page["id"], "no-such"))}
        assert answers == {(404, b"Query not found\n")}, (method, address)
    assert mallory.send("GET", unknown)[:2] == (404, b"Query not found\n")
    assert not gateway.results[-1].cancelled.is_set()
    assert mallory.ask("GET", "/v1/query") == []


@pytest.mark.rule("TRI-2")
@pytest.mark.parametrize("change", ["slug", "phase", "number"])
def test_an_address_that_was_not_told_is_not_there(endpoint: Endpoint, gateway: FakeGateway, change: str) -> None:
    """Knowing the id of a statement of one's own login is not enough: the rest is keyed (TRI-2)."""
    gateway.answers["long"] = FakeAnswer(table=MEGABYTE, waits=True)
    connection = Connection(endpoint)
    head, phase, query_id, slug, number = begin(connection, "long")["nextUri"].rsplit("/", 4)
    other = {
        "slug": f"{head}/{phase}/{query_id}/{slug[:-1]}{'0' if slug[-1] != '0' else '1'}/{number}",
        "phase": f"{head}/{'executing' if phase == 'queued' else 'queued'}/{query_id}/{slug}/{number}",
        "number": f"{head}/{phase}/{query_id}/{slug}/{int(number) + 1}",
    }[change]
    assert connection.send("GET", other)[0] == 404
    assert connection.send("DELETE", other)[0] == 404


@pytest.mark.rule("TRI-1")
def test_every_page_wants_a_login(endpoint: Endpoint, gateway: FakeGateway) -> None:
    gateway.answers["long"] = FakeAnswer(table=MEGABYTE, waits=True)
    connection = Connection(endpoint)
    page = begin(connection, "long")
    stranger = Connection(endpoint, BearerCredential(token=Secret("wrong")))
    for method, address in (
        ("GET", page["nextUri"]),
        ("DELETE", page["nextUri"]),
        ("GET", page["infoUri"]),
        ("GET", "/v1/query"),
        ("GET", "/v1/node"),
        ("GET", "/v1/status"),
    ):
        with pytest.raises(HttpRefused) as caught:
            stranger.ask(method, address)
        assert caught.value.status == 401
        assert "Basic" in caught.value.headers["WWW-Authenticate"]


def test_an_error_has_trinos_name(endpoint: Endpoint, gateway: FakeGateway) -> None:
    gateway.answers["bad"] = UserError("Table orders does not exist", code=ErrorCode.TABLE_NOT_FOUND)
    with pytest.raises(StatementFailed) as caught:
        list(Connection(endpoint).rows("bad"))
    error = caught.value.error
    assert (error["errorName"], error["errorCode"], error["errorType"]) == ("TABLE_NOT_FOUND", 46, "USER_ERROR")
    assert error["failureInfo"]["errorInfo"] == {"code": 46, "name": "TABLE_NOT_FOUND", "type": "USER_ERROR"}


def test_warnings_arrive(endpoint: Endpoint, gateway: FakeGateway) -> None:
    gateway.answers["odd"] = FakeAnswer(kind="create_table", warnings=("nobody reads this column",))
    page = begin(Connection(endpoint), "odd")
    assert [warning["message"] for warning in page["warnings"]] == ["nobody reads this column"]


@pytest.mark.rule("LIM-8")
def test_a_statement_is_ahead_of_its_client_by_little(serve: Serve, gateway: FakeGateway) -> None:
    """What waits for a client is bounded for each statement, whatever their number (LIM-8)."""
    made: list[int] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(100):
            made.append(number)
            yield from MEGABYTE.to_batches()

    gateway.answers["large"] = FakeAnswer(table=MEGABYTE, batches=batches)
    connection = Connection(serve(page_bytes=1 << 20))
    begin(connection, "large")
    time.sleep(0.3)
    assert len(made) <= 6
    connection.cancel()
    assert soon(lambda: gateway.results[-1].closed)


def test_all_statements_share_what_may_wait(serve: Serve, gateway: FakeGateway) -> None:
    """Ten statements whose clients do not read keep a page each at most when the cache is small."""
    gateway.answers["large"] = pa.concat_tables([MEGABYTE] * 8)
    endpoint = serve(page_bytes=1 << 20, cache_bytes=2 << 20)
    connections = [Connection(endpoint) for _ in range(10)]
    for connection in connections:
        begin(connection, "large")
    time.sleep(0.3)
    for connection in connections:
        rows = sum(len(page.get("data", ())) for page in connection.pages)
        uri = connection.next
        while uri is not None:
            rows += len(connection.ask("GET", uri).get("data", ()))
            uri = connection.next
        assert rows == 8000
