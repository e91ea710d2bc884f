"""What the statements of governance share: objects, grantees, filters and masks."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from difflib import get_close_matches
from types import MappingProxyType
from typing import cast

from sqe_core.spi.identity import is_clean_name
from sqe_core.spi.policy import (
    ColumnMask,
    ConstantMask,
    Grantee,
    HashMask,
    Mask,
    NullMask,
    PartialMask,
    RangeMask,
    SqlMask,
    YearMask,
)
from sqe_core.spi.sql import SqlExpression
from sqe_core.sql.statements.governance import GrantObject, Scope
from sqe_core.sql.text.context import StatementText
from sqe_core.sql.text.cursor import Cursor
from sqe_core.sql.text.tokens import NAMES, Kind, Token

_MANY = 1_000
"""Columns, grantees or tags that one statement may list."""

_LONGEST_TAG = 128
_BRACKETS = MappingProxyType({"(": ")", "[": "]", "{": "}"})

_SHOWN = 4
MASKS: Mapping[str, Mask] = MappingProxyType(
    {
        "redact": ConstantMask(),
        "hash": HashMask(),
        "null": NullMask(),
        "year": YearMask(),
        "mask": PartialMask(),
        "mask_null": NullMask(),
        "mask_hash": HashMask(),
        "mask_show_last_4": PartialMask(show_last=_SHOWN),
        "mask_show_first_4": PartialMask(show_first=_SHOWN),
        "mask_date_show_year": YearMask(),
    }
)
"""The masks that have a name (docs/policies.md)."""

_RANGE = re.compile(r"\s*range\s*\(\s*([0-9]{1,30}(?:\.[0-9]{1,30})?)\s*\)\s*", re.IGNORECASE)
_PARTIAL = re.compile(r"\s*partial\s*\(\s*([0-9]{1,4})\s*,\s*([0-9]{1,4})\s*\)\s*", re.IGNORECASE)
_CALL = re.compile(r"\s*\w+\s*\(.*\)\s*", re.DOTALL)
_MASK_HINT = "a mask is 'REDACT', 'HASH', 'NULL', 'RANGE(n)', 'PARTIAL(first, last)' or an SQL expression"


def granted_object(cursor: Cursor) -> GrantObject:
    """Read what stands after ON."""
    scope: Scope = "object"
    if cursor.at("all") or cursor.at("future"):
        every = _objects_in_schema(cursor)
        if every is not None:
            return every
    if cursor.accept_any("schema", "namespace"):
        return GrantObject(scope="schema", name=cursor.name("the name of a schema", most=2))
    if cursor.at_any("database", "catalog"):
        cursor.advance()
        return GrantObject(scope="catalog", name=(_catalog(cursor),))
    if cursor.accept("table"):
        scope = "table"
    elif cursor.before_name("view") and not _ends_object(cursor.peek()):
        cursor.advance()
        scope = "view"
    return GrantObject(scope=scope, name=cursor.name("the name of a table or a view"))


def _ends_object(token: Token) -> bool:
    return any(token.is_word(word) for word in ("to", "from", "for", "with"))


def _catalog(cursor: Cursor) -> str:
    name = cursor.part("the name of a catalog")
    if cursor.at_symbol("."):
        cursor.fail(hint="DATABASE and CATALOG take the name of a catalog; for a schema write SCHEMA")
    return name


def _objects_in_schema(cursor: Cursor) -> GrantObject | None:
    which = cursor.token.value
    kind = cursor.peek()
    if not (kind.is_word("tables") or kind.is_word("views")):
        return None
    cursor.advance()
    cursor.advance()
    cursor.expect("in")
    if cursor.accept_any("schema", "namespace") is None:
        cursor.fail("SCHEMA")
    name = cursor.name("the name of a schema", most=2)
    return GrantObject(scope=cast(Scope, f"{which}_{kind.value}"), name=name)


def clean(cursor: Cursor, what: str) -> str:
    """Read the name of a user, role, group, policy or tag."""
    at = cursor.token
    found = cursor.string() if at.kind is Kind.STRING else cursor.part(what)
    if not is_clean_name(found):
        raise cursor.text.error("This name is empty, too long or holds invisible characters", at.start)
    return found


def tag_name(cursor: Cursor) -> str:
    """Read a tag. It is a word of the policies, not a name of SQL: as written, whatever its case."""
    at = cursor.token
    if at.kind not in (Kind.STRING, *NAMES):
        cursor.fail("a tag in single quotes")
    written = cursor.source(cursor.index, cursor.index + 1) if at.kind is Kind.WORD else at.value
    if len(clean(cursor, "a tag")) > _LONGEST_TAG:
        raise cursor.text.error(f"A tag has at most {_LONGEST_TAG} characters", at.start)
    return written


def grantee(cursor: Cursor) -> Grantee:
    """Read USER u, ROLE r, GROUP g, PUBLIC, or the bare name of a role."""
    if cursor.accept("public"):
        return Grantee(type="public")
    if cursor.at_any("user", "role", "group"):
        word = cursor.advance().value
        if cursor.at("public"):
            cursor.fail(f"the name of a {word}", hint="PUBLIC stands alone and means everybody")
        name = clean(cursor, f"the name of a {word}")
        if word == "user":
            return Grantee(type="user", name=name)
        return Grantee(type="role" if word == "role" else "group", name=name)
    if cursor.token.kind not in NAMES:
        cursor.fail("USER, ROLE, GROUP or PUBLIC")
    return Grantee(type="role", name=clean(cursor, "the name of a role"))


def grantees(cursor: Cursor) -> tuple[Grantee, ...]:
    """Read a list of grantees. After a user or a group each one says what it is: `USER a, b` could mean two things."""
    found: list[Grantee] = []
    while True:
        named = cursor.at_any("user", "role", "group", "public")
        at = cursor.token
        one = grantee(cursor)
        if not named and found and found[-1].type in ("user", "group"):
            raise cursor.text.error(
                f"Say what {one.name} is: a user, a role or a group",
                at.start,
                hint=f"write {found[-1].type.upper()} {one.name} or ROLE {one.name}",
            )
        if one not in found:
            found.append(one)
        if len(found) > _MANY:
            cursor.refuse(f"One statement takes {_MANY} grantees")
        if not cursor.accept_symbol(","):
            return tuple(found)


def user_name(cursor: Cursor) -> str | None:
    """Read FOR [USER] u if it comes next."""
    if not cursor.accept("for"):
        return None
    if cursor.token.kind is not Kind.STRING:
        cursor.expect("user")
    return clean(cursor, "the name of a user")


def expression(
    statement: StatementText, cursor: Cursor, what: str, *, ends: Callable[[Cursor], bool] = lambda cursor: False
) -> SqlExpression:
    """Read an expression as it is written, up to where `ends` says so outside of brackets.

    Raises:
        UserError: nothing stands there, brackets do not match, or a value is left open.
    """
    first = cursor.index
    open_brackets: list[str] = []
    while not cursor.at_end and (open_brackets or not ends(cursor)):
        token = cursor.token
        if token.kind is Kind.PARAMETER:
            cursor.refuse("A policy cannot hold parameters", hint="write the value itself")
        if token.kind is Kind.SYMBOL:
            if token.value in _BRACKETS:
                open_brackets.append(_BRACKETS[token.value])
            elif token.value in _BRACKETS.values() and (not open_brackets or open_brackets.pop() != token.value):
                cursor.fail(what)
        cursor.advance()
    if cursor.index == first:
        cursor.fail(what)
    if open_brackets:
        cursor.fail(f'"{open_brackets[-1]}"')
    return SqlExpression(text=cursor.source(first, cursor.index), dialect=statement.dialect.value)


def bracketed_expression(statement: StatementText, cursor: Cursor, what: str) -> SqlExpression:
    cursor.expect_symbol("(")
    found = expression(statement, cursor, what, ends=lambda cursor: cursor.at_symbol(")"))
    cursor.expect_symbol(")")
    return found


def mask(statement: StatementText, cursor: Cursor, *, ends: Callable[[Cursor], bool]) -> Mask:
    """Read a mask: its name, quoted or not, or an SQL expression."""
    first = cursor.index
    found = expression(statement, cursor, _MASK_HINT, ends=ends)
    tokens = cursor.tokens[first : cursor.index]
    if len(tokens) == len("()") + 1 and tokens[0].is_symbol("("):
        tokens = tokens[1:-1]
    if len(tokens) == 1 and tokens[0].kind is Kind.STRING:
        return named_mask(cursor, tokens[0].value, tokens[0], constants=True)
    if len(tokens) == 1 and tokens[0].kind is Kind.WORD and tokens[0].value in MASKS:
        return MASKS[tokens[0].value]
    sized = _sized(cursor, found.text, tokens[0])
    return sized if sized is not None else SqlMask(expression=found)


def named_mask(cursor: Cursor, written: str, at: Token, *, constants: bool = False) -> Mask:
    """Return the mask of a name; with `constants` any other text is what every value reads as.

    What looks like a misspelt name is refused: the text itself would be shown in place of every value.
    """
    word = written.strip().lower()
    if word in MASKS:
        return MASKS[word]
    sized = _sized(cursor, written, at)
    if sized is not None:
        return sized
    similar = get_close_matches(word, [*MASKS, "custom", "mask_none"], n=1, cutoff=0.75)
    if similar:
        raise cursor.text.error(
            f"There is no mask {written[:40]}", at.start, hint=f"did you mean '{similar[0].upper()}'? {_MASK_HINT}"
        )
    if not constants or _CALL.fullmatch(written):
        hint = "an expression stands without quotes" if constants else _MASK_HINT
        raise cursor.text.error(f"There is no mask {written[:40]}", at.start, hint=hint)
    return ConstantMask(value=written)


def _sized(cursor: Cursor, written: str, at: Token) -> Mask | None:
    found = _RANGE.fullmatch(written)
    if found:
        width = Decimal(found.group(1))
        if width <= 0:
            raise cursor.text.error("The width of a RANGE is greater than zero", at.start)
        return RangeMask(width=int(width) if width == width.to_integral_value() else width)
    found = _PARTIAL.fullmatch(written)
    if found:
        return PartialMask(show_first=int(found.group(1)), show_last=int(found.group(2)))
    return None


@dataclass(slots=True, kw_only=True)
class Restrictions:
    """What a GRANT says beside the privileges: columns, masks, rows. Filled while the statement is read."""

    columns: list[str] | None = None
    masks: dict[str, Mask] = field(default_factory=dict)
    row_filter: SqlExpression | None = None

    @property
    def column_masks(self) -> tuple[ColumnMask, ...]:
        """The masks, in the order in which they were written."""
        return tuple(ColumnMask(column=column, mask=mask) for column, mask in self.masks.items())

    def __bool__(self) -> bool:
        return self.columns is not None or bool(self.masks) or self.row_filter is not None

    def read_columns(self, statement: StatementText, cursor: Cursor, *, masks: bool = True) -> None:
        """Read (c1, c2 MASKED WITH …)."""
        columns = self.columns = [] if self.columns is None else self.columns

        def granted(cursor: Cursor) -> None:
            at = cursor.token
            column = cursor.part("the name of a column")
            self._check_column(cursor, column, at, columns)
            columns.append(column)
            if masks and cursor.accept("masked", "with"):
                self._add_mask(cursor, column, at, mask(statement, cursor, ends=_ends_item))

        cursor.bracketed(granted)

    def read_clauses(self, statement: StatementText, cursor: Cursor, *, ends: Callable[[Cursor], bool]) -> None:
        """Read ROWS WHERE … and MASKED WITH (…), in any order, as long as they come."""
        while True:
            at = cursor.token
            if cursor.accept("rows"):
                if self.row_filter is not None:
                    raise cursor.text.error(
                        "ROWS WHERE is written twice", at.start, hint="join the conditions with AND"
                    )
                cursor.expect("where")
                self.row_filter = expression(
                    statement, cursor, "a condition", ends=lambda cursor: cursor.at("masked", "with") or ends(cursor)
                )
            elif cursor.accept("masked"):
                cursor.expect("with")
                cursor.bracketed(lambda cursor: self._read_mask(statement, cursor))
            else:
                return

    def _read_mask(self, statement: StatementText, cursor: Cursor) -> None:
        at = cursor.token
        column = cursor.part("the name of a column")
        if not cursor.accept("as"):
            cursor.expect_symbol("=")
        self._add_mask(cursor, column, at, mask(statement, cursor, ends=_ends_item))

    def _add_mask(self, cursor: Cursor, column: str, at: Token, found: Mask) -> None:
        self._check_column(cursor, column, at, self.masks)
        self.masks[column] = found

    @staticmethod
    def _check_column(cursor: Cursor, column: str, at: Token, known: object) -> None:
        assert isinstance(known, (list, dict))
        if column.lower() in {other.lower() for other in known}:
            raise cursor.text.error(f"Column {column} is named twice", at.start)
        if len(known) >= _MANY:
            raise cursor.text.error(f"One statement takes {_MANY} columns", at.start)
        if cursor.at_symbol("."):
            cursor.refuse("Fields inside a column cannot be granted or masked on their own", hint="name the column")


def _ends_item(cursor: Cursor) -> bool:
    return cursor.at_symbol(",") or cursor.at_symbol(")")
