"""Statements over Flight: planned by GetFlightInfo, run by DoGet, or run at once by DoPut.

A ticket stands for a judged statement that nobody has run yet. Two kinds run before their ticket is used: what
PollFlightInfo asks about, and a small row of constants, by which tools see whether the server is there: it is made
while the ticket is on its way.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Any

import pyarrow as pa

from sqe_core.protocols.flight.client_batches import ClientBatches
from sqe_core.protocols.flight.columns import described
from sqe_core.protocols.flight.each_row import for_each
from sqe_core.protocols.flight.handles import Handles
from sqe_core.protocols.flight.leaving import Leaving, OnEnd
from sqe_core.protocols.flight.messages import batch_messages, pieces, schema_message
from sqe_core.protocols.flight.sign_in import PROTOCOL
from sqe_core.spi.batch_bytes import batch_bytes
from sqe_core.spi.errors import ErrorCode, ResourcesError, UserError
from sqe_core.spi.factory import Metrics, NoMetrics
from sqe_core.spi.protocol import (
    GatewaySession,
    IngestRequest,
    Statement,
    StatementDescription,
    StatementRequest,
    StatementState,
)

TICKET_SECS = 300.0
PREPARED_SECS = 300.0
# A parallel result has many tickets, and a user many sessions.
_BOUNDS = {
    "most": 10_000,
    "most_per_session": 1_000,
    "most_per_user": 2_500,
    "most_bytes": 1 << 30,
    "most_bytes_per_user": 256 << 20,
}
# What a judged statement holds here and in the engine, for each byte of its text; about, and rather more.
_PLAN_PER_BYTE = 32
# And for each byte of its columns, as they are sent: up to 5 here, the rest in the engine.
_PLAN_PER_BYTE_OF_COLUMNS = 8
# Columns alone hold up to 4 times what is sent of them.
_HELD_PER_BYTE_OF_COLUMNS = 4
_SMALL_VALUE_BYTES = 64
_NO_COLUMNS = pa.schema([])
_DONE = (StatementState.FINISHING, StatementState.FINISHED)
# Rows of constants that are made before they are asked for, at a time.
_MOST_EARLY = 16
# How big such a row may be, which is kept for its reader: it may have the value of a parameter as often as its text has
# letters.
_MOST_EARLY_BYTES = 16 << 10
_MOST_EARLY_COLUMNS = 64
_MOST_NAMES_TOLD = 20
_MOST_PARAMETER_ROWS = 100_000
_MOST_QUERY_ROWS = 1_000
MOST_PARAMETER_BYTES = 64 << 20


class Ticket:
    """A statement that a client may fetch once, or a part of one.

    `schema` is what its client is told of the columns; `small_row` says whether the result is a row that may be kept.
    A statement without rows ran when it was planned, and is `done`; `started` is set when PollFlightInfo has run it
    already.
    """

    def __init__(self, statement: Statement, schema: pa.Schema, size: int, *, small_row: bool = False) -> None:
        self.statement = statement
        self.schema = schema
        self.size = size
        self.small_row = small_row
        self.done = False
        self.started: _Started | None = None
        self._lock = threading.RLock()

    @property
    def row_count(self) -> int:
        """Rows that a statement without rows has changed; -1 when nobody knows."""
        count = self.statement.affected_rows
        return -1 if count is None else count

    def start(self, thread: Callable[[Callable[[], None]], object] | None = None) -> _Started:
        """Run it in the background, unless that was done; in a thread of its own if none is given."""
        with self._lock:
            if self.started is None:
                self.started = _Started(self.statement, thread or _in_new_thread, whole=self.small_row)
            return self.started

    def run(self) -> Iterator[pa.RecordBatch]:
        if self.done:
            return iter(())
        if self.started is not None:
            return self.started.take()
        return iter(self.statement.start())

    def cancel(self) -> None:
        """End the whole statement, whoever fetches parts of it."""
        self.statement.cancel()
        self.close()

    def close(self) -> None:
        """Forget it; what runs is ended."""
        self.statement.close()


def _in_new_thread(body: Callable[[], None]) -> None:
    threading.Thread(target=body, name="sqe-flight-poll", daemon=True).start()


class _Started:
    """A statement that runs in the background until its first batch is there, or all of it with `whole`."""

    def __init__(self, statement: Statement, thread: Callable[[Callable[[], None]], object], *, whole: bool) -> None:
        self._statement = statement
        self._whole = whole
        self.ready = threading.Event()
        self._batches: Iterator[pa.RecordBatch] = iter(())
        self._error: BaseException | None = None
        thread(self._run)

    def _run(self) -> None:
        try:
            batches = iter(self._statement.start())
            first = list(islice(batches, 1))
            # Where all is wanted it is one row, and small: it waits for its reader without a slot.
            self._batches = chain(first, tuple(batches) if self._whole else batches)
        except BaseException as error:  # noqa: BLE001 - raised where the result is asked for
            self._error = error
        self.ready.set()

    def check(self) -> None:
        if self._error is not None:
            raise self._error

    def take(self) -> Iterator[pa.RecordBatch]:
        self.ready.wait()
        self.check()
        return self._batches


@dataclass(frozen=True, slots=True)
class Bound:
    """Rows of parameters in the order of the markers, and how many bytes they hold."""

    batches: Sequence[pa.RecordBatch] = ()
    size: int = 0

    @property
    def row_count(self) -> int:
        return sum(batch.num_rows for batch in self.batches)


@dataclass(slots=True)
class Prepared:
    """A prepared statement: its text, and the rows of parameters that were bound last. Nothing is decided by it."""

    sql: str
    description: StatementDescription
    bound: Bound | None = None
    """None when none were bound."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Held while what is bound changes and is counted, which is one thing; never while a client is waited for."""
    _unbound_size: int = field(init=False)

    def __post_init__(self) -> None:
        columns = _bytes_of_columns(self.description.schema) + _bytes_of_columns(self.description.parameters)
        self._unbound_size = len(self.sql) + _HELD_PER_BYTE_OF_COLUMNS * columns

    @property
    def size(self) -> int:
        """How many bytes it holds, about."""
        return self._unbound_size + (self.bound.size if self.bound is not None else 0)

    @property
    def positional(self) -> bool:
        names = self.description.parameters.names
        return all(name == str(number) for number, name in enumerate(names, 1))

    def rows_of(
        self, batches: Iterator[pa.RecordBatch], schema: pa.Schema, count: Callable[[int], object]
    ) -> Bound | None:
        """Return all rows of parameters; `count` is told of their bytes so far, and may refuse them."""
        expected = self.description.parameters
        if not len(schema) and not any(batch.num_rows for batch in batches):
            # ADBC sends neither rows nor columns when it has none; JDBC does so with every statement without markers.
            return Bound() if len(expected) else None
        if len(schema) != len(expected):
            raise UserError(
                f"The statement has {len(expected)} parameter{'s' * (len(expected) != 1)}, {len(schema)} given",
                code=ErrorCode.INVALID_ARGUMENTS,
                hint="give a value for each marker",
            )
        if not len(expected):
            return None  # JDBC sends no row of no columns with every statement
        order = range(len(schema)) if self.positional else _order_by_name(schema.names, expected.names)
        taken: list[pa.RecordBatch] = []
        rows = size = 0
        for batch in batches:
            rows += batch.num_rows
            if rows > _MOST_PARAMETER_ROWS:
                raise _too_many(f"{_MOST_PARAMETER_ROWS} rows of parameters")
            # What is there may be more than its rows need.
            size += max(_checked_bytes(batch), batch.get_total_buffer_size())
            if size > MOST_PARAMETER_BYTES:
                raise _too_many(f"{MOST_PARAMETER_BYTES} bytes of parameters")
            count(size)
            names = [str(number) for number in range(len(order))]
            taken.append(pa.RecordBatch.from_arrays([batch.column(number) for number in order], names))
        return Bound(taken, size)

    def requests(self, ask: Callable[[str], StatementRequest], bound: Bound | None) -> Iterator[StatementRequest]:
        """Yield the statement with each row of parameters; once and without when none were bound.

        `ask` makes a request of a text.
        """
        request = ask(self.sql)
        if bound is None:
            yield request
            return
        for batch in bound.batches:
            for row in range(batch.num_rows):
                yield replace(request, parameters=self._values([column[row] for column in batch.columns]))

    def queries(self, ask: Callable[[str], StatementRequest]) -> Sequence[StatementRequest]:
        """Return the statement as a query, with each row of parameters."""
        bound = self.bound
        if bound is not None and bound.row_count > _MOST_QUERY_ROWS:
            raise UserError(
                f"A query takes at most {_MOST_QUERY_ROWS} rows of parameters",
                code=ErrorCode.INVALID_ARGUMENTS,
                hint="join with VALUES, or with a table of them",
            )
        return list(self.requests(ask, bound)) or [ask(self.sql)]

    def close(self) -> None:
        """Nothing is held."""

    def _values(self, row: Sequence[pa.Scalar[Any]]) -> Sequence[pa.Scalar[Any]] | Mapping[str, pa.Scalar[Any]]:
        return row if self.positional else dict(zip(self.description.parameters.names, row, strict=True))


