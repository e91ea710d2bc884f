"""What clients hold references to: random, bound to their owner, bounded, and expiring (FLT-3, LIM-10)."""

from __future__ import annotations

import secrets
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from sqe_core.spi.errors import ErrorCode, ResourcesError, UserError
from sqe_core.spi.identity import Secret
from sqe_core.spi.protocol import GatewaySession

_HANDLE_BYTES = 24


class Closable(Protocol):
    def close(self) -> None:
        """Free it."""


HeldT = TypeVar("HeldT", bound=Closable)


@dataclass(slots=True)
class _Entry(Generic[HeldT]):
    held: HeldT
    user: tuple[str, str]
    session: Secret
    expires: float
    size: int


class Handles(Generic[HeldT]):
    """A bounded table of things by random handles. What expires is closed.

    All live equally long, so the order of their last use is that of their expiry: nothing looks at every entry.

    Args:
        what: the word for messages.
        ttl_secs: how long something is kept after its last use.
        most: how many are kept.
        most_per_session: how many of one session.
        most_per_user: how many of one user, so that nobody else is left without any.
        most_bytes: how many bytes all of them may hold, of what their clients sent.
        most_bytes_per_user: how many those of one user.
    """

    def __init__(
        self,
        what: str,
        *,
        ttl_secs: float,
        most: int,
        most_per_session: int,
        most_per_user: int,
        most_bytes: int,
        most_bytes_per_user: int,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._what = what
        self._ttl_secs = ttl_secs
        self._most = most
        self._most_per_session = most_per_session
        self._most_per_user = most_per_user
        self._most_bytes = most_bytes
        self._most_bytes_per_user = most_bytes_per_user
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._entries: OrderedDict[bytes, _Entry[HeldT]] = OrderedDict()  # what expires first comes first
        self._counts: Counter[Secret] = Counter()
        self._counts_of_users: Counter[tuple[str, str]] = Counter()
        self._bytes = 0
        self._bytes_of_users: Counter[tuple[str, str]] = Counter()

    def __len__(self) -> int:
        with self._lock:
            return len(self._entries)

    def put(self, session: GatewaySession, held: HeldT, size: int) -> bytes:
        """Keep something of so many bytes and return its handle."""
        self.sweep()
        handle = secrets.token_bytes(_HANDLE_BYTES)
        token, user = session.token, session.identity.key
        with self._lock:
            if (
                len(self._entries) < self._most
                and self._counts[token] < self._most_per_session
                and self._counts_of_users[user] < self._most_per_user
                and self._has_room(user, size)
            ):
                expires = self._monotonic() + self._ttl_secs
                self._entries[handle] = _Entry(held, user, token, expires, 0)
                self._counts[token] += 1
                self._counts_of_users[user] += 1
                self._resize(self._entries[handle], size)
                return handle
        held.close()
        raise self._too_many()

    def resize(self, session: GatewaySession, handle: bytes, size: int) -> None:
        """Note that something has another size now; what there is no room for is refused and stays as it was."""
        with self._lock:
            entry = self._owned(session, handle)
            if not self._has_room(entry.user, size - entry.size):
                raise self._too_many()
            self._resize(entry, size)

    def _has_room(self, user: tuple[str, str], more: int) -> bool:
        return more <= 0 or (
            self._bytes + more <= self._most_bytes and self._bytes_of_users[user] + more <= self._most_bytes_per_user
        )

    def _resize(self, entry: _Entry[HeldT], size: int) -> None:
        self._bytes += size - entry.size
        self._bytes_of_users[entry.user] += size - entry.size
        if not self._bytes_of_users[entry.user]:
            del self._bytes_of_users[entry.user]
        entry.size = size

    def _too_many(self) -> ResourcesError:
        return ResourcesError(f"Too many open {self._what}s", hint=f"close or read the {self._what}s that are open")

    def get(self, session: GatewaySession, handle: bytes) -> HeldT:
        """Return what a handle of this session stands for, and keep it for longer."""
        with self._lock:
            entry = self._owned(session, handle)
            entry.expires = self._monotonic() + self._ttl_secs
            self._entries.move_to_end(handle)
            return entry.held

    def take(self, session: GatewaySession, handle: bytes) -> HeldT:
        """Return what a handle stands for, which is used up by that."""
        with self._lock:
            self._owned(session, handle)
            return self._pop(handle).held

    def expires_in(self, handle: bytes) -> float:
        """In how many seconds a handle expires."""
        with self._lock:
            entry = self._entries.get(handle)
            return entry.expires - self._monotonic() if entry else 0.0

    def sweep(self) -> None:
        now = self._monotonic()
        entries: list[_Entry[HeldT]] = []
        with self._lock:
            while self._entries:
                handle, entry = next(iter(self._entries.items()))
                if entry.expires > now:
                    break
                entries.append(self._pop(handle))
        for entry in entries:
            entry.held.close()

    def end_session(self, session: GatewaySession) -> None:
        token = session.token
        with self._lock:
            over = [handle for handle, entry in self._entries.items() if entry.session == token]
            entries = [self._pop(handle) for handle in over]
        for entry in entries:
            entry.held.close()

    def close(self) -> None:
        with self._lock:
            entries = list(self._entries.values())
            self._entries.clear()
            self._counts.clear()
            self._counts_of_users.clear()
            self._bytes_of_users.clear()
            self._bytes = 0
        for entry in entries:
            entry.held.close()

    def _pop(self, handle: bytes) -> _Entry[HeldT]:
        entry = self._entries.pop(handle)
        self._resize(entry, 0)
        self._counts[entry.session] -= 1
        if not self._counts[entry.session]:
            del self._counts[entry.session]
        self._counts_of_users[entry.user] -= 1
        if not self._counts_of_users[entry.user]:
            del self._counts_of_users[entry.user]
        return entry

    def _owned(self, session: GatewaySession, handle: bytes) -> _Entry[HeldT]:
        """Unknown, foreign and expired handles look the same."""
        entry = self._entries.get(handle)
        if (
            entry is None
            or entry.expires <= self._monotonic()
            or entry.user != session.identity.key
            or entry.session != session.token
        ):
            raise unknown_handle(self._what)
        return entry


class UnknownHandleError(UserError):
    """A ticket or a statement that does not exist for this client."""

    default_code = ErrorCode.INVALID_ARGUMENTS


def unknown_handle(what: str) -> UnknownHandleError:
    """Return the one error for handles that are unknown, foreign, used up or expired."""
    return UnknownHandleError(f"This {what} does not exist, was used, or has expired", hint="run the statement again")
