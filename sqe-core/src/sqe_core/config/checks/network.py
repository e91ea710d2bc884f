"""Listeners, TLS, and the way between coordinator and workers."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address, ip_network
from pathlib import Path
from urllib.parse import urlsplit

from sqe_core.config.listeners import listeners
from sqe_core.config.origin import Fault, KeyPath, dotted
from sqe_core.config.sections.root import SqeConfig
from sqe_core.config.values import without_passwords
from sqe_http.places import is_loopback

_ENCRYPTED_SCHEMES = frozenset({"https", "grpc+tls", "grpcs"})


def check_ports(config: SqeConfig) -> Iterator[Fault]:
    """Every listener of this process has a port of its own."""
    taken: dict[int, str] = {}
    for path, port, what in _ports(config):
        if port in taken:
            yield Fault(path, f"{what} {port} is taken by {taken[port]} already")
        taken.setdefault(port, dotted(path))


def _ports(config: SqeConfig) -> Iterator[tuple[KeyPath, int, str]]:
    ports: list[tuple[KeyPath, int, str]]
    if config.coordinator.mode == "worker":
        ports = [(("worker", "flight_port"), config.worker.flight_port, "port")]
    else:
        ports = [(each.path, each.port or 0, "port") for each in listeners(config)]
    metrics = config.metrics.prometheus_port
    if metrics:
        ports.append((("metrics", "prometheus_port"), metrics, "port"))
        ports.append((("metrics", "prometheus_port"), metrics + 1, "the port after it (health and admin API),"))
    return (entry for entry in ports if entry[1])


def check_bind_addresses(config: SqeConfig) -> Iterator[Fault]:
    """Listeners bind to addresses; without logins only to those of this machine, without protection so do metrics."""
    metrics, tls = config.metrics, config.coordinator.tls
    guarded = metrics.scrape_token is not None or bool(tls.ca_file)
    written: list[tuple[KeyPath, str]] = [
        (("coordinator", "bind_address"), config.coordinator.bind_address),
        *((("protocols", kind, "bind_address"), table.bind_address) for kind, table in config.protocols.items()),
        (("metrics", "bind_address"), metrics.bind_address),
        (("metrics", "health_bind_address"), metrics.health_bind_address),
    ]
    for path, address in written:
        if not address:
            continue
        try:
            local = ip_address(address).is_loopback
        except ValueError:
            yield Fault(path, f'"{address}" is no IP address')
            continue
        if not local and config.auth is None and config.coordinator.mode != "worker":
            yield Fault(path, "must be a loopback address; without [auth] everybody is anonymous")
        elif not local and path == ("metrics", "bind_address") and config.coordinator.production_mode and not guarded:
            yield Fault(
                path, "refused by production_mode: metrics of others need scrape_token or coordinator.tls.ca_file"
            )


def check_tls_pair(config: SqeConfig) -> Iterator[Fault]:
    """A certificate and its key come together."""
    tls = config.coordinator.tls
    path = ("coordinator", "tls")
    if tls.cert_file and not tls.key_file:
        yield Fault((*path, "key_file"), "is missing; `cert_file` needs its key")
    if tls.key_file and not tls.cert_file:
        yield Fault((*path, "cert_file"), "is missing; `key_file` needs its certificate")
    if tls.ca_file and not tls.enabled:
        yield Fault((*path, "cert_file"), "is missing; client certificates (`ca_file`) need TLS on the server's side")


def check_tls_files_are_readable(config: SqeConfig) -> Iterator[Fault]:
    """The files of TLS exist and may be read."""
    for key in ("cert_file", "key_file", "ca_file"):
        name = getattr(config.coordinator.tls, key)
        if not name:
            continue
        try:
            with Path(name).open("rb"):
                pass
        except OSError as error:
            yield Fault(("coordinator", "tls", key), f"cannot read {name}: {error.strerror or type(error).__name__}")


def _coordinates_workers(config: SqeConfig) -> bool:
    coordinator = config.coordinator
    return coordinator.mode != "worker" and (coordinator.mode == "distributed" or bool(coordinator.worker_urls))


def check_worker_secret(config: SqeConfig) -> Iterator[Fault]:
    """Coordinator and workers know each other by one secret."""
    coordinator, worker = config.coordinator, config.worker
    if _coordinates_workers(config) and not coordinator.worker_secret and not coordinator.allow_unauthenticated_workers:
        yield Fault(
            ("coordinator", "worker_secret"),
            "is missing; with workers both sides need one secret (for development: allow_unauthenticated_workers)",
        )
    elif config.engine.master.startswith("spark:") and not coordinator.worker_secret:
        yield Fault(
            ("coordinator", "worker_secret"),
            "is missing; set it to the spark.authenticate.secret of the master in engine.master",
        )
    if coordinator.mode == "worker" and not worker.worker_secret and not worker.allow_unauthenticated:
        yield Fault(
            ("worker", "worker_secret"),
            "is missing; coordinator and worker need one secret (for development: allow_unauthenticated)",
        )
    if coordinator.worker_secret and worker.worker_secret and coordinator.worker_secret != worker.worker_secret:
        yield Fault(("worker", "worker_secret"), "differs from coordinator.worker_secret; both sides need the same")


def check_worker_knows_its_coordinator(config: SqeConfig) -> Iterator[Fault]:
    """A worker has somebody to work for, and an address that others can use."""
    if config.coordinator.mode == "worker" and not config.worker.coordinator_url:
        yield Fault(("worker", "coordinator_url"), "is missing; a worker needs its coordinator")
    if urlsplit(config.worker.advertise_url).hostname in ("0.0.0.0", "::"):  # noqa: S104
        yield Fault(("worker", "advertise_url"), "is every address and none; write the one that others can reach")


def check_peers_use_tls(config: SqeConfig) -> Iterator[Fault]:
    """What leaves the machine is encrypted, unless somebody waived it."""
    if config.security.allow_insecure_transport:
        return
    peers: list[tuple[KeyPath, str]] = [
        (("coordinator", "worker_urls", index), url) for index, url in enumerate(config.coordinator.worker_urls)
    ]
    peers.append((("worker", "coordinator_url"), config.worker.coordinator_url))
    for path, url in peers:
        if url and not _is_encrypted(url, config) and not is_loopback(urlsplit(url).hostname or ""):
            yield Fault(
                path,
                f"{without_passwords(url)} is not on this machine and has no TLS; "
                "use https, or security.allow_insecure_transport",
            )


def _is_encrypted(url: str, config: SqeConfig) -> bool:
    scheme = urlsplit(url).scheme
    if scheme == "spark":
        # Spark encrypts its own protocol with keys made of the secret.
        return bool(config.coordinator.worker_secret or config.worker.worker_secret)
    return scheme in _ENCRYPTED_SCHEMES


def check_worker_calls_outlast_scans(config: SqeConfig) -> Iterator[Fault]:
    """A call to a worker must not end before the scan that it waits for."""
    call, scan = config.coordinator.worker_rpc_timeout_secs, config.worker.scan_timeout_secs
    if scan and call <= scan:
        yield Fault(
            ("coordinator", "worker_rpc_timeout_secs"), f"must be longer than worker.scan_timeout_secs ({scan} s)"
        )


def check_trusted_proxies(config: SqeConfig) -> Iterator[Fault]:
    """Proxies are addresses; a name could be anybody's."""
    for index, proxy in enumerate(config.security.trusted_proxies):
        try:
            ip_network(proxy, strict=False)
        except ValueError:
            yield Fault(("security", "trusted_proxies", index), f'"{proxy}" is no IP address')
