"""The long lane says when each of its parts ran, on which commit and how it ended."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime

import long_run
import pytest


def test_the_record_names_parts_of_the_lane() -> None:
    assert long_run.read()
    assert long_run.read().keys() <= long_run.PARTS.keys()


@pytest.mark.parametrize("part", long_run.read())
def test_the_record_of_a_part_is_whole(part: str) -> None:
    entry = long_run.read()[part]
    assert set(entry) == {"date", "commit", "command", "outcome", "seconds", "summary"}
    assert date(2026, 1, 1) <= date.fromisoformat(str(entry["date"])) <= datetime.now(UTC).date()
    assert re.fullmatch(r"[0-9a-f]{40}(-dirty)?", str(entry["commit"]))
    assert entry["outcome"] == "passed"
    assert entry["summary"]


def test_what_was_written_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setattr(long_run, "RECORD", tmp_path / "long-run.toml")
    assert long_run.read() == {}
    record = {"soak": {"summary": 'a "quoted" \\ text', "seconds": 7}, "tests": {"seconds": 1}}
    long_run.write(record)
    assert long_run.read() == record
    assert list(long_run.read()) == ["tests", "soak"]


def test_a_part_that_is_none_is_refused() -> None:
    with pytest.raises(SystemExit, match="naps is no part; the parts are tests, differential, twins, fuzz, soak,"):
        long_run.main(["naps"])


def test_a_part_that_fails_is_recorded_as_such(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setattr(long_run, "RECORD", tmp_path / "long-run.toml")
    monkeypatch.setattr(long_run, "PARTS", {"soak": long_run.Part(command=("sh", "-c", "echo two lost; exit 3"))})
    assert long_run.main(["soak"]) == 1
    entry = long_run.read()["soak"]
    assert (entry["outcome"], entry["summary"]) == ("failed", "two lost")
