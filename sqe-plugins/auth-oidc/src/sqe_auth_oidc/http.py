"""Requests to the identity provider.

What fails is told for the operator's log: which host, and what was wrong with it. Bodies, queries and headers are never
repeated (OBS-2); clients read the constant text of the login chain.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from sqe_auth_oidc.strict_json import read_object
from sqe_core.spi import ErrorCode, ExternalError, StartupError
from sqe_http import client as http
from sqe_http.deadline import Tls
from sqe_http.errors import HttpFailedError, Reason

_MOST_HOSTS = 8
_LARGEST_ANSWER = 512 * 1024
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
        bounds = http.Bounds(
            timeout_secs=timeout_secs, answer_bytes=_LARGEST_ANSWER, hosts=_MOST_HOSTS, retries=1, busy_again=False
        )
        headers = {"Accept": "application/json", "User-Agent": f"sqe/{version or '0'}"}
        tls = Tls(ca_file=ca_file, skip_verify=skip_verify)
        try:
            self._client = http.HttpClient("the identity provider", bounds, tls=tls, headers=headers)
        except OSError as error:
            raise StartupError(f"The certificates of {ca_file} cannot be read") from error
        self.close = self._client.close

    def get(self, url: str) -> Answer:
        return self._send("GET", url)

    def post(self, url: str, fields: Mapping[str, str], headers: Mapping[str, str] | None = None) -> Answer:
        """Send a form. Raises ExternalError; OAuth's refusals (status 400 to 499 with JSON) are answers."""
        sent = {"Content-Type": "application/x-www-form-urlencoded", **(headers or {})}
        return self._send("POST", url, urlencode(fields).encode("ascii"), sent)

    def _send(
        self, method: str, url: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        parts = urlsplit(url)
        name = f"the identity provider at {parts.hostname}{parts.path}"
        try:
            # A token is asked for once; reading a document twice reads it once.
            again = method == "GET"
            return self._client.send(
                method, url, body=body, headers=headers, again=again, name=name, read=partial(_read, name)
            )
        except HttpFailedError as failure:
            more = " (see ca_file)" if failure.reason is Reason.UNTRUSTED else ""
            raise ExternalError(f"{failure}{more}", code=ErrorCode.CATALOG_UNAVAILABLE) from failure


def _read(name: str, answer: http.Answer) -> Answer:
    status, what = answer.status, ""
    if status >= 500:
        what = f"answered with status {status}"
    elif status == 429:
        what = "answered that it was asked too often (status 429)"
    elif not answer.body:
        return Answer(status=status, body=None)
    else:
        try:
            return Answer(status=status, body=read_object(answer.body, depth=_DEPTH))
        except ValueError:
            form = "HTML" if answer.body.lstrip()[:1] == b"<" else "something that is no JSON object"
            what = f"answered with {form} (status {status}); is the address right?"
    raise HttpFailedError(Reason.UNREADABLE, f"{name[:1].upper()}{name[1:]} {what}")
