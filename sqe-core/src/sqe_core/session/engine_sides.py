"""The engine sessions of one session: each statement has one to itself while it is judged and started.

So statements of a session run side by side, and the options, tables and cancelled threads of one are never another's.
Nothing of a session lives in them but its mounts: names, settings and views are values of ours.

A mount whose token is another one now gets it in place (docs/adr/0006-renewed-tokens-in-place.md). Where anything else
of it changed, its engine session is used no more. A mount that was detached is taken out as soon as nothing is read
from its engine session.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from sqe_core.catalog.registry import Mount
from sqe_core.engine.port import EngineCatalog, EngineSession
from sqe_core.session.engine_pool import EnginePool
from sqe_core.spi.errors import EngineLostError, ErrorCode, ExternalError, SqeError, UserError
from sqe_core.spi.identity import Identity, Secret

_log = logging.getLogger(__name__)

_IDLE_SECS = 60.0
# A catalog's token may end before its user's does, and its backend knows.
_ASK_SECS = 5.0
_TOKEN = "token"  # noqa: S105 - the property that holds one


@dataclass(slots=True, kw_only=True)
class _Mounted:
    """A catalog in an engine session, and for whom and when its backend was last asked for its properties."""

    alias: str
    mount: Mount
    properties: Mapping[str, str]
    token: Secret | None
    identity: Identity
    asked: float


class EngineSide:
    """One engine session, and the random alias of each catalog mounted in it (ENF-8). It dies with the engine."""

    def __init__(self, session: EngineSession, holds: Callable[[Mount], bool] = lambda mount: True) -> None:
        """Begin with no mounts; `holds` says whether a mount is still there."""
        self.session = session
        self.last_used = time.monotonic()
        self.results = 0
        """How many results are still read from it."""
        self._holds = holds
        self._lock = threading.RLock()
        self._mounted: dict[Mount, _Mounted] = {}
        self._outdated = False

    @property
    def aliases(self) -> Mapping[str, str]:
        """The name of each mounted catalog, by its alias."""
        with self._lock:
            return {mounted.alias: mount.name for mount, mounted in self._mounted.items()}

    def is_usable(self) -> bool:
        """Whether the engine session is there and still as it was opened (CONF-1)."""
        # Not while somebody mounts: the settings of a catalog come one after another.
        with self._lock, suppress(EngineLostError):
            return not self._outdated and self.session.alive and self.session.check_settings()
        return False

    def alias_of(self, mount: Mount, identity: Identity) -> str:
        with self._lock:
            mounted = self._mounted.get(mount)
            if mounted is None:
                mounted = self._mounted[mount] = self._mount(mount, identity)
            elif mounted.identity is not identity or time.monotonic() - mounted.asked >= _ASK_SECS:
                self._renew(mounted, identity)
            return mounted.alias

    def renew(self, identity: Identity) -> None:
        """Give each mount the token that its backend has for this identity now. From any thread."""
        with self._lock:
            for mounted in self._mounted.values():
                self._renew(mounted, identity)

    def metadata(self, mount: Mount, identity: Identity) -> EngineCatalog:
        with self._lock:
            return self.session.catalog(self.alias_of(mount, identity))

    @property
    def holds_detached(self) -> bool:
        """Whether something in it is mounted no more."""
        return not all(map(self._holds, tuple(self._mounted)))

    def drop_detached(self) -> None:
        """Take out what is mounted no more, with its login; what fails is tried again. Not while anything is read."""
        with self._lock:
            for mount in [mount for mount in self._mounted if not self._holds(mount)]:
                try:
                    self.session.unmount(self._mounted[mount].alias)
                    del self._mounted[mount]
                except EngineLostError:
                    return
                except Exception as error:  # noqa: BLE001 - it is nobody's statement that could fail
                    _log.warning("catalog %s is still in an engine session: %s", mount.name, type(error).__name__)

    def close(self) -> None:
        """End the engine session; one that died with its engine needs none. Idempotent."""
        with suppress(EngineLostError):
            self.session.close()

    def _mount(self, mount: Mount, identity: Identity) -> _Mounted:
        alias = "_sqe_c_" + secrets.token_hex(16)
        properties, token = _properties_of(mount, identity)
        self.session.mount(alias, properties, token=token)
        return _Mounted(
            alias=alias, mount=mount, properties=properties, token=token, identity=identity, asked=time.monotonic()
        )

    def _renew(self, mounted: _Mounted, identity: Identity) -> None:
        """Ask the backend again; while it cannot say, the mount goes on as it is."""
        mounted.asked = time.monotonic()
        try:
            properties, token = _properties_of(mounted.mount, identity)
        except ExternalError as error:
            _log.warning("catalog %s keeps its login for now: %s", mounted.mount.name, error)
            return
        mounted.identity = identity
        if properties != mounted.properties or (token is None) != (mounted.token is None):
            self._outdated = True
        elif token is not None and token != mounted.token:
            self.session.renew_token(mounted.alias, token)
            mounted.token = token


def _properties_of(mount: Mount, identity: Identity) -> tuple[Mapping[str, str], Secret | None]:
    properties = dict(mount.backend.spark_properties(identity))
    token = properties.pop(_TOKEN, None)
    keys = mount.backend.aws_keys(identity)
    if keys is not None:
        properties["sqe.mount"] = "aws"
        session = keys.session_token.reveal() if keys.session_token else ""
        token = "\n".join((keys.access_key, keys.secret_key.reveal(), session))
    return properties, None if token is None else Secret(token)


class EngineSides:
    """Hands out engine sessions. Safe for use from many threads; no lock is held while one is opened.

    The first one also answers what is asked outside of statements, such as listings. They are closed when nobody has
    needed them for a while, and when too many are open in all.
    """

    def __init__(
        self,
        open_session: Callable[[], EngineSession],
        *,
        holds: Callable[[Mount], bool] = lambda mount: True,
        is_busy: Callable[[], bool] = lambda: False,
        pool: EnginePool | None = None,
        idle_secs: float = _IDLE_SECS,
    ) -> None:
        """Make them.

        Args:
            open_session: opens one.
            holds: whether a mount is still there.
            is_busy: whether something of the session runs; a result may still be read from one that was given back.
            pool: is told of each that is opened.
            idle_secs: how long one is kept that nobody needs.
        """
        self._open_session = open_session
        self._holds = holds
        self._is_busy = is_busy
        self._pool = pool
        self._idle_secs = idle_secs
        self._lock = threading.RLock()
        self._opening = threading.Lock()
        self._all: list[EngineSide] = []
        self._idle: list[EngineSide] = []
        self._closed = False

    def first(self) -> EngineSide:
        """Return the first one, opened at first use and anew after the engine restarted."""
        with self._opening:
            with self._lock:
                self._ensure_open()
                side = self._all[0] if self._all else None
            if side is not None:
                if side.is_usable():
                    side.last_used = time.monotonic()
                    return side
                # Whoever works in it closes it by giving it back.
                if self._forget(side):
                    side.close()
            return self._open(idle=True)

    def lease(self, preferred: EngineSide | None = None) -> EngineSide:
        """Return one that nobody works in, until it is given back.

        Args:
            preferred: taken when it is free, since it knows the plans that were made in it.
        """
        while True:
            with self._lock:
                self._ensure_open()
                side = self._take(preferred)
            if side is None:
                return self._open(idle=False)
            if side.is_usable():
                return side
            self._forget(side)
            side.close()

    def give_back(self, side: EngineSide) -> None:
        if side.results == 0 and side.holds_detached:
            side.drop_detached()
        with self._lock:
            side.last_used = time.monotonic()
            kept = not self._closed and side in self._all
            if kept:
                self._idle.append(side)
        if not kept:
            side.close()

    def begin_result(self, side: EngineSide) -> Callable[[], None]:
        """Note that a result is read from one, until what is returned is called. By whom it was lent to."""
        with self._lock:
            side.results += 1
        ended = threading.Lock()

        def end() -> None:
            if ended.acquire(blocking=False):
                with self._lock:
                    side.results -= 1
                self.mounts_changed()

        return end

    def mounts_changed(self) -> None:
        """Take what was detached out of those from which nobody reads; the others follow when they are given back."""
        with self._lock:
            unused = [side for side in self._idle if side.results == 0 and side.holds_detached]
            self._idle = [side for side in self._idle if side not in unused]
        for side in unused:
            side.drop_detached()
        with self._lock:
            left = [side for side in unused if side not in self._all]
            self._idle += [side for side in unused if side in self._all]
        for side in left:
            side.close()

    def trim(self) -> None:
        """Close what was not needed lately, unless something runs."""
        # What a listing mounted while it was being detached.
        self.mounts_changed()
        old = time.monotonic() - self._idle_secs
        while (since := self.idle_since()) is not None and since <= old:
            if not self.close_one():
                return

    def idle_since(self) -> float | None:
        """When the longest unused one was needed last; None when all are in use."""
        with self._lock:
            return min((side.last_used for side in self._idle), default=None)

    def close_one(self) -> bool:
        """Close the longest unused one, unless something runs; say whether it was closed."""
        with self._lock:
            side = min(self._idle, key=lambda each: each.last_used, default=None)
            if side is None:
                return False
            # What begins from now on does not get it; what began before is seen.
            self._idle.remove(side)
        busy = self._is_busy()
        with self._lock:
            if busy and not self._closed:
                self._idle.append(side)
                return False
            if side in self._all:
                self._all.remove(side)
        side.close()
        return True

    def renew(self, identity: Identity, *, idle: bool = True) -> None:
        """Give the mounts the tokens that they have for this identity now; where that fails, the next use tries again.

        Args:
            identity: whose session it is, with tokens.
            idle: also in those that nobody works in; otherwise they wait for their next use.
        """
        with self._lock:
            sides = [side for side in self._all if idle or side not in self._idle]
        for side in sides:
            try:
                side.renew(identity)
            except SqeError as error:
                _log.warning("the login of a catalog could not be renewed: %s", error)

    def names(self) -> Mapping[str, str]:
        with self._lock:
            sides = tuple(self._all)
        return {alias: name for side in sides for alias, name in side.aliases.items()}

    def close(self) -> None:
        """Close them; one in which a statement works is closed when that is done. Idempotent."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
            self._all.clear()
        for side in idle:
            side.close()

    def __len__(self) -> int:
        with self._lock:
            return len(self._all)

    def _ensure_open(self) -> None:
        if self._closed:
            raise UserError("The session has ended; connect again", code=ErrorCode.SESSION_EXPIRED)

    def _take(self, preferred: EngineSide | None) -> EngineSide | None:
        if preferred is not None and preferred in self._idle:
            self._idle.remove(preferred)
            return preferred
        if not self._idle:
            return None
        # In the order of opening, so that the later ones get old.
        side = min(self._idle, key=self._all.index)
        self._idle.remove(side)
        return side

    def _open(self, *, idle: bool) -> EngineSide:
        side = EngineSide(self._open_session(), self._holds)
        with self._lock:
            closed = self._closed
            if not closed:
                self._all.append(side)
                if idle:
                    self._idle.append(side)
        if closed:
            side.close()
            self._ensure_open()
        if self._pool is not None:
            self._pool.opened(self)
        return side

    def _forget(self, side: EngineSide) -> bool:
        """Use it no more; return whether nobody works in it."""
        with self._lock:
            is_idle = side in self._idle
            if is_idle:
                self._idle.remove(side)
            if side in self._all:
                self._all.remove(side)
        return is_idle
