"""The parquet format: one result in one file, whole or not at all."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from sqe_core.cli.shell.formats import ResultWriter
from sqe_core.cli.shell.values import Texts
from sqe_core.spi.errors import NotSupportedError

_GROUP_BYTES = 64 << 20
_GROUP_ROWS = 1 << 20


class ParquetWriter(ResultWriter):
    """Writes groups of rows as they come. A result that broke off lacks the end, and no reader takes the file.

    Args:
        write_bytes: takes the file.
    """

    def __init__(self, write_bytes: Callable[[bytes], None]) -> None:
        super().__init__(lambda text: None)
        self._sink = _Sink(write_bytes)
        self._waiting: list[pa.RecordBatch] = []
        self._bytes = self._rows = 0

    def begin(self, schema: pa.Schema) -> None:
        self._schema = schema
        try:
            self._writer = pq.ParquetWriter(self._sink, schema, compression="zstd")
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise NotSupportedError(
                "A column of this type cannot be written to Parquet",
                hint="intervals, among others, have no Parquet type; cast such columns to varchar",
            ) from error

    def rows(self, batch: pa.RecordBatch) -> None:
        self._waiting.append(batch)
        self._rows += batch.num_rows
        self._bytes += batch.get_total_buffer_size()
        self.row_count += batch.num_rows
        if self._rows >= _GROUP_ROWS or self._bytes >= _GROUP_BYTES:
            self._write_group()

    def slice(self, columns: Sequence[Texts]) -> None:
        raise AssertionError("batches are written as they are")

    def end(self) -> None:
        self._write_group()
        self._writer.close()

    def fail(self) -> None:
        self._sink.write_bytes = lambda data: None

    def _write_group(self) -> None:
        group = pa.Table.from_batches(self._waiting, self._schema)
        self._waiting, self._rows, self._bytes = [], 0, 0
        if group.num_rows:
            self._writer.write_table(group, row_group_size=_GROUP_ROWS)


class _Sink(io.RawIOBase):
    """A file for Arrow, which writes what is left when it is forgotten, too."""

    def __init__(self, write_bytes: Callable[[bytes], None]) -> None:
        self.write_bytes = write_bytes
        self._at = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def write(self, data: bytes) -> int:  # type: ignore[override] # Arrow hands over bytes
        self.write_bytes(bytes(data))
        self._at += len(data)
        return len(data)
