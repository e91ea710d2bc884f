"""Requests over HTTP: pooled, bounded in time and size, never redirected, sent again where that may help.

What fails is told without addresses, paths, headers or bodies (ERR-1).
"""

from __future__ import annotations

import logging
import math
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any, NoReturn

from urllib3 import BaseHTTPResponse, Timeout
from urllib3.exceptions import ConnectTimeoutError, EmptyPoolError, HTTPError, SSLError
from urllib3.exceptions import TimeoutError as PoolTimeoutError

from sqe_catalog_polaris.config import RestConfig
from sqe_core.spi import ErrorCode, ExternalError, PluginContext, read_json
from sqe_http.breaker import Breaker, BreakerState
from sqe_http.deadline import deadline_pool

# Below the server's own logger, whose level SQE_LOG sets; other libraries only warn.
_log = logging.getLogger("sqe_core.catalog_polaris")
_BUSY = frozenset(
    {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT}
)
_DOWN = _BUSY - {HTTPStatus.TOO_MANY_REQUESTS}
_FIRST_PAUSE_SECS = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer that arrived; `body` is its JSON, None for an empty one or for what is no JSON."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None

    @property
    def error_text(self) -> str:
        """What the catalog says about an error, for telling denials from faults. It never leaves SQE."""
        error = self.body.get("error") if isinstance(self.body, Mapping) else None
        if not isinstance(error, Mapping):
            return ""
        return f"{error.get('type', '')} {error.get('message', '')}"[:2000]


class _Silence(Exception):
    """No answer, or one of something else. `again` says whether another try may help."""

    def __init__(self, message: str, *, again: bool) -> None:
        super().__init__(message)
        self.again = again


