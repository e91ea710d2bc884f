"""Run analysed plans in the engine and hand out their results."""

from __future__ import annotations

import json
import struct
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import pyarrow as pa

from sqe_core.engine.port import Progress, ResultStream
from sqe_core.engine.spark.failures import engine_errors, executing_error
from sqe_core.engine.spark.gateway import Gateway
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
    from sqe_core.engine.spark.plan import SparkAnalysedPlan
    from sqe_core.engine.spark.session import SparkEngineSession

_BUFFER_BYTES = 16 << 20  # of one result in the driver's memory
_SPILL_BYTES = 10 << 30  # of one result on disk, while its reader is slow
_DISK_RESERVE_BYTES = 1 << 30  # no result takes the last gigabyte

_INLINE = b"I"
_FACTS = struct.Struct(">qi")
_CREDENTIALS_SIZE = 24


def execute(
    session: SparkEngineSession, plan: SparkAnalysedPlan, *, tag: str, settings: Mapping[str, str]
) -> ResultStream:
    """Run a verified plan under a tag; a command or a write is done when this returns."""
    bridge = _ExecutionBridge.of(session.gateway)
    with engine_errors(session.gateway, plan.text):
        answer = bridge.run(session.bridge, plan.handle, tag, json.dumps(dict(settings)))
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
        frames = SocketFrames(bridge.address, rest.to_pybytes()[:_CREDENTIALS_SIZE])
    return SparkResultStream(
        schema=pa.ipc.read_schema(pa.py_buffer(body).slice(_FACTS.size, schema_size)),
        frames=frames,
        affected_rows=None if affected < 0 else affected,
        cancel_statement=lambda: bridge.cancel(tag),
        read_progress=lambda: bridge.progress(tag),
        describe_failure=lambda described: _failure(described, plan.text),
    )


def cancel(session: SparkEngineSession, tag: str) -> None:
    """End what runs under a tag, in whatever phase it is."""
    _ExecutionBridge.of(session.gateway).cancel(tag)


def _failure(described: bytes, text: str) -> Exception:
    return executing_error(json.loads(described), text)


@dataclass(frozen=True, slots=True, eq=False)
class _ExecutionBridge:
    """The methods of one JVM's bridge that run statements; looking one up costs round trips."""

    gateway: Gateway
    statements: Any
    execute: Any
    address: str

    @staticmethod
    def of(gateway: Gateway) -> _ExecutionBridge:
        with _LOCK:
            bridge = _BRIDGES.get(gateway)
            if bridge is None:
                with engine_errors(gateway):
                    package = gateway.jvm.sqe.bridge
                    address = package.StreamHub.open(_BUFFER_BYTES, _SPILL_BYTES, _DISK_RESERVE_BYTES)
                    statements = package.Exec
                    bridge = _ExecutionBridge(gateway, statements, statements.execute, address)
                    _BRIDGES[gateway] = bridge
            return bridge

    def run(self, session: Any, plan: int, tag: str, settings: str) -> bytes:
        answer: bytes = self.execute(session, plan, tag, settings)
        return answer

    def cancel(self, tag: str) -> None:
        with engine_errors(self.gateway):
            self.statements.cancel(tag)

    def progress(self, tag: str) -> Progress | None:
        with engine_errors(self.gateway):
            return parse_progress(self.statements.progress(tag))


_LOCK = threading.Lock()
_BRIDGES: WeakKeyDictionary[Gateway, _ExecutionBridge] = WeakKeyDictionary()
