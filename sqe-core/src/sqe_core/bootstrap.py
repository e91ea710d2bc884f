"""The only place that wires objects together: configuration in, a running SQE out."""

from __future__ import annotations

import functools
import logging
import os
import shutil
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from sqe_core import __version__
from sqe_core.catalog.attaching import Attachments, AttachRules
from sqe_core.catalog.backends import SqliteBackend
from sqe_core.catalog.discovery import FoundCatalogs
from sqe_core.catalog.local_places import LocalPlaces
from sqe_core.catalog.registry import CatalogRegistry, Mount
from sqe_core.catalog.secret_file import SecretFile, read_or_make_key
from sqe_core.catalog.secret_store import Secrets
from sqe_core.catalog.storage import file_properties
from sqe_core.config.binder import bind
from sqe_core.config.catalog_names import mounted_catalogs
from sqe_core.config.kinds import LISTENERS
from sqe_core.config.loading import LoadedConfig
from sqe_core.config.login_chain import login_chain
from sqe_core.config.origin import Fault
from sqe_core.config.places import configured_places
from sqe_core.config.sections.auth import AuthConfig
from sqe_core.config.sections.policy import RateLimitConfig
from sqe_core.config.sections.query import EngineConfig, QueryConfig
from sqe_core.engine.port import Engine, EngineState, Progress
from sqe_core.engine.spark.engine import ClassArchive, EngineOptions, SparkEngine
from sqe_core.engine.spark.options import default_cache_dir, home_dir
from sqe_core.observe.audit import AuditLog
from sqe_core.observe.health import Probe, Readiness, health_routes
from sqe_core.observe.history import QueryHistory
from sqe_core.observe.http import HttpListener, ListenerTls
from sqe_core.observe.metrics import PrometheusMetrics, metrics_route, resident_bytes
from sqe_core.plugins.kinds import KNOWN_DISTRIBUTIONS, ExtensionPoint, Kind
from sqe_core.plugins.lifecycle import Component
from sqe_core.plugins.manager import PluginManager
from sqe_core.policy.authorizer import Authorizer
from sqe_core.policy.builtin import AllowAllEnforcer
from sqe_core.policy.cache import DecisionCache
from sqe_core.policy.masks import MaskWriter
from sqe_core.policy.outside import OutsideGrants
from sqe_core.policy.read_restrictions import CatalogRestrictions
from sqe_core.query.answers.completion import CompletionCache, VisibleNames
from sqe_core.query.gateway import Gateway
from sqe_core.query.ingest.rows import IngestLimits
from sqe_core.query.ingest.types import SchemaLimits
from sqe_core.query.judge.inspect import PlanLimits
from sqe_core.query.parts import QueryParts
from sqe_core.query.run.admission import QueryLimits
from sqe_core.query.run.audited import SessionAudit, StatementAudit
from sqe_core.query.run.record import Notify, Recorder
from sqe_core.query.run.result import StatementResult
from sqe_core.query.run.running import EndReason
from sqe_core.query.service import Parameters, QueryService
from sqe_core.server import Server, ServerParts, StatusBoard
from sqe_core.session.attempts import LoginAttempts
from sqe_core.session.directory import SessionDirectory
from sqe_core.session.engine_pool import EnginePool
from sqe_core.session.login import LoginChain
from sqe_core.session.pending_logins import WaitingBrowserLogins, WaitingDeviceLogins
from sqe_core.session.rate_limits import RateLimiter, RateLimits
from sqe_core.session.session import Session
from sqe_core.session.store import SessionLimits, SessionStore
from sqe_core.spi.auth import AuthProvider, ClientInfo, SupportsBrowserLogin, SupportsDeviceLogin
from sqe_core.spi.catalog import CatalogBackend, CatalogContext, CatalogFactory
from sqe_core.spi.errors import ConfigError, ObjectNotFoundError, SqeError, StartupError
from sqe_core.spi.factory import Metrics, NoMetrics, PluginContext
from sqe_core.spi.grants import GrantStore, GrantStoreContext
from sqe_core.spi.identity import Identity
from sqe_core.spi.policy import PolicyEnforcer
from sqe_core.spi.protocol import BrowserLogins, DeviceLogins, ProtocolContext, ProtocolServer, ServerState, TlsFiles
from sqe_core.sql.reader import Reader
from sqe_core.sql.spark import functions
from sqe_core.sql.statement import ScriptStatement

