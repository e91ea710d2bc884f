"""The connections of a port as the kernel knows them, and how one is ended: gRPC for Python offers neither."""

from __future__ import annotations

import os
import resource
import socket
import stat
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from ipaddress import IPv6Address, ip_address, ip_network
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from sqe_core.spi.errors import QueryCancelledError, ResourcesError

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
_RETRY_SECS = 1
# Systems that do not tell of sockets, or not this process.
_NOT_TOLD = (FileNotFoundError, PermissionError)


class FarEnd(NamedTuple):
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
    """Return what the connections of an address, as `far_end` has it, are counted by."""
    if ":" not in address:
        return address
    return str(ip_network((int(IPv6Address(address)), _IPV6_CLIENT_BITS), strict=False))


class Sockets:
    """The connections of a port that this process serves, each under a number that no other has or had.

    gRPC says where a call comes from, and a client may use a port again as soon as its connection is gone: the same
    words, and another connection. The number of a socket is not used again.
    """

    def __init__(self, port: int = 0) -> None:
        self.port = port
        self._lock = threading.Lock()
        self._known: Mapping[FarEnd, _Socket] = {}

    def established(self) -> Mapping[int, FarEnd]:
        """Return the connections by their numbers, without those that nobody serves yet; none where nobody knows.

        Raises:
            ResourcesError: the kernel cannot be asked now.
        """
        found: dict[int, FarEnd] = {}
        for table in _TABLES:
            with _asking(), suppress(*_NOT_TOLD):
                found.update(_established(table.read_bytes(), b":%04X" % self.port))
        found.pop(0, None)
        return found

    def number_of(self, peer: str) -> int | None:
        """Return the number of the socket whose client is there now, by gRPC's name of it; None where nobody knows.

        Raises:
            ResourcesError: the kernel cannot be asked now, or two sockets have the same client: it is connected to two
                addresses of this server, and gRPC does not say which of them a call comes by.
            QueryCancelledError: there is none.
        """
        end = far_end(peer)
        if end is None:
            return None
        known = self._known.get(end)
        if known is None or not _is_at(known, end):
            with self._lock:
                known = self._known.get(end)  # others may have looked meanwhile
                if known is None or not _is_at(known, end):
                    try:
                        self._known = self._served(end)
                    except _NOT_TOLD:
                        return None
                    known = self._known.get(end)
        if known is None:
            raise QueryCancelledError("The client went away")
        return known.inode

    def _served(self, wanted: FarEnd) -> Mapping[FarEnd, _Socket]:
        before = {known: end for end, known in self._known.items() if end != wanted}
        found: dict[FarEnd, _Socket] = {}
        with _asking():
            names = os.listdir(_DESCRIPTORS)
        for name in names:
            with suppress(OSError):  # it is none, or not connected, or closed by now
                looked = os.stat(int(name))
                if not stat.S_ISSOCK(looked.st_mode):
                    continue
                each = _Socket(int(name), looked.st_ino)
                end = before.get(each) or _client_of(each, self.port)
                if end == wanted and end in found:
                    raise _unknown("This address is connected to two addresses of the server")
                if end is not None:
                    found[end] = each
        return found


class _Socket(NamedTuple):
    """A socket of this process: its descriptor, whose number may be another's later, and its own number."""

    descriptor: int
    inode: int


def _is_at(known: _Socket, end: FarEnd) -> bool:
    """Whether a socket is there still, and the client at its other end."""
    try:
        return _client_of(known, None) == end
    except OSError:
        return False


def _client_of(known: _Socket, port: int | None) -> FarEnd | None:
    """Return where the client of a socket is; None when it is one of another port, or another one by now.

    It takes no descriptor: there may be none left.

    Raises:
        OSError: it is not connected.
    """
    lent = socket.socket(fileno=known.descriptor)
    try:
        near, far = lent.getsockname(), lent.getpeername()
        is_of_network = lent.family in (socket.AF_INET, socket.AF_INET6)
    finally:
        lent.detach()
    # What was asked of a descriptor was this socket's if it is so afterwards: no number comes again.
    if not is_of_network or os.stat(known.descriptor).st_ino != known.inode or port not in (None, near[1]):
        return None
    return FarEnd(_canonical(far[0].partition("%")[0]), far[1])


@contextmanager
def _asking() -> Iterator[None]:
    """Refuse whoever asks when the kernel cannot be asked: no descriptor is left for that."""
    try:
        yield
    except _NOT_TOLD:
        raise
    except OSError as error:
        raise _unknown("The server cannot tell connections apart at the moment") from error


def _unknown(what: str) -> ResourcesError:
    return ResourcesError(what, hint="try again later, or from another port", retry_after_secs=_RETRY_SECS)


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
                if os.path.samestat(os.stat(own), looked):
                    lent = socket.socket(fileno=own)
                    try:
                        lent.shutdown(socket.SHUT_RDWR)
                    finally:
                        lent.detach()
            finally:
                os.close(own)


def _established(content: bytes, local: bytes) -> Iterator[tuple[int, FarEnd]]:
    written = local + b" "
    for line in content.splitlines()[1:]:
        if written not in line:  # before anything dearer: there may be many sockets of others
            continue
        fields = line.split(None, _INODE + 1)
        if len(fields) > _INODE and fields[_STATE] == _ESTABLISHED and fields[_LOCAL].endswith(local):
            address, _, port = fields[_REMOTE].partition(b":")
            yield int(fields[_INODE]), FarEnd(_address_of(address), int(port, 16))


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
