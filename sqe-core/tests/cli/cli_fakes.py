"""A backend without an engine, and `sqe-cli` on it: `python cli_fakes.py ARGUMENTS…` for tests that need a process."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from sqe_core.cli.backend import Completions
from sqe_core.engine.port import EngineState, Progress
from sqe_core.query.run.result import StatementResult
from sqe_core.spi.errors import ErrorCode, ObjectNotFoundError, Position, QueryCancelledError, UserError
from sqe_core.sql.statement import ScriptStatement, StatementKind
from sqe_core.sql.text.split import split

FAKE_CLI = [sys.executable, str(Path(__file__))]
"""The command line of a process on the fake backend."""

NAMES = Completions(
    catalogs=("iceberg", "other"),
    schemas={"iceberg": ("default", "sales"), "other": ("public",)},
    tables={
        ("iceberg", "default"): ("orders", "Odd Name"),
        ("iceberg", "sales"): ("regions",),
        ("other", "public"): ("things",),
    },
)


COLUMNS = {
    ("iceberg", "default", "orders"): ("order_id", "customer"),
    ("iceberg", "sales", "regions"): ("region_id", "name"),
}


class FakeBackend:
    """Answers a few statements of its own; everything that was asked stands in `executed`."""

    def __init__(self) -> None:
        self.executed: list[str] = []
        self.cancelled = threading.Event()
        self.closed = False
        self.current = ("iceberg", "default")
        self.state = EngineState.READY
        self.answers: dict[str, Callable[[], StatementResult]] = {}
        self.produced_batches = 0
        self._running = Progress()

    def execute(self, sql: str) -> StatementResult:
        self.executed.append(sql)
        self.cancelled.clear()
        if sql in self.answers:
            return self.answers[sql]()
        words = sql.split()
        match [word.upper() for word in words]:
            case ["SELECT", "1", "AS", "ONE"]:
                return rows({"one": pa.array([1], pa.int32())})
            case ["SELECT", number] if number.isdigit():
                return rows({"n": pa.array([int(number)], pa.int64())})
            case ["COUNT", number]:
                return self._count(int(number))
            case ["SLEEP"]:
                self._sleep()
            case ["SLEEP", "AFTER", number]:
                return self._count(int(number), then_sleep=True)
            case ["FAIL", "AFTER", number]:
                return self._count(int(number), then_fail=True)
            case ["INSERT", *_]:
                return done(StatementKind.INSERT, 3)
            case ["CREATE", *_]:
                return done(StatementKind.CREATE_TABLE)
            case ["SET", *_]:
                return done(StatementKind.SESSION)
            case ["GRANT", *_]:
                return StatementResult(query_id="q", kind=StatementKind.UTILITY, warnings=("no\x1b[31m such role",))
            case ["DESCRIBE", *_]:
                return rows(
                    {
                        "column_name": pa.array(["id", "tags"]),
                        "data_type": pa.array(["bigint", "array(varchar)"]),
                        "is_nullable": pa.array(["YES", "YES"]),
                    }
                )
            case ["SHOW", *_]:
                return rows({"name": pa.array(["orders"])})
            case ["BOOM"]:
                raise RuntimeError("a bug")
            case ["MISSING", *_]:
                column = sql.index("orderz") + 1 if "orderz" in sql else 1
                error = ObjectNotFoundError(
                    "Table 'orderz' does not exist", hint='did you mean "orders"?', position=Position(1, column)
                )
                raise error
        raise UserError(f"mismatched input {words[0]}", code=ErrorCode.SYNTAX_ERROR, position=Position(1, 1))

    def _sleep(self) -> None:
        deadline = time.monotonic() + 30
        self._running = Progress(stages=2, stages_done=1, tasks=10, tasks_done=4, tasks_active=2, rows=1234)
        while time.monotonic() < deadline:
            if self.cancelled.wait(0.02):
                self._running = Progress()
                raise QueryCancelledError("The statement was cancelled")
        raise AssertionError("nobody cancelled the statement")

    def _count(self, number: int, *, then_sleep: bool = False, then_fail: bool = False) -> StatementResult:
        def batches() -> Iterator[pa.RecordBatch]:
            for start in range(0, number, 500):
                self.produced_batches += 1
                values = pa.array(range(start, min(start + 500, number)), pa.int64())
                yield pa.record_batch({"n": values})
            if then_sleep:
                self._sleep()
            if then_fail:
                raise UserError("Division by zero")

        return StatementResult(
            query_id="q", kind=StatementKind.QUERY, schema=pa.schema([("n", pa.int64())]), batches=batches()
        )

    def cancel(self) -> None:
        self.cancelled.set()

    def progress(self) -> Progress | None:
        return self._running

    def engine_state(self) -> EngineState:
        return self.state

    def on_engine_progress(self, listener: Callable[[str, float | None], None]) -> None:
        listener("fetching the engine", 0.5)

    def split(self, script: str) -> Sequence[ScriptStatement]:
        return split(script)

    def completions(self) -> Completions:
        return NAMES

    def columns(self, table: tuple[str, str, str]) -> tuple[str, ...]:
        return COLUMNS.get(table, ())

    def close(self) -> None:
        self.closed = True
        if "FAKE_CLOSED" in os.environ:
            Path(os.environ["FAKE_CLOSED"]).touch()


def rows(columns: dict[str, pa.Array] | pa.Table) -> StatementResult:
    """A query's answer."""
    table = columns if isinstance(columns, pa.Table) else pa.table(columns)
    return StatementResult(
        query_id="q", kind=StatementKind.QUERY, schema=table.schema, batches=iter(table.to_batches())
    )


def done(kind: StatementKind, affected: int | None = None) -> StatementResult:
    """The answer of a statement without rows."""
    return StatementResult(query_id="q", kind=kind, affected_rows=affected)


if __name__ == "__main__":
    from sqe_core.cli.main import main

    sys.exit(main(open_backend=lambda options: FakeBackend()))
