"""A circuit breaker: whoever does not answer is left alone for a while, and then asked once."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from enum import Enum

from sqe_http.errors import HttpFailedError, Reason

# Below the server's own logger, whose level SQE_LOG sets; other libraries only warn.
_log = logging.getLogger("sqe_core.http")


class BreakerState(Enum):
    """CLOSED -> OPEN after enough failures in a row -> HALF_OPEN when one probe is on its way -> CLOSED or OPEN."""

    CLOSED = 0
    HALF_OPEN = 1
    OPEN = 2


class Breaker:
    """Counts failures in a row.

    Args:
        name: of whoever is asked, for messages: `OPA`, `The catalog`.
        threshold: how many open it.
        recovery_secs: how long it stays open.
        monotonic: the clock.
        changed: is told each new state.
    """

    def __init__(
        self,
        name: str,
        threshold: int,
        recovery_secs: float,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        changed: Callable[[BreakerState], None] = lambda state: None,
    ) -> None:
        self._name = name
        self._threshold = threshold
        self._recovery_secs = recovery_secs
        self._monotonic = monotonic
        self._changed = changed
        self._lock = threading.Lock()
        self._state = BreakerState.CLOSED
        self._failures = 0
        self._opened_at = 0.0

    def enter(self) -> bool:
        """Say whether this request is the probe; refuses it while the breaker is open or a probe is under way."""
        with self._lock:
            if self._state is BreakerState.CLOSED:
                return False
            if self._state is BreakerState.OPEN and self._monotonic() - self._opened_at >= self._recovery_secs:
                self._become(BreakerState.HALF_OPEN)
                return True
        raise HttpFailedError(
            Reason.SPARED, f"{self._name} did not answer several times and is not asked now", of_server=False
        )

    def succeeded(self, *, probe: bool) -> None:
        """An answer came. What was sent before the breaker opened does not close the breaker; only a probe does."""
        with self._lock:
            if probe or self._state is BreakerState.CLOSED:
                self._failures = 0
                self._become(BreakerState.CLOSED)

    def failed(self, *, probe: bool) -> None:
        with self._lock:
            self._failures += 1
            if probe or (self._state is BreakerState.CLOSED and self._failures >= self._threshold):
                self._opened_at = self._monotonic()
                self._become(BreakerState.OPEN)

    def _become(self, state: BreakerState) -> None:
        if state is not self._state:
            self._state = state
            if state is BreakerState.OPEN:
                _log.warning("%s does not answer; it is not asked for %d s", self._name, self._recovery_secs)
            self._changed(state)
