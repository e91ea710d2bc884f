"""Bounds on what a result may be while it streams (LIM-8)."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from sqe_core.spi.errors import ResourcesError


def bounded(batches: Iterator[pa.RecordBatch], max_rows: int) -> Iterator[pa.RecordBatch]:
    """Pass batches on until there were more rows than allowed; zero allows any number."""
    rows = 0
    for batch in batches:
        rows += batch.num_rows
        if max_rows and rows > max_rows:
            raise ResourcesError(
                f"The result has more than {max_rows} rows, the most that a query may return here",
                hint="add LIMIT or narrow the query; CREATE TABLE … AS keeps big results",
            )
        yield batch
