"""How many calls each user has at once, of all and of those that wait for messages of their client (LIM-2).

A call holds a thread, and one user does not hold those of all. What gRPC has of a message that has not come to its end
may be as much as any message has, and nobody counts it: so the calls that may have some are counted. Of messages before
a login nobody knows whose they are: these are counted by address, and in all.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

from sqe_core.protocols.flight.sockets import network_of
from sqe_core.spi.errors import ResourcesError

_RETRY_SECS = 1
# gRPC takes as big a message as any call may have: so many are in memory at a time, and not all of one address.
_MOST_LOGINS = 2
_LOGINS_OF_ADDRESS = 1
LOGINS_HERE_OF_ADDRESS = 4


class Places:
    """Lets few calls of each user, or whatever has a key, be in a block at once; others wait, or are refused.

    Args:
        most: how many.
        refusal: what who is refused reads, and what to do.
    """

    def __init__(self, most: int, *refusal: str) -> None:
        self._most = most
        self._refusal, self._hint = refusal
        # Reentrant, as conditions are: a stream that nobody reads on is closed by the garbage collector, anywhere.
        self._changed = threading.Condition()
        self._taken: Counter[Hashable] = Counter()

    @contextmanager
    def one(self, key: Hashable, wait_secs: float = 0, *, spare: int = 0) -> Iterator[None]:
        """Wait for a place, which is free again when this block ends; `spare` calls are not counted.

        Raises:
            ResourcesError: there was none in time.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self._taken[key] < self._most + spare, wait_secs):
                raise self.refused()
            self._taken[key] += 1
        try:
            yield
        finally:
            with self._changed:
                self._taken[key] -= 1
                if not self._taken[key]:
                    del self._taken[key]
                self._changed.notify_all()

    def refused(self) -> ResourcesError:
        return ResourcesError(self._refusal, hint=self._hint, retry_after_secs=_RETRY_SECS)


class LoginPlaces:
    """Lets few read a message of somebody unknown at once, in all and of each address; some more wait for that."""

    def __init__(self) -> None:
        refusal = "Too many logins by message at once", "send the login in the header authorization, or try again later"
        self.here = Places(LOGINS_HERE_OF_ADDRESS, *refusal)
        self._of_address = Places(_LOGINS_OF_ADDRESS, *refusal)
        self._of_all = Places(_MOST_LOGINS, *refusal)

    @contextmanager
    def one(self, address: str | None, wait_secs: float) -> Iterator[None]:
        """Wait for a place, which is free again when this block ends.

        Raises:
            ResourcesError: too many of this address are here, or there was none in time.
        """
        network = network_of(address or "")
        with self.here.one(network), self._of_address.one(network, wait_secs), self._of_all.one(None, wait_secs):
            yield
