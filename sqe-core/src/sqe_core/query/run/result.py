"""What a statement answers: rows, a count, or the word that it is done."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from sqe_core.engine.port import Progress
from sqe_core.query.run.running import Ending
from sqe_core.spi.errors import QueryCancelledError, SqeError, UserError
from sqe_core.sql.statement import StatementKind

Parameters = Sequence[Any] | Mapping[str, Any]
"""Values of a statement's parameters, in the order of its markers or by their names."""


class PlanLifecycle(Protocol):
    """What surrounds the start of a plan: its slot, its record, its errors."""

    def started(self, start: Callable[[Ending], StatementResult]) -> StatementResult:
        """Admit the statement again and run it."""

    def abandoned(self) -> None:
        """Nobody starts it."""


class StatementPlan:
    """A statement that was judged and has not run. Start it once, or close it.

    `schema` is None for statements without rows. `is_divisible` says whether the rows may go to several readers,
    `is_constant` whether there is one, of constants.
    """

    def __init__(
        self,
        *,
        query_id: str,
        kind: StatementKind,
        schema: pa.Schema | None,
        start: Callable[[], StatementResult],
        abandon: Callable[[], None],
        is_divisible: bool = False,
        is_constant: bool = False,
    ) -> None:
        self.query_id = query_id
        self.kind = kind
        self.schema = schema
        self.is_divisible = is_divisible
        self.is_constant = is_constant
        self._start = start
        self._abandon = abandon
        # Reentrant: what nobody closed is closed by the garbage collector, anywhere.
        self._lock = threading.RLock()
        self._used: SqeError | None = None

    def start(self) -> StatementResult:
        """Run it. Raises like `QueryService.execute`."""
        used = self._use(UserError("This statement was started before"))
        if used is not None:
            raise used
        return self._start()

    def close(self) -> None:
        """Forget it when it was not started. Idempotent."""
        if self._use(QueryCancelledError("The statement was cancelled")) is None:
            self._abandon()

    def _use(self, refusal: SqeError) -> SqeError | None:
        """Use the plan up; return what was said of that when it is not the first time."""
        with self._lock:
            before, self._used = self._used, self._used or refusal
            return before


@dataclass(eq=False, kw_only=True)
class StatementResult:
    """The answer to one statement. Iterate it at most once, and close it; use it as a context manager.

    `schema` is None for statements without rows. `affected_rows` is set for INSERT, UPDATE, DELETE, MERGE, CTAS and
    TRUNCATE. `warnings` are remarks for whoever reads it. `progress` says how far execution is, also from another
    thread. Errors while iterating are `SqeError`s.
    """

    query_id: str
    kind: StatementKind
    schema: pa.Schema | None = None
    batches: Iterable[pa.RecordBatch] = ()
    affected_rows: int | None = None
    warnings: Sequence[str] = ()
    progress: Callable[[], Progress] = Progress
    on_close: Callable[[], None] = lambda: None
    on_cancel: Callable[[], None] = lambda: None
    _delivered: Callable[[pa.RecordBatch], None] | None = None

    def watched(self, delivered: Callable[[pa.RecordBatch], None]) -> StatementResult:
        """Tell of each batch that goes to the client; return the result itself."""
        self._delivered = delivered
        return self

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        try:
            for batch in self.batches:
                if self._delivered is not None:
                    self._delivered(batch)
                yield batch
        finally:
            self.close()

    def read_all(self) -> pa.Table:
        """Read every batch into one table. For small results: nothing bounds the memory."""
        if self.schema is None:
            self.close()
            return pa.table({})
        return pa.Table.from_batches(list(self), schema=self.schema)

    def cancel(self) -> None:
        """End execution; whoever iterates gets a `QueryCancelledError`. Idempotent, from any thread."""
        self.on_cancel()

    def close(self) -> None:
        """End the statement; what still runs is cancelled. Idempotent."""
        on_close, self.on_close = self.on_close, lambda: None
        on_close()

    def __del__(self) -> None:
        # A result that somebody lost must not keep its slot for ever.
        self.close()

    def __enter__(self) -> StatementResult:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
