"""Connections whose whole answer has to arrive in time: a socket's own timeout begins anew with every byte."""

from __future__ import annotations

import http.client
import io
import os
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from urllib3 import HTTPConnectionPool, HTTPSConnectionPool, ProxyManager
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.response import HTTPResponse


class _Incoming(io.RawIOBase):
    """The bytes of a socket, until a moment of the monotonic clock."""

    def __init__(self, sock: socket.socket, deadline: float) -> None:
        self._sock = sock
        # Keeps the socket open when the connection gives it up before the answer has been read.
        self._bytes = sock.makefile("rb", buffering=0)
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        remaining = self._deadline - time.monotonic()
        if remaining <= 0:
            raise TimeoutError("the time for the answer is over")
        self._sock.settimeout(remaining)
        return self._bytes.readinto(buffer)

    def close(self) -> None:
        self._bytes.close()
        super().close()


class _Socket:
    """What `http.client` reads an answer from."""

    def __init__(self, sock: socket.socket, deadline: float) -> None:
        self._sock = sock
        self._deadline = deadline

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(_Incoming(self._sock, self._deadline))


def _answer(deadline: float, sock: socket.socket, *args: Any, **kwargs: Any) -> http.client.HTTPResponse:
    return http.client.HTTPResponse(_Socket(sock, deadline), *args, **kwargs)  # type: ignore[arg-type]


class _Connection(HTTPConnection):
    def connect(self) -> None:
        # A proxy answers to this one, at a time when that of the last request is over.
        self.response_class = http.client.HTTPResponse
        super().connect()

    def getresponse(self) -> HTTPResponse:  # type: ignore[override] # as in urllib3
        # urllib3 has put what remains of the total time here.
        self.response_class = partial(_answer, time.monotonic() + float(self.timeout or 0))  # type: ignore[assignment]
        return super().getresponse()


class _SecureConnection(_Connection, HTTPSConnection):
    pass


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _SecurePool(HTTPSConnectionPool):
    ConnectionCls = _SecureConnection


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """How a client speaks TLS: 1.2 or later.

    Attributes:
        ca_file: whose certificates count; None for the system's.
        client_cert_file: the client's own certificate, with its chain.
        client_key_file: its key, without a password; None when it stands in the same file.
        skip_verify: do not check certificates (development).
    """

    ca_file: str | os.PathLike[str] | None = None
    client_cert_file: str | os.PathLike[str] | None = None
    client_key_file: str | os.PathLike[str] | None = None
    skip_verify: bool = False

    @property
    def has_files(self) -> bool:
        """Whether files are named, which may be missing."""
        return self.ca_file is not None or self.client_cert_file is not None

    def context(self) -> ssl.SSLContext:
        """Read the files. Raises OSError when one cannot be read, or holds something else."""
        tls = ssl.create_default_context(cafile=self.ca_file)
        tls.minimum_version = ssl.TLSVersion.TLSv1_2
        if self.client_cert_file is not None:
            # An encrypted key would ask for its password at the terminal.
            tls.load_cert_chain(self.client_cert_file, self.client_key_file, password=lambda: "")
        if self.skip_verify:
            tls.check_hostname = False
            tls.verify_mode = ssl.CERT_NONE
        return tls


def deadline_pool(
    url: str, max_connections: int, *, tls: Callable[[], ssl.SSLContext], proxy: str | None = None
) -> HTTPConnectionPool:
    """Return a pool of connections to the host of an address, whose requests need a total time.

    Args:
        url: http or https; its path is ignored.
        max_connections: further requests wait for one of these.
        tls: makes the TLS of an https address, and is not called for another: the system's certificates take long to
            read.
        proxy: what stands between, for https only: it sees the name of the host, and nothing else.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme == "http":
        return _Pool(host, parts.port, maxsize=max_connections, block=True)
    if proxy is not None:
        manager = ProxyManager(proxy, maxsize=max_connections, block=True, ssl_context=tls())
        manager.pool_classes_by_scheme = {"https": _SecurePool}
        return manager.connection_from_url(url)
    return _SecurePool(host, parts.port, maxsize=max_connections, block=True, ssl_context=tls())
