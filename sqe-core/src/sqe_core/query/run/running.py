"""A statement while it runs: its ids, its end, and who ended it."""

from __future__ import annotations

import os
import secrets
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum

from sqe_core.engine.port import EngineSession, Progress, ResultStream
from sqe_core.spi.errors import (
    ErrorCode,
    QueryCancelledError,
    QueryTimeoutError,
    ShuttingDownError,
    SqeError,
    UserError,
)
from sqe_core.spi.protocol import StatementState


def new_query_id() -> str:
    """Return a UUID of version 7: unique, and sorted by time."""
    milliseconds = time.time_ns() // 1_000_000
    value = (milliseconds & (1 << 48) - 1) << 80 | int.from_bytes(os.urandom(10))
    value = value & ~(0xF << 76) | 7 << 76
    return str(uuid.UUID(int=value & ~(0x3 << 62) | 2 << 62))


class EndReason(Enum):
    """Why a statement was ended before it was done."""

    CANCELLED = "cancelled"
    TIMEOUT = "timeout"
    CLOSED = "closed"
    EXPIRED = "expired"
    KILLED = "killed"
    SHUTDOWN = "shutdown"


@dataclass(frozen=True, slots=True)
class Ending:
    """Is told how a statement ended; only the first time counts. Gives the slot back, and writes the record."""

    leave: Callable[[], None]
    record: Callable[[SqeError | None, int | None], None]
    _first: threading.Lock = field(default_factory=threading.Lock)

    def tell(self, error: SqeError | None, rows: int | None = None) -> None:
        """The statement ended, with as many rows."""
        if self._first.acquire(blocking=False):
            self.leave()
            self.record(error, rows)


class RunningStatement:
    """One statement in flight. `cancel` works in every phase, planning included, from any thread."""

    def __init__(self, query_id: str) -> None:
        self.query_id = query_id
        # Random and apart from the query id, which clients know: jobs are cancelled by it (ISO-9).
        self.tag = "sqe-" + secrets.token_hex(16)
        self.timeout_secs = 0.0
        self._lock = threading.Lock()
        self._engine: EngineSession | None = None
        self._stream: ResultStream | None = None
        self._counted = True
        self._wake: Callable[[], None] | None = None
        self.reason: EndReason | None = None
        self.state = StatementState.QUEUED
        """How far it is, as long as it has not ended."""
        self.queued_ms = 0
        """How long it waited for its turns."""
        self.warnings: tuple[str, ...] = ()
        """What its user should read beside the answer."""

    def warn(self, text: str) -> None:
        with self._lock:
            self.warnings += (text,)

    def attach(self, engine: EngineSession) -> None:
        """The engine works for this statement from now on."""
        with self._lock:
            self._engine = engine
        self.check()

    def attach_stream(self, stream: ResultStream, *, counted: bool) -> None:
        """The statement has results from now on; `counted` says whether its user may know what they cost.

        Tasks, rows and bytes are those of what is stored, and tell how much of it a policy hides (ENF-17, TRI-7).
        """
        with self._lock:
            self._stream, self._counted = stream, counted
            ended = self.reason is not None
        if ended:
            stream.cancel()

    @contextmanager
    def waiting(self, wake: Callable[[], None]) -> Iterator[None]:
        """Somebody waits for this statement's turn; `wake` makes them look at `reason` again."""
        with self._lock:
            self._wake = wake
        try:
            yield
        finally:
            with self._lock:
                self._wake = None

    def cancel(self, reason: EndReason = EndReason.CANCELLED) -> None:
        """End the statement. The first reason counts."""
        with self._lock:
            if self.reason is None:
                self.reason = reason
            engine, stream, wake = self._engine, self._stream, self._wake
        if wake is not None:
            wake()
        if stream is not None:
            stream.cancel()
        elif engine is not None and engine.alive:
            engine.cancel(self.tag)

    def check(self) -> None:
        error = self.end_error()
        if error is not None:
            raise error

    def end_error(self) -> SqeError | None:
        """The error that the client gets when the statement was ended from outside."""
        match self.reason:
            case None:
                return None
            case EndReason.TIMEOUT:
                return QueryTimeoutError(
                    f"The statement ran longer than {self.timeout_secs:g} s and was ended",
                    hint="narrow the query, or raise the session property query_max_run_time or [query] timeout_secs",
                )
            case EndReason.CANCELLED | EndReason.CLOSED:
                return QueryCancelledError("The statement was cancelled")
            case EndReason.EXPIRED | EndReason.KILLED:
                by_somebody = "The session was ended by its user or by an administrator"
                by_itself = "The session has ended: its login expired, or was withdrawn"
                told = by_somebody if self.reason is EndReason.KILLED else by_itself
                return UserError(told, code=ErrorCode.SESSION_EXPIRED, hint="log in again")
            case EndReason.SHUTDOWN:
                return ShuttingDownError("The server is shutting down and ended the statement")

    def progress(self) -> Progress:
        with self._lock:
            stream, counted = self._stream, self._counted
        return stream.progress() if stream is not None and counted else Progress()
