"""How the frames of a result become batches, and what every kind of end looks like to the reader."""

from __future__ import annotations

import gc
import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pytest

from sqe_core.engine.port import EngineExecutionError, EngineFailure, Progress
from sqe_core.engine.spark.stream import FrameSource, InlineFrames, SocketFrames, SparkResultStream, parse_progress
from sqe_core.spi.errors import EngineLostError, InternalError, QueryCancelledError

SCHEMA = pa.schema([pa.field("id", pa.int64()), pa.field("name", pa.string())])


def batch_of(*ids: int) -> pa.RecordBatch:
    return pa.record_batch([list(ids), [f"n{i}" for i in ids]], schema=SCHEMA)


def frame(kind: bytes, body: bytes = b"") -> bytes:
    return struct.pack(">cq", kind, len(body)) + body


def batch_frame(*ids: int) -> bytes:
    return frame(b"B", batch_of(*ids).serialize().to_pybytes())


END = frame(b"E", b"2,2,9,9,0,4,400")


@dataclass
class Engine:
    """The engine's side of a stream, by hand."""

    cancelled: int = 0
    progress: str = ""

    def cancel(self) -> None:
        self.cancelled += 1


def open_stream(data: bytes, engine: Engine | None = None) -> SparkResultStream:
    engine = engine or Engine()
    return SparkResultStream(
        schema=SCHEMA,
        frames=InlineFrames(pa.py_buffer(data)),
        affected_rows=None,
        cancel_statement=engine.cancel,
        read_progress=lambda: parse_progress(engine.progress),
        describe_failure=lambda body: EngineExecutionError(
            EngineFailure(condition=body.decode(), sql_state=None, parameters={})
        ),
    )


def ids(stream: SparkResultStream) -> list[int]:
    return [row for batch in stream for row in batch.column(0).to_pylist()]


def test_batches_arrive_in_order_and_the_end_closes() -> None:
    engine = Engine()
    stream = open_stream(batch_frame(1, 2) + batch_frame(3) + END, engine)
    assert ids(stream) == [1, 2, 3]
    stream.cancel()
    stream.close()
    assert engine.cancelled == 0


def test_the_last_batch_is_known_to_be_the_last_one() -> None:
    stream = open_stream(batch_frame(1) + batch_frame(2) + END)
    assert [stream.is_complete for _ in stream] == [False, True]
    broken = open_stream(batch_frame(1) + frame(b"F", b"DIVIDE_BY_ZERO"))
    next(iter(broken))
    assert not broken.is_complete


def test_a_batch_waits_a_moment_for_the_end_and_no_longer() -> None:
    near, far = socket.socketpair()
    with near, far:
        frames = object.__new__(SocketFrames)
        frames._socket = near
        stream = stream_over(frames, lambda: None)
        far.sendall(batch_frame(1))
        reader = iter(stream)
        assert next(reader).num_rows == 1
        assert not stream.is_complete
        far.sendall(batch_frame(2))
        threading.Timer(0.005, far.sendall, [END]).start()
        next(reader)
        assert stream.is_complete


def test_an_empty_result_keeps_its_schema() -> None:
    stream = open_stream(END)
    assert pa.Table.from_batches(list(stream), stream.schema).schema == SCHEMA


@pytest.mark.parametrize("cut", [0, 5, 9, 40])
def test_a_result_that_stops_early_is_never_a_complete_one(cut: int) -> None:
    data = batch_frame(1) + batch_frame(2)
    stream = open_stream(data[: len(data) - cut])
    with pytest.raises(EngineLostError, match="engine"):
        ids(stream)


def test_a_failure_in_the_middle_comes_after_the_batches_before_it() -> None:
    stream = open_stream(batch_frame(1) + frame(b"F", b"DIVIDE_BY_ZERO"))
    reader = iter(stream)
    assert next(reader).num_rows == 1
    with pytest.raises(EngineExecutionError) as raised:
        next(reader)
    assert raised.value.failure.condition == "DIVIDE_BY_ZERO"


def test_a_cancel_in_the_engine_says_so() -> None:
    with pytest.raises(QueryCancelledError):
        ids(open_stream(batch_frame(1) + frame(b"C")))


