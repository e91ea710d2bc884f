"""`sqe-server` up to the point where it would start: what it refuses, in which words, with which exit code."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sqe_core.cli import server

NO_POLICY = '[policy]\nengine = "passthrough"\ni_understand_no_enforcement = true\n'


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


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "[metrics.audit_export]\nenabled = true\notlp_endpoint = 'http://o'\n",
            ["metrics.audit_export", "not built yet"],
        ),
        (
            NO_POLICY + "[coordinator]\nquack_port = 9494\n",
            ["sqe.toml:5: coordinator.quack_port: The protocol 'quack' is not known, and no installed"],
        ),
        ('[query]\ntimeout_sec = 3\nmax_sql_bytes = "many"\n', ["timeout_sec", "max_sql_bytes"]),
    ],
    ids=["not built", "nobody provides it", "every fault"],
)
def test_a_wrong_configuration_is_told(tmp_path: Path, text: str, told: list[str]) -> None:
    (tmp_path / "sqe.toml").write_text(text)
    done = run_server(tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert not [word for word in told if word not in done.stderr]
    assert not [word for word in ("Traceback", "pip install") if word in done.stderr]


def test_a_worker_needs_its_coordinator(tmp_path: Path) -> None:
    done = run_server(tmp_path, "--mode", "worker")
    assert done.returncode == 2
    assert "worker.coordinator_url" in done.stderr


def test_a_wrong_command_line(tmp_path: Path) -> None:
    assert run_server(tmp_path, "--mode", "both").returncode == 2
    done = run_server(tmp_path, "--config", "nowhere.toml")
    assert done.returncode == 2
    assert "nowhere.toml" in done.stderr


@pytest.mark.parametrize("word", ["Exit codes", "SIGTERM", "shutdown_drain_secs"])
def test_the_help_says_how_it_ends(tmp_path: Path, word: str) -> None:
    assert word in run_server(tmp_path, "--help").stdout


@pytest.mark.parametrize("arguments", [["here.toml"], ["-c", "here.toml"], ["--config", "here.toml"]])
@pytest.mark.parametrize("command", [server.coordinator, server.worker])
def test_the_short_commands(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: Callable[[list[str]], int],
    arguments: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(server._Stop, "install", lambda self: None)
    (tmp_path / "here.toml").write_text("[worker]\nnope = 1\n")
    assert command(arguments) == 2
    assert "here.toml:2: worker.nope: unknown key" in capsys.readouterr().err


def test_the_short_command_of_the_worker_is_a_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(server._Stop, "install", lambda self: None)
    assert server.worker([]) == 2
    assert "worker.coordinator_url" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["sqlite", "hadoop"])
def test_only_keys_that_change_nothing_are_noted(tmp_path: Path, kind: str) -> None:
    own = 'directory = "lake"\nfile = "f.db"' if kind == "sqlite" else 'warehouse = "lake"'
    (tmp_path / "sqe.toml").write_text(
        f'{NO_POLICY}[catalogs.lake]\ntype = "{kind}"\n{own}\nmanifest_concurrency = 3\n'
    )
    options = argparse.Namespace(config=None, mode=None)
    _, notes = server.configuration(options, {}, tmp_path)
    assert [note.partition(": ")[2] for note in notes] == [
        "catalogs.lake.manifest_concurrency: has no effect: nothing reads it yet"
    ]


def test_nothing_but_the_server_writes_its_log(tmp_path: Path) -> None:
    """gRPC tells of each TLS handshake that fails, in words of its own; it reads its level when it is imported."""
    text = (
        "import os, sys\n"
        "from sqe_core.cli import server\n"
        "server.configuration = lambda *_: sys.exit(f\"{os.environ['GRPC_VERBOSITY']} {'grpc' in sys.modules}\")\n"
        "server.main([])\n"
    )
    for asked, level in ((None, "NONE"), ("INFO", "INFO")):
        done = subprocess.run(
            [sys.executable, "-c", text],
            capture_output=True,
            text=True,
            timeout=60,
            cwd=tmp_path,
            env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "PYTHONPATH": os.pathsep.join(sys.path)}
            | ({} if asked is None else {"GRPC_VERBOSITY": asked}),
            check=False,
        )
        assert done.stderr == f"{level} False\n"