class Transport:
    """Sends requests to one server from any thread.

    Args:
        url: the address of the server.
        what: what errors call it.
        config: how long, how often, how much.
        context: the metrics, and the name for the server's log.
        monotonic: the clock of the breaker.
    """

    def __init__(
        self,
        url: str,
        what: str,
        config: RestConfig,
        context: PluginContext,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._what = what
        self._config = config
        self._metrics = context.metrics
        self._agent = f"sqe/{context.sqe_version or '0'}"
        self._pool = deadline_pool(url, config.max_connections)
        self.breaker = Breaker(
            _capital(what),
            config.breaker_failure_threshold,
            config.breaker_recovery_secs,
            monotonic,
            self._breaker_changed,
        )

    def deadline(self) -> float:
        """Return when what begins now has to be over."""
        return time.monotonic() + self._config.timeout_secs

    def send(
        self,
        method: str,
        target: str,
        *,
        headers: Mapping[str, str],
        body: bytes | None = None,
        deadline: float | None = None,
        again: bool = True,
    ) -> Answer:
        """Send one request and return its answer, whatever its status.

        Args:
            method: a method that changes nothing, or that may be repeated; else `again` is False.
            target: path and query.
            headers: of this request.
            body: its body.
            deadline: when it has to be over.
            again: whether it may be sent again when there is no answer.

        Raises:
            ExternalError: there is no answer.
        """
        deadline = self.deadline() if deadline is None else deadline
        sent = {"Accept": "application/json", "User-Agent": self._agent, **headers}
        probe = self.breaker.enter()
        began = time.monotonic()
        outcome = "error"
        try:
            # The probe is one request.
            retries = self._config.max_retries if again and not probe else 0
            answer = self._with_retries(method, target, sent, body, deadline, retries)
            outcome = str(answer.status)
        except EmptyPoolError as error:
            # Our own requests fill the pool, which says nothing new of the server.
            if probe:
                self.breaker.failed(probe=True)
            raise ExternalError(f"Too many requests to {self._what} are on their way") from error
        except _Silence as error:
            self.breaker.failed(probe=probe)
            raise ExternalError(str(error), code=ErrorCode.CATALOG_UNAVAILABLE) from error
        except BaseException:
            if probe:
                self.breaker.failed(probe=True)
            raise
        finally:
            self._metrics.observe("sqe_catalog_request_duration_seconds", time.monotonic() - began, {"status": outcome})
        if answer.status in _DOWN:
            self.breaker.failed(probe=probe)
        else:
            self.breaker.succeeded(probe=probe)
        return answer

    def _with_retries(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None, deadline: float, retries: int
    ) -> Answer:
        attempt = 0
        while True:
            answer: Answer | None = None
            try:
                answer = self._once(method, target, headers, body, deadline)
                if answer.status not in _BUSY or attempt >= retries:
                    return answer
            except _Silence as silence:
                if attempt >= retries or not silence.again:
                    raise
            jitter = random.uniform(0.5, 1.5)  # noqa: S311 - spreads load
            pause = max(_FIRST_PAUSE_SECS * 2**attempt * jitter, retry_after(answer) if answer is not None else 0)
            if time.monotonic() + pause >= deadline:
                if answer is not None:
                    return answer
                raise _Silence(f"{_capital(self._what)} did not answer in time", again=False)
            time.sleep(pause)
            attempt += 1

    def _once(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None, deadline: float
    ) -> Answer:
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            # It waited for its turn here; the server has not even been asked.
            raise ExternalError(f"{_capital(self._what)} did not answer in time", code=ErrorCode.CATALOG_UNAVAILABLE)
        try:
            response = self._pool.urlopen(
                method,
                target,
                body=body,
                headers=headers,
                retries=False,
                redirect=False,
                timeout=Timeout(connect=min(self._config.connect_timeout_secs, remaining), total=remaining),
                pool_timeout=math.ceil(remaining),
                preload_content=False,
                decode_content=False,
            )
        except EmptyPoolError:
            raise
        except (HTTPError, OSError) as error:
            self._raise_silence(error)
        return self._read(response)

    def _read(self, response: BaseHTTPResponse) -> Answer:
        limit = self._config.max_response_bytes
        try:
            raw = b""
            # Until there is nothing left: only then an answer that was cut off is noticed.
            while len(raw) <= limit and (more := response.read(limit + 1 - len(raw))):
                raw += more
        except (HTTPError, OSError) as error:
            response.close()
            self._raise_silence(error)
        if len(raw) > limit:
            response.close()
            raise ExternalError(f"The answer of {self._what} is too large")
        response.release_conn()
        if 300 <= response.status < 400 and response.status != HTTPStatus.NOT_MODIFIED:
            raise _Silence(f"{_capital(self._what)} answered with a redirect, which is not followed", again=False)
        try:
            document = read_json(raw) if raw else None
        except ValueError as error:
            if response.status < 300:
                raise _Silence(f"The answer of {self._what} is no JSON", again=False) from error
            document = None
        headers = {name.lower(): value for name, value in response.headers.items()}
        return Answer(status=response.status, headers=headers, body=document)

    def _raise_silence(self, error: Exception) -> NoReturn:
        _log.info("a request to %s failed: %s", self._what, type(error).__name__)
        name = _capital(self._what)
        if isinstance(error, ConnectTimeoutError):
            raise _Silence(f"{name} cannot be reached in time", again=True) from error
        if isinstance(error, PoolTimeoutError | TimeoutError):
            raise _Silence(f"{name} did not answer in time", again=False) from error
        if isinstance(error, SSLError):
            raise _Silence(f"{name} is not the server that its certificate has to name", again=False) from error
        raise _Silence(f"{name} cannot be reached", again=True) from error

    def _breaker_changed(self, state: BreakerState) -> None:
        if state is BreakerState.OPEN:
            _log.warning("%s does not answer; it is not asked for %d s", self._what, self._config.breaker_recovery_secs)
        self._metrics.gauge("sqe_catalog_circuit_breaker_state", state.value)

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()


def retry_after(answer: Answer) -> float:
    """Return for how many seconds a server asks to be left alone; 0 when it does not say."""
    text = answer.headers.get("retry-after", "").strip()
    if text.isdecimal() and len(text) < 10:
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return 0.0


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
