"""Requests of the command line to an identity provider, through the proxy of the environment where there is one.

What fails is told without bodies and addresses' queries: either may hold a token.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

from sqe_core import __version__
from sqe_core.spi.errors import ErrorCode, UserError
from sqe_core.spi.strict_json import read_json
from sqe_http.errors import HttpFailedError, Reason
from sqe_http.places import is_loopback

if TYPE_CHECKING:
    from sqe_http import client as http

_LARGEST_ANSWER = 256 * 1024
_SECS = 20.0


class LoginError(UserError):
    """Nobody is signed in: the identity provider refused, cannot be reached, or answered with something else."""

    default_code = ErrorCode.AUTHENTICATION_FAILED


class ProviderSilentError(LoginError):
    """The identity provider did not answer; another try may help."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    document: Mapping[str, Any]


def is_safe_url(url: object) -> bool:
    """Whether what is sent there stays between here and there: https, or this machine."""
    if not isinstance(url, str) or not url.isascii() or not url.isprintable() or " " in url:
        return False
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        return False
    if not host or "@" in parts.netloc or parts.fragment:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))


def ask(url: str, form: Mapping[str, str] | None = None, *, secs: float = _SECS) -> Answer:
    """Read a document, or send a form, once.

    Raises:
        ProviderSilentError: there is no answer.
        LoginError: there is one that cannot be used.
    """
    # Heavy, and most who start the command line do not log in.
    from sqe_http.client import Bounds, HttpClient

    if not is_safe_url(url):
        raise LoginError("The identity provider's address is neither https nor on this machine")
    headers = {"Accept": "application/json", "User-Agent": f"sqe-cli/{__version__}"}
    body = None
    if form is not None:
        headers["Content-Type"] = "application/x-www-form-urlencoded"
        body = urlencode(form).encode()
    bounds = Bounds(timeout_secs=secs, answer_bytes=_LARGEST_ANSWER, connections=1)
    with closing(HttpClient("the identity provider", bounds, headers=headers, proxies=True)) as client:
        try:
            return client.send("GET" if form is None else "POST", url, body=body, read=_read)
        except HttpFailedError as failure:
            silent = failure.reason in (Reason.UNREACHABLE, Reason.LATE)
            raise (ProviderSilentError if silent else LoginError)(str(failure)) from None


def _read(answer: http.Answer) -> Answer:
    if answer.status >= 500:
        raise ProviderSilentError(f"The identity provider answered with status {answer.status}")
    try:
        document = read_json(answer.body) if answer.body else {}
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise LoginError("The answer of the identity provider is no JSON object")
    return Answer(answer.status, document)
