"""What was decided on the way of one statement, for those who record it."""

from __future__ import annotations

import secrets
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqe_core.spi.events import ObjectDecision
from sqe_core.spi.identity import Identity
from sqe_core.spi.names import NamespaceName, ObjectName
from sqe_core.spi.policy import Action

_MOST = 1000
_MOST_ENGINE_IDS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredChange:
    """What a statement changed in a store of grants: the records by their names, before and after."""

    operation: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]


class KeepsChanges(ABC):
    """Capability of a policy engine of ours: it can tell what was changed in its store."""

    @abstractmethod
    def last_change(self) -> int:
        """Return the number of the latest change."""

    @abstractmethod
    def changes_since(self, last: int, author: Identity) -> Sequence[StoredChange]:
        """Return what somebody changed after a change of that number, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trail:
    """A moment of a `DecisionTrail`.

    Args:
        decision_id: ours, random; one for each statement.
        engine_ids: the engines' own ids of their evaluations.
        about_self: decisions about whoever sent the statement, one for each object and action.
        about_others: the same, by the name of the user that an administrator asked about.
        refused: objects on account of which the statement was refused, or did nothing.
        cache_hit: whether nothing had to be asked of an engine; None when nothing was decided.
        milliseconds: how long deciding took.
        changes: what the statement changed in stores of grants.
        truncated: how many decisions did not fit.
    """

    decision_id: str
    engine_ids: tuple[str, ...]
    about_self: tuple[ObjectDecision, ...]
    about_others: Mapping[str, tuple[ObjectDecision, ...]]
    refused: frozenset[ObjectName | NamespaceName]
    cache_hit: bool | None
    milliseconds: float
    changes: tuple[StoredChange, ...]
    truncated: int

    @property
    def decided(self) -> bool:
        return bool(self.about_self or self.about_others or self.refused)


class DecisionTrail:
    """Collects what is decided for one statement; bounded. Safe for use from several threads."""

    def __init__(self, user: tuple[str, str]) -> None:
        """Begin one for whoever this is, by issuer and subject."""
        self.id = secrets.token_hex(16)
        self._user = user
        self._lock = threading.Lock()
        self._decisions: dict[tuple[str, ObjectName | NamespaceName, Action], ObjectDecision] = {}
        self._engine_ids: dict[str, None] = {}
        self._refused: set[ObjectName | NamespaceName] = set()
        self._questions = 0
        self._evaluations = 0
        self._seconds = 0.0
        self._changes: list[StoredChange] = []
        self._truncated = 0

    def decided(self, user: tuple[str, str], username: str, decision: ObjectDecision) -> None:
        """Note what was decided about an object for a user; the latest answer counts, and a denial stays."""
        key = ("" if user == self._user else username, decision.name, decision.action)
        with self._lock:
            before = self._decisions.get(key)
            if before is None and len(self._decisions) >= _MOST:
                self._truncated += 1
            elif before is None or before.allowed:
                self._decisions[key] = decision

    def asked(self, *, seconds: float) -> None:
        """Note that something was decided, and how long it took."""
        with self._lock:
            self._questions += 1
            self._seconds += seconds

    def answered(self, engine_id: str | None) -> None:
        """Note that an engine was really asked, with its own id of the evaluation if it has one."""
        with self._lock:
            self._evaluations += 1
            if engine_id and len(self._engine_ids) < _MOST_ENGINE_IDS:
                self._engine_ids[engine_id] = None

    def refused(self, name: ObjectName | NamespaceName) -> None:
        """Note that the statement ends here because of what was decided about this, whatever its user is told."""
        with self._lock:
            if len(self._refused) < _MOST:
                self._refused.add(name)

    def changed(self, changes: Sequence[StoredChange]) -> None:
        with self._lock:
            self._changes += changes[: _MOST - len(self._changes)]

    def read(self) -> Trail:
        with self._lock:
            about_others: dict[str, tuple[ObjectDecision, ...]] = {}
            for (username, _, _), decision in self._decisions.items():
                if username:
                    about_others[username] = (*about_others.get(username, ()), decision)
            return Trail(
                decision_id=self.id,
                engine_ids=tuple(self._engine_ids),
                about_self=tuple(each for (name, _, _), each in self._decisions.items() if not name),
                about_others=about_others,
                refused=frozenset(self._refused),
                cache_hit=self._evaluations == 0 if self._questions else None,
                milliseconds=self._seconds * 1000,
                changes=tuple(self._changes),
                truncated=self._truncated,
            )
