"""A server on loopback that answers like AWS's STS, or as badly as a test wants."""

from __future__ import annotations

import base64
import hmac
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from sqe_auth_aws.config import AwsConfig
from sqe_core.spi import BasicCredential, BearerCredential, ClientInfo, Credential, LoginRequest, Secret

ACCOUNT = "123456789012"
ISSUER = "https://idp.example.com"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/analyst"
ALICE = ("AKIAALICE00000000001", "alice/secret+of/forty/characters/0000000")
SESSION = ("ASIASESSION000000001", "session/secret/of/forty/characters/00000", "token/of+the==session")


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What the server sends. `drip_secs` waits before each byte of the body; `raw` is sent in place of an answer."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    drip_secs: float = 0
    raw: bytes | None = None


@dataclass(frozen=True, kw_only=True)
class Request:
    """What the server received."""

    headers: Mapping[str, str]
    form: Mapping[str, str]
    body: bytes


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


class FakeSts:
    """Checks signatures by the rules of AWS, with the library that AWS writes."""

    # For tests, which cannot import this file.
    ROLE, ALICE, SESSION, ISSUER = ROLE, ALICE, SESSION, ISSUER
    Reply, answer, refusal = Reply, staticmethod(answer), staticmethod(refusal)
    login, basic, bearer, jwt = staticmethod(login), staticmethod(basic), staticmethod(bearer), staticmethod(jwt)

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.reply: Callable[[Request], Reply] | None = None
        """Takes the place of everything below."""
        self.skew_secs = 0.0
        self.callers = {ALICE[0]: (f"arn:aws:iam::{ACCOUNT}:user/team/alice", "AIDAALICE")}
        self.callers[SESSION[0]] = (f"arn:aws:sts::{ACCOUNT}:assumed-role/analyst/bob", "AROAANALYST:bob")
        self.keys: dict[str, tuple[str, str | None]] = {ALICE[0]: (ALICE[1], None)}
        self.keys[SESSION[0]] = (SESSION[1], SESSION[2])
        self._ending = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self) -> None:
        self._ending.set()
        self._server.shutdown()
        self._server.server_close()

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
        if "Authorization" not in request.headers:
            return refusal("MissingAuthenticationToken")
        key_id = request.headers["Authorization"].partition("Credential=")[2].partition("/")[0]
        if key_id not in self.keys:
            return refusal("InvalidClientTokenId")
        secret, token = self.keys[key_id]
        if request.headers.get("X-Amz-Security-Token") != token:
            return refusal("InvalidClientTokenId")
        if not hmac.compare_digest(self._signed(request, key_id, secret, token), request.headers["Authorization"]):
            return refusal("SignatureDoesNotMatch")
        arn, user_id = self.callers[key_id]
        return answer("GetCallerIdentity", Arn=arn, UserId=user_id, Account=ACCOUNT)

    def _signed(self, request: Request, key_id: str, secret: str, token: str | None) -> str:
        names = request.headers["Authorization"].partition("SignedHeaders=")[2].partition(",")[0].split(";")
        headers = {name: value for name, value in request.headers.items() if name.lower() in names}
        copy = AWSRequest(method="POST", url=self.url + "/", data=request.body, headers=headers)
        signer = SigV4Auth(Credentials(key_id, secret, token), "sts", "eu-west-1")
        copy.context["timestamp"] = request.headers["X-Amz-Date"]
        text = signer.string_to_sign(copy, signer.canonical_request(copy))
        before = request.headers["Authorization"].partition("Signature=")[0]
        return f"{before}Signature={signer.signature(text, copy)}"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: Any) -> None:
                pass

            def date_time_string(self, timestamp: float | None = None) -> str:
                return format_datetime(datetime.now(UTC) + timedelta(seconds=fake.skew_secs), usegmt=True)

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
                request = Request(headers=dict(self.headers), form=form, body=body)
                fake.requests.append(request)
                with suppress(OSError):
                    self._send((fake.reply or fake.honest)(request))

            def _send(self, reply: Reply) -> None:
                if reply.raw is not None:
                    self.close_connection = True
                    self.wfile.write(reply.raw)
                    return
                self.send_response(reply.status)
                for name, value in {"Content-Length": str(len(reply.body)), **reply.headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                if not reply.drip_secs:
                    self.wfile.write(reply.body)
                    return
                for byte in reply.body:
                    if fake._ending.wait(reply.drip_secs):
                        return
                    self.wfile.write(bytes([byte]))

        return Handler


@pytest.fixture
def sts() -> Iterator[FakeSts]:
    """The server."""
    fake = FakeSts()
    yield fake
    fake.stop()
