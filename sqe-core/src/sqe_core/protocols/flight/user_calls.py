"""How many calls each user has open: a call holds a thread, and one user does not hold those of all (LIM-2)."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from sqe_core.spi.errors import ResourcesError


class UserCalls:
    """Counts the calls that run.

    Args:
        most: how many one user may have.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        # Reentrant: a stream that nobody reads on is closed by the garbage collector, anywhere.
        self._lock = threading.RLock()
        self._counts: Counter[tuple[str, str]] = Counter()

    @contextmanager
    def one_more(self, user: tuple[str, str], *, spare: int = 0) -> Iterator[None]:
        """Count a call for as long as it runs; refuse it when there are too many, `spare` of them not counted."""
        with self._lock:
            if self._counts[user] >= self._most + spare:
                raise ResourcesError(f"You have {self._most} calls open", hint="end some of them", retry_after_secs=1)
            self._counts[user] += 1
        try:
            yield
        finally:
            with self._lock:
                self._counts[user] -= 1
                if not self._counts[user]:
                    del self._counts[user]
