"""Arrow batches as the messages of Flight, and back.

`FlightData` is written by hand: a batch of some megabytes is copied once, not three times. Its fields are
data_header (2), app_metadata (3) and data_body (1000).
"""

from __future__ import annotations

import io
from collections.abc import Iterator

import pyarrow as pa

from sqe_core.protocols.flight.wire import flight_pb2 as flight
from sqe_core.spi.errors import ErrorCode, UserError

_HEADER, _APP_METADATA = b"\x12", b"\x1a"
_BODY = b"\xc2\x3e"  # field 1000, bytes
_CONTINUATION = b"\xff\xff\xff\xff"
_UNCOMPRESSED = pa.ipc.IpcWriteOptions()


def schema_bytes(schema: pa.Schema) -> bytes:
    """Return a schema as an encapsulated IPC message, as FlightInfo and results of actions hold it."""
    return bytes(schema.serialize())


def schema_message(schema: pa.Schema, app_metadata: bytes = b"") -> bytes:
    """Return the first message of a stream."""
    return _encode(pa.ipc.read_message(schema.serialize()), app_metadata)


def batch_messages(
    batch: pa.RecordBatch, options: pa.ipc.IpcWriteOptions = _UNCOMPRESSED, app_metadata: bytes = b""
) -> Iterator[bytes]:
    """Yield the messages of a batch: its dictionaries if it has some, then its rows."""
    if options.compression is None and not _has_dictionaries(batch.schema):
        yield _encode(pa.ipc.read_message(batch.serialize()), app_metadata)
        return
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    reader = pa.ipc.MessageReader.open_stream(sink.getvalue())
    reader.read_next_message()  # the schema
    for message in reader:
        yield _encode(message, app_metadata if message.type == "record batch" else b"")


def metadata_message(app_metadata: bytes) -> bytes:
    """Return a message without data."""
    return b"".join((_APP_METADATA, _varint(len(app_metadata)), app_metadata))


def _encode(message: pa.ipc.Message, app_metadata: bytes) -> bytes:
    header, body = message.metadata, message.body
    pieces: list[bytes | pa.Buffer] = [_HEADER, _varint(header.size), header]
    if app_metadata:
        pieces += [_APP_METADATA, _varint(len(app_metadata)), app_metadata]
    if body is not None and body.size:
        pieces += [_BODY, _varint(body.size), body]
    return b"".join(pieces)


def _has_dictionaries(schema: pa.Schema) -> bool:
    return any(_is_dictionary(field.type) for field in schema)


def _is_dictionary(type: pa.DataType) -> bool:
    if pa.types.is_dictionary(type):
        return True
    return any(_is_dictionary(type.field(number).type) for number in range(type.num_fields))


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


class PutStream:
    """What a client puts: the descriptor of the first message, then a schema and batches.

    Args:
        messages: the messages of the call.
    """

    def __init__(self, messages: Iterator[flight.FlightData]) -> None:
        first = next(messages, None)
        if first is None or not first.HasField("flight_descriptor"):
            raise _malformed("the first message has no descriptor")
        self.descriptor = first.flight_descriptor
        self._bytes = _EncapsulatedMessages(first, messages)
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
                batch = reader.read_next_batch()
            except StopIteration:
                return
            except (pa.ArrowException, OSError) as error:
                raise _malformed("a batch cannot be read") from error
            yield batch

    def _open(self) -> pa.ipc.RecordBatchStreamReader:
        if self._reader is None:
            try:
                self._reader = pa.ipc.open_stream(pa.PythonFile(self._bytes, mode="r"))
            except (pa.ArrowException, OSError) as error:
                raise _malformed("the schema cannot be read") from error
        return self._reader


class _EncapsulatedMessages(io.RawIOBase):
    """The messages of a call as the byte stream that Arrow's reader takes; a message at a time is in memory."""

    def __init__(self, first: flight.FlightData, messages: Iterator[flight.FlightData]) -> None:
        self._first: flight.FlightData | None = first
        self._messages = messages
        self._pending = memoryview(b"")
        self._ended = False

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
        while not self._ended:
            message, self._first = self._first or next(self._messages, None), None
            if message is None:
                self._ended = True
            elif message.data_header:
                header = message.data_header + b"\0" * (-len(message.data_header) % 8)
                body = message.data_body + b"\0" * (-len(message.data_body) % 8)
                return memoryview(_CONTINUATION + len(header).to_bytes(4, "little") + header + body)
        return memoryview(b"")


def _malformed(what: str) -> UserError:
    return UserError(f"The stream of the client is malformed: {what}", code=ErrorCode.INVALID_ARGUMENTS)
