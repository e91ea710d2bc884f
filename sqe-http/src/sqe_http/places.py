"""Where a host is."""

from __future__ import annotations

from ipaddress import ip_address


def is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    try:
        # As an address, and not by its beginning: 127.0.0.1.example.com is somebody else's machine.
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
