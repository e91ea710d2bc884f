"""Who is connected: sessions by their token and by the credential that opened them, until they end (SESS-1 to 6).

    session token     found by its keyed hash
    any credential    the session that the same credential opened under the same label, or else on the same connection,
                      while it lives; else the login chain is asked, unless it said who that is a moment ago

A session ends when it is idle, too old, past its identity's expiry, revoked, logged out, or when the server stops.
"""

from __future__ import annotations

import logging
import math
import secrets
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple, TypeVar

from sqe_core.session.directory import ListedSession
from sqe_core.session.fingerprint import Fingerprints, session_hash
from sqe_core.session.login import LoginChain, account_of, refuse_other_user, unavailable
from sqe_core.session.renewal import Renewals, RenewalState
from sqe_core.session.session import Session
from sqe_core.session.sweeper import Sweeper
from sqe_core.spi.auth import BearerCredential, ClientInfo, Credential, LoginRequest, NoCredential
from sqe_core.spi.errors import (
    ErrorCode,
    ExternalError,
    InternalError,
    InvalidCredentialsError,
    ResourcesError,
    ShuttingDownError,
    SqeError,
    UserError,
)
from sqe_core.spi.factory import Clock, SystemClock
from sqe_core.spi.identity import Identity, Secret

_log = logging.getLogger(__name__)

_TOKEN_BYTES = 32

KeyT = TypeVar("KeyT", bound=Hashable)
FoundT = TypeVar("FoundT")


class LoginKey(NamedTuple):
    """What finds a session without its token.

    A label is the client's own word and proves nothing: it stands beside the credential, never in its place.
    """

    credential: bytes
    """The hash of what was presented."""
    protocol: str
    label: str | None
    connection: str | None
    """Which connection it is of; None where the client named its session, or its protocol keeps none."""


class Owner(NamedTuple):
    """Whose sessions count together: those of connections, which end with these, keep no handshake out."""

    user: tuple[str, str]
    by_connection: bool


class Vouched(NamedTuple):
    """What a provider said of a credential, and when."""

    identity: Identity
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLimits:
    """The bounds of `[session]`, and those that cannot be configured."""

    idle_secs: float = 900
    absolute_secs: float = 28800
    without_expiry_secs: float = 3600
    """How long an identity counts that does not say when it ends."""
    sweep_secs: float = 60
    most: int = 10_000
    most_per_user: int = 200
    revalidate_secs: float = 180
    """How long a credential finds its session before a provider is asked about it again."""
    grace_secs: float = 60
    """How long a running statement may outlive its session (JWT-9)."""
    refresh_buffer_secs: float = 60
    """How long before their end tokens are renewed."""


class SessionObserver:
    """Is told of logins and sessions, and does nothing. What `logged_in` and `opened` raise refuses the login."""

    def logged_in(self, identity: Identity, client: ClientInfo) -> None:
        """A provider vouched for a credential."""

    def refused(self, credential: Credential, client: ClientInfo, error: SqeError) -> None:
        """Nobody did."""

    def opened(self, session: Session, client: ClientInfo) -> None:
        """A session begins."""

    def renewed(self, session: Session) -> None:
        """It goes on with new tokens."""

    def not_renewed(self, session: Session, error: SqeError) -> None:
        """Its provider does not renew it; it ends."""

    def ended(self, session: Session) -> None:
        """A session is over."""


@dataclass(kw_only=True, eq=False, repr=False)
class LiveSession:
    """A session of somebody who logged in. Safe for use from several threads."""

    store: SessionStore
    session: Session
    protocol: str
    opened_at: datetime
    login: LoginKey
    """What opened it."""
    token: Secret = field(default_factory=lambda: Secret(secrets.token_urlsafe(_TOKEN_BYTES)))
    expires_at: datetime
    """When it ends at the latest."""
    ends_at: float
    """The same on the clock that nobody can turn."""
    ends_for_good_at: float
    """The end that no renewal moves."""
    renewal: RenewalState
    last_used: float
    validated: float
    """When a provider last vouched for the credential that opened it."""
    let_in_at: float = -math.inf
    """When it was found usable for a call that has asked for nothing yet."""
    is_renewed: bool = False
    """Whether its rights and its end came with another credential than `login` names."""
    ended: bool = False

    @property
    def identity(self) -> Identity:
        return self.session.identity.without_tokens()

    def ensure_usable(self) -> None:
        """Raise when no statement may start any more; called before each one (JWT-9).

        Raises:
            UserError: the session has ended (`SESSION_EXPIRED`).
            InvalidCredentialsError: its identity was revoked.
        """
        self.store.ensure_usable(self)

    def close(self) -> None:
        """Log out: the token and the credential find this session no more, and what runs in it is ended. Idempotent."""
        self.store.end(self)


