"""The table format (docs/cli.md)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from sqe_core.cli.shell.formats import ResultWriter, Write, is_number
from sqe_core.cli.shell.terminal_text import cut, display_width, escape_unprintable
from sqe_core.cli.shell.values import Texts

SIZING_ROWS = 1000
"""Rows that decide how wide the columns are; later rows with longer values stick out."""

_NARROWEST = 3


def fit(widths: Sequence[int], available: int) -> list[int]:
    """Narrow the widest columns, and only as far as needed, until the line fits."""
    budget = available - 3 * len(widths)
    narrowed = list(widths)
    while sum(narrowed) > budget:
        widest = max(narrowed)
        if widest <= _NARROWEST:
            break
        count = narrowed.count(widest)
        second = max((width for width in narrowed if width < widest), default=_NARROWEST)
        share = -(-(sum(narrowed) - budget) // count)
        target = max(widest - share, second, _NARROWEST)
        narrowed = [target if width == widest else width for width in narrowed]
    return narrowed


class TableWriter(ResultWriter):
    """Columns aligned by their first thousand rows, numbers to the right.

    `max_width` is asked once, with the number of rows known so far, when the widths are decided; a number means that
    lines must not be longer than that.
    """

    null = "NULL"

    def __init__(
        self,
        write: Write,
        max_width: Callable[[int], int | None] = lambda rows: None,
        null: str | None = None,
    ) -> None:
        super().__init__(write, null)
        self._max_width = max_width
        self._waiting: list[list[str]] = []
        self._widths: list[int] | None = None
        self._cutting = False
        self.was_cut = False

    def begin(self, schema: pa.Schema) -> None:
        self._header = [escape_unprintable(name) for name in schema.names]
        self._right = [is_number(kind) for kind in schema.types]

    def slice(self, columns: Sequence[Texts]) -> None:
        rows = [list(row) for row in zip(*(self._cells(column) for column in columns), strict=True)]
        if self._widths is None:
            self._waiting.extend(rows)
            if len(self._waiting) >= SIZING_ROWS:
                self._lay_out()
        else:
            self._write_rows(rows)

    def end(self) -> None:
        if self._widths is None:
            self._lay_out()

    def fail(self) -> None:
        if self._widths is None and self._waiting:
            self._lay_out()

    @property
    def counts_rows(self) -> bool:
        return True

    def _cells(self, column: Texts) -> list[str]:
        return [self.null if value is None else _escape(value) for value in column]

    def _lay_out(self) -> None:
        widths = [display_width(name) for name in self._header]
        for row in self._waiting[:SIZING_ROWS]:
            widths = [max(width, _width(cell)) for width, cell in zip(widths, row, strict=True)]
        limit = self._max_width(len(self._waiting))
        if limit is not None and sum(widths) + 3 * len(widths) > limit:
            widths = fit(widths, limit)
            self._cutting = True
        self._widths = widths
        # Each column is its width and two more; the first begins at the edge, the others after a space.
        rule = "+".join("-" * (width + 2) for width in widths)
        self._write_rows([self._header])
        self.write(rule + "\n")
        waiting, self._waiting = self._waiting, []
        self._write_rows(waiting)

    def _write_rows(self, rows: Sequence[Sequence[str]]) -> None:
        if rows:
            self.write("".join(self._row(row) for row in rows))

    def _row(self, row: Sequence[str]) -> str:
        """Write a row; a value of several lines makes it as high, and a plus marks the lines that go on."""
        if not any("\n" in cell for cell in row):
            return self._line(row, " " * len(row))
        cells = [cell.split("\n") for cell in row]
        lines = []
        for number in range(max(map(len, cells))):
            marks = ["+" if len(row) > 1 and number + 1 < len(cell) else " " for cell in cells]
            lines.append(self._line([cell[number] if number < len(cell) else "" for cell in cells], marks))
        return "".join(lines)

    def _line(self, texts: Sequence[str], marks: Sequence[str]) -> str:
        assert self._widths is not None
        cells: list[str] = []
        for text, width, mark, right in zip(texts, self._widths, marks, self._right, strict=True):
            if self._cutting:
                shorter = cut(text, width)
                self.was_cut = self.was_cut or shorter is not text
                text = shorter
            padding = " " * (width - display_width(text))
            aligned = f"{padding}{text}{mark}" if right else f"{text}{padding}{mark}"
            cells.append(f" {aligned}" if cells else f"{aligned} ")
        return "|".join(cells).rstrip() + "\n"


def _escape(value: str) -> str:
    """Keep the ends of lines and nothing else that moves the cursor."""
    if "\n" not in value:
        return escape_unprintable(value)
    return "\n".join(escape_unprintable(line.removesuffix("\r")) for line in value.split("\n"))


def _width(cell: str) -> int:
    return display_width(cell) if "\n" not in cell else max(map(display_width, cell.split("\n")))
