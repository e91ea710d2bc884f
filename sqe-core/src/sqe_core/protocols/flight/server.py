"""The gRPC server of Flight: its port, TLS, limits, and how it ends."""

from __future__ import annotations

import logging
import os
import ssl
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import grpc

from sqe_core.protocols.flight.call_pools import CallPools
from sqe_core.protocols.flight.connections import ConnectionBounds, Connections
from sqe_core.protocols.flight.idle import IdleWatch
from sqe_core.protocols.flight.rpcs import CallLimits, FlightRpcs
from sqe_core.protocols.flight.sign_in import PROTOCOL
from sqe_core.protocols.flight.sockets import Sockets, close_sockets, default_bound
from sqe_core.protocols.flight.statements import Statements
from sqe_core.spi.errors import StartupError
from sqe_core.spi.protocol import Endpoint, ProtocolContext, ProtocolServer, QueryGateway, TlsFiles

_log = logging.getLogger(__name__)

# A call holds a thread; connections that only wait hold none.
_MOST_CALLS = 512
_MOST_CALLS_OF_USER = _MOST_CALLS // 2
# A batch of an ingest; other requests are bounded where they are read, after login.
_MOST_MESSAGE_BYTES = 257 << 20
_MOST_STREAMS = 256
_SWEEP_SECS = 15.0
_LOOK_SECS = 1.0
_LOOK_AGAIN_SECS = 0.1
_LOOK_SHARE = 10  # a tenth of the time is spent looking, at the most
_END_SECS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportConfig:
    initial_stream_window_size: int = field(default=8 << 20, metadata={"unit": "bytes"})
    initial_connection_window_size: int = field(default=16 << 20, metadata={"unit": "bytes"})
    max_frame_size: int = field(default=1 << 20, metadata={"unit": "bytes"})
    http2_keepalive_interval_secs: int = 30
    http2_keepalive_timeout_secs: int = 10
    tcp_keepalive_secs: int = 60
    max_connections: int = 0
    max_connections_per_user: int = 0
    connection_idle_timeout_secs: int = 900


@dataclass(frozen=True, slots=True, kw_only=True)
class FlightConfig:
    """The keys of `[coordinator]` that are this protocol's."""

    flight_compression: Literal["none", "lz4", "zstd"] = "lz4"
    auth_handshake_timeout_secs: int = field(default=30, metadata={"unit": "seconds"})
    transport: TransportConfig = field(default_factory=TransportConfig)


