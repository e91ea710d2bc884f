"""Step 1: bounds on how many statements run, in all and per user, and on how long (LIM-1, LIM-7)."""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from sqe_core.query.ingest.rows import IngestLimits
from sqe_core.query.run.running import RunningStatement
from sqe_core.spi.errors import ResourcesError, ShuttingDownError
from sqe_core.spi.identity import Identity

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryLimits:
    """The bounds of `[query]`. Zero means no bound for `timeout_secs` and those of a result."""

    timeout_secs: float = 300
    max_result_rows: int = 100_000_000
    max_result_bytes: int = 10 << 30
    max_sql_bytes: int = 1_048_576
    max_concurrent_queries: int = 100
    max_concurrent_per_user: int = 20
    max_queued_queries: int = 0
    queue_timeout_secs: float = 30
    ingest: IngestLimits = field(default_factory=IngestLimits)


class Admission:
    """Slots. Without one a statement is refused at once, or waits in a bounded queue where that is configured."""

    def __init__(self, limits: QueryLimits) -> None:
        self._limits = limits
        self._changed = threading.Condition()
        self._running = 0
        self._by_user: Counter[tuple[str, str]] = Counter()
        self._waiting: list[_Place] = []
        self._closed = False

    @property
    def running(self) -> int:
        return self._running

    @property
    def queued(self) -> int:
        return len(self._waiting)

    def close(self) -> None:
        """Refuse everything from now on."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def wait_idle(self, timeout_secs: float) -> bool:
        """Wait until no slot is taken; False when the time is over first."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._running, timeout_secs)

    def enter(self, identity: Identity, running: RunningStatement) -> Callable[[], None]:
        """Take a slot and return what gives it back; raise when none is free, or became free in time.

        A statement that is cancelled waits no longer.
        """
        user = (identity.issuer, identity.subject)
        with self._changed:
            reason = self._refusal(user)
            if reason is not None and not self._closed:
                with running.waiting(self._wake):
                    self._wait(user, reason, running)
            running.check()
            if self._closed:
                raise ShuttingDownError("The server is shutting down", hint="send the statement again in a moment")
            self._running += 1
            self._by_user[user] += 1
        released = threading.Event()

        def leave() -> None:
            with self._changed:
                if not released.is_set():
                    released.set()
                    self._running -= 1
                    self._by_user[user] -= 1
                    if not self._by_user[user]:
                        del self._by_user[user]
                    self._changed.notify_all()

        return leave

    def _refusal(self, user: tuple[str, str]) -> str | None:
        """Say why a user gets no slot now."""
        if self._by_user[user] >= self._limits.max_concurrent_per_user:
            return f"you run {self._limits.max_concurrent_per_user} statements already"
        if self._running >= self._limits.max_concurrent_queries:
            return "the server is at its limit"
        return None

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _wait(self, user: tuple[str, str], reason: str, running: RunningStatement) -> None:
        if len(self._waiting) >= self._limits.max_queued_queries:
            raise _refused(reason)
        # An own object for each: a user may wait several times, and the order is that of coming.
        place = _Place(user)
        self._waiting.append(place)
        try:
            if not self._changed.wait_for(
                lambda: self._closed or running.reason is not None or self._is_next(place),
                self._limits.queue_timeout_secs,
            ):
                raise _refused(f"{reason}, and none ended in {self._limits.queue_timeout_secs:g} s")
        finally:
            self._waiting.remove(place)
            self._changed.notify_all()

    def _is_next(self, place: _Place) -> bool:
        """Whether a slot is free for it and for nobody before it; who is at their own limit holds up nobody else."""
        first = next((each for each in self._waiting if self._refusal(each.user) is None), None)
        return first is place


@dataclass(frozen=True, slots=True, eq=False)
class _Place:
    """One statement in the queue."""

    user: tuple[str, str]


def _refused(reason: str) -> ResourcesError:
    return ResourcesError(
        f"Too many concurrent queries: {reason}",
        hint="wait for one to end, or cancel one, and try again",
        condition="QUERY_QUEUE_FULL",
    )


class DeadlineWatch:
    """Calls back when the time of a statement is over. One thread for all of them, started at first use.

    Whatever one statement's end raises, the others keep their deadlines; a thread that died is started again.
    """

    def __init__(self) -> None:
        self._due: list[tuple[float, int]] = []
        self._numbers = itertools.count()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        # Apart from the heap: what a statement held is let go when it ends, long before its time is over.
        self._callbacks: dict[int, Callable[[], None]] = {}

    def after(self, seconds: float, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` in `seconds` unless the returned function is called before."""
        with self._changed:
            number = next(self._numbers)
            self._callbacks[number] = callback
            entry = (time.monotonic() + seconds, number)
            heapq.heappush(self._due, entry)
            if self._thread is None or not self._thread.is_alive():
                if self._thread is not None:
                    _log.error("the thread sqe-deadlines had died and is started again")
                self._thread = threading.Thread(target=self._watch, name="sqe-deadlines", daemon=True)
                self._thread.start()
            elif self._due[0] is entry:  # otherwise it looks early enough
                self._changed.notify()

        def forget() -> None:
            with self._changed:
                self._callbacks.pop(number, None)
                # Most statements end long before their deadline; keep the heap from growing with them.
                if len(self._due) > 2 * len(self._callbacks) + 1000:
                    self._due = [entry for entry in self._due if entry[1] in self._callbacks]
                    heapq.heapify(self._due)

        return forget

    def _watch(self) -> None:
        while True:
            with self._changed:
                while not self._due or self._due[0][0] > time.monotonic():
                    self._changed.wait(self._due[0][0] - time.monotonic() if self._due else None)
                _, number = heapq.heappop(self._due)
                callback = self._callbacks.pop(number, None)
            if callback is not None:
                try:
                    callback()
                except Exception:  # noqa: BLE001 - every other statement has its deadline here too
                    _log.exception("a statement could not be ended at its deadline")
            del callback
