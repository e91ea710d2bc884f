"""A query with several rows of parameters: one statement to its client, who reads the rows of all."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import pyarrow as pa

from sqe_core.spi.errors import ErrorCode, QueryCancelledError, UserError
from sqe_core.spi.protocol import Statement, StatementRequest, StatementState


def for_each(begin: Callable[[StatementRequest], Statement], requests: Sequence[StatementRequest]) -> Statement:
    """Begin a statement that is sent with each of some rows of parameters; what came first is asked first."""
    return begin(requests[0]) if len(requests) == 1 else cast("Statement", _EachRow(begin, requests))


class _EachRow:
    """Runs each when the rows of the one before are read. What else is asked is about the one that runs."""

    is_constant = False

    def __init__(self, begin: Callable[[StatementRequest], Statement], requests: Sequence[StatementRequest]) -> None:
        self._begin = begin
        self._waiting = list(reversed(requests[1:]))
        self._lock = threading.RLock()
        self._over = False
        self._statement = begin(requests[0])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._statement, name)

    @property
    def state(self) -> StatementState:
        state = self._statement.state
        more = self._waiting and state in (StatementState.FINISHING, StatementState.FINISHED)
        return StatementState.RUNNING if more else state

    @property
    def schema(self) -> pa.Schema | None:
        columns = self._statement.schema
        # One value is NULL, and another is not.
        return columns and pa.schema([field.with_nullable(True) for field in columns], columns.metadata)

    def plan(self) -> None:
        self._statement.plan()
        if self._statement.schema is None:
            self.close()  # nobody else knows of it
            raise UserError(
                "This statement returns no rows", code=ErrorCode.INVALID_ARGUMENTS, hint="send its rows as an update"
            )

    def start(self) -> _EachRow:
        self._statement.start()
        return self

    def divide(self, count: int) -> Sequence[_EachRow]:
        return (self,)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        schema = self.schema
        yield from self._statement
        while self._waiting:
            self._statement.close()
            with self._lock:
                if self._over:
                    raise QueryCancelledError("The query was cancelled")
                self._statement = self._begin(self._waiting.pop())
            self._statement.plan()
            if self.schema != schema:
                raise UserError(
                    "Not all rows of parameters give the same columns",
                    code=ErrorCode.TYPE_MISMATCH,
                    hint="say their types: CAST(? AS bigint)",
                )
            yield from self._statement.start()

    def cancel(self) -> None:
        with self._lock:
            self._over = True
            statement = self._statement
        statement.cancel()

    def close(self) -> None:
        with self._lock:
            self._over = True
        self._statement.close()