class FlightServer(ProtocolServer):
    def __init__(self, config: FlightConfig, context: ProtocolContext) -> None:
        self._config = config
        self._context = context
        self._statements = Statements(metrics=context.metrics)
        self._watch = IdleWatch()
        self._server: grpc.Server | None = None
        self._pools: CallPools | None = None
        self._rpcs: FlightRpcs | None = None
        bounds = ConnectionBounds(
            most=config.transport.max_connections or default_bound(),
            of_user=config.transport.max_connections_per_user,
            stranger_secs=config.auth_handshake_timeout_secs,
        )
        self._bounds = bounds
        self._sockets = Sockets()
        self._connections = Connections(bounds, self._sockets, close_sockets, self._end_connection)
        self._ended = threading.Event()
        self._sweeper: threading.Thread | None = None

    def start(self, gateway: QueryGateway) -> Endpoint:
        """Bind and serve.

        Raises:
            StartupError: the port is taken, or the TLS files cannot be used.
        """
        tls = self._context.tls
        compression = self._config.flight_compression
        pools = CallPools(_MOST_CALLS)
        self._pools = pools
        rpcs = FlightRpcs(
            gateway,
            self._statements,
            secure=tls is not None,
            compression=None if compression == "none" else compression,
            watch=self._watch,
            limits=CallLimits(
                login_secs=self._config.auth_handshake_timeout_secs,
                idle_secs=self._context.stream_idle_secs,
                most_of_user=_MOST_CALLS_OF_USER,
            ),
            connections=self._connections,
            pools=pools,
        )
        self._rpcs = rpcs
        server = grpc.server(
            pools.users, handlers=[rpcs.handler()], options=self._options(), maximum_concurrent_rpcs=pools.most
        )
        address = _address(self._context.bind_host, self._context.port)
        try:
            port = (
                server.add_secure_port(address, _credentials(tls))
                if tls is not None
                else server.add_insecure_port(address)
            )
        except RuntimeError:
            port = 0
        if not port:
            raise StartupError(f"The protocol 'flight' cannot listen on {address}: the port is taken, or not ours")
        self._sockets.port = port
        server.start()
        self._server = server
        self._sweeper = threading.Thread(target=self._sweep, name="sqe-flight-sweeper", daemon=True)
        self._sweeper.start()
        self._watch.start()
        return Endpoint(protocol=PROTOCOL, host=self._context.bind_host, port=port, secure=tls is not None)

    def stop(self, drain_secs: float) -> None:
        """Take nothing new, let running calls finish, then end them."""
        self._ended.set()
        server, self._server = self._server, None
        if server is not None:
            server.stop(drain_secs).wait(drain_secs + _END_SECS)
        self._statements.close()
        self._watch.stop()
        if self._pools is not None:
            self._pools.shutdown()
            self._pools = None
        if self._rpcs is not None:
            self._rpcs.close()
            self._rpcs = None

    def _end_connection(self, name: str) -> None:
        if self._rpcs is not None:
            self._rpcs.end_connection(name)

    def _sweep(self) -> None:
        swept = time.monotonic()
        look_secs = _LOOK_SECS
        while not self._ended.wait(look_secs):
            try:
                if time.monotonic() - swept >= _SWEEP_SECS:
                    swept = time.monotonic()
                    self._statements.sweep()
                # Who opens more than it may goes on with that: the less time, the less often others are kept out. But
                # to look is work, on a machine with many sockets much of it.
                began = time.monotonic()
                look_secs = _LOOK_AGAIN_SECS if self._connections.look() else _LOOK_SECS
                look_secs = max(look_secs, _LOOK_SHARE * (time.monotonic() - began))
                self._context.metrics.gauge("sqe_protocol_connections", self._connections.count, {"protocol": PROTOCOL})
            except Exception:  # noqa: BLE001 - the next sweep may work
                _log.exception("a sweep failed")

    def _options(self) -> list[tuple[str, Any]]:
        transport = self._config.transport
        idle_ms = transport.connection_idle_timeout_secs * 1000
        return [
            ("grpc.so_reuseport", 0),  # two servers on one port would share its clients
            ("grpc.max_allowed_incoming_connections", self._bounds.hard),
            # Clients connect again by themselves. What belonged to the connection begins anew, but for rights: SET ROLE
            # wants a session that is found again.
            *([("grpc.max_connection_idle_ms", idle_ms)] if idle_ms else []),
            ("grpc.max_receive_message_length", _MOST_MESSAGE_BYTES),
            ("grpc.max_send_message_length", -1),
            # Only "identity": what a message becomes would be bounded, what it costs a client to send not (LIM-2).
            ("grpc.compression_enabled_algorithms_bitset", 1),
            ("grpc.max_concurrent_streams", _MOST_STREAMS),
            ("grpc.max_metadata_size", self._context.limits.header_bytes),
            ("grpc.absolute_max_metadata_size", self._context.limits.header_bytes),
            ("grpc.http2.max_frame_size", transport.max_frame_size),
            ("grpc.http2.lookahead_bytes", transport.initial_stream_window_size),
            ("grpc.keepalive_time_ms", transport.http2_keepalive_interval_secs * 1000),
            ("grpc.keepalive_timeout_ms", transport.http2_keepalive_timeout_secs * 1000),
            ("grpc.keepalive_permit_without_calls", 1),
            # Clients may ping as often as we do; those that do nothing else are cut off.
            ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
            ("grpc.http2.min_recv_ping_interval_without_data_ms", 5_000),
            ("grpc.server_handshake_timeout_ms", 20_000),
        ]


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _credentials(tls: TlsFiles) -> grpc.ServerCredentials:
    """Return credentials that follow the files: a renewed certificate counts for the next connection."""
    stamp, first = _configuration(tls)
    known = [stamp]

    def renewed() -> grpc.ServerCertificateConfiguration | None:
        try:
            if _stamp(tls) == known[0]:
                return None
            known[0], configuration = _configuration(tls)
        except (OSError, StartupError) as error:
            _log.error("the new certificate cannot be used, the old one stays: %s", error)
            return None
        _log.info("the certificate was read anew")
        return configuration

    return grpc.dynamic_ssl_server_credentials(first, renewed, require_client_authentication=tls.ca_file is not None)


def _configuration(tls: TlsFiles) -> tuple[tuple[int, ...], grpc.ServerCertificateConfiguration]:
    stamp = _stamp(tls)
    try:
        # gRPC takes anything and then refuses every client; OpenSSL says at once what is wrong.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(tls.cert_file, tls.key_file)
        chain, key = tls.cert_file.read_bytes(), tls.key_file.read_bytes()
        authorities = tls.ca_file.read_bytes() if tls.ca_file else None
    except (OSError, ssl.SSLError) as error:
        raise StartupError(f"The TLS files {tls.cert_file} and {tls.key_file} cannot be used: {error}") from error
    return stamp, grpc.ssl_server_certificate_configuration([(key, chain)], authorities)


def _stamp(tls: TlsFiles) -> tuple[int, ...]:
    files: list[Path] = [tls.cert_file, tls.key_file, *([tls.ca_file] if tls.ca_file else [])]
    try:
        return tuple(os.stat(file).st_mtime_ns for file in files)
    except OSError as error:
        raise StartupError(f"A TLS file cannot be read: {error}") from error
