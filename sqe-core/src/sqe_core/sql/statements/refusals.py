"""What SQE says to statements of other engines, and to those that come later."""

from __future__ import annotations

from typing import NoReturn

from sqe_core.sql.text.context import Dialect, StatementText
from sqe_core.sql.text.similar import meant

_LATER = "it comes with a later release"
_FILES = "create a table and INSERT into it"
_CACHE = "SQE caches what it needs by itself"

# By the first words; the longest match counts. The text completes "X is not supported".
_HINTS: dict[tuple[str, ...], str | None] = {
    ("add",): "SQE loads no code and no files for users",
    ("list", "jar"): "SQE loads no code and no files for users",
    ("list", "file"): "SQE loads no code and no files for users",
    ("cache",): _CACHE,
    ("call",): _LATER,
    ("clear",): _CACHE,
    ("checkpoint",): None,
    ("copy",): _FILES,
    ("declare",): "send values as parameters",
    ("dfs",): None,
    ("do",): None,
    ("exec",): "SQE has no stored procedures",
    ("export",): "select the rows in a client, for example sqe-cli --format csv",
    ("flush",): None,
    ("help",): "the shell's help is .help",
    ("import",): _FILES,
    ("install",): "plugins are installed by the administrator with pip",
    ("load",): _FILES,
    ("lock",): "tables need no locks: each statement commits by itself",
    ("map",): None,
    ("msck",): "Iceberg tables need no repair",
    ("optimize",): f"compaction is a procedure; {_LATER}",
    ("pragma",): "use DESCRIBE t, SHOW SESSION or SET SESSION name = value",
    ("purge",): None,
    ("reduce",): None,
    ("refresh",): "tables are always up to date",
    ("repair",): "Iceberg tables need no repair",
    ("replace",): "write CREATE OR REPLACE TABLE … AS, or MERGE",
    ("savepoint",): "each statement commits by itself",
    ("summarize",): "use SHOW STATS FOR t, or aggregate functions; sqe-cli does it with .summarize t",
    ("uncache",): _CACHE,
    ("unload",): "select the rows in a client, for example sqe-cli --format csv",
    ("unlock",): "tables need no locks",
    ("upsert",): "use MERGE",
    ("vacuum",): f"expiring snapshots is a procedure; {_LATER}",
    ("pivot",): "PIVOT stands in FROM: SELECT * FROM t PIVOT (…)",
    ("unpivot",): "UNPIVOT stands in FROM: SELECT * FROM t UNPIVOT (…)",
    ("exit",): "the shell is left with .quit",
    ("quit",): "the shell is left with .quit",
}

_STATEMENTS = (  # those that most people write
    "select",
    "insert",
    "update",
    "delete",
    "merge",
    "create",
    "drop",
    "alter",
    "show",
    "describe",
    "explain",
)


def refuse(statement: StatementText) -> NoReturn:
    """Refuse a statement that does not begin with a word of the allow-list."""
    cursor = statement.cursor()
    words = (cursor.token.value, cursor.peek().value)
    for known in (words, words[:1]):
        if known in _HINTS:
            name = " ".join(word.upper() for word in known)
            cursor.refuse(f"{name} is not supported", hint=_HINTS[known])
    if statement.dialect is Dialect.SPARK:
        cursor.refuse(f"{words[0].upper()[:40]} is not a statement that SQE runs")
    cursor.fail("a statement such as SELECT, INSERT, CREATE or SHOW", hint=meant(words[0], _STATEMENTS))
