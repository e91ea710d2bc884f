"""What a web identity's token says about itself. AWS checks the token; this reads which one it was."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqe_core.spi import read_json

_LONGEST = 16 * 1024
_LATEST = datetime(9999, 1, 1, tzinfo=UTC).timestamp()


@dataclass(frozen=True, slots=True, kw_only=True)
class WebToken:
    issuer: str
    subject: str
    username: str
    expires_at: datetime


def issuer_of(token: str) -> str | None:
    """Whose token it says to be; None when it is no JWT."""
    claims = _claims(token)
    issuer = claims.get("iss") if claims else None
    return issuer if isinstance(issuer, str) else None


def read_token(token: str, user_claim: str) -> WebToken | None:
    """Read a token that has been checked; None when it lacks a claim, or has one twice."""
    claims = _claims(token)
    if claims is None:
        return None
    issuer, subject, username, expiry = (claims.get(name) for name in ("iss", "sub", user_claim, "exp"))
    if not (isinstance(issuer, str) and isinstance(subject, str) and isinstance(username, str)):
        return None
    if isinstance(expiry, bool) or not isinstance(expiry, int | float) or not 0 < expiry < _LATEST:
        return None
    return WebToken(
        issuer=issuer, subject=subject, username=username, expires_at=datetime.fromtimestamp(expiry, tz=UTC)
    )


def _claims(token: str) -> dict[str, Any] | None:
    parts = token.split(".")
    if len(parts) != 3 or len(token) > _LONGEST or not token.isascii():
        return None
    try:
        text = base64.b64decode(parts[1] + "=" * (-len(parts[1]) % 4), altchars=b"-_", validate=True)
        claims = read_json(text)
    except (binascii.Error, ValueError):
        return None
    return claims if isinstance(claims, dict) else None
