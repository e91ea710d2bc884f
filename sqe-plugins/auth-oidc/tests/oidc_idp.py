"""An identity provider on loopback that answers like Keycloak, or as badly as a test wants."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import time
import warnings
from collections.abc import Mapping
from functools import cache
from typing import Any
from urllib.parse import parse_qs, urlsplit

from joserfc.jwk import ECKey, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

from sqe_core.spi import (
    BasicCredential,
    BearerCredential,
    ClientInfo,
    LoginRequest,
    NoCredential,
    Secret,
)
from sqe_http.testing import HttpFake, Reply, Request

CLIENT, CLIENT_SECRET = "sqe-client", "sqe-secret-4711"
ALICE, BOB = "00000000-0000-4000-8000-0000000a11ce", "00000000-0000-4000-8000-000000000b0b"
USERS = {"alice": (ALICE, ["data_engineer"], ["engineering"]), "bob": (BOB, ["analyst"], ["analytics"])}
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
DEVICE = "urn:ietf:params:oauth:grant-type:device_code"

PrivateKey = RSAKey | ECKey | OKPKey

# The algorithm that each key of the provider is made for, by the key's name.
KEY_ALGORITHMS = {
    "rs": "RS256",
    "rs384": "RS384",
    "rs512": "RS512",
    "ps256": "PS256",
    "ps384": "PS384",
    "ps512": "PS512",
    "es256": "ES256",
    "es384": "ES384",
    "es512": "ES512",
    "ed": "EdDSA",
    "ed25519": "Ed25519",
    "ed448": "Ed448",
}


@cache
def private_key(kind: str) -> PrivateKey:
    """A key pair of the provider; made once, because RSA takes long. `other-…` are those of strangers."""
    match kind.removeprefix("other-"):
        case "es256":
            return ECKey.generate_key("P-256")
        case "es384":
            return ECKey.generate_key("P-384")
        case "es512":
            return ECKey.generate_key("P-521")
        case "ed" | "ed25519":
            return OKPKey.generate_key("Ed25519")
        case "ed448":
            return OKPKey.generate_key("Ed448")
        case "small":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return RSAKey.import_key(_rsa(1024))
    if kind.startswith(("rs", "ps")) and kind != "rs":
        return private_key("rs")
    return RSAKey.import_key(_rsa(2048))


def _rsa(bits: int) -> Any:
    from cryptography.hazmat.primitives.asymmetric import rsa

    return rsa.generate_private_key(public_exponent=65537, key_size=bits)


def public_jwk(kid: str, kind: str | None = None, **more: Any) -> dict[str, Any]:
    """The public half of a key, as a key set has it."""
    public = dict(private_key(kind or kid).as_dict(private=False))
    return {**public, "kid": kid, "use": "sig", **more}


def encode(raw: bytes) -> str:
    """base64url without padding."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def sign(header: Mapping[str, Any], claims: Mapping[str, Any] | bytes, kind: str, *, alg: str | None = None) -> str:
    """A token, signed with the key of a kind by the header's algorithm or another one."""
    payload = claims if isinstance(claims, bytes) else json.dumps(claims).encode()
    signed = f"{encode(json.dumps(header).encode())}.{encode(payload)}"
    signature = JWSRegistry.algorithms[alg or header["alg"]].sign(signed.encode(), private_key(kind))
    return f"{signed}.{encode(signature)}"


def answer(status: int = 200, **document: Any) -> Reply:
    """JSON."""
    return Reply(status=status, body=document)


