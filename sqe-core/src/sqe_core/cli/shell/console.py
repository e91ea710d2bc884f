"""Where output goes: data to standard output, everything about it to standard error."""

from __future__ import annotations

import io
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TextIO

from sqe_core.cli.shell.terminal_text import clean


class OutputError(Exception):
    """Standard output or standard error takes no more."""

    def __init__(self, cause: OSError) -> None:
        super().__init__(f"cannot write the output: {cause.strerror or cause}")
        self.reader_gone = isinstance(cause, BrokenPipeError)


@contextmanager
def _writing() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OutputError(error) from error


class Console:
    """The two streams, what kind of thing they are, and whether colours are wanted."""

    def __init__(
        self,
        out: TextIO | None = None,
        err: TextIO | None = None,
        *,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.out = out if out is not None else sys.stdout
        self.err = err if err is not None else sys.stderr
        self.environment = os.environ if environment is None else environment
        self.out_is_terminal = self.out.isatty()
        self.err_is_terminal = self.err.isatty()
        dumb = self.environment.get("TERM", "") in ("", "dumb")
        self.colours = self.err_is_terminal and not dumb and not self.environment.get("NO_COLOR")
        self.can_redraw = self.err_is_terminal and not dumb

    @classmethod
    def of_process(cls) -> Console:
        """Use this process's streams, as UTF-8 with plain line feeds when they are no terminal."""
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                if stream.isatty():
                    stream.reconfigure(errors="replace")
                else:
                    stream.reconfigure(encoding="utf-8", errors="backslashreplace", newline="\n")
        return cls()

    def write(self, text: str) -> None:
        """Write data. A terminal never gets control characters from it."""
        with _writing():
            self.out.write(clean(text) if self.out_is_terminal else text)

    def write_bytes(self, data: bytes) -> None:
        """Write data that is no text; for standard output that is no terminal."""
        with _writing():
            self.out.buffer.write(data)

    def flush(self) -> None:
        """Hand over what is buffered."""
        with _writing():
            self.out.flush()

    def tell(self, text: str) -> None:
        """Write a line about the work to standard error."""
        self.flush()
        self.draw(clean(text) + "\n")

    def complain(self, lines: Sequence[str]) -> None:
        """Write an error, its heading emphasised where colours are wanted."""
        self.flush()
        first, *others = map(clean, lines)
        heading, colon, rest = first.partition(": ")
        if self.colours and colon:
            first = f"\x1b[1;31m{heading}\x1b[0m{colon}{rest}"
        self.draw("".join(line + "\n" for line in (first, *others)))

    def draw(self, text: str) -> None:
        """Write to standard error as it is; for text of our own that moves the cursor."""
        with _writing():
            self.err.write(text)
            self.err.flush()

    def size(self) -> tuple[int, int]:
        """Columns and lines of the terminal."""
        for stream in (self.out, self.err):
            with suppress(OSError, ValueError):
                size = os.get_terminal_size(stream.fileno())
                if size.columns > 0 and size.lines > 0:
                    return size.columns, size.lines
        size = shutil.get_terminal_size()
        return size.columns, size.lines
