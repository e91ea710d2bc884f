"""What logins give: whose tokens they are, how they are renewed, and who else is asked."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from oidc_idp import ALICE, BOB, CLIENT, CLIENT_SECRET, NOBODY, FakeIdp, answer, basic, bearer, sign

from sqe_auth_oidc.basic import ClientProvider, PasswordProvider
from sqe_auth_oidc.bearer import BearerProvider, PassthroughProvider
from sqe_auth_oidc.config import (
    BearerConfig,
    ClientCredentialsConfig,
    ClientPassthroughConfig,
    ExchangeConfig,
    PassthroughConfig,
    PasswordConfig,
    check_url,
)
from sqe_auth_oidc.exchange import ExchangeProvider
from sqe_auth_oidc.provider import Surroundings
from sqe_auth_oidc.service import ClientCredentialsProvider
from sqe_core.spi import ExternalError, Identity, InvalidCredentialsError, NotSupportedError, PluginContext, Secret

SECRET = Secret(CLIENT_SECRET)
ALICES = basic("alice", "alice-password-4711")


def passwords(idp: FakeIdp, **keys: Any) -> PasswordConfig:
    return PasswordConfig(
        **{"token_url": idp.token_url, "client_id": CLIENT, "client_secret": SECRET, "timeout_secs": 5, **keys}
    )


def login(provider: Any, request: Any) -> Identity:
    identity: Identity | None = provider.authenticate(request)
    assert identity is not None
    return identity


class TestPassword:
    def test_alice_is_who_her_token_says(self, idp: FakeIdp, make: Callable[..., Any]) -> None:
        idp.claims = {"act": {"sub": "support"}, "department": "ops", "level": 3, "address": {"city": "x"}}
        provider = make(PasswordProvider, passwords(idp, groups_claim="groups"))

        alice = login(provider, ALICES)

        assert (alice.issuer, alice.subject, alice.username) == (idp.issuer, ALICE, "alice")
        assert alice.email == "alice@example.com"
        assert alice.roles == {"data_engineer"}
        assert alice.groups == {"engineering"}
        assert alice.actor == "support"
        assert alice.personal
        assert (alice.claims["department"], alice.claims["level"]) == ("ops", 3)
        assert "address" not in alice.claims
        assert not {"exp", "iat", "jti", "sid", "aud", "sub"} & set(alice.claims)
        assert alice.expires_at is not None
        assert 0 < (alice.expires_at - datetime.now(UTC)).total_seconds() <= 300

    def test_roles_may_be_anywhere(self, idp: FakeIdp, make: Callable[..., Any]) -> None:
        idp.claims = {"https://example.com/roles": ["a"], "resource_access": {"sqe": {"roles": ["b", "c"]}}}
        found = {
            claim: login(make(PasswordProvider, passwords(idp, roles_claim=claim)), ALICES).roles
            for claim in ("https://example.com/roles", "resource_access.sqe.roles", "nothing", "sub.roles")
        }

        assert found == {
            "https://example.com/roles": {"a"},
            "resource_access.sqe.roles": {"b", "c"},
            "nothing": frozenset(),
            "sub.roles": frozenset(),
        }

    @pytest.mark.rule("AUTHN-4")
    def test_a_refusal_ends_the_chain_or_goes_on(self, idp: FakeIdp, make: Callable[..., Any]) -> None:
        wrong = basic("alice", "wrong")
        with pytest.raises(InvalidCredentialsError):
            make(PasswordProvider, passwords(idp)).authenticate(wrong)

        lenient = make(PasswordProvider, passwords(idp, fallthrough_on_reject=True))
        assert lenient.authenticate(wrong) is None
        idp.misbehave(status=503)
        with pytest.raises(ExternalError):
            lenient.authenticate(wrong)

    @pytest.mark.parametrize(
        "claims", [{"exp": 1}, {"sub": "a\nb"}, {"typ": "ID"}, {"nbf": 2**40}, {"realm_access": {"roles": [1]}}]
    )
    def test_a_token_that_is_none_is_refused(
        self, idp: FakeIdp, make: Callable[..., Any], claims: dict[str, Any]
    ) -> None:
        idp.claims = claims

        with pytest.raises(InvalidCredentialsError):
            make(PasswordProvider, passwords(idp)).authenticate(ALICES)

    @pytest.mark.rule("JWT-3", "JWT-4")
    @pytest.mark.parametrize("claims", [{"iss": "https://stranger.example.com"}, {"aud": "other"}, {"azp": "other"}])
    def test_with_an_issuer_its_tokens_are_checked(
        self, idp: FakeIdp, make: Callable[..., Any], claims: dict[str, Any]
    ) -> None:
        config = passwords(idp, issuer=idp.issuer, audience=(CLIENT,), authorized_parties=(CLIENT,))
        provider = make(PasswordProvider, config)
        login(provider, ALICES)
        idp.claims = claims

        with pytest.raises(InvalidCredentialsError):
            provider.authenticate(ALICES)

    def test_with_an_issuer_the_signature_counts(self, idp: FakeIdp, make: Callable[..., Any]) -> None:
        provider = make(PasswordProvider, passwords(idp, issuer=idp.issuer))
        forged = sign({"alg": "RS256", "kid": "rs"}, idp.access_claims(), "other-rs")
        idp.reply = lambda request: (
            answer(access_token=forged, token_type="Bearer", expires_in=300)
            if request.path.endswith("/token")
            else None
        )

        with pytest.raises(InvalidCredentialsError):
            provider.authenticate(ALICES)

    def test_an_opaque_token_is_the_users_who_got_it(self, idp: FakeIdp, make: Callable[..., Any]) -> None:
        idp.opaque = True

        alice = login(make(PasswordProvider, passwords(idp)), ALICES)

        assert (alice.issuer, alice.subject, alice.username) == (idp.token_url, "alice", "alice")
        assert alice.expires_at is not None

    def test_tokens_are_renewed(self, idp: FakeIdp, make: Callable[..., Any]) -> None:
        provider = make(PasswordProvider, passwords(idp))
        first = login(provider, ALICES)
        second = provider.refresh(first)
        third = provider.refresh(second)

        assert first.key == second.key == third.key
        assert len({identity.access_token for identity in (first, second, third)}) == 3
        assert len({identity.refresh_token for identity in (first, second, third)}) == 3
        with pytest.raises(InvalidCredentialsError):
            provider.refresh(first)  # its refresh token is spent

    def test_a_refresh_token_that_stays_is_kept(self, idp: FakeIdp, make: Callable[..., Any]) -> None:
        provider = make(PasswordProvider, passwords(idp))
        first = login(provider, ALICES)
        token = idp.token()
        idp.reply = lambda request: answer(access_token=token, token_type="bearer", expires_in="300")

        assert provider.refresh(first).refresh_token == first.refresh_token

    @pytest.mark.rule("AUTHN-4", "SESS-4")
    def test_renewed_tokens_of_somebody_else_are_refused(self, idp: FakeIdp, make: Callable[..., Any]) -> None:
        provider = make(PasswordProvider, passwords(idp))
        first = login(provider, ALICES)
        idp.claims = {"sub": BOB}

        with pytest.raises(InvalidCredentialsError):
            provider.refresh(first)

    def test_an_outage_is_no_refusal(self, idp: FakeIdp, make: Callable[..., Any]) -> None:
        provider = make(PasswordProvider, passwords(idp))
        first = login(provider, ALICES)
        idp.misbehave(status=503)

        with pytest.raises(ExternalError):
            provider.refresh(first)

    def test_refreshing_can_be_switched_off(self, idp: FakeIdp, make: Callable[..., Any]) -> None:
        provider = make(PasswordProvider, passwords(idp, refresh=False))
        first = login(provider, ALICES)

        assert first.refresh_token is None
        with pytest.raises(NotSupportedError):
            provider.refresh(first)


class TestServices:
    def test_everybody_is_one_service(self, idp: FakeIdp, make: Callable[..., Any]) -> None:
        config = ClientCredentialsConfig(token_endpoint=idp.token_url, client_id=CLIENT, client_secret=SECRET)
        provider = make(ClientCredentialsProvider, config)
        service = login(provider, NOBODY)

        assert service.username == "service-account-sqe-client"
        assert not service.personal
        renewed = provider.refresh(service)
        assert renewed.key == service.key
        assert renewed.access_token != service.access_token

    def test_callers_are_their_own_clients(self, idp: FakeIdp, make: Callable[..., Any]) -> None:
        provider = make(ClientProvider, ClientPassthroughConfig(token_url=idp.token_url, scope="catalog"))
        etl = login(provider, basic("etl", "etl-secret-4711"))

        assert etl.username == "service-account-etl"
        assert etl.personal
        assert idp.requests[-1].form == {
            "grant_type": "client_credentials",
            "client_id": "etl",
            "client_secret": "etl-secret-4711",
            "scope": "catalog",
        }
        with pytest.raises(NotSupportedError):
            provider.refresh(etl)

    def test_tokens_of_polaris(self, idp: FakeIdp, make: Callable[..., Any]) -> None:
        """Signed symmetrically, without a key's name, and with other claims."""
        import json

        from oidc_idp import encode

        now = int(time.time())
        claims = {"active": True, "iss": "polaris", "sub": "1", "client_id": "root", "principalId": 1, "exp": now + 60}
        head = encode(json.dumps({"alg": "HS256", "typ": "JWT"}).encode())
        token = f"{head}.{encode(json.dumps(claims).encode())}.{encode(b'x' * 32)}"
        idp.reply = lambda request: answer(access_token=token, token_type="bearer", expires_in=60)

        root = login(make(ClientProvider, ClientPassthroughConfig(token_url=idp.token_url)), basic("root", "s"))

        assert (root.issuer, root.subject, root.username) == ("polaris", "1", "root")
        assert root.expires_at is not None

    @pytest.mark.parametrize("status", [400, 401])
    @pytest.mark.parametrize("body", [{"error": "invalid_client"}, {"error": "unauthorized_client"}])
    def test_a_wrong_client_is_a_failed_login(
        self, idp: FakeIdp, make: Callable[..., Any], status: int, body: dict[str, str]
    ) -> None:
        idp.reply = lambda request: answer(status, **body)
        provider = make(ClientProvider, ClientPassthroughConfig(token_url=idp.token_url))

        with pytest.raises(InvalidCredentialsError):
            provider.authenticate(basic("etl", "x"))

    def test_401_is_a_failed_login_whatever_the_body_says(self, idp: FakeIdp, make: Callable[..., Any]) -> None:
        """The REST catalog's specification has errors of another form."""
        idp.reply = lambda request: answer(401, error={"code": 401, "type": "NotAuthorizedException"})
        config = ClientPassthroughConfig(token_url=idp.token_url, fallthrough_on_reject=True)

        assert make(ClientProvider, config).authenticate(basic("etl", "x")) is None


