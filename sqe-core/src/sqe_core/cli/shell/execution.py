"""Runs one statement and writes its answer."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from itertools import chain
from typing import TYPE_CHECKING

from sqe_core.cli.shell.console import Console, OutputError
from sqe_core.cli.shell.error_report import Origin, raw_report, report
from sqe_core.cli.shell.interrupts import Interrupts
from sqe_core.cli.shell.output_file import OutputFile
from sqe_core.cli.shell.pager import PagedOutput, PagerClosed, pager_command
from sqe_core.cli.shell.progress import EngineSteps, ProgressLine, duration
from sqe_core.cli.shell.running import RunningStatement, StatementThread
from sqe_core.cli.shell.terminal_text import escape_unprintable
from sqe_core.spi.errors import ErrorCode, SqeError, UserError

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

    from sqe_core.cli.backend import Backend
    from sqe_core.cli.shell.formats import ResultWriter, Write
    from sqe_core.query.run.result import StatementResult


class Outcome(Enum):
    """How a statement, a command or a whole script ended."""

    OK = "ok"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


@dataclass(slots=True, kw_only=True)
class Display:
    """What the person may change while working."""

    format: str = "table"
    timer: bool = False
    null: str | None = None
    """What stands for NULL; None for what the format has for it."""


class Executor:
    """Runs statements on a backend and shows their answers on a console."""

    def __init__(
        self,
        backend: Backend,
        console: Console,
        display: Display,
        *,
        interactive: bool = False,
        raw_errors: bool = False,
    ) -> None:
        self.backend = backend
        self.console = console
        self.display = display
        self.interactive = interactive
        self.paging = interactive
        self.last: tuple[str, Origin] | None = None
        """What the person ran last, which is no command of ours."""
        self._raw_errors = raw_errors
        self._file: OutputFile | None = None
        self._wrote_parquet = False
        self._reading_secs = 0.0
        steps = EngineSteps()
        backend.on_engine_progress(steps.listen)
        self.progress = ProgressLine(console, backend, steps)
        self._thread = StatementThread(backend)

    def close(self) -> None:
        self._thread.close()

    def redirect(self, name: str | None) -> None:
        """Write results to a file from now on, or to standard output again.

        Raises:
            UserError: the file cannot be written, or not all of the last one was.
        """
        file, self._file = self._file, None
        if file is not None:
            file.close()
        if name is not None:
            self._file = OutputFile(name)

    def finish(self) -> Outcome:
        """Nothing more is run: see that all output has arrived."""
        try:
            self.redirect(None)
        except SqeError as error:
            self.fail(error)
            return Outcome.FAILED
        self.console.flush()
        return Outcome.OK

    def run(self, sql: str, origin: Origin) -> Outcome:
        began, self._reading_secs = time.monotonic(), 0.0
        outcome = self._guarded(sql, origin, lambda statement: self._write_answer(statement))
        if self.display.timer:
            self.console.tell(f"Time: {duration(time.monotonic() - began - self._reading_secs)}")
        return outcome

    def collect(self, sql: str, *, told: bool = True) -> pa.Table | None:
        """Run a statement with a small result for a command of ours; None when it failed, which is then told."""
        tables: list[pa.Table] = []

        def read(statement: RunningStatement) -> None:
            import pyarrow as pa

            result = statement.answer()
            tables.append(pa.Table.from_batches(list(statement.batches()), schema=result.schema))

        outcome = self._guarded(sql, Origin(text=sql), read, told=told)
        return tables[0] if outcome is Outcome.OK and tables else None

    def show(self, table: pa.Table) -> None:
        """Write rows of ours like a result."""
        self._write_rows(table.schema, table.to_batches())

    def fail(self, error: BaseException, origin: Origin | None = None) -> None:
        self.progress.clear()
        self.console.complain([raw_report(error)] if self._raw_errors else report(error, origin))

    def _guarded(
        self, sql: str, origin: Origin, work: Callable[[RunningStatement], None], *, told: bool = True
    ) -> Outcome:
        """Run `work` on a statement under Ctrl-C, tell its error, and leave nothing running."""
        progress = self.progress
        progress.begin()
        with Interrupts(self.backend.cancel) as interrupts:

            def tick() -> None:
                progress.cancelling = interrupts.requested
                progress.tick()
                if interrupts.requested and not self.interactive and self._engine_is_starting():
                    # Nothing runs that could be cancelled, and a first start may take a minute.
                    raise KeyboardInterrupt

            statement = self._thread.start(sql, tick)
            outcome = Outcome.OK
            try:
                work(statement)
            except PagerClosed:
                pass
            except (OutputError, KeyboardInterrupt):
                # The output cannot be written, or Ctrl-C gave up waiting: nobody wants the rest.
                self.backend.cancel()
                raise
            except Exception as error:  # noqa: BLE001 the boundary: whatever failed is told, and the session goes on
                if told:
                    self.fail(error, origin)
                outcome = Outcome.FAILED
            finally:
                progress.clear()
            statement.close(interrupts.request_silently)
            return Outcome.INTERRUPTED if interrupts.requested else outcome

    def _engine_is_starting(self) -> bool:
        return self.backend.engine_state().value in ("stopped", "preparing", "starting")

    def _write_answer(self, statement: RunningStatement) -> None:
        result = statement.answer()
        if result.schema is not None:
            self._write_rows(result.schema, statement.batches())
            return
        for _ in statement.batches():
            pass
        self._say(_completion(statement.sql, result))
        for warning in result.warnings:
            self.console.tell(escape_unprintable(f"Warning: {warning}"))

    def _say(self, text: str) -> None:
        """Write what is no data: with the data where people read it, else only to a terminal."""
        self.progress.clear()
        if self.display.format in ("table", "vertical"):
            self._write(text + "\n")
            self._flush()
        elif self.console.err_is_terminal:
            self.console.tell(text)

    def _write_rows(self, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
        paged = self._paged_output()
        writer = self._writer(paged)
        arriving = iter(batches)
        began = False
        try:
            # What ends before it has a row leaves nothing behind, not even a header.
            first = next(arriving, None)
            began = True
            writer.begin(schema)
            for batch in () if first is None else chain([first], arriving):
                self.progress.clear()
                writer.rows(batch)
                if paged is None:
                    self._flush()
            self.progress.clear()
            writer.end()
            if writer.counts_rows:
                writer.write(_row_count(writer) + "\n")
        except (PagerClosed, OutputError):
            raise
        except BaseException:
            self.progress.clear()
            if began:
                writer.fail()
            raise
        finally:
            if paged is not None:
                with self._reading():
                    paged.finish()
                self.progress.suspended = not self.console.can_redraw
        self._flush()
        if not writer.counts_rows and self.interactive and self.console.err_is_terminal:
            self.console.tell(_row_count(writer))

    def _paged_output(self) -> PagedOutput | None:
        if not self.paging or not self._on_terminal:
            return None
        command = pager_command(self.console.environment)
        return PagedOutput(self.console, command, self._pager_begins) if command else None

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """While somebody reads in the pager, which is no time that a statement takes."""
        began = time.monotonic()
        try:
            yield
        finally:
            self._reading_secs += time.monotonic() - began

    def _timed(self, write: Write) -> Write:
        def timed(text: str) -> None:
            with self._reading():
                write(text)

        return timed

    def _pager_begins(self) -> None:
        self.progress.clear()
        self.progress.suspended = True

    def _writer(self, paged: PagedOutput | None) -> ResultWriter:
        # Arrow is slow to import, and the prompt and --help do without.
        from sqe_core.cli.shell import formats
        from sqe_core.cli.shell.table import TableWriter

        write: Write = self._write if paged is None else self._timed(paged.write)
        null = self.display.null
        match self.display.format:
            case "csv":
                return formats.CsvWriter(write, null)
            case "tsv":
                return formats.TsvWriter(write, null)
            case "json":
                return formats.JsonWriter(write)
            case "vertical":
                return formats.VerticalWriter(write, null)
            case "markdown":
                return formats.MarkdownWriter(write, null)
            case "parquet":
                return self._parquet_writer()
        return TableWriter(write, lambda rows: self._max_width(rows, paged), null)

    def _parquet_writer(self) -> ResultWriter:
        """A Parquet file is one result, and no text."""
        from sqe_core.cli.shell.parquet import ParquetWriter

        hint = "write .output FILE before each statement"
        if self._on_terminal:
            raise UserError("parquet is no text for a terminal", code=ErrorCode.INVALID_ARGUMENTS, hint=hint)
        if self._file is not None:
            return ParquetWriter(self._file.begin_parquet())
        if self._wrote_parquet:
            raise UserError("a Parquet file holds one result", code=ErrorCode.INVALID_ARGUMENTS, hint=hint)
        self._wrote_parquet = True
        return ParquetWriter(self.console.write_bytes)

    @property
    def _on_terminal(self) -> bool:
        return self._file is None and self.console.out_is_terminal

    def _write(self, text: str) -> None:
        (self.console if self._file is None else self._file).write(text)

    def _flush(self) -> None:
        (self.console if self._file is None else self._file).flush()

    def _max_width(self, rows: int, paged: PagedOutput | None) -> int | None:
        """Lines may be longer than the terminal only where a pager can scroll sideways."""
        if not self._on_terminal or (paged is not None and rows + 3 > paged.room):
            return None
        return self.console.size()[0]


def _row_count(writer: ResultWriter) -> str:
    count = f"{writer.row_count} row{'' if writer.row_count == 1 else 's'}"
    if getattr(writer, "was_cut", False):
        return f"({count}; long values are cut, .format vertical shows all)"
    return f"({count})"


def _completion(sql: str, result: StatementResult) -> str:
    """Say what was done: `CREATE TABLE`, `INSERT: 3 rows`."""
    kind = result.kind.value
    if kind in ("session", "transaction", "utility"):
        words = re.match(r"\s*([A-Za-z]+)(\s+session\b)?", sql, re.IGNORECASE)
        label = " ".join(words.group().split()).upper() if words else kind.upper()
    else:
        label = kind.replace("_", " ").upper().removesuffix(" AS")
    if result.affected_rows is None:
        return label
    return f"{label}: {result.affected_rows} row{'' if result.affected_rows == 1 else 's'}"
