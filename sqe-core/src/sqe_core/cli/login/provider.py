"""What the command line asks of an identity provider (OAuth 2.0, OpenID Connect), and what it takes for an answer.

The client is public: it has no secret, and PKCE ties the code to who asked for it. Tokens are the server's to judge.
What is looked at here is whether they are an answer to this question.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import re
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sqe_core.cli.login.http import Answer, LoginError, ask, is_safe_url
from sqe_core.spi.identity import Secret, is_clean_name

DEFAULT_SCOPE = "openid profile"
_DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
_LONGEST_TOKEN = 16 * 1024
_ERROR = re.compile(r"[a-z_]{1,40}")
_WITHOUT_EXPIRY_SECS = 300.0
_LONGEST_SECS = 86400.0
_LEEWAY_SECS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    issuer: str
    client_id: str
    scope: str = DEFAULT_SCOPE
    audience: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """What a login gave. `expires_at` is in seconds of the system's clock."""

    access_token: Secret
    refresh_token: Secret | None
    lifetime_secs: float
    expires_at: float
    user: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """The secrets of one login, none of which is used twice."""

    state: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    nonce: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(48), repr=False)

    @property
    def challenge(self) -> str:
        """What is shown of the verifier (S256)."""
        # Heavy, and most who start the command line do not log in.
        from authlib.oauth2.rfc7636 import create_s256_code_challenge

        return str(create_s256_code_challenge(self.verifier))


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceCode:
    device_code: Secret
    user_code: str
    url: str
    complete_url: str | None
    interval_secs: float
    ends_at: float


class StillWaiting(Exception):
    """The user has not finished; `slower` asks for a longer pause."""

    def __init__(self, *, slower: bool) -> None:
        super().__init__()
        self.slower = slower


