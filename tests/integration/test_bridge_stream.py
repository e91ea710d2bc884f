"""Execution and results on a real JVM: order, bounds, cancelling, errors, counts of written rows."""

from __future__ import annotations

import datetime
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from testbed.clocks import PROMPT_SECS, wait_for

from sqe_core.engine.port import EngineExecutionError, ResultStream
from sqe_core.engine.spark.engine import SparkEngine
from sqe_core.engine.spark.session import SparkEngineSession
from sqe_core.spi.errors import QueryCancelledError

# Counts what the engine holds, or how soon it lets go.
alone = pytest.mark.alone

MIB = 1 << 20


@pytest.fixture
def session(engine: SparkEngine) -> Iterator[SparkEngineSession]:
    opened = open_session(engine)
    yield opened
    opened.close()


def open_session(engine: SparkEngine) -> SparkEngineSession:
    opened = engine.open_session()
    assert isinstance(opened, SparkEngineSession)
    return opened


def start(
    session: SparkEngineSession, sql: str, *, tag: str | None = None, settings: Mapping[str, str] | None = None
) -> ResultStream:
    tag = tag or uuid.uuid4().hex
    plan = session.analyse(session.parse(sql), tag=tag, settings=settings or {})
    return session.execute(plan, tag=tag, settings=settings or {})


def fetch(session: SparkEngineSession, sql: str, **options: Any) -> pa.Table:
    stream = start(session, sql, **options)
    return pa.Table.from_batches(list(stream), stream.schema)


def ids(table: pa.Table) -> list[int]:
    return table.column(0).to_pylist()


def active_tasks(engine: SparkEngine) -> int:
    """The tasks that hold slots, from the scheduler itself: the status store is seconds late."""
    context = engine.context._jsc.sc()
    by_executor = context.taskScheduler().runningTasksByExecutors().toString()
    return sum(int(count) for count in re.findall(r"-> (\d+)", by_executor))


def slots_are_free(engine: SparkEngine) -> Callable[[], bool]:
    return lambda: active_tasks(engine) == 0


# Order and content


def test_rows_come_in_the_order_of_the_partitions(session: SparkEngineSession) -> None:
    assert ids(fetch(session, "SELECT id FROM range(0, 300000, 1, 64)")) == list(range(300000))


def test_order_by_holds_across_partitions(session: SparkEngineSession) -> None:
    assert ids(fetch(session, "SELECT id FROM range(0, 200000, 1, 16) ORDER BY id DESC")) == list(range(199999, -1, -1))


def test_every_type_survives_the_way(session: SparkEngineSession) -> None:
    sql = """
        SELECT * FROM VALUES
          (true, 1Y, 2S, 3, 4L, CAST(1.5 AS FLOAT), 2.5D, 12.34BD, CAST(123 AS DECIMAL(38, 0)), 'é€𝄞', X'00FF',
           DATE '2024-02-29', TIMESTAMP_NTZ '2024-02-29 01:02:03.000004', TIMESTAMP_LTZ '2024-02-29 01:02:03.000004Z',
           TIME '10:20:30', INTERVAL '1' DAY, array(1, NULL), map('a', 1L), named_struct('x', 1, 'y', array('z'))),
          (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
           NULL)
        AS t(bool, i8, i16, i32, i64, f32, f64, dec, big, text, bin, day, ntz, ltz, clock, span, list, map, struct)"""
    table = fetch(session, sql)
    utc = datetime.UTC
    assert table.slice(0, 1).to_pylist() == [
        {
            "bool": True,
            "i8": 1,
            "i16": 2,
            "i32": 3,
            "i64": 4,
            "f32": 1.5,
            "f64": 2.5,
            "dec": Decimal("12.34"),
            "big": Decimal(123),
            "text": "é€𝄞",
            "bin": b"\x00\xff",
            "day": datetime.date(2024, 2, 29),
            "ntz": datetime.datetime(2024, 2, 29, 1, 2, 3, 4),
            "ltz": datetime.datetime(2024, 2, 29, 1, 2, 3, 4, tzinfo=utc),
            "clock": datetime.time(10, 20, 30),
            "span": datetime.timedelta(days=1),
            "list": [1, None],
            "map": [("a", 1)],
            "struct": {"x": 1, "y": ["z"]},
        }
    ]
    assert set(table.slice(1).to_pylist()[0].values()) == {None}
    computed = fetch(session, sql.replace("SELECT *", "SELECT /*+ REPARTITION(2) */ *"))
    assert computed.schema == table.schema
    assert sorted(map(str, computed.to_pylist())) == sorted(map(str, table.to_pylist()))
    empty = fetch(session, f"SELECT * FROM ({sql}) WHERE i32 = 77 AND rand() < 2")
    assert (empty.num_rows, empty.schema.names) == (0, table.schema.names)


