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
from sqe_auth_oidc.plugin import FACTORIES
from sqe_core.spi import AuthProviderFactory, LoginRequest, Secret
from sqe_core.testing import AuthProviderContract, PluginContract


class TestPlugin(PluginContract):
    plugin_name = "auth-oidc"


class KindContract(AuthProviderContract):
    """What the factory of a kind makes."""

    kind: str

    @pytest.fixture
    def factory(self) -> AuthProviderFactory[Any]:
        return FACTORIES[self.kind]


class TestPassword(KindContract):
    capabilities = frozenset({"rejects", "refresh"})
    kind = "oidc_password"

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


class TestClientCredentials(KindContract):
    capabilities = frozenset({"refresh"})
    kind = "client_credentials"

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


class TestClientPassthrough(KindContract):
    capabilities = frozenset({"rejects"})
    kind = "client_credentials_passthrough"

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


class TestBearer(KindContract):
    capabilities = frozenset({"rejects"})
    kind = "bearer_token"

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


class TestExchange(KindContract):
    capabilities = frozenset({"rejects", "refresh"})
    kind = "token_exchange"

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


class TestPassthrough(KindContract):
    kind = "bearer_passthrough"

    @pytest.fixture
    def config(self) -> PassthroughConfig:
        return PassthroughConfig(user="dev", roles=("admin",))

    @pytest.fixture
    def accepted(self) -> LoginRequest:
        return bearer("anything")

    @pytest.fixture
    def foreign(self) -> Sequence[LoginRequest]:
        return NOBODY, basic("alice", "x")
