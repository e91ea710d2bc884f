"""What `production_mode = true` refuses (features §1.16, AUTHN-2, AUTHN-3, OBS-8)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from sqe_core.config.checks.catalogs import configured_catalogs
from sqe_core.config.checks.network import is_loopback
from sqe_core.config.checks.policies import PASSTHROUGH
from sqe_core.config.kinds import REST_CATALOGS, shares_identity
from sqe_core.config.login_chain import login_chain
from sqe_core.config.origin import Fault, KeyPath
from sqe_core.config.plugin_table import PluginTable
from sqe_core.config.sections.catalog import CatalogStorageConfig
from sqe_core.config.sections.root import SqeConfig
from sqe_core.spi.identity import Secret

_INSECURE_PROVIDERS = ("anonymous", "bearer_passthrough")
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


def refuse_insecure_providers(config: SqeConfig) -> Iterator[Fault]:
    """Providers that check nothing."""
    for index, provider in enumerate(config.auth.providers if config.auth else ()):
        path: KeyPath = ("auth", "providers", index)
        if provider.type in _INSECURE_PROVIDERS:
            yield _refuse((*path, "type"), f"`{provider.type}` lets everybody in")
        if provider.type == "aws_iam" and not _is_true(provider.options.get("validate_with_sts", True)):
            yield _refuse((*path, "validate_with_sts"), "without STS a key is not checked")


def _is_true(value: object) -> bool:
    """Provider tables are not typed yet; words of the environment are still words."""
    return value is True or (isinstance(value, str) and value.strip().lower() in ("true", "1", "yes"))


def refuse_password_grant(config: SqeConfig) -> Iterator[Fault]:
    """Whoever reads the server's memory would read passwords that open more than the server."""
    if config.security.allow_password_grant:
        return
    for provider in login_chain(config):
        if provider.kind == "oidc_password":
            path = provider.path if len(provider.path) > 1 else ("auth", "keycloak_url")
            yield _refuse(
                path, "people's passwords would pass through this server; security.allow_password_grant waives it"
            )


def refuse_debug(config: SqeConfig) -> Iterator[Fault]:
    """Details of errors are for those who run the server."""
    if config.coordinator.debug:
        yield _refuse(("coordinator", "debug"), "clients must not read internal details of errors")


def refuse_unbounded_tokens(config: SqeConfig) -> Iterator[Fault]:
    """Tokens that were made for another service, or by anybody."""
    for index, provider in enumerate(config.auth.providers if config.auth else ()):
        path: KeyPath = ("auth", "providers", index)
        if provider.type == "bearer_token":
            for key in ("issuer", "audience"):
                if not provider.options.get(key):
                    yield _refuse((*path, key), f"`bearer_token` needs the {key} of its tokens")


def refuse_unchecked_certificates(config: SqeConfig) -> Iterator[Fault]:
    """TLS that does not say who is at the other end."""
    message = "the certificate of the other side must be checked"
    auth = config.auth
    if auth is not None and not auth.verify_tls:
        yield _refuse(("auth", "tls_skip_verify" if auth.tls_skip_verify else "ssl_verification"), message)
    if auth is not None and auth.external and auth.external.accept_invalid_certs:
        yield _refuse(("auth", "external", "accept_invalid_certs"), message)
    for index, provider in enumerate(auth.providers if auth else ()):
        for key in ("accept_invalid_certs", "allow_insecure_jwks", "tls_skip_verify"):
            if _is_true(provider.options.get(key)):
                yield _refuse(("auth", "providers", index, key), message)
    if auth is not None and auth.external and _is_true(auth.external.options.get("tls_skip_verify")):
        yield _refuse(("auth", "external", "tls_skip_verify"), message)
    if config.policy.ranger and config.policy.ranger.accept_invalid_certs:
        yield _refuse(("policy", "ranger", "accept_invalid_certs"), message)
    if config.access_control.ranger.accept_invalid_certs:
        yield _refuse(("access_control", "ranger", "accept_invalid_certs"), message)


def refuse_slow_browser_login(config: SqeConfig) -> Iterator[Fault]:
    """A login that waits for long can be taken over for long (TRI-8)."""
    external = config.auth.external if config.auth else None
    if external and external.challenge_timeout_secs > _LONGEST_CHALLENGE_SECS:
        yield _refuse(("auth", "external", "challenge_timeout_secs"), f"at most {_LONGEST_CHALLENGE_SECS}")


def refuse_missing_rate_limit(config: SqeConfig) -> Iterator[Fault]:
    """Passwords could be guessed as fast as the network is."""
    if not config.rate_limit.enabled and config.coordinator.mode != "worker":
        yield _refuse(("rate_limit", "enabled"), "rate limiting must be on")


