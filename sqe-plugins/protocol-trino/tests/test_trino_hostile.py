"""Somebody with a login, or a web page in the browser of somebody who has one, against everybody else."""

from __future__ import annotations

import base64
import gc
import time
import weakref
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote_plus

import pyarrow as pa
import pytest
import zstandard
from trino_client import MALLORY, Connection, HttpRefused, Serve, StatementFailed

from sqe_core.spi import (
    ClientInfo,
    Credential,
    Endpoint,
    GatewaySession,
    NoCredential,
    ProtocolContext,
    StatementState,
)
from sqe_core.testing import FakeAnswer, FakeGateway
from sqe_core.testing.fakes import FakeSession, make_identity
from sqe_core.testing.protocol import soon
from sqe_protocol_trino.chain import Chain
from sqe_protocol_trino.config import TrinoConfig
from sqe_protocol_trino.prepared_text import unpacked
from sqe_protocol_trino.server import TrinoServer

SELECT = b"SELECT 1 AS one"


# Web pages


@pytest.mark.rule("TRI-1")
@pytest.mark.parametrize(
    "of_a_page",
    [
        {"Origin": "https://evil.example", "Content-Type": "text/plain"},
        {"Origin": "null"},
        {"Origin": "http://rebound.example:8080", "Host": "rebound.example:8080"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_a_web_page_sends_no_statement(endpoint: Endpoint, gateway: FakeGateway, of_a_page: dict[str, str]) -> None:
    """A browser adds what it has: a password it was told, a certificate, or an address that nobody else reaches.

    So whoever needs no login, or has one in the browser, would run the statements of every page that is open.
    """
    page = Connection(endpoint)  # as a browser that remembers the password
    assert page.send("POST", "/v1/statement", b"DROP TABLE t", **of_a_page)[0] == 403
    assert page.send("DELETE", "/v1/query/some", **of_a_page)[0] == 403
    assert page.send("GET", "/v1/query", **of_a_page)[0] == 403
    assert not gateway.statements


def test_a_browser_may_look_for_itself(endpoint: Endpoint) -> None:
    asked = Connection(endpoint, NoCredential())
    assert asked.send("GET", "/v1/info", **{"Sec-Fetch-Site": "none"})[0] == 200
    assert Connection(endpoint).send("GET", "/v1/query", **{"Sec-Fetch-Site": "none"})[0] == 200


# Headers


@pytest.mark.rule("TRI-6", "LIM-2")
def test_prepared_texts_are_bounded_together(endpoint: Endpoint, gateway: FakeGateway) -> None:
    """A hundred bytes of a header may stand for a million; there are many of them in a request."""
    bomb = "$zstd:" + base64.urlsafe_b64encode(zstandard.compress(b" " * (1 << 20))).decode()
    assert len(unpacked(bomb)) == 1 << 20
    sender = Connection(endpoint)
    sender.headers["X-Trino-Prepared-Statement"] = ",".join(f"p{n}={quote_plus(bomb)}" for n in range(100))
    with pytest.raises(StatementFailed, match="together"):
        sender.ask("POST", "/v1/statement", SELECT)
    assert not gateway.statements
    sender.headers["X-Trino-Prepared-Statement"] = f"p={quote_plus(bomb)}"
    assert list(sender.rows(SELECT.decode())) == [{"one": 1}]


# Others


@pytest.mark.rule("TRI-9")
def test_who_shares_an_identity_is_not_told_the_statements_of_others(
    endpoint: Endpoint, gateway: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their ids are all that it takes to cancel them."""
    gateway.answers["long"] = FakeAnswer(table=pa.table({"n": [1]}), waits=True)
    connection = Connection(endpoint)
    page = connection.ask("POST", "/v1/statement", b"long")
    assert [each["queryId"] for each in connection.ask("GET", "/v1/query")] == [page["id"]]
    shared = replace(make_identity("alice"), personal=False)
    authenticate = type(gateway).authenticate

    def authenticated(self: FakeGateway, credential: Credential, client: ClientInfo) -> GatewaySession:
        return FakeSession(self, shared, authenticate(self, credential, client).token)

    monkeypatch.setattr(type(gateway), "authenticate", authenticated)
    assert Connection(endpoint).ask("GET", "/v1/query") == []
    connection.cancel()


# What one user keeps others from


@pytest.mark.rule("LIM-1", "LIM-10")
def test_nobody_has_all_the_places_of_statements(serve: Serve, gateway: FakeGateway) -> None:
    """Statements that are never fetched to their end, and whose client says again and again that it is there."""
    gateway.answers["long"] = FakeAnswer(table=pa.table({"n": [1]}), waits=True)
    endpoint = serve(max_statements=8, max_statements_per_user=4)
    greedy = [Connection(endpoint, MALLORY) for _ in range(4)]
    for connection in greedy:
        connection.ask("POST", "/v1/statement", b"long")
    with pytest.raises(HttpRefused) as caught:
        Connection(endpoint, MALLORY).ask("POST", "/v1/statement", b"long")
    assert caught.value.status == 429
    for _ in range(6):  # those that ended make room
        assert list(Connection(endpoint).rows("SELECT 1 AS one")) == [{"one": 1}]
    for result in gateway.results:
        result.cancel()


@pytest.mark.rule("LIM-7", "LIM-8")
def test_a_statement_that_was_ended_waits_for_no_client(serve: Serve, gateway: FakeGateway) -> None:
    """Its time is over, or an administrator ended it: its slot is free, whatever its client says of itself."""

    def endless() -> Iterator[pa.RecordBatch]:
        while True:
            yield from pa.table({"text": ["x" * 1000] * 1000}).to_batches()

    gateway.answers["endless"] = FakeAnswer(table=pa.table({"text": ["x"]}), batches=endless)
    sleeper = Connection(serve(page_bytes=1 << 20))
    sleeper.ask("POST", "/v1/statement", b"endless")
    (result,) = gateway.results
    time.sleep(0.5)  # it is ahead of its client, and waits
    result.cancel()  # the core ends it
    result.state = StatementState.CANCELLED
    assert soon(lambda: result.closed and sleeper.send("HEAD", str(sleeper.next))[0] == 200)
    with pytest.raises(StatementFailed):
        sleeper.ask("GET", str(sleeper.next))


# What stays


@pytest.mark.rule("LIM-10")
def test_statements_that_ended_leave_nothing_in_memory(
    gateway: FakeGateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python's client asks for segments in every statement, and most have none."""
    chains: list[weakref.ref[Chain]] = []
    made = Chain.__init__

    def remembered(chain: Chain, *args: object, **kwargs: object) -> None:
        made(chain, *args, **kwargs)  # type: ignore[arg-type]
        chains.append(weakref.ref(chain))

    monkeypatch.setattr(Chain, "__init__", remembered)
    context = ProtocolContext(state_dir=tmp_path, stream_idle_secs=2)
    server = TrinoServer(TrinoConfig(max_statements=1), context)
    asking = {"X-Trino-Query-Data-Encoding": "json"}
    gateway.answers["long"] = FakeAnswer(table=pa.table({"n": [1]}), waits=True)
    try:
        endpoint = server.start(gateway)
        for _ in range(20):
            assert list(Connection(endpoint, **asking).rows("SELECT 1 AS one")) == [{"one": 1}]
        held = Connection(endpoint, **asking)
        held.ask("POST", "/v1/statement", b"long")
        for _ in range(20):
            with pytest.raises(HttpRefused):
                held.ask("POST", "/v1/statement", b"long")

        def left() -> int:
            gc.collect()
            return sum(chain() is not None for chain in chains)

        assert soon(lambda: left() == 0)
        assert server._listener is not None
        assert server._listener._segments is not None
        assert not server._listener._segments._spools
    finally:
        server.stop(0)
