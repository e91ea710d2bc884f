"""How many bytes of rows all statements together keep for their clients."""

from __future__ import annotations

import threading


class Budget:
    """Counts bytes. It refuses nothing: a statement without rows that wait may always have some."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._used = 0
        self._lock = threading.Lock()

    @property
    def used(self) -> int:
        """How many bytes wait."""
        return self._used

    def has_room(self, size: int) -> bool:
        """Whether as many more would still be within the bound."""
        return self._used + size <= self.most

    def take(self, size: int) -> None:
        """Count bytes that wait from now on."""
        with self._lock:
            self._used += size

    def give(self, size: int) -> None:
        """Count bytes that do not wait any more."""
        with self._lock:
            self._used -= size
