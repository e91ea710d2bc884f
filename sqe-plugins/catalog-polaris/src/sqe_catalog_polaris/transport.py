"""Requests to a catalog. What fails is told without addresses, paths, headers or bodies (ERR-1)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from sqe_catalog_polaris.config import RestConfig
from sqe_core.spi import ErrorCode, ExternalError, PluginContext, read_json
from sqe_http import client as http
from sqe_http.breaker import Breaker, BreakerState
from sqe_http.errors import HttpFailedError, Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer that arrived; `body` is its JSON, None for an empty one or for what is no JSON."""

    status: int
    headers: Mapping[str, str]
    body: Any
    retry_after_secs: float

    @property
    def error_text(self) -> str:
        """What the catalog says about an error, for telling denials from faults. It never leaves SQE."""
        error = self.body.get("error") if isinstance(self.body, Mapping) else None
        if not isinstance(error, Mapping):
            return ""
        return f"{error.get('type', '')} {error.get('message', '')}"[:2000]


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
        self._metrics = context.metrics
        parts = urlsplit(url)
        self._origin = f"{parts.scheme}://{parts.netloc}"
        self.breaker = Breaker(
            what[:1].upper() + what[1:],
            config.breaker_failure_threshold,
            config.breaker_recovery_secs,
            monotonic=monotonic,
            changed=self._breaker_changed,
        )
        bounds = http.Bounds(
            timeout_secs=config.timeout_secs,
            connect_secs=config.connect_timeout_secs,
            answer_bytes=config.max_response_bytes,
            connections=config.max_connections,
            retries=config.max_retries,
        )
        headers = {"Accept": "application/json", "User-Agent": f"sqe/{context.sqe_version or '0'}"}
        self._client = http.HttpClient(what, bounds, headers=headers, breaker=self.breaker)
        self.deadline = self._client.deadline
        self.close = self._client.close

    def send(
        self,
        method: str,
        target: str,
        *,
        headers: Mapping[str, str],
        body: bytes | None = None,
        deadline: float | None = None,
        again: bool = False,
    ) -> Answer:
        """Send one request and return its answer, whatever its status.

        Args:
            method: of HTTP.
            target: path and query.
            headers: of this request.
            body: its body.
            deadline: when it has to be over.
            again: whether it may be sent again when there is no answer; what reads always may.

        Raises:
            ExternalError: there is no answer.
        """
        began = time.monotonic()
        outcome = "error"
        again = again or method == "GET"
        url = self._origin + target
        try:
            answer = self._client.send(
                method, url, headers=headers, body=body, deadline=deadline, again=again, read=self._read
            )
            outcome = str(answer.status)
        except HttpFailedError as failure:
            code = _CODES.get(failure.reason, ErrorCode.CATALOG_UNAVAILABLE)
            raise ExternalError(str(failure), code=code) from failure
        finally:
            self._metrics.observe("sqe_catalog_request_duration_seconds", time.monotonic() - began, {"status": outcome})
        return answer

    def _read(self, answer: http.Answer) -> Answer:
        try:
            document = read_json(answer.body) if answer.body else None
        except ValueError as error:
            if answer.status < 300:
                raise HttpFailedError(Reason.UNREADABLE, f"The answer of {self._what} is no JSON") from error
            document = None
        return Answer(
            status=answer.status,
            headers=answer.headers,
            body=document,
            retry_after_secs=answer.retry_after_secs,
        )

    def _breaker_changed(self, state: BreakerState) -> None:
        self._metrics.gauge("sqe_catalog_circuit_breaker_state", state.value)


def unexpected() -> ExternalError:
    return ExternalError("The catalog does not answer as expected")


_CODES = {
    Reason.SPARED: ErrorCode.CIRCUIT_BREAKER_OPEN,
    # The server is there.
    Reason.CROWDED: ErrorCode.CATALOG_ERROR,
    Reason.TOO_LARGE: ErrorCode.CATALOG_ERROR,
}
