"""How many calls each user has at once, of all and of those that wait for messages of their client (LIM-2).

A call holds a thread, and one user does not hold those of all. What gRPC has of a message that has not come to its end
may be as much as any message has, and nobody counts it: so the calls that may have some are counted.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from sqe_core.spi.errors import ResourcesError

_RETRY_SECS = 1


class Places:
    """Lets few calls of each user be in a block at once; others wait for that, or are refused.

    Args:
        most: how many.
        refusal: what who is refused reads, and what to do.
    """

    def __init__(self, most: int, *refusal: str) -> None:
        self._most = most
        self._refusal, self._hint = refusal
        # Reentrant, as conditions are: a stream that nobody reads on is closed by the garbage collector, anywhere.
        self._changed = threading.Condition()
        self._taken: Counter[tuple[str, str]] = Counter()

    @contextmanager
    def one(self, user: tuple[str, str], wait_secs: float = 0, *, spare: int = 0) -> Iterator[None]:
        """Wait for a place, which is free again when this block ends; `spare` calls are not counted.

        Raises:
            ResourcesError: there was none in time.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self._taken[user] < self._most + spare, wait_secs):
                raise ResourcesError(self._refusal, hint=self._hint, retry_after_secs=_RETRY_SECS)
            self._taken[user] += 1
        try:
            yield
        finally:
            with self._changed:
                self._taken[user] -= 1
                if not self._taken[user]:
                    del self._taken[user]
                self._changed.notify_all()
