"""One engine, one JVM, for all integration tests; warehouses are cheap and new for each test module."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sqe_core.bootstrap import EmbeddedSqe, open_embedded
from sqe_core.engine.spark.engine import EngineOptions, SparkEngine


@pytest.fixture(scope="session")
def engine() -> Iterator[SparkEngine]:
    """The engine of the test run."""
    engine = SparkEngine(EngineOptions(memory_bytes=2 << 30))
    engine.start()
    try:
        engine.wait_ready(timeout_secs=600)
        yield engine
    finally:
        engine.stop()


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for a warehouse."""
    return tmp_path_factory.mktemp("warehouse")


@pytest.fixture(scope="module")
def sqe(engine: SparkEngine, warehouse: Path) -> Iterator[EmbeddedSqe]:
    """An embedded warehouse on the shared engine; `sqe.execute(sql)` runs a statement through the whole pipeline."""
    opened = open_embedded(warehouse, engine=engine)
    yield opened
    opened.close()
