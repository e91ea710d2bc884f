"""Login with a signed badge: `user:role,role:signature`."""

from __future__ import annotations

import hashlib
import hmac
import re

from acme_sqe.config import BadgeConfig
from sqe_core.spi import (
    AuthProvider,
    AuthProviderFactory,
    BearerCredential,
    Identity,
    InvalidCredentialsError,
    LoginRequest,
    PluginContext,
    Secret,
)

_BADGE = re.compile(r"(?P<user>\w{1,64}):(?P<roles>[\w,]{0,256}):(?P<signature>[0-9a-f]{64})", re.ASCII)


def sign_badge(key: Secret, user: str, *roles: str) -> Secret:
    """Write a badge."""
    body = f"{user}:{','.join(roles)}"
    return Secret(f"{body}:{_signature(key, body)}")


def _signature(key: Secret, body: str) -> str:
    return hmac.new(key.reveal().encode(), body.encode(), hashlib.sha256).hexdigest()


class BadgeProvider(AuthProvider):
    """Checks badges."""

    def __init__(self, name: str, config: BadgeConfig) -> None:
        self._name = name
        self._config = config

    def authenticate(self, request: LoginRequest) -> Identity | None:
        """Judge bearer tokens that are badges; everything else is somebody else's."""
        if not isinstance(request.credential, BearerCredential):
            return None
        badge = _BADGE.fullmatch(request.credential.token.reveal())
        if badge is None:
            return None
        signed = _signature(self._config.key, f"{badge['user']}:{badge['roles']}")
        if not hmac.compare_digest(signed, badge["signature"]):
            raise InvalidCredentialsError
        return Identity(
            issuer=self._config.issuer,
            subject=badge["user"],
            username=badge["user"],
            provider=self._name,
            roles=frozenset(role for role in badge["roles"].split(",") if role),
        )


class BadgeFactory(AuthProviderFactory[BadgeConfig]):
    """Makes the provider of `type = "badge"`."""

    kind = "badge"
    config_type = BadgeConfig

    def create(self, name: str, config: BadgeConfig, context: PluginContext) -> BadgeProvider:
        """Make a provider."""
        return BadgeProvider(name, config)
