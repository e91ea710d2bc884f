"""Long results go through a pager, as in psql and git; short ones straight to the terminal."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Callable, Mapping

from sqe_core.cli.shell.console import Console
from sqe_core.cli.shell.terminal_text import clean


class PagerClosed(Exception):
    """The person left the pager before the result was complete."""


def pager_command(environment: Mapping[str, str]) -> list[str] | None:
    """Return the pager to use: SQE_PAGER, PAGER, or less. An empty value or `cat` means none."""
    wanted = environment.get("SQE_PAGER", environment.get("PAGER"))
    try:
        command = shlex.split(wanted if wanted is not None else "less")
    except ValueError:
        return None
    if not command or command[0] == "cat" or shutil.which(command[0]) is None:
        return None
    return command


class PagedOutput:
    """Holds output back until it is longer than the screen, then starts the pager and streams into it."""

    def __init__(self, console: Console, command: list[str], on_start: Callable[[], None]) -> None:
        self._console = console
        self._command = command
        self._on_start = on_start
        self._held: list[str] = []
        self._lines = 0
        self._process: subprocess.Popen[str] | None = None

    @property
    def room(self) -> int:
        """Lines that fit on the screen, with the next prompt below them."""
        return max(self._console.size()[1] - 2, 1)

    def write(self, text: str) -> None:
        """Write a piece of output; raises PagerClosed when nobody reads it any more."""
        if self._process is None:
            self._held.append(text)
            self._lines += text.count("\n")
            if self._lines <= self.room:
                return
            self._start()
            text = "".join(self._held)
            self._held.clear()
        self._send(text)

    def finish(self) -> None:
        """Everything is written: show it, or wait until the person leaves the pager."""
        if self._process is None:
            self._console.write("".join(self._held))
            self._held.clear()
            self._console.flush()
            return
        process, self._process = self._process, None
        try:
            assert process.stdin is not None
            process.stdin.close()
        except BrokenPipeError:
            pass
        while True:
            try:
                process.wait()
            except KeyboardInterrupt:
                continue
            return

    def _start(self) -> None:
        self._on_start()
        self._console.flush()
        environment = dict(self._console.environment)
        # What git and psql users expect: leave when it fits, keep the screen, do not fold long lines.
        environment.setdefault("LESS", "FSX")
        environment.setdefault("LESSCHARSET", "utf-8")
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, env=environment, encoding="utf-8", errors="replace"
        )

    def _send(self, text: str) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(clean(text))
            self._process.stdin.flush()
        except BrokenPipeError:
            raise PagerClosed from None
