"""What the exit code of `sqe-cli` says."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """The codes that docs/cli.md promises."""

    OK = 0
    STATEMENT_FAILED = 1
    USAGE = 2
    INTERRUPTED = 130
    READER_GONE = 141  # 128 + SIGPIPE, as every Unix program whose reader went away
    TERMINATED = 143


class UsageError(Exception):
    """The command line, a script file or standard input cannot be used; the text is one clear sentence."""
