"""The last statements, in memory: bounded by number and age."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field

from sqe_core.spi.errors import ErrorCode


@dataclass(slots=True, kw_only=True)
class HistoryEntry:
    """One statement; `sql` has no literals unless the configuration keeps them, and is for the user and admins only."""

    query_id: str
    user: tuple[str, str]
    sql: str
    username: str = ""
    session: str = ""
    """What logs and audit call it."""
    kind: str = ""
    state: str = "RUNNING"
    started: float = field(default_factory=time.time)
    ended: float | None = None
    planning_ms: float | None = None
    rows: int | None = None
    error_code: ErrorCode | None = None
    error_type: str | None = None
    """Whose fault the error is, as protocols send it."""
    protocol: str = ""
    source: str | None = None
    """What the client calls itself."""
    trace_id: str | None = None
    queued_ms: float | None = None
    analysis_ms: float | None = None
    rows_scanned: int | None = None
    bytes_scanned: int | None = None
    """What was read, where somebody counted, and its user may know: not of what a policy keeps a part of (TRI-7)."""
    writes: bool = False
    """Whether `rows` are rows that were written."""


class QueryHistory:
    """Statements by id, the oldest dropped first."""

    def __init__(self, *, max_entries: int = 10_000, ttl_secs: float = 1800) -> None:
        self._max_entries = max_entries
        self._ttl_secs = ttl_secs
        self._lock = threading.RLock()  # a statement may end in a finalizer
        self._entries: OrderedDict[str, HistoryEntry] = OrderedDict()

    def add(self, entry: HistoryEntry) -> None:
        with self._lock:
            self._entries[entry.query_id] = entry
            self._drop_old()

    def entries(self) -> list[HistoryEntry]:
        with self._lock:
            self._drop_old()
            return list(self._entries.values())

    def _drop_old(self) -> None:
        horizon = time.time() - self._ttl_secs
        while self._entries:
            oldest = next(iter(self._entries.values()))
            if len(self._entries) <= self._max_entries and (oldest.ended is None or oldest.ended > horizon):
                break
            self._entries.popitem(last=False)
