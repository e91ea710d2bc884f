"""`token_exchange`: a bearer of any form is exchanged for a token of SQE's at the identity provider (RFC 8693)."""

from __future__ import annotations

from sqe_auth_oidc.config import ExchangeConfig
from sqe_auth_oidc.endpoint import Refused
from sqe_auth_oidc.provider import GrantedProvider, Idp, Surroundings
from sqe_core.spi import BearerCredential, Identity, InvalidCredentialsError, LoginRequest

_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
_ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105 - a name


class ExchangeProvider(GrantedProvider):
    """Takes every bearer, so it comes last in a chain; the identity provider decides which ones are exchanged."""

    def __init__(self, config: ExchangeConfig, surroundings: Surroundings) -> None:
        super().__init__(config, surroundings, Idp(config, surroundings, issuer=config.issuer), config.token_url)
        self._audience = config.audience[0] if config.audience else None
        self._scope = config.scope

    def authenticate(self, request: LoginRequest) -> Identity | None:
        if not isinstance(request.credential, BearerCredential):
            return None
        try:
            answer = self._endpoint.grant(
                _EXCHANGE,
                subject_token=request.credential.token.reveal(),
                subject_token_type=_ACCESS_TOKEN,
                requested_token_type=_ACCESS_TOKEN,
                audience=self._audience,
                scope=self._scope,
            )
        except Refused as refused:
            self.log_refused("an exchange", refused)
            raise InvalidCredentialsError from None
        return self.identify(answer)
