"""Runs the grammar over our tokens, with enough stack, and makes its failures errors with positions."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import NoReturn, TypeVar

from sqlglot import exp
from sqlglot.tokenizer_core import Token as ParserToken
from sqlglot.tokenizer_core import TokenType

from sqe_core.spi.errors import NotSupportedError, ResourcesError
from sqe_core.sql.grammar.dml import SqeGrammar
from sqe_core.sql.grammar.strict_parser import ParseFailure
from sqe_core.sql.grammar.types import SqlType, TypeReader
from sqe_core.sql.text.context import Dialect, StatementText
from sqe_core.sql.text.cursor import Cursor, unexpected
from sqe_core.sql.text.tokens import Kind, Token

T = TypeVar("T")

# Words that are never a name unless quoted: Trino's reserved words, as far as queries and DML use them.
_RESERVED = {
    word: TokenType[word.upper()]
    for word in (
        *("select", "with", "values", "table", "from", "where", "having", "union", "except", "intersect"),
        *("on", "using", "join", "inner", "cross", "left", "right", "full", "outer", "natural", "unnest"),
        *("distinct", "case", "when", "then", "else", "end", "exists", "in", "is", "like", "between"),
        *("not", "and", "or", "null", "true", "false", "escape", "for", "insert", "delete", "into"),
        *("create", "drop", "alter"),
    )
} | {"as": TokenType.ALIAS}

_BY = {"group": TokenType.GROUP_BY, "order": TokenType.ORDER_BY, "partition": TokenType.PARTITION_BY}

_SYMBOLS = {
    "(": TokenType.L_PAREN,
    ")": TokenType.R_PAREN,
    "[": TokenType.L_BRACKET,
    "]": TokenType.R_BRACKET,
    ",": TokenType.COMMA,
    ".": TokenType.DOT,
    "-": TokenType.DASH,
    "+": TokenType.PLUS,
    "*": TokenType.STAR,
    "/": TokenType.SLASH,
    "%": TokenType.MOD,
    "=": TokenType.EQ,
    "<>": TokenType.NEQ,
    "!=": TokenType.NEQ,
    "<": TokenType.LT,
    "<=": TokenType.LTE,
    ">": TokenType.GT,
    ">=": TokenType.GTE,
    "||": TokenType.DPIPE,
    "::": TokenType.DCOLON,
    "->": TokenType.ARROW,
    "=>": TokenType.FARROW,
    ":": TokenType.COLON,
}

# What the sqe dialect has beyond Trino.
_EXTRA_SYMBOLS = {"==": TokenType.EQ, "~": TokenType.RLIKE, "~*": TokenType.IRLIKE}
_NEGATED_MATCHES = {"!~": TokenType.RLIKE, "!~*": TokenType.IRLIKE}

_FOREIGN_SYMBOLS = {
    "&": "use bitwise_and(a, b)",
    "|": "use bitwise_or(a, b)",
    "^": "use power(a, b) or bitwise_xor(a, b)",
    "~": "use bitwise_not(a), or regexp_like(text, pattern)",
    "==": "use =",
    "!": "use NOT",
    "<=>": "use IS NOT DISTINCT FROM",
    "->>": "use json_extract_scalar(json, path)",
    "@": "parameters are written ?, $1 or :name",
    "#": "comments begin with --",
    ":=": "use =",
    "{": "maps and rows are written MAP(ARRAY[…], ARRAY[…]) and ROW(…)",
    "}": "maps and rows are written MAP(ARRAY[…], ARRAY[…]) and ROW(…)",
}

_VALUE_STARTS = frozenset((Kind.NUMBER, Kind.PARAMETER, Kind.STRING))
_SHALLOW = 16  # levels that fit into the stack and the recursion limit of any thread
_STACK_BYTES = 256 * 1024 * 1024  # address space; only what is used becomes memory
_RECURSION_LIMIT = 60_000
_starting = threading.Lock()  # the stack size is set for the next thread of the process


class Parsing:
    """Reads one part of a statement into a tree."""

    def __init__(self, statement: StatementText, first: int, last: int) -> None:
        self._statement = statement
        self._tokens = statement.tokens[first:last]
        end = statement.tokens[last].start
        self._end = Token(Kind.END, "", end, end)
        self._origins: list[int] = []  # per parser token the index of our token
        self._parser_tokens: list[ParserToken] = []
        for index in range(len(self._tokens)):
            if not self._origins or self._origins[-1] < index:
                self._convert(index)

    def read(self, choose: Callable[[SqeGrammar], Callable[[], exp.Expression]]) -> exp.Expression:
        """Read all of it with the method that `choose` picks."""
        grammar = SqeGrammar(self._read_type)
        try:
            return grammar.parse_tokens(self._parser_tokens, choose(grammar))
        except ParseFailure as failure:
            self._raise(failure)

    def _convert(self, index: int) -> None:
        token = self._tokens[index]
        following = self._following(index)
        if token.kind is Kind.WORD:
            if token.value in _BY and following.is_word("by"):
                self._add(index, _BY[token.value], token.value)
                self._origins[-1] = index + 1  # the second word is read with the first
                return
            self._add(index, self._word(index, token, following), token.value)
        elif token.kind is Kind.SYMBOL:
            self._symbol(index, token)
        else:
            self._add(index, _LITERALS[token.kind], token.value)

    def _word(self, index: int, token: Token, following: Token) -> TokenType:
        word = token.value
        previous = self._tokens[index - 1] if index else None
        if previous is not None and previous.is_symbol("."):
            return TokenType.VAR
        reserved = _RESERVED.get(word)
        if reserved is not None:
            return reserved
        starts_value = following.kind in _VALUE_STARTS
        if word == "limit":
            bracket = following.is_symbol("(")
            ends = starts_value or bracket or following.is_word("all") or following.is_word("null")
            return TokenType.LIMIT if ends else TokenType.VAR
        if word == "offset":
            return TokenType.OFFSET if starts_value or following.is_symbol("(") else TokenType.VAR
        if word == "fetch":
            return TokenType.FETCH if following.is_word("first") or following.is_word("next") else TokenType.VAR
        if word == "interval":
            signed = following.is_symbol("-") or following.is_symbol("+")
            length = self._following(index + 1) if signed else following
            return (
                TokenType.INTERVAL if length.kind in (Kind.STRING, Kind.NUMBER)[: 1 if signed else 2] else TokenType.VAR
            )
        if word == "lateral":
            opens = following.is_symbol("(") or following.is_word("unnest") or following.is_word("view")
            return TokenType.LATERAL if opens else TokenType.VAR
        if self._statement.dialect is Dialect.TRINO:
            return TokenType.VAR
        if word == "qualify":
            return TokenType.QUALIFY if not following.is_symbol(",") else TokenType.VAR
        if word == "ilike" and previous is not None and self._ends_operand(previous):
            return TokenType.ILIKE if self._begins_operand(following) else TokenType.VAR
        return TokenType.VAR

    def _following(self, index: int) -> Token:
        return self._tokens[index + 1] if index + 1 < len(self._tokens) else self._end

    @staticmethod
    def _ends_operand(token: Token) -> bool:
        if token.kind is Kind.WORD:
            return token.value not in _RESERVED or token.value in ("not", "null", "true", "false", "end")
        return token.kind is not Kind.SYMBOL or token.value in (")", "]")

    @staticmethod
    def _begins_operand(token: Token) -> bool:
        if token.kind is Kind.WORD:
            return token.value not in _RESERVED or token.value in ("case", "null", "left", "right")
        return token.kind not in (Kind.SYMBOL, Kind.END) or token.value == "("

    def _symbol(self, index: int, token: Token) -> None:
        token_type = _SYMBOLS.get(token.value)
        if token_type is None and self._statement.dialect is Dialect.SQE:
            token_type = _EXTRA_SYMBOLS.get(token.value)
            negated = _NEGATED_MATCHES.get(token.value)
            if negated is not None:
                self._add(index, TokenType.NOT, "not")
                self._add(index, negated, token.value)
                return
        if token_type is None:
            raise self._statement.text.error(
                f"Unexpected {token.value}", token.start, hint=_FOREIGN_SYMBOLS.get(token.value)
            )
        self._add(index, token_type, token.value)

    def _add(self, index: int, token_type: TokenType, text: str) -> None:
        token = self._tokens[index]
        self._parser_tokens.append(ParserToken(token_type, text, start=token.start, end=token.end))
        self._origins.append(index)

    def _read_type(self, index: int) -> tuple[SqlType, int]:
        statement = self._statement
        start = self._origins[index] if index < len(self._origins) else len(self._tokens)
        cursor = Cursor(statement.text, (*self._tokens, self._end), start)
        scale = 0 if statement.dialect is Dialect.TRINO else 10
        result = TypeReader(cursor, decimal_scale=scale, unknown="TYPE_MISMATCH").read()
        while index < len(self._origins) and self._origins[index] < cursor.index:
            index += 1
        return result, index

    def _raise(self, failure: ParseFailure) -> NoReturn:
        text = self._statement.text
        at = failure.token.start if failure.token else self._end.start
        if failure.refused is not None:
            raise NotSupportedError(failure.refused, hint=failure.hint, position=text.position(at)) from None
        if failure.misused is not None:
            raise text.error(failure.misused, at, hint=failure.hint) from None
        token = next((token for token in self._tokens if token.start == at), self._end) if failure.token else self._end
        raise text.error(unexpected(text, token, failure.expected), token.start, hint=failure.hint) from None


_LITERALS = {
    Kind.QUOTED: TokenType.IDENTIFIER,
    Kind.STRING: TokenType.STRING,
    Kind.BINARY: TokenType.HEX_STRING,
    Kind.NUMBER: TokenType.NUMBER,
    Kind.PARAMETER: TokenType.PLACEHOLDER,
}


def with_stack(depth: int, work: Callable[[], T]) -> T:
    """Run the work where the nesting fits: here, or in a thread with a stack of its own (LIM-4)."""
    try:
        if depth <= _SHALLOW:
            return work()
        return _in_thread(work)
    except RecursionError:
        raise ResourcesError(
            "The statement is nested too deeply", hint="split it with WITH or a temporary view"
        ) from None


def _in_thread(work: Callable[[], T]) -> T:
    outcome: list[T] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(work())
        except BaseException as error:  # noqa: BLE001 - handed to the thread that waits
            failure.append(error)

    # The limit is one for all threads, so it is raised once and stays: Python's own frames need no C stack, and only
    # statements whose depth was counted come here.
    if sys.getrecursionlimit() < _RECURSION_LIMIT:
        sys.setrecursionlimit(_RECURSION_LIMIT)
    with _starting:
        before = threading.stack_size(_STACK_BYTES)
        try:
            thread = threading.Thread(target=run, name="sqe-parser", daemon=True)
            thread.start()
        finally:
            threading.stack_size(before)
    thread.join()
    if failure:
        raise failure[0]
    return outcome[0]
