"""Workers of a test run that share an engine: a test that looks at all of it runs while no other one does."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


class Turns:
    """A lock that tests have together, and those marked `alone` for themselves.

    Args:
        folder: all workers of the run know it.
    """

    def __init__(self, folder: Path) -> None:
        self._queue, self._turn = (
            os.open(folder / f"turns.{name}", os.O_RDWR | os.O_CREAT, 0o600) for name in ("queue", "turn")
        )

    def take(self, *, alone: bool) -> None:
        """Wait for the turn of a test."""
        # Who waits to be alone holds the queue: nobody overtakes.
        fcntl.flock(self._queue, fcntl.LOCK_EX)
        fcntl.flock(self._turn, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(self._queue, fcntl.LOCK_UN)

    def leave(self) -> None:
        """End it; the second time does nothing."""
        fcntl.flock(self._turn, fcntl.LOCK_UN)
