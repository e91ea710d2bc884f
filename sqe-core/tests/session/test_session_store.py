"""The session store: who finds which session, when one ends, and what an attacker tries."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import timedelta

import pytest

from sqe_core.auth.anonymous import AnonymousConfig, AnonymousProvider
from sqe_core.session.fingerprint import Fingerprints
from sqe_core.spi.auth import (
    AwsCredential,
    BasicCredential,
    BearerCredential,
    CertificateCredential,
    ClientInfo,
    Credential,
    NoCredential,
)
from sqe_core.spi.errors import (
    AccessDeniedError,
    ErrorCode,
    ExternalError,
    InvalidCredentialsError,
    ResourcesError,
    ShuttingDownError,
    SqeError,
    UserError,
)
from sqe_core.spi.identity import Secret

HERE = ClientInfo(protocol="flight", address="127.0.0.1")
ALICE = BasicCredential(username="alice", password=Secret("wonderland"))
BOB = BasicCredential(username="bob", password=Secret("builder"))


def bearer(token: Secret | str) -> BearerCredential:
    return BearerCredential(token=token if isinstance(token, Secret) else Secret(token))


def is_expired(desk, credential: Credential, client: ClientInfo = HERE) -> bool:
    with pytest.raises(UserError) as caught:
        desk.store.authenticate(credential, client)
    return caught.value.code is ErrorCode.SESSION_EXPIRED


def test_a_login_opens_a_session_with_a_token_of_its_own(desk, users) -> None:
    live = desk.store.authenticate(ALICE, HERE)

    assert live.session is desk.opened[0]
    assert live.session.identity.access_token == Secret("idp-alice")
    assert (live.identity.username, live.identity.access_token) == ("alice", None)
    assert desk.store.authenticate(bearer(live.token), HERE) is live
    assert len(users.asked) == 1


@pytest.mark.rule("SESS-1", "FLT-2")
def test_tokens_are_random_long_and_nobody_elses(make_desk) -> None:
    tokens = set()
    for _ in range(50):
        live = make_desk().store.authenticate(bearer("token-alice"), HERE)
        tokens.add(live.token.reveal())
        assert "alice" not in live.token.reveal()
        assert live.token.reveal() not in repr(live) + repr(vars(live))
    assert len(tokens) == 50
    assert all(len(token) >= 43 for token in tokens)


@pytest.mark.rule("SESS-5")
def test_the_same_credential_gives_the_same_session(desk, users) -> None:
    first = desk.store.authenticate(ALICE, HERE)

    assert desk.store.authenticate(ALICE, replace(HERE, address="127.0.0.2", user_agent="other")) is first
    assert desk.store.authenticate(bearer("token-alice"), HERE) is not first
    assert desk.store.authenticate(ALICE, replace(HERE, protocol="trino")) is not first
    assert desk.store.authenticate(BOB, HERE) is not first
    assert len(users.asked) == 4


# Sessions of connections

FIRST, SECOND = (replace(HERE, connection=name) for name in ("127.0.0.1:7#1", "127.0.0.1:8#2"))


@pytest.mark.rule("SESS-2")
def test_each_connection_of_a_login_has_a_session_of_its_own(desk, users) -> None:
    first, second = (desk.store.authenticate(ALICE, client) for client in (FIRST, SECOND))

    assert first is not second
    assert desk.store.authenticate(ALICE, FIRST) is first
    assert desk.store.authenticate(ALICE, SECOND) is second
    assert len(users.asked) == 1, "who is known is not asked for again"


def test_what_ends_on_one_connection_goes_on_on_the_other(desk) -> None:
    first, second = (desk.store.authenticate(ALICE, client) for client in (FIRST, SECOND))
    desk.store.end_connection("flight", FIRST.connection)
    desk.store.end_connection("flight", "nobody's")

    assert (first.ended, second.ended) == (True, False)
    assert desk.closed == [first.session]
    second.close()
    assert desk.store.authenticate(ALICE, SECOND) not in (first, second)


@pytest.mark.rule("SESS-2")
@pytest.mark.parametrize("field", ["label", "connection"])
def test_the_name_of_a_session_is_no_credential(desk, field) -> None:
    """Whoever guesses a label, or comes from where somebody was, gets a session of its own login."""
    here = replace(HERE, **{field: "127.0.0.1:7"})
    mine = desk.store.authenticate(ALICE, here)

    assert desk.store.authenticate(BOB, here).identity.username == "bob"
    with pytest.raises(InvalidCredentialsError):
        desk.store.authenticate(BasicCredential(username="alice", password=Secret("guess")), here)
    assert desk.store.authenticate(ALICE, here) is mine


def test_a_label_is_shared_by_connections_and_never_taken_for_one(desk) -> None:
    labelled = [desk.store.authenticate(ALICE, replace(each, label="x")) for each in (FIRST, SECOND)]
    assert labelled[0] is labelled[1]
    named_alike = desk.store.authenticate(ALICE, replace(HERE, label=FIRST.connection))
    assert named_alike is not desk.store.authenticate(ALICE, FIRST)
    desk.store.end_connection("flight", FIRST.connection)
    assert not labelled[0].ended
    assert not named_alike.ended


def test_a_session_of_its_own_is_found_by_its_token_alone(desk, users) -> None:
    own = desk.store.authenticate(ALICE, FIRST, own=True)

    assert desk.store.authenticate(ALICE, FIRST) is not own
    assert desk.store.authenticate(ALICE, HERE) is not own
    assert desk.store.authenticate(bearer(own.token), SECOND) is own
    desk.store.end_connection("flight", FIRST.connection)
    assert not own.ended
    desk.store.authenticate(ALICE, FIRST, own=True)
    assert len(users.asked) == 2, "a handshake asks"


@pytest.mark.rule("SESS-2")
@pytest.mark.parametrize("ends", ["idle", "killed", "pushed out", "other rights"])
def test_a_name_whose_session_had_chosen_roles_is_not_used_again(make_desk, time, users, ends: str) -> None:
    """Its client would not notice that it has all of them."""
    desk = make_desk(most_per_user=1)
    named = replace(HERE, label="mine")
    live = desk.store.authenticate(ALICE, named)
    live.session.chosen_roles = ()
    match ends:
        case "idle":
            time.advance(901)
        case "killed":
            desk.store.kill(live)
        case "pushed out":
            desk.store.authenticate(ALICE, HERE, own=True)
        case "other rights":
            time.advance(200)
            users.changes = {"roles": frozenset({"more"})}
    for _ in range(2):
        with pytest.raises(UserError, match="The session of this name has ended") as caught:
            desk.store.authenticate(ALICE, named)
        assert caught.value.code is ErrorCode.SESSION_EXPIRED
    desk.store.authenticate(ALICE, replace(HERE, label="another")).close()
    closed = desk.store.authenticate(ALICE, replace(HERE, label="closed"))
    closed.session.chosen_roles = ()
    closed.close()
    assert desk.store.authenticate(ALICE, replace(HERE, label="closed")), "its user ended it"


@pytest.mark.rule("SESS-6")
def test_connections_of_a_user_are_bounded_and_none_takes_the_session_of_another(make_desk) -> None:
    desk = make_desk(most_per_user=2)
    labelled = desk.store.authenticate(ALICE, replace(HERE, label="x"))
    first = desk.store.authenticate(ALICE, FIRST)
    second = desk.store.authenticate(ALICE, SECOND)
    with pytest.raises(ResourcesError, match="Too many sessions") as caught:
        desk.store.authenticate(ALICE, replace(HERE, connection="third"))
    assert "session.max_sessions_per_user" in str(caught.value.hint)
    signed_in = [desk.store.authenticate(ALICE, HERE, own=True) for _ in range(2)]
    assert (labelled.ended, first.ended, second.ended) == (True, False, False), "connections keep no handshake out"
    desk.store.authenticate(ALICE, HERE, own=True)
    assert [live.ended for live in signed_in] == [True, False]
    desk.store.end_connection("flight", FIRST.connection)
    assert desk.store.authenticate(ALICE, replace(HERE, connection="third"))


def test_tokens_that_are_renewed_are_of_one_session(desk, users) -> None:
    users.changes["refresh_token"] = Secret("renews")
    for client in (FIRST, SECOND):
        desk.store.authenticate(ALICE, client)
    assert len(users.asked) == 2


@pytest.mark.rule("JWT-9")
def test_what_was_said_of_a_credential_is_not_passed_on_for_ever(desk, users, time) -> None:
    desk.store.authenticate(ALICE, FIRST)
    time.advance(100)
    desk.store.authenticate(ALICE, SECOND)
    time.advance(100)
    users.users["alice"] = "changed"
    for client in (replace(HERE, connection="third"), SECOND, FIRST):
        with pytest.raises(InvalidCredentialsError):
            desk.store.authenticate(ALICE, client)


@pytest.mark.rule("JWT-9", "SESS-3")
def test_who_renewed_a_session_gave_its_new_rights_to_nobody_else(desk, users, time) -> None:
    live = desk.store.authenticate(ALICE, FIRST)
    users.changes = {"roles": frozenset({"admin"}), "access_token": Secret("new")}
    desk.store.renew_login(live, BasicCredential(username="alice", password=Secret("wonderland")), FIRST)
    users.changes = {}
    asked = len(users.asked)
    other = desk.store.authenticate(ALICE, SECOND)

    assert len(users.asked) == asked + 1, "the old token is asked for, and has what it has"
    assert (live.identity.roles, other.identity.roles) == ({"admin"}, live.identity.roles - {"admin"})


@pytest.mark.rule("JWT-9")
def test_a_refusal_counts_for_every_connection(desk, users) -> None:
    desk.store.authenticate(ALICE, FIRST)
    users.users["alice"] = "changed"
    with pytest.raises(InvalidCredentialsError):
        desk.store.authenticate(ALICE, HERE, own=True)
    for client in (SECOND, FIRST):
        with pytest.raises(InvalidCredentialsError):
            desk.store.authenticate(ALICE, client)


@pytest.mark.rule("SESS-5")
def test_connections_at_once_log_in_once(desk, users, race) -> None:
    users.gate = threading.Event()
    threading.Timer(0.1, users.gate.set).start()
    clients = [replace(HERE, connection=str(number % 20)) for number in range(40)]
    answers = race(*[lambda client=client: desk.store.authenticate(ALICE, client) for client in clients])

    assert len(set(map(id, answers))) == desk.store.count == len(desk.opened) == 20
    assert len(users.asked) == 1


@pytest.mark.rule("SESS-5")
def test_logins_at_once_open_one_session(desk, users, race) -> None:
    users.gate = threading.Event()
    threading.Timer(0.1, users.gate.set).start()
    answers = race(*[lambda: desk.store.authenticate(ALICE, HERE)] * 40)

    assert len(set(map(id, answers))) == 1
    assert (len(users.asked), len(desk.opened), desk.store.count) == (1, 1, 1)


@pytest.mark.rule("SESS-5")
def test_bad_logins_at_once_are_one_guess(desk, users, race) -> None:
    users.gate = threading.Event()
    threading.Timer(0.1, users.gate.set).start()
    wrong = replace(ALICE, password=Secret("wrong"))
    answers = race(*[lambda: desk.store.authenticate(wrong, HERE)] * 20)

    assert all(isinstance(answer, InvalidCredentialsError) for answer in answers)
    assert len(users.asked) == 1
    assert desk.store.count == 0


@pytest.mark.rule("SESS-5")
def test_somebody_elses_wish_does_not_fail_the_others(desk, users, race) -> None:
    users.gate = threading.Event()
    threading.Timer(0.1, users.gate.set).start()
    wishes = replace(HERE, requested_user="root")
    calls = [lambda: desk.store.authenticate(ALICE, wishes), lambda: desk.store.authenticate(ALICE, HERE)] * 4
    answers = race(*calls)

    assert all(isinstance(answer, AccessDeniedError) for answer in answers[::2])
    assert len(set(map(id, answers[1::2]))) == 1
    assert desk.store.count == 1


@pytest.mark.rule("SESS-5")
def test_a_session_that_cannot_be_opened_leaves_nothing_behind(make_desk, users) -> None:
    desk = make_desk(most=1, most_per_user=1)
    working, desk.store._open_session = desk.store._open_session, lambda identity, client: 1 / 0
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            desk.store.authenticate(ALICE, HERE)
    desk.store._open_session = working

    assert desk.store.authenticate(ALICE, HERE).identity.username == "alice"
    assert not desk.store._building
    assert not desk.store._opening


def test_clients_that_present_nothing_are_told_apart_by_address(make_desk) -> None:
    desk = make_desk(AnonymousProvider("passwords", AnonymousConfig()))
    first = desk.store.authenticate(NoCredential(), HERE)

    assert desk.store.authenticate(NoCredential(), HERE) is first
    assert desk.store.authenticate(NoCredential(), replace(HERE, address="127.0.0.2")) is not first


@pytest.mark.rule("AUTHN-9")
def test_a_session_is_nobody_elses(desk) -> None:
    live = desk.store.authenticate(ALICE, HERE)
    for credential in (bearer(live.token), ALICE):
        with pytest.raises(AccessDeniedError):
            desk.store.authenticate(credential, replace(HERE, requested_user="bob"))
    assert desk.store.authenticate(bearer(live.token), replace(HERE, requested_user="alice")) is live


@pytest.mark.rule("SESS-1")
def test_a_client_cannot_choose_its_token(desk, users) -> None:
    """Fixation: neither a label nor a token that somebody made up becomes a session's token."""
    chosen = "chosen-by-the-attacker"
    with pytest.raises(InvalidCredentialsError):
        desk.store.authenticate(bearer(chosen), HERE)
    live = desk.store.authenticate(ALICE, replace(HERE, label=chosen, source=chosen))

    assert live.token.reveal() != chosen
    with pytest.raises(InvalidCredentialsError):
        desk.store.authenticate(bearer(chosen), HERE)


