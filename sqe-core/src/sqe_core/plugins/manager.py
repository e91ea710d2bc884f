"""The plugins of one process: only those whose kinds the configuration uses are imported."""

from __future__ import annotations

import difflib
import threading
from collections.abc import Mapping, Sequence
from typing import Any, cast

from sqe_core.plugins.calls import HookCalls, is_frozen_dataclass
from sqe_core.plugins.discovery import DeclaredPlugin, discover
from sqe_core.plugins.kinds import KNOWN_DISTRIBUTIONS, ExtensionPoint, Kind
from sqe_core.plugins.lifecycle import Component
from sqe_core.plugins.loading import load_plugin
from sqe_core.spi.catalog import CatalogFactory
from sqe_core.spi.errors import PluginError
from sqe_core.spi.factory import Metrics, PluginContext, PluginFactory
from sqe_core.spi.hooks import SqePlugin, StartupContext

AnyFactory = PluginFactory[Any, Any, Any]


class PluginManager:
    """Finds, loads and keeps plugins, and hands out their factories. Safe for use from several threads.

    A factory that is asked for and not there yet loads its plugin, which is how ATTACH reaches a catalog type that
    the configuration does not mention.

    Args:
        declared: the installed plugins; None looks for them.
        sqe_version: the version of the core, for the plugins.
        metrics: where failing observers are counted.
    """

    def __init__(
        self,
        declared: Sequence[DeclaredPlugin] | None = None,
        *,
        sqe_version: str = "",
        metrics: Metrics | None = None,
    ) -> None:
        self.declared = discover() if declared is None else tuple(declared)
        self.calls = HookCalls(metrics)
        self._context = StartupContext(sqe_version=sqe_version)
        self._lock = threading.RLock()
        self._loaded: dict[DeclaredPlugin, SqePlugin] = {}
        self._factories: dict[Kind, AnyFactory] = {}

    def plugin(self, name: str) -> SqePlugin:
        """Return a plugin by the name of its entry point, for `[plugins.<name>]`."""
        found = [declared for declared in self.declared if declared.name == name]
        if not found:
            known = ", ".join(declared.name for declared in self.declared)
            raise PluginError(f"No plugin is called '{name}'", hint=f"installed plugins: {known}")
        with self._lock:
            return self._load(_only(found, f"plugin name '{name}'"))

    def observer(self, name: str, config: Any, context: PluginContext) -> Component:
        """Return the component of a plugin that observes, for the server's lifecycle.

        Args:
            name: the plugin, as in `[plugins.<name>]`.
            config: that table, as an instance of the plugin's `config_type`.
            context: what the core offers.
        """
        plugin = self.plugin(name)
        return Component(name=f"plugin {name}", start=lambda: plugin.start(config, context), stop=plugin.stop)

    def catalog(self, kind: str) -> CatalogFactory[Any]:
        return cast("CatalogFactory[Any]", self.factory(Kind(ExtensionPoint.CATALOG, kind)))

    def factory(self, kind: Kind) -> AnyFactory:
        """Return the factory of any kind. Raises PluginError when nobody provides it, or not as it should be."""
        with self._lock:
            if kind not in self._factories:
                providers = [declared for declared in self.declared if kind in declared.kinds]
                if not providers:
                    raise self._missing(kind)
                self._load(_only(providers, kind.label))
            return self._factories[kind]

    def _missing(self, kind: Kind) -> PluginError:
        subject = f"The {kind.label}"
        distribution = KNOWN_DISTRIBUTIONS.get(kind)
        if distribution is not None:
            found = [declared for declared in self.declared if declared.distribution == distribution]
            if found:
                # The distribution is here and does not offer the kind: it is older or newer than we think, or damaged.
                fault = "; ".join(declared.fault or "does not declare it" for declared in found)
                message = f"{subject} comes with {distribution}, but the installed {found[0].label}: {fault}"
                return PluginError(message, hint=f"pip install --upgrade --force-reinstall {distribution}")
            return PluginError(f"{subject} is not installed", hint=f"pip install {distribution}")
        known = sorted(
            {other.name for other in KNOWN_DISTRIBUTIONS if other.point is kind.point}
            | {other.name for declared in self.declared for other in declared.kinds if other.point is kind.point}
        )
        close = difflib.get_close_matches(kind.name, known, n=1)
        hint = f"did you mean '{close[0]}'?" if close else "known ones: " + ", ".join(known)
        # A damaged plugin may have wanted to provide it.
        damaged = "".join(f". The {declared.label}: {declared.fault}" for declared in self.declared if declared.fault)
        return PluginError(f"{subject} is not known, and no installed plugin provides it{damaged}", hint=hint)

    def _load(self, declared: DeclaredPlugin) -> SqePlugin:
        plugin = self._loaded.get(declared)
        if plugin is not None:
            return plugin
        plugin = load_plugin(declared)
        if not is_frozen_dataclass(plugin.config_type):
            raise PluginError(f"The {declared.label}: its config_type is no frozen dataclass")
        self.calls.register(plugin, declared.label)
        try:
            self._factories.update(self._provided(declared))
        except PluginError:
            self.calls.unregister(declared.label)
            raise
        self._loaded[declared] = plugin
        return plugin

    def _provided(self, declared: DeclaredPlugin) -> Mapping[Kind, AnyFactory]:
        label = declared.label
        provided: dict[Kind, AnyFactory] = {}
        for point, factory in self.calls.provided(label, self._context):
            kind = Kind(point, factory.kind)
            if kind in provided:
                raise PluginError(f"The {label} provides the {kind.label} twice")
            provided[kind] = factory
        undeclared = sorted(str(kind) for kind in provided.keys() - declared.kinds)
        if undeclared:
            raise PluginError(
                f"The {label} provides {', '.join(undeclared)} without declaring it",
                hint='add the names to [project.entry-points."sqe.plugins.kinds"] of its pyproject.toml',
            )
        missing = sorted(str(kind) for kind in declared.kinds - provided.keys())
        if missing:
            raise PluginError(f"The {label} declares {', '.join(missing)} and does not provide it")
        return provided


def _only(found: Sequence[DeclaredPlugin], what: str) -> DeclaredPlugin:
    if len(found) > 1:
        owners = " and ".join(f"{declared.distribution} {declared.version}" for declared in found)
        raise PluginError(f"The {what} comes from {owners}; only one may provide it", hint="uninstall one of them")
    return found[0]
