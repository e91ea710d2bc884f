"""What Trino calls a statement that is not a query."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

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

ANALYZE, _MAINTAINED = "ANALYZE", "ALTER TABLE EXECUTE"
TELLS_ROWS = frozenset((ANALYZE, _MAINTAINED))
"""Statements that have the column of such a row, and do not count: ANALYZE says NULL, the other one nothing."""

# Kinds of which Trino tells several statements apart, by the words that they begin with; `…` is a name. The first that
# fits counts. It is a word for the user's eyes: who writes the statement otherwise reads the name of its kind.
_BY_WORDS = (
    ("ALTER TABLE … ADD", "ADD COLUMN"),
    ("ALTER TABLE … RENAME TO", "RENAME TABLE"),
    ("ALTER TABLE … RENAME", "RENAME COLUMN"),
    ("ALTER TABLE … DROP", "DROP COLUMN"),
    ("ALTER TABLE … ALTER COLUMN … SET DATA TYPE", "SET COLUMN TYPE"),
    ("ALTER TABLE … ALTER COLUMN … DROP NOT NULL", "DROP NOT NULL"),
    ("ALTER TABLE … SET PROPERTIES", "SET PROPERTIES"),
    ("ALTER TABLE … EXECUTE", _MAINTAINED),
    ("ALTER VIEW … RENAME", "RENAME VIEW"),
    ("COMMENT ON", "COMMENT"),
    ("ANALYZE", ANALYZE),
    ("COMMIT", "COMMIT"),
    ("ROLLBACK", "ROLLBACK"),
    ("RESET SESSION AUTHORIZATION", "RESET SESSION AUTHORIZATION"),
    ("RESET SESSION", "RESET SESSION"),
    ("SET TIME ZONE", "SET TIME ZONE"),
    ("SET PATH", "SET PATH"),
)
_KINDS = frozenset(
    each.value
    for each in (
        StatementKind.ALTER_TABLE,
        StatementKind.ALTER_VIEW,
        StatementKind.CALL,
        StatementKind.SESSION,
        StatementKind.TRANSACTION,
        StatementKind.UTILITY,
    )
)
_MOST_WORDS, _MOST_READ = 30, 10_000
_WORD = re.compile(r"--[^\n]*|/\*.*?\*/|\"(?:[^\"]|\"\")*\"|\w+|[^\s\w]", re.DOTALL)


def update_type(kind: str, sql: str = "") -> str | None:
    """Return the name of a statement without columns of its own.

    Args:
        kind: the value of a `StatementKind`; empty for what failed before it was known.
        sql: its text.
    """
    if kind in _KINDS:
        words = [word for word in islice(_words(sql[:_MOST_READ]), _MOST_WORDS) if word not in ("IF", "EXISTS")]
        for pattern, name in _BY_WORDS:
            if _begins(words, pattern.split()):
                return name
    return _NAMES.get(kind, kind.replace("_", " ").upper()) or None


def _words(sql: str) -> Iterator[str]:
    """Yield the words of a text in upper case, without comments; a name with its dots is one."""
    name = ""
    for match in _WORD.finditer(sql):
        word = match.group()
        if word.startswith(("--", "/*")):
            continue
        if word == "." or name.endswith("."):
            name += word
        else:
            if name:
                yield name.upper()
            name = word
    yield name.upper()


def _begins(words: list[str], pattern: list[str]) -> bool:
    pairs = zip(words, pattern, strict=False)
    return len(words) >= len(pattern) and all(wanted in ("…", word) for word, wanted in pairs)