@pytest.mark.rule("AUTHN-6")
def test_a_token_of_another_protocol_or_store_is_worth_nothing(desk, make_desk, users) -> None:
    live = desk.store.authenticate(ALICE, HERE)
    asked = len(users.asked)
    with pytest.raises(InvalidCredentialsError) as caught:
        desk.store.authenticate(bearer(live.token), replace(HERE, protocol="trino"))
    assert str(caught.value) == str(InvalidCredentialsError())
    assert len(users.asked) == asked, "a session's token went to a login provider"

    with pytest.raises(InvalidCredentialsError):
        make_desk().store.authenticate(bearer(live.token), HERE)


@pytest.mark.rule("AUTHN-5")
def test_a_token_is_a_bearer_and_nothing_else(desk) -> None:
    live = desk.store.authenticate(ALICE, HERE)
    for credential in (
        BasicCredential(username="alice", password=live.token),
        BasicCredential(username=live.token.reveal(), password=Secret("")),
        AwsCredential(access_key_id="alice", secret_access_key=live.token),
    ):
        with pytest.raises(InvalidCredentialsError):
            desk.store.authenticate(credential, HERE)


@pytest.mark.rule("FLT-2")
def test_a_credential_over_a_readable_connection_is_refused_even_while_its_session_lives(desk) -> None:
    live = desk.store.authenticate(ALICE, HERE)
    outside = ClientInfo(protocol="flight", address="10.0.0.1")
    for credential in (ALICE, bearer(live.token)):
        with pytest.raises(AccessDeniedError):
            desk.store.authenticate(credential, outside)


