"""What `production_mode = true` refuses (AUTHN-2, AUTHN-3, OBS-8)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sqe_core.config.checks.catalogs import configured_catalogs
from sqe_core.config.listeners import listeners
from sqe_core.config.origin import Fault, KeyPath
from sqe_core.config.sections.catalog import CatalogStorageConfig
from sqe_core.config.sections.root import SqeConfig
from sqe_core.config.walk import leaves
from sqe_core.spi.identity import Secret
from sqe_http.places import is_loopback

_LONGEST_CHALLENGE_SECS = 300
_STATIC_KEYS = (
    "s3_access_key",
    "s3_secret_key",
    "azure_access_key",
    "azure_sas_token",
    "gcs_service_account_path",
    "gcs_service_account_key",
)
_EXAMPLE_SECRETS = frozenset(
    {
        "admin",
        "change-me",
        "change_me",
        "changeit",
        "changeme",
        "default",
        "example",
        "minioadmin",
        "password",
        "root",
        "s3cr3t",
        "secret",
        "sqe",
        "test",
        "xxx",
        "your-secret",
        "your-secret-here",
    }
)


def _refuse(path: KeyPath, message: str) -> Fault:
    return Fault(path, f"refused by production_mode: {message}")


def refuse_missing_login(config: SqeConfig) -> Iterator[Fault]:
    """Everybody would be one anonymous user."""
    if config.auth is None and config.coordinator.mode != "worker":
        yield _refuse(("auth",), "without this table everybody is anonymous")


def refuse_debug(config: SqeConfig) -> Iterator[Fault]:
    """Details of errors are for those who run the server."""
    if config.coordinator.debug:
        yield _refuse(("coordinator", "debug"), "clients must not read internal details of errors")


def refuse_unchecked_certificates(config: SqeConfig) -> Iterator[Fault]:
    """TLS that does not say who is at the other end."""
    message = "the certificate of the other side must be checked"
    auth = config.auth
    if auth is not None and not auth.verify_tls:
        yield _refuse(("auth", "tls_skip_verify" if auth.tls_skip_verify else "ssl_verification"), message)
    if auth is not None and auth.external and auth.external.accept_invalid_certs:
        yield _refuse(("auth", "external", "accept_invalid_certs"), message)


def refuse_slow_browser_login(config: SqeConfig) -> Iterator[Fault]:
    """A login that waits for long can be taken over for long (TRI-8)."""
    external = config.auth.external if config.auth else None
    if external and external.challenge_timeout_secs > _LONGEST_CHALLENGE_SECS:
        yield _refuse(("auth", "external", "challenge_timeout_secs"), f"at most {_LONGEST_CHALLENGE_SECS}")


def refuse_missing_rate_limit(config: SqeConfig) -> Iterator[Fault]:
    """Passwords could be guessed as fast as the network is."""
    if not config.rate_limit.enabled and config.coordinator.mode != "worker":
        yield _refuse(("rate_limit", "enabled"), "rate limiting must be on")


def refuse_open_tables(config: SqeConfig) -> Iterator[Fault]:
    """Everybody with a login could read and drop what nobody granted."""
    if config.policy.uncovered == "catalog":
        yield _refuse(("policy", "uncovered"), '`"catalog"` opens every table without grants to every login')


def refuse_plaintext(config: SqeConfig) -> Iterator[Fault]:
    """Passwords and results would cross the network readable."""
    coordinator = config.coordinator
    open_ports = [each for each in listeners(config) if each.port != 0]
    if coordinator.mode != "worker" and open_ports and not coordinator.tls.enabled:
        if not config.security.tls_ends_upstream:
            message = "the listeners need `cert_file` and `key_file`; security.tls_ends_upstream says who has them"
            yield _refuse(("coordinator", "tls"), message)
        message = "with security.tls_ends_upstream only a loopback address, where nobody else can listen"
        exposed = [each.kind for each in open_ports if not is_loopback(each.bind_host)]
        if config.security.tls_ends_upstream:
            for path in dict.fromkeys(_bind_key(config, kind) for kind in exposed):
                yield _refuse(path, message)
    if config.security.allow_insecure_transport:
        yield _refuse(("security", "allow_insecure_transport"), "peers need TLS")


def _bind_key(config: SqeConfig, kind: str) -> KeyPath:
    table = config.protocols.get(kind)
    return ("protocols", kind, "bind_address") if table and table.bind_address else ("coordinator", "bind_address")


def refuse_unauthenticated_workers(config: SqeConfig) -> Iterator[Fault]:
    """Anybody could become a worker and see data."""
    if config.coordinator.allow_unauthenticated_workers:
        yield _refuse(("coordinator", "allow_unauthenticated_workers"), "workers need the secret")
    if config.worker.allow_unauthenticated:
        yield _refuse(("worker", "allow_unauthenticated"), "workers need the secret")


def refuse_unlimited_sql(config: SqeConfig) -> Iterator[Fault]:
    """One statement could fill the memory of the parser."""
    if config.query.max_sql_bytes == 0:
        yield _refuse(("query", "max_sql_bytes"), "statements need a limit")


def refuse_static_storage_keys(config: SqeConfig) -> Iterator[Fault]:
    """Keys that open every table for every statement."""
    stores: list[tuple[KeyPath, CatalogStorageConfig | None]] = [(("storage",), config.storage)]
    stores += [((*path, "storage"), catalog.storage) for path, catalog in configured_catalogs(config)]
    for path, store in stores:
        for key in _STATIC_KEYS:
            if store is not None and getattr(store, key):
                yield _refuse((*path, key), "static storage keys; let the catalog hand out credentials")


def refuse_unkeyed_hash_masks(config: SqeConfig) -> Iterator[Fault]:
    """A plain hash of a short value is that value."""
    if not config.policy.mask_key and not config.security.allow_unkeyed_hash_masks:
        yield _refuse(("policy", "mask_key"), "hash masks need a key; security.allow_unkeyed_hash_masks waives it")


def refuse_example_secrets(config: SqeConfig) -> Iterator[Fault]:
    """Secrets that everybody knows from examples."""
    for path, value in configured_secrets(config):
        if value.strip().lower() in _EXAMPLE_SECRETS:
            yield _refuse(path, "this is an example's secret")


def configured_secrets(
    config: SqeConfig, words: tuple[str, ...] = ("secret", "password", "token")
) -> Iterator[tuple[KeyPath, str]]:
    """Every secret, with its key; of a plugin's table, which only the plugin knows, what is called by such a word."""
    for leaf in leaves(config):
        if isinstance(leaf.value, Secret):
            yield leaf.path, leaf.value.reveal()
        elif leaf.metadata.get("raw"):
            yield from _called(leaf.value, leaf.path, words)


