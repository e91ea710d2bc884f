"""Decisions that were made a moment ago (POL-9). What is unknown is never kept, and a denial is kept for less long."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from sqe_core.spi import policy as spi
from sqe_core.spi.identity import Identity

_DENIAL_SECS = 5.0
_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class _Kept(Generic[_Answer]):
    answer: _Answer
    until: float


class KeptAnswers(Generic[_Answer]):
    """Answers that hold for a while; bounded. `flush` forgets all, also what is being asked just now."""

    def __init__(self, most: int, clock: Callable[[], float]) -> None:
        self._most = most
        self._clock = clock
        self._entries: OrderedDict[Hashable, _Kept[_Answer]] = OrderedDict()
        self._generation = 0
        self._lock = threading.Lock()

    @property
    def generation(self) -> int:
        """What `keep` wants to be told from before the question was asked."""
        return self._generation

    def find(self, key: Hashable) -> _Kept[_Answer] | None:
        """Return what still holds, if there is anything."""
        with self._lock:
            kept = self._entries.get(key)
            if kept is None:
                return None
            if kept.until <= self._clock():
                del self._entries[key]
                return None
            self._entries.move_to_end(key)
            return kept

    def keep(self, key: Hashable, answer: _Answer, *, until: float, generation: int) -> None:
        """Keep an answer, unless everything was flushed since the question."""
        with self._lock:
            if generation != self._generation:
                return
            self._entries[key] = _Kept(answer, until)
            self._entries.move_to_end(key)
            while len(self._entries) > self._most:
                self._entries.popitem(last=False)

    def flush(self) -> None:
        with self._lock:
            self._generation += 1
            self._entries.clear()


class DecisionCache(KeptAnswers[spi.Decision]):
    """Per identity, object and state of its columns. Without entries it keeps none."""

    def __init__(
        self, *, max_entries: int = 10_000, ttl_secs: float = 60, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(max_entries, clock)
        self._ttl = ttl_secs

    def get(self, key: Hashable) -> spi.Decision | None:
        kept = self.find(key)
        return None if kept is None else kept.answer

    def put(self, key: Hashable, decision: spi.Decision, *, generation: int) -> None:
        """Keep a decision for as long as its engine says, at most."""
        ttl = self._ttl if decision.ttl_secs is None else min(self._ttl, float(decision.ttl_secs))
        if decision.effect is spi.Effect.DENY:
            ttl = min(ttl, _DENIAL_SECS)
        if ttl > 0 and self._most > 0:
            self.keep(key, decision, until=self._clock() + ttl, generation=generation)


def scope_of(identity: Identity) -> Hashable:
    """Return what of an identity a decision may depend on."""
    return (
        identity.key,
        identity.username,
        identity.roles,
        identity.groups,
        tuple(sorted((name, repr(value)) for name, value in identity.claims.items())),
    )


def key_of(scope: Hashable, access: spi.Access, context: spi.RequestContext) -> Hashable:
    """Return what a decision is kept under: another column, schema or table of the same name is another question."""
    resource = access.resource
    tags = resource.column_tags
    return (
        scope,
        access.action,
        resource.name,
        resource.type,
        resource.ref,
        resource.uuid,
        resource.schema_id,
        tuple((column.name, column.type) for column in resource.columns),
        None if tags is None else frozenset(tags.items()),
        context.protocol,
        context.client_address,
        context.administrator,
        resource.name.catalog in context.closed_catalogs,
    )
