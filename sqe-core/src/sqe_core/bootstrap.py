"""The only place that wires objects together: configuration in, a running SQE out."""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sqe_core import __version__
from sqe_core.catalog.backends import SqliteBackend
from sqe_core.catalog.registry import CatalogRegistry, Mount
from sqe_core.config.binder import bind
from sqe_core.config.catalog_names import mounted_catalogs
from sqe_core.config.loading import LoadedConfig
from sqe_core.config.login_chain import login_chain
from sqe_core.config.origin import Fault
from sqe_core.config.sections.query import EngineConfig
from sqe_core.engine.port import Engine, EngineState, Progress
from sqe_core.engine.spark.engine import ClassArchive, EngineOptions, SparkEngine
from sqe_core.observe.history import QueryHistory
from sqe_core.plugins.manager import PluginManager
from sqe_core.policy.authorizer import Authorizer
from sqe_core.policy.builtin import AllowAllEnforcer
from sqe_core.query.admission import QueryLimits
from sqe_core.query.completion import CompletionCache, VisibleNames
from sqe_core.query.inspect import PlanLimits
from sqe_core.query.parts import QueryParts
from sqe_core.query.record import Notify, Recorder
from sqe_core.query.result import StatementResult
from sqe_core.query.service import Parameters, QueryService
from sqe_core.session.attempts import DEFAULT_FAILURES_PER_MINUTE, LoginAttempts
from sqe_core.session.login import LoginChain
from sqe_core.session.session import Session
from sqe_core.session.store import SessionLimits, SessionStore
from sqe_core.spi.auth import AuthProvider, ClientInfo
from sqe_core.spi.catalog import CatalogContext
from sqe_core.spi.errors import ConfigError, ObjectNotFoundError, SqeError
from sqe_core.spi.factory import Metrics, NoMetrics, PluginContext
from sqe_core.spi.identity import Identity
from sqe_core.spi.policy import PolicyEnforcer
from sqe_core.sql import functions
from sqe_core.sql.reader import Reader
from sqe_core.sql.redact import redact
from sqe_core.sql.statement import ScriptStatement

EMBEDDED_CATALOG = "iceberg"
DEFAULT_SCHEMA = ("default",)

