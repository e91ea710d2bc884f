"""The roles and users that a server has heard of: who grants to a name that is none of them is told so."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from sqe_core.spi.identity import Identity

# Of what an identity provider says no end is known (LIM-10); what comes later is not remembered.
_MOST = 20_000


class KnownNames:
    """What the configuration names and what logins have shown since the start.

    Args:
        roles: those that the configuration names.
    """

    def __init__(self, roles: Iterable[str] = ()) -> None:
        self._roles = set(roles)
        self._users: set[str] = set()
        self._lock = threading.Lock()

    def saw(self, identity: Identity) -> None:
        with self._lock:
            if len(self._users) < _MOST:
                self._users.add(identity.username)
            if len(self._roles) < _MOST:
                self._roles.update(identity.roles, identity.all_roles or ())

    @property
    def roles(self) -> frozenset[str]:
        with self._lock:
            return frozenset(self._roles)

    @property
    def users(self) -> frozenset[str]:
        with self._lock:
            return frozenset(self._users)
