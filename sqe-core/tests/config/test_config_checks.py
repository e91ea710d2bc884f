"""Start-up validation: each check refuses what it is for, and nothing of a file without that fault."""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType

import pytest

from sqe_core.config import SqeConfig, load
from sqe_core.config.binder import Binder
from sqe_core.config.checks import (
    ALWAYS,
    PRODUCTION,
    catalogs,
    login,
    maintenance,
    network,
    observability,
    policies,
    production,
    resources,
)
from sqe_core.config.checks import check as run_checks
from sqe_core.config.layers import file_layer
from sqe_core.config.origin import dotted
from sqe_core.spi.errors import ConfigError

# check -> files, each with the paths of the faults that exactly this check finds in it.
CASES: dict[str, list[tuple[str, list[str]]]] = {
    "login.check_login_is_complete": [
        ('[auth]\nkeycloak_url = "http://k"\nclient_id = "x"', ["auth.realm"]),
        ('[auth]\nrealm = "r"\nclient_id = "x"', ["auth.keycloak_url"]),
        ('[auth]\nkeycloak_url = "http://k"\nrealm = "r"', ["auth.client_id"]),
        ('[auth]\nadmin_roles = ["a"]', ["auth"]),
        ("[auth]", ["auth"]),
        ('[auth]\ntoken_endpoint = "http://t"', []),
        ('[auth.external]\nissuer = "http://i"\nclient_id = "x"', []),
        ('[[auth.providers]]\ntype = "anonymous"', []),
    ],
    "login.check_one_form_of_login": [
        ('[auth]\nkeycloak_url = "http://k"\nrealm = "r"\ntoken_endpoint = "http://t"', ["auth.token_endpoint"]),
        ('[auth]\ntoken_endpoint = "http://t"\n[[auth.providers]]\ntype = "x"', ["auth.token_endpoint"]),
        ('[auth]\nclient_secret = "s"\n[[auth.providers]]\ntype = "x"', []),
    ],
    "catalogs.check_stores_are_encrypted": [
        ('[storage]\ns3_endpoint = "http://store:9000"', ["storage.s3_endpoint"]),
        ('[catalogs.a.storage]\ns3_endpoint = "http://10.0.0.1"', ["catalogs.a.storage.s3_endpoint"]),
        ('[storage]\ns3_endpoint = "http://store:9000"\ns3_allow_http = true', []),
        ('[storage]\ns3_endpoint = "http://localhost:19000"', []),
        ('[storage]\ns3_endpoint = "https://store"', []),
        ('[storage]\ns3_access_key = "a"', ["storage.s3_access_key"]),
        ('[storage]\ns3_secret_key = "a"', ["storage.s3_access_key"]),
    ],
    "catalogs.check_catalog_names": [
        ("[catalogs.system]", ["catalogs.system"]),
        ("[catalogs._sqe_x]\n[catalogs.__sqe_y]", ["catalogs._sqe_x", "catalogs.__sqe_y"]),
        ('[catalogs.""]', ['catalogs.""']),
        ("[catalogs.Lake]\n[catalogs.lake]", ["catalogs.lake"]),
        ('[query]\ndefault_catalog = "SYSTEM"', ["query.default_catalog"]),
        ("[catalogs.systems]", []),
    ],
    "catalogs.check_default_catalog": [
        ('[query]\ndefault_catalog = "x"\n[catalogs.a]', ["query.default_catalog"]),
        ('[query]\ndefault_catalog = "a"\n[catalogs.a]', []),
        ('[query]\ndefault_catalog = "x"\n[catalogs.a]\n[catalog]', []),
        ('[query]\ndefault_catalog = "x"\ncatalog_discovery = "polaris-auto"\n[catalogs.a]', []),
    ],
    "network.check_ports": [
        ("[coordinator]\ntrino_http_port = 50051", ["coordinator.trino_http_port"]),
        ("[coordinator]\nquack_port = 9091", ["metrics.prometheus_port"]),
        ("[protocols.postgres]\nport = 50051", ["protocols.postgres.port"]),
        ("[protocols.flight]\nport = 8080", ["coordinator.trino_http_port"]),
        ("[protocols.flight]\nport = 50052\n[protocols.postgres]\nport = 50051", []),
        ("[metrics]\nprometheus_port = 8079", ["metrics.prometheus_port"]),
        ('[coordinator]\nmode = "worker"\n[worker]\nflight_port = 9090', ["metrics.prometheus_port"]),
        ("[coordinator]\ntrino_http_port = 0\nquack_port = 0\n[metrics]\nprometheus_port = 0", []),
        ("[worker]\nflight_port = 50051", []),
    ],
    "network.check_tls_pair": [
        ('[coordinator.tls]\ncert_file = "/c"', ["coordinator.tls.key_file"]),
        ('[coordinator.tls]\nkey_file = "/c"', ["coordinator.tls.cert_file"]),
        ('[coordinator.tls]\nca_file = "/c"', ["coordinator.tls.cert_file"]),
        ('[coordinator.tls]\ncert_file = "/c"\nkey_file = "/k"\nca_file = "/a"', []),
    ],
    "network.check_tls_files_are_readable": [
        (
            '[coordinator.tls]\ncert_file = "/no/cert"\nca_file = "/"',
            ["coordinator.tls.cert_file", "coordinator.tls.ca_file"],
        ),
        (f'[coordinator.tls]\ncert_file = "{__file__}"', []),
    ],
    "network.check_bind_addresses": [
        ('[coordinator]\nbind_address = "0.0.0.0"', ["coordinator.bind_address"]),
        (
            '[metrics]\nbind_address = "10.0.0.1"\nhealth_bind_address = "::"',
            [
                "metrics.bind_address",
                "metrics.health_bind_address",
            ],
        ),
        ('[coordinator]\nbind_address = "127.0.0.1"\n[metrics]\nhealth_bind_address = "::1"', []),
        ('[coordinator]\nbind_address = "localhost"', ["coordinator.bind_address"]),
        ('[auth]\n[coordinator]\nbind_address = "0.0.0.0"\n[metrics]\nbind_address = "::"', []),
        (
            '[auth]\n[coordinator]\nproduction_mode = true\n[metrics]\nbind_address = "::"',
            ["metrics.bind_address"],
        ),
        ('[auth]\n[coordinator]\nproduction_mode = true\n[metrics]\nbind_address = "::"\nscrape_token = "x"', []),
    ],
    "network.check_worker_secret": [
        ('[coordinator]\nmode = "distributed"', ["coordinator.worker_secret"]),
        ('[coordinator]\nworker_urls = ["http://localhost:1"]', ["coordinator.worker_secret"]),
        ('[coordinator]\nmode = "worker"', ["worker.worker_secret"]),
        ('[coordinator]\nworker_secret = "a"\n[worker]\nworker_secret = "b"', ["worker.worker_secret"]),
        ('[coordinator]\nmode = "distributed"\nworker_secret = ""', ["coordinator.worker_secret"]),
        ('[coordinator]\nmode = "distributed"\nworker_secret = "a"', []),
        ('[coordinator]\nmode = "distributed"\nallow_unauthenticated_workers = true', []),
        ('[engine]\nmaster = "spark://h:7077"', ["coordinator.worker_secret"]),
        (
            '[engine]\nmaster = "spark://h:7077"\n[coordinator]\nallow_unauthenticated_workers = true',
            ["coordinator.worker_secret"],
        ),
        ('[engine]\nmaster = "spark://h:7077"\n[coordinator]\nworker_secret = "a"', []),
        ('[coordinator]\nmode = "worker"\n[worker]\nallow_unauthenticated = true', []),
        ("", []),
    ],
    "network.check_worker_knows_its_coordinator": [
        ('[coordinator]\nmode = "worker"', ["worker.coordinator_url"]),
        ('[worker]\nadvertise_url = "http://0.0.0.0:1"', ["worker.advertise_url"]),
        ('[worker]\nadvertise_url = "http://[::]:1"', ["worker.advertise_url"]),
        ('[coordinator]\nmode = "worker"\n[worker]\ncoordinator_url = "http://localhost:1"', []),
    ],
    "network.check_peers_use_tls": [
        (
            '[coordinator]\nworker_urls = ["http://localhost:1", "http://w:1", "https://w:1", "grpc://10.0.0.1:1"]',
            ["coordinator.worker_urls[1]", "coordinator.worker_urls[3]"],
        ),
        ('[worker]\ncoordinator_url = "spark://c:7077"', ["worker.coordinator_url"]),
        ('[worker]\ncoordinator_url = "spark://c:7077"\nworker_secret = "s"', []),
        ('[worker]\ncoordinator_url = "http://c:1"\n[security]\nallow_insecure_transport = true', []),
        ('[worker]\ncoordinator_url = "http://127.0.0.9:1"', []),
    ],
    "network.check_worker_calls_outlast_scans": [
        ("[coordinator]\nworker_rpc_timeout_secs = 600", ["coordinator.worker_rpc_timeout_secs"]),
        ("[worker]\nscan_timeout_secs = 630", ["coordinator.worker_rpc_timeout_secs"]),
        ("[coordinator]\nworker_rpc_timeout_secs = 5\n[worker]\nscan_timeout_secs = 0", []),
    ],
    "network.check_trusted_proxies": [
        (
            '[security]\ntrusted_proxies = ["10.0.0.1", "proxy", "::1", "10.0.0.0/8"]',
            ["security.trusted_proxies[1]"],
        ),
    ],
    "policies.check_engine_names": [
        ("[policy]\nengine = []", ["policy.engine"]),
        ('[policy]\nengine = ["opa", "grants", "opa"]', ["policy.engine"]),
        ('[policy]\nenginee = "opa"', ["policy.enginee"]),
        ('[policy]\nengine = "acme"\nacme = 5', ["policy.acme"]),
        ('[policy]\nengine = ["grants", "acme"]\n[policy.acme]\nurl = 1', []),
        ('[policy]\nengine = "grants"\n[policy.opa]\nurl = "http://o"', []),
        ("[policy]\nopa = 5", ["policy.opa"]),
    ],
    "policies.check_metadata_cache_for_policies": [
        ("[catalog]\nmetadata_cache_ttl_secs = 0", ["catalog.metadata_cache_ttl_secs"]),
        ("[catalogs.a]\nmetadata_cache_ttl_secs = 0", ["catalogs.a.metadata_cache_ttl_secs"]),
        ("[catalog]\nmetadata_cache_ttl_secs = 0\n[policy]\ni_understand_no_enforcement = true", []),
    ],
    "policies.check_grant_store": [
        ('[access_control]\nbackendd = "polaris"', ["access_control.backendd"]),
        ("[access_control.polaris]\nrealm = 'r'", ["access_control.polaris"]),
        ('[access_control]\nbackend = "polaris"\nurl = "http://p"\npolaris = 5', ["access_control.polaris"]),
        ('[access_control]\nbackend = "polaris"\nurl = "http://p"\n[access_control.polaris]\nrealm = "r"', []),
        ('[access_control]\nclient_id = "x"', ["access_control.client_secret"]),
        ('[access_control]\nclient_secret = "x"', ["access_control.client_id"]),
        ('[access_control]\nbackend = "polaris"\nurl = "http://p"\nclient_id = "x"\nclient_secret = "y"', []),
    ],
    "resources.check_query_memory": [
        ('[query]\nper_user_memory_budget = "255MB"', ["query.per_user_memory_budget"]),
        ('[query]\nmax_query_memory = "2GB"', ["query.per_user_memory_budget"]),
        ('[query]\nper_user_memory_budget = "0"', []),
        ('[query]\nper_user_memory_budget = "256MB"', []),
    ],
    "resources.check_worker_budgets": [
        ('[worker.memory]\nprocess_headroom = "8GB"', ["worker.memory.process_headroom"]),
        ('[worker.memory]\nprocess_headroom = "100%"', ["worker.memory.process_headroom"]),
        ('[worker.memory]\nscan_budget = "31%"', ["worker.memory"]),
        ('[worker.memory]\nscan_budget = "3GB"', ["worker.memory"]),
        ('[worker.memory]\nspill_io_budget = "11%"', ["worker.memory"]),
        ('[worker.memory]\nspill_io_budget = "10%"', []),
        ('[worker.memory]\nscan_budget = "30%"', []),
    ],
    "resources.check_spill_directories": [
        ('[coordinator]\nspill_dir = "/tmp/sqe-spill"', ["coordinator.spill_dir"]),
        ('[worker.spill]\ndirectory = "/tmp/sqe-coordinator-spill/"', ["coordinator.spill_dir"]),
        ('[worker]\nspill_dir = "/tmp/sqe-coordinator-spill/w"', ["coordinator.spill_dir"]),
        ('[worker]\nspill_dir = "/tmp/sqe-coordinator-spill"\n[worker.spill]\ndirectory = "/x"', []),
    ],
    "resources.check_tiered_spill": [
        ('[worker.spill]\nbackend = "tiered"', ["worker.spill.s3.bucket"]),
        ('[worker.spill]\nbackend = "tiered"\ns3.bucket = "b"', []),
    ],
    "resources.check_ingest_batches": [
        ("[query]\nmax_ingest_batch_bytes = '257MB'", ["query.max_ingest_batch_bytes"]),
        ("[query]\nmax_ingest_batch_bytes = '256MB'", []),
    ],
    "resources.check_result_cache": [
        ("[query_cache]\nmax_entry_mb = 257", ["query_cache.max_entry_mb"]),
        ("[query_cache]\nmax_entry_mb = 256", []),
    ],
    "resources.check_session_file": [
        ('[session]\npersistence = "file"\npersistence_path = ""', ["session.persistence_path"]),
        ('[session]\npersistence_path = ""', []),
    ],
    "observability.check_lineage": [
        ("[metrics.openlineage]\nenabled = true", ["metrics.openlineage.enabled"]),
        ('[metrics.openlineage]\nauth_mode = "bearer"', ["metrics.openlineage.api_key"]),
        ('[metrics.openlineage]\nspool_path = "/s"', ["metrics.openlineage.http_endpoint"]),
        (
            '[metrics.openlineage]\nspool_path = "/s"\nhttp_endpoint = "http://l"\nspool_max_bytes = "1023K"',
            ["metrics.openlineage.spool_max_bytes"],
        ),
        ('[metrics.openlineage]\nenabled = true\nfile_path = "/f"', []),
    ],
    "observability.check_audit": [
        ('[metrics.audit]\non_failure = "refuse"', ["metrics.audit_log_path"]),
        ('[metrics]\naudit_log_path = "/a"\n[metrics.audit]\non_failure = "refuse"', []),
        ('[metrics.audit]\non_failure = "alert"', []),
    ],
    "observability.check_audit_export": [
        ("[metrics.audit_export]\nenabled = true", ["metrics.audit_export.otlp_endpoint"]),
        ('[metrics.audit_export]\nenabled = true\notlp_endpoint = "http://o"', []),
    ],
    "maintenance.check_scheduler": [
        ("[maintenance.scheduler]\nenabled = true", ["maintenance.scheduler.enabled"]),
        ('[maintenance.scheduler]\nschedule = "daily"', ["maintenance.scheduler.schedule"]),
        ('[maintenance.scheduler]\nschedule = "0 24 * * *"', ["maintenance.scheduler.schedule"]),
        ('[maintenance.scheduler]\nschedule = "0 2 * *"', ["maintenance.scheduler.schedule"]),
        ('[maintenance.scheduler]\nschedule = "*/0 * * * *"', ["maintenance.scheduler.schedule"]),
        ('[maintenance.scheduler]\nschedule = "30-10 * * * *"', ["maintenance.scheduler.schedule"]),
        ("[maintenance.scheduler]\ntick_secs = 300", ["maintenance.scheduler.lease_ttl_secs"]),
        (
            '[maintenance]\nmode = "advisory"\n[maintenance.scheduler]\nenabled = true\nschedule = "*/5 1-3,9 * * 7"',
            [],
        ),
    ],
    "maintenance.check_lease": [
        ('[maintenance.scheduler]\nenabled = true\nlease = "none"', ["maintenance.scheduler.lease"]),
        ('[maintenance.scheduler]\nenabled = true\nlease = "none"\nsingle_scheduler_acknowledged = true', []),
    ],
    "maintenance.check_principal": [
        (
            '[maintenance]\nmode = "active"',
            [f"maintenance.principal.{key}" for key in ("token_endpoint", "client_id", "client_secret")],
        ),
        (
            '[auth]\nclient_id = "sqe"\n[maintenance.principal]\nclient_id = "sqe"',
            ["maintenance.principal.client_id"],
        ),
        (
            '[[auth.providers]]\ntype = "x"\nclient_id = "sqe"\n[maintenance.principal]\nclient_id = "sqe"',
            ["maintenance.principal.client_id"],
        ),
        (
            '[catalogs.a.auth]\nclient_id = "sqe"\n[maintenance.principal]\nclient_id = "sqe"',
            ["maintenance.principal.client_id"],
        ),
        ('[auth]\nclient_id = "sqe"\n[maintenance.principal]\nclient_id = "compactor"', []),
    ],
    "maintenance.check_distribution": [
        (
            "[maintenance.distribution]\ngroup_heartbeat_timeout_secs = 3600",
            ["maintenance.distribution.group_heartbeat_timeout_secs"],
        ),
    ],
    "production.refuse_missing_login": [
        ("", ["auth"]),
        ('[auth]\ntoken_endpoint = "https://t"', []),
        ('[coordinator]\nmode = "worker"', []),
    ],
    "production.refuse_debug": [("[coordinator]\ndebug = true", ["coordinator.debug"]), ("", [])],
    "production.refuse_unchecked_certificates": [
        ("[auth]\ntls_skip_verify = true", ["auth.tls_skip_verify"]),
        ("[auth]\nssl_verification = false", ["auth.ssl_verification"]),
        (
            '[auth.external]\nissuer = "http://i"\nclient_id = "x"\naccept_invalid_certs = true',
            ["auth.external.accept_invalid_certs"],
        ),
    ],
    "production.refuse_slow_browser_login": [
        ('[auth.external]\nissuer = "http://i"\nclient_id = "x"', ["auth.external.challenge_timeout_secs"]),
        ('[auth.external]\nissuer = "http://i"\nclient_id = "x"\nchallenge_timeout_secs = 300', []),
    ],
    "production.refuse_missing_rate_limit": [
        ("", ["rate_limit.enabled"]),
        ("[rate_limit]\nenabled = true", []),
    ],
    "production.refuse_open_tables": [
        ('[policy]\nuncovered = "catalog"', ["policy.uncovered"]),
        ('[policy]\nuncovered = "maker"', []),
        ("", []),
    ],
    "production.refuse_plaintext": [
        ("", ["coordinator.tls"]),
        ("[security]\nallow_insecure_transport = true", ["coordinator.tls", "security.allow_insecure_transport"]),
        ('[coordinator.tls]\ncert_file = "/c"\nkey_file = "/k"', []),
        ("[coordinator]\nflight_sql_port = 0\ntrino_http_port = 0", []),
        ('[[auth.providers]]\ntype = "x"\n[security]\ntls_ends_upstream = true', ["coordinator.bind_address"]),
        (
            '[coordinator]\nbind_address = "127.0.0.1"\n[protocols.x]\nbind_address = "10.0.0.1"\n'
            "[security]\ntls_ends_upstream = true",
            ["protocols.x.bind_address"],
        ),
        (
            "[coordinator]\nflight_sql_port = 0\ntrino_http_port = 0\n[protocols.x]\nport = 5433",
            ["coordinator.tls"],
        ),
        ('[coordinator]\nbind_address = "::"\n[security]\ntls_ends_upstream = true', ["coordinator.bind_address"]),
        ('[coordinator]\nbind_address = "127.0.0.1"\n[security]\ntls_ends_upstream = true', []),
    ],
    "production.refuse_unauthenticated_workers": [
        ("[coordinator]\nallow_unauthenticated_workers = true", ["coordinator.allow_unauthenticated_workers"]),
        ("[worker]\nallow_unauthenticated = true", ["worker.allow_unauthenticated"]),
    ],
    "production.refuse_unlimited_sql": [("[query]\nmax_sql_bytes = 0", ["query.max_sql_bytes"]), ("", [])],
    "production.refuse_static_storage_keys": [
        ('[storage]\ns3_access_key = "a"\ns3_secret_key = "b"', ["storage.s3_access_key", "storage.s3_secret_key"]),
        (
            '[storage]\nazure_sas_token = "a"\nazure_access_key = "b"',
            ["storage.azure_access_key", "storage.azure_sas_token"],
        ),
        ('[catalog.storage]\ngcs_service_account_key = "a"', ["catalog.storage.gcs_service_account_key"]),
        ('[storage]\ngcs_service_account_path = "/k"', ["storage.gcs_service_account_path"]),
        ('[storage]\ns3_endpoint = "http://s"', []),
    ],
    "production.refuse_unkeyed_hash_masks": [
        ("", ["policy.mask_key"]),
        ('[policy]\nmask_key = "k"', []),
        ("[security]\nallow_unkeyed_hash_masks = true", []),
    ],
    "production.refuse_example_secrets": [
        ('[coordinator]\nworker_secret = "ChangeMe"', ["coordinator.worker_secret"]),
        ('[[auth.providers]]\ntype = "x"\nclient_secret = "s3cr3t"', ["auth.providers[0].client_secret"]),
        ('[catalogs.a.auth]\nclient_secret = "secret"', ["catalogs.a.auth.client_secret"]),
        ('[coordinator]\nworker_secret = "dGhpcyBpcyByYW5kb20"', []),
    ],
    "production.refuse_public_key_files": [
        ('[coordinator.tls]\nkey_file = "PUBLIC"', ["coordinator.tls.key_file"]),
        ('[session]\nsecrets_path = "PUBLIC"', ["session.secrets_path"]),
        ('[coordinator.tls]\nkey_file = "PRIVATE"', []),
        ('[coordinator.tls]\nkey_file = "/does/not/exist"', []),
    ],
    "production.refuse_results_in_logs": [
        ("[metrics.audit]\nsuperdebug_log_results = true", ["metrics.audit.superdebug_log_results"]),
    ],
}

