"""Which statement is this? An allow-list by leading words; whatever is not on it is refused with what to do instead."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from sqe_core.sql.statement import Statement, StatementKind
from sqe_core.sql.statements import (
    alter,
    attach,
    create,
    drop,
    grants,
    prepared,
    refusals,
    session_control,
    session_statements,
    show,
    show_governance,
)
from sqe_core.sql.text.context import Dialect, StatementText
from sqe_core.sql.text.tokens import Kind, outside_brackets

Recogniser = Callable[[StatementText], Statement]

_QUERY_STARTS = frozenset(("select", "with", "values", "table", "from"))


def recognise(statement: StatementText) -> Statement:
    cursor = statement.cursor()
    first = cursor.token
    if first.kind is Kind.END:
        raise statement.text.error("The statement is empty", 0, hint="write SQL, for example SELECT 1")
    if first.is_symbol("("):
        return statement.engine.query(statement, 0, statement.last)
    if first.kind is not Kind.WORD:
        cursor.fail("a statement such as SELECT, SHOW or CREATE")
    found = _STATEMENTS.get(first.value)
    if found is not None:
        return found(statement)
    refusals.refuse(statement)


def _query(statement: StatementText) -> Statement:
    if statement.tokens[0].is_word("from") and statement.dialect is not Dialect.SPARK:
        statement.cursor().fail("SELECT", hint="begin with SELECT, as in SELECT * FROM t")
    kind = _main_word(statement) if statement.tokens[0].value in ("with", "from") else None
    if kind is not None:
        return statement.engine.translate(statement, 0, statement.last, kind)
    return statement.engine.query(statement, 0, statement.last)


def _main_word(statement: StatementText) -> StatementKind | None:
    """The statement that follows WITH, or FROM in Spark's order; None for a query."""
    for token in outside_brackets(statement.tokens[1:]):
        if token.kind is Kind.WORD and token.value in ("select", "values", "table", *_CHANGES):
            return _CHANGES.get(token.value)
    return None


_CHANGES: Mapping[str, StatementKind] = MappingProxyType(
    {
        "insert": StatementKind.INSERT,
        "update": StatementKind.UPDATE,
        "delete": StatementKind.DELETE,
        "merge": StatementKind.MERGE,
    }
)


def _change(statement: StatementText) -> Statement:
    kind = _CHANGES[statement.tokens[0].value]
    return statement.engine.translate(statement, 0, statement.last, kind)


_STATEMENTS: Mapping[str, Recogniser] = MappingProxyType(
    {
        **dict.fromkeys(_QUERY_STARTS, _query),
        **dict.fromkeys(_CHANGES, _change),
        "show": show.show,
        "describe": show.describe,
        "desc": show.describe,
        "explain": lambda statement: show.explain(statement, recognise),
        "use": session_statements.use,
        "set": session_statements.set_,
        "reset": session_statements.reset,
        "begin": session_statements.begin,
        "start": session_statements.begin,
        "commit": session_statements.end_transaction,
        "rollback": session_statements.end_transaction,
        "analyze": session_statements.analyze,
        "create": create.create,
        "drop": drop.drop,
        "alter": alter.alter,
        "comment": alter.comment,
        "truncate": alter.truncate,
        "grant": grants.grant,
        "revoke": grants.revoke,
        "deny": grants.deny,
        "check": show_governance.check,
        "kill": session_control.kill,
        "call": session_control.call,
        "prepare": lambda statement: prepared.prepare(statement, recognise),
        "execute": prepared.execute,
        "deallocate": prepared.deallocate,
        "attach": attach.attach,
        "detach": attach.detach,
    }
)
