"""The log of the command line."""

from __future__ import annotations

import logging
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from sqe_core.cli.exit_codes import UsageError
from sqe_core.cli.logs import configure


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    root, ours = logging.getLogger(), logging.getLogger("sqe_core")
    handlers, level = list(root.handlers), ours.level
    yield
    for handler in set(root.handlers) - set(handlers):
        root.removeHandler(handler)
        handler.close()
    ours.setLevel(level)


def test_warnings_go_to_a_private_file(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "logs" / "sqe-cli.log"
    configure({}, file)
    logging.getLogger("sqe_core.query").warning("something is odd")
    logging.getLogger("sqe_core.query").info("ordinary")
    assert "something is odd" in file.read_text()
    assert "ordinary" not in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("level", ["trace", "debug", "INFO"])
def test_sqe_log_sends_them_to_standard_error(tmp_path: Path, capsys: pytest.CaptureFixture[str], level: str) -> None:
    configure({"SQE_LOG": level}, tmp_path / "log")
    logging.getLogger("sqe_core.query").info("ordinary")
    assert "INFO sqe_core.query: ordinary" in capsys.readouterr().err
    assert not (tmp_path / "log").exists()


def test_an_unknown_level_is_wrong_usage(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="SQE_LOG: expected one of"):
        configure({"SQE_LOG": "loud"}, tmp_path / "log")


def test_a_large_file_is_put_aside(tmp_path: Path) -> None:
    file = tmp_path / "sqe-cli.log"
    file.write_bytes(b"x" * (2 << 20))
    configure({}, file)
    assert file.stat().st_size == 0
    assert (tmp_path / "sqe-cli.log.1").stat().st_size == 2 << 20


def test_no_place_to_write_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    configure({}, tmp_path / "file" / "sqe-cli.log")
    logging.getLogger("sqe_core").warning("lost")
