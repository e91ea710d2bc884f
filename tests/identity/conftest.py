"""A real identity provider, two catalogs that decide per user, and a server that knows no secret of theirs."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import suppress

import adbc_driver_flightsql.dbapi as flight_sql
import pytest
from identity.people import ALICE, BOB, Bed, Server
from testbed.flight_client import RawClient
from testbed.keycloak import CLIENT, Keycloak
from testbed.making import each_ended
from testbed.nessie import Nessie
from testbed.seaweedfs import BROWSE, READ, SeaweedFS


@pytest.fixture(scope="session")
def bed(keycloak: Keycloak) -> Iterator[Bed]:
    """All of them."""
    with SeaweedFS(keycloak.issuer, keycloak.jwks_url, CLIENT) as store, Nessie(keycloak, store) as nessie:
        yield Bed(keycloak, store.ready(), nessie.ready())


@pytest.fixture(scope="session")
def server(bed: Bed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(bed, tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture(scope="session")
def tables(bed: Bed, server: Server) -> None:
    """What alice made, and may show: `emp` to bob, in both catalogs; `pay` and `fin` to nobody."""
    bed.store.allow({ALICE: ["s3tables:*"], BOB: BROWSE})
    with server.connect("alice") as alice:
        for catalog in ("lake", "nessie"):
            for statement in (
                f"CREATE SCHEMA {catalog}.hr",
                f"CREATE SCHEMA {catalog}.fin",
                f"CREATE TABLE {catalog}.hr.emp (id bigint, name varchar)",
                f"INSERT INTO {catalog}.hr.emp VALUES (1, 'ann'), (2, 'ben'), (3, 'cem')",
                f"CREATE TABLE {catalog}.fin.pay (id bigint, amount bigint)",
                f"INSERT INTO {catalog}.fin.pay VALUES (1, 100), (2, 200)",
            ):
                server.run(alice, statement)
    bed.store.allow_table("hr", "emp", {BOB: READ})


@pytest.fixture(autouse=True)
def _let_go() -> Iterator[None]:
    """What the driver cannot close goes with its test, whose marks know of that."""
    yield
    gc.collect()


@pytest.fixture
def connect(server: Server, tables: None) -> Iterator[Callable[[str], flight_sql.Connection]]:
    """Log people in; their connections are closed with the test."""
    opened: list[flight_sql.Connection] = []

    def make(user: str) -> flight_sql.Connection:
        opened.append(server.connect(user))
        return opened[-1]

    yield make
    for connection in opened:
        with suppress(flight_sql.Error, RuntimeError, ResourceWarning):
            connection.close()


@pytest.fixture
def alice(connect: Callable[[str], flight_sql.Connection]) -> flight_sql.Connection:
    """Alice, who may do everything."""
    return connect("alice")


@pytest.fixture
def bob(connect: Callable[[str], flight_sql.Connection]) -> flight_sql.Connection:
    """Bob, who may read `emp`."""
    return connect("bob")


@pytest.fixture
def raw(server: Server, tables: None) -> Iterator[Callable[..., RawClient]]:
    """Make clients that can send everything."""
    yield from each_ended(
        lambda user, *headers: RawClient(server.uri, user, user, *headers), lambda each: each.flight.close()
    )
