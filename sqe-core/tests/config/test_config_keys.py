"""The documented keys and defaults, copied by hand from features §1, against the dataclasses."""

from __future__ import annotations

import tomllib
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import pytest

from sqe_core.config import load
from sqe_core.config.origin import KeyPath
from sqe_core.config.sections.root import SqeConfig
from sqe_core.config.walk import keys, leaves

DOCUMENTED = """
[coordinator]
flight_sql_port = 50051
trino_http_port = 8080
quack_port = 0
mode = "hybrid"
worker_urls = []
max_workers = 1024
allow_unauthenticated_workers = false
worker_connect_timeout_secs = 5
worker_rpc_timeout_secs = 630
health_check_interval_secs = 5
health_check_max_failures = 3
debug = false
memory_limit = "8GB"
memory_pool = "greedy"
spill_to_disk = true
spill_dir = "/tmp/sqe-coordinator-spill"
spill_compression = "lz4"
flight_compression = "lz4"
shuffle_compression = "zstd"
auth_handshake_timeout_secs = 30
credential_refresh_interval_secs = 60
credential_push_connect_timeout_secs = 5
credential_push_request_timeout_secs = 10
session_context_cache_ttl_secs = 60
shutdown_drain_secs = 25
production_mode = false
[coordinator.transport]
initial_stream_window_size = "8MB"
initial_connection_window_size = "16MB"
max_frame_size = "1MB"
http2_keepalive_interval_secs = 30
http2_keepalive_timeout_secs = 10
tcp_keepalive_secs = 60

[worker]
coordinator_url = ""
flight_port = 50052
advertise_url = ""
heartbeat_interval_secs = 5
memory_limit = "8GB"
spill_to_disk = true
spill_dir = "/tmp/sqe-spill"
scan_timeout_secs = 600
allow_unauthenticated = false
[worker.memory]
process_headroom = "2GB"
scan_budget = "20%"
flight_budget = "10%"
operator_budget = "40%"
shuffle_memory_budget = "20%"
budget_granularity = "64KB"
[worker.spill]
enabled = true
backend = "local"
directory = ""
max_bytes = "1TB"
min_free_bytes = "1GB"
segment_target_size = "256MB"
max_concurrent_writes = 4
max_concurrent_reads = 4
cleanup_on_start = true
orphan_age = "24h"
[worker.spill.s3]
prefix = "sqe-spill/"
allow_http = false
path_style = true
max_objects = 1000000

[auth]
token_refresh_buffer_secs = 60
ssl_verification = true
tls_skip_verify = false
roles_claim = "realm_access.roles"
role_mappings = {}
admin_roles = ["service_admin", "catalog_admin"]
[auth.external]
redirect_uri = "http://localhost:8080/oauth2/callback"
scopes = ["openid", "profile"]
challenge_timeout_secs = 900
accept_invalid_certs = false
[auth.external.device]
scopes = ["openid", "profile"]

[catalog]
metadata_cache_ttl_secs = 30
default_table_format_version = 2
trust_sort_order = false
small_file_threshold_mb = 3
parquet_compression = "zstd"
manifest_concurrency = 64
require_vended_credentials = false
[catalog.runtime_filters]
clustering_skip_enabled = false
uniform_threshold = 0.8
wait_ms = 100
bloom_probe = true
bloom_max_values = 65536

[storage]
s3_path_style = false
s3_allow_http = false
azure_use_emulator = false
coalesce_threshold = "1MB"
footer_cache_size = "256MB"
concurrent_requests_per_file = 4
max_concurrent_files = 8
prefetch_buffer = "32MB"
prefetch_concurrency = 4
[storage.tvf]
allow_local_paths = false
allow_http = false
allowed_http_hosts = []
allowed_object_store_prefixes = []
object_store_admin_roles = []
allow_inline_credentials = true

[policy]
engine = "grants"
enabled = true
i_understand_no_enforcement = false
uncovered = "maker"
mask_precedence = "tag"
cache_ttl_secs = 60
cache_max_entries = 10000

[access_control]
backend = "none"
timeout_secs = 30
grant_authority = "admin-role"

[security]
trusted_proxies = []
allow_insecure_transport = false
tls_ends_upstream = false
allow_password_grant = false
allow_shared_service_identity = false
allow_unkeyed_hash_masks = false
allow_unprojected_tags = false

[rate_limit]
enabled = false
per_user_queries_per_minute = 60
global_queries_per_minute = 1000
auth_attempts_per_minute = 10
metadata_per_user_per_minute = 120

[session]
idle_timeout_secs = 900
absolute_timeout_secs = 28800
persistence = "memory"
persistence_path = "/tmp/sqe-sessions.json"
secrets_path = ""
snapshot_interval_secs = 60
expiry_sweep_interval_secs = 60

[query]
catalog_discovery = "static"
timeout_secs = 300
role_overrides = {}
max_result_rows = 100000000
max_sql_bytes = 1048576
max_concurrent_queries = 100
max_concurrent_per_user = 20
max_concurrent_sorted_writes = 2
per_user_memory_budget = "1GB"
max_query_memory = "256MB"
slow_query_threshold_secs = 30
query_profile = "off"
stream_idle_timeout_secs = 300
distribution_threshold = "128MB"
distribution_file_threshold = 4
target_task_size = "256MB"
sort_mode = "adaptive"
late_materialization_min_projection_cols = 1
distributed_scan_pushdown = true
star_schema_reorder = true
star_schema_min_ratio = 10
parallel_probe_scan = true
parallel_scan = true
dim_build_swap = true
runtime_filter_inlist_max_values = 65536
runtime_filter_inlist_max_size = "4MB"
fanout_max_open_writers = 0
fanout_buffer_budget = "0"
write_buffer_tracking = true
merge_target_streaming = false
merge_cardinality_check = true

[optimizer]
hash_join_memory_threshold = "2GB"
broadcast_threshold = "64MB"

[query_cache]
enabled = true
max_memory_mb = 256
max_entry_mb = 5
ttl_secs = 300

[query_history]
max_entries = 10000
ttl_secs = 1800

[metrics]
prometheus_port = 9090
trace_sample_rate = 0.01
web_ui = false
[metrics.audit]
format = "native"
gdpr_tags = []
gdpr_identifier_mode = "tokenize"
superdebug_log_results = false
dashboard_access_audit_window_secs = 300
[metrics.audit_export]
enabled = false
target = "otlp"
batch_max = 512
flush_interval_ms = 2000
max_spool_bytes = "1GB"
start_at = "now"
[metrics.openlineage]
enabled = false
job_namespace = "sqe"
producer = ""
emit_selects = false
auth_mode = "none"
http_timeout_ms = 5000
http_retry_attempts = 1
spool_max_bytes = "100MB"
replay_interval_secs = 30
channel_capacity = 10000

[maintenance]
mode = "off"
[maintenance.principal]
roles = []
refresh_skew_secs = 60
[maintenance.scheduler]
enabled = false
tick_secs = 60
schedule = "0 2 * * *"
jitter_secs = 900
max_concurrent_jobs = 1
lease = "catalog"
lease_ttl_secs = 300
state_table = "sqe_system.maintenance_log"
single_scheduler_acknowledged = false
[maintenance.compaction]
target_file_size_bytes = 536870912
min_input_files = 5
delete_file_threshold = 2
strategy = "binpack"
[maintenance.distribution]
mode = "auto"
min_workers = 2
max_inflight_groups_per_worker = 1
group_attempts = 2
group_timeout_secs = 3600
group_heartbeat_timeout_secs = 120
partial_progress = false
partial_progress_batch = 10

[engine]
master = "local[*]"
"""

