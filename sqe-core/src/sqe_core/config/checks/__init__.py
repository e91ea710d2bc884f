"""Start-up validation: what no single key can say of itself.

Each check is a small named function that yields faults. `ALWAYS` runs for every configuration, `PRODUCTION` also
when `production_mode` is on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from sqe_core.config.checks import catalogs, login, maintenance, network, observability, policies, production, resources
from sqe_core.config.origin import Fault, KeyPath
from sqe_core.config.sections.root import SqeConfig

Check = Callable[[SqeConfig], Iterator[Fault]]

ALWAYS: tuple[Check, ...] = (
    login.check_login_is_complete,
    login.check_one_form_of_login,
    catalogs.check_catalog_names,
    catalogs.check_default_catalog,
    catalogs.check_stores_are_encrypted,
    network.check_ports,
    network.check_bind_addresses,
    network.check_tls_pair,
    network.check_tls_files_are_readable,
    network.check_worker_secret,
    network.check_worker_knows_its_coordinator,
    network.check_peers_use_tls,
    network.check_worker_calls_outlast_scans,
    network.check_trusted_proxies,
    policies.check_engine_names,
    policies.check_metadata_cache_for_policies,
    policies.check_grant_store,
    resources.check_query_memory,
    resources.check_worker_budgets,
    resources.check_spill_directories,
    resources.check_tiered_spill,
    resources.check_ingest_batches,
    resources.check_result_cache,
    resources.check_session_file,
    observability.check_lineage,
    observability.check_audit,
    observability.check_audit_export,
    maintenance.check_scheduler,
    maintenance.check_lease,
    maintenance.check_principal,
    maintenance.check_distribution,
)

PRODUCTION: tuple[Check, ...] = (
    production.refuse_missing_login,
    production.refuse_debug,
    production.refuse_unchecked_certificates,
    production.refuse_slow_browser_login,
    production.refuse_missing_rate_limit,
    production.refuse_open_tables,
    production.refuse_plaintext,
    production.refuse_unauthenticated_workers,
    production.refuse_unlimited_sql,
    production.refuse_static_storage_keys,
    production.refuse_unkeyed_hash_masks,
    production.refuse_example_secrets,
    production.refuse_public_key_files,
    production.refuse_results_in_logs,
)


def check(config: SqeConfig, secret_files: Mapping[KeyPath, Path] = MappingProxyType({})) -> Iterator[Fault]:
    """Run every check that applies. `secret_files` are the files that `{ file = … }` named."""
    for run in ALWAYS:
        yield from run(config)
    if config.coordinator.production_mode:
        for run in PRODUCTION:
            yield from run(config)
        yield from production.refuse_public_files(secret_files)