def ensure_columns(described: StatementDescription) -> None:
    """Raise when a query's columns are not known before it has values."""
    if described.schema is None and described.statement_kind == "query":
        raise UserError(
            "The columns of this query depend on the values of its parameters",
            code=ErrorCode.TYPE_MISMATCH,
            hint="say their types: CAST(? AS bigint)",
        )


def _order_by_name(given: Sequence[str], expected: Sequence[str]) -> Sequence[int]:
    """Return which of the columns that a client gives is which named parameter.

    Columns that have none of the names are taken in their order: some drivers number them. Where some have one and
    others none, taking them so might change another row than was meant.
    """
    for key in (str, str.lower):  # names may differ in case alone
        places = {key(name): place for place, name in enumerate(given)}
        wanted = [key(name) for name in expected]
        if len(places) == len(given) and places.keys() == set(wanted):
            return [places[name] for name in wanted]
    if {name.lower() for name in given}.isdisjoint(name.lower() for name in expected):
        return range(len(given))
    raise UserError(
        f"The parameters are named {', '.join(expected[:_MOST_NAMES_TOLD])}; columns of other names were given too",
        code=ErrorCode.INVALID_ARGUMENTS,
        hint="name all columns like the parameters, or none: then they go by their order",
    )


def _checked_bytes(batch: pa.RecordBatch) -> int:
    """Return what a batch of parameters holds and becomes; one that is damaged is refused."""
    try:
        batch.validate(full=True)
        sizes = batch_bytes(batch)
        return sizes.dictionaries + sizes.decoded
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
        self._running: dict[bytes, tuple[tuple[str, str], Ticket]] = {}
        self._early = ThreadPoolExecutor(_MOST_EARLY, thread_name_prefix="sqe-flight-early")
        self._free_early = threading.Semaphore(_MOST_EARLY)

    def plan(
        self, session: GatewaySession, requests: Sequence[StatementRequest], *, on_end: OnEnd, most_parts: int = 1
    ) -> tuple[Ticket, Sequence[bytes]]:
        """Judge a statement and return the handles of its tickets, one for each part of its rows.

        One without rows runs at once: many clients never fetch what has no columns.
        """
        with Leaving(on_end) as leaving:
            statement = leaving.watch(for_each(session.begin, requests))
            statement.plan()
            parts = statement.divide(most_parts) if most_parts > 1 else (statement,)
            tickets = _tickets(requests, parts)
            handles = self._keep(session, tickets)  # before it runs: what was done is not refused for want of room
            if statement.schema is None:
                self._run_kept(session, handles[0], tickets[0], leaving)
        if tickets[0].small_row:
            self._start_early(tickets[0])
        return tickets[0], handles

    def _run_kept(self, session: GatewaySession, handle: bytes, ticket: Ticket, leaving: Leaving) -> None:
        try:
            leaving.check()
            ticket.statement.start()
            ticket.done = True
        except BaseException:
            with suppress(UserError):  # its session ended meanwhile
                self.tickets.take(session, handle)
            ticket.statement.close()
            raise
        with suppress(UserError):
            self.tickets.resize(session, handle, 0)

    def _start_early(self, ticket: Ticket) -> None:
        """Run what is over in a moment; where many do so, it waits for its reader as all others do."""
        if not self._free_early.acquire(blocking=False):
            return
        try:
            ticket.start(self._run_early)
        except RuntimeError:
            self._free_early.release()  # the server stops

    def _run_early(self, body: Callable[[], None]) -> None:
        self._early.submit(body).add_done_callback(lambda _: self._free_early.release())

    def plan_later(self, session: GatewaySession, requests: Sequence[StatementRequest], on_end: OnEnd) -> bytes:
        """Judge a statement, to be run by `poll`, and return the handle of its ticket."""
        with Leaving(on_end) as leaving:
            statement = leaving.watch(for_each(session.begin, requests))
            statement.plan()
        (ticket,) = _tickets(requests, (statement,))
        return self.tickets.put(session, ticket, ticket.size)

    def _keep(self, session: GatewaySession, tickets: Sequence[Ticket]) -> Sequence[bytes]:
        handles: list[bytes] = []
        try:
            for ticket in tickets:
                handles.append(self.tickets.put(session, ticket, ticket.size))
        except ResourcesError:
            for handle in handles:
                self.tickets.take(session, handle)
            tickets[0].cancel()
            raise
        return handles

    def poll(self, session: GatewaySession, handle: bytes, wait_secs: float) -> tuple[Ticket, float | None]:
        """Run a planned statement in the background; return its progress, or None when it can be fetched."""
        ticket = self.tickets.get(session, handle)
        if ticket.done:
            return ticket, None
        started = ticket.start()
        if started.ready.wait(wait_secs):
            started.check()
            return ticket, None
        progress = ticket.statement.progress()
        if not progress.tasks:
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
        with self._lock:
            self._running[handle] = session.identity.key, ticket
            self._count()
        try:
            with Leaving(on_end) as leaving:
                leaving.watch(ticket.statement)
                yield from _messages(ticket, options)
        finally:
            with self._lock:
                self._running.pop(handle, None)
                self._count()
            ticket.close()

    def prepare(self, session: GatewaySession, prepared: Prepared) -> bytes:
        return self.prepared.put(session, prepared, prepared.size)

    def bind(
        self,
        session: GatewaySession,
        handle: bytes,
        batches: Iterator[pa.RecordBatch],
        schema: pa.Schema,
        count: Callable[[int], object],
    ) -> None:
        """Bind rows of parameters to a prepared statement, all of them or none; `count` is told of their bytes."""
        prepared = self.prepared.get(session, handle)
        bound = prepared.rows_of(batches, schema, count)
        self._rebind(session, handle, prepared, bound)

    def _rebind(self, session: GatewaySession, handle: bytes, prepared: Prepared, bound: Bound | None) -> None:
        """Bind rows and count what the statement holds now; it loses its parameters when that is too much."""
        with prepared.lock:
            prepared.bound = bound
            try:
                self.prepared.resize(session, handle, prepared.size)
            except ResourcesError:
                prepared.bound = None
                self.prepared.resize(session, handle, prepared.size)
                raise

    def _use_up(
        self, session: GatewaySession, handle: bytes, prepared: Prepared, count: Callable[[int], object]
    ) -> Bound | None:
        """Return the rows that are bound, which count with the call that runs them from then on."""
        with prepared.lock:
            bound = prepared.bound
            if bound is not None:
                count(bound.size)
            prepared.bound = None
            with suppress(UserError):  # it was closed meanwhile
                self.prepared.resize(session, handle, prepared.size)
        return bound

    def describe(self, session: GatewaySession, request: StatementRequest, on_end: OnEnd) -> StatementDescription:
        with Leaving(on_end) as leaving:
            shape = leaving.watch(session.begin(request)).describe()
        return shape if shape.schema is None else replace(shape, schema=described(shape.schema))

    def _count(self) -> None:
        self._metrics.gauge("sqe_protocol_streams", len(self._running), {"protocol": PROTOCOL})

    def update(self, session: GatewaySession, request: StatementRequest, on_end: OnEnd) -> int:
        """Run a statement that changes something; return how many rows it changed.

        What counts no rows has changed none: told -1, which is "unknown", JDBC runs the statement again as a query.
        """
        with Leaving(on_end) as leaving:
            return _update(session, request, leaving)

    def update_prepared(
        self,
        session: GatewaySession,
        handle: bytes,
        ask: Callable[[str], StatementRequest],
        on_end: OnEnd,
        count: Callable[[int], object],
    ) -> int:
        """Run a prepared statement for each row of parameters; return how many rows changed in all.

        The rows are used up: sent without rows, the statement would otherwise write them again. `count` is told of
        their bytes, as in `bind`.
        """
        prepared = self.prepared.get(session, handle)
        bound = self._use_up(session, handle, prepared, count)
        # An INSERT of one row of VALUES writes all rows with one commit; others run once for each row.
        with Leaving(on_end) as leaving:
            if bound is not None and bound.row_count > 1:
                with leaving.watch(session.begin(ask(prepared.sql))) as together:
                    if together.start_with_rows(bound.batches):
                        return together.affected_rows or 0
            return sum(_update(session, request, leaving) for request in prepared.requests(ask, bound))

    def ingest(
        self,
        session: GatewaySession,
        request: IngestRequest,
        schema: pa.Schema,
        batches: ClientBatches,
        on_end: OnEnd,
    ) -> int:
        with Leaving(on_end) as leaving, leaving.watch(session.begin_ingest(request, schema, batches)) as statement:
            batches.wanted_by(statement)
            return statement.start().affected_rows or 0

    def cancel(self, session: GatewaySession, handle: bytes) -> bool:
        """End what a ticket stands for; False when there is no such statement of this user."""
        with self._lock:
            user, running = self._running.get(handle, (None, None))
        if running is not None and user == session.identity.key:
            running.statement.cancel()
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
        self.tickets.sweep()
        self.prepared.sweep()

    def close(self) -> None:
        self.tickets.close()
        self.prepared.close()
        self._early.shutdown(wait=False)