@pytest.mark.rule("AUTHN-7")
def test_a_live_session_is_no_oracle_for_guesses(desk, users) -> None:
    """The right password is refused too, as long as its account is blocked for this client."""
    desk.store.authenticate(ALICE, HERE)
    for number in range(10):
        with pytest.raises(InvalidCredentialsError):
            desk.store.authenticate(replace(ALICE, password=Secret(f"guess{number}")), HERE)
    with pytest.raises(ResourcesError) as caught:
        desk.store.authenticate(ALICE, HERE)
    assert caught.value.retry_after_secs == 60


def test_a_session_ends_when_it_is_idle(make_desk, time) -> None:
    desk = make_desk(idle_secs=900)
    live = desk.store.authenticate(ALICE, HERE)
    for _ in range(3):
        time.advance(890)
        desk.store.authenticate(bearer(live.token), HERE)
    time.advance(900)

    assert is_expired(desk, bearer(live.token))
    assert desk.closed == [live.session]
    assert desk.store.authenticate(ALICE, HERE) is not live


def test_touching_keeps_it_alive(make_desk, time) -> None:
    desk = make_desk(idle_secs=900)
    live = desk.store.authenticate(ALICE, HERE)
    time.advance(890)
    live.ensure_usable()
    time.advance(890)
    live.ensure_usable()


