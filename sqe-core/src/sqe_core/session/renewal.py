"""Tokens of sessions are renewed before they end, and what was withdrawn meanwhile ends (JWT-9).

Every tick looks at all sessions and hands those that need an identity provider to a few threads: one that hangs keeps
neither the tick nor the logins.
"""

from __future__ import annotations

import logging
import random
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from sqe_core.session.login import LoginChain
from sqe_core.session.sweeper import Sweeper
from sqe_core.spi.errors import InvalidCredentialsError, SqeError
from sqe_core.spi.factory import Clock

if TYPE_CHECKING:
    from sqe_core.session.store import LiveSession, SessionStore

_log = logging.getLogger(__name__)

_TICK_SECS = 10.0
_WORKERS = 8
# Of the buffer: sessions that began together shall not ask together.
_JITTER = 0.25
# Whether a login was withdrawn while its statement runs; before each statement it is asked in any case.
_RECHECK_SECS = 60.0


class RenewalState:
    """How far the renewal of a session is."""

    def __init__(self, now: float) -> None:
        self.began = now
        """When it got the tokens that it has."""
        self.ask_at: float | None = None
        """When a provider is asked next; None while that has to be found."""
        self.checked = now
        """When it was last asked whether the login was withdrawn."""
        self.queued = False
        self.over = False
        """Nobody is asked any more: the session ends with the token that it has."""
        self.withdrawn = False
        """Because the provider said no: what runs ends with the token, too."""


class Renewals:
    """Looks after the tokens of all sessions.

    Args:
        chain: the login providers.
        store: the sessions.
        buffer_secs: how long before its end a token is renewed.
        clock: what expiries are compared with.
        monotonic: what waiting is measured with.
    """

    def __init__(
        self,
        chain: LoginChain,
        store: SessionStore,
        *,
        buffer_secs: float,
        clock: Clock,
        monotonic: Callable[[], float],
    ) -> None:
        self._chain = chain
        self._store = store
        self._buffer_secs = buffer_secs
        self._clock = clock
        self._monotonic = monotonic
        self._tick_secs = min(_TICK_SECS, max(buffer_secs / 6, 0.2))
        self._lock = threading.Lock()
        self._waiting: deque[LiveSession] = deque()
        self._workers = 0
        self._stopped = False
        self._sweeper = Sweeper(self.tick, interval_secs=self._tick_secs, name="sqe-session-renewal")

    def ensure_running(self) -> None:
        self._sweeper.ensure_running()

    def stop(self) -> None:
        self._stopped = True
        with self._lock:
            self._waiting.clear()
        self._sweeper.stop()

    def tick(self) -> None:
        """Find the sessions that need something, and let the workers see to them."""
        for live in self._store.all():
            self._store.end_when_over(live)
            if not live.ended and (self._renews(live) or self._store.is_busy(live)):
                self._enqueue(live)
        self._hire()

    def _renews(self, live: LiveSession) -> bool:
        state, identity = live.renewal, live.session.identity
        if state.over or identity.expires_at is None or not self._chain.refreshes(identity):
            return False
        now = self._monotonic()
        if state.ask_at is None:
            left = (identity.expires_at - self._clock.now()).total_seconds()
            buffer = self._buffer_secs * (1 + random.uniform(0, _JITTER))  # noqa: S311 - no secret
            lifetime = left + now - state.began
            # A token that lives shorter than the buffer is not renewed all the time.
            state.ask_at = max(now + left - buffer, state.began + lifetime / 2)
        return now >= state.ask_at

    def _enqueue(self, live: LiveSession) -> None:
        with self._lock:
            if not live.renewal.queued and not self._stopped:
                live.renewal.queued = True
                self._waiting.append(live)

    def _hire(self) -> None:
        with self._lock:
            wanted = min(_WORKERS - self._workers, len(self._waiting))
            self._workers += max(wanted, 0)
        for started in range(max(wanted, 0)):
            try:
                threading.Thread(target=self._work, name="sqe-session-renewer", daemon=True).start()
            except RuntimeError:
                _log.error("no thread could be started to renew sessions")  # the next tick tries again
                with self._lock:
                    self._workers -= wanted - started
                return

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._workers -= 1
                    return
                live = self._waiting.popleft()
            try:
                self._see_to(live)
            except Exception:  # noqa: BLE001 - one session's fault must not end the others
                _log.exception("a session could not be looked after")
            finally:
                live.renewal.queued = False

    def _see_to(self, live: LiveSession) -> None:
        if self._renews(live):
            self._renew(live)
        elif self._store.is_busy(live):
            live.session.renew_catalogs(idle=False)
            self._recheck(live)

    def _renew(self, live: LiveSession) -> None:
        state, identity = live.renewal, live.session.identity
        try:
            renewed = self._chain.refresh(identity)
        except InvalidCredentialsError as error:
            state.over = state.withdrawn = True
            self._store.refuse(live, error, at_once=False)
            return
        except SqeError as error:
            _log.warning("a session's login could not be renewed yet: %s", error)
            state.ask_at = self._monotonic() + self._tick_secs * random.uniform(0.5, 1.5)  # noqa: S311 - no secret
            return
        if renewed is None:
            state.over = True  # nothing to renew it with: it ends with its token, as it always would have
        elif renewed.key != identity.key:
            _log.error("login provider %s renewed a session as somebody else", identity.provider)
            self._store.refuse(live, InvalidCredentialsError(), at_once=True)
        else:
            self._store.adopt(live, renewed)

    def _recheck(self, live: LiveSession) -> None:
        now = self._monotonic()
        if now - live.renewal.checked < _RECHECK_SECS:
            return
        live.renewal.checked = now
        try:
            revoked = self._chain.is_revoked(live.session.identity)
        except SqeError as error:
            _log.warning("nobody could say whether a running statement's login still counts: %s", error)
            return
        if revoked:
            self._store.refuse(live, InvalidCredentialsError(), at_once=True)