class Provider:
    """An identity provider that has told where it answers.

    Args:
        client: who asks.
    """

    def __init__(self, client: Client) -> None:
        self.client = client
        # The issuer as it is written, and its own word that it is the one (RFC 8414 section 3.3).
        answer = ask(client.issuer.rstrip("/") + "/.well-known/openid-configuration")
        if answer.status != 200:
            raise LoginError("The identity provider does not describe itself; is the issuer right?")
        if answer.document.get("issuer") != client.issuer:
            raise LoginError("The identity provider says that it is another issuer")
        self._metadata = answer.document

    def login_url(self, redirect_uri: str, proof: Proof) -> str:
        """Return where the browser has to go."""
        from authlib.oauth2.rfc6749.parameters import prepare_grant_uri

        endpoint = self._endpoint("authorization_endpoint")
        asked = {**self._request(), **_challenge(proof), "nonce": proof.nonce, "state": proof.state}
        return str(prepare_grant_uri(endpoint, response_type="code", redirect_uri=redirect_uri, **asked))

    def check_answer(self, parameters: Mapping[str, str], proof: Proof) -> Secret:
        """Return the code that came back to the redirect address.

        Raises:
            LoginError: it is no answer of this provider to this login (RFC 9207), or a refusal.
        """
        if not hmac.compare_digest(parameters.get("state", "").encode(), proof.state.encode()):
            raise LoginError("The answer belongs to another login")
        issuer = parameters.get("iss")
        named = self._metadata.get("authorization_response_iss_parameter_supported") is True
        if issuer != self.client.issuer and (issuer is not None or named):
            raise LoginError("The answer is of another issuer")
        if "error" in parameters:
            raise LoginError(f"The identity provider refused the login: {_error(parameters)}")
        code = parameters.get("code", "")
        if not code:
            raise LoginError("The answer holds no code")
        return Secret(code)

    def redeem(self, code: Secret, redirect_uri: str, proof: Proof) -> Tokens:
        answer = self._post(
            "token_endpoint",
            grant_type="authorization_code",
            code=code.reveal(),
            redirect_uri=redirect_uri,
            code_verifier=proof.verifier,
        )
        return self._tokens(answer, nonce=proof.nonce)

    def begin_device_login(self, proof: Proof) -> DeviceCode:
        """Ask for a code to show (RFC 8628)."""
        endpoint = self._endpoint("device_authorization_endpoint")
        answer = ask(endpoint, {**self._request(), **_challenge(proof)})
        if answer.status != 200:
            raise LoginError(f"The identity provider refused the login: {_error(answer.document)}")
        document = answer.document
        device_code, user_code = _token(document.get("device_code")), document.get("user_code")
        url, complete = document.get("verification_uri"), document.get("verification_uri_complete")
        interval, expiry = document.get("interval", 5), document.get("expires_in")
        if device_code is None or not isinstance(user_code, str) or not re.fullmatch(r"[\x21-\x7e]{1,64}", user_code):
            raise LoginError("The answer of the identity provider holds no code")
        if not isinstance(url, str) or not is_safe_url(url):
            raise LoginError("The identity provider's address is neither https nor on this machine")
        return DeviceCode(
            device_code=device_code,
            user_code=user_code,
            url=url,
            complete_url=complete if is_safe_url(complete) else None,
            interval_secs=min(max(_number(interval, 5), 1), 60),
            ends_at=time.monotonic() + min(_number(expiry, 600), 1800),
        )

    def poll_device_login(self, waiting: DeviceCode, proof: Proof) -> Tokens:
        """Return the tokens. Raises StillWaiting until the user has finished."""
        answer = self._post(
            "token_endpoint",
            grant_type=_DEVICE_GRANT,
            device_code=waiting.device_code.reveal(),
            code_verifier=proof.verifier,
        )
        code = answer.document.get("error")
        if answer.status != 200 and code in ("authorization_pending", "slow_down"):
            raise StillWaiting(slower=code == "slow_down")
        return self._tokens(answer, nonce=None)

    def refresh(self, tokens: Tokens) -> Tokens:
        """Return new tokens. Raises LoginError when there are none any more."""
        if tokens.refresh_token is None:
            raise LoginError("The login has ended, and cannot be renewed")
        answer = self._post("token_endpoint", grant_type="refresh_token", refresh_token=tokens.refresh_token.reveal())
        renewed = self._tokens(answer, nonce=None, needs_id_token=False)
        # One that is not renewed stays.
        return replace(renewed, refresh_token=renewed.refresh_token or tokens.refresh_token, user=tokens.user)

    def revoke(self, tokens: Tokens) -> None:
        """Have the tokens withdrawn (RFC 7009): the one that renews first.

        Raises:
            LoginError: the provider cannot do that, or did not.
        """
        for token, kind in ((tokens.refresh_token, "refresh_token"), (tokens.access_token, "access_token")):
            if token is None:
                continue
            answer = self._post("revocation_endpoint", token=token.reveal(), token_type_hint=kind)
            # What the provider does not revoke by itself ends with what renews it.
            if answer.status != 200 and not (
                kind == "access_token" and answer.document.get("error") == "unsupported_token_type"
            ):
                raise LoginError(f"The identity provider did not revoke the login: {_error(answer.document)}")

    def _request(self) -> dict[str, str]:
        wanted = {"client_id": self.client.client_id, "scope": self.client.scope}
        return wanted if self.client.audience is None else {**wanted, "audience": self.client.audience}

    def _endpoint(self, name: str) -> str:
        url = self._metadata.get(name)
        if url is None:
            raise LoginError(f"The identity provider has no {name}")
        if not is_safe_url(url):
            raise LoginError("The identity provider's address is neither https nor on this machine")
        return str(url)

    def _post(self, endpoint: str, **form: str) -> Answer:
        return ask(self._endpoint(endpoint), {**form, "client_id": self.client.client_id})

    def _tokens(self, answer: Answer, *, nonce: str | None, needs_id_token: bool = True) -> Tokens:
        document = answer.document
        if answer.status != 200:
            raise LoginError(f"The identity provider refused the login: {_error(document)}")
        access, kind = _token(document.get("access_token")), document.get("token_type")
        if access is None or not isinstance(kind, str) or kind.lower() != "bearer":
            raise LoginError("The answer of the identity provider holds no token")
        user = None
        if "openid" in self.client.scope.split() and (needs_id_token or "id_token" in document):
            user = self._user_of(document.get("id_token"), nonce)
        lifetime = min(_number(document.get("expires_in"), _WITHOUT_EXPIRY_SECS), _LONGEST_SECS)
        return Tokens(
            access_token=access,
            refresh_token=_token(document.get("refresh_token")),
            lifetime_secs=lifetime,
            expires_at=time.time() + lifetime,
            user=user,
        )

    def _user_of(self, id_token: object, nonce: str | None) -> str | None:
        """Say whose tokens they are, when they are an answer to this login.

        The token came over TLS from the issuer itself, which stands in for its signature (OpenID Connect Core 3.1.3.7).
        """
        claims = _claims(id_token)
        audience = claims.get("aud")
        audiences = audience if isinstance(audience, list) else [audience]
        expiry = claims.get("exp")
        if claims.get("iss") != self.client.issuer:
            raise LoginError("The identity provider gave tokens of another issuer")
        if self.client.client_id not in audiences or claims.get("azp", self.client.client_id) != self.client.client_id:
            raise LoginError("The identity provider gave tokens of another client")
        if nonce is not None and claims.get("nonce") != nonce:
            raise LoginError("The identity provider gave tokens of another login")
        if isinstance(expiry, bool) or not isinstance(expiry, int | float) or expiry < time.time() - _LEEWAY_SECS:
            raise LoginError("The identity provider gave tokens whose time is over")
        names = (claims.get(name) for name in ("preferred_username", "email", "sub"))
        return next((name for name in names if isinstance(name, str) and is_clean_name(name)), None)


def _challenge(proof: Proof) -> dict[str, str]:
    return {"code_challenge": proof.challenge, "code_challenge_method": "S256"}


def _token(value: object) -> Secret | None:
    """A token as it may stand in a header; None for anything else."""
    if not isinstance(value, str) or len(value) > _LONGEST_TOKEN or not re.fullmatch(r"[\x21-\x7e]+", value):
        return None
    return Secret(value)


def _number(value: object, otherwise: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 10**9:
        return otherwise
    return float(value)


def _error(answer: Mapping[str, Any]) -> str:
    """The code of a refusal; its prose is left out, which may say anything."""
    code = answer.get("error")
    return code if isinstance(code, str) and _ERROR.fullmatch(code) else "no reason given"


def _claims(token: object) -> Mapping[str, Any]:
    parts = token.split(".") if isinstance(token, str) and len(token) <= _LONGEST_TOKEN else []
    try:
        claims = (
            json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))) if len(parts) == 3 else None
        )
    except (binascii.Error, ValueError, RecursionError):
        claims = None
    if not isinstance(claims, dict):
        raise LoginError("The answer of the identity provider holds no ID token")
    return claims