def refuse_passthrough(config: SqeConfig) -> Iterator[Fault]:
    """No policy would be enforced."""
    if PASSTHROUGH in config.policy.engines:
        yield _refuse(("policy", "engine" if config.policy.enabled else "enabled"), "`passthrough` enforces nothing")


def refuse_plaintext(config: SqeConfig) -> Iterator[Fault]:
    """Passwords and results would cross the network readable."""
    coordinator = config.coordinator
    listens = coordinator.flight_sql_port or coordinator.trino_http_port or coordinator.quack_port
    if coordinator.mode != "worker" and listens and not coordinator.tls.enabled:
        if not config.security.tls_ends_upstream:
            message = "the listeners need `cert_file` and `key_file`; security.tls_ends_upstream says who has them"
            yield _refuse(("coordinator", "tls"), message)
        elif not is_loopback(coordinator.bind_address):
            message = "with security.tls_ends_upstream only a loopback address, where nobody else can listen"
            yield _refuse(("coordinator", "bind_address"), message)
    if config.security.allow_insecure_transport:
        yield _refuse(("security", "allow_insecure_transport"), "peers need TLS")


def refuse_shared_service_identity(config: SqeConfig) -> Iterator[Fault]:
    """Statements would run as a service and not as the person who sent them."""
    if config.security.allow_shared_service_identity:
        return
    waiver = "; security.allow_shared_service_identity waives it"
    for index, provider in enumerate(config.auth.providers if config.auth else ()):
        if provider.type == "client_credentials":
            yield _refuse(("auth", "providers", index, "type"), f"all users would be one identity{waiver}")
    for path, catalog in configured_catalogs(config):
        if shares_identity(catalog):
            key = ("auth", "type") if catalog.kind in REST_CATALOGS else ("type",)
            yield _refuse((*path, *key), f"everybody is one identity at this catalog{waiver}")


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


def refuse_unvended_credentials(config: SqeConfig) -> Iterator[Fault]:
    """A REST catalog that can hand out credentials per table must."""
    for path, catalog in configured_catalogs(config):
        if catalog.kind in REST_CATALOGS and not catalog.require_vended_credentials:
            yield _refuse((*path, "require_vended_credentials"), "must be true for a REST catalog")


def refuse_unkeyed_hash_masks(config: SqeConfig) -> Iterator[Fault]:
    """A plain hash of a short value is that value."""
    unkeyed = not config.policy.mask_key and not config.security.allow_unkeyed_hash_masks
    if unkeyed and PASSTHROUGH not in config.policy.engines:
        yield _refuse(("policy", "mask_key"), "hash masks need a key; security.allow_unkeyed_hash_masks waives it")


def refuse_unprojected_tags(config: SqeConfig) -> Iterator[Fault]:
    """Ranger would decide without the tags that people set in SQE."""
    projected = config.policy.ranger is not None and config.policy.ranger.project_tags
    if "ranger" in config.policy.engines and not projected and not config.security.allow_unprojected_tags:
        yield _refuse(("policy", "ranger", "project_tags"), "must be on; security.allow_unprojected_tags waives it")


def refuse_example_secrets(config: SqeConfig) -> Iterator[Fault]:
    """Secrets that everybody knows from examples."""
    for path, value in _secrets(config, ()):
        if value.strip().lower() in _EXAMPLE_SECRETS:
            yield _refuse(path, "this is an example's secret")


def _secrets(value: Any, path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    if isinstance(value, Secret):
        yield path, value.reveal()
    elif isinstance(value, PluginTable):
        # Only the plugin knows which of its keys are secrets; what is called one is one.
        for key, node in value.entries.items():
            if isinstance(node.value, str) and key.endswith(("secret", "password", "token")):
                yield (*path[:-1], key), node.value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _secrets(item, (*path, key))
    elif isinstance(value, tuple):
        for index, item in enumerate(value):
            yield from _secrets(item, (*path, index))
    elif is_dataclass(value):
        for field in fields(value):
            yield from _secrets(getattr(value, field.name), (*path, field.name))


def refuse_public_key_files(config: SqeConfig) -> Iterator[Fault]:
    """Private keys that everybody on the machine can read."""
    files: dict[KeyPath, Path] = {}
    if config.coordinator.tls.key_file:
        files[("coordinator", "tls", "key_file")] = Path(config.coordinator.tls.key_file)
    if config.session.secrets_path:
        files[("session", "secrets_path")] = Path(config.session.secrets_path)
    for index, provider in enumerate(config.auth.providers if config.auth else ()):
        keys_file = provider.options.get("keys_file")
        if isinstance(keys_file, str):
            files[("auth", "providers", index, "keys_file")] = Path(keys_file)
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
