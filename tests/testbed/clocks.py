"""Time in tests: waiting for what happens elsewhere, and clocks that a test turns."""

from __future__ import annotations

import time
from collections.abc import Callable

PROMPT_SECS = 30
"""What tests call soon: far less than what runs on would take, more than a busy machine makes of a moment."""


def wait_for(happened: Callable[[], object], secs: float = PROMPT_SECS) -> None:
    """Wait until something is so; fail when it takes too long."""
    deadline = time.monotonic() + secs
    while not happened():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


class StoppedClock:
    """A clock of seconds that stands still until a test sets it."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class TurnedClock:
    """A monotonic clock that a test turns."""

    def __init__(self) -> None:
        self.offset = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.offset
