"""Keys that change, keys that are withdrawn, and an identity provider that is away for a while (JWT-8, JWT-9)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from oidc_idp import CLIENT, CLIENT_SECRET, FakeIdp, bearer, encode, public_jwk
from testbed.clocks import wait_for

from sqe_auth_oidc.bearer import BearerProvider
from sqe_auth_oidc.config import BearerConfig
from sqe_auth_oidc.keys import read_keys
from sqe_core.spi import ExternalError, Identity, InvalidCredentialsError, Secret
from sqe_core.testing import RecordingMetrics
from sqe_core.testing.contract import in_threads

REFRESH_SECS, TTL_SECS = 300, 900


@pytest.fixture
def provider(idp: FakeIdp, make: Callable[..., Any]) -> BearerProvider:
    return make(BearerProvider, BearerConfig(issuer=idp.issuer, audience=(CLIENT,), timeout_secs=5))


def accepts(provider: BearerProvider, token: str) -> bool:
    try:
        return provider.authenticate(bearer(token)) is not None
    except InvalidCredentialsError:
        return False


def login(provider: BearerProvider, token: str) -> Identity:
    identity = provider.authenticate(bearer(token))
    assert identity is not None
    return identity


def rotate(idp: FakeIdp) -> None:
    """The old key goes, a new one comes."""
    idp.keys = [public_jwk("es256", alg="ES256")]


@pytest.mark.rule("JWT-8")
def test_a_new_key_is_found_at_once(idp: FakeIdp, make: Callable[..., Any], ticks: Any) -> None:
    config = BearerConfig(issuer=idp.issuer, audience=(CLIENT,), algorithms=("RS256", "ES256"))
    provider = make(BearerProvider, config)
    assert accepts(provider, idp.token())
    idp.keys.append(public_jwk("es256", alg="ES256"))
    ticks.offset += 31

    assert accepts(provider, idp.token(kid="es256", alg="ES256"))
    assert accepts(provider, idp.token())
    assert idp.asked("/certs") == 2


@pytest.mark.rule("JWT-8")
def test_unknown_keys_fetch_once_per_half_minute(idp: FakeIdp, provider: BearerProvider, ticks: Any) -> None:
    assert accepts(provider, idp.token())
    for _ in range(3):
        in_threads(lambda: accepts(provider, idp.token(kid="rs2")) and pytest.fail("accepted"))
        assert idp.asked("/certs") == 1
        ticks.offset += 9
    ticks.offset += 4
    in_threads(lambda: accepts(provider, idp.token(kid="rs2")))

    assert idp.asked("/certs") == 2


@pytest.mark.rule("JWT-8")
def test_unknown_keys_do_not_fetch_more_often_while_that_fails(
    idp: FakeIdp, provider: BearerProvider, ticks: Any
) -> None:
    assert accepts(provider, idp.token())
    idp.misbehave("/certs", status=503)
    ticks.offset += 31
    for _ in range(5):
        assert not accepts(provider, idp.token(kid="rs2"))
        ticks.offset += 5

    assert idp.asked("/certs") == 2
    assert accepts(provider, idp.token())


@pytest.mark.rule("JWT-8", "JWT-9")
def test_a_withdrawn_key_counts_no_longer_than_the_keys_are_kept(
    idp: FakeIdp, provider: BearerProvider, ticks: Any
) -> None:
    token = idp.token(exp=int(time.time()) + 10_000)
    identity = login(provider, token)
    rotate(idp)
    ticks.offset += REFRESH_SECS * 0.7
    assert accepts(provider, token)
    assert not provider.is_revoked(identity)

    ticks.offset += REFRESH_SECS * 0.4

    assert not accepts(provider, token)
    assert provider.is_revoked(identity)


@pytest.mark.rule("JWT-8")
def test_a_server_that_was_idle_does_not_believe_old_keys(idp: FakeIdp, provider: BearerProvider, ticks: Any) -> None:
    """Nobody asked for long, so nobody fetched: the first who asks waits for the fetch."""
    identity = login(provider, idp.token())
    rotate(idp)
    ticks.offset += TTL_SECS - 10

    assert provider.is_revoked(identity)


def test_a_key_that_was_exchanged_below_its_name_is_withdrawn(
    idp: FakeIdp, provider: BearerProvider, ticks: Any
) -> None:
    identity = login(provider, idp.token())
    idp.keys = [public_jwk("rs", "other-rs", alg="RS256")]
    ticks.offset += REFRESH_SECS + 1

    assert provider.is_revoked(identity)
    assert not accepts(provider, idp.token())


def test_an_empty_key_set_withdraws_every_key(idp: FakeIdp, provider: BearerProvider, ticks: Any) -> None:
    identity = login(provider, idp.token())
    idp.keys = []
    ticks.offset += REFRESH_SECS + 1

    assert provider.is_revoked(identity)


@pytest.mark.rule("JWT-8")
def test_a_busy_server_never_waits_for_keys(idp: FakeIdp, provider: BearerProvider, ticks: Any) -> None:
    token = idp.token()
    assert accepts(provider, token)
    idp.misbehave("/certs", wait_secs=2)
    ticks.offset += REFRESH_SECS * 0.85
    began = time.monotonic()

    assert accepts(provider, token)
    assert accepts(provider, idp.token("bob"))

    assert time.monotonic() - began < 1.5
    wait_for(lambda: idp.asked("/certs") == 2)


@pytest.mark.rule("JWT-8")
def test_an_outage_is_survived_until_the_keys_are_too_old(
    idp: FakeIdp, provider: BearerProvider, ticks: Any, metrics: RecordingMetrics
) -> None:
    token = idp.token(exp=int(time.time()) + 10_000)
    identity = login(provider, token)
    idp.misbehave("/certs", status=503)
    for _ in range(8):
        ticks.offset += 110
        assert accepts(provider, token)
        assert accepts(provider, idp.token("bob"))
        assert not provider.is_revoked(identity)

    ticks.offset += 100  # more than ttl_secs after the last good fetch
    for ask in (lambda: provider.authenticate(bearer(token)), lambda: provider.is_revoked(identity)):
        with pytest.raises(ExternalError, match="keys of the identity provider cannot be fetched"):
            ask()
    assert metrics.values["sqe_auth_jwks_fetches_total"] >= 3

    idp.reply = None
    ticks.offset += 6
    assert accepts(provider, token)


def test_a_hanging_provider_costs_one_request_its_time(idp: FakeIdp, make: Callable[..., Any], ticks: Any) -> None:
    provider = make(BearerProvider, BearerConfig(issuer=idp.issuer, audience=(CLIENT,), timeout_secs=1))
    token = idp.token()
    assert accepts(provider, token)
    idp.misbehave("/certs", wait_secs=30)
    ticks.offset += REFRESH_SECS + 1
    began = time.monotonic()

    assert all(accepts(provider, token) for _ in range(20))

    assert time.monotonic() - began < 3


@pytest.mark.rule("JWT-8")
def test_many_at_once_fetch_once(idp: FakeIdp, provider: BearerProvider) -> None:
    token = idp.token()
    idp.reply = lambda request: time.sleep(0.05)

    assert all(in_threads(lambda: accepts(provider, token)))
    assert idp.asked("/certs") == 1


def test_a_first_fetch_that_failed_is_tried_again_soon(idp: FakeIdp, provider: BearerProvider, ticks: Any) -> None:
    idp.misbehave("/certs", status=503)
    for _ in range(5):
        with pytest.raises(ExternalError):
            provider.authenticate(bearer(idp.token()))
    assert idp.asked("/certs") == 1
    idp.reply = None
    ticks.offset += 6

    assert accepts(provider, idp.token())


RS, EC = public_jwk("rs"), public_jwk("es256")

ODD_KEYS: dict[str, Any] = {
    "no object": "rs",
    "empty": {},
    "no kid": {name: value for name, value in RS.items() if name != "kid"},
    "kid a number": {**RS, "kid": 1},
    "kid empty": {**RS, "kid": ""},
    "no kty": {name: value for name, value in RS.items() if name != "kty"},
    "kty unknown": {**RS, "kty": "AKP"},
    "kty an array": {**RS, "kty": ["RSA"]},
    "symmetric": {"kty": "oct", "kid": "rs", "k": encode(b"x" * 32)},
    "alg symmetric": {**RS, "alg": "HS256"},
    "alg of encryption": {**RS, "alg": "RSA-OAEP"},
    "alg an array": {**RS, "alg": ["RS256"]},
    "alg an object": {**RS, "alg": {}},
    "use of encryption": {**RS, "use": "enc"},
    "use null": {**RS, "use": None},
    "key_ops of signing": {**RS, "key_ops": ["sign"]},
    "key_ops a text": {**RS, "key_ops": "verify"},
    "no modulus": {name: value for name, value in RS.items() if name != "n"},
    "modulus a number": {**RS, "n": 5},
    "modulus no base64": {**RS, "n": "!" * 400},
    "modulus with zeros in front": {**RS, "n": "A" * 200 + RS["n"][:170]},
    "modulus of 1,024 bits": {**RS, "n": RS["n"][:171]},
    "modulus of 64,000 bits": {**RS, "n": RS["n"] * 32},
    "exponent 1": {**RS, "e": "AQ"},
    "exponent even": {**RS, "e": "AA"},
    "exponent huge": {**RS, "e": RS["n"]},
    "exponent an array": {**RS, "e": []},
    "point not on its curve": {**EC, "x": EC["y"]},
    "point of another curve": {**EC, "crv": "P-521"},
    "curve unknown": {**EC, "crv": "P-257"},
    "curve of coins": {**EC, "crv": "secp256k1"},
    "curve a number": {**EC, "crv": 256},
    "no point": {name: value for name, value in EC.items() if name != "y"},
    "a key for agreement": {"kty": "OKP", "crv": "X25519", "kid": "x", "x": encode(b"\x05" * 32)},
    "a short Ed25519": {"kty": "OKP", "crv": "Ed25519", "kid": "x", "x": encode(b"\x05" * 31)},
}


@pytest.mark.rule("JWT-1", "JWT-8")
@pytest.mark.parametrize("name", ODD_KEYS)
@pytest.mark.filterwarnings("ignore:Key size should be")
def test_keys_that_cannot_check_signatures_are_left_out(name: str) -> None:
    found = read_keys({"keys": [ODD_KEYS[name], public_jwk("ed25519")]})

    assert list(found) == ["ed25519"]


@pytest.mark.parametrize("document", [{}, {"keys": {}}, {"keys": None}, {"keys": "x"}, {"keys": [RS] * 101}])
def test_what_is_no_key_set_is_refused(document: Any) -> None:
    with pytest.raises(ExternalError):
        read_keys(document)


def test_private_parts_of_a_key_set_are_not_read() -> None:
    """A provider that publishes them by mistake is not made worse by keeping them."""
    from oidc_idp import private_key

    (key,) = read_keys({"keys": [{**private_key("rs").as_dict(private=True), "kid": "rs"}]}).values()

    assert not key.key.is_private


class TestIntrospection:
    """Opaque tokens, and tokens that end before they say so."""

    @pytest.fixture
    def provider(self, idp: FakeIdp, make: Callable[..., Any]) -> BearerProvider:
        return make(
            BearerProvider,
            BearerConfig(
                issuer=idp.issuer,
                audience=(CLIENT,),
                introspect="always",
                client_id=CLIENT,
                client_secret=Secret(CLIENT_SECRET),
                timeout_secs=5,
            ),
        )

    @pytest.mark.rule("JWT-9")
    @pytest.mark.parametrize("opaque", [False, True])
    def test_a_revoked_token_is_refused_within_seconds(
        self, idp: FakeIdp, provider: BearerProvider, ticks: Any, opaque: bool
    ) -> None:
        token = "opaque-of-alice" if opaque else idp.token()
        identity = login(provider, token)
        idp.revoked.add(token)
        assert not provider.is_revoked(identity)
        ticks.offset += 16

        assert provider.is_revoked(identity)
        assert not accepts(provider, token)

    def test_an_answer_counts_for_seconds(self, idp: FakeIdp, provider: BearerProvider) -> None:
        identity = login(provider, "opaque-of-alice")
        for _ in range(20):
            assert not provider.is_revoked(identity)

        assert idp.asked("/introspect") == 1

    def test_an_outage_is_survived_for_two_minutes(self, idp: FakeIdp, provider: BearerProvider, ticks: Any) -> None:
        identity = login(provider, "opaque-of-alice")
        idp.misbehave("/introspect", status=503)
        ticks.offset += 100
        assert not provider.is_revoked(identity)
        ticks.offset += 30

        with pytest.raises(ExternalError):
            provider.is_revoked(identity)
        with pytest.raises(ExternalError):
            provider.authenticate(bearer("opaque-of-bob"))

    @pytest.mark.rule("JWT-4", "JWT-5", "JWT-7")
    @pytest.mark.parametrize(
        "claims",
        [
            {"aud": "other"},
            {"aud": None},
            {"exp": 1},
            {"exp": None},
            {"iss": "https://stranger.example.com"},
            {"iss": None},
            {"nbf": 2**40},
            {"typ": "ID"},
            {"typ": "Refresh"},
            {"sub": None},
            {"cnf": {"jkt": "x"}},
            {"preferred_username": "a\nb"},
        ],
    )
    def test_what_the_issuer_says_is_judged_like_a_token(
        self, idp: FakeIdp, provider: BearerProvider, claims: dict[str, Any]
    ) -> None:
        idp.claims = claims

        assert not accepts(provider, "opaque-of-alice")

    @pytest.mark.parametrize("active", ["true", 1, None, "yes", []])
    def test_only_true_is_active(self, idp: FakeIdp, provider: BearerProvider, active: Any) -> None:
        from oidc_idp import answer

        idp.reply = lambda request: (
            answer(active=active, **idp.access_claims()) if request.path.endswith("/introspect") else None
        )

        with pytest.raises(ExternalError):
            provider.authenticate(bearer("opaque-of-alice"))

    def test_a_signed_token_of_a_stranger_is_not_asked_about(self, idp: FakeIdp, provider: BearerProvider) -> None:
        assert provider.authenticate(bearer(idp.token(iss="https://stranger.example.com"))) is None
        assert not accepts(provider, idp.token()[:-8] + "AAAAAAAA")

        assert not idp.asked("/introspect")


def test_threads_of_fetches_end(idp: FakeIdp, provider: BearerProvider, ticks: Any) -> None:
    assert accepts(provider, idp.token())
    ticks.offset += REFRESH_SECS * 0.85
    assert accepts(provider, idp.token())

    wait_for(lambda: not [thread for thread in threading.enumerate() if thread.name == "sqe-oidc-keys"])


def test_the_check_of_a_known_token_is_cheap(idp: FakeIdp, provider: BearerProvider) -> None:
    """Each statement asks (issue: below 0.3 ms); measured here as the best of many, because the machine is shared."""
    identity = login(provider, idp.token())
    best = float("inf")
    for _ in range(200):
        began = time.perf_counter()
        provider.is_revoked(identity)
        best = min(best, time.perf_counter() - began)

    assert best < 0.0003
