"""A server: protocols, health and metrics around one SQE, from the first bound port to the last ended statement."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial

from sqe_core.engine.port import Engine, EngineState
from sqe_core.plugins.lifecycle import Component, Lifecycle
from sqe_core.query.service import QueryService
from sqe_core.spi.errors import SqeError, StartupError
from sqe_core.spi.protocol import Endpoint, ProtocolServer, QueryGateway, ServerState, ServerStatus
from sqe_http.listener import HttpListener, ListenError

_log = logging.getLogger(__name__)

# What a client whose statement was ended gets to read why.
_LAST_WORDS_SECS = 2.0
# What a client that has read its result gets to close it: an error then would look as if the result were not whole.
_GOODBYE_SECS = 1.0
_END_SECS = 5.0


class StatusBoard:
    """What the server says when somebody asks how it is. Needs no login, so it says no more than that."""

    def __init__(self, engine: Engine, version: str) -> None:
        self._engine = engine
        self._version = version
        self._started_at = datetime.now(UTC)
        self._draining = threading.Event()

    @property
    def draining(self) -> bool:
        """Whether the server is about to end."""
        return self._draining.is_set()

    def drain(self) -> None:
        """The server is about to end, from now on."""
        self._draining.set()

    def engine_ready(self) -> bool:
        """Whether statements can run."""
        return self._engine.state is EngineState.READY

    def current(self) -> ServerStatus:
        """Return the state."""
        state = ServerState.ACTIVE if self.engine_ready() else ServerState.STARTING
        return ServerStatus(
            state=ServerState.DRAINING if self.draining else state,
            version=self._version,
            started_at=self._started_at,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerParts:
    """What a server is made of, wired by `bootstrap`.

    Args:
        engine: started with the server, and stopped with it.
        service: what runs statements.
        status: what the server says about itself.
        gateway: what protocols talk to.
        protocols: kind and server of each protocol.
        listeners: health and metrics.
        components: what else starts before the protocols and stops after them, in order.
        close: frees the rest at the very end.
        drain_secs: how long running statements get at the end.
        off: sentences about protocols that are not served, for the log.
        needs_tls: TLS was configured, so a protocol that does not speak it is not served (OBS-7).
    """

    engine: Engine
    service: QueryService
    status: StatusBoard
    gateway: QueryGateway
    protocols: Sequence[tuple[str, ProtocolServer]] = ()
    listeners: Sequence[HttpListener] = ()
    components: Sequence[Component] = ()
    close: Callable[[], None] = lambda: None
    drain_secs: float = 25
    off: Sequence[str] = ()
    needs_tls: bool = False


@dataclass(slots=True)
class _Seen:
    """What was logged of the engine's life."""

    began: float = field(default_factory=time.monotonic)
    state: EngineState | None = None
    step: str = ""


