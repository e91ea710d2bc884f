"""Each kind keeps the contract of login providers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from oidc_idp import CLIENT, CLIENT_SECRET, NOBODY, basic, bearer

from sqe_auth_oidc.config import (
    BearerConfig,
    ClientCredentialsConfig,
    ClientPassthroughConfig,
    ExchangeConfig,
    PassthroughConfig,
    PasswordConfig,
)
from sqe_auth_oidc.plugin import (
    BearerFactory,
    ClientCredentialsFactory,
    ClientPassthroughFactory,
    ExchangeFactory,
    PassthroughFactory,
    PasswordFactory,
)
from sqe_core.spi import LoginRequest, Secret
from sqe_core.testing import AuthProviderContract, PluginContract


class TestPlugin(PluginContract):
    plugin_name = "auth-oidc"


class TestPassword(AuthProviderContract):
    capabilities = frozenset({"rejects", "refresh"})

    @pytest.fixture
    def factory(self) -> PasswordFactory:
        return PasswordFactory()

    @pytest.fixture
    def config(self, idp: Any) -> PasswordConfig:
        return PasswordConfig(token_url=idp.token_url, client_id=CLIENT, client_secret=Secret(CLIENT_SECRET))

    @pytest.fixture
    def accepted(self) -> LoginRequest:
        return basic("alice", "alice-password-4711")

    @pytest.fixture
    def foreign(self) -> Sequence[LoginRequest]:
        return NOBODY, bearer("alice-password-4711")

    @pytest.fixture
    def rejected(self) -> Sequence[LoginRequest]:
        return basic("alice", "wrong"), basic("alice", ""), basic("nobody", "alice-password-4711")


class TestCheckedPassword(TestPassword):
    @pytest.fixture
    def config(self, idp: Any) -> PasswordConfig:
        return PasswordConfig(issuer=idp.issuer, client_id=CLIENT, client_secret=Secret(CLIENT_SECRET))


class TestClientCredentials(AuthProviderContract):
    capabilities = frozenset({"refresh"})

    @pytest.fixture
    def factory(self) -> ClientCredentialsFactory:
        return ClientCredentialsFactory()

    @pytest.fixture
    def config(self, idp: Any) -> ClientCredentialsConfig:
        return ClientCredentialsConfig(
            token_endpoint=idp.token_url, client_id=CLIENT, client_secret=Secret(CLIENT_SECRET)
        )

    @pytest.fixture
    def accepted(self) -> LoginRequest:
        return NOBODY

    @pytest.fixture
    def foreign(self) -> Sequence[LoginRequest]:
        return basic("alice", "alice-password-4711"), bearer("opaque")


class TestClientPassthrough(AuthProviderContract):
    capabilities = frozenset({"rejects"})

    @pytest.fixture
    def factory(self) -> ClientPassthroughFactory:
        return ClientPassthroughFactory()

    @pytest.fixture
    def config(self, idp: Any) -> ClientPassthroughConfig:
        return ClientPassthroughConfig(token_url=idp.token_url)

    @pytest.fixture
    def accepted(self) -> LoginRequest:
        return basic("etl", "etl-secret-4711")

    @pytest.fixture
    def foreign(self) -> Sequence[LoginRequest]:
        return NOBODY, bearer("etl-secret-4711")

    @pytest.fixture
    def rejected(self) -> Sequence[LoginRequest]:
        return basic("etl", "wrong"), basic("etl", ""), basic("nobody", "etl-secret-4711")


class TestBearer(AuthProviderContract):
    capabilities = frozenset({"rejects"})

    @pytest.fixture
    def factory(self) -> BearerFactory:
        return BearerFactory()

    @pytest.fixture
    def config(self, idp: Any) -> BearerConfig:
        return BearerConfig(issuer=idp.issuer, audience=(CLIENT,))

    @pytest.fixture
    def accepted(self, idp: Any) -> LoginRequest:
        return bearer(idp.token())

    @pytest.fixture
    def foreign(self, idp: Any) -> Sequence[LoginRequest]:
        return NOBODY, basic("alice", idp.token()), bearer("opaque"), bearer(idp.token(iss="https://idp.example.com"))

    @pytest.fixture
    def rejected(self, idp: Any) -> Sequence[LoginRequest]:
        return bearer(idp.token(exp=1)), bearer(idp.token(aud="other")), bearer(idp.token()[:-8] + "AAAAAAAA")


class TestIntrospectedBearer(TestBearer):
    @pytest.fixture
    def config(self, idp: Any) -> BearerConfig:
        return BearerConfig(
            issuer=idp.issuer,
            audience=(CLIENT,),
            introspect="always",
            client_id=CLIENT,
            client_secret=Secret(CLIENT_SECRET),
        )

    @pytest.fixture
    def accepted(self) -> LoginRequest:
        return bearer("opaque-of-alice")

    @pytest.fixture
    def foreign(self, idp: Any) -> Sequence[LoginRequest]:
        return NOBODY, basic("alice", idp.token()), bearer(idp.token(iss="https://idp.example.com"))

    @pytest.fixture
    def rejected(self, idp: Any) -> Sequence[LoginRequest]:
        return bearer("opaque-of-nobody"), bearer(idp.token(exp=1))


class TestExchange(AuthProviderContract):
    capabilities = frozenset({"rejects", "refresh"})

    @pytest.fixture
    def factory(self) -> ExchangeFactory:
        return ExchangeFactory()

    @pytest.fixture
    def config(self, idp: Any) -> ExchangeConfig:
        idp.exchange_refreshes = True
        return ExchangeConfig(
            issuer=idp.issuer, client_id=CLIENT, client_secret=Secret(CLIENT_SECRET), audience=(CLIENT,)
        )

    @pytest.fixture
    def accepted(self) -> LoginRequest:
        return bearer("opaque-of-alice")

    @pytest.fixture
    def foreign(self) -> Sequence[LoginRequest]:
        return NOBODY, basic("alice", "alice-password-4711")

    @pytest.fixture
    def rejected(self) -> Sequence[LoginRequest]:
        return bearer("opaque-of-nobody"), bearer("a.b.c")


class TestPassthrough(AuthProviderContract):
    @pytest.fixture
    def factory(self) -> PassthroughFactory:
        return PassthroughFactory()

    @pytest.fixture
    def config(self) -> PassthroughConfig:
        return PassthroughConfig(user="dev", roles=("admin",))

    @pytest.fixture
    def accepted(self) -> LoginRequest:
        return bearer("anything")

    @pytest.fixture
    def foreign(self) -> Sequence[LoginRequest]:
        return NOBODY, basic("alice", "x")
