"""The issuer signs with a new key, and the keys were fetched a moment ago."""

from __future__ import annotations

from typing import Any

import pytest
from oidc_idp import CLIENT, CLIENT_SECRET, FakeIdp, basic, bearer, public_jwk

from sqe_auth_oidc.basic import PasswordProvider
from sqe_auth_oidc.bearer import BearerProvider
from sqe_auth_oidc.config import BearerConfig, PasswordConfig
from sqe_core.spi import InvalidCredentialsError, Secret


def rotate(idp: FakeIdp) -> None:
    idp.keys = [*idp.keys, public_jwk("es256", alg="ES256")]
    made = idp.token
    idp.token = lambda user="alice", **more: made(user, **{"kid": "es256", "alg": "ES256", **more})


@pytest.mark.rule("JWT-8")
def test_tokens_of_the_new_key_that_the_issuer_hands_out_count_at_once(make: Any, idp: FakeIdp) -> None:
    config = PasswordConfig(
        issuer=idp.issuer, client_id=CLIENT, client_secret=Secret(CLIENT_SECRET), algorithms=("RS256", "ES256")
    )
    provider = make(PasswordProvider, config)
    before = provider.authenticate(basic("alice", "alice-password-4711"))
    rotate(idp)

    renewed = provider.refresh(before)

    assert renewed.key == before.key
    assert provider.authenticate(basic("alice", "alice-password-4711")) is not None
    assert not provider.is_revoked(renewed)
    assert idp.asked("/certs") == 2


def test_a_stranger_makes_nobody_fetch_keys(make: Any, idp: FakeIdp) -> None:
    provider = make(
        BearerProvider, BearerConfig(issuer=idp.issuer, audience=("sqe-client",), algorithms=("RS256", "ES256"))
    )
    provider.authenticate(bearer(idp.token()))
    rotate(idp)
    for _ in range(3):
        with pytest.raises(InvalidCredentialsError):
            provider.authenticate(bearer(idp.token()))
    assert idp.asked("/certs") == 1
