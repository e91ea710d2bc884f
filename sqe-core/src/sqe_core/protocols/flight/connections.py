"""How many connections clients have, and the bounds on them (LIM-2).

Those on which somebody has logged in have places, of which one user may have a part. Strangers, on whose connections
nobody has yet, have none: they are bounded apart, in all and of each address, and by time, so that nobody is kept out
by who cannot log in. gRPC for Python tells of calls, not of connections: the kernel knows those of a port.

A connection that has a place has a name: the sessions of clients that have no other way to find theirs go by it.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from sqe_core.protocols.flight.sockets import FarEnd, network_of
from sqe_core.spi.errors import ResourcesError
from sqe_core.spi.protocol import GatewaySession

UserKey = tuple[str, str]

# A place of work behind one address logs in at once.
_FEWEST_OF_ADDRESS = 16
_RETRY_SECS = 5
_FRESH_SECS = 0.5


class KnowsSockets(Protocol):
    """What tells of connections, each by the number of its socket; `Sockets`, but in tests.

    Both raise a ResourcesError when the kernel cannot be asked now: whoever cannot be told apart does not come in.
    """

    def established(self) -> Mapping[int, FarEnd]:
        """Return the numbers of those that are there, and where their clients are."""

    def number_of(self, peer: str) -> int | None:
        """Return the number of the one that gRPC gives this name; None where no connection has any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionBounds:
    """How many connections there may be.

    Args:
        most: on which somebody has logged in.
        of_user: on which one user has, the first on it; 0 is half of all.
        stranger_secs: how long a connection may be there without a login.
    """

    most: int
    of_user: int = 0
    stranger_secs: float

    @property
    def most_of_user(self) -> int:
        """On how many one user may have logged in."""
        return self.of_user or max(1, self.most // 2)

    @property
    def strangers_of_address(self) -> int:
        """How many strangers one address may have: a quarter of the places, when there are enough of them."""
        return max(_FEWEST_OF_ADDRESS, self.most // 4)

    @property
    def strangers(self) -> int:
        """How many strangers there may be in all: one address does not have all of it."""
        return 2 * self.strangers_of_address

    @property
    def hard(self) -> int:
        """What gRPC takes before it drops connections without a word: strangers are counted only from time to time."""
        return self.most + 2 * self.strangers


class Connections:
    """Gives places to connections whose client has logged in, for as long as they are there, and ends strangers.

    Args:
        bounds: how many there may be.
        sockets: tells of those that are there.
        close: ends sockets.
        gone: is told the name of each connection that had a place and is no more. It must return at once.
        monotonic: the time.
    """

    def __init__(
        self,
        bounds: ConnectionBounds,
        sockets: KnowsSockets,
        close: Callable[[frozenset[int]], None],
        gone: Callable[[str], object] = lambda name: None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._bounds = bounds
        self._sockets = sockets
        self._close = close
        self._gone = gone
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._placed: dict[int, UserKey] = {}
        # Of these, those that were there at the last look, or came since.
        self._here_of: Counter[UserKey] = Counter()
        self._missed: set[int] = set()
        self._seen = float("-inf")
        self._logging_in: Counter[int] = Counter()
        self._strangers: dict[int, float] = {}
        self.count = 0
        """How many there were at the last look; 0 where nobody knows."""

    def login(self, peer: str, authenticate: Callable[[str | None], GatewaySession]) -> GatewaySession:
        """Let somebody log in; unless that raises, the connection has a place from then on.

        Args:
            peer: gRPC's name of the other end of the connection.
            authenticate: logs in; it is told what the connection is called, None where no connection has a name.

        Raises:
            ResourcesError: there is no place, or none for this user, and this connection has none yet; or nobody can
                tell now which connection it is.
        """
        number = self._sockets.number_of(peer)
        if number is None:
            return authenticate(None)
        name = str(number)
        if number in self._placed:
            session = authenticate(name)
        else:
            with self._spared(number):
                with self._lock:
                    self._ensure_place(number)
                session = authenticate(name)
                try:
                    with self._lock:
                        self._ensure_place(number)
                        self._ensure_place_of(number, session.identity.key)
                        self._place(number, session.identity.key)
                except ResourcesError:
                    self._gone(name)
                    raise
        if number not in self._placed:
            self._gone(name)  # it went while somebody logged in
        return session

    @contextmanager
    def spared(self, peer: str) -> Iterator[None]:
        """Do not end this connection meanwhile: somebody is about to log in."""
        number = self._sockets.number_of(peer)
        if number is None:
            yield
            return
        with self._spared(number):
            yield

    @contextmanager
    def _spared(self, number: int) -> Iterator[None]:
        with self._lock:
            self._logging_in[number] += 1
        try:
            yield
        finally:
            with self._lock:
                self._logging_in[number] -= 1
                if not self._logging_in[number]:
                    del self._logging_in[number]

    def look(self) -> bool:
        """End the strangers that are too many or have been there for too long; tell whether there were some."""
        there = self._sockets.established()
        self.count = len(there)
        now = self._monotonic()
        with self._lock:
            self._see(now, there)
            # Gone is what is missing twice: the kernel's table is no snapshot, and one may have come since it was read.
            missing = self._placed.keys() - there.keys()
            over = missing & self._missed
            for number in over:
                del self._placed[number]
            self._missed = missing - over
            strangers = there.keys() - self._placed.keys()
            self._strangers = {number: self._strangers.get(number, now) for number in strangers}
            ended = self._to_end(there, now)
        for number in over:
            self._gone(str(number))
        if ended:
            self._close(ended)
        return bool(ended)

    def _to_end(self, there: Mapping[int, FarEnd], now: float) -> frozenset[int]:
        """Choose the oldest: who has just come, and is about to log in, is not pushed out by those who never do."""
        ended: set[int] = set()
        kept: Counter[str] = Counter()
        kept_in_all = 0
        for number, since in sorted(self._strangers.items(), key=lambda known: known[::-1], reverse=True):
            network = network_of(there[number].address)
            too_many = kept[network] >= self._bounds.strangers_of_address or kept_in_all >= self._bounds.strangers
            too_old = now - since > self._bounds.stranger_secs
            if (too_many or too_old) and number not in self._logging_in:
                ended.add(number)
            else:
                kept[network] += 1
                kept_in_all += 1
        return frozenset(ended)

    def _place(self, number: int, user: UserKey) -> None:
        self._missed.discard(number)
        if number in self._placed:
            return  # of logins at once the first has it: for the others no bound was looked at
        self._placed[number] = user
        self._here_of[user] += 1

    def _ensure_place(self, number: int) -> None:
        most = self._bounds.most
        if number in self._placed or self._here_of.total() < most:
            return
        self._look_again()
        if self._here_of.total() >= most:
            raise _refused(f"The server has {most} connections, the most that it takes")

    def _ensure_place_of(self, number: int, user: UserKey) -> None:
        most = self._bounds.most_of_user
        if number in self._placed or self._here_of[user] < most:
            return
        self._look_again()
        if self._here_of[user] >= most:
            raise _refused(f"One user may have {most} of the server's connections, and you have as many")

    def _look_again(self) -> None:
        """Find out who has gone, unless that was done a moment ago: whoever is refused may ask again and again."""
        now = self._monotonic()
        if now - self._seen >= _FRESH_SECS:
            self._see(now, self._sockets.established())

    def _see(self, now: float, there: Mapping[int, FarEnd]) -> None:
        self._seen = now
        self._here_of = Counter(user for number, user in self._placed.items() if number in there)


def _refused(what: str) -> ResourcesError:
    return ResourcesError(
        what, hint="close connections that are not needed, or try again later", retry_after_secs=_RETRY_SECS
    )
