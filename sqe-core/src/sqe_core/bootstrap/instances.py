"""Which objects of plugins a configuration asks for: the one list for start, `config check`, `doctor` and readiness.

An instance has its kind, its name, its settings and its context. Nothing is made before `create`.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

from sqe_core import __version__
from sqe_core.bootstrap.options import state_dir, tls_files
from sqe_core.catalog.storage import file_properties
from sqe_core.config.binder import bind_table
from sqe_core.config.catalog_names import CatalogMount, mounted_catalogs
from sqe_core.config.listeners import Listener, listeners, port_keys
from sqe_core.config.loading import LoadedConfig
from sqe_core.config.login_chain import login_chain
from sqe_core.config.origin import Fault, KeyPath, unknown_key
from sqe_core.config.plugin_table import PluginTable
from sqe_core.config.walk import leaves
from sqe_core.plugins.kinds import KNOWN_DISTRIBUTIONS, ExtensionPoint, Kind
from sqe_core.plugins.lifecycle import Component
from sqe_core.plugins.manager import PluginManager
from sqe_core.spi.auth import AuthProvider
from sqe_core.spi.catalog import CatalogBackend, CatalogContext
from sqe_core.spi.errors import ConfigError, PluginError, SqeError, StartupError
from sqe_core.spi.factory import Metrics, NoMetrics, PluginContext, PluginFactory
from sqe_core.spi.grants import GrantStoreContext
from sqe_core.spi.protocol import ProtocolContext, ProtocolFactory, RequestLimits

_log = logging.getLogger(__name__)

ContextT = TypeVar("ContextT", bound=PluginContext)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Use:
    """One place of the configuration that names a kind; `shared` is the table whose keys the kind may ask for too."""

    kind: Kind | None
    name: str
    path: KeyPath
    table: PluginTable
    shared: KeyPath
    context: PluginContext
    entry: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """One object that a plugin is to make; without a kind, a plugin of `[plugins.<name>]`, which observes.

    `entry` is what the configuration says of it beside the plugin's keys.
    """

    kind: Kind | None
    name: str
    path: KeyPath
    factory: PluginFactory[Any, Any, Any]
    settings: Any
    context: PluginContext
    table: PluginTable = field(repr=False)
    entry: Any = None
    loaded: LoadedConfig = field(repr=False)

    @property
    def label(self) -> str:
        """For messages: `catalog lake (polaris)`."""
        if self.kind is None:
            return f"plugin {self.name}"
        label = self.kind.point.label.removesuffix(" type")
        return f"{label} {self.name}" + (f" ({self.kind.name})" if self.name != self.kind.name else "")

    def create(self, **offered: Any) -> Any:
        """Make the object; `offered` goes into the context."""
        return self.attempt(lambda: self.factory.create(self.name, self.settings, replace(self.context, **offered)))

    def attempt(self, work: Callable[[], Any]) -> Any:
        """Let the plugin work.

        Raises:
            ConfigError, StartupError: whatever it raises, with the place of the instance. What is no error of ours may
                hold a login in its text: its kind is told, and the log has the rest.
        """
        try:
            return work()
        except ConfigError as error:
            raise ConfigError(tuple(self.told(text) for text in error.faults)) from error
        except SqeError as error:
            raise StartupError(self.told(error.message), hint=error.hint) from error
        except Exception as error:
            _log.error("%s cannot be made", self.label, exc_info=error)
            text = f"the {self.label} cannot be made: {type(error).__name__}"
            raise StartupError(self.told(text), hint="the log has the cause") from error

    def told(self, text: str, *keys: str) -> str:
        """A fault of this instance, with the place of its key."""
        path = (*self.table.path, *keys) if keys else self.path
        return str(Fault(path, text, self.loaded.sources.place(*path)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Instances:
    """What was found, and everything that is wrong with the rest.

    Attributes:
        found: the instances whose settings fit, in the order of the configuration.
        faults: what is wrong, each with its place and key.
        consumed: the keys that a plugin takes, of its own table or of the core's.
        off: sentences about protocols that nobody asked for and nobody provides.
    """

    found: tuple[Instance, ...]
    faults: tuple[str, ...]
    consumed: frozenset[KeyPath]
    off: tuple[str, ...]

    def of(self, point: ExtensionPoint | None) -> tuple[Instance, ...]:
        """The instances of one extension point; None: observers. Raises ConfigError when anything at all is wrong."""
        if self.faults:
            raise ConfigError(self.faults)
        return tuple(each for each in self.found if (each.kind.point if each.kind else None) is point)


def configured_instances(
    loaded: LoadedConfig, plugins: PluginManager, *, metrics: Metrics | None = None, rehearsal: bool = False
) -> Instances:
    """Find them; only the plugins of kinds that the configuration names are imported."""
    uses = _Uses(loaded, plugins, metrics or NoMetrics(), rehearsal=rehearsal)
    found: list[Instance] = []
    faults: list[Fault] = list(uses.strangers())
    consumed: set[KeyPath] = set()
    for use in uses:
        try:
            factory = plugins.factory(use.kind) if use.kind else _ObserverFactory(use.name, plugins)
        except PluginError as error:
            faults.append(Fault(use.path, with_hint(error)))
            continue
        settings, wrong = bind_table(use.table, factory.config_type)
        faults += (_explained(fault, use) for fault in wrong)
        consumed.update(_consumed(use, factory.config_type))
        if settings is not None:
            found.append(_instance(use, factory, settings, loaded))
    faults += uses.ports(found)
    shown = (_placed(fault, loaded) for fault in faults)
    return Instances(
        found=tuple(found),
        faults=tuple(dict.fromkeys(shown)),
        consumed=frozenset(consumed),
        off=tuple(uses.off),
    )


def _instance(use: _Use, factory: PluginFactory[Any, Any, Any], settings: Any, loaded: LoadedConfig) -> Instance:
    context = use.context
    if isinstance(context, ProtocolContext) and use.entry.port is None:
        context = replace(context, port=getattr(factory, "default_port", 0))
    return Instance(
        kind=use.kind,
        name=use.name,
        path=use.path,
        factory=factory,
        settings=settings,
        context=context,
        table=use.table,
        entry=use.entry,
        loaded=loaded,
    )


def _explained(fault: Fault, use: _Use) -> Fault:
    """`[catalog.lake]` is the table of one that is meant to be called so."""
    name = str(fault.path[-1])
    entry = use.table.entries.get(name)
    if use.shared == ("catalog",) and len(fault.path) == 2 and entry is not None and isinstance(entry.value, dict):
        return Fault(fault.path, f"{fault.message}; a catalog of that name is written [catalogs.{name}]", fault.origin)
    return fault


def _placed(fault: Fault, loaded: LoadedConfig) -> str:
    if fault.origin is None or fault.origin.layer == "default":
        fault = Fault(fault.path, fault.message, loaded.sources.place(*fault.path))
    return str(fault)


def _consumed(use: _Use, config_type: type[Any]) -> Iterator[KeyPath]:
    for key in fields(config_type):
        for name in (key.name, *key.metadata.get("aliases", ())):
            yield (*use.table.path, name)
            if name in use.table.shared:
                yield (*use.shared, name)


class _Uses:
    """Goes through a configuration and finds every place that names a kind."""

    def __init__(self, loaded: LoadedConfig, plugins: PluginManager, metrics: Metrics, *, rehearsal: bool) -> None:
        self._loaded = loaded
        self._config = loaded.config
        self._declared = {kind for plugin in plugins.declared for kind in plugin.kinds}
        self._metrics = metrics
        self._rehearsal = rehearsal
        self.off: list[str] = []

    def __iter__(self) -> Iterator[_Use]:
        yield from self._logins()
        yield from self._catalogs()
        yield from self._protocols()
        yield from self._engines()
        yield from self._grant_store()
        yield from self._sinks()
        yield from self._observers()

    def strangers(self) -> Iterator[Fault]:
        """Tables of `[policy]` that belong to no engine that is there."""
        known = {kind.name for kind in {*self._declared, *KNOWN_DISTRIBUTIONS} if kind.point is ExtensionPoint.POLICY}
        policy = self._config.policy
        names = {*known, *(key.name for key in fields(policy) if key.name != "options")}
        for name, node in policy.options.entries.items():
            if name not in known and name not in policy.engine:
                yield Fault(("policy", name), unknown_key(name, names), node.origin)

    def ports(self, found: Sequence[Instance]) -> Iterator[Fault]:
        """Protocols without a port, or with one that is given twice."""
        keys = port_keys()
        for each in found:
            if not isinstance(each.context, ProtocolContext):
                continue
            if not each.context.port:
                yield Fault(("protocols", each.name, "port"), "is missing; this protocol has no port of its own")
            key, sources = keys.get(each.name, ""), self._loaded.sources
            if each.path[0] == "protocols" and sources.is_written("coordinator", key):
                yield Fault(each.path, f"is given twice, here and as coordinator.{key}")

    def _context(self, context_type: type[ContextT], **more: Any) -> ContextT:
        return context_type(
            metrics=self._metrics,
            state_dir=state_dir(self._loaded.environ),
            production_mode=self._config.coordinator.production_mode,
            sqe_version=__version__,
            rehearsal=self._rehearsal,
            **more,
        )

    def _logins(self) -> Iterator[_Use]:
        seen: Counter[str] = Counter()
        for entry in login_chain(self._config):
            seen[entry.kind] += 1
            yield _Use(
                kind=Kind(ExtensionPoint.AUTH, entry.kind),
                name=entry.kind if seen[entry.kind] == 1 else f"{entry.kind}-{seen[entry.kind]}",
                path=(*entry.path, "type") if len(entry.path) > 2 else entry.path,
                table=entry.options,
                shared=("auth",),
                context=self._context(PluginContext),
                entry=entry,
            )

    def _catalogs(self) -> Iterator[_Use]:
        for entry in mounted_catalogs(self._config):
            vended = entry.config.require_vended_credentials
            yield _Use(
                kind=Kind(ExtensionPoint.CATALOG, entry.kind),
                name=entry.name,
                path=(*entry.path, "type"),
                table=entry.config.options,
                shared=entry.path,
                context=self._context(
                    CatalogContext,
                    storage=file_properties(self._config.storage, entry.config.storage, vended_only=vended),
                    require_vended_credentials=vended,
                ),
                entry=entry,
            )

    def _protocols(self) -> Iterator[_Use]:
        for entry in listeners(self._config):
            kind = Kind(ExtensionPoint.PROTOCOL, entry.kind)
            wanted = entry.kind in self._config.protocols or self._loaded.sources.is_written(*entry.path)
            if entry.port == 0:
                continue
            if not wanted and kind not in self._declared:
                # A default is nobody's wish: without its plugin the protocol is off.
                distribution = KNOWN_DISTRIBUTIONS.get(kind)
                how = f"it is not installed (pip install {distribution})" if distribution else "nobody provides it"
                self.off.append(f"the {kind.label} is off: {how}")
                continue
            yield self._protocol(kind, entry)

    def _protocol(self, kind: Kind, entry: Listener) -> _Use:
        config = self._config
        shared = self._loaded.settings("coordinator").shared
        return _Use(
            kind=kind,
            name=entry.kind,
            path=entry.path if entry.port is not None else ("protocols", entry.kind),
            table=replace(entry.options, shared={**shared, **entry.options.shared}),
            shared=("coordinator",),
            context=self._context(
                ProtocolContext,
                bind_host=entry.bind_host,
                port=entry.port or 0,
                tls=tls_files(config),
                public_url=entry.public_url,
                trusted_proxies=config.security.trusted_proxies,
                stream_idle_secs=config.query.stream_idle_timeout_secs,
                limits=RequestLimits(sql_bytes=config.query.max_sql_bytes),
            ),
            entry=entry,
        )

    def _engines(self) -> Iterator[_Use]:
        for engine in self._config.policy.engines:
            yield _Use(
                kind=Kind(ExtensionPoint.POLICY, engine),
                name=engine,
                path=("policy", "engine" if self._config.policy.enabled else "enabled"),
                table=self._loaded.part("policy", engine),
                shared=("policy",),
                context=self._context(PluginContext),
            )

    def _grant_store(self) -> Iterator[_Use]:
        backend = self._config.access_control.backend
        if backend != "none":
            yield _Use(
                kind=Kind(ExtensionPoint.GRANTS, backend),
                name=backend,
                path=("access_control", "backend"),
                table=self._loaded.part("access_control", backend),
                shared=("access_control",),
                context=self._context(GrantStoreContext),
            )

    def _sinks(self) -> Iterator[_Use]:
        """`[[lineage.sinks]]`, and the keys of `[metrics.openlineage]` that stand for one of these each."""
        short = ("metrics", "openlineage")
        places: list[tuple[str, KeyPath, PluginTable]] = [
            (sink.type, ("lineage", "sinks", index, "type"), sink.options)
            for index, sink in enumerate(self._config.lineage.sinks)
        ]
        for key, kind in self._config.metrics.openlineage.named_sinks:
            places.append((kind, (*short, key), self._loaded.settings(*short)))
        seen: Counter[str] = Counter()
        for kind, path, table in places:
            seen[kind] += 1
            yield _Use(
                kind=Kind(ExtensionPoint.LINEAGE, kind),
                name=kind if seen[kind] == 1 else f"{kind}-{seen[kind]}",
                path=path,
                table=table,
                shared=short,
                context=self._context(PluginContext),
            )

    def _observers(self) -> Iterator[_Use]:
        for name, table in self._config.plugins.items():
            path = ("plugins", name)
            yield _Use(kind=None, name=name, path=path, table=table, shared=path, context=self._context(PluginContext))


class _ObserverFactory(PluginFactory[Any, PluginContext, Component]):
    """Makes the component of a plugin that provides no kind and watches."""

    def __init__(self, name: str, plugins: PluginManager) -> None:
        self.kind = name
        self.config_type = plugins.plugin(name).config_type
        self._plugins = plugins

    def create(self, name: str, config: Any, context: PluginContext) -> Component:
        return self._plugins.observer(name, config, context)


def create_all(instances: Sequence[Instance]) -> list[tuple[Instance, Any]]:
    """Make them. The faults of all are told together, and what was made is closed again when there are any.

    Raises:
        ConfigError: settings that do not fit, or that `production_mode` refuses.
        StartupError: what an instance needs is not there.
    """
    products: list[tuple[Instance, Any]] = []
    faults: list[str] = []
    with ExitStack() as made:
        for instance in instances:
            try:
                product = instance.create()
            except ConfigError as error:
                faults += error.faults
                continue
            made.callback(product.close)
            products.append((instance, product))
            config = instance.loaded.config
            if config.coordinator.production_mode:
                faults += objections(instance, product)
            faults += _unenforced(instance, product)
        if faults:
            raise ConfigError(tuple(faults))
        made.pop_all()
    return products


def _unenforced(instance: Instance, product: Any) -> Iterator[str]:
    """Nobody switches enforcement off by accident, or half of it (POL-1)."""
    policy = instance.loaded.config.policy
    if getattr(product, "enforces", True):
        return
    if not policy.i_understand_no_enforcement:
        yield instance.told("enforces nothing; confirm it with i_understand_no_enforcement = true")
    if len(policy.engines) > 1:
        yield instance.told(f"names `{instance.name}` beside an engine; it would decide nothing")


def rehearse(instances: Sequence[Instance]) -> Iterator[str]:
    """Say why these could not be made. They were found with `rehearsal`, so that nothing is left behind."""
    for instance in instances:
        try:
            if isinstance(instance.factory, ProtocolFactory):
                instance.create()
                continue
            if instance.kind is None:
                observer = instance.create()
                instance.attempt(observer.start)
                observer.stop()
                continue
            for _, product in create_all([instance]):
                product.close()
        except ConfigError as error:
            yield from error.faults
        except StartupError as error:
            yield with_hint(error)


def with_hint(error: SqeError) -> str:
    return f"{error.message} ({error.hint})" if error.hint else error.message


def objections(instance: Instance, product: Any) -> Iterator[str]:
    """What production_mode refuses: settings that say so themselves, and what was made of them (OBS-8)."""
    config = instance.loaded.config
    for text, keys in _unsafe_settings(instance):
        yield instance.told(f"refused by production_mode: {text}", *keys)
    reason, waiver = _objection(product)
    if reason is not None and not (waiver and getattr(config.security, waiver)):
        waived = f"; security.{waiver} waives it" if waiver else ""
        yield instance.told(f"refused by production_mode: {reason}{waived}")
    if isinstance(product, CatalogBackend) and product.vends_credentials:
        mount: CatalogMount = instance.entry
        if not mount.config.require_vended_credentials:
            text = "refused by production_mode: must be true for a catalog that hands out credentials"
            yield instance.told(text, "require_vended_credentials")


def _objection(product: Any) -> tuple[str | None, str | None]:
    if isinstance(product, AuthProvider):
        return product.production_objection, product.production_waiver
    if not getattr(product, "enforces", True):
        return "no policy is enforced", None
    if isinstance(product, CatalogBackend) and product.identity_mode == "shared":
        return "everybody is one identity at this catalog", "allow_shared_service_identity"
    return None, None


def _unsafe_settings(instance: Instance) -> Iterator[tuple[str, tuple[str, ...]]]:
    for leaf in leaves(instance.settings):
        unsafe = leaf.metadata.get("unsafe", {})
        if leaf.path[0] in instance.table.entries and leaf.value in unsafe:
            yield unsafe[leaf.value], tuple(map(str, leaf.path))
