"""The sink keeps SQE's contract."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from acme_ledger import Ledger, LedgerConfig, LedgerFactory
from sqe_core.spi import PluginContext, StartupError
from sqe_core.testing import LineageSinkContract, PluginContract


class TestLedgerPlugin(PluginContract):
    plugin_name = "acme-ledger"


class TestLedger(LineageSinkContract):
    capabilities = frozenset({"remote"})

    @pytest.fixture
    def factory(self) -> LedgerFactory:
        return LedgerFactory()

    @pytest.fixture
    def config(self, tmp_path: Path) -> LedgerConfig:
        return LedgerConfig(path=tmp_path / "ledger.db", timeout_secs=0.2)

    @pytest.fixture
    def delivered(self, config: LedgerConfig):
        def read() -> list[object]:
            with closing(sqlite3.connect(config.path)) as file:
                return [json.loads(row[0]) for row in file.execute("SELECT document FROM events ORDER BY rowid")]

        return read

    @pytest.fixture
    def broken(self, config: LedgerConfig) -> Iterator[Ledger]:
        """Somebody else holds the file."""
        sink = Ledger(config)
        with closing(sqlite3.connect(config.path)) as other:
            other.execute("BEGIN EXCLUSIVE")
            yield sink
        sink.close()


def test_a_file_that_cannot_be_opened_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match="ledger"):
        LedgerFactory().create("ledger", LedgerConfig(path=tmp_path / "no" / "ledger.db"), PluginContext())
