"""Many sessions at once: no cross-talk, and one slow reader stalls nobody."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sqe_core.bootstrap import EMBEDDED_CATALOG, OWNER, EmbeddedSqe
from sqe_core.engine.spark.engine import SparkEngine
from sqe_core.session.session import Session
from sqe_core.spi.errors import ErrorCode, QueryCancelledError, QueryTimeoutError, SqeError
from sqe_core.testing import make_identity


def open_session(sqe: EmbeddedSqe) -> Session:
    return sqe.sqe.open_session(OWNER, catalog=EMBEDDED_CATALOG, protocol="test")


@pytest.mark.rule("LIM-11")
def test_each_user_has_a_pool_of_the_scheduler(sqe: EmbeddedSqe, engine: SparkEngine) -> None:
    """Whoever has many jobs does not keep the others waiting until all of them are done."""
    pools: dict[str, set[str]] = {}
    for user in ("ann", "ben", "ann"):
        session = sqe.sqe.open_session(make_identity(user), catalog=EMBEDDED_CATALOG, protocol="test")
        before = pool_names(engine)
        sqe.sqe.service.execute(session, "SELECT id % 7, count(*) FROM range(1000) AS r(id) GROUP BY 1").read_all()
        pools.setdefault(user, set()).update(pool_names(engine) - before)
        sqe.sqe.service.close_session(session)
    assert [len(found) for found in pools.values()] == [1, 1]
    assert all(name.startswith("user-") for found in pools.values() for name in found)
    assert pools["ann"] != pools["ben"]


def pool_names(engine: SparkEngine) -> set[str]:
    """What Spark has pools for."""
    pools = engine.context._jsc.sc().getAllPools()
    return {str(pools.apply(number).name()) for number in range(pools.size())}


@pytest.mark.rule("ISO-2", "TEST-8")
def test_two_hundred_statements_from_sixteen_sessions(sqe: EmbeddedSqe) -> None:
    service = sqe.sqe.service
    sessions = [open_session(sqe) for _ in range(16)]

    def run(session: Session, sql: str) -> list[tuple[object, ...]]:
        return [tuple(row.values()) for row in service.execute(session, sql).read_all().to_pylist()]

    def work(number: int) -> None:
        session = sessions[number]
        run(session, f"CREATE SCHEMA IF NOT EXISTS w{number}")
        run(session, f"USE w{number}")
        run(session, f"SET SESSION query_max_result_rows = {number + 100}")
        run(session, f"CREATE TABLE own AS SELECT {number} AS n")
        run(session, f"CREATE TEMPORARY VIEW v AS SELECT n + {number} AS m FROM own")
        for turn in range(7):
            assert set(run(session, "SELECT n FROM own")) == {(number,)}
            assert set(run(session, "SELECT m FROM v")) == {(2 * number,)}
            run(session, f"INSERT INTO own SELECT {number} FROM own LIMIT 1") if turn % 3 == 0 else None
            run(session, "DELETE FROM own WHERE n <> n")
            assert set(run(session, "SELECT DISTINCT n FROM own")) == {(number,)}
        assert dict(row[:2] for row in run(session, "SHOW SESSION"))["query_max_result_rows"] == str(number + 100)
        assert session.schema == (f"w{number}",)

    try:
        with ThreadPoolExecutor(16) as pool:
            for each in [pool.submit(work, number) for number in range(16)]:
                each.result(timeout=280)
    finally:
        for session in sessions:
            service.close_session(session)


def test_sixteen_writers_to_one_table_lose_nothing(sqe: EmbeddedSqe) -> None:
    sqe.execute("CREATE TABLE shared (n bigint)").close()
    failures: list[SqeError] = []

    def work(number: int) -> int:
        session = open_session(sqe)
        done = 0
        for _ in range(3):
            try:
                sqe.sqe.service.execute(session, f"INSERT INTO iceberg.default.shared VALUES {number}").close()
                done += 1
            except SqeError as error:
                failures.append(error)
        sqe.sqe.service.close_session(session)
        return done

    with ThreadPoolExecutor(6) as pool:
        written = sum(pool.map(work, range(6)))
    (count,) = sqe.execute("SELECT count(*) AS c FROM shared").read_all().column("c").to_pylist()
    assert count == written
    # A lost race is allowed to fail, with the code that says "send it again".
    assert {failure.code for failure in failures} <= {ErrorCode.COMMIT_CONFLICT}
    assert written >= 6


def test_a_slow_reader_stalls_nobody(sqe: EmbeddedSqe) -> None:
    slow = open_session(sqe)
    big = "SELECT id, repeat('x', 1000) AS t FROM range(2000000) AS r(id)"
    result = sqe.sqe.service.execute(slow, big)
    batches = iter(result)
    next(batches)
    try:
        started = time.monotonic()
        for _ in range(3):
            assert sqe.execute("SELECT sum(id) AS s FROM range(100000) AS r(id)").read_all().num_rows == 1
        assert time.monotonic() - started < 60
    finally:
        sqe.sqe.service.close_session(slow)
    with pytest.raises(SqeError):
        list(batches)


@pytest.mark.rule("TRI-9")
def test_a_session_cancels_its_own_statements_only(sqe: EmbeddedSqe) -> None:
    mine, other = open_session(sqe), open_session(sqe)
    started, ended = threading.Event(), []

    def run() -> None:
        try:
            result = sqe.sqe.service.execute(
                mine, "SELECT id, md5(cast(id AS varchar)) AS m FROM range(500000000) AS r(id)"
            )
            started.set()
            for _ in result:
                pass
        except SqeError as error:
            ended.append(error)
            started.set()

    thread = threading.Thread(target=run)
    thread.start()
    assert started.wait(60)
    assert sqe.sqe.service.cancel(other) == 0
    assert thread.is_alive()
    assert sqe.sqe.service.cancel(mine) == 1
    thread.join(10)
    assert [type(error) for error in ended] == [QueryCancelledError]


@pytest.mark.rule("LIM-7")
def test_a_statement_ends_at_its_deadline(sqe: EmbeddedSqe) -> None:
    session = open_session(sqe)
    sqe.sqe.service.execute(session, "SET SESSION query_max_run_time = '1s'").close()
    began = time.monotonic()
    with pytest.raises(QueryTimeoutError, match="longer than 1 s"):
        sqe.sqe.service.execute(
            session, "SELECT count(*) FROM range(100000000) AS a(x), range(100000) AS b(y) WHERE x * y % 7 = 3"
        ).read_all()
    assert time.monotonic() - began < 30
    sqe.sqe.service.close_session(session)


@pytest.mark.rule("SESS-6")
def test_a_closed_session_is_over(sqe: EmbeddedSqe, warehouse: Path) -> None:
    session = open_session(sqe)
    sqe.sqe.service.execute(session, "SELECT 1").read_all()
    sqe.sqe.service.close_session(session)
    with pytest.raises(SqeError) as raised:
        sqe.sqe.service.execute(session, "SELECT 1").read_all()
    assert raised.value.code is ErrorCode.SESSION_EXPIRED
