"""One question and its answer: pooled, bounded in time and size, never redirected, and sent again only where said.

What fails is told in sentences without paths, queries, headers or bodies, any of which may hold a secret.
"""

from __future__ import annotations

import logging
import math
import random
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import NoReturn, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

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

from sqe_http.breaker import Breaker
from sqe_http.deadline import Tls, deadline_pool
from sqe_http.errors import HttpFailedError, Reason

# Below the server's own logger, whose level SQE_LOG sets; other libraries only warn.
_log = logging.getLogger("sqe_core.http")
_DOWN = frozenset({HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT})
_BUSY = _DOWN | {HTTPStatus.TOO_MANY_REQUESTS}
_FIRST_PAUSE_SECS = 0.05
_SYSTEM = Tls()

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What one client may cost.

    Attributes:
        timeout_secs: for a whole exchange: waiting for a connection, sending, reading, and asking again.
        connect_secs: for a connection, of these.
        answer_bytes: of a body.
        connections: to one host.
        hosts: that may be asked.
        retries: how often a request that may be repeated is sent again.
        busy_again: whether a server that answers that it is busy is asked again.
    """

    timeout_secs: float
    connect_secs: float = 5.0
    answer_bytes: int = 256 * 1024
    connections: int = 16
    hosts: int = 1
    retries: int = 0
    busy_again: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer that arrived, whatever its status but a redirect; names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def retry_after_secs(self) -> float:
        """For how many seconds the server asks to be left alone; 0 when it does not say."""
        text = self.headers.get("retry-after", "").strip()
        if text.isdecimal() and len(text) < 10:
            return float(text)
        try:
            return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
        except (ValueError, TypeError, OverflowError):
            return 0.0


class HttpClient:
    """Asks from any thread.

    Args:
        name: what sentences call whoever is asked: `OPA`, `the catalog`.
        bounds: what it may cost.
        tls: how; its files are read at once.
        headers: of every request.
        breaker: spares a server that does not answer; None asks always.
        proxies: whether https goes through the proxy that the environment names (HTTPS_PROXY, NO_PROXY).

    Raises:
        OSError: a file of the TLS cannot be read.
    """

    def __init__(
        self,
        name: str,
        bounds: Bounds,
        *,
        tls: Tls = _SYSTEM,
        headers: Mapping[str, str] | None = None,
        breaker: Breaker | None = None,
        proxies: bool = False,
    ) -> None:
        self._name = name
        self._bounds = bounds
        self._make_tls = tls
        # The system's certificates take long to read, and a server on this machine needs none.
        self._tls = tls.context() if tls.has_files else None
        self._headers = dict(headers or {})
        self._breaker = breaker
        self._proxies = proxies
        self._pools: dict[tuple[str, str, int | None], HTTPConnectionPool] = {}
        self._lock = threading.Lock()

    def deadline(self) -> float:
        """Return when what begins now has to be over."""
        return time.monotonic() + self._bounds.timeout_secs

    def send(
        self,
        method: str,
        url: str,
        *,
        read: Callable[[Answer], T],
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        deadline: float | None = None,
        again: bool = False,
        name: str | None = None,
    ) -> T:
        """Send one request and return what its answer means.

        Args:
            method: of HTTP.
            url: the whole address.
            read: says what an answer means; a failure that it raises counts as one of the server.
            headers: of this request.
            body: of this request.
            deadline: when it has to be over, of the monotonic clock.
            again: whether it may be sent again when there is no answer, or a busy one. Never for what hands out tokens
                or changes something each time.
            name: what sentences call whoever is asked this.

        Raises:
            HttpFailedError: there is no answer, or none that can be read.
        """
        name = name or self._name
        deadline = self.deadline() if deadline is None else deadline
        probe = self._breaker.enter() if self._breaker else False
        # The probe is one request.
        retries = self._bounds.retries if again and not probe else 0
        try:
            answer = self._ask(name, method, url, {**self._headers, **(headers or {})}, body, deadline, retries)
            meaning = read(answer)
        except BaseException as error:
            self._failed(probe, of_server=isinstance(error, HttpFailedError) and error.of_server)
            raise
        if answer.status in _DOWN:
            self._failed(probe, of_server=True)
        elif self._breaker:
            self._breaker.succeeded(probe=probe)
        return meaning

    def _failed(self, probe: bool, *, of_server: bool) -> None:
        if self._breaker and (probe or of_server):
            self._breaker.failed(probe=probe)

    def _ask(
        self,
        name: str,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None,
        deadline: float,
        retries: int,
    ) -> Answer:
        for attempt in range(retries + 1):
            busy_secs = 0.0
            last: Answer | HttpFailedError
            try:
                last = self._once(name, method, url, headers, body, deadline)
                if last.status not in _BUSY or not self._bounds.busy_again or attempt == retries:
                    return last
                busy_secs = last.retry_after_secs
            except HttpFailedError as failure:
                if attempt == retries or not failure.again:
                    raise
                last = failure
            jitter = random.uniform(0.5, 1.5)  # noqa: S311 - spreads load
            pause = max(_FIRST_PAUSE_SECS * 2**attempt * jitter, busy_secs)
            if time.monotonic() + pause >= deadline:
                if isinstance(last, HttpFailedError):
                    raise last
                return last
            time.sleep(pause)
        raise AssertionError("the last attempt returns or raises")

    def _once(
        self, name: str, method: str, url: str, headers: Mapping[str, str], body: bytes | None, deadline: float
    ) -> Answer:
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            # It waited for its turn here; the server has not even been asked.
            raise HttpFailedError(Reason.LATE, f"{_capital(name)} did not answer in time", of_server=False)
        parts = urlsplit(url)
        try:
            response = self._pool(name, url).urlopen(
                method,
                (parts.path or "/") + (f"?{parts.query}" if parts.query else ""),
                body=body,
                headers=headers,
                retries=False,
                redirect=False,
                timeout=Timeout(connect=min(self._bounds.connect_secs, remaining), total=remaining),
                pool_timeout=math.ceil(remaining),
                preload_content=False,
                decode_content=False,
            )
            raw = self._read(name, response)
        except EmptyPoolError as error:
            # Our own requests fill the pool, which says nothing new of the server.
            raise HttpFailedError(
                Reason.CROWDED, f"Too many requests to {name} are on their way", of_server=False
            ) from error
        except (HTTPError, OSError) as error:
            _raise_failure(_capital(name), error)
        if 300 <= response.status < 400 and response.status != HTTPStatus.NOT_MODIFIED:
            raise HttpFailedError(
                Reason.REDIRECTED, f"{_capital(name)} answered with a redirect, which is not followed"
            )
        found = {header.lower(): value for header, value in response.headers.items()}
        return Answer(status=response.status, headers=found, body=raw)

    def _read(self, name: str, response: BaseHTTPResponse) -> bytes:
        limit = self._bounds.answer_bytes
        raw = b""
        try:
            # Until there is nothing left: only then an answer that was cut off is noticed.
            while len(raw) <= limit and (more := response.read(limit + 1 - len(raw))):
                raw += more
        except (HTTPError, OSError):
            response.close()
            raise
        if len(raw) > limit:
            response.close()
            raise HttpFailedError(
                Reason.TOO_LARGE, f"{_capital(name)} answered with more than {limit} bytes", of_server=False
            )
        response.release_conn()
        return raw

    def _pool(self, name: str, url: str) -> HTTPConnectionPool:
        parts = urlsplit(url)
        origin = (parts.scheme, parts.hostname or "", parts.port)
        with self._lock:
            pool = self._pools.get(origin)
            if pool is None:
                if len(self._pools) >= self._bounds.hosts:
                    raise HttpFailedError(Reason.CROWDED, f"{_capital(name)} names too many hosts", of_server=False)
                through = getproxies().get("https") if self._proxies and not proxy_bypass(origin[1]) else None
                pool = deadline_pool(url, self._bounds.connections, tls=self._shared_tls, proxy=through)
                self._pools[origin] = pool
            return pool

    def _shared_tls(self) -> ssl.SSLContext:
        self._tls = self._tls or self._make_tls.context()
        return self._tls

    def close(self) -> None:
        with self._lock:
            for pool in self._pools.values():
                pool.close()
            self._pools.clear()


def _raise_failure(name: str, error: Exception) -> NoReturn:
    _log.info("a request to %s failed: %s", name, type(error).__name__)
    # A refused connection is a kind of time-out for urllib3.
    if isinstance(error, ConnectTimeoutError) and not isinstance(error, NewConnectionError):
        raise HttpFailedError(Reason.UNREACHABLE, f"{name} cannot be reached in time", again=True) from error
    if isinstance(error, PoolTimeoutError | TimeoutError) and not isinstance(error, NewConnectionError):
        raise HttpFailedError(Reason.LATE, f"{name} did not answer in time") from error
    if isinstance(error, SSLError | ssl.SSLError):
        raise HttpFailedError(Reason.UNTRUSTED, f"{name} is not the server that its certificate has to name") from error
    broken = isinstance(error, ProtocolError | ConnectionError)
    what = "ended the connection without an answer" if broken else "cannot be reached"
    raise HttpFailedError(Reason.UNREACHABLE, f"{name} {what}", again=True) from error


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
