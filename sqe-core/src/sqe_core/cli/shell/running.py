"""Statements run in a thread of their own, so that the main thread can draw progress and hear Ctrl-C."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from sqe_core.cli.backend import Backend
    from sqe_core.query.run.result import StatementResult

_READ_AHEAD = 2
"""Batches that may wait for the printer; more would only fill memory."""

_TICK_SECONDS = 0.1


class _End:
    """The last thing a statement's thread hands over."""


@dataclass(frozen=True, slots=True)
class _Failure:
    error: BaseException


class RunningStatement:
    """One statement under way, as the main thread sees it: first `answer`, then `batches`, and `close`."""

    def __init__(self, sql: str, tick: Callable[[], None]) -> None:
        self.sql = sql
        self._tick = tick
        self._items: queue.Queue[StatementResult | pa.RecordBatch | _End | _Failure] = queue.Queue(_READ_AHEAD)
        self._abandoned = threading.Event()
        self._over = False

    def answer(self) -> StatementResult:
        """Wait for the first answer; raises what made the statement fail. Do not iterate it: use `batches`."""
        return self._next()  # type: ignore[return-value]

    def batches(self) -> Iterator[pa.RecordBatch]:
        while not isinstance(item := self._next(), _End):
            yield item

    def close(self, cancel: Callable[[], None]) -> None:
        """Leave nothing running: whoever stops reading early has the statement cancelled."""
        if self._over:
            return
        self._abandoned.set()
        cancel()
        while not self._over:
            try:
                self._next()
            except Exception:  # noqa: BLE001 the statement was given up, so its end is of no interest
                return

    def _next(self) -> StatementResult | pa.RecordBatch | _End:
        while True:
            try:
                item = self._items.get(timeout=_TICK_SECONDS)
                break
            except queue.Empty:
                self._tick()
        if isinstance(item, _Failure):
            self._over = True
            raise item.error
        self._over = isinstance(item, _End)
        return item

    def run(self, backend: Backend) -> None:
        """Do the work; called in the statement's thread."""
        try:
            with backend.execute(self.sql) as result:
                self._put(result)
                for batch in result:
                    if not self._put(batch):
                        break
            self._put_last(_End())
        except BaseException as error:  # noqa: BLE001 it is raised again in the main thread
            self._put_last(_Failure(error))

    def _put(self, item: StatementResult | pa.RecordBatch) -> bool:
        while not self._abandoned.is_set():
            try:
                self._items.put(item, timeout=_TICK_SECONDS)
            except queue.Full:
                continue
            return True
        return False

    def _put_last(self, item: _End | _Failure) -> None:
        # The main thread always reads up to the last item, in `close` at the latest.
        self._items.put(item)


class StatementThread:
    """The thread that runs every statement of a session: engines that bind sessions to threads need the same one."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._work: queue.SimpleQueue[RunningStatement | None] = queue.SimpleQueue()
        # A daemon: a statement that ignores its cancellation must not keep the program from ending.
        self._thread = threading.Thread(target=self._loop, name="sqe-statements", daemon=True)
        self._thread.start()

    def start(self, sql: str, tick: Callable[[], None] = lambda: None) -> RunningStatement:
        """Begin a statement; `tick` is called in the caller's thread, about ten times a second, while it waits."""
        statement = RunningStatement(sql, tick)
        self._work.put(statement)
        return statement

    def close(self) -> None:
        """End the thread once it is idle."""
        self._work.put(None)

    def _loop(self) -> None:
        while (statement := self._work.get()) is not None:
            statement.run(self._backend)