@pytest.mark.rule("SESS-6")
def test_a_session_ends_when_it_is_old(make_desk, time) -> None:
    desk = make_desk(absolute_secs=1000, idle_secs=900)
    live = desk.store.authenticate(ALICE, HERE)
    assert live.expires_at == time.clock.now() + timedelta(seconds=1000)
    time.advance(600)
    live.ensure_usable()
    time.advance(400)

    assert is_expired(desk, bearer(live.token))
    with pytest.raises(UserError, match="The session has ended"):
        live.ensure_usable()


@pytest.mark.rule("JWT-9")
def test_a_session_ends_with_its_identity(make_desk, users, time) -> None:
    users.expires_at = time.clock.now() + timedelta(seconds=300)
    desk = make_desk()
    live = desk.store.authenticate(ALICE, HERE)
    assert live.expires_at == users.expires_at
    time.advance(299)
    live.ensure_usable()
    time.advance(1)

    with pytest.raises(UserError) as caught:
        live.ensure_usable()
    assert caught.value.code is ErrorCode.SESSION_EXPIRED


@pytest.mark.rule("JWT-9")
def test_a_clock_that_is_turned_back_gives_no_time(make_desk, users, time) -> None:
    users.expires_at = time.clock.now() + timedelta(seconds=300)
    live = make_desk().store.authenticate(ALICE, HERE)
    time.clock.advance(-100_000)
    time.seconds += 301
    with pytest.raises(UserError):
        live.ensure_usable()


