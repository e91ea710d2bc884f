"""Statements without their literals, before anybody records them (OBS-3).

It reads quotes and comments as the parser does, and needs no more than that: a text that nobody can parse is redacted
too. From the first character that no token begins with, nothing is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from sqe_core.sql.context import Dialect
from sqe_core.sql.tokens import PATTERNS, Lexicon, end_of_nested_comment

HIDDEN = "?"
CUT = "…"

_LITERALS = frozenset({"string", "binary", "raw", "dollar", "number"})
# What may name a secret, right before the secret itself.
_SECRET_NAME = re.compile(r"(?i)token|passw|secret|key|credential|sas|signature|auth|header")
_BETWEEN = frozenset({"=", "=>", ":", ",", "("})
_CREATE_SECRET = re.compile(r"(?i)create (?:or replace )?(?:\w+ )?secret\b")
_WORDS = re.compile(r"\w{3,}")
# What is shorter is a word, a place or a limit of the message itself.
_SHORTEST_VALUE = 3
_MOST_VALUES = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Redacted:
    """A statement in one line, and the values that were taken out of it."""

    text: str
    values: frozenset[str]

    def hide(self, message: str) -> str:
        """Take the same values out of a message about the statement."""
        for value in sorted(self.values, key=len, reverse=True):
            if value in message:
                message = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", HIDDEN, message)
        return message


@dataclass(frozen=True, slots=True)
class _Piece:
    """A token as written; `kind` is the group of the lexer's pattern, or "rest" for what no token begins with."""

    kind: str
    text: str
    spaced: bool


def redact(sql: str, dialect: str = "sqe") -> Redacted:
    """Return a statement without literals and comments."""
    return _redacted(sql, dialect, secrets_only=False)


def without_secrets(sql: str, dialect: str = "sqe") -> str:
    """Return a statement with its literals, but for those that stand after the name of a secret."""
    first = _redacted(sql, dialect, secrets_only=False)
    # What a secret consists of is its own business: another kind may call its parts as it likes.
    return first.text if _CREATE_SECRET.match(first.text) else _redacted(sql, dialect, secrets_only=True).text


def _redacted(sql: str, dialect: str, *, secrets_only: bool) -> Redacted:
    lexicon = Lexicon.SPARK if dialect == Dialect.SPARK.value else Lexicon.ANSI
    shown: list[str] = []
    values: set[str] = set()
    name, before_literal = "", False
    for piece in _pieces(sql, lexicon):
        # A word that touches a literal is what somebody took for a part of it: 'it\'s', 12ab.
        literal = piece.kind in _LITERALS or (before_literal and piece.kind == "word" and not piece.spaced)
        secret = bool(_SECRET_NAME.search(name)) and (literal or piece.kind == "quoted")
        hidden = piece.kind == "rest" or secret or (literal and not secrets_only)
        if piece.spaced and shown:
            shown.append(" ")
        shown.append(CUT if piece.kind == "rest" else HIDDEN if hidden else _printable(piece.text))
        if hidden and len(values) < _MOST_VALUES:
            values.update(_values(piece))
        before_literal = literal
        if not (piece.kind == "symbol" and piece.text in _BETWEEN):
            name = piece.text if piece.kind in ("word", "quoted") else ""
    return Redacted(text="".join(shown), values=frozenset(values))


def _pieces(sql: str, lexicon: Lexicon) -> Iterator[_Piece]:
    match_at = PATTERNS[lexicon].match
    offset, spaced = 0, False
    while offset < len(sql):
        match = match_at(sql, offset)
        end = match.end() if match else len(sql)
        kind = "rest" if match is None else "dollar" if match.group().startswith("$") else match.lastgroup or "rest"
        if kind == "comment":
            end = end_of_nested_comment(sql, offset)
            kind, end = ("skip", end) if end >= 0 else ("rest", len(sql))
        if kind == "skip":
            spaced = True
        else:
            text = sql[offset:end]
            if kind == "unicode":
                kind = "string" if text[2] == "'" else "quoted"
            yield _Piece(kind, text, spaced)
            spaced = False
        offset = end


def _values(piece: _Piece) -> Iterator[str]:
    """What a message might repeat of a piece."""
    if piece.kind in ("rest", "dollar"):
        yield from _WORDS.findall(piece.text)
        return
    bare = piece.text.strip("xXrRuU&'\"`") if piece.kind not in ("number", "word") else piece.text
    if bare != piece.text:
        yield piece.text
    for value in (bare, bare.replace("''", "'"), bare.replace("\\", "")):
        if len(value.strip()) >= _SHORTEST_VALUE:
            yield value


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