@pytest.mark.parametrize(
    "sql", ["SELECT id FROM range(0)", "SELECT id FROM range(9) WHERE id > 100", "SELECT 1 AS id WHERE false"]
)
def test_an_empty_result_has_its_columns(session: SparkEngineSession, sql: str) -> None:
    table = fetch(session, sql)
    assert (table.num_rows, table.schema.names) == (0, ["id"])


def test_wide_rows_make_small_batches(session: SparkEngineSession) -> None:
    batches = list(start(session, "SELECT id, repeat('x', 100000) AS wide FROM range(0, 1000, 1, 3)"))
    assert sum(batch.num_rows for batch in batches) == 1000
    assert max(batch.nbytes for batch in batches) < 2 * MIB


def test_a_row_larger_than_the_buffers_passes(session: SparkEngineSession) -> None:
    table = fetch(session, "SELECT id, repeat('x', CAST(20000000 + id AS INT)) AS huge FROM range(0, 3, 1, 2)")
    assert [len(text) for text in table.column(1).to_pylist()] == [20000000, 20000001, 20000002]


def test_expressions_without_a_table_need_no_job(session: SparkEngineSession) -> None:
    stream = start(session, "SELECT 1 AS one, upper('x') AS text, array(1, 2) AS list, rand(7) < 2 AS random")
    assert [batch.to_pylist() for batch in stream] == [[{"one": 1, "text": "X", "list": [1, 2], "random": True}]]
    assert stream.progress().tasks == 0


# LIMIT


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        ("LIMIT 3", [0, 1, 2]),
        ("LIMIT 0", []),
        ("LIMIT 5 OFFSET 998", [998, 999]),
        ("OFFSET 997", [997, 998, 999]),
        ("LIMIT 25", list(range(25))),
        ("LIMIT 5000", list(range(1000))),
        ("ORDER BY id DESC LIMIT 2", [999, 998]),
        ("ORDER BY id LIMIT 3 OFFSET 10", [10, 11, 12]),
    ],
)
def test_limits(session: SparkEngineSession, clause: str, expected: list[int]) -> None:
    assert ids(fetch(session, f"SELECT id FROM range(0, 1000, 1, 100) {clause}")) == expected


def test_a_limit_looks_at_few_partitions(session: SparkEngineSession) -> None:
    stream = start(session, "SELECT id FROM range(0, 1000000, 1, 500) WHERE id % 2 = 0 LIMIT 10")
    assert sum(batch.num_rows for batch in stream) == 10
    wait_for(lambda: stream.progress().tasks > 0)
    assert stream.progress().tasks <= 5


# Streaming


@alone
def test_the_first_batch_comes_before_the_last_task_is_done(session: SparkEngineSession) -> None:
    # Eight tasks of 0.3 s; at most some of them run at once.
    sql = "SELECT id, reflect('java.lang.Thread', 'sleep', 300L) AS nothing FROM range(0, 32, 1, 32)"
    began = time.monotonic()
    stream = start(session, sql)
    reader = iter(stream)
    first = next(reader)
    first_secs = time.monotonic() - began
    progress = stream.progress()
    assert first.column(0).to_pylist() == [0]
    assert progress.tasks == 32
    assert progress.tasks_done < 32
    assert [batch.column(0)[0].as_py() for batch in reader] == list(range(1, 32))
    assert first_secs < (time.monotonic() - began) / 2
    done = stream.progress()
    assert (done.stages, done.tasks, done.rows) == (1, 32, 32)


@alone
def test_rows_of_a_slow_query_come_as_they_are_made(session: SparkEngineSession) -> None:
    sql = "SELECT id, reflect('java.lang.Thread', 'sleep', 100L) AS nothing FROM range(0, 40, 1, 1)"
    began = time.monotonic()
    reader = iter(start(session, sql))
    assert next(reader).num_rows < 40
    assert time.monotonic() - began < PROMPT_SECS
    assert sum(batch.num_rows for batch in reader) < 40


@alone
def test_a_slow_reader_holds_no_slot_and_loses_no_row(engine: SparkEngine, session: SparkEngineSession) -> None:
    stream = start(session, "SELECT id, repeat('x', 1000) AS text FROM range(0, 150000, 1, 12)")
    reader = iter(stream)
    first = next(reader)
    wait_for(slots_are_free(engine))
    other = open_session(engine)
    began = time.monotonic()
    assert ids(fetch(other, "SELECT sum(id) FROM range(0, 1000, 1, 4)")) == [499500]
    assert time.monotonic() - began < PROMPT_SECS
    other.close()
    seen = first.column(0).to_pylist() + [row for batch in reader for row in batch.column(0).to_pylist()]
    assert seen == list(range(150000))
    assert engine.context.bridge.stream.StreamHub.held() == 0


