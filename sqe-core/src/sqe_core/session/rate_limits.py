"""How many statements and metadata requests a minute: token buckets per user and for everybody (LIM-1).

A bucket is full at first and refills steadily: a burst of a minute's worth is fine, what follows comes at the rate.
"""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from enum import Enum

from sqe_core.session.addresses import client_network
from sqe_core.spi.errors import ResourcesError
from sqe_core.spi.factory import Metrics, NoMetrics
from sqe_core.spi.identity import Identity

REFUSALS = "sqe_rate_limited_total"
_MINUTE = 60.0
_MOST_ENTRIES = 20_000


class Traffic(Enum):
    """What a client asks for; the value is what a refusal calls it."""

    STATEMENT = "statements"
    METADATA = "metadata requests"


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimits:
    statements_per_user: int = 60
    statements_of_all: int = 1000
    metadata_per_user: int = 120


@dataclass(slots=True)
class _Bucket:
    left: float
    at: float

    def refill(self, most: int, now: float) -> None:
        self.left = min(most, self.left + max(0.0, now - self.at) * most / _MINUTE)
        self.at = now

    def wait(self, most: int) -> float:
        """Return the seconds until there is one again, 0 for now."""
        # Sums of fractions: what lacks a billionth is there.
        return max(0.0, 1 - self.left) * _MINUTE / most if self.left < 1 - 1e-9 else 0.0


class RateLimiter:
    """Stands before all protocols. Safe for use from many threads; the map is bounded and forgets (LIM-10).

    Args:
        limits: the bounds; None counts nothing.
        metrics: where refusals are counted.
        monotonic: the clock.
    """

    def __init__(
        self,
        limits: RateLimits | None = None,
        *,
        metrics: Metrics | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limits = limits
        self._metrics = metrics or NoMetrics()
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._buckets: OrderedDict[Hashable, _Bucket] = OrderedDict()
        self._everybody = _Bucket(float(limits.statements_of_all if limits else 0), monotonic())

    def take(self, traffic: Traffic, identity: Identity, address: str | None) -> None:
        """Count a request, or raise `ResourcesError` with the time to wait. What is refused counts for nobody.

        Args:
            traffic: what is asked for.
            identity: who asks.
            address: where from; those who share an identity are told apart by it.
        """
        limits = self._limits
        if limits is None:
            return
        statement = traffic is Traffic.STATEMENT
        most = limits.statements_per_user if statement else limits.metadata_per_user
        with self._lock:
            now = self._monotonic()
            self._forget(now)
            own = self._bucket((traffic, *_client(identity, address)), most, now)
            wait = own.wait(most)
            if not wait and statement:
                self._everybody.refill(limits.statements_of_all, now)
                wait = self._everybody.wait(limits.statements_of_all)
                if not wait:
                    self._everybody.left -= 1
                refused = "all"
            else:
                refused = "user" if statement else "metadata"
            if not wait:
                own.left -= 1
                return
        self._metrics.count(REFUSALS, labels={"limit": refused})
        raise _refusal(traffic, limits.statements_of_all if refused == "all" else most, wait, of_all=refused == "all")

    @property
    def remembered(self) -> int:
        with self._lock:
            return len(self._buckets)

    def _bucket(self, key: Hashable, most: int, now: float) -> _Bucket:
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = self._buckets[key] = _Bucket(float(most), now)
            if len(self._buckets) > _MOST_ENTRIES:
                self._buckets.popitem(last=False)
        self._buckets.move_to_end(key)
        bucket.refill(most, now)
        return bucket

    def _forget(self, now: float) -> None:
        """A bucket that nobody used for a minute is full, as a new one is; the longest unused come first."""
        while self._buckets:
            key, oldest = next(iter(self._buckets.items()))
            if now - oldest.at < _MINUTE:
                return
            del self._buckets[key]


def _client(identity: Identity, address: str | None) -> tuple[str, ...]:
    """Who a request counts for: a person wherever they are, of a shared identity each place by itself."""
    return identity.key if identity.personal else (*identity.key, client_network(address))


def _refusal(traffic: Traffic, most: int, wait: float, *, of_all: bool) -> ResourcesError:
    seconds = max(1, math.ceil(wait))
    whom = "all users together" if of_all else "one user"
    return ResourcesError(
        f"Too many {traffic.value}: {most} per minute are allowed for {whom}",
        hint=f"try again in {seconds} s",
        retry_after_secs=seconds,
    )
