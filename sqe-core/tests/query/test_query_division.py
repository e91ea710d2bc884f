"""One statement whose rows go to several readers: complete, disjoint, run once, ended together."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from sqe_core.query.run.division import divide
from sqe_core.query.run.result import StatementPlan, StatementResult
from sqe_core.spi.errors import QueryCancelledError, ResourcesError, UserError
from sqe_core.spi.protocol import MOST_PARTS
from sqe_core.sql.statement import StatementKind

SCHEMA = pa.schema({"n": pa.int64()})


class Statement:
    """A statement of numbered batches that counts what is done to it."""

    def __init__(self, batches: int = 0, *, rows: Callable[[], Iterator[pa.RecordBatch]] | None = None) -> None:
        self.starts = self.closes = self.abandoned = 0
        self.cancelled = threading.Event()
        self.readers = 0
        self.refusal: Exception | None = None
        self._rows = rows or (lambda: self._numbered(batches))

    def _numbered(self, count: int) -> Iterator[pa.RecordBatch]:
        for number in range(count):
            self.readers += 1
            assert self.readers == 1, "two readers at once"
            time.sleep(0.0005)
            self.readers -= 1
            yield pa.record_batch({"n": [number]})

    def plan(self, *, is_divisible: bool = True) -> StatementPlan:
        return StatementPlan(
            query_id="q",
            kind=StatementKind.QUERY,
            schema=SCHEMA,
            start=self._start,
            abandon=self._abandon,
            is_divisible=is_divisible,
        )

    def _start(self) -> StatementResult:
        self.starts += 1
        if self.refusal is not None:
            raise self.refusal
        return StatementResult(
            query_id="q",
            kind=StatementKind.QUERY,
            schema=SCHEMA,
            batches=self._rows(),
            on_close=self._close,
            on_cancel=self.cancelled.set,
        )

    def _close(self) -> None:
        self.closes += 1

    def _abandon(self) -> None:
        self.abandoned += 1


def numbers(result: StatementResult) -> list[int]:
    return [number for batch in result for number in batch.column(0).to_pylist()]


def test_what_is_not_divisible_or_wanted_in_one_part_stays_whole() -> None:
    whole = Statement().plan(is_divisible=False)
    assert divide(whole, 4) == [whole]
    for count in (0, 1):
        plan = Statement().plan()
        assert divide(plan, count) == [plan]
    assert len(divide(Statement().plan(), 1000)) == MOST_PARTS


def test_side_by_side_each_row_comes_once_and_the_statement_runs_once() -> None:
    statement = Statement(400)
    parts = divide(statement.plan(), 4)
    assert {part.query_id for part in parts} == {"q"}
    assert all(part.schema == SCHEMA for part in parts)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda part: numbers(part.start()), parts))
    assert sorted(number for part in found for number in part) == list(range(400))
    assert all(part == sorted(part) for part in found)
    assert sum(bool(part) for part in found) > 1, "nobody shared"
    assert (statement.starts, statement.closes, statement.abandoned) == (1, 1, 0)
    assert not statement.cancelled.is_set()


def test_a_fast_reader_does_not_take_everything() -> None:
    found = [0, 0]
    parts = [part.start() for part in divide(Statement(200).plan(), 2)]
    both = threading.Barrier(2)

    def read(number: int) -> None:
        both.wait()
        for _ in parts[number]:
            found[number] += 1

    readers = [threading.Thread(target=read, args=(number,)) for number in (0, 1)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    assert sum(found) == 200
    assert min(found) > 20


def test_one_after_the_other_nobody_waits() -> None:
    statement = Statement(10)
    first, second = (part.start() for part in divide(statement.plan(), 2))
    assert (numbers(first), numbers(second)) == (list(range(10)), [])
    assert statement.closes == 1


def test_parts_that_nobody_fetches_hold_nothing() -> None:
    statement = Statement(5)
    first, *others = divide(statement.plan(), 3)
    assert numbers(first.start()) == list(range(5))
    for other in others:
        other.close()
    assert (statement.closes, statement.abandoned) == (1, 0)
    forgotten = Statement(5)
    *most, last = divide(forgotten.plan(), 3)
    for part in most:
        part.close()
    assert forgotten.abandoned == 0
    last.close()
    assert (forgotten.abandoned, forgotten.starts) == (1, 0)


def test_each_part_is_started_once() -> None:
    first, second = divide(Statement(3).plan(), 2)
    first.start()
    first.close()
    with pytest.raises(UserError, match="This statement was started before"):
        first.start()
    second.close()
    for _ in range(2):
        with pytest.raises(QueryCancelledError, match="The statement was cancelled"):
            second.start()


def test_a_refusal_is_everybodys() -> None:
    statement = Statement()
    statement.refusal = ResourcesError("Too many statements")
    for part in divide(statement.plan(), 3):
        with pytest.raises(ResourcesError):
            part.start()
    assert statement.starts == 1


@pytest.mark.parametrize("error", [UserError("Division by zero"), KeyboardInterrupt(), AssertionError()])
def test_after_an_error_no_part_looks_complete(error: BaseException) -> None:
    def rows() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"n": [1]})
        raise error

    first, second, third = divide(Statement(rows=rows).plan(), 3)
    with pytest.raises(type(error)):
        numbers(first.start())
    expected = UserError if isinstance(error, UserError) else QueryCancelledError
    with pytest.raises(expected):
        numbers(second.start())
    with pytest.raises(expected):
        numbers(third.start())


def test_a_reader_that_leaves_ends_the_statement() -> None:
    statement = Statement(100)
    leaving, staying, late = divide(statement.plan(), 3)
    gone = leaving.start()
    read, here = iter(gone), iter(staying.start())
    next(read), next(here)
    gone.close()
    assert statement.cancelled.is_set()
    assert statement.closes == 1
    for rest in (lambda: list(here), lambda: numbers(late.start())):
        with pytest.raises(QueryCancelledError) as caught:
            rest()
        assert caught.value.query_id == "q"


def test_a_reader_that_leaves_with_the_last_rows_leaves_no_complete_result() -> None:
    first, second = divide(Statement(1).plan(), 2)
    gone = first.start()
    read = iter(gone)
    next(read)
    gone.close()
    with pytest.raises(QueryCancelledError):
        numbers(second.start())


def test_leaving_ends_the_wait_of_another_reader() -> None:
    statement = Statement(rows=lambda: waiting())
    entered = threading.Event()

    def waiting() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"n": [1]})
        entered.set()
        assert statement.cancelled.wait(10)
        raise QueryCancelledError("The statement was cancelled")

    first, second = (part.start() for part in divide(statement.plan(), 2))
    read = iter(first)
    next(read)
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(lambda: numbers(second))
        assert entered.wait(10)
        began = time.monotonic()
        first.close()
        with pytest.raises(QueryCancelledError):
            reading.result(10)
        assert time.monotonic() - began < 5


def test_any_part_cancels_all() -> None:
    statement = Statement(10)
    _, second = (part.start() for part in divide(statement.plan(), 2))
    second.cancel()
    assert statement.cancelled.is_set()
