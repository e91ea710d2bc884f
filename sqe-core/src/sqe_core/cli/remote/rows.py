"""The messages of a DoGet as record batches, one at a time in memory."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import TypeVar

import pyarrow as pa

from sqe_core.protocols.flight.wire import flight_pb2 as flight
from sqe_core.spi.errors import InternalError, SqeError

ReadT = TypeVar("ReadT")

_CONTINUATION = b"\xff\xff\xff\xff"


class FlightRows:
    """The schema and the batches of one answer.

    Args:
        messages: the messages; it raises `SqeError`.
        told: hears the `app_metadata` of each message that has some.
    """

    def __init__(self, messages: Iterator[flight.FlightData], told: Callable[[bytes], None]) -> None:
        self._bytes = _IpcBytes(messages, told)
        self._reader = self._read(lambda: pa.ipc.open_stream(pa.PythonFile(self._bytes, mode="r")))

    @property
    def schema(self) -> pa.Schema:
        return self._reader.schema

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        while True:
            try:
                batch = self._read(self._reader.read_next_batch)
            except StopIteration:
                return
            yield batch

    def _read(self, read: Callable[[], ReadT]) -> ReadT:
        try:
            return read()
        except (pa.ArrowException, OSError) as error:
            # Arrow may wrap what went wrong below it.
            failure = self._bytes.failure
            if failure is not None:
                raise failure from None
            raise InternalError("The server's answer cannot be read: it is no stream of Arrow batches") from error


class _IpcBytes(io.RawIOBase):
    """The messages as the byte stream that Arrow's reader takes."""

    def __init__(self, messages: Iterator[flight.FlightData], told: Callable[[bytes], None]) -> None:
        self._messages = messages
        self._told = told
        self._pending = memoryview(b"")
        self.failure: SqeError | None = None

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        assert size is not None
        assert size >= 0
        pieces: list[memoryview] = []
        while size > 0 and (self._pending or self._next()):
            piece = self._pending[:size]
            pieces.append(piece)
            self._pending = self._pending[len(piece) :]
            size -= len(piece)
        return b"".join(pieces)

    def _next(self) -> bool:
        """Take the next message that has data; False at the end."""
        while True:
            try:
                message = next(self._messages, None)
            except SqeError as error:
                self.failure = error
                raise
            if message is None:
                return False
            if message.app_metadata:
                self._told(message.app_metadata)
            if message.data_header:
                header = message.data_header + b"\0" * (-len(message.data_header) % 8)
                body = message.data_body
                start = _CONTINUATION + len(header).to_bytes(4, "little") + header
                self._pending = memoryview(b"".join((start, body, b"\0" * (-len(body) % 8))))
                return True
