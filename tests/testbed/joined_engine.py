"""One JVM for all workers of a test run: the worker that needs it first starts it, the others join it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from sqe_core.engine.port import EngineState
from sqe_core.engine.spark.context import EngineContext
from sqe_core.engine.spark.engine import EngineOptions, SparkEngine


@dataclass
class JoinedProcess:
    """What an engine knows of a JVM that somebody else started."""

    port: int
    secret: str
    pid: int
    run_dir: Path
    alive: bool = True
    ended_by_watchdog: bool = False


class JoinedEngine(SparkEngine):
    """An engine on a JVM that another process started, and ends."""

    def __init__(self, address: str, options: EngineOptions | None = None) -> None:
        super().__init__(options or EngineOptions())
        self._address = address

    def start(self) -> None:
        port, secret, pid, run_dir = self._address.split(":", 3)
        process = JoinedProcess(int(port), secret, int(pid), Path(run_dir))
        self._process = cast(Any, process)
        self._context = EngineContext(port=process.port, secret=process.secret)
        self._enter(EngineState.READY)

    def stop(self) -> None:
        self._context = None
        self._enter(EngineState.STOPPED)


def spooled(engine: SparkEngine) -> list[Path]:
    """Return the folders of rows on their way that this worker made and that are still there."""
    return [folder for folder in engine.spools if folder.exists()]  # type: ignore[attr-defined]  # noted below


def _note_spools(engine: Any) -> None:
    open_spool, engine.spools = engine.open_spool, []

    def noted() -> Any:
        spool = open_spool()
        engine.spools.append(spool.folder)
        return spool

    engine.open_spool = noted


def address_of(engine: SparkEngine) -> str:
    """Return what `JoinedEngine` needs to know; it is a secret."""
    process = engine._process
    assert process is not None
    return f"{process.port}:{process.secret}:{process.pid}:{process.run_dir}"


@contextmanager
def engine_of_all_workers(options: EngineOptions, folder: Path) -> Iterator[SparkEngine]:
    """The engine that runs, or a new one, which ends when nobody needs it any more.

    Args:
        options: for a new one.
        folder: a private folder that all workers of the run know.
    """
    address = folder / "engine"
    with _lock(folder / "engine.changes") as changes, _lock(folder / "engine.users") as users:
        fcntl.flock(changes, fcntl.LOCK_EX)
        fcntl.flock(users, fcntl.LOCK_SH)  # one that is being stopped is not joined
        joins = address.exists()
        engine = JoinedEngine(address.read_text(), options) if joins else SparkEngine(options)
        _note_spools(engine)
        try:
            engine.start()
            engine.wait_ready(timeout_secs=600)
            if not joins:
                address.write_text(address_of(engine))
            fcntl.flock(changes, fcntl.LOCK_UN)
            yield engine
            if not joins:
                fcntl.flock(users, fcntl.LOCK_EX)  # the others have left; who comes now starts another
                address.unlink()
        finally:
            engine.stop()


@contextmanager
def _lock(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
