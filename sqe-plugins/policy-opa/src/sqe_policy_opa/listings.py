"""Which names somebody sees, remembered for a while: tools list everything again and again.

Decisions about statements are not kept here. The core keeps those, for no longer than `Decision.ttl_secs` says.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass

from sqe_core.spi import Effect, Identity, NamespaceName, ObjectName, RequestContext

_DENIAL_SECS = 5.0


@dataclass(frozen=True, slots=True)
class _Kept:
    effect: Effect
    until: float


class ListingCache:
    """Bounded, by everything that OPA is told but the time and the statement's id (POL-9)."""

    def __init__(self, max_entries: int, ttl_secs: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._max_entries = max_entries
        self._ttl_secs = ttl_secs
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._entries: OrderedDict[Hashable, _Kept] = OrderedDict()
        self._generation = 0

    @property
    def generation(self) -> int:
        """Changes with each flush; `put` wants that of the moment before the question."""
        return self._generation

    def get(self, scope: Hashable, name: ObjectName | NamespaceName) -> Effect | None:
        """Return what was answered, while it holds."""
        with self._lock:
            kept = self._entries.get((scope, name))
            if kept is None:
                return None
            if kept.until <= self._monotonic():
                del self._entries[scope, name]
                return None
            self._entries.move_to_end((scope, name))
            return kept.effect

    def put(
        self, scope: Hashable, effects: Mapping[ObjectName | NamespaceName, tuple[Effect, int | None]], generation: int
    ) -> None:
        """Keep answers, each with the time that OPA gave it; not those of a question from before a flush."""
        now = self._monotonic()
        with self._lock:
            if generation != self._generation:
                return
            for name, (effect, ttl_secs) in effects.items():
                ttl = self._ttl_secs if ttl_secs is None else min(self._ttl_secs, ttl_secs)
                if effect is not Effect.ALLOW:
                    ttl = min(ttl, _DENIAL_SECS)
                if ttl > 0:
                    self._entries[scope, name] = _Kept(effect, now + ttl)
                    self._entries.move_to_end((scope, name))
            while len(self._entries) > self._max_entries:
                self._entries.popitem(last=False)

    def flush(self) -> None:
        with self._lock:
            self._generation += 1
            self._entries.clear()


def scope_of(principal: Identity, context: RequestContext) -> Hashable:
    """Return what an answer about a name may depend on beside the name."""
    claims = tuple(sorted((name, repr(value)) for name, value in principal.claims.items()))
    who = (principal.key, principal.username, principal.roles, principal.all_roles, principal.groups, claims)
    return (*who, context.protocol, context.client_address)
