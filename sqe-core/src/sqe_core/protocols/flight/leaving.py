"""Ends what a call of a client waits for, when that client goes away."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType

from sqe_core.spi.errors import QueryCancelledError
from sqe_core.spi.protocol import Statement

OnEnd = Callable[[Callable[[], object], Callable[[], bool]], bool]
"""Calls back when the call of the client has ended, unless the second says that all is over; False when it has."""


class Leaving:
    """Cancels the statement of one call, from its first moment on, until the call waits for it no more.

    A context manager. What a ticket stands for goes on after its call: whoever fetches it watches over that.
    """

    def __init__(self, on_end: OnEnd) -> None:
        # Reentrant: the end of a call may come in a finalizer.
        self._lock = threading.RLock()
        self._statement: Statement | None = None
        self._gone = False
        self._over = False
        if not on_end(self._ended, lambda: self._over):
            self._ended()

    def watch(self, statement: Statement) -> Statement:
        """Look after a statement, which may wait for its turn from now on; return it."""
        with self._lock:
            self._statement = statement
            gone = self._gone
        if gone:
            statement.cancel()
        return statement

    def check(self) -> None:
        """Raise when nobody waits for the next statement."""
        if self._gone:
            raise QueryCancelledError("The client went away")

    def _ended(self) -> None:
        with self._lock:
            if self._over:
                return  # the usual end of a call
            self._gone = True
            statement = self._statement
        if statement is not None:
            statement.cancel()

    def __enter__(self) -> Leaving:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._over = True
