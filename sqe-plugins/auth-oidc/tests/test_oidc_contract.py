"""Each kind keeps the contract of login providers."""

from __future__ import annotations

from typing import Any

import pytest
from contract_variants import given
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
from sqe_core.spi import Secret
from sqe_core.testing import AuthProviderContract, PluginContract


class TestPlugin(PluginContract):
    plugin_name = "auth-oidc"


class KindContract(AuthProviderContract):
    """What the factory of a kind makes."""

    kind: str

    factory = given(lambda self: FACTORIES[self.kind])


class TestPassword(KindContract):
    capabilities = frozenset({"rejects", "refresh"})
    kind = "oidc_password"

    config = given(
        lambda idp: PasswordConfig(token_url=idp.token_url, client_id=CLIENT, client_secret=Secret(CLIENT_SECRET))
    )
    accepted = given(lambda: basic("alice", "alice-password-4711"))
    foreign = given(lambda: (NOBODY, bearer("alice-password-4711")))
    rejected = given(lambda: (basic("alice", "wrong"), basic("alice", ""), basic("nobody", "alice-password-4711")))


class TestCheckedPassword(TestPassword):
    config = given(lambda idp: PasswordConfig(issuer=idp.issuer, client_id=CLIENT, client_secret=Secret(CLIENT_SECRET)))


class TestClientCredentials(KindContract):
    capabilities = frozenset({"refresh"})
    kind = "client_credentials"

    config = given(
        lambda idp: ClientCredentialsConfig(
            token_endpoint=idp.token_url, client_id=CLIENT, client_secret=Secret(CLIENT_SECRET)
        )
    )
    accepted = given(lambda: NOBODY)
    foreign = given(lambda: (basic("alice", "alice-password-4711"), bearer("opaque")))


class TestClientPassthrough(KindContract):
    capabilities = frozenset({"rejects"})
    kind = "client_credentials_passthrough"

    config = given(lambda idp: ClientPassthroughConfig(token_url=idp.token_url))
    accepted = given(lambda: basic("etl", "etl-secret-4711"))
    foreign = given(lambda: (NOBODY, bearer("etl-secret-4711")))
    rejected = given(lambda: (basic("etl", "wrong"), basic("etl", ""), basic("nobody", "etl-secret-4711")))


class TestBearer(KindContract):
    capabilities = frozenset({"rejects"})
    kind = "bearer_token"

    config = given(lambda idp: BearerConfig(issuer=idp.issuer, audience=(CLIENT,)))
    accepted = given(lambda idp: bearer(idp.token()))
    foreign = given(
        lambda idp: (
            NOBODY,
            basic("alice", idp.token()),
            bearer("opaque"),
            bearer(idp.token(iss="https://idp.example.com")),
        )
    )
    rejected = given(
        lambda idp: (bearer(idp.token(exp=1)), bearer(idp.token(aud="other")), bearer(idp.token()[:-8] + "AAAAAAAA"))
    )


class TestIntrospectedBearer(TestBearer):
    config = given(
        lambda idp: BearerConfig(
            issuer=idp.issuer,
            audience=(CLIENT,),
            introspect="always",
            client_id=CLIENT,
            client_secret=Secret(CLIENT_SECRET),
        )
    )
    accepted = given(lambda: bearer("opaque-of-alice"))
    foreign = given(lambda idp: (NOBODY, basic("alice", idp.token()), bearer(idp.token(iss="https://idp.example.com"))))
    rejected = given(lambda idp: (bearer("opaque-of-nobody"), bearer(idp.token(exp=1))))


class TestExchange(KindContract):
    capabilities = frozenset({"rejects", "refresh"})
    kind = "token_exchange"

    @pytest.fixture
    def config(self, idp: Any) -> ExchangeConfig:
        idp.exchange_refreshes = True
        return ExchangeConfig(
            issuer=idp.issuer, client_id=CLIENT, client_secret=Secret(CLIENT_SECRET), audience=(CLIENT,)
        )

    accepted = given(lambda: bearer("opaque-of-alice"))
    foreign = given(lambda: (NOBODY, basic("alice", "alice-password-4711")))
    rejected = given(lambda: (bearer("opaque-of-nobody"), bearer("a.b.c")))


class TestPassthrough(KindContract):
    kind = "bearer_passthrough"

    config = given(lambda: PassthroughConfig(user="dev", roles=("admin",)))
    accepted = given(lambda: bearer("anything"))
    foreign = given(lambda: (NOBODY, basic("alice", "x")))
