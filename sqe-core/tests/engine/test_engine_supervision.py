"""The life of the engine: states, losses, restarts, giving up. A program of ours plays the JVM."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from testbed.clocks import wait_for
from testbed.making import each_ended

from sqe_core.engine.port import EngineState
from sqe_core.engine.spark import archive as archive_module
from sqe_core.engine.spark import engine as engine_module
from sqe_core.engine.spark.engine import EngineOptions, SparkEngine
from sqe_core.engine.spark.java import inspect_java
from sqe_core.engine.spark.launcher import LaunchPlan
from sqe_core.spi.errors import EngineLostError, InternalError, ResourcesError, StartupError

MakeEngine = Callable[..., SparkEngine]


@pytest.fixture
def java(fake_java: Callable[[str], Any]) -> Any:
    return fake_java("java").write()


@pytest.fixture
def make_engine(java: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MakeEngine]:
    monkeypatch.setattr(engine_module, "_BACK_OFF_SECS", (0.0,))

    def prepare(options: EngineOptions, report: Callable[[str, float | None], None]) -> LaunchPlan:
        report("Preparing", 0.5)
        return LaunchPlan(
            java=inspect_java("test", java.home), spark_home=tmp_path, class_path=(), executor_jars=(), options=options
        )

    def make(prepare: Any = prepare, **given: Any) -> SparkEngine:
        options = EngineOptions(**{"cache_dir": tmp_path / "cache", "local_dir": tmp_path / "spill", **given})
        return SparkEngine(options, prepare=prepare)

    yield from each_ended(make, lambda engine: engine.stop())


def kill(engine: SparkEngine) -> int:
    pid = engine.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    return pid


def test_from_start_to_stop(make_engine: MakeEngine) -> None:
    engine = make_engine()
    steps: list[tuple[str, float | None]] = []
    engine.on_progress(lambda step, share: steps.append((step, share)))
    states = [engine.state]
    with pytest.raises(InternalError, match="was not started"):
        engine.wait_ready()
    engine.start()
    engine.start()
    engine.wait_ready(30)
    states.append(engine.state)
    assert engine.process_alive
    assert engine.context.alive
    assert engine.run_dir.is_dir()
    assert steps == [("Preparing", 0.5), ("Starting Spark", None), ("Ready", 1.0)]
    context, run_dir = engine.context, engine.run_dir
    engine.stop()
    engine.stop()
    states.append(engine.state)
    assert states == [EngineState.STOPPED, EngineState.READY, EngineState.STOPPED]
    assert (engine.process_alive, context.alive, run_dir.exists()) == (False, False, False)
    with pytest.raises(EngineLostError):
        _ = engine.context


def test_a_stopped_engine_can_be_started_again(make_engine: MakeEngine) -> None:
    engine = make_engine()
    for _ in range(2):
        engine.start()
        engine.wait_ready(30)
        engine.stop()


@pytest.mark.rule("LIM-9")
def test_a_lost_jvm_is_replaced_and_listeners_are_told(make_engine: MakeEngine) -> None:
    engine = make_engine()
    told: list[tuple[EngineState, bool]] = []
    engine.start()
    engine.wait_ready(30)
    first = engine.context

    def fails() -> None:
        raise RuntimeError("an observer's fault")

    engine.on_lost(fails)
    engine.on_lost(lambda: told.append((engine.state, first.alive)))
    pid = kill(engine)
    wait_for(lambda: bool(told))
    wait_for(lambda: engine.state is EngineState.READY)
    assert told == [(EngineState.LOST, False)]
    assert engine.pid != pid
    assert engine.context is not first
    assert engine.process_alive


@pytest.mark.rule("LIM-9")
def test_it_gives_up_after_the_limit_and_says_why(make_engine: MakeEngine) -> None:
    engine = make_engine(restart_limit=2)
    engine.start()
    engine.wait_ready(30)
    for _ in range(3):
        wait_for(lambda: engine.state is EngineState.READY)
        pid = kill(engine)
        wait_for(lambda pid=pid: engine.pid != pid or engine.state is EngineState.FAILED)  # type: ignore[misc]
    wait_for(lambda: engine.state is EngineState.FAILED)
    with pytest.raises(StartupError, match=r"ended 3 times in a row.*SIGKILL"):
        engine.wait_ready()


def test_a_restart_that_fails_counts_too(make_engine: MakeEngine, java: Any) -> None:
    engine = make_engine(restart_limit=2)
    engine.start()
    engine.wait_ready(30)
    java.behave("fails")
    kill(engine)
    wait_for(lambda: engine.state is EngineState.FAILED)
    assert isinstance(engine.failure, StartupError)
    assert "no luck" in str(engine.failure)


def test_a_first_start_that_fails_is_final_until_started_again(make_engine: MakeEngine, java: Any) -> None:
    java.behave("fails")
    engine = make_engine()
    engine.start()
    with pytest.raises(StartupError, match="no luck"):
        engine.wait_ready(30)
    assert engine.state is EngineState.FAILED
    java.behave("good")
    engine.start()
    engine.wait_ready(30)
    assert engine.failure is None


def test_an_unexpected_fault_is_a_failure_with_its_cause(make_engine: MakeEngine) -> None:
    def prepare(options: EngineOptions, report: Any) -> LaunchPlan:
        raise ZeroDivisionError("a bug")

    engine = make_engine(prepare)
    engine.start()
    with pytest.raises(StartupError, match="ZeroDivisionError: a bug") as caught:
        engine.wait_ready(30)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_waiting_has_an_end(make_engine: MakeEngine, java: Any) -> None:
    java.behave("silent")
    engine = make_engine()
    engine.start()
    with pytest.raises(ResourcesError, match="still starting"):
        engine.wait_ready(0.2)


@pytest.mark.parametrize("moment", ["preparing", "starting"])
def test_stop_interrupts_a_start(make_engine: MakeEngine, java: Any, moment: str, tmp_path: Path) -> None:
    reached, go_on = threading.Event(), threading.Event()
    java.behave("silent")
    engine = make_engine()

    def listen(step: str, share: float | None) -> None:
        if (step == "Starting Spark") == (moment == "starting"):
            reached.set()
            if moment == "preparing":
                go_on.wait(10)

    engine.on_progress(listen)
    engine.start()
    assert reached.wait(10)
    threading.Timer(0.1, go_on.set).start()
    before = time.monotonic()
    engine.stop()
    assert time.monotonic() - before < 10
    assert engine.state is EngineState.STOPPED
    assert engine.failure is None
    assert not list((tmp_path / "spill").glob("*")) if (tmp_path / "spill").exists() else True


def test_a_listener_that_fails_does_not_stop_the_start(make_engine: MakeEngine) -> None:
    engine = make_engine()

    def fails(step: str, share: float | None) -> None:
        raise RuntimeError("drawing failed")

    engine.on_progress(fails)
    engine.start()
    engine.wait_ready(30)


def test_a_damaged_class_archive_is_forgotten(
    make_engine: MakeEngine, java: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "cache" / "engine" / "classes-1.jsa"
    archive.parent.mkdir(parents=True, mode=0o700)
    archive.write_bytes(b"damaged")
    monkeypatch.setattr(archive_module, "archive_path", lambda plan: archive)
    java.behave("bad archive")
    engine = make_engine()
    engine.start()
    engine.wait_ready(30)
    assert not archive.exists()
    assert archive.with_suffix(".failed").exists()