MODULES: dict[str, ModuleType] = {
    "login": login,
    "catalogs": catalogs,
    "network": network,
    "policies": policies,
    "resources": resources,
    "observability": observability,
    "maintenance": maintenance,
    "production": production,
}


def unchecked(tmp_path: Path, text: str) -> SqeConfig:
    """Bind a file without any check."""
    for name, mode in (("PUBLIC", 0o644), ("PRIVATE", 0o600)):
        (tmp_path / name).touch(mode)
        os.chmod(tmp_path / name, mode)
        text = text.replace(f'"{name}"', f'"{tmp_path / name}"')
    file = tmp_path / "sqe.toml"
    file.write_text(text)
    binder = Binder({})
    config = binder.bind_table(file_layer(file), SqeConfig, ())
    assert binder.faults == []
    assert config is not None
    return config


@pytest.mark.parametrize(
    ("name", "text", "paths"), [(name, text, paths) for name, cases in CASES.items() for text, paths in cases]
)
def test_check(tmp_path: Path, name: str, text: str, paths: list[str]) -> None:
    module, function = name.split(".")

    faults = list(getattr(MODULES[module], function)(unchecked(tmp_path, text)))
    assert [dotted(fault.path) for fault in faults] == paths


REFUSED = [
    (text, path)
    for name, cases in CASES.items()
    if name.startswith("production.")
    for text, paths in cases
    for path in paths
]


