"""Logins in a browser and on another device: bounded, in time, each handed out once, to who began it."""

from __future__ import annotations

import base64
import hashlib
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from sqe_core.session.pending_logins import WaitingBrowserLogins, WaitingDeviceLogins
from sqe_core.spi.auth import (
    BearerCredential,
    BrowserLoginFinish,
    BrowserLoginStart,
    ClientInfo,
    DeviceLogin,
    SupportsBrowserLogin,
    SupportsDeviceLogin,
)
from sqe_core.spi.errors import (
    AccessDeniedError,
    ExternalError,
    InternalError,
    InvalidCredentialsError,
    NotSupportedError,
    ResourcesError,
    SqeError,
)
from sqe_core.spi.identity import Identity, Secret

REDIRECT = "https://sqe.example.com/oauth2/callback"
TTL_SECS = 300
HERE = ClientInfo(protocol="trino", address="203.0.113.7", secure=True)


def from_address(address: str) -> ClientInfo:
    return replace(HERE, address=address)


def challenge(verifier: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


@pytest.fixture
def external(users: Any) -> Any:
    """A provider that lets whoever has the code `code-of-<name>` in."""

    class External(type(users), SupportsBrowserLogin, SupportsDeviceLogin):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__("external", alice="", bob="")
            self.finished: list[BrowserLoginFinish] = []
            self.polls = 0
            self.approved: str | None = None

        def browser_login_url(self, start: BrowserLoginStart) -> str:
            values = {
                "state": start.state,
                "nonce": start.nonce,
                "challenge": start.code_challenge,
                "redirect_uri": start.redirect_uri,
            }
            return "https://idp.example.com/auth?" + urlencode(values)

        def finish_browser_login(self, finish: BrowserLoginFinish) -> Identity:
            self.finished.append(finish)
            if self.failure is not None:
                raise self.failure
            name = finish.code.reveal().removeprefix("code-of-")
            if name not in self.users:
                raise InvalidCredentialsError("that code is spent")
            return self.identity(name)

        def begin_device_login(self) -> DeviceLogin:
            if self.failure is not None:
                raise self.failure
            return DeviceLogin(
                device_code=Secret("device-code"),
                user_code="WDJB-MJHT",
                verification_uri="https://idp.example.com/device",
                interval_secs=5,
                expires_at=self.now() + timedelta(seconds=600),
            )

        def poll_device_login(self, login: DeviceLogin) -> Identity | None:
            self.polls += 1
            if self.failure is not None:
                raise self.failure
            return None if self.approved is None else self.identity(self.approved)

    return External()


@pytest.fixture
def desk(make_desk: Callable[..., Any], external: Any, time: Any) -> Any:
    external.now = time.clock.now
    return make_desk(external)


@pytest.fixture
def browsers(desk: Any, time: Any) -> WaitingBrowserLogins:
    return WaitingBrowserLogins(
        desk.chain, desk.store, redirect_uri=REDIRECT, ttl_secs=TTL_SECS, clock=time.clock, monotonic=time.monotonic
    )


@pytest.fixture
def devices(desk: Any, time: Any) -> WaitingDeviceLogins:
    return WaitingDeviceLogins(desk.chain, desk.store, ttl_secs=TTL_SECS, clock=time.clock, monotonic=time.monotonic)


def asked(url: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}


def refused(call: Callable[[], object]) -> None:
    """Every refusal reads the same."""
    with pytest.raises(InvalidCredentialsError) as caught:
        call()
    assert str(caught.value) == str(InvalidCredentialsError())


@pytest.mark.rule("TRI-8")
def test_a_login_from_begin_to_token(browsers: WaitingBrowserLogins, desk: Any, external: Any) -> None:
    begun = browsers.begin(redirect_uri=REDIRECT, client=HERE)
    assert browsers.poll(begun.id) is None
    values = asked(begun.url)
    browsers.finish(state=values["state"], code=Secret("code-of-alice"))

    token = browsers.poll(begun.id)

    assert token is not None
    live = desk.store.authenticate(BearerCredential(token=token), HERE)
    assert live.session.identity.username == "alice"
    (finish,) = external.finished
    assert finish.redirect_uri == REDIRECT
    assert finish.nonce == values["nonce"]
    assert challenge(finish.code_verifier.reveal()) == values["challenge"]


@pytest.mark.rule("TRI-8", "SESS-1")
def test_every_secret_is_random_and_its_own(browsers: WaitingBrowserLogins, external: Any) -> None:
    seen: list[str] = []
    for index in range(10):
        begun = browsers.begin(redirect_uri=REDIRECT, client=HERE)
        values = asked(begun.url)
        browsers.finish(state=values["state"], code=Secret("code-of-alice"))
        verifier = external.finished[index].code_verifier.reveal()
        seen += [begun.id.reveal(), values["state"], values["nonce"], verifier]

    assert len(set(seen)) == 40
    assert all(len(base64.urlsafe_b64decode(text + "==")) >= 32 for text in seen)


@pytest.mark.rule("TRI-8")
def test_the_address_tells_nothing_that_finds_the_token(browsers: WaitingBrowserLogins) -> None:
    """Who sees the address, in a history or over a shoulder, cannot poll."""
    begun = browsers.begin(redirect_uri=REDIRECT, client=HERE)
    values = asked(begun.url)
    browsers.finish(state=values["state"], code=Secret("code-of-alice"))

    assert begun.id.reveal() not in begun.url
    assert begun.id.reveal() not in repr(begun)
    for text in (*values.values(), "", begun.id.reveal()[:-1], begun.id.reveal() + "A"):
        refused(lambda text=text: browsers.poll(Secret(text)))
    assert browsers.poll(begun.id) is not None


@pytest.mark.rule("TRI-8")
def test_the_token_is_handed_out_once(browsers: WaitingBrowserLogins, desk: Any, race: Any) -> None:
    begun = browsers.begin(redirect_uri=REDIRECT, client=HERE)
    browsers.finish(state=asked(begun.url)["state"], code=Secret("code-of-alice"))

    answers = race(*[lambda: browsers.poll(begun.id)] * 8)

    assert len([answer for answer in answers if isinstance(answer, Secret)]) == 1
    assert len([answer for answer in answers if isinstance(answer, InvalidCredentialsError)]) == 7
    assert desk.store.count == 1
    refused(lambda: browsers.poll(begun.id))


@pytest.mark.rule("TRI-8")
def test_a_state_counts_once(browsers: WaitingBrowserLogins, external: Any, race: Any) -> None:
    begun = browsers.begin(redirect_uri=REDIRECT, client=HERE)
    state = asked(begun.url)["state"]

    answers = race(*[lambda: browsers.finish(state=state, code=Secret("code-of-alice"))] * 8)

    assert len([answer for answer in answers if answer is None]) == 1
    assert len(external.finished) == 1
    for other in ("", state.swapcase(), begun.id.reveal()):
        refused(lambda other=other: browsers.finish(state=other, code=Secret("code-of-bob")))


@pytest.mark.rule("TRI-8")
@pytest.mark.parametrize("code", ["spent", "", "x" * 5000])
def test_a_bad_code_ends_the_login(browsers: WaitingBrowserLogins, code: str) -> None:
    begun = browsers.begin(redirect_uri=REDIRECT, client=HERE)
    state = asked(begun.url)["state"]

    refused(lambda: browsers.finish(state=state, code=Secret(code)))

    refused(lambda: browsers.finish(state=state, code=Secret("code-of-alice")))
    refused(lambda: browsers.poll(begun.id))


@pytest.mark.parametrize("failure", [ExternalError("the body said secret-body"), RuntimeError("secret-body")])
def test_a_provider_that_fails_ends_the_login(
    browsers: WaitingBrowserLogins, external: Any, failure: Exception
) -> None:
    begun = browsers.begin(redirect_uri=REDIRECT, client=HERE)
    external.failure = failure
    with pytest.raises(ExternalError if isinstance(failure, ExternalError) else InternalError) as caught:
        browsers.finish(state=asked(begun.url)["state"], code=Secret("code-of-alice"))

    assert "secret-body" not in str(caught.value)
    refused(lambda: browsers.poll(begun.id))


def test_a_user_who_refuses_ends_the_login(browsers: WaitingBrowserLogins) -> None:
    begun = browsers.begin(redirect_uri=REDIRECT, client=HERE)
    state = asked(begun.url)["state"]
    browsers.refuse(state=state)

    refused(lambda: browsers.finish(state=state, code=Secret("code-of-alice")))
    refused(lambda: browsers.poll(begun.id))


@pytest.mark.rule("TRI-8")
def test_a_login_is_over_in_time(browsers: WaitingBrowserLogins, time: Any, external: Any) -> None:
    first, second = (browsers.begin(redirect_uri=REDIRECT, client=HERE) for _ in range(2))
    browsers.finish(state=asked(first.url)["state"], code=Secret("code-of-alice"))
    assert first.expires_at == time.clock.now() + timedelta(seconds=TTL_SECS)
    time.advance(TTL_SECS)

    refused(lambda: browsers.poll(first.id))
    refused(lambda: browsers.finish(state=asked(second.url)["state"], code=Secret("code-of-bob")))
    assert len(external.finished) == 1
    assert browsers.waiting == 0


@pytest.mark.rule("TRI-8", "TRI-5")
@pytest.mark.parametrize(
    "uri", ["https://stranger.example.com/oauth2/callback", REDIRECT + "/", REDIRECT + "?x", REDIRECT.upper(), ""]
)
def test_browsers_come_back_to_one_address(browsers: WaitingBrowserLogins, uri: str) -> None:
    with pytest.raises(AccessDeniedError):
        browsers.begin(redirect_uri=uri, client=HERE)
    assert browsers.waiting == 0


@pytest.mark.rule("LIM-10")
def test_one_client_cannot_begin_for_all(browsers: WaitingBrowserLogins, time: Any) -> None:
    for _ in range(20):
        browsers.begin(redirect_uri=REDIRECT, client=from_address("2001:db8::1"))
    with pytest.raises(ResourcesError) as caught:
        browsers.begin(redirect_uri=REDIRECT, client=from_address("2001:db8::2"))
    assert caught.value.retry_after_secs

    browsers.begin(redirect_uri=REDIRECT, client=HERE)
    time.advance(TTL_SECS)
    browsers.begin(redirect_uri=REDIRECT, client=from_address("2001:db8::1"))


@pytest.mark.rule("LIM-10")
def test_what_waits_is_bounded(browsers: WaitingBrowserLogins) -> None:
    for index in range(1000):
        browsers.begin(redirect_uri=REDIRECT, client=from_address(f"198.51.{index // 256}.{index % 256}"))

    with pytest.raises(ResourcesError):
        browsers.begin(redirect_uri=REDIRECT, client=HERE)
    assert browsers.waiting == 1000


@pytest.mark.rule("TRI-8", "FLT-2")
def test_no_token_goes_over_a_readable_connection(browsers: WaitingBrowserLogins, devices: WaitingDeviceLogins) -> None:
    for begin in (
        lambda client: browsers.begin(redirect_uri=REDIRECT, client=client),
        lambda client: devices.begin(client=client),
    ):
        with pytest.raises(AccessDeniedError, match="encrypted"):
            begin(replace(HERE, secure=False))
        begin(replace(HERE, secure=False, address="127.0.0.1"))


@pytest.mark.rule("TRI-1")
def test_the_token_is_good_for_its_protocol_only(browsers: WaitingBrowserLogins, desk: Any) -> None:
    begun = browsers.begin(redirect_uri=REDIRECT, client=HERE)
    browsers.finish(state=asked(begun.url)["state"], code=Secret("code-of-alice"))
    token = browsers.poll(begun.id)
    assert token is not None

    refused(lambda: desk.store.authenticate(BearerCredential(token=token), replace(HERE, protocol="flight")))


@pytest.mark.rule("SESS-2")
def test_two_logins_of_one_person_share_no_session(browsers: WaitingBrowserLogins, desk: Any) -> None:
    tokens = []
    for _ in range(2):
        begun = browsers.begin(redirect_uri=REDIRECT, client=HERE)
        browsers.finish(state=asked(begun.url)["state"], code=Secret("code-of-alice"))
        tokens.append(browsers.poll(begun.id))

    assert len(set(tokens)) == 2
    assert desk.store.count == 2


class TestOnAnotherDevice:
    def test_a_login_from_begin_to_token(
        self, devices: WaitingDeviceLogins, desk: Any, external: Any, time: Any
    ) -> None:
        begun = devices.begin(client=HERE)
        assert (begun.user_code, begun.verification_uri) == ("WDJB-MJHT", "https://idp.example.com/device")
        assert begun.expires_at == time.clock.now() + timedelta(seconds=TTL_SECS)
        time.advance(5)
        assert devices.poll(begun.id) is None
        external.approved = "bob"
        time.advance(5)

        token = devices.poll(begun.id)

        assert token is not None
        live = desk.store.authenticate(BearerCredential(token=token), HERE)
        assert live.session.identity.username == "bob"
        refused(lambda: devices.poll(begun.id))

    def test_an_impatient_client_does_not_reach_the_identity_provider(
        self, devices: WaitingDeviceLogins, external: Any, time: Any
    ) -> None:
        begun = devices.begin(client=HERE)
        for _ in range(50):
            assert devices.poll(begun.id) is None
        assert external.polls == 0
        time.advance(5)
        for _ in range(50):
            assert devices.poll(begun.id) is None
        assert external.polls == 1

    @pytest.mark.rule("TRI-8")
    def test_the_token_is_handed_out_once(
        self, devices: WaitingDeviceLogins, external: Any, time: Any, race: Any
    ) -> None:
        begun = devices.begin(client=HERE)
        external.approved = "alice"
        time.advance(5)

        answers = race(*[lambda: devices.poll(begun.id)] * 8)

        assert len([answer for answer in answers if isinstance(answer, Secret)]) == 1

    def test_a_user_who_refuses_ends_the_login(self, devices: WaitingDeviceLogins, external: Any, time: Any) -> None:
        begun = devices.begin(client=HERE)
        time.advance(5)
        external.failure = InvalidCredentialsError("access_denied")
        refused(lambda: devices.poll(begun.id))
        external.failure, external.approved = None, "alice"
        time.advance(5)

        refused(lambda: devices.poll(begun.id))

    def test_an_outage_does_not_end_the_login(self, devices: WaitingDeviceLogins, external: Any, time: Any) -> None:
        begun = devices.begin(client=HERE)
        time.advance(5)
        external.failure = ExternalError("gone")
        with pytest.raises(ExternalError):
            devices.poll(begun.id)
        external.failure, external.approved = None, "alice"
        time.advance(5)

        assert devices.poll(begun.id) is not None

    @pytest.mark.rule("LIM-10")
    def test_what_waits_is_bounded_and_over_in_time(
        self, devices: WaitingDeviceLogins, external: Any, time: Any
    ) -> None:
        begun = [devices.begin(client=HERE) for _ in range(20)]
        with pytest.raises(ResourcesError):
            devices.begin(client=HERE)
        external.approved = "alice"
        time.advance(TTL_SECS)

        refused(lambda: devices.poll(begun[0].id))
        assert devices.waiting == 0
        assert external.polls == 0


def test_without_such_a_provider_there_are_none(make_desk: Callable[..., Any], users: Any) -> None:
    desk = make_desk(users)

    assert not desk.chain.offers(SupportsBrowserLogin)
    with pytest.raises(NotSupportedError):
        desk.chain.begin_device_login()


def test_failures_are_told_to_who_watches(
    browsers: WaitingBrowserLogins, desk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[SqeError] = []
    monkeypatch.setattr(desk.store, "note_refused", lambda client, error: told.append(error))
    begun = browsers.begin(redirect_uri=REDIRECT, client=HERE)
    refused(lambda: browsers.finish(state=asked(begun.url)["state"], code=Secret("spent")))

    assert [type(error) for error in told] == [InvalidCredentialsError]


def test_a_hanging_identity_provider_holds_nobody_else(devices: WaitingDeviceLogins, external: Any, time: Any) -> None:
    """Two polls at once: the second does not wait for the first."""
    begun = devices.begin(client=HERE)
    time.advance(5)
    entered, gate = threading.Event(), threading.Event()

    def hang(login: DeviceLogin) -> None:
        entered.set()
        assert gate.wait(10)

    external.poll_device_login = hang
    first = threading.Thread(target=lambda: devices.poll(begun.id))
    first.start()
    assert entered.wait(10)

    assert devices.poll(begun.id) is None

    gate.set()
    first.join(10)
