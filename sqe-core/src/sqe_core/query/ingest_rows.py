"""Record batches of a client, checked and kept in files until the client is done (FLT-7, LIM-8)."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from sqe_core.query.ingest_types import SchemaLimits, converted
from sqe_core.spi.errors import ErrorCode, ResourcesError, UserError


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestLimits:
    """Bounds on the rows that one statement may bring (FLT-7).

    Attributes:
        total_bytes: all rows of a statement on disk.
        batch_bytes: one batch in memory, also after its dictionaries are decoded.
        batch_rows: one batch; columns of NULLs and of nothing take no bytes on the wire.
        part_bytes: one file, which is what a task of the engine reads.
        chunk_bytes: what a task has in memory at a time, about.
        chunk_rows: the same in rows.
        disk_reserve_bytes: no statement takes the last of the disk.
    """

    total_bytes: int = 10 << 30
    batch_bytes: int = 256 << 20
    batch_rows: int = 1 << 24
    part_bytes: int = 64 << 20
    chunk_bytes: int = 4 << 20
    chunk_rows: int = 1 << 16
    disk_reserve_bytes: int = 1 << 30
    schema: SchemaLimits = field(default_factory=SchemaLimits)


def check_batch(batch: pa.RecordBatch, schema: pa.Schema, limits: IngestLimits) -> None:
    """Refuse a batch that is not of the schema, damaged, or too big."""
    if not batch.schema.equals(schema, check_metadata=False):
        raise UserError("A record batch has other columns than were announced", code=ErrorCode.INVALID_ARGUMENTS)
    try:
        batch.validate()  # the sizes of the buffers, before anything reads them
        _check_size(batch.num_rows, limits.batch_rows, "rows")
        batch.validate(full=True)
        sent = _size(batch)
    except pa.ArrowException as error:
        raise UserError("A record batch is damaged", code=ErrorCode.INVALID_ARGUMENTS) from error
    _check_size(sent, limits.batch_bytes, "bytes")
    _check_size(sent + sum(map(_decoded_bytes, batch.columns)), limits.batch_bytes, "bytes when decoded")


def _check_size(found: int, most: int, what: str) -> None:
    if found > most:
        raise ResourcesError(f"A record batch has {found} {what}; {most} are allowed", hint="send smaller batches")


def _size(batch: pa.RecordBatch) -> int:
    # Not `nbytes`: it ends the process when a list of no lists has no offsets, which Arrow's own Java writes.
    return int(pa.ipc.get_record_batch_size(batch))


def _decoded_bytes(values: pa.Array) -> int:
    """Return about how much a column grows when each place gets its value: a dictionary's value may be used often."""
    type = values.type
    if not len(values):
        return 0
    if isinstance(values, pa.ExtensionArray):
        return _decoded_bytes(values.storage)
    if isinstance(values, pa.DictionaryArray):
        return _sum(_lengths(values.dictionary).take(values.indices))
    if kinds.is_string_view(type) or kinds.is_binary_view(type):
        return _sum(_lengths(values))
    if kinds.is_struct(type):
        return sum(map(_decoded_bytes, values.flatten()))
    if kinds.is_map(type):
        return _decoded_bytes(values.keys) + _decoded_bytes(values.items)
    if kinds.is_nested(type):
        return _decoded_bytes(values.flatten())
    return 0


def _lengths(values: pa.Array) -> pa.Array:
    type = values.type
    if kinds.is_string_view(type) or kinds.is_binary_view(type):
        # A view is 16 bytes that begin with the length; many may point to the same text.
        views = memoryview(values.buffers()[1] or b"").cast("i")
        found = views[4 * values.offset : 4 * (values.offset + len(values)) : 4]
        return pa.array([max(length, 0) for length in found], pa.int64())
    if kinds.is_fixed_size_binary(type):
        return pa.repeat(pa.scalar(type.byte_width, pa.int64()), len(values))
    if kinds.is_string(type) or kinds.is_large_string(type) or kinds.is_binary(type) or kinds.is_large_binary(type):
        return pc.binary_length(values).cast(pa.int64())
    return pa.repeat(pa.scalar(16, pa.int64()), len(values))


def _sum(lengths: pa.Array) -> int:
    return int(pc.sum(lengths).as_py() or 0)


class RowFiles:
    """Writes checked rows to files that an engine reads in parallel; a context manager that closes the last one.

    The first file exists at once, so that a statement over the rows can be judged before any of them came.
    """

    def __init__(
        self, folder: Path, *, sent: pa.Schema, kept: pa.Schema, limits: IngestLimits, check: Callable[[], None]
    ) -> None:
        """Begin.

        Args:
            folder: a private folder.
            sent: the client's columns.
            kept: the same columns in the types that they are written in.
            limits: the bounds.
            check: raises when nobody wants the rows any more.
        """
        self.rows = 0
        self._check = check
        self._folder = folder
        self._sent = sent
        self._kept = kept
        self._limits = limits
        self._files: list[Path] = []
        self._closed_bytes = 0
        self._sink: BinaryIO
        self._writer: pa.ipc.RecordBatchStreamWriter
        try:
            self._begin_file()
        except OSError as error:
            raise _no_room(error) from error

    @property
    def files(self) -> tuple[Path, ...]:
        """The files so far. All rows are in them when `finish` was called."""
        return tuple(self._files)

    def append(self, batch: pa.RecordBatch) -> None:
        """Check one batch and write it."""
        check_batch(batch, self._sent, self._limits)
        columns = [
            converted(field.name, column, field.type) for column, field in zip(batch.columns, self._kept, strict=True)
        ]
        kept = pa.RecordBatch.from_arrays(columns, schema=self._kept)
        rows = max(1, min(self._limits.chunk_rows, kept.num_rows * self._limits.chunk_bytes // _size(kept)))
        try:
            for start in range(0, kept.num_rows, rows):
                self._write(kept.slice(start, rows))
        except OSError as error:
            raise _no_room(error) from error
        self.rows += kept.num_rows

    def _write(self, chunk: pa.RecordBatch) -> None:
        self._check()
        written = self._sink.tell()
        if self._closed_bytes + written + _size(chunk) > self._limits.total_bytes:
            raise ResourcesError(
                f"The rows are more than {self._limits.total_bytes} bytes, the most that one statement may bring",
                hint="send them in several statements",
            )
        if written >= self._limits.part_bytes:
            self.finish()
            self._begin_file()
        self._writer.write_batch(chunk)

    def finish(self) -> None:
        """End the last file."""
        try:
            self._writer.close()
            self._closed_bytes += self._sink.tell()
            self._sink.close()
        except OSError as error:
            raise _no_room(error) from error

    def _begin_file(self) -> None:
        if shutil.disk_usage(self._folder).free < self._limits.disk_reserve_bytes:
            raise ResourcesError("The server has no room for these rows now", hint="try again later")
        # Executors elsewhere ask for a file by its name alone, so it is unique.
        path = self._folder / f"{self._folder.name}-{len(self._files)}.arrow"
        self._sink = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
        self._files.append(path)
        self._writer = pa.ipc.new_stream(self._sink, self._kept)
        # Arrow writes the schema with the first batch.
        self._writer.write_batch(pa.RecordBatch.from_pylist([], schema=self._kept))
        self._sink.flush()

    def __enter__(self) -> RowFiles:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):  # the reason was told, and the file goes away
            self._sink.close()


def _no_room(error: OSError) -> ResourcesError:
    return ResourcesError(f"The server cannot keep these rows: {error.strerror or 'no reason was given'}")