def _update(session: GatewaySession, request: StatementRequest, leaving: Leaving) -> int:
    with leaving.watch(session.begin(request)) as statement:
        statement.plan()
        if statement.schema is not None:
            raise UserError("This statement returns rows", code=ErrorCode.INVALID_ARGUMENTS, hint="send it as a query")
        leaving.check()
        return statement.start().affected_rows or 0


def _messages(ticket: Ticket, options: pa.ipc.IpcWriteOptions) -> Iterator[bytes]:
    batches, counts = ticket.run(), _Counts(ticket.statement)
    yield schema_message(ticket.schema, counts.told())
    done = not len(ticket.schema)
    for batch in batches:
        *most, last = pieces(batch)
        for piece in most:
            yield from batch_messages(piece, options, counts.told(piece))
        done = ticket.statement.state in _DONE
        yield from batch_messages(last, options, counts.told(last, done=done))
    if not done:
        # A batch of no rows: some clients cannot read a message of metadata alone.
        yield from batch_messages(pa.RecordBatch.from_pylist([], ticket.schema), options, counts.told(done=True))


class _Counts:
    """What comes with each message of a result: which statement it is of, and how much has come."""

    def __init__(self, statement: Statement) -> None:
        self._statement = statement
        self._began = time.monotonic()
        self._rows = self._bytes = 0

    def told(self, batch: pa.RecordBatch | None = None, *, done: bool = False) -> bytes:
        """Count a batch and return the counts; with `done` they are those of everything that came through here."""
        if batch is not None:
            self._rows += batch.num_rows
            self._bytes += pa.ipc.get_record_batch_size(batch)
        told: dict[str, object] = {
            "query_id": self._statement.query_id,
            "statement": self._statement.statement_kind,
            "rows": self._rows,
            "bytes": self._bytes,
            "elapsed_ms": int((time.monotonic() - self._began) * 1000),
        }
        if self._statement.warnings:
            told["warnings"] = self._statement.warnings
        return json.dumps(told | {"done": True} if done else told).encode()


