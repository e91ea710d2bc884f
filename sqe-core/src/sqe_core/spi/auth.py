"""Login: what a client presented, and who vouches for it.

The kind of a credential comes from the transport, never from how it looks (AUTHN-5). Providers are asked in the order
of the configuration; each answers

    Identity                  it is this person
    None                      not my credential, ask the next provider
    InvalidCredentialsError   mine, and bad: nobody else is asked
    any other exception       the login fails, nobody else is asked (AUTHN-4)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from datetime import datetime

from sqe_core.spi.errors import NotSupportedError
from sqe_core.spi.factory import ConfigT, PluginContext, PluginFactory
from sqe_core.spi.identity import Identity, Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class BasicCredential:
    """A user name and a password, from an `Authorization: Basic` header."""

    username: str
    password: Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class BearerCredential:
    """A token, from an `Authorization: Bearer` header."""

    token: Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateCredential:
    """A client certificate whose chain the TLS layer has verified.

    A protocol gives the certificate; the core reads its names, so that login providers have them.

    Args:
        der: the certificate itself, DER-encoded.
        subject: pairs of attribute name and value, for example `("commonName", "etl")`, in certificate order.
        issuer: the same for the issuing authority.
        alternative_names: pairs of type and value, for example `("URI", "spiffe://…")`.
    """

    der: bytes = field(repr=False)
    subject: tuple[tuple[str, str], ...] = ()
    issuer: tuple[tuple[str, str], ...] = ()
    alternative_names: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsCredential:
    """An AWS access key pair, with the session token of temporary keys."""

    access_key_id: str
    secret_access_key: Secret
    session_token: Secret | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NoCredential:
    """The client presented nothing."""


Credential = BasicCredential | BearerCredential | CertificateCredential | AwsCredential | NoCredential


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientInfo:
    """What a transport knows about a client. Nothing here is proof of identity (AUTHN-9).

    Args:
        protocol: the kind of the protocol, for example `trino`.
        address: the real peer's address, after trusted proxies; None in one process.
        secure: whether the connection is encrypted.
        source: what the client calls itself, for history.
        user_agent: the client's software.
        requested_user: a user name that the client asked for besides its credential (`X-Trino-User`); the core
            refuses one that is not the principal's.
        label: what the client calls its session (`x-session-id`): connections of one login that say the same share it.
        connection: the transport's connection, under a name that no other has or had, where a session belongs to it;
            None where clients keep their state themselves, and a login has one session for all of them.
        reconnects: clients of this transport connect anew without a word to their user. What must not be lost so is
            refused then, unless the session has a label or was opened with a token of its own: SET ROLE.
    """

    protocol: str
    address: str | None = None
    secure: bool = False
    source: str | None = None
    user_agent: str | None = None
    requested_user: str | None = None
    label: str | None = None
    connection: str | None = None
    reconnects: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginRequest:
    """One login attempt.

    Example:
        >>> LoginRequest(credential=NoCredential(), client=ClientInfo(protocol="flight")).client.protocol
        'flight'
    """

    credential: Credential
    client: ClientInfo


class AuthProvider(ABC):
    """Turns a credential into an identity. Methods are called from many threads at once.

    Every identity carries `provider=<the name given to create>`: refresh goes to that provider only.

    Example:
        >>> class Guests(AuthProvider):
        ...     def __init__(self, name):
        ...         self.name = name
        ...
        ...     def authenticate(self, request):
        ...         if not isinstance(request.credential, NoCredential):
        ...             return None
        ...         return Identity(
        ...             issuer="guests", subject="guest", username="guest", provider=self.name, personal=False
        ...         )
    """

    production_objection: str | None = None
    """Why `production_mode` refuses this provider, or None when nothing is wrong with it (AUTHN-2)."""

    production_waiver: str | None = None
    """The key of `[security]` with which whoever runs the server takes the objection back, or None for never."""

    @abstractmethod
    def authenticate(self, request: LoginRequest) -> Identity | None:
        """Judge a credential.

        Args:
            request: the credential and what is known about the client.

        Returns:
            The identity, or None when this credential is not this provider's to judge.

        Raises:
            InvalidCredentialsError: it is this provider's, and bad. The text is constant, and a wrong password takes
                as long as an unknown user (AUTHN-6).
            ExternalError: the identity provider did not answer.
        """

    def refresh(self, identity: Identity) -> Identity:
        """Renew the tokens of an identity that this provider issued.

        Args:
            identity: what `authenticate` or an earlier `refresh` returned.

        Returns:
            The same issuer and subject with new tokens and a new expiry.

        Raises:
            NotSupportedError: this provider does not refresh; the session ends with its token.
            InvalidCredentialsError: the refresh token is spent or revoked.
            ExternalError: the identity provider did not answer; it is asked again.
        """
        raise NotSupportedError("this login provider does not refresh tokens")

    def is_revoked(self, identity: Identity) -> bool:
        """Say whether an identity was revoked before its expiry; asked before each statement (JWT-9).

        Args:
            identity: an identity that this provider issued.
        """
        return False

    def check(self) -> None:
        """Raise when logins cannot work; called at start-up and by `sqe doctor`."""

    def close(self) -> None:
        """Free what the provider holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserLoginStart:
    """The values that the core made for one authorization-code login with PKCE; each is used once (TRI-8)."""

    redirect_uri: str
    state: str
    nonce: str
    code_challenge: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserLoginFinish:
    """What came back to the redirect address, with the secrets that belong to it."""

    code: Secret
    redirect_uri: str
    nonce: str
    code_verifier: Secret


class SupportsBrowserLogin(ABC):
    """Capability of an `AuthProvider`: login in a browser (authorization code with PKCE S256).

    The core makes and checks `state`, keeps pending logins bounded and in time, and hands the token out once.
    """

    @abstractmethod
    def browser_login_url(self, start: BrowserLoginStart) -> str:
        """Return the address to send the browser to.

        Args:
            start: the values to put into the address.
        """

    @abstractmethod
    def finish_browser_login(self, finish: BrowserLoginFinish) -> Identity:
        """Exchange the code for tokens and check them.

        Args:
            finish: the code and the secrets of this login.

        Raises:
            InvalidCredentialsError: the code or the tokens are bad.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceLogin:
    """A device-code login that waits for its user."""

    device_code: Secret
    user_code: str
    verification_uri: str
    verification_uri_complete: str | None = None
    interval_secs: int = 5
    expires_at: datetime


class SupportsDeviceLogin(ABC):
    """Capability of an `AuthProvider`: login on another device (RFC 8628)."""

    @abstractmethod
    def begin_device_login(self) -> DeviceLogin:
        """Ask the identity provider for a code to show."""

    @abstractmethod
    def poll_device_login(self, login: DeviceLogin) -> Identity | None:
        """Return the identity, or None while the user has not finished.

        Args:
            login: what `begin_device_login` returned.

        Raises:
            InvalidCredentialsError: the user refused, or the code expired.
        """


class AuthProviderFactory(PluginFactory[ConfigT, PluginContext, AuthProvider]):
    """Makes the provider of one `[[auth.providers]]` type.

    Example:
        >>> class GuestsFactory(AuthProviderFactory[NoConfig]):
        ...     kind = "guests"
        ...     config_type = NoConfig
        ...
        ...     def create(self, name, config, context):
        ...         return Guests(name)
    """
