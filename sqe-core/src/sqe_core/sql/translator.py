"""From a part of the user's text to an `EngineStatement`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from sqe_core.spi.errors import UserError
from sqe_core.sql.context import Dialect, StatementText
from sqe_core.sql.dml_grammar import SqeGrammar
from sqe_core.sql.lowering import lower
from sqe_core.sql.parsing import Parsing, with_stack
from sqe_core.sql.positions import Shifts, unmark
from sqe_core.sql.rules import Writer
from sqe_core.sql.statement import EngineStatement, PositionMap, StatementKind
from sqe_core.sql.tokens import Kind

PARAMETER_PREFIX = "sqe_p"

_READERS: dict[StatementKind, Callable[[SqeGrammar], Callable[[], exp.Expression]]] = {
    StatementKind.QUERY: lambda grammar: grammar.read_query,
    StatementKind.INSERT: lambda grammar: grammar.read_insert,
    StatementKind.UPDATE: lambda grammar: grammar.read_update,
    StatementKind.DELETE: lambda grammar: grammar.read_delete,
    StatementKind.MERGE: lambda grammar: grammar.read_merge,
}


class Translator:
    """Implements `EngineText` for one statement."""

    def __init__(self) -> None:
        self._session_values: set[str] = set()

    def query(self, statement: StatementText, first: int, last: int) -> EngineStatement:
        """Translate the query between two token indexes."""
        return self.translate(statement, first, last, StatementKind.QUERY)

    def translate(self, statement: StatementText, first: int, last: int, kind: StatementKind) -> EngineStatement:
        """Translate the query, INSERT, UPDATE, DELETE or MERGE between two token indexes."""
        part = statement.part(first, last)
        if statement.dialect is Dialect.SPARK:
            return self.unchanged(part, kind)
        marked, kind = self._marked(part, kind)
        return self.composed(part, kind, marked)

    def marked_query(self, statement: StatementText, first: int, last: int) -> str:
        """Translate a query that becomes part of a composed statement."""
        return self._marked(statement.part(first, last), StatementKind.QUERY, of=statement)[0]

    def marked_expression(self, statement: StatementText, first: int, last: int) -> str:
        """Translate an expression that becomes part of a composed statement."""
        if statement.dialect is Dialect.SPARK:
            return statement.cursor().source(first, last)
        part = statement.part(first, last)
        tree = Parsing(part, 0, part.last).read(lambda grammar: grammar.read_expression)
        return _writer(statement).write(tree)

    def composed(self, statement: StatementText, kind: StatementKind, marked_sql: str) -> EngineStatement:
        """Make a statement of Spark text composed by us, with marks."""
        sql, positions = unmark(statement.text, marked_sql)
        return self._statement(statement, kind, sql, positions)

    def unchanged(self, statement: StatementText, kind: StatementKind) -> EngineStatement:
        """Make a statement of the user's own text, with folded names and named parameters."""
        source = statement.text.sql
        start = statement.tokens[0].start
        pieces: list[str] = []
        done, size = start, 0
        places = [(0, start)]
        numbers = _positional(statement)
        for token in statement.tokens[:-1]:
            if token.kind is Kind.WORD:
                written = token.value
            elif token.kind is Kind.PARAMETER and token.value == "?":
                written = f":{PARAMETER_PREFIX}{numbers[token.start]}"
            else:
                continue
            pieces += (source[done : token.start], written)
            size += token.start - done + len(written)
            done = token.end
            if len(written) != token.end - token.start:
                places.append((size, done))
        pieces.append(source[done : statement.tokens[-2].end] if len(statement.tokens) > 1 else "")
        sql = "".join(pieces)
        return self._statement(statement, kind, sql, Shifts(statement.text, sql, places))

    def with_if_exists(self, made: EngineStatement) -> EngineStatement:
        """The same statement, for which a missing table is no error."""
        return replace(made, if_exists=True)

    def _statement(
        self, statement: StatementText, kind: StatementKind, sql: str, positions: PositionMap
    ) -> EngineStatement:
        markers = [token for token in statement.tokens if token.kind is Kind.PARAMETER]
        positional = any(marker.value == "?" for marker in markers)
        if positional and not all(marker.value == "?" for marker in markers):
            named = next(marker for marker in markers if marker.value != "?")
            raise UserError(
                "Parameters are either all ? or all named",
                position=statement.text.position(named.start),
                hint="use one kind",
            )
        if positional:
            names = tuple(f"{PARAMETER_PREFIX}{number}" for number in range(1, len(markers) + 1))
        else:
            names = tuple(dict.fromkeys(marker.value[1:] for marker in markers))
        return EngineStatement(
            kind=kind,
            text=statement.own_text,
            spark_sql=sql,
            positions=positions,
            parameters=names,
            positional=positional,
            session_values=tuple(sorted(self._session_values)),
        )

    def _marked(
        self, part: StatementText, kind: StatementKind, of: StatementText | None = None
    ) -> tuple[str, StatementKind]:
        """Translate a part; the kind changes where Spark says a statement with another one."""
        if part.dialect is Dialect.SPARK:
            return part.own_text, kind
        writer = _writer(of or part)

        def work() -> tuple[str, StatementKind]:
            tree = lower(Parsing(part, 0, part.last).read(_READERS[kind]), part)
            return writer.write(tree), StatementKind.MERGE if isinstance(tree, exp.Merge) else kind

        written = with_stack(part.depth, work)
        self._session_values |= writer.session_values
        return written


def _writer(statement: StatementText) -> Writer:
    writer = Writer(statement.text, statement.dialect)
    writer.positional = {start: f"{PARAMETER_PREFIX}{number}" for start, number in _positional(statement).items()}
    return writer


def _positional(statement: StatementText) -> dict[int, int]:
    """From the place of each ? to its number."""
    markers = [token for token in statement.tokens if token.kind is Kind.PARAMETER and token.value == "?"]
    return {token.start: number for number, token in enumerate(markers, 1)}
