"""Login providers, sessions and time for the tests of this room."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from testbed.making import each_ended

from sqe_core.session.attempts import LoginAttempts
from sqe_core.session.login import LoginChain
from sqe_core.session.store import SessionLimits, SessionStore
from sqe_core.spi.auth import AuthProvider, BasicCredential, BearerCredential, ClientInfo, LoginRequest
from sqe_core.spi.errors import InvalidCredentialsError
from sqe_core.spi.identity import Identity, Secret
from sqe_core.testing.fakes import FixedClock


class Time:
    """Both clocks, moved together."""

    def __init__(self) -> None:
        self.clock = FixedClock()
        self.seconds = 1000.0

    def monotonic(self) -> float:
        return self.seconds

    def advance(self, seconds: float) -> None:
        self.seconds += seconds
        self.clock.advance(seconds)


class Passwords(AuthProvider):
    """Knows users by name and password, and by `token-<name>`; counts how often it was asked."""

    def __init__(self, name: str = "passwords", **users: str) -> None:
        self.name = name
        self.users = users
        self.asked: list[LoginRequest] = []
        self.revoked: set[str] = set()
        self.changes: dict[str, Any] = {}
        self.failure: BaseException | None = None
        self.expires_at: datetime | None = None
        self.closed = False
        self.gate: threading.Event | None = None

    def authenticate(self, request: LoginRequest) -> Identity | None:
        self.asked.append(request)
        if self.gate is not None:
            assert self.gate.wait(10)
        if self.failure is not None:
            raise self.failure
        match request.credential:
            case BasicCredential(username=name, password=password):
                if self.users.get(name) == password.reveal():
                    return self.identity(name)
                raise InvalidCredentialsError("wrong password for " + name)
            case BearerCredential(token=token):
                name = token.reveal().removeprefix("token-")
                if name in self.users:
                    return self.identity(name)
                raise InvalidCredentialsError
        return None

    def identity(self, name: str) -> Identity:
        made = Identity(
            issuer="test",
            subject=name,
            username=name,
            provider=self.name,
            access_token=Secret("idp-" + name),
            expires_at=self.expires_at,
        )
        return replace(made, **self.changes)

    def is_revoked(self, identity: Identity) -> bool:
        if isinstance(self.failure, Exception):
            raise self.failure
        return identity.username in self.revoked

    def close(self) -> None:
        self.closed = True


class FakeSession:
    """As much of a session as the store knows."""

    def __init__(self, identity: Identity) -> None:
        self.identity = identity
        self.closed = False
        self.chosen_roles: tuple[str, ...] | None = None
        self.busy = False
        self.last_used = 0.0
        self.trimmed = 0
        self.expired = False
        self.renewed_catalogs: list[bool] = []

    def renew(self, identity: Identity) -> None:
        self.identity = identity

    def renew_catalogs(self, *, idle: bool = True) -> None:
        self.renewed_catalogs.append(idle)

    def trim(self) -> None:
        self.trimmed += 1


class Desk:
    """A store on fake time, with its parts."""

    def __init__(self, provider: AuthProvider, time: Time, limits: SessionLimits, per_minute: int) -> None:
        self.provider = provider
        self.time = time
        self.attempts = LoginAttempts(per_minute, monotonic=time.monotonic)
        self.chain = LoginChain(
            [(getattr(provider, "name", "passwords"), provider)],
            attempts=self.attempts,
            timeout_secs=5,
            clock=time.clock,
        )
        self.opened: list[FakeSession] = []
        self.closed: list[FakeSession] = []
        self.store = SessionStore(
            self.chain,
            open_session=self.open,
            close_session=self.close,
            expire_session=self.expire,
            is_busy=lambda session: session.busy,
            limits=limits,
            clock=time.clock,
            monotonic=time.monotonic,
        )

    def open(self, identity: Identity, client: ClientInfo) -> Any:
        session = FakeSession(identity)
        self.opened.append(session)
        return session

    def close(self, session: Any) -> None:
        session.closed = True
        self.closed.append(session)

    def expire(self, session: Any) -> None:
        session.expired = True
        self.close(session)


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def users() -> Passwords:
    return Passwords(alice="wonderland", bob="builder")


@pytest.fixture
def make_desk(users: Passwords, time: Time):

    def make(provider: AuthProvider | None = None, *, per_minute: int = 10, **limits: float) -> Desk:
        return Desk(provider or users, time, SessionLimits(sweep_secs=3600, **limits), per_minute)  # type: ignore[arg-type]

    yield from each_ended(make, lambda desk: desk.store.close())


@pytest.fixture
def desk(make_desk: Callable[..., Desk]) -> Desk:
    return make_desk()


def _race(*calls: Callable[[], Any]) -> Sequence[Any]:
    """Make the calls at once; return answers and errors, in order."""
    barrier = threading.Barrier(len(calls))
    answers: list[Any] = [None] * len(calls)

    def run(index: int, call: Callable[[], Any]) -> None:
        barrier.wait(10)
        try:
            answers[index] = call()
        except BaseException as error:
            answers[index] = error

    threads = [threading.Thread(target=run, args=item) for item in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
    return answers


@pytest.fixture
def race() -> Callable[..., Sequence[Any]]:
    return _race


@pytest.fixture
def make_provider() -> type[Passwords]:
    return Passwords
