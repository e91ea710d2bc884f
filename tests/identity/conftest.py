"""A real identity provider, two catalogs that decide per user, and a server that knows no secret of theirs."""

from __future__ import annotations

import gc
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import adbc_driver_flightsql.dbapi as flight_sql
import psutil
import pytest
from identity.people import ALICE, BOB, SERVER, Bed, RawClient, Server, configuration
from testbed.keycloak import CLIENT, CLIENT_SECRET, Keycloak
from testbed.nessie import Nessie
from testbed.processes import free_ports
from testbed.seaweedfs import BROWSE, READ, SeaweedFS


@pytest.fixture(scope="session")
def bed(keycloak: Keycloak) -> Iterator[Bed]:
    """All of them."""
    with SeaweedFS(keycloak.issuer, keycloak.jwks_url, CLIENT) as store, Nessie(keycloak, store) as nessie:
        yield Bed(keycloak, store.ready(), nessie.ready())


@pytest.fixture(scope="session")
def server(bed: Bed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Our server, which talks at debug level."""
    folder = tmp_path_factory.mktemp("server")
    secret = folder / "client-secret"
    secret.write_text(CLIENT_SECRET)
    secret.chmod(0o600)
    (port,) = free_ports(1)
    metrics_port = _two_neighbours()
    (folder / "sqe.toml").write_text(configuration(bed, folder, port, metrics_port))
    process = subprocess.Popen(
        [str(SERVER), "--config", str(folder / "sqe.toml")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={
            **os.environ,
            "XDG_STATE_HOME": str(folder / "state"),
            "SQE_ENGINE__CLASS_ARCHIVE": "use",
            "SQE_LOG": "trace",
        },
    )
    running = Server(process, folder, port, metrics_port)
    reader = threading.Thread(target=running.read_log, daemon=True)
    reader.start()
    try:
        deadline = time.monotonic() + 240
        while not running.has_said("ready"):
            assert process.poll() is None, "".join(running.raw)
            assert time.monotonic() < deadline, "".join(running.raw)
            time.sleep(0.05)
        yield running
    finally:
        children = [] if process.poll() is not None else psutil.Process(process.pid).children(recursive=True)
        process.terminate()
        try:
            process.wait(40)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(20)
        for child in children:
            with suppress(psutil.NoSuchProcess):
                child.wait(20)
        reader.join(10)
        assert process.stderr is not None
        process.stderr.close()


def _two_neighbours() -> int:
    """Health is the port after metrics."""
    while True:
        (first,) = free_ports(1)
        import socket

        with suppress(OSError, OverflowError), socket.create_server(("127.0.0.1", first + 1)):
            return first


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
    made: list[RawClient] = []

    def make(user: str, *headers: tuple[bytes, bytes]) -> RawClient:
        made.append(RawClient(server, user, headers))
        return made[-1]

    yield make
    for each in made:
        each.client.close()
