"""The login provider `anonymous`: everybody is the same user. For development and for one person's machine."""

from __future__ import annotations

from dataclasses import dataclass

from sqe_core.spi.auth import AuthProvider, AuthProviderFactory, BasicCredential, LoginRequest, NoCredential
from sqe_core.spi.factory import PluginContext, setting
from sqe_core.spi.identity import Identity

ISSUER = "sqe:anonymous"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnonymousConfig:
    user: str = setting("anonymous", "the user name that everybody gets")
    roles: tuple[str, ...] = setting((), "the roles that everybody gets")
    any_name: bool = setting(
        False, "whether who sends some user name is this user too; name and password count for nothing"
    )


class AnonymousProvider(AuthProvider):
    """Vouches for clients that present nothing; a credential is somebody else's to judge."""

    production_objection = "the login provider 'anonymous' lets everybody in without a login"

    def __init__(self, name: str, config: AnonymousConfig) -> None:
        self._any_name = config.any_name
        self._identity = Identity(
            issuer=ISSUER,
            subject=config.user,
            username=config.user,
            provider=name,
            roles=frozenset(config.roles),
            personal=False,
        )

    def authenticate(self, request: LoginRequest) -> Identity | None:
        accepted = NoCredential | BasicCredential if self._any_name else NoCredential
        return self._identity if isinstance(request.credential, accepted) else None


class AnonymousFactory(AuthProviderFactory[AnonymousConfig]):
    kind = "anonymous"
    config_type = AnonymousConfig

    def create(self, name: str, config: AnonymousConfig, context: PluginContext) -> AnonymousProvider:
        return AnonymousProvider(name, config)
