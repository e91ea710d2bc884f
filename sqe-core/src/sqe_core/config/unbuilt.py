"""What can be configured and is not built yet, in one table.

Every key of the file is in exactly one of three places: `BUILT`, `UNBUILT` or `NO_EFFECT_YET`; a test holds that.
Whoever builds something moves its row to `BUILT`. Using what is not built stops a server with a sentence; a tuning
key without effect is named by `sqe doctor` and in the server's log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sqe_core.config.checks.catalogs import configured_catalogs
from sqe_core.config.origin import Fault, KeyPath
from sqe_core.config.sections.root import SqeConfig
from sqe_core.config.sources import Sources
from sqe_core.config.walk import Leaf, leaves

# Kinds of ours; those of others are built by others, and found or missed by their names.
UNBUILT_CATALOGS = frozenset({"glue", "s3tables", "hms", "hive"})
UNBUILT_ENGINES = frozenset({"ranger"})
UNBUILT_GRANT_STORES = frozenset({"ranger"})
_NO_RANGER = "writing grants to Apache Ranger is not built yet"

_S3_KEYS = ("endpoint", "region", "access_key", "secret_key", "path_style", "allow_http")

# Prefixes of keys that do what they say.
BUILT: frozenset[str] = frozenset(
    {
        "coordinator.memory_limit",
        "coordinator.spill_dir",
        "coordinator.worker_secret",
        "coordinator.production_mode",
        "coordinator.auth_handshake_timeout_secs",
        "auth.admin_roles",
        "auth.role_mappings",
        "auth.external",
        "auth.ssl_verification",
        "auth.token_refresh_buffer_secs",
        # These make the first provider of the chain.
        "auth.keycloak_url",
        "auth.realm",
        "auth.token_endpoint",
        "auth.client_id",
        "auth.client_secret",
        "auth.providers",
        "coordinator.bind_address",
        "coordinator.flight_sql_port",
        "coordinator.trino_http_port",
        "coordinator.quack_port",
        "coordinator.session_context_cache_ttl_secs",
        "coordinator.shutdown_drain_secs",
        "coordinator.tls",
        "coordinator.flight_compression",
        "coordinator.transport.max_connections",
        "coordinator.transport.max_connections_per_user",
        "coordinator.transport.connection_idle_timeout_secs",
        "coordinator.transport.initial_stream_window_size",
        "coordinator.transport.max_frame_size",
        "coordinator.transport.http2_keepalive_interval_secs",
        "coordinator.transport.http2_keepalive_timeout_secs",
        "catalog.type",
        "catalog.warehouse",
        "catalog.catalog_url",
        "catalog.auth",
        "catalog.namespace_visibility_filter",
        "catalog.require_vended_credentials",
        *(f"{table}.s3_{key}" for table in ("storage", "catalog.storage") for key in _S3_KEYS),
        "policy.engine",
        "policy.enabled",
        "policy.mask_key",
        "policy.mask_precedence",
        "policy.cache_ttl_secs",
        "policy.cache_max_entries",
        "policy.i_understand_no_enforcement",
        "access_control",
        "query.default_catalog",
        "query.catalog_discovery",
        "query.timeout_secs",
        "query.max_result_rows",
        "query.max_result_bytes",
        "query.max_sql_bytes",
        "query.max_concurrent_queries",
        "query.max_concurrent_per_user",
        "query.max_queued_queries",
        "query.queue_timeout_secs",
        "query.max_ingest_bytes",
        "query.max_ingest_batch_bytes",
        "query.max_ingest_batch_rows",
        "query.max_ingest_columns",
        "query.ingest_disk_reserve",
        "query.slow_query_threshold_secs",
        "query.stream_idle_timeout_secs",
        "query_history",
        "metrics.prometheus_port",
        "metrics.bind_address",
        "metrics.health_bind_address",
        "metrics.scrape_token",
        "metrics.audit_log_path",
        "metrics.audit.on_failure",
        "rate_limit",
        "session.idle_timeout_secs",
        "session.absolute_timeout_secs",
        "session.expiry_sweep_interval_secs",
        "session.secrets_path",
        "session.secrets_key",
        "session.max_sessions",
        "session.max_sessions_per_user",
        "security.allow_insecure_transport",
        "security.tls_ends_upstream",
        "security.allow_password_grant",
        "security.allow_shared_service_identity",
        "security.allow_unkeyed_hash_masks",
        "security.allow_unprojected_tags",
        "coordinator.shuffle_compression",
        "coordinator.spill_compression",
        "optimizer.broadcast_threshold",
        "engine",
        "plugins",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unbuilt:
    """Keys below `prefix` need something that is not built; `uses` says whether a configuration asks for it.

    Without `uses`, every key below that has another value than its default asks for it.
    """

    prefix: str
    sentence: str
    uses: Callable[[SqeConfig], bool] | None = None


UNBUILT: tuple[Unbuilt, ...] = (
    Unbuilt(
        prefix="coordinator.mode",
        sentence="workers are not built yet; every statement runs in this process",
        uses=lambda config: config.coordinator.mode in ("worker", "distributed"),
    ),
    Unbuilt(prefix="coordinator.worker_urls", sentence="workers are not built yet"),
    Unbuilt(prefix="coordinator.allow_unauthenticated_workers", sentence="workers are not built yet"),
    Unbuilt(prefix="coordinator.debug", sentence="detailed errors for clients are not built yet"),
    Unbuilt(
        prefix="worker",
        sentence="workers are not built yet",
        uses=lambda config: bool(config.worker.coordinator_url or config.worker.worker_secret),
    ),
    Unbuilt(prefix="catalog.storage", sentence="this store is not built yet"),
    Unbuilt(prefix="catalog.default_table_format_version", sentence="this default of new tables is not built yet"),
    Unbuilt(prefix="catalog.parquet_compression", sentence="this default of new tables is not built yet"),
    Unbuilt(prefix="storage", sentence="this store is not built yet"),
    Unbuilt(prefix="storage.tvf", sentence="file functions on a server are not built yet"),
    Unbuilt(
        prefix="access_control.ranger",
        sentence=_NO_RANGER,
        uses=lambda config: False,  # means nothing with another `backend`
    ),
    Unbuilt(
        prefix="session.persistence",
        sentence="sessions that survive a restart are not built yet",
        uses=lambda config: config.session.persistence != "memory",
    ),
    Unbuilt(prefix="query.role_overrides", sentence="roles are not built yet"),
    Unbuilt(prefix="query.per_user_memory_budget", sentence="admission by memory is not built yet"),
    Unbuilt(prefix="query.max_query_memory", sentence="admission by memory is not built yet"),
    Unbuilt(prefix="query.max_concurrent_sorted_writes", sentence="a limit of sorted writes is not built yet"),
    Unbuilt(prefix="query.query_profile", sentence="query profiles are not built yet"),
    Unbuilt(prefix="query.merge_cardinality_check", sentence="MERGE without the check of its matches is not built yet"),
    Unbuilt(prefix="metrics.otlp_endpoint", sentence="sending metrics is not built yet; `/metrics` can be scraped"),
    Unbuilt(prefix="metrics.traces_otlp_endpoint", sentence="tracing is not built yet"),
    Unbuilt(prefix="metrics.trace_sample_rate", sentence="tracing is not built yet"),
    Unbuilt(prefix="metrics.audit.format", sentence="OCSF is not built yet; the audit log has the native form"),
    Unbuilt(prefix="metrics.audit", sentence="this part of the audit log is not built yet"),
    Unbuilt(
        prefix="metrics.audit_export",
        sentence="sending the audit log is not built yet",
        uses=lambda config: config.metrics.audit_export.enabled,
    ),
    Unbuilt(prefix="metrics.web_ui", sentence="the web UI is not built yet"),
    Unbuilt(
        prefix="metrics.openlineage",
        sentence="lineage is not built yet",
        uses=lambda config: config.metrics.openlineage.enabled,
    ),
    Unbuilt(
        prefix="maintenance",
        sentence="maintenance is not built yet",
        uses=lambda config: config.maintenance.mode != "off" or config.maintenance.scheduler.enabled,
    ),
)

# On by default, so that only whoever writes them asks for them.
DEFAULT_ON: dict[str, str] = {
    "query_cache": "the cache of results is not built yet",
}

# Tuning: a statement runs the same without them.
NO_EFFECT_YET: frozenset[str] = frozenset(
    {
        "auth",
        "coordinator",
        "catalog",
        "policy",
        "query",
        "optimizer",
        "session",
        "security.trusted_proxies",
    }
)

_PLACES = {
    **dict.fromkeys(NO_EFFECT_YET, "no effect yet"),
    **dict.fromkeys(DEFAULT_ON, "unbuilt"),
    **{row.prefix: "unbuilt" for row in UNBUILT},
    **dict.fromkeys(BUILT, "built"),
}


def check_built(
    config: SqeConfig, sources: Sources | None = None, consumed: frozenset[KeyPath] = frozenset()
) -> tuple[str, ...]:
    """Name everything that a server would be asked for and cannot do; empty when it may start.

    Without `sources`, only values that differ from their defaults count as asked for. Keys that are `consumed` by a
    plugin's own `config_type` are the plugin's to judge.
    """
    sources = sources or Sources()
    faults = [*_kinds(config), *_capabilities(config, consumed), *_defaults_that_were_written(config, sources)]
    shown = [Fault(fault.path, fault.message, sources.place(*fault.path)) for fault in faults]
    return tuple(dict.fromkeys(str(fault) for fault in shown))


def without_effect(config: SqeConfig, sources: Sources, consumed: frozenset[KeyPath] = frozenset()) -> tuple[str, ...]:
    """Name the keys that somebody wrote and that change nothing; what plugins take, they do something with."""
    sentences: list[str] = []
    for leaf in leaves(config):
        if not sources.is_written(*leaf.path) or "raw" in leaf.metadata or _is_consumed(leaf, consumed):
            continue
        reason = leaf.metadata.get("no_effect") or _unasked(config, leaf)
        if reason is None and classify(leaf.path) == "no effect yet":
            reason = "nothing reads it yet"
        if reason is not None:
            sentences.append(str(Fault(leaf.path, f"has no effect: {reason}", sources.place(*leaf.path))))
    return tuple(sentences)


def _unasked(config: SqeConfig, leaf: Leaf) -> str | None:
    """Why a key means nothing whose capability is not built, and not switched on either."""
    row = next((row for row in UNBUILT if row.prefix == _prefix_of(leaf.path)), None)
    if row is None or row.uses is None or row.uses(config) or not leaf.differs:
        return None
    return None if row.prefix == _general(leaf.path) else row.sentence


def classify(path: KeyPath) -> str:
    """Where a key stands: "built", "unbuilt", "no effect yet", or "" when the tables forgot it."""
    return _PLACES.get(_prefix_of(path), "")


def _prefix_of(path: KeyPath) -> str:
    """The most specific prefix that the tables hold for a key."""
    name = _general(path)
    while name and name not in _PLACES:
        name = name.rpartition(".")[0]
    return name


def _general(path: KeyPath) -> str:
    """The key without names and indices: `catalogs.lake.type` is `catalog.type`."""
    parts = ["catalog", *path[2:]] if path[0] == "catalogs" else list(path)
    return ".".join(part for part in parts if isinstance(part, str))


def _kinds(config: SqeConfig) -> Iterator[Fault]:
    for path, catalog in configured_catalogs(config):
        if catalog.kind in UNBUILT_CATALOGS:
            yield Fault((*path, "type"), f"catalogs of type `{catalog.kind}` are not built yet")
    for engine in config.policy.engines:
        if engine in UNBUILT_ENGINES:
            yield Fault(("policy", "engine"), f"the policy engine `{engine}` is not built yet")
    if config.access_control.backend in UNBUILT_GRANT_STORES:
        yield Fault(("access_control", "backend"), _NO_RANGER)


def _capabilities(config: SqeConfig, consumed: frozenset[KeyPath]) -> Iterator[Fault]:
    rows = {row.prefix: row for row in UNBUILT}
    for row in UNBUILT:
        if row.uses is not None and row.uses(config):
            yield Fault(tuple(row.prefix.split(".")), row.sentence)
    for leaf in leaves(config):
        found = rows.get(_prefix_of(leaf.path))
        if found is not None and found.uses is None and leaf.differs:
            if _is_ignored(leaf) or _is_consumed(leaf, consumed):
                continue
            yield Fault(leaf.path, found.sentence)


def _is_consumed(leaf: Leaf, consumed: frozenset[KeyPath]) -> bool:
    """Whether a plugin takes the key, or a table that it is in."""
    return any(leaf.path[:size] in consumed for size in range(1, len(leaf.path) + 1))


def _is_ignored(leaf: Leaf) -> bool:
    return "no_effect" in leaf.metadata or "raw" in leaf.metadata


def _defaults_that_were_written(config: SqeConfig, sources: Sources) -> Iterator[Fault]:
    for leaf in leaves(config):
        sentence = DEFAULT_ON.get(_prefix_of(leaf.path))
        if sentence and (sources.is_written(*leaf.path) or leaf.differs) and _is_on(config, leaf):
            yield Fault(leaf.path, sentence)


def _is_on(config: SqeConfig, leaf: Leaf) -> bool:
    return config.query_cache.enabled if leaf.path[0] == "query_cache" else bool(leaf.value)
