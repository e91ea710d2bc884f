"""An identity provider that is down, slow, broken or lying: clear errors, in bounded time, and nobody gets in."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from oidc_idp import CLIENT, CLIENT_SECRET, NOBODY, FakeIdp, Reply, answer, basic, bearer

from sqe_auth_oidc.basic import PasswordProvider
from sqe_auth_oidc.bearer import BearerProvider
from sqe_auth_oidc.config import BearerConfig, ClientCredentialsConfig, PasswordConfig
from sqe_auth_oidc.provider import Surroundings
from sqe_auth_oidc.service import ClientCredentialsProvider
from sqe_core.spi import ErrorCode, ExternalError, InvalidCredentialsError, PluginContext, Secret, StartupError

CANARY = b"canary-5d1f-in-the-body"
ALICE = basic("alice", "alice-password-4711")
# More than the one second that these providers give it, and much less than what the server would take.
PATIENCE_SECS = 8.0

FAULTS: Mapping[str, Mapping[str, Any]] = {
    "HTML": {"body": b"<!doctype html><html>" + CANARY},
    "HTML behind a 404": {"status": 404, "body": b"<html>" + CANARY},
    "a portal that wants a login": {"status": 401, "body": b"<html>" + CANARY},
    "500": {"status": 500, "body": b'{"error":"unknown_error"}'},
    "502 of a proxy": {"status": 502, "body": CANARY},
    "503": {"status": 503},
    "429": {"status": 429, "headers": {"Retry-After": "86400"}},
    "a redirect": {"status": 302, "headers": {"Location": "http://127.0.0.1:1/"}},
    "a redirect that keeps the form": {"status": 307, "headers": {"Location": "/elsewhere"}},
    "a redirect with an answer": {"status": 301, "body": b'{"keys":[]}', "headers": {"Location": "/elsewhere"}},
    "204": {"status": 204},
    "nothing": {"body": b""},
    "an array": {"body": b"[]"},
    "null": {"body": b"null"},
    "a text": {"body": b'"' + CANARY + b'"'},
    "an empty object": {"body": b"{}"},
    "half an object": {"body": b'{"access_token": "' + CANARY},
    "two objects": {"body": b'{"keys":[]}{"keys":[]}'},
    "a key twice": {"body": b'{"keys":[],"keys":[],"access_token":"a","access_token":"b"}'},
    "no UTF-8": {"body": b'{"keys":"\xff\xfe"}'},
    "UTF-16": {"body": '{"keys":[]}'.encode("utf-16")},
    "NaN": {"body": b'{"keys":[],"access_token":"a","token_type":"Bearer","expires_in":NaN}'},
    "deep": {"body": b'{"keys":' + b"[" * 60_000},
    "large": {"body": b'{"keys":["' + b"x" * 2_000_000 + b'"]}'},
    "a large header": {"headers": {"X-Large": "x" * 100_000}},
    "compressed": {"body": b"\x1f\x8b\x08\x00" + CANARY, "headers": {"Content-Encoding": "gzip"}},
    "no HTTP": {"raw": b"SSH-2.0-OpenSSH_9.6\r\n"},
    "hanging up": {"raw": b""},
    "a body that ends early": {"raw": b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n{"},
    "silence": {"wait_secs": 30},
    "a byte now and then": {"body": b'{"keys":[]}' + b" " * 400, "drip_secs": 0.2},
}

MORE_OF_TOKENS: Mapping[str, Mapping[str, Any]] = {
    "no access token": {"token_type": "Bearer"},
    "an access token of a number": {"token_type": "Bearer", "access_token": 5},
    "an access token that is too long": {"token_type": "Bearer", "access_token": "x" * 20_000},
    "an access token with a line end": {"token_type": "Bearer", "access_token": "a\r\nX-Injected: b"},
    "a token that is no bearer": {"token_type": "N_A", "access_token": "a"},
    "a token for a proof of possession": {"token_type": "DPoP", "access_token": "a"},
    "a type of a number": {"token_type": 5, "access_token": "a"},
    "a negative life": {"token_type": "Bearer", "access_token": "a", "expires_in": -1},
    "a life of true": {"token_type": "Bearer", "access_token": "a", "expires_in": True},
    "an endless life": {"token_type": "Bearer", "access_token": "a", "expires_in": 10**12},
    "a life of words": {"token_type": "Bearer", "access_token": "a", "expires_in": "soon"},
    "a refresh token of an object": {"token_type": "Bearer", "access_token": "a", "refresh_token": {}},
}


def passwords(idp: FakeIdp, **keys: Any) -> PasswordConfig:
    return PasswordConfig(
        **{
            "token_url": idp.token_url,
            "client_id": CLIENT,
            "client_secret": Secret(CLIENT_SECRET),
            "timeout_secs": 1,
            **keys,
        }
    )


def bearers(idp: FakeIdp, **keys: Any) -> BearerConfig:
    return BearerConfig(**{"issuer": idp.issuer, "audience": (CLIENT,), "timeout_secs": 1, **keys})


def fails(ask: Callable[[], object]) -> str:
    """What the operator reads; it comes in time, with the code of a system that does not answer, and keeps secrets."""
    began = time.monotonic()
    with pytest.raises(ExternalError) as caught:
        ask()
    assert time.monotonic() - began < PATIENCE_SECS
    text = str(caught.value)
    assert not [word for word in (CANARY.decode(), "password-4711", CLIENT_SECRET, "eyJ") if word in text]
    return text


@pytest.mark.rule("AUTHN-4", "TEST-9")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_broken_token_endpoint_lets_nobody_in(idp: FakeIdp, make: Callable[..., Any], fault: str) -> None:
    idp.misbehave("/token", **FAULTS[fault])
    provider = make(PasswordProvider, passwords(idp))

    fails(lambda: provider.authenticate(ALICE))


@pytest.mark.rule("JWT-8", "TEST-9")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_broken_key_set_lets_nobody_in(idp: FakeIdp, make: Callable[..., Any], fault: str) -> None:
    idp.misbehave("/certs", **FAULTS[fault])
    provider = make(BearerProvider, bearers(idp))

    fails(lambda: provider.authenticate(bearer(idp.token())))
    fails(provider.check)


@pytest.mark.rule("JWT-3", "TEST-9")
@pytest.mark.parametrize("fault", FAULTS)
def test_broken_metadata_lets_nobody_in(idp: FakeIdp, make: Callable[..., Any], fault: str) -> None:
    idp.misbehave("/openid-configuration", **FAULTS[fault])
    provider = make(PasswordProvider, passwords(idp, token_url=None, issuer=idp.issuer))

    fails(lambda: provider.authenticate(ALICE))
    fails(provider.check)


@pytest.mark.rule("AUTHN-4")
@pytest.mark.parametrize("body", MORE_OF_TOKENS)
def test_an_answer_that_is_no_answer_lets_nobody_in(idp: FakeIdp, make: Callable[..., Any], body: str) -> None:
    idp.reply = lambda request: answer(**MORE_OF_TOKENS[body])

    fails(lambda: make(PasswordProvider, passwords(idp)).authenticate(ALICE))


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("HTML", "answered with HTML (status 200); is the address right?"),
        ("an array", "answered with something that is no JSON object"),
        ("a redirect", "answered with a redirect, which is not followed"),
        ("503", "answered with status 503"),
        ("429", "was asked too often (status 429)"),
        ("large", "answered with more than 524288 bytes"),
        ("silence", "did not answer in time"),
        ("a byte now and then", "did not answer in time"),
        ("hanging up", "ended the connection without an answer"),
    ],
)
def test_the_operator_reads_what_is_wrong(idp: FakeIdp, make: Callable[..., Any], fault: str, said: str) -> None:
    idp.misbehave("/token", **FAULTS[fault])

    text = fails(lambda: make(PasswordProvider, passwords(idp)).authenticate(ALICE))

    assert text.startswith("The identity provider at 127.0.0.1/realms/iceberg/protocol/openid-connect/token ")
    assert said in text


def test_redirects_are_never_followed(idp: FakeIdp, make: Callable[..., Any]) -> None:
    """Neither the password nor the client's secret goes to an address that an answer names."""
    other = FakeIdp()
    idp.misbehave("/token", status=307, headers={"Location": other.token_url})

    fails(lambda: make(PasswordProvider, passwords(idp)).authenticate(ALICE))

    assert not other.requests
    other.stop()


