"""`[auth]`: who may log in, and how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqe_core.config.plugin_table import PluginTable
from sqe_core.config.schema import HTTP, UNREAD, mapping, remainder, secret
from sqe_core.spi.factory import required, setting
from sqe_core.spi.identity import Secret

DEFAULT_ADMIN_ROLES = ("service_admin", "catalog_admin")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderConfig:
    """One entry of `[[auth.providers]]`: the kind, and that kind's own keys."""

    type: str = required("Kind of the provider, for example `bearer_token`.")
    options: PluginTable = remainder("The keys of that kind.")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceConfig:
    """`[auth.external.device]`: login with a code on another device."""

    client_id: str | None = setting(None, "Client at the identity provider.")
    scopes: tuple[str, ...] = setting(("openid", "profile"), "Scopes that are asked for.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalLoginConfig:
    """`[auth.external]`: login in a browser, or on another device."""

    issuer: str = required("Issuer of the identity provider.", url=HTTP)
    client_id: str = required("Client at the identity provider.")
    client_secret: Secret | None = secret("Its secret, when it is a confidential client.")
    redirect_uri: str = setting("http://localhost:8080/oauth2/callback", "Where the browser comes back to.", url=HTTP)
    scopes: tuple[str, ...] = setting(("openid", "profile"), "Scopes that are asked for.")
    challenge_timeout_secs: int = setting(900, "How long a login may take; at most 300 in production.", minimum=1)
    authorization_endpoint: str | None = setting(None, "Instead of the issuer's metadata.", url=HTTP)
    token_endpoint: str | None = setting(None, "Instead of the issuer's metadata.", url=HTTP)
    device_authorization_endpoint: str | None = setting(None, "Instead of the issuer's metadata.", url=HTTP)
    accept_invalid_certs: bool = setting(False, "Do not check the provider's certificate (development).")
    device: DeviceConfig | None = setting(None, "Login with a code on another device; an empty table turns it on.")
    options: PluginTable = remainder("Further keys of the kind `external`.")


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthConfig:
    """`[auth]`. Without this table there is one anonymous user, and listeners bind to loopback."""

    keycloak_url: str | None = setting(None, "Single provider: base URL of Keycloak, with `realm`.", url=HTTP)
    realm: str | None = setting(None, "Single provider: realm at Keycloak.")
    token_endpoint: str | None = setting(
        None, "Single provider: user name and password are exchanged there as client id and secret.", url=HTTP
    )
    client_id: str | None = setting(None, "Client of the single provider.")
    client_secret: Secret | None = secret(
        "Its secret; also that of `oidc_password` providers without a secret of their own."
    )
    token_refresh_buffer_secs: int = setting(60, "How long before its end a token is refreshed.", minimum=0)
    ssl_verification: bool = setting(True, "Older, opposite name of `tls_skip_verify`.")
    tls_skip_verify: bool = setting(False, "Do not check the provider's certificate (development).", no_effect=UNREAD)
    roles_claim: str = setting("realm_access.roles", "Dotted path of the claim that holds the roles.", no_effect=UNREAD)
    role_mappings: Mapping[str, tuple[str, ...]] = mapping(
        "An outside role, group or subject, such as an IAM ARN, to roles.", one_or_many=True
    )
    admin_roles: tuple[str, ...] = setting(
        DEFAULT_ADMIN_ROLES, "Roles that may administer; an empty list means that nobody is admin."
    )
    providers: tuple[ProviderConfig, ...] = setting((), "Providers, asked in this order.")
    external: ExternalLoginConfig | None = setting(None, "Browser login.")

    @property
    def verify_tls(self) -> bool:
        """Whether the provider's certificate is checked, whichever of the two keys says so."""
        return self.ssl_verification and not self.tls_skip_verify
