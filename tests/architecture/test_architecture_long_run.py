"""The long lane says when each of its parts ran, on which commit and how it ended."""

from __future__ import annotations

import long_run
import pytest


def test_what_was_written_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setattr(long_run, "RECORD", tmp_path / "long-run.toml")
    assert long_run.read() == {}
    record = {"soak": {"summary": 'a "quoted" \\ text', "seconds": 7}, "tests": {"seconds": 1}}
    long_run.write(record)
    assert long_run.read() == record
    assert list(long_run.read()) == ["tests", "soak"]


def test_a_part_that_is_none_is_refused() -> None:
    with pytest.raises(SystemExit, match="naps is no part; the parts are tests, differential, twins, soak, mutations"):
        long_run.main(["naps"])


def test_a_part_that_fails_is_recorded_as_such(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setattr(long_run, "RECORD", tmp_path / "long-run.toml")
    monkeypatch.setattr(long_run, "PARTS", {"soak": long_run.Part(command=("sh", "-c", "echo two lost; exit 3"))})
    assert long_run.main(["soak"]) == 1
    entry = long_run.read()["soak"]
    assert (entry["outcome"], entry["summary"]) == ("failed", "two lost")
