"""The login chain: order, failures, texts, time, and what never reaches a provider."""

from __future__ import annotations

import logging
import threading
import time as time_module
from datetime import timedelta
from types import MappingProxyType

import pytest

from sqe_core.auth.anonymous import AnonymousConfig, AnonymousProvider
from sqe_core.observe.logging import redact_secrets
from sqe_core.session.attempts import LoginAttempts
from sqe_core.session.login import LoginChain
from sqe_core.spi.auth import (
    AuthProvider,
    AwsCredential,
    BasicCredential,
    BearerCredential,
    CertificateCredential,
    ClientInfo,
    LoginRequest,
    NoCredential,
)
from sqe_core.spi.errors import (
    AccessDeniedError,
    ErrorCode,
    ExternalError,
    InternalError,
    InvalidCredentialsError,
    ResourcesError,
)
from sqe_core.spi.factory import NoMetrics
from sqe_core.spi.identity import Identity, Secret

HERE = ClientInfo(protocol="test", address="127.0.0.1")
CONSTANT = str(InvalidCredentialsError())


def basic(name: str = "alice", password: str = "wonderland", client: ClientInfo = HERE) -> LoginRequest:
    return LoginRequest(credential=BasicCredential(username=name, password=Secret(password)), client=client)


def bearer(token: str) -> LoginRequest:
    return LoginRequest(credential=BearerCredential(token=Secret(token)), client=HERE)


class NotMine(AuthProvider):
    def __init__(self) -> None:
        self.asked = 0

    def authenticate(self, request: LoginRequest) -> Identity | None:
        self.asked += 1
        return None


@pytest.mark.rule("AUTHN-4")
def test_the_providers_are_asked_in_order_until_one_knows(make_provider) -> None:
    first, second, third = NotMine(), make_provider("second", alice="wonderland"), make_provider("third", alice="x")
    chain = LoginChain([("first", first), ("second", second), ("third", third)])

    assert chain.authenticate(basic()).provider == "second"
    assert (first.asked, len(second.asked), len(third.asked)) == (1, 1, 0)


@pytest.mark.rule("AUTHN-4")
@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (InvalidCredentialsError("disabled"), InvalidCredentialsError),
        (ExternalError("https://idp.internal did not answer"), ExternalError),
        (ValueError("secret-7731"), InternalError),
        (ResourcesError("quota of tenant 17"), InternalError),
        (SystemExit(3), SystemExit),
    ],
)
def test_a_failure_stops_the_chain(make_provider, failure: BaseException, expected: type, caplog) -> None:
    first, second = make_provider("first"), make_provider("second", alice="wonderland")
    first.failure = failure

    with pytest.raises(expected) as caught:
        LoginChain([("first", first), ("second", second)]).authenticate(basic())
    assert not second.asked
    for secret in ("disabled", "idp.internal", "secret-7731", "tenant"):
        assert secret not in str(caught.value)
    assert "secret-7731" not in caplog.text


@pytest.mark.rule("AUTHN-6")
def test_every_bad_credential_reads_the_same(users) -> None:
    chain = LoginChain([("passwords", users)])
    requests = [
        basic(password="wrong"),
        basic(name="nobody"),
        basic(name="alice\x00"),
        basic(name="alice\u202e"),
        basic(password="x" * 100_000),
        bearer("token-nobody"),
        bearer(""),
        bearer("x" * 20_000),
        LoginRequest(credential=NoCredential(), client=HERE),
        LoginRequest(credential=CertificateCredential(der=b""), client=HERE),
    ]
    texts = set()
    for request in requests:
        with pytest.raises(InvalidCredentialsError) as caught:
            chain.authenticate(request)
        texts.add((str(caught.value), caught.value.code, caught.value.hint, caught.value.__cause__))
    assert texts == {(CONSTANT, ErrorCode.AUTHENTICATION_FAILED, None, None)}


