"""What an issuer says about itself: the addresses behind `/.well-known/openid-configuration`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from sqe_auth_oidc.http import HttpClient
from sqe_core.spi import ErrorCode, ExternalError

_KEPT_SECS = 3600.0
_AFTER_FAILURE_SECS = 5.0


class ProviderMetadata:
    """The metadata of one issuer, read at the first use and again each hour. Safe for use from many threads.

    Args:
        issuer: its exact name; whoever answers has to give himself that name (JWT-3).
        client: sends the request.
        monotonic: the clock.
        check_url: refuses an address.
    """

    def __init__(
        self,
        issuer: str,
        client: HttpClient,
        *,
        monotonic: Callable[[], float],
        check_url: Callable[[str, str], None],
    ) -> None:
        self._issuer = issuer
        self._client = client
        self._monotonic = monotonic
        self._check_url = check_url
        self._lock = threading.Lock()
        self._document: Mapping[str, Any] | None = None
        self._read_at = 0.0
        self._failure: tuple[float, ExternalError] | None = None

    def endpoint(self, name: str) -> str:
        """Return an address. Raises ExternalError when the issuer does not answer, or has none."""
        url = self.find_endpoint(name)
        if url is None:
            raise ExternalError(f"The metadata of {self._issuer} has no {name}")
        return url

    def find_endpoint(self, name: str) -> str | None:
        """Return an address, None when the issuer has none. Raises ExternalError when it does not answer."""
        url = self._current().get(name)
        if url is None:
            return None
        if not isinstance(url, str) or urlsplit(url).scheme not in ("http", "https"):
            raise ExternalError(f"The metadata of {self._issuer} has a {name} that is no address")
        try:
            self._check_url(name, url)
        except ValueError as error:
            raise ExternalError(f"The metadata of {self._issuer} cannot be used: {error}") from error
        return url

    def _current(self) -> Mapping[str, Any]:
        with self._lock:
            now = self._monotonic()
            if self._document is not None and now - self._read_at < _KEPT_SECS:
                return self._document
            if self._failure is not None and now - self._failure[0] < _AFTER_FAILURE_SECS:
                if self._document is not None:
                    return self._document
                raise self._failure[1]
            try:
                self._document, self._read_at, self._failure = self._read(), now, None
            except ExternalError as error:
                self._failure = now, error
                if self._document is None:
                    raise
            return self._document

    def _read(self) -> Mapping[str, Any]:
        url = f"{self._issuer.rstrip('/')}/.well-known/openid-configuration"
        answer = self._client.get(url)
        if answer.status != 200 or answer.body is None:
            raise ExternalError(
                f"The issuer {self._issuer} has no metadata: status {answer.status}; is the address right?",
                code=ErrorCode.CATALOG_UNAVAILABLE,
            )
        found = answer.body.get("issuer")
        if found != self._issuer:
            named = found if isinstance(found, str) and len(found) < 256 and found.isprintable() else "something else"
            raise ExternalError(f"The metadata of {self._issuer} says that the issuer is {named}; write exactly that")
        return answer.body
