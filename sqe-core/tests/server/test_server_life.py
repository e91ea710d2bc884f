"""A server's life with fakes: what is bound first, what a failure undoes, and how it ends."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from sqe_core.engine.port import EngineState
from sqe_core.plugins.lifecycle import Component
from sqe_core.server import Server, ServerParts, StatusBoard
from sqe_core.spi.errors import StartupError
from sqe_core.spi.protocol import Endpoint, ProtocolServer, QueryGateway, ServerState
from sqe_core.testing.fakes import FakeGateway
from sqe_http.listener import HttpAnswer, HttpListener


class FakeEngine:
    """An engine that is in the state that the test chose."""

    def __init__(self, calls: list[str]) -> None:
        self.calls = calls
        self.state = EngineState.STOPPED
        self.failure: Exception | None = None
        self.tell: Callable[[str, float | None], None] = lambda step, share: None

    def on_progress(self, listener: Callable[[str, float | None], None]) -> None:
        self.tell = listener

    def start(self) -> None:
        self.calls.append("engine start")
        self.state = EngineState.STARTING

    def stop(self) -> None:
        self.calls.append("engine stop")
        self.state = EngineState.STOPPED


class FakeService:
    """Statements that end when the test says so."""

    def __init__(self, calls: list[str], running: int = 0) -> None:
        self.calls = calls
        self.running = running
        self.ended = threading.Event()
        self.waited = 0.0

    def drain(self, timeout_secs: float) -> bool:
        self.calls.append("drain")
        self.waited = timeout_secs
        return not self.running or self.ended.wait(timeout_secs)

    def end_all(self, timeout_secs: float) -> bool:
        self.calls.append("end all")
        self.running = 0
        return True


class FakeProtocol(ProtocolServer):
    def __init__(
        self, calls: list[str], name: str = "gopher", *, fails: bool = False, secure: bool = False, slow: float = 0
    ) -> None:
        self.calls, self.name, self.fails, self.secure, self.slow = calls, name, fails, secure, slow
        self.gateway: QueryGateway | None = None

    def start(self, gateway: QueryGateway) -> Endpoint:
        self.calls.append(f"{self.name} start")
        if self.fails:
            raise StartupError("Cannot listen on port 70")
        self.gateway = gateway
        return Endpoint(protocol=self.name, host="127.0.0.1", port=70, secure=self.secure)

    def stop(self, drain_secs: float) -> None:
        self.calls.append(f"{self.name} stop")
        if drain_secs:
            time.sleep(self.slow)


class Bench:
    """A server of fakes."""

    def __init__(self, *, running: int = 0, **options: Any) -> None:
        self.calls: list[str] = []
        self.engine = FakeEngine(self.calls)
        self.service = FakeService(self.calls, running)
        self.status = StatusBoard(self.engine, "1.2.3")  # type: ignore[arg-type]
        self.health = HttpListener("health", "127.0.0.1", 0, {"/healthz": lambda request: HttpAnswer.of_text("ok")})
        self.gateway = FakeGateway()
        protocols = options.pop("protocols", None)
        self.protocols = protocols(self.calls) if protocols else [("gopher", FakeProtocol(self.calls))]
        self.server = Server(
            ServerParts(
                engine=self.engine,  # type: ignore[arg-type]
                service=self.service,  # type: ignore[arg-type]
                status=self.status,
                gateway=self.gateway,
                protocols=self.protocols,
                listeners=[self.health],
                components=[Component(name="sessions", stop=lambda: self.calls.append("sessions stop"))],
                close=lambda: self.calls.append("close"),
                **options,
            )
        )


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_start_and_stop_in_order(bench: Bench) -> None:
    endpoints = bench.server.start()
    assert [each.protocol for each in endpoints] == ["gopher", "health"]
    assert endpoints[1].port == bench.health.port != 0
    assert bench.protocols[0][1].gateway is bench.gateway
    assert bench.calls == ["engine start", "gopher start"]
    bench.calls.clear()
    bench.server.stop()
    # Statements first, then those who bring them, then what they stand on.
    assert bench.calls == ["drain", "gopher stop", "gopher stop", "sessions stop", "engine stop", "close"]
    bench.server.stop()
    assert len(bench.calls) == 6


def test_the_status(bench: Bench) -> None:
    bench.server.start()
    assert bench.status.current().state is ServerState.STARTING
    bench.engine.state = EngineState.READY
    assert bench.status.current().state is ServerState.ACTIVE
    assert bench.status.current().version == "1.2.3"
    bench.server.stop()
    assert bench.status.current().state is ServerState.DRAINING


def test_a_protocol_that_cannot_start_undoes_everything() -> None:
    def protocols(calls: list[str]) -> list[tuple[str, ProtocolServer]]:
        return [("a", FakeProtocol(calls, "a")), ("b", FakeProtocol(calls, "b", fails=True))]

    bench = Bench(protocols=protocols)
    with pytest.raises(StartupError, match="Cannot listen on port 70"):
        bench.server.start()
    assert bench.calls == ["engine start", "a start", "b start", "a stop", "sessions stop", "engine stop", "close"]
    bench.server.stop()  # does no harm


@pytest.mark.rule("OBS-7")
def test_a_protocol_without_tls_is_not_served_when_tls_was_configured() -> None:
    bench = Bench(needs_tls=True)
    with pytest.raises(StartupError, match="'gopher' does not speak TLS"):
        bench.server.start()
    assert "gopher stop" in bench.calls
    assert "engine stop" in bench.calls


def test_a_protocol_with_tls_is_served() -> None:
    bench = Bench(needs_tls=True, protocols=lambda calls: [("a", FakeProtocol(calls, "a", secure=True))])
    assert bench.server.start()[0].secure
    bench.server.stop()


def test_running_statements_get_their_time() -> None:
    bench = Bench(running=2, drain_secs=30)
    bench.server.start()
    threading.Timer(0.3, bench.service.ended.set).start()
    began = time.monotonic()
    bench.server.stop()
    assert 0.25 < time.monotonic() - began < 5
    assert bench.service.waited == pytest.approx(30, abs=1)
    assert "end all" not in bench.calls


def test_statements_that_take_longer_are_ended(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench(running=2, drain_secs=0.2)
    bench.server.start()
    bench.server.stop()
    assert bench.calls[2:5] == ["drain", "end all", "gopher stop"]
    assert "2 statements did not end in time and are ended" in caplog.text


def test_protocols_stop_side_by_side() -> None:
    def protocols(calls: list[str]) -> list[tuple[str, ProtocolServer]]:
        return [(name, FakeProtocol(calls, name, slow=0.5)) for name in ("a", "b", "c", "d")]

    bench = Bench(protocols=protocols)
    bench.server.start()
    began = time.monotonic()
    bench.server.stop()
    assert time.monotonic() - began < 1.5


def test_what_became_of_the_engine_is_logged_once(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    bench.server.start()
    caplog.clear()
    for state in (EngineState.STARTING, EngineState.READY, EngineState.READY, EngineState.STARTING, EngineState.READY):
        bench.engine.state = state
        bench.server.watch_engine()
    said = [record.getMessage() for record in caplog.records]
    assert said[0].startswith("ready: statements run (")
    assert said[1] == "the engine ended by itself; it is started again"
    assert said[2].startswith("ready")
    assert len(said) == 3
    bench.engine.tell("Fetching jars", 0.1)
    bench.engine.tell("Fetching jars", 0.2)
    assert [record.getMessage() for record in caplog.records][3:] == ["engine: Fetching jars"]
    bench.server.stop()


def test_an_engine_that_failed_is_told(bench: Bench) -> None:
    bench.server.start()
    assert bench.server.engine_failure is None
    bench.engine.state, bench.engine.failure = EngineState.FAILED, StartupError("no Java")
    assert bench.server.engine_failure is bench.engine.failure
    bench.server.stop()


def test_a_server_without_protocols_says_so(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench(protocols=lambda calls: [], off=["the protocol 'trino' is off"])
    caplog.set_level(logging.INFO)
    bench.server.start()
    assert "nobody can send a statement" in caplog.text
    assert "the protocol 'trino' is off" in caplog.text
    listening = next(record for record in caplog.records if getattr(record, "fields", {}).get("event") == "listening")
    assert listening.fields["endpoints"][0]["protocol"] == "health"  # type: ignore[attr-defined]
    bench.server.stop()
