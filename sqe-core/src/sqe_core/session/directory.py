"""Who is connected, for the statements that ask; a server fills it, a process without logins has nobody in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from sqe_core.session.session import Session
from sqe_core.spi.identity import Identity

if TYPE_CHECKING:
    from sqe_core.session.store import LiveSession, SessionStore


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedSession:
    """A session at a moment."""

    id: str
    """What people and logs call it; nothing can be done with it alone."""
    identity: Identity
    """Who it is, without tokens."""
    protocol: str
    client_address: str | None
    opened_at: datetime
    idle_secs: float
    expires_at: datetime
    busy: bool
    live: LiveSession = field(repr=False)

    def is_session(self, session: Session) -> bool:
        return self.live.session is session


class SessionDirectory:
    """The sessions of the store that was given last."""

    def __init__(self) -> None:
        self._store: SessionStore | None = None

    def serve(self, store: SessionStore) -> None:
        """List the sessions of this store from now on."""
        self._store = store

    def sessions(self) -> Sequence[ListedSession]:
        """Return those that live, the oldest first."""
        return () if self._store is None else self._store.connected()

    def kill(self, session: ListedSession) -> None:
        """End one at once, with what runs in it. Idempotent."""
        if self._store is not None:
            self._store.kill(session.live)