@pytest.mark.rule("LIM-2")
def test_what_no_credential_can_be_never_reaches_a_provider(users) -> None:
    chain = LoginChain([("passwords", users)])
    for request in (basic(name="a\n"), basic(password="x" * 20_000), bearer("x" * 20_000), bearer("")):
        with pytest.raises(InvalidCredentialsError):
            chain.authenticate(request)
    assert not users.asked


@pytest.mark.rule("AUTHN-7")
def test_brute_force_ends_and_the_right_password_too(users, time) -> None:
    chain = LoginChain([("passwords", users)], attempts=LoginAttempts(10, monotonic=time.monotonic))
    for number in range(10):
        with pytest.raises(InvalidCredentialsError):
            chain.authenticate(basic(password=f"guess{number}"))
    with pytest.raises(ResourcesError) as caught:
        chain.authenticate(basic())
    assert caught.value.retry_after_secs == 60
    assert len(users.asked) == 10

    time.advance(60)
    assert chain.authenticate(basic()).username == "alice"


def test_outages_are_nobodys_guesses(users) -> None:
    chain = LoginChain([("passwords", users)], attempts=LoginAttempts(2))
    users.failure = ExternalError("down")
    for _ in range(10):
        with pytest.raises(ExternalError):
            chain.authenticate(basic())
    users.failure = None
    assert chain.authenticate(basic()).username == "alice"


@pytest.mark.rule("FLT-2")
@pytest.mark.parametrize(
    "credential",
    [
        BasicCredential(username="alice", password=Secret("wonderland")),
        BearerCredential(token=Secret("token-alice")),
        AwsCredential(access_key_id="AKIA", secret_access_key=Secret("s")),
        CertificateCredential(der=b""),
    ],
)
def test_no_credential_over_a_readable_connection_reaches_a_provider(users, credential) -> None:
    request = LoginRequest(credential=credential, client=ClientInfo(protocol="test", address="10.0.0.1"))

    with pytest.raises(AccessDeniedError, match="Logins need an encrypted connection"):
        LoginChain([("passwords", users)]).authenticate(request)
    assert not users.asked


@pytest.mark.parametrize(
    ("client", "allowed"),
    [
        (ClientInfo(protocol="test", address="10.0.0.1", secure=True), False),
        (ClientInfo(protocol="test", address="127.0.0.1"), False),
        (ClientInfo(protocol="test", address="::ffff:127.0.0.1"), False),
        (ClientInfo(protocol="embedded"), False),
        (ClientInfo(protocol="test", address="10.0.0.1"), True),
    ],
)
def test_connections_that_nobody_else_reads(users, client: ClientInfo, allowed: bool) -> None:
    chain = LoginChain([("passwords", users)], allow_insecure_transport=allowed)

    assert chain.authenticate(basic(client=client)).username == "alice"


def test_nothing_presented_is_nothing_to_read(users) -> None:
    chain = LoginChain([("anonymous", AnonymousProvider("anonymous", AnonymousConfig()))])
    request = LoginRequest(credential=NoCredential(), client=ClientInfo(protocol="test", address="10.0.0.1"))

    assert chain.authenticate(request).username == "anonymous"


@pytest.mark.rule("AUTHN-9")
@pytest.mark.parametrize("wish", ["bob", "root", "ALICE", "alice ", ""])
def test_nobody_becomes_somebody_else(users, wish: str) -> None:
    client = ClientInfo(protocol="test", address="127.0.0.1", requested_user=wish)

    with pytest.raises(AccessDeniedError) as caught:
        LoginChain([("passwords", users)]).authenticate(basic(client=client))
    assert "alice" not in str(caught.value)


@pytest.mark.rule("AUTHN-9")
def test_the_own_name_and_shared_identities_may_be_asked_for(users) -> None:
    own = ClientInfo(protocol="test", address="127.0.0.1", requested_user="alice")
    assert LoginChain([("passwords", users)]).authenticate(basic(client=own)).username == "alice"

    anybody = ClientInfo(protocol="test", address="127.0.0.1", requested_user="root")
    chain = LoginChain([("anonymous", AnonymousProvider("anonymous", AnonymousConfig()))])
    assert chain.authenticate(LoginRequest(credential=NoCredential(), client=anybody)).username == "anonymous"


