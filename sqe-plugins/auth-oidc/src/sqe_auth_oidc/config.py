"""The keys of the kinds that this distribution brings."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from sqe_core.spi import Secret, required, setting
from sqe_http.places import is_loopback

HTTP = ("https", "http")
_UNCHECKED = {True: "the certificate of the other side must be checked"}
Algorithm = Literal[
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519", "Ed448"
]
Introspect = Literal["opaque", "always"]
DEFAULT_ALGORITHMS: tuple[Algorithm, ...] = ("RS256",)
DEFAULT_SCOPES = ("openid", "profile")
_AUDIENCE = {
    "doc": "Audience (`aud`) that a token has to name; an array where one of several will do.",
    "one_or_many": True,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class IdpConfig:
    """What every kind that talks to an identity provider has."""

    roles_claim: str = setting("realm_access.roles", "Claim with the roles, as a dotted path; taken from `[auth]`.")
    groups_claim: str | None = setting(None, "Claim with the groups, as a dotted path.")
    subject_claim: str = setting("sub", "Claim with the issuer's own, unchanging name.")
    email_claim: str = setting("email", "Claim with the email address.")
    ca_file: Path | None = setting(None, "Certificates that may vouch for the identity provider; unset = the system's.")
    tls_skip_verify: bool = setting(
        False,
        "Do not check its certificate, and allow plain http to other machines (development); taken from `[auth]`.",
        unsafe=_UNCHECKED,
    )
    timeout_secs: int = setting(10, "Time for one request to it.", minimum=1, maximum=300)

    def check_urls(self, *names: str, way_out: str = "tls_skip_verify") -> None:
        """Refuse addresses that others could read or answer, unless the key `way_out` says so. Raises ValueError."""
        plain = self.tls_skip_verify or getattr(self, way_out)
        for name in names:
            url = getattr(self, name)
            if url is not None:
                check_url(name, url, plain_http=plain, way_out=way_out)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenConfig(IdpConfig):
    """What every kind that checks signed tokens has."""

    issuer: str | None = setting(
        None, "Issuer (`iss`) of the tokens; its metadata names every address not given.", url=HTTP
    )
    jwks_url: str | None = setting(None, "Address of the issuer's keys.", url=HTTP)
    audience: tuple[str, ...] = field(default=(), metadata=_AUDIENCE)
    authorized_parties: tuple[str, ...] = setting(
        (), "Clients that a token may have been made for (`azp`, `client_id`); empty = all."
    )
    algorithms: tuple[Algorithm, ...] = setting(DEFAULT_ALGORITHMS, "Signature algorithms that are accepted.")
    leeway_secs: int = setting(30, "How far clocks may be apart.", minimum=0, maximum=60)
    max_lifetime_secs: int = setting(86400, "Longest life of a token that is accepted; 0 = any.", minimum=0)
    jwks_refresh_secs: int = setting(
        300, "Age after which the keys are fetched anew: a withdrawn key counts no longer than this.", minimum=30
    )
    jwks_ttl_secs: int = setting(
        900, "How long the keys are used while the identity provider does not answer.", minimum=60, maximum=86400
    )
    user_claim: str = setting("preferred_username", "Claim with the user name.")

    def check_tokens(self) -> None:
        """Refuse what cannot check a token. Raises ValueError."""
        if not self.algorithms:
            raise ValueError("algorithms is empty; no token could be accepted")
        if not all(self.audience):
            raise ValueError("audience holds an empty text")


@dataclass(frozen=True, slots=True, kw_only=True)
class PasswordConfig(TokenConfig):
    """User name and password are sent to the identity provider (password grant)."""

    token_url: str | None = setting(None, "Token endpoint; unset = that of the `issuer`.", url=HTTP)
    client_id: str = required("SQE's client at the identity provider.")
    client_secret: Secret | None = setting(None, "Its secret; unset = `[auth] client_secret`.", secret=True)
    scopes: tuple[str, ...] = setting(("openid",), "Scopes that are asked for.")
    fallthrough_on_reject: bool = setting(False, "Let the next provider judge what the identity provider refused.")
    refresh: bool = setting(True, "Keep the refresh token and renew tokens with it.")

    def __post_init__(self) -> None:
        if self.token_url is None and self.issuer is None:
            raise ValueError("token_url or issuer is needed")
        self.check_urls("token_url", "issuer", "jwks_url")
        self.check_tokens()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCredentialsConfig(IdpConfig):
    """Everybody is one service of the identity provider's."""

    token_endpoint: str = required("Token endpoint.", url=HTTP)
    client_id: str = required("The service's client.")
    client_secret: Secret = required("Its secret.", secret=True)
    scope: str | None = setting(None, "Scope that is asked for.")

    def __post_init__(self) -> None:
        self.check_urls("token_endpoint")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientPassthroughConfig(IdpConfig):
    """User name and password are the id and secret of a client (service principals)."""

    token_url: str = required("Token endpoint.", url=HTTP)
    scope: str | None = setting(None, "Scope that is asked for.")
    fallthrough_on_reject: bool = setting(False, "Let the next provider judge what the identity provider refused.")

    def __post_init__(self) -> None:
        self.check_urls("token_url")


