"""What the providers have in common: how tokens that the identity provider handed out become an identity."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqe_auth_oidc.claims import ClaimNames, IdentityMaker
from sqe_auth_oidc.compact import BadToken, looks_signed, read_compact
from sqe_auth_oidc.config import ExternalConfig, IdpConfig, TokenConfig, check_url
from sqe_auth_oidc.endpoint import Refused, TokenAnswer, TokenEndpoint
from sqe_auth_oidc.http import HttpClient
from sqe_auth_oidc.keys import KeyStore
from sqe_auth_oidc.provider_metadata import ProviderMetadata
from sqe_auth_oidc.verifier import TokenRules, TokenVerifier, judge_claims
from sqe_core.spi import (
    AuthProvider,
    ExternalError,
    Identity,
    InvalidCredentialsError,
    NotSupportedError,
    PluginContext,
    Secret,
)

_log = logging.getLogger("sqe_core.auth_oidc")


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a provider stands on; the clock for ages is a test's to turn."""

    name: str
    context: PluginContext
    monotonic: Callable[[], float] = field(default=time.monotonic)


class Idp:
    """One identity provider: its connections, its metadata, its keys.

    Args:
        config: how it is reached.
        surroundings: what the core offers.
        issuer: its name, when it has metadata.
        plain_http: whether its addresses may be plain http on other machines.
        skip_verify: whether its certificate is not checked.
    """

    def __init__(
        self,
        config: IdpConfig,
        surroundings: Surroundings,
        *,
        issuer: str | None = None,
        plain_http: bool | None = None,
        skip_verify: bool | None = None,
    ) -> None:
        self.surroundings = surroundings
        self.client = HttpClient(
            timeout_secs=config.timeout_secs,
            ca_file=config.ca_file,
            skip_verify=config.tls_skip_verify if skip_verify is None else skip_verify,
            version=surroundings.context.sqe_version,
        )
        plain = config.tls_skip_verify if plain_http is None else plain_http

        def check(name: str, url: str) -> None:
            check_url(name, url, plain_http=plain)

        self.metadata = (
            None
            if issuer is None
            else ProviderMetadata(issuer, self.client, monotonic=surroundings.monotonic, check_url=check)
        )

    def endpoint(self, written: str | None, name: str) -> Callable[[], str]:
        """Return what finds an address: the configured one, else that of the metadata."""
        if written is not None:
            return lambda: written
        metadata = self.metadata
        assert metadata is not None, "the configuration was checked"
        return lambda: metadata.endpoint(name)

    def verifier(self, config: TokenConfig, rules: TokenRules) -> TokenVerifier | None:
        """Return what checks this provider's tokens; None when nobody says where its keys are."""
        if config.jwks_url is None and self.metadata is None:
            return None
        keys = key_store(self, config.jwks_url, refresh_secs=config.jwks_refresh_secs, ttl_secs=config.jwks_ttl_secs)
        return TokenVerifier(keys, rules, self.surroundings.context.clock)

    def close(self) -> None:
        self.client.close()


def key_store(idp: Idp, written: str | None, *, refresh_secs: float, ttl_secs: float) -> KeyStore:
    address = idp.endpoint(written, "jwks_uri")

    def fetch() -> dict[str, Any]:
        answer = idp.client.get(address())
        if answer.status != 200 or answer.body is None:
            raise ExternalError(f"The keys of the identity provider answered with status {answer.status}")
        return answer.body

    return KeyStore(
        fetch,
        monotonic=idp.surroundings.monotonic,
        metrics=idp.surroundings.context.metrics,
        refresh_secs=refresh_secs,
        ttl_secs=ttl_secs,
    )


def identity_maker(config: IdpConfig, surroundings: Surroundings) -> IdentityMaker:
    names = ClaimNames(
        user=config.user_claim if isinstance(config, TokenConfig | ExternalConfig) else "preferred_username",
        subject=config.subject_claim,
        email=config.email_claim,
        roles=config.roles_claim,
        groups=config.groups_claim,
    )
    return IdentityMaker(surroundings.name, names)


def token_rules(config: TokenConfig, *, id_tokens: bool = False) -> TokenRules:
    return TokenRules(
        algorithms=frozenset(config.algorithms),
        issuer=config.issuer,
        audiences=frozenset(config.audience),
        parties=frozenset(config.authorized_parties),
        leeway_secs=config.leeway_secs,
        max_lifetime_secs=config.max_lifetime_secs,
        id_tokens=id_tokens,
    )


