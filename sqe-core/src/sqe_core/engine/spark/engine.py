"""The Spark engine: prepares and starts the JVM in the background, watches it, replaces it when it dies."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sqe_core.engine.port import Engine, EngineSession, EngineState, Spool
from sqe_core.engine.spark.archive import ArchiveMaker, archive_flags, forget_archive
from sqe_core.engine.spark.conf import is_local
from sqe_core.engine.spark.launcher import EngineProcess, LaunchPlan
from sqe_core.engine.spark.options import ClassArchive, EngineOptions, Report
from sqe_core.engine.spark.preparation import prepare_launch
from sqe_core.spi.errors import EngineLostError, InternalError, ResourcesError, SqeError, StartupError

if TYPE_CHECKING:
    from sqe_core.engine.spark.context import EngineContext

__all__ = ["ClassArchive", "EngineOptions", "SparkEngine"]

_log = logging.getLogger(__name__)

_NOTICE_SECS = 10.0  # how long the end of a JVM may go unnoticed
_BACK_OFF_SECS = (0.0, 1.0, 2.0, 5.0, 10.0, 30.0)


class _StoppedError(Exception):
    """Leaves the preparation when `stop` was called in the middle of it."""


class SparkEngine(Engine):
    """The engine of one process, on one JVM at a time, which this process starts and ends.

    One supervisor thread owns the life of the JVM: prepare, start, wait for its end, start again. Everybody else reads
    the state or waits for it to change.
    """

    def __init__(
        self, options: EngineOptions, *, prepare: Callable[[EngineOptions, Report], LaunchPlan] = prepare_launch
    ) -> None:
        self.options = options
        self._prepare = prepare
        self._changed = threading.Condition()
        self._state = EngineState.STOPPED
        self._failure: Exception | None = None
        self._progress_listeners: list[Callable[[str, float | None], None]] = []
        self._lost_listeners: list[Callable[[], None]] = []
        self._supervisor: threading.Thread | None = None
        self._stopping = threading.Event()
        self._process: EngineProcess | None = None
        self._context: EngineContext | None = None
        self._process_ended = threading.Event()
        self._archive_maker: ArchiveMaker | None = None

    @property
    def state(self) -> EngineState:
        return self._state

    @property
    def failure(self) -> Exception | None:
        return self._failure

    @property
    def process_alive(self) -> bool:
        """Whether the JVM that `context` speaks to still runs."""
        context, process = self._context, self._process
        return context is not None and context.alive and process is not None and process.alive

    @property
    def context(self) -> EngineContext:
        """PySpark's context of the running JVM; another one after each restart."""
        context = self._context
        if context is None:
            raise EngineLostError("The engine is not running")
        return context

    @property
    def run_dir(self) -> Path:
        """The private folder of the running JVM, for sockets and temporary files; removed when the JVM ends."""
        process = self._process
        if process is None:
            raise EngineLostError("The engine is not running")
        return process.run_dir

    @property
    def pid(self) -> int | None:
        process = self._process
        return None if process is None else process.pid

    def on_lost(self, listener: Callable[[], None]) -> None:
        """Call `listener`, from the supervisor's thread, each time the JVM has ended by itself."""
        self._lost_listeners.append(listener)

    def on_progress(self, listener: Callable[[str, float | None], None]) -> None:
        self._progress_listeners.append(listener)

    def start(self) -> None:
        with self._changed:
            if self._state not in (EngineState.STOPPED, EngineState.FAILED):
                return
            self._failure = None
            self._stopping.clear()
            self._state = EngineState.PREPARING
            self._supervisor = threading.Thread(target=self._supervise, name="sqe-engine", daemon=True)
            self._supervisor.start()

    def wait_ready(self, timeout_secs: float | None = None) -> None:
        settled = (EngineState.READY, EngineState.FAILED, EngineState.STOPPED)
        with self._changed:
            in_time = self._changed.wait_for(lambda: self._state in settled, timeout_secs)
            state, failure = self._state, self._failure
        if not in_time:
            raise ResourcesError("The engine is still starting", hint="send the statement again in a moment")
        if failure is not None:
            raise failure
        if state is not EngineState.READY:
            raise InternalError("The engine was not started")

    def open_session(self) -> EngineSession:
        # Imported while the JVM starts, by the first caller, not by everyone who only names the engine.
        from sqe_core.engine.spark.session import SparkEngineSession

        while True:
            self.wait_ready()
            context = self.context
            try:
                return SparkEngineSession(context, self)
            except EngineLostError:
                # The JVM is gone and its supervisor has yet to notice; the next one will do.
                if not self._wait_replaced(context):
                    raise

    def _wait_replaced(self, context: EngineContext) -> bool:
        def replaced() -> bool:
            return self._context is not context or self._state is not EngineState.READY

        with self._changed:
            return self._changed.wait_for(replaced, _NOTICE_SECS)

    def open_spool(self) -> Spool:
        from sqe_core.engine.spark.spool import SparkSpool

        return SparkSpool(self.context, self.run_dir, served=not is_local(self.options.master))

    def stop(self) -> None:
        with self._changed:
            starting = self._state is EngineState.STARTING
            self._stopping.set()
        self._process_ended.set()
        process = self._process
        if starting and process is not None:
            process.abort()
        supervisor = self._supervisor
        if supervisor is not None and supervisor is not threading.current_thread():
            supervisor.join()
            self._supervisor = None

    # The supervisor's thread.

    def _supervise(self) -> None:
        restarts: deque[float] = deque(maxlen=max(self.options.restart_limit, 1))
        try:
            self._launch()
            while not self._stopping.is_set():
                self._process_ended.wait()
                self._process_ended.clear()
                if self._stopping.is_set():
                    break
                if self._process is not None and self._process.alive:
                    continue  # the end of one that never became ready, told late
                self._note_loss()
                if self._process is not None and self._process.ended_by_watchdog:
                    restarts.clear()  # nothing is wrong with it; users must not make it give up
                while not self._relaunch(restarts):
                    pass
        except _StoppedError:
            pass
        except Exception as error:  # noqa: BLE001 - becomes the state FAILED, with this as its reason
            if self._stopping.is_set():
                self._end()
                return
            failure = error if isinstance(error, SqeError) else _unexpected(error)
            self._end_process()
            self._enter(EngineState.FAILED, failure)
            return
        self._end()

    def _launch(self) -> None:
        """Bring up one JVM, to READY."""
        self._enter(EngineState.PREPARING)
        plan = self._prepare(self.options, self._report)
        self._enter(EngineState.STARTING)
        self._report("Starting Spark", None)
        flags = archive_flags(plan)
        try:
            context = self._start_process(plan, flags)
        except StartupError as error:
            if not flags or self._stopping.is_set():
                raise
            # The JVM believes what is in an archive; one that a disk has damaged must not keep the engine down.
            _log.warning("the engine did not start with its class archive, which is now forgotten: %s", error.message)
            forget_archive(plan)
            flags = []
            context = self._start_process(plan, flags)
        self._context = context
        self._archive_maker = ArchiveMaker(plan) if not flags else None
        self._report("Ready", 1.0)
        self._enter(EngineState.READY)
        if self._archive_maker is not None:
            self._archive_maker.schedule()

    def _start_process(self, plan: LaunchPlan, flags: Sequence[str]) -> EngineContext:
        deadline = time.monotonic() + self.options.start_timeout_secs
        self._process_ended.clear()
        process = EngineProcess(plan, extra_flags=flags, ended=self._process_ended.set)
        self._process = process
        # PySpark takes a while to import; the JVM needs longer.
        from sqe_core.engine.spark.context import EngineContext

        try:
            self._check_stopping()
            process.wait_gateway(deadline)
            context = EngineContext(port=process.port, secret=process.secret, ended=process.ended_within)
            process.wait_session(deadline)
        except BaseException:
            process.stop(orderly=False)
            raise
        return context

    def _relaunch(self, restarts: deque[float]) -> bool:
        """Try once more; True when the engine is READY again. Gives up by raising."""
        now = time.monotonic()
        recent = [moment for moment in restarts if now - moment < self.options.restart_window_secs]
        if len(recent) >= self.options.restart_limit:
            reason = self._process.why_ended() if self._process is not None else "unknown"
            raise StartupError(f"The engine's Java ended {len(recent) + 1} times in a row. The last time: {reason}")
        if self._stopping.wait(_BACK_OFF_SECS[min(len(recent), len(_BACK_OFF_SECS) - 1)]):
            raise _StoppedError
        restarts.append(time.monotonic())
        try:
            self._launch()
        except StartupError as error:
            _log.warning("the engine did not restart: %s", error.message)
            self._enter(EngineState.LOST)
            return False
        return True

    def _note_loss(self) -> None:
        context, process = self._context, self._process
        assert context is not None
        assert process is not None
        self._enter(EngineState.LOST)
        _log.error("the engine's Java ended by itself: %s", process.why_ended())
        for listener in tuple(self._lost_listeners):
            try:
                listener()
            except Exception:  # noqa: BLE001 - an observer's fault must not keep the engine down
                _log.exception("a listener of the engine's loss failed")
        context.close()
        self._context = None

    def _end(self) -> None:
        self._end_process()
        self._enter(EngineState.STOPPED)

    def _end_process(self) -> None:
        context, self._context = self._context, None
        if context is not None:
            context.close()
        if self._process is not None:
            self._process.stop()
        if self._archive_maker is not None:
            self._archive_maker.make_now()
            self._archive_maker = None

    def _check_stopping(self) -> None:
        if self._stopping.is_set():
            raise _StoppedError

    def _report(self, step: str, share: float | None) -> None:
        self._check_stopping()
        for listener in tuple(self._progress_listeners):
            with contextlib.suppress(Exception):  # drawing a bar must not stop the engine
                listener(step, share)

    def _enter(self, state: EngineState, failure: Exception | None = None) -> None:
        with self._changed:
            self._state = state
            self._failure = failure
            self._changed.notify_all()


def _unexpected(error: Exception) -> StartupError:
    _log.error("the engine failed to start", exc_info=error)
    failure = StartupError(f"The engine failed to start: {type(error).__name__}: {error}")
    failure.__cause__ = error
    return failure