_log = logging.getLogger(__name__)

EMBEDDED_CATALOG = "iceberg"
DEFAULT_SCHEMA = ("default",)

CatalogsOf = Callable[[], Mapping[str, CatalogBackend]]
"""Returns what serves each catalog at this moment."""

# A person at their own machine: the file permissions of the warehouse are the only login there is.
OWNER = Identity(issuer="sqe:embedded", subject="owner", username="owner", provider="embedded", personal=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sqe:
    """A running SQE: what protocols and the command line stand on."""

    engine: Engine
    catalogs: CatalogRegistry
    service: QueryService
    history: QueryHistory
    enforcers: tuple[PolicyEnforcer, ...] = ()
    audit: AuditLog | None = None
    sessions: SessionDirectory = field(default_factory=SessionDirectory)
    pool: EnginePool = field(default_factory=EnginePool)
    engine_idle_secs: float = 60
    found: FoundCatalogs | None = None
    outside: GrantStore | None = None

    def open_session(
        self, identity: Identity, *, catalog: str, protocol: str, client_address: str | None = None
    ) -> Session:
        """Open a session for somebody who was authenticated."""
        return Session(
            identity=identity,
            engine=self.engine,
            catalogs=self.catalogs,
            catalog=catalog,
            schema=DEFAULT_SCHEMA,
            protocol=protocol,
            client_address=client_address,
            is_busy=self.service.is_running,
            pool=self.pool,
            engine_idle_secs=self.engine_idle_secs,
            found=self.found,
        )

    def close(self) -> None:
        """Stop in reverse order."""
        self.engine.stop()
        self.release()

    def release(self) -> None:
        """Free what catalogs, policy engines and the audit hold, when no statement runs any more."""
        self.catalogs.close()
        if self.found is not None:
            self.found.close()
        for enforcer in self.enforcers:
            enforcer.close()
        if self.outside is not None:
            self.outside.close()
        if self.audit is not None:
            self.audit.close()


def build(
    *,
    engine: Engine,
    mounts: Sequence[Mount],
    enforcers: Sequence[PolicyEnforcer],
    limits: QueryLimits,
    notify: Notify | None = None,
    history: QueryHistory | None = None,
    metrics: Metrics | None = None,
    slow_secs: float = 0,
    full_text: bool = False,
    masks: MaskWriter | None = None,
    decisions: DecisionCache | None = None,
    admins: Callable[[Identity], bool] = lambda identity: False,
    audit: AuditLog | None = None,
    engine_idle_secs: float = 60,
    attach: AttachRules | None = None,
    kept_secrets: Secrets | None = None,
    discovers: bool = False,
    grant_store: Callable[[CatalogsOf], GrantStore] | None = None,
) -> Sqe:
    """Wire an SQE around an engine, which need not have started yet.

    Without `attach`, what is installed can be attached from everywhere: people at their own machine may. `grant_store`
    makes the store that keeps grants and roles in the place of the policy engines; it is told which catalogs there are.
    """
    catalogs = CatalogRegistry(mounts)
    history = history or QueryHistory()
    sessions = SessionDirectory()
    found = FoundCatalogs() if discovers else None

    def backends() -> Mapping[str, CatalogBackend]:
        mounted = {mount.name: mount.backend for mount in catalogs.mounts()}
        return {**(found.backends() if found else {}), **mounted}

    authorizer = Authorizer(enforcers, masks=masks, cache=decisions, catalogs=CatalogRestrictions(backends))

    def rights_changed() -> None:
        authorizer.flush()
        for backend in backends().values():
            backend.flush()

    outside = OutsideGrants(grant_store(backends), rights_changed) if grant_store is not None else None
    service = QueryService(
        QueryParts(
            engine=engine,
            reader=Reader(),
            catalogs=catalogs,
            attachments=Attachments(
                catalogs, attach or AttachRules(factory_of=_installed_catalog), kept_secrets, changed=authorizer.flush
            ),
            authorizer=authorizer,
            recorder=Recorder(
                history,
                notify=notify,
                metrics=metrics,
                slow_secs=slow_secs,
                full_text=full_text,
                audit=StatementAudit(audit) if audit is not None else None,
            ),
            limits=limits,
            plan_limits=PlanLimits(),
            template_functions=functions.template_names(),
            functions=functions.documented,
            admins=admins,
            sessions=sessions,
            outside=outside,
        )
    )
    return Sqe(
        engine=engine,
        catalogs=catalogs,
        service=service,
        history=history,
        enforcers=tuple(enforcers),
        audit=audit,
        sessions=sessions,
        engine_idle_secs=engine_idle_secs,
        found=found,
        outside=outside,
    )


@functools.cache
def _installed() -> PluginManager:
    return PluginManager(sqe_version=__version__)


def _installed_catalog(kind: str) -> CatalogFactory[Any]:
    return _installed().catalog(kind)


def compose(
    loaded: LoadedConfig,
    plugins: PluginManager | None = None,
    *,
    engine: Engine | None = None,
    metrics: Metrics | None = None,
) -> Sqe:
    """Build what a configuration file describes: its catalogs, policy engines, limits and engine, not started.

    Only the distributions whose kinds the file names are imported.

    Args:
        loaded: the configuration.
        plugins: the installed plugins; None looks for them.
        engine: an engine that runs already, instead of the one of the file.
        metrics: where to count.

    Raises:
        ConfigError: settings of plugins that do not fit, every fault of them.
        PluginError: a plugin that is missing or broken.
    """
    config = loaded.config
    metrics = metrics or NoMetrics()
    plugins = plugins or PluginManager(sqe_version=__version__)
    production = config.coordinator.production_mode
    faults: list[str] = []
    mounts: list[Mount] = []
    jars: set[str] = set()
    for entry in mounted_catalogs(config):
        catalog_factory = plugins.catalog(entry.kind)
        settings, found = bind(entry.config.options, catalog_factory.config_type)
        faults += found
        if settings is not None:
            required = entry.config.require_vended_credentials
            backend = catalog_factory.create(
                entry.name,
                settings,
                CatalogContext(
                    metrics=metrics,
                    storage=file_properties(config.storage, entry.config.storage, vended_only=required),
                    require_vended_credentials=required,
                    production_mode=production,
                    sqe_version=__version__,
                ),
            )
            if config.auth is not None and backend.identity_mode == "shared":
                _log.warning("everybody is one identity at catalog %s: policies here decide alone", entry.name)
            jars.update(backend.required_jars())
            mounts.append(Mount(name=entry.name, backend=backend, aliases=entry.aliases))
    enforcers: list[PolicyEnforcer] = []
    for kind in config.policy.engines:
        policy_factory = plugins.policy_enforcer(kind)
        settings, found = bind(loaded.engine_table(kind), policy_factory.config_type)
        faults += found
        if settings is not None:
            enforcers.append(
                policy_factory.create(
                    kind,
                    settings,
                    PluginContext(
                        metrics=metrics,
                        state_dir=state_dir(loaded.environ),
                        production_mode=production,
                        sqe_version=__version__,
                    ),
                )
            )
    grant_store: Callable[[CatalogsOf], GrantStore] | None = None
    backend_kind = config.access_control.backend
    if backend_kind != "none":
        store_factory = plugins.grant_store(backend_kind)
        settings, found = bind(loaded.grant_store_table(), store_factory.config_type)
        faults += found
        if settings is not None:

            def grant_store(catalogs: CatalogsOf) -> GrantStore:
                context = GrantStoreContext(
                    metrics=metrics,
                    state_dir=state_dir(loaded.environ),
                    production_mode=production,
                    sqe_version=__version__,
                    catalogs=catalogs,
                )
                return store_factory.create(backend_kind, settings, context)

    if faults:
        raise ConfigError(tuple(faults))
    query = config.query
    admin_roles = frozenset(config.auth.admin_roles) if config.auth else frozenset[str]()
    options = engine_options(config.engine)
    jars |= options.jar_groups
    return build(
        engine=engine
        or SparkEngine(
            replace(
                options,
                memory_bytes=config.coordinator.memory_limit,
                local_dir=Path(config.coordinator.spill_dir),
                jar_groups=frozenset(jars),
                settings=spark_settings(loaded),
                auth_secret=config.coordinator.worker_secret.reveal() if config.coordinator.worker_secret else None,
            )
        ),
        mounts=mounts,
        enforcers=enforcers,
        masks=MaskWriter(key=config.policy.mask_key, unkeyed=config.security.allow_unkeyed_hash_masks),
        decisions=DecisionCache(max_entries=config.policy.cache_max_entries, ttl_secs=config.policy.cache_ttl_secs),
        limits=QueryLimits(
            timeout_secs=query.timeout_secs,
            max_result_rows=query.max_result_rows,
            max_result_bytes=query.max_result_bytes,
            max_sql_bytes=query.max_sql_bytes,
            max_concurrent_queries=query.max_concurrent_queries,
            max_concurrent_per_user=query.max_concurrent_per_user,
            max_queued_queries=query.max_queued_queries,
            queue_timeout_secs=query.queue_timeout_secs,
            ingest=ingest_limits(query),
        ),
        notify=plugins.calls.query_event,
        history=QueryHistory(max_entries=config.query_history.max_entries, ttl_secs=config.query_history.ttl_secs),
        metrics=metrics,
        slow_secs=query.slow_query_threshold_secs,
        full_text=config.query_history.full_text,
        admins=lambda identity: bool(identity.roles & admin_roles),
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
            engine_jars=frozenset(jars),
            shared_identity=not production or config.security.allow_shared_service_identity,
        ),
        kept_secrets=secrets_of(loaded),
        discovers=query.catalog_discovery == "polaris-auto",
        grant_store=grant_store,
    )


