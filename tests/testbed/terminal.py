"""A program in a pseudo-terminal, typed at as a person would."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Sequence
from pathlib import Path

_ESCAPES = re.compile(r"\x1b(?:\][^\x07\x1b]*\x07|\[[0-?]*[ -/]*[@-~]|[=>])")


class PtyShell:
    """A command in a terminal of 100 columns and 30 lines."""

    def __init__(self, home: Path, *arguments: str, command: Sequence[str], **environment: str) -> None:
        self._pid, self._terminal = pty.fork()
        if self._pid == 0:
            environment = {"HOME": str(home), "PATH": os.environ["PATH"], "TERM": "xterm-256color", **environment}
            environment = {"PAGER": "", "COLUMNS": "100", "LINES": "30", **environment}
            os.execve(command[0], [*command, *arguments], environment)
        # Who does not read COLUMNS and LINES asks the terminal.
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        self.raw = ""
        self._seen = 0
        self._status: int | None = None

    @property
    def text(self) -> str:
        """Everything that was shown, without escapes."""
        return _ESCAPES.sub("", self.raw).replace("\r", "")

    def expect(self, pattern: str, timeout: float = 20) -> str:
        """Wait until something new matches; returns what was shown up to and with it."""
        deadline = time.monotonic() + timeout
        while True:
            shown = self.text[self._seen :]
            match = re.search(pattern, shown)
            if match:
                self._seen += match.end()
                return shown[: match.end()]
            if time.monotonic() > deadline or not self._read(0.1):
                raise AssertionError(f"waited for {pattern!r}, got {shown!r}")

    def _read(self, seconds: float) -> bool:
        ready, _, _ = select.select([self._terminal], [], [], seconds)
        if not ready:
            return True
        try:
            data = os.read(self._terminal, 65536)
        except OSError:
            return False
        # What a terminal answers when it is asked where its cursor is.
        for _ in range(data.count(b"\x1b[6n")):
            os.write(self._terminal, b"\x1b[20;1R")
        self.raw += data.decode("utf-8", "replace")
        return bool(data)

    def type(self, keys: str) -> None:
        os.write(self._terminal, keys.encode())

    def run(self, line: str, pattern: str) -> str:
        """Type a line and wait for its answer."""
        self.type(line + "\r")
        # Only what comes after the line was accepted counts, not its echo.
        return self.expect(rf"(?s)\n.*?{pattern}")

    def end(self, timeout: float = 20) -> int:
        """Wait for the process; returns its exit code."""
        deadline = time.monotonic() + timeout
        while self._status is None:
            self._read(0.05)
            pid, status = os.waitpid(self._pid, os.WNOHANG)
            if pid:
                self._status = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > deadline:
                raise AssertionError(f"still running; shown: {self.text!r}")
        return self._status

    def close(self) -> None:
        if self._status is None:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
        os.close(self._terminal)
