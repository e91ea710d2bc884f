"""Catalogs that a session finds by their names: its own, a bounded number, and never through a shared account."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import pytest

from sqe_core.catalog.discovery import DiscoveredCatalogs, FoundCatalogs
from sqe_core.catalog.registry import CatalogRegistry, Mount
from sqe_core.query.judge.names import NameContext, NameResolver
from sqe_core.spi.catalog import CatalogBackend, SupportsDiscovery
from sqe_core.spi.errors import ExternalError, ObjectNotFoundError, ResourcesError
from sqe_core.spi.identity import Identity
from sqe_core.testing.fakes import make_identity

ALICE = make_identity("alice", token="a")
BOB = make_identity("bob", token="b")


class Service(CatalogBackend, SupportsDiscovery):
    """Offers `lake_<user>` to each user."""

    def __init__(self, mode: Literal["user", "shared"] = "user") -> None:
        self.identity_mode = mode
        self.asked: list[tuple[str, str]] = []
        self.made: list[Service] = []
        self.closed = False
        self.down = False
        self.serves_everything = False

    def spark_properties(self, identity: Identity) -> Mapping[str, str]:
        return {}

    def discover(self, name: str, identity: Identity) -> CatalogBackend | None:
        self.asked.append((name, identity.username))
        if self.down:
            raise ExternalError("down")
        if not name.startswith(f"lake_{identity.username}"):
            return None
        self.made.append(Service())
        return self.made[-1]

    def is_same(self, other: CatalogBackend, identity: Identity) -> bool:
        return self.serves_everything

    def close(self) -> None:
        self.closed = True


def discovery(
    service: Service, identity: Identity = ALICE, found: FoundCatalogs | None = None, name: str = "main"
) -> DiscoveredCatalogs:
    registry = CatalogRegistry([Mount(name=name, backend=service)])
    return DiscoveredCatalogs(registry, lambda: identity, found or FoundCatalogs())


def test_each_session_finds_its_own() -> None:
    service = Service()
    alice, bob = discovery(service), discovery(service, BOB)

    found = alice.find("lake_alice")
    assert found is not None
    assert alice.find("lake_alice") is found
    assert alice.holds(found)
    assert not bob.holds(found)
    assert bob.find("lake_alice") is None
    assert [mount.name for mount in alice.mounts()] == ["lake_alice"]
    assert bob.mounts() == ()


def test_what_is_mounted_or_unknown_is_not_asked_for_again() -> None:
    service = Service()
    found = discovery(service)
    for _ in range(3):
        assert found.find("main") is None
        assert found.find("nil") is None

    assert service.asked == [("nil", "alice")]


def test_a_service_that_is_down_is_asked_again() -> None:
    service = Service()
    found = discovery(service)
    service.down = True
    assert found.find("lake_alice") is None
    service.down = False

    assert found.find("lake_alice") is not None


@pytest.mark.rule("AUTHN-3")
def test_a_shared_account_finds_nothing_for_anybody() -> None:
    service = Service("shared")
    assert discovery(service).find("lake_alice") is None
    assert service.asked == []


def test_it_is_off_unless_asked_for() -> None:
    service = Service()
    registry = CatalogRegistry([Mount(name="main", backend=service)])
    assert DiscoveredCatalogs(registry, lambda: ALICE, None).find("lake_alice") is None
    assert service.asked == []


def test_a_session_finds_a_bounded_number() -> None:
    service = Service()
    found = discovery(service)
    for number in range(20):
        found.find(f"lake_alice_{number}")
    with pytest.raises(ResourcesError, match="20 catalogs"):
        found.find("lake_alice_20")


def test_sessions_share_what_serves_a_catalog_and_each_asks_for_it() -> None:
    service, found = Service(), FoundCatalogs()
    first = discovery(service, found=found).find("lake_alice")
    second = discovery(service, found=found).find("lake_alice")

    assert first is second is not None
    assert service.asked == [("lake_alice", "alice")] * 2
    assert discovery(service, BOB, found).find("lake_alice") is None
    assert found.backends() == {"lake_alice": service.made[0]}
    assert [backend.closed for backend in service.made] == [False, True]
    found.close()
    assert service.made[0].closed
    assert not service.closed


@pytest.mark.rule("POL-9")
def test_a_name_is_one_catalog_for_everybody() -> None:
    """What a catalog restricts is asked for by its name."""
    here, there, found = Service(), Service(), FoundCatalogs()

    assert discovery(here, found=found).find("lake_alice") is not None
    assert discovery(there, found=found, name="other").find("lake_alice") is None


@pytest.mark.rule("POL-9")
@pytest.mark.parametrize("mode", ["user", "shared"])
def test_what_is_mounted_is_not_found_under_another_name(mode: Literal["user", "shared"]) -> None:
    """Policies hold by name: a second one for the same tables would be a way around them."""
    service, mounted = Service(), Service(mode)
    mounted.serves_everything = True
    registry = CatalogRegistry([Mount(name="main", backend=service), Mount(name="lake", backend=mounted)])
    found = FoundCatalogs()

    assert DiscoveredCatalogs(registry, lambda: ALICE, found).find("lake_alice") is None
    assert found.backends() == {}
    assert [backend.closed for backend in service.made] == [True]


def test_names_of_statements_are_looked_for() -> None:
    service = Service()
    found = discovery(service)
    resolver = NameResolver(CatalogRegistry([Mount(name="main", backend=service)]), discover=found.find)
    context = NameContext(catalog="main", schema=("default",))

    assert resolver.object(("lake_alice", "hr", "emp"), context).mount.name == "lake_alice"
    assert resolver.catalog("lake_alice").name == "lake_alice"
    resolver.ensure_mounted()
    for parts in (("nil", "hr", "emp"), ("env:PATH", "hr", "emp"), ("a/b", "hr", "emp")):
        with pytest.raises(ObjectNotFoundError):
            resolver.object(parts, context)
    assert [name for name, _ in service.asked] == ["lake_alice", "nil"]
