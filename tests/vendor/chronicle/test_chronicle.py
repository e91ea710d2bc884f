"""The observer keeps SQE's contract."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from acme_chronicle import ChronicleConfig, ChroniclePlugin
from sqe_core.spi import PluginContext, QueryPhase
from sqe_core.testing import ObserverContract, PluginContract, RecordingMetrics, make_query_event


class TestChroniclePlugin(PluginContract):
    plugin_name = "acme-chronicle"


class TestChronicle(ObserverContract):
    capabilities = frozenset({"records"})

    @pytest.fixture
    def factory(self) -> type[ChroniclePlugin]:
        return ChroniclePlugin

    @pytest.fixture
    def config(self, tmp_path: Path) -> ChronicleConfig:
        return ChronicleConfig(path=tmp_path / "chronicle.jsonl")

    @pytest.fixture
    def observed(self, config: ChronicleConfig):
        def read() -> list[tuple[str, QueryPhase]]:
            lines = map(json.loads, config.path.read_text("utf-8").splitlines()) if config.path.exists() else ()
            return [(line["query_id"], QueryPhase(line["phase"])) for line in lines]

        return read


def test_what_does_not_fit_is_counted(tmp_path: Path) -> None:
    metrics, plugin = RecordingMetrics(), ChroniclePlugin()
    plugin.start(ChronicleConfig(path=tmp_path / "fifo", most_waiting=1), PluginContext(metrics=metrics))
    plugin._write = lambda path: None  # type: ignore[method-assign]
    plugin.stop()
    for _ in range(3):
        plugin.sqe_on_query_event(make_query_event())
    assert metrics.values["sqe_chronicle_dropped_total"] == 2
