"""How big the header of a message becomes when Arrow reads it, known before Arrow does (FLT-7).

FlatBuffers may point to one table or text many times, and Arrow makes a copy for each: some kilobytes of a schema
become gigabytes. So what is visited counts, not what was sent. The tables are those of Schema.fbs.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqe_core.protocols.flight.flatbuffer import Table
from sqe_core.spi.errors import ErrorCode, ResourcesError, UserError

_SCHEMA_FIELDS, _SCHEMA_METADATA = 1, 2
_FIELD_NAME, _FIELD_KIND, _FIELD_TYPE, _FIELD_CHILDREN, _FIELD_METADATA = 0, 2, 3, 5, 6
_KEY, _VALUE = 0, 1
_KIND_TIMESTAMP, _KIND_UNION = 10, 14
_TIMEZONE, _UNION_NUMBERS = 1, 1


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderLimits:
    """Bounds on the header of one message.

    Attributes:
        header_bytes: as it was sent. 5,000 columns with comments of a line or two have 1.4 MB, 20,000 fields 1.1 MB.
        fields: those of the schema at all depths, each as often as it is pointed to.
        depth: how deep they are nested.
        pairs: of keys and values, of the message, the schema and its fields.
        text_bytes: names, keys, values and time zones, each as often as it is pointed to.
    """

    header_bytes: int = 4 << 20
    fields: int = 20_000
    depth: int = 64
    pairs: int = 40_000
    text_bytes: int = 4 << 20


class HeaderWalk:
    """Visits what Arrow would build of one header, until that is too much.

    Args:
        limits: the bounds.
    """

    def __init__(self, limits: HeaderLimits) -> None:
        self._limits = limits
        self._fields = self._pairs = self._text_bytes = 0

    def schema(self, schema: Table) -> None:
        self.metadata(schema, _SCHEMA_METADATA)
        self._count_fields(schema.length(_SCHEMA_FIELDS))
        # Iteratively: how deep it is nested is the client's choice.
        pending = [(field, 1) for field in schema.tables(_SCHEMA_FIELDS)]
        while pending:
            field, depth = pending.pop()
            if depth > self._limits.depth:
                raise _excess(f"Columns are nested more than {self._limits.depth} levels deep")
            self._count_text(field, _FIELD_NAME)
            self.metadata(field, _FIELD_METADATA)
            self._type(field)
            self._count_fields(field.length(_FIELD_CHILDREN))
            pending.extend((child, depth + 1) for child in field.tables(_FIELD_CHILDREN))

    def metadata(self, table: Table, number: int) -> None:
        self._pairs += table.length(number)
        if self._pairs > self._limits.pairs:
            raise _excess(f"The metadata of a message has more than {self._limits.pairs} entries")
        for pair in table.tables(number):
            self._count_text(pair, _KEY)
            self._count_text(pair, _VALUE)

    def _type(self, field: Table) -> None:
        kind, type = field.number(_FIELD_KIND, "<B"), field.table(_FIELD_TYPE)
        if type is None:
            return
        if kind == _KIND_TIMESTAMP:
            self._count_text(type, _TIMEZONE)
        if kind == _KIND_UNION:
            self._count_fields(type.length(_UNION_NUMBERS))

    def _count_fields(self, count: int) -> None:
        self._fields += count
        if self._fields > self._limits.fields:
            raise _excess(f"The columns of a schema have more than {self._limits.fields} fields")

    def _count_text(self, table: Table, number: int) -> None:
        self._text_bytes += table.text_bytes(number)
        if self._text_bytes > self._limits.text_bytes:
            raise _excess(f"The names and metadata of a message have more than {self._limits.text_bytes} bytes")


def malformed(what: str) -> UserError:
    return UserError(f"The stream of the client is malformed: {what}", code=ErrorCode.INVALID_ARGUMENTS)


def _excess(message: str) -> ResourcesError:
    return ResourcesError(message, hint="send fewer columns, or less metadata with them")
