"""A batch is sent on in the message that it came in, and that is forgotten with it."""

from __future__ import annotations

import gc

import pyarrow as pa

from sqe_core.protocols.flight.messages import batch_messages
from sqe_core.protocols.flight.wire import flight_pb2 as flight
from sqe_core.spi import messages
from sqe_core.spi.messages import keep_message, message_of

ROWS = pa.record_batch({"n": pa.array(range(10), pa.int64()), "text": ["x"] * 10})


def arrived() -> pa.RecordBatch:
    message = pa.ipc.read_message(ROWS.serialize())
    batch = pa.ipc.read_record_batch(message, ROWS.schema)
    keep_message(batch, message)
    return batch


def test_the_message_of_a_batch_is_known_as_long_as_the_batch() -> None:
    before = len(messages._MESSAGES)
    batch = arrived()
    kept = message_of(batch)
    assert kept is not None
    assert pa.ipc.read_record_batch(kept, ROWS.schema).equals(ROWS)
    del batch
    gc.collect()
    assert len(messages._MESSAGES) == before


def test_what_was_made_of_a_batch_is_another() -> None:
    batch = arrived()
    assert message_of(batch.slice(2, 3)) is None
    assert message_of(batch.rename_columns(["a", "b"])) is None
    assert message_of(ROWS) is None


def test_flight_sends_it_as_it_came() -> None:
    batch = arrived()
    kept = message_of(batch)
    assert kept is not None
    (sent,) = batch_messages(batch, app_metadata=b"told")
    data = flight.FlightData.FromString(sent)
    assert data.data_header == kept.metadata.to_pybytes()
    assert data.data_body == kept.body.to_pybytes()
    assert data.app_metadata == b"told"


def test_flight_compresses_it_where_that_is_wanted() -> None:
    batch = arrived()
    (sent,) = batch_messages(batch, pa.ipc.IpcWriteOptions(compression="zstd"))
    data = flight.FlightData.FromString(sent)
    kept = message_of(batch)
    assert kept is not None
    assert data.data_header != kept.metadata.to_pybytes()
