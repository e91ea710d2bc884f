"""What Trino calls a statement that is not a query."""

from __future__ import annotations

from sqe_core.spi import StatementKind

_NAMES = {
    StatementKind.CREATE_TABLE_AS.value: "CREATE TABLE",
    StatementKind.TRUNCATE.value: "TRUNCATE TABLE",
    StatementKind.SESSION.value: "SET SESSION",
    StatementKind.TRANSACTION.value: "START TRANSACTION",
    StatementKind.ROLE.value: "SET ROLE",
}
_WRITES = (StatementKind.INSERT, StatementKind.UPDATE, StatementKind.DELETE, StatementKind.MERGE)
COUNTED = frozenset(kind.value for kind in (*_WRITES, StatementKind.CREATE_TABLE_AS))
"""Statements that answer a row with how many rows they wrote."""


def update_type(kind: str) -> str | None:
    """Return the name of a statement without columns of its own.

    Args:
        kind: the value of a `StatementKind`; empty for what failed before it was known.
    """
    return _NAMES.get(kind, kind.replace("_", " ").upper()) or None