class TestBearers:
    def test_several_issuers_share_a_listener(self, idp: FakeIdp, make: Callable[..., Any]) -> None:
        """Each judges its own tokens with its own keys, and leaves the others (JWT-3)."""
        other = FakeIdp()
        ours = make(BearerProvider, BearerConfig(issuer=idp.issuer, audience=(CLIENT,)), name="ours")
        theirs = make(BearerProvider, BearerConfig(issuer=other.issuer, audience=(CLIENT,)), name="theirs")

        assert ours.authenticate(bearer(other.token())) is None
        assert login(theirs, bearer(other.token())).issuer == other.issuer
        with pytest.raises(InvalidCredentialsError):  # signed by one, in the name of the other
            ours.authenticate(bearer(other.token(iss=idp.issuer)[:-4] + "AAAA"))
        other.stop()

    def test_keys_without_an_issuer(self, idp: FakeIdp, make: Callable[..., Any]) -> None:
        provider = make(BearerProvider, BearerConfig(jwks_url=idp.jwks_url, audience=(CLIENT,)))

        assert login(provider, bearer(idp.token())).issuer == idp.issuer
        with pytest.raises(InvalidCredentialsError):
            provider.authenticate(bearer(idp.token(iss=None)))

    def test_any_audience_has_to_be_meant(self, idp: FakeIdp, make: Callable[..., Any]) -> None:
        config = BearerConfig(issuer=idp.issuer, allow_unbounded_audience=True)

        assert login(make(BearerProvider, config), bearer(idp.token(aud=None))).username == "alice"

    def test_id_tokens_have_to_be_allowed(self, idp: FakeIdp, make: Callable[..., Any]) -> None:
        token = idp.id_token("alice", nonce="n", at_hash="x")
        config = BearerConfig(issuer=idp.issuer, audience=(CLIENT,), accept_id_tokens=True)

        assert login(make(BearerProvider, config), bearer(token)).username == "alice"
        with pytest.raises(InvalidCredentialsError):
            make(BearerProvider, BearerConfig(issuer=idp.issuer, audience=(CLIENT,))).authenticate(bearer(token))

    def test_bearers_are_not_renewed(self, idp: FakeIdp, make: Callable[..., Any]) -> None:
        provider = make(BearerProvider, BearerConfig(issuer=idp.issuer, audience=(CLIENT,)))

        with pytest.raises(NotSupportedError):
            provider.refresh(login(provider, bearer(idp.token())))

    def test_a_token_within_the_leeway_ends_at_once(self, idp: FakeIdp, make: Callable[..., Any]) -> None:
        provider = make(BearerProvider, BearerConfig(issuer=idp.issuer, audience=(CLIENT,)))
        identity = login(provider, bearer(idp.token(exp=int(time.time()) - 10)))

        assert identity.expires_at is not None
        assert identity.expires_at < datetime.now(UTC) + timedelta(seconds=2)

    def test_a_remembered_token_still_ends(self, idp: FakeIdp, make: Callable[..., Any]) -> None:
        from sqe_core.testing import FixedClock

        clock = FixedClock(datetime.now(UTC))
        provider = make(BearerProvider, BearerConfig(issuer=idp.issuer, audience=(CLIENT,)), clock=clock)
        token = idp.token()
        login(provider, bearer(token))
        clock.advance(400)

        with pytest.raises(InvalidCredentialsError):
            provider.authenticate(bearer(token))

    @pytest.mark.rule("AUTHN-2")
    def test_unchecked_bearers_are_not_for_production(self) -> None:
        provider = PassthroughProvider(
            PassthroughConfig(user="dev", roles=("admin",)), Surroundings(name="dev", context=PluginContext())
        )
        identity = login(provider, bearer("anything"))

        assert provider.production_objection
        assert identity.access_token == Secret("anything")
        assert not identity.personal


