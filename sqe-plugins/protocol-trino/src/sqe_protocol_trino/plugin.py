"""Registers the protocol `trino`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqe_core.spi import ProtocolContext, ProtocolFactory, ProtocolServer, SqePlugin, StartupContext, hookimpl
from sqe_protocol_trino.config import TrinoConfig
from sqe_protocol_trino.server import TrinoServer


class TrinoFactory(ProtocolFactory[TrinoConfig]):
    """Makes the server of Trino's protocol."""

    kind = "trino"
    config_type = TrinoConfig
    default_port = 8080

    def create(self, name: str, config: TrinoConfig, context: ProtocolContext) -> ProtocolServer:
        """Make it; it listens when it is started."""
        return TrinoServer(config, context)


class TrinoPlugin(SqePlugin):
    """Trino's HTTP protocol."""

    @hookimpl
    def sqe_provide_protocols(self, context: StartupContext) -> Sequence[ProtocolFactory[Any]]:
        """Contribute `trino`."""
        return (TrinoFactory(),)
