"""ATTACH, DETACH, CREATE SECRET and DROP SECRET.

Whatever is wrong with such a statement, its error repeats nothing of it: what stands in the wrong place may be a
password.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from sqe_core.spi.errors import NotSupportedError
from sqe_core.spi.identity import Secret, is_clean_name
from sqe_core.sql.statement import Statement
from sqe_core.sql.statements.attachments import Attach, CreateSecret, Detach, DropSecret
from sqe_core.sql.text.context import StatementText
from sqe_core.sql.text.cursor import Cursor
from sqe_core.sql.text.tokens import NAMES, Kind, Token

_MANY = 64
_ATTACH_HINT = "write ATTACH '<location>' AS name (TYPE type, option value, SECRET secret)"
_CREATE_HINT = "write CREATE SECRET name (TYPE type, key 'value')"
_A_CATALOG = "the name of a catalog"
_OF_A_SECRET = "the name of a secret"  # noqa: S105 - no secret itself
_NUMBER_SIGNS = ("-", "+")


class DiscreetCursor(Cursor):
    """A cursor whose errors tell what was expected, and where, but never what stands there."""

    def fail(self, expected: str | None = None, *, hint: str | None = None) -> NoReturn:
        found = "The statement ends too early" if self.at_end else "Unexpected text"
        message = f"{found}, expected {expected}" if expected else found
        raise self.text.error(message, self.token.start, hint=hint)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Option:
    key: str
    value: str
    at: Token
    is_word: bool
    """Whether the value is a name without quotes, which folds."""

    @property
    def name(self) -> str:
        """The value as the name of something."""
        return self.value.lower() if self.is_word else self.value


def attach(statement: StatementText) -> Statement:
    """ATTACH [OR REPLACE] [DATABASE | CATALOG] [IF NOT EXISTS] '<location>' AS name (TYPE type, option value, …)"""
    cursor = _cursor(statement, 1)
    replace = cursor.accept("or", "replace")
    cursor.accept_any("database", "catalog")
    if_not_exists = cursor.if_not_exists(replace=replace)
    if cursor.token.kind is not Kind.STRING:
        cursor.fail("the location in single quotes", hint=_ATTACH_HINT)
    location = cursor.string()
    if not cursor.accept("as"):
        cursor.fail("AS and the name that the catalog gets", hint=_ATTACH_HINT)
    name = _name(cursor, _A_CATALOG)
    # The options of DuckDB stand after the name like these; WITH is Trino's word before its own.
    cursor.accept("with")
    options = _options(cursor, _ATTACH_HINT) if cursor.at_symbol("(") else {}
    cursor.done()
    if "type" not in options:
        raise cursor.text.error("ATTACH needs TYPE", statement.tokens[0].start, hint=_ATTACH_HINT)
    if "read_only" in options:
        raise NotSupportedError(
            "ATTACH has no READ_ONLY",
            hint="who may write is decided by grants, and by the catalog itself",
            position=statement.text.position(options["read_only"].at.start),
        )
    kind = options.pop("type").name.lower()
    secret = options.pop("secret").name if "secret" in options else None
    return Attach(
        name=name,
        type=kind,
        location=location,
        options={key: option.value for key, option in options.items()},
        secret=secret,
        if_not_exists=if_not_exists,
        replace=replace,
    )


def detach(statement: StatementText) -> Statement:
    """DETACH [DATABASE | CATALOG] [IF EXISTS] name"""
    cursor = _cursor(statement, 1)
    if cursor.before_name("database", "catalog"):
        cursor.advance()
    if_exists = cursor.if_exists()
    name = _name(cursor, _A_CATALOG)
    cursor.done()
    return Detach(name=name, if_exists=if_exists)


def at_secret(cursor: Cursor) -> bool:
    """Whether [PERSISTENT | TEMPORARY] SECRET comes next, after CREATE, DROP or ALTER."""
    lasting = cursor.at_any("persistent", "temporary", "temp")
    return (cursor.peek() if lasting else cursor.token).is_word("secret")


def create_secret(statement: StatementText, place: Cursor, *, replace: bool) -> Statement:
    """CREATE [OR REPLACE] [PERSISTENT | TEMPORARY] SECRET [IF NOT EXISTS] name (TYPE type, key value, …)"""
    cursor = _cursor(statement, place.index)
    word = cursor.accept_any("persistent", "temporary", "temp")
    cursor.expect("secret")
    if_not_exists = cursor.if_not_exists(replace=replace)
    if cursor.at_symbol("("):
        cursor.fail(_OF_A_SECRET, hint=_CREATE_HINT)
    name = _name(cursor, _OF_A_SECRET)
    if not cursor.at_symbol("("):
        cursor.fail('"("', hint=_CREATE_HINT)
    options = _options(cursor, _CREATE_HINT)
    cursor.done()
    if "type" not in options:
        raise cursor.text.error("CREATE SECRET needs TYPE", statement.tokens[0].start, hint=_CREATE_HINT)
    kind = options.pop("type").name.lower()
    return CreateSecret(
        name=name,
        type=kind,
        values={key: Secret(option.value) for key, option in options.items()},
        lasting=None if word is None else word == "persistent",
        if_not_exists=if_not_exists,
        replace=replace,
    )


def drop_secret(statement: StatementText, place: Cursor) -> Statement:
    """DROP SECRET [IF EXISTS] name"""
    cursor = _cursor(statement, place.index)
    cursor.accept_any("persistent", "temporary", "temp")
    cursor.expect("secret")
    if_exists = cursor.if_exists()
    name = _name(cursor, _OF_A_SECRET)
    cursor.done()
    return DropSecret(name=name, if_exists=if_exists)


def refuse_create_catalog(statement: StatementText, cursor: Cursor) -> NoReturn:
    """Trino's CREATE CATALOG, whose properties may hold a login."""
    cursor.refuse("CREATE CATALOG is not supported", hint=_ATTACH_HINT)


