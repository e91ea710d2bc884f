"""What all contracts share: no overriding, declared capabilities, and the tests of a factory."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar, get_type_hints

import pytest

from sqe_core.plugins.calls import is_frozen_dataclass
from sqe_core.spi.factory import PluginContext
from sqe_core.spi.identity import Secret

T = TypeVar("T")

_SECRET_KEY = re.compile(r"(^|_)(password|secret|token|api_key|private_key|access_key)$")


class Contract:
    """Base of the contracts. Subclasses supply fixtures and capabilities, and override no test."""

    KNOWN_CAPABILITIES: ClassVar[frozenset[str]] = frozenset()
    """What a vendor may declare; set by the contract of each kind."""

    capabilities: ClassVar[frozenset[str]] = frozenset()
    """What the plugin can do. What is not declared must be refused."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        unknown = cls.capabilities - cls.KNOWN_CAPABILITIES
        if unknown:
            known = ", ".join(sorted(cls.KNOWN_CAPABILITIES))
            raise TypeError(f"{cls.__name__}: unknown capabilities {', '.join(sorted(unknown))}; known: {known}")
        for name, member in vars(cls).items():
            inherited = any(hasattr(base, name) for base in cls.__bases__)
            if name.startswith("test_") and inherited and not _is_explained_failure(member):
                raise TypeError(
                    f"{cls.__name__} overrides {name} of the contract; mark a known fault with"
                    " @pytest.mark.xfail(reason=..., strict=True) and call super()"
                )

    def can(self, capability: str) -> bool:
        """Say whether a capability is declared.

        Args:
            capability: one of `KNOWN_CAPABILITIES`.
        """
        assert capability in self.KNOWN_CAPABILITIES, capability
        return capability in self.capabilities

    def need(self, capability: str) -> None:
        """Skip the test when a capability is not declared.

        Args:
            capability: one of `KNOWN_CAPABILITIES`.
        """
        if not self.can(capability):
            pytest.skip(f"{capability} is not declared")


def _is_explained_failure(member: object) -> bool:
    marks: list[pytest.Mark] = getattr(member, "pytestmark", [])
    return any(mark.name == "xfail" and mark.kwargs.get("reason") and mark.kwargs.get("strict") for mark in marks)


class ConfigContract(Contract):
    """The tests of whatever has settings.

    Fixtures to supply: `factory`, and `config`, an instance of its `config_type` that works.
    """

    @pytest.fixture
    def factory(self) -> Any:
        """The factory under test."""
        raise NotImplementedError("supply the fixture 'factory'")

    @pytest.fixture
    def config(self) -> Any:
        """Settings that work."""
        raise NotImplementedError("supply the fixture 'config'")

    def test_config_type_is_frozen(self, factory: Any, config: Any) -> None:
        """Settings are values: nobody changes them afterwards."""
        assert is_frozen_dataclass(factory.config_type)
        assert type(config) is factory.config_type

    def test_config_type_can_be_filled(self, factory: Any) -> None:
        """The configuration reads the annotations at run time: nothing may stand behind TYPE_CHECKING."""
        assert set(get_type_hints(factory.config_type)) >= {field.name for field in fields(factory.config_type)}

    def test_config_keys_are_keyword_only(self, factory: Any) -> None:
        """New keys can be added anywhere."""
        assert all(field.kw_only for field in fields(factory.config_type))

    def test_secret_keys_are_secrets(self, factory: Any) -> None:
        """A key that holds a secret has the type Secret, which never prints."""
        hints = get_type_hints(factory.config_type)
        plain = [
            field.name
            for field in fields(factory.config_type)
            if _SECRET_KEY.search(field.name) and "Secret" not in str(hints[field.name])
        ]
        assert not plain, f"make {plain} of type Secret"


class FactoryContract(ConfigContract):
    """The tests of every factory. The fixtures to supply are those of `ConfigContract`."""

    NAME: ClassVar[str] = "under-test"
    """The name that objects are created with."""

    CONTEXT: ClassVar[type[PluginContext]] = PluginContext
    """What the core offers to factories of this kind."""

    @pytest.fixture
    def context(self) -> PluginContext:
        """What the core offers; override it to turn the clock."""
        return self.CONTEXT()

    def test_kind_is_a_plain_word(self, factory: Any) -> None:
        """The kind can be written in TOML and in entry points."""
        assert re.fullmatch(r"[a-z][a-z0-9_-]*", factory.kind)

    def test_a_rehearsal_makes_nothing(self, factory: Any, config: Any, context: PluginContext, tmp_path: Path) -> None:
        """`sqe config check` creates objects too, and leaves no file behind."""
        before = sorted(tmp_path.rglob("*"))
        made = factory.create(self.NAME, config, replace(context, rehearsal=True))
        assert sorted(tmp_path.rglob("*")) == before
        if hasattr(made, "close"):
            made.close()


class ProductContract(FactoryContract):
    """The tests of what is closed at the end. The fixtures to supply are those of `ConfigContract`."""

    @pytest.fixture
    def product(self, factory: Any, config: Any, context: Any) -> Iterator[Any]:
        """What the factory makes."""
        product = factory.create(self.NAME, config, context)
        yield product
        product.close()

    def test_closes_twice(self, factory: Any, config: Any, context: Any) -> None:
        """Closing is idempotent."""
        product = factory.create(self.NAME, config, context)
        product.close()
        product.close()


def assert_no_secret(text: str, *secrets: Secret | None) -> None:
    """Fail when one of the secrets stands in a text."""
    for secret in secrets:
        if secret:
            assert secret.reveal() not in text, "a secret leaked"


def in_threads(call: Callable[[], T], count: int = 16) -> list[T]:
    """Make the same call from several threads at once and return the answers."""
    with ThreadPoolExecutor(max_workers=8) as pool:
        return [future.result() for future in [pool.submit(call) for _ in range(count)]]
