"""The output formats: csv, tsv, json and vertical; the table has a module of its own.

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
    """Writes one result. `begin`, `rows` any number of times, then `end`; `fail` when it breaks off."""

    def __init__(self, write: Write) -> None:
        self.write = write
        self.row_count = 0

    @abstractmethod
    def begin(self, schema: pa.Schema) -> None:
        """Take the columns."""

    @abstractmethod
    def slice(self, columns: Sequence[Texts]) -> None:
        """Write some rows, given column by column."""

    def rows(self, batch: pa.RecordBatch) -> None:
        """Write a batch."""
        for start in range(0, batch.num_rows, SLICE_ROWS):
            part = batch.slice(start, SLICE_ROWS)
            self.slice([write_values(column, self.notation) for column in part.columns])
            self.row_count += part.num_rows

    def end(self) -> None:  # noqa: B027 most formats add nothing
        """Write what belongs after the last row."""

    def fail(self) -> None:  # noqa: B027 most formats hold nothing back
        """The result broke off: show what came, and do not make it look complete."""

    notation = Notation.PLAIN

    @property
    def counts_rows(self) -> bool:
        """Whether a line such as `(3 rows)` belongs to the format."""
        return False


def _rows(columns: Sequence[Texts]) -> Iterator[tuple[str | None, ...]]:
    return zip(*columns, strict=True)


class CsvWriter(ResultWriter):
    """RFC 4180 with a header and lines that end with a line feed. NULL is empty, an empty string is `""`."""

    _SPECIAL = re.compile('[",\r\n]')

    def begin(self, schema: pa.Schema) -> None:
        self.write(",".join(map(self._field, schema.names)) + "\n")

    def slice(self, columns: Sequence[Texts]) -> None:
        field = self._field
        self.write("".join(",".join(map(field, row)) + "\n" for row in _rows(columns)))

    def _field(self, text: str | None) -> str:
        if text is None:
            return ""
        if not text or self._SPECIAL.search(text):
            return '"' + text.replace('"', '""') + '"'
        return text


class TsvWriter(ResultWriter):
    r"""Fields between tabs; `\t`, `\n`, `\r` and `\\` stand for these characters. NULL is empty."""

    _ESCAPES = str.maketrans({"\t": "\\t", "\n": "\\n", "\r": "\\r", "\\": "\\\\"})

    def begin(self, schema: pa.Schema) -> None:
        self.write("\t".join(map(self._field, schema.names)) + "\n")

    def slice(self, columns: Sequence[Texts]) -> None:
        field = self._field
        self.write("".join("\t".join(map(field, row)) + "\n" for row in _rows(columns)))

    def _field(self, text: str | None) -> str:
        return "" if text is None else text.translate(self._ESCAPES)


class JsonWriter(ResultWriter):
    """One array of objects, a line each. A result that breaks off lacks its closing bracket, so nobody takes it."""

    notation = Notation.JSON

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

    def begin(self, schema: pa.Schema) -> None:
        names = [escape_unprintable(name) for name in schema.names]
        self._width = max(map(len, names), default=0)
        self._labels = [name.ljust(self._width) for name in names]

    def slice(self, columns: Sequence[Texts]) -> None:
        lines: list[str] = []
        for number, row in enumerate(_rows(columns), start=self.row_count + 1):
            lines.append(f"-[ {number} ]".ljust(self._width + 3, "-"))
            for label, value in zip(self._labels, row, strict=True):
                first, *others = ["NULL"] if value is None else value.split("\n")
                lines.append(f"{label} | {escape_unprintable(first)}".rstrip())
                lines.extend(f"{'':{self._width}} | {escape_unprintable(other)}".rstrip() for other in others)
        self.write("\n".join(lines) + "\n")

    @property
    def counts_rows(self) -> bool:
        return True
