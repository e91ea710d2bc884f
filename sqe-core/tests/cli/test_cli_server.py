"""`sqe-server` while no wire protocol is built."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def run_server(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sqe_core.cli.server", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=folder,
        env={"HOME": str(folder), "PATH": "/usr/bin:/bin"},
        check=False,
    )


@pytest.mark.parametrize("arguments", [[], ["--mode", "coordinator"]])
def test_there_is_nothing_to_serve_yet(tmp_path: Path, arguments: list[str]) -> None:
    done = run_server(tmp_path, *arguments)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("sqe-server: this version of SQE has no wire protocol yet")
    assert done.stderr.count("\n") == 1


def test_what_is_configured_and_not_built_is_named(tmp_path: Path) -> None:
    (tmp_path / "sqe.toml").write_text("[metrics.openlineage]\nenabled = true\nfile_path = 'lineage.jsonl'\n")
    done = run_server(tmp_path)
    assert done.returncode == 1
    assert "metrics.openlineage" in done.stderr
    assert "not built yet" in done.stderr
    assert "this version of SQE has no wire protocol yet" in done.stderr.splitlines()[-1]


def test_a_worker_needs_its_coordinator(tmp_path: Path) -> None:
    done = run_server(tmp_path, "--mode", "worker")
    assert done.returncode == 2
    assert "worker.coordinator_url" in done.stderr


def test_a_wrong_configuration_names_every_fault(tmp_path: Path) -> None:
    (tmp_path / "sqe.toml").write_text('[query]\ntimeout_sec = 3\nmax_sql_bytes = "many"\n')
    done = run_server(tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "timeout_sec" in done.stderr
    assert "max_sql_bytes" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_wrong_command_line(tmp_path: Path) -> None:
    assert run_server(tmp_path, "--mode", "both").returncode == 2
    done = run_server(tmp_path, "--config", "nowhere.toml")
    assert done.returncode == 2
    assert "nowhere.toml" in done.stderr
