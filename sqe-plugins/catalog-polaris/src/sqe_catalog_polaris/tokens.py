"""Tokens from an OAuth token endpoint, kept until shortly before they end."""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from urllib.parse import urlencode, urlsplit

from sqe_catalog_polaris.config import RestConfig
from sqe_catalog_polaris.transport import Transport
from sqe_core.spi import ErrorCode, ExternalError, PluginContext, Secret, UserError

_EARLY_SECS = 60.0
_SHORTEST_SECS = 30.0
_USUAL_SECS = 3600.0
_MOST_TOKENS = 10_000
_LONGEST_TOKEN = 64 * 1024


def fingerprint(secret: Secret) -> str:
    """Name a token without telling it."""
    return hashlib.sha256(secret.reveal().encode()).hexdigest()


class TokenEndpoint:
    """Asks one token endpoint; each token is asked for once while it is good, by whoever needs it first."""

    def __init__(
        self,
        config: RestConfig,
        context: PluginContext,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        url = config.auth.token_endpoint or ""
        parts = urlsplit(url)
        self._target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._transport = Transport(url, "the token endpoint", config, context)
        # A catalog that gives tokens itself does so apart for each of its realms.
        catalog = urlsplit(config.catalog_url)
        own = (parts.scheme, parts.netloc) == (catalog.scheme, catalog.netloc)
        self._headers = {**(config.own_headers if own else {}), "Content-Type": "application/x-www-form-urlencoded"}
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._asking: dict[str, threading.Lock] = {}
        self._unwanted: set[str] = set()
        """Of those that are asked for, what was forgotten meanwhile."""
        self._tokens: OrderedDict[str, tuple[Secret, float]] = OrderedDict()

    def token(self, key: str, form: Mapping[str, Secret | str]) -> Secret:
        """Return the token of a key, from the cache or for this form."""
        found = self._find(key)
        if found is not None:
            return found
        with self._lock:
            asking = self._asking.setdefault(key, threading.Lock())
        try:
            with asking:
                found = self._find(key)
                return self._ask(key, form) if found is None else found
        finally:
            with self._lock:
                if not asking.locked():
                    self._asking.pop(key, None)
                    self._unwanted.discard(key)

    def forget(self, key: str) -> None:
        """Forget the token of a key, also one that is on its way."""
        with self._lock:
            self._tokens.pop(key, None)
            if key in self._asking:
                self._unwanted.add(key)
            self._drop_ended()

    def _drop_ended(self) -> None:
        """Forget what nobody asked for since it ended. Call with the lock."""
        now = self._monotonic()
        for key in [key for key, (_, until) in self._tokens.items() if until <= now]:
            del self._tokens[key]

    def _find(self, key: str) -> Secret | None:
        with self._lock:
            token, until = self._tokens.get(key, (None, 0.0))
            if token is not None and self._monotonic() < until:
                self._tokens.move_to_end(key)
                return token
            self._tokens.pop(key, None)
            return None

    def _ask(self, key: str, form: Mapping[str, Secret | str]) -> Secret:
        fields = {name: value.reveal() if isinstance(value, Secret) else value for name, value in form.items()}
        answer = self._transport.send(
            "POST",
            self._target,
            headers=self._headers,
            body=urlencode(fields).encode(),
        )
        body = answer.body if isinstance(answer.body, Mapping) else {}
        if answer.status in (400, 401, 403):
            raise UserError(
                "The token endpoint of the catalog refuses the login",
                code=ErrorCode.AUTHENTICATION_FAILED,
                hint="log in again, or look at [catalog.auth]",
            )
        token, kind = body.get("access_token"), body.get("token_type", "bearer")
        fits = isinstance(token, str) and 0 < len(token) <= _LONGEST_TOKEN and token.isascii() and token.isprintable()
        if answer.status != 200 or not fits or not isinstance(kind, str) or kind.lower() not in ("bearer", "n_a"):
            raise ExternalError("The token endpoint of the catalog does not answer as expected")
        secs = body.get("expires_in", _USUAL_SECS)
        known = isinstance(secs, int | float) and not isinstance(secs, bool) and secs > 0
        kept = max((float(secs) if known else _USUAL_SECS) - _EARLY_SECS, _SHORTEST_SECS)
        secret = Secret(str(token))
        with self._lock:
            self._drop_ended()
            if key in self._unwanted:
                return secret
            self._tokens[key] = (secret, self._monotonic() + min(kept, 86_400.0))
            while len(self._tokens) > _MOST_TOKENS:
                self._tokens.popitem(last=False)
        return secret

    def close(self) -> None:
        with self._lock:
            self._tokens.clear()
        self._transport.close()
