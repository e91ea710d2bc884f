"""Logins that wait for a browser or another device: bounded, in time, and each handed out once (TRI-8, LIM-10).

    begin     the core makes the secrets; the client gets an id that is nobody else's, and an address
    finish    the browser comes back with `state`, which counts once
    poll      who has the id gets the session's token, once

What a login waits for is kept by its hash, so that looking for it tells nothing about what is there.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Generic, Protocol, TypeVar

from sqe_core.session.addresses import client_network
from sqe_core.session.login import LoginChain
from sqe_core.session.store import SessionStore
from sqe_core.spi.auth import BrowserLoginFinish, BrowserLoginStart, ClientInfo, DeviceLogin
from sqe_core.spi.errors import AccessDeniedError, InvalidCredentialsError, ResourcesError, SqeError
from sqe_core.spi.factory import Clock, SystemClock
from sqe_core.spi.identity import Identity, Secret
from sqe_core.spi.protocol import BrowserLogin, DeviceLoginStart

_MOST = 1000
_MOST_PER_CLIENT = 20
_BYTES = 32
_LONGEST_CODE = 4096


class _Waits(Protocol):
    """What a shelf has to know of a login."""

    client: ClientInfo
    ends_at: float


WaitsT = TypeVar("WaitsT", bound=_Waits)


class Shelf(Generic[WaitsT]):
    """Logins by what finds them, until they are taken or over. Safe for use from many threads."""

    def __init__(self, monotonic: Callable[[], float], *, most: int = _MOST, most_per_client: int = _MOST_PER_CLIENT):
        self._monotonic = monotonic
        self._most = most
        self._most_per_client = most_per_client
        self._lock = threading.Lock()
        self._kept: dict[bytes, WaitsT] = {}

    def put(self, key: str, login: WaitsT) -> None:
        with self._lock:
            self._refuse_too_many(login.client)
            self._kept[_digest(key)] = login

    def check_room(self, client: ClientInfo) -> None:
        """Raise what `put` would raise, before anybody is asked for what is kept."""
        with self._lock:
            self._refuse_too_many(client)

    def find(self, key: str) -> WaitsT:
        """Return a login. Raises InvalidCredentialsError when there is none, or it is over."""
        with self._lock:
            return self._alive(self._kept.get(_digest(key)))

    def take(self, key: str) -> WaitsT:
        """Return a login, once. Raises InvalidCredentialsError when there is none, or it is over."""
        with self._lock:
            return self._alive(self._kept.pop(_digest(key), None))

    def __len__(self) -> int:
        with self._lock:
            self._forget_old()
            return len(self._kept)

    def _alive(self, login: WaitsT | None) -> WaitsT:
        if login is None or login.ends_at <= self._monotonic():
            raise InvalidCredentialsError
        return login

    def _refuse_too_many(self, client: ClientInfo) -> None:
        self._forget_old()
        network = client_network(client.address)
        mine = sum(client_network(other.client.address) == network for other in self._kept.values())
        if len(self._kept) >= self._most or mine >= self._most_per_client:
            raise ResourcesError(
                "Too many logins are waiting", hint="finish one, or try again later", retry_after_secs=30
            )

    def _forget_old(self) -> None:
        now = self._monotonic()
        for key, login in list(self._kept.items()):
            if login.ends_at <= now:
                del self._kept[key]


@dataclass(slots=True, kw_only=True, eq=False)
class _InBrowser:
    client: ClientInfo
    ends_at: float
    nonce: str = field(repr=False)
    verifier: Secret
    identity: Identity | None = None
    failed: bool = False


@dataclass(slots=True, kw_only=True, eq=False)
class _OnDevice:
    client: ClientInfo
    ends_at: float
    login: DeviceLogin
    ask_at: float
    lock: threading.Lock = field(default_factory=threading.Lock)


class _WaitingLogins(Generic[WaitsT]):
    """Logins of one kind.

    Args:
        chain: asks the provider that has them.
        store: opens the sessions.
        ttl_secs: how long a login may take, when the identity provider would wait longer.
    """

    def __init__(
        self,
        chain: LoginChain,
        store: SessionStore,
        *,
        ttl_secs: float,
        clock: Clock | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._chain = chain
        self._store = store
        self._ttl_secs = ttl_secs
        self._clock = clock or SystemClock()
        self._monotonic = monotonic
        self._by_id: Shelf[WaitsT] = Shelf(monotonic)

    @property
    def waiting(self) -> int:
        return len(self._by_id)


class WaitingBrowserLogins(_WaitingLogins[_InBrowser]):
    """Implements `spi.protocol.BrowserLogins`. Browsers come back to one address, no other is taken (TRI-8)."""

    def __init__(self, chain: LoginChain, store: SessionStore, *, redirect_uri: str, **more: Any) -> None:
        super().__init__(chain, store, **more)
        self.redirect_uri = redirect_uri
        self._by_state: Shelf[_InBrowser] = Shelf(self._monotonic)

    def begin(self, *, redirect_uri: str, client: ClientInfo) -> BrowserLogin:
        self._chain.refuse_readable(client)
        if redirect_uri != self.redirect_uri:
            # A client that chooses where codes are sent to may send other people's to itself.
            raise AccessDeniedError("Browsers come back to the configured address only")
        id, state, verifier = (secrets.token_urlsafe(_BYTES) for _ in range(3))
        login = _InBrowser(
            client=client,
            ends_at=self._monotonic() + self._ttl_secs,
            nonce=secrets.token_urlsafe(_BYTES),
            verifier=Secret(verifier),
        )
        url = self._chain.browser_login_url(
            BrowserLoginStart(
                redirect_uri=redirect_uri, state=state, nonce=login.nonce, code_challenge=_challenge(verifier)
            )
        )
        self._by_id.put(id, login)
        self._by_state.put(state, login)
        return BrowserLogin(id=Secret(id), url=url, expires_at=self._clock.now() + timedelta(seconds=self._ttl_secs))

    def finish(self, *, state: str, code: Secret) -> None:
        """Take what came back to the redirect address; once."""
        login = self._by_state.take(state)
        try:
            if not 0 < len(code.reveal()) <= _LONGEST_CODE:
                raise InvalidCredentialsError
            login.identity = self._chain.finish_browser_login(
                BrowserLoginFinish(
                    code=code,
                    redirect_uri=self.redirect_uri,
                    nonce=login.nonce,
                    code_verifier=login.verifier,
                )
            )
        except SqeError as error:
            login.failed = True
            self._store.note_refused(login.client, error)
            raise

    def refuse(self, *, state: str) -> None:
        """Note that the browser came back without a code."""
        self._by_state.take(state).failed = True

    def poll(self, id: Secret) -> Secret | None:
        """Return the bearer that the client shall use from now on, once; None while the user has not finished."""
        login = self._by_id.find(id.reveal())
        if login.identity is None and not login.failed:
            return None
        login = self._by_id.take(id.reveal())
        if login.identity is None:
            raise InvalidCredentialsError
        return self._store.open_for(login.identity, login.client).token


class WaitingDeviceLogins(_WaitingLogins[_OnDevice]):
    """Implements `spi.protocol.DeviceLogins`."""

    def begin(self, *, client: ClientInfo) -> DeviceLoginStart:
        self._chain.refuse_readable(client)
        self._by_id.check_room(client)
        login = self._chain.begin_device_login()
        now, today = self._monotonic(), self._clock.now()
        secs = min(self._ttl_secs, (login.expires_at - today).total_seconds())
        id = secrets.token_urlsafe(_BYTES)
        self._by_id.put(
            id,
            _OnDevice(client=client, ends_at=now + secs, login=login, ask_at=now + login.interval_secs),
        )
        return DeviceLoginStart(
            id=Secret(id),
            user_code=login.user_code,
            verification_uri=login.verification_uri,
            verification_uri_complete=login.verification_uri_complete,
            interval_secs=login.interval_secs,
            expires_at=today + timedelta(seconds=secs),
        )

    def poll(self, id: Secret) -> Secret | None:
        """Return the bearer that the client shall use from now on, once; None while the user has not finished."""
        login = self._by_id.find(id.reveal())
        # Whoever polls faster than the identity provider allows, or twice at once, waits like everybody.
        if not login.lock.acquire(blocking=False):
            return None
        try:
            if self._monotonic() < login.ask_at:
                return None
            identity = self._ask(id, login)
        finally:
            login.lock.release()
        if identity is None:
            return None
        self._by_id.take(id.reveal())
        return self._store.open_for(identity, login.client).token

    def _ask(self, id: Secret, login: _OnDevice) -> Identity | None:
        try:
            return self._chain.poll_device_login(login.login)
        except InvalidCredentialsError as error:
            self._by_id.take(id.reveal())
            self._store.note_refused(login.client, error)
            raise
        finally:
            login.ask_at = self._monotonic() + login.login.interval_secs


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()


def _challenge(verifier: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode("ascii")).digest()).rstrip(b"=").decode("ascii")