def protected_places(loaded: LoadedConfig) -> frozenset[Path]:
    """Return what of this machine cannot be attached: settings, state, caches, and the programs that run here."""
    environ, java = loaded.environ, loaded.config.engine.java_home
    own = (state_dir(environ), default_cache_dir(environ), Path(java) if java else None)
    code = (Path(__file__).parent, Path(sys.prefix), Path(sys.base_prefix))
    return configured_places(loaded) | {path for path in own if path is not None} | frozenset(code)


def secrets_of(loaded: LoadedConfig) -> Secrets:
    """Return where CREATE SECRET keeps what it is given. Raises StartupError when the file cannot be used."""
    session = loaded.config.session
    if not session.secrets_path:
        return Secrets()
    key = session.secrets_key
    if key is None:
        folder = state_dir(loaded.environ)
        if folder is None:
            raise StartupError("session.secrets_path needs session.secrets_key here", hint="this user has no home")
        key = read_or_make_key(folder / "secrets.key")
    return Secrets(SecretFile(Path(session.secrets_path).expanduser().absolute(), key))


def audit_log(loaded: LoadedConfig, *, metrics: Metrics | None = None) -> AuditLog | None:
    """Open the audit log of a configuration; None when it has none. Raises StartupError when it cannot be used."""
    config = loaded.config.metrics
    if not config.audit_log_path:
        return None
    path = Path(config.audit_log_path).expanduser()
    return AuditLog(path, refuse=config.audit.on_failure == "refuse", metrics=metrics)


