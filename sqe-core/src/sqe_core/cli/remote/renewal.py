"""Keeps the session on a server from ending with its token while a shell or a statement goes on."""

from __future__ import annotations

import logging
import threading

from sqe_core.cli.login.flow import TokenSource
from sqe_core.cli.login.http import LoginError, ProviderSilentError
from sqe_core.cli.remote.client import FlightClient
from sqe_core.spi.errors import SqeError

_log = logging.getLogger(__name__)

_SHORTEST_SECS = 1.0
_AGAIN_SECS = 10.0
# The clock of a machine that slept has moved on.
_LONGEST_SECS = 15.0


class Renewal:
    """Gets a new token when it is time, and gives it to the session.

    Args:
        client: the session.
        tokens: where tokens come from.
    """

    def __init__(self, client: FlightClient, tokens: TokenSource) -> None:
        self._client = client
        self._tokens = tokens
        self._shown = tokens.access_token()
        self._ended = threading.Event()
        threading.Thread(target=self._run, name="sqe-login-renewal", daemon=True).start()

    def stop(self) -> None:
        """End it. Idempotent."""
        self._ended.set()

    def _run(self) -> None:
        pause = _SHORTEST_SECS
        while not self._ended.wait(pause):
            try:
                token = self._tokens.access_token()
                if token != self._shown:
                    self._client.renew(token)
                    self._shown = token
                pause = min(max(self._tokens.due_in(), _SHORTEST_SECS), _LONGEST_SECS)
            except ProviderSilentError:
                pause = _AGAIN_SECS
            except LoginError as error:
                # The session ends with its token, and says so then.
                _log.warning("the login is not renewed: %s", error.message)
                return
            except SqeError as error:
                # A server that cannot do this, or a session that has ended: signing in anew renews it as well.
                _log.info("the session has not got its new token: %s", error.code.name)
                pause = _AGAIN_SECS
