"""Broken variants of what a kit passes, each with the tests that have to notice it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from sqe_core.spi import NoConfig
from sqe_core.testing import Contract

_Variant = TypeVar("_Variant", bound=type)


def breaks(kit: type[Contract], *tests: str) -> Callable[[_Variant], _Variant]:
    """Hold a class to the contract of the one that it varies: just these tests fail."""

    def held(variant: _Variant) -> _Variant:
        varied = {name: value for name in dir(kit) if name.endswith("_class") and (value := getattr(kit, name))}
        (attribute,) = [name for name, value in varied.items() if issubclass(variant, value)] or varied
        name = f"Test{variant.__name__}"
        members = {attribute: variant, "breaks": tests, "__module__": variant.__module__}
        setattr(sys.modules[variant.__module__], name, type(name, (kit,), members))
        return variant

    return held


def given(make: Callable[[], object]) -> Any:
    """A fixture that a kit asks for, made anew for each test."""

    @pytest.fixture
    def supplied(self: Any) -> object:
        return make()

    return supplied


def makes(
    base: type[Any],
    attribute: str,
    make: Callable[[type[Any], Any], object] = lambda made, context: made(),
    kind: str = "fake",
) -> Any:
    """The fixture `factory`, of a kind without settings: what it makes is the class that the kit's test names."""

    @pytest.fixture
    def factory(self: Any) -> object:
        def create(own: object, name: str, config: NoConfig, context: Any) -> object:
            return make(getattr(self, attribute), context)

        return type("Factory", (base,), {"kind": kind, "config_type": NoConfig, "create": create})()

    return factory


class ClosesOnce:
    """Cannot be closed twice."""

    closed = False

    def close(self) -> None:
        assert not self.closed, "closed twice"
        self.closed = True
