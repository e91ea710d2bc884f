"""The batches that a client puts, waited for no longer than the statement lives that takes them (LIM-2)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator

import grpc
import pyarrow as pa

from sqe_core.protocols.flight.idle import IdleWatch
from sqe_core.spi.protocol import Statement, StatementState

# Who sends something by then is told why the statement was ended; a call that is ended has no place for that.
_GRACE_SECS = 2.0
_ENDED = (StatementState.FAILED, StatementState.CANCELLED)


class ClientBatches:
    """The batches of one call, for a statement whose thread waits in gRPC: nothing wakes it but the end of the call.

    Args:
        batches: as they come.
        call: whose they are.
        idle: looks while a batch is waited for.
        monotonic: the clock.
    """

    def __init__(
        self,
        batches: Iterator[pa.RecordBatch],
        call: grpc.RpcContext,
        idle: IdleWatch,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._batches = batches
        self._call = call
        self._idle = idle
        self._monotonic = monotonic
        self._statement: Statement | None = None
        self._ended_at: float | None = None

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def __next__(self) -> pa.RecordBatch:
        with self._idle.waiting(self._call, math.inf, self._is_over):
            return next(self._batches)

    def wanted_by(self, statement: Statement) -> None:
        """End the call soon after this statement was ended, unless the next batch comes before."""
        self._statement = statement

    def _is_over(self) -> bool:
        if self._statement is None or self._statement.state not in _ENDED:
            return False
        now = self._monotonic()
        if self._ended_at is None:
            self._ended_at = now
        return now - self._ended_at >= _GRACE_SECS
