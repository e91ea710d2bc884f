"""The reader: limits, tokens, recognition, translation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sqe_core.spi.errors import NotSupportedError, UserError
from sqe_core.spi.names import RESERVED_PREFIXES
from sqe_core.sql.recogniser import recognise
from sqe_core.sql.statement import EngineStatement, ScriptStatement, Statement, TextLimits
from sqe_core.sql.text.context import Dialect, StatementText
from sqe_core.sql.text.limits import check_text, check_tokens
from sqe_core.sql.text.redact import holds_secret
from sqe_core.sql.text.split import split
from sqe_core.sql.text.tokens import Kind, Text, Token, tokenize

if TYPE_CHECKING:
    from sqe_core.sql.spark.translator import Translator

_QUOTES = "values stand in single quotes, and a quote inside is written twice"


class Reader:
    """Implements `SqlReader`. Holds no state: one serves all sessions."""

    def read(self, sql: str, *, dialect: str, limits: TextLimits) -> Statement:
        return recognise(self._read_text(sql, dialect, limits))

    def translate_view(self, representations: Mapping[str, str]) -> str:
        for name, dialect in (("spark", Dialect.SPARK), ("trino", Dialect.TRINO)):
            found = next((sql for key, sql in representations.items() if key.lower() == name), None)
            if found is None:
                continue
            if dialect is Dialect.SPARK:
                # Not `read`: a view of ours calls functions that a user may not name.
                _bounded_tokens(found, dialect, TextLimits())
                return found
            statement = self.read(found, dialect=dialect.value, limits=TextLimits())
            if not isinstance(statement, EngineStatement):
                break
            return statement.spark_sql
        raise NotSupportedError("The view is not written in a dialect that SQE reads")

    def translate_expression(self, text: str, *, dialect: str) -> str:
        """Return the Spark SQL of one expression of a policy (POL-5)."""
        statement = self._read_text(text, dialect, TextLimits())
        return statement.engine.expression(statement)

    def translate_filter(self, text: str, *, dialect: str, sizes: Sequence[int] | None) -> tuple[str, Sequence[str]]:
        statement = self._read_text(text, dialect, TextLimits())
        return statement.engine.filter(statement, sizes)

    @staticmethod
    def _read_text(sql: str, dialect: str, limits: TextLimits) -> StatementText:
        chosen = _dialect(dialect)
        text, tokens, depth = _bounded_tokens(sql, chosen, limits)
        _check_names(text, tokens)
        return StatementText(text=text, tokens=tokens, dialect=chosen, engine=_translator(), depth=depth)

    def canonical(self, text: str, *, dialect: str) -> str:
        source = Text(text)
        tokens = [token for token in tokenize(source, _dialect(dialect).lexicon) if token.end > token.start]
        pieces: list[str] = []
        for before, token in zip([None, *tokens], tokens, strict=False):
            if before is not None and before.end < token.start:
                pieces.append(" ")
            pieces.append(source.sql[token.start : token.end])
        written = "".join(pieces)
        same = self.translate_filter(written, dialect=dialect, sizes=None) == self.translate_filter(
            text, dialect=dialect, sizes=None
        )
        # The engine's own dialect keeps its layout, so that equal expressions may differ there.
        return written if same or dialect == Dialect.SPARK.value else text

    def split(self, script: str) -> Sequence[ScriptStatement]:
        return split(script)


def _bounded_tokens(sql: str, dialect: Dialect, limits: TextLimits) -> tuple[Text, list[Token], int]:
    """Return the tokens of one statement that is not too long, and how deep it is nested."""
    check_text(sql, limits)
    text = Text(sql)
    try:
        tokens = tokenize(text, dialect.lexicon)
    except UserError as error:
        if not holds_secret(sql, dialect.value):
            raise
        # The message repeats what it stumbled over.
        raise UserError(
            "The statement cannot be read from here on", code=error.code, position=error.position, hint=_QUOTES
        ) from None
    depth = check_tokens(text, tokens, limits)
    return text, _one_statement(text, tokens), depth


def _translator() -> Translator:
    # sqlglot takes 0.3 s to import, which a command line that prints its version need not wait for.
    from sqe_core.sql.spark.translator import Translator

    return Translator()


def _dialect(name: str) -> Dialect:
    try:
        return Dialect(name.lower())
    except ValueError:
        known = ", ".join(one.value for one in Dialect)
        raise UserError(f"Unknown SQL dialect {name[:40]!r}", hint=f"the dialects are {known}") from None


def _one_statement(text: Text, tokens: list[Token]) -> list[Token]:
    """Drop the final semicolon; refuse a second statement."""
    first = next((index for index, token in enumerate(tokens) if token.is_symbol(";")), None)
    if first is None:
        return tokens
    following = next((token for token in tokens[first:] if not token.is_symbol(";")), tokens[-1])
    if following.kind is not Kind.END:
        raise text.error("Only one statement at a time", following.start, hint="send the statements one by one")
    start = tokens[first].start
    return [*tokens[:first], Token(Kind.END, "", start, start)]


def _check_names(text: Text, tokens: Sequence[Token]) -> None:
    """Refuse names of the kind that SQE makes up itself (NAME-6)."""
    for token in tokens:
        named = token.kind in (Kind.WORD, Kind.QUOTED, Kind.PARAMETER)
        if named and token.value.lstrip(":").lower().startswith(RESERVED_PREFIXES):
            raise text.error(
                f"Names that begin with {RESERVED_PREFIXES[0]} are reserved", token.start, hint="rename it"
            )