def test_nobody_is_there(make: Callable[..., Any]) -> None:
    idp = FakeIdp()
    provider = make(PasswordProvider, passwords(idp))
    idp.stop()

    assert "cannot be reached" in fails(lambda: provider.authenticate(ALICE))


def test_somebody_listens_and_says_nothing(make: Callable[..., Any], idp: FakeIdp) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/token"
        provider = make(PasswordProvider, passwords(idp, token_url=url))

        assert "did not answer in time" in fails(lambda: provider.authenticate(ALICE))


@pytest.mark.rule("JWT-3")
@pytest.mark.parametrize("named", ["https://stranger.example.com", "{}/", "{}x", None, 5])
def test_metadata_of_another_issuer_is_refused(idp: FakeIdp, make: Callable[..., Any], named: Any) -> None:
    issuer = named.format(idp.issuer) if isinstance(named, str) else named

    def lie(request: Any) -> Reply | None:
        wrong = answer(issuer=issuer, token_endpoint=idp.token_url, jwks_uri=idp.jwks_url)
        return wrong if request.path.endswith("/openid-configuration") else None

    idp.reply = lie

    text = fails(lambda: make(BearerProvider, bearers(idp)).authenticate(bearer(idp.token())))
    assert "cannot be fetched" in text
    text = fails(make(PasswordProvider, passwords(idp, token_url=None, issuer=idp.issuer)).check)
    assert "write exactly that" in text


