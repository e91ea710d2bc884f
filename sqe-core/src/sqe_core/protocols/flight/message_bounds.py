"""How big a client's IPC message becomes when Arrow reads it, known before Arrow does (FLT-7).

Arrow takes a message's word for the size of a compressed buffer and allocates it; some kilobytes of zstd become
gigabytes, and dictionaries may be added to without end. This reads just the sizes, from the message's FlatBuffers
header, whose tables are Message.fbs and Schema.fbs of the Arrow format.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from sqe_core.spi.errors import ErrorCode, ResourcesError, UserError

_DICTIONARY_BATCH, _RECORD_BATCH = 2, 3
_MOST_EXPANDED_BYTES = 256 << 20
_MOST_DICTIONARY_BYTES = 256 << 20


class MessageBounds:
    """Bounds on the messages of one stream."""

    def __init__(
        self, *, expanded_bytes: int = _MOST_EXPANDED_BYTES, dictionary_bytes: int = _MOST_DICTIONARY_BYTES
    ) -> None:
        self._most_expanded = expanded_bytes
        self._most_dictionary = dictionary_bytes
        self._dictionaries: dict[int, int] = {}

    def check(self, header: bytes, body: bytes) -> int:
        """Return the length of a message's body as its header has it, which Arrow will read.

        Raises:
            UserError: malformed.
            ResourcesError: too big once it is read.
        """
        try:
            message = _Table.root(header)
            length = message.number(3, "<q")
            self._check(message, body)
        except (struct.error, IndexError) as error:
            raise _malformed("a message cannot be read") from error
        if not -8 < length - len(body) < 8:  # it may be padded or not
            raise _malformed("a body has another length than its header says")
        return length

    def _check(self, message: _Table, body: bytes) -> None:
        kind, content = message.number(1, "<B"), message.table(2)
        if content is None or kind not in (_DICTIONARY_BATCH, _RECORD_BATCH):
            return
        if kind == _RECORD_BATCH:
            self._expanded(content, body)
            return
        batch = content.table(1)
        if batch is None:
            return
        id, adds = content.number(0, "<q"), bool(content.number(2, "<B"))
        self._dictionaries[id] = self._expanded(batch, body) + (self._dictionaries.get(id, 0) if adds else 0)
        if sum(self._dictionaries.values()) > self._most_dictionary:
            raise ResourcesError(
                f"The dictionaries of a stream are more than {self._most_dictionary} bytes",
                hint="send the columns without dictionaries",
            )

    def _expanded(self, batch: _Table, body: bytes) -> int:
        sizes = batch.pairs(2)
        if batch.table(3) is None:
            return len(body)
        total = 0
        for offset, length in sizes:
            if length:
                declared = struct.unpack_from("<q", body, _inside(offset))[0]
                total += length if declared < 0 else declared
        if total > self._most_expanded:
            raise ResourcesError(
                f"A record batch has {total} bytes when decompressed; {self._most_expanded} are allowed",
                hint="send smaller batches",
            )
        return total


class _Table:
    """A table of FlatBuffers; what is not inside the bytes raises `struct.error` or `IndexError`."""

    def __init__(self, data: bytes, place: int) -> None:
        self._data = data
        self._place = place
        self._fields = _inside(place - self._read("<i", place))
        self._fields_size = self._read("<H", self._fields)

    @classmethod
    def root(cls, data: bytes) -> _Table:
        return cls(data, struct.unpack_from("<I", data, 0)[0])

    def number(self, field: int, format: str) -> int:
        place = self._field(field)
        return 0 if place is None else self._read(format, place)

    def table(self, field: int) -> _Table | None:
        place = self._field(field)
        return None if place is None else _Table(self._data, place + self._read("<I", place))

    def pairs(self, field: int) -> Iterator[tuple[int, int]]:
        """The structs of a vector that have two 64-bit numbers each."""
        place = self._field(field)
        if place is None:
            return iter(())
        start = place + self._read("<I", place)
        end = start + 4 + 16 * self._read("<I", start)
        if end > len(self._data):
            raise IndexError(end)
        return struct.iter_unpack("<qq", self._data[start + 4 : end])

    def _field(self, number: int) -> int | None:
        slot = 4 + 2 * number
        if slot + 2 > self._fields_size:
            return None
        offset = self._read("<H", self._fields + slot)
        return self._place + offset if offset else None

    def _read(self, format: str, place: int) -> int:
        value: int = struct.unpack_from(format, self._data, _inside(place))[0]
        return value


def _malformed(what: str) -> UserError:
    return UserError(f"The stream of the client is malformed: {what}", code=ErrorCode.INVALID_ARGUMENTS)


def _inside(place: int) -> int:
    # A negative place would be counted from the end.
    if place < 0:
        raise IndexError(place)
    return place
