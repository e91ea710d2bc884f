"""Who sent the statement."""

from __future__ import annotations

import hmac
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType
from typing import Any, NoReturn

_LONGEST_NAME = 1024
_UNCLEAN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def is_clean_name(name: str) -> bool:
    """Say whether a name may be part of an identity: bounded, no control characters, no direction marks (AUTHN-10).

    Args:
        name: a user name, subject, role or group.

    Example:
        >>> is_clean_name("alice"), is_clean_name("alice\\n")
        (True, False)
    """
    return 0 < len(name) <= _LONGEST_NAME and not any(unicodedata.category(char) in _UNCLEAN for char in name)


class Secret:
    """Text that never prints, and cannot be pickled. `reveal()` is the one way to read it.

    Example:
        >>> str(Secret("hunter2"))
        '[redacted]'
    """

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the text itself, for the one call that needs it."""
        return self._value

    def __repr__(self) -> str:
        return "[redacted]"

    __str__ = __repr__

    def __format__(self, format_spec: str) -> str:
        return "[redacted]"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self._value.encode(), other._value.encode())

    def __hash__(self) -> int:
        return hash((Secret, self._value))

    def __bool__(self) -> bool:
        return bool(self._value)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Secret cannot be pickled")


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A person or a service, as a provider vouched for it.

    Args:
        issuer: who vouches, for example the address of the identity provider.
        subject: the issuer's own, unchanging name. Issuer and subject together say who it is (SESS-4).
        username: the name for people to read, and for policies.
        provider: the name of the `AuthProvider` that made this identity; only that one refreshes it.
        email: for people to read.
        roles: from a verified token or our own store, never from a header (AUTHN-9).
        groups: the same.
        claims: what else the token said, for `current_user_attr`; strings, numbers and tuples of them.
        access_token: what is sent to catalogs as this user.
        refresh_token: what renews it.
        expires_at: when the identity ends, in UTC; None when it does not.
        actor: who acts on this person's behalf, for the audit.
        all_roles: None, unless SET ROLE left some out: then `roles` are those in use, and no store adds any to them.
        personal: False for identities that many people share, as those of `anonymous` and `client_credentials` are.

    Example:
        >>> alice = Identity(issuer="https://idp", subject="17", username="alice", provider="idp")
        >>> alice.key
        ('https://idp', '17')
    """

    issuer: str
    subject: str
    username: str
    provider: str
    email: str | None = None
    roles: frozenset[str] = frozenset()
    all_roles: frozenset[str] | None = None
    groups: frozenset[str] = frozenset()
    claims: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    access_token: Secret | None = None
    refresh_token: Secret | None = None
    expires_at: datetime | None = None
    actor: str | None = None
    personal: bool = True

    @property
    def key(self) -> tuple[str, str]:
        """Issuer and subject: what ownership is compared by."""
        return self.issuer, self.subject

    def without_tokens(self) -> Identity:
        """Return a copy for those who need to know who it is, and not more."""
        return replace(self, access_token=None, refresh_token=None)
