"""One engine, one JVM, for all tests that need Spark; warehouses are cheap and new for each test module.

`sqe_core` is imported by the fixtures only: the tests of the wheels run where it is not installed.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

# A run in the background ignores Ctrl-C, and so would every process that a test starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

if TYPE_CHECKING:
    from testbed.gate import Gate
    from testbed.issuer import Issuer
    from testbed.keycloak import Keycloak
    from testbed.seaweedfs import SeaweedFS
    from testbed.turns import Turns

    from sqe_core.bootstrap import EmbeddedSqe
    from sqe_core.engine.spark.engine import SparkEngine


_turns: Turns | None = None


def pytest_sessionstart(session: pytest.Session) -> None:
    """Workers take turns."""
    global _turns
    if "PYTEST_XDIST_WORKER" in os.environ:
        from testbed.turns import Turns

        _turns = Turns(session.config._tmp_path_factory.getbasetemp().parent)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """What shares a server is one group."""
    if config.getoption("dist") != "loadfile":
        return None
    from testbed.groups import GroupScheduling

    return GroupScheduling(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if _turns is not None:
        _turns.take(alone=item.get_closest_marker("alone") is not None)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    if _turns is None:
        return (yield)
    # The last one ends the fixtures of the whole run, among them an engine that others still use.
    if nextitem is None:
        _turns.leave()
    try:
        return (yield)
    finally:
        _turns.leave()


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkEngine]:
    """The engine of the test run, and of all its workers where it has several."""
    from testbed.joined_engine import engine_of_all_workers

    from sqe_core.engine.spark.engine import EngineOptions

    # Thousands of small statements: the optimising compiler costs more than its code earns. Without it the room for
    # compiled code is small by default, and Java keeps sweeping it.
    java_options = ("-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m")
    options = EngineOptions(memory_bytes=2 << 30, jar_groups=frozenset({"aws"}), java_options=java_options)
    # A worker's own folder lies in that of the run.
    own = tmp_path_factory.getbasetemp()
    with engine_of_all_workers(options, own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) as engine:
        yield engine


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
