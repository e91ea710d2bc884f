"""Bounds on what a result may be while it streams (LIM-8)."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from sqe_core.spi.errors import ResourcesError


def bounded(batches: Iterator[pa.RecordBatch], max_rows: int, max_bytes: int = 0) -> Iterator[pa.RecordBatch]:
    """Pass batches on until there were more rows or bytes than allowed; zero allows any number."""
    rows = size = 0
    for batch in batches:
        rows += batch.num_rows
        if max_rows and rows > max_rows:
            raise ResourcesError(
                f"The result has more than {max_rows} rows, the most that a query may return here",
                hint="add LIMIT or narrow the query; CREATE TABLE … AS keeps big results. The bound is the server's"
                " query.max_result_rows, or the session's query_max_result_rows",
            )
        # `nbytes` ends the process when a list of no lists has no offsets, as results of the engine may.
        size += batch.get_total_buffer_size()
        if max_bytes and size > max_bytes:
            raise ResourcesError(
                f"The result has more than {max_bytes} bytes, the most that a query may return here",
                hint="select fewer columns or rows; CREATE TABLE … AS keeps big results. The bound is the server's"
                " query.max_result_bytes",
            )
        yield batch
