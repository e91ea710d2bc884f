"""Compression of answers: gzip and zstd, for clients that are not on this machine."""

from __future__ import annotations

import gzip
from ipaddress import ip_address

import zstandard
from aiohttp.web import BaseRequest

_WORTH = 1024
_ZSTD, _GZIP = "zstd", "gzip"


def wanted(request: BaseRequest, setting: str, address: str | None, size: int) -> str | None:
    """Return how an answer is compressed; None for not at all.

    Args:
        request: what is answered.
        setting: `auto`, `always` or `never`.
        address: of the client.
        size: of the answer, in bytes.
    """
    if (
        setting == "never"
        or size < _WORTH
        or (setting == "auto" and (address is None or ip_address(address).is_loopback))
    ):
        return None
    accepted = _accepted(request.headers.get("Accept-Encoding", ""))
    return next((each for each in (_ZSTD, _GZIP) if each in accepted), None)


def _accepted(header: str) -> set[str]:
    found = set()
    for entry in header.lower().split(","):
        name, _, quality = entry.partition(";")
        if quality.replace(" ", "") not in ("q=0", "q=0.0"):
            found.add(name.strip())
    return found


def pack(body: bytes, encoding: str) -> bytes:
    """Return an answer, compressed."""
    return zstandard.compress(body, level=1) if encoding == _ZSTD else gzip.compress(body, compresslevel=1)