def _called(value: Any, path: KeyPath, words: tuple[str, ...]) -> Iterator[tuple[KeyPath, str]]:
    if isinstance(value, dict):
        for key, below in value.items():
            yield from _called(below, (*path, key), words)
    elif isinstance(value, str) and str(path[-1]).endswith(words):
        yield path, value


def refuse_public_key_files(config: SqeConfig) -> Iterator[Fault]:
    """Private keys that everybody on the machine can read."""
    files: dict[KeyPath, Path] = {}
    if config.coordinator.tls.key_file:
        files[("coordinator", "tls", "key_file")] = Path(config.coordinator.tls.key_file)
    if config.session.secrets_path:
        files[("session", "secrets_path")] = Path(config.session.secrets_path)
    yield from refuse_public_files(files)


def refuse_public_files(files: Mapping[KeyPath, Path]) -> Iterator[Fault]:
    """Files with secrets that everybody on the machine can read."""
    for path, file in files.items():
        try:
            mode = file.stat().st_mode
        except (OSError, ValueError):
            continue  # a missing or impossible file is another check's fault, or is made later
        if mode & 0o004:
            yield _refuse(path, f"everybody on this machine can read {file} (chmod o-r)")


def refuse_results_in_logs(config: SqeConfig) -> Iterator[Fault]:
    """Rows in logs are rows without policies."""
    if config.metrics.audit.superdebug_log_results:
        yield _refuse(("metrics", "audit", "superdebug_log_results"), "results do not belong into logs")
