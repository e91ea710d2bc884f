"""How often logins may fail: by client and account, by client, and by account, with growing delay (AUTHN-7, LIM-1).

An attempt counts from its begin, so that many at once are not cheaper than one after the other.
"""

from __future__ import annotations

import math
import threading
import time
import unicodedata
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from sqe_core.session.addresses import client_network
from sqe_core.session.rate_limits import REFUSALS
from sqe_core.spi.errors import ResourcesError
from sqe_core.spi.factory import Metrics, NoMetrics

_WINDOW_SECS = 60.0
_LONGEST_BLOCK_SECS = 900.0
_REMEMBERED_SECS = 3600.0
_TRUSTED_SECS = 86400.0
_MOST_ENTRIES = 10_000
# Many people may share an address, and one account may be used from many.
_FAILURES_OF_CLIENT = 5
_FAILURES_OF_ACCOUNT = 10


@dataclass(slots=True)
class _Tally:
    failures: int = 0
    pending: int = 0
    window_ends: float = 0.0
    blocked_until: float = 0.0
    blocks: int = 0
    seen: float = 0.0


class _Meter:
    """Bounded tallies; the caller holds the lock."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._tallies: OrderedDict[Hashable, _Tally] = OrderedDict()

    def wait(self, key: Hashable, now: float) -> float:
        """Return the seconds until an attempt may be made, 0 for now."""
        tally = self._tallies.get(key)
        if tally is None:
            return 0.0
        if tally.blocked_until > now:
            return tally.blocked_until - now
        if now >= tally.window_ends:
            tally.failures = 0
        # Those that are still being judged may all fail.
        return 1.0 if tally.failures + tally.pending >= self._limit else 0.0

    def begin(self, key: Hashable, now: float) -> _Tally:
        tally = self._tallies.get(key)
        if tally is None:
            tally = self._tallies[key] = _Tally()
            self._make_room()
        self._tallies.move_to_end(key)
        tally.pending += 1
        tally.seen = now
        return tally

    def fail(self, tally: _Tally, now: float) -> None:
        """Count a failure; the one that reaches the limit blocks, each time for twice as long."""
        if now >= tally.window_ends:
            tally.failures, tally.window_ends = 0, now + _WINDOW_SECS
        tally.failures += 1
        tally.seen = now
        if tally.failures >= self._limit:
            tally.blocked_until = now + min(_WINDOW_SECS * 2**tally.blocks, _LONGEST_BLOCK_SECS)
            tally.blocks = min(tally.blocks + 1, 16)
            tally.failures = 0

    def forget(self, key: Hashable) -> None:
        """Forget a key: its owner has logged in."""
        tally = self._tallies.get(key)
        if tally is not None:
            tally.failures = tally.blocks = 0

    def sweep(self, now: float) -> None:
        for key, tally in list(self._tallies.items()):
            if not tally.pending and tally.blocked_until <= now and now - tally.seen > _REMEMBERED_SECS:
                del self._tallies[key]

    @property
    def remembered(self) -> int:
        return len(self._tallies)

    def _make_room(self) -> None:
        if len(self._tallies) <= _MOST_ENTRIES:
            return
        oldest = list(zip(range(64), self._tallies.items(), strict=False))
        harmless = [key for _, (key, tally) in oldest if not tally.pending and not tally.blocks]
        del self._tallies[harmless[0] if harmless else oldest[0][1][0]]


class Attempt:
    """One attempt that is being judged. Exactly one of its methods is called, once."""

    def __init__(self, attempts: LoginAttempts, client: str, account: str | None, tallies: dict[str, _Tally]) -> None:
        self._attempts = attempts
        self._client = client
        self._account = account
        self._tallies = tallies

    def failed(self) -> None:
        """The credential was bad."""
        self._attempts.end(self._tallies, failed=True)

    def unjudged(self) -> None:
        """Nobody could say."""
        self._attempts.end(self._tallies, failed=False)

    def succeeded(self, username: str) -> None:
        """The credential was good, and this person's."""
        self._attempts.end(self._tallies, failed=False)
        # Whoever logs in as bob while naming alice must not clear what was counted for alice.
        if self._account is not None and _normalised(username) == self._account:
            self._attempts.trust(self._client, self._account)


class LoginAttempts:
    """Counts the logins of a process. Safe for use from many threads; every map is bounded (LIM-10)."""

    def __init__(
        self,
        failures_per_minute: int = 10,
        *,
        metrics: Metrics | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._monotonic = monotonic
        self._metrics = metrics or NoMetrics()
        self._lock = threading.Lock()
        self._meters = {
            "pair": _Meter(failures_per_minute),
            "client": _Meter(failures_per_minute * _FAILURES_OF_CLIENT),
            "account": _Meter(failures_per_minute * _FAILURES_OF_ACCOUNT),
        }
        self._trusted: OrderedDict[tuple[str, str], float] = OrderedDict()

    def check(self, address: str | None, account: str | None) -> None:
        """Raise when this client may not try now; counts nothing."""
        with self._lock:
            self._refuse(client_network(address), _account(account))

    def begin(self, address: str | None, account: str | None) -> Attempt:
        """Begin an attempt, or raise `ResourcesError` with the time to wait.

        Args:
            address: the peer.
            account: the account that the client names; None when its credential names none.
        """
        client, name = client_network(address), _account(account)
        with self._lock:
            self._refuse(client, name)
            now = self._monotonic()
            tallies = {kind: self._meters[kind].begin(key, now) for kind, key in _keys(client, name).items()}
        return Attempt(self, client, name, tallies)

    def end(self, tallies: dict[str, _Tally], *, failed: bool) -> None:
        """Count what became of an attempt."""
        with self._lock:
            now = self._monotonic()
            for kind, tally in tallies.items():
                tally.pending -= 1
                if failed:
                    self._meters[kind].fail(tally, now)

    def trust(self, client: str, account: str) -> None:
        """Remember where an account logs in from: others' failures shall not lock it out there."""
        with self._lock:
            self._meters["pair"].forget((client, account))
            self._trusted[client, account] = self._monotonic() + _TRUSTED_SECS
            self._trusted.move_to_end((client, account))
            if len(self._trusted) > _MOST_ENTRIES:
                self._trusted.popitem(last=False)

    def sweep(self) -> None:
        with self._lock:
            now = self._monotonic()
            for meter in self._meters.values():
                meter.sweep(now)
            for key, until in list(self._trusted.items()):
                if until <= now:
                    del self._trusted[key]

    @property
    def remembered(self) -> int:
        with self._lock:
            return sum(meter.remembered for meter in self._meters.values()) + len(self._trusted)

    def _refuse(self, client: str, account: str | None) -> None:
        now = self._monotonic()
        keys = _keys(client, account)
        if account is not None and self._trusted.get((client, account), 0.0) > now:
            keys = {"pair": keys["pair"]}
        wait = max(self._meters[kind].wait(key, now) for kind, key in keys.items())
        if wait > 0:
            self._metrics.count(REFUSALS, labels={"limit": "login"})
            raise ResourcesError(
                "Too many login attempts", hint="wait and try again", retry_after_secs=max(1, math.ceil(wait))
            )


def _keys(client: str, account: str | None) -> dict[str, Hashable]:
    if account is None:
        return {"client": client}
    return {"pair": (client, account), "client": client, "account": account}


def _account(name: str | None) -> str | None:
    return None if name is None else _normalised(name)


def _normalised(name: str) -> str:
    """Identity providers rarely tell Alice from alice; spelling must not multiply the attempts."""
    return unicodedata.normalize("NFKC", name).casefold().strip()[:256]
