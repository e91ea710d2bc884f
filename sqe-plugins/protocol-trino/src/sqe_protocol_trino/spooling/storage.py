"""Where sealed segments lie."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from sqe_protocol_trino.spooling.seal import Readable


class StoredSegment(Readable, Protocol):
    """A segment that is read."""

    def close(self) -> None:
        """Read no more of it."""


class Storage(Protocol):
    """Keeps segments for as long as the server runs. Safe for use from many threads."""

    def has_room(self, size: int) -> bool:
        """Whether as many bytes more would leave enough for others."""

    def write(self, name: str, frames: Iterable[bytes]) -> None:
        """Keep a segment; of one that cannot be written whole nothing stays.

        Raises:
            OSError: it cannot be written.
        """

    def open(self, name: str) -> StoredSegment:
        """Read a segment.

        Raises:
            OSError: it cannot be read.
        """

    def delete(self, name: str) -> None:
        """Forget a segment, which may be gone.

        Raises:
            OSError: it cannot be deleted.
        """

    def close(self) -> None:
        """Delete what is left."""
