"""A statement's result as it arrives from the engine: frames, each a letter, a length and a body."""

from __future__ import annotations

import select
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from enum import Enum
from typing import Protocol

import pyarrow as pa

from sqe_core.engine.port import Progress, ResultStream
from sqe_core.engine.spark.context import engine_lost
from sqe_core.spi.errors import EngineLostError, QueryCancelledError
from sqe_core.spi.messages import keep_message

_HEADER = struct.Struct(">cq")
_WINDOW = struct.Struct(">qq")
# The last frame comes so soon after the last batch. While rows come it is no delay: the next ones are here before.
_MOMENT_MILLIS = 20

# The letters of StreamReader.java.
WINDOW = b"W"
BATCH = b"B"
END = b"E"
FAILURE = b"F"
CANCELLED = b"C"


class FrameSource(Protocol):
    """Where frames come from."""

    def read(self, size: int) -> pa.Buffer:
        """Return exactly `size` bytes, or raise EngineLostError."""

    def ready(self) -> bool:
        """Whether something can be read now, or in a moment."""

    def close(self) -> None:
        """Free it; a `read` in another thread ends."""


class InlineFrames:
    """A small result that came with the answer itself."""

    def __init__(self, frames: pa.Buffer) -> None:
        self._frames = frames
        self._position = 0

    def read(self, size: int) -> pa.Buffer:
        if self._position + size > self._frames.size:
            raise EngineLostError("The engine sent an incomplete result")
        part = self._frames.slice(self._position, size)
        self._position += size
        return part

    def ready(self) -> bool:
        return True

    def close(self) -> None:
        """Nothing is open."""


class SocketFrames:
    """A result that is fetched; hanging up cancels the statement."""

    def __init__(self, address: str, credentials: bytes) -> None:
        kind, _, place = address.partition(":")
        try:
            if kind == "unix":
                self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                self._socket.connect(place)
            else:
                self._socket = socket.create_connection(("127.0.0.1", int(place)))
            self._socket.sendall(credentials)
        except OSError as error:
            raise engine_lost() from error

    def read(self, size: int) -> pa.Buffer:
        # Straight into the memory that the Arrow batch then refers to.
        buffer = pa.allocate_buffer(size)
        view = memoryview(buffer)
        done = 0
        try:
            while done < size:
                count = self._socket.recv_into(view[done:], 0, socket.MSG_WAITALL)
                if count == 0:
                    raise engine_lost()
                done += count
        except OSError as error:
            raise engine_lost() from error
        return buffer

    def ready(self) -> bool:
        poll = select.poll()
        try:
            poll.register(self._socket, select.POLLIN)
        except ValueError:
            return True  # closed, as whoever reads will find
        return bool(poll.poll(_MOMENT_MILLIS))

    def close(self) -> None:
        try:
            # Unlike close, this also wakes a thread that waits in `read`.
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._socket.close()


def parse_progress(counts: str) -> Progress | None:
    """Read what `Exec.progress` and the last frame of a result say; None when the statement is unknown."""
    if not counts:
        return None
    stages, stages_done, tasks, tasks_done, tasks_active, rows, size = map(int, counts.split(","))
    return Progress(
        stages=stages,
        stages_done=stages_done,
        tasks=tasks,
        tasks_done=tasks_done,
        tasks_active=max(0, tasks_active),
        rows=rows,
        bytes=size,
    )


class _State(Enum):
    OPEN = "open"
    CANCELLED = "cancelled"
    CLOSED = "closed"  # by its reader, or at its end


class SparkResultStream(ResultStream):
    """The batches of one statement. For one reader; `cancel`, `close` and `progress` may be called from any thread."""

    def __init__(
        self,
        *,
        schema: pa.Schema,
        frames: FrameSource,
        affected_rows: int | None,
        cancel_statement: Callable[[], None],
        read_progress: Callable[[], Progress | None],
        describe_failure: Callable[[bytes], Exception],
    ) -> None:
        self._schema = schema
        self._frames = frames
        self._affected_rows = affected_rows
        self._cancel_statement = cancel_statement
        self._read_progress = read_progress
        self._describe_failure = describe_failure
        self._plain = not any(pa.types.is_nested(field.type) for field in schema)
        self._lock = threading.Lock()
        self._state = _State.OPEN
        self._skip = 0
        self._left = -1
        self._progress = Progress()
        self._batches = self._read()

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    @property
    def affected_rows(self) -> int | None:
        return self._affected_rows

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self._batches

    def __enter__(self) -> SparkResultStream:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _read(self) -> Iterator[pa.RecordBatch]:
        try:
            header = None
            while True:
                kind, size = header or self._read_header()
                header = None
                body = self._read_body(size)
                if kind == BATCH:
                    message = pa.ipc.read_message(body)
                    whole = pa.ipc.read_record_batch(message, self._schema)
                    batch = self._cut(whole)
                    if batch is whole and self._plain:
                        keep_message(batch, message)
                    if self._frames.ready():
                        header = self._read_header()
                        self.is_complete = header[0] == END
                    if batch.num_rows:
                        yield batch
                elif kind == END:
                    self._progress = parse_progress(body.to_pybytes().decode()) or self._progress
                    return
                elif kind == WINDOW:
                    self._skip, self._left = _WINDOW.unpack(body)
                elif kind == CANCELLED:
                    raise QueryCancelledError("The query was cancelled")
                else:
                    raise self._describe_failure(body.to_pybytes())
        finally:
            # No call into the engine: a reader that just drops the stream brings the collector here, in any thread.
            # Hanging up is enough, the engine cancels what still runs.
            self._hang_up(_State.CLOSED)

    def _read_header(self) -> tuple[bytes, int]:
        kind, size = _HEADER.unpack(self._read_body(_HEADER.size))
        return kind, size

    def _read_body(self, size: int) -> pa.Buffer:
        try:
            body = self._frames.read(size)
        except EngineLostError:
            self._require_open()
            raise
        self._require_open()
        return body

    def _require_open(self) -> None:
        if self._state is _State.CANCELLED:
            raise QueryCancelledError("The query was cancelled")
        if self._state is _State.CLOSED:
            # An end that looked like the result's own would hide that rows are missing.
            raise QueryCancelledError("The result was closed before it was read")

    def _cut(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Leave out what lies before an OFFSET or behind a LIMIT."""
        skipped = min(self._skip, batch.num_rows)
        self._skip -= skipped
        count = batch.num_rows - skipped
        if self._left >= 0:
            count = min(count, self._left)
            self._left -= count
        return batch if count == batch.num_rows else batch.slice(skipped, count)

    def progress(self) -> Progress:
        if self._state is _State.OPEN:
            self._progress = self._read_progress() or self._progress
        return self._progress

    def cancel(self) -> None:
        self._end(_State.CANCELLED)

    def close(self) -> None:
        self._end(_State.CLOSED)

    def _end(self, state: _State) -> None:
        if self._hang_up(state):
            # A result may outlive the engine that it comes from; who has gone needs no cancelling.
            with suppress(EngineLostError):
                self._cancel_statement()

    def _hang_up(self, state: _State) -> bool:
        with self._lock:
            if self._state is not _State.OPEN:
                return False
            self._state = state
        self._frames.close()
        return True
