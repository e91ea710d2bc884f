"""What every part of the reader shares about the statement at hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Protocol

from sqe_core.sql.grammar.types import SqlType, TypeReader
from sqe_core.sql.statement import EngineStatement, StatementKind
from sqe_core.sql.text.cursor import Cursor
from sqe_core.sql.text.tokens import Kind, Lexicon, Text, Token


class Dialect(Enum):
    """How a session writes SQL (docs/sql.md)."""

    SQE = "sqe"
    TRINO = "trino"
    SPARK = "spark"

    @property
    def lexicon(self) -> Lexicon:
        """How this dialect quotes."""
        return Lexicon.SPARK if self is Dialect.SPARK else Lexicon.ANSI


class EngineText(Protocol):
    """Makes an `EngineStatement` of a part of the text."""

    def query(self, statement: StatementText, first: int, last: int) -> EngineStatement:
        """Translate the query between two token indexes."""

    def translate(self, statement: StatementText, first: int, last: int, kind: StatementKind) -> EngineStatement:
        """Translate the INSERT, UPDATE, DELETE or MERGE between two token indexes."""

    def composed(self, statement: StatementText, kind: StatementKind, marked_sql: str) -> EngineStatement:
        """Make a statement of Spark text composed by us, with marks (positions.py)."""

    def unchanged(self, statement: StatementText, kind: StatementKind) -> EngineStatement:
        """Make a statement of the user's own text, which is Spark's already."""

    def with_if_exists(self, made: EngineStatement) -> EngineStatement:
        """The same statement, for which a missing table is no error."""

    def marked_query(self, statement: StatementText, first: int, last: int) -> str:
        """Translate a query that becomes part of a composed statement."""

    def expression(self, statement: StatementText) -> str:
        """Translate a text that is one expression and nothing else."""

    def filter(self, statement: StatementText, sizes: Sequence[int] | None) -> tuple[str, Sequence[str]]:
        """Translate a row filter that may look into tables, and each of its queries."""

    def marked_expression(self, statement: StatementText, first: int, last: int) -> str:
        """Translate an expression that becomes part of a composed statement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementText:
    """The user's statement, or a part of it that is a statement: text, tokens, dialect."""

    text: Text
    tokens: Sequence[Token]  # the last one is END
    dialect: Dialect
    engine: EngineText
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
        """Begin to read."""
        return Cursor(self.text, self.tokens, index)

    def read_type(self, cursor: Cursor) -> SqlType:
        """Read a type; DECIMAL alone has Trino's scale in the trino dialect."""
        return TypeReader(cursor, decimal_scale=0 if self.dialect is Dialect.TRINO else 10).read()

    def part(self, first: int, last: int) -> StatementText:
        """The statement between two token indexes, as a statement of its own over the same text."""
        end = self.tokens[last].start
        tokens = (*self.tokens[first:last], Token(Kind.END, "", end, end))
        return replace(self, tokens=tokens)
