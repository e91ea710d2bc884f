"""`client_credentials`: one client of the identity provider in the place of all people."""

from __future__ import annotations

from sqe_auth_oidc.config import ClientCredentialsConfig
from sqe_auth_oidc.endpoint import Refused
from sqe_auth_oidc.provider import GrantedProvider, Idp, Surroundings
from sqe_core.spi import ErrorCode, ExternalError, Identity, LoginRequest, NoCredential


class ClientCredentialsProvider(GrantedProvider):
    """Everybody who presents nothing is one service. A credential is somebody else's to judge.

    `production_mode` refuses it unless `security.allow_shared_service_identity` waives that.
    """

    production_objection = "all users would be one identity"
    production_waiver = "allow_shared_service_identity"

    def __init__(self, config: ClientCredentialsConfig, surroundings: Surroundings) -> None:
        super().__init__(
            config,
            surroundings,
            Idp(config, surroundings),
            config.token_endpoint,
            keep_refresh_token=False,
            personal=False,
        )
        self._client_id = config.client_id
        self._scope = config.scope

    def authenticate(self, request: LoginRequest) -> Identity | None:
        return self._ask() if isinstance(request.credential, NoCredential) else None

    def refresh(self, identity: Identity) -> Identity:
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
