"""A text of several statements and commands, typed or from a file, run from its beginning to its end."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from sqe_core.cli.exit_codes import UsageError
from sqe_core.cli.shell.commands import COMMAND_NAMES, Context, Leave, is_command, run_command
from sqe_core.cli.shell.error_report import Origin
from sqe_core.cli.shell.execution import Outcome
from sqe_core.spi.errors import SqeError

LARGEST_SCRIPT = 64 * 1024 * 1024
"""Bytes. A script is held in memory, and what is larger is data, not a script."""

_BLANK = re.compile(r"(?:\s+|--[^\n]*|/\*.*?\*/)*", re.DOTALL)
_LEAVING = re.compile(r"(?:quit|exit)[ \t]*(?:;|$)", re.IGNORECASE | re.MULTILINE)
_HELP = re.compile(r"help[ \t]*;?", re.IGNORECASE)
_SET_FORMAT = re.compile(r"set\s+format\s+(?:=\s*|to\s+)?(['\"]?)(\w+)\1\s*;?\s*", re.IGNORECASE)

_SUMMARIZE = re.compile(r"summarize\s+(?!select\b|with\b)(.+?)\s*;?\s*", re.IGNORECASE | re.DOTALL)


def read_script(name: str, stream: BinaryIO) -> str:
    """Read a script as text; raise UsageError when it is too large or no text."""
    data = stream.read(LARGEST_SCRIPT + 1)
    if len(data) > LARGEST_SCRIPT:
        raise UsageError(f"{name} is larger than {LARGEST_SCRIPT >> 20} MiB; split it, or load data from files")
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{name} is no UTF-8 text: byte 0x{data[error.start]:02x} at {error.start}") from None
    if "\0" in text:
        raise UsageError(f"{name} is no text: it has a NUL character at {text.index(chr(0))}")
    return text


def read_script_file(name: str) -> str:
    path = Path(name)
    try:
        path = path.expanduser()
        if path.is_dir():
            raise UsageError(f"{name} is a folder, not a script")
        with path.open("rb") as stream:
            return read_script(name, stream)
    except (OSError, RuntimeError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UsageError(f"cannot read {name}: {reason}") from error


class Script:
    """Runs texts. A failing statement does not stop the others unless `stop_on_error` says so."""

    def __init__(self, context: Context, *, stop_on_error: bool) -> None:
        self._context = context
        self._stop_on_error = stop_on_error

    def run(self, text: str, *, name: str | None = None) -> Outcome:
        """Run everything in a text; `name` is the script's, None for what was typed.

        Raises Leave where typed text says so; in a script `.exit` just ends the script.
        """
        context = self._context if name is None else replace(self._context, read=None, edit=None)
        outcome = Outcome.OK
        try:
            for piece, offset in self._pieces(text):
                one = self._run_piece(context, piece, Origin(text=text, offset=offset, name=name))
                if one is Outcome.INTERRUPTED:
                    return one
                if one is Outcome.FAILED:
                    outcome = one
                    if self._stop_on_error:
                        break
        except Leave:
            if name is None:
                raise
        except SqeError as error:
            # The text could not even be split.
            context.executor.fail(error, Origin(text=text, name=name))
            outcome = Outcome.FAILED
        return outcome

    def is_complete(self, text: str) -> bool:
        """Whether Enter runs the text, or begins another line."""
        start = skip_blank(text, 0)
        rest = text[start:]
        if not rest or is_command(rest) or _LEAVING.fullmatch(rest.strip()) or _HELP.fullmatch(rest.strip()):
            return True
        try:
            statements = self._context.executor.backend.split(text)
        except SqeError:
            return False
        # A command may follow the last semicolon; only comments leave no statement at all.
        return all(one.terminated or is_command(text[skip_blank(text, one.offset) :]) for one in statements)

    def stray_command(self, text: str) -> str | None:
        """Return the command on the last line of a statement that no semicolon has ended."""
        before, newline, last = text.rpartition("\n")
        word = last.strip().split(" ")[0]
        if not newline or skip_blank(before, 0) >= len(before) or word not in COMMAND_NAMES:
            return None
        return None if self.is_complete(before) else word

    def _pieces(self, text: str) -> Iterator[tuple[str, int]]:
        """Yield statements and commands with their offsets.

        A command ends with its line, whatever the splitter makes of a quote in it; so splitting begins anew after it.
        """
        position = 0
        while position < len(text):
            restart = None
            for statement in self._context.executor.backend.split(text[position:]):
                start = skip_blank(text, position + statement.offset)
                if start >= len(text):
                    return
                if is_command(text[start:]) or _LEAVING.match(text, start):
                    end = text.find("\n", start)
                    restart = len(text) if end < 0 else end
                    yield text[start:restart], start
                    break
                # The engine gets the statement as it is, comments included: positions count from its beginning.
                yield statement.text, position + statement.offset
            if restart is None:
                return
            position = restart

    def _run_piece(self, context: Context, piece: str, origin: Origin) -> Outcome:
        if is_command(piece):
            return run_command(piece, context, origin)
        if _LEAVING.match(piece):
            raise Leave
        if _HELP.fullmatch(piece.strip()):
            return run_command(".help", context, origin)
        choice = _SET_FORMAT.fullmatch(piece, skip_blank(piece, 0))
        if choice is not None:
            return run_command(f".format {choice.group(2)}", context, origin)
        summarized = _SUMMARIZE.fullmatch(piece, skip_blank(piece, 0))
        if summarized is not None:
            return run_command(f".summarize {summarized.group(1)}", context, origin)
        context.executor.last = piece, origin
        return context.executor.run(piece, origin)


def skip_blank(text: str, position: int) -> int:
    """Return where the next thing begins that is neither blank nor a comment."""
    match = _BLANK.match(text, position)
    return match.end() if match else position