class TestExchange:
    def test_the_new_token_is_the_users(self, idp: FakeIdp, make: Callable[..., Any]) -> None:
        config = ExchangeConfig(
            issuer=idp.issuer, client_id=CLIENT, client_secret=SECRET, audience=(CLIENT,), scope="x"
        )
        alice = login(make(ExchangeProvider, config), bearer("opaque-of-alice"))

        assert alice.key == (idp.issuer, ALICE)
        assert alice.access_token != Secret("opaque-of-alice")
        form = next(request.form for request in idp.requests if request.path.endswith("/token"))
        assert form["subject_token"] == "opaque-of-alice"
        assert form["audience"] == CLIENT
        assert form["grant_type"] == "urn:ietf:params:oauth:grant-type:token-exchange"

    @pytest.mark.rule("JWT-4")
    def test_the_new_token_has_to_be_for_sqe(self, idp: FakeIdp, make: Callable[..., Any]) -> None:
        config = ExchangeConfig(token_url=idp.token_url, client_id=CLIENT, client_secret=SECRET, audience=(CLIENT,))
        idp.claims = {"aud": "other"}

        with pytest.raises(InvalidCredentialsError):
            make(ExchangeProvider, config).authenticate(bearer("opaque-of-alice"))

    def test_an_opaque_new_token_names_nobody(self, idp: FakeIdp, make: Callable[..., Any]) -> None:
        idp.opaque = True
        config = ExchangeConfig(token_url=idp.token_url, client_id=CLIENT, client_secret=SECRET)

        with pytest.raises(InvalidCredentialsError):
            make(ExchangeProvider, config).authenticate(bearer("opaque-of-alice"))


