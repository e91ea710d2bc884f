"""Trino's table properties: each is one of Iceberg's, or refused with what to do instead.

`format`, `partitioning`, `sorted_by` and `extra_properties` are no names of properties, and read where they stand.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqe_core.sql.text.clauses import Property
from sqe_core.sql.text.cursor import Cursor
from sqe_core.sql.text.tokens import Lexicon, Text, Token, tokenize

ICEBERG_NAMES: Mapping[str, str] = {
    "format_version": "format-version",
    "compression_codec": "write.parquet.compression-codec",
    "max_commit_retry": "commit.retry.num-retries",
    "delete_after_commit_enabled": "write.metadata.delete-after-commit.enabled",
    "max_previous_versions": "write.metadata.previous-versions-max",
    "parquet_bloom_filter_columns": "write.parquet.bloom-filter-columns",
    "target_max_file_size": "write.target-file-size-bytes",
    "parquet_writer_row_group_size": "write.parquet.row-group-size-bytes",
}
SIZES = frozenset(("target_max_file_size", "parquet_writer_row_group_size"))
_PLACES = "the catalog chooses where a table's files lie"
REFUSED: Mapping[str, str | None] = {
    "location": _PLACES,
    "data_location": _PLACES,
    "object_store_layout_enabled": _PLACES,
    "orc_bloom_filter_columns": "tables are stored as Parquet",
    "orc_bloom_filter_fpp": "tables are stored as Parquet",
    "identifier_field_ids": "use ALTER TABLE t SET IDENTIFIER FIELDS … after it",
}
_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([kMGTP]?B)\s*")
_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


def property_value(cursor: Cursor, one: Property) -> str:
    """Return the value of a property as Iceberg writes it."""
    value = ",".join(one.value) if isinstance(one.value, tuple) else one.value
    if value is None:
        cursor.refuse(f"The table property {one.key} needs a value", at=one.at)
    if one.key in SIZES:
        found = _SIZE.fullmatch(value)
        if found is None:
            cursor.refuse(f"{one.key} has to be a size such as '512MB'", at=one.at)
        return str(int(float(found[1]) * 1024 ** _UNITS.index(found[2])))
    return "uncompressed" if one.key == "compression_codec" and value.lower() == "none" else value


_TRANSFORMS = ("year", "month", "day", "hour", "bucket", "truncate")


def partition_field(outer: Cursor, at: Token, written: str) -> tuple[str, str, int | None]:
    """Read a transform of partitioning, as in 'bucket(id, 4)'; return its name, its column and its number."""
    text = Text(written)
    cursor = Cursor(text, tokenize(text, Lexicon.ANSI))
    kind, size = "identity", None
    if cursor.peek().is_symbol("("):
        kind = cursor.part("a transform").removesuffix("s")
        if kind not in _TRANSFORMS:
            outer.refuse(f"Unknown partition transform {kind}", hint=f"there are {', '.join(_TRANSFORMS)}", at=at)
        cursor.expect_symbol("(")
    column = cursor.part("the name of a column")
    if kind in ("bucket", "truncate"):
        cursor.expect_symbol(",")
        size = cursor.integer()
    if kind != "identity":
        cursor.expect_symbol(")")
    if not cursor.at_end or (size is not None and not 0 < size < 2**31):
        outer.refuse(f"{written} is no partition transform", at=at)
    return kind, column, size


def sort_field(outer: Cursor, at: Token, written: str) -> tuple[str, str, str]:
    """Read a column of sorted_by, as in 'a DESC NULLS LAST'; return it with its direction and the place of NULLs."""
    text = Text(written)
    cursor = Cursor(text, tokenize(text, Lexicon.ANSI))
    column = cursor.part("the name of a column")
    direction = cursor.accept_any("asc", "desc") or "asc"
    nulls = "first" if direction == "asc" else "last"
    if cursor.accept("nulls"):
        nulls = cursor.accept_any("first", "last") or cursor.fail("FIRST or LAST")
    if not cursor.at_end:
        outer.refuse(f"{written} is no column of sorted_by", hint="such as 'a DESC NULLS LAST'", at=at)
    return column, direction, nulls


def written_size(bytes_text: str) -> str:
    """Write a number of bytes as Trino does.

    Example:
        >>> written_size("536870912")
        '512MB'
    """
    if not bytes_text.isdigit():
        return bytes_text
    size, unit = int(bytes_text), 0
    while size and size % 1024 == 0 and unit < len(_UNITS) - 1:
        size, unit = size // 1024, unit + 1
    return f"{size}{_UNITS[unit]}"
