"""A started server over a core that is a fake."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from trino_client import MALLORY, Serve

from sqe_core.spi import ClientInfo, Credential, Endpoint, GatewaySession, ProtocolContext
from sqe_core.testing import FakeGateway
from sqe_core.testing.fakes import FakeSession, make_identity
from sqe_protocol_trino.config import TrinoConfig
from sqe_protocol_trino.server import TrinoServer


class Mallory(FakeSession):
    """Somebody who has no statements, as the core knows; the fake does not look whose they are."""

    def cancel(self, query_id: str) -> bool:
        return False


class TwoUsers(FakeGateway):
    """A core with somebody else, too: whoever brings MALLORY."""

    def authenticate(self, credential: Credential, client: ClientInfo) -> GatewaySession:
        if credential == MALLORY:
            return Mallory(self, make_identity("mallory"), MALLORY.password)
        return super().authenticate(credential, client)


@pytest.fixture
def gateway() -> FakeGateway:
    """The core."""
    return TwoUsers()


@pytest.fixture
def serve(gateway: FakeGateway) -> Iterator[Serve]:
    """Start a server, with keys of its configuration, or of its context."""
    servers: list[TrinoServer] = []

    def start(context: ProtocolContext | None = None, **keys: object) -> Endpoint:
        config = TrinoConfig(**keys)
        servers.append(TrinoServer(config, context or ProtocolContext()))
        return servers[-1].start(gateway)

    yield start
    for server in servers:
        server.stop(0)


@pytest.fixture
def endpoint(serve: Serve) -> Endpoint:
    """A server with defaults."""
    return serve()
