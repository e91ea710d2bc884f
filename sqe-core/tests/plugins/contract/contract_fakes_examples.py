"""The examples of the SPI's docstrings keep the contracts, too: what a vendor copies is a start that holds."""

from __future__ import annotations

import doctest
from datetime import UTC, datetime
from typing import Any

from contract_variants import given

from sqe_core import spi
from sqe_core.spi import (
    BasicCredential,
    ClientInfo,
    LoginRequest,
    NoConfig,
    NoCredential,
    ObjectName,
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
    names = vars(spi)
    names["__name__"] = __name__
    for thing in things:
        for example in doctest.DocTestParser().get_examples(thing.__doc__ or ""):
            exec(compile(example.source, thing.__name__, "exec"), names)
    return names


class Example:
    """Settings that are none."""

    config = given(NoConfig)


class TestGuests(Example, AuthProviderContract):
    factory = given(lambda: written(spi.AuthProvider, spi.AuthProviderFactory)["GuestsFactory"]())
    accepted = given(lambda: LoginRequest(credential=NoCredential(), client=CLIENT))
    foreign = given(
        lambda: [LoginRequest(credential=BasicCredential(username="a", password=Secret("b")), client=CLIENT)]
    )


class TestFolder(Example, CatalogContract):
    capabilities = frozenset({"views", "writes"})

    factory = given(lambda: written(spi.CatalogBackend, spi.CatalogFactory)["FolderFactory"]())


class TestWeekdays(Example, PolicyEnforcerContract):
    capabilities = frozenset({"denies", "abstains"})

    factory = given(lambda: written(spi.PolicyEnforcer, spi.PolicyEnforcerFactory)["WeekdaysFactory"]())
    allowed = given(lambda: make_policy_request(PEOPLE))
    denied = given(lambda: make_policy_request(PEOPLE, now=datetime(2026, 1, 3, tzinfo=UTC)))


class TestShelf(Example, LineageSinkContract):
    factory = given(lambda: written(spi.LineageSink, spi.LineageSinkFactory)["ShelfFactory"]())

    delivered = given(lambda sink: lambda: sink.documents)
