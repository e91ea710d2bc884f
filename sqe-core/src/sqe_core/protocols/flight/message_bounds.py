"""How big a client's IPC message becomes when Arrow reads it, known before Arrow does (FLT-7).

Arrow takes a message's word for the size of a compressed buffer and allocates it; some kilobytes of zstd become
gigabytes, and dictionaries may be added to without end. This reads just the sizes, from the message's FlatBuffers
header, whose tables are Message.fbs and Schema.fbs of the Arrow format.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from sqe_core.protocols.flight.flatbuffer import Table
from sqe_core.protocols.flight.header_bounds import HeaderLimits, HeaderWalk, malformed
from sqe_core.spi.errors import ResourcesError

_VERSION_4, _VERSION_5 = 3, 4
_SCHEMA, _DICTIONARY_BATCH, _RECORD_BATCH = 1, 2, 3
_MESSAGE_METADATA = 4
_MOST_EXPANDED_BYTES = 256 << 20
_MOST_DICTIONARY_BYTES = 256 << 20
# Between buffers: Arrow aligns them to 8 bytes or to 64.
_MOST_PADDING = 64


@dataclass(frozen=True, slots=True)
class Checked:
    """What is known of a message that Arrow may read.

    Attributes:
        body_bytes: the length of its body as its header has it, which Arrow will read.
        expanded_bytes: what its body becomes.
        dictionary_bytes: of all dictionaries of its stream up to now, which Arrow keeps.
    """

    body_bytes: int
    expanded_bytes: int
    dictionary_bytes: int


class MessageBounds:
    """Bounds on the messages of one stream.

    Args:
        message_bytes: header and body as they were sent; None leaves it to gRPC.
        expanded_bytes: one record batch when it is decompressed.
        dictionary_bytes: all dictionaries when they are decompressed.
        header: the header of a message, and what it becomes.
    """

    def __init__(
        self,
        *,
        message_bytes: int | None = None,
        expanded_bytes: int = _MOST_EXPANDED_BYTES,
        dictionary_bytes: int = _MOST_DICTIONARY_BYTES,
        header: HeaderLimits | None = None,
    ) -> None:
        self._most_sent = message_bytes
        self._most_expanded = expanded_bytes
        self._most_dictionary = dictionary_bytes
        self._header = header or HeaderLimits()
        self._dictionaries: dict[int, int] = {}

    def check(self, header: bytes, body: bytes) -> Checked:
        """Return the sizes of a message.

        Raises:
            UserError: malformed.
            ResourcesError: too big, or too big once it is read.
        """
        self._sizes(header, body)
        try:
            message = Table.root(header)
            length = message.number(3, "<q")
            expanded = self._check(message, body)
        except (struct.error, IndexError) as error:
            raise malformed("a message cannot be read") from error
        if length < 0 or not -8 < length - len(body) < 8:  # it may be padded or not
            raise malformed("a body has another length than its header says")
        return Checked(length, expanded, sum(self._dictionaries.values()))

    def _sizes(self, header: bytes, body: bytes) -> None:
        if len(header) > self._header.header_bytes:
            raise ResourcesError(
                f"The header of a message has {len(header)} bytes; {self._header.header_bytes} are allowed",
                hint="send fewer columns, or less metadata with them",
            )
        if self._most_sent is not None and len(header) + len(body) > self._most_sent:
            raise ResourcesError(
                f"A message of parameters has {len(header) + len(body)} bytes; {self._most_sent} are allowed",
                hint="load many rows with bulk ingest",
            )

    def _check(self, message: Table, body: bytes) -> int:
        version, kind, content = message.number(0, "<h"), message.number(1, "<B"), message.table(2)
        if version not in (_VERSION_4, _VERSION_5) or content is None:
            raise malformed("a message is of no version that is supported, or empty")
        walk = HeaderWalk(self._header)
        walk.metadata(message, _MESSAGE_METADATA)
        if kind == _SCHEMA:
            walk.schema(content)
            return len(body)
        if kind not in (_DICTIONARY_BATCH, _RECORD_BATCH):
            raise malformed("a message is neither a schema nor rows")
        if version == _VERSION_4 and message.has(_MESSAGE_METADATA):
            # There Arrow 0.17 said that a batch is compressed, and readers still take its word.
            raise malformed("a record batch of the old format has metadata")
        if kind == _RECORD_BATCH:
            return self._expanded(content, body)
        batch = content.table(1)
        if batch is None:
            raise malformed("a dictionary has no values")
        return self._dictionary(content, self._expanded(batch, body))

    def _dictionary(self, content: Table, size: int) -> int:
        id, adds = content.number(0, "<q"), bool(content.number(2, "<B"))
        self._dictionaries[id] = size + (self._dictionaries.get(id, 0) if adds else 0)
        if sum(self._dictionaries.values()) > self._most_dictionary:
            raise ResourcesError(
                f"The dictionaries of a stream are more than {self._most_dictionary} bytes",
                hint="send the columns without dictionaries",
            )
        return size

    def _expanded(self, batch: Table, body: bytes) -> int:
        compressed = batch.has(3)
        total = sent = buffers = 0
        # Buffers may lie upon each other: each of them counts, as for each of them it is read.
        for offset, length in batch.pairs(2):
            if length < 0 or offset < 0:
                raise IndexError(offset)
            sent, buffers = sent + length, buffers + 1
            if length and compressed:
                declared = struct.unpack_from("<q", body, offset)[0]
                total += length if declared < 0 else declared
            else:
                total += length
        if total > self._most_expanded:
            raise ResourcesError(
                f"A record batch has {total} bytes when it is read; {self._most_expanded} are allowed",
                hint="send smaller batches",
            )
        if len(body) > sent + _MOST_PADDING * (buffers + 1):
            # Whoever keeps a value keeps all of the body, and counts the buffers.
            raise malformed("a body has more bytes than its buffers")
        return max(total, len(body))
