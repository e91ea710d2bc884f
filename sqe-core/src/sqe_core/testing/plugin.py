"""The contract of a plugin as a distribution: what it declares is what it provides."""

from __future__ import annotations

from typing import ClassVar

import pytest

from sqe_core.plugins.discovery import DeclaredPlugin, discover, find_fault
from sqe_core.plugins.manager import PluginManager
from sqe_core.spi.hooks import SqePlugin
from sqe_core.testing.contract import Contract


class PluginContract(Contract):
    """What every installed plugin promises. Set `plugin_name` to the name of its entry point; install it first."""

    plugin_name: ClassVar[str] = ""

    @pytest.fixture
    def declared(self) -> DeclaredPlugin:
        """What the distribution declares."""
        found = [plugin for plugin in discover() if plugin.name == self.plugin_name]
        assert len(found) == 1, f"{len(found)} installed plugins are called {self.plugin_name!r}"
        return found[0]

    def test_declaration_is_whole(self, declared: DeclaredPlugin) -> None:
        """The entry points can be read, and fit this SPI."""
        assert find_fault(declared) is None

    def test_provides_what_it_declares(self, declared: DeclaredPlugin) -> None:
        """Every declared kind has a factory, and every factory's kind is declared."""
        manager = PluginManager([declared])
        manager.plugin(declared.name)
        for kind in declared.kinds:
            manager.factory(kind)
        assert isinstance(manager.plugin(declared.name), SqePlugin)
