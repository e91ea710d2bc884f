"""The JVM dies in the middle of things: an error, the old or the new snapshot, and then everything goes on."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sqe_core.bootstrap import EmbeddedSqe
from sqe_core.engine.port import EngineState
from sqe_core.engine.spark.engine import EngineOptions, SparkEngine
from sqe_core.spi.errors import EngineLostError, SqeError


@pytest.fixture(scope="module")
def engine() -> Iterator[SparkEngine]:
    """An engine for these tests alone."""
    engine = SparkEngine(EngineOptions(memory_bytes=512 << 20))
    engine.start()
    try:
        engine.wait_ready(300)
        yield engine
    finally:
        engine.stop()


def kill(engine: SparkEngine) -> None:
    assert engine.pid is not None
    os.kill(engine.pid, signal.SIGKILL)


def count(sqe: EmbeddedSqe) -> int:
    return sqe.execute("SELECT count(*) FROM survivors").read_all().column(0).to_pylist()[0]


# What is killed is elsewhere the JVM (test_engine_lifecycle.py) or the server that writes (test_process_ingest.py).
@pytest.mark.long
def test_the_engine_is_killed_during_a_write(sqe: EmbeddedSqe, engine: SparkEngine, warehouse: Path) -> None:
    sqe.execute("CREATE TABLE survivors AS SELECT id FROM range(1000) AS r(id)").close()
    sqe.execute("CREATE TEMPORARY VIEW kept AS SELECT max(id) AS top FROM survivors").close()
    failures: list[SqeError] = []

    def write() -> None:
        try:
            sqe.execute(
                "INSERT INTO survivors SELECT id FROM range(30000000) AS r(id) WHERE md5(cast(id AS varchar)) > '8'"
            ).close()
        except SqeError as error:
            failures.append(error)

    thread = threading.Thread(target=write)
    thread.start()
    time.sleep(2.0)
    kill(engine)
    thread.join(60)
    assert not thread.is_alive()
    assert [type(error) for error in failures] == [EngineLostError]
    assert "engine" in failures[0].message
    assert count(sqe) == 1000
    assert sqe.execute("SELECT top FROM kept").read_all().column(0).to_pylist() == [999]
    assert sqe.execute("INSERT INTO survivors VALUES 1000").affected_rows == 1
    assert count(sqe) == 1001
    assert engine.state is EngineState.READY


def test_the_engine_is_killed_while_a_result_streams(sqe: EmbeddedSqe, engine: SparkEngine) -> None:
    result = sqe.execute("SELECT id, repeat('x', 1000) AS t FROM range(3000000) AS r(id)")
    batches = iter(result)
    next(batches)
    kill(engine)
    with pytest.raises(EngineLostError):
        for _ in batches:
            pass
    assert sqe.execute("SELECT 1 AS one").read_all().num_rows == 1
