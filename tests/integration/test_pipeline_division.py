"""Results that are read in parts, side by side: all rows once, from one execution, as one statement."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
from testbed.clocks import wait_for

from sqe_core.bootstrap import EmbeddedSqe
from sqe_core.observe.history import HistoryEntry
from sqe_core.query.run.division import divide
from sqe_core.query.run.result import StatementPlan, StatementResult
from sqe_core.spi.errors import QueryCancelledError, QueryTimeoutError, SqeError, UserError

ROWS = 300_000


@pytest.fixture(scope="module", autouse=True)
def tables(sqe: EmbeddedSqe) -> Iterator[None]:
    sqe.execute(f"CREATE TABLE big AS SELECT id, id % 97 AS k, 'text ' || id AS t FROM range({ROWS}) AS r(id)").close()
    sqe.execute("CREATE TABLE keys AS SELECT id AS k, id * 10 AS ten FROM range(97) AS r(id)").close()
    yield
    sqe.execute("DROP TABLE big").close()
    sqe.execute("DROP TABLE keys").close()


@pytest.fixture(autouse=True)
def slots_are_free(sqe: EmbeddedSqe) -> Iterator[None]:
    yield
    wait_for(lambda: not sqe.sqe.service.running, 5)


def parts_of(sqe: EmbeddedSqe, sql: str, count: int = 4) -> Sequence[StatementPlan]:
    return divide(sqe.sqe.service.plan(sqe.session, sql), count)


def read(parts: Sequence[StatementPlan]) -> list[pa.Table]:
    with ThreadPoolExecutor(len(parts)) as pool:
        return list(pool.map(lambda part: part.start().read_all(), parts))


def entry_of(sqe: EmbeddedSqe, query_id: str) -> HistoryEntry:
    (entry,) = (entry for entry in sqe.sqe.history.entries() if entry.query_id == query_id)
    return entry


@pytest.mark.parametrize(
    ("sql", "divisible"),
    [
        ("SELECT * FROM big", True),
        ("SELECT t FROM big WHERE k = 3", True),
        ("SELECT * FROM big ORDER BY id", False),
        ("SELECT t FROM big ORDER BY id", False),
        ("SELECT upper(t) AS u FROM big WHERE k > 3 ORDER BY k, id DESC LIMIT 200000", False),
        ("WITH b AS (SELECT * FROM big) SELECT * FROM b ORDER BY id", False),
        ("WITH b AS (SELECT * FROM big ORDER BY id LIMIT 9) SELECT big.* FROM big JOIN b ON big.k = b.k", True),
        ("SELECT * FROM (SELECT * FROM big ORDER BY id) AS s", False),
        ("SELECT k, count(*) AS n FROM big GROUP BY k", True),
        ("SELECT k, count(*) AS n FROM big GROUP BY k ORDER BY n", False),
        ("SELECT k, count(*) AS n FROM (SELECT * FROM big ORDER BY id) AS s GROUP BY k", True),
        ("SELECT count(*) AS n FROM big", False),
        ("SELECT * FROM big UNION ALL SELECT * FROM big", True),
        ("SELECT id FROM big UNION ALL SELECT k FROM keys ORDER BY 1", False),
        ("SELECT b.id, ten FROM big AS b JOIN keys USING (k)", True),
        ("SELECT * FROM big LIMIT 10", False),
        ("SELECT * FROM big LIMIT 100000", True),
        ("SELECT id, row_number() OVER (PARTITION BY k ORDER BY id) AS n FROM big", True),
        ("SELECT DISTINCT t FROM big", True),
        ("SELECT 1 AS a", False),
        ("SELECT * FROM (VALUES (1), (2)) AS v(a)", False),
        ("SELECT n FROM UNNEST(sequence(1, 5000)) AS u(n)", True),
        ("SELECT * FROM range(1000000) AS r(id)", True),
        ("SHOW TABLES", False),
        ("EXPLAIN SELECT * FROM big", False),
        ("CREATE TABLE never AS SELECT * FROM big", False),
    ],
)
def test_what_has_an_order_or_is_small_stays_whole(sqe: EmbeddedSqe, sql: str, divisible: bool) -> None:
    parts = parts_of(sqe, sql, 3)
    assert len(parts) == (3 if divisible else 1)
    for part in parts:
        part.close()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM big",
        "SELECT t, id FROM big WHERE k < 50",
        "SELECT b.id, b.t, keys.ten FROM big AS b JOIN keys ON b.k = keys.k WHERE b.id % 3 = 0",
        "SELECT id, max(t) AS t, count(*) AS n FROM (SELECT id % 50000 AS id, t FROM big) AS s GROUP BY id",
        "SELECT id, t FROM big UNION ALL SELECT k, 'keys' FROM keys",
        "SELECT id, sum(k) OVER (PARTITION BY k ORDER BY id) AS s FROM big",
        "SELECT * FROM big WHERE id < 0",
    ],
)
@pytest.mark.parametrize("count", [2, 5])
def test_the_parts_are_the_whole_and_nothing_twice(sqe: EmbeddedSqe, sql: str, count: int) -> None:
    whole = sqe.execute(sql).read_all()
    parts = parts_of(sqe, sql, count)
    found = read(parts)
    assert all(part.schema.equals(whole.schema, check_metadata=True) for part in found)
    order = [(name, "ascending") for name in whole.schema.names]
    assert pa.concat_tables(found).sort_by(order).equals(whole.sort_by(order))
    entry = entry_of(sqe, parts[0].query_id)
    assert (entry.state, entry.rows) == ("FINISHED", whole.num_rows)


def test_more_than_one_reader_gets_rows(sqe: EmbeddedSqe) -> None:
    parts = [iter(part.start()) for part in parts_of(sqe, "SELECT * FROM big", 3)]
    firsts = [next(part) for part in parts]
    rest = [sum(batch.num_rows for batch in part) for part in parts]
    assert sum(batch.num_rows for batch in firsts) + sum(rest) == ROWS


def test_what_chance_decides_is_decided_once(sqe: EmbeddedSqe) -> None:
    """Ran it once for each part, rows of one would be drawn again for another."""
    sql = "SELECT r, u, count(*) AS n FROM (SELECT rand() AS r, uuid() AS u FROM big) AS s WHERE r < 0.5 GROUP BY r, u"
    rows = pa.concat_tables(read(parts_of(sqe, sql)))
    drawn = rows["r"].to_pylist()
    assert len(set(drawn)) == len(drawn) == len(set(rows["u"].to_pylist()))
    assert ROWS * 0.49 < len(drawn) < ROWS * 0.51
    assert max(drawn) < 0.5


def test_the_parts_see_one_snapshot(sqe: EmbeddedSqe) -> None:
    sqe.execute(f"CREATE TABLE moving AS SELECT id, 'before' AS t FROM range({ROWS}) AS r(id)").close()
    first, second = parts_of(sqe, "SELECT * FROM moving", 2)
    begun = iter(first.start())
    rows = [next(begun)]
    sqe.execute("DELETE FROM moving WHERE id % 2 = 0").close()
    sqe.execute("INSERT INTO moving VALUES (-1, 'after')").close()
    rows += [*second.start(), *begun]
    found = pa.Table.from_batches(rows)
    assert found.num_rows == ROWS
    assert set(found["t"].to_pylist()) == {"before"}
    sqe.execute("DROP TABLE moving").close()


def test_it_is_one_statement_with_one_slot(sqe: EmbeddedSqe) -> None:
    service, before = sqe.sqe.service, len(sqe.sqe.history.entries())
    results = [part.start() for part in parts_of(sqe, "SELECT * FROM big", 4)]
    reading = [iter(result) for result in results]
    for rows in reading:
        next(rows)
    assert service.running == 1
    assert len({result.query_id for result in results}) == 1
    assert len(sqe.sqe.history.entries()) == before + 1
    shown = sqe.execute("SHOW QUERIES").read_all().to_pylist()
    assert sum(results[0].query_id in row.values() for row in shown) == 1
    for result in results:
        result.close()


def test_parts_that_nobody_reads_hold_nothing(sqe: EmbeddedSqe) -> None:
    first, *others = parts_of(sqe, "SELECT * FROM big", 4)
    assert first.start().read_all().num_rows == ROWS
    assert sqe.sqe.service.running == 0
    assert others[0].start().read_all().num_rows == 0
    for part in others[1:]:
        part.close()
    assert entry_of(sqe, first.query_id).rows == ROWS
    forgotten = parts_of(sqe, "SELECT * FROM big", 4)
    for part in forgotten:
        assert entry_of(sqe, part.query_id).state == "RUNNING"
        part.close()
    assert entry_of(sqe, forgotten[0].query_id).state == "CANCELED"


@pytest.mark.rule("LIM-8")
def test_the_bound_on_rows_is_one_for_all_parts(sqe: EmbeddedSqe) -> None:
    sqe.execute("SET SESSION query_max_result_rows = 200000").close()
    try:
        parts = parts_of(sqe, "SELECT * FROM big", 4)
        with ThreadPoolExecutor(4) as pool:
            outcomes = [pool.submit(lambda part=part: part.start().read_all()) for part in parts]
            errors = [outcome.exception() for outcome in outcomes]
        assert all(isinstance(error, SqeError) for error in errors), errors
        assert len({error.code for error in errors if isinstance(error, SqeError)}) == 1
        assert entry_of(sqe, parts[0].query_id).state == "FAILED"
    finally:
        sqe.execute("RESET SESSION query_max_result_rows").close()


def endless(sqe: EmbeddedSqe) -> list[StatementResult]:
    """A statement that goes on for long, with a few rows now and then."""
    sql = "SELECT id FROM range(9000000000) AS r(id) WHERE sin(id) > 0.9999"
    return [part.start() for part in parts_of(sqe, sql, 3)]


@pytest.mark.parametrize("end", ["cancel a part", "cancel the statement", "leave a part", "time"])
def test_whatever_ends_one_part_ends_all(sqe: EmbeddedSqe, end: str) -> None:
    if end == "time":
        sqe.execute("SET SESSION query_max_run_time = '4s'").close()
    try:
        results = endless(sqe)
    finally:
        sqe.execute("RESET SESSION query_max_run_time").close()
    ends: dict[str, Callable[[], object]] = {
        "cancel a part": results[1].cancel,
        "cancel the statement": lambda: sqe.sqe.service.cancel(sqe.session, results[0].query_id),
        "leave a part": results[2].close,
        "time": lambda: None,
    }
    began, counts = [threading.Event(), threading.Event()], [0, 0]

    def drain(number: int) -> None:
        for batch in results[number]:
            counts[number] += batch.num_rows
            began[number].set()

    with ThreadPoolExecutor(2) as pool:
        reading = [pool.submit(drain, number) for number in (0, 1)]
        assert all(each.wait(30) for each in began)
        ends[end]()
        errors = [outcome.exception(20) for outcome in reading]
    expected = QueryTimeoutError if end == "time" else QueryCancelledError
    assert all(isinstance(error, expected) for error in errors), errors
    with pytest.raises(expected if end != "leave a part" else QueryCancelledError):
        results[2].read_all()
    state = entry_of(sqe, results[0].query_id).state
    assert state == ("FAILED" if end == "time" else "CANCELED")


def test_who_leaves_alone_is_recorded_as_leaving(sqe: EmbeddedSqe) -> None:
    first, _ = parts_of(sqe, "SELECT * FROM big", 2)
    result = first.start()
    rows = iter(result)
    next(rows)
    result.close()
    assert entry_of(sqe, first.query_id).state == "CANCELED"


def test_an_error_in_the_middle_reaches_all(sqe: EmbeddedSqe) -> None:
    parts = parts_of(sqe, f"SELECT 1 / (id - {ROWS - 5}) AS q, t FROM big", 3)
    for part in parts:
        with pytest.raises(SqeError, match=r"[Dd]ivision by zero"):
            part.start().read_all()


def test_an_order_that_a_view_has_since_is_not_divided(sqe: EmbeddedSqe, monkeypatch: pytest.MonkeyPatch) -> None:
    sqe.execute("CREATE VIEW looked AS SELECT id FROM big").close()
    parts = parts_of(sqe, "SELECT * FROM looked", 2)
    assert len(parts) == 2
    monkeypatch.setattr("sqe_core.query.run.statement_run._PLAN_SECS", -1.0)
    sqe.execute("CREATE OR REPLACE VIEW looked AS SELECT id FROM big ORDER BY id").close()
    for part in parts:
        with pytest.raises(UserError, match="has changed"):
            part.start()
    sqe.execute("DROP VIEW looked").close()
