"""`[auth.external]`: logins in a browser (authorization code with PKCE), or on another device (RFC 8628).

The core makes `state`, `nonce` and the verifier, and keeps logins that wait. This provider makes addresses, and judges
what the identity provider hands out: the ID token says who logged in, and the access token which roles that gives.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from authlib.oauth2.rfc6749.parameters import prepare_grant_uri
from authlib.oauth2.rfc7636 import create_s256_code_challenge

from sqe_auth_oidc.compact import BadToken, looks_signed
from sqe_auth_oidc.config import ExternalConfig, check_url
from sqe_auth_oidc.endpoint import Refused, TokenAnswer, TokenEndpoint
from sqe_auth_oidc.keys import ALGORITHMS
from sqe_auth_oidc.provider import GrantedProvider, Idp, Surroundings, key_store
from sqe_auth_oidc.remembered import Remembered
from sqe_auth_oidc.verifier import TokenRules, TokenVerifier, VerifiedToken
from sqe_core.spi import (
    BrowserLoginFinish,
    BrowserLoginStart,
    DeviceLogin,
    ExternalError,
    Identity,
    InvalidCredentialsError,
    LoginRequest,
    NotSupportedError,
    Secret,
    SupportsBrowserLogin,
    SupportsDeviceLogin,
)

# The claim that says for which client the tokens were made: that one renews them.
_CLIENT = "azp"
_DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
_REFRESH_SECS, _TTL_SECS = 300, 900
_LEEWAY_SECS = 30
# A code that nobody types any more, or that is typed for hours.
_LONGEST_DEVICE_SECS, _SLOWEST_POLL_SECS = 1800, 60
_MOST_UNREADABLE = 20_000
_WAITS = frozenset({"authorization_pending", "slow_down"})


class ExternalProvider(GrantedProvider, SupportsBrowserLogin, SupportsDeviceLogin):
    """Logins that begin at SQE and end at the identity provider. No credential of a client is its to judge."""

    def __init__(self, config: ExternalConfig, surroundings: Surroundings) -> None:
        lenient = config.tls_skip_verify or config.accept_invalid_certs
        idp = Idp(config, surroundings, issuer=config.issuer, plain_http=lenient, skip_verify=lenient)
        rules = TokenRules(
            algorithms=frozenset(ALGORITHMS), issuer=config.issuer, leeway_secs=_LEEWAY_SECS, max_lifetime_secs=0
        )
        keys = key_store(idp, None, refresh_secs=_REFRESH_SECS, ttl_secs=_TTL_SECS)
        clock = surroundings.context.clock
        verifier = TokenVerifier(keys, rules, clock)
        super().__init__(config, surroundings, idp, config.token_endpoint, rules=rules, verifier=verifier)
        self._clock = clock
        self._lenient = lenient
        # Nothing about access tokens that only their issuer can read tells that they were withdrawn.
        self._unreadable: Remembered[bool] = Remembered(_MOST_UNREADABLE)
        self._config = config
        self._authorization = idp.endpoint(config.authorization_endpoint, "authorization_endpoint")
        self._device_authorization = idp.endpoint(config.device_authorization_endpoint, "device_authorization_endpoint")
        self._device_client = config.device.client_id or config.client_id
        self._device_endpoint = (
            self._endpoint
            if self._device_client == config.client_id
            else TokenEndpoint(idp.client, self._endpoint.url, self._device_client)
        )
        self._id_tokens = {
            client: TokenVerifier(keys, _rules_of_id_tokens(config.issuer, client), clock)
            for client in {config.client_id, self._device_client}
        }

    def authenticate(self, request: LoginRequest) -> Identity | None:
        return None

    def browser_login_url(self, start: BrowserLoginStart) -> str:
        url: str = prepare_grant_uri(
            self._authorization(),
            client_id=self._config.client_id,
            response_type="code",
            redirect_uri=start.redirect_uri,
            scope=" ".join(self._config.scopes),
            state=start.state,
            nonce=start.nonce,
            code_challenge=start.code_challenge,
            code_challenge_method="S256",
        )
        return url

    def finish_browser_login(self, finish: BrowserLoginFinish) -> Identity:
        try:
            answer = self._endpoint.grant(
                "authorization_code",
                code=finish.code.reveal(),
                redirect_uri=finish.redirect_uri,
                code_verifier=finish.code_verifier.reveal(),
            )
        except Refused as refused:
            self.log_refused("an authorization code", refused)
            raise InvalidCredentialsError from None
        return self._logged_in(answer, self._config.client_id, nonce=finish.nonce)

    def begin_device_login(self) -> DeviceLogin:
        # Some clients have to prove here, too, that both requests are of one; a server without that ignores it.
        verifier = secrets.token_urlsafe(48)
        found = self._device_endpoint.begin_device(
            self._device_authorization(),
            scope=" ".join(self._config.device.scopes),
            code_challenge=create_s256_code_challenge(verifier),
            code_challenge_method="S256",
        )
        complete = "verification_uri_complete"
        return DeviceLogin(
            device_code=Secret(f"{verifier} {_word(found, 'device_code', 4096)}"),
            user_code=_word(found, "user_code", 64),
            verification_uri=self._page(found, "verification_uri"),
            verification_uri_complete=self._page(found, complete) if complete in found else None,
            interval_secs=int(_number(found.get("interval", 5), 1, _SLOWEST_POLL_SECS)),
            expires_at=self._clock.now()
            + timedelta(seconds=_number(found.get("expires_in", 300), 1, _LONGEST_DEVICE_SECS)),
        )

    def poll_device_login(self, login: DeviceLogin) -> Identity | None:
        if self._clock.now() >= login.expires_at:
            raise InvalidCredentialsError
        verifier, _, code = login.device_code.reveal().partition(" ")
        try:
            answer = self._device_endpoint.grant(_DEVICE_GRANT, device_code=code, code_verifier=verifier)
        except Refused as refused:
            if refused.code in _WAITS:
                return None
            self.log_refused("a device code", refused)
            raise InvalidCredentialsError from None
        return self._logged_in(answer, self._device_client, nonce=None)

    def refresh(self, identity: Identity) -> Identity:
        if identity.refresh_token is None:
            raise NotSupportedError("this login has no refresh token")
        client = identity.claims.get(_CLIENT)
        endpoint = self._endpoint if client == self._config.client_id else self._device_endpoint
        try:
            answer = endpoint.grant("refresh_token", refresh_token=identity.refresh_token.reveal())
        except Refused as refused:
            self.log_refused("a refresh", refused)
            raise InvalidCredentialsError from None
        answer = replace(answer, refresh_token=answer.refresh_token or identity.refresh_token)
        if answer.id_token is None and not self._is_readable(answer):
            # Nothing in it says whose it is but that it was handed out for this person's refresh token.
            return replace(
                identity,
                access_token=answer.access_token,
                refresh_token=answer.refresh_token,
                expires_at=self._end(answer, None),
            )
        return self.same_person(identity, self._logged_in(answer, str(client), nonce=None, renews=True))

    def is_revoked(self, identity: Identity) -> bool:
        """Whether the key was withdrawn that vouches for the token, as far as SQE can read it."""
        token = identity.access_token
        return token is None or (not self._unreadable.find(token.reveal()) and super().is_revoked(identity))

    def check(self) -> None:
        self._authorization()
        super().check()

    def _logged_in(self, answer: TokenAnswer, client: str, *, nonce: str | None, renews: bool = False) -> Identity:
        """Return who logged in; `renews` when an earlier ID token has said so already."""
        try:
            claims: dict[str, Any] = {}
            ends: datetime | None = None
            if answer.id_token is not None:
                accepted = self._id_tokens[client].verify(answer.id_token.reveal(), just_made=True)
                claims, ends = dict(accepted.claims), accepted.expires_at
                if nonce is not None and not _is_same(claims.get("nonce"), nonce):
                    raise BadToken("is of another login (nonce)")
                if claims.get(_CLIENT, client) != client:
                    raise BadToken("was made for another client (azp)")
            elif not renews:
                raise BadToken("came without an ID token")
            if self._is_readable(answer):
                access = self._verified(answer)
                if claims and access.claims.get("sub") != claims.get("sub"):
                    raise BadToken("is of another person than the ID token (sub)")
                claims.update(access.claims)
                ends = access.expires_at
            else:
                ends = self._end(answer, ends)
            return self._maker.make(
                {**claims, _CLIENT: client},
                issuer=self._config.issuer,
                expires_at=ends,
                access_token=answer.access_token,
                refresh_token=answer.refresh_token,
            )
        except BadToken as error:
            self.log_bad("a token that it handed out", error)
            raise InvalidCredentialsError from None

    def _verified(self, answer: TokenAnswer) -> VerifiedToken:
        assert self._verifier is not None
        return self._verifier.verify(answer.access_token.reveal(), just_made=True)

    def _is_readable(self, answer: TokenAnswer) -> bool:
        """Whether an access token is signed for whoever wants to check it; many providers' are for their own eyes."""
        if looks_signed(answer.access_token.reveal()):
            try:
                self._verified(answer)
                return True
            except BadToken as error:
                self.log_unread(error)
        self._unreadable.keep(answer.access_token.reveal(), True)
        return False

    def _end(self, answer: TokenAnswer, otherwise: datetime | None) -> datetime | None:
        if answer.expires_in is None:
            return otherwise
        return self._clock.now() + timedelta(seconds=answer.expires_in)

    def _page(self, found: Mapping[str, Any], name: str) -> str:
        """Return an address that people are sent to."""
        url = _word(found, name, 2048)
        try:
            check_url(name, url, plain_http=self._lenient)
        except ValueError as error:
            raise ExternalError(
                f"The identity provider answered with an address that cannot be used: {error}"
            ) from None
        return url


def _rules_of_id_tokens(issuer: str, client: str) -> TokenRules:
    return TokenRules(
        algorithms=frozenset(ALGORITHMS),
        issuer=issuer,
        audiences=frozenset({client}),
        leeway_secs=_LEEWAY_SECS,
        id_tokens=True,
    )


def _is_same(said: object, nonce: str) -> bool:
    return isinstance(said, str) and hmac.compare_digest(said.encode(), nonce.encode())


def _word(found: Mapping[str, Any], name: str, longest: int) -> str:
    """Return a text that may be shown on a terminal."""
    value = found.get(name)
    clean = isinstance(value, str) and 0 < len(value) <= longest and value.isascii() and value.isprintable()
    if not clean or not isinstance(value, str) or " " in value:
        raise ExternalError(f"The identity provider answered with a {name} that is none")
    return value


def _number(value: object, least: float, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ExternalError("The identity provider answered with a time that is none")
    return min(max(value, least), most)
