"""A thread that sweeps now and then, and is looked after."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

_log = logging.getLogger(__name__)


class Sweeper:
    """Calls `sweep` every so often. A sweep that fails is logged; a thread that died is started again.

    Args:
        sweep: what to do.
        interval_secs: how often.
        name: of the thread.
    """

    def __init__(self, sweep: Callable[[], object], *, interval_secs: float, name: str) -> None:
        self._sweep = sweep
        self._interval_secs = interval_secs
        self._name = name
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def ensure_running(self) -> None:
        """Start the thread, unless it runs or was stopped. Cheap; called with each use."""
        if self._stop.is_set() or (self._thread is not None and self._thread.is_alive()):
            return
        with self._lock:
            if self._stop.is_set() or (self._thread is not None and self._thread.is_alive()):
                return
            if self._thread is not None:
                _log.error("the thread %s had died and is started again", self._name)
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End the thread. Idempotent, from the thread itself too."""
        self._stop.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout=5)

    def _run(self) -> None:
        while not self._stop.wait(self._interval_secs):
            try:
                self._sweep()
            except Exception:  # noqa: BLE001 - the next sweep may work
                _log.exception("%s failed", self._name)