def test_an_identity_that_does_not_say_when_it_ends_has_an_hour(desk, time) -> None:
    assert desk.store.authenticate(ALICE, HERE).expires_at == time.clock.now() + timedelta(hours=1)


def test_a_running_statement_keeps_its_session_and_ends_in_bounds(make_desk, time) -> None:
    desk = make_desk(idle_secs=100, absolute_secs=1000, grace_secs=60)
    live = desk.store.authenticate(ALICE, HERE)
    live.session.busy = True
    time.advance(500)
    desk.store.sweep()
    assert desk.store.authenticate(bearer(live.token), HERE) is live
    time.advance(500)
    desk.store.sweep()
    assert not live.ended, "what runs may finish"
    assert is_expired(desk, bearer(live.token)), "and nothing new begins"
    assert not live.ended
    time.advance(60)
    desk.store.sweep()
    assert live.ended


def test_the_sweep_ends_what_is_over_and_only_that(make_desk, time) -> None:
    desk = make_desk(idle_secs=100)
    old = desk.store.authenticate(ALICE, HERE)
    time.advance(60)
    young = desk.store.authenticate(BOB, HERE)
    time.advance(60)
    desk.store.sweep()

    assert (old.ended, young.ended) == (True, False)
    assert desk.closed == [old.session]


def test_a_logout_ends_the_token_and_the_credential_at_once(desk, users) -> None:
    live = desk.store.authenticate(ALICE, HERE)
    live.close()
    live.close()

    assert desk.closed == [live.session]
    assert is_expired(desk, bearer(live.token))
    assert len(users.asked) == 1, "a session's token went to a login provider"
    again = desk.store.authenticate(ALICE, HERE)
    assert again.token != live.token
    assert len(users.asked) == 2


