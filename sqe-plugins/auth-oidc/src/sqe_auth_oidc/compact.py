"""The three parts of a signed token, taken apart strictly and before any signature is looked at (JWT-6)."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field
from typing import Any

from sqe_auth_oidc.strict_json import read_object

LARGEST_TOKEN = 16 * 1024
_LARGEST_HEADER = 4 * 1024
_LONGEST_KID = 512
_HEADER_DEPTH = 4
_CLAIMS_DEPTH = 12
_SHAPE = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*\.[A-Za-z0-9_-]*")
_TYPES = frozenset({"jwt", "at+jwt", "application/jwt", "application/at+jwt"})


class BadToken(Exception):
    """A token that is refused. The text says why, for the log, and holds nothing of the token itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactToken:
    """A token whose form is right. Nothing in it is true before its signature was checked."""

    algorithm: str
    kid: str
    claims: dict[str, Any] = field(repr=False)
    signed: bytes = field(repr=False)
    signature: bytes = field(repr=False)


def looks_signed(token: str) -> bool:
    """Whether a bearer has the form of a signed token at all; others are opaque, or of another system."""
    if len(token) > LARGEST_TOKEN or not _SHAPE.fullmatch(token):
        return False
    try:
        return "alg" in _header(token.split(".")[0])
    except BadToken:
        return False


def read_compact(token: str, *, check_signature: bool = True) -> CompactToken:
    """Take a token apart.

    Args:
        token: what a client or an identity provider sent.
        check_signature: False when the token is read only, because its issuer handed it out himself.

    Raises:
        BadToken: anything about its form.
    """
    if len(token) > LARGEST_TOKEN:
        raise BadToken("is larger than 16 KiB")
    if not _SHAPE.fullmatch(token):
        raise BadToken("does not have three parts of base64url")
    first, second, third = token.split(".")
    header = _header(first)
    algorithm, kid = header.get("alg"), header.get("kid")
    if not isinstance(algorithm, str):
        raise BadToken("names no algorithm")
    if check_signature:
        if not isinstance(kid, str) or not 0 < len(kid) <= _LONGEST_KID:
            raise BadToken("names no key (kid)")
        _refuse_extensions(header)
    try:
        claims = read_object(_decode(second), depth=_CLAIMS_DEPTH)
    except ValueError as error:
        raise BadToken(f"has a payload that {error}") from None
    return CompactToken(
        algorithm=algorithm,
        kid=kid if isinstance(kid, str) else "",
        claims=claims,
        signed=f"{first}.{second}".encode("ascii"),
        signature=_decode(third),
    )


def _header(part: str) -> dict[str, Any]:
    if len(part) > _LARGEST_HEADER * 4 // 3:
        raise BadToken("has a header of more than 4 KiB")
    try:
        return read_object(_decode(part), depth=_HEADER_DEPTH)
    except ValueError as error:
        raise BadToken(f"has a header that {error}") from None


def _refuse_extensions(header: dict[str, Any]) -> None:
    """No extension is understood; keys that a token brings along (jwk, jku, x5c, x5u) are never looked at (JWT-2)."""
    if "crit" in header:
        raise BadToken("has critical extensions (crit)")
    if "b64" in header:
        raise BadToken("has an unencoded payload (b64)")
    if "zip" in header or "enc" in header:
        raise BadToken("is compressed or encrypted")
    kind = header.get("typ", "JWT")
    if not isinstance(kind, str) or kind.lower() not in _TYPES:
        raise BadToken("is of another type (typ)")
    content = header.get("cty")
    if content is not None:
        raise BadToken("holds another token (cty)")


def _decode(part: str) -> bytes:
    """Decode base64url of exactly one spelling: no padding, and no bits that nothing stands for."""
    try:
        raw = base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except ValueError:
        raise BadToken("is no base64url") from None
    if base64.urlsafe_b64encode(raw).rstrip(b"=") != part.encode("ascii"):
        raise BadToken("is no base64url")
    return raw
