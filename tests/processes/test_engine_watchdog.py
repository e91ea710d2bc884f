"""Statements that do not end when they are cancelled: joins are made to, and the engine outlives the rest."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Iterator

import pytest
from testbed.clocks import PROMPT_SECS

from sqe_core.bootstrap import EmbeddedSqe, open_embedded
from sqe_core.engine.spark.engine import EngineOptions, SparkEngine
from sqe_core.engine.spark.session import SparkEngineSession
from sqe_core.spi.errors import EngineLostError, QueryTimeoutError, SqeError

# Backtracks for longer than anybody waits, and looks at nothing meanwhile.
ENDLESS = (
    "SELECT count(*) FROM two "
    "WHERE regexp_like(concat('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', CAST(a AS varchar)), '^((a+)+)+\\1x$')"
)


@pytest.fixture(scope="module")
def sqe(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedSqe]:
    engine = SparkEngine(EngineOptions(memory_bytes=1 << 29, master="local[2]", stuck_secs=4, restart_limit=1))
    engine.start()
    try:
        engine.wait_ready(300)
        opened = open_embedded(tmp_path_factory.mktemp("warehouse"), engine=engine)
        opened.execute("CREATE TABLE two AS SELECT 1 AS a UNION ALL SELECT 2 AS a").close()
        yield opened
        opened.close()
    finally:
        engine.stop()


def timed_out(sqe: EmbeddedSqe, sql: str) -> None:
    sqe.execute("SET SESSION query_max_run_time = '3s'").close()
    with pytest.raises(QueryTimeoutError):
        sqe.execute(sql).read_all()
    sqe.execute("RESET SESSION query_max_run_time").close()


@pytest.mark.rule("LIM-7", "LIM-9")
def test_the_engine_outlives_what_cannot_be_cancelled(sqe: EmbeddedSqe) -> None:
    engine = sqe.sqe.engine
    assert isinstance(engine, SparkEngine)
    first = engine.pid

    # Joins end where they are: the engine stays.
    sources = ", ".join(f"two t{number}" for number in range(40))
    for sql in (
        f"SELECT count(*) FROM {sources}",
        "SELECT count(*) FROM two t0"
        + "".join(f" JOIN two t{n} ON t{n}.a - t{n}.a = t0.a - t0.a" for n in range(1, 40)),
        "SELECT count(*) FROM two" + "".join(f" CROSS JOIN UNNEST(ARRAY[1, 2]) AS u{n}(x{n})" for n in range(40)),
    ):
        timed_out(sqe, sql)
        started = time.monotonic()
        assert sqe.execute("SELECT count(*) AS n FROM two a, two b").read_all().to_pylist() == [{"n": 4}]
        assert time.monotonic() - started < PROMPT_SECS
    time.sleep(7)  # it would have been replaced after 4
    assert engine.pid == first

    # What looks at nothing takes the engine with it, more often than it may crash.
    for _ in range(2):
        before = engine.pid
        timed_out(sqe, ENDLESS)
        deadline = time.monotonic() + 120
        while engine.pid == before:
            assert time.monotonic() < deadline, "the engine was not replaced"
            time.sleep(0.2)
        engine.wait_ready(120)
        assert ask(sqe) == 2


@pytest.mark.rule("LIM-7")
def test_what_a_cancelled_statement_leaves_behind_is_known_too(sqe: EmbeddedSqe) -> None:
    """A job that reaches Spark when its statement is over; this one never looks whether it is to end."""
    engine = sqe.sqe.engine
    assert isinstance(engine, SparkEngine)
    before, tag = engine.pid, uuid.uuid4().hex
    session = engine.open_session()
    assert isinstance(session, SparkEngineSession)
    session.cancel(tag)
    context = engine.context._jsc.sc()
    context.addJobTag(tag)
    jobs = session.spark._jsparkSession.range(0, 10**15, 1, 2).toJavaRDD()
    tracker = context.statusTracker()
    deadline = time.monotonic() + 120
    while engine.pid == before:
        assert time.monotonic() < deadline, "the engine was not replaced"
        with contextlib.suppress(Exception):  # whatever is said of an engine that ends at this moment
            if not list(tracker.getActiveStageIds()):
                jobs.countAsync()  # until one has begun before it is told to end
        time.sleep(1)
    engine.wait_ready(120)
    assert ask(sqe) == 2


def ask(sqe: EmbeddedSqe) -> int:
    for _ in range(5):
        try:
            return int(sqe.execute("SELECT count(*) AS n FROM two").read_all().to_pylist()[0]["n"])
        except EngineLostError:
            time.sleep(0.5)
    raise SqeError("the engine does not answer")
