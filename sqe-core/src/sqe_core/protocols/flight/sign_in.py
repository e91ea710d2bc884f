"""Who calls: from the `authorization` header, the handshake, or the client's certificate.

Clients differ: ADBC and pyarrow send Basic with the handshake and then the bearer they were given, JDBC does so too or
sends a token at once, base64 comes with and without its padding, and old clients put user and password into a message.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import ssl
from collections.abc import Container, Iterator

import grpc
from google.protobuf.message import DecodeError

from sqe_core.protocols.flight.sockets import far_end
from sqe_core.protocols.flight.wire import flight_pb2 as flight
from sqe_core.spi.auth import (
    BasicCredential,
    BearerCredential,
    CertificateCredential,
    ClientInfo,
    Credential,
    NoCredential,
)
from sqe_core.spi.errors import InvalidCredentialsError
from sqe_core.spi.identity import Secret
from sqe_core.spi.protocol import DeviceLoginStart

PROTOCOL = "flight"
DEVICE_LOGIN = "x-sqe-device-login"
"""Header of a handshake that logs in on another device: `begin`, and then the id that this answers with."""
BEGIN = "begin"
_LONGEST = 32 << 10
_LONGEST_MESSAGE = 64 << 10
_COOKIE = "arrow_flight_session_id"  # the name that Arrow's own servers use
_LABEL = re.compile(r"[A-Za-z0-9._:-]{1,128}")


def headers_of(context: grpc.ServicerContext) -> dict[str, str]:
    """Return the text headers of a call.

    Raises:
        InvalidCredentialsError: two logins in one call (AUTHN-5).
    """
    names = [name.lower() for name, _ in context.invocation_metadata() or ()]
    if names.count("authorization") > 1:
        raise InvalidCredentialsError
    return text_headers(context)


def text_headers(context: grpc.ServicerContext) -> dict[str, str]:
    """Return the text headers of a call; of those that come several times the first."""
    headers: dict[str, str] = {}
    for name, value in context.invocation_metadata() or ():
        if isinstance(value, str):
            headers.setdefault(name.lower(), value)
    return headers


def request_id_of(headers: dict[str, str]) -> str | None:
    """Return what the client calls its request (`x-request-id`); None for what is no label, which goes nowhere."""
    label = headers.get("x-request-id", "")
    return label if _LABEL.fullmatch(label) else None


def client_of(context: grpc.ServicerContext, headers: dict[str, str], *, secure: bool) -> ClientInfo:
    """Return what is known about a client beside its credential and its connection."""
    label, end = headers.get("x-session-id", ""), far_end(context.peer())
    return ClientInfo(
        protocol=PROTOCOL,
        address=end.address if end is not None else None,
        secure=secure,
        source=headers.get("x-sqe-source", "")[:128] or None,
        user_agent=headers.get("user-agent", "")[:256] or None,
        label=label if _LABEL.fullmatch(label) else None,
    )


def is_java(client: ClientInfo) -> bool:
    """Whether it is Arrow's Java library, on which the JDBC driver stands."""
    return "grpc-java" in (client.user_agent or "")


def reads_plain_only(client: ClientInfo) -> bool:
    """Whether compression costs more than it brings: on this machine, and for the JDBC driver, which has no codecs."""
    return is_java(client) or client.address in ("127.0.0.1", "::1", None)


def credential_of(context: grpc.ServicerContext, headers: dict[str, str]) -> Credential:
    """Return what a call presents.

    Raises:
        InvalidCredentialsError: an `authorization` header that cannot be read.
    """
    header = headers.get("authorization")
    if header is not None:
        return _of_header(header)
    # Where older clients keep what a handshake gave them.
    for name, value in context.invocation_metadata() or ():
        if name == "auth-token-bin" and isinstance(value, bytes):
            return BearerCredential(token=Secret(value.decode("utf-8", "replace")))
    token = _cookie(headers.get("cookie", ""))
    if token:
        return BearerCredential(token=Secret(token))
    certificates = context.auth_context().get("x509_pem_cert")
    if certificates:
        return _of_certificate(certificates[0])
    return NoCredential()


def may_read(headers: Container[str]) -> bool:
    """Whether a handshake with such headers brings its login in a message, which is the older way."""
    return "authorization" not in headers and DEVICE_LOGIN not in headers


def credential_of_message(requests: Iterator[bytes]) -> Credential | None:
    """Return what the message of a handshake presents; None when it presents nothing.

    Raises:
        InvalidCredentialsError: a message that is too long, which is not parsed, or cannot be parsed.
    """
    data = next(requests, b"")
    if len(data) > _LONGEST_MESSAGE:
        data = b""  # the error keeps what is here until it is told
        raise InvalidCredentialsError
    try:
        request = flight.HandshakeRequest.FromString(data)
        if not request.payload:
            return None
        message = flight.BasicAuth.FromString(request.payload)
    except DecodeError:
        raise InvalidCredentialsError from None
    if not message.username:
        return None
    return BasicCredential(username=message.username, password=Secret(message.password))


def shown(login: DeviceLoginStart) -> bytes:
    """Return what a client shows to its user, and asks with."""
    document = {
        "id": login.id.reveal(),
        "user_code": login.user_code,
        "verification_uri": login.verification_uri,
        "verification_uri_complete": login.verification_uri_complete,
        "interval_secs": login.interval_secs,
        "expires_at": login.expires_at.isoformat(),
    }
    return json.dumps(document).encode()


def answer_headers(token: str, *, secure: bool) -> tuple[tuple[str, str], ...]:
    """Return what a handshake answers with: the session's bearer, for clients with and without cookies."""
    flags = "; Path=/; HttpOnly; SameSite=Strict" + ("; Secure" if secure else "")
    return ("authorization", f"Bearer {token}"), ("set-cookie", f"{_COOKIE}={token}{flags}")


def _cookie(header: str) -> str | None:
    for pair in header.split(";"):
        name, _, value = pair.strip().partition("=")
        if name == _COOKIE:
            return value.strip('"') or None
    return None


def _of_header(header: str) -> Credential:
    scheme, _, rest = header.partition(" ")
    rest = rest.strip()
    if len(header) > _LONGEST or not rest:
        raise InvalidCredentialsError
    match scheme.lower():
        case "bearer":
            return BearerCredential(token=Secret(rest))
        case "basic":
            return _of_basic(rest)
    raise InvalidCredentialsError


def _of_basic(encoded: str) -> Credential:
    try:
        text = base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        raise InvalidCredentialsError from None
    username, colon, password = text.partition(":")
    if not colon:
        raise InvalidCredentialsError
    return BasicCredential(username=username, password=Secret(password))


def _of_certificate(pem: bytes) -> Credential:
    try:
        return CertificateCredential(der=ssl.PEM_cert_to_DER_cert(pem.decode("ascii")))
    except ValueError:
        raise InvalidCredentialsError from None
