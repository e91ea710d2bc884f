"""The contract of wire protocols, against a core that is a fake."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, ClassVar, Protocol

import pyarrow as pa
import pytest

from sqe_core.spi.auth import BasicCredential, BearerCredential, Credential
from sqe_core.spi.errors import ErrorCode, UserError
from sqe_core.spi.identity import Secret
from sqe_core.spi.protocol import Endpoint, ProtocolContext, ProtocolFactory, ProtocolServer
from sqe_core.testing.contract import FactoryContract
from sqe_core.testing.fakes import FakeAnswer, FakeGateway

CANARY = "canary-5d1f"
_SOON_SECS = 10.0


class ClientConnection(Protocol):
    """One connection of a client, logged in."""

    def rows(self, sql: str) -> Iterator[dict[str, Any]]:
        """Run one statement and yield its rows by column name, as they come.

        Args:
            sql: the statement.

        Raises:
            Exception: what the client library raises when the server answers with an error.
        """

    def cancel(self) -> None:
        """End the statement that `rows` runs, in the way of the protocol. Called from another thread, when the server
        has the statement and the client may not have heard of it yet."""

    def close(self) -> None:
        """Be gone, as a client that crashes: without a word, whatever runs. Called from another thread. Idempotent."""


class ProtocolClient(Protocol):
    """What a vendor's test supplies: a client of the protocol, any real one will do."""

    def connect(self, endpoint: Endpoint, credential: Credential) -> ClientConnection:
        """Connect and log in; a client that logs in with its first statement may do so then.

        Args:
            endpoint: where the server listens.
            credential: user and password, or a bearer.
        """


