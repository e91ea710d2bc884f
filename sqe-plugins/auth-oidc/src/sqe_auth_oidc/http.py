"""Requests to the identity provider: pooled, bounded in time and size, and never redirected.

What fails is told for the operator's log: which host, and what was wrong with it. Bodies, queries and headers are never
repeated (OBS-2); clients read the constant text of the login chain.
"""

from __future__ import annotations

import logging
import math
import ssl
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlencode, urlsplit

from urllib3 import BaseHTTPResponse, HTTPConnectionPool, Timeout
from urllib3.exceptions import (
    ConnectTimeoutError,
    EmptyPoolError,
    HTTPError,
    NewConnectionError,
    ProtocolError,
    SSLError,
)
from urllib3.exceptions import TimeoutError as PoolTimeoutError

from sqe_auth_oidc.strict_json import read_object
from sqe_core.spi import ErrorCode, ExternalError, StartupError
from sqe_http.deadline import deadline_pool, tls_context

_log = logging.getLogger("sqe_core.auth_oidc")
_MOST_ORIGINS = 8
_MOST_CONNECTIONS = 16
_LARGEST_ANSWER = 512 * 1024
_CONNECT_SECS = 5.0
_DEPTH = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer that arrived: its status, and the JSON object of its body, None for an empty one."""

    status: int
    body: dict[str, Any] | None


class HttpClient:
    """Sends requests from any thread.

    Args:
        timeout_secs: for one whole exchange.
        ca_file: whose certificates count; None for the system's.
        skip_verify: do not check certificates (development).
        version: of SQE, for the provider's log.
    """

    def __init__(
        self, *, timeout_secs: float, ca_file: Path | None = None, skip_verify: bool = False, version: str = ""
    ) -> None:
        self._timeout_secs = timeout_secs
        self._ca_file = ca_file
        self._skip_verify = skip_verify
        # The system's certificates take long to read, and an identity provider on this machine needs none.
        self._tls = None if ca_file is None else _read_tls(ca_file, skip_verify)
        self._headers = {"Accept": "application/json", "User-Agent": f"sqe/{version or '0'}"}
        self._pools: dict[tuple[str, str, int | None], HTTPConnectionPool] = {}
        self._lock = threading.Lock()

    def get(self, url: str) -> Answer:
        """Read a document. Raises ExternalError."""
        deadline = time.monotonic() + self._timeout_secs
        try:
            return self._send("GET", url, None, deadline)
        except _Broken:
            # A connection that was kept too long; reading twice reads once.
            return self._send("GET", url, None, deadline)

    def post(self, url: str, fields: Mapping[str, str], headers: Mapping[str, str] | None = None) -> Answer:
        """Send a form. Raises ExternalError; OAuth's refusals (status 400 to 499 with JSON) are answers."""
        return self._send(
            "POST", url, urlencode(fields).encode("ascii"), time.monotonic() + self._timeout_secs, headers
        )

    def _send(
        self, method: str, url: str, body: bytes | None, deadline: float, headers: Mapping[str, str] | None = None
    ) -> Answer:
        parts = urlsplit(url)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        sent = {**self._headers, **(headers or {})}
        if body is not None:
            sent["Content-Type"] = "application/x-www-form-urlencoded"
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            raise _silence(url, "did not answer in time")
        try:
            response = self._pool(url).urlopen(
                method,
                target,
                body=body,
                headers=sent,
                retries=False,
                redirect=False,
                timeout=Timeout(connect=min(_CONNECT_SECS, remaining), total=remaining),
                pool_timeout=math.ceil(remaining),
                preload_content=False,
                decode_content=False,
            )
            return _read(url, response)
        except (HTTPError, OSError) as error:
            _raise_silence(url, error)

    def _pool(self, url: str) -> HTTPConnectionPool:
        parts = urlsplit(url)
        origin = (parts.scheme, parts.hostname or "", parts.port)
        with self._lock:
            pool = self._pools.get(origin)
            if pool is None:
                if len(self._pools) >= _MOST_ORIGINS:
                    raise ExternalError("The identity provider names too many hosts")
                pool = self._pools[origin] = deadline_pool(url, _MOST_CONNECTIONS, tls=self._shared_tls)
            return pool

    def _shared_tls(self) -> ssl.SSLContext:
        self._tls = self._tls or _read_tls(self._ca_file, self._skip_verify)
        return self._tls

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            for pool in self._pools.values():
                pool.close()
            self._pools.clear()


class _Broken(ExternalError):
    """The connection ended without an answer."""


def _read(url: str, response: BaseHTTPResponse) -> Answer:
    raw = b""
    while len(raw) <= _LARGEST_ANSWER and (more := response.read(_LARGEST_ANSWER + 1 - len(raw))):
        raw += more
    if len(raw) > _LARGEST_ANSWER:
        response.close()
        raise _silence(url, f"answered with more than {_LARGEST_ANSWER} bytes")
    response.release_conn()
    status = response.status
    if 300 <= status < 400:
        raise _silence(url, f"answered with a redirect (status {status}), which is not followed")
    if status >= 500:
        raise _silence(url, f"answered with status {status}")
    if status == 429:
        raise _silence(url, "answered that it was asked too often (status 429)")
    if not raw:
        return Answer(status=status, body=None)
    try:
        return Answer(status=status, body=read_object(raw, depth=_DEPTH))
    except ValueError:
        what = "HTML" if raw.lstrip()[:1] == b"<" else "something that is no JSON object"
        raise _silence(url, f"answered with {what} (status {status}); is the address right?") from None


def _read_tls(ca_file: Path | None, skip_verify: bool) -> ssl.SSLContext:
    try:
        return tls_context(ca_file=ca_file, skip_verify=skip_verify)
    except OSError as error:
        raise StartupError(f"The certificates of {ca_file} cannot be read") from error


def _raise_silence(url: str, error: Exception) -> NoReturn:
    _log.info("a request to the identity provider failed: %s", type(error).__name__)
    if isinstance(error, EmptyPoolError):
        raise ExternalError("Too many requests to the identity provider are on their way") from error
    # A refused connection is a kind of time-out for urllib3.
    if isinstance(error, NewConnectionError):
        raise _silence(url, "cannot be reached") from error
    if isinstance(error, ConnectTimeoutError | PoolTimeoutError | TimeoutError):
        raise _silence(url, "did not answer in time") from error
    if isinstance(error, SSLError | ssl.SSLError):
        raise _silence(url, "is not the server that its certificate has to name (see ca_file)") from error
    if isinstance(error, ProtocolError | ConnectionError):
        raise _Broken(_text(url, "ended the connection without an answer"), code=ErrorCode.CATALOG_UNAVAILABLE) from (
            error
        )
    raise _silence(url, "cannot be reached") from error


def _text(url: str, what: str) -> str:
    parts = urlsplit(url)
    return f"The identity provider at {parts.hostname}{parts.path} {what}"


def _silence(url: str, what: str) -> ExternalError:
    return ExternalError(_text(url, what), code=ErrorCode.CATALOG_UNAVAILABLE)
