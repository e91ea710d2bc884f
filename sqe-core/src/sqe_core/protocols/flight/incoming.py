"""What clients send: single requests and streams of Arrow messages, read after login and bounded (LIM-2, FLT-7)."""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from google.protobuf.message import DecodeError

from sqe_core.protocols.flight.header_bounds import HeaderLimits, malformed
from sqe_core.protocols.flight.incoming_bytes import ByteBudget, HeldBytes
from sqe_core.protocols.flight.message_bounds import MessageBounds
from sqe_core.protocols.flight.wire import flight_pb2 as flight
from sqe_core.spi.errors import ErrorCode, ResourcesError, UserError

_CONTINUATION = b"\xff\xff\xff\xff"
# A statement's text is bounded by the core; this leaves room for what is around it.
_MOST_REQUEST_BYTES = 4 << 20
# As many digits as Arrow's widest decimal has.
_MOST_SCALE = 76
# Messages that say something about rows are few; a client that only keeps a call alive is not waited for.
_MOST_EMPTY = 100


def read_request(messages: Iterator[bytes], kind: Any) -> Any:
    data = next(messages, None)
    if data is None:
        raise UserError("The call has no message", code=ErrorCode.INVALID_ARGUMENTS)
    size = len(data)
    if size > _MOST_REQUEST_BYTES:
        data = None  # the error would keep it while the client is told
        raise ResourcesError(f"The request has {size} bytes; {_MOST_REQUEST_BYTES} are allowed")
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
        held: counts what is in memory of them; each message is counted already when it comes.
    """

    def __init__(self, messages: Iterator[bytes], held: HeldBytes | None = None) -> None:
        # No generator, which would keep the bytes of a message until the next one comes.
        data = map(_flight_data, messages)
        first = next(data, None)
        if first is None:
            # ADBC's driver opens the call with its first batch.
            raise UserError(
                "No rows were sent, and no columns: nothing was done",
                code=ErrorCode.INVALID_ARGUMENTS,
                hint="send at least one batch, which may have no rows; a table or frame without rows has none",
            )
        if not first.HasField("flight_descriptor"):
            raise malformed("the first message has no descriptor")
        size = first.flight_descriptor.ByteSize()
        if size > _MOST_REQUEST_BYTES:
            raise ResourcesError(f"The descriptor has {size} bytes; {_MOST_REQUEST_BYTES} are allowed")
        # A copy: as a part of the message it would keep all of it.
        self.descriptor = flight.FlightDescriptor.FromString(first.flight_descriptor.SerializeToString())
        self._bytes = _EncapsulatedMessages(first, data, held or ByteBudget().of(("", "")))
        self._reader: pa.ipc.RecordBatchStreamReader | None = None

    def bound(self, most_bytes: int) -> None:
        """Take no message of more rows than that, and no dictionaries; before anything else is asked for."""
        self._bytes.bounds = MessageBounds(
            message_bytes=most_bytes + HeaderLimits().header_bytes,
            expanded_bytes=most_bytes,
            dictionary_bytes=most_bytes,
        )

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
            reader = self._read(lambda: pa.ipc.open_stream(source), "the schema cannot be read")
            _ensure_known(reader.schema)
            self._reader = reader
        return self._reader

    def _read(self, read: Callable[[], Any], fault: str) -> Any:
        try:
            return read()
        except (pa.ArrowException, OSError) as error:
            # Arrow wraps what the stream itself raised.
            raised = self._bytes.let_go()
            if raised is not None:
                raise raised from None
            raise malformed(fault) from error
        except BaseException:
            self._bytes.let_go()
            raise


class _EncapsulatedMessages(io.RawIOBase):
    """The messages of a call as the byte stream that Arrow's reader takes; a message at a time is in memory."""

    def __init__(self, first: flight.FlightData, messages: Iterator[flight.FlightData], held: HeldBytes) -> None:
        self._first: flight.FlightData | None = first
        self._messages = messages
        self._held = held
        self.bounds = MessageBounds()
        self._pending: deque[bytes | memoryview] = deque()
        self._ended = False
        self.error: Exception | None = None

    def let_go(self) -> Exception | None:
        """Return what was raised to Arrow's reader, and keep it no longer.

        It knows the frames that it came through, with the last batch in them; Arrow's reader has hold of this object,
        and the garbage collector cannot see that.
        """
        error, self.error = self.error, None
        return error

    @property
    def has_data(self) -> bool:
        if not self._pending:
            self._next()
        return bool(self._pending)

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or size < 0:
            return b"".join(iter(lambda: self.read(1 << 20), b""))
        pieces: list[bytes | memoryview] = []
        try:
            while size > 0 and self.has_data:
                piece = self._pending.popleft()
                if len(piece) > size:
                    self._pending.appendleft(memoryview(piece)[size:])
                    piece = memoryview(piece)[:size]
                pieces.append(piece)
                size -= len(piece)
        except Exception as error:
            self.error = error
            raise
        # Arrow asks for a whole body, which is then the client's own bytes and no copy.
        return b"".join(pieces)

    def _next(self) -> None:
        """Take the next message that has data; at the end there is none."""
        try:
            for _ in range(_MOST_EMPTY):
                if self._ended:
                    return
                message, self._first = self._first or next(self._messages, None), None
                if message is None:
                    self._ended = True
                elif message.data_header:
                    self._pending.extend(self._encapsulated(message))
                    return
            raise malformed("it has messages without data only")
        except Exception:
            self._ended = True
            raise

    def _encapsulated(self, message: flight.FlightData) -> Iterator[bytes]:
        header, body = message.data_header, message.data_body
        checked = self.bounds.check(header, body)
        self._held.message(len(header) + max(len(body), checked.expanded_bytes))
        self._held.dictionaries(checked.dictionary_bytes)
        header += b"\0" * (-len(header) % 8)
        yield _CONTINUATION + len(header).to_bytes(4, "little") + header
        if checked.body_bytes:
            yield body[: checked.body_bytes].ljust(checked.body_bytes, b"\0")


def _ensure_known(schema: pa.Schema) -> None:
    """Refuse what pyarrow reads and then fails at, wherever it is looked at first."""
    for field in schema:
        try:
            _look_at(field)
        except UnicodeDecodeError:
            raise malformed("a column's name or time zone is no UTF-8") from None


def _look_at(field: pa.Field) -> None:
    _ = field.name
    _look_at_type(field.type)


def _look_at_type(type: pa.DataType) -> None:
    # These two have no class in pyarrow; Arrow for Java has both.
    if type.id in (pa.lib.Type_INTERVAL_MONTHS, pa.lib.Type_INTERVAL_DAY_TIME):
        raise UserError(
            f"Arrow's type {type} is not supported",
            code=ErrorCode.INVALID_ARGUMENTS,
            hint="send intervals as month_day_nano_interval or duration",
        )
    if pa.types.is_decimal(type) and abs(type.scale) > _MOST_SCALE:
        raise malformed(f"a decimal has the scale {type.scale}")
    if pa.types.is_timestamp(type):
        _ = type.tz
    if isinstance(type, pa.BaseExtensionType):
        _look_at_type(type.storage_type)
    if pa.types.is_dictionary(type):
        _look_at_type(type.value_type)
    for number in range(type.num_fields):
        _look_at(type.field(number))


def _flight_data(message: bytes) -> flight.FlightData:
    data: flight.FlightData = parsed(message, flight.FlightData)
    return data
