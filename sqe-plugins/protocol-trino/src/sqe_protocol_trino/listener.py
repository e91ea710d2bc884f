"""The listener: an event loop in a thread of its own, and what lives as long as it."""

from __future__ import annotations

import asyncio
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from sqe_core.spi import Endpoint, ProtocolContext, QueryGateway, StartupError
from sqe_http.listener import ListenError, ListenerTls
from sqe_protocol_trino.certificate_names import CertificateNames
from sqe_protocol_trino.config import TrinoConfig
from sqe_protocol_trino.connections import Connections, GuardedServer
from sqe_protocol_trino.handshakes import Handshakes
from sqe_protocol_trino.places import Places
from sqe_protocol_trino.routes import Routes
from sqe_protocol_trino.spooling.opening import open_segments
from sqe_protocol_trino.spooling.segments import Segments
from sqe_protocol_trino.statements import Statements

_THREADS = 32
_SWEEP_SECS = 1.0
_TURNS = 20
_BACKLOG = 512


class TrinoListener:
    """Trino's protocol on one port."""

    def __init__(self, config: TrinoConfig, context: ProtocolContext) -> None:
        self._config, self._context = config, context
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._server: asyncio.Server | None = None
        self._handshakes: Handshakes | None = None
        self._http: GuardedServer | None = None
        self._statements: Statements | None = None
        self._threads: ThreadPoolExecutor | None = None
        self._segments: Segments | None = None

    def start(self, gateway: QueryGateway) -> Endpoint:
        """Bind, and serve in threads."""
        context = self._context
        listening = self._listen()
        try:
            tls = ListenerTls(context.tls.cert_file, context.tls.key_file, context.tls.ca_file) if context.tls else None
        except ListenError as error:
            listening.close()
            raise StartupError(str(error)) from None
        try:
            self._segments = open_segments(self._config.spooling, context)
        except StartupError:
            listening.close()
            raise
        loop = self._loop = asyncio.new_event_loop()
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="sqe-trino-call")
        self._thread = threading.Thread(target=loop.run_forever, name="sqe-trino", daemon=True)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._serve(gateway, listening, tls), loop).result()
        return Endpoint(
            protocol="trino", host=context.bind_host, port=listening.getsockname()[1], secure=tls is not None
        )

    def _listen(self) -> socket.socket:
        host, port = self._context.bind_host, self._context.port
        try:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            return socket.create_server((host, port), family=family, backlog=_BACKLOG)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise StartupError(f"Cannot listen on {host}:{port} (trino): {reason}") from error

    async def _serve(self, gateway: QueryGateway, listening: socket.socket, tls: ListenerTls | None) -> None:
        config, context = self._config, self._context
        connections = Connections(config)
        self._statements = Statements(config, context.stream_idle_secs)
        assert self._threads is not None
        routes = Routes(
            config,
            context,
            gateway,
            places=Places(
                public_url=context.public_url,
                trusted_proxies=context.trusted_proxies,
                names=CertificateNames(context.tls.cert_file) if context.tls else (),
            ),
            statements=self._statements,
            connections=connections,
            threads=self._threads,
            segments=self._segments,
        )
        self._http = GuardedServer(
            routes.handle,
            connections,
            config.head_timeout_secs,
            keepalive_timeout=config.idle_timeout_secs,
            access_log=None,
            max_line_size=context.limits.header_bytes,
            max_field_size=context.limits.header_bytes,
            auto_decompress=False,
        )
        if tls is not None:
            self._handshakes = Handshakes(listening, tls, self._http, config)
        else:
            self._server = await asyncio.get_running_loop().create_server(self._http, sock=listening)
        self._sweeping = asyncio.create_task(self._sweep(self._statements))

    async def _sweep(self, statements: Statements) -> None:
        pause = min(_SWEEP_SECS, self._context.stream_idle_secs / 4)
        while True:
            await asyncio.sleep(pause)
            statements.sweep()
            if self._segments is not None:
                self._segments.sweep()

    def stop(self, drain_secs: float) -> None:
        """Begin nothing new, let clients fetch what is theirs, close."""
        loop, self._loop = self._loop, None
        if loop is None:
            return
        asyncio.run_coroutine_threadsafe(self._close(drain_secs), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        if self._thread is not None:
            self._thread.join(5)
        loop.close()
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
        if self._segments is not None:
            self._segments.close()

    async def _close(self, drain_secs: float) -> None:
        if self._statements is not None:
            await self._statements.drain(drain_secs)
        if self._server is not None:
            # What is accepted and has not begun would be lost in a server that is closed: first nothing more comes.
            for listening in self._server.sockets:
                asyncio.get_running_loop().remove_reader(listening.fileno())
            await _turns()
            self._server.close()
        if self._handshakes is not None:
            await self._handshakes.close()
        if self._http is not None:
            self._http.pre_shutdown()
            with suppress(TimeoutError):
                await self._http.shutdown(1.0)
            self._http.connected.end_all()
        self._sweeping.cancel()
        await _turns()


async def _turns() -> None:
    """Let the loop begin what was accepted, and close what was ended."""
    for _ in range(_TURNS):
        await asyncio.sleep(0)
