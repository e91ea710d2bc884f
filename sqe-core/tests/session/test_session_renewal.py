"""Renewal of tokens: when, by whom, what a session keeps, and what follows a no, no answer or nonsense."""

from __future__ import annotations

import threading
import time as real_time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from sqe_core.session.renewal import Renewals
from sqe_core.spi.auth import BasicCredential, BearerCredential, ClientInfo
from sqe_core.spi.errors import (
    ErrorCode,
    ExternalError,
    InvalidCredentialsError,
    NotSupportedError,
    SqeError,
    UserError,
)
from sqe_core.spi.identity import Identity, Secret

HERE = ClientInfo(protocol="flight", address="127.0.0.1")
ALICE = BasicCredential(username="alice", password=Secret("wonderland"))
LIFETIME = 300.0


@pytest.fixture
def renewer(make_provider, time) -> Any:
    """A provider whose tokens live for five minutes and can be renewed."""

    class Renewer(make_provider):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(alice="wonderland", bob="builder")
            self.lifetime = LIFETIME
            self.refreshed: list[Identity] = []
            self.answer: Callable[[Identity], Identity] | BaseException | None = None
            self.hang: threading.Event | None = None

        def identity(self, name: str) -> Identity:
            return replace(super().identity(name), expires_at=time.clock.now() + timedelta(seconds=self.lifetime))

        def refresh(self, identity: Identity) -> Identity:
            self.refreshed.append(identity)
            if self.hang is not None:
                assert self.hang.wait(10)
            if isinstance(self.answer, BaseException):
                raise self.answer
            renewed = replace(
                identity,
                access_token=Secret(f"idp-{identity.username}-{len(self.refreshed)}"),
                expires_at=time.clock.now() + timedelta(seconds=self.lifetime),
            )
            return self.answer(renewed) if self.answer else renewed

    return Renewer()


def settle(desk: Any) -> None:
    """Let one tick pass, and its workers finish."""
    renewals: Renewals = desk.store.renewals
    renewals.tick()
    deadline = real_time.monotonic() + 10
    while renewals._workers:
        assert real_time.monotonic() < deadline
        real_time.sleep(0.002)


@pytest.fixture
def desk(make_desk, renewer) -> Any:
    return make_desk(renewer, refresh_buffer_secs=60)


def error_of(call: Callable[[], object]) -> SqeError:
    with pytest.raises(SqeError) as caught:
        call()
    return caught.value


def test_tokens_are_renewed_before_they_end_and_not_earlier(desk, renewer, time) -> None:
    live = desk.store.authenticate(ALICE, HERE)
    end = live.expires_at
    time.advance(LIFETIME - 80)
    settle(desk)
    assert not renewer.refreshed

    time.advance(25)
    settle(desk)
    assert len(renewer.refreshed) == 1
    assert live.session.identity.access_token == Secret("idp-alice-1")
    assert live.expires_at > end
    assert live.session.renewed_catalogs == [True]
    settle(desk)
    assert len(renewer.refreshed) == 1


@pytest.mark.rule("SESS-6")
def test_a_session_lives_on_by_renewals_up_to_its_absolute_end(make_desk, renewer, time) -> None:
    desk = make_desk(renewer, absolute_secs=1000, idle_secs=1e9)
    live = desk.store.authenticate(ALICE, HERE)
    for _ in range(100):
        time.advance(9.9)
        settle(desk)
        live.ensure_usable()
    time.advance(11)
    assert error_of(live.ensure_usable).code is ErrorCode.SESSION_EXPIRED
    assert 3 <= len(renewer.refreshed) <= 6
    settle(desk)
    assert len(desk.closed) == 1


def test_the_credential_and_the_token_find_the_renewed_session(desk, renewer, time) -> None:
    live = desk.store.authenticate(ALICE, HERE)
    time.advance(LIFETIME - 50)
    settle(desk)
    time.advance(60)
    assert desk.store.authenticate(BearerCredential(token=live.token), HERE) is live
    assert desk.store.authenticate(ALICE, HERE) is live


