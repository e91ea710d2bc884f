"""Fixtures of the command line's tests."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

# Pytest imports test modules by path, so that siblings cannot import each other otherwise.
sys.path.insert(0, str(Path(__file__).parent))

from cli_fakes import FAKE_CLI, FakeBackend

from sqe_core.cli.shell.commands import Context
from sqe_core.cli.shell.console import Console
from sqe_core.cli.shell.execution import Display, Executor
from sqe_core.cli.shell.script import Script


@pytest.fixture
def backend() -> FakeBackend:
    return FakeBackend()


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


class Bench:
    """An executor and a script runner on the fake backend, with what they wrote."""

    def __init__(self, backend: FakeBackend, *, terminal: bool = False, format: str = "table") -> None:
        self.backend = backend
        self.out = Terminal() if terminal else io.StringIO()
        self.err = Terminal() if terminal else io.StringIO()
        self.console = Console(self.out, self.err, environment={"TERM": "xterm", "PAGER": ""})
        self.executor = Executor(backend, self.console, Display(format=format))
        self.script = Script(Context(executor=self.executor), stop_on_error=False)

    @property
    def written(self) -> str:
        return self.out.getvalue()

    @property
    def told(self) -> str:
        return self.err.getvalue()


@pytest.fixture
def make_bench(backend: FakeBackend) -> Callable[..., Bench]:
    def make(**options: object) -> Bench:
        return Bench(backend, **options)  # type: ignore[arg-type]

    return make


@pytest.fixture
def bench(make_bench: Callable[..., Bench]) -> Bench:
    return make_bench()


RunCli = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run_cli(tmp_path: Path) -> RunCli:
    """Run `sqe-cli` on the fake backend in a process of its own, without a terminal."""

    def run(*arguments: str, script: str | bytes = "", **environment: str) -> subprocess.CompletedProcess[str]:
        data = script if isinstance(script, bytes) else script.encode()
        done = subprocess.run(
            [*FAKE_CLI, *arguments],
            input=data,
            capture_output=True,
            timeout=60,
            cwd=tmp_path,
            env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "LANG": "C", **environment},
            check=False,
        )
        return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())

    return run
