"""The one place where hooks are called."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pluggy

from sqe_core.plugins.kinds import ExtensionPoint
from sqe_core.spi.auth import AuthProviderFactory
from sqe_core.spi.catalog import CatalogFactory
from sqe_core.spi.errors import PluginError
from sqe_core.spi.events import QueryEvent
from sqe_core.spi.factory import Metrics, NoMetrics, PluginFactory
from sqe_core.spi.grants import GrantStoreFactory
from sqe_core.spi.hooks import PROJECT, SqePlugin, StartupContext
from sqe_core.spi.lineage import LineageSinkFactory
from sqe_core.spi.policy import PolicyEnforcerFactory
from sqe_core.spi.protocol import ProtocolFactory

_log = logging.getLogger(__name__)
_KIND = re.compile(r"[a-z][a-z0-9_-]*")
_PROVIDES: Mapping[ExtensionPoint, tuple[str, type[PluginFactory[Any, Any, Any]]]] = {
    ExtensionPoint.AUTH: ("sqe_provide_auth_providers", AuthProviderFactory),
    ExtensionPoint.CATALOG: ("sqe_provide_catalogs", CatalogFactory),
    ExtensionPoint.POLICY: ("sqe_provide_policy_enforcers", PolicyEnforcerFactory),
    ExtensionPoint.GRANTS: ("sqe_provide_grant_stores", GrantStoreFactory),
    ExtensionPoint.PROTOCOL: ("sqe_provide_protocols", ProtocolFactory),
    ExtensionPoint.LINEAGE: ("sqe_provide_lineage_sinks", LineageSinkFactory),
}


class HookCalls:
    """Registered plugins and the calls of their hooks.

    Args:
        metrics: where failing observers are counted.
    """

    def __init__(self, metrics: Metrics | None = None) -> None:
        self._metrics = metrics or NoMetrics()
        self._manager = pluggy.PluginManager(PROJECT)
        self._manager.add_hookspecs(SqePlugin)

    def register(self, plugin: SqePlugin, label: str) -> None:
        """Add a plugin; one that does not fit is taken out again and raises.

        Args:
            plugin: the plugin.
            label: how messages name it; unique.
        """
        try:
            self._manager.register(plugin, name=label)
            self._manager.check_pending()
        except (ValueError, pluggy.PluginValidationError) as exc:
            if self._manager.has_plugin(label):
                self._manager.unregister(name=label)
            raise PluginError(f"The {label} does not fit the hooks: {exc}") from exc

    def unregister(self, label: str) -> None:
        self._manager.unregister(name=label)

    def provided(
        self, label: str, context: StartupContext
    ) -> Iterator[tuple[ExtensionPoint, PluginFactory[Any, Any, Any]]]:
        """Return what one plugin contributes, at each place where it can stand."""
        for point, (hook, expected) in _PROVIDES.items():
            for implementation in self._implementations(hook):
                if implementation.plugin_name != label:
                    continue
                try:
                    answer = _call(implementation, context=context)
                except Exception as exc:
                    raise PluginError(f"The {label} failed in {hook}: {type(exc).__name__}: {exc}") from exc
                for factory in _checked(answer, expected, f"The {label}: {hook}"):
                    yield point, factory

    def query_event(self, event: QueryEvent) -> None:
        """Call `sqe_on_query_event` of every plugin, one by one; a failure is logged and counted."""
        for implementation in self._implementations("sqe_on_query_event"):
            try:
                _call(implementation, event=event)
            except Exception:  # noqa: BLE001 - an observer must not fail the statement that it observes
                _log.exception("The %s failed to observe a statement", implementation.plugin_name)
                self._metrics.count("sqe_plugin_observer_errors_total", labels={"hook": "sqe_on_query_event"})

    @property
    def observed(self) -> bool:
        return bool(self._implementations("sqe_on_query_event"))

    def _implementations(self, hook: str) -> Sequence[pluggy.HookImpl]:
        implementations: Sequence[pluggy.HookImpl] = getattr(self._manager.hook, hook).get_hookimpls()
        return implementations


def _call(implementation: pluggy.HookImpl, **arguments: object) -> object:
    # An implementation may leave the argument out, as pluggy allows.
    return implementation.function(**{name: arguments[name] for name in implementation.argnames})


def _checked(answer: object, expected: type[Any], where: str) -> Iterable[Any]:
    if not isinstance(answer, (tuple, list)):
        raise PluginError(f"{where} returned {type(answer).__name__}, not a sequence of factories")
    for factory in answer:
        if not isinstance(factory, expected):
            raise PluginError(f"{where} returned {factory!r}, which is no {expected.__name__}")
        kind: object = getattr(factory, "kind", None)
        if not (isinstance(kind, str) and _KIND.fullmatch(kind)):
            raise PluginError(f"{where} returned a factory whose kind is {kind!r}; lower-case letters, digits, _ and -")
        config_type: object = getattr(factory, "config_type", None)
        if not is_frozen_dataclass(config_type):
            raise PluginError(f"{where}: the config_type of '{kind}' is no frozen dataclass")
        yield factory


def is_frozen_dataclass(candidate: object) -> bool:
    """Whether something is a frozen dataclass, as settings have to be."""
    # The parameters of a base class say nothing about a subclass that is no dataclass itself.
    if not (isinstance(candidate, type) and "__dataclass_params__" in vars(candidate)):
        return False
    parameters: Any = vars(candidate)["__dataclass_params__"]
    return bool(parameters.frozen)
