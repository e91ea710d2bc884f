"""Who reads a message of somebody unknown, and who waits for that (LIM-2)."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from sqe_core.protocols.flight.sockets import network_of
from sqe_core.spi.errors import ResourcesError

# gRPC takes as big a message as any call may have: so many are in memory at a time, and not all of one address.
_MOST = 2
_MOST_OF_ADDRESS = 1
_HERE_OF_ADDRESS = 4
_RETRY_SECS = 1


class Turns:
    """Lets few read at a time, in all and of each address; some more of each address wait for that."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._here: Counter[str] = Counter()
        self._reading: Counter[str] = Counter()

    @contextmanager
    def one(self, address: str | None, wait_secs: float) -> Iterator[None]:
        """Wait for a turn, which is over when this block ends.

        Raises:
            ResourcesError: too many of this address are here, or there was no turn in time.
        """
        network = network_of(address or "")
        with _counted(self._here, network, self._changed):
            with self._changed:
                if self._here[network] > _HERE_OF_ADDRESS:
                    raise too_many_logins()
                if not self._changed.wait_for(lambda: self._free(network), wait_secs):
                    raise too_many_logins()
                self._reading[network] += 1
            try:
                yield
            finally:
                with self._changed:
                    _take_one(self._reading, network)
                    self._changed.notify_all()

    def _free(self, network: str) -> bool:
        return self._reading[network] < _MOST_OF_ADDRESS and self._reading.total() < _MOST


def too_many_logins() -> ResourcesError:
    """Return the refusal of a handshake that nobody has time for."""
    return ResourcesError(
        "Too many logins by message at once",
        hint="send the login in the header authorization, or try again later",
        retry_after_secs=_RETRY_SECS,
    )


@contextmanager
def _counted(counts: Counter[str], key: str, lock: threading.Condition) -> Iterator[None]:
    with lock:
        counts[key] += 1
    try:
        yield
    finally:
        with lock:
            _take_one(counts, key)


def _take_one(counts: Counter[str], key: str) -> None:
    counts[key] -= 1
    if not counts[key]:
        del counts[key]
