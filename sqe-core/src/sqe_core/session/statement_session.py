"""What one statement sees of its session."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from typing import Any

from sqe_core.catalog.registry import Mount
from sqe_core.engine.port import EngineCatalog, EngineSession
from sqe_core.session.engine_sides import EngineSide
from sqe_core.session.properties import SessionProperties
from sqe_core.session.session import HasState, Session, SessionState, SessionView, StateChange
from sqe_core.spi.errors import InternalError, NotSupportedError
from sqe_core.spi.identity import Identity


class StatementSession(HasState):
    """Names and settings as they were when the statement began, and an engine session of its own while it needs one.

    What the statement changes counts for it at once, and for statements that begin later. Where the client keeps names
    and settings itself and sends them with each request, it counts for nobody else, and temporary views there are none.
    """

    def __init__(self, session: Session, *, kept: SessionState | None = None) -> None:
        """Begin a statement.

        Args:
            session: whose statement.
            kept: what the client keeps itself, in the place of what the session has.
        """
        self.session = session
        self.id, self.protocol, self.client_address = session.id, session.protocol, session.client_address
        self.catalogs, self.discovered = session.catalogs, session.discovered
        self._state = self.began = session.state() if kept is None else kept
        self._apart = kept is not None
        self._with_roles: Callable[[Identity, tuple[str, ...] | None], Identity] = lambda identity, chosen: identity
        self._identity: Identity | None = None
        self._side: EngineSide | None = None
        self._last: EngineSide | None = None

    @property
    def identity(self) -> Identity:
        """Who it is, with the roles in use."""
        if self._identity is None:
            self._identity = self._with_roles(self.session.identity, self._state.roles)
        return self._identity

    # Roles

    def as_of(self, identity: Identity) -> StatementSession:
        """Return the same, only looked at, as if it were somebody else's: with these mounts and this engine session."""
        other = copy(self)
        other.find_roles(lambda own, chosen: identity)
        return other

    def find_roles(self, with_roles: Callable[[Identity, tuple[str, ...] | None], Identity]) -> None:
        """Say how the roles in use are found; it is asked when they are needed, with what SET ROLE chose."""
        self._with_roles, self._identity = with_roles, None

    def look_again(self) -> bool:
        """Find out anew who it is, with which roles, when something is decided once more; tell whether that changed."""
        before, self._identity = self.identity, None
        return _as_judged(before) != _as_judged(self.identity)

    def choose_roles(self, roles: tuple[str, ...] | None) -> None:
        """Use these roles only; None is all of them."""
        if not (self._apart or self.session.keeps_roles or roles is None):
            raise NotSupportedError(
                "SET ROLE would be lost without a word when the client connects anew",
                hint="sign in by name and password, or give the session a name: the header x-session-id",
            )
        self.change(lambda state: replace(state, roles=roles))
        self._identity = None

    # Names and settings

    @property
    def keeps_own_state(self) -> bool:
        """Whether the client keeps its state itself, its transaction too."""
        return self._apart

    @property
    def prepared(self) -> Mapping[str, str]:
        return self._state.prepared

    def change(self, change: StateChange) -> None:
        """Change what counts for this statement, and for later ones of the session unless its client keeps that."""
        if not self._apart:
            self.session.change(change)
        self._state = change(self._state)

    def set_property(self, name: str, value: Any) -> None:
        self.change(lambda state: replace(state, properties=state.properties.changed({name: value})))

    def reset_property(self, name: str | None) -> None:
        self.change(
            lambda state: replace(
                state, properties=SessionProperties() if name is None else state.properties.without(name)
            )
        )

    def put_prepared(self, name: str, text: str) -> None:
        self.change(lambda state: replace(state, prepared={**state.prepared, name: text}))

    def drop_prepared(self, name: str) -> bool:
        known = name in self.prepared
        self.change(
            lambda state: replace(state, prepared={each: sql for each, sql in state.prepared.items() if each != name})
        )
        return known

    # Views of the session

    def find_view(self, name: str) -> SessionView | None:
        return None if self._apart else self.session.find_view(name)

    def views(self) -> tuple[SessionView, ...]:
        return () if self._apart else self.session.views()

    def put_view(self, view: SessionView, *, replace: bool) -> None:
        if self._apart:
            raise NotSupportedError(
                "Temporary views need a session of the server, and this client keeps its state itself",
                hint="write the query with WITH, or create a view",
            )
        self.session.put_view(view, replace=replace)

    def drop_view(self, name: str) -> bool:
        return not self._apart and self.session.drop_view(name)

    # The engine

    @contextmanager
    def engine(self) -> Iterator[EngineSession]:
        """Give an engine session in which nobody else works; inside of this again it is the same one."""
        if self._side is not None:
            yield self._side.session
            return
        side = self._side = self.session.sides.lease(self._last)
        try:
            yield side.session
        finally:
            self._side, self._last = None, side
            self.session.sides.give_back(side)

    def engine_session(self) -> EngineSession:
        """Return the engine session that this statement works in."""
        if self._side is None:
            raise InternalError("A statement works in no engine session now")
        return self._side.session

    def begin_result(self) -> Callable[[], None]:
        """Keep the mounts of this statement's engine session until what is returned is called."""
        if self._side is None:
            raise InternalError("A statement works in no engine session now")
        return self.session.sides.begin_result(self._side)

    def alias_of(self, mount: Mount) -> str:
        return self._current_side.alias_of(mount, self.session.identity)

    def metadata(self, mount: Mount) -> EngineCatalog:
        return self._current_side.metadata(mount, self.session.identity)

    def catalog_names(self) -> Mapping[str, str]:
        return self.session.catalog_names()

    def secrets(self) -> tuple[str, ...]:
        return self.session.secrets()

    @property
    def _current_side(self) -> EngineSide:
        return self._side or self.session.sides.first()


def _as_judged(identity: Identity) -> Identity:
    return replace(identity.without_tokens(), expires_at=None)
