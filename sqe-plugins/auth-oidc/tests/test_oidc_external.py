"""Logins in a browser and on another device, against the identity provider (authorization code with PKCE, RFC 8628)."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from oidc_idp import ALICE, BOB, CLIENT, CLIENT_SECRET, NOBODY, FakeIdp, answer, basic, bearer, public_jwk, sign

from sqe_auth_oidc.config import DeviceConfig, ExternalConfig
from sqe_auth_oidc.external import ExternalProvider
from sqe_core.spi import (
    BrowserLoginFinish,
    BrowserLoginStart,
    ExternalError,
    Identity,
    InvalidCredentialsError,
    Secret,
)
from sqe_core.testing import FixedClock
from sqe_core.testing.contract import assert_no_secret

REDIRECT = "https://sqe.example.com/oauth2/callback"
VERIFIER = "a-verifier-of-more-than-forty-three-characters-4711"
NONCE = "a-nonce"


@pytest.fixture
def config(idp: FakeIdp) -> ExternalConfig:
    return ExternalConfig(
        issuer=idp.issuer,
        client_id=CLIENT,
        client_secret=Secret(CLIENT_SECRET),
        redirect_uri=REDIRECT,
        groups_claim="groups",
        timeout_secs=5,
    )


@pytest.fixture
def provider(make: Callable[..., Any], config: ExternalConfig) -> ExternalProvider:
    return make(ExternalProvider, config)


def start(**changed: str) -> BrowserLoginStart:
    challenge = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()
    values = {"redirect_uri": REDIRECT, "state": "a-state", "nonce": NONCE, "code_challenge": challenge, **changed}
    return BrowserLoginStart(**values)


def finish(code: str, **changed: Any) -> BrowserLoginFinish:
    values: dict[str, Any] = {
        "code": Secret(code),
        "redirect_uri": REDIRECT,
        "nonce": NONCE,
        "code_verifier": Secret(VERIFIER),
        **changed,
    }
    return BrowserLoginFinish(**values)


def login(idp: FakeIdp, provider: ExternalProvider, user: str = "alice", **changed: Any) -> Identity:
    code = Secret(idp.approve(provider.browser_login_url(start()), user))
    return provider.finish_browser_login(replace(finish(""), **{"code": code, **changed}))


def hand_out(idp: FakeIdp, **tokens: Any) -> None:
    """Whatever is asked for at the token endpoint, these come."""
    idp.reply = lambda request: (
        answer(**{"token_type": "Bearer", "expires_in": 300, **tokens}) if request.path.endswith("/token") else None
    )


class TestBrowser:
    def test_the_address_says_what_is_wanted(self, idp: FakeIdp, provider: ExternalProvider) -> None:
        url = provider.browser_login_url(start(state="a state&x=y"))

        assert url.startswith(f"{idp.endpoints}/auth?")
        assert parse_qs(urlsplit(url).query) == {
            "client_id": [CLIENT],
            "response_type": ["code"],
            "redirect_uri": [REDIRECT],
            "scope": ["openid profile"],
            "state": ["a state&x=y"],
            "nonce": [NONCE],
            "code_challenge": [start().code_challenge],
            "code_challenge_method": ["S256"],
        }
        assert CLIENT_SECRET not in url

    def test_alice_is_who_her_tokens_say(self, idp: FakeIdp, provider: ExternalProvider) -> None:
        """The ID token says who it is; the access token, which goes to the catalogs, has the roles."""
        alice = login(idp, provider)

        assert (alice.key, alice.username) == ((idp.issuer, ALICE), "alice")
        assert alice.roles == {"data_engineer"}
        assert alice.groups == {"engineering"}
        assert alice.refresh_token is not None
        assert alice.expires_at is not None
        assert_no_secret(repr(provider) + repr(alice), alice.access_token, alice.refresh_token, Secret(CLIENT_SECRET))

    def test_nothing_that_a_client_presents_is_judged(self, idp: FakeIdp, provider: ExternalProvider) -> None:
        for request in (NOBODY, bearer(idp.token()), basic("alice", "alice-password-4711")):
            assert provider.authenticate(request) is None

    @pytest.mark.rule("TRI-8")
    @pytest.mark.parametrize(
        "changed",
        [
            {"code_verifier": Secret("another-verifier-of-more-than-forty-three-chars")},
            {"redirect_uri": REDIRECT + "/"},
            {"nonce": "another-nonce"},
            {"code": Secret("another-code")},
        ],
        ids=lambda changed: next(iter(changed)),
    )
    def test_what_belongs_to_another_login_is_refused(
        self, idp: FakeIdp, provider: ExternalProvider, changed: dict[str, Any]
    ) -> None:
        with pytest.raises(InvalidCredentialsError):
            login(idp, provider, **changed)

    @pytest.mark.rule("TRI-8")
    def test_a_code_counts_once(self, idp: FakeIdp, provider: ExternalProvider) -> None:
        code = idp.approve(provider.browser_login_url(start()), "alice")
        provider.finish_browser_login(finish(code))

        with pytest.raises(InvalidCredentialsError):
            provider.finish_browser_login(finish(code))

    @pytest.mark.rule("JWT-3", "JWT-4", "JWT-5")
    @pytest.mark.parametrize(
        "claims",
        [
            {"iss": "https://stranger.example.com"},
            {"aud": "other"},
            {"aud": None},
            {"aud": [CLIENT, "other"], "azp": "other"},
            {"exp": 1},
            {"exp": None},
            {"nonce": None},
            {"nonce": ["a-nonce"]},
            {"sub": None},
            {"sub": BOB},
            {"typ": "Logout"},
            {"preferred_username": "a\nb"},
        ],
        ids=str,
    )
    def test_an_id_token_that_is_none_is_refused(
        self, idp: FakeIdp, provider: ExternalProvider, claims: dict[str, Any]
    ) -> None:
        changed = {"nonce": NONCE, **claims}
        token = idp.token("alice", preferred_username=changed.get("preferred_username", "alice"))
        hand_out(idp, access_token=token, id_token=idp.id_token("alice", **changed))

        with pytest.raises(InvalidCredentialsError):
            provider.finish_browser_login(finish("code"))

    @pytest.mark.rule("JWT-1")
    @pytest.mark.parametrize("kind", ["forged", "none", "missing", "opaque"])
    def test_an_id_token_without_its_issuers_signature_is_refused(
        self, idp: FakeIdp, provider: ExternalProvider, kind: str
    ) -> None:
        right = idp.id_token("alice", nonce=NONCE)
        header, payload, _ = right.split(".")
        tokens = {
            "forged": f"{header}.{payload}.{'A' * 342}",
            "none": f"eyJhbGciOiJub25lIn0.{payload}.",
            "missing": None,
            "opaque": "opaque",
        }
        hand_out(idp, access_token=idp.token(), id_token=tokens[kind])

        with pytest.raises(InvalidCredentialsError):
            provider.finish_browser_login(finish("code"))

    @pytest.mark.parametrize("token", ["opaque", "forged", "of another issuer"])
    def test_an_access_token_that_sqe_cannot_read_gives_nothing(
        self, idp: FakeIdp, provider: ExternalProvider, token: str
    ) -> None:
        """Many providers' are for their own eyes: what is in them is not believed, and who it is says the ID token."""
        rich = idp.access_claims("alice", realm_access={"roles": ["service_admin"]})
        tokens = {
            "opaque": "opaque-4711",
            "forged": sign({"alg": "RS256", "kid": "rs"}, rich, "other-rs"),
            "of another issuer": sign(
                {"alg": "RS256", "kid": "rs"}, {**rich, "iss": "https://graph.example.com"}, "rs"
            ),
        }
        hand_out(idp, access_token=tokens[token], id_token=idp.id_token("alice", nonce=NONCE))

        alice = provider.finish_browser_login(finish("code"))

        assert (alice.username, alice.roles) == ("alice", frozenset())
        assert alice.access_token == Secret(tokens[token])
        assert not provider.is_revoked(alice)

    @pytest.mark.rule("SESS-4")
    def test_an_access_token_of_somebody_else_is_refused(self, idp: FakeIdp, provider: ExternalProvider) -> None:
        hand_out(idp, access_token=idp.token("bob"), id_token=idp.id_token("alice", nonce=NONCE))

        with pytest.raises(InvalidCredentialsError):
            provider.finish_browser_login(finish("code"))

    @pytest.mark.rule("JWT-9")
    def test_a_withdrawn_key_ends_the_login(self, idp: FakeIdp, provider: ExternalProvider, ticks: Any) -> None:
        alice = login(idp, provider)
        assert not provider.is_revoked(alice)
        idp.keys = []
        ticks.offset += 301

        assert provider.is_revoked(alice)

    @pytest.mark.rule("JWT-8")
    @pytest.mark.parametrize("with_id_token", [True, False])
    def test_a_key_of_a_moment_ago_ends_no_login_and_is_looked_at_later(
        self, idp: FakeIdp, provider: ExternalProvider, ticks: Any, with_id_token: bool
    ) -> None:
        """Taken for one that SQE cannot read, a token would outlive its key, and keep roles that were taken away."""
        alice = login(idp, provider)
        idp.keys = [*idp.keys, public_jwk("es256", alg="ES256")]
        new: dict[str, Any] = {"kid": "es256", "alg": "ES256"}
        id_token = {"id_token": idp.id_token("alice", nonce=None, **new)} if with_id_token else {}
        hand_out(idp, access_token=idp.token("alice", realm_access={"roles": ["fewer"]}, **new), **id_token)

        renewed = provider.refresh(alice)

        assert renewed.roles == {"fewer"}
        assert not provider.is_revoked(renewed)
        idp.keys = idp.keys[:-1]
        ticks.offset += 301
        assert provider.is_revoked(renewed)

    def test_tokens_are_renewed(self, idp: FakeIdp, provider: ExternalProvider) -> None:
        alice = login(idp, provider)
        renewed = provider.refresh(alice)

        assert renewed.key == alice.key
        assert renewed.access_token != alice.access_token
        assert provider.refresh(renewed).key == alice.key
        with pytest.raises(InvalidCredentialsError):
            provider.refresh(alice)

    @pytest.mark.rule("AUTHN-4")
    def test_renewed_tokens_of_somebody_else_are_refused(self, idp: FakeIdp, provider: ExternalProvider) -> None:
        alice = login(idp, provider)
        for tokens in (
            {"access_token": idp.token("bob")},
            {"access_token": "opaque", "id_token": idp.id_token("bob", nonce=None)},
        ):
            hand_out(idp, **tokens)
            with pytest.raises(InvalidCredentialsError):
                provider.refresh(alice)

    def test_tokens_that_sqe_cannot_read_are_renewed_too(self, idp: FakeIdp, provider: ExternalProvider) -> None:
        alice = login(idp, provider)
        hand_out(idp, access_token="opaque-2")

        renewed = provider.refresh(alice)

        assert (renewed.key, renewed.roles) == (alice.key, alice.roles)
        assert renewed.access_token == Secret("opaque-2")
        assert renewed.refresh_token == alice.refresh_token
        assert not provider.is_revoked(renewed)

    def test_an_outage_is_no_refusal(self, idp: FakeIdp, provider: ExternalProvider) -> None:
        url = provider.browser_login_url(start())
        idp.misbehave("/token", status=503)
        with pytest.raises(ExternalError):
            provider.finish_browser_login(finish(idp.approve(url, "alice")))


