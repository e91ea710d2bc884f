"""Connections before and after their login: bounded in number and in time (LIM-2)."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Any

from aiohttp.web import BaseRequest, RequestHandler, Response, Server, StreamResponse

from sqe_protocol_trino.config import TrinoConfig

_STRANGER_SECS = 30.0


class Connections:
    """Knows who is connected. The event loop's, like all of its connections."""

    def __init__(self, config: TrinoConfig) -> None:
        self._config = config
        self._strangers: OrderedDict[GuardedHandler, str] = OrderedDict()
        self._all: set[GuardedHandler] = set()

    def __len__(self) -> int:
        return len(self._all)

    def came(self, connection: GuardedHandler, address: str) -> bool:
        """Count a new connection; of too many strangers the oldest goes. False when it is one too many."""
        if len(self._all) >= self._config.max_connections and not self._strangers:
            return False
        of_address = [each for each, where in self._strangers.items() if where == address]
        if len(of_address) >= self._config.max_strangers_per_address:
            _end_one(of_address)
        elif len(self._strangers) >= self._config.max_strangers or len(self._all) >= self._config.max_connections:
            _end_one(list(self._strangers))
        self._all.add(connection)
        self._strangers[connection] = address
        return True

    def logged_in(self, connection: GuardedHandler) -> None:
        """Its client is no stranger any more."""
        self._strangers.pop(connection, None)

    def went(self, connection: GuardedHandler) -> None:
        """It is closed."""
        self._all.discard(connection)
        self._strangers.pop(connection, None)

    def end_all(self) -> None:
        """Close what is still open."""
        for connection in list(self._all):
            connection.end()

    def is_stranger(self, connection: GuardedHandler) -> bool:
        """Whether nobody has logged in on it."""
        return connection in self._strangers


def _end_one(strangers: list[GuardedHandler]) -> None:
    """Make room: the oldest of those that say nothing goes first, and who waits for an answer to a login last."""
    next((each for each in strangers if not each.is_busy), strangers[0]).end()


class GuardedHandler(RequestHandler):
    """A connection whose requests have to arrive in time."""

    __slots__ = ("_connected", "_head_secs", "_head_timer", "_stranger_timer", "_wire")

    def __init__(self, server: GuardedServer, **settings: Any) -> None:
        super().__init__(server, **settings)
        self._connected = server.connected
        self._head_secs = server.head_secs
        self._wire: asyncio.Transport | None = None
        self._head_timer: asyncio.TimerHandle | None = None
        self._stranger_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        # Kept, for the base class forgets it when it begins to close, and TLS may wait for the client's goodbye then.
        self._wire = transport if isinstance(transport, asyncio.Transport) else None
        peer = transport.get_extra_info("peername")
        if not self._connected.came(self, str(peer[0]) if peer else ""):
            self.end()
            return
        self._expect_head()
        loop = asyncio.get_running_loop()
        self._stranger_timer = loop.call_later(_STRANGER_SECS, self._end_stranger)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._connected.went(self)
        self._wire = None
        for timer in (self._head_timer, self._stranger_timer):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._current_request is None:
            self._expect_head()
        super().data_received(data)

    def _expect_head(self) -> None:
        if self._head_timer is None:
            self._head_timer = asyncio.get_running_loop().call_later(self._head_secs, self.end)

    def head_arrived(self) -> None:
        """A whole head of a request is there."""
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    @property
    def is_busy(self) -> bool:
        """Whether a request of it is being answered."""
        return self._current_request is not None

    def handle_error(
        self, request: BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> StreamResponse:
        """Answer what is no request with a number, and nothing about this server."""
        response = Response(text="Bad request\n", status=status, headers={"Server": "SQE"})
        response.force_close()
        return response

    def _end_stranger(self) -> None:
        if self._connected.is_stranger(self):
            self.end()

    def end(self) -> None:
        """Close it at once."""
        if self._wire is not None:
            self._wire.abort()


class GuardedServer(Server):
    """Makes the connections."""

    def __init__(self, handler: Any, connected: Connections, head_secs: float, **settings: Any) -> None:
        super().__init__(handler, **settings)
        self.connected, self.head_secs = connected, head_secs
        self._settings = settings

    def __call__(self) -> GuardedHandler:
        return GuardedHandler(self, loop=asyncio.get_running_loop(), **self._settings)
