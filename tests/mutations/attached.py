"""A plugin of pytest: the engine of the tests is one that already runs. Without it each mutation would start a JVM."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqe_core.engine.port import EngineState
from sqe_core.engine.spark.engine import SparkEngine
from sqe_core.engine.spark.gateway import Gateway

VARIABLE = "SQE_MUTATIONS_ENGINE"


@dataclass
class RunningProcess:
    """What an engine knows of its JVM."""

    port: int
    secret: str
    pid: int
    run_dir: Path
    alive: bool = True
    ended_by_watchdog: bool = False


def pytest_configure() -> None:
    port, secret, pid, run_dir = os.environ[VARIABLE].split(":", 3)
    process = RunningProcess(int(port), secret, int(pid), Path(run_dir))

    def start(engine: Any) -> None:
        engine._process = process
        engine._gateway = Gateway(port=process.port, secret=process.secret)
        engine._enter(EngineState.READY)

    def stop(engine: Any) -> None:
        engine._gateway = None
        engine._enter(EngineState.STOPPED)

    SparkEngine.start = start  # type: ignore[method-assign]
    SparkEngine.stop = stop  # type: ignore[method-assign]
