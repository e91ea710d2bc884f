"""What this distribution brings.

`sqe config check` needs the keys and neither the HTTP client nor the cryptography, so those are imported when a
provider is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from sqe_auth_oidc import config as kinds
from sqe_core.spi import AuthProvider, AuthProviderFactory, PluginContext, SqePlugin, StartupContext, hookimpl


class _Factory(AuthProviderFactory[Any]):
    def __init__(self, kind: str, config_type: type[Any], maker: str) -> None:
        self.kind = kind
        self.config_type = config_type
        self._maker = maker

    def create(self, name: str, config: Any, context: PluginContext) -> AuthProvider:
        from sqe_auth_oidc.provider import Surroundings

        module, _, made = self._maker.partition(":")
        provider: AuthProvider = getattr(import_module(f"sqe_auth_oidc.{module}"), made)(
            config, Surroundings(name=name, context=context)
        )
        return provider


FACTORIES = {
    factory.kind: factory
    for factory in (
        _Factory("oidc_password", kinds.PasswordConfig, "basic:PasswordProvider"),
        _Factory("client_credentials", kinds.ClientCredentialsConfig, "service:ClientCredentialsProvider"),
        _Factory("client_credentials_passthrough", kinds.ClientPassthroughConfig, "basic:ClientProvider"),
        _Factory("bearer_token", kinds.BearerConfig, "bearer:BearerProvider"),
        _Factory("token_exchange", kinds.ExchangeConfig, "exchange:ExchangeProvider"),
        _Factory("bearer_passthrough", kinds.PassthroughConfig, "bearer:PassthroughProvider"),
        _Factory("external", kinds.ExternalConfig, "external:ExternalProvider"),
    )
}


class OidcPlugin(SqePlugin):
    @hookimpl
    def sqe_provide_auth_providers(self, context: StartupContext) -> Sequence[AuthProviderFactory[Any]]:
        return tuple(FACTORIES.values())