def test_short_tokens_are_not_renewed_all_the_time(make_desk, renewer, time) -> None:
    renewer.lifetime = 40
    desk = make_desk(renewer, refresh_buffer_secs=60)
    desk.store.authenticate(ALICE, HERE)
    for _ in range(20):
        settle(desk)
    assert not renewer.refreshed
    time.advance(21)
    settle(desk)
    settle(desk)
    assert len(renewer.refreshed) == 1


def test_roles_may_change_with_a_renewal(desk, renewer, time) -> None:
    live = desk.store.authenticate(ALICE, HERE)
    renewer.answer = lambda identity: replace(identity, roles=frozenset({"auditor"}))
    time.advance(LIFETIME - 50)
    settle(desk)
    assert live.identity.roles == {"auditor"}
    live.ensure_usable()


@pytest.mark.rule("SESS-4")
@pytest.mark.parametrize("change", [{"subject": "bob"}, {"issuer": "elsewhere"}])
def test_a_renewal_as_somebody_else_ends_the_session(desk, renewer, time, change: dict[str, str]) -> None:
    live = desk.store.authenticate(ALICE, HERE)
    renewer.answer = lambda identity: replace(identity, **change)
    time.advance(LIFETIME - 50)
    settle(desk)
    assert live.ended
    assert live.session.expired
    assert live.session.identity.subject == "alice"
    assert error_of(lambda: desk.store.authenticate(BearerCredential(token=live.token), HERE)).code is (
        ErrorCode.SESSION_EXPIRED
    )


@pytest.mark.rule("AUTHN-4")
def test_only_the_provider_that_issued_an_identity_is_asked(desk, renewer, time) -> None:
    live = desk.store.authenticate(ALICE, HERE)
    live.session.identity = replace(live.session.identity, provider="another")
    time.advance(LIFETIME - 50)
    settle(desk)
    assert not renewer.refreshed
    with pytest.raises(InvalidCredentialsError):
        desk.chain.refresh(live.session.identity)


def test_a_provider_that_is_down_is_asked_again_and_its_users_work_on(desk, renewer, time) -> None:
    live = desk.store.authenticate(ALICE, HERE)
    renewer.answer = ExternalError("no answer", code=ErrorCode.CATALOG_UNAVAILABLE)
    time.advance(LIFETIME - 59)
    for _ in range(5):
        settle(desk)
        live.ensure_usable()
        time.advance(10)
    assert 2 <= len(renewer.refreshed) <= 5
    renewer.answer = None
    time.advance(8)
    settle(desk)
    time.advance(30)
    live.ensure_usable()


def test_a_provider_that_stays_down_ends_the_session_with_its_token(desk, renewer, time) -> None:
    live = desk.store.authenticate(ALICE, HERE)
    renewer.answer = RuntimeError("http://idp/secret")
    for _ in range(31):
        time.advance(10)
        settle(desk)
    assert live.ended
    assert error_of(live.ensure_usable).code is ErrorCode.SESSION_EXPIRED


@pytest.mark.rule("JWT-9")
def test_a_refused_renewal_ends_what_runs_with_the_token_and_not_later(desk, renewer, time) -> None:
    live = desk.store.authenticate(ALICE, HERE)
    live.session.busy = True
    renewer.answer = InvalidCredentialsError()
    time.advance(LIFETIME - 50)
    settle(desk)
    assert not live.ended
    live.ensure_usable()
    settle(desk)
    assert len(renewer.refreshed) == 1, "a spent token is not sent again"

    time.advance(51)
    settle(desk)
    assert live.ended
    assert live.session.expired, "the statement is told why"


@pytest.mark.rule("JWT-9")
def test_without_renewal_a_running_statement_has_its_grace(desk, renewer, time) -> None:
    live = desk.store.authenticate(ALICE, HERE)
    live.session.busy = True
    renewer.answer = NotSupportedError("no refresh token")
    time.advance(LIFETIME + 1)
    settle(desk)
    assert not live.ended
    assert error_of(live.ensure_usable).code is ErrorCode.SESSION_EXPIRED
    time.advance(61)
    settle(desk)
    assert live.ended
    assert len(renewer.refreshed) == 1


