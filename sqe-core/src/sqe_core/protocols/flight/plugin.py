"""Registers the protocol `flight`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqe_core.protocols.flight.server import FlightConfig, FlightServer
from sqe_core.spi.hooks import SqePlugin, StartupContext, hookimpl
from sqe_core.spi.protocol import ProtocolContext, ProtocolFactory, ProtocolServer


class FlightFactory(ProtocolFactory[FlightConfig]):
    kind = "flight"
    config_type = FlightConfig
    default_port = 50051

    def create(self, name: str, config: FlightConfig, context: ProtocolContext) -> ProtocolServer:
        return FlightServer(config, context)


class FlightPlugin(SqePlugin):
    @hookimpl
    def sqe_provide_protocols(self, context: StartupContext) -> Sequence[ProtocolFactory[Any]]:
        return (FlightFactory(),)
