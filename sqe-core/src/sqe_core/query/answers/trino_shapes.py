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


_SQL_TYPES = {
    pa.string(): "varchar",
    pa.int32(): "integer",
    pa.int64(): "bigint",
    pa.bool_(): "boolean",
    pa.float64(): "double",
    pa.list_(pa.string()): "array(varchar)",
    pa.map_(pa.string(), pa.float64()): "map(varchar, double)",
    pa.timestamp("us", tz="UTC"): "timestamp(3) with time zone",
    pa.null(): "unknown",
}


def with_sql_types(schema: pa.Schema) -> pa.Schema:
    """Return the columns of an answer of ours, which tell what SQL calls their types."""
    return pa.schema([_with_sql_type(field) for field in schema])


def _with_sql_type(field: pa.Field) -> pa.Field:
    told = field.metadata or {}
    name = _SQL_TYPES.get(field.type)
    return field if b"sql_type" in told or name is None else field.with_metadata({**told, "sql_type": name})
