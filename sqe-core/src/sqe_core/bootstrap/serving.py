"""A server: what a configuration describes, behind its protocols, with health and metrics."""

from __future__ import annotations

import logging
import os
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

from sqe_core import __version__
from sqe_core.bootstrap.composing import compose
from sqe_core.bootstrap.core import Sqe
from sqe_core.bootstrap.instances import configured_instances
from sqe_core.bootstrap.logins import browser_logins, device_logins, session_store
from sqe_core.bootstrap.options import listener_tls, rate_limits, tls_files
from sqe_core.config.listeners import LOOPBACK, bind_host
from sqe_core.config.loading import LoadedConfig
from sqe_core.engine.port import Engine, EngineState
from sqe_core.engine.spark.engine import SparkEngine
from sqe_core.observe.health import Probe, Readiness, health_routes
from sqe_core.observe.metrics import PrometheusMetrics, metrics_route, resident_bytes
from sqe_core.plugins.kinds import ExtensionPoint
from sqe_core.plugins.lifecycle import Component
from sqe_core.plugins.manager import PluginManager
from sqe_core.query.gateway import Gateway
from sqe_core.server import Server, ServerParts, StatusBoard
from sqe_core.session.rate_limits import RateLimiter
from sqe_core.spi.errors import ConfigError, StartupError
from sqe_core.spi.protocol import ServerState
from sqe_http.listener import HttpListener

_log = logging.getLogger(__name__)

# What takes longer is logged when the server is up.
_CHECK_SECS = 5.0


def serve(
    loaded: LoadedConfig,
    plugins: PluginManager | None = None,
    *,
    engine: Engine | None = None,
) -> Server:
    """Compose the server of a configuration: its protocols, health and metrics around `compose`. Nothing is bound yet.

    Without `[auth]` everything listens on loopback only; what is written was checked.

    Args:
        loaded: the configuration.
        plugins: the installed plugins; None looks for them.
        engine: an engine instead of the one of the file.

    Raises:
        ConfigError: plugins that are missing or broken, or settings of theirs that do not fit.
        StartupError: what a protocol needs is not there.
    """
    config = loaded.config
    metrics = PrometheusMetrics()
    plugins = plugins or PluginManager(sqe_version=__version__, metrics=metrics)
    instances = configured_instances(loaded, plugins, metrics=metrics)
    protocols = [(instance.name, instance.create()) for instance in instances.of(ExtensionPoint.PROTOCOL)]
    observers = [(instance, instance.create()) for instance in instances.of(None)]
    with ExitStack() as made:
        sqe = compose(loaded, plugins, engine=engine, metrics=metrics, instances=instances)
        made.callback(sqe.release)
        status = StatusBoard(sqe.engine, __version__)
        sessions = session_store(sqe, loaded, plugins, metrics=metrics, instances=instances)
        made.callback(sessions.close)
        metrics.watch("sqe_active_sessions", lambda: sessions.count)
        _watch(metrics, sqe, status, memory_limit=config.coordinator.memory_limit)
        server = Server(
            ServerParts(
                engine=sqe.engine,
                service=sqe.service,
                status=status,
                gateway=Gateway(
                    store=sessions,
                    service=sqe.service,
                    status=status.current,
                    rates=RateLimiter(rate_limits(config.rate_limit), metrics=metrics),
                    browser_logins=browser_logins(sessions, config.auth),
                    device_logins=device_logins(sessions, config.auth),
                ),
                protocols=protocols,
                listeners=_listeners(loaded, sqe, status, metrics),
                components=[
                    Component(name="the checks of catalogs and policies", start=lambda: _check(sqe)),
                    Component(name="sessions", stop=sessions.close),
                    *(replace(each, start=partial(instance.attempt, each.start)) for instance, each in observers),
                ],
                close=sqe.release,
                drain_secs=config.coordinator.shutdown_drain_secs,
                off=instances.off,
                needs_tls=tls_files(loaded.config) is not None,
            )
        )
        made.pop_all()  # whoever stops the server closes them
    return server


def _listeners(
    loaded: LoadedConfig, sqe: Sqe, status: StatusBoard, metrics: PrometheusMetrics
) -> tuple[HttpListener, ...]:
    """Health, so that it is there first and goes last, and metrics; both speak TLS when the protocols do (OBS-7)."""
    config = loaded.config.metrics
    if not config.prometheus_port:
        return ()
    host, tls, token = bind_host(loaded.config), tls_files(loaded.config), config.scrape_token
    guarded = token is not None or (tls is not None and tls.ca_file is not None)
    readiness = Readiness(
        engine_ready=status.engine_ready,
        draining=lambda: status.draining,
        catalogs=[Probe(f"catalog {mount.name}", mount.backend.check) for mount in sqe.catalogs.mounts()],
    )
    return (
        HttpListener(
            "health",
            config.health_bind_address or host,
            config.prometheus_port + 1,
            health_routes(readiness, status.current),
            tls=listener_tls(tls),
        ),
        HttpListener(
            "metrics",
            # In production nobody reads them who is neither on this machine nor known (OBS-6).
            config.bind_address or (host if guarded or not loaded.config.coordinator.production_mode else LOOPBACK),
            config.prometheus_port,
            metrics_route(metrics),
            tls=listener_tls(tls, tls.ca_file if tls else None),
            bearer=token.reveal() if token else None,
        ),
    )


def _check(sqe: Sqe) -> None:
    """See that catalogs and policy engines can be used; what is only down may come back, and is logged.

    Raises:
        ConfigError, StartupError: one that will not work like this.
    """
    probes = [
        Probe(f"catalog {mount.name}", mount.backend.check, timeout_secs=_CHECK_SECS) for mount in sqe.catalogs.mounts()
    ]
    for enforcer in sqe.enforcers:
        probes.append(Probe(f"policy engine {type(enforcer).__name__}", enforcer.check, timeout_secs=_CHECK_SECS))
    for probe in probes:
        probe.begin()
    for probe in probes:
        if probe.passed():
            continue
        if isinstance(probe.error, ConfigError):
            raise ConfigError(tuple(f"{probe.name}: {fault}" for fault in probe.error.faults))
        if isinstance(probe.error, StartupError):
            raise StartupError(f"{probe.name}: {probe.error.message}", hint=probe.error.hint)


def _watch(metrics: PrometheusMetrics, sqe: Sqe, status: StatusBoard, *, memory_limit: int) -> None:
    """Tell the metrics what they read at each scrape."""
    engine = sqe.engine
    metrics.gauge("sqe_build_info", 1, {"version": __version__})
    metrics.gauge("sqe_coordinator_memory_limit_bytes", memory_limit)
    metrics.watch("sqe_coordinator_rss_bytes", lambda: resident_bytes(os.getpid()))
    metrics.watch("sqe_active_queries", lambda: sqe.service.running)
    metrics.watch_states("sqe_engine_state", [state.value for state in EngineState], lambda: engine.state.value)
    states = [state.value for state in ServerState]
    metrics.watch_states("sqe_server_state", states, lambda: status.current().state.value)
    if isinstance(engine, SparkEngine):
        metrics.watch("sqe_engine_rss_bytes", lambda: resident_bytes(engine.pid))
        engine.on_lost(lambda: metrics.count("sqe_engine_restarts_total"))
