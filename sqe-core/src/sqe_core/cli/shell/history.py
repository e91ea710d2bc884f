"""What was typed, kept for the next time in `~/.sqe_history`, without secrets."""

from __future__ import annotations

import os
import re
from pathlib import Path

from prompt_toolkit.history import FileHistory, History, InMemoryHistory

_SECRET = re.compile(
    r"\bcreate\b.*\b(secret|catalog)\b|credential|password|passwd|secret_?(access_?)?key|access_?key|token|sas_token"
    r"|service_account_key|://[^/\s:@]+:[^/\s@]+@",
    re.IGNORECASE | re.DOTALL,
)


def holds_secret(text: str) -> bool:
    """Whether a text may hold a secret; rather once too often."""
    return _SECRET.search(text) is not None


class SecretFreeHistory(FileHistory):
    """A history file that never sees a statement with a secret; the arrow keys still do, until the shell ends."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        self._last: str | None = None

    def store_string(self, string: str) -> None:
        if holds_secret(string) or string == self._last or not string.strip():
            return
        self._last = string
        try:
            super().store_string(string)
        except OSError:
            # A full disk must not end the shell.
            pass


def open_history(path: Path) -> History:
    """Open the history file, readable by its owner only; when that cannot be, remember until the end."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600))
    except OSError:
        return InMemoryHistory()
    return SecretFreeHistory(path)
