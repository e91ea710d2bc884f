"""Connections with TLS, until they have shaken hands: bounded in number and in time, as those without a login are.

asyncio's own server knows nothing of a connection before that, and would let as many wait as come.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from functools import partial

from sqe_http.listener import ListenerTls
from sqe_protocol_trino.config import TrinoConfig

_log = logging.getLogger("sqe_core.trino")
_NO_FILES_SECS = 0.1


class Handshakes:
    """Accepts connections, each with the certificate of that moment. The event loop's.

    Args:
        listening: where they come.
        tls: what they are encrypted with.
        make: makes what speaks on one that has shaken hands.
        config: bounds.
    """

    def __init__(
        self, listening: socket.socket, tls: ListenerTls, make: Callable[[], asyncio.Protocol], config: TrinoConfig
    ) -> None:
        self._listening, self._tls, self._make, self._config = listening, tls, make, config
        self._waiting: dict[asyncio.Task[None], str] = {}
        listening.setblocking(False)
        self._accepting = asyncio.create_task(self._accept())

    async def _accept(self) -> None:
        while True:
            try:
                accepted, where = await asyncio.get_running_loop().sock_accept(self._listening)
            except OSError as error:
                _log.warning("a connection could not be accepted: %s", error.strerror or error)
                await asyncio.sleep(_NO_FILES_SECS)
                continue
            address = str(where[0])
            self._make_room(address)
            task = asyncio.create_task(self._shake(accepted))
            self._waiting[task] = address
            task.add_done_callback(partial(self._over, accepted))

    def _over(self, accepted: socket.socket, task: asyncio.Task[None]) -> None:
        self._waiting.pop(task, None)
        if task.cancelled():  # perhaps before it began
            accepted.close()

    def _make_room(self, address: str) -> None:
        """Of too many, the oldest goes."""
        of_address = [task for task, other in self._waiting.items() if other == address]
        if len(of_address) >= self._config.max_strangers_per_address:
            self._end(of_address[0])
        elif len(self._waiting) >= self._config.max_strangers:
            self._end(next(iter(self._waiting)))

    def _end(self, task: asyncio.Task[None]) -> None:
        del self._waiting[task]
        task.cancel()

    async def _shake(self, accepted: socket.socket) -> None:
        try:
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await asyncio.get_running_loop().connect_accepted_socket(
                self._make, accepted, ssl=self._tls.context(), ssl_handshake_timeout=self._config.head_timeout_secs
            )
        except OSError:  # it speaks something else, was too slow, or went away
            accepted.close()

    async def close(self) -> None:
        """Accept no more, and end those that have not shaken hands."""
        ending = [self._accepting, *self._waiting]
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)
        self._listening.close()
