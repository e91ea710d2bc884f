"""The context of a question."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

_LONGS = range(-(2**63), 2**63)


def circumstances_of(protocol: str, now: datetime, address: str | None) -> dict[str, Any]:
    """Return what every question tells about its statement; the claims come on top."""
    moment = now.astimezone(UTC)
    text = f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"
    context: dict[str, Any] = {"protocol": protocol, "now": _extension("datetime", text), "claims": {}}
    if address is not None and (known := _address(address)) is not None:
        context["client_addr"] = _extension("ip", known)
    return context


def chosen_claims(claims: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return the configured claims that Cedar has types for: text, whole numbers, booleans, and sets of them.

    Objects are left out: in Cedar's JSON some of them are escapes, and nobody outside may write those.
    """
    found = {}
    for name in names:
        value = claims.get(name)
        if _is_plain(value):
            found[name] = value
        elif isinstance(value, list | tuple | frozenset | set) and all(map(_is_plain, value)):
            found[name] = list(value)
    return found


def _is_plain(value: object) -> bool:
    return isinstance(value, str | bool) or (isinstance(value, int) and value in _LONGS)


def _extension(function: str, argument: str) -> dict[str, Any]:
    return {"__extn": {"fn": function, "arg": argument}}


def _address(text: str) -> str | None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address):
        # Cedar knows neither zones nor IPv4 in IPv6, and ranges of IPv4 have to match clients of a dual-stack socket.
        plain = address.ipv4_mapped or ipaddress.IPv6Address(int(address))
        return str(plain)
    return str(address)
