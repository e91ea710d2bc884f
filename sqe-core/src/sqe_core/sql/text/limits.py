"""Bounds that hold before any parser runs (LIM-3, LIM-4): bytes, characters, tokens, nesting; counted linearly."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqe_core.spi.errors import ResourcesError
from sqe_core.sql.statement import TextLimits
from sqe_core.sql.text.tokens import Kind, Text, Token

# Control characters other than white space never stand in SQL: they hide text in terminals and logs.
_FORBIDDEN = re.compile("[\x00-\x08\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")

_OPENING = frozenset("([{")
_CLOSING = frozenset(")]}")
_UNARY = frozenset(("-", "+", "~", "!"))
_SET_OPERATIONS = frozenset(("union", "intersect", "except", "minus"))
# AND and OR are read in a loop and balanced by the engine; a comma or a clause begins anew.
_RESTART = frozenset(("and", "or", "select", "from", "where", "then", "when", "else", "on", "by", "having", "values"))
_MAX_SELECTS = 1_000  # each becomes a plan of its own, and analysis looks at all of them for each
_MAX_CUBE = 12
_LONG_CHAIN = 8  # times the allowed depth: such chains are loops for us, and recursion for the engine


def check_text(sql: str, limits: TextLimits) -> None:
    """Refuse a text that is too long or holds characters that no SQL holds."""
    if len(sql) > limits.max_bytes or len(sql.encode("utf-8", "surrogatepass")) > limits.max_bytes:
        raise ResourcesError(
            f"The statement is longer than {limits.max_bytes:,} bytes",
            hint="load the data from a file, or ask the administrator to raise query.max_sql_bytes",
        )
    found = _FORBIDDEN.search(sql)
    if found:
        text = Text(sql)
        raise text.error(
            f"The statement holds the character U+{ord(found.group()):04X}, which is not text",
            found.start(),
            hint="send UTF-8 text; write such characters as U&'\\0001' or chr(1)",
        )


def check_tokens(text: Text, tokens: Sequence[Token], limits: TextLimits) -> int:
    """Refuse too many tokens or too deep nesting; return the depth."""
    if len(tokens) > limits.max_tokens:
        raise ResourcesError(
            f"The statement has more than {limits.max_tokens:,} words and symbols",
            hint="load the data from a file, or split the statement",
        )
    counter = _DepthCounter(text, limits.max_depth)
    for token in tokens:
        counter.count(token)
    _check_cubes(text, tokens)
    return counter.deepest


def _check_cubes(text: Text, tokens: Sequence[Token]) -> None:
    """CUBE of n expressions is 2^n groupings, which the engine's parser writes out one by one (LIM-5)."""
    for place, token in enumerate(tokens[:-1]):
        if token.kind is not Kind.WORD or token.value != "cube" or not tokens[place + 1].is_symbol("("):
            continue
        depth, parts = 0, 1
        for inner in tokens[place + 1 :]:
            if inner.kind is not Kind.SYMBOL:
                continue
            depth += (inner.value in _OPENING) - (inner.value in _CLOSING)
            parts += inner.value == "," and depth == 1
            if depth == 0:
                break
        if parts > _MAX_CUBE:
            raise ResourcesError(
                f"CUBE of {parts} expressions makes 2^{parts} groupings; {_MAX_CUBE} expressions are allowed",
                position=text.position(token.start),
            )


class _DepthCounter:
    """Counts what nests for a parser: brackets and CASE, prefix chains, set operations, operator chains."""

    def __init__(self, text: Text, max_depth: int) -> None:
        self._text = text
        self._max = max_depth
        self._levels: list[list[int]] = [[0, 0]]  # per bracket: operators in a row, set operations
        self._cases = 0
        self._prefixes = 0
        self._selects = 0
        self._after_dot = False
        self.deepest = 0

    def count(self, token: Token) -> None:
        kind, value = token.kind, token.value
        if kind is Kind.SYMBOL:
            self._symbol(token, value)
        elif kind is Kind.WORD and not self._after_dot:
            self._word(token, value)
        elif kind is not Kind.WORD:
            self._prefixes = 0
        self._after_dot = kind is Kind.SYMBOL and value == "."

    def _symbol(self, token: Token, value: str) -> None:
        if value in _UNARY:
            self._prefix(token)
            self._operator(token)
            return
        self._prefixes = 0
        if value in _OPENING:
            self._operator(token)
            self._levels.append([0, 0])
            self._check(token, len(self._levels) - 1 + self._cases)
        elif value in _CLOSING:
            if len(self._levels) > 1:
                self._levels.pop()
        elif value == ",":
            self._levels[-1][0] = 0
        else:
            self._operator(token)

    def _word(self, token: Token, value: str) -> None:
        if value == "not":
            self._prefix(token)
            return
        self._prefixes = 0
        if value == "select":
            self._selects += 1
            if self._selects > _MAX_SELECTS:
                raise ResourcesError(
                    f"The statement has more than {_MAX_SELECTS:,} SELECTs", hint="split it into several statements"
                )
        elif value == "case":
            self._cases += 1
            self._check(token, len(self._levels) - 1 + self._cases)
        elif value == "end":
            self._cases = max(0, self._cases - 1)
        elif value in _SET_OPERATIONS:
            level = self._levels[-1]
            level[1] += 1
            self._check(token, level[1] // _LONG_CHAIN)
        if value in _RESTART:
            self._levels[-1][0] = 0
        elif value in ("is", "at", "like", "between", "join"):
            self._operator(token)

    def _prefix(self, token: Token) -> None:
        self._prefixes += 1
        self._check(token, self._prefixes)

    def _operator(self, token: Token) -> None:
        level = self._levels[-1]
        level[0] += 1
        self._check(token, level[0] // _LONG_CHAIN)

    def _check(self, token: Token, depth: int) -> None:
        if depth > self.deepest:
            self.deepest = depth
            if depth > self._max:
                raise self._error(token)

    def _error(self, token: Token) -> ResourcesError:
        error = ResourcesError(
            f"The statement nests deeper than {self._max} levels",
            hint="split it with WITH or a temporary view, or use IN instead of long chains",
        )
        error.position = self._text.position(token.start)
        return error
