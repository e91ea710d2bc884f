"""`oidc_password`: user name and password are sent to the identity provider, which answers with the user's tokens."""

from __future__ import annotations

from sqe_auth_oidc.config import PasswordConfig
from sqe_auth_oidc.endpoint import Refused, TokenEndpoint
from sqe_auth_oidc.provider import GrantedProvider, Idp, Surroundings, identity_maker, token_rules
from sqe_core.spi import BasicCredential, Identity, InvalidCredentialsError, LoginRequest


class PasswordProvider(GrantedProvider):
    """Judges Basic logins (RFC 6749 section 4.3).

    `production_mode` refuses it unless `security.allow_password_grant` waives that: SQE sees everybody's password, and
    second factors are gone around.
    """

    production_objection = "people's passwords would pass through this server"
    production_waiver = "allow_password_grant"

    def __init__(self, config: PasswordConfig, surroundings: Surroundings) -> None:
        idp = Idp(config, surroundings, issuer=config.issuer)
        rules = token_rules(config)
        super().__init__(
            idp,
            TokenEndpoint(
                idp.client, idp.endpoint(config.token_url, "token_endpoint"), config.client_id, config.client_secret
            ),
            identity_maker(config, surroundings),
            rules=rules,
            verifier=idp.verifier(config, rules),
            keep_refresh_token=config.refresh,
        )
        self._scope = " ".join(config.scopes) or None
        self._fallthrough = config.fallthrough_on_reject

    def authenticate(self, request: LoginRequest) -> Identity | None:
        """Ask for the user's tokens."""
        credential = request.credential
        if not isinstance(credential, BasicCredential):
            return None
        password = credential.password.reveal()
        if not password:
            # Some directories take a login without a password for an anonymous one, and say yes.
            return self._rejected()
        try:
            answer = self._endpoint.grant(
                "password", username=credential.username, password=password, scope=self._scope
            )
        except Refused as refused:
            self.log_refused("a password", refused)
            return self._rejected()
        return self.identify(answer, fallback_user=credential.username)

    def _rejected(self) -> Identity | None:
        """What the identity provider does not know is the next provider's to judge, or nobody's."""
        if self._fallthrough:
            return None
        raise InvalidCredentialsError
