"""From a part of the user's text to an `EngineStatement`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from sqe_core.spi.errors import UserError
from sqe_core.sql.grammar.dml import SqeGrammar
from sqe_core.sql.grammar.parsing import Parsing, with_stack
from sqe_core.sql.simple_query import SimpleQuery
from sqe_core.sql.spark.lowering import lower
from sqe_core.sql.spark.output_names import aliased, output_names
from sqe_core.sql.spark.rules import Writer
from sqe_core.sql.spark.simple_queries import narrowed_tables, simple_query
from sqe_core.sql.spark.writer import MappingQueries
from sqe_core.sql.statement import (
    POLICY_FUNCTIONS,
    SESSION_FUNCTIONS,
    EngineStatement,
    PositionMap,
    StatementKind,
    session_marker,
)
from sqe_core.sql.text.context import Dialect, StatementText
from sqe_core.sql.text.positions import Shifts, unmark
from sqe_core.sql.text.tokens import Kind, Token

PARAMETER_PREFIX = "sqe_p"

_READERS: dict[StatementKind, Callable[[SqeGrammar], Callable[[], exp.Expression]]] = {
    StatementKind.QUERY: lambda grammar: grammar.read_query,
    StatementKind.INSERT: lambda grammar: grammar.read_insert,
    StatementKind.UPDATE: lambda grammar: grammar.read_update,
    StatementKind.DELETE: lambda grammar: grammar.read_delete,
    StatementKind.MERGE: lambda grammar: grammar.read_merge,
}


class Translator:
    """Makes an `EngineStatement` of a part of the text."""

    def query(self, statement: StatementText, first: int, last: int) -> EngineStatement:
        """Translate the query between two token indexes."""
        return self.translate(statement, first, last, StatementKind.QUERY)

    def translate(self, statement: StatementText, first: int, last: int, kind: StatementKind) -> EngineStatement:
        """Translate the query, INSERT, UPDATE, DELETE or MERGE between two token indexes."""
        part = statement.part(first, last)
        if statement.dialect is Dialect.SPARK:
            return self.unchanged(part, kind)
        found = self._translated(part, kind)
        made = self.composed(part, found.kind, found.marked)
        return replace(
            made, simple=found.simple, column_names=found.names, aliased=found.aliased, narrowed=found.narrowed
        )

    def marked_query(self, statement: StatementText, first: int, last: int) -> str:
        """Translate a query that becomes part of a composed statement."""
        return self._translated(statement.part(first, last), StatementKind.QUERY, of=statement).marked

    def marked_expression(self, statement: StatementText, first: int, last: int) -> str:
        """Translate an expression that becomes part of a composed statement."""
        if statement.dialect is Dialect.SPARK:
            return statement.cursor().source(first, last)
        part = statement.part(first, last)
        tree = Parsing(part, 0, part.last).read(lambda grammar: grammar.read_expression)
        return _writer(statement).write(tree)

    def expression(self, statement: StatementText) -> str:
        """Translate a text that is one expression and nothing else."""
        return self._of_policy(statement, None)

    def filter(self, statement: StatementText, sizes: Sequence[int] | None) -> tuple[str, Sequence[str]]:
        """Translate a row filter that may look into tables, and each of its queries."""
        mappings = MappingQueries(sizes)
        written = self._of_policy(statement, mappings)
        return written, tuple(unmark(statement.text, query)[0] for query in mappings.written)

    def _of_policy(self, statement: StatementText, mappings: MappingQueries | None) -> str:
        if any(token.kind is Kind.PARAMETER for token in statement.tokens):
            raise UserError("A policy takes no parameters")
        if statement.dialect is Dialect.SPARK:
            return self.unchanged(statement, StatementKind.QUERY).spark_sql
        writer = _writer(statement)
        writer.facts, writer.mappings = POLICY_FUNCTIONS, mappings

        def work() -> str:
            return writer.write(Parsing(statement, 0, statement.last).read(lambda grammar: grammar.read_expression))

        return unmark(statement.text, with_stack(statement.depth, work))[0]

    def composed(self, statement: StatementText, kind: StatementKind, marked_sql: str) -> EngineStatement:
        """Make a statement of Spark text composed by us, with marks."""
        sql, positions = unmark(statement.text, marked_sql)
        return self._statement(statement, kind, sql, positions)

    def unchanged(self, statement: StatementText, kind: StatementKind) -> EngineStatement:
        """Make a statement of the user's own text, with folded names and named parameters."""
        source = statement.text.sql
        pieces: list[str] = []
        done = start = statement.tokens[0].start
        size, places = 0, [(0, start)]
        for first, end, written in _replacements(statement):
            pieces += (source[done:first], written)
            size += first - done + len(written)
            done = end
            if len(written) != end - first:
                places.append((size, done))
        pieces.append(source[done : statement.tokens[-2].end] if len(statement.tokens) > 1 else "")
        sql = "".join(pieces)
        return self._statement(statement, kind, sql, Shifts(statement.text, sql, places))

    def _statement(
        self, statement: StatementText, kind: StatementKind, sql: str, positions: PositionMap
    ) -> EngineStatement:
        markers = [token for token in statement.tokens if token.kind is Kind.PARAMETER]
        other = next((marker for marker in markers if marker.value[0] != markers[0].value[0]), None)
        if other is not None:
            raise UserError(
                "Parameters are either all ?, all numbered or all named",
                position=statement.text.position(other.start),
                hint="use one kind",
            )
        positional = bool(markers) and markers[0].value[0] != ":"
        if positional:
            numbers = sorted(set(_positional(statement).values()))
            missing = next((number for at, number in enumerate(numbers, 1) if at != number), None)
            if missing is not None:
                raise UserError(
                    f"Parameter ${missing} stands here, and one below it nowhere",
                    position=next(
                        statement.text.position(each.start) for each in markers if each.value == f"${missing}"
                    ),
                    hint="parameters are numbered from $1, without a gap",
                )
            names = tuple(f"{PARAMETER_PREFIX}{number}" for number in numbers)
        else:
            names = tuple(dict.fromkeys(marker.value[1:] for marker in markers))
        return EngineStatement(
            kind=kind,
            text=statement.own_text,
            spark_sql=sql,
            positions=positions,
            parameters=names,
            positional=positional,
            exact_writes=statement.dialect is not Dialect.SPARK,
        )

    def _translated(self, part: StatementText, kind: StatementKind, of: StatementText | None = None) -> _Translated:
        """Translate a part; the kind changes where Spark says a statement with another one."""
        if part.dialect is Dialect.SPARK:
            return _Translated(part.own_text, kind)
        writer = _writer(of or part)

        def work() -> _Translated:
            tree = Parsing(part, 0, part.last).read(_READERS[kind])
            found = _Translated("", kind)
            if part.dialect is Dialect.TRINO and kind is StatementKind.QUERY:
                source, parameters = part.text.sql, _parameter_names(part)
                found.simple = simple_query(tree, source, parameters)
                found.names = output_names(tree, source)
                found.aliased = aliased(tree)
                found.narrowed = narrowed_tables(tree, source, parameters)
            tree = lower(tree, part)
            found.kind = StatementKind.MERGE if isinstance(tree, exp.Merge) else kind
            found.marked = writer.write(tree)
            return found

        return with_stack(part.depth, work)


