"""What every part of the reader shares about the statement at hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from sqe_core.sql.grammar.types import SqlType, TypeReader
from sqe_core.sql.text.cursor import Cursor
from sqe_core.sql.text.tokens import Kind, Lexicon, Text, Token

if TYPE_CHECKING:
    from sqe_core.sql.spark.translator import Translator


class Dialect(Enum):
    """How a session writes SQL (docs/sql.md)."""

    SQE = "sqe"
    TRINO = "trino"
    SPARK = "spark"

    @property
    def lexicon(self) -> Lexicon:
        return Lexicon.SPARK if self is Dialect.SPARK else Lexicon.ANSI


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementText:
    """The user's statement, or a part of it that is a statement: text, tokens, dialect."""

    text: Text
    tokens: Sequence[Token]  # the last one is END
    dialect: Dialect
    engine: Translator  # handed in, since it takes long to import
    depth: int = 0  # how deep it nests

    @property
    def own_text(self) -> str:
        """The text of it, without the final semicolon."""
        return self.text.sql[self.tokens[0].start : self.tokens[-1].start].rstrip()

    @property
    def last(self) -> int:
        """The index of the END token."""
        return len(self.tokens) - 1

    def cursor(self, index: int = 0) -> Cursor:
        return Cursor(self.text, self.tokens, index)

    def read_type(self, cursor: Cursor) -> SqlType:
        """Read a type; DECIMAL alone has Trino's scale in the trino dialect."""
        return TypeReader(cursor, decimal_scale=0 if self.dialect is Dialect.TRINO else 10).read()

    def part(self, first: int, last: int) -> StatementText:
        """The statement between two token indexes, as a statement of its own over the same text."""
        end = self.tokens[last].start
        tokens = (*self.tokens[first:last], Token(Kind.END, "", end, end))
        return replace(self, tokens=tokens)
