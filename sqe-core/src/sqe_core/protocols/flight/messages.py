"""Arrow batches as the messages of Flight.

`FlightData` is written by hand: a batch of some megabytes is copied once, not three times. Its fields are
data_header (2), app_metadata (3) and data_body (1000).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import Message

from sqe_core.spi.messages import message_of

_HEADER, _APP_METADATA = b"\x12", b"\x1a"
_BODY = b"\xc2\x3e"  # field 1000, bytes
_UNCOMPRESSED = pa.ipc.IpcWriteOptions()
# ADBC's Go driver takes messages of 16 MiB, unless it is told to take bigger ones.
_MOST_MESSAGE_BYTES = 8 << 20


def schema_bytes(schema: pa.Schema) -> bytes:
    """Return a schema as an encapsulated IPC message, as FlightInfo and results of actions hold it."""
    return bytes(schema.serialize())


def packed(message: Message) -> bytes:
    """Return a message of Flight SQL as tickets, commands and actions hold it: with its type."""
    holder = AnyMessage()
    holder.Pack(message)
    return holder.SerializeToString()


def schema_message(schema: pa.Schema, app_metadata: bytes = b"") -> bytes:
    return _encode(pa.ipc.read_message(schema.serialize()), app_metadata)


def pieces(batch: pa.RecordBatch) -> Sequence[pa.RecordBatch]:
    """Cut a batch into pieces that clients take; one that is small enough is its only piece."""
    rows = batch.num_rows
    if rows < 2 or pa.ipc.get_record_batch_size(batch) <= _MOST_MESSAGE_BYTES:
        return [batch]
    return [*pieces(batch.slice(0, rows // 2)), *pieces(batch.slice(rows // 2))]


def batch_messages(
    batch: pa.RecordBatch, options: pa.ipc.IpcWriteOptions = _UNCOMPRESSED, app_metadata: bytes = b""
) -> Iterator[bytes]:
    """Yield the messages of a batch: its dictionaries if it has some, then its rows."""
    if options.compression is None and not any(_is_dictionary(field.type) for field in batch.schema):
        yield _encode(message_of(batch) or pa.ipc.read_message(batch.serialize()), app_metadata)
        return
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    reader = pa.ipc.MessageReader.open_stream(sink.getvalue())
    reader.read_next_message()  # the schema
    for message in reader:
        yield _encode(message, app_metadata if message.type == "record batch" else b"")


def _encode(message: pa.ipc.Message, app_metadata: bytes) -> bytes:
    header, body = message.metadata, message.body
    pieces: list[bytes | pa.Buffer] = [_HEADER, _varint(header.size), header]
    if app_metadata:
        pieces += [_APP_METADATA, _varint(len(app_metadata)), app_metadata]
    if body is not None and body.size:
        pieces += [_BODY, _varint(body.size), body]
    return b"".join(pieces)


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