def state_dir(environ: Mapping[str, str]) -> Path | None:
    """Return where a server keeps what it cannot make again: `$XDG_STATE_HOME/sqe`, else `~/.local/state/sqe`."""
    base = environ.get("XDG_STATE_HOME", "")
    if os.path.isabs(base):
        return Path(base) / "sqe"
    home = home_dir()
    return home / ".local" / "state" / "sqe" if home else None


LOOPBACK = "127.0.0.1"
EVERYWHERE = "0.0.0.0"  # noqa: S104 - a server whose clients log in


def serve(
    loaded: LoadedConfig,
    plugins: PluginManager | None = None,
    *,
    engine: Engine | None = None,
) -> Server:
    """Compose the server of a configuration: its protocols, health and metrics around `compose`. Nothing is bound yet.

    Without `[auth]` everything listens on loopback only (features §1.0); what is written was checked.

    Args:
        loaded: the configuration.
        plugins: the installed plugins; None looks for them.
        engine: an engine instead of the one of the file.

    Raises:
        ConfigError: settings of plugins that do not fit.
        PluginError: a plugin that is missing or broken; a port was written for a protocol that nobody provides.
        StartupError: what a protocol needs is not there.
    """
    config = loaded.config
    metrics = PrometheusMetrics()
    plugins = plugins or PluginManager(sqe_version=__version__, metrics=metrics)
    protocols, off = _protocols(loaded, plugins, metrics)
    with ExitStack() as made:
        sqe = compose(loaded, plugins, engine=engine, metrics=metrics)
        made.callback(sqe.release)
        status = StatusBoard(sqe.engine, __version__)
        sessions = session_store(sqe, loaded, plugins, metrics=metrics)
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
                    admin_roles=frozenset(config.auth.admin_roles) if config.auth else frozenset(),
                    rates=RateLimiter(rate_limits(config.rate_limit), metrics=metrics),
                    browser_logins=browser_logins(sessions, config.auth),
                    device_logins=device_logins(sessions, config.auth),
                ),
                protocols=protocols,
                listeners=_listeners(loaded, sqe, status, metrics),
                components=[Component(name="sessions", stop=sessions.close), *_observers(loaded, plugins, metrics)],
                close=sqe.release,
                drain_secs=config.coordinator.shutdown_drain_secs,
                off=off,
                needs_tls=_tls_files(loaded) is not None,
            )
        )
        made.pop_all()  # whoever stops the server closes them
    return server


