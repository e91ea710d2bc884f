"""Who comes in with AWS keys, as whom, and with which roles."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sqe_auth_aws.principals import read_arn
from sqe_auth_aws.provider import AwsProvider
from sqe_core.spi import (
    AwsCredential,
    ExternalError,
    Identity,
    InvalidCredentialsError,
    NotSupportedError,
    PluginContext,
    Secret,
)

NAME = "aws"


def provider(sts: Any, **keys: Any) -> AwsProvider:
    return AwsProvider(NAME, sts.config(**keys), PluginContext())


def identity_of(sts: Any, request: Any, **keys: Any) -> Identity:
    identity = provider(sts, **keys).authenticate(request)
    assert identity is not None
    return identity


def test_a_user_is_its_arn(sts: Any) -> None:
    alice = identity_of(sts, sts.basic(*sts.ALICE))

    assert alice.username == "arn:aws:iam::123456789012:user/team/alice"
    assert alice.key == ("aws:aws:123456789012", "AIDAALICE")
    assert (alice.roles, alice.personal, alice.access_token) == ({alice.username}, True, None)
    assert identity_of(sts, sts.basic(*sts.ALICE), user_name="name").username == "alice"


def test_the_kind_comes_from_the_transport(sts: Any) -> None:
    """A protocol that knows AWS keys gives them as such, and they mean what a Basic login with them means (AUTHN-5)."""
    key_id, secret, token = sts.SESSION
    keys = AwsCredential(access_key_id=key_id, secret_access_key=Secret(secret), session_token=Secret(token))

    assert identity_of(sts, sts.login(keys)).key == identity_of(sts, sts.basic(key_id, f"{secret}:{token}")).key


def test_the_secret_is_not_sent(sts: Any) -> None:
    identity_of(sts, sts.basic(*sts.ALICE))
    identity_of(sts, sts.basic(sts.SESSION[0], ":".join(sts.SESSION[1:])))

    for request in sts.requests:
        sent = f"{request.headers} {request.body!r}"
        assert sts.ALICE[1] not in sent
        assert sts.SESSION[1] not in sent


@pytest.mark.rule("AUTHN-9")
def test_the_name_of_a_session_is_nobody(sts: Any) -> None:
    """Whoever may assume a role calls the session as he likes: mallory's session `bob` must not be bob's."""
    session = identity_of(sts, sts.basic(sts.SESSION[0], ":".join(sts.SESSION[1:])))

    assert session.username == sts.ROLE
    assert session.subject == "AROAANALYST"
    assert session.actor == "arn:aws:sts::123456789012:assumed-role/analyst/bob"
    assert (session.roles, session.personal) == ({sts.ROLE}, False)


def test_the_session_names_of_personal_roles_are_people(sts: Any) -> None:
    request = sts.basic(sts.SESSION[0], ":".join(sts.SESSION[1:]))
    role = "arn:aws:iam::123456789012:role/aws-reserved/sso.amazonaws.com/analyst"

    bob = identity_of(sts, request, personal_roles=(role,))
    assert (bob.username, bob.subject, bob.personal) == (bob.actor, "AROAANALYST:bob", True)
    assert identity_of(sts, request, personal_roles=(role,), user_name="name").username == "bob"
    assert not identity_of(sts, request, personal_roles=(role + "s",)).personal


@pytest.mark.rule("AUTHN-6")
def test_keys_of_other_accounts_are_good_and_do_not_come_in(sts: Any) -> None:
    """Anybody in the world has keys that AWS takes for theirs."""
    asked = provider(sts, accounts=("999999999999",))
    with pytest.raises(InvalidCredentialsError):
        asked.authenticate(sts.basic(*sts.ALICE))


@pytest.mark.parametrize(
    "arn",
    [
        "arn:aws:iam::123456789012:root",
        "arn:aws:sts::123456789012:federated-user/alice",
        "arn:aws:sts::123456789012:assumed-role/analyst",
        "arn:aws:sts::123456789012:assumed-role/analyst/a/b",
        "arn:aws:sts::123456789012:assumed-role/analyst/",
        "arn:aws:sts::123456789012:user/moto",
        "arn:aws:iam::123456789012:user/",
        "arn:aws:iam::123456789012:user/a b",
        "arn:aws:iam::123456789012:user/alice\n",
        "arn:aws:iam::12345678901:user/alice",
        "arn:aws:iam::１23456789012:user/alice",
        "arn:evil:iam::123456789012:user/alice",
    ],
)
def test_arns_of_nobody_who_can_log_in(sts: Any, arn: str) -> None:
    assert read_arn(arn) is None
    sts.callers[sts.ALICE[0]] = (arn, "AIDAALICE")
    with pytest.raises(InvalidCredentialsError):
        provider(sts).authenticate(sts.basic(*sts.ALICE))


@pytest.mark.parametrize(
    ("arn", "user_id"),
    [
        ("arn:aws:iam::999999999999:user/alice", "AIDAALICE"),
        ("arn:aws-cn:iam::123456789012:user/alice", "AIDAALICE"),
        ("arn:aws:iam::123456789012:user/alice", "AIDAALICE:bob"),
        ("arn:aws:sts::123456789012:assumed-role/analyst/bob", "AROAANALYST:eve"),
    ],
)
def test_answers_that_contradict_themselves_let_nobody_in(sts: Any, arn: str, user_id: str) -> None:
    sts.callers[sts.ALICE[0]] = (arn, user_id)
    with pytest.raises(ExternalError):
        provider(sts, accounts=("123456789012", "999999999999")).authenticate(sts.basic(*sts.ALICE))


@pytest.mark.rule("JWT-9")
def test_a_session_asks_again_whether_its_key_is_good(sts: Any) -> None:
    asked = provider(sts, recheck_secs=600)
    alice = asked.authenticate(sts.basic(*sts.ALICE))
    assert alice is not None
    assert alice.expires_at is not None
    assert timedelta(seconds=590) < alice.expires_at - datetime.now(UTC) <= timedelta(seconds=600)
    assert asked.refresh(alice).key == alice.key

    del sts.keys[sts.ALICE[0]]
    with pytest.raises(InvalidCredentialsError):
        asked.refresh(alice)


def test_a_key_that_became_somebody_elses_ends_the_session(sts: Any) -> None:
    asked = provider(sts)
    alice = asked.authenticate(sts.basic(*sts.ALICE))
    assert alice is not None
    sts.callers[sts.ALICE[0]] = ("arn:aws:iam::123456789012:user/team/alice", "AIDAOTHER")
    with pytest.raises(InvalidCredentialsError):
        asked.refresh(alice)


def test_the_end_of_a_session_of_a_role_is_the_end_here(sts: Any) -> None:
    asked = provider(sts)
    session = asked.authenticate(sts.basic(sts.SESSION[0], ":".join(sts.SESSION[1:])))
    assert session is not None
    sts.reply = lambda request: sts.refusal("ExpiredToken")
    with pytest.raises(InvalidCredentialsError):
        asked.refresh(session)


@pytest.mark.rule("AUTHN-2")
def test_without_sts_nobody_is_asked_and_production_objects(sts: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        asked = provider(sts, validate_with_sts=False)
    anybody = asked.authenticate(sts.basic(sts.ALICE[0], "wrong"))

    assert anybody is not None
    assert (anybody.roles, anybody.username, sts.requests) == (frozenset(), sts.ALICE[0], [])
    assert "validate_with_sts" in (asked.production_objection or "")
    assert "nobody checks" in caplog.text
    assert provider(sts).production_objection is None
    with pytest.raises(NotSupportedError):
        asked.refresh(anybody)


def test_without_sts_no_token_comes_in(sts: Any) -> None:
    keys = {"web_identity_role_arn": sts.ROLE, "web_identity_issuer": sts.ISSUER, "validate_with_sts": False}
    with pytest.raises(InvalidCredentialsError):
        provider(sts, **keys).authenticate(sts.bearer(sts.jwt()))
