"""Tokens of an identity provider that AWS checks."""

from __future__ import annotations

import time
from typing import Any

import pytest

from sqe_auth_aws.provider import AwsProvider
from sqe_core.spi import ExternalError, Identity, InvalidCredentialsError, NotSupportedError, PluginContext

WEB = ("arn:aws:iam::123456789012:role/web/analyst", "https://idp.example.com")


@pytest.fixture
def provider(sts: Any) -> AwsProvider:
    role, issuer = WEB
    return AwsProvider("aws", sts.config(web_identity_role_arn=role, web_identity_issuer=issuer), PluginContext())


def identity_of(provider: AwsProvider, request: Any) -> Identity:
    identity = provider.authenticate(request)
    assert identity is not None
    return identity


@pytest.mark.rule("JWT-9")
def test_a_token_is_its_subject_with_the_role(sts: Any, provider: AwsProvider) -> None:
    exp = time.time() + 77
    user = identity_of(provider, sts.bearer(sts.jwt(exp=exp)))

    assert (user.key, user.username, user.roles) == ((sts.ISSUER, "user-17"), "user-17", {sts.ROLE})
    assert user.expires_at is not None
    assert user.expires_at.timestamp() == pytest.approx(exp)
    assert (user.access_token, user.refresh_token) == (None, None)
    with pytest.raises(NotSupportedError):
        provider.refresh(user)


def test_aws_is_asked_for_keys_that_open_nothing(sts: Any, provider: AwsProvider) -> None:
    identity_of(provider, sts.bearer(sts.jwt()))

    form = sts.requests[0].form
    assert form["RoleArn"] == WEB[0]
    assert form["DurationSeconds"] == "900"
    assert '"Effect":"Deny","Action":"*"' in form["Policy"]
    assert "authorization" not in sts.requests[0].headers


def test_the_user_name_may_be_another_claim(sts: Any) -> None:
    config = sts.config(
        web_identity_role_arn=WEB[0], web_identity_issuer=WEB[1], web_identity_user_claim="preferred_username"
    )
    asked = AwsProvider("aws", config, PluginContext())

    assert identity_of(asked, sts.bearer(sts.jwt(preferred_username="alice"))).username == "alice"
    with pytest.raises(InvalidCredentialsError):
        asked.authenticate(sts.bearer(sts.jwt()))


@pytest.mark.parametrize(
    "token",
    [
        "sqe_an-api-key",
        "a.b",
        "a.b.c.d",
        "a.!!!.c",
        "a.bm90IGpzb24.c",
        "a.W10.c",
        "a.eyJpc3MiOjE3fQ.c",
        "ä.b.c",
        "x" * 20000,
        "a." + "W1tb" * 4000 + ".c",
    ],
)
def test_other_bearers_are_not_shown_to_aws(sts: Any, provider: AwsProvider, token: str) -> None:
    assert provider.authenticate(sts.bearer(token)) is None
    assert sts.requests == []


@pytest.mark.parametrize(
    "claims",
    [
        {"sub": None},
        {"sub": ""},
        {"sub": 17},
        {"sub": "alice\nbob"},
        {"sub": "alice\u202ebob"},
        {"exp": None},
        {"exp": True},
        {"exp": "9999999999"},
        {"exp": 1e30},
        {"exp": -1},
        {"exp": 1700000000},
    ],
)
def test_tokens_that_nobody_can_be(sts: Any, provider: AwsProvider, claims: dict[str, Any]) -> None:
    with pytest.raises(InvalidCredentialsError):
        provider.authenticate(sts.bearer(sts.jwt(**claims)))
    assert sts.requests == []


@pytest.mark.rule("JWT-6")
def test_a_claim_that_stands_twice_is_no_claim(sts: Any, provider: AwsProvider) -> None:
    """Otherwise AWS could read one subject, and SQE the other."""
    twice = "eyJpc3MiOiJodHRwczovL2lkcC5leGFtcGxlLmNvbSIsInN1YiI6ImEiLCJzdWIiOiJiIn0"  # {"iss":…,"sub":"a","sub":"b"}
    assert provider.authenticate(sts.bearer(f"a.{twice}.c")) is None
    assert sts.requests == []


@pytest.mark.rule("JWT-6")
@pytest.mark.parametrize("expiry", [float("inf"), float("nan")])
def test_a_number_that_json_does_not_have_makes_it_no_token(sts: Any, provider: AwsProvider, expiry: float) -> None:
    assert provider.authenticate(sts.bearer(sts.jwt(exp=expiry))) is None
    assert sts.requests == []


@pytest.mark.parametrize(
    ("refusal", "codes"),
    [
        (
            InvalidCredentialsError,
            ["InvalidIdentityToken", "ExpiredTokenException", "AccessDenied", "IDPRejectedClaim"],
        ),
        # What is not about the token is not held against it.
        (ExternalError, ["IDPCommunicationError", "RegionDisabledException", "MalformedPolicyDocument", ""]),
    ],
)
def test_what_aws_refuses(sts: Any, provider: AwsProvider, refusal: type[Exception], codes: list[str]) -> None:
    for code in codes:
        sts.reply = lambda request, code=code: sts.refusal(code, 400)
        with pytest.raises(refusal):
            provider.authenticate(sts.bearer(sts.jwt()))


@pytest.mark.parametrize(
    ("arn", "subject"),
    [
        ("arn:aws:sts::123456789012:assumed-role/admin/{session}", "user-17"),
        ("arn:aws:sts::999999999999:assumed-role/analyst/{session}", "user-17"),
        ("arn:aws:sts::123456789012:assumed-role/analyst/other", "user-17"),
        ("arn:aws:iam::123456789012:role/analyst", "user-17"),
        ("", "user-17"),
        ("arn:aws:sts::123456789012:assumed-role/analyst/{session}", "user-18"),
    ],
)
def test_an_answer_about_somebody_else_lets_nobody_in(sts: Any, provider: AwsProvider, arn: str, subject: str) -> None:
    sts.reply = lambda request: sts.answer(
        "AssumeRoleWithWebIdentity",
        AssumedRoleUser_Arn=arn.format(session=request.form["RoleSessionName"]),
        SubjectFromWebIdentityToken=subject,
    )
    with pytest.raises(ExternalError):
        provider.authenticate(sts.bearer(sts.jwt()))