def _protocols(
    loaded: LoadedConfig, plugins: PluginManager, metrics: Metrics
) -> tuple[list[tuple[str, ProtocolServer]], list[str]]:
    """Create the server of every protocol that has a port, and say which ones are not served."""
    coordinator = loaded.config.coordinator
    tls = _tls_files(loaded)
    servers: list[tuple[str, ProtocolServer]] = []
    off: list[str] = []
    faults: list[str] = []
    for key, name in LISTENERS.items():
        port: int = getattr(coordinator, key)
        kind = Kind(ExtensionPoint.PROTOCOL, name)
        provided = any(kind in declared.kinds for declared in plugins.declared)
        if not port:
            continue
        if not provided and not loaded.sources.is_written("coordinator", key):
            # A default is nobody's wish: without its plugin the protocol is off.
            distribution = KNOWN_DISTRIBUTIONS.get(kind)
            how = f" (pip install {distribution})" if distribution else ""
            off.append(f"the {kind.label} is off: it is not installed{how}")
            continue
        factory = plugins.protocol(name)
        settings, found = bind(loaded.settings("coordinator"), factory.config_type)
        faults += found
        if settings is not None:
            context = ProtocolContext(
                metrics=metrics,
                production_mode=coordinator.production_mode,
                sqe_version=__version__,
                bind_host=_host(loaded),
                port=port,
                tls=tls,
                trusted_proxies=loaded.config.security.trusted_proxies,
                stream_idle_secs=loaded.config.query.stream_idle_timeout_secs,
            )
            servers.append((name, factory.create(name, settings, context)))
    if faults:
        raise ConfigError(tuple(faults))
    return servers, off


def _host(loaded: LoadedConfig) -> str:
    written = loaded.config.coordinator.bind_address
    return written or (LOOPBACK if loaded.config.auth is None else EVERYWHERE)


def _tls_files(loaded: LoadedConfig) -> TlsFiles | None:
    tls = loaded.config.coordinator.tls
    if not tls.cert_file or not tls.key_file:
        return None
    return TlsFiles(
        cert_file=Path(tls.cert_file),
        key_file=Path(tls.key_file),
        ca_file=Path(tls.ca_file) if tls.ca_file else None,
    )


def _listeners(
    loaded: LoadedConfig, sqe: Sqe, status: StatusBoard, metrics: PrometheusMetrics
) -> tuple[HttpListener, ...]:
    """Health, so that it is there first and goes last, and metrics; both speak TLS when the protocols do (OBS-7)."""
    config = loaded.config.metrics
    if not config.prometheus_port:
        return ()
    host, tls, token = _host(loaded), _tls_files(loaded), config.scrape_token
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
            tls=ListenerTls(tls.cert_file, tls.key_file) if tls else None,
        ),
        HttpListener(
            "metrics",
            # In production nobody reads them who is neither on this machine nor known (OBS-6).
            config.bind_address or (host if guarded or not loaded.config.coordinator.production_mode else LOOPBACK),
            config.prometheus_port,
            metrics_route(metrics),
            tls=ListenerTls(tls.cert_file, tls.key_file, tls.ca_file) if tls else None,
            bearer=token,
        ),
    )