@pytest.mark.rule("JWT-8")
@pytest.mark.parametrize(
    "url",
    [
        "http://192.0.2.7/certs",
        "http://169.254.169.254/latest/meta-data/",
        "http://user:pass@127.0.0.1/certs",
        "file:///etc/passwd",
        "/certs",
        "ftp://127.0.0.1/certs",
        5,
        None,
        "",
    ],
)
def test_addresses_of_the_metadata_are_judged(idp: FakeIdp, make: Callable[..., Any], url: Any) -> None:
    """Whoever could change the metadata on its way could name plain addresses, or those of this machine's network."""
    idp.reply = lambda request: (
        answer(issuer=idp.issuer, token_endpoint=url, jwks_uri=url)
        if request.path.endswith("/openid-configuration")
        else None
    )

    fails(lambda: make(BearerProvider, bearers(idp)).authenticate(bearer(idp.token())))
    fails(make(PasswordProvider, passwords(idp, token_url=None, issuer=idp.issuer)).check)


def test_metadata_that_was_read_outlives_an_outage(idp: FakeIdp, make: Callable[..., Any], ticks: Any) -> None:
    provider = make(PasswordProvider, passwords(idp, token_url=None, issuer=idp.issuer))
    provider.authenticate(ALICE)
    idp.misbehave("/openid-configuration", status=503)
    ticks.offset += 4000

    assert provider.authenticate(ALICE) is not None


@pytest.mark.parametrize(
    ("status", "error", "code"),
    [(400, "invalid_grant", None), (401, "invalid_grant", None), (403, "access_denied", None), (400, "x" * 65, "?")],
)
def test_a_refusal_is_the_users(
    idp: FakeIdp, make: Callable[..., Any], status: int, error: str, code: str | None
) -> None:
    idp.reply = lambda request: answer(status, error=error, error_description=CANARY.decode())
    provider = make(PasswordProvider, passwords(idp))

    if code is None:
        with pytest.raises(InvalidCredentialsError) as caught:
            provider.authenticate(ALICE)
        assert str(caught.value) == str(InvalidCredentialsError())
    else:
        fails(lambda: provider.authenticate(ALICE))


@pytest.mark.parametrize("error", ["invalid_client", "unauthorized_client", "unsupported_grant_type", "invalid_scope"])
def test_a_refusal_of_sqe_is_the_operators(idp: FakeIdp, make: Callable[..., Any], error: str) -> None:
    """A wrong secret in the file is nobody's failed login: nobody is locked out for it."""
    idp.reply = lambda request: answer(401, error=error, error_description=CANARY.decode())

    assert error in fails(lambda: make(PasswordProvider, passwords(idp)).authenticate(ALICE))


