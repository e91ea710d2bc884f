"""The hooks: where a plugin says what it brings. Objects made by the factories do the work."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pluggy

from sqe_core.spi.auth import AuthProviderFactory
from sqe_core.spi.catalog import CatalogFactory
from sqe_core.spi.events import QueryEvent
from sqe_core.spi.factory import NoConfig, PluginContext
from sqe_core.spi.grants import GrantStoreFactory
from sqe_core.spi.lineage import LineageSinkFactory
from sqe_core.spi.policy import PolicyEnforcerFactory
from sqe_core.spi.protocol import ProtocolFactory

PROJECT = "sqe"
"""The name under which pluggy keeps our hooks."""

SPI_VERSION = "1.1"
"""Major and minor. A plugin made for 1.x works with every 1.y, y >= x."""

hookspec: pluggy.HookspecMarker = pluggy.HookspecMarker(PROJECT)
hookimpl: pluggy.HookimplMarker = pluggy.HookimplMarker(PROJECT)
"""Marks a method of a `SqePlugin` as the implementation of the hook of that name. Takes no options."""

_FORBIDDEN_OPTIONS = ("wrapper", "hookwrapper", "optionalhook", "tryfirst", "trylast", "specname")
_HOOK_NAME = re.compile(r"_?sqe_")


@dataclass(frozen=True, slots=True, kw_only=True)
class StartupContext:
    """What a plugin may know when it registers its factories. Nothing of the configuration: `create` gets that.

    Args:
        sqe_version: the version of the core.
        spi_version: the version of this interface.
    """

    sqe_version: str
    spi_version: str = SPI_VERSION


class SqePlugin:
    """A plugin: subclass it, override the hooks you need, mark them with `@hookimpl`.

    A misspelt hook or a forgotten `@hookimpl` raises when the class is defined. The class is made without arguments.

    Example:
        >>> class GuestsPlugin(SqePlugin):
        ...     @hookimpl
        ...     def sqe_provide_auth_providers(self, context):
        ...         return (GuestsFactory(),)
    """

    config_type: type[Any] = NoConfig
    """The keys of a `[plugins.<entry-point name>]` table, a frozen dataclass. Factories have settings of their own;
    this one is for plugins that observe."""

    def start(self, config: Any, context: PluginContext) -> None:
        """Prepare to observe. Called once, for a plugin that has a `[plugins.<name>]` table.

        With `context.rehearsal` it looks whether that would work, and makes or changes nothing; `stop` follows.

        Args:
            config: an instance of `config_type`.
            context: what the core offers.
        """

    def stop(self) -> None:
        """Free what `start` took. Called once, after the last event."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name, member in vars(cls).items():
            options: Mapping[str, object] | None = getattr(member, f"{PROJECT}_impl", None)
            if name not in HOOKS:
                if options is not None or _HOOK_NAME.match(name):
                    raise TypeError(f"{cls.__qualname__}.{name} is no hook of SQE; the hooks are {', '.join(HOOKS)}")
                continue
            if options is None:
                raise TypeError(f"{cls.__qualname__}.{name} is not marked with @hookimpl")
            chosen = [option for option in _FORBIDDEN_OPTIONS if options.get(option)]
            if chosen:
                raise TypeError(f"{cls.__qualname__}.{name}: hooks of SQE take no options, not {', '.join(chosen)}")

    @hookspec
    def sqe_provide_auth_providers(self, context: StartupContext) -> Sequence[AuthProviderFactory[Any]]:
        """Contribute login providers.

        Called: once, when the plugin is loaded. Thread: main. Policy: collecting; a duplicate kind stops the server.
        Returns: one factory per kind; no network access here. Since: SPI 1.0.
        """
        return ()

    @hookspec
    def sqe_provide_catalogs(self, context: StartupContext) -> Sequence[CatalogFactory[Any]]:
        """Contribute catalog kinds.

        Called: once, when the plugin is loaded. Thread: main. Policy: collecting; a duplicate kind stops the server.
        Returns: one factory per kind; no network access here. Since: SPI 1.0.
        """
        return ()

    @hookspec
    def sqe_provide_policy_enforcers(self, context: StartupContext) -> Sequence[PolicyEnforcerFactory[Any]]:
        """Contribute policy engines.

        Called: once, when the plugin is loaded. Thread: main. Policy: collecting; a duplicate kind stops the server.
        Returns: one factory per kind; no network access here. Since: SPI 1.0.
        """
        return ()

    @hookspec
    def sqe_provide_grant_stores(self, context: StartupContext) -> Sequence[GrantStoreFactory[Any]]:
        """Contribute stores of grants outside of the policy engines.

        Called: once, when the plugin is loaded. Thread: main. Policy: collecting; a duplicate kind stops the server.
        Returns: one factory per kind; no network access here. Since: SPI 1.0.
        """
        return ()

    @hookspec
    def sqe_provide_protocols(self, context: StartupContext) -> Sequence[ProtocolFactory[Any]]:
        """Contribute wire protocols.

        Called: once, when the plugin is loaded. Thread: main. Policy: collecting; a duplicate kind stops the server.
        Returns: one factory per kind; no network access here. Since: SPI 1.0.
        """
        return ()

    @hookspec
    def sqe_provide_lineage_sinks(self, context: StartupContext) -> Sequence[LineageSinkFactory[Any]]:
        """Contribute lineage sinks.

        Called: once, when the plugin is loaded. Thread: main. Policy: collecting; a duplicate kind stops the server.
        Returns: one factory per kind; no network access here. Since: SPI 1.0.
        """
        return ()

    @hookspec
    def sqe_on_query_event(self, event: QueryEvent) -> None:
        """Observe statements.

        Called: for each phase of each statement. Thread: the statement's, so return quickly. Policy: observing; a
        failure is logged and counted, the statement and the other observers go on. Since: SPI 1.0.

        Args:
            event: what happened.
        """


HOOKS: tuple[str, ...] = tuple(name for name in vars(SqePlugin) if name.startswith("sqe_"))
"""The names of all hooks."""