def test_a_session_that_was_closed_elsewhere_is_found_no_more(desk) -> None:
    live = desk.store.authenticate(ALICE, HERE)
    live.session.closed = True

    assert desk.store.authenticate(ALICE, HERE) is not live
    assert is_expired(desk, bearer(live.token))


@pytest.mark.rule("JWT-9")
def test_a_revoked_identity_ends_at_the_next_statement(desk, users) -> None:
    live = desk.store.authenticate(ALICE, HERE)
    users.revoked.add("alice")

    with pytest.raises(InvalidCredentialsError):
        live.ensure_usable()
    assert live.ended
    assert desk.closed == [live.session]
    assert is_expired(desk, bearer(live.token))


@pytest.mark.rule("JWT-9")
def test_revocation_that_cannot_be_asked_stops_the_statement_and_not_the_session(desk, users) -> None:
    live = desk.store.authenticate(ALICE, HERE)
    users.failure = ExternalError("down")
    with pytest.raises(ExternalError):
        desk.store.authenticate(bearer(live.token), HERE)
    users.failure = None
    assert desk.store.authenticate(bearer(live.token), HERE) is live


@pytest.mark.rule("AUTHN-6")
def test_a_remembered_credential_is_asked_about_again(make_desk, users, time) -> None:
    desk = make_desk(revalidate_secs=180)
    live = desk.store.authenticate(ALICE, HERE)
    time.advance(179)
    assert desk.store.authenticate(ALICE, HERE) is live
    assert len(users.asked) == 1
    time.advance(1)
    assert desk.store.authenticate(ALICE, HERE) is live
    assert len(users.asked) == 2

    users.users["alice"] = "changed"
    time.advance(180)
    with pytest.raises(InvalidCredentialsError):
        desk.store.authenticate(ALICE, HERE)
    assert live.ended, "the session of a password that was changed lives on"


@pytest.mark.rule("SESS-2")
@pytest.mark.parametrize("changes", [{"roles": frozenset({"admin"})}, {"groups": frozenset({"g"})}, {"subject": "2"}])
def test_other_rights_are_another_session(make_desk, users, time, changes) -> None:
    desk = make_desk()
    live = desk.store.authenticate(ALICE, HERE)
    users.changes = changes
    time.advance(300)
    again = desk.store.authenticate(ALICE, HERE)

    assert again is not live
    assert live.ended
    assert desk.closed == [live.session]


@pytest.mark.rule("SESS-2")
def test_what_policies_ask_for_is_what_the_provider_says_now(make_desk, users, time) -> None:
    desk = make_desk()
    users.changes = {"claims": {"clearance": "secret"}}
    live = desk.store.authenticate(ALICE, HERE)
    ends_at = live.ends_at
    users.changes = {"claims": {"clearance": "none"}}
    time.advance(300)
    assert desk.store.authenticate(ALICE, HERE) is live
    assert live.session.identity.claims == {"clearance": "none"}
    assert live.ends_at == ends_at, "asking again makes no session longer"


@pytest.mark.rule("SESS-2", "AUTHN-4")
def test_a_session_belongs_to_the_provider_that_opened_it(make_desk, users, time, monkeypatch) -> None:
    """Another provider that knows the same person has another say about when they are out."""
    desk = make_desk()
    live = desk.store.authenticate(ALICE, HERE)
    vouched = desk.chain.authenticate
    monkeypatch.setattr(desk.chain, "authenticate", lambda request: replace(vouched(request), provider="other"))
    monkeypatch.setattr(desk.chain, "is_revoked", lambda identity: False)
    time.advance(300)
    assert desk.store.authenticate(ALICE, HERE) is not live
    assert live.ended


def test_an_outage_ends_no_session(make_desk, users, time) -> None:
    desk = make_desk()
    live = desk.store.authenticate(ALICE, HERE)
    time.advance(300)
    users.failure = ExternalError("down")
    with pytest.raises(ExternalError):
        desk.store.authenticate(ALICE, HERE)
    users.failure = None
    assert desk.store.authenticate(ALICE, HERE) is live


