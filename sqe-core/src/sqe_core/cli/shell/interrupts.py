"""Ctrl-C while a statement runs: it cancels the statement and nothing else."""

from __future__ import annotations

import queue
import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType

_REPEAT_SECONDS = 0.5
_PATIENCE = 3
"""The how many-th Ctrl-C ends the program, when cancelling does not help."""


class Interrupts:
    """Context around one statement. The first Ctrl-C asks for its end; the third gives up waiting for it.

    The signal handler runs in the main thread, between any two of its instructions, so it only puts a token into a
    SimpleQueue, which is made for that. A thread of ours does the cancelling. It repeats itself until the statement is
    over: a cancellation that comes before the engine knows the statement would be lost.
    """

    def __init__(self, cancel: Callable[[], None]) -> None:
        self._cancel = cancel
        self._tokens: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._count = 0
        self._previous: object = None
        self._thread: threading.Thread | None = None
        self._is_main = threading.current_thread() is threading.main_thread()

    @property
    def requested(self) -> bool:
        """Whether somebody pressed Ctrl-C."""
        return self._count > 0

    def request(self) -> None:
        """Cancel, as Ctrl-C would."""
        self._count += 1
        self._tokens.put(True)

    def request_silently(self) -> None:
        """Cancel because the reader has seen enough: nobody pressed anything."""
        self._tokens.put(True)

    def __enter__(self) -> Interrupts:
        self._thread = threading.Thread(target=self._watch, name="sqe-cancel", daemon=True)
        self._thread.start()
        if self._is_main:
            self._previous = signal.signal(signal.SIGINT, self._on_signal)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_main:
            signal.signal(signal.SIGINT, self._previous)  # type: ignore[arg-type]
        self._tokens.put(False)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.request()
        if self._count >= _PATIENCE:
            raise KeyboardInterrupt

    def _watch(self) -> None:
        if not self._tokens.get():
            return
        while True:
            try:
                self._cancel()
            except Exception:  # noqa: BLE001, S110 a failing cancellation is repeated, the statement's own error tells more
                pass
            try:
                if not self._tokens.get(timeout=_REPEAT_SECONDS):
                    return
            except queue.Empty:
                continue
