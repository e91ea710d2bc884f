"""Plugins are checked when their class is defined."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import pluggy
import pytest

from sqe_core.spi import (
    HOOKS,
    SPI_VERSION,
    AuthProviderFactory,
    CatalogFactory,
    SqePlugin,
    StartupContext,
    hookimpl,
)


def test_hooks_are_those_of_the_design_and_of_adr_9() -> None:
    assert HOOKS == (
        "sqe_provide_auth_providers",
        "sqe_provide_catalogs",
        "sqe_provide_policy_enforcers",
        "sqe_provide_grant_stores",
        "sqe_provide_protocols",
        "sqe_provide_lineage_sinks",
        "sqe_on_query_event",
    )


@pytest.mark.parametrize("hook", HOOKS)
def test_hooks_take_exactly_one_argument_without_default(hook: str) -> None:
    self, *arguments = inspect.signature(getattr(SqePlugin, hook)).parameters.values()
    assert self.name == "self"
    assert len(arguments) == 1
    assert arguments[0].default is inspect.Parameter.empty


@pytest.mark.parametrize("hook", HOOKS)
def test_hooks_are_documented(hook: str) -> None:
    text = inspect.getdoc(getattr(SqePlugin, hook))
    assert all(word in text for word in ("Called:", "Thread:", "Policy:", "Since: SPI 1."))


def test_unknown_hook_raises_at_definition() -> None:
    with pytest.raises(TypeError, match="sqe_provide_catalog is no hook of SQE; the hooks are sqe_provide_auth"):

        class Misspelt(SqePlugin):
            @hookimpl
            def sqe_provide_catalog(self, context: StartupContext) -> Sequence[CatalogFactory[Any]]:
                return ()


def test_unmarked_unknown_hook_raises_at_definition() -> None:
    with pytest.raises(TypeError, match="sqe_on_start is no hook"):

        class Misspelt(SqePlugin):
            def sqe_on_start(self, context: StartupContext) -> None: ...


def test_hookimpl_on_another_name_raises_at_definition() -> None:
    with pytest.raises(TypeError, match="provide_catalogs is no hook"):

        class Prefixless(SqePlugin):
            @hookimpl
            def provide_catalogs(self, context: StartupContext) -> Sequence[CatalogFactory[Any]]:
                return ()


def test_missing_hookimpl_raises_at_definition() -> None:
    with pytest.raises(TypeError, match="sqe_provide_catalogs is not marked with @hookimpl"):

        class Unmarked(SqePlugin):
            def sqe_provide_catalogs(self, context: StartupContext) -> Sequence[CatalogFactory[Any]]:
                return ()


@pytest.mark.parametrize("option", ["wrapper", "hookwrapper", "tryfirst", "trylast", "optionalhook"])
def test_options_of_hookimpl_raise_at_definition(option: str) -> None:
    def provide(self: SqePlugin, context: StartupContext) -> Sequence[AuthProviderFactory[Any]]:
        return ()

    marked = hookimpl(**{option: True})(provide)
    with pytest.raises(TypeError, match=f"take no options, not {option}"):
        type("Eager", (SqePlugin,), {"sqe_provide_auth_providers": marked})


def test_subclass_of_a_plugin_is_checked_too() -> None:
    class Good(SqePlugin):
        @hookimpl
        def sqe_provide_auth_providers(self, context: StartupContext) -> Sequence[AuthProviderFactory[Any]]:
            return ()

    with pytest.raises(TypeError, match="sqe_provide_protocol is no hook"):
        type("Bad", (Good,), {"sqe_provide_protocol": lambda self, context: ()})


def test_base_methods_are_no_implementations() -> None:
    class Empty(SqePlugin):
        pass

    manager = pluggy.PluginManager("sqe")
    manager.add_hookspecs(SqePlugin)
    manager.register(Empty())
    assert not any(getattr(manager.hook, hook).get_hookimpls() for hook in HOOKS)


def test_context_names_this_spi() -> None:
    assert StartupContext(sqe_version="1.2").spi_version == SPI_VERSION