# Documented without a default; a value that each of them takes.
WITHOUT_DEFAULT = {
    "coordinator.worker_secret": "w0rker",
    "coordinator.tls.cert_file": "/tls/cert.pem",
    "coordinator.tls.key_file": "/tls/key.pem",
    "coordinator.tls.ca_file": "/tls/ca.pem",
    "worker.worker_secret": "w0rker",
    "worker.memory.spill_io_budget": "10%",
    "worker.spill.s3.bucket": "spill",
    "worker.spill.s3.region": "eu",
    "worker.spill.s3.endpoint": "http://localhost:19000",
    "worker.spill.s3.access_key_id": "id",
    "worker.spill.s3.secret_access_key": "s",
    "auth.keycloak_url": "http://localhost:8081",
    "auth.realm": "main",
    "auth.token_endpoint": "http://localhost/token",
    "auth.client_id": "id",
    "auth.client_secret": "s",
    "auth.providers.*.type": "anonymous",
    "auth.external.issuer": "http://localhost/realm",
    "auth.external.client_id": "id",
    "auth.external.client_secret": "s",
    "auth.external.authorization_endpoint": "http://localhost/a",
    "auth.external.token_endpoint": "http://localhost/t",
    "auth.external.device_authorization_endpoint": "http://localhost/d",
    "auth.external.device.client_id": "id",
    "catalog.type": "rest",
    "catalog.warehouse": "sales",
    "catalog.scan_fetch_ahead": "4",
    "storage.s3_endpoint": "http://localhost:19000",
    "storage.s3_region": "eu",
    "storage.s3_access_key": "k",
    "storage.s3_secret_key": "s",
    "storage.azure_account": "a",
    "storage.azure_access_key": "k",
    "storage.azure_sas_token": "t",
    "storage.gcs_service_account_path": "/key.json",
    "storage.gcs_service_account_key": "{}",
    "policy.mask_key": "k",
    "access_control.url": "http://localhost:6080",
    "access_control.client_id": "id",
    "access_control.client_secret": "s",
    "query.default_catalog": "lake",
    "metrics.otlp_endpoint": "http://localhost:4317",
    "metrics.traces_otlp_endpoint": "http://localhost:4317",
    "metrics.audit_log_path": "/audit.log",
    "metrics.audit_export.otlp_endpoint": "http://localhost:4317",
    "metrics.audit_export.spool_path": "/spool",
    "metrics.openlineage.file_path": "/events",
    "metrics.openlineage.http_endpoint": "http://localhost:5000",
    "metrics.openlineage.api_key": "k",
    "metrics.openlineage.spool_path": "/spool",
    "maintenance.principal.token_endpoint": "http://localhost/t",
    "maintenance.principal.client_id": "compactor",
    "maintenance.principal.client_secret": "s",
    "maintenance.principal.scope": "all",
    "maintenance.principal.user_id": "compactor",
}

