"""Ends calls whose client keeps a thread waiting: it does not send what it began, or does not read (LIM-2, LIM-8)."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import grpc

_LOOK_SECS = 0.5


class IdleWatch:
    """Knows which calls wait for their client, and since when. One thread for all of them."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        # Without a lock: `waiting` may end in a finalizer, in the middle of whatever its thread does.
        self._waits: dict[int, tuple[float, grpc.RpcContext, Callable[[], bool]]] = {}
        self._numbers = itertools.count()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="sqe-flight-idle", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Look no more. Idempotent."""
        self._stopped.set()

    @contextmanager
    def waiting(self, call: grpc.RpcContext, secs: float, over: Callable[[], bool] = lambda: False) -> Iterator[None]:
        """End the call unless this block ends within the time, and before `over` says that it is of no use."""
        number = next(self._numbers)
        self._waits[number] = (self._monotonic() + secs, call, over)
        try:
            yield
        finally:
            self._waits.pop(number, None)

    def look(self) -> None:
        """End what has waited for too long, or for nothing."""
        now = self._monotonic()
        for number, (ends, call, over) in self._waits.copy().items():
            if (ends <= now or over()) and self._waits.pop(number, None) is not None:
                call.cancel()

    def _run(self) -> None:
        while not self._stopped.wait(_LOOK_SECS):
            self.look()