@pytest.mark.parametrize(
    ("skip", "limit", "expected"),
    [
        (0, -1, [1, 2, 3, 4, 5, 6]),
        (0, 0, []),
        (1, 2, [2, 3]),
        (2, -1, [3, 4, 5, 6]),
        (3, 2, [4, 5]),
        (4, 99, [5, 6]),
        (9, 9, []),
    ],
)
def test_limit_and_offset_cut_batches(skip: int, limit: int, expected: list[int]) -> None:
    window = frame(b"W", struct.pack(">qq", skip, limit))
    assert ids(open_stream(window + batch_frame(1, 2, 3) + batch_frame(4) + batch_frame(5, 6) + END)) == expected


def test_cancel_ends_the_iterator_and_the_statement_once() -> None:
    engine = Engine()
    stream = open_stream(batch_frame(1) + batch_frame(2) + END, engine)
    reader = iter(stream)
    next(reader)
    stream.cancel()
    stream.cancel()
    stream.close()
    with pytest.raises(QueryCancelledError):
        next(reader)
    assert engine.cancelled == 1


def test_close_in_the_middle_does_not_look_like_an_end() -> None:
    engine = Engine()
    with open_stream(batch_frame(1) + batch_frame(2) + END, engine) as stream:
        reader = iter(stream)
        next(reader)
    assert engine.cancelled == 1
    with pytest.raises(QueryCancelledError):
        next(reader)


class BlockedFrames:
    """A source that waits until somebody closes it."""

    def ready(self) -> bool:
        return False

    def __init__(self) -> None:
        self.waiting = threading.Event()
        self.closed = threading.Event()

    def read(self, size: int) -> pa.Buffer:
        self.waiting.set()
        assert self.closed.wait(10)
        raise EngineLostError("closed")

    def close(self) -> None:
        self.closed.set()


def stream_over(frames: FrameSource, cancel: Callable[[], None]) -> SparkResultStream:
    return SparkResultStream(
        schema=SCHEMA,
        frames=frames,
        affected_rows=None,
        cancel_statement=cancel,
        read_progress=lambda: None,
        describe_failure=lambda body: AssertionError(body),
    )


def test_cancel_from_another_thread_wakes_the_reader() -> None:
    frames = BlockedFrames()
    engine = Engine()
    stream = stream_over(frames, engine.cancel)
    errors: list[BaseException] = []

    def read() -> None:
        try:
            ids(stream)
        except QueryCancelledError as error:
            errors.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    assert frames.waiting.wait(10)
    stream.cancel()
    thread.join(10)
    assert len(errors) == 1
    assert engine.cancelled == 1


def test_a_dropped_stream_hangs_up_without_calling_the_engine() -> None:
    engine = Engine()
    stream = open_stream(batch_frame(1) + batch_frame(2) + END, engine)
    closed = threading.Event()
    stream._frames.close = closed.set  # type: ignore[method-assign]
    reader = iter(stream)
    next(reader)
    del reader, stream
    gc.collect()
    assert closed.is_set()
    assert engine.cancelled == 0


def test_a_failed_call_to_the_engine_does_not_keep_the_stream_open() -> None:
    frames = BlockedFrames()

    def broken() -> None:
        raise InternalError("no such method")

    with pytest.raises(InternalError):
        stream_over(frames, broken).cancel()
    assert frames.closed.is_set()


@pytest.mark.rule("LIM-7")
@pytest.mark.parametrize("end", [SparkResultStream.cancel, SparkResultStream.close])
def test_a_result_that_outlives_its_engine_just_ends(end: Callable[[SparkResultStream], None]) -> None:
    frames = BlockedFrames()

    def gone() -> None:
        raise EngineLostError("gone")

    end(stream_over(frames, gone))
    assert frames.closed.is_set()


def test_progress_is_the_engines_until_the_end_brings_the_last() -> None:
    engine = Engine(progress="1,0,4,2,2,10,1000")
    stream = open_stream(batch_frame(1) + END, engine)
    assert stream.progress() == Progress(stages=1, tasks=4, tasks_done=2, tasks_active=2, rows=10, bytes=1000)
    engine.progress = ""
    assert stream.progress().tasks_done == 2, "what was known last"
    ids(stream)
    assert stream.progress() == Progress(stages=2, stages_done=2, tasks=9, tasks_done=9, rows=4, bytes=400)
