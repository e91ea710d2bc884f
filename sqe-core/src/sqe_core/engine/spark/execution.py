"""Run analysed plans in the engine and hand out their results."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from sqe_core.engine.port import Progress, ResultStream
from sqe_core.engine.spark.failures import engine_errors, executing_error
from sqe_core.engine.spark.stream import (
    CANCELLED,
    FAILURE,
    FrameSource,
    InlineFrames,
    SocketFrames,
    SparkResultStream,
    parse_progress,
)
from sqe_core.spi.errors import QueryCancelledError

if TYPE_CHECKING:
    from sqe_core.engine.spark.plan import SparkPlan
    from sqe_core.engine.spark.session import SparkEngineSession

_INLINE = b"I"
_FACTS = struct.Struct(">qi")
_CREDENTIALS_SIZE = 24


def execute(session: SparkEngineSession, plan: SparkPlan, *, tag: str, settings: Mapping[str, str]) -> ResultStream:
    """Run a verified plan under a tag; a command or a write is done when this returns."""
    with engine_errors(session.context, plan.text):
        statements = session.context.statements
        answer: bytes = statements.execute(session.bridge, plan.handle, tag, json.dumps(dict(settings)))

    def progress() -> Progress | None:
        with engine_errors(session.context):
            return parse_progress(statements.progress(tag))

    kind, body = answer[:1], answer[1:]
    if kind == CANCELLED:
        raise QueryCancelledError("The query was cancelled")
    if kind == FAILURE:
        raise _failure(body, plan.text)
    affected, schema_size = _FACTS.unpack_from(body)
    schema_end = _FACTS.size + schema_size
    rest = pa.py_buffer(body).slice(schema_end)
    frames: FrameSource
    if kind == _INLINE:
        frames = InlineFrames(rest)
    else:
        frames = SocketFrames(statements.address, rest.to_pybytes()[:_CREDENTIALS_SIZE])
    return SparkResultStream(
        schema=pa.ipc.read_schema(pa.py_buffer(body).slice(_FACTS.size, schema_size)),
        frames=frames,
        affected_rows=None if affected < 0 else affected,
        cancel_statement=lambda: cancel(session, tag),
        read_progress=progress,
        describe_failure=lambda described: _failure(described, plan.text),
    )


def cancel(session: SparkEngineSession, tag: str) -> None:
    """End what runs under a tag, in whatever phase it is."""
    with engine_errors(session.context):
        session.context.statements.cancel(tag)


def _failure(described: bytes, text: str) -> Exception:
    return executing_error(json.loads(described), text)
