"""Record batches of a client, checked and kept in files until the client is done (FLT-7, LIM-8)."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

import pyarrow as pa

from sqe_core.engine.port import Engine
from sqe_core.query.errors.wording import shown
from sqe_core.query.ingest.types import SchemaLimits, converted
from sqe_core.spi.batch_bytes import batch_bytes
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


def check_batch(batch: pa.RecordBatch, schema: pa.Schema, limits: IngestLimits) -> int:
    """Refuse a batch that is not of the schema, damaged, or too big; return its bytes when decoded."""
    if not batch.schema.equals(schema, check_metadata=False):
        raise UserError("A record batch has other columns than were announced", code=ErrorCode.INVALID_ARGUMENTS)
    try:
        batch.validate()  # the sizes of the buffers, before anything reads them
        _check_size(batch.num_rows, limits.batch_rows, "rows")
        batch.validate(full=True)
        sizes = batch_bytes(batch)
    except pa.ArrowException as error:
        raise UserError("A record batch is damaged", code=ErrorCode.INVALID_ARGUMENTS) from error
    _check_size(sizes.sent, limits.batch_bytes, "bytes")
    _check_size(sizes.decoded, limits.batch_bytes, "bytes when decoded")
    return sizes.decoded


def _check_size(found: int, most: int, what: str) -> None:
    if found > most:
        raise ResourcesError(f"A record batch has {found} {what}; {most} are allowed", hint="send smaller batches")


class RowFiles:
    """Writes checked rows to files that an engine reads in parallel; a context manager that closes the last one.

    The first file exists at once, so that a statement over the rows can be judged before any of them came.
    """

    def __init__(
        self,
        folder: Path,
        *,
        sent: pa.Schema,
        kept: pa.Schema,
        limits: IngestLimits,
        check: Callable[[], None],
        kind: str = "Column",
    ) -> None:
        """Begin a file in a private folder, for columns as they were `sent` in the types that they are `kept` in.

        `check` raises when nobody wants the rows any more; `kind` is what errors call a column.
        """
        self._check = check
        self._kind = kind
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
        """Check one batch, before anything of it is decoded, and write it."""
        size = check_batch(batch, self._sent, self._limits)
        rows = max(1, min(self._limits.chunk_rows, batch.num_rows * self._limits.chunk_bytes // max(size, 1)))
        try:
            for start in range(0, batch.num_rows, rows):
                # By pieces: in another type a whole batch may be many times as big.
                self._write(self._converted(batch.slice(start, rows)))
        except OSError as error:
            raise _no_room(error) from error

    def _converted(self, chunk: pa.RecordBatch) -> pa.RecordBatch:
        columns = [
            converted(sent.name, column, kept.type, kind=self._kind)
            for sent, column, kept in zip(self._sent, chunk.columns, self._kept, strict=True)
        ]
        for column, kept in zip(columns, self._kept, strict=True):
            if column.null_count and not kept.nullable:
                raise UserError(
                    f"{self._kind} {shown(kept.name)} is said to have no NULL, and has some",
                    code=ErrorCode.INVALID_ARGUMENTS,
                )
        return pa.RecordBatch.from_arrays(columns, schema=self._kept)

    def _write(self, chunk: pa.RecordBatch) -> None:
        self._check()
        written = self._sink.tell()
        if self._closed_bytes + written + pa.ipc.get_record_batch_size(chunk) > self._limits.total_bytes:
            raise ResourcesError(
                f"The rows are more than {self._limits.total_bytes} bytes, the most that one statement may bring",
                hint="send them in several statements",
            )
        if written >= self._limits.part_bytes:
            self.finish()
            self._begin_file()
        self._writer.write_batch(chunk)

    def finish(self) -> None:
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


@contextlib.contextmanager
def row_files(
    engine: Engine,
    *,
    sent: pa.Schema,
    kept: pa.Schema,
    limits: IngestLimits,
    check: Callable[[], None],
    kind: str = "Column",
) -> Iterator[RowFiles]:
    """Files in a private folder of the engine's, which go with it in every outcome."""
    try:
        opened = engine.open_spool()
    except OSError as error:
        raise ResourcesError("The server cannot keep these rows now", hint="try again later") from error
    with opened as spool, RowFiles(spool.folder, sent=sent, kept=kept, limits=limits, check=check, kind=kind) as files:
        yield files


def _no_room(error: OSError) -> ResourcesError:
    return ResourcesError(f"The server cannot keep these rows: {error.strerror or 'no reason was given'}")
