"""Answers in the columns that Trino's clients expect."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from sqe_core.catalog.information_schema import to_table

COLUMNS = ("Column", "Type", "Extra", "Comment")
GRANTS = (
    "Grantor",
    "Grantor Type",
    "Grantee",
    "Grantee Type",
    "Catalog",
    "Schema",
    "Table",
    "Privilege",
    "Grantable",
    "With Hierarchy",
)
_FUNCTIONS = pa.schema(
    [
        ("Function", pa.string()),
        ("Return Type", pa.string()),
        ("Argument Types", pa.string()),
        ("Function Type", pa.string()),
        ("Deterministic", pa.bool_()),
        ("Description", pa.string()),
    ]
)
_CHANGING = frozenset(("now", "rand", "random", "shuffle", "uuid"))


def functions(listed: Sequence[tuple[str, str, str]]) -> pa.Table:
    """Return SHOW FUNCTIONS of names, kinds and signatures as documentation has them."""
    return to_table(_FUNCTIONS, list(_function_rows(listed)))


def _function_rows(listed: Sequence[tuple[str, str, str]]) -> Iterator[tuple[object, ...]]:
    for name, kind, signature in listed:
        head, _, result = signature.partition("->")
        arguments = head.partition("(")[2].rpartition(")")[0].strip()
        changing = name in _CHANGING or name.startswith(("current_", "local"))
        yield name, result.strip(), arguments, kind, not changing, signature
