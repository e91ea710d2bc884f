"""What the address of a peer says: whether it is this machine, and which network counts as one client."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

# A household or a server owns a whole /64 of IPv6; counting single addresses of it would count nothing.
_IPV6_CLIENT_BITS = 64


def is_loopback(address: str | None) -> bool:
    """Whether a peer is this machine; None is a client in this process."""
    if address is None:
        return True
    parsed = _parse(address)
    return parsed is not None and parsed.is_loopback


def client_network(address: str | None) -> str:
    """Return what attempts are counted by: an IPv4 address, an IPv6 network, or the text itself."""
    if address is None:
        return ""
    match _parse(address):
        case IPv6Address() as parsed:
            return str(ip_network((int(parsed), _IPV6_CLIENT_BITS), strict=False))
        case IPv4Address() as parsed:
            return str(parsed)
    return address


def _parse(address: str) -> IPv4Address | IPv6Address | None:
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return None
    return getattr(parsed, "ipv4_mapped", None) or parsed