def test_a_hundred_sessions_are_renewed_together_by_few_threads(make_desk, renewer, time) -> None:
    desk = make_desk(renewer)
    lives = [desk.store.authenticate(ALICE, replace(HERE, label=f"s{number}")) for number in range(100)]
    together: list[int] = []
    ask = renewer.refresh

    def refresh(identity: Identity) -> Identity:
        together.append(sum(thread.name == "sqe-session-renewer" for thread in threading.enumerate()))
        return ask(identity)

    type(renewer).refresh = lambda self, identity: refresh(identity)
    time.advance(LIFETIME - 50)
    settle(desk)
    assert len(renewer.refreshed) == 100
    assert max(together) <= 8
    assert all(live.session.identity.access_token != Secret("idp-alice") for live in lives)


def test_a_provider_that_hangs_keeps_nobody_else_waiting(make_desk, renewer, time) -> None:
    desk = make_desk(renewer)
    live = desk.store.authenticate(ALICE, HERE)
    renewer.hang = threading.Event()
    time.advance(LIFETIME - 50)
    began = real_time.monotonic()
    desk.store.renewals.tick()
    desk.store.renewals.tick()
    live.ensure_usable()
    assert desk.store.authenticate(BasicCredential(username="bob", password=Secret("builder")), HERE)
    assert real_time.monotonic() - began < 2
    renewer.hang.set()
    settle(desk)
    assert len(renewer.refreshed) == 1


@pytest.mark.rule("SESS-6")
def test_a_session_that_is_closed_while_it_is_renewed_stays_closed(desk, renewer, time) -> None:
    live = desk.store.authenticate(ALICE, HERE)
    renewer.hang = threading.Event()
    time.advance(LIFETIME - 50)
    desk.store.renewals.tick()
    while not renewer.refreshed:
        real_time.sleep(0.002)
    live.close()
    renewer.hang.set()
    settle(desk)
    assert live.ended
    assert live.session.identity.access_token == Secret("idp-alice")
    assert live.session.renewed_catalogs == []
    assert error_of(lambda: desk.store.authenticate(BearerCredential(token=live.token), HERE))


def test_a_store_that_is_closed_renews_nothing(desk, renewer, time) -> None:
    desk.store.authenticate(ALICE, HERE)
    desk.store.close()
    time.advance(LIFETIME - 50)
    settle(desk)
    assert not renewer.refreshed


def test_a_running_statements_catalogs_are_looked_after(desk, renewer, time) -> None:
    live = desk.store.authenticate(ALICE, HERE)
    settle(desk)
    assert live.session.renewed_catalogs == []
    live.session.busy = True
    settle(desk)
    assert live.session.renewed_catalogs == [False]


@pytest.mark.rule("JWT-9")
def test_a_login_that_is_withdrawn_ends_what_runs_within_a_minute(desk, renewer, time) -> None:
    live = desk.store.authenticate(ALICE, HERE)
    live.session.busy = True
    renewer.revoked.add("alice")
    settle(desk)
    assert not live.ended
    time.advance(61)
    settle(desk)
    assert live.ended
    assert live.session.expired


def test_an_identity_that_cannot_be_used_is_no_renewal(desk, renewer, time) -> None:
    live = desk.store.authenticate(ALICE, HERE)
    renewer.answer = lambda identity: replace(identity, username="al\nice")
    time.advance(LIFETIME - 50)
    settle(desk)
    assert live.identity.username == "alice"
    renewer.answer = lambda identity: replace(identity, expires_at=time.clock.now())
    time.advance(15)
    settle(desk)
    assert live.renewal.withdrawn


def test_a_provider_that_vouches_again_gives_the_session_its_new_token(desk, renewer, time) -> None:
    live = desk.store.authenticate(ALICE, HERE)
    end = live.expires_at
    time.advance(181)
    renewer.changes = {"access_token": Secret("idp-alice-again")}
    assert desk.store.authenticate(ALICE, HERE) is live
    assert live.session.identity.access_token == Secret("idp-alice-again")
    assert live.expires_at > end


def test_what_ran_is_told_that_its_session_has_ended() -> None:
    from sqe_core.query.run.running import EndReason, RunningStatement

    running = RunningStatement("q")
    running.cancel(EndReason.EXPIRED)
    error = running.end_error()
    assert isinstance(error, UserError)
    assert error.code is ErrorCode.SESSION_EXPIRED
    assert "log in again" in str(error.hint)
