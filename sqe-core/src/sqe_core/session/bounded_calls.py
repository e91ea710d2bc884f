"""Calls that somebody else's slowness cannot hold on to, in threads that are kept: new ones cost more than most calls.

answer = calls.make(lambda abandoned: provider.is_revoked(identity), timeout_secs=30)
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")

_MOST_IDLE = 8


class TookTooLongError(Exception):
    """The call was given up; its thread ends when the call does."""


class NoThreadError(Exception):
    """The machine has no thread left; nothing was called."""


class _Call(Generic[T]):
    def __init__(self, function: Callable[[threading.Event], T]) -> None:
        self._function = function
        self._done = threading.Lock()
        self._done.acquire()
        self._answers: list[T] = []
        self._error: BaseException | None = None
        self.abandoned = threading.Event()

    def run(self) -> None:
        """Make the call, in the thread of a worker."""
        try:
            self._answers.append(self._function(self.abandoned))
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            self._error = error

    def finish(self) -> None:
        self._done.release()

    def answer(self, timeout_secs: float) -> T:
        if not self._done.acquire(timeout=max(0.0, timeout_secs)):
            self.abandoned.set()
            raise TookTooLongError
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        return self._answers[0]


class _Worker:
    def __init__(self, calls: BoundedCalls) -> None:
        self._calls = calls
        self._wake = threading.Lock()
        self._wake.acquire()
        self._next: _Call[Any] | None = None
        threading.Thread(target=self._run, name="sqe-login", daemon=True).start()

    def give(self, call: _Call[Any] | None) -> None:
        """Let it make a call, or end it."""
        self._next = call
        self._wake.release()

    def _run(self) -> None:
        while True:
            self._wake.acquire()
            call, self._next = self._next, None
            if call is None:
                return
            call.run()
            kept = self._calls.take_back(self)
            call.finish()
            # What it was about may be a credential, which is not kept until the next call.
            del call
            if not kept:
                return


class BoundedCalls:
    """Makes calls with a bound on their time. Safe for use from many threads; how many at once is not its business."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[_Worker] = []
        self._closed = False

    def make(self, function: Callable[[threading.Event], T], *, timeout_secs: float) -> T:
        """Return or raise what the function does; it is told with an event when nobody waits for it any more.

        Raises:
            TookTooLongError: it took longer.
            NoThreadError: no thread could be started.
        """
        call = _Call(function)
        with self._lock:
            worker = self._idle.pop() if self._idle else None
        try:
            worker = worker or _Worker(self)
        except RuntimeError:
            raise NoThreadError from None
        worker.give(call)
        return call.answer(timeout_secs)

    def take_back(self, worker: _Worker) -> bool:
        """Keep a worker for another call; False when there are enough."""
        with self._lock:
            kept = not self._closed and len(self._idle) < _MOST_IDLE
            if kept:
                self._idle.append(worker)
            return kept

    def close(self) -> None:
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.give(None)
