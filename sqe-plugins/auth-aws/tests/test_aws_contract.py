"""Logins with AWS keys keep the contract of login providers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from contract_variants import given

from sqe_auth_aws.plugin import AwsFactory
from sqe_core.spi import AwsCredential, CertificateCredential, LoginRequest, NoCredential, Secret
from sqe_core.testing import AuthProviderContract, PluginContract


class TestPlugin(PluginContract):
    plugin_name = "auth-aws"


class TestKeys(AuthProviderContract):
    capabilities = frozenset({"rejects", "refresh"})

    factory = given(AwsFactory)
    config = given(lambda sts: sts.config(web_identity_role_arn=sts.ROLE, web_identity_issuer=sts.ISSUER))
    accepted = given(lambda sts: sts.basic(*sts.ALICE))
    foreign = given(
        lambda sts: (
            sts.login(NoCredential()),
            sts.login(CertificateCredential(der=b"")),
            sts.basic("alice", sts.ALICE[1]),
            sts.basic(sts.ALICE[0].lower(), sts.ALICE[1]),
            sts.basic(f" {sts.ALICE[0]}", sts.ALICE[1]),
            sts.basic("AKIA", sts.ALICE[1]),
            sts.bearer(sts.ALICE[0]),
            sts.bearer(sts.jwt(iss="https://idp.example.com.evil")),
        )
    )

    @pytest.fixture
    def rejected(self, sts: Any) -> Sequence[LoginRequest]:
        key_id, secret, token = sts.SESSION
        return (
            sts.basic(sts.ALICE[0], "wrong"),
            sts.basic(sts.ALICE[0], ""),
            sts.basic(sts.ALICE[0], f"{sts.ALICE[1]}:{token}"),
            sts.basic("AKIANOBODY0000000001", sts.ALICE[1]),
            sts.basic(key_id, secret),
            sts.basic(key_id, f"{secret}:other"),
            sts.basic(key_id, f"{secret}:"),
            sts.login(AwsCredential(access_key_id="alice", secret_access_key=Secret(secret))),
            sts.login(AwsCredential(access_key_id=sts.ALICE[0], secret_access_key=Secret("wrong"))),
            sts.bearer(sts.jwt(exp=1)),
            sts.bearer(sts.jwt(exp="tomorrow")),
        )


class TestWebIdentity(TestKeys):
    capabilities = frozenset({"rejects"})

    accepted = given(lambda sts: sts.bearer(sts.jwt()))