def test_a_refused_service_is_the_operators(idp: FakeIdp, make: Callable[..., Any]) -> None:
    config = ClientCredentialsConfig(
        token_endpoint=idp.token_url, client_id=CLIENT, client_secret=Secret("wrong"), timeout_secs=1
    )
    fails(lambda: make(ClientCredentialsProvider, config).authenticate(NOBODY))
    idp.reply = lambda request: answer(400, error="invalid_grant")
    fails(lambda: make(ClientCredentialsProvider, config).authenticate(NOBODY))


def test_what_the_core_tells_clients_is_an_outage(idp: FakeIdp, make: Callable[..., Any]) -> None:
    idp.misbehave(status=503)
    with pytest.raises(ExternalError) as caught:
        make(PasswordProvider, passwords(idp)).authenticate(ALICE)
    assert caught.value.code is ErrorCode.CATALOG_UNAVAILABLE


class TestTls:
    """The identity provider is who its certificate says, or nobody talks to it."""

    @pytest.fixture(params=["here", "elsewhere"])
    def secure(self, request: pytest.FixtureRequest, certificates: Mapping[str, tuple[str, str]]) -> Any:
        fake = FakeIdp(certificates[request.param])
        yield fake, certificates[request.param][0], request.param
        fake.stop()

    def test_an_unknown_authority_is_refused(self, secure: Any, make: Callable[..., Any]) -> None:
        idp, _, _ = secure

        text = fails(lambda: make(PasswordProvider, passwords(idp)).authenticate(ALICE))

        assert "certificate" in text
        assert "ca_file" in text
        assert not idp.requests

    def test_a_known_authority_counts_for_the_name_in_its_certificate(
        self, secure: Any, make: Callable[..., Any]
    ) -> None:
        idp, certificate, place = secure
        provider = make(PasswordProvider, passwords(idp, ca_file=Path(certificate)))

        if place == "here":
            assert provider.authenticate(ALICE) is not None
        else:
            assert "certificate" in fails(lambda: provider.authenticate(ALICE))

    @pytest.mark.filterwarnings("ignore::urllib3.exceptions.InsecureRequestWarning")
    def test_checking_can_be_switched_off_for_development(self, secure: Any, make: Callable[..., Any]) -> None:
        idp, _, _ = secure

        assert make(PasswordProvider, passwords(idp, tls_skip_verify=True)).authenticate(ALICE) is not None

    def test_plain_text_where_tls_is_spoken(self, make: Callable[..., Any], idp: FakeIdp, secure: Any) -> None:
        plain = idp.token_url.replace("http:", "https:")
        fails(lambda: make(PasswordProvider, passwords(idp, token_url=plain)).authenticate(ALICE))
        encrypted = secure[0].token_url.replace("https:", "http:")
        fails(lambda: make(PasswordProvider, passwords(idp, token_url=encrypted)).authenticate(ALICE))


def test_certificates_that_cannot_be_read_stop_the_server(tmp_path: Path, idp: FakeIdp) -> None:
    bad = tmp_path / "ca.pem"
    bad.write_text("no certificate")
    for file in (bad, tmp_path / "missing.pem"):
        with pytest.raises(StartupError, match="cannot be read"):
            PasswordProvider(passwords(idp, ca_file=file), Surroundings(name="idp", context=PluginContext()))


def test_the_form_is_as_the_specification_has_it(idp: FakeIdp, make: Callable[..., Any]) -> None:
    """Passwords with signs of forms and addresses arrive as they are; secrets stand in the body and nowhere else."""
    odd = "a&b=c+d%20e;ü ß"
    seen: list[Mapping[str, str]] = []

    def take(request: Any) -> Reply:
        seen.append(request.form)
        return answer(400, error="invalid_grant")

    idp.reply = take
    with pytest.raises(InvalidCredentialsError):
        make(PasswordProvider, passwords(idp)).authenticate(basic("al&ice", odd))

    assert seen == [
        {
            "grant_type": "password",
            "username": "al&ice",
            "password": odd,
            "scope": "openid",
            "client_id": CLIENT,
            "client_secret": CLIENT_SECRET,
        }
    ]
    (request,) = idp.requests
    assert request.path == "/realms/iceberg/protocol/openid-connect/token"
    assert "authorization" not in request.headers
    assert "4711" not in json.dumps(dict(request.headers))
