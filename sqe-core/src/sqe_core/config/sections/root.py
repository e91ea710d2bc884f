"""The whole file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqe_core.config.plugin_table import PluginTable
from sqe_core.config.schema import mapping, section
from sqe_core.config.sections.auth import AuthConfig
from sqe_core.config.sections.catalog import CatalogConfig, StorageConfig
from sqe_core.config.sections.coordinator import CoordinatorConfig, ProtocolConfig
from sqe_core.config.sections.maintenance import MaintenanceConfig
from sqe_core.config.sections.metrics import LineageConfig, MetricsConfig
from sqe_core.config.sections.policy import AccessControlConfig, PolicyConfig, RateLimitConfig, SecurityConfig
from sqe_core.config.sections.query import (
    EngineConfig,
    OptimizerConfig,
    QueryCacheConfig,
    QueryConfig,
    QueryHistoryConfig,
    SessionConfig,
)
from sqe_core.config.sections.worker import WorkerConfig
from sqe_core.spi.factory import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class SqeConfig:
    """One TOML file, for coordinator and worker alike."""

    coordinator: CoordinatorConfig = section(CoordinatorConfig)
    worker: WorkerConfig = section(
        WorkerConfig,
        unbuilt="workers are not built yet",
        asked=lambda worker: bool(worker.coordinator_url or worker.worker_secret),
    )
    auth: AuthConfig | None = setting(None, "Who may log in; without this table there is one anonymous user.")
    catalog: CatalogConfig | None = setting(None, "The one catalog.")
    catalogs: Mapping[str, CatalogConfig] = mapping("Several catalogs, by name.")
    storage: StorageConfig = section(StorageConfig)
    policy: PolicyConfig = section(PolicyConfig)
    access_control: AccessControlConfig = section(AccessControlConfig)
    security: SecurityConfig = section(SecurityConfig)
    rate_limit: RateLimitConfig = section(RateLimitConfig)
    session: SessionConfig = section(SessionConfig)
    query: QueryConfig = section(QueryConfig)
    optimizer: OptimizerConfig = section(OptimizerConfig)
    query_cache: QueryCacheConfig = section(QueryCacheConfig)
    query_history: QueryHistoryConfig = section(QueryHistoryConfig)
    metrics: MetricsConfig = section(MetricsConfig)
    lineage: LineageConfig = section(LineageConfig)
    maintenance: MaintenanceConfig = section(
        MaintenanceConfig,
        unbuilt="maintenance is not built yet",
        asked=lambda maintenance: maintenance.mode != "off" or maintenance.scheduler.enabled,
    )
    engine: EngineConfig = section(EngineConfig)
    protocols: Mapping[str, ProtocolConfig] = mapping("Protocols and where they listen, by their kind.")
    plugins: Mapping[str, PluginTable] = mapping("Settings of plugins that provide no kind, by the plugin's name.")