def _tickets(requests: Sequence[StatementRequest], parts: Sequence[Statement]) -> Sequence[Ticket]:
    """Return a ticket for each part of a judged statement. They share what they hold, and count it together."""
    columns = parts[0].schema
    schema = described(columns) if columns is not None else _NO_COLUMNS
    given = sum(_bytes_of(value) for request in requests for value in _values_of(request))
    length = len(requests[0].sql)
    size = _PLAN_PER_BYTE * length + given + _PLAN_PER_BYTE_OF_COLUMNS * _bytes_of_columns(schema)
    small = length * (1 + given) <= _MOST_EARLY_BYTES and len(schema) <= _MOST_EARLY_COLUMNS
    return [Ticket(part, schema, size // len(parts), small_row=part.is_constant and small) for part in parts]


def _values_of(request: StatementRequest) -> Iterable[pa.Scalar[Any]]:
    return request.parameters.values() if isinstance(request.parameters, Mapping) else request.parameters


def _bytes_of_columns(schema: pa.Schema | None) -> int:
    return 0 if schema is None else int(schema.serialize().size)


def _bytes_of(value: Any) -> int:
    if isinstance(value, pa.DictionaryScalar):
        return int(value.dictionary.get_total_buffer_size())  # it keeps all of it
    if isinstance(value, pa.ExtensionScalar):
        return _bytes_of(value.value)
    if isinstance(value, pa.StructScalar):
        return sum(_bytes_of(value[number]) for number in range(len(value)))
    if isinstance(value, pa.ListScalar):  # of any kind
        return value.values.get_total_buffer_size() if value.is_valid else 0
    if isinstance(value, pa.BinaryScalar | pa.StringScalar):
        return value.as_buffer().size if value.is_valid else 0
    return _SMALL_VALUE_BYTES
