"""INSERT of one row of VALUES, for many rows of parameters: the row becomes a query over rows that are elsewhere.

INSERT INTO t (a, b) VALUES (:sqe_p1, upper(:sqe_p2))
INSERT INTO t (a, b) SELECT `_sqe_v_1`, upper(`_sqe_v_2`) FROM `rows`
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqe_core.spi.errors import Position
from sqe_core.sql.statement import EngineStatement, StatementKind
from sqe_core.sql.text.tokens import Kind, Lexicon, Text, Token, tokenize

_QUERY_WORDS = frozenset({"select", "from", "table", "values", "with"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueRow:
    """The one row of VALUES of an INSERT: what stands before it, and its tokens."""

    statement: EngineStatement
    head: str
    row: tuple[Token, ...]

    @property
    def whole(self) -> frozenset[str]:
        """The parameters that stand once, and are all of a column's value."""
        values: list[list[Token]] = [[]]
        depth = 0
        for token in self.row:
            depth += token.is_symbol("(") - token.is_symbol(")")
            if depth == 0 and token.is_symbol(","):
                values.append([])
            else:
                values[-1].append(token)
        places = Counter(token.value[1:] for token in self.row if token.kind is Kind.PARAMETER)
        alone = [value[0].value[1:] for value in values if len(value) == 1 and value[0].kind is Kind.PARAMETER]
        return frozenset(name for name in alone if places[name] == 1)

    def over(self, source: str, columns: Sequence[str | None]) -> EngineStatement:
        """Return the statement that inserts a row for each row of `source`.

        Args:
            source: its name; reserved, so that no name of the user's is captured.
            columns: for each parameter of the statement the column that has its values; None for NULL in all rows.
        """
        names = dict(zip(dict.fromkeys(self.statement.parameters), columns, strict=True))
        sql = self.statement.spark_sql
        pieces: list[str] = []
        done = self.row[0].start
        for token in self.row:
            if token.kind is Kind.PARAMETER and token.value[1:] in names:
                column = names[token.value[1:]]
                pieces += (sql[done : token.start], "NULL" if column is None else f"`{column}`")
                done = token.end
        pieces.append(sql[done : self.row[-1].end])
        text = f"{self.head}SELECT {''.join(pieces)} FROM `{source}`"
        return replace(self.statement, spark_sql=text, positions=_Nowhere(), parameters=())


class _Nowhere:
    """The text is ours: its places are nowhere in the user's."""

    def locate(self, start: int | None, fragment: str | None) -> Position | None:
        return None


def value_row(statement: EngineStatement) -> ValueRow | None:
    """Return the one row of an INSERT INTO … VALUES (…) with parameters in it; None for every other statement."""
    if statement.kind is not StatementKind.INSERT or not statement.parameters:
        return None
    sql = statement.spark_sql
    tokens = tokenize(Text(sql), Lexicon.SPARK)[:-1]
    if len(tokens) < 2 or not (tokens[0].is_word("insert") and tokens[1].is_word("into")):
        return None
    at = next((number for number, token in enumerate(tokens) if token.is_word("values")), len(tokens))
    row = tokens[at + 1 :]
    if len(row) < 3 or not row[0].is_symbol("(") or not row[-1].is_symbol(")"):
        return None
    inside = row[1:-1]
    if not _is_closed(inside) or any(token.kind is Kind.WORD and token.value in _QUERY_WORDS for token in inside):
        return None
    before = tokens[:at]
    if any(token.kind is Kind.PARAMETER or token.is_word("by") for token in before):
        return None
    return ValueRow(statement=statement, head=sql[: tokens[at].start], row=tuple(inside))


def _is_closed(tokens: Sequence[Token]) -> bool:
    """Whether every bracket that these tokens open is closed by them, and none before."""
    depth = 0
    for token in tokens:
        depth += token.is_symbol("(") - token.is_symbol(")")
        if depth < 0:
            return False
    return depth == 0
