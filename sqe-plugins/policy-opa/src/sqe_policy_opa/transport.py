"""Requests to OPA (POL-14). What fails is told without addresses, paths, headers or bodies (ERR-1)."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from sqe_core.spi import ErrorCode, ExternalError, PluginContext, StartupError, read_json
from sqe_http import client as http
from sqe_http.breaker import Breaker, BreakerState
from sqe_http.deadline import Tls
from sqe_http.errors import HttpFailedError, Reason
from sqe_policy_opa.config import OpaConfig

_LARGEST_REQUEST = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer that arrived: its status, and the JSON of its body, None for an empty one."""

    status: int
    body: Any


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
        self._metrics = context.metrics
        self._url = config.url.rstrip("/")
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        headers["User-Agent"] = f"sqe/{context.sqe_version or '0'}"
        if config.token:
            headers["Authorization"] = f"Bearer {config.token.reveal()}"
        self.breaker = Breaker(
            "OPA",
            config.breaker_failure_threshold,
            config.breaker_recovery_secs,
            monotonic=monotonic,
            changed=self._breaker_changed,
        )
        self._breaker_changed(BreakerState.CLOSED)
        bounds = http.Bounds(
            timeout_secs=config.timeout_secs,
            connect_secs=config.connect_timeout_secs,
            answer_bytes=config.max_response_bytes,
            connections=config.max_connections,
            retries=config.max_retries,
        )
        tls = Tls(
            ca_file=config.ca_file, client_cert_file=config.client_cert_file, client_key_file=config.client_key_file
        )
        try:
            self._client = http.HttpClient("OPA", bounds, tls=tls, headers=headers, breaker=self.breaker)
        except OSError as error:
            raise StartupError("The certificates of [policy.opa] cannot be read") from error
        self.deadline = self._client.deadline
        self.close = self._client.close

    def data(self, method: str, *path: str, deadline: float, document: Any = None) -> Answer:
        """Read or write a document, or ask for a decision. Each part of the path is one key, or words with slashes.

        Raises:
            ExternalError: there is no answer, or not one of OPA.
        """
        body = None if document is None else json.dumps(document, allow_nan=False, separators=(",", ":")).encode()
        if body is not None and len(body) > _LARGEST_REQUEST:
            raise ExternalError("The question for OPA is too large")
        url = "/".join((f"{self._url}/v1/data", *path))
        began = time.monotonic()
        status = "error"
        try:
            # A decision may be asked for twice, and writing a document twice writes it once.
            answer = self._client.send(method, url, body=body, deadline=deadline, read=_read, again=True)
            status = "success"
        except HttpFailedError as failure:
            spared = failure.reason is Reason.SPARED
            raise ExternalError(str(failure), code=ErrorCode.CIRCUIT_BREAKER_OPEN if spared else None) from failure
        finally:
            labels = {"backend": "opa", "status": status}
            self._metrics.observe("sqe_policy_resolve_duration_seconds", time.monotonic() - began, labels)
        return answer

    def _breaker_changed(self, state: BreakerState) -> None:
        self._metrics.gauge("sqe_policy_circuit_breaker_state", state.value, {"backend": "opa"})


def _read(answer: http.Answer) -> Answer:
    status = answer.status
    if status in (
        HTTPStatus.TOO_MANY_REQUESTS,
        HTTPStatus.BAD_GATEWAY,
        HTTPStatus.SERVICE_UNAVAILABLE,
        HTTPStatus.GATEWAY_TIMEOUT,
    ):
        raise HttpFailedError(Reason.UNREADABLE, f"OPA answered with status {status}")
    try:
        document = read_json(answer.body) if answer.body else None
    except ValueError as error:
        raise HttpFailedError(Reason.UNREADABLE, "The answer of OPA is no JSON") from error
    if status >= 500 and not _is_about_the_question(document):
        raise HttpFailedError(Reason.UNREADABLE, f"OPA answered with status {status}")
    return Answer(status=status, body=document)


def _is_about_the_question(document: Any) -> bool:
    """Whether OPA itself says that this evaluation failed: its policy is at fault, and it answers other questions.

    Otherwise somebody could ask five times about a table with a broken policy, and lock everybody out.
    """
    if not isinstance(document, Mapping) or not isinstance(document.get("errors"), list):
        return False
    codes = [error.get("code") for error in document["errors"] if isinstance(error, Mapping)]
    return bool(codes) and all(isinstance(code, str) and code.startswith("eval_") for code in codes)
