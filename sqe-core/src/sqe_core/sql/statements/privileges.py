"""Privileges as they are written, and the levels at which each means something."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from sqe_core.spi.policy import Privilege
from sqe_core.sql.statements.governance import GrantObject, Scope
from sqe_core.sql.text.cursor import Cursor
from sqe_core.sql.text.tokens import Kind

_WRITTEN: Mapping[tuple[str, ...], Privilege] = MappingProxyType(
    {
        **{tuple(one.value.lower().split()): one for one in Privilege},
        **dict.fromkeys((("update",), ("delete",), ("truncate",), ("merge",), ("append",)), Privilege.INSERT),
        ("write",): Privilege.MODIFY,
        ("read",): Privilege.SELECT,
        ("usage",): Privilege.USE,
        ("describe",): Privilege.MONITOR,
        ("create", "table"): Privilege.CREATE,
        ("create", "schema"): Privilege.CREATE_NAMESPACE,
        ("alter", "table"): Privilege.ALTER,
        ("drop", "table"): Privilege.DROP,
        ("all", "privileges"): Privilege.ALL,
    }
)
_WORDS = frozenset(words[0] for words in _WRITTEN)

_CONTAINERS: frozenset[Scope] = frozenset(("catalog", "schema"))
_ANY_VIEWS: frozenset[Scope] = frozenset((*_CONTAINERS, "view", "object", "all_views", "future_views"))
_ANY_TABLES: frozenset[Scope] = frozenset((*_CONTAINERS, "table", "object", "all_tables", "future_tables"))

_LEVELS: Mapping[Privilege, frozenset[Scope]] = MappingProxyType(
    {
        **dict.fromkeys((Privilege.CREATE, Privilege.CREATE_NAMESPACE, Privilege.CREATE_VIEW), _CONTAINERS),
        Privilege.USE: _CONTAINERS,
        **dict.fromkeys((Privilege.DROP_VIEW, Privilege.SELECT_VIEW), _ANY_VIEWS),
        **dict.fromkeys((Privilege.INSERT, Privilege.MODIFY), _ANY_TABLES),
    }
)
_SCOPES = {
    "catalog": "a catalog",
    "schema": "a schema",
    "table": "a table",
    "view": "a view",
    "object": "a table or a view",
    "all_tables": "tables",
    "all_views": "views",
    "future_tables": "tables",
    "future_views": "views",
}


def at_privilege(cursor: Cursor) -> bool:
    """Whether a word comes next with which a privilege begins."""
    return cursor.token.kind is Kind.WORD and cursor.token.value in _WORDS


def privilege(cursor: Cursor) -> Privilege:
    """Read one privilege, of one word or two."""
    first, second = cursor.token, cursor.peek()
    if first.kind is Kind.WORD:
        for words in ((first.value, second.value), (first.value,)):
            if len(words) == 1 or second.kind is Kind.WORD:
                found = _WRITTEN.get(words)
                if found is not None:
                    cursor.index += len(words)
                    return found
    cursor.fail("a privilege", hint="for example SELECT, INSERT, ALTER or ALL; docs/governance.md lists them")


def level_fault(privilege: Privilege, granted_on: GrantObject) -> str | None:
    """Say why a privilege means nothing on such an object; None when it does."""
    levels = _LEVELS.get(privilege)
    if levels is None or granted_on.scope in levels:
        return None
    return f"{privilege.value} cannot be granted on {_SCOPES[granted_on.scope]}"
