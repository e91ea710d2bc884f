"""Folders for rows on their way into a statement, in the private folder of the JVM that will read them."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from pathlib import Path

from sqe_core.engine.port import EngineExecutionError, Spool
from sqe_core.engine.spark.context import EngineContext
from sqe_core.engine.spark.failures import engine_errors
from sqe_core.spi.errors import SqeError


class SparkSpool(Spool):
    """A folder that dies with its JVM. `served` says whether executors elsewhere get the files from the driver."""

    def __init__(self, context: EngineContext, run_dir: Path, *, served: bool) -> None:
        parent = run_dir / "spool"
        parent.mkdir(mode=0o700, exist_ok=True)
        self._folder = Path(tempfile.mkdtemp(prefix="rows-", dir=parent))
        self._context = context
        self._served = served

    @property
    def folder(self) -> Path:
        return self._folder

    def close(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
        if self._served and self._context.alive:
            self._served = False
            with contextlib.suppress(SqeError, EngineExecutionError), engine_errors(self._context):
                self._context.bridge.spool.Spools.forget(str(self._folder))
