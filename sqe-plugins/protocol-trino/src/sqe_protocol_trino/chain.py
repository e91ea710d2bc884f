"""One statement on its way to its client: pages with growing numbers, each of which can be asked for twice.

A thread of its own runs the statement and puts rows in as JSON; it waits while the client is behind. The event loop
takes pages out; a page is what is there when its client asks, up to a size, after a moment in which more may come.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sqe_core.spi import QueryCancelledError, SessionChanges, Statement, StatementState
from sqe_protocol_trino.budget import Budget
from sqe_protocol_trino.spooling.segments import Spool

_PIECE_BYTES = 1 << 20
_ENDED = (StatementState.FAILED, StatementState.CANCELLED)
_AHEAD = 2
"""How many pages a statement may be ahead of its client."""


class GoneError(Exception):
    """A page that was read, and that its client went on from (TRI-4)."""


class NoPageError(Exception):
    """A page that does not exist, or not yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainBounds:
    """How much of a statement waits, and for how long."""

    page_bytes: int
    linger_secs: float
    segments_bytes: int = 64 << 20
    """Of the segments that one page names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What was answered to one number; the next one is `number + 1` unless it is the last."""

    number: int
    items: tuple[bytes, ...]
    last: bool
    error: BaseException | None = None

    @property
    def size(self) -> int:
        """Bytes of rows."""
        return sum(map(len, self.items))


@dataclass(slots=True, kw_only=True)
class Outcome:
    """What is known of a statement; its thread fills it in."""

    columns: list[dict[str, Any]] | None = None
    update_type: str | None = None
    affected_rows: int | None = None
    warnings: tuple[str, ...] = ()
    changes: SessionChanges = field(default_factory=SessionChanges)


