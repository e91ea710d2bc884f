"""Clients of the identity provider in the place of people: one for everybody, or each caller its own."""

from __future__ import annotations

from sqe_auth_oidc.config import ClientCredentialsConfig, ClientPassthroughConfig
from sqe_auth_oidc.endpoint import Refused, TokenEndpoint
from sqe_auth_oidc.provider import GrantedProvider, Idp, Surroundings, identity_maker
from sqe_auth_oidc.verifier import TokenRules
from sqe_core.spi import (
    BasicCredential,
    ErrorCode,
    ExternalError,
    Identity,
    InvalidCredentialsError,
    LoginRequest,
    NoCredential,
)

# Tokens are believed because the configured address handed them out; which signature they have is not looked at.
_UNSIGNED = TokenRules(algorithms=frozenset())


class ClientCredentialsProvider(GrantedProvider):
    """Everybody who presents nothing is one service. A credential is somebody else's to judge.

    `production_mode` refuses it unless `security.allow_shared_service_identity` waives that.
    """

    production_objection = "all users would be one identity"
    production_waiver = "allow_shared_service_identity"

    def __init__(self, config: ClientCredentialsConfig, surroundings: Surroundings) -> None:
        idp = Idp(config, surroundings)
        super().__init__(
            idp,
            TokenEndpoint(idp.client, idp.endpoint(config.token_endpoint, ""), config.client_id, config.client_secret),
            identity_maker(config, surroundings),
            rules=_UNSIGNED,
            keep_refresh_token=False,
            personal=False,
        )
        self._client_id = config.client_id
        self._scope = config.scope

    def authenticate(self, request: LoginRequest) -> Identity | None:
        """Return the one identity, with a token of its own."""
        return self._ask() if isinstance(request.credential, NoCredential) else None

    def refresh(self, identity: Identity) -> Identity:
        """Ask for another token."""
        return self.same_person(identity, self._ask())

    def _ask(self) -> Identity:
        try:
            answer = self._endpoint.grant("client_credentials", scope=self._scope)
        except Refused as refused:
            # The client is SQE's own: whoever logs in did nothing wrong.
            self.log_refused("SQE's own client", refused)
            raise ExternalError(
                "The identity provider refuses SQE's own client", code=ErrorCode.CATALOG_UNAVAILABLE
            ) from None
        return self.identify(answer, fallback_user=self._client_id)


class ClientPassthroughProvider(GrantedProvider):
    """User name and password of a Basic login are the id and the secret of a client (service principals)."""

    def __init__(self, config: ClientPassthroughConfig, surroundings: Surroundings) -> None:
        idp = Idp(config, surroundings)
        super().__init__(
            idp,
            TokenEndpoint(idp.client, idp.endpoint(config.token_url, "")),
            identity_maker(config, surroundings),
            rules=_UNSIGNED,
            keep_refresh_token=False,
        )
        self._scope = config.scope
        self._fallthrough = config.fallthrough_on_reject

    def authenticate(self, request: LoginRequest) -> Identity | None:
        """Ask for a token of the caller's client."""
        credential = request.credential
        if not isinstance(credential, BasicCredential):
            return None
        secret = credential.password.reveal()
        if not secret:
            return self._rejected()
        try:
            answer = self._endpoint.grant(
                "client_credentials", client_id=credential.username, client_secret=secret, scope=self._scope
            )
        except Refused as refused:
            self.log_refused("a client", refused)
            return self._rejected()
        return self.identify(answer, fallback_user=credential.username)

    def _rejected(self) -> Identity | None:
        if self._fallthrough:
            return None
        raise InvalidCredentialsError
