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
from typing import NamedTuple, Protocol

from sqe_core.protocols.flight.sockets import FarEnd, far_end, network_of
from sqe_core.spi.errors import ResourcesError
from sqe_core.spi.protocol import GatewaySession

UserKey = tuple[str, str]

# A place of work behind one address logs in at once.
_FEWEST_OF_ADDRESS = 16
_RETRY_SECS = 5
_FRESH_SECS = 0.5


class KnowsSockets(Protocol):
    """What tells of connections; `Sockets`, but in tests."""

    def established(self) -> Mapping[FarEnd, int] | None:
        """Return those that are there, with the numbers of their sockets; None when nobody knows."""

    def number_of(self, end: FarEnd) -> int | None:
        """Return the number of the one socket whose client is there; None when nobody knows."""


class _Place(NamedTuple):
    """The place of a connection: who has it, and what the connection is called."""

    user: UserKey
    name: str | None


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
        self._placed: dict[FarEnd, _Place] = {}
        self._placed_of: Counter[UserKey] = Counter()
        # Of these, those that were there at the last look, or came since.
        self._here_of: Counter[UserKey] = Counter()
        self._missed: set[FarEnd] = set()
        self._seen: tuple[float, Mapping[FarEnd, int] | None] = (float("-inf"), None)
        self._logging_in: Counter[FarEnd] = Counter()
        self._strangers: dict[int, float] = {}
        self._count = 0

    @property
    def count(self) -> int:
        """How many there were at the last look; 0 where nobody knows."""
        return self._count

    def login(self, peer: str, authenticate: Callable[[str | None], GatewaySession]) -> GatewaySession:
        """Let somebody log in; unless that raises, the connection has a place from then on.

        Args:
            peer: gRPC's name of the other end of the connection.
            authenticate: logs in; it is told what the connection is called, None where nobody can tell them apart.

        Raises:
            ResourcesError: there is no place, or none for this user, and this connection has none yet.
        """
        end = far_end(peer)
        if end is None:
            return authenticate(None)
        number = self._sockets.number_of(end)
        name = f"{peer}#{number}" if number is not None else None
        place = self._placed.get(end)
        if place is not None and place.name == name:
            session = authenticate(name)
        else:
            with self.spared(peer):
                with self._lock:
                    self._ensure_place(end, name)
                session = authenticate(name)
                try:
                    with self._lock:
                        self._ensure_place(end, name)
                        self._ensure_place_of(end, session.identity.key)
                        self._place(end, _Place(session.identity.key, name))
                except ResourcesError:
                    self._tell_gone(name)
                    raise
        if end not in self._placed:
            self._tell_gone(name)  # it went while somebody logged in
        return session

    def _tell_gone(self, name: str | None) -> None:
        if name is not None:
            self._gone(name)

    @contextmanager
    def spared(self, peer: str) -> Iterator[None]:
        """Do not end this connection meanwhile: somebody is about to log in."""
        end = far_end(peer)
        if end is None:
            yield
            return
        with self._lock:
            self._logging_in[end] += 1
        try:
            yield
        finally:
            with self._lock:
                self._logging_in[end] -= 1
                if not self._logging_in[end]:
                    del self._logging_in[end]

    def look(self) -> bool:
        """End the strangers that are too many or have been there for too long; tell whether there were some."""
        there = self._sockets.established()
        if there is None:
            return False
        self._count = len(there)
        now = self._monotonic()
        with self._lock:
            self._see(now, there)
            # Gone is what is missing twice: the kernel's table is no snapshot, and one may have come since it was read.
            missing = self._placed.keys() - there.keys()
            for end in missing & self._missed:
                self._forget(end)
            self._missed = missing & self._placed.keys()
            strangers = {inode: end for end, inode in there.items() if inode and end not in self._placed}
            self._strangers = {inode: self._strangers.get(inode, now) for inode in strangers}
            ended = self._to_end(strangers, now)
        if ended:
            self._close(ended)
        return bool(ended)

    def _to_end(self, strangers: Mapping[int, FarEnd], now: float) -> frozenset[int]:
        """Choose the oldest: who has just come, and is about to log in, is not pushed out by those who never do."""
        ended: set[int] = set()
        kept: Counter[str] = Counter()
        kept_in_all = 0
        for inode in sorted(strangers, key=lambda inode: (self._strangers[inode], inode), reverse=True):
            end = strangers[inode]
            network = network_of(end.address)
            too_many = kept[network] >= self._bounds.strangers_of_address or kept_in_all >= self._bounds.strangers
            too_old = now - self._strangers[inode] > self._bounds.stranger_secs
            if (too_many or too_old) and end not in self._logging_in:
                ended.add(inode)
            else:
                kept[network] += 1
                kept_in_all += 1
        return frozenset(ended)

    def _place(self, end: FarEnd, place: _Place) -> None:
        self._missed.discard(end)
        if end in self._placed:
            return  # of logins at once the first has it: for the others no bound was looked at
        self._placed[end] = place
        self._placed_of[place.user] += 1
        self._here_of[place.user] += 1

    def _forget(self, end: FarEnd) -> None:
        user, name = self._placed.pop(end)
        self._placed_of[user] -= 1
        if not self._placed_of[user]:
            del self._placed_of[user]
        self._tell_gone(name)

    def _ensure_place(self, end: FarEnd, name: str | None) -> None:
        most = self._bounds.most
        place = self._placed.get(end)
        if place is not None and place.name != name:
            self._forget(end)  # the port is another connection's now
        if end in self._placed or len(self._placed) < most:
            return
        if self._there() is not None and self._here_of.total() >= most:
            raise _refused(f"The server has {most} connections, the most that it takes")

    def _ensure_place_of(self, end: FarEnd, user: UserKey) -> None:
        most = self._bounds.most_of_user
        if end in self._placed or self._placed_of[user] < most:
            return
        if self._there() is not None and self._here_of[user] >= most:
            raise _refused(f"One user may have {most} of the server's connections, and you have as many")

    def _there(self) -> Mapping[FarEnd, int] | None:
        """Return those that are there, or were a moment ago: whoever is refused may ask again and again.

        Where nobody knows who has gone, everybody comes in.
        """
        now = self._monotonic()
        seen, there = self._seen
        if now - seen >= _FRESH_SECS:
            there = self._sockets.established()
            self._see(now, there)
        return there

    def _see(self, now: float, there: Mapping[FarEnd, int] | None) -> None:
        self._seen = (now, there)
        self._here_of = Counter(place.user for end, place in self._placed.items() if there is not None and end in there)


def _refused(what: str) -> ResourcesError:
    return ResourcesError(
        what, hint="close connections that are not needed, or try again later", retry_after_secs=_RETRY_SECS
    )