def _observers(loaded: LoadedConfig, plugins: PluginManager, metrics: Metrics) -> list[Component]:
    """The plugins of `[plugins.<name>]`, which provide no kind and watch."""
    context = PluginContext(
        metrics=metrics, production_mode=loaded.config.coordinator.production_mode, sqe_version=__version__
    )
    components: list[Component] = []
    faults: list[str] = []
    for name, table in loaded.config.plugins.items():
        settings, found = bind(table, plugins.plugin(name).config_type)
        faults += found
        if settings is not None:
            components.append(plugins.observer(name, settings, context))
    if faults:
        raise ConfigError(tuple(faults))
    return components


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


def login_providers(
    loaded: LoadedConfig, plugins: PluginManager, *, metrics: Metrics | None = None
) -> Sequence[tuple[str, AuthProvider]]:
    """Create the login providers of a configuration, in its order, each with a name of its own.

    Raises:
        ConfigError: settings that do not fit, or that `production_mode` refuses, every fault of them.
        PluginError: a plugin that is missing or broken.
        StartupError: what a provider needs is not there.
    """
    production = loaded.config.coordinator.production_mode
    context = PluginContext(metrics=metrics or NoMetrics(), production_mode=production, sqe_version=__version__)
    providers: list[tuple[str, AuthProvider]] = []
    faults: list[str] = []
    seen: Counter[str] = Counter()
    try:
        for entry in login_chain(loaded.config):
            factory = plugins.auth_provider(entry.kind)
            settings, found = bind(entry.options, factory.config_type)
            faults += found
            if settings is None:
                continue
            seen[entry.kind] += 1
            name = entry.kind if seen[entry.kind] == 1 else f"{entry.kind}-{seen[entry.kind]}"
            provider = factory.create(name, settings, context)
            providers.append((name, provider))
            if production and provider.production_objection:
                refusal = f"refused by production_mode: {provider.production_objection}"
                faults.append(str(Fault(entry.path, refusal, loaded.sources.place(*entry.path))))
        if faults:
            raise ConfigError(tuple(faults))
    except BaseException:
        for _, provider in providers:
            provider.close()
        raise
    return providers


def session_store(
    sqe: Sqe, loaded: LoadedConfig, plugins: PluginManager, *, metrics: Metrics | None = None
) -> SessionStore:
    """Compose who may log in and who is connected. Closing the store closes the login providers too.

    Without `[auth]` everybody is one anonymous user. Raises what `login_providers` raises.
    """
    config = loaded.config
    chain = LoginChain(
        login_providers(loaded, plugins, metrics=metrics),
        # Guessing is limited whether or not statements are (AUTHN-7).
        attempts=LoginAttempts(config.rate_limit.auth_attempts_per_minute, metrics=metrics),
        timeout_secs=config.coordinator.auth_handshake_timeout_secs,
        allow_insecure_transport=config.security.allow_insecure_transport,
        metrics=metrics,
        role_mappings=config.auth.role_mappings if config.auth else MappingProxyType({}),
    )
    mounts = mounted_catalogs(config)
    catalog = next((mount.name for mount in mounts if mount.default), mounts[0].name if mounts else EMBEDDED_CATALOG)

    def open_session(identity: Identity, client: ClientInfo) -> Session:
        return sqe.open_session(identity, catalog=catalog, protocol=client.protocol, client_address=client.address)

    store = SessionStore(
        chain,
        open_session=open_session,
        close_session=sqe.service.close_session,
        kill_session=lambda session: sqe.service.close_session(session, reason=EndReason.KILLED),
        expire_session=lambda session: sqe.service.close_session(session, reason=EndReason.EXPIRED),
        is_busy=sqe.service.is_running,
        limits=SessionLimits(
            idle_secs=config.session.idle_timeout_secs,
            absolute_secs=config.session.absolute_timeout_secs,
            sweep_secs=config.session.expiry_sweep_interval_secs,
            most=config.session.max_sessions,
            most_per_user=config.session.max_sessions_per_user,
            refresh_buffer_secs=config.auth.token_refresh_buffer_secs if config.auth else 60,
        ),
        observer=SessionAudit(sqe.audit) if sqe.audit is not None else None,
    )
    sqe.sessions.serve(store)
    return store


