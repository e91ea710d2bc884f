"""`.summarize t`: what is in a table, column by column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from sqe_core.cli.shell.execution import Executor, Outcome
from sqe_core.cli.shell.names import quote_name

if TYPE_CHECKING:
    import pyarrow as pa

_COLUMNS_AT_ONCE = 100
"""Columns of one statement: its text stays within the limits for statements."""

_NO_ORDER = ("map", "row", "struct", "array", "variant", "json", "geometry", "geography")
"""Types without a smallest value; only their NULLs are counted."""

_AGGREGATES = ("count", "approx_distinct", "min", "max")


def summarize(executor: Executor, name: tuple[str, ...]) -> Outcome:
    """Show the smallest and largest value, distinct values, share of NULLs and row count of every column."""
    described = executor.collect(f"DESCRIBE {quote_name(name)}")
    if described is None:
        return Outcome.FAILED
    names, types = (described.column(place).to_pylist() for place in (0, 1))
    columns = list(zip(map(str, names), map(str, types), strict=True))
    rows: list[tuple[str | None, ...]] = []
    for start in range(0, len(columns), _COLUMNS_AT_ONCE):
        part = columns[start : start + _COLUMNS_AT_ONCE]
        measured = executor.collect(_statement(name, part))
        if measured is None:
            return Outcome.FAILED
        rows.extend(_summaries(part, measured))
    executor.show(_table(rows))
    return Outcome.OK


def _is_ordered(type_name: str) -> bool:
    return not type_name.lower().startswith(_NO_ORDER)


def _statement(name: tuple[str, ...], columns: Sequence[tuple[str, str]]) -> str:
    items = ["count(*)"]
    for column, type_name in columns:
        aggregates = _AGGREGATES if _is_ordered(type_name) else _AGGREGATES[:1]
        items += [f"{aggregate}({quote_name((column,))})" for aggregate in aggregates]
    aliased = [f"{item} AS c{index}" for index, item in enumerate(items)]
    return "SELECT " + ", ".join(aliased) + " FROM " + quote_name(name)  # noqa: S608 every name in here is quoted, the rest is ours


def _summaries(columns: Sequence[tuple[str, str]], measured: pa.Table) -> Iterator[tuple[str | None, ...]]:
    from sqe_core.cli.shell.values import Notation, write_values

    values = iter([write_values(column, Notation.PLAIN)[0] for column in measured.columns])
    total = int(next(values) or 0)
    for column, type_name in columns:
        present = int(next(values) or 0)
        distinct, smallest, largest = (
            (next(values), next(values), next(values)) if _is_ordered(type_name) else (None, None, None)
        )
        nulls = f"{(total - present) / total:.4f}" if total else None
        yield column, type_name, smallest, largest, distinct, nulls, str(total)


def _table(rows: Sequence[tuple[str | None, ...]]) -> pa.Table:
    import pyarrow as pa

    def whole(text: str | None) -> int | None:
        return None if text is None else int(text)

    columns = list(zip(*rows, strict=True)) if rows else [()] * 7
    return pa.table(
        {
            "column_name": pa.array(columns[0], pa.string()),
            "data_type": pa.array(columns[1], pa.string()),
            "min": pa.array(columns[2], pa.string()),
            "max": pa.array(columns[3], pa.string()),
            "approx_distinct": pa.array(map(whole, columns[4]), pa.int64()),
            "null_fraction": pa.array([None if text is None else float(text) for text in columns[5]], pa.float64()),
            "row_count": pa.array(map(whole, columns[6]), pa.int64()),
        }
    )