class TestDevice:
    def test_a_login_from_code_to_identity(self, idp: FakeIdp, provider: ExternalProvider) -> None:
        begun = provider.begin_device_login()
        assert begun.user_code == "WDJB-MJHT"
        assert begun.verification_uri == f"{idp.url}/device"
        assert begun.interval_secs == 5
        assert 590 < (begun.expires_at - datetime.now(UTC)).total_seconds() <= 600
        assert provider.poll_device_login(begun) is None
        (code,) = idp.devices
        idp.devices[code] = "bob"

        bob = provider.poll_device_login(begun)

        assert bob is not None
        assert (bob.key, bob.roles) == ((idp.issuer, BOB), {"analyst"})
        assert provider.refresh(bob).key == bob.key
        with pytest.raises(InvalidCredentialsError):
            provider.poll_device_login(begun)

    def test_both_requests_are_of_one_client(self, idp: FakeIdp, provider: ExternalProvider) -> None:
        begun = provider.begin_device_login()
        provider.poll_device_login(begun)

        asked = next(request.form for request in idp.requests if request.path.endswith("/auth/device"))
        verifier = idp.requests[-1].form["code_verifier"]
        digest = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        assert (asked["code_challenge"], asked["code_challenge_method"]) == (digest, "S256")
        assert verifier not in repr(begun)

    @pytest.mark.parametrize("error", ["access_denied", "expired_token", "invalid_grant"])
    def test_a_refusal_ends_it(self, idp: FakeIdp, provider: ExternalProvider, error: str) -> None:
        begun = provider.begin_device_login()
        idp.reply = lambda request: answer(400, error=error)

        with pytest.raises(InvalidCredentialsError):
            provider.poll_device_login(begun)

    @pytest.mark.parametrize("error", ["authorization_pending", "slow_down"])
    def test_waiting_is_no_refusal(self, idp: FakeIdp, provider: ExternalProvider, error: str) -> None:
        begun = provider.begin_device_login()
        idp.reply = lambda request: answer(400, error=error)

        assert provider.poll_device_login(begun) is None

    def test_a_code_that_is_over_is_not_asked_about(
        self, idp: FakeIdp, make: Callable[..., Any], config: ExternalConfig
    ) -> None:
        clock = FixedClock(datetime.now(UTC))
        provider = make(ExternalProvider, config, clock=clock)
        begun = provider.begin_device_login()
        clock.advance(601)
        asked = len(idp.requests)

        with pytest.raises(InvalidCredentialsError):
            provider.poll_device_login(begun)
        assert len(idp.requests) == asked

    def test_a_client_of_its_own(self, idp: FakeIdp, make: Callable[..., Any], config: ExternalConfig) -> None:
        provider = make(ExternalProvider, replace(config, device=DeviceConfig(client_id="sqe-cli")))
        provider.begin_device_login()

        form = idp.requests[-1].form
        assert form["client_id"] == "sqe-cli"
        assert "client_secret" not in form

    @pytest.mark.parametrize(
        "changed",
        [
            {"device_code": None},
            {"device_code": ""},
            {"device_code": 5},
            {"device_code": "a b"},
            {"user_code": "x" * 65},
            {"user_code": "\x1b[2J"},
            {"user_code": "WDJB\u202e"},
            {"verification_uri": "javascript:alert(1)"},
            {"verification_uri": "http://192.0.2.7/device"},
            {"verification_uri": "https://user:pass@idp.example.com/"},
            {"verification_uri": "https://idp.example.com/\r\nx"},
            {"verification_uri_complete": "file:///etc/passwd"},
            {"verification_uri_complete": 5},
            {"interval": "5"},
            {"interval": True},
            {"expires_in": None},
        ],
        ids=str,
    )
    def test_what_cannot_be_shown_is_refused(
        self, idp: FakeIdp, provider: ExternalProvider, changed: dict[str, Any]
    ) -> None:
        right = {
            "device_code": "d",
            "user_code": "u",
            "verification_uri": "https://idp.example.com/d",
            "expires_in": 60,
        }
        idp.reply = lambda request: answer(**{**right, **changed}) if request.path.endswith("/auth/device") else None

        with pytest.raises(ExternalError):
            provider.begin_device_login()

    @pytest.mark.parametrize(("interval", "told"), [(0, 1), (-5, 1), (1e9, 60), (7.5, 7)])
    def test_times_are_bounded(self, idp: FakeIdp, provider: ExternalProvider, interval: float, told: int) -> None:
        idp.reply = lambda request: (
            answer(
                device_code="d",
                user_code="u",
                verification_uri="https://idp.example.com/d",
                expires_in=10**9,
                interval=interval,
            )
            if request.path.endswith("/auth/device")
            else None
        )
        begun = provider.begin_device_login()

        assert begun.interval_secs == told
        assert begun.expires_at <= datetime.now(UTC) + timedelta(seconds=1800)


def test_scopes_need_openid(idp: FakeIdp) -> None:
    with pytest.raises(ValueError, match='scopes need "openid"'):
        ExternalConfig(issuer=idp.issuer, client_id=CLIENT, scopes=("profile",))


def test_the_check_asks_the_identity_provider(idp: FakeIdp, provider: ExternalProvider, ticks: Any) -> None:
    provider.check()
    assert idp.asked("/openid-configuration") == 1
