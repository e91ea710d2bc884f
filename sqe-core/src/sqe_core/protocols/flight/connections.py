"""How many connections clients have, and the bound on them (LIM-2).

gRPC for Python tells of calls, not of connections; the kernel knows the connections of a port. Beyond the bound calls
of a new connection are refused with a status that says so; far beyond it gRPC drops connections without a word.
"""

from __future__ import annotations

import resource
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from sqe_core.spi.errors import ResourcesError

MARGIN = 64
"""So many connections beyond the bound get a status."""
_TABLES = (Path("/proc/self/net/tcp"), Path("/proc/self/net/tcp6"))
_ESTABLISHED = b"01"
_MOST = 10_000
# Files, the engine, catalogs: what a server needs descriptors for beside its clients.
_RESERVED_DESCRIPTORS = 256


def default_bound() -> int:
    """Return how many connections the limit on descriptors has room for."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return _MOST
    return max(16, min(_MOST, (soft - _RESERVED_DESCRIPTORS) // 2))


def peer_ports(port: int) -> frozenset[bytes] | None:
    """Return the far ends of the connections to a port; None where the kernel does not say."""
    found: set[bytes] = set()
    known = False
    for table in _TABLES:
        try:
            content = table.read_bytes()
        except OSError:
            continue
        known = True
        found.update(_far_ends(content, b":%04X" % port))
    return frozenset(found) if known else None


def _far_ends(content: bytes, local: bytes) -> Iterator[bytes]:
    for line in content.splitlines()[1:]:
        fields = line.split(None, 4)
        if len(fields) > 3 and fields[3] == _ESTABLISHED and fields[1].endswith(local):
            yield fields[2]


class Connections:
    """Lets connections in, up to a bound. A connection that was let in stays so for as long as it is there."""

    def __init__(self, most: int, far_ends: Callable[[], frozenset[bytes] | None]) -> None:
        """Begin.

        Args:
            most: how many connections there may be.
            far_ends: tells of those that are there.
        """
        self._most = most
        self._far_ends = far_ends
        self._lock = threading.Lock()
        self._admitted: dict[str, None] = {}

    def count(self) -> int:
        """How many there are; 0 where nobody knows."""
        return len(self._far_ends() or ())

    def admit(self, peer: str) -> None:
        """Let a call in.

        Args:
            peer: gRPC's name of the other end of its connection, which ends with its port.

        Raises:
            ResourcesError: there are too many connections, and this one is new.
        """
        with self._lock:
            if peer in self._admitted:
                return
            ends = self._far_ends()
            if ends is None:
                return
            # Ports alone, since addresses are written in many ways: that a new connection passes for one that has just
            # gone does no harm.
            ports = {int(end.rpartition(b":")[2], 16) for end in ends}
            self._admitted = {each: None for each in self._admitted if _port_of(each) in ports}
            if len(ends) > self._most and len(self._admitted) >= self._most:
                raise ResourcesError(
                    f"The server has {self._most} connections, the most that it takes",
                    hint="close connections that are not needed, or try again later",
                    retry_after_secs=5,
                )
            self._admitted[peer] = None


def _port_of(peer: str) -> int:
    port = peer.rpartition(":")[2]
    return int(port) if port.isdecimal() else -1
