"""The protocol keeps SQE's contract, with a client of a few lines."""

from __future__ import annotations

import pytest
from trino_client import Client

from sqe_core.testing import PluginContract, ProtocolContract
from sqe_protocol_trino.config import TrinoConfig
from sqe_protocol_trino.plugin import TrinoFactory


class TestTrinoPlugin(PluginContract):
    plugin_name = "protocol-trino"


class TestTrino(ProtocolContract):
    capabilities = frozenset({"basic", "bearer"})

    @pytest.fixture
    def factory(self) -> TrinoFactory:
        return TrinoFactory()

    @pytest.fixture
    def config(self) -> TrinoConfig:
        return TrinoConfig()

    @pytest.fixture
    def client(self) -> Client:
        return Client()
