"""Statements over Flight: planned by GetFlightInfo, run by DoGet, or run at once by DoPut.

A ticket stands for a judged statement that nobody has run yet; PollFlightInfo runs it before its ticket is used.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from sqe_core.protocols.flight.columns import described
from sqe_core.protocols.flight.handles import Handles
from sqe_core.protocols.flight.leaving import Leaving, OnEnd
from sqe_core.protocols.flight.messages import batch_messages, schema_message
from sqe_core.protocols.flight.sign_in import PROTOCOL
from sqe_core.spi.errors import ErrorCode, NotSupportedError, QueryCancelledError, ResourcesError, UserError
from sqe_core.spi.factory import Metrics, NoMetrics
from sqe_core.spi.protocol import (
    GatewaySession,
    IngestRequest,
    QueryProgress,
    QueryResult,
    StatementDescription,
    StatementPlan,
    StatementRequest,
)

TICKET_SECS = 300.0
PREPARED_SECS = 300.0
# A parallel result has many tickets, and a user many sessions.
_BOUNDS = {"most": 10_000, "most_per_session": 1_000, "most_per_user": 5_000}
_NO_COLUMNS = pa.schema([])
_MOST_PARAMETER_ROWS = 100_000
_MOST_PARAMETER_BYTES = 64 << 20


class Ticket:
    """A statement that a client may fetch once.

    `done` is the result of a statement without rows, which ran when it was planned; `started` is set when
    PollFlightInfo has run it already. Where several tickets stand for parts of one statement, `parts` are all of them.
    """

    def __init__(
        self,
        plan: StatementPlan,
        cancel: Callable[[], object] = lambda: None,
        parts: Sequence[StatementPlan] = (),
    ) -> None:
        self.plan = plan
        self._parts = parts or (plan,)
        self.schema = described(plan.schema) if plan.schema is not None else _NO_COLUMNS
        self.done: QueryResult | None = None
        self.started: _Started | None = None
        self._cancel = cancel
        self._lock = threading.RLock()

    @property
    def row_count(self) -> int:
        """Rows that a statement without rows has changed; -1 when nobody knows."""
        result = self.done
        if result is None and self.plan.schema is None and self.started is not None:
            result = self.started.result
        count = result.affected_rows if result is not None else None
        return -1 if count is None else count

    def start(self) -> _Started:
        """Run it in the background, unless that was done."""
        with self._lock:
            if self.started is None:
                self.started = _Started(self.plan, self._cancel)
            return self.started

    def run(self) -> tuple[QueryResult, Iterator[pa.RecordBatch]]:
        """Return the running statement and its batches."""
        if self.done is not None:
            return self.done, iter(())
        if self.started is not None:
            return self.started.take()
        result = self.plan.start()
        return result, iter(result)

    def cancel(self) -> None:
        """End the whole statement, whoever fetches parts of it."""
        for part in self._parts:
            part.close()
        self._cancel()
        self.close()

    def close(self) -> None:
        """Forget it; what runs is ended."""
        self.plan.close()
        if self.started is not None:
            self.started.close()


class _Started:
    """A statement that runs in the background until its first batch is there."""

    def __init__(self, plan: StatementPlan, cancel: Callable[[], object]) -> None:
        self.ready = threading.Event()
        self._cancel = cancel
        self._result: QueryResult | None = None
        self._batches: Iterator[pa.RecordBatch] = iter(())
        self._first: pa.RecordBatch | None = None
        self._error: BaseException | None = None
        self._closed = False
        self._lock = threading.RLock()
        threading.Thread(target=self._run, args=(plan,), name="sqe-flight-poll", daemon=True).start()

    def _run(self, plan: StatementPlan) -> None:
        try:
            result = plan.start()
            with self._lock:
                self._result = result
                closed = self._closed
            if closed:
                result.close()
                raise QueryCancelledError("The statement was cancelled")
            self._batches = iter(result)
            self._first = next(self._batches, None)
        except BaseException as error:  # noqa: BLE001 - raised where the result is asked for
            self._error = error
        self.ready.set()

    @property
    def result(self) -> QueryResult | None:
        """What runs; None while it is being started."""
        with self._lock:
            return self._result

    def progress(self) -> QueryProgress | None:
        """How far it is; None before it runs."""
        result = self.result
        return result.progress() if result is not None else None

    def check(self) -> None:
        """Raise what went wrong."""
        if self._error is not None:
            raise self._error

    def take(self) -> tuple[QueryResult, Iterator[pa.RecordBatch]]:
        """Return the result and all its batches."""
        self.ready.wait()
        self.check()
        assert self._result is not None
        return self._result, self._all()

    def _all(self) -> Iterator[pa.RecordBatch]:
        if self._first is not None:
            yield self._first
            self._first = None
            yield from self._batches

    def close(self) -> None:
        with self._lock:
            self._closed = True
            result = self._result
        if result is None:
            self._cancel()  # planning may take long, and a statement without rows runs until its end there
            return
        result.cancel()
        result.close()


@dataclass(slots=True)
class Prepared:
    """A prepared statement: its text, and the rows of parameters that were bound last. Nothing is decided by it."""

    sql: str
    description: StatementDescription
    bound: Sequence[pa.RecordBatch] | None = None
    """Rows of parameters in the order of the markers; None when none were bound."""

    @property
    def row_count(self) -> int:
        """How many rows of parameters are bound."""
        return sum(batch.num_rows for batch in self.bound or ())

    @property
    def positional(self) -> bool:
        """Whether its markers are `?`."""
        names = self.description.parameters.names
        return all(name == str(number) for number, name in enumerate(names, 1))

    def bind(self, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> None:
        """Take rows of parameters, all of them or none."""
        expected = self.description.parameters
        if len(schema) != len(expected):
            raise UserError(
                f"The statement has {len(expected)} parameter{'s' * (len(expected) != 1)}, {len(schema)} given",
                code=ErrorCode.INVALID_ARGUMENTS,
                hint="give a value for each marker",
            )
        if not len(expected):
            self.bound = None  # JDBC sends no row of no columns with every statement
            return
        order = list(range(len(schema)))
        if not self.positional and set(schema.names) == set(expected.names):
            order = [schema.get_field_index(name) for name in expected.names]
        taken: list[pa.RecordBatch] = []
        rows = size = 0
        for batch in batches:
            rows += batch.num_rows
            if rows > _MOST_PARAMETER_ROWS:
                raise _too_many(f"{_MOST_PARAMETER_ROWS} rows of parameters")
            _validate(batch)
            size += pa.ipc.get_record_batch_size(batch)
            if size > _MOST_PARAMETER_BYTES:
                raise _too_many(f"{_MOST_PARAMETER_BYTES} bytes of parameters")
            names = [str(number) for number in range(len(order))]
            taken.append(pa.RecordBatch.from_arrays([batch.column(number) for number in order], names))
        self.bound = taken

    def requests(self, ask: Callable[[str], StatementRequest]) -> Iterator[StatementRequest]:
        """Yield the statement with each row of parameters; once and without when none were bound.

        `ask` makes a request of a text.
        """
        request = ask(self.sql)
        if self.bound is None:
            yield request
            return
        for batch in self.bound:
            for row in range(batch.num_rows):
                yield replace(request, parameters=self._values([column[row] for column in batch.columns]))

    def query(self, ask: Callable[[str], StatementRequest]) -> StatementRequest:
        """Return the statement as a query, which has one row of parameters at most."""
        if self.row_count > 1:
            raise NotSupportedError(
                "A query takes one row of parameters", hint="run it once for each row, or join with VALUES"
            )
        return next(self.requests(ask), None) or ask(self.sql)

    def close(self) -> None:
        """Nothing is held."""

    def _values(self, row: Sequence[pa.Scalar[Any]]) -> Sequence[pa.Scalar[Any]] | Mapping[str, pa.Scalar[Any]]:
        return row if self.positional else dict(zip(self.description.parameters.names, row, strict=True))


def _validate(batch: pa.RecordBatch) -> None:
    try:
        batch.validate(full=True)
    except pa.ArrowException as error:
        raise UserError("A row of parameters is damaged", code=ErrorCode.INVALID_ARGUMENTS) from error


def _too_many(what: str) -> UserError:
    return UserError(f"More than {what}", code=ErrorCode.INVALID_ARGUMENTS, hint="load many rows with bulk ingest")


class Statements:
    """The statements of all clients of one server."""

    def __init__(
        self,
        *,
        ticket_secs: float = TICKET_SECS,
        monotonic: Callable[[], float] = time.monotonic,
        metrics: Metrics | None = None,
    ) -> None:
        self._metrics = metrics or NoMetrics()
        self.tickets: Handles[Ticket] = Handles("ticket", ttl_secs=ticket_secs, monotonic=monotonic, **_BOUNDS)
        self.prepared: Handles[Prepared] = Handles(
            "prepared statement", ttl_secs=PREPARED_SECS, monotonic=monotonic, **_BOUNDS
        )
        # Reentrant, like those below: a stream that nobody reads on is closed by the garbage collector, anywhere.
        self._lock = threading.RLock()
        self._running: dict[bytes, _Fetch] = {}

    def plan(
        self, session: GatewaySession, request: StatementRequest, *, on_end: OnEnd, most_parts: int = 1
    ) -> tuple[Ticket, Sequence[bytes]]:
        """Judge a statement and return the handles of its tickets, one for each part of its rows.

        One without rows runs at once: many clients never fetch what has no columns.
        """
        with Leaving(session, on_end) as leaving:
            plan = session.plan(replace(request, began=leaving.began))
            parts = plan.divide(most_parts) if most_parts > 1 else (plan,)
            tickets = [Ticket(part, lambda: session.cancel(plan.query_id), parts) for part in parts]
            if plan.schema is None:
                tickets[0].done = _run_now(plan, leaving)
        return tickets[0], self._keep(session, tickets)

    def plan_later(self, session: GatewaySession, request: StatementRequest, on_end: OnEnd) -> bytes:
        """Judge a statement, to be run by `poll`, and return the handle of its ticket."""
        with Leaving(session, on_end) as leaving:
            plan = session.plan(replace(request, began=leaving.began))
        return self.tickets.put(session, Ticket(plan, lambda: session.cancel(plan.query_id)))

    def _keep(self, session: GatewaySession, tickets: Sequence[Ticket]) -> Sequence[bytes]:
        handles: list[bytes] = []
        try:
            for ticket in tickets:
                handles.append(self.tickets.put(session, ticket))
        except ResourcesError:
            for handle in handles:
                self.tickets.take(session, handle)
            tickets[0].cancel()
            raise
        return handles

    def poll(self, session: GatewaySession, handle: bytes, wait_secs: float) -> tuple[Ticket, float | None]:
        """Run a planned statement in the background; return its progress, or None when it can be fetched."""
        ticket = self.tickets.get(session, handle)
        if ticket.done is not None:
            return ticket, None
        started = ticket.start()
        if started.ready.wait(wait_secs):
            started.check()
            return ticket, None
        progress = started.progress()
        if progress is None or not progress.tasks:
            return ticket, 0.0
        return ticket, min(progress.tasks_done / progress.tasks, 0.99)

    def fetch(
        self,
        session: GatewaySession,
        handle: bytes,
        *,
        options: pa.ipc.IpcWriteOptions,
        on_end: OnEnd,
    ) -> Iterator[bytes]:
        """Run what a ticket stands for and yield the messages of its rows."""
        ticket = self.tickets.take(session, handle)
        fetch = _Fetch(session, ticket)
        with self._lock:
            self._running[handle] = fetch
            self._count()
        try:
            if not on_end(fetch.cancel, lambda: fetch.closed):
                fetch.cancel()
            result, batches = fetch.run()
            counts = _Counts(result)
            yield schema_message(ticket.schema, counts.told())
            for batch in batches:
                counts.add(batch)
                yield from batch_messages(batch, options, counts.told())
            if len(ticket.schema):
                # A batch of no rows: some clients cannot read a message of metadata alone.
                yield from batch_messages(_no_rows(ticket.schema), options, counts.told(done=True))
        finally:
            with self._lock:
                self._running.pop(handle, None)
                self._count()
            fetch.close()

    def describe(self, session: GatewaySession, request: StatementRequest, on_end: OnEnd) -> StatementDescription:
        """Say what a statement would answer."""
        with Leaving(session, on_end) as leaving:
            shape = session.describe(replace(request, began=leaving.began))
        return shape if shape.schema is None else replace(shape, schema=described(shape.schema))

    def _count(self) -> None:
        self._metrics.gauge("sqe_protocol_streams", len(self._running), {"protocol": PROTOCOL})

    def update(self, session: GatewaySession, request: StatementRequest, on_end: OnEnd) -> int:
        """Run a statement that changes something; return how many rows it changed.

        What counts no rows has changed none: told -1, which is "unknown", JDBC runs the statement again as a query.
        """
        with Leaving(session, on_end) as leaving:
            return _update(session, request, leaving)

    def update_prepared(
        self, session: GatewaySession, prepared: Prepared, ask: Callable[[str], StatementRequest], on_end: OnEnd
    ) -> int:
        """Run a prepared statement for each row of parameters; return how many rows changed in all.

        An INSERT of one row of VALUES writes all of them with one commit; others run once for each row.
        """
        with Leaving(session, on_end) as leaving:
            if prepared.row_count > 1:
                request = replace(ask(prepared.sql), began=leaving.began)
                together = session.insert_rows(request, prepared.bound or ())
                if together is not None:
                    with together:
                        return together.affected_rows or 0
            return sum(_update(session, request, leaving) for request in prepared.requests(ask))

    def ingest(
        self,
        session: GatewaySession,
        request: IngestRequest,
        schema: pa.Schema,
        batches: Iterator[pa.RecordBatch],
        on_end: OnEnd,
    ) -> int:
        """Write a client's rows into a table."""
        with (
            Leaving(session, on_end) as leaving,
            session.ingest(replace(request, began=leaving.began), schema, batches) as result,
        ):
            return result.affected_rows or 0

    def cancel(self, session: GatewaySession, handle: bytes) -> bool:
        """End what a ticket stands for; False when there is no such statement of this user."""
        with self._lock:
            running = self._running.get(handle)
        if running is not None and running.user == session.identity.key:
            running.cancel()
            return True
        try:
            ticket = self.tickets.take(session, handle)
        except UserError:
            return False
        ticket.cancel()
        return True

    def end_session(self, session: GatewaySession) -> None:
        """Forget what a session that ends has left."""
        self.tickets.end_session(session)
        self.prepared.end_session(session)

    def sweep(self) -> None:
        """Forget what has expired."""
        self.tickets.sweep()
        self.prepared.sweep()

    def close(self) -> None:
        """Forget everything."""
        self.tickets.close()
        self.prepared.close()