@dataclass(frozen=True, slots=True, kw_only=True)
class BearerConfig(TokenConfig):
    """Tokens that clients bring, checked here."""

    allow_unbounded_audience: bool = setting(False, "Accept tokens that were made for any service of the issuer's.")
    allow_insecure_jwks: bool = setting(
        False, "Plain http to another machine for the keys: who is between could sign tokens.", unsafe=_UNCHECKED
    )
    accept_id_tokens: bool = setting(False, "Accept ID tokens too, for providers whose access tokens are opaque.")
    introspection_url: str | None = setting(None, "Where tokens are asked about (RFC 7662).", url=HTTP)
    introspect: Introspect | None = setting(
        None,
        "`opaque`: ask about tokens that are not signed; `always`: about all, so that one that was "
        "revoked ends its sessions.",
    )
    client_id: str | None = setting(None, "SQE's client, which asks.")
    client_secret: Secret | None = setting(None, "Its secret.", secret=True)
    introspection_cache_secs: int = setting(
        15, "How long an answer counts: a revoked token is refused after this.", minimum=0, maximum=300
    )
    introspection_grace_secs: int = setting(
        120, "How long it counts while the identity provider does not answer.", minimum=0, maximum=900
    )

    def __post_init__(self) -> None:
        if self.jwks_url is None and self.issuer is None and self.introspection_url is None:
            raise ValueError("jwks_url or issuer is needed")
        if not self.audience and not self.allow_unbounded_audience:
            raise ValueError(
                "audience is missing: tokens for any other service would be accepted (allow_unbounded_audience = true "
                "says that this is meant)"
            )
        if self.introspect is None and self.introspection_url is not None:
            raise ValueError('introspection_url stands alone; say introspect = "opaque" or "always"')
        if self.introspect is not None:
            if self.introspection_url is None and self.issuer is None:
                raise ValueError("introspect needs introspection_url or issuer")
            if self.client_id is None or self.client_secret is None:
                raise ValueError("introspect needs client_id and client_secret")
        elif self.client_id is not None or self.client_secret is not None:
            raise ValueError("client_id and client_secret mean nothing without introspect")
        self.check_urls("introspection_url")
        self.check_urls("issuer", "jwks_url", way_out="allow_insecure_jwks")
        self.check_tokens()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeConfig(TokenConfig):
    """Tokens that clients bring are exchanged for one of SQE's (RFC 8693)."""

    token_url: str | None = setting(None, "Token endpoint; unset = that of the `issuer`.", url=HTTP)
    client_id: str = required("SQE's client at the identity provider.")
    client_secret: Secret | None = setting(None, "Its secret.", secret=True)
    scope: str | None = setting(None, "Scope that is asked for.")
    audience: tuple[str, ...] = field(
        default=(), metadata={**_AUDIENCE, "doc": "Audience that is asked for, and that the new token has to name."}
    )

    def __post_init__(self) -> None:
        if self.token_url is None and self.issuer is None:
            raise ValueError("token_url or issuer is needed")
        if len(self.audience) > 1:
            raise ValueError("audience is one text: the new token is asked for it")
        self.check_urls("token_url", "issuer", "jwks_url")
        self.check_tokens()


@dataclass(frozen=True, slots=True, kw_only=True)
class PassthroughConfig:
    """Any bearer, unchecked, for development."""

    user: str = required("The user name that everybody gets.")
    roles: tuple[str, ...] = setting((), "The roles that everybody gets.")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceConfig:
    """`[auth.external.device]`: login with a code on another device."""

    client_id: str | None = setting(None, "Client for it; unset = that of `[auth.external]`.")
    scopes: tuple[str, ...] = setting(DEFAULT_SCOPES, "Scopes that are asked for.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalConfig(IdpConfig):
    """`[auth.external]`: login in a browser (authorization code with PKCE), or on another device."""

    issuer: str = required("Issuer of the identity provider.", url=HTTP)
    client_id: str = required("Client at the identity provider.")
    client_secret: Secret | None = setting(None, "Its secret, when it is a confidential client.", secret=True)
    redirect_uri: str = setting("http://localhost:8080/oauth2/callback", "Where the browser comes back to.", url=HTTP)
    scopes: tuple[str, ...] = setting(DEFAULT_SCOPES, "Scopes that are asked for.")
    challenge_timeout_secs: int = setting(900, "How long a login may take.", minimum=1)
    authorization_endpoint: str | None = setting(None, "Instead of the metadata.", url=HTTP)
    token_endpoint: str | None = setting(None, "Instead of the metadata.", url=HTTP)
    device_authorization_endpoint: str | None = setting(None, "Instead of the metadata.", url=HTTP)
    accept_invalid_certs: bool = setting(
        False, "Do not check the provider's certificate (development).", unsafe=_UNCHECKED
    )
    user_claim: str = setting("preferred_username", "Claim with the user name.")
    device: DeviceConfig = field(default_factory=DeviceConfig, metadata={"doc": "Login with a code on another device."})

    def __post_init__(self) -> None:
        names = ("issuer", "authorization_endpoint", "token_endpoint", "device_authorization_endpoint")
        self.check_urls(*names, way_out="accept_invalid_certs")
        if "openid" not in self.scopes or "openid" not in self.device.scopes:
            raise ValueError('scopes need "openid": without it nobody says who logged in')


def check_url(name: str, url: str, *, plain_http: bool, way_out: str = "tls_skip_verify") -> None:
    """Refuse an address that holds more than a place, or that others could read. Raises ValueError."""
    parts = urlsplit(url)
    if parts.username is not None or parts.password is not None or parts.fragment or not parts.hostname:
        raise ValueError(f"{name} holds a host, a port and a path only")
    if parts.scheme == "http" and not plain_http and not is_loopback(parts.hostname):
        raise ValueError(f"{name} has to be https, or on this machine (see {way_out})")
