"""CREATE POLICY and DROP POLICY."""

from __future__ import annotations

from sqe_core.spi.policy import Grantee, Mask, SqlMask
from sqe_core.sql.statement import Statement
from sqe_core.sql.statements.governance import CreatePolicy, DropPolicy
from sqe_core.sql.statements.grant_parts import MASKS, bracketed_expression, clean, grantees, named_mask, tag_name
from sqe_core.sql.text.context import StatementText
from sqe_core.sql.text.cursor import Cursor
from sqe_core.sql.text.tokens import Kind

_A_POLICY = "the name of a policy"


def create_policy(statement: StatementText, cursor: Cursor, *, replace: bool) -> Statement:
    """CREATE [OR REPLACE] POLICY p ON TABLE t | TAG g COLUMN MASK … | ROW FILTER …; the cursor stands after POLICY."""
    if cursor.at("if", "not", "exists"):
        cursor.refuse("CREATE POLICY IF NOT EXISTS is not supported", hint="use CREATE OR REPLACE POLICY")
    name = clean(cursor, _A_POLICY)
    cursor.expect("on")
    if cursor.accept("tag"):
        return _on_tag(statement, cursor, name, replace=replace)
    if not cursor.accept("table"):
        cursor.fail("TABLE or TAG")
    table = cursor.name("the name of a table")
    if cursor.accept("row", "filter"):
        receivers = _receivers(cursor)
        cursor.expect("using")
        condition = bracketed_expression(statement, cursor, "a condition")
        cursor.done()
        return CreatePolicy(name=name, grantees=receivers, table=table, row_filter=condition, replace=replace)
    if not cursor.accept("column", "mask"):
        cursor.fail("COLUMN MASK or ROW FILTER")
    kind, receivers = _MaskType.read(cursor), _receivers(cursor)
    cursor.expect("on", "column")
    column = cursor.part("the name of a column")
    if cursor.at_symbol("."):
        cursor.refuse("Fields inside a column cannot be masked on their own", hint="name the column")
    mask = kind.finish(statement, cursor)
    cursor.done()
    return CreatePolicy(name=name, grantees=receivers, table=table, column=column, mask=mask, replace=replace)


def _on_tag(statement: StatementText, cursor: Cursor, name: str, *, replace: bool) -> Statement:
    tag = tag_name(cursor)
    if cursor.at("row"):
        cursor.refuse("A tag has no rows to filter", hint="write the row filter ON TABLE t")
    if not cursor.accept("column", "mask"):
        cursor.fail("COLUMN MASK")
    kind, receivers = _MaskType.read(cursor), _receivers(cursor)
    if cursor.at("on"):
        cursor.refuse("A policy on a tag names no column", hint="it masks every column that carries the tag")
    mask = kind.finish(statement, cursor)
    cursor.done()
    return CreatePolicy(name=name, grantees=receivers, tag=tag, mask=mask, replace=replace)


def _receivers(cursor: Cursor) -> tuple[Grantee, ...]:
    cursor.expect("to")
    return grantees(cursor)


class _MaskType:
    """The type of a mask; for CUSTOM its expression comes at the end of the statement."""

    def __init__(self, mask: Mask | None, *, custom: bool = False) -> None:
        self._mask = mask
        self._custom = custom

    @classmethod
    def read(cls, cursor: Cursor) -> _MaskType:
        """Read the name of a mask, in quotes or not, RANGE(n) or PARTIAL(first, last)."""
        at, first = cursor.token, cursor.index
        if at.kind is Kind.STRING:
            written = cursor.advance().value
        elif at.kind is Kind.WORD:
            written = cursor.advance().value
            if cursor.at_symbol("("):
                cursor.skip_brackets()
                written = cursor.source(first, cursor.index)
        else:
            cursor.fail("the type of a mask", hint=f"one of {', '.join(name.upper() for name in MASKS)}")
        if written.lower() == "custom":
            return cls(None, custom=True)
        return cls(None) if written.lower() == "mask_none" else cls(named_mask(cursor, written, at))

    def finish(self, statement: StatementText, cursor: Cursor) -> Mask | None:
        """Read USING (…), which belongs to CUSTOM alone."""
        if not self._custom:
            if cursor.at("using"):
                cursor.refuse("USING belongs to the mask CUSTOM and to row filters")
            return self._mask
        cursor.expect("using")
        return SqlMask(expression=bracketed_expression(statement, cursor, "an expression"))


def drop_policy(cursor: Cursor) -> Statement:
    """DROP POLICY [IF EXISTS] p; the cursor stands after POLICY."""
    if_exists = cursor.if_exists()
    name = clean(cursor, _A_POLICY)
    cursor.done()
    return DropPolicy(name=name, if_exists=if_exists)