class _Fetch:
    """The rows of a ticket on their way. Can be cancelled from its first moment on, when there is no result yet."""

    def __init__(self, session: GatewaySession, ticket: Ticket) -> None:
        self.user = session.identity.key
        self._ticket = ticket
        self._result: QueryResult | None = None
        self._cancelled = threading.Event()
        self.closed = False
        self._lock = threading.RLock()

    def run(self) -> tuple[QueryResult, Iterator[pa.RecordBatch]]:
        """Run the statement."""
        if self._cancelled.is_set():
            raise QueryCancelledError("The statement was cancelled")
        result, batches = self._ticket.run()
        with self._lock:
            self._result = result
        if self._cancelled.is_set():
            result.cancel()
        return result, batches

    def cancel(self) -> None:
        """End it, in whatever phase it is."""
        self._cancelled.set()
        with self._lock:
            if self.closed:
                return
            result = self._result
        if result is not None:
            result.cancel()
        else:
            self._ticket.cancel()

    def close(self) -> None:
        """Free everything."""
        with self._lock:
            self.closed = True
        self._ticket.close()
        if self._result is not None:
            self._result.close()


def _update(session: GatewaySession, request: StatementRequest, leaving: Leaving) -> int:
    plan = session.plan(replace(request, began=leaving.began))
    if plan.schema is not None:
        plan.close()
        raise UserError("This statement returns rows", code=ErrorCode.INVALID_ARGUMENTS, hint="send it as a query")
    with _run_now(plan, leaving) as result:
        return result.affected_rows or 0


def _run_now(plan: StatementPlan, leaving: Leaving) -> QueryResult:
    """Run a statement without rows to its end; a client that goes away meanwhile ends it."""
    try:
        leaving.check()
    except QueryCancelledError:
        plan.close()
        raise
    return plan.start()


class _Counts:
    """What comes with each message of a result: which statement it is of, and how much has come."""

    def __init__(self, result: QueryResult) -> None:
        self._result = result
        self._began = time.monotonic()
        self._rows = self._bytes = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Count a batch."""
        self._rows += batch.num_rows
        self._bytes += pa.ipc.get_record_batch_size(batch)

    def told(self, *, done: bool = False) -> bytes:
        """Return the counts; with `done` they are those of everything that came through this stream."""
        told: dict[str, object] = {
            "query_id": self._result.query_id,
            "statement": self._result.statement_kind,
            "rows": self._rows,
            "bytes": self._bytes,
            "elapsed_ms": int((time.monotonic() - self._began) * 1000),
        }
        return json.dumps(told | {"done": True} if done else told).encode()


def _no_rows(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema=schema)