class Chain:
    """A statement and its pages. Its thread calls `put` and `finish`, the event loop the rest."""

    def __init__(
        self,
        statement: Statement,
        owner: tuple[str, str],
        *,
        bounds: ChainBounds,
        budget: Budget,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.statement, self.owner = statement, owner
        self.encoding: str | None = None
        """What segments are written in, when the rows are segments; set before the first of them."""
        self.spool: Spool | None = None
        self.id = statement.query_id
        self.slug_key = secrets.token_bytes(16)
        self.outcome = Outcome()
        self.touched = time.monotonic()
        self._bounds, self._budget, self._loop = bounds, budget, loop
        self._lock = threading.Condition()
        self._items: deque[tuple[bytes, int]] = deque()
        self._waiting_bytes = 0  # in memory
        self._waiting_weight = 0  # what they stand for
        self._first_at = 0.0
        self._last_page: Page | None = None
        self._over = False
        self._stopped = False
        self._error: BaseException | None = None
        self._news: set[asyncio.Event] = set()
        self.on_waste: Callable[[], None] = lambda: None
        """Is called when nobody will come for what its pages point to."""

    @property
    def piece_bytes(self) -> int:
        """How large the pieces are that pages are made of."""
        return min(_PIECE_BYTES, self._bounds.page_bytes)

    # -- the statement's thread

    def put(self, rows: bytes, weight: int | None = None) -> bool:
        """Hand over rows, when their client has caught up; False when nobody wants them any more.

        Args:
            rows: some, or a segment.
            weight: how many bytes a segment has, which may lie elsewhere.
        """
        with self._lock:
            while not self._stopped and self._waiting_bytes and not self._has_room(len(rows)):
                self._lock.wait(1.0)
                if self.statement.progress().state in _ENDED:
                    break  # what comes next of it is the error that says why
            if self._stopped:
                return False
            if not self._items:
                self._first_at = time.monotonic()
            self._items.append((rows, len(rows) if weight is None else weight))
            self._waiting_bytes += len(rows)
            self._waiting_weight += self._items[-1][1]
            self._budget.take(len(rows))
        self._tell()
        return True

    def _has_room(self, size: int) -> bool:
        ahead = self._waiting_bytes + size <= _AHEAD * self._bounds.page_bytes
        return ahead and self._budget.has_room(size)

    def finish(self, error: BaseException | None = None) -> None:
        """The statement has ended."""
        with self._lock:
            if not self._over:
                self._over, self._error = True, error
        self._tell()

    def _tell(self) -> None:
        if self._news:
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        for event in self._news:
            event.set()

    # -- the event loop

    @property
    def is_awaited(self) -> bool:
        """Whether its client waits for a page."""
        return bool(self._news)

    def touch(self) -> None:
        """Note that its client is there."""
        self.touched = time.monotonic()

    @property
    def ended(self) -> bool:
        """Whether its client has, or may have, its last page."""
        return self._last_page is not None and self._last_page.last

    async def ready(self, number: int, wait_secs: float) -> None:
        """Wait until a page is worth answering, and no longer than that."""
        self.touched = time.monotonic()
        deadline = self.touched + wait_secs
        news = asyncio.Event()
        self._news.add(news)
        try:
            while (pause := min(deadline, self._ripe_at(number)) - time.monotonic()) > 0:
                news.clear()
                try:
                    async with asyncio.timeout(pause):
                        await news.wait()
                except TimeoutError:
                    pass
        finally:
            self._news.discard(news)
            self.touched = time.monotonic()

    def _ripe_at(self, number: int) -> float:
        with self._lock:
            if self._last_page is not None and number <= self._last_page.number:
                return 0.0
            if self._over or self._waiting_weight >= self._page_weight or self._is_bare(number):
                return 0.0
            return self._first_at + self._bounds.linger_secs if self._items else float("inf")

    def take(self, number: int) -> Page:
        """Return a page: the next one, or the last one once more.

        Raises:
            GoneError: an older one.
            NoPageError: none that was told.
        """
        with self._lock:
            last = self._last_page
            if last is not None and number == last.number:
                return last
            if last is not None and number < last.number:
                raise GoneError
            if number != (0 if last is None else last.number + 1) or (last is not None and last.last):
                raise NoPageError
            page = self._last_page = self._next(number)
            if last is not None:
                self._budget.give(last.size)
            self._lock.notify_all()
        return page

    @property
    def _page_weight(self) -> int:
        return self._bounds.page_bytes if self.encoding is None else self._bounds.segments_bytes

    def _is_bare(self, number: int) -> bool:
        """Whether a page has no segments, whatever waits: clients do not look for any in the answer to a statement."""
        return number == 0 and self.encoding is not None

    def _next(self, number: int) -> Page:
        if self._error is not None:
            # What was not fetched goes with the error, as at Trino.
            self._drop()
            return Page(number=number, items=(), last=True, error=self._error)
        items: list[bytes] = []
        size = 0
        while (
            self._items and not self._is_bare(number) and (not items or size + self._items[0][1] <= self._page_weight)
        ):
            item, weight = self._items.popleft()
            items.append(item)
            size += weight
        self._waiting_bytes -= sum(map(len, items))
        self._waiting_weight -= size
        self._first_at = time.monotonic()
        return Page(number=number, items=tuple(items), last=self._over and not self._items)

    def _drop(self) -> None:
        self._items.clear()
        self._budget.give(self._waiting_bytes)
        self._waiting_bytes = self._waiting_weight = 0

    # -- any thread

    def stop(self, error: BaseException | None) -> None:
        """End it: with an error, or with the rows that are there. Idempotent."""
        with self._lock:
            if self._stopped:
                return
            self._stopped = True
            if not self._over:
                self._over, self._error = True, error
            if error is not None:
                self._drop()
            self._lock.notify_all()
        self._tell()
        self.statement.cancel()

    def cancel(self) -> None:
        """End it for its client, who said so."""
        self.stop(QueryCancelledError("The statement was cancelled"))
        self.on_waste()

    def forget(self) -> None:
        """Free what still waits; nobody asks again."""
        self.stop(QueryCancelledError("The statement was abandoned"))
        if not self.ended or (self._last_page is not None and self._last_page.error is not None):
            self.on_waste()
        with self._lock:
            self._drop()
            if self._last_page is not None:
                self._budget.give(self._last_page.size)
                self._last_page = Page(number=self._last_page.number, items=(), last=True)
