"""Headers of Arrow messages that no library writes: FlatBuffers that point to one table or text many times, and names
that are no text.
"""

from __future__ import annotations

import struct

import pyarrow as pa

_VERSIONS = {4: 3, 5: 4}
_SCHEMA, _DICTIONARY_BATCH, _RECORD_BATCH = 1, 2, 3
_INT, _TIMESTAMP, _STRUCT, _UNION = 2, 10, 13, 14

Fields = dict[int, tuple[str, int]]
_INT_TYPE: Fields = {0: ("i", 32), 1: ("B", 1)}


class Writer:
    """Writes tables from the front: what they point to is written later, and pointed to then."""

    def __init__(self, *, kind: int, version: int = 5, body_bytes: int = 0, metadata: bool = False) -> None:
        self._data = bytearray(4)
        fields: Fields = {0: ("h", _VERSIONS[version]), 1: ("B", kind), 2: ("I", 0), 3: ("q", body_bytes)}
        if metadata:
            fields[4] = ("I", 0)
        self.message, self.places = self.table(fields)
        struct.pack_into("<I", self._data, 0, self.message)

    def table(self, fields: Fields) -> tuple[int, dict[int, int]]:
        """Return the place of a new table, and those of its fields."""
        self._align(8)
        count = max(fields, default=-1) + 1
        head = len(self._data)
        self._data += bytes(4 + 2 * count)
        self._align(8)
        start, body = len(self._data), bytearray(4)
        offsets, places = [0] * count, {}
        for slot, (format, value) in sorted(fields.items(), key=lambda each: -struct.calcsize("<" + each[1][0])):
            body += bytes(-len(body) % struct.calcsize("<" + format))
            offsets[slot], places[slot] = len(body), start + len(body)
            body += struct.pack("<" + format, value)
        body += bytes(-len(body) % 8)
        struct.pack_into("<i", body, 0, start - head)
        struct.pack_into(f"<{2 + count}H", self._data, head, 4 + 2 * count, len(body), *offsets)
        self._data += body
        return start, places

    def point(self, place: int, target: int) -> None:
        struct.pack_into("<I", self._data, place, target - place)

    def text(self, value: bytes) -> int:
        self._align(4)
        start = len(self._data)
        self._data += struct.pack("<I", len(value)) + value + b"\0"
        return start

    def many(self, place: int, count: int) -> range:
        """Make a vector of tables, point to it, and return the places of its items."""
        self._align(4)
        start = len(self._data)
        self.point(place, start)
        self._data += struct.pack("<I", count) + bytes(4 * count)
        return range(start + 4, start + 4 + 4 * count, 4)

    def fill(self, places: range, target: int) -> None:
        """Make all items of a vector the same table."""
        for item in places:
            self.point(item, target)

    def numbers(self, place: int, format: str, *values: int) -> None:
        """Make a vector of structs that begins with its count, and point to it."""
        self._align(8)
        self._data += bytes(4)
        self.point(place, len(self._data))
        size = struct.calcsize("<" + format)
        self._data += struct.pack("<I", len(values) * struct.calcsize("<q") // size)
        self._data += struct.pack(f"<{len(values)}q", *values)

    def pairs(self, place: int, count: int, value: bytes, key: bytes = b"k") -> None:
        """Make metadata that has one pair so many times."""
        items = self.many(place, count)
        pair, places = self.table({0: ("I", 0), 1: ("I", 0)})
        self.fill(items, pair)
        self.point(places[0], self.text(key))
        self.point(places[1], self.text(value))

    def field(
        self, kind: int, name: bytes, type: Fields, *, metadata: bool
    ) -> tuple[int, dict[int, int], dict[int, int]]:
        """Return a field, and the places of its parts and of those of its type. It has no children yet."""
        fields: Fields = {0: ("I", 0), 1: ("B", 1), 2: ("B", kind), 3: ("I", 0), 5: ("I", 0)}
        start, places = self.table(fields | ({6: ("I", 0)} if metadata else {}))
        self.point(places[0], self.text(name))
        written, slots = self.table(type)
        self.point(places[3], written)
        return start, places, slots

    def bytes(self) -> bytes:
        self._align(8)
        return bytes(self._data)

    def _align(self, to: int) -> None:
        self._data += bytes(-len(self._data) % to)


def schema_header(
    *,
    columns: int = 1,
    metadata: int = 0,
    field_metadata: int = 0,
    message_metadata: int = 0,
    text: bytes = b"",
    name: bytes = b"a",
    nested: int = 0,
    twice: bool = False,
    zone: bytes = b"",
    union_numbers: int = 0,
) -> bytes:
    """The header of a schema: one column so many times, nested so deep in structs of one or two same children."""
    writer = Writer(kind=_SCHEMA, metadata=message_metadata > 0)
    schema, places = writer.table({1: ("I", 0), 2: ("I", 0)})
    writer.point(writer.places[2], schema)
    items = writer.many(places[1], columns)
    kind = _TIMESTAMP if zone else _UNION if union_numbers else _STRUCT if nested else _INT
    for level in range(nested + 1):
        type: Fields = {1: ("I", 0)} if kind in (_TIMESTAMP, _UNION) else _INT_TYPE if kind == _INT else {}
        field, parts, slots = writer.field(kind, name, type, metadata=field_metadata > 0)
        writer.fill(items, field)
        if zone:
            writer.point(slots[1], writer.text(zone))
        if union_numbers:
            writer.numbers(slots[1], "i", *[0] * (union_numbers // 2))
        if field_metadata:
            writer.pairs(parts[6], field_metadata, text)
        items = writer.many(parts[5], 0 if level == nested else 2 if twice else 1)
        kind = _STRUCT if level + 1 < nested else _INT
    writer.pairs(places[2], metadata, text)
    if message_metadata:
        writer.pairs(writer.places[4], message_metadata, text)
    return writer.bytes()


def batch_header(
    *,
    rows: int,
    body_bytes: int,
    version: int = 5,
    dictionary: bool = False,
    metadata: dict[bytes, bytes] | None = None,
    buffers: int = 1,
    pairs: int = 0,
    text: bytes = b"",
) -> bytes:
    """The header of a batch of numbers, whose columns are all in the same bytes."""
    kind = _DICTIONARY_BATCH if dictionary else _RECORD_BATCH
    padded = -(-body_bytes // 8) * 8
    writer = Writer(kind=kind, version=version, body_bytes=padded, metadata=bool(metadata or pairs))
    holder = writer.places[2]
    if dictionary:
        outer, own = writer.table({0: ("q", 0), 1: ("I", 0), 2: ("B", 0)})
        writer.point(holder, outer)
        holder = own[1]
    content, places = writer.table({0: ("q", rows), 1: ("I", 0), 2: ("I", 0)})
    writer.point(holder, content)
    writer.numbers(places[1], "qq", *[rows, 0] * buffers)
    writer.numbers(places[2], "qq", *[0, 0, 0, body_bytes] * buffers)
    for key, value in (metadata or {}).items():
        writer.pairs(writer.places[4], 1, value, key)
    if pairs:
        writer.pairs(writer.places[4], pairs, text)
    return writer.bytes()


def renamed(type: pa.DataType) -> pa.DataType:
    """The type with a name or a time zone of bytes that are no UTF-8, as a damaged stream may have it."""
    sent = pa.schema([("column", type)]).serialize().to_pybytes()
    assert b"QQQQ" in sent
    return pa.ipc.read_schema(pa.py_buffer(sent.replace(b"QQQQ", b"Q\xff\xfeQ"))).types[0]
