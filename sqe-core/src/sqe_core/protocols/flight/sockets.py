"""The connections of a port as the kernel knows them, and how one is ended: gRPC for Python offers neither."""

from __future__ import annotations

import os
import resource
import socket
import stat
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from ipaddress import IPv6Address, ip_address, ip_network
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

_TABLES = (Path("/proc/self/net/tcp"), Path("/proc/self/net/tcp6"))
_DESCRIPTORS = Path("/proc/self/fd")
_ESTABLISHED = b"01"
# Where a line of the tables has its fields.
_LOCAL, _REMOTE, _STATE, _INODE = 1, 2, 3, 9
_WORD = 4
# As for logins (`session.addresses`): who has one address of IPv6 has all of its network.
_IPV6_CLIENT_BITS = 64
_MOST = 10_000
# Files, the engine, catalogs: what a server needs descriptors for beside its clients.
_RESERVED_DESCRIPTORS = 256


class FarEnd(NamedTuple):
    """The client's end of a connection."""

    address: str
    port: int


def default_bound() -> int:
    """Return how many connections the limit on descriptors has room for; as many again may arrive at a time."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return _MOST
    return max(16, min(_MOST, (soft - _RESERVED_DESCRIPTORS) // 2))


def far_end(peer: str) -> FarEnd | None:
    """Return what gRPC calls a peer, `ipv4:127.0.0.1:50004` or `ipv6:%5B::1%5D:50004`; None for other kinds."""
    kind, _, rest = unquote(peer).partition(":")
    address, _, port = rest.rpartition(":")
    if kind not in ("ipv4", "ipv6") or not port.isdecimal():
        return None
    try:
        return FarEnd(_canonical(address.strip("[]").partition("%")[0]), int(port))
    except ValueError:
        return None


@lru_cache(_MOST)
def network_of(address: str) -> str:
    """Return what the connections of an address are counted by."""
    try:
        parsed = ip_address(_canonical(address.partition("%")[0]))
    except ValueError:
        return address
    if isinstance(parsed, IPv6Address):
        return str(ip_network((int(parsed), _IPV6_CLIENT_BITS), strict=False))
    return str(parsed)


class Sockets:
    """The connections of a port that this process serves, each under a name that no other has or had.

    gRPC says where a call comes from, and a client may use a port again as soon as its connection is gone: the same
    words, and another connection. The number of a socket is not used again.
    """

    def __init__(self, port: int = 0) -> None:
        self.port = port
        self._lock = threading.Lock()
        self._known: Mapping[FarEnd, _Socket] = {}

    def established(self) -> Mapping[FarEnd, int] | None:
        """Return the connections, as `connections_of`."""
        return connections_of(self.port) if self.port else {}

    def number_of(self, end: FarEnd) -> int | None:
        """Return the number of the socket whose client is there now; None when there is none, or nobody knows."""
        known = self._known.get(end)
        if known is None or not _is_at(known, end):
            with self._lock:
                known = self._known.get(end)  # others may have looked meanwhile
                if known is None or not _is_at(known, end):
                    self._known = dict(self._served())
                    known = self._known.get(end)
        return known.inode if known is not None else None

    def _served(self) -> Iterator[tuple[FarEnd, _Socket]]:
        try:
            names = os.listdir(_DESCRIPTORS)
        except OSError:
            return
        before = {known: end for end, known in self._known.items()}
        for name in names:
            with suppress(OSError, ValueError):
                looked = os.stat(int(name))
                if not stat.S_ISSOCK(looked.st_mode):
                    continue
                found = _Socket(int(name), looked.st_ino)
                end = before.get(found) or _client_of(found, self.port)
                if end is not None:
                    yield end, found


class _Socket(NamedTuple):
    """A socket of this process: its descriptor, whose number may be another's later, and its own number."""

    descriptor: int
    inode: int


def _is_at(known: _Socket, end: FarEnd) -> bool:
    """Whether a socket is there still, and the client at its other end."""
    try:
        return _client_of(known, None) == end
    except (OSError, ValueError):
        return False


def _client_of(known: _Socket, port: int | None) -> FarEnd | None:
    """Return where the client of a socket is; None when it is one of another port, or another one by now.

    Raises:
        OSError: it is not connected.
    """
    with socket.socket(fileno=os.dup(known.descriptor)) as own:
        if os.fstat(own.fileno()).st_ino != known.inode or own.family not in (socket.AF_INET, socket.AF_INET6):
            return None
        if port is not None and own.getsockname()[1] != port:
            return None
        address, client_port = own.getpeername()[:2]
    return FarEnd(_canonical(address.partition("%")[0]), client_port)


def connections_of(port: int) -> Mapping[FarEnd, int] | None:
    """Return the connections to a port, each with the number of its socket; None where the kernel does not say."""
    found: dict[FarEnd, int] = {}
    known = False
    for table in _TABLES:
        try:
            content = table.read_bytes()
        except FileNotFoundError:
            continue
        except OSError:
            return None  # with half of them, the others would seem to have gone
        known = True
        found.update(_established(content, b":%04X" % port))
    return found if known else None


def close_sockets(inodes: frozenset[int]) -> None:
    """Shut sockets of this process down; gRPC then closes them as if the client had gone."""
    for name in os.listdir(_DESCRIPTORS):
        # A descriptor may be closed, and its number another one's, at any time: what is shut down is what was looked
        # at, since both are done with a descriptor of our own.
        with suppress(OSError):
            # Only sockets: to close a second descriptor of a file drops the process's locks on it.
            looked = os.stat(int(name))
            if not stat.S_ISSOCK(looked.st_mode) or looked.st_ino not in inodes:
                continue
            own = os.dup(int(name))
            try:
                status = os.fstat(own)
                if stat.S_ISSOCK(status.st_mode) and status.st_ino in inodes:
                    connection = socket.socket(fileno=own)
                    own = -1
                    with connection:
                        connection.shutdown(socket.SHUT_RDWR)
            finally:
                if own >= 0:
                    os.close(own)


def _established(content: bytes, local: bytes) -> Iterator[tuple[FarEnd, int]]:
    written = local + b" "
    for line in content.splitlines()[1:]:
        if written not in line:  # before anything dearer: there may be many sockets of others
            continue
        fields = line.split(None, _INODE + 1)
        if len(fields) > _INODE and fields[_STATE] == _ESTABLISHED and fields[_LOCAL].endswith(local):
            address, _, port = fields[_REMOTE].partition(b":")
            yield FarEnd(_address_of(address), int(port, 16)), int(fields[_INODE])


@lru_cache(_MOST)
def _address_of(written: bytes) -> str:
    """Return an address, which the kernel writes as words of this machine's order."""
    raw = bytes.fromhex(written.decode("ascii"))
    words = (
        int.from_bytes(raw[at : at + _WORD], "big").to_bytes(_WORD, sys.byteorder) for at in range(0, len(raw), _WORD)
    )
    return _canonical(b"".join(words))


def _canonical(address: str | bytes) -> str:
    parsed = ip_address(address)
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(parsed)
