"""Who sent the statement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Any, NoReturn


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
        import hmac

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

    `issuer` and `subject` together say who it is; `username` is for people to read (SESS-4).
    """

    issuer: str
    subject: str
    username: str
    provider: str
    email: str | None = None
    roles: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    claims: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    access_token: Secret | None = None
    refresh_token: Secret | None = None
    expires_at: datetime | None = None
    actor: str | None = None
    personal: bool = True
    """False for identities that many people share: `anonymous`, `client_credentials`."""
