"""The keys that belong to plugins' kinds, checked against the plugins that are installed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

from sqe_core.config.binder import bind
from sqe_core.config.catalog_names import mounted_catalogs
from sqe_core.config.kinds import LISTENERS
from sqe_core.config.loading import LoadedConfig
from sqe_core.config.login_chain import login_chain
from sqe_core.config.origin import Fault, KeyPath
from sqe_core.config.plugin_table import PluginTable
from sqe_core.config.unbuilt import UNBUILT_GRANT_STORES
from sqe_core.plugins.kinds import KNOWN_DISTRIBUTIONS, ExtensionPoint, Kind
from sqe_core.plugins.manager import PluginManager
from sqe_core.spi.errors import PluginError


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginSettings:
    """What the plugins say of the file.

    Attributes:
        faults: what is wrong in the file.
        notes: what is right in the file and missing on this machine.
        consumed: the keys that a plugin takes, of its own table or of the core's; what they do is the plugin's word.
    """

    faults: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    consumed: frozenset[KeyPath] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Use:
    """One place of the configuration that names a kind; `shared` is the table whose keys the kind may ask for too."""

    kind: Kind
    path: KeyPath
    table: PluginTable
    shared: KeyPath

    def consumed(self, config_type: type[Any]) -> Iterator[KeyPath]:
        """The keys that the kind takes."""
        for field in fields(config_type):
            for name in (field.name, *field.metadata.get("aliases", ())):
                yield (*self.table.path, name)
                if name in self.table.shared:
                    yield (*self.shared, name)


def check_plugin_settings(loaded: LoadedConfig, plugins: PluginManager | None = None) -> PluginSettings:
    """Bind the table of every kind that the configuration names; only the plugins of these kinds are imported."""
    plugins = plugins or PluginManager()
    faults: list[str] = []
    notes: list[str] = []
    consumed: set[KeyPath] = set()
    for use in _uses(loaded, plugins):
        try:
            config_type = plugins.config_type(use.kind)
        except PluginError as error:
            message = f"{error.message} ({error.hint})" if error.hint else error.message
            text = str(Fault(use.path, message, loaded.sources.place(*use.path)))
            (notes if _is_known(use.kind, plugins) else faults).append(text)
            continue
        faults.extend(bind(use.table, config_type)[1])
        consumed.update(use.consumed(config_type))
    return PluginSettings(
        faults=tuple(dict.fromkeys(faults)), notes=tuple(dict.fromkeys(notes)), consumed=frozenset(consumed)
    )


def _uses(loaded: LoadedConfig, plugins: PluginManager) -> Iterator[_Use]:
    for provider in login_chain(loaded.config):
        path = (*provider.path, "type") if len(provider.path) > 1 else provider.path
        kind = Kind(ExtensionPoint.AUTH, provider.kind)
        yield _Use(kind=kind, path=path, table=provider.options, shared=("auth",))
    for mount in mounted_catalogs(loaded.config):
        kind = Kind(ExtensionPoint.CATALOG, mount.kind)
        yield _Use(kind=kind, path=(*mount.path, "type"), table=mount.config.options, shared=mount.path)
    for key, protocol in LISTENERS.items():
        kind = Kind(ExtensionPoint.PROTOCOL, protocol)
        # A port that nobody wrote is not asked for: without its plugin the protocol is off.
        wanted = loaded.sources.is_written("coordinator", key) or _is_declared(kind, plugins)
        if getattr(loaded.config.coordinator, key) and wanted:
            table = loaded.settings("coordinator")
            yield _Use(kind=kind, path=("coordinator", key), table=table, shared=("coordinator",))
    for engine in loaded.config.policy.engines:
        kind = Kind(ExtensionPoint.POLICY, engine)
        yield _Use(kind=kind, path=("policy", "engine"), table=loaded.engine_table(engine), shared=("policy",))
    backend = loaded.config.access_control.backend
    if backend != "none" and backend not in UNBUILT_GRANT_STORES:
        kind, path = Kind(ExtensionPoint.GRANTS, backend), ("access_control", "backend")
        yield _Use(kind=kind, path=path, table=loaded.grant_store_table(), shared=("access_control",))


def _is_known(kind: Kind, plugins: PluginManager) -> bool:
    """Whether the name is right, so that only the plugin is missing or broken."""
    return _is_declared(kind, plugins) or kind in KNOWN_DISTRIBUTIONS


def _is_declared(kind: Kind, plugins: PluginManager) -> bool:
    return any(kind in plugin.kinds for plugin in plugins.declared)
