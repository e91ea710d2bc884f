"""What this distribution brings.

`sqe config check` needs the keys and neither the HTTP client nor the cryptography, so those are imported when a
provider is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqe_auth_oidc.config import (
    BearerConfig,
    ClientCredentialsConfig,
    ClientPassthroughConfig,
    ExchangeConfig,
    ExternalConfig,
    PassthroughConfig,
    PasswordConfig,
)
from sqe_core.spi import AuthProvider, AuthProviderFactory, PluginContext, SqePlugin, StartupContext, hookimpl


class PasswordFactory(AuthProviderFactory[PasswordConfig]):
    """Makes the provider of `type = "oidc_password"`."""

    kind = "oidc_password"
    config_type = PasswordConfig

    def create(self, name: str, config: PasswordConfig, context: PluginContext) -> AuthProvider:
        """Make a provider."""
        from sqe_auth_oidc.password import PasswordProvider
        from sqe_auth_oidc.provider import Surroundings

        return PasswordProvider(config, Surroundings(name=name, context=context))


class ClientCredentialsFactory(AuthProviderFactory[ClientCredentialsConfig]):
    """Makes the provider of `type = "client_credentials"`."""

    kind = "client_credentials"
    config_type = ClientCredentialsConfig

    def create(self, name: str, config: ClientCredentialsConfig, context: PluginContext) -> AuthProvider:
        """Make a provider."""
        from sqe_auth_oidc.provider import Surroundings
        from sqe_auth_oidc.service import ClientCredentialsProvider

        return ClientCredentialsProvider(config, Surroundings(name=name, context=context))


class ClientPassthroughFactory(AuthProviderFactory[ClientPassthroughConfig]):
    """Makes the provider of `type = "client_credentials_passthrough"`."""

    kind = "client_credentials_passthrough"
    config_type = ClientPassthroughConfig

    def create(self, name: str, config: ClientPassthroughConfig, context: PluginContext) -> AuthProvider:
        """Make a provider."""
        from sqe_auth_oidc.provider import Surroundings
        from sqe_auth_oidc.service import ClientPassthroughProvider

        return ClientPassthroughProvider(config, Surroundings(name=name, context=context))


class BearerFactory(AuthProviderFactory[BearerConfig]):
    """Makes the provider of `type = "bearer_token"`."""

    kind = "bearer_token"
    config_type = BearerConfig

    def create(self, name: str, config: BearerConfig, context: PluginContext) -> AuthProvider:
        """Make a provider."""
        from sqe_auth_oidc.bearer import BearerProvider
        from sqe_auth_oidc.provider import Surroundings

        return BearerProvider(config, Surroundings(name=name, context=context))


class ExchangeFactory(AuthProviderFactory[ExchangeConfig]):
    """Makes the provider of `type = "token_exchange"`."""

    kind = "token_exchange"
    config_type = ExchangeConfig

    def create(self, name: str, config: ExchangeConfig, context: PluginContext) -> AuthProvider:
        """Make a provider."""
        from sqe_auth_oidc.exchange import ExchangeProvider
        from sqe_auth_oidc.provider import Surroundings

        return ExchangeProvider(config, Surroundings(name=name, context=context))


class PassthroughFactory(AuthProviderFactory[PassthroughConfig]):
    """Makes the provider of `type = "bearer_passthrough"`."""

    kind = "bearer_passthrough"
    config_type = PassthroughConfig

    def create(self, name: str, config: PassthroughConfig, context: PluginContext) -> AuthProvider:
        """Make a provider."""
        from sqe_auth_oidc.bearer import PassthroughProvider

        return PassthroughProvider(name, config)


class ExternalFactory(AuthProviderFactory[ExternalConfig]):
    """Makes the provider of `[auth.external]`."""

    kind = "external"
    config_type = ExternalConfig

    def create(self, name: str, config: ExternalConfig, context: PluginContext) -> AuthProvider:
        """Make a provider."""
        from sqe_auth_oidc.external import ExternalProvider
        from sqe_auth_oidc.provider import Surroundings

        return ExternalProvider(config, Surroundings(name=name, context=context))


class OidcPlugin(SqePlugin):
    """OpenID Connect and OAuth 2."""

    @hookimpl
    def sqe_provide_auth_providers(self, context: StartupContext) -> Sequence[AuthProviderFactory[Any]]:
        """Contribute the kinds that an identity provider judges (docs/auth-oidc.md)."""
        return (
            PasswordFactory(),
            ClientCredentialsFactory(),
            ClientPassthroughFactory(),
            BearerFactory(),
            ExchangeFactory(),
            PassthroughFactory(),
            ExternalFactory(),
        )
