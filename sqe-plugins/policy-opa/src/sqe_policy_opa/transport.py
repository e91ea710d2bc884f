"""Requests to OPA: pooled, bounded in time, size and number, and never redirected (POL-14).

What fails is told without addresses, paths, headers or bodies (ERR-1).
"""

from __future__ import annotations

import json
import logging
import math
import random
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, NoReturn
from urllib.parse import quote, urlsplit

from urllib3 import BaseHTTPResponse, Timeout
from urllib3.exceptions import ConnectTimeoutError, EmptyPoolError, HTTPError, SSLError
from urllib3.exceptions import TimeoutError as PoolTimeoutError

from sqe_core.spi import ExternalError, PluginContext, StartupError, read_json
from sqe_http.breaker import Breaker, BreakerState
from sqe_http.deadline import deadline_pool, tls_context
from sqe_policy_opa.config import OpaConfig

# Below the server's own logger, whose level SQE_LOG sets; other libraries only warn.
_log = logging.getLogger("sqe_core.policy_opa")
_BUSY = frozenset(
    {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT}
)
_FIRST_PAUSE_SECS = 0.05
_LARGEST_REQUEST = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer that arrived: its status, and the JSON of its body, None for an empty one."""

    status: int
    body: Any


class _Silence(Exception):
    """OPA did not answer, or something else answered in its place. `again` says whether another try may help."""

    def __init__(self, message: str, *, again: bool) -> None:
        super().__init__(message)
        self.again = again


class Transport:
    """Sends requests from any thread.

    Args:
        config: where to, and how long.
        context: the metrics, and the name for OPA's log.
        monotonic: the clock of the breaker.
    """

    def __init__(
        self, config: OpaConfig, context: PluginContext, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._config = config
        self._metrics = context.metrics
        self._prefix = urlsplit(config.url).path.rstrip("/")
        self._headers = {
            "Accept": "application/json",
            "Content-Type": "application/json",
            "User-Agent": f"sqe/{context.sqe_version or '0'}",
        }
        if config.token:
            self._headers["Authorization"] = f"Bearer {config.token.reveal()}"
        self._pool = deadline_pool(config.url, config.max_connections, tls=partial(_tls, config))
        self.breaker = Breaker(
            "OPA", config.breaker_failure_threshold, config.breaker_recovery_secs, monotonic, self._breaker_changed
        )
        self._breaker_changed(BreakerState.CLOSED)

    def deadline(self) -> float:
        """Return when what begins now has to be over."""
        return time.monotonic() + self._config.timeout_secs

    def data(self, method: str, *path: str, deadline: float, document: Any = None) -> Answer:
        """Read or write a document, or ask for a decision. Each part of the path is one key, or words with slashes.

        Raises:
            ExternalError: there is no answer, or not one of OPA.
        """
        body = None if document is None else json.dumps(document, allow_nan=False, separators=(",", ":")).encode()
        if body is not None and len(body) > _LARGEST_REQUEST:
            raise ExternalError("The question for OPA is too large")
        target = "/".join((f"{self._prefix}/v1/data", *path))
        began = time.monotonic()
        probe = self.breaker.enter()
        status = "error"
        try:
            # The probe is one request.
            answer = self._with_retries(method, target, body, deadline, 0 if probe else self._config.max_retries)
            status = "success"
        except EmptyPoolError as error:
            # Our own requests fill the pool, which says nothing new of OPA.
            self._leave(probe)
            raise ExternalError("Too many requests to OPA are on their way") from error
        except _Silence as error:
            self.breaker.failed(probe=probe)
            raise ExternalError(str(error)) from error
        except BaseException:
            self._leave(probe)
            raise
        finally:
            labels = {"backend": "opa", "status": status}
            self._metrics.observe("sqe_policy_resolve_duration_seconds", time.monotonic() - began, labels)
        self.breaker.succeeded(probe=probe)
        return answer

    def _leave(self, probe: bool) -> None:
        if probe:
            self.breaker.failed(probe=True)

    def _with_retries(self, method: str, target: str, body: bytes | None, deadline: float, retries: int) -> Answer:
        for attempt in range(retries + 1):
            try:
                return self._once(method, target, body, deadline)
            except _Silence as silence:
                # A decision may be asked for twice, and writing a document twice writes it once.
                pause = _FIRST_PAUSE_SECS * 2**attempt * random.uniform(0.5, 1.5)  # noqa: S311 - spreads load
                if attempt == retries or not silence.again or time.monotonic() + pause >= deadline:
                    raise
            time.sleep(pause)
        raise AssertionError("the last attempt returns or raises")

    def _once(self, method: str, target: str, body: bytes | None, deadline: float) -> Answer:
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            # It waited for its turn here; OPA has not even been asked.
            raise ExternalError("OPA did not answer in time")
        try:
            response = self._pool.urlopen(
                method,
                target,
                body=body,
                headers=self._headers,
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
            _raise_silence(error)
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
            _raise_silence(error)
        if len(raw) > limit:
            response.close()
            raise ExternalError("The answer of OPA is too large")
        response.release_conn()
        if response.status in _BUSY:
            raise _Silence(f"OPA answered with status {response.status}", again=True)
        if 300 <= response.status < 400:
            raise _Silence("OPA answered with a redirect, which is not followed", again=False)
        try:
            document = read_json(raw) if raw else None
        except ValueError as error:
            raise _Silence("The answer of OPA is no JSON", again=False) from error
        if response.status >= 500 and not _is_about_the_question(document):
            raise _Silence(f"OPA answered with status {response.status}", again=False)
        return Answer(status=response.status, body=document)

    def _breaker_changed(self, state: BreakerState) -> None:
        if state is BreakerState.OPEN:
            _log.warning("OPA does not answer; it is not asked for %d s", self._config.breaker_recovery_secs)
        self._metrics.gauge("sqe_policy_circuit_breaker_state", state.value, {"backend": "opa"})

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()


def key_segment(key: str) -> str:
    """Write one key of a path."""
    return quote(key, safe="")


def _tls(config: OpaConfig) -> ssl.SSLContext:
    try:
        return tls_context(
            ca_file=config.ca_file, client_cert_file=config.client_cert_file, client_key_file=config.client_key_file
        )
    except OSError as error:
        raise StartupError("The certificates of [policy.opa] cannot be read") from error


def _raise_silence(error: Exception) -> NoReturn:
    _log.info("a request to OPA failed: %s", type(error).__name__)
    if isinstance(error, ConnectTimeoutError):
        raise _Silence("OPA cannot be reached in time", again=True) from error
    if isinstance(error, PoolTimeoutError | TimeoutError):
        raise _Silence("OPA did not answer in time", again=False) from error
    if isinstance(error, SSLError):
        raise _Silence("OPA is not the server that its certificate has to name", again=False) from error
    raise _Silence("OPA cannot be reached", again=True) from error


def _is_about_the_question(document: Any) -> bool:
    """Whether OPA itself says that this evaluation failed: its policy is at fault, and it answers other questions.

    Otherwise somebody could ask five times about a table with a broken policy, and lock everybody out.
    """
    if not isinstance(document, Mapping) or not isinstance(document.get("errors"), list):
        return False
    codes = [error.get("code") for error in document["errors"] if isinstance(error, Mapping)]
    return bool(codes) and all(isinstance(code, str) and code.startswith("eval_") for code in codes)
