"""Statements without their literals, before anybody records them (OBS-3).

It reads quotes and comments as the parser does, and needs no more than that: a text that nobody can parse is redacted
too. From the first character that no token begins with, nothing is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from sqe_core.sql.text.context import Dialect
from sqe_core.sql.text.tokens import PATTERNS, Lexicon, end_of_nested_comment

HIDDEN = "?"
CUT = "…"

_LITERALS = frozenset({"string", "binary", "raw", "dollar", "number"})
# What may name a secret, right before the secret itself.
_SECRET_NAME = re.compile(r"(?i)token|passw|secret|key|credential|sas|signature|auth|header")
_BETWEEN = frozenset({"=", "=>", ":", ",", "("})
# Words that a statement about a secret is written with. All others in it may be the secret.
_SECRET_WORDS = frozenset(
    (
        *("access_key_id", "aws", "basic", "bearer", "exists", "if", "not", "password", "profile", "region"),
        *("secret_access_key", "session_token", "token", "type", "username"),
    )
)
_BEFORE_SECRET = frozenset(("create", "alter", "replace"))
# What is made or changed is something else than a secret, though it may be called so.
_OTHER_OBJECTS = frozenset(
    (
        *("as", "branch", "catalog", "column", "database", "function", "index", "namespace", "on", "policy", "role"),
        *("schema", "table", "tag", "view"),
    )
)
# Their literals may hold a login, or a statement that does.
_ALWAYS_REDACTED = frozenset(("attach", "execute", "exec", "prepare", "call"))
_WORDS = re.compile(r"\w{3,}")
# What is shorter is a word, a place or a limit of the message itself.
_SHORTEST_VALUE = 3
_MOST_VALUES = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Redacted:
    """A statement in one line, and the values that were taken out of it."""

    text: str
    values: frozenset[str]
    guarded: bool = False
    """Whether it is about a secret, or holds a login: no form of it may keep more than `text` does."""

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
    return first.text if first.guarded else _redacted(sql, dialect, secrets_only=True).text


def holds_secret(sql: str, dialect: str = "sqe") -> bool:
    """Whether a text is a statement about a secret, or one that may hold a login, whether or not it can be parsed."""
    return _redacted(sql, dialect, secrets_only=False).guarded


class _SecretWatch:
    """Notices CREATE SECRET, wherever it stands, and then what of the rest may be shown."""

    def __init__(self) -> None:
        self._making = False
        self._first = True
        self.within = False
        self._named = False
        self.guarded = False

    def hides(self, piece: _Piece) -> bool:
        """Look at the next piece; say whether it may be a part of a secret."""
        word = piece.text.lower() if piece.kind == "word" else ""
        if self.within:
            return self._hides_within(piece, word)
        if self._first and piece.kind != "rest":
            self._first = False
            self.guarded = word in _ALWAYS_REDACTED
        if word in _BEFORE_SECRET:
            self._making = True
        elif self._making and word == "catalog":
            self.guarded = True  # Trino's form, whose properties hold a login
        elif self._making and word in ("secret", "secrets"):
            self.within = self.guarded = True
        elif piece.kind not in ("word", "quoted") or word in _OTHER_OBJECTS:
            self._making = False
        return False

    def _hides_within(self, piece: _Piece, word: str) -> bool:
        if piece.kind == "symbol":
            self._named = self._named or piece.text == "("
            return False
        if piece.kind in ("word", "quoted") and not self._named:
            self._named = word not in ("if", "not", "exists")
            return False
        return word not in _SECRET_WORDS


def _redacted(sql: str, dialect: str, *, secrets_only: bool) -> Redacted:
    lexicon = Lexicon.SPARK if dialect == Dialect.SPARK.value else Lexicon.ANSI
    shown: list[str] = []
    values: set[str] = set()
    name, before_literal = "", False
    watch = _SecretWatch()
    for piece in _pieces(sql, lexicon):
        # A word that touches a literal is what somebody took for a part of it: 'it\'s', 12ab.
        literal = piece.kind in _LITERALS or (before_literal and piece.kind == "word" and not piece.spaced)
        secret = bool(_SECRET_NAME.search(name)) and (literal or piece.kind == "quoted")
        hidden = watch.hides(piece) or piece.kind == "rest" or secret or (literal and not secrets_only)
        if piece.spaced and shown:
            shown.append(" ")
        shown.append(CUT if piece.kind == "rest" else HIDDEN if hidden else _printable(piece.text))
        if hidden and len(values) < _MOST_VALUES:
            values.update(_values(piece))
        before_literal = literal
        if not (piece.kind == "symbol" and piece.text in _BETWEEN):
            name = piece.text if piece.kind in ("word", "quoted") else ""
    return Redacted(text="".join(shown), values=frozenset(values), guarded=watch.guarded)


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