BAD_SETTINGS: dict[str, tuple[Any, dict[str, Any], str]] = {
    "no address": (PasswordConfig, {"client_id": "x"}, "token_url or issuer is needed"),
    "plain http": (PasswordConfig, {"client_id": "x", "token_url": "http://idp/token"}, "has to be https"),
    "user info": (PasswordConfig, {"client_id": "x", "token_url": "https://u:p@idp/token"}, "holds a host"),
    "a fragment": (PasswordConfig, {"client_id": "x", "token_url": "https://idp/token#x"}, "holds a host"),
    "no keys": (BearerConfig, {"audience": ("x",)}, "jwks_url or issuer is needed"),
    "no audience": (BearerConfig, {"issuer": "https://idp"}, "tokens for any other service would be accepted"),
    "an empty audience": (BearerConfig, {"issuer": "https://idp", "audience": ("",)}, "holds an empty text"),
    "no algorithm": (BearerConfig, {"issuer": "https://idp", "audience": ("x",), "algorithms": ()}, "is empty"),
    "plain keys": (BearerConfig, {"jwks_url": "http://idp/certs", "audience": ("x",)}, "allow_insecure_jwks"),
    "an address alone": (
        BearerConfig,
        {"introspection_url": "https://idp", "audience": ("x",)},
        'say introspect = "opaque" or "always"',
    ),
    "asking as nobody": (
        BearerConfig,
        {"issuer": "https://idp", "audience": ("x",), "introspect": "always"},
        "needs client_id and client_secret",
    ),
    "a secret for nothing": (
        BearerConfig,
        {"issuer": "https://idp", "audience": ("x",), "client_secret": SECRET},
        "mean nothing without introspect",
    ),
    "two audiences": (
        ExchangeConfig,
        {"token_url": "https://idp", "client_id": "x", "audience": ("a", "b")},
        "audience is one text",
    ),
}


@pytest.mark.rule("JWT-4", "JWT-8")
@pytest.mark.parametrize("name", BAD_SETTINGS)
def test_settings_that_cannot_be_meant_are_refused(name: str) -> None:
    config_type, keys, said = BAD_SETTINGS[name]
    with pytest.raises(ValueError, match=said):
        config_type(**keys)


@pytest.mark.parametrize("url", ["http://127.0.0.1:8080/x", "http://localhost/x", "http://[::1]/x", "https://idp/x"])
def test_this_machine_needs_no_tls(url: str) -> None:
    check_url("token_url", url, plain_http=False)


@pytest.mark.parametrize(
    "url", ["http://localhost.example.com/x", "http://127.0.0.1.example.com/x", "http://10.0.0.1/"]
)
def test_other_machines_do(url: str) -> None:
    with pytest.raises(ValueError, match="has to be https"):
        check_url("token_url", url, plain_http=False)
