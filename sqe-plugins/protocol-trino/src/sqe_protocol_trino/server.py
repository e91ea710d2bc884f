"""The server of the protocol. What listens is imported as it starts, while the JVM of the engine starts too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqe_core.spi import Endpoint, ProtocolContext, ProtocolServer, QueryGateway
from sqe_protocol_trino.config import TrinoConfig

if TYPE_CHECKING:
    from sqe_protocol_trino.listener import TrinoListener


class TrinoServer(ProtocolServer):
    """Trino's protocol on one port."""

    def __init__(self, config: TrinoConfig, context: ProtocolContext) -> None:
        self._config, self._context = config, context
        self._listener: TrinoListener | None = None

    def start(self, gateway: QueryGateway) -> Endpoint:
        """Bind, and serve in threads."""
        from sqe_protocol_trino.listener import TrinoListener

        self._listener = TrinoListener(self._config, self._context)
        return self._listener.start(gateway)

    def stop(self, drain_secs: float) -> None:
        """Begin nothing new, let clients fetch what is theirs, close."""
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.stop(drain_secs)
