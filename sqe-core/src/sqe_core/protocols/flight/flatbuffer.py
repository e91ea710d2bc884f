"""Reads FlatBuffers without building anything: the headers of clients' messages, before Arrow reads them (FLT-7)."""

from __future__ import annotations

import struct
from collections.abc import Iterator

_OFFSET_BYTES = 4


class Table:
    """A table of FlatBuffers; what is not inside the bytes raises `struct.error` or `IndexError`."""

    def __init__(self, data: bytes, place: int) -> None:
        self._data = data
        self._place = place
        self._fields = _inside(place - self._read("<i", place))
        self._fields_size = self._read("<H", self._fields)

    @classmethod
    def root(cls, data: bytes) -> Table:
        """Return the table that the bytes begin with."""
        return cls(data, struct.unpack_from("<I", data, 0)[0])

    def has(self, field: int) -> bool:
        return self._field(field) is not None

    def number(self, field: int, format: str) -> int:
        place = self._field(field)
        return 0 if place is None else self._read(format, place)

    def table(self, field: int) -> Table | None:
        place = self._target(field)
        return None if place is None else Table(self._data, place)

    def length(self, field: int, item_bytes: int = _OFFSET_BYTES) -> int:
        """Return how many items a vector has, all of them inside; 0 when it is not there."""
        place = self._target(field)
        if place is None:
            return 0
        count = self._read("<I", place)
        if place + _OFFSET_BYTES + count * item_bytes > len(self._data):
            raise IndexError(place)
        return count

    def text_bytes(self, field: int) -> int:
        """Return how many bytes a text has; it is not read."""
        return self.length(field, item_bytes=1)

    def tables(self, field: int) -> Iterator[Table]:
        """Yield the tables of a vector. They may be the same one many times: look at `length` first."""
        place = self._target(field)
        if place is None:
            return
        for number in range(1, self.length(field) + 1):
            item = place + _OFFSET_BYTES * number
            yield Table(self._data, item + self._read("<I", item))

    def pairs(self, field: int) -> Iterator[tuple[int, int]]:
        """Return the structs of a vector that have two 64-bit numbers each."""
        place = self._target(field)
        if place is None:
            return iter(())
        start = place + _OFFSET_BYTES
        end = start + 16 * self.length(field, item_bytes=16)
        return struct.iter_unpack("<qq", self._data[start:end])

    def _target(self, field: int) -> int | None:
        place = self._field(field)
        return None if place is None else place + self._read("<I", place)

    def _field(self, number: int) -> int | None:
        slot = 4 + 2 * number
        if slot >= self._fields_size:
            return None
        offset = self._read("<H", self._fields + slot)
        return self._place + offset if offset else None

    def _read(self, format: str, place: int) -> int:
        value: int = struct.unpack_from(format, self._data, _inside(place))[0]
        return value


def _inside(place: int) -> int:
    # A negative place would be counted from the end.
    if place < 0:
        raise IndexError(place)
    return place