@pytest.mark.rule("SESS-6")
def test_the_server_is_full_and_nobody_elses_session_ends(make_desk, users) -> None:
    desk = make_desk(most=2)
    users.users["carol"] = "c"
    lives = [desk.store.authenticate(credential, HERE) for credential in (ALICE, BOB)]
    with pytest.raises(ResourcesError, match="Too many sessions") as caught:
        desk.store.authenticate(BasicCredential(username="carol", password=Secret("c")), HERE)
    assert caught.value.retry_after_secs

    assert not any(live.ended for live in lives)
    lives[0].close()
    desk.store.authenticate(BasicCredential(username="carol", password=Secret("c")), HERE)


@pytest.mark.rule("SESS-6")
def test_ten_thousand_sessions_and_no_more_by_default(desk) -> None:
    assert desk.store._limits.most == 10_000


@pytest.mark.rule("SESS-6")
def test_a_user_who_has_too_many_loses_the_one_that_was_not_used(make_desk, time) -> None:
    desk = make_desk(most_per_user=3)
    clients = [replace(HERE, protocol=f"p{number}") for number in range(5)]
    bob = desk.store.authenticate(BOB, HERE)
    lives = []
    for client in clients[:3]:
        lives.append(desk.store.authenticate(ALICE, client))
        time.advance(1)
    lives[0].ensure_usable()
    lives[1].session.busy = True
    desk.store.authenticate(ALICE, clients[3])

    assert [live.ended for live in (*lives, bob)] == [False, False, True, False]
    for live in desk.store._by_owner[(("test", "alice"), False)]:
        live.session.busy = True
    with pytest.raises(ResourcesError):
        desk.store.authenticate(ALICE, clients[4])


@pytest.mark.rule("SESS-6")
def test_people_who_share_an_identity_do_not_end_each_others_sessions(make_desk) -> None:
    desk = make_desk(AnonymousProvider("passwords", AnonymousConfig()), most_per_user=2)
    lives = [desk.store.authenticate(NoCredential(), replace(HERE, address=f"127.0.0.{n}")) for n in range(2)]
    with pytest.raises(ResourcesError):
        desk.store.authenticate(NoCredential(), replace(HERE, address="127.0.0.9"))
    assert not any(live.ended for live in lives)


@pytest.mark.rule("SESS-4")
def test_the_same_name_of_another_issuer_is_another_user(make_desk, users) -> None:
    desk = make_desk(most_per_user=1)
    first = desk.store.authenticate(ALICE, HERE)
    users.changes = {"issuer": "other"}
    second = desk.store.authenticate(bearer("token-alice"), HERE)

    assert second is not first
    assert not first.ended


@pytest.mark.rule("LIM-10")
def test_the_maps_stay_bounded(make_desk, time) -> None:
    desk = make_desk(most=50, most_per_user=10, absolute_secs=1000)
    for number in range(300):
        desk.store.authenticate(ALICE, replace(HERE, protocol=f"p{number}"))
    store = desk.store
    assert (store.count, len(store._by_login), len(store._ended)) == (10, 10, 50)

    time.advance(2001)
    store.sweep()
    store.sweep()
    assert (store.count, len(store._by_login), len(store._by_owner), len(store._opening)) == (0, 0, 0, 0)
    time.advance(1001)
    store.sweep()
    assert not store._ended
    assert len(desk.closed) == 300


def test_a_closed_store_has_no_sessions_and_takes_none(desk, users) -> None:
    live = desk.store.authenticate(ALICE, HERE)
    desk.store.close()
    desk.store.close()

    assert desk.closed == [live.session]
    assert users.closed
    for credential in (ALICE, bearer(live.token)):
        with pytest.raises(ShuttingDownError):
            desk.store.authenticate(credential, HERE)


def test_a_login_that_meets_the_end_leaves_no_session(desk, users, race) -> None:
    users.gate = threading.Event()

    def close() -> None:
        desk.store.close()
        users.gate.set()

    answers = race(lambda: desk.store.authenticate(ALICE, HERE), close)
    assert isinstance(answers[0], ShuttingDownError)
    assert all(session.closed for session in desk.opened)
    assert desk.store.count == 0


