"""One connected user: identity, current names, settings, session views, and the engine session behind them."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from sqe_core.catalog.registry import CatalogRegistry, Mount
from sqe_core.engine.port import Engine, EngineCatalog, EngineSession
from sqe_core.session.properties import SessionProperties
from sqe_core.spi.errors import EngineLostError, ErrorCode, UserError
from sqe_core.spi.identity import Identity

_MAX_VIEWS = 1000


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


@dataclass(slots=True)
class _EngineSide:
    """What dies with the engine: its session, and the random alias of each mounted catalog (ENF-8)."""

    session: EngineSession
    aliases: dict[str, str] = field(default_factory=dict)


class Session:
    """A session. Statements of one session are analysed one at a time, under `lock` (ENF-13)."""

    def __init__(
        self,
        *,
        identity: Identity,
        engine: Engine,
        catalogs: CatalogRegistry,
        catalog: str,
        schema: tuple[str, ...] = ("default",),
        protocol: str = "embedded",
    ) -> None:
        self.id = secrets.token_urlsafe(24)
        self.identity = identity
        self.protocol = protocol
        self.catalogs = catalogs
        self.catalog = catalog
        self.schema = schema
        self.properties = SessionProperties()
        self.lock = threading.RLock()
        self.created = time.monotonic()
        self.last_used = self.created
        self.closed = False
        self._views: dict[str, SessionView] = {}
        self._engine = engine
        self._side: _EngineSide | None = None

    def engine_session(self) -> EngineSession:
        """Return the engine session, opened at first use and anew after the engine restarted."""
        with self.lock:
            if self.closed:
                raise UserError("The session has ended; connect again", code=ErrorCode.SESSION_EXPIRED)
            if self._side is None or not self._usable(self._side.session):
                self._side = _EngineSide(self._engine.open_session())
            return self._side.session

    @staticmethod
    def _usable(session: EngineSession) -> bool:
        """Whether an engine session is there and still as it was opened (CONF-1)."""
        try:
            if session.alive and session.check_settings():
                return True
            session.close()
        except EngineLostError:
            pass  # nobody had noticed yet
        return False

    def alias_of(self, mount: Mount) -> str:
        """Return the engine's name of a mount, mounting it at first use."""
        with self.lock:
            session = self.engine_session()
            assert self._side is not None
            alias = self._side.aliases.get(mount.name)
            if alias is None:
                alias = "_sqe_c_" + secrets.token_hex(16)
                session.mount(alias, mount.backend.spark_properties(self.identity))
                self._side.aliases[mount.name] = alias
            return alias

    def metadata(self, mount: Mount) -> EngineCatalog:
        """Return the engine's view of a mount, with this user's rights."""
        with self.lock:
            return self.engine_session().catalog(self.alias_of(mount))

    def catalog_names(self) -> Mapping[str, str]:
        """Return the users' name of each catalog, by its random alias."""
        with self.lock:
            return {alias: name for name, alias in self._side.aliases.items()} if self._side else {}

    def secrets(self) -> tuple[str, ...]:
        """Return texts that must never leave: the aliases and the user's token (ERR-6)."""
        with self.lock:
            aliases = tuple(self._side.aliases.values()) if self._side else ()
        token = self.identity.access_token
        return (*aliases, token.reveal()) if token else aliases

    def find_view(self, name: str) -> SessionView | None:
        """Return the temporary view of that name."""
        return self._views.get(name)

    def views(self) -> tuple[SessionView, ...]:
        """Return the temporary views, by name."""
        return tuple(self._views[name] for name in sorted(self._views))

    def put_view(self, view: SessionView, *, replace: bool) -> None:
        """Remember a temporary view."""
        with self.lock:
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
        """Forget a temporary view; False when there is none of that name."""
        with self.lock:
            return self._views.pop(name, None) is not None

    def close(self) -> None:
        """End the session: its views, mounts and engine session go. Idempotent."""
        with self.lock:
            self.closed = True
            self._views.clear()
            side, self._side = self._side, None
        if side is not None and side.session.alive:
            with suppress(EngineLostError):  # what has ended needs no closing
                side.session.close()
