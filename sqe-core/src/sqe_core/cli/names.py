"""Names for completion at a prompt: read in the background, so that typing never waits."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from sqe_core.cli.backend import Completions
from sqe_core.spi.errors import SqeError
from sqe_core.sql.statement import StatementKind

_KEEPS_NAMES = frozenset(
    (StatementKind.QUERY, StatementKind.INSERT, StatementKind.UPDATE, StatementKind.DELETE, StatementKind.MERGE)
)


def may_change_names(kind: StatementKind) -> bool:
    """Whether a statement of this kind makes, drops or uses something."""
    return kind not in _KEEPS_NAMES


class NameCache:
    """The newest names that are known of one session.

    Args:
        read: asks for all of them.
        secs: how long they are new.
    """

    def __init__(self, read: Callable[[], Completions], secs: float) -> None:
        self._read = read
        self._secs = secs
        self._names = Completions()
        self._lock = threading.Lock()
        self._reading = False
        self._due = 0.0

    def known(self) -> Completions:
        """Return the newest names; when they are old, new ones are asked for and come later."""
        with self._lock:
            if not self._reading and time.monotonic() >= self._due:
                self._reading = True
                threading.Thread(target=self._refresh, name="sqe-completion", daemon=True).start()
            return self._names

    def expire(self) -> None:
        """Something was made, dropped or used: ask anew when names are wanted next."""
        with self._lock:
            self._due = 0.0

    def _refresh(self) -> None:
        with self._lock:
            self._due = time.monotonic() + self._secs
        try:
            self._names = self._read()
        except SqeError:
            # Completion is a convenience: the statement itself will say what is wrong.
            pass
        finally:
            with self._lock:
                self._reading = False
