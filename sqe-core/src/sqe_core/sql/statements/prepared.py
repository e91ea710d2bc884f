"""Prepared statements, in Trino's words, and CALL of a catalog's procedures.

PREPARE p FROM SELECT …     EXECUTE p [USING 1, 'a']     EXECUTE IMMEDIATE 'SELECT …' [USING 1]     DEALLOCATE PREPARE p
DESCRIBE INPUT p            DESCRIBE OUTPUT p            CALL catalog.system.procedure(value, …) or (name => value, …)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, Literal

from sqe_core.sql.statement import Statement, StatementKind
from sqe_core.sql.statements.attachments import Attach, CreateSecret
from sqe_core.sql.text.constants import constant
from sqe_core.sql.text.context import StatementText
from sqe_core.sql.text.cursor import Cursor
from sqe_core.sql.text.literals import literal_value

_A_NAME = "the name of a prepared statement"


class Prepare(Statement, kind=StatementKind.PREPARE):
    """`prepared` is the text of a statement that was recognised; it is judged when it is executed."""

    name: str
    prepared: str = field(repr=False)


class Execute(Statement, kind=StatementKind.EXECUTE):
    name: str
    values: tuple[Any, ...] = field(default=(), repr=False)


class ExecuteImmediate(Statement, kind=StatementKind.EXECUTE):
    """The text comes with the statement."""

    executed: str = field(repr=False)
    values: tuple[Any, ...] = field(default=(), repr=False)


class Deallocate(Statement, kind=StatementKind.DEALLOCATE):
    name: str


class DescribePrepared(Statement, kind=StatementKind.DESCRIBE):
    """DESCRIBE INPUT: the parameters; DESCRIBE OUTPUT: the columns of the result."""

    name: str
    what: Literal["input", "output"]


class Call(Statement, kind=StatementKind.CALL):
    """Arguments are literals, by their places or by their names. Without a catalog it is the current one."""

    catalog: str | None
    procedure: str
    places: tuple[Any, ...] = ()
    named: Mapping[str, Any] = field(default_factory=dict)


_STANDING_FOR_OTHERS = (Prepare, Execute, ExecuteImmediate, Deallocate, DescribePrepared)


def prepare(statement: StatementText, recognise: Callable[[StatementText], Statement]) -> Statement:
    """PREPARE name FROM statement."""
    cursor = statement.cursor(1)
    name = cursor.part(_A_NAME)
    cursor.expect("from")
    if cursor.at_end:
        cursor.fail("a statement")
    start = cursor.token
    part = statement.part(cursor.index, statement.last)
    inner = recognise(part)
    if isinstance(inner, _STANDING_FOR_OTHERS):
        cursor.refuse("A prepared statement may not prepare or execute another one", at=start)
    if isinstance(inner, Attach | CreateSecret):
        cursor.refuse("A statement that holds a login cannot be prepared", hint="send it as it is", at=start)
    return Prepare(name=name, prepared=part.own_text)


def execute(statement: StatementText) -> Statement:
    """EXECUTE name [USING …], EXECUTE IMMEDIATE 'text' [USING …]."""
    cursor = statement.cursor(1)
    text = None
    if cursor.accept("immediate"):
        text = cursor.string("a statement in single quotes")
        name = ""
    else:
        name = cursor.part(_A_NAME)
    values = cursor.items(constant) if cursor.accept("using") else ()
    cursor.done()
    given = tuple(values)
    if text is not None:
        return ExecuteImmediate(executed=text, values=given)
    return Execute(name=name, values=given)


def deallocate(statement: StatementText) -> Statement:
    """DEALLOCATE PREPARE name."""
    cursor = statement.cursor(1)
    cursor.expect("prepare")
    name = cursor.part(_A_NAME)
    cursor.done()
    return Deallocate(name=name)


def describe(cursor: Cursor) -> Statement:
    """DESCRIBE INPUT name, DESCRIBE OUTPUT name; the cursor stands before INPUT or OUTPUT."""
    what: Literal["input", "output"] = "input" if cursor.advance().value == "input" else "output"
    name = cursor.part(_A_NAME)
    cursor.done()
    return DescribePrepared(name=name, what=what)


def call(cursor: Cursor) -> Statement:
    """CALL [catalog.]system.procedure(…); the cursor stands before the name."""
    *catalog, _, procedure = cursor.name("the name of a procedure")
    places: list[Any] = []
    named: dict[str, Any] = {}
    cursor.expect_symbol("(")
    while not cursor.at_symbol(")"):
        if cursor.peek().is_symbol("=>"):
            at = cursor.token
            name = cursor.part("the name of an argument")
            cursor.advance()
            if name in named:
                cursor.refuse(f"Argument {name} is given twice", at=at)
            named[name] = literal_value(cursor, what="An argument")
        else:
            places.append(literal_value(cursor, what="An argument"))
        if not cursor.accept_symbol(","):
            break
    cursor.expect_symbol(")")
    cursor.done()
    if places and named:
        cursor.refuse("Arguments are given by their places or by their names, not both")
    return Call(catalog=catalog[0] if catalog else None, procedure=procedure, places=tuple(places), named=named)
