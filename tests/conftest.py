"""One engine, one JVM, for all tests that need Spark; warehouses are cheap and new for each test module.

`sqe_core` is imported by the fixtures only: the tests of the wheels run where it is not installed.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

# A run in the background ignores Ctrl-C, and so would every process that a test starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

if TYPE_CHECKING:
    from testbed.gate import Gate
    from testbed.issuer import Issuer
    from testbed.keycloak import Keycloak
    from testbed.seaweedfs import SeaweedFS

    from sqe_core.bootstrap import EmbeddedSqe
    from sqe_core.engine.spark.engine import SparkEngine


@pytest.fixture(scope="session")
def engine() -> Iterator[SparkEngine]:
    """The engine of the test run."""
    from sqe_core.engine.spark.engine import EngineOptions, SparkEngine

    engine = SparkEngine(EngineOptions(memory_bytes=2 << 30, jar_groups=frozenset({"aws"})))
    engine.start()
    try:
        engine.wait_ready(timeout_secs=600)
        yield engine
    finally:
        engine.stop()


@pytest.fixture(scope="session")
def keycloak() -> Iterator[Keycloak]:
    """The identity provider of the test run; what a test changes there, it puts back."""
    from testbed.keycloak import Keycloak

    with Keycloak() as server:
        yield server.ready()


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    """An identity provider in this process."""
    from testbed.issuer import Issuer

    issuer = Issuer()
    yield issuer
    issuer.stop()


@pytest.fixture(scope="module")
def weed(issuer: Issuer) -> Iterator[SeaweedFS]:
    """An object store with a catalog, which takes the tokens of `issuer` and allows nobody anything."""
    from testbed.issuer import CLIENT
    from testbed.seaweedfs import SeaweedFS

    with SeaweedFS(issuer.url, issuer.jwks_url, CLIENT) as server:
        yield server.ready()


@pytest.fixture(scope="module")
def gate(weed: SeaweedFS) -> Iterator[Gate]:
    """What stands in front of the object store of `weed`."""
    from testbed.gate import Gate

    gate = Gate(weed.s3_url)
    yield gate
    gate.stop()


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for a warehouse."""
    return tmp_path_factory.mktemp("warehouse")


@pytest.fixture(scope="module")
def sqe(engine: SparkEngine, warehouse: Path) -> Iterator[EmbeddedSqe]:
    """An embedded warehouse on the shared engine; `sqe.execute(sql)` runs a statement through the whole pipeline."""
    from sqe_core.bootstrap import open_embedded

    opened = open_embedded(warehouse, engine=engine)
    yield opened
    opened.close()