@pytest.mark.rule("OBS-8")
@pytest.mark.parametrize(("text", "path"), REFUSED)
def test_production_refuses_the_file_and_names_the_key(tmp_path: Path, text: str, path: str) -> None:
    unchecked(tmp_path, text)  # makes the file, and what it names
    environ = {"SQE_PRODUCTION_MODE": "true"}
    with pytest.raises(ConfigError) as caught:
        load(tmp_path / "sqe.toml", environ=environ)

    assert any(f"{path}: refused by production_mode: " in fault for fault in caught.value.faults), caught.value.faults


def test_every_check_has_cases_that_it_refuses() -> None:
    listed = {f"{check.__module__.rpartition('.')[2]}.{check.__name__}" for check in (*ALWAYS, *PRODUCTION)}

    assert listed == set(CASES)
    assert [name for name, cases in CASES.items() if not any(paths for _, paths in cases)] == []


def test_every_check_that_is_written_runs() -> None:
    written = {
        f"{name}.{function}"
        for name, module in MODULES.items()
        for function in vars(module)
        if function.startswith(("check_", "refuse_")) and vars(module)[function].__module__ == module.__name__
    }

    # Runs apart from the list, because it needs the files that secrets came from.
    assert written - {"production.refuse_public_files"} == set(CASES)