class GrantedProvider(AuthProvider):
    """Base of the providers that get tokens at a token endpoint, for a user or for a service.

    Args:
        config: with `TokenConfig`, tokens are checked; otherwise they are believed because the configured address
            handed them out, whatever their signature.
        surroundings: what the core offers.
        idp: the identity provider.
        token_url: its token endpoint; None for that of its metadata.
        rules: what tokens have to say.
        verifier: checks signatures.
        keep_refresh_token: whether tokens are renewed with it.
        personal: False for an identity that many people share.
    """

    def __init__(
        self,
        config: IdpConfig,
        surroundings: Surroundings,
        idp: Idp,
        token_url: str | None,
        *,
        rules: TokenRules | None = None,
        verifier: TokenVerifier | None = None,
        keep_refresh_token: bool = True,
        personal: bool = True,
    ) -> None:
        if isinstance(config, TokenConfig):
            rules = token_rules(config)
            verifier = idp.verifier(config, rules)
        self._idp = idp
        self._endpoint = TokenEndpoint(
            idp.client,
            idp.endpoint(token_url, "token_endpoint"),
            getattr(config, "client_id", None),
            getattr(config, "client_secret", None),
        )
        self._maker = identity_maker(config, surroundings)
        self._rules = rules or TokenRules(algorithms=frozenset())
        self._verifier = verifier
        self._keep_refresh_token = keep_refresh_token
        self._personal = personal

    def identify(
        self, answer: TokenAnswer, *, fallback_user: str | None = None, refresh_token: Secret | None = None
    ) -> Identity:
        """Return whose tokens these are.

        Args:
            answer: of the token endpoint.
            fallback_user: the name when the tokens have none.
            refresh_token: what renewed them, when the answer has no new one.

        Raises:
            InvalidCredentialsError: the tokens are not good here.
            ExternalError: their issuer's keys are not known.
        """
        clock = self._idp.surroundings.context.clock
        try:
            claims, expires_at = self._read(answer, fallback_user)
            if expires_at is None and answer.expires_in is not None:
                expires_at = clock.now() + timedelta(seconds=answer.expires_in)
            issuer = claims.get("iss")
            return self._maker.make(
                claims,
                issuer=issuer if isinstance(issuer, str) else self._endpoint.url(),
                expires_at=expires_at,
                access_token=answer.access_token,
                refresh_token=(answer.refresh_token or refresh_token) if self._keep_refresh_token else None,
                fallback_user=fallback_user,
                personal=self._personal,
            )
        except BadToken as error:
            # Whoever logged in did nothing wrong, but nothing more may be told to them.
            self.log_bad("the token that it handed out", error)
            raise InvalidCredentialsError from None

    def _read(self, answer: TokenAnswer, fallback_user: str | None) -> tuple[dict[str, Any], datetime | None]:
        token = answer.access_token.reveal()
        if self._verifier is not None and looks_signed(token):
            accepted = self._verifier.verify(token, just_made=True)
            return dict(accepted.claims), accepted.expires_at
        if looks_signed(token):
            claims = read_compact(token, check_signature=False).claims
            if "iss" in claims:
                return claims, judge_claims(claims, self._rules, self._idp.surroundings.context.clock.now())
            if fallback_user is None:
                raise BadToken("names no issuer (iss)")
            return claims, None
        if fallback_user is None:
            raise BadToken("is opaque; ask the identity provider for signed access tokens")
        return {}, None

    def refresh(self, identity: Identity) -> Identity:
        """Renew the tokens with the refresh token; for the same person only (AUTHN-4)."""
        if identity.refresh_token is None:
            raise NotSupportedError("this login has no refresh token")
        try:
            answer = self._endpoint.grant("refresh_token", refresh_token=identity.refresh_token.reveal())
        except Refused as refused:
            self.log_refused("a refresh", refused)
            raise InvalidCredentialsError from None
        return self.same_person(identity, self.identify(answer, refresh_token=identity.refresh_token))

    def same_person(self, before: Identity, after: Identity) -> Identity:
        """Return the renewed identity. Raises InvalidCredentialsError when it is somebody else's."""
        if before.key != after.key:
            self.log_bad("a refreshed token", BadToken("is of another person"))
            raise InvalidCredentialsError
        return after

    def is_revoked(self, identity: Identity) -> bool:
        """Whether the key that vouches for the token was withdrawn, as far as there is a key."""
        token = identity.access_token
        if self._verifier is None or token is None or not looks_signed(token.reveal()):
            return False
        return self._verifier.is_withdrawn(token.reveal())

    def check(self) -> None:
        if self._idp.metadata is not None:
            self._idp.metadata.endpoint("token_endpoint")

    def close(self) -> None:
        self._idp.close()

    def log_refused(self, what: str, refused: Refused) -> None:
        """Say in the log that the identity provider refused something."""
        _log.info("login provider %s: %s was refused (%s)", self._idp.surroundings.name, what, refused.code)

    def log_bad(self, what: str, error: BadToken) -> None:
        """Say in the log why a token is not accepted."""
        _log.warning("login provider %s: %s %s", self._idp.surroundings.name, what, error)

    def log_unread(self, error: BadToken) -> None:
        """Say in the log why nothing is read from an access token."""
        _log.debug("login provider %s: an access token is not read, it %s", self._idp.surroundings.name, error)
