"""Rows on their way into segments, in the thread of their statement."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

from sqe_protocol_trino.budget import Budget
from sqe_protocol_trino.chain import Chain
from sqe_protocol_trino.config import SpoolingConfig
from sqe_protocol_trino.spooling.encodings import Encoding
from sqe_protocol_trino.spooling.segments import Given, Segments, Spool

KEY_HEADER = "X-Sqe-Segment-Key"
_LONGEST_WAIT_SECS = 0.5


class SegmentWriter:
    """Gathers rows. A small result goes as if nobody had asked for segments: that is one answer, and no file.

    The first rows of a larger one are in the page, which has them soonest; the rest is spooled in segments that grow.
    Where there is no room, rows go into pages too, whose clients the statement then waits for.

    Args:
        chain: the statement.
        spool: its segments.
        segments: where they are kept.
        encoding: what its client reads.
        config: sizes.
        budget: what rows in memory count in.
        base: what addresses begin with.
    """

    def __init__(
        self,
        chain: Chain,
        spool: Spool,
        *,
        segments: Segments,
        encoding: Encoding,
        config: SpoolingConfig,
        budget: Budget,
        base: str,
    ) -> None:
        self._chain, self._spool, self._segments = chain, spool, segments
        self._encoding, self._config, self._budget, self._base = encoding, config, budget, base
        self._parts: list[bytes] = []
        self._size = self._rows = self._offset = 0
        self._since = 0.0
        self._begun = False
        self._target = config.first_segment_bytes

    def put(self, rows: int, text: bytes) -> bool:
        """Take rows; False when nobody wants them any more."""
        if not self._parts:
            self._since = time.monotonic()
        self._parts.append(text)
        self._size += len(text)
        self._rows += rows
        self._budget.take(len(text))
        return not self._is_ripe() or self._flush()

    def _is_ripe(self) -> bool:
        if self._size >= (self._target if self._begun else self._config.inline_bytes):
            return True
        if self._size >= self._config.inline_bytes and not self._budget.has_room(0):
            return True
        return time.monotonic() - self._since > _LONGEST_WAIT_SECS

    def end(self) -> bool:
        """Hand over what is left."""
        if self._begun:
            return not self._parts or self._flush()
        self._budget.give(self._size)
        return all(self._chain.put(text) for text in self._parts)

    def abandon(self) -> None:
        """Forget what is left; nothing comes after it."""
        self._budget.give(self._size)
        self._parts.clear()
        self._size = 0
        self._segments.written(self._spool)

    def _flush(self) -> bool:
        text = b"[" + b",".join(self._parts) + b"]"
        self._parts.clear()
        self._budget.give(self._size)
        rows, self._rows, self._size = self._rows, 0, 0
        first, self._begun = not self._begun, True
        if first:
            self._chain.encoding = self._encoding.name
        encoded = self._encoding.encode(text)
        metadata: dict[str, Any] = {"rowOffset": self._offset, "rowsCount": rows, "segmentSize": len(encoded.data)}
        if encoded.uncompressed is not None:
            metadata["uncompressedSize"] = encoded.uncompressed
        self._offset += rows
        given = None
        if not first and len(text) > self._config.inline_bytes:
            given = self._segments.store(self._spool, encoded.data)
            # Rows that go into pages go in pieces of a page's size.
            grown = min(2 * self._target, self._config.segment_bytes)
            self._target = grown if given is not None else self._config.first_segment_bytes
        segment = self._inline(encoded.data) if given is None else self._spooled(given)
        document = json.dumps({**segment, "metadata": metadata}, separators=(",", ":")).encode()
        return self._chain.put(document, weight=len(encoded.data))

    def _inline(self, data: bytes) -> dict[str, Any]:
        return {"type": "inline", "data": base64.b64encode(data).decode()}

    def _spooled(self, given: Given) -> dict[str, Any]:
        return {
            "type": "spooled",
            "uri": f"{self._base}/v1/spooled/download/{given.id}",
            "ackUri": f"{self._base}/v1/spooled/ack/{given.id}",
            "headers": {KEY_HEADER: [base64.urlsafe_b64encode(given.key).decode()]},
        }
