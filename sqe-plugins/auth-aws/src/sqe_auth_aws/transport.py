"""One question and its answer over HTTP: bounded in time and size, and never redirected.

Logins are rare beside statements, so each question has a connection of its own.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from sqe_core.spi import ExternalError, StartupError

_LARGEST_ANSWER = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back; `date` is the header of that name."""

    status: int
    body: bytes
    date: str | None = None


class Transport:
    """Posts to one host. Safe for use from many threads.

    Args:
        url: scheme, host and port.
        ca_file: authorities that may vouch for the host.
        timeout_secs: how long one question may take.
    """

    def __init__(self, url: str, *, ca_file: Path | None, timeout_secs: float) -> None:
        parts = urlsplit(url)
        self._host = parts.hostname or ""
        self._port = parts.port
        self._tls = _tls(ca_file) if parts.scheme == "https" else None
        self._timeout_secs = timeout_secs

    def post(self, body: bytes, headers: Mapping[str, str]) -> Answer:
        """Ask.

        Raises:
            ExternalError: there is no answer, or one that is too large; without a word of it.
        """
        deadline = time.monotonic() + self._timeout_secs
        connection = self._connection()
        open_sockets: list[socket.socket] = []

        def cut() -> None:
            # The connection forgets its socket when it is the last answer there; while it connects, only it knows it.
            for sock in open_sockets or filter(None, [connection.sock]):
                with suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)

        # A socket's own timeout begins anew with every byte that arrives.
        watchdog = threading.Timer(self._timeout_secs, cut)
        watchdog.daemon = True
        watchdog.start()
        try:
            connection.connect()
            open_sockets.append(connection.sock)
            connection.request("POST", "/", body=body, headers=dict(headers))
            response = connection.getresponse()
            raw = response.read(_LARGEST_ANSWER + 1)
            if len(raw) <= _LARGEST_ANSWER and response.length:
                raise http.client.IncompleteRead(raw)
        except ssl.SSLError:
            raise ExternalError("STS is not the server that its certificate has to name") from None
        except (OSError, http.client.HTTPException):
            late = time.monotonic() >= deadline
            raise ExternalError("STS did not answer in time" if late else "STS cannot be reached") from None
        finally:
            watchdog.cancel()
            connection.close()
        if time.monotonic() >= deadline:
            # What was cut off may look like an answer that ended.
            raise ExternalError("STS did not answer in time")
        if len(raw) > _LARGEST_ANSWER:
            raise ExternalError("The answer of STS is too large")
        return Answer(status=response.status, body=raw, date=response.getheader("Date"))

    def _connection(self) -> http.client.HTTPConnection:
        if self._tls is None:
            return http.client.HTTPConnection(self._host, self._port, timeout=self._timeout_secs)
        return http.client.HTTPSConnection(self._host, self._port, timeout=self._timeout_secs, context=self._tls)


def _tls(ca_file: Path | None) -> ssl.SSLContext:
    try:
        tls = ssl.create_default_context(cafile=ca_file)
    except (OSError, ssl.SSLError):
        raise StartupError("The ca_file of the login provider aws_iam cannot be read") from None
    tls.minimum_version = ssl.TLSVersion.TLSv1_2
    return tls