class ProtocolContract(FactoryContract):
    """What every protocol promises.

    Fixtures to supply: `factory`, `config`, and `client`, a `ProtocolClient`.

    Capabilities: `basic` and `bearer`, the credentials that it carries.
    """

    KNOWN_CAPABILITIES: ClassVar[frozenset[str]] = frozenset({"basic", "bearer"})

    @pytest.fixture
    def context(self) -> ProtocolContext:
        """Loopback and any free port; who does not read is soon ended."""
        return ProtocolContext(stream_idle_secs=2)

    @pytest.fixture
    def client(self) -> ProtocolClient:
        """A client of the protocol."""
        raise NotImplementedError("supply the fixture 'client'")

    @pytest.fixture
    def gateway(self) -> FakeGateway:
        """The core."""
        return FakeGateway()

    @pytest.fixture
    def server(self, factory: ProtocolFactory[Any], config: Any, context: ProtocolContext) -> Iterator[ProtocolServer]:
        """The server under test, not started."""
        server = factory.create(self.NAME, config, context)
        yield server
        server.stop(0)

    @pytest.fixture
    def endpoint(self, server: ProtocolServer, gateway: FakeGateway) -> Endpoint:
        """The started server."""
        return server.start(gateway)

    @pytest.fixture
    def credential(self, gateway: FakeGateway) -> Credential:
        """A login that succeeds."""
        if self.can("basic"):
            return BasicCredential(username="alice", password=Secret("wonderland"))
        return BearerCredential(token=gateway.bearer)

    def test_starts_on_a_real_port(self, endpoint: Endpoint, factory: ProtocolFactory[Any]) -> None:
        """The endpoint is where a client can connect."""
        assert endpoint.protocol == factory.kind
        with socket.create_connection((endpoint.host, endpoint.port), timeout=5):
            pass

    def test_rows(self, client: ProtocolClient, endpoint: Endpoint, credential: Credential) -> None:
        """A statement's rows arrive."""
        assert ask(client, endpoint, "SELECT 1 AS one", credential) == [{"one": 1}]

    def test_many_rows(
        self, client: ProtocolClient, endpoint: Endpoint, credential: Credential, gateway: FakeGateway
    ) -> None:
        """Several batches arrive whole and in order, and the result is closed."""
        gateway.answers["many"] = pa.table({"n": list(range(2500)), "text": [f"ü{n}" for n in range(2500)]})
        rows = ask(client, endpoint, "many", credential)
        assert [row["n"] for row in rows] == list(range(2500))
        assert rows[-1]["text"] == "ü2499"
        assert soon(lambda: gateway.results[-1].closed)

    def test_types(
        self, client: ProtocolClient, endpoint: Endpoint, credential: Credential, gateway: FakeGateway
    ) -> None:
        """Values of each type arrive as what they are, the smallest, the largest and none at all."""
        values: dict[str, list[Any]] = {
            "whole": [-(2**63), 2**63 - 1, None],
            "small": [-(2**31), 2**31 - 1, None],
            "truth": [True, False, None],
            "exact": [Decimal("-12.50"), Decimal("99999999.99"), None],
            "text": ["", "\n\t'\"\\ü\U0001f980", None],
            "day": [date(1582, 10, 15), date(9999, 12, 31), None],
            "moment": [datetime(1970, 1, 1), datetime(2026, 1, 2, 3, 4, 5, 678901), None],
        }
        types = {"small": pa.int32(), "exact": pa.decimal128(10, 2), "moment": pa.timestamp("us")}
        gateway.answers["types"] = pa.table({name: pa.array(each, types.get(name)) for name, each in values.items()})
        rows = ask(client, endpoint, "types", credential)
        for name, expected in values.items():
            assert [shown(row[name]) for row in rows] == [shown(value) for value in expected], name

    def test_no_rows(
        self, client: ProtocolClient, endpoint: Endpoint, credential: Credential, gateway: FakeGateway
    ) -> None:
        """Neither a query without rows nor a statement without columns is an error."""
        gateway.answers["empty"] = pa.table({"n": pa.array([], pa.int64())})
        gateway.answers["written"] = FakeAnswer(kind="insert", affected_rows=3)
        assert ask(client, endpoint, "empty", credential) == []
        ask(client, endpoint, "written", credential)
        assert [request.sql for request in gateway.statements] == ["empty", "written"]

    def test_text_arrives_unchanged(
        self, client: ProtocolClient, endpoint: Endpoint, credential: Credential, gateway: FakeGateway
    ) -> None:
        """The core gets the client's text, byte for byte (ENF-2)."""
        sql = "SELECT 'ä+%2B\n\t;--' AS \"x y\" /* ${env:HOME} */"
        gateway.answers[sql] = pa.table({"x y": ["1"]})
        ask(client, endpoint, sql, credential)
        assert gateway.statements[-1].sql == sql

    def test_basic_login(self, client: ProtocolClient, endpoint: Endpoint, gateway: FakeGateway) -> None:
        """A user name and a password arrive as such (AUTHN-5)."""
        self.need("basic")
        ask(client, endpoint, "SELECT 1 AS one", BasicCredential(username="alice", password=Secret("wonderland")))
        assert any(isinstance(credential, BasicCredential) for credential, _ in gateway.logins)

    def test_bearer_login(self, client: ProtocolClient, endpoint: Endpoint, gateway: FakeGateway) -> None:
        """A token arrives as a token (AUTHN-5)."""
        self.need("bearer")
        ask(client, endpoint, "SELECT 1 AS one", BearerCredential(token=gateway.bearer))
        assert any(isinstance(credential, BearerCredential) for credential, _ in gateway.logins)

    def test_odd_names_and_passwords(self, server: ProtocolServer, client: ProtocolClient) -> None:
        """A plus is a plus, a percent sign a percent sign, and letters may be of any alphabet."""
        self.need("basic")
        for username, password in (("zoë+test@example.com", "a+b%2Bc d"), ("李", "ключ:with:colons")):
            gateway = FakeGateway(username=username, password=password)
            endpoint = server.start(gateway)
            credential = BasicCredential(username=username, password=Secret(password))
            assert ask(client, endpoint, "SELECT 1 AS one", credential) == [{"one": 1}]
            server.stop(0)

    def test_client_is_described(
        self,
        client: ProtocolClient,
        endpoint: Endpoint,
        credential: Credential,
        gateway: FakeGateway,
        factory: ProtocolFactory[Any],
    ) -> None:
        """The core learns which protocol and which address a login came from."""
        ask(client, endpoint, "SELECT 1 AS one", credential)
        _, described = gateway.logins[-1]
        assert described.protocol == factory.kind
        assert described.address

    def test_bad_login_is_refused(self, client: ProtocolClient, endpoint: Endpoint, gateway: FakeGateway) -> None:
        """A wrong password or token reaches no statement (AUTHN-1)."""
        wrong: Credential = BearerCredential(token=Secret("wrong"))
        if self.can("basic"):
            wrong = BasicCredential(username="alice", password=Secret("wrong"))
        with pytest.raises(Exception, match=r".") as caught:
            ask(client, endpoint, "SELECT 1 AS one", wrong)
        assert not isinstance(caught.value, AssertionError)
        assert not gateway.statements

    def test_error_arrives(
        self, client: ProtocolClient, endpoint: Endpoint, credential: Credential, gateway: FakeGateway
    ) -> None:
        """The user reads our text of an error."""
        gateway.answers["bad"] = UserError("Table orders does not exist", code=ErrorCode.TABLE_NOT_FOUND)
        with pytest.raises(Exception, match="Table orders does not exist"):
            ask(client, endpoint, "bad", credential)

    def test_unexpected_error_stays_inside(
        self, client: ProtocolClient, endpoint: Endpoint, credential: Credential, gateway: FakeGateway
    ) -> None:
        """An exception that is no SqeError reaches nobody outside, by text or trace, and the server lives (ERR-1)."""
        gateway.answers["broken"] = RuntimeError(CANARY)
        with pytest.raises(Exception, match=r".") as caught:
            ask(client, endpoint, "broken", credential)
        assert CANARY not in str(caught.value)
        assert "Traceback" not in str(caught.value)
        assert ask(client, endpoint, "SELECT 1 AS one", credential) == [{"one": 1}]

    def test_two_clients_at_once(
        self, client: ProtocolClient, endpoint: Endpoint, credential: Credential, gateway: FakeGateway
    ) -> None:
        """A statement that takes long holds up no other client, with the same login neither, and outlives it."""
        gateway.answers["long"] = FakeAnswer(table=pa.table({"n": [1]}), waits=True)
        with busy(client, endpoint, credential, gateway, "long") as (_, answer):
            other = client.connect(endpoint, credential)
            assert list(other.rows("SELECT 1 AS one")) == [{"one": 1}]
            other.close()
            time.sleep(0.3)
            assert not answer.done()
            assert not gateway.results[0].cancelled.is_set()

    def test_cancel(
        self, client: ProtocolClient, endpoint: Endpoint, credential: Credential, gateway: FakeGateway
    ) -> None:
        """A client ends its statement, hears of it, and may go on."""
        gateway.answers["long"] = FakeAnswer(table=pa.table({"n": [1]}), waits=True)
        with busy(client, endpoint, credential, gateway, "long") as (connection, answer):
            connection.cancel()
            assert gateway.results[0].cancelled.wait(_SOON_SECS)
            with pytest.raises(Exception, match=r"."):
                answer.result(_SOON_SECS)
        assert ask(client, endpoint, "SELECT 1 AS one", credential) == [{"one": 1}]

    def test_who_is_gone_runs_nothing(
        self, client: ProtocolClient, endpoint: Endpoint, credential: Credential, gateway: FakeGateway
    ) -> None:
        """What a client left behind is ended: with its connection, or when it does not come back in time (LIM-8)."""
        gateway.answers["long"] = FakeAnswer(table=pa.table({"n": [1]}), waits=True)
        with busy(client, endpoint, credential, gateway, "long") as (connection, _):
            connection.close()
            assert gateway.results[0].cancelled.wait(_SOON_SECS) or soon(lambda: gateway.results[0].closed)

    def test_slow_reader(
        self, client: ProtocolClient, endpoint: Endpoint, credential: Credential, gateway: FakeGateway
    ) -> None:
        """Rows are fetched as the client reads them: a result never lies in memory as a whole (LIM-8)."""
        row = pa.table({"text": ["x" * 1000] * 1000})  # a megabyte
        made: list[int] = []

        def batches() -> Iterator[pa.RecordBatch]:
            for number in range(200):
                made.append(number)
                yield from row.to_batches()

        gateway.answers["large"] = FakeAnswer(table=row, batches=batches)
        connection = client.connect(endpoint, credential)
        rows = connection.rows("large")
        next(rows)
        time.sleep(0.5)
        assert len(made) < 100
        connection.close()

    def test_drains(
        self,
        server: ProtocolServer,
        client: ProtocolClient,
        endpoint: Endpoint,
        credential: Credential,
        gateway: FakeGateway,
    ) -> None:
        """While the server stops, what runs is answered, and nothing new begins."""
        release = threading.Event()

        def batches() -> Iterator[pa.RecordBatch]:
            release.wait(_SOON_SECS)
            yield from pa.table({"n": [7]}).to_batches()

        gateway.answers["slow"] = FakeAnswer(table=pa.table({"n": [7]}), batches=batches)
        with busy(client, endpoint, credential, gateway, "slow") as (_, answer), ThreadPoolExecutor(1) as pool:
            stopped = pool.submit(server.stop, _SOON_SECS)
            time.sleep(0.3)
            assert not stopped.done()
            with pytest.raises(Exception, match=r"."):
                ask(client, endpoint, "SELECT 1 AS one", credential)
            release.set()
            assert answer.result(_SOON_SECS) == [{"n": 7}]
            stopped.result(2 * _SOON_SECS)
        assert [request.sql for request in gateway.statements] == ["slow"]

    def test_stops_and_frees_the_port(self, server: ProtocolServer, gateway: FakeGateway) -> None:
        """After stop nobody listens; stopping again does nothing."""
        endpoint = server.start(gateway)
        server.stop(0)
        server.stop(0)
        with pytest.raises(OSError, match=r"."), socket.create_connection((endpoint.host, endpoint.port), timeout=1):
            pass

    def test_taken_port_is_a_clear_error(
        self, factory: ProtocolFactory[Any], config: Any, gateway: FakeGateway
    ) -> None:
        """A port that somebody else has stops the start, with the port in the text."""
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            server = factory.create(self.NAME, config, ProtocolContext(port=port))
            with pytest.raises(Exception, match=str(port)):
                server.start(gateway)
            server.stop(0)


