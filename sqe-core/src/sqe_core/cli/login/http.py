"""Requests of the command line to an identity provider: bounded in time and size, and never redirected.

What fails is told without bodies and addresses' queries: either may hold a token.
"""

from __future__ import annotations

import http.client
import ipaddress
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

from sqe_core import __version__
from sqe_core.spi.errors import ErrorCode, SqeError, UserError
from sqe_core.spi.strict_json import read_json

_LARGEST_ANSWER = 256 * 1024
_SECS = 20.0


class LoginError(UserError):
    """Nobody is signed in: the identity provider refused, cannot be reached, or answered with something else."""

    default_code = ErrorCode.AUTHENTICATION_FAILED


class ProviderSilentError(LoginError):
    """The identity provider did not answer; another try may help."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A JSON object that came back."""

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


def is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def ask(url: str, form: Mapping[str, str] | None = None, *, secs: float = _SECS) -> Answer:
    """Read a document, or send a form.

    Raises:
        ProviderSilentError: there is no answer.
        LoginError: there is one that cannot be used.
    """
    if not is_safe_url(url):
        raise LoginError("The identity provider's address is neither https nor on this machine")
    outcome: list[Answer | SqeError] = []

    def run() -> None:
        try:
            outcome.append(_ask(url, form, secs))
        except SqeError as error:
            outcome.append(error)

    # In a thread: a socket's own timeout begins anew with every byte that arrives.
    thread = threading.Thread(target=run, name="sqe-login", daemon=True)
    thread.start()
    thread.join(secs)
    if not outcome:
        raise ProviderSilentError("The identity provider did not answer in time")
    if isinstance(outcome[0], SqeError):
        raise outcome[0]
    return outcome[0]


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: Any, **named: Any) -> None:
        return None


def _ask(url: str, form: Mapping[str, str] | None, secs: float) -> Answer:
    headers = {"Accept": "application/json", "User-Agent": f"sqe-cli/{__version__}"}
    body = urlencode(form).encode() if form is not None else None
    request = urllib.request.Request(url, data=body, headers=headers)  # noqa: S310 - https, or this machine
    parts = urlsplit(url)
    handlers: list[urllib.request.BaseHandler] = [_NoRedirects()]
    if is_loopback(parts.hostname or ""):
        handlers.append(urllib.request.ProxyHandler({}))
    if parts.scheme == "https":
        handlers.append(urllib.request.HTTPSHandler(context=ssl.create_default_context()))
    opener = urllib.request.build_opener(*handlers)
    try:
        with opener.open(request, timeout=secs) as response:
            return Answer(response.status, _document(response.read(_LARGEST_ANSWER + 1)))
    except urllib.error.HTTPError as refusal:
        with refusal:
            if 300 <= refusal.code < 400:
                raise LoginError("The identity provider answered with a redirect, which is not followed") from None
            if refusal.code >= 500:
                raise ProviderSilentError(f"The identity provider answered with status {refusal.code}") from None
            return Answer(refusal.code, _document(_rest(refusal)))
    except urllib.error.URLError as failure:
        if isinstance(failure.reason, ssl.SSLError):
            raise LoginError("The identity provider is not the one that its certificate has to name") from None
        raise ProviderSilentError("The identity provider cannot be reached") from None
    except (OSError, http.client.HTTPException, ValueError):
        raise ProviderSilentError("The identity provider cannot be reached") from None


def _rest(refusal: urllib.error.HTTPError) -> bytes:
    try:
        return refusal.read(_LARGEST_ANSWER + 1)
    except (OSError, http.client.HTTPException):
        raise ProviderSilentError("The identity provider cannot be reached") from None


def _document(raw: bytes) -> Mapping[str, Any]:
    if len(raw) > _LARGEST_ANSWER:
        raise LoginError("The answer of the identity provider is too large")
    try:
        document = read_json(raw) if raw else {}
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise LoginError("The answer of the identity provider is no JSON object")
    return document