def _cursor(statement: StatementText, index: int) -> DiscreetCursor:
    return DiscreetCursor(statement.text, statement.tokens, index)


def _name(cursor: Cursor, what: str) -> str:
    at = cursor.token
    name = cursor.part(what)
    if cursor.at_symbol("."):
        cursor.fail(f"{what}, which is one word")
    if not is_clean_name(name):
        raise cursor.text.error("This name is empty, too long or holds invisible characters", at.start)
    return name


def _options(cursor: Cursor, hint: str) -> dict[str, _Option]:
    """`(k v, k = v, …)`, by key; a key may come once."""
    cursor.expect_symbol("(")
    found: dict[str, _Option] = {}
    while not (found and cursor.accept_symbol(")")):
        if found and not cursor.accept_symbol(","):
            cursor.fail('"," or ")"', hint=hint)
        option = _option(cursor, hint)
        if option.key in found:
            raise cursor.text.error("An option may be given once", option.at.start)
        found[option.key] = option
        if len(found) > _MANY:
            raise cursor.text.error(f"A statement takes {_MANY} options", option.at.start)
    return found


def _option(cursor: Cursor, hint: str) -> _Option:
    at = cursor.token
    if at.kind not in NAMES:
        cursor.fail("the name of an option", hint=hint)
    key = cursor.advance().value.lower()
    if not (cursor.accept_symbol("=") or cursor.accept_symbol("=>")):
        cursor.accept_symbol(":=")
    return _Option(key=key, at=at, is_word=cursor.token.kind is Kind.WORD, value=_value(cursor, hint))


def _value(cursor: Cursor, hint: str) -> str:
    token = cursor.token
    readers: dict[Kind, Callable[[Token], str]] = {
        Kind.STRING: lambda one: one.value,
        Kind.QUOTED: lambda one: one.value,
        # As it was written: what is no name of ours does not fold.
        Kind.WORD: lambda one: cursor.text.sql[one.start : one.end],
        Kind.NUMBER: lambda one: cursor.text.sql[one.start : one.end],
    }
    if token.kind is Kind.PARAMETER:
        cursor.refuse("Parameters cannot stand here", hint="write the value in single quotes; it is never shown")
    sign = ""
    if token.kind is Kind.SYMBOL and token.value in _NUMBER_SIGNS and cursor.peek().kind is Kind.NUMBER:
        sign, token = cursor.advance().value, cursor.token
    read = readers.get(token.kind)
    if read is None:
        cursor.fail("a value in single quotes", hint=hint)
    return sign + read(cursor.advance())
