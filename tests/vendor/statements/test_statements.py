"""The protocol keeps SQE's contract, with a client of a few lines."""

from __future__ import annotations

import base64
import http.client
import json
from collections.abc import Iterator
from typing import Any

import pytest

from acme_statements import StatementsConfig, StatementsFactory
from sqe_core.spi import BasicCredential, BearerCredential, Credential, Endpoint, Secret, SessionChanges
from sqe_core.testing import FakeGateway, PluginContract, ProtocolContract
from sqe_core.testing.protocol import soon

ALICE = BasicCredential(username="alice", password=Secret("wonderland"))


class Connection:
    """What a client keeps."""

    def __init__(self, endpoint: Endpoint, credential: Credential, **headers: str) -> None:
        self.address = endpoint.host, endpoint.port
        if isinstance(credential, BearerCredential):
            login = f"Bearer {credential.token.reveal()}"
        else:
            assert isinstance(credential, BasicCredential)
            word = f"{credential.username}:{credential.password.reveal()}".encode()
            login = f"Basic {base64.b64encode(word).decode()}"
        self.headers = {"Authorization": login, **headers}
        self.answered: dict[str, str] = {}
        self.next: str | None = None

    def rows(self, sql: str) -> Iterator[dict[str, Any]]:
        page = self.ask("POST", "/v1/statement", sql.encode())
        while True:
            columns = [column["name"] for column in page.get("columns", ())]
            for row in page.get("data", ()):
                yield dict(zip(columns, row, strict=True))
            self.next = page.get("nextUri")
            if self.next is None:
                return
            page = self.ask("GET", self.next)

    def ask(self, method: str, path: str, body: bytes | None = None) -> Any:
        connection = http.client.HTTPConnection(*self.address, timeout=30)
        try:
            connection.request(method, path, body, self.headers)
            answer = connection.getresponse()
            text = answer.read()
            self.answered = {name.lower(): value for name, value in answer.getheaders()}
        finally:
            connection.close()
        page = json.loads(text) if text else {}
        if "error" in page:
            raise RuntimeError(page["error"]["message"])
        return page

    def cancel(self) -> None:
        assert soon(lambda: self.next is not None)
        self.ask("DELETE", str(self.next))

    def close(self) -> None:
        """There is nothing to close: who does not come back is gone."""
        self.address = self.address[0], 1


class Client:
    def connect(self, endpoint: Endpoint, credential: Credential) -> Connection:
        return Connection(endpoint, credential)


class TestStatementsPlugin(PluginContract):
    plugin_name = "acme-statements"


class TestStatements(ProtocolContract):
    capabilities = frozenset({"basic", "bearer"})

    @pytest.fixture
    def factory(self) -> StatementsFactory:
        return StatementsFactory()

    @pytest.fixture
    def config(self) -> StatementsConfig:
        return StatementsConfig(wait_secs=0.2)

    @pytest.fixture
    def client(self) -> Client:
        return Client()

    def test_state_comes_with_the_statement_and_goes_back(self, endpoint: Endpoint, gateway: FakeGateway) -> None:
        """A plus in a header is a space, as in forms; %2B is a plus."""
        headers = {
            "X-Acme-Catalog": "l%C3%A4ke",
            "X-Acme-Schema": "a+b.c%2Bd",
            "X-Acme-Session": "time_zone=Europe%2FRome",
        }
        connection = Connection(endpoint, ALICE, **headers, **{"X-Acme-Prepared-Statement": "p=SELECT+1%2B%3F"})
        list(connection.rows("SELECT 1 AS one"))
        state = gateway.statements[-1].state
        assert state is not None
        assert (state.catalog, state.schema) == ("läke", ("a b", "c+d"))
        assert dict(state.properties) == {"time_zone": "Europe/Rome"}
        assert dict(state.prepared) == {"p": "SELECT 1+?"}

    def test_pages_are_their_owners(self, endpoint: Endpoint) -> None:
        """An unknown page and a foreign one are the same 404."""
        with pytest.raises(RuntimeError, match="There is no such statement"):
            Connection(endpoint, ALICE).ask("GET", "/v1/statement/no-such/0")


def test_changes_are_headers() -> None:
    from acme_statements import _listed

    changes = SessionChanges(set_properties={"a": "x y+z", "b": "ü"})
    assert _listed(changes.set_properties) == "a=x+y%2Bz,b=%C3%BC"
