"""Where clients find this server, and where they are: from configuration and the connection alone (TRI-5)."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
from collections.abc import Collection, Container
from dataclasses import dataclass

from aiohttp.web import BaseRequest

_HOST = re.compile(r"([A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?")
_PORT, _HAS_PORT = re.compile(r"[0-9]{1,5}"), re.compile(r":[0-9]+$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Reads addresses of requests.

    Args:
        public_url: the address that clients use, where it is configured.
        trusted_proxies: addresses and networks whose `X-Forwarded-*` count.
        names: those of the server's certificate, which clients may call it by.
    """

    public_url: str | None
    trusted_proxies: Collection[str]
    names: Container[str] = ()

    def client_address(self, request: BaseRequest) -> str | None:
        """Return where a request comes from: the last address that no trusted proxy has."""
        peer = self._peer(request)
        if not self._is_trusted(peer):
            return peer
        for address in reversed(_forwarded(request, "For")):
            # What a proxy cannot have written, and all before it, is the client's own word.
            if not _is_address(address):
                break
            peer = address
            if not self._is_trusted(address):
                break
        return peer

    def is_secure(self, request: BaseRequest) -> bool:
        """Whether what the client sends is encrypted on its way here."""
        if self._is_trusted(self._peer(request)):
            forwarded = _forwarded(request, "Proto")
            if forwarded:
                return forwarded[-1].lower() == "https"
        return _is_encrypted(request)

    def base(self, request: BaseRequest) -> str:
        """Return what the addresses in answers begin with."""
        if self.public_url is not None:
            return self.public_url.rstrip("/")
        if self._is_trusted(self._peer(request)):
            host = next(reversed(_forwarded(request, "Host")), None) or request.headers.get("Host")
            if host is not None and _is_host(host):
                port = next(reversed(_forwarded(request, "Port")), "")
                host = f"{host}:{port}" if _PORT.fullmatch(port) and not _HAS_PORT.search(host) else host
                return f"{'https' if self.is_secure(request) else 'http'}://{host}"
        scheme = "https" if _is_encrypted(request) else "http"
        name = request.get_extra_info("sockname")
        if name is None:
            raise ConnectionResetError
        local, port_number = name[:2]
        named = _HAS_PORT.sub("", request.headers.get("Host", "")).lower()
        if named in self.names or (named == "localhost" and ipaddress.ip_address(local).is_loopback):
            return f"{scheme}://{named}:{port_number}"
        return f"{scheme}://{f'[{local}]' if ':' in local else local}:{port_number}"

    def _peer(self, request: BaseRequest) -> str | None:
        peer = request.get_extra_info("peername")
        return str(peer[0]) if peer else None

    def _is_trusted(self, address: str | None) -> bool:
        if address is None or not self.trusted_proxies:
            return False
        found: ipaddress.IPv4Address | ipaddress.IPv6Address | None = ipaddress.ip_address(address)
        if isinstance(found, ipaddress.IPv6Address):
            found = found.ipv4_mapped or found
        return any(found in ipaddress.ip_network(proxy, strict=False) for proxy in self.trusted_proxies)


def _is_encrypted(request: BaseRequest) -> bool:
    return request.get_extra_info("ssl_object") is not None


def _forwarded(request: BaseRequest, what: str) -> list[str]:
    """Return what proxies say, the nearest last; a client may have sent a line of its own before theirs."""
    lines = request.headers.getall(f"X-Forwarded-{what}", [])
    return [entry.strip() for line in lines for entry in line.split(",") if entry.strip()]


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _is_host(text: str) -> bool:
    return len(text) < 256 and _HOST.fullmatch(text) is not None


def slug(key: bytes, phase: str, number: int) -> str:
    """Return what makes the address of a page unguessable (TRI-2)."""
    return "x" + hmac.new(key, f"{phase}/{number}".encode(), hashlib.sha256).hexdigest()[:40]


def is_slug(given: str, key: bytes, phase: str, number: int) -> bool:
    """Whether the address of a page is one that this server made."""
    return hmac.compare_digest(given.encode(), slug(key, phase, number).encode())
