"""The batches that a client puts, waited for no longer than the statement lives that takes them (LIM-2)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator

import pyarrow as pa

from sqe_core.protocols.flight.idle import Endable, IdleWatch
from sqe_core.spi.errors import SqeError

# Who sends something by then is told why the statement was ended; a call that is ended has no place for that.
_GRACE_SECS = 2.0


class ClientBatches:
    """The batches of one call. The statement that takes them says with `watch` how to know that it was ended.

    Its thread waits in gRPC, where nothing wakes it but the end of the call.

    Args:
        batches: as they come.
        call: whose they are.
        idle: looks while a batch is waited for.
        monotonic: the clock.
    """

    def __init__(
        self,
        batches: Iterator[pa.RecordBatch],
        call: Endable,
        idle: IdleWatch,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._batches = batches
        self._call = call
        self._idle = idle
        self._monotonic = monotonic
        self._check: Callable[[], None] = lambda: None
        self._ended_at: float | None = None

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def __next__(self) -> pa.RecordBatch:
        with self._idle.waiting(self._call, math.inf, self._is_over):
            return next(self._batches)

    def watch(self, check: Callable[[], None]) -> None:
        """End the call soon after `check` raises, unless the next batch comes before."""
        self._check = check

    def _is_over(self) -> bool:
        try:
            self._check()
        except SqeError:
            now = self._monotonic()
            if self._ended_at is None:
                self._ended_at = now
            return now - self._ended_at >= _GRACE_SECS
        return False
