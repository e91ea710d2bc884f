"""From the claims of a token to an identity: bounded, clean, and only by the configured paths (AUTHN-9, AUTHN-10)."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any

from sqe_auth_oidc.compact import BadToken
from sqe_core.spi import Identity, Secret, is_clean_name

_log = logging.getLogger("sqe_core.auth_oidc")
_MOST_NAMES = 5_000
_MOST_CLAIMS = 64
_MOST_ITEMS = 100
_LONGEST_TEXT = 1024
# About the token and not about the person; most of them change with every refresh.
_OF_THE_TOKEN = frozenset(
    (
        "acr",
        "amr",
        "at_hash",
        "aud",
        "auth_time",
        "c_hash",
        "exp",
        "iat",
        "iss",
        "jti",
        "nbf",
        "nonce",
        "rt_hash",
        "s_hash",
        "scope",
        "session_state",
        "sid",
        "sub",
        "typ",
        "token_use",
        "uti",
        "aio",
        "rh",
        "xms_ftd",
        "origin_jti",
        "event_id",
        "allowed-origins",
        "active",
        "token_type",
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimNames:
    """Where a token says what; dotted paths."""

    user: str = "preferred_username"
    subject: str = "sub"
    email: str = "email"
    roles: str = "realm_access.roles"
    groups: str | None = None


class IdentityMaker:
    """Makes the identities of one provider.

    Args:
        provider: the provider's name.
        names: where a token says what.
    """

    def __init__(self, provider: str, names: ClaimNames) -> None:
        self._provider = provider
        self._names = names

    def make(
        self,
        claims: Mapping[str, Any],
        *,
        issuer: str,
        expires_at: datetime | None,
        access_token: Secret | None,
        refresh_token: Secret | None = None,
        fallback_user: str | None = None,
        personal: bool = True,
    ) -> Identity:
        """Return who it is.

        Args:
            claims: of a token that was accepted.
            issuer: who vouches.
            expires_at: when that ends.
            access_token: what is sent on as this user.
            refresh_token: what renews it.
            fallback_user: the name when the claims have none.
            personal: False for an identity that many people share.

        Raises:
            BadToken: subject or user are missing, or a name is not one.
        """
        subject = _text(claims, self._names.subject) or fallback_user
        user = _text(claims, self._names.user) or fallback_user
        if subject is None:
            raise BadToken(f"has no subject (subject_claim {self._names.subject})")
        if user is None:
            raise BadToken(f"has no user name (user_claim {self._names.user})")
        actor = claims.get("act")
        return Identity(
            issuer=issuer,
            subject=subject,
            username=user,
            provider=self._provider,
            email=_text(claims, self._names.email),
            roles=_listed(claims, self._names.roles),
            groups=_listed(claims, self._names.groups),
            claims=MappingProxyType(dict(_simple(claims))),
            access_token=access_token,
            refresh_token=refresh_token,
            expires_at=expires_at,
            actor=_text(actor, "sub") if isinstance(actor, Mapping) else None,
            personal=personal,
        )


def _at(claims: Mapping[str, Any], path: str) -> Any:
    """Follow a dotted path. A claim may have dots in its own name (`https://example.com/roles`), which comes first."""
    if path in claims:
        return claims[path]
    value: Any = claims
    for part in path.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return None
        value = value[part]
    return value


def _text(claims: Mapping[str, Any], path: str) -> str | None:
    value = _at(claims, path)
    if value is None:
        return None
    if not isinstance(value, str) or not is_clean_name(value):
        raise BadToken(f"has a name that is none ({path})")
    return value


def _listed(claims: Mapping[str, Any], path: str | None) -> frozenset[str]:
    """Read roles or groups: an array of names. Anything else is refused: one text might be several names, or one."""
    value = None if path is None else _at(claims, path)
    if value is None:
        return frozenset()
    if not isinstance(value, list) or len(value) > _MOST_NAMES:
        raise BadToken(f"has no list of names, or too many ({path})")
    if not all(isinstance(name, str) and is_clean_name(name) for name in value):
        raise BadToken(f"has a name that is none ({path})")
    return frozenset(value)


def _simple(claims: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """What policies may look at: texts, numbers, truth values, and lists of them; the rest is left out."""
    left = _MOST_CLAIMS
    for name in sorted(claims):
        value = claims[name]
        if name in _OF_THE_TOKEN or not is_clean_name(name) or len(name) > 128:
            continue
        if isinstance(value, list) and len(value) <= _MOST_ITEMS and all(map(_is_simple, value)):
            value = tuple(value)
        elif not _is_simple(value):
            continue
        if left == 0:
            _log.info("a token has more than %d claims; the others are left out", _MOST_CLAIMS)
            return
        left -= 1
        yield name, value


def _is_simple(value: Any) -> bool:
    match value:
        case bool() | float():
            return True
        case int():
            return -(2**63) <= value < 2**63
        case str():
            return len(value) <= _LONGEST_TEXT and (not value or is_clean_name(value))
    return False