class FakeIdp(HttpFake):
    """A realm with alice and bob, one confidential client, and every flow that SQE uses."""

    def __init__(self, certificate: tuple[str, str] | None = None) -> None:
        super().__init__(certificate)
        self.keys: list[dict[str, Any]] = [public_jwk("rs", alg="RS256")]
        self.lifetime_secs = 300
        self.claims: dict[str, Any] = {}
        """What tokens say besides; None leaves a claim out."""
        self.opaque = False
        self.exchange_refreshes = False
        self.revoked: set[str] = set()
        self.refresh_tokens: dict[str, str] = {}
        self.codes: dict[str, dict[str, str]] = {}
        self.devices: dict[str, str | None] = {}
        self.issuer = f"{self.url}/realms/iceberg"
        self.endpoints = f"{self.issuer}/protocol/openid-connect"
        self.token_url = f"{self.endpoints}/token"
        self.jwks_url = f"{self.endpoints}/certs"
        self.introspection_url = f"{self.endpoints}/token/introspect"

    def token(self, user: str = "alice", *, kid: str = "rs", alg: str = "RS256", **claims: Any) -> str:
        """An access token of a user."""
        return sign({"alg": alg, "kid": kid, "typ": "JWT"}, self.access_claims(user, **claims), kid)

    def access_claims(self, user: str = "alice", **claims: Any) -> dict[str, Any]:
        """What an access token of Keycloak says."""
        subject, roles, groups = USERS.get(user, (f"sub-{user}", [], []))
        now = int(time.time())
        found = {
            "exp": now + self.lifetime_secs,
            "iat": now,
            "jti": secrets.token_hex(8),
            "iss": self.issuer,
            "aud": CLIENT,
            "sub": subject,
            "typ": "Bearer",
            "azp": CLIENT,
            "sid": "s-1",
            "realm_access": {"roles": roles},
            "groups": groups,
            "preferred_username": user,
            "email": f"{user}@example.com",
            "scope": "openid profile",
            **self.claims,
            **claims,
        }
        return {name: value for name, value in found.items() if value is not None}

    def id_token(self, user: str, *, nonce: str | None, kid: str = "rs", alg: str = "RS256", **claims: Any) -> str:
        """An ID token of a user."""
        subject, _, _ = USERS[user]
        now = int(time.time())
        found = {
            "exp": now + self.lifetime_secs,
            "iat": now,
            "iss": self.issuer,
            "aud": CLIENT,
            "azp": CLIENT,
            "sub": subject,
            "typ": "ID",
            "nonce": nonce,
            "preferred_username": user,
            **claims,
        }
        said = {name: value for name, value in found.items() if value is not None}
        return sign({"alg": alg, "kid": kid, "typ": "JWT"}, said, kid)

    def honest(self, request: Request) -> Reply:
        """Answer as Keycloak does."""
        if request.path == "/realms/iceberg/.well-known/openid-configuration":
            return answer(
                issuer=self.issuer,
                authorization_endpoint=f"{self.endpoints}/auth",
                token_endpoint=self.token_url,
                introspection_endpoint=self.introspection_url,
                device_authorization_endpoint=f"{self.endpoints}/auth/device",
                revocation_endpoint=f"{self.endpoints}/revoke",
                jwks_uri=self.jwks_url,
            )
        match request.path.removeprefix("/realms/iceberg/protocol/openid-connect"):
            case "/certs":
                return answer(keys=self.keys)
            case "/token":
                return self._grant(request.form)
            case "/token/introspect":
                return self._introspect(request.form)
            case "/auth/device":
                code = secrets.token_hex(8)
                self.devices[code] = None
                uri = f"{self.url}/device"
                return answer(
                    device_code=code,
                    user_code="WDJB-MJHT",
                    verification_uri=uri,
                    verification_uri_complete=f"{uri}?user_code=WDJB-MJHT",
                    expires_in=600,
                    interval=5,
                )
            case "/revoke":
                self.revoked.add(request.form.get("token", ""))
                return Reply()
        return answer(404, error="RESTEASY003210: Could not find resource")

    def _grant(self, form: Mapping[str, str]) -> Reply:
        kind = form.get("grant_type")
        client = form.get("client_id"), form.get("client_secret")
        if kind == "client_credentials":
            if client not in ((CLIENT, CLIENT_SECRET), ("etl", "etl-secret-4711")):
                return answer(401, error="invalid_client", error_description="Invalid client credentials")
            return self._tokens(f"service-account-{client[0]}", refresh=False)
        if client != (CLIENT, CLIENT_SECRET):
            return answer(401, error="invalid_client", error_description="Invalid client credentials")
        match kind:
            case "password":
                user = form.get("username", "")
                if user not in USERS or form.get("password") != f"{user}-password-4711":
                    return answer(400, error="invalid_grant", error_description="Invalid user credentials")
                return self._tokens(user)
            case "refresh_token":
                user = self.refresh_tokens.pop(form.get("refresh_token", ""), "")
                if not user:
                    return answer(400, error="invalid_grant", error_description="Token is not active")
                return self._tokens(user)
            case "authorization_code":
                return self._code(form)
            case str() if kind == EXCHANGE:
                user = next((name for name in USERS if form.get("subject_token") == f"opaque-of-{name}"), "")
                if not user:
                    return answer(400, error="invalid_token", error_description="Invalid token")
                return self._tokens(user, refresh=self.exchange_refreshes)
            case str() if kind == DEVICE:
                code = form.get("device_code", "")
                if code not in self.devices:
                    return answer(400, error="expired_token")
                approved = self.devices[code]
                if approved is None:
                    return answer(400, error="authorization_pending")
                if approved == "denied":
                    return answer(400, error="access_denied")
                del self.devices[code]
                return self._tokens(approved, nonce="")
        return answer(400, error="unsupported_grant_type")

    def _code(self, form: Mapping[str, str]) -> Reply:
        begun = self.codes.pop(form.get("code", ""), None)
        challenge = encode(hashlib.sha256(form.get("code_verifier", "").encode()).digest())
        if begun is None or begun["challenge"] != challenge or begun["redirect_uri"] != form.get("redirect_uri"):
            return answer(400, error="invalid_grant", error_description="Code not valid")
        return self._tokens(begun["user"], nonce=begun["nonce"])

    def approve(self, url: str, user: str) -> str:
        """What a browser does at the authorization address; returns the code that comes back."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        assert asked["client_id"] == CLIENT
        assert asked["response_type"] == "code"
        assert asked["code_challenge_method"] == "S256"
        code = secrets.token_hex(8)
        self.codes[code] = {
            "user": user,
            "nonce": asked["nonce"],
            "challenge": asked["code_challenge"],
            "redirect_uri": asked["redirect_uri"],
        }
        return code

    def _tokens(self, user: str, *, refresh: bool = True, nonce: str | None = None) -> Reply:
        found: dict[str, Any] = {
            "access_token": secrets.token_hex(16) if self.opaque else self.token(user),
            "token_type": "Bearer",
            "expires_in": self.lifetime_secs,
        }
        if refresh:
            found["refresh_token"] = secrets.token_hex(16)
            self.refresh_tokens[found["refresh_token"]] = user
        if nonce is not None:
            found["id_token"] = self.id_token(user, nonce=nonce or None)
        return answer(**found)

    def _introspect(self, form: Mapping[str, str]) -> Reply:
        if (form.get("client_id"), form.get("client_secret")) != (CLIENT, CLIENT_SECRET):
            return answer(401, error="invalid_request", error_description="Authentication failed.")
        token = form.get("token", "")
        user = token.removeprefix("opaque-of-").partition(":")[0] if token.startswith("opaque-of-") else "alice"
        if token in self.revoked or user not in USERS or not (token.count(".") == 2 or token.startswith("opaque-")):
            return answer(active=False)
        return answer(active=True, username=user, token_type="Bearer", **self.access_claims(user))


CLIENT_INFO = ClientInfo(protocol="flight", address="127.0.0.1", secure=True)


def basic(username: str, password: str) -> LoginRequest:
    """A login with user name and password."""
    return LoginRequest(credential=BasicCredential(username=username, password=Secret(password)), client=CLIENT_INFO)


def bearer(token: str) -> LoginRequest:
    """A login with a bearer."""
    return LoginRequest(credential=BearerCredential(token=Secret(token)), client=CLIENT_INFO)


NOBODY = LoginRequest(credential=NoCredential(), client=CLIENT_INFO)