@dataclass(slots=True)
class _Translated:
    """Spark's text with its marks, and what is known of the tree that it was made of."""

    marked: str
    kind: StatementKind
    simple: SimpleQuery | None = None
    names: tuple[str, ...] | None = None
    aliased: frozenset[int] = frozenset()
    narrowed: tuple[SimpleQuery, ...] = ()


def _writer(statement: StatementText) -> Writer:
    writer = Writer(statement.text, statement.dialect)
    writer.positional = _parameter_names(statement)
    return writer


def _parameter_names(statement: StatementText) -> dict[int, str]:
    return {start: f"{PARAMETER_PREFIX}{number}" for start, number in _positional(statement).items()}


def _replacements(statement: StatementText) -> Iterator[tuple[int, int, str]]:
    """What is written otherwise in Spark's own dialect: unquoted names, ?, $1 and the session's functions."""
    numbers = _positional(statement)
    tokens = statement.tokens
    skip = 0
    for index, token in enumerate(tokens[:-1]):
        if index < skip:
            continue
        if token.start in numbers:
            yield token.start, token.end, f":{PARAMETER_PREFIX}{numbers[token.start]}"
        elif token.kind is Kind.WORD:
            count = _session_call(tokens, index)
            skip = index + count
            if count:
                name = "current_user" if token.value == "user" else token.value
                yield token.start, tokens[skip - 1].end, f":{session_marker(name)}"
            else:
                yield token.start, token.end, token.value


def _session_call(tokens: Sequence[Token], index: int) -> int:
    """How many tokens call a function of the session here; 0 when they are something else."""
    word = tokens[index].value
    if (word not in SESSION_FUNCTIONS and word != "user") or (index and tokens[index - 1].is_symbol(".")):
        return 0
    following = tokens[index + 1 : index + 3]
    if len(following) == 2 and following[0].is_symbol("(") and following[1].is_symbol(")"):
        return 3
    plain = word in ("current_user", "session_user") and not (
        following[0].is_symbol(".") or following[0].is_symbol("(")
    )
    return 1 if plain else 0


def _positional(statement: StatementText) -> dict[int, int]:
    """From the place of each ? and $1 to its number."""
    markers = [token for token in statement.tokens if token.kind is Kind.PARAMETER and token.value[0] in "?$"]
    return {token.start: int(token.value[1:] or number) for number, token in enumerate(markers, 1)}
