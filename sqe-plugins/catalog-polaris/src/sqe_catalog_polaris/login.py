"""How requests to a catalog are signed: by the user's own token, or, where the configuration says so, as a service."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Literal

from sqe_catalog_polaris.config import RestConfig
from sqe_catalog_polaris.signature import Signer
from sqe_catalog_polaris.tokens import TokenEndpoint, fingerprint
from sqe_core.spi import ErrorCode, Identity, PluginContext, Secret, UserError

_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
_ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105 - the name of a kind


class Login(ABC):
    identity_mode: Literal["user", "shared"] = "shared"
    signs_requests = False
    """Whether requests are signed with AWS keys."""

    @abstractmethod
    def properties(self, identity: Identity) -> Mapping[str, str]:
        """Return the properties that make a mount log in. A property `token` is kept apart by the core."""

    @abstractmethod
    def headers(self, identity: Identity, method: str, url: str) -> Mapping[str, str]:
        """Return the headers of one request."""

    def key(self, identity: Identity) -> str:
        """Name whose answers these are, for caches: nothing that one user loaded serves another."""
        return "everybody"

    def close(self) -> None:  # noqa: B027 - most have nothing
        """Forget what is secret."""


class BearerLogin(Login):
    @abstractmethod
    def token(self, identity: Identity) -> Secret:
        """Return the token of a request of this user."""

    def properties(self, identity: Identity) -> Mapping[str, str]:
        """`token` alone: with `credential` beside it Iceberg's client becomes the service account (testbed §14)."""
        return {
            "rest.auth.type": "oauth2",
            "token": self.token(identity).reveal(),
            # It would post the user's token to the catalog; SQE renews it.
            "token-refresh-enabled": "false",
        }

    def headers(self, identity: Identity, method: str, url: str) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {self.token(identity).reveal()}"}


class UserLogin(BearerLogin):
    """The user's own token (AUTHN-3)."""

    identity_mode = "user"

    def token(self, identity: Identity) -> Secret:
        """Return it; who has none is nobody else."""
        if not identity.access_token:
            raise UserError(
                "The catalog needs the token of a login, and this session has none",
                code=ErrorCode.AUTHENTICATION_FAILED,
                hint="log in with a token, or set [catalog.auth] for this catalog",
            )
        return identity.access_token

    def key(self, identity: Identity) -> str:
        """A token is its user's."""
        return fingerprint(self.token(identity))

    def forget(self, identity: Identity) -> None:
        """Forget what this token earned."""


class ExchangeLogin(UserLogin):
    """The user's token, exchanged for one that is meant for this catalog (RFC 8693)."""

    def __init__(self, config: RestConfig, context: PluginContext) -> None:
        self._config = config
        self._endpoint = TokenEndpoint(config, context)

    def token(self, identity: Identity) -> Secret:
        """Return the exchanged token, which is still this user's."""
        subject = super().token(identity)
        auth = self._config.auth
        form: dict[str, Secret | str] = {
            "grant_type": _EXCHANGE,
            "subject_token": subject,
            "subject_token_type": _ACCESS_TOKEN,
            "requested_token_type": _ACCESS_TOKEN,
            "client_id": auth.client_id or "",
        }
        if auth.client_secret:
            form["client_secret"] = auth.client_secret
        if auth.audience:
            form["audience"] = auth.audience
        if auth.scope:
            form["scope"] = auth.scope
        return self._endpoint.token(fingerprint(subject), form)

    def key(self, identity: Identity) -> str:
        """The user's own token says who it is, however often it is exchanged."""
        return fingerprint(super().token(identity))

    def forget(self, identity: Identity) -> None:
        self._endpoint.forget(self.key(identity))

    def close(self) -> None:
        self._endpoint.close()


class StaticLogin(BearerLogin):
    """One token of the configuration, or of a secret of ATTACH."""

    def __init__(self, token: Secret) -> None:
        self._token = token

    def token(self, identity: Identity) -> Secret:
        return self._token


class ServiceLogin(BearerLogin):
    """A service principal of the configuration."""

    def __init__(self, config: RestConfig, context: PluginContext) -> None:
        self._config = config
        self._endpoint = TokenEndpoint(config, context)

    def token(self, identity: Identity) -> Secret:
        auth = self._config.auth
        form: dict[str, Secret | str] = {
            "grant_type": "client_credentials",
            "client_id": auth.client_id or "",
            "client_secret": auth.client_secret or "",
        }
        if self._config.scope:
            form["scope"] = self._config.scope
        return self._endpoint.token("service", form)

    def close(self) -> None:
        self._endpoint.close()


class NoLogin(Login):
    """A catalog that asks nobody who they are."""

    def properties(self, identity: Identity) -> Mapping[str, str]:
        """Switch authentication off, so that nothing is sent by accident."""
        return {"rest.auth.type": "none"}

    def headers(self, identity: Identity, method: str, url: str) -> Mapping[str, str]:
        return {}


class AwsLogin(Login):
    """Requests signed with AWS keys (SigV4): those of the configuration, or of the machine."""

    signs_requests = True

    def __init__(self, config: RestConfig) -> None:
        auth = config.auth
        self._auth = auth
        self._signer: Signer | None = None
        if auth.access_key and auth.secret_key:
            self._signer = Signer(
                access_key=auth.access_key,
                secret_key=auth.secret_key,
                session_token=auth.session_token,
                region=auth.region or "",
                service=auth.service,
            )

    @property
    def signs(self) -> bool:
        """Whether SQE itself can sign; the machine's own keys are known to the engine only."""
        return self._signer is not None

    def properties(self, identity: Identity) -> Mapping[str, str]:
        """Let Iceberg's client sign, and nothing log in beneath."""
        found = {
            "rest.auth.type": "sigv4",
            "rest.auth.sigv4.delegate-auth-type": "none",
            "rest.signing-region": self._auth.region or "",
            "rest.signing-name": self._auth.service,
        }
        if self._auth.access_key and self._auth.secret_key:
            found["rest.access-key-id"] = self._auth.access_key
            found["rest.secret-access-key"] = self._auth.secret_key.reveal()
        if self._auth.session_token:
            found["rest.session-token"] = self._auth.session_token.reveal()
        return found

    def headers(self, identity: Identity, method: str, url: str) -> Mapping[str, str]:
        return self._signer.headers(method, url) if self._signer is not None else {}


def make_login(config: RestConfig, context: PluginContext) -> Login:
    auth = config.auth
    match auth.type:
        case "session_bearer":
            return UserLogin()
        case "token_exchange":
            return ExchangeLogin(config, context)
        case "static":
            return StaticLogin(auth.token or Secret(""))
        case "client_credentials":
            return ServiceLogin(config, context)
        case "anonymous":
            return NoLogin()
        case "aws":
            return AwsLogin(config)
