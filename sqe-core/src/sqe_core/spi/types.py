"""Types of columns as SQL has them: what Arrow has no word for, as `uuid` and `decimal` inside of rows, is in them.

The core's are what Iceberg keeps, of declared types and of casts alike: texts have no length, times and timestamps 6
digits or 9. `char(3)` and `timestamp(3)` can be read and come from plugins that announce such columns themselves.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqe_core.spi.names import quote_part

if TYPE_CHECKING:
    import pyarrow as pa

_FIELD = re.compile(r'(?:(\w+)|"((?:[^"]|"")+)") ')
_SCALAR = re.compile(r"([a-z_]+(?: [a-z_]+)*?)(?:\(([0-9]+(?:, ?[0-9]+)*)\))?((?: [a-z]+)*)(?=[,)]|$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnType:
    """A type of SQL.

    Args:
        text: as SQL writes it.
        name: the word without its numbers: `decimal`, `timestamp with time zone`, `row`.
        arguments: the numbers: precision and scale, or a length.
        fields: the types inside, with their names: of a `row` its fields, of an `array` its `element`, of a `map` its
            `key` and `value`.

    Example:
        >>> ColumnType(text="char(3)", name="char", arguments=(3,)).fields
        ()
    """

    text: str
    name: str
    arguments: tuple[int, ...] = ()
    fields: tuple[tuple[str, ColumnType], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultColumn:
    """A column of a result.

    Args:
        name: as the client reads it.
        type: its type in SQL.
        nullable: whether it may be NULL.
        comment: that of the table's column that it is.
    """

    name: str
    type: ColumnType
    nullable: bool = True
    comment: str | None = None


def result_columns(schema: pa.Schema | None) -> tuple[ResultColumn, ...]:
    """Return the columns of a result, whose fields tell `sql_type` and `comment`.

    Args:
        schema: the columns; None for a statement without rows.
    """
    return tuple(map(_column, schema)) if schema is not None else ()


def _column(field: pa.Field[Any]) -> ResultColumn:
    told = field.metadata or {}
    said = told.get(b"sql_type")
    text = said.decode() if said is not None else _arrow_text(field.type)
    comment = told.get(b"comment")
    return ResultColumn(
        name=field.name,
        type=column_type(text, field.type),
        nullable=field.nullable,
        comment=comment.decode() if comment is not None else None,
    )


_ARROW_TEXTS = {
    "bool": "boolean",
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "integer",
    "int64": "bigint",
    "float": "real",
    "string": "varchar",
    "large_string": "varchar",
    "binary": "varbinary",
    "date32[day]": "date",
    "timestamp[us]": "timestamp(6)",
    "timestamp[us, tz=UTC]": "timestamp(6) with time zone",
    "null": "unknown",
}


def _arrow_text(type: Any) -> str:
    """Return the text of the type of a column that tells none: of answers that are not the engine's."""
    inside = [type.field(place).type for place in range(type.num_fields)]
    if str(type).startswith("list<"):
        return f"array({_arrow_text(inside[0])})"
    if str(type).startswith("map<"):
        return f"map({_arrow_text(type.key_type)}, {_arrow_text(type.item_type)})"
    return _ARROW_TEXTS.get(str(type), str(type))


def column_type(text: str, type: pa.DataType) -> ColumnType:
    """Read the text of a type.

    Args:
        text: as SQL writes it.
        type: the same in Arrow, which has the names of the fields of rows, whatever these look like.

    Example:
        >>> import pyarrow as pa
        >>> read = column_type("timestamp(3) with time zone", pa.timestamp("us", "UTC"))
        >>> read.name, read.arguments
        ('timestamp with time zone', (3,))
    """
    try:
        found, end = _read(text, 0, type)
    except ValueError:
        found, end = None, 0
    return found if found is not None and end == len(text) else ColumnType(text=text, name=text)


def _read(text: str, at: int, type: pa.DataType) -> tuple[ColumnType, int]:
    for head, names in (("array", ["element"]), ("map", ["key", "value"]), ("row", None)):
        if text.startswith(f"{head}(", at):
            fields, end = _read_fields(text, at + len(head) + 1, type, names)
            return ColumnType(text=text[at:end], name=head, fields=fields), end
    found = _SCALAR.match(text, at)
    if found is None:
        raise ValueError(text)
    word, numbers, rest = found.groups()
    arguments = tuple(int(number) for number in (numbers or "").split(",") if number)
    return ColumnType(text=found.group(), name=word + rest, arguments=arguments), found.end()


def _read_fields(
    text: str, at: int, type: Any, names: list[str] | None
) -> tuple[tuple[tuple[str, ColumnType], ...], int]:
    """Read what stands between the brackets of a nested type, the closing one included."""
    if not type.num_fields:
        return _read_texts(text, at, type, names)
    inside = (
        [type.key_field, type.item_field]
        if names == ["key", "value"]
        else [type.field(n) for n in range(type.num_fields)]
    )
    fields: list[tuple[str, ColumnType]] = []
    for place, field in enumerate(inside):
        if place:
            at = _skipped(text, at, ", ")
        if names is None:
            quoted = text.startswith('"', at)
            at = _skipped(text, at, f"{quote_part(field.name) if quoted else field.name} ")
        found, at = _read(text, at, field.type)
        fields.append((names[place] if names else field.name, found))
    return tuple(fields), _skipped(text, at, ")")


def _read_texts(
    text: str, at: int, type: pa.DataType, names: list[str] | None
) -> tuple[tuple[tuple[str, ColumnType], ...], int]:
    """Read the same where the whole value is one text, as values with JSON inside are: names are those of the text."""
    fields: list[tuple[str, ColumnType]] = []
    while not text.startswith(")", at):
        if fields:
            at = _skipped(text, at, ", ")
        if names is None:
            found = _FIELD.match(text, at)
            if found is None:
                raise ValueError(text)
            name, at = found.group(1) or found.group(2).replace('""', '"'), found.end()
        else:
            name = names[min(len(fields), len(names) - 1)]
        inner, at = _read(text, at, type)
        fields.append((name, inner))
    return tuple(fields), at + 1


def _skipped(text: str, at: int, expected: str) -> int:
    if not text.startswith(expected, at):
        raise ValueError(text)
    return at + len(expected)
