"""The examples of the SPI's docstrings keep the contracts, too: what a vendor copies is a start that holds."""

from __future__ import annotations

import doctest
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

import sqe_core.spi
from sqe_core.spi import (
    BasicCredential,
    ClientInfo,
    LoginRequest,
    NoConfig,
    NoCredential,
    ObjectName,
    PolicyRequest,
    Secret,
)
from sqe_core.testing import (
    AuthProviderContract,
    CatalogContract,
    LineageSinkContract,
    PolicyEnforcerContract,
    make_policy_request,
)

PEOPLE = ObjectName(catalog="lake", namespace=("hr",), name="people")
CLIENT = ClientInfo(protocol="test", address="10.0.0.1")


def written(*things: type[Any]) -> dict[str, Any]:
    """Run the examples of some docstrings, one after the other; return what they define."""
    names = {name: getattr(sqe_core.spi, name) for name in sqe_core.spi.__all__}
    names["__name__"] = __name__
    for thing in things:
        for example in doctest.DocTestParser().get_examples(thing.__doc__ or ""):
            exec(compile(example.source, thing.__name__, "exec"), names)
    return names


class Example:
    """Settings that are none."""

    @pytest.fixture
    def config(self) -> NoConfig:
        return NoConfig()


class TestGuests(Example, AuthProviderContract):
    @pytest.fixture
    def factory(self) -> Any:
        return written(sqe_core.spi.AuthProvider, sqe_core.spi.AuthProviderFactory)["GuestsFactory"]()

    @pytest.fixture
    def accepted(self) -> LoginRequest:
        return LoginRequest(credential=NoCredential(), client=CLIENT)

    @pytest.fixture
    def foreign(self) -> Sequence[LoginRequest]:
        return [LoginRequest(credential=BasicCredential(username="a", password=Secret("b")), client=CLIENT)]


class TestFolder(Example, CatalogContract):
    capabilities = frozenset({"views", "writes"})

    @pytest.fixture
    def factory(self) -> Any:
        return written(sqe_core.spi.CatalogBackend, sqe_core.spi.CatalogFactory)["FolderFactory"]()


class TestWeekdays(Example, PolicyEnforcerContract):
    capabilities = frozenset({"denies", "abstains"})

    @pytest.fixture
    def factory(self) -> Any:
        return written(sqe_core.spi.PolicyEnforcer, sqe_core.spi.PolicyEnforcerFactory)["WeekdaysFactory"]()

    @pytest.fixture
    def allowed(self) -> PolicyRequest:
        return make_policy_request(PEOPLE)

    @pytest.fixture
    def denied(self) -> PolicyRequest:
        return make_policy_request(PEOPLE, now=datetime(2026, 1, 3, tzinfo=UTC))


class TestShelf(Example, LineageSinkContract):
    @pytest.fixture
    def factory(self) -> Any:
        return written(sqe_core.spi.LineageSink, sqe_core.spi.LineageSinkFactory)["ShelfFactory"]()

    @pytest.fixture
    def delivered(self, sink: Any) -> Any:
        return lambda: sink.documents
