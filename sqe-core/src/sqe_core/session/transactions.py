"""Transactions of clients that keep the id of theirs: who began which, and how."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from sqe_core.spi.errors import ErrorCode, UserError
from sqe_core.spi.identity import Identity

_IDLE_SECS = 300.0
_MOST = 10_000
_MOST_OF_A_USER = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """What somebody began. In it each statement sees what is committed when it runs, and nothing is written."""

    id: str
    owner: tuple[str, str]
    read_only: bool
    isolation: str
    began: float
    used: float


@dataclass(slots=True)
class Transactions:
    """Those of all users; one that nobody uses for five minutes is over."""

    now: Callable[[], float] = time.time
    _known: dict[str, Transaction] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, identity: Identity, *, read_only: bool, isolation: str) -> Transaction:
        with self._lock:
            self._forget_idle()
            mine = sum(1 for one in self._known.values() if one.owner == identity.key)
            if mine >= _MOST_OF_A_USER or len(self._known) >= _MOST:
                raise UserError(
                    "There are too many transactions",
                    code=ErrorCode.RESOURCE_EXHAUSTED,
                    hint="COMMIT or ROLLBACK those that are not needed",
                )
            now = self.now()
            begun = Transaction(
                id=secrets.token_urlsafe(24),
                owner=identity.key,
                read_only=read_only,
                isolation=isolation,
                began=now,
                used=now,
            )
            self._known[begun.id] = begun
            return begun

    def use(self, id: str, identity: Identity) -> Transaction:
        """Return a transaction of this user; what is unknown, somebody else's or too old is one error."""
        with self._lock:
            self._forget_idle()
            found = self._known.get(id)
            if found is None or found.owner != identity.key:
                raise UserError(
                    "The transaction does not exist, or is over",
                    code=ErrorCode.UNKNOWN_TRANSACTION,
                    hint="begin another one with START TRANSACTION",
                )
            used = self._known[id] = replace(found, used=self.now())
            return used

    def end(self, id: str) -> None:
        with self._lock:
            self._known.pop(id, None)

    def of(self, owner: tuple[str, str] | None) -> Iterator[Transaction]:
        """Yield those of a user; None is everybody."""
        with self._lock:
            self._forget_idle()
            known = list(self._known.values())
        yield from (one for one in known if owner is None or one.owner == owner)

    def _forget_idle(self) -> None:
        oldest = self.now() - _IDLE_SECS
        for id in [one.id for one in self._known.values() if one.used < oldest]:
            del self._known[id]
