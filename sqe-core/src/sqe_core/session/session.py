"""One connected user: identity, current names, settings, session views, and the engine sessions behind them."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from sqe_core.catalog.discovery import DiscoveredCatalogs, FoundCatalogs
from sqe_core.catalog.registry import CatalogRegistry, Mount
from sqe_core.engine.port import Engine, EngineCatalog, EngineSession
from sqe_core.session.engine_pool import EnginePool
from sqe_core.session.engine_sides import EngineSides
from sqe_core.session.properties import SessionProperties
from sqe_core.spi.catalog import SupportsLogout
from sqe_core.spi.errors import ErrorCode, UserError
from sqe_core.spi.identity import Identity, Secret

_log = logging.getLogger(__name__)

_MAX_VIEWS = 1000
_MAX_PREPARED = 1000
_MAX_PREPARED_TEXT = 16 << 20
# A statement that began with an older token may still say it in an error.
_FORMER_TOKENS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionView:
    """A temporary view: the translated text and the names it was written under. It is secured anew at each use."""

    name: str
    spark_sql: str
    text: str
    columns: tuple[tuple[str, str], ...]
    """Visible name and type of each column."""
    renames: tuple[tuple[str, str], ...] | None
    """(name in the text, visible name) of each column when they differ."""
    catalog: str
    schema: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionState:
    """The names and settings of a session at a moment, all of the same one."""

    catalog: str
    schema: tuple[str, ...]
    properties: SessionProperties = field(default_factory=SessionProperties)
    prepared: Mapping[str, str] = field(default_factory=dict)
    """Prepared statements, name to text."""
    roles: tuple[str, ...] | None = None
    """What SET ROLE chose: None is ALL, `()` is NONE."""
    zone: str = "UTC"
    """The time zone of the client, where SET TIME ZONE chose none."""
    path: str | None = None
    """What SET PATH said."""
    transaction: str | None = None
    """The transaction that the client is in."""

    def __post_init__(self) -> None:
        if len(self.prepared) > _MAX_PREPARED or sum(map(len, self.prepared.values())) > _MAX_PREPARED_TEXT:
            raise UserError(
                f"A session can have {_MAX_PREPARED} prepared statements, of {_MAX_PREPARED_TEXT} letters in all",
                code=ErrorCode.RESOURCE_EXHAUSTED,
                hint="DEALLOCATE PREPARE those that are not needed",
            )


StateChange = Callable[[SessionState], SessionState]


class HasState(ABC):
    """Whose names and settings may be looked at and changed: a session, or one statement of it."""

    _state: SessionState

    @property
    def catalog(self) -> str:
        return self._state.catalog

    @property
    def schema(self) -> tuple[str, ...]:
        return self._state.schema

    @property
    def properties(self) -> SessionProperties:
        return self._state.properties

    @property
    def time_zone(self) -> str:
        """The time zone of what is asked and told; that of policies is always UTC."""
        chosen = self._state.properties.values.get("time_zone")
        return self._state.zone if chosen is None else str(chosen)

    def state(self) -> SessionState:
        """Return what is current; it stays as it is."""
        return self._state

    @abstractmethod
    def change(self, change: StateChange) -> None:
        """Change what is current; all or nothing."""

    def use(self, catalog: str, schema: tuple[str, ...]) -> None:
        self.change(lambda state: replace(state, catalog=catalog, schema=schema))


class Session(HasState):
    """A session. Its statements run side by side: each sees the names and settings as they were when it began."""

    def __init__(
        self,
        *,
        identity: Identity,
        engine: Engine,
        catalogs: CatalogRegistry,
        catalog: str,
        schema: tuple[str, ...] = ("default",),
        protocol: str = "embedded",
        client_address: str | None = None,
        is_busy: Callable[[Session], bool] = lambda session: False,
        pool: EnginePool | None = None,
        engine_idle_secs: float = 60,
        found: FoundCatalogs | None = None,
    ) -> None:
        self.id = secrets.token_urlsafe(24)
        self.identity = identity
        self._former_tokens: tuple[Secret, ...] = ()
        self.protocol = protocol
        self.client_address = client_address
        """Where the client that opened it is."""
        self.catalogs = catalogs
        self.discovered = DiscoveredCatalogs(catalogs, lambda: self.identity, found)
        self._looking = 0
        self.sides = EngineSides(
            engine.open_session,
            holds=lambda mount: catalogs.holds(mount) or self.discovered.holds(mount),
            is_busy=lambda: self._looking > 0 or is_busy(self),
            pool=pool,
            idle_secs=engine_idle_secs,
        )
        catalogs.tell(self.sides)
        self.created = time.monotonic()
        self.last_used = self.created
        self.closed = False
        self._lock = threading.RLock()
        self._state = SessionState(catalog=catalog, schema=schema)
        self._views: dict[str, SessionView] = {}
        self.keeps_roles = True
        """Whether its client would notice if it worked in another one."""

    @property
    def chosen_roles(self) -> tuple[str, ...] | None:
        """What SET ROLE chose: None is ALL, `()` is NONE."""
        return self._state.roles

    def change(self, change: StateChange) -> None:
        """Change what is current, for statements that begin later; all or nothing."""
        with self._lock:
            self._state = change(self._state)

    def set_properties(self, values: Mapping[str, Any]) -> None:
        """Set properties, all or none; None puts one back to its default."""

        def changed(state: SessionState) -> SessionState:
            properties = state.properties.changed({name: value for name, value in values.items() if value is not None})
            for name in (name for name, value in values.items() if value is None):
                properties = properties.without(name)
            return replace(state, properties=properties)

        self.change(changed)

    def engine_session(self) -> EngineSession:
        """Return the first engine session, which answers what is asked outside of statements."""
        return self.sides.first().session

    def alias_of(self, mount: Mount) -> str:
        """Return the name of a mount in the first engine session."""
        return self.sides.first().alias_of(mount, self.identity)

    def metadata(self, mount: Mount) -> EngineCatalog:
        return self.sides.first().metadata(mount, self.identity)

    def catalog_names(self) -> Mapping[str, str]:
        return self.sides.names()

    def secrets(self) -> tuple[str, ...]:
        """Return texts that must never leave: the aliases and the user's tokens (ERR-6)."""
        identity = self.identity
        tokens = (identity.access_token, identity.refresh_token, *self._former_tokens)
        return (*self.sides.names(), *(token.reveal() for token in tokens if token))

    def renew(self, identity: Identity) -> None:
        """Go on with new tokens: the same person, perhaps with other roles. `renew_catalogs` has to follow."""
        with self._lock:
            if self.closed:
                return
            ended = self.identity
            former = (ended.access_token, *self._former_tokens)
            self._former_tokens = tuple(token for token in former if token)[:_FORMER_TOKENS]
            self.identity = identity
        if ended.access_token != identity.access_token:
            self._forget_login(ended)

    def renew_catalogs(self, *, idle: bool = True) -> None:
        """Give the catalogs the tokens that they have now, those of running statements too.

        Args:
            idle: also where nothing runs; what waits for a statement is renewed with it in any case.
        """
        self.sides.renew(self.identity, idle=idle)

    def find_view(self, name: str) -> SessionView | None:
        return self._views.get(name)

    def views(self) -> tuple[SessionView, ...]:
        with self._lock:
            return tuple(self._views[name] for name in sorted(self._views))

    def put_view(self, view: SessionView, *, replace: bool) -> None:
        with self._lock:
            if view.name in self._views and not replace:
                raise UserError(
                    f"View {view.name} already exists",
                    code=ErrorCode.DUPLICATE_TABLE,
                    hint="use CREATE OR REPLACE TEMPORARY VIEW",
                )
            if len(self._views) >= _MAX_VIEWS:
                raise UserError(f"A session can have {_MAX_VIEWS} temporary views", code=ErrorCode.RESOURCE_EXHAUSTED)
            self._views[view.name] = view

    def drop_view(self, name: str) -> bool:
        with self._lock:
            return self._views.pop(name, None) is not None

    @contextmanager
    def looking(self) -> Iterator[None]:
        """Something is listed outside of statements: no engine session is closed meanwhile."""
        with self._lock:
            self._looking += 1
        try:
            yield
        finally:
            with self._lock:
                self._looking -= 1

    def trim(self) -> None:
        """Close engine sessions that were not needed lately, unless something runs."""
        self.sides.trim()

    def close(self) -> None:
        """End the session: its views, mounts and engine sessions go. Idempotent."""
        with self._lock:
            self.closed = True
            self._views.clear()
            self._state = replace(self._state, prepared={})
            # Whoever looks into memory later shall find no tokens (SESS-6).
            ended, self.identity = self.identity, self.identity.without_tokens()
            self._former_tokens = ()
        self.sides.close()
        if ended.access_token:
            self._forget_login(ended)

    def _forget_login(self, ended: Identity) -> None:
        """Have the catalogs forget what a token earned."""
        for mount in (*self.catalogs.mounts(), *self.discovered.mounts()):
            if not isinstance(mount.backend, SupportsLogout):
                continue
            try:
                mount.backend.forget_login(ended)
            except Exception as error:  # noqa: BLE001 - the session ends in any case
                _log.warning("catalog %s did not forget a login: %s", mount.name, type(error).__name__)