def test_threads_that_log_in_and_out_leave_a_consistent_store(make_desk, race) -> None:
    desk = make_desk(most_per_user=3)
    clients = [replace(HERE, protocol=f"p{number}") for number in range(6)]

    def work(number: int) -> None:
        for step in range(60):
            try:
                live = desk.store.authenticate((ALICE, BOB)[number % 2], clients[(number + step) % len(clients)])
                if step % 3 == 0:
                    live.close()
                if step % 7 == 0:
                    desk.store.sweep()
            except SqeError:
                pass

    answers = race(*[lambda number=number: work(number) for number in range(8)])
    assert answers == [None] * 8
    store = desk.store
    lives = set(store._by_token.values())
    assert set(store._by_login.values()) <= lives
    assert {live for mine in store._by_owner.values() for live in mine} == lives
    assert not store._opening
    assert not store._building
    assert len(desk.opened) == len(desk.closed) + len(lives)
    assert len(desk.closed) == len(set(map(id, desk.closed)))
    store.close()
    assert len(desk.opened) == len(desk.closed)


@pytest.mark.rule("AUTHN-8")
def test_what_is_kept_tells_nothing_of_a_credential(desk) -> None:
    desk.store.authenticate(ALICE, HERE)
    kept = repr(vars(desk.store))
    assert "wonderland" not in kept
    assert Fingerprints().of(ALICE) != Fingerprints().of(ALICE), "the hash has no key"


def test_fingerprints_of_different_logins_differ() -> None:
    fingerprints = Fingerprints()
    credentials = [
        BasicCredential(username="ab", password=Secret("c")),
        BasicCredential(username="a", password=Secret("bc")),
        BasicCredential(username="", password=Secret("abc")),
        BearerCredential(token=Secret("abc")),
        AwsCredential(access_key_id="ab", secret_access_key=Secret("c")),
        AwsCredential(access_key_id="ab", secret_access_key=Secret("c"), session_token=Secret("t")),
        CertificateCredential(der=b"abc"),
        CertificateCredential(der=b"", subject=(("commonName", "a"),)),
        CertificateCredential(der=b"", subject=(("commonName", "b"),)),
        BearerCredential(token=Secret("\udc80")),
        NoCredential(),
    ]
    found = {fingerprints.of(credential) for credential in credentials}
    assert len(found) == len(credentials)


def test_the_sweeper_sweeps_fails_and_is_looked_after(caplog) -> None:
    from sqe_core.session.sweeper import Sweeper

    swept = threading.Semaphore(0)

    def sweep() -> None:
        swept.release()
        raise ValueError("once more")

    sweeper = Sweeper(sweep, interval_secs=0.01, name="test-sweeper")
    sweeper.ensure_running()
    sweeper.ensure_running()
    assert swept.acquire(timeout=5)
    assert swept.acquire(timeout=5), "a failure ended the sweeps"
    thread = sweeper._thread
    assert thread is not None
    sweeper.stop()
    sweeper.ensure_running()
    assert not thread.is_alive()
    assert sweeper._thread is thread


def test_a_sweeper_that_died_is_started_again(caplog) -> None:
    from sqe_core.session.sweeper import Sweeper

    sweeper = Sweeper(lambda: None, interval_secs=3600, name="test-sweeper")
    dead = threading.Thread(target=lambda: None)
    dead.start()
    dead.join()
    sweeper._thread = dead
    sweeper.ensure_running()
    try:
        assert sweeper._thread is not dead
        assert sweeper._thread.is_alive()
        assert "had died" in caplog.text
    finally:
        sweeper.stop()


@pytest.mark.rule("SESS-2")
def test_certificates_with_other_names_are_other_logins() -> None:
    """Where a transport gives the names alone, they are all that tells people apart."""
    fingerprints = Fingerprints()
    ann, bob = (
        fingerprints.of(CertificateCredential(der=b"", subject=(("O", "x"),), alternative_names=(("email", mail),)))
        for mail in ("ann@x", "bob@x")
    )
    assert ann != bob