PRODUCTION_READY = """
[coordinator]
production_mode = true
[coordinator.tls]
cert_file = "PUBLIC"
key_file = "PRIVATE"
[auth]
keycloak_url = "https://login"
realm = "main"
client_id = "sqe"
client_secret = { file = "SECRET" }
[catalog]
catalog_url = "https://catalog"
warehouse = "sales"
require_vended_credentials = true
[rate_limit]
enabled = true
[policy]
mask_key = "dGhpcyBpcyByYW5kb20"
[security]
allow_password_grant = true
"""


def production_file(tmp_path: Path, secret_mode: int = 0o600) -> Path:
    for name, mode in (("PUBLIC", 0o644), ("PRIVATE", 0o600), ("SECRET", secret_mode)):
        (tmp_path / name).write_text("dGhpcyBpcyByYW5kb20")
        os.chmod(tmp_path / name, mode)
    file = tmp_path / "sqe.toml"
    file.write_text(PRODUCTION_READY.replace('file = "', f'file = "{tmp_path}/'))
    return file


def test_a_file_that_is_ready_for_production(tmp_path: Path) -> None:
    assert load(production_file(tmp_path), environ={}).config.coordinator.production_mode


def test_a_secret_file_that_everybody_can_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(production_file(tmp_path, 0o644), environ={})

    (fault,) = caught.value.faults
    assert "auth.client_secret: refused by production_mode: everybody on this machine can read" in fault


def test_production_refusals_need_production_mode(tmp_path: Path) -> None:
    file = tmp_path / "sqe.toml"
    file.write_text("[query]\nmax_sql_bytes = 0\n")
    assert load(file, environ={}).config.query.max_sql_bytes == 0

    with pytest.raises(ConfigError) as caught:
        load(file, environ={"SQE_PRODUCTION_MODE": "yes"})
    assert any("sqe.toml:2: query.max_sql_bytes: refused by production_mode" in fault for fault in caught.value.faults)
    assert len(caught.value.faults) == 5


def test_the_defaults_have_no_fault(tmp_path: Path) -> None:
    assert list(run_checks(unchecked(tmp_path, ""))) == []