def browser_logins(sessions: SessionStore, auth: AuthConfig | None) -> BrowserLogins | None:
    """Return the logins of `[auth.external]`; None when there are none."""
    external = auth.external if auth else None
    if external is None or not sessions.chain.offers(SupportsBrowserLogin):
        return None
    return WaitingBrowserLogins(
        sessions.chain, sessions, redirect_uri=external.redirect_uri, ttl_secs=external.challenge_timeout_secs
    )


def device_logins(sessions: SessionStore, auth: AuthConfig | None) -> DeviceLogins | None:
    """Return the logins of `[auth.external.device]`; None when there are none."""
    external = auth.external if auth else None
    if external is None or external.device is None or not sessions.chain.offers(SupportsDeviceLogin):
        return None
    return WaitingDeviceLogins(sessions.chain, sessions, ttl_secs=external.challenge_timeout_secs)


def rate_limits(config: RateLimitConfig) -> RateLimits | None:
    """Return the bounds of `[rate_limit]`; None when it is off. Logins have a bound in any case."""
    if not config.enabled:
        return None
    return RateLimits(
        statements_per_user=config.per_user_queries_per_minute,
        statements_of_all=config.global_queries_per_minute,
        metadata_per_user=config.metadata_per_user_per_minute,
    )


def ingest_limits(query: QueryConfig) -> IngestLimits:
    """Return what `[query]` says about bulk ingests; how the rows are kept meanwhile is nobody's choice."""
    return IngestLimits(
        total_bytes=query.max_ingest_bytes,
        batch_bytes=query.max_ingest_batch_bytes,
        batch_rows=query.max_ingest_batch_rows,
        disk_reserve_bytes=query.ingest_disk_reserve,
        schema=SchemaLimits(columns=query.max_ingest_columns),
    )


def engine_options(engine: EngineConfig) -> EngineOptions:
    """Return what `[engine]` says; the rest has its defaults."""
    options = EngineOptions(
        master=engine.master,
        java_home=Path(engine.java_home) if engine.java_home else None,
        jar_dir=Path(engine.jar_dir) if engine.jar_dir else None,
        jar_mirror=engine.jar_mirror or None,
        jar_groups=frozenset(engine.jar_groups),
        class_archive=ClassArchive(engine.class_archive),
    )
    return replace(options, cache_dir=Path(engine.cache_dir)) if engine.cache_dir else options


# The shuffle's codec wins.
_COMPRESSION = {"spill_compression": "spark.shuffle.spill.compress", "shuffle_compression": "spark.shuffle.compress"}


def spark_settings(loaded: LoadedConfig) -> Mapping[str, str]:
    """Return what the tuning keys become on Spark (features §17); what nobody wrote stays as the engine has it."""
    coordinator, sources = loaded.config.coordinator, loaded.sources
    settings: dict[str, str] = {}
    if sources.is_written("optimizer", "broadcast_threshold"):
        # Spark's word for never is -1; a threshold of 0 would still broadcast what is empty.
        settings["spark.sql.autoBroadcastJoinThreshold"] = str(loaded.config.optimizer.broadcast_threshold or -1)
    for key, switch in _COMPRESSION.items():
        if not sources.is_written("coordinator", key):
            continue
        codec = getattr(coordinator, key)
        settings[switch] = "false" if codec == "none" else "true"
        if codec != "none":
            settings["spark.io.compression.codec"] = codec
    return settings