@pytest.mark.rule("AUTHN-10")
@pytest.mark.parametrize(
    "changes",
    [
        {"provider": "another"},
        {"username": "alice\n"},
        {"username": ""},
        {"subject": "a" * 2000},
        {"issuer": ""},
        {"roles": frozenset({"admin\u202e"})},
        {"groups": frozenset({""})},
        {"groups": frozenset(str(number) for number in range(20_000))},
    ],
)
def test_an_identity_that_cannot_be_used_fails_closed(users, changes, caplog) -> None:
    users.changes = changes

    with pytest.raises(InternalError, match="because of an error in the server"):
        LoginChain([("passwords", users)]).authenticate(basic())
    assert "cannot be used" in caplog.text


def test_an_identity_that_has_ended_is_no_login(users, time) -> None:
    chain = LoginChain([("passwords", users)], clock=time.clock)
    users.expires_at = time.clock.now()
    with pytest.raises(InvalidCredentialsError):
        chain.authenticate(basic())
    users.expires_at = time.clock.now() + timedelta(seconds=1)
    assert chain.authenticate(basic()).username == "alice"
    users.expires_at = time.clock.now().replace(tzinfo=None)
    with pytest.raises(InternalError):
        chain.authenticate(basic())


@pytest.mark.rule("LIM-12")
def test_a_provider_that_hangs_does_not_hold_the_client(users, make_provider, caplog) -> None:
    users.gate = threading.Event()
    second = make_provider("second", alice="wonderland")
    chain = LoginChain([("passwords", users), ("second", second)], timeout_secs=0.05)
    try:
        with pytest.raises(ResourcesError, match="The login took too long") as caught:
            chain.authenticate(basic())
        assert caught.value.code is ErrorCode.QUERY_TIMEOUT
    finally:
        users.gate.set()
    assert not second.asked


@pytest.mark.rule("LIM-12")
def test_hanging_logins_are_bounded(users, race) -> None:
    users.gate = threading.Event()
    chain = LoginChain([("passwords", users)], timeout_secs=0.2, attempts=LoginAttempts(10_000))
    try:
        answers = race(*[lambda: chain.authenticate(basic())] * 80)
        assert all(isinstance(answer, ResourcesError) for answer in answers)
        assert len(users.asked) <= 64
    finally:
        users.gate.set()


@pytest.mark.rule("JWT-9")
def test_revocation_is_asked_of_the_one_who_vouched(users, make_provider) -> None:
    other = make_provider("other", alice="wonderland")
    chain = LoginChain([("passwords", users), ("other", other)])
    identity = chain.authenticate(basic())
    other.revoked.add("alice")
    assert not chain.is_revoked(identity)
    users.revoked.add("alice")
    assert chain.is_revoked(identity)


@pytest.mark.rule("LIM-12", "JWT-9")
def test_strangers_whose_logins_hang_keep_nobody_from_working(users, make_provider, race) -> None:
    users.gate = threading.Event()
    keys = make_provider("keys", bob="b")
    chain = LoginChain([("passwords", users), ("keys", keys)], timeout_secs=1, attempts=LoginAttempts(10_000))
    inside = keys.identity("bob")
    strangers = threading.Thread(target=lambda: race(*[lambda: chain.authenticate(basic())] * 80), daemon=True)
    try:
        strangers.start()
        while len(users.asked) < 64:
            time_module.sleep(0.01)
        began = time_module.monotonic()
        assert not chain.is_revoked(inside)
        assert time_module.monotonic() - began < 0.5
    finally:
        users.gate.set()
        strangers.join(10)


@pytest.mark.rule("JWT-9")
def test_who_cannot_be_asked_is_revoked_or_an_error(users) -> None:
    chain = LoginChain([("passwords", users)])
    identity = chain.authenticate(basic())
    users.failure = ExternalError("introspection is down")
    with pytest.raises(ExternalError, match="Logins are not possible right now"):
        chain.is_revoked(identity)
    assert LoginChain([("renamed", users)]).is_revoked(identity)


