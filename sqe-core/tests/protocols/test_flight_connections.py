"""Connections and streams: counted, and bounded with a status that says so."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import grpc
import pytest
from raw_flight import Core, RawClient, Refused, basic

from sqe_core.protocols.flight.connections import Connections, default_bound, peer_ports
from sqe_core.protocols.flight.server import FlightConfig, FlightServer, TransportConfig
from sqe_core.spi.errors import ResourcesError
from sqe_core.spi.protocol import ProtocolContext
from sqe_core.testing.fakes import RecordingMetrics


@pytest.fixture
def metrics() -> RecordingMetrics:
    return RecordingMetrics()


@pytest.fixture
def context(metrics: RecordingMetrics) -> ProtocolContext:
    return ProtocolContext(metrics=metrics)


@pytest.fixture
def server(context: ProtocolContext) -> Iterator[FlightServer]:
    server = FlightServer(FlightConfig(transport=TransportConfig(max_connections=2)), context)
    yield server
    server.stop(0)


@pytest.mark.rule("LIM-2")
def test_beyond_the_bound_a_connection_gets_a_status(connect: Callable[..., RawClient]) -> None:
    first, second, third = (connect(basic("alice")) for _ in range(3))
    assert first.query("SELECT 1 AS one").num_rows == second.query("SELECT 1 AS one").num_rows == 1
    with pytest.raises(Refused, match="The server has 2 connections") as caught:
        third.query("SELECT 1 AS one")
    assert (caught.value.status, caught.value.code) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "RESOURCE_EXHAUSTED")
    assert caught.value.trailing["retry-after"] == "5"
    assert first.query("SELECT 1 AS one").num_rows == 1, "those that are in stay"
    second.channel.close()
    deadline = time.monotonic() + 5
    while True:
        try:
            assert third.query("SELECT 1 AS one").num_rows == 1
            break
        except Refused:
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_connections_and_streams_are_counted(
    core: Core, connect: Callable[..., RawClient], metrics: RecordingMetrics
) -> None:
    client = connect(basic("alice"))
    stream = client.begin("DoGet", [client.plan("slow").endpoint[0].ticket.SerializeToString()])
    next(stream), next(stream)
    assert metrics.values["sqe_protocol_streams"] == 1
    deadline = time.monotonic() + 5
    while metrics.values.get("sqe_protocol_connections") != 1:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    stream.cancel()
    while metrics.values["sqe_protocol_streams"]:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_without_the_kernels_word_everybody_comes_in() -> None:
    connections = Connections(1, lambda: None)
    for number in range(10):
        connections.admit(f"ipv4:127.0.0.1:{number}")
    assert connections.count() == 0


def test_who_has_gone_is_forgotten() -> None:
    ends = {b"0100007F:0001", b"0100007F:0002"}
    connections = Connections(2, lambda: frozenset(ends))
    connections.admit("ipv4:127.0.0.1:1")
    connections.admit("ipv4:127.0.0.1:2")
    ends.add(b"0100007F:0003")
    with pytest.raises(ResourcesError):
        connections.admit("ipv4:127.0.0.1:3")
    ends.remove(b"0100007F:0001")
    connections.admit("ipv4:127.0.0.1:3")


def test_the_default_fits_the_descriptors() -> None:
    assert 16 <= default_bound() <= 10_000
    assert peer_ports(1) in (frozenset(), None)