def ask(client: ProtocolClient, endpoint: Endpoint, sql: str, credential: Credential) -> list[dict[str, Any]]:
    """Run one statement in a connection of its own."""
    connection = client.connect(endpoint, credential)
    try:
        return list(connection.rows(sql))
    finally:
        connection.close()


@contextmanager
def busy(
    client: ProtocolClient, endpoint: Endpoint, credential: Credential, gateway: FakeGateway, sql: str
) -> Iterator[tuple[ClientConnection, Future[list[dict[str, Any]]]]]:
    """A client that waits for an answer: its connection, and the answer."""
    connection = client.connect(endpoint, credential)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(lambda: list(connection.rows(sql)))
        try:
            assert soon(lambda: bool(gateway.results) or answer.done())
            time.sleep(0.1)  # for the client to hear of it
            yield connection, answer
        finally:
            for result in gateway.results:
                result.cancel()
            connection.close()


def soon(happened: Callable[[], bool]) -> bool:
    """Wait for something for a while."""
    deadline = time.monotonic() + _SOON_SECS
    while not happened():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def shown(value: Any) -> str | None:
    """A value as text that all clients can agree on."""
    if value is None:
        return None
    if isinstance(value, datetime):
        moment = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
        return moment.isoformat(sep=" ")
    return str(value).lower() if isinstance(value, bool) else str(value)
