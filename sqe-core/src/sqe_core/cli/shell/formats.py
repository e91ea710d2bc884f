"""The output formats: csv, tsv, json, vertical and markdown; the table and parquet have modules of their own.

Every writer streams: it holds at most a slice of a batch, the table its first thousand rows.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from sqe_core.cli.shell.terminal_text import escape_unprintable
from sqe_core.cli.shell.values import Notation, Texts, json_object_members, write_values

Write = Callable[[str], None]

SLICE_ROWS = 2048
"""Rows turned into text at once; a batch of the engine may hold many more."""


class ResultWriter(ABC):
    """Writes one result. `begin`, `rows` any number of times, then `end`; `fail` when it breaks off.

    Args:
        write: takes the text.
        null: what stands for NULL; None for what the format has for it.
    """

    null = ""

    def __init__(self, write: Write, null: str | None = None) -> None:
        self.write = write
        self.row_count = 0
        if null is not None:
            self.null = null

    @abstractmethod
    def begin(self, schema: pa.Schema) -> None:
        """Take the columns."""

    @abstractmethod
    def slice(self, columns: Sequence[Texts]) -> None:
        """Write some rows, given column by column."""

    def rows(self, batch: pa.RecordBatch) -> None:
        for start in range(0, batch.num_rows, SLICE_ROWS):
            part = batch.slice(start, SLICE_ROWS)
            self.slice([write_values(column, self.notation_of(column.type)) for column in part.columns])
            self.row_count += part.num_rows

    def end(self) -> None:  # noqa: B027 most formats add nothing
        """Write what belongs after the last row."""

    def fail(self) -> None:  # noqa: B027 most formats hold nothing back
        """The result broke off: show what came, and do not make it look complete."""

    def notation_of(self, kind: pa.DataType) -> Notation:
        """How values of a type are written."""
        return Notation.PLAIN

    @property
    def counts_rows(self) -> bool:
        """Whether a line such as `(3 rows)` belongs to the format."""
        return False


def is_number(kind: pa.DataType) -> bool:
    """Whether values of a type stand to the right."""
    return bool(pa.types.is_integer(kind) or pa.types.is_decimal(kind) or pa.types.is_floating(kind))


class _SeparatedWriter(ResultWriter):
    """A line for each row, for programs: they read nested values as JSON."""

    separator: str

    def begin(self, schema: pa.Schema) -> None:
        self.write(self.separator.join(map(self._field, schema.names)) + "\n")

    def slice(self, columns: Sequence[Texts]) -> None:
        field, separator = self._field, self.separator
        self.write("".join(separator.join(map(field, row)) + "\n" for row in _rows(columns)))

    def notation_of(self, kind: pa.DataType) -> Notation:
        return Notation.JSON if pa.types.is_nested(kind) else Notation.PLAIN

    @abstractmethod
    def _field(self, text: str | None) -> str:
        """Write a value so that its end is clear."""


def _rows(columns: Sequence[Texts]) -> Iterator[tuple[str | None, ...]]:
    return zip(*columns, strict=True)


class CsvWriter(_SeparatedWriter):
    """RFC 4180 with a header and lines that end with a line feed. NULL is empty, an empty string is `""`."""

    separator = ","
    _SPECIAL = re.compile('[",\r\n]')

    def _field(self, text: str | None) -> str:
        if text is None:
            return self.null
        if text == self.null or not text or self._SPECIAL.search(text):
            return '"' + text.replace('"', '""') + '"'
        return text


class TsvWriter(_SeparatedWriter):
    r"""Fields between tabs; `\t`, `\n`, `\r` and `\\` stand for these characters. NULL is empty."""

    separator = "\t"
    _ESCAPES = str.maketrans({"\t": "\\t", "\n": "\\n", "\r": "\\r", "\\": "\\\\"})

    def _field(self, text: str | None) -> str:
        return self.null if text is None else text.translate(self._ESCAPES)


class JsonWriter(ResultWriter):
    """One array of objects, a line each. A result that breaks off lacks its closing bracket, so nobody takes it."""

    def notation_of(self, kind: pa.DataType) -> Notation:
        return Notation.JSON

    def begin(self, schema: pa.Schema) -> None:
        self._members = json_object_members(schema.names)
        self.write("[")

    def slice(self, columns: Sequence[Texts]) -> None:
        members = self._members
        objects = (
            "{" + ", ".join(member + (value or "null") for member, value in zip(members, row, strict=True)) + "}"
            for row in _rows(columns)
        )
        self.write(("\n" if not self.row_count else ",\n") + ",\n".join(objects))

    def end(self) -> None:
        self.write("\n]\n" if self.row_count else "]\n")

    def fail(self) -> None:
        self.write("\n")


class VerticalWriter(ResultWriter):
    """A line per value, for rows with many or long columns."""

    null = "NULL"

    def begin(self, schema: pa.Schema) -> None:
        names = [escape_unprintable(name) for name in schema.names]
        self._width = max(map(len, names), default=0)
        self._labels = [name.ljust(self._width) for name in names]

    def slice(self, columns: Sequence[Texts]) -> None:
        lines: list[str] = []
        for number, row in enumerate(_rows(columns), start=self.row_count + 1):
            lines.append(f"-[ {number} ]".ljust(self._width + 3, "-"))
            for label, value in zip(self._labels, row, strict=True):
                first, *others = [self.null] if value is None else value.split("\n")
                lines.append(f"{label} | {escape_unprintable(first)}".rstrip())
                lines.extend(f"{'':{self._width}} | {escape_unprintable(other)}".rstrip() for other in others)
        self.write("\n".join(lines) + "\n")

    @property
    def counts_rows(self) -> bool:
        return True


class MarkdownWriter(ResultWriter):
    """A table of GitHub's Markdown; the end of a line in a value is `<br>`."""

    null = "NULL"

    def begin(self, schema: pa.Schema) -> None:
        self._line(schema.names)
        self.write("|" + "|".join(" ---: " if is_number(field.type) else " --- " for field in schema) + "|\n")

    def slice(self, columns: Sequence[Texts]) -> None:
        for row in _rows(columns):
            self._line(row)

    def _line(self, row: Sequence[str | None]) -> None:
        cells = [self.null if text is None else _LINE_END.sub("<br>", text.replace("|", "\\|")) for text in row]
        self.write("| " + " | ".join(map(escape_unprintable, cells)) + " |\n")


_LINE_END = re.compile(r"\r?\n")
