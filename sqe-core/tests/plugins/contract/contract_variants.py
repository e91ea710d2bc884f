"""Broken variants of what a kit passes, each with the tests that have to notice it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from inspect import Parameter, Signature, signature
from typing import Any, TypeVar

import pytest

from sqe_core.spi import NoConfig, StartupError
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


def given(make: Callable[..., object]) -> Any:
    """A fixture that a kit asks for, made anew for each test; of `self` and fixtures, as its arguments are called."""
    wanted = [each for each in signature(make).parameters.values() if each.default is Parameter.empty]
    own = Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)

    def supplied(self: Any, **asked: Any) -> object:
        return make(**asked, **({"self": self} if own in wanted else {}))

    others = [each for each in wanted if each != own]
    supplied.__signature__ = Signature([own, *others])  # type: ignore[attr-defined]  # pytest reads it
    return pytest.fixture(supplied)


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


def closes_once(kit: type[Contract], base: type[Any]) -> None:
    """Hold a variant that cannot be closed twice to the contract."""

    def close(self: Any) -> None:
        assert not self.__dict__.get("closed"), "closed twice"
        self.closed = True

    _vary(kit, base, "ClosesOnce", "test_closes_twice", close=close)


def not_ready(kit: type[Contract], base: type[Any], test: str) -> None:
    """Hold a variant whose check fails to the contract."""

    def check(self: Any) -> None:
        raise StartupError("not ready")

    _vary(kit, base, "NotReady", test, check=check)


def _vary(kit: type[Contract], base: type[Any], name: str, test: str, **members: Any) -> None:
    breaks(kit, test)(type(f"{base.__name__}{name}", (base,), {**members, "__module__": kit.__module__}))


def undeclared(kit: Any, *missing: str, breaks: tuple[str, ...]) -> None:
    """Hold what the kit is made for to fewer capabilities than it has."""
    name = f"{kit.__name__}Without{''.join(each.title() for each in missing)}"
    members = {"capabilities": kit.capabilities - {*missing}, "breaks": breaks, "__module__": kit.__module__}
    setattr(sys.modules[kit.__module__], name, type(name, (kit,), members))
