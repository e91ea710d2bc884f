"""Servers of the test bed as processes: their log, their ports on loopback, and their end."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any


def free_ports(count: int) -> list[int]:
    """Return ports of the loopback interface that nobody listens on now."""
    with ExitStack() as stack:
        taken = [stack.enter_context(closing(socket.socket())) for _ in range(count)]
        for each in taken:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in taken]


class ServerProcess:
    """A process with a private folder that goes with it. Subclasses begin it with `_run`."""

    name = "the server"

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="sqe-testbed-"))
        self._process: subprocess.Popen[bytes] | None = None

    def _run(self, command: Sequence[object], environ: Mapping[str, str] | None = None) -> None:
        # A file, because nobody empties a pipe while the server writes its log.
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(part) for part in command],
                **{"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log},
                cwd=self.folder,
                env=environ,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The id of the process."""
        assert self._process is not None
        return self._process.pid

    def log(self) -> str:
        """Everything that the server has written."""
        return (self.folder / "log").read_text(errors="replace")

    def wait_for(self, url: str, secs: float = 120) -> None:
        """Wait until an address answers with success; raise when the process ends first."""

        def answers() -> bool:
            with urllib.request.urlopen(url, timeout=5):
                return True

        self.until(answers, secs)

    def until(self, happened: Callable[[], bool], secs: float) -> None:
        """Wait until something is so, and take every failure to find out for a no."""
        assert self._process is not None
        deadline = time.monotonic() + secs
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise RuntimeError(f"{self.name} ended: {self.log()[-2000:]}")
            with suppress(Exception):
                if happened():
                    return
            time.sleep(0.05)
        raise RuntimeError(f"{self.name} did not start in {secs:.0f} s: {self.log()[-2000:]}")

    def stop(self) -> None:
        """End the process and remove its folder. Idempotent."""
        self._end(signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        for each in (number, signal.SIGKILL):
            # The group is its own: what a script started ends with it.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, each)
            with suppress(subprocess.TimeoutExpired):
                process.wait(20)
                break
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
