"""`[coordinator]`: listeners, mode, memory, timeouts of the server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sqe_core.config.plugin_table import PluginTable
from sqe_core.config.schema import HTTP, PEER, UNREAD, port, remainder, secret, section, size
from sqe_core.spi.factory import setting
from sqe_core.spi.identity import Secret

Compression = Literal["none", "lz4", "zstd"]
NO_WORKERS = "workers are not built yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsConfig:
    """`[coordinator.tls]`: serves Flight SQL and Trino HTTP."""

    cert_file: str | None = setting(None, "Certificate chain, PEM.")
    key_file: str | None = setting(None, "Private key of the certificate, PEM.")
    ca_file: str | None = setting(None, "Authorities of client certificates; setting it demands one of every client.")

    @property
    def enabled(self) -> bool:
        """Whether the listeners speak TLS."""
        return bool(self.cert_file or self.key_file)


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportConfig:
    """`[coordinator.transport]`: gRPC and TCP."""

    initial_stream_window_size: int = size("8MB", "HTTP/2 window of one stream.", spark="gRPC channel argument")
    initial_connection_window_size: int = size(
        "16MB", "HTTP/2 window of a connection.", spark="gRPC channel argument", no_effect=UNREAD
    )
    max_frame_size: int = size("1MB", "Largest HTTP/2 frame.", spark="gRPC channel argument")
    http2_keepalive_interval_secs: int = setting(30, "Time between HTTP/2 pings.", minimum=1)
    http2_keepalive_timeout_secs: int = setting(10, "Time to wait for the answer to a ping.", minimum=1)
    tcp_keepalive_secs: int = setting(60, "Time between TCP keep-alive probes.", minimum=1, no_effect=UNREAD)
    max_connections: int = setting(
        0,
        "Most connections of Flight's clients that have logged in; 0 = what the limit on descriptors has room for.",
        minimum=0,
    )
    max_connections_per_user: int = setting(
        0, "Most of them on which one user has logged in; 0 = half of all.", minimum=0
    )
    connection_idle_timeout_secs: int = setting(
        900, "Flight ends a connection that had no call for this long, and its session. 0 = never.", minimum=0
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolConfig:
    """`[protocols.<kind>]`: a protocol that is installed, and where it listens."""

    port: int | None = setting(None, "TCP port; 0 = off; unset = the kind's own.", minimum=0, maximum=65535)
    bind_address: str = setting("", "IP address that it listens on; empty = that of `[coordinator]`.")
    public_url: str | None = setting(None, "Address that clients use, where a proxy stands before it.", url=HTTP)
    options: PluginTable = remainder("The keys of the kind.")


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorConfig:
    bind_address: str = setting(
        "", "IP address that the protocols listen on; empty = every one with `[auth]`, loopback without."
    )
    flight_sql_port: int = port(50051, "Arrow Flight SQL; 0 = off.", protocol="flight")
    trino_http_port: int = port(8080, "Trino HTTP; 0 = off.", protocol="trino")
    quack_port: int = port(0, "DuckDB's remote protocol; 0 = off, 9494 is customary.", protocol="quack")
    mode: Literal["coordinator", "worker", "hybrid", "local", "distributed"] = setting(
        "hybrid",
        "What this process is; hybrid, local and distributed start a coordinator.",
        unbuilt="workers are not built yet; every statement runs in this process (leave it unset)",
        asked=lambda mode: mode in ("worker", "distributed"),
    )
    worker_urls: tuple[str, ...] = setting(
        (),
        "Workers that are expected, beside those that announce themselves.",
        url=PEER,
        spark="beside the master's own list",
        unbuilt=NO_WORKERS,
    )
    max_workers: int = setting(1024, "Most workers that are accepted.", minimum=1, no_effect=UNREAD)
    worker_secret: Secret | None = secret(
        "Shared secret of coordinator and workers.", spark="also `spark.authenticate.secret`"
    )
    allow_unauthenticated_workers: bool = setting(
        False, "Accept workers without a secret (development).", unbuilt=NO_WORKERS
    )
    worker_connect_timeout_secs: int = setting(5, "Time to connect to a worker.", minimum=1, no_effect=UNREAD)
    worker_rpc_timeout_secs: int = setting(
        630,
        "Time of one call to a worker; longer than the worker's scan timeout.",
        minimum=1,
        spark="network timeout",
        no_effect=UNREAD,
    )
    health_check_interval_secs: int = setting(5, "Time between two probes of a worker.", minimum=1, no_effect=UNREAD)
    health_check_max_failures: int = setting(
        3, "Missed probes until a worker counts as unhealthy.", minimum=1, no_effect=UNREAD
    )
    debug: bool = setting(
        False,
        "Internal error detail in answers to clients, never policy text.",
        unbuilt="detailed errors for clients are not built yet",
    )
    memory_limit: int = size("8GB", "Memory of this process.", above=0, spark="driver heap")
    memory_pool: Literal["greedy", "fair"] = setting(
        "greedy",
        "How statements share memory.",
        spark="`fair` = fair scheduler pools with equal shares",
        no_effect=UNREAD,
    )
    spill_to_disk: bool = setting(
        True, "Spill when memory is short.", spark="Spark always spills; `false` only warns at start", no_effect=UNREAD
    )
    spill_dir: str = setting("/tmp/sqe-coordinator-spill", "Where spilled data goes.", spark="`spark.local.dir`")  # noqa: S108
    spill_compression: Compression = setting(
        "lz4", "Compression of spilled data.", spark="`spark.io.compression.codec`, where the shuffle's value wins"
    )
    flight_compression: Compression = setting(
        "lz4", "Compression of results to clients.", spark="Arrow IPC option of the result stream"
    )
    shuffle_compression: Compression = setting(
        "zstd", "Compression between nodes.", spark="`spark.io.compression.codec`"
    )
    auth_handshake_timeout_secs: int = setting(30, "Time for a login.", minimum=1)
    credential_refresh_interval_secs: int = setting(
        60, "Time between two looks at expiring storage credentials.", minimum=1, no_effect=UNREAD
    )
    credential_push_connect_timeout_secs: int = setting(
        5, "Time to connect when credentials are renewed for tasks.", minimum=1, no_effect=UNREAD
    )
    credential_push_request_timeout_secs: int = setting(
        10, "Time of one renewal of credentials for tasks.", minimum=1, no_effect=UNREAD
    )
    session_context_cache_ttl_secs: int = setting(
        60, "How long an idle engine session is kept.", minimum=1, spark="idle time until a Spark session is closed"
    )
    shutdown_drain_secs: int = setting(25, "How long running statements get after SIGTERM.", minimum=0)
    production_mode: bool = setting(False, "Refuse to start with settings that are unsafe in production.")
    tls: TlsConfig = section(TlsConfig)
    transport: TransportConfig = section(TransportConfig)