@dataclass(slots=True)
class _Building:
    """A login that is being made; others with the same credential wait for it (SESS-5)."""

    done: threading.Event = field(default_factory=threading.Event)
    error: BaseException | None = None


class SessionStore:
    """The sessions of a server. Safe for use from many threads.

    Args:
        chain: who vouches for credentials.
        open_session: makes the session of an identity.
        close_session: ends one, with everything that runs in it.
        expire_session: the same for one whose time is over, so that what runs is told why; None closes it.
        kill_session: the same for one that somebody ends from outside; None closes it.
        is_busy: whether a statement of a session runs; a busy session is not idle.
        limits: bounds.
        observer: is told of logins and sessions.
        clock: what expiries of identities are compared with.
        monotonic: what idle and absolute time are measured with.
    """

    def __init__(
        self,
        chain: LoginChain,
        *,
        open_session: Callable[[Identity, ClientInfo], Session],
        close_session: Callable[[Session], None],
        expire_session: Callable[[Session], None] | None = None,
        kill_session: Callable[[Session], None] | None = None,
        is_busy: Callable[[Session], bool] = lambda session: False,
        limits: SessionLimits | None = None,
        observer: SessionObserver | None = None,
        clock: Clock | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.chain = chain
        self._open_session = open_session
        self._close_session = close_session
        self._expire_session = expire_session or close_session
        self._kill_session = kill_session or close_session
        self._is_busy = is_busy
        self._limits = limits or SessionLimits()
        self._observer = observer or SessionObserver()
        self._clock = clock or SystemClock()
        self._monotonic = monotonic
        self._fingerprints = Fingerprints()
        self._lock = threading.Lock()
        self._by_token: dict[bytes, LiveSession] = {}
        self._by_login: dict[LoginKey, LiveSession] = {}
        self._by_credential: dict[tuple[bytes, str], dict[LiveSession, None]] = {}
        self._by_connection: dict[tuple[str, str], dict[LiveSession, None]] = {}
        self._by_owner: dict[Owner, dict[LiveSession, None]] = {}
        self._opening: Counter[Owner] = Counter()
        self._building: dict[Hashable, _Building] = {}
        self._ended: OrderedDict[bytes | LoginKey, float] = OrderedDict()
        self._closed = False
        self._sweeper = Sweeper(self.sweep, interval_secs=self._limits.sweep_secs, name="sqe-session-sweeper")
        self.renewals = Renewals(
            chain,
            self,
            buffer_secs=self._limits.refresh_buffer_secs,
            clock=self._clock,
            monotonic=monotonic,
        )

    def authenticate(self, credential: Credential, client: ClientInfo, *, own: bool = False) -> LiveSession:
        """Find the session of a credential, or log in and open one.

        Args:
            credential: what was presented.
            client: who presents it; its label, or else its connection, says which of the login's sessions is meant.
            own: open one in any case, which its token alone finds; a session's token finds that session.

        Raises:
            InvalidCredentialsError: with the constant text.
            UserError: the token is that of a session that has ended (`SESSION_EXPIRED`).
            AccessDeniedError: another user was asked for, or the connection is readable by others.
            ResourcesError: too many attempts or sessions; `retry_after_secs` says when to come back.
            ExternalError: an identity provider did not answer.
        """
        self._ensure_running()
        try:
            self.chain.refuse_plaintext(credential, client)
            digest = self._fingerprints.of(credential, client.address)
            live = self._of_token(digest, credential, client) if isinstance(credential, BearerCredential) else None
            if live is None:
                live = self._of_login(digest, credential, client, own)
            refuse_other_user(live.session.identity, client)
            self.ensure_usable(live)
        except SqeError as error:
            self._observer.refused(credential, client, error)
            raise
        return live

    def end_connection(self, protocol: str, connection: str) -> None:
        """End the sessions of a connection that is gone: nobody can reach them any more."""
        with self._lock:
            lives = tuple(self._by_connection.get((protocol, connection), ()))
        for live in lives:
            self.end(live)

    def open_for(self, identity: Identity, client: ClientInfo) -> LiveSession:
        """Open a session for whom a provider vouched without a credential: in a browser, or on another device.

        Raises:
            ResourcesError: too many sessions.
        """
        self._ensure_running()
        self._observer.logged_in(identity, client)
        vouched = Vouched(identity, self._monotonic())
        return self._open(
            vouched, LoginKey(secrets.token_bytes(_TOKEN_BYTES), client.protocol, None, None), client, True
        )

    def note_refused(self, client: ClientInfo, error: SqeError) -> None:
        """Tell who watches of a login without a credential that failed."""
        self._observer.refused(NoCredential(), client, error)

    def ensure_usable(self, live: LiveSession) -> None:
        """Raise when no statement of a session may start any more; see `LiveSession.ensure_usable`."""
        if not self._alive(live):
            self.end_when_over(live)
            raise _expired()
        if self.chain.is_revoked(live.session.identity):
            self.end(live, expired=True)
            raise InvalidCredentialsError
        live.last_used = live.session.last_used = self._monotonic()

    def connected(self) -> Sequence[ListedSession]:
        """Describe the sessions that live, the oldest first."""
        now = self._monotonic()
        return [
            ListedSession(
                id=session_hash(live.session),
                identity=live.identity,
                protocol=live.protocol,
                client_address=live.session.client_address,
                opened_at=live.opened_at,
                idle_secs=max(0.0, now - live.last_used),
                expires_at=live.expires_at,
                busy=self.is_busy(live),
                live=live,
            )
            for live in self.all()
            if self._alive(live)
        ]

    def end_when_over(self, live: LiveSession) -> None:
        """End a session that may not be used any more; a statement that runs may finish, within bounds."""
        if self._alive(live):
            return
        # Whom the provider refused has no grace: a withdrawn login shall not work on.
        grace = 0 if live.renewal.withdrawn else self._limits.grace_secs
        if self._monotonic() >= live.ends_at + grace or not self.is_busy(live):
            self.end(live, expired=True)

    def is_busy(self, live: LiveSession) -> bool:
        return self._is_busy(live.session)

    def end(self, live: LiveSession, *, expired: bool = False, close: Callable[[Session], None] | None = None) -> None:
        """End a session. Idempotent.

        Args:
            live: the session.
            expired: its user did not end it, so what runs is told why.
            close: another way to end it.
        """
        with self._lock:
            if live.ended:
                return
            live.ended = True
            token = self._fingerprints.of_token(live.token)
            self._by_token.pop(token, None)
            if self._by_login.get(live.login) is live:
                del self._by_login[live.login]
            for index, key in self._indexes(live):
                mine = index.get(key, {})
                mine.pop(live, None)
                if not mine:
                    index.pop(key, None)
            self._ended[token] = self._monotonic()
            if live.login.label and live.session.chosen_roles is not None and (expired or close is not None):
                self._ended[live.login] = self._monotonic()  # another one of this name would have other rights
            while len(self._ended) > self._limits.most:
                self._ended.popitem(last=False)
        self._finish(live, close or (self._expire_session if expired else self._close_session))

    def kill(self, live: LiveSession) -> None:
        """End a session from outside, at once: what runs in it is told so. Idempotent."""
        self.end(live, close=self._kill_session)

    def sweep(self) -> None:
        """End what is over, and forget what is long ago."""
        now = self._monotonic()
        with self._lock:
            lives = list(self._by_token.values())
            for token, ended in list(self._ended.items()):
                if now - ended > self._limits.absolute_secs:
                    del self._ended[token]
        for live in lives:
            self.end_when_over(live)
            if not self.is_busy(live):
                live.session.trim()
        self.chain.attempts.sweep()

    def close(self) -> None:
        """End every session, refuse new ones, and close the login providers. Idempotent."""
        self.renewals.stop()
        self._sweeper.stop()
        with self._lock:
            was_closed, self._closed = self._closed, True
            lives = list(self._by_token.values())
        for live in lives:
            self.end(live)
        if not was_closed:
            self.chain.close()

    @property
    def count(self) -> int:
        with self._lock:
            return len(self._by_token)

    def all(self) -> Sequence[LiveSession]:
        with self._lock:
            return tuple(self._by_token.values())

    def adopt(self, live: LiveSession, identity: Identity) -> None:
        """Go on with new tokens of the same person; the absolute end stays (SESS-6)."""
        now, today = self._monotonic(), self._clock.now()
        with self._lock:
            if live.ended:
                return
            ends_at = min(live.ends_for_good_at, now + self._secs_left(identity, today))
            live.session.renew(identity)
            live.ends_at = ends_at
            live.expires_at = today + timedelta(seconds=ends_at - now)
            live.renewal = RenewalState(now)
        live.session.renew_catalogs()
        self._observer.renewed(live.session)

    def renew_login(self, live: LiveSession, credential: Credential, client: ClientInfo) -> None:
        """Go on with what a client presents anew: a credential of the same person, from the same provider (AUTHN-4).

        Raises:
            InvalidCredentialsError: it is bad, or somebody else's; the session stays as it was.
            SqeError: as `authenticate` raises.
        """
        try:
            identity = self.chain.authenticate(LoginRequest(credential=credential, client=client))
            old = live.session.identity
            if (identity.key, identity.provider, identity.username) != (old.key, old.provider, old.username):
                raise InvalidCredentialsError
        except SqeError as error:
            self._observer.refused(credential, client, error)
            raise
        self._observer.logged_in(identity, client)
        live.is_renewed = True  # before it has more rights: who still has the old credential gets none of them
        self.adopt(live, identity)

    def refuse(self, live: LiveSession, error: SqeError, *, at_once: bool) -> None:
        """Note that a session is not renewed: it ends with its token, or at once."""
        self._observer.not_renewed(live.session, error)
        if at_once:
            self.end(live, expired=True)

    def _of_token(self, digest: bytes, credential: BearerCredential, client: ClientInfo) -> LiveSession | None:
        """Find the session of a session's token; None when it is no such token."""
        with self._lock:
            live = self._by_token.get(digest)
            has_ended = digest in self._ended
        if live is None:
            if has_ended:
                raise _expired()
            return None
        if live.token != credential.token or live.protocol != client.protocol:
            # A token of another protocol is nobody's business there, a login provider's least of all.
            raise InvalidCredentialsError
        return live

    def _of_login(self, digest: bytes, credential: Credential, client: ClientInfo, own: bool) -> LiveSession:
        account = account_of(credential)
        if account is not None:
            # Before the lookup: it would tell a right password from a wrong one as often as somebody asks.
            self.chain.attempts.check(client.address, account)
        if own:
            login = LoginKey(digest, client.protocol, None, None)
            return self._open(self._ask(credential, client, login), login, client, own)
        login = LoginKey(digest, client.protocol, client.label, None if client.label else client.connection)
        deadline = self._monotonic() + 2 * self.chain.timeout_secs
        return self._alone(login, deadline, self._fresh, lambda: self._log_in(login, deadline, credential, client))

    def _log_in(self, login: LoginKey, deadline: float, credential: Credential, client: ClientInfo) -> LiveSession:
        """Go on with a session, or open one, by what a provider says of its credential, or said a moment ago."""

        def by_what_was_said(said: tuple[bytes, str]) -> LiveSession | None:
            vouched = self._vouched(said)
            return None if vouched is None else self._enter(vouched, login, client)

        def by_asking() -> LiveSession:
            return self._enter(self._ask(credential, client, login), login, client)

        try:
            return self._alone((login.credential, login.protocol), deadline, by_what_was_said, by_asking)
        except InvalidCredentialsError:
            old = self._known(login)
            if old is not None:
                self.end(old, expired=True)
            raise

    def _alone(
        self, key: KeyT, deadline: float, find: Callable[[KeyT], FoundT | None], make: Callable[[], FoundT]
    ) -> FoundT:
        """Return what is found by a key, or make it: one at a time, and the others look again (SESS-5)."""
        while True:
            found = find(key)
            if found is not None:
                return found
            with self._lock:
                building = self._building.get(key)
                leads = building is None
                if building is None:
                    building = self._building[key] = _Building()
            if leads:
                try:
                    return make()
                except BaseException as error:
                    building.error = error
                    raise
                finally:
                    with self._lock:
                        del self._building[key]
                    building.done.set()
            if not building.done.wait(max(0.0, deadline - self._monotonic())):
                raise unavailable()
            # What is wrong with the credential is wrong for all; a limit or a wish of another client is not.
            if isinstance(building.error, InvalidCredentialsError):
                raise InvalidCredentialsError
            too_slow = isinstance(building.error, ResourcesError) and building.error.code is ErrorCode.QUERY_TIMEOUT
            if too_slow or isinstance(building.error, (ExternalError, InternalError)):
                raise unavailable()

    def _fresh(self, login: LoginKey) -> LiveSession | None:
        """Find a session for whose credential a provider vouched a moment ago."""
        live = self._known(login)
        return live if live is not None and self._is_fresh(live) else None

    def _is_fresh(self, live: LiveSession) -> bool:
        return self._monotonic() - live.validated < self._limits.revalidate_secs

    def _known(self, login: LoginKey) -> LiveSession | None:
        with self._lock:
            live = self._by_login.get(login)
        if live is not None and not self._alive(live):
            self.end_when_over(live)
            return None
        return live

    def _vouched(self, credential: tuple[bytes, str]) -> Vouched | None:
        """Find what a provider said of a credential a moment ago: who opens many connections logs in once.

        Tokens that are renewed belong to one session: of two that renew them, the second would be refused.
        """
        with self._lock:
            others = tuple(self._by_credential.get(credential, ()))
        for live in others:
            identity = live.session.identity
            own = identity.refresh_token is None and not live.is_renewed
            if own and self._is_fresh(live) and self._alive(live):
                return Vouched(identity, live.validated)
        return None

    def _ask(self, credential: Credential, client: ClientInfo, login: LoginKey) -> Vouched:
        try:
            identity = self.chain.authenticate(LoginRequest(credential=credential, client=client))
        except InvalidCredentialsError:
            # What was said before counts for nobody any more: each session of it is asked for again.
            with self._lock:
                for live in self._by_credential.get((login.credential, login.protocol), ()):
                    live.validated = -math.inf
            raise
        self._observer.logged_in(identity, client)
        return Vouched(identity, self._monotonic())

    def _enter(self, vouched: Vouched, login: LoginKey, client: ClientInfo) -> LiveSession:
        """Go on with the session of a login, or open one."""
        identity, old = vouched.identity, self._known(login)
        if old is not None:
            if _same_rights(old.session.identity, identity):
                old.validated = vouched.at
                if identity.expires_at is not None and identity.access_token != old.session.identity.access_token:
                    self.adopt(old, identity)
                elif dict(identity.claims) != dict(old.session.identity.claims):
                    # Policies ask for them: what a directory says now counts now.
                    old.session.renew(replace(old.session.identity, claims=identity.claims))
                return old
            self.end(old, expired=True)
        refuse_other_user(identity, client)
        return self._open(vouched, login, client, own=False)

    def _open(self, vouched: Vouched, login: LoginKey, client: ClientInfo, own: bool) -> LiveSession:
        identity = vouched.identity
        if login in self._ended:
            raise UserError(
                "The session of this name has ended, and with it the choice of roles",
                code=ErrorCode.SESSION_EXPIRED,
                hint="give the session another name: the header x-session-id",
            )
        owner = _owner(identity, login)
        self._reserve(owner, identity.personal)
        live: LiveSession | None = None
        try:
            session = self._open_session(identity, client)
            try:
                self._observer.opened(session, client)
            except BaseException:
                self._close_session(session)
                raise
            live = self._live(session, login, client, vouched.at)
        finally:
            with self._lock:
                self._opening -= Counter([owner])
                refused = self._closed
                if live is not None and not refused:
                    self._by_token[self._fingerprints.of_token(live.token)] = live
                    if not own:
                        self._by_login[login] = live
                    for index, key in self._indexes(live):
                        index.setdefault(key, {})[live] = None
        if refused:
            self._close_session(session)
            raise _stopping()
        return live

    def _indexes(self, live: LiveSession) -> Iterator[tuple[dict[Any, dict[LiveSession, None]], Hashable]]:
        """Yield where a session is listed beside others, and under what."""
        yield self._by_owner, _owner(live.session.identity, live.login)
        yield self._by_credential, (live.login.credential, live.protocol)
        if live.login.connection is not None:
            yield self._by_connection, (live.protocol, live.login.connection)

    def _live(self, session: Session, login: LoginKey, client: ClientInfo, validated: float) -> LiveSession:
        now, today = self._monotonic(), self._clock.now()
        secs = min(self._limits.absolute_secs, self._secs_left(session.identity, today))
        return LiveSession(
            store=self,
            session=session,
            protocol=client.protocol,
            opened_at=today,
            login=login,
            expires_at=today + timedelta(seconds=secs),
            ends_at=now + secs,
            ends_for_good_at=now + self._limits.absolute_secs,
            renewal=RenewalState(now),
            last_used=now,
            validated=validated,
        )

    def _secs_left(self, identity: Identity, today: datetime) -> float:
        if identity.expires_at is None:
            return self._limits.without_expiry_secs
        return (identity.expires_at - today).total_seconds()

    def _reserve(self, owner: Owner, personal: bool) -> None:
        """Take a place, at the cost of the same user's least used session when there are too many (SESS-6)."""
        for _ in range(3):
            with self._lock:
                mine = self._by_owner.get(owner, {})
                has_own = len(mine) + self._opening[owner] < self._limits.most_per_user
                if has_own and len(self._by_token) + self._opening.total() < self._limits.most:
                    self._opening[owner] += 1
                    return
                # Many people share an identity that is not personal: one of them must not end another's session. What
                # belongs to a connection ends with it: its client would not notice that it works in another one.
                spare = mine if personal and not owner.by_connection else {}
                candidates = sorted(spare, key=lambda live: live.last_used)
            idle = next((live for live in candidates if not self.is_busy(live)), None)
            if has_own or idle is None:
                break
            self.end(idle, expired=True)
        raise ResourcesError(
            "Too many sessions",
            hint="close connections that are not needed any more; session.max_sessions_per_user and"
            " session.max_sessions are the bounds",
            retry_after_secs=60,
        )

    def _alive(self, live: LiveSession) -> bool:
        """Whether a session may be used."""
        if live.ended or live.session.closed:
            return False
        now = self._monotonic()
        expiry = live.session.identity.expires_at
        if now >= live.ends_at or (expiry is not None and self._clock.now() >= expiry):
            return False
        return now - live.last_used < self._limits.idle_secs or self.is_busy(live)

    def _finish(self, live: LiveSession, close: Callable[[Session], None]) -> None:
        for step in (close, self._observer.ended):
            try:
                step(live.session)
            except Exception:  # noqa: BLE001 - the other steps have to be made too
                _log.exception("a session did not close cleanly")

    def _ensure_running(self) -> None:
        if self._closed:
            raise _stopping()
        self._sweeper.ensure_running()
        self.renewals.ensure_running()


def _owner(identity: Identity, login: LoginKey) -> Owner:
    return Owner(identity.key, login.connection is not None)


def _same_rights(old: Identity, new: Identity) -> bool:
    """Whether a session may go on with what a provider says now (SESS-2)."""
    return (old.key, old.username, old.provider, old.roles, old.groups) == (
        new.key,
        new.username,
        new.provider,
        new.roles,
        new.groups,
    )


def _expired() -> UserError:
    return UserError("The session has ended; log in again", code=ErrorCode.SESSION_EXPIRED)


def _stopping() -> ShuttingDownError:
    return ShuttingDownError("The server is stopping", retry_after_secs=5)
