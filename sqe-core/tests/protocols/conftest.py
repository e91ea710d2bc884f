"""A Flight server before the core of `raw_flight`, and clients of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import grpc
import pytest
from raw_flight import Core, RawClient, basic

from sqe_core.protocols.flight.server import FlightConfig, FlightServer
from sqe_core.spi.protocol import Endpoint, ProtocolContext


@pytest.fixture
def core() -> Core:
    return Core()


@pytest.fixture
def context() -> ProtocolContext:
    return ProtocolContext()


@pytest.fixture
def server(context: ProtocolContext) -> Iterator[FlightServer]:
    server = FlightServer(FlightConfig(auth_handshake_timeout_secs=2), context)
    yield server
    server.stop(0)


@pytest.fixture
def endpoint(server: FlightServer, core: Core) -> Endpoint:
    return server.start(core)


@pytest.fixture
def connect(endpoint: Endpoint) -> Iterator[Callable[..., RawClient]]:
    """Opens clients on connections of their own."""
    channels: list[grpc.Channel] = []

    def open_client(header: str | None = None, *, agent: str = "") -> RawClient:
        channel = grpc.insecure_channel(
            f"127.0.0.1:{endpoint.port}",
            options=[
                ("grpc.use_local_subchannel_pool", 1),
                ("grpc.max_receive_message_length", -1),
                ("grpc.max_metadata_size", 1 << 20),
                ("grpc.enable_retries", 0),
                ("grpc.primary_user_agent", agent),
            ],
        )
        channels.append(channel)
        return RawClient(channel, (("authorization", header),) if header else ())

    yield open_client
    for channel in channels:
        channel.close()


@pytest.fixture
def alice(connect: Callable[..., RawClient]) -> RawClient:
    return connect(basic("alice"))


@pytest.fixture
def bob(connect: Callable[..., RawClient]) -> RawClient:
    return connect(basic("bob"))


@pytest.fixture
def nobody(connect: Callable[..., RawClient]) -> RawClient:
    return connect()
