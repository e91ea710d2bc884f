"""Bearers that clients bring: checked here, or not at all."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqe_auth_oidc.compact import BadToken, looks_signed, read_compact
from sqe_auth_oidc.config import BearerConfig, PassthroughConfig
from sqe_auth_oidc.endpoint import TokenEndpoint
from sqe_auth_oidc.introspection import Introspection
from sqe_auth_oidc.provider import Idp, Surroundings, identity_maker, token_rules
from sqe_auth_oidc.verifier import judge_claims
from sqe_core.spi import AuthProvider, BearerCredential, Identity, InvalidCredentialsError, LoginRequest, Secret

_log = logging.getLogger("sqe_core.auth_oidc")


class BearerProvider(AuthProvider):
    """`bearer_token`: signed tokens of one issuer, and opaque ones when the issuer can be asked about them.

    A signed token of another issuer is left to the next provider, so that several issuers share a listener.
    """

    def __init__(self, config: BearerConfig, surroundings: Surroundings) -> None:
        self._name = surroundings.name
        self._clock = surroundings.context.clock
        self._issuer = config.issuer
        missing = " and ".join(key for key in ("issuer", "audience") if not getattr(config, key))
        if missing:
            # Tokens that were made for another service, or by anybody.
            self.production_objection = f"`bearer_token` needs the {missing} of its tokens"
        plain = config.tls_skip_verify or config.allow_insecure_jwks
        self._idp = Idp(config, surroundings, issuer=config.issuer, plain_http=plain)
        self._rules = token_rules(config, id_tokens=config.accept_id_tokens)
        self._verifier = self._idp.verifier(config, self._rules)
        self._maker = identity_maker(config, surroundings)
        self._asks_always = config.introspect == "always"
        self._introspection: Introspection | None = None
        if config.introspect is not None:
            asked = self._idp.endpoint(config.introspection_url, "introspection_endpoint")
            self._introspection = Introspection(
                TokenEndpoint(self._idp.client, asked, config.client_id, config.client_secret),
                asked,
                monotonic=surroundings.monotonic,
                cache_secs=config.introspection_cache_secs,
                grace_secs=config.introspection_grace_secs,
            )

    def authenticate(self, request: LoginRequest) -> Identity | None:
        credential = request.credential
        if not isinstance(credential, BearerCredential):
            return None
        token = credential.token
        signed = looks_signed(token.reveal())
        try:
            if signed and self._verifier is not None:
                if self._is_of_another(token):
                    return None
                accepted = self._verifier.verify(token.reveal())
                if self._asks_always:
                    self._ask(token)
                return self._identity(accepted.claims, accepted.expires_at, token)
            if self._introspection is None:
                return None
            claims = self._ask(token)
            return self._identity(claims, judge_claims(claims, self._rules, self._clock.now()), token)
        except BadToken as error:
            _log.info("login provider %s: a bearer %s", self._name, error)
            raise InvalidCredentialsError(reason=f"the bearer {error}") from None

    def is_revoked(self, identity: Identity) -> bool:
        """Whether the key was withdrawn that vouches for the token, or its issuer does not stand by it any more."""
        token = identity.access_token
        if token is None:
            return True
        signed = self._verifier is not None and looks_signed(token.reveal())
        if signed and self._verifier is not None and self._verifier.is_withdrawn(token.reveal()):
            return True
        if self._introspection is None or (signed and not self._asks_always):
            return False
        return self._introspection.ask(token) is None

    def check(self) -> None:
        if self._verifier is not None:
            self._verifier.check()
        elif self._idp.metadata is not None:
            self._idp.metadata.endpoint("introspection_endpoint")

    def close(self) -> None:
        self._idp.close()

    def _is_of_another(self, token: Secret) -> bool:
        """Whether a token names another issuer. What is no token at all is this provider's to refuse."""
        if self._issuer is None:
            return False
        issuer = read_compact(token.reveal(), check_signature=False).claims.get("iss")
        return isinstance(issuer, str) and issuer != self._issuer

    def _ask(self, token: Secret) -> Mapping[str, Any]:
        assert self._introspection is not None
        claims = self._introspection.ask(token)
        if claims is None:
            raise BadToken("does not count any more, its issuer says")
        return claims

    def _identity(self, claims: Mapping[str, Any], expires_at: datetime, token: Secret) -> Identity:
        return self._maker.make(claims, issuer=claims["iss"], expires_at=expires_at, access_token=token)


class PassthroughProvider(AuthProvider):
    """`bearer_passthrough`: any bearer, unchecked; the catalog may look at it. For development."""

    production_objection = "the login provider 'bearer_passthrough' lets everybody in with any token"

    def __init__(self, config: PassthroughConfig, surroundings: Surroundings) -> None:
        self._name = surroundings.name
        self._user = config.user
        self._roles = frozenset(config.roles)

    def authenticate(self, request: LoginRequest) -> Identity | None:
        if not isinstance(request.credential, BearerCredential):
            return None
        return Identity(
            issuer=f"sqe:{self._name}",
            subject=self._user,
            username=self._user,
            provider=self._name,
            roles=self._roles,
            access_token=request.credential.token,
            personal=False,
        )