def test_statements_at_once_do_not_mix(engine: SparkEngine) -> None:
    results: dict[int, list[int]] = {}

    def read(number: int) -> None:
        own = open_session(engine)
        results[number] = ids(fetch(own, f"SELECT id * 10 + {number} FROM range(0, 50000, 1, 5)"))
        own.close()

    threads = [threading.Thread(target=read, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert results == {number: [row * 10 + number for row in range(50000)] for number in range(4)}


def test_an_error_in_the_middle_comes_after_rows(session: SparkEngineSession) -> None:
    reader = iter(start(session, "SELECT id, repeat('x', 1000), 1 / (id - 90000) FROM range(0, 100000, 1, 1)"))
    assert next(reader).num_rows > 0
    with pytest.raises(EngineExecutionError) as raised:
        list(reader)
    assert raised.value.failure.condition == "DIVIDE_BY_ZERO"


def test_an_error_at_once_comes_from_execute(session: SparkEngineSession) -> None:
    with pytest.raises(EngineExecutionError) as raised:
        list(start(session, "SELECT 1 / (id - id) FROM range(10)"))
    assert raised.value.failure.condition == "DIVIDE_BY_ZERO"


# Cancelling


ENDLESS = "SELECT sum(id % 7) FROM range(0, 1000000000000, 1, 8)"


@alone
def test_cancel_frees_the_slots(engine: SparkEngine, session: SparkEngineSession) -> None:
    stream = start(session, ENDLESS)
    wait_for(lambda: active_tasks(engine) > 0)
    began = time.monotonic()
    stream.cancel()
    with pytest.raises(QueryCancelledError):
        next(iter(stream))
    assert time.monotonic() - began < PROMPT_SECS
    wait_for(slots_are_free(engine))
    assert fetch(session, "SELECT 1 AS x").num_rows == 1


@alone
def test_cancel_by_tag_reaches_a_waiting_reader(engine: SparkEngine, session: SparkEngineSession) -> None:
    tag = uuid.uuid4().hex
    stream = start(session, ENDLESS, tag=tag)
    wait_for(lambda: active_tasks(engine) > 0)
    timer = threading.Timer(0.5, session.cancel, (tag,))
    timer.start()
    began = time.monotonic()
    with pytest.raises(QueryCancelledError):
        next(iter(stream))
    assert time.monotonic() - began < PROMPT_SECS
    wait_for(slots_are_free(engine))


@alone
def test_closing_a_stream_ends_its_statement(engine: SparkEngine, session: SparkEngineSession) -> None:
    stream = start(session, "SELECT id, repeat('x', 1000) FROM range(0, 1000000000, 1, 8)")
    next(iter(stream))
    stream.close()
    wait_for(slots_are_free(engine))
    wait_for(lambda: engine.context.bridge.stream.StreamHub.held() == 0)


@alone
def test_a_reader_that_hangs_up_ends_its_statement(engine: SparkEngine, session: SparkEngineSession) -> None:
    stream = start(session, ENDLESS)
    wait_for(lambda: active_tasks(engine) > 0)
    stream._frames.close()  # type: ignore[attr-defined]
    wait_for(slots_are_free(engine))


@alone
def test_a_job_that_was_on_its_way_when_its_statement_was_cancelled_ends_too(
    engine: SparkEngine, session: SparkEngineSession
) -> None:
    """A thread that is interrupted while it hands a job to Spark leaves it behind."""
    tag = uuid.uuid4().hex
    stream = start(session, "SELECT count(*) FROM range(1000000000000)", tag=tag)
    session.cancel(tag)
    with pytest.raises(QueryCancelledError):
        list(stream)
    wait_for(slots_are_free(engine))
    jvm = engine.context._jvm
    context = jvm.org.apache.spark.SparkContext.getOrCreate()
    numbers = jvm.org.apache.spark.api.java.JavaSparkContext(context).parallelize(
        jvm.java.util.Collections.nCopies(9999, 1)
    )
    endless = numbers.cartesian(numbers).cartesian(numbers)
    context.addJobTag(tag)
    context.setInterruptOnCancel(True)
    try:
        late = endless.countAsync()
    finally:
        context.setLocalProperties(jvm.java.util.Properties())
    wait_for(late.isDone)
    wait_for(slots_are_free(engine))


def test_a_cancel_that_comes_first_stops_the_statement(session: SparkEngineSession) -> None:
    tag = uuid.uuid4().hex
    plan = session.analyse(session.parse("SELECT 1 AS x"), tag=tag)
    session.cancel(tag)
    with pytest.raises(QueryCancelledError):
        list(session.execute(plan, tag=tag))


def many_joins() -> str:
    """A query that Spark's optimizer is busy with for minutes."""
    conditions = " OR ".join(f"(a.id = {i} AND b.id = {i + 1} AND c.id = {i + 2})" for i in range(1500))
    return f"SELECT count(*) FROM range(9) a, range(9) b, range(9) c, range(9) d WHERE {conditions}"


def cancelled_in_planning(
    engine: SparkEngine, session: SparkEngineSession, sql: str, settings: Mapping[str, str]
) -> None:
    tag = uuid.uuid4().hex
    plan = session.analyse(session.parse(sql), tag=tag, settings=settings)
    cancelled_at = 0.0

    def cancel() -> None:
        nonlocal cancelled_at
        cancelled_at = time.monotonic()
        session.cancel(tag)

    threading.Timer(0.5, cancel).start()
    with pytest.raises(QueryCancelledError):
        list(session.execute(plan, tag=tag, settings=settings))
    assert time.monotonic() - cancelled_at < PROMPT_SECS
    # The thread itself ends too, and does not count as lost, or not for long.
    time.sleep(2.5)
    wait_for(lambda: engine.context.bridge.exec.Exec.abandoned() == 0)


@alone
def test_cancel_reaches_planning(engine: SparkEngine, session: SparkEngineSession) -> None:
    cancelled_in_planning(engine, session, many_joins(), {})


# Settings


def test_settings_hold_for_one_statement(session: SparkEngineSession) -> None:
    sql = "SELECT id % 3 AS k, count(*) FROM range(0, 100, 1, 2) GROUP BY 1"
    stream = start(session, sql, settings={"spark.sql.shuffle.partitions": "7", "spark.sql.adaptive.enabled": "false"})
    assert sum(batch.num_rows for batch in stream) == 3
    assert stream.progress().tasks == 9
    assert session.check_settings()


# Writes


@pytest.fixture(scope="module")
def writer(engine: SparkEngine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkEngineSession]:
    """A session with the catalog `w`."""
    opened = open_session(engine)
    mount(opened, tmp_path_factory.mktemp("tables"))
    yield opened
    opened.close()


def mount(session: SparkEngineSession, folder: Path) -> None:
    session.mount("w", {"type": "hadoop", "warehouse": str(folder)})
    session.catalog("w").create_namespace(("s",), {})


def write(session: SparkEngineSession, sql: str, **options: Any) -> int | None:
    stream = start(session, sql, **options)
    assert list(stream) == []
    return stream.affected_rows


MODES = [
    pytest.param(version, mode, id=f"v{version}-{mode}")
    for version in (2, 3)
    for mode in ("copy-on-write", "merge-on-read")
]


def new_table(session: SparkEngineSession, version: int = 2, mode: str = "copy-on-write", rows: int = 100) -> str:
    """A table with that many rows in files by `id % 2`."""
    name = f"w.s.t{uuid.uuid4().hex[:8]}"
    modes = ", ".join(f"'write.{command}.mode'='{mode}'" for command in ("delete", "update", "merge"))
    created = write(
        session,
        f"CREATE TABLE {name} (id BIGINT, name STRING, part BIGINT) USING iceberg PARTITIONED BY (part) "
        f"TBLPROPERTIES ('format-version'='{version}', {modes})",
    )
    assert created is None
    assert write(session, f"INSERT INTO {name} SELECT id, concat('n', id), id % 2 FROM range({rows})") == rows
    return name


@pytest.mark.parametrize(("version", "mode"), MODES)
def test_affected_rows(writer: SparkEngineSession, version: int, mode: str) -> None:
    name = new_table(writer, version, mode)
    assert write(writer, f"UPDATE {name} SET name = 'x' WHERE id < 7") == 7
    assert write(writer, f"UPDATE {name} SET name = 'x' WHERE id < 0") == 0
    assert write(writer, f"UPDATE {name} SET name = 'y' WHERE id IN (SELECT id + 50 FROM range(4))") == 4
    assert write(writer, f"DELETE FROM {name} WHERE id IN (1, 3, 4)") == 3
    assert write(writer, f"DELETE FROM {name} WHERE id = 1000") == 0
    assert write(writer, f"DELETE FROM {name} WHERE id IN (SELECT id + 60 FROM range(2))") == 2
    merged = write(
        writer,
        f"MERGE INTO {name} t USING (SELECT id + 90 AS id FROM range(20)) s ON t.id = s.id "
        "WHEN MATCHED AND t.id < 93 THEN DELETE WHEN MATCHED THEN UPDATE SET name = 'm' "
        "WHEN NOT MATCHED THEN INSERT (id, name, part) VALUES (s.id, 'i', 0)",
    )
    assert merged == 20
    left = ids(fetch(writer, f"SELECT count(*) FROM {name}"))[0]
    assert left == 100 - 3 - 2 - 3 + 10
    odd = ids(fetch(writer, f"SELECT count(*) FROM {name} WHERE part = 1"))[0]
    assert write(writer, f"DELETE FROM {name} WHERE part = 1") == odd, "files are dropped as a whole"
    assert write(writer, f"DELETE FROM {name}") == left - odd
    assert ids(fetch(writer, f"SELECT count(*) FROM {name}")) == [0]


def test_affected_rows_of_other_statements(writer: SparkEngineSession) -> None:
    name = new_table(writer)
    assert write(writer, f"INSERT INTO {name} SELECT id, 'a', 0 FROM range(0)") == 0
    assert write(writer, f"INSERT OVERWRITE {name} SELECT id, 'o', 0 FROM range(12)") == 12
    assert write(writer, f"CREATE TABLE {name}_a USING iceberg AS SELECT id FROM range(33)") == 33
    assert write(writer, f"CREATE OR REPLACE TABLE {name}_a USING iceberg AS SELECT id FROM range(5)") == 5
    assert write(writer, f"WITH c AS (SELECT id, 'c', 1 FROM range(6)) INSERT INTO {name} SELECT * FROM c") == 6
    assert write(writer, f"ALTER TABLE {name} CREATE BRANCH b") is None
    assert write(writer, f"DELETE FROM {name}.branch_b WHERE part = 1") == 6
    assert write(writer, f"INSERT INTO {name}.branch_b VALUES (1, 'b', 0), (2, 'b', 0)") == 2
    assert write(writer, f"ALTER TABLE {name} ADD COLUMN more INT") is None
    assert fetch(writer, f"DESCRIBE TABLE {name}").num_rows > 3
    assert write(writer, f"DROP TABLE {name}") is None


def test_commits_of_others_are_not_counted(engine: SparkEngine, writer: SparkEngineSession, tmp_path: Path) -> None:
    name = new_table(writer)
    tag = uuid.uuid4().hex
    plan = writer.analyse(writer.parse(f"INSERT INTO {name} SELECT id, 'mine', 0 FROM range(3)"), tag=tag)
    assert write(writer, f"INSERT INTO {name} SELECT id, 'other', 0 FROM range(500)") == 500
    stream = writer.execute(plan, tag=tag)
    assert write(writer, f"INSERT INTO {name} SELECT id, 'later', 0 FROM range(50)") == 50
    assert stream.affected_rows == 3
    assert ids(fetch(writer, f"SELECT count(*) FROM {name}")) == [653]
    summaries = fetch(writer, f"SELECT summary['sqe.query-id'] FROM {name}._sqe_metadata_snapshots")
    assert tag in summaries.column(0).to_pylist()


@alone
def test_a_cancelled_write_leaves_the_table_as_it_was(engine: SparkEngine, writer: SparkEngineSession) -> None:
    name = new_table(writer)
    tag = uuid.uuid4().hex
    plan = writer.analyse(
        writer.parse(f"INSERT INTO {name} SELECT id, repeat('x', 100), 0 FROM range(0, 100000000000, 1, 4)"), tag=tag
    )
    timer = threading.Timer(2, writer.cancel, (tag,))
    timer.start()
    began = time.monotonic()
    with pytest.raises(QueryCancelledError):
        writer.execute(plan, tag=tag)
    assert time.monotonic() - began < PROMPT_SECS
    wait_for(slots_are_free(engine))
    assert ids(fetch(writer, f"SELECT count(*) FROM {name}")) == [100]


ENDLESS_PLANNING = "SELECT max(if(name = 'q', 1/0, 0)) FROM {name}"


def test_a_constant_that_cannot_be_folded_does_not_hang(writer: SparkEngineSession) -> None:
    assert ids(fetch(writer, ENDLESS_PLANNING.format(name=new_table(writer)))) == [0]


@alone
def test_cancel_reaches_a_rule_that_never_ends(engine: SparkEngine, writer: SparkEngineSession) -> None:
    sql = ENDLESS_PLANNING.format(name=new_table(writer))
    cancelled_in_planning(engine, writer, sql, {"spark.sql.optimizer.datasourceV2ExprFolding": "true"})
