"""One statement whose rows go to several readers, each of which takes the next batch when it has room for one.

It runs once, as one job over one snapshot, and is one statement for slots, limits and records. Rows are not assigned
beforehand: readers that come one after the other do not wait for each other, and nothing is kept for one that never
comes.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa

from sqe_core.query.run.result import StatementPlan, StatementResult
from sqe_core.spi.errors import QueryCancelledError, SqeError
from sqe_core.spi.protocol import MOST_PARTS


def divide(plan: StatementPlan, count: int) -> Sequence[StatementPlan]:
    """Return plans of parts of the rows in the place of a plan; the plan itself where there is nothing to divide."""
    count = min(count, MOST_PARTS)
    if count < 2 or not plan.is_divisible:
        return [plan]
    division = _Division(plan, count)
    return [
        StatementPlan(
            query_id=plan.query_id,
            kind=plan.kind,
            schema=plan.schema,
            start=division.start_part,
            abandon=division.abandon_part,
        )
        for _ in range(count)
    ]


class _Division:
    def __init__(self, plan: StatementPlan, count: int) -> None:
        self._plan = plan
        self._lock = threading.Lock()
        self._wanted = count
        self._turns = threading.Condition()
        self._next_turn = self._served = 0
        self._whole: StatementResult | None = None
        self._rows: Iterator[pa.RecordBatch] = iter(())
        self._error: SqeError | None = None

    def start_part(self) -> StatementResult:
        """Return a part of the rows; the first one starts the statement, and others wait until it runs."""
        whole = self._whole  # once it runs, nobody waits for its next batch to learn that
        if whole is None:
            whole = self._start()
        return self._part(whole)

    def _start(self) -> StatementResult:
        with self._turn():
            self._check()
            if self._whole is None:
                with self._kept_errors():
                    whole = self._plan.start()
                self._rows = iter(whole)
                self._whole = whole
            return self._whole

    def abandon_part(self) -> None:
        with self._lock:
            self._wanted -= 1
            over = self._wanted == 0
        if over:
            self._plan.close()

    def _part(self, whole: StatementResult) -> StatementResult:
        complete = threading.Event()

        def rows() -> Iterator[pa.RecordBatch]:
            while (batch := self._next()) is not None:
                yield batch
            complete.set()

        def leave() -> None:
            if not complete.is_set():
                self._end(whole)

        return StatementResult(
            query_id=whole.query_id,
            kind=whole.kind,
            schema=whole.schema,
            batches=rows(),
            progress=whole.progress,
            on_close=leave,
            on_cancel=whole.cancel,
        )

    def _next(self) -> pa.RecordBatch | None:
        with self._turn():
            self._check()
            with self._kept_errors():
                return next(self._rows, None)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """One at a time, in the order in which they came: a lock would let a fast reader have every batch.

        Held while the statement starts and while a batch is awaited. Whoever leaves must not wait for that, since only
        leaving may end it.
        """
        with self._turns:
            mine = self._next_turn
            self._next_turn += 1
            self._turns.wait_for(lambda: self._served == mine)
        try:
            yield
        finally:
            with self._turns:
                self._served += 1
                self._turns.notify_all()

    @contextmanager
    def _kept_errors(self) -> Iterator[None]:
        """What ends one part ends all. Asked again, the rows would just be over, as if none were missing."""
        try:
            yield
        except BaseException as error:
            self._error = error if isinstance(error, SqeError) else self._ended()
            raise

    def _ended(self) -> QueryCancelledError:
        error = QueryCancelledError("The statement was cancelled", hint="a reader of another part of it left")
        error.query_id = self._plan.query_id
        return error

    def _end(self, whole: StatementResult) -> None:
        """A reader left before its end: what it had got is lost, so the rest is of no use to anybody."""
        if self._error is None:
            self._error = self._ended()
            whole.cancel()
        whole.close()

    def _check(self) -> None:
        if self._error is not None:
            raise self._error
