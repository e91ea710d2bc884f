"""A client gives its session a new credential: of the same person, and of nobody else."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from sqe_core.spi.auth import BasicCredential, BearerCredential, ClientInfo, NoCredential
from sqe_core.spi.errors import AccessDeniedError, InvalidCredentialsError
from sqe_core.spi.identity import Secret

HERE = ClientInfo(protocol="flight", address="127.0.0.1")
ALICE = BearerCredential(token=Secret("token-alice"))


def sign_in(desk, users, time):
    users.expires_at = time.clock.now() + timedelta(seconds=300)
    return desk.store.authenticate(ALICE, HERE)


@pytest.mark.rule("JWT-9")
def test_a_session_lives_as_long_as_its_new_token(desk, users, time) -> None:
    live = sign_in(desk, users, time)
    time.advance(250)
    users.expires_at = time.clock.now() + timedelta(seconds=300)
    users.changes = {"access_token": Secret("new"), "roles": frozenset({"analyst"})}
    desk.store.renew_login(live, BasicCredential(username="alice", password=Secret("wonderland")), HERE)

    assert live.session.identity.access_token == Secret("new")
    assert live.session.identity.roles == {"analyst"}
    assert live.expires_at == users.expires_at
    time.advance(200)
    assert desk.store.authenticate(BearerCredential(token=live.token), HERE) is live
    time.advance(101)
    assert live not in desk.store.all() or not desk.store._alive(live)


@pytest.mark.rule("SESS-6")
def test_the_absolute_end_stays(make_desk, users, time) -> None:
    desk = make_desk(absolute_secs=400)
    live = sign_in(desk, users, time)
    end = time.clock.now() + timedelta(seconds=400)
    for _ in range(3):
        time.advance(100)
        users.expires_at = time.clock.now() + timedelta(seconds=300)
        desk.store.renew_login(live, ALICE, HERE)
        assert live.expires_at <= end
    assert live.expires_at == end


@pytest.mark.rule("SESS-4")
@pytest.mark.parametrize(
    "changes",
    [
        {"issuer": "another"},
        {"subject": "bob"},
        {"username": "bob"},
    ],
)
def test_nobody_becomes_somebody_else(desk, users, time, changes) -> None:
    live = sign_in(desk, users, time)
    before = live.session.identity
    users.changes = changes
    with pytest.raises(InvalidCredentialsError):
        desk.store.renew_login(live, ALICE, HERE)
    assert live.session.identity == before
    assert desk.store.authenticate(BearerCredential(token=live.token), HERE) is live


@pytest.mark.rule("AUTHN-4")
def test_what_is_no_credential_changes_nothing(desk, users, time) -> None:
    live, before = sign_in(desk, users, time), users.expires_at
    other = desk.store.authenticate(BearerCredential(token=Secret("token-bob")), HERE)
    for bad in (
        BearerCredential(token=Secret("token-nobody")),
        BearerCredential(token=other.token),
        BearerCredential(token=live.token),
        BearerCredential(token=Secret("token-bob")),
        NoCredential(),
    ):
        with pytest.raises(InvalidCredentialsError):
            desk.store.renew_login(live, bad, HERE)
    assert live.expires_at == before
    assert desk.store.authenticate(BearerCredential(token=live.token), HERE) is live


def test_a_token_in_the_clear_is_refused(desk, users, time) -> None:
    live = sign_in(desk, users, time)
    with pytest.raises(AccessDeniedError):
        desk.store.renew_login(live, ALICE, replace(HERE, address="10.0.0.1"))


def test_guesses_count(make_desk, users, time) -> None:
    """A session is no place to try tokens from."""
    desk = make_desk(per_minute=2)
    live = sign_in(desk, users, time)
    failures = []
    for _ in range(20):
        try:
            desk.store.renew_login(live, BearerCredential(token=Secret("token-nobody")), HERE)
        except Exception as error:
            failures.append(type(error).__name__)
    assert "ResourcesError" in failures


def test_a_session_that_has_ended_stays_ended(desk, users, time) -> None:
    live = sign_in(desk, users, time)
    desk.store.end(live)
    desk.store.renew_login(live, ALICE, HERE)
    assert live.ended
    assert live not in desk.store.all()
