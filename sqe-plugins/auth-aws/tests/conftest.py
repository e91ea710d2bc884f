"""A server on loopback that answers like AWS's STS, or as badly as a test wants."""

from __future__ import annotations

import base64
import hmac
import json
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from sqe_auth_aws.config import AwsConfig
from sqe_core.spi import BasicCredential, BearerCredential, ClientInfo, Credential, LoginRequest, Secret
from sqe_http.testing import HttpFake, Reply, Request

ACCOUNT = "123456789012"
ISSUER = "https://idp.example.com"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/analyst"
ALICE = ("AKIAALICE00000000001", "alice/secret+of/forty/characters/0000000")
SESSION = ("ASIASESSION000000001", "session/secret/of/forty/characters/00000", "token/of+the==session")


def answer(action: str, **fields: str) -> Reply:
    """An answer as STS writes it; `AssumedRoleUser_Arn` is the element Arn in AssumedRoleUser."""
    inner = ""
    for name, value in fields.items():
        *outer, last = name.split("_")
        text = f"<{last}>{value}</{last}>"
        for tag in reversed(outer):
            text = f"<{tag}>{text}</{tag}>"
        inner += text
    xmlns = "https://sts.amazonaws.com/doc/2011-06-15/"
    body = f'<{action}Response xmlns="{xmlns}"><{action}Result>{inner}</{action}Result></{action}Response>'
    return Reply(body=body.encode())


def refusal(code: str, status: int = 403, message: str = "no") -> Reply:
    """An error as STS writes it."""
    error = f"<Error><Type>Sender</Type><Code>{code}</Code><Message>{message}</Message></Error>"
    return Reply(status=status, body=f'<ErrorResponse xmlns="https://sts">{error}</ErrorResponse>'.encode())


def login(credential: Credential) -> LoginRequest:
    """A login over Flight SQL."""
    return LoginRequest(credential=credential, client=ClientInfo(protocol="flight", secure=True))


def basic(username: str, password: str) -> LoginRequest:
    """A login with user and password."""
    return login(BasicCredential(username=username, password=Secret(password)))


def bearer(token: str) -> LoginRequest:
    """A login with a token."""
    return login(BearerCredential(token=Secret(token)))


def jwt(**claims: Any) -> str:
    """A token with these claims beside good ones, and a signature that only AWS could check."""
    everything = {"iss": ISSUER, "sub": "user-17", "exp": time.time() + 600, **claims}
    return ".".join((encoded({"alg": "RS256"}), encoded(everything), "c2lnbmF0dXJl"))


def encoded(value: Any) -> str:
    """A part of a token."""
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def claims_of(token: str) -> Any:
    """What a token says."""
    part = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


class FakeSts(HttpFake):
    """Checks signatures by the rules of AWS, with the library that AWS writes."""

    # For tests, which cannot import this file.
    ROLE, ALICE, SESSION, ISSUER = ROLE, ALICE, SESSION, ISSUER
    answer, refusal = staticmethod(answer), staticmethod(refusal)
    login, basic, bearer, jwt = staticmethod(login), staticmethod(basic), staticmethod(bearer), staticmethod(jwt)

    def __init__(self) -> None:
        super().__init__()
        self.skew_secs = 0.0
        self.callers = {ALICE[0]: (f"arn:aws:iam::{ACCOUNT}:user/team/alice", "AIDAALICE")}
        self.callers[SESSION[0]] = (f"arn:aws:sts::{ACCOUNT}:assumed-role/analyst/bob", "AROAANALYST:bob")
        self.keys: dict[str, tuple[str, str | None]] = {ALICE[0]: (ALICE[1], None)}
        self.keys[SESSION[0]] = (SESSION[1], SESSION[2])

    def usual_headers(self) -> Mapping[str, str]:
        return {"Date": format_datetime(datetime.now(UTC) + timedelta(seconds=self.skew_secs), usegmt=True)}

    def config(self, **keys: Any) -> AwsConfig:
        """Settings with which this server is asked."""
        defaults: dict[str, Any] = {
            "region": "eu-west-1",
            "endpoint_url": self.url,
            "accounts": (ACCOUNT,),
        }
        return AwsConfig(**{**defaults, **keys})

    def honest(self, request: Request) -> Reply:
        """Answer as STS does."""
        if request.form["Action"] == "AssumeRoleWithWebIdentity":
            arn = f"arn:aws:sts::{ACCOUNT}:assumed-role/analyst/{request.form['RoleSessionName']}"
            return answer(
                "AssumeRoleWithWebIdentity",
                AssumedRoleUser_Arn=arn,
                Credentials_SecretAccessKey="handed-out",
                SubjectFromWebIdentityToken=claims_of(request.form["WebIdentityToken"])["sub"],
            )
        if "authorization" not in request.headers:
            return refusal("MissingAuthenticationToken")
        key_id = request.headers["authorization"].partition("Credential=")[2].partition("/")[0]
        if key_id not in self.keys:
            return refusal("InvalidClientTokenId")
        secret, token = self.keys[key_id]
        if request.headers.get("x-amz-security-token") != token:
            return refusal("InvalidClientTokenId")
        if not hmac.compare_digest(self._signed(request, key_id, secret, token), request.headers["authorization"]):
            return refusal("SignatureDoesNotMatch")
        arn, user_id = self.callers[key_id]
        return answer("GetCallerIdentity", Arn=arn, UserId=user_id, Account=ACCOUNT)

    def _signed(self, request: Request, key_id: str, secret: str, token: str | None) -> str:
        names = request.headers["authorization"].partition("SignedHeaders=")[2].partition(",")[0].split(";")
        headers = {name: value for name, value in request.headers.items() if name.lower() in names}
        copy = AWSRequest(method="POST", url=self.url + "/", data=request.body, headers=headers)
        signer = SigV4Auth(Credentials(key_id, secret, token), "sts", "eu-west-1")
        copy.context["timestamp"] = request.headers["x-amz-date"]
        text = signer.string_to_sign(copy, signer.canonical_request(copy))
        before = request.headers["authorization"].partition("Signature=")[0]
        return f"{before}Signature={signer.signature(text, copy)}"


@pytest.fixture
def sts() -> Iterator[FakeSts]:
    """The server."""
    fake = FakeSts()
    yield fake
    fake.stop()
