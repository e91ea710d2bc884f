"""Lineage as lines in a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sqe_core.observe.lineage_file import FileLineageConfig, FileLineageFactory
from sqe_core.spi import LineageSink, PluginContext, StartupError
from sqe_core.testing import make_lineage_event


def open_sink(path: Path) -> LineageSink:
    return FileLineageFactory().create("file", FileLineageConfig(file_path=path), PluginContext())


def test_appends_and_can_be_read_at_once(tmp_path: Path) -> None:
    path = tmp_path / "lineage.jsonl"
    for run in (1, 2):
        sink = open_sink(path)
        sink.emit(make_lineage_event(run))
        assert len(path.read_text("utf-8").splitlines()) == run
        sink.close()
    assert [json.loads(line)["run"]["runId"][-1] for line in path.read_text("utf-8").splitlines()] == ["1", "2"]


def test_file_is_private(tmp_path: Path) -> None:
    path = tmp_path / "lineage.jsonl"
    open_sink(path).close()
    assert path.stat().st_mode & 0o077 == 0


def test_unwritable_file_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match=r"cannot be written: No such file or directory"):
        open_sink(tmp_path / "missing" / "lineage.jsonl")
