"""Basic logins that are sent on to the identity provider: as a person's user name and password, or as a client."""

from __future__ import annotations

from abc import abstractmethod

from sqe_auth_oidc.config import ClientPassthroughConfig, PasswordConfig
from sqe_auth_oidc.endpoint import Refused, TokenAnswer
from sqe_auth_oidc.provider import GrantedProvider, Idp, Surroundings
from sqe_core.spi import BasicCredential, Identity, InvalidCredentialsError, LoginRequest


class _BasicProvider(GrantedProvider):
    """Asks for tokens with what a Basic login presents."""

    what: str
    fallthrough: bool

    @abstractmethod
    def grant(self, name: str, secret: str) -> TokenAnswer:
        """Ask for tokens. Raises Refused."""

    def authenticate(self, request: LoginRequest) -> Identity | None:
        """Ask for tokens; what the identity provider does not know is the next provider's to judge, or nobody's."""
        credential = request.credential
        if not isinstance(credential, BasicCredential):
            return None
        # Some directories take a login without a password for an anonymous one, and say yes.
        if secret := credential.password.reveal():
            try:
                return self.identify(self.grant(credential.username, secret), fallback_user=credential.username)
            except Refused as refused:
                self.log_refused(self.what, refused)
        if self.fallthrough:
            return None
        raise InvalidCredentialsError


class PasswordProvider(_BasicProvider):
    """`oidc_password`: people's user names and passwords (RFC 6749 section 4.3).

    `production_mode` refuses it unless `security.allow_password_grant` waives that: SQE sees everybody's password, and
    second factors are gone around.
    """

    production_objection = "people's passwords would pass through this server"
    production_waiver = "allow_password_grant"
    what = "a password"

    def __init__(self, config: PasswordConfig, surroundings: Surroundings) -> None:
        idp = Idp(config, surroundings, issuer=config.issuer)
        super().__init__(config, surroundings, idp, config.token_url, keep_refresh_token=config.refresh)
        self._scope = " ".join(config.scopes) or None
        self.fallthrough = config.fallthrough_on_reject

    def grant(self, name: str, secret: str) -> TokenAnswer:
        return self._endpoint.grant("password", username=name, password=secret, scope=self._scope)


class ClientProvider(_BasicProvider):
    """User name and password of a Basic login are the id and the secret of a client (service principals)."""

    what = "a client"

    def __init__(self, config: ClientPassthroughConfig, surroundings: Surroundings) -> None:
        super().__init__(config, surroundings, Idp(config, surroundings), config.token_url, keep_refresh_token=False)
        self._scope = config.scope
        self.fallthrough = config.fallthrough_on_reject

    def grant(self, name: str, secret: str) -> TokenAnswer:
        return self._endpoint.grant("client_credentials", client_id=name, client_secret=secret, scope=self._scope)