class Server:
    """A composed server. `start` binds and returns; the engine comes up behind it. `stop` may come at any time."""

    def __init__(self, parts: ServerParts) -> None:
        self._parts = parts
        self._endpoints: list[Endpoint] = []
        self._seen = _Seen()
        self._stop_lock = threading.Lock()
        self._stopped = False
        self._lifecycle = Lifecycle(
            [
                *(Component(name=each.name, start=partial(_start, each), stop=each.stop) for each in parts.listeners),
                Component(name="the engine", start=self._start_engine, stop=parts.engine.stop),
                *parts.components,
                *(self._component_of(kind, server) for kind, server in parts.protocols),
            ]
        )

    @property
    def status(self) -> StatusBoard:
        """What it says about itself."""
        return self._parts.status

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """Where it listens, with the real ports: protocols first, then metrics and health."""
        http = [
            Endpoint(protocol=each.name, host=each.host, port=each.port, secure=each.secure)
            for each in self._parts.listeners
        ]
        return (*self._endpoints, *http)

    @property
    def engine_failure(self) -> Exception | None:
        """Why the engine will not come (again); the server cannot serve then."""
        engine = self._parts.engine
        return engine.failure if engine.state is EngineState.FAILED else None

    def start(self) -> tuple[Endpoint, ...]:
        """Bind every port and begin to start the engine; health is answered from now on.

        Raises:
            StartupError: a port is taken, or a component cannot start; what was started has been stopped.
        """
        try:
            self._lifecycle.start()
        except BaseException:
            self._parts.close()
            raise
        for sentence in self._parts.off:
            _log.info("%s", sentence)
        shown = [f"{each.protocol} {each.host}:{each.port}{' (TLS)' if each.secure else ''}" for each in self.endpoints]
        fields = {
            "event": "listening",
            "endpoints": [
                {"protocol": each.protocol, "host": each.host, "port": each.port, "secure": each.secure}
                for each in self.endpoints
            ],
        }
        version = self.status.current().version
        _log.info("SQE %s listens: %s", version, ", ".join(shown) or "nowhere", extra={"fields": fields})
        if not self._endpoints:
            _log.warning("no protocol is served: nobody can send a statement to this server")
        return self.endpoints

    def watch_engine(self) -> None:
        """Log what became of the engine since the last call."""
        state, seen = self._parts.engine.state, self._seen
        if state is seen.state:
            return
        before, seen.state = seen.state, state
        match state:
            case EngineState.READY:
                secs = time.monotonic() - seen.began
                _log.info(
                    "ready: statements run (%.1f s after the start)",
                    secs,
                    extra={"fields": {"event": "ready", "secs": round(secs, 3)}},
                )
            case EngineState.LOST:
                _log.error("the engine ended by itself; it is started again", extra={"fields": {"event": "lost"}})
            case EngineState.PREPARING | EngineState.STARTING if before is EngineState.READY:
                _log.error("the engine ended by itself; it is started again", extra={"fields": {"event": "lost"}})

    def stop(self, drain_secs: float | None = None) -> None:
        """End it: nothing new, what runs gets `drain_secs`, then it is ended; then everything else. Idempotent."""
        with self._stop_lock:
            if self._stopped:
                return
            self._stopped = True
            parts = self._parts
            deadline = time.monotonic() + (parts.drain_secs if drain_secs is None else drain_secs)
            parts.status.drain()
            self._drain(deadline)
            self._stop_protocols(max(_LAST_WORDS_SECS, deadline - time.monotonic()))
            self._lifecycle.stop()
            parts.close()
            _log.info("the server has ended", extra={"fields": {"event": "stopped"}})

    def _drain(self, deadline: float) -> None:
        service = self._parts.service
        secs = max(0.0, deadline - time.monotonic())
        running = service.running
        _log.info(
            "shutting down: %d statements run and get %g s",
            running,
            round(secs, 1),
            extra={"fields": {"event": "draining", "running": running}},
        )
        if not service.drain(secs):
            _log.warning("%d statements did not end in time and are ended", service.running)
            if not service.end_all(_END_SECS):
                _log.error("%d statements do not end", service.running)
        elif running:
            time.sleep(max(0.0, min(_GOODBYE_SECS, deadline - time.monotonic())))

    def _stop_protocols(self, secs: float) -> None:
        """Stop them side by side: each may take the whole time."""
        threads = [
            threading.Thread(target=self._stop_protocol, args=(kind, server, secs), name=f"sqe-stop-{kind}")
            for kind, server in self._parts.protocols
        ]
        for thread in threads:
            thread.daemon = True
            thread.start()
        until = time.monotonic() + secs + _END_SECS
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))
            if thread.is_alive():
                _log.error("the thread %s does not end", thread.name)

    def _stop_protocol(self, kind: str, server: ProtocolServer, secs: float) -> None:
        try:
            server.stop(secs)
        except Exception:  # noqa: BLE001 - the others have to be stopped too
            _log.exception("the protocol %s failed to stop", kind)

    def _component_of(self, kind: str, server: ProtocolServer) -> Component:
        def start() -> None:
            try:
                endpoint = server.start(self._parts.gateway)
            except SqeError:
                raise
            except Exception as error:
                reason = getattr(error, "strerror", None) or type(error).__name__
                raise StartupError(f"The protocol '{kind}' cannot start: {reason}") from error
            if self._parts.needs_tls and not endpoint.secure:
                server.stop(0)
                raise StartupError(f"The protocol '{kind}' does not speak TLS, which [coordinator.tls] asks for")
            self._endpoints.append(endpoint)

        return Component(name=f"the protocol {kind}", start=start, stop=lambda: server.stop(0))

    def _start_engine(self) -> None:
        self._seen = _Seen()
        self._parts.engine.on_progress(self._on_progress)
        self._parts.engine.start()

    def _on_progress(self, step: str, share: float | None) -> None:
        if step != self._seen.step:
            self._seen.step = step
            _log.info("engine: %s", step)


def _start(listener: HttpListener) -> None:
    try:
        listener.start()
    except ListenError as error:
        raise StartupError(str(error)) from error