def test_the_log_says_where_and_not_what(users, caplog) -> None:
    users.failure = ValueError("https://idp/?token=secret-7731")
    with caplog.at_level(logging.INFO), pytest.raises(InternalError):
        LoginChain([("passwords", users)]).authenticate(basic())
    assert "login provider passwords failed: ValueError at " in caplog.text
    assert "conftest.py" in caplog.text
    assert "secret-7731" not in caplog.text


def test_closing_and_checking_reach_every_provider(make_provider) -> None:
    class Broken(NotMine):
        def close(self) -> None:
            raise OSError("socket")

        def check(self) -> None:
            raise ExternalError("unreachable")

    last = make_provider("last")
    chain = LoginChain([("broken", Broken()), ("last", last)])
    with pytest.raises(ExternalError, match="unreachable"):
        chain.check()
    chain.close()
    assert last.closed


@pytest.mark.rule("OBS-2")
def test_a_refused_login_is_in_the_log_and_its_credential_is_not(make_provider, caplog) -> None:
    first = make_provider("people", alice="wonderland")
    chain = LoginChain([("people", first)])
    first.failure = InvalidCredentialsError(reason="canary-8812 has expired", key_id="kid-7")
    for request in (basic(name="canary-user", password="canary-8812"), bearer("canary-8812")):
        with pytest.raises(InvalidCredentialsError) as caught:
            chain.authenticate(request)
        assert str(caught.value) == CONSTANT
    first.failure = None
    with pytest.raises(InvalidCredentialsError):
        chain.authenticate(LoginRequest(credential=NoCredential(), client=HERE))
    keys = AwsCredential(access_key_id="AKIA7", secret_access_key=Secret("canary-8812"))
    with pytest.raises(InvalidCredentialsError):
        chain.authenticate(LoginRequest(credential=keys, client=HERE))

    assert [record.message for record in caplog.records if record.levelname == "WARNING"] == [
        "login failed from 127.0.0.1 over test with user name and password kid-7 (people): … has expired",
        "login failed from 127.0.0.1 over test with bearer kid-7 (people): … has expired",
        "login failed from 127.0.0.1 over test with nothing: no provider takes it",
        "login failed from 127.0.0.1 over test with AWS keys AKIA7: no provider takes it",
    ]
    assert caplog.records[0].fields["key_id"] == "kid-7"
    assert "canary" not in caplog.text
    assert "canary" not in str([record.fields for record in caplog.records])


def test_the_log_hides_no_word_of_a_refusal(make_provider, caplog) -> None:
    first = make_provider("api_key")
    first.failure = InvalidCredentialsError(reason="no entry of the keys file has this key")
    with pytest.raises(InvalidCredentialsError):
        LoginChain([("api_key", first)]).authenticate(bearer("x"))
    (line,) = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert redact_secrets(line) == line


def test_two_providers_of_one_name_are_refused(users) -> None:
    with pytest.raises(InternalError, match="two login providers"):
        LoginChain([("a", users), ("a", users)])


def test_logins_are_counted_by_outcome_and_never_by_user(make_provider) -> None:
    counted: list[tuple[str, dict[str, str]]] = []

    class Counted(NoMetrics):
        def count(self, name, amount=1, labels=MappingProxyType({})) -> None:
            counted.append((name, dict(labels)))

    attempts = LoginAttempts(1)
    provider = make_provider("people", alice="wonderland")
    chain = LoginChain([("people", provider)], attempts=attempts, metrics=Counted())
    chain.authenticate(basic())
    for _ in range(2):
        with pytest.raises((InvalidCredentialsError, ResourcesError)):
            chain.authenticate(basic(password="wrong"))

    assert counted == [
        ("sqe_auth_attempts_total", {"provider": "people", "status": "success"}),
        ("sqe_auth_attempts_total", {"provider": "people", "status": "failure"}),
        ("sqe_auth_attempts_total", {"provider": "", "status": "refused"}),
    ]
