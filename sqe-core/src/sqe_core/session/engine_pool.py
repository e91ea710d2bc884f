"""How many engine sessions are open in all: what many idle sessions hold together is bounded (LIM-10).

An engine session costs about a megabyte, and nothing lives in it that could not be made again: the longest unused ones
of all sessions are closed, and opened anew when their users come back.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING
from weakref import WeakSet

if TYPE_CHECKING:
    from sqe_core.session.engine_sides import EngineSides

MOST_OPEN = 256


class EnginePool:
    """Knows who holds engine sessions. Safe for use from many threads; no lock is held while one is closed."""

    def __init__(self, most: int = MOST_OPEN) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._holders: WeakSet[EngineSides] = WeakSet()

    def opened(self, holder: EngineSides) -> None:
        """One more is open: close those of others that were not needed for longest, as long as there are too many."""
        with self._lock:
            self._holders.add(holder)
            holders = [each for each in self._holders if len(each)]
            self._holders = WeakSet(holders)
        over = sum(map(len, holders)) - self._most
        if over <= 0:
            return
        unused = [(since, place) for place, each in enumerate(holders) if (since := each.idle_since()) is not None]
        for _, place in sorted(unused):
            if over <= 0:
                return
            if holders[place] is not holder and holders[place].close_one():
                over -= 1

    @property
    def count(self) -> int:
        with self._lock:
            return sum(map(len, self._holders))