# Ours: where the text leaves the names to us, and what the engine and plugins need.
ADDED = {
    "coordinator.bind_address",
    "metrics.bind_address",
    "metrics.health_bind_address",
    "metrics.scrape_token",
    "metrics.audit.on_failure",
    "coordinator.transport.max_connections",
    "coordinator.transport.max_connections_per_user",
    "coordinator.transport.connection_idle_timeout_secs",
    "engine.java_home",
    "engine.cache_dir",
    "engine.jar_dir",
    "engine.jar_mirror",
    "engine.class_archive",
    "engine.jar_groups",
    "session.max_sessions",
    "session.max_sessions_per_user",
    "session.secrets_key",
    "query.max_queued_queries",
    "query.queue_timeout_secs",
    "query.max_result_bytes",
    "query.max_ingest_bytes",
    "query.max_ingest_batch_bytes",
    "query.max_ingest_batch_rows",
    "query.max_ingest_columns",
    "query.ingest_disk_reserve",
    "query_history.full_text",
    "plugins",
    "lineage.sinks.*.type",
    "protocols.*.port",
    "protocols.*.bind_address",
    "protocols.*.public_url",
}

SECRETS = {
    "session.secrets_key",
    "coordinator.worker_secret",
    "worker.worker_secret",
    "worker.spill.s3.secret_access_key",
    "auth.client_secret",
    "auth.external.client_secret",
    "storage.s3_secret_key",
    "storage.azure_access_key",
    "storage.azure_sas_token",
    "storage.gcs_service_account_key",
    "policy.mask_key",
    "metrics.scrape_token",
    "access_control.client_secret",
    "metrics.openlineage.api_key",
    "maintenance.principal.client_secret",
}


def flattened(table: dict[str, Any], path: tuple[str, ...] = ()) -> dict[str, Any]:
    """Dotted key to value."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, dict) and value:
            flat.update(flattened(value, (*path, key)))
        else:
            flat[".".join((*path, key))] = value
    return flat


def dotted_key(path: KeyPath) -> str:
    return ".".join(map(str, path))


DEFAULTS = flattened(tomllib.loads(DOCUMENTED))
EVERY = {dotted_key(key.path): key for key in keys(SqeConfig)}
# Two tables repeat others; they have a test of their own.
DECLARED = {name: key for name, key in EVERY.items() if not name.startswith(("catalogs.", "catalog.storage."))}


def test_every_documented_key_is_declared_and_no_other() -> None:
    assert set(DECLARED) == set(DEFAULTS) | set(WITHOUT_DEFAULT) | ADDED


def test_named_catalogs_have_the_keys_of_the_one_catalog() -> None:
    named = {name.removeprefix("catalogs.*.") for name in EVERY if name.startswith("catalogs.")}

    assert named == {name.removeprefix("catalog.") for name in EVERY if name.startswith("catalog.")}


def test_storage_of_a_catalog_has_the_keys_of_storage() -> None:
    of_catalog = {name.removeprefix("catalog.storage.") for name in EVERY if name.startswith("catalog.storage.")}
    stores = {name.removeprefix("storage.") for name in DECLARED if name.startswith("storage.")}

    # File functions belong to the server and not to a catalog.
    assert of_catalog == {name for name in stores if not name.startswith("tvf.")}


@pytest.mark.parametrize("name", sorted(WITHOUT_DEFAULT))
def test_keys_without_a_documented_default_have_none(name: str) -> None:
    assert DECLARED[name].default in (None, MISSING)


def test_the_documented_defaults_are_the_defaults(tmp_path: Path) -> None:
    """Writing every documented default changes nothing."""
    file = tmp_path / "sqe.toml"
    # Tables that are there or not, and what they need to be valid.
    needed = DOCUMENTED.replace("[auth.external]", '[auth.external]\nissuer = "http://localhost/r"\nclient_id = "sqe"')
    needed = needed.replace("[catalog]", '[catalog]\ntype = "sqlite"')
    file.write_text(needed)

    written = load(file, environ={}).config
    defaults = load(None, environ={}).config

    optional = {"auth", "catalog", "policy", "access_control"}
    for field in fields(SqeConfig):
        if field.name not in optional:
            assert getattr(written, field.name) == getattr(defaults, field.name), field.name
    for leaf in leaves(written):
        assert not leaf.differs or leaf.path[-1] in ("issuer", "client_id", "type"), leaf.path


@pytest.mark.parametrize("name", sorted(DECLARED))
def test_secrets_are_exactly_the_declared_ones(name: str) -> None:
    assert bool(DECLARED[name].metadata.get("secret")) == (name in SECRETS)


@pytest.mark.parametrize("name", sorted(DECLARED))
def test_every_key_is_described(name: str) -> None:
    assert DECLARED[name].metadata["doc"].strip()