# A person at their own machine: the file permissions of the warehouse are the only login there is.
OWNER = Identity(issuer="sqe:embedded", subject="owner", username="owner", provider="embedded", personal=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sqe:
    """A running SQE: what protocols and the command line stand on."""

    engine: Engine
    catalogs: CatalogRegistry
    service: QueryService
    history: QueryHistory

    def open_session(self, identity: Identity, *, catalog: str, protocol: str) -> Session:
        """Open a session for somebody who was authenticated."""
        return Session(
            identity=identity,
            engine=self.engine,
            catalogs=self.catalogs,
            catalog=catalog,
            schema=DEFAULT_SCHEMA,
            protocol=protocol,
        )

    def close(self) -> None:
        """Stop in reverse order."""
        self.engine.stop()
        self.catalogs.close()


def build(
    *,
    engine: Engine,
    mounts: Sequence[Mount],
    enforcers: Sequence[PolicyEnforcer],
    limits: QueryLimits,
    notify: Notify | None = None,
) -> Sqe:
    """Wire an SQE around an engine, which need not have started yet."""
    catalogs = CatalogRegistry(mounts)
    history = QueryHistory()
    service = QueryService(
        QueryParts(
            engine=engine,
            reader=Reader(),
            catalogs=catalogs,
            authorizer=Authorizer(enforcers),
            recorder=Recorder(history, notify=notify, redact=redact),
            limits=limits,
            plan_limits=PlanLimits(),
            template_functions=functions.template_names(),
            functions=functions.documented,
        )
    )
    return Sqe(engine=engine, catalogs=catalogs, service=service, history=history)


def compose(loaded: LoadedConfig, plugins: PluginManager | None = None, *, engine: Engine | None = None) -> Sqe:
    """Build what a configuration file describes: its catalogs, policy engines, limits and engine, not started.

    Only the distributions whose kinds the file names are imported.

    Args:
        loaded: the configuration.
        plugins: the installed plugins; None looks for them.
        engine: an engine that runs already, instead of the one of the file.

    Raises:
        ConfigError: settings of plugins that do not fit, every fault of them.
        PluginError: a plugin that is missing or broken.
    """
    config = loaded.config
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
                    require_vended_credentials=required, production_mode=production, sqe_version=__version__
                ),
            )
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
                    kind, settings, PluginContext(production_mode=production, sqe_version=__version__)
                )
            )
    if faults:
        raise ConfigError(tuple(faults))
    query = config.query
    return build(
        engine=engine
        or SparkEngine(
            replace(
                engine_options(config.engine),
                memory_bytes=config.coordinator.memory_limit,
                local_dir=Path(config.coordinator.spill_dir),
                jar_groups=frozenset(jars),
            )
        ),
        mounts=mounts,
        enforcers=enforcers,
        limits=QueryLimits(
            timeout_secs=query.timeout_secs,
            max_result_rows=query.max_result_rows,
            max_sql_bytes=query.max_sql_bytes,
            max_concurrent_queries=query.max_concurrent_queries,
            max_concurrent_per_user=query.max_concurrent_per_user,
        ),
        notify=plugins.calls.query_event,
    )


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
    limits = config.rate_limit
    failures = limits.auth_attempts_per_minute if limits.enabled else DEFAULT_FAILURES_PER_MINUTE
    chain = LoginChain(
        login_providers(loaded, plugins, metrics=metrics),
        attempts=LoginAttempts(failures),
        timeout_secs=config.coordinator.auth_handshake_timeout_secs,
        allow_insecure_transport=config.security.allow_insecure_transport,
    )
    mounts = mounted_catalogs(config)
    catalog = next((mount.name for mount in mounts if mount.default), mounts[0].name if mounts else EMBEDDED_CATALOG)

    def open_session(identity: Identity, client: ClientInfo) -> Session:
        return sqe.open_session(identity, catalog=catalog, protocol=client.protocol)

    return SessionStore(
        chain,
        open_session=open_session,
        close_session=sqe.service.close_session,
        is_busy=lambda session: sqe.service.progress(session) is not None,
        limits=SessionLimits(
            idle_secs=config.session.idle_timeout_secs,
            absolute_secs=config.session.absolute_timeout_secs,
            sweep_secs=config.session.expiry_sweep_interval_secs,
        ),
    )


def engine_options(engine: EngineConfig) -> EngineOptions:
    """Return what `[engine]` says; the rest has its defaults."""
    options = EngineOptions(
        master=engine.master,
        java_home=Path(engine.java_home) if engine.java_home else None,
        jar_dir=Path(engine.jar_dir) if engine.jar_dir else None,
        jar_mirror=engine.jar_mirror or None,
        class_archive=ClassArchive(engine.class_archive),
    )
    return replace(options, cache_dir=Path(engine.cache_dir)) if engine.cache_dir else options


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
    try:
        mounts = [Mount(name=EMBEDDED_CATALOG, backend=_open_folder(folder, "sqe.db"))]
        for name, path in (catalogs or {}).items():
            path = path.expanduser().absolute()
            file = "sqe.db" if (path / "sqe.db").exists() else "catalog.db"
            mounts.append(Mount(name=name, backend=_open_folder(path, file)))
        sqe = build(
            engine=engine or SparkEngine(engine_options or EngineOptions()),
            mounts=mounts,
            enforcers=[AllowAllEnforcer()],
            limits=QueryLimits(timeout_secs=0, max_result_rows=0, max_sql_bytes=16 * 1024 * 1024),
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
            lambda: sqe.service.visible(self.session), ready=lambda: sqe.engine.state is EngineState.READY
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