def open_embedded(
    warehouse: Path,
    *,
    catalogs: Mapping[str, Path] | None = None,
    in_memory: bool = False,
    engine_options: EngineOptions | None = None,
    engine: Engine | None = None,
) -> EmbeddedSqe:
    """Open a warehouse in this process, and create it when there is none. Returns while the engine starts.

    Args:
        warehouse: the folder of the warehouse.
        catalogs: further SQLite catalogs, by the name they get.
        in_memory: use a folder that goes away at the end instead of `warehouse`.
        engine_options: what the engine may use.
        engine: an engine that others use too; it is not stopped with this warehouse.
    """
    temporary = Path(tempfile.mkdtemp(prefix="sqe-memory-")) if in_memory else None
    folder = temporary or warehouse.expanduser().absolute()
    options = engine_options or EngineOptions()
    try:
        mounts = [Mount(name=EMBEDDED_CATALOG, backend=_open_folder(folder, "sqe.db"))]
        for name, path in (catalogs or {}).items():
            path = path.expanduser().absolute()
            # A new folder looks like the main one, so that --warehouse opens it as well.
            old = (path / "catalog.db").exists() and not (path / "sqe.db").exists()
            file = "catalog.db" if old else "sqe.db"
            mounts.append(Mount(name=name, backend=_open_folder(path, file)))
        sqe = build(
            engine=engine or SparkEngine(options),
            mounts=mounts,
            enforcers=[AllowAllEnforcer()],
            admins=lambda identity: True,
            attach=AttachRules(factory_of=_installed_catalog, engine_jars=options.jar_groups),
            limits=QueryLimits(timeout_secs=0, max_result_rows=0, max_result_bytes=0, max_sql_bytes=16 * 1024 * 1024),
        )
    except BaseException:
        if temporary:
            shutil.rmtree(temporary, ignore_errors=True)
        raise
    sqe.engine.start()
    return EmbeddedSqe(sqe, temporary=temporary, owns_engine=engine is None)


def _open_folder(folder: Path, file: str) -> SqliteBackend:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError((f"the warehouse {folder} cannot be made: {error.strerror}",)) from error
    return SqliteBackend.at(folder, file)


class EmbeddedSqe:
    """One session on an embedded warehouse: what `sqe-cli` and the tests talk to."""

    def __init__(self, sqe: Sqe, *, temporary: Path | None = None, owns_engine: bool = True) -> None:
        self.sqe = sqe
        self._owns_engine = owns_engine
        self.session = sqe.open_session(OWNER, catalog=EMBEDDED_CATALOG, protocol="embedded")
        self._temporary = temporary
        self._reader = Reader()
        self._first = threading.Lock()
        self._schema_checked = False
        self._names = CompletionCache(
            lambda: sqe.service.visible(self.session),
            ready=lambda: sqe.engine.state is EngineState.READY,
            catalogs=sqe.catalogs.names,
        )

    @property
    def current(self) -> tuple[str, str]:
        """The session's catalog and schema."""
        return self.session.catalog, ".".join(self.session.schema)

    def execute(self, sql: str, parameters: Parameters = ()) -> StatementResult:
        """Run one statement."""
        self._ensure_default_schema()
        return self.sqe.service.execute(self.session, sql, parameters=parameters)

    def _ensure_default_schema(self) -> None:
        """A new warehouse has the schema `default`, as people expect of a database they just made."""
        with self._first:
            if self._schema_checked:
                return
            mount = self.session.catalogs.find(EMBEDDED_CATALOG)
            assert mount is not None
            quick = mount.backend.quick_metadata(OWNER)
            if quick is None or DEFAULT_SCHEMA not in quick.list_namespaces():
                try:
                    metadata = self.session.metadata(mount)
                    if DEFAULT_SCHEMA not in metadata.list_namespaces():
                        metadata.create_namespace(DEFAULT_SCHEMA, {})
                except ObjectNotFoundError:
                    raise
                except SqeError:
                    # Another process made it at the same moment.
                    if DEFAULT_SCHEMA not in self.session.metadata(mount).list_namespaces():
                        raise
            self._schema_checked = True

    def cancel(self) -> None:
        """End the running statement. From any thread."""
        self.sqe.service.cancel(self.session)

    def progress(self) -> Progress | None:
        """How far the running statement is."""
        return self.sqe.service.progress(self.session)

    def engine_state(self) -> EngineState:
        """Where the engine is in its life."""
        return self.sqe.engine.state

    def on_engine_progress(self, listener: Callable[[str, float | None], None]) -> None:
        """Report the steps of a long first start."""
        self.sqe.engine.on_progress(listener)

    def split(self, script: str) -> Sequence[ScriptStatement]:
        """Split a script at its semicolons."""
        return self._reader.split(script)

    def names(self) -> VisibleNames:
        """What can be completed right now; never waits for the engine."""
        return self._names.current()

    def close(self) -> None:
        """End the session and the engine. Idempotent."""
        self.sqe.service.close_session(self.session)
        if self._owns_engine:
            self.sqe.close()
        if self._temporary:
            shutil.rmtree(self._temporary, ignore_errors=True)
