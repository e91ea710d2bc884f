"""The contract of wire protocols, against a core that is a fake."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any, ClassVar, Protocol

import pyarrow as pa
import pytest

from sqe_core.spi.auth import BasicCredential, BearerCredential, Credential
from sqe_core.spi.errors import ErrorCode, UserError
from sqe_core.spi.identity import Secret
from sqe_core.spi.protocol import Endpoint, ProtocolContext, ProtocolFactory, ProtocolServer
from sqe_core.testing.contract import FactoryContract
from sqe_core.testing.fakes import FakeGateway

CANARY = "canary-5d1f"


class ProtocolClient(Protocol):
    """What a vendor's test supplies: a client of the protocol, any real one will do."""

    def query(self, endpoint: Endpoint, sql: str, credential: Credential) -> list[dict[str, Any]]:
        """Log in, run one statement, return its rows by column name.

        Args:
            endpoint: where the server listens.
            sql: the statement.
            credential: user and password, or a bearer.

        Raises:
            Exception: what the client library raises when the server answers with an error.
        """


class ProtocolContract(FactoryContract):
    """What every protocol promises.

    Fixtures to supply: `factory`, `config`, and `client`, a `ProtocolClient`.

    Capabilities: `basic` and `bearer`, the credentials that it carries.
    """

    KNOWN_CAPABILITIES: ClassVar[frozenset[str]] = frozenset({"basic", "bearer"})

    @pytest.fixture
    def context(self) -> ProtocolContext:
        """Loopback and any free port."""
        return ProtocolContext()

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
        assert client.query(endpoint, "SELECT 1 AS one", credential) == [{"one": 1}]

    def test_many_rows(
        self, client: ProtocolClient, endpoint: Endpoint, credential: Credential, gateway: FakeGateway
    ) -> None:
        """Several batches arrive whole and in order, and the result is closed."""
        gateway.answers["many"] = pa.table({"n": list(range(2500)), "text": [f"ü{n}" for n in range(2500)]})
        rows = client.query(endpoint, "many", credential)
        assert [row["n"] for row in rows] == list(range(2500))
        assert rows[-1]["text"] == "ü2499"
        assert gateway.results[-1].closed

    def test_text_arrives_unchanged(
        self, client: ProtocolClient, endpoint: Endpoint, credential: Credential, gateway: FakeGateway
    ) -> None:
        """The core gets the client's text, byte for byte (ENF-2)."""
        sql = "SELECT 'ä\n\t;--' AS \"x y\" /* ${env:HOME} */"
        gateway.answers[sql] = pa.table({"x y": ["1"]})
        client.query(endpoint, sql, credential)
        assert gateway.statements[-1].sql == sql

    def test_basic_login(self, client: ProtocolClient, endpoint: Endpoint, gateway: FakeGateway) -> None:
        """A user name and a password arrive as such (AUTHN-5)."""
        self.need("basic")
        client.query(endpoint, "SELECT 1 AS one", BasicCredential(username="alice", password=Secret("wonderland")))
        assert any(isinstance(credential, BasicCredential) for credential, _ in gateway.logins)

    def test_bearer_login(self, client: ProtocolClient, endpoint: Endpoint, gateway: FakeGateway) -> None:
        """A token arrives as a token (AUTHN-5)."""
        self.need("bearer")
        client.query(endpoint, "SELECT 1 AS one", BearerCredential(token=gateway.bearer))
        assert any(isinstance(credential, BearerCredential) for credential, _ in gateway.logins)

    def test_client_is_described(
        self,
        client: ProtocolClient,
        endpoint: Endpoint,
        credential: Credential,
        gateway: FakeGateway,
        factory: ProtocolFactory[Any],
    ) -> None:
        """The core learns which protocol and which address a login came from."""
        client.query(endpoint, "SELECT 1 AS one", credential)
        _, described = gateway.logins[-1]
        assert described.protocol == factory.kind
        assert described.address

    def test_bad_login_is_refused(self, client: ProtocolClient, endpoint: Endpoint, gateway: FakeGateway) -> None:
        """A wrong password or token reaches no statement (AUTHN-1)."""
        wrong: Credential = BearerCredential(token=Secret("wrong"))
        if self.can("basic"):
            wrong = BasicCredential(username="alice", password=Secret("wrong"))
        with pytest.raises(Exception, match=r".") as caught:
            client.query(endpoint, "SELECT 1 AS one", wrong)
        assert not isinstance(caught.value, AssertionError)
        assert not gateway.statements

    def test_error_arrives(
        self, client: ProtocolClient, endpoint: Endpoint, credential: Credential, gateway: FakeGateway
    ) -> None:
        """The user reads our text of an error."""
        gateway.answers["bad"] = UserError("Table orders does not exist", code=ErrorCode.TABLE_NOT_FOUND)
        with pytest.raises(Exception, match="Table orders does not exist"):
            client.query(endpoint, "bad", credential)

    def test_unexpected_error_stays_inside(
        self, client: ProtocolClient, endpoint: Endpoint, credential: Credential, gateway: FakeGateway
    ) -> None:
        """An exception that is no SqeError reaches nobody outside, by text or trace, and the server lives (ERR-1)."""
        gateway.answers["broken"] = RuntimeError(CANARY)
        with pytest.raises(Exception, match=r".") as caught:
            client.query(endpoint, "broken", credential)
        assert CANARY not in str(caught.value)
        assert "Traceback" not in str(caught.value)
        assert client.query(endpoint, "SELECT 1 AS one", credential) == [{"one": 1}]

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
