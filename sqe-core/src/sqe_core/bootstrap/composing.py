"""What a configuration describes: its catalogs, policy engines, limits and engine."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from sqe_core import __version__
from sqe_core.bootstrap.core import CatalogsOf, Sqe, build
from sqe_core.bootstrap.instances import Instance, Instances, configured_instances, create_all
from sqe_core.bootstrap.options import (
    audit_log,
    engine_options,
    protected_places,
    query_limits,
    secrets_of,
    spark_settings,
)
from sqe_core.catalog.attaching import AttachRules
from sqe_core.catalog.local_places import LocalPlaces
from sqe_core.catalog.registry import Mount
from sqe_core.catalog.storage import file_properties
from sqe_core.config.loading import LoadedConfig
from sqe_core.config.sections.metrics import OpenLineageConfig
from sqe_core.engine.port import Engine
from sqe_core.engine.spark.engine import SparkEngine
from sqe_core.observe.history import QueryHistory
from sqe_core.observe.lineage import DatasetOf, Lineage, LineageOptions
from sqe_core.plugins.kinds import ExtensionPoint
from sqe_core.plugins.manager import PluginManager
from sqe_core.policy.cache import DecisionCache
from sqe_core.policy.masks import MaskWriter
from sqe_core.spi.catalog import CatalogContext, Jar
from sqe_core.spi.factory import Metrics, NoMetrics
from sqe_core.spi.grants import GrantStore
from sqe_core.spi.lineage import LineageSink

_log = logging.getLogger(__name__)


def compose(
    loaded: LoadedConfig,
    plugins: PluginManager | None = None,
    *,
    engine: Engine | None = None,
    metrics: Metrics | None = None,
    instances: Instances | None = None,
) -> Sqe:
    """Build what a configuration file describes, not started.

    Only the distributions whose kinds the file names are imported.

    Args:
        loaded: the configuration.
        plugins: the installed plugins; None looks for them.
        engine: an engine that runs already, instead of the one of the file.
        metrics: where to count.
        instances: what was found of the configuration already.

    Raises:
        ConfigError: plugins that are missing or broken, and settings that do not fit, every fault of them.
        StartupError: what an instance needs is not there.
    """
    config, metrics = loaded.config, metrics or NoMetrics()
    plugins = plugins or PluginManager(sqe_version=__version__)
    production = config.coordinator.production_mode
    instances = instances or configured_instances(loaded, plugins, metrics=metrics)
    catalogs, policies = instances.of(ExtensionPoint.CATALOG), instances.of(ExtensionPoint.POLICY)
    made = create_all([*catalogs, *policies, *instances.of(ExtensionPoint.LINEAGE)])
    mounts = [
        Mount(name=instance.name, backend=backend, aliases=instance.entry.aliases)
        for instance, backend in made[: len(catalogs)]
    ]
    for mount in mounts:
        if config.auth is not None and mount.backend.identity_mode == "shared":
            _log.warning("everybody is one identity at catalog %s: policies here decide alone", mount.name)
    options = engine_options(config.engine)
    jars = frozenset[str | Jar](options.jar_groups).union(*(mount.backend.required_jars() for mount in mounts))
    admin_roles = frozenset(config.auth.admin_roles) if config.auth else frozenset[str]()
    return build(
        engine=engine
        or SparkEngine(
            replace(
                options,
                memory_bytes=config.coordinator.memory_limit,
                local_dir=Path(config.coordinator.spill_dir),
                jar_groups=frozenset(jar for jar in jars if isinstance(jar, str)),
                plugin_jars=tuple(sorted((jar for jar in jars if isinstance(jar, Jar)), key=lambda jar: jar.label)),
                settings=spark_settings(loaded),
                auth_secret=config.coordinator.worker_secret.reveal() if config.coordinator.worker_secret else None,
            )
        ),
        mounts=mounts,
        enforcers=[enforcer for _, enforcer in made[len(catalogs) : len(catalogs) + len(policies)]],
        masks=MaskWriter(key=config.policy.mask_key, unkeyed=config.security.allow_unkeyed_hash_masks),
        decisions=DecisionCache(max_entries=config.policy.cache_max_entries, ttl_secs=config.policy.cache_ttl_secs),
        limits=query_limits(config.query),
        notify=plugins.calls.query_event,
        history=QueryHistory(max_entries=config.query_history.max_entries, ttl_secs=config.query_history.ttl_secs),
        metrics=metrics,
        slow_secs=config.query.slow_query_threshold_secs,
        full_text=config.query_history.full_text,
        admins=lambda identity: bool(identity.roles & admin_roles),
        closes_uncovered=config.auth is not None and config.policy.uncovered == "maker",
        roles=admin_roles.union(*config.auth.role_mappings.values()) if config.auth else (),
        audit=audit_log(loaded, metrics=metrics),
        engine_idle_secs=config.coordinator.session_context_cache_ttl_secs,
        attach=AttachRules(
            factory_of=plugins.catalog,
            context=CatalogContext(
                metrics=metrics,
                storage=file_properties(config.storage, None),
                # As production demands of those in the configuration.
                require_vended_credentials=production,
                production_mode=production,
                sqe_version=__version__,
            ),
            places=LocalPlaces(protected_places(loaded)),
            engine_jars=jars,
            shared_identity=not production or config.security.allow_shared_service_identity,
        ),
        kept_secrets=secrets_of(loaded),
        discovers=config.query.catalog_discovery == "polaris-auto",
        grant_store=_grant_store(instances),
        lineage=_lineage(config.metrics.openlineage, made[len(catalogs) + len(policies) :], metrics),
    )


def _lineage(
    config: OpenLineageConfig, sinks: Sequence[tuple[Instance, LineageSink]], metrics: Metrics
) -> Callable[[DatasetOf], Lineage] | None:
    if not sinks:
        return None
    options = LineageOptions(
        job_namespace=config.job_namespace,
        producer=config.producer,
        emit_selects=config.emit_selects,
        capacity=config.channel_capacity,
    )
    named = [(instance.name, sink) for instance, sink in sinks]
    return lambda dataset_of: Lineage(named, dataset_of=dataset_of, options=options, metrics=metrics)


def _grant_store(instances: Instances) -> Callable[[CatalogsOf], GrantStore] | None:
    for instance in instances.of(ExtensionPoint.GRANTS):
        return lambda catalogs: instance.create(catalogs=catalogs)
    return None
