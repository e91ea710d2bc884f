"""What clients send: single requests and streams of Arrow messages, read after login and bounded (LIM-2, FLT-7)."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from google.protobuf.message import DecodeError

from sqe_core.protocols.flight.message_bounds import MessageBounds
from sqe_core.protocols.flight.wire import flight_pb2 as flight
from sqe_core.spi.errors import ErrorCode, ResourcesError, UserError

_CONTINUATION = b"\xff\xff\xff\xff"
# A statement's text is bounded by the core; this leaves room for what is around it.
_MOST_REQUEST_BYTES = 4 << 20


def read_request(messages: Iterator[bytes], kind: Any) -> Any:
    """Return the one message of a call."""
    data = next(messages, None)
    if data is None:
        raise UserError("The call has no message", code=ErrorCode.INVALID_ARGUMENTS)
    if len(data) > _MOST_REQUEST_BYTES:
        raise ResourcesError(f"The request has {len(data)} bytes; {_MOST_REQUEST_BYTES} are allowed")
    return parsed(data, kind)


def parsed(data: bytes, kind: Any) -> Any:
    """Return bytes as a message of Flight."""
    try:
        return kind.FromString(data)
    except DecodeError:
        raise UserError(f"The message is no {kind.DESCRIPTOR.name}", code=ErrorCode.INVALID_ARGUMENTS) from None


class PutStream:
    """What a client puts: the descriptor of the first message, then a schema and batches.

    Args:
        messages: the messages of the call.
    """

    def __init__(self, messages: Iterator[bytes]) -> None:
        data = (parsed(message, flight.FlightData) for message in messages)
        first = next(data, None)
        if first is None or not first.HasField("flight_descriptor"):
            raise _malformed("the first message has no descriptor")
        self.descriptor = first.flight_descriptor
        self._bytes = _EncapsulatedMessages(first, data)
        self._reader: pa.ipc.RecordBatchStreamReader | None = None

    @property
    def has_data(self) -> bool:
        """Whether a schema follows; a client without parameters sends none."""
        return self._bytes.has_data

    @property
    def schema(self) -> pa.Schema:
        """The columns of the batches."""
        return self._open().schema

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        if not self.has_data:
            return
        reader = self._open()
        while True:
            try:
                batch = self._read(reader.read_next_batch, "a batch cannot be read")
            except StopIteration:
                return
            yield batch

    def _open(self) -> pa.ipc.RecordBatchStreamReader:
        if self._reader is None:
            source = pa.PythonFile(self._bytes, mode="r")
            self._reader = self._read(lambda: pa.ipc.open_stream(source), "the schema cannot be read")
        return self._reader

    def _read(self, read: Callable[[], Any], fault: str) -> Any:
        try:
            return read()
        except (pa.ArrowException, OSError) as error:
            # Arrow wraps what the stream itself raised.
            if self._bytes.error is not None:
                raise self._bytes.error from None
            raise _malformed(fault) from error


class _EncapsulatedMessages(io.RawIOBase):
    """The messages of a call as the byte stream that Arrow's reader takes; a message at a time is in memory."""

    def __init__(self, first: flight.FlightData, messages: Iterator[flight.FlightData]) -> None:
        self._first: flight.FlightData | None = first
        self._messages = messages
        self._bounds = MessageBounds()
        self._pending = memoryview(b"")
        self._ended = False
        self.error: Exception | None = None

    @property
    def has_data(self) -> bool:
        if not self._pending:
            self._pending = self._next()
        return bool(self._pending)

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or size < 0:
            return b"".join(iter(lambda: self.read(1 << 20), b""))
        pieces: list[bytes] = []
        while size > 0:
            if not self._pending:
                self._pending = self._next()
                if not self._pending:
                    break
            piece = self._pending[:size]
            pieces.append(bytes(piece))
            self._pending = self._pending[len(piece) :]
            size -= len(piece)
        return b"".join(pieces)

    def _next(self) -> memoryview:
        """Return the next message that has data, or nothing at the end."""
        try:
            while not self._ended:
                message, self._first = self._first or next(self._messages, None), None
                if message is None:
                    self._ended = True
                elif message.data_header:
                    return self._encapsulated(message)
        except Exception as error:
            self._ended, self.error = True, error
            raise
        return memoryview(b"")

    def _encapsulated(self, message: flight.FlightData) -> memoryview:
        length = self._bounds.check(message.data_header, message.data_body)
        header = message.data_header + b"\0" * (-len(message.data_header) % 8)
        body = message.data_body[:length].ljust(length, b"\0")
        return memoryview(_CONTINUATION + len(header).to_bytes(4, "little") + header + body)


def _malformed(what: str) -> UserError:
    return UserError(f"The stream of the client is malformed: {what}", code=ErrorCode.INVALID_ARGUMENTS)
