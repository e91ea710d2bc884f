"""From places in the Spark text to places in the user's text (ERR-3).

The writers put a mark before every piece that comes from the user: the offset of that piece in the user's text, between
two control characters that no statement may hold. `unmark` takes the marks out and keeps where they stood.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence

from sqe_core.spi.errors import Position
from sqe_core.sql.text.tokens import Text

_MARK = re.compile("\x01([0-9]+)\x02")


def mark(offset: int) -> str:
    """The mark of a place in the user's text, to be put before the piece that comes from there."""
    return f"\x01{offset}\x02"


_MOST_WRITTEN = 32


class Marks:
    """A `PositionMap` made of the marks that stood in a text."""

    def __init__(self, text: Text, sql: str, places: Sequence[tuple[int, int]]) -> None:
        self._text = text
        self._sql = sql
        self._written = [written for written, _ in places]
        self._sources = [source for _, source in places]

    def locate(self, start: int | None, fragment: str | None) -> Position | None:
        if start is None:
            start = self._sql.find(fragment) if fragment else -1
        if start < 0 or not self._written:
            return None
        end = start + max(1, len(fragment or ""))
        # What Spark names may begin with a piece of ours, such as the name of a template: the first mark inside counts.
        at = bisect_left(self._written, start)
        if at == len(self._written) or self._written[at] >= end:
            at -= 1
        return self._text.position(self._sources[at]) if at >= 0 else None

    def written(self, position: Position) -> str:
        """Return how the user's own text goes on there."""
        return self._text.following(position, _MOST_WRITTEN)


class Shifts:
    """A `PositionMap` for a text that is the user's own but for replaced parameter markers."""

    def __init__(self, text: Text, sql: str, places: Sequence[tuple[int, int]]) -> None:
        self._text = text
        self._sql = sql
        self._places = places  # (offset in the Spark text, offset in the user's), the first is (0, 0)

    def locate(self, start: int | None, fragment: str | None) -> Position | None:
        if start is None:
            start = self._sql.find(fragment) if fragment else -1
        if start < 0:
            return None
        written, source = max(place for place in self._places if place[0] <= start)
        return self._text.position(min(source + start - written, len(self._text.sql)))


def unmark(text: Text, marked_sql: str) -> tuple[str, Marks]:
    """Take the marks out of a text; return it with the map they make."""
    pieces: list[str] = []
    places: list[tuple[int, int]] = []
    done, size = 0, 0
    for match in _MARK.finditer(marked_sql):
        pieces.append(marked_sql[done : match.start()])
        size += match.start() - done
        places.append((size, int(match.group(1))))
        done = match.end()
    pieces.append(marked_sql[done:])
    sql = "".join(pieces)
    return sql, Marks(text, sql, places)
