"""CREATE in several sessions at once, where nobody found the object when the statement was judged."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from testbed.users import rows

from sqe_core.bootstrap import EMBEDDED_CATALOG, OWNER, EmbeddedSqe
from sqe_core.query.run.result import StatementResult
from sqe_core.session.session import Session
from sqe_core.spi.errors import CommitConflictError, ErrorCode, SqeError, UserError
from sqe_core.spi.protocol import IngestMode, IngestRequest

_AT_ONCE = 6


@pytest.fixture(scope="module")
def sessions(sqe: EmbeddedSqe) -> Iterator[list[Session]]:
    opened = [sqe.sqe.open_session(OWNER, catalog=EMBEDDED_CATALOG, protocol="embedded") for _ in range(_AT_ONCE)]
    for session in opened:
        sqe.sqe.service.execute(session, "SELECT 1").close()
    yield opened
    for session in opened:
        sqe.sqe.service.close_session(session)


def race(sessions: list[Session], run: Callable[[Session, int], StatementResult]) -> list[Any]:
    """Run it in all sessions at once; return the number of rows, or the error, of each."""
    answers: list[Any] = [None] * len(sessions)
    together = threading.Barrier(len(sessions))

    def one(number: int) -> None:
        together.wait()
        try:
            with run(sessions[number], number) as result:
                answers[number] = result.affected_rows
        except SqeError as error:
            answers[number] = error

    threads = [threading.Thread(target=one, args=(number,)) for number in range(len(sessions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def statement(sqe: EmbeddedSqe, sql: str) -> Callable[[Session, int], StatementResult]:
    return lambda session, number: sqe.sqe.service.execute(session, sql.replace("$n", str(number)))


def ingest(sqe: EmbeddedSqe, table: str, mode: IngestMode) -> Callable[[Session, int], StatementResult]:
    def run(session: Session, number: int) -> StatementResult:
        rows = pa.table({"a": [number] * 100})
        request = IngestRequest(table=table, mode=mode)
        return sqe.sqe.service.ingest(session, request, rows.schema, iter(rows.to_batches()))

    return run


def check_replaced(answers: list[Any], done: int | None) -> None:
    assert done in answers
    for answer in answers:
        if answer != done:
            assert isinstance(answer, CommitConflictError)
            assert answer.code is ErrorCode.COMMIT_CONFLICT
            assert answer.hint == "send the statement again"


@pytest.mark.parametrize("turn", range(2))
def test_the_last_one_replaces_a_table(sqe: EmbeddedSqe, sessions: list[Session], turn: int) -> None:
    table = f"replaced_{turn}"
    text = f"CREATE OR REPLACE TABLE {table} AS SELECT $n AS a FROM range(100)"
    check_replaced(race(sessions, statement(sqe, text)), 100)
    assert rows(sqe, f"SELECT count(*), count(DISTINCT a) FROM {table}") == [(100, 1)]


@pytest.mark.parametrize("turn", range(3))
def test_the_last_ingest_replaces_a_table(sqe: EmbeddedSqe, sessions: list[Session], turn: int) -> None:
    table = f"ingested_{turn}"
    check_replaced(race(sessions, ingest(sqe, table, IngestMode.REPLACE)), 100)
    assert rows(sqe, f"SELECT count(*), count(DISTINCT a) FROM {table}") == [(100, 1)]


def test_one_makes_a_table_that_must_not_exist(sqe: EmbeddedSqe, sessions: list[Session]) -> None:
    answers = race(sessions, statement(sqe, "CREATE TABLE one AS SELECT $n AS a FROM range(100)"))
    refused = [answer for answer in answers if answer != 100]
    assert len(refused) == _AT_ONCE - 1
    for error in refused:
        assert isinstance(error, UserError)
        assert (error.code, error.message) == (ErrorCode.DUPLICATE_TABLE, "Table iceberg.default.one already exists")
    assert rows(sqe, "SELECT count(*), count(DISTINCT a) FROM one") == [(100, 1)]


def test_one_fills_a_table_that_need_not_exist(sqe: EmbeddedSqe, sessions: list[Session]) -> None:
    answers = race(sessions, statement(sqe, "CREATE TABLE IF NOT EXISTS kept AS SELECT $n AS a FROM range(100)"))
    assert Counter(answers) == {100: 1, 0: _AT_ONCE - 1}
    assert rows(sqe, "SELECT count(*), count(DISTINCT a) FROM kept") == [(100, 1)]
    assert race(sessions, ingest(sqe, "appended", IngestMode.CREATE_APPEND)) == [100] * _AT_ONCE
    assert rows(sqe, "SELECT count(*), count(DISTINCT a) FROM appended") == [(100 * _AT_ONCE, _AT_ONCE)]


def test_a_plan_that_was_made_before_is_judged_anew(sqe: EmbeddedSqe, sessions: list[Session]) -> None:
    service = sqe.sqe.service
    text = "CREATE TABLE IF NOT EXISTS planned AS SELECT $n AS a FROM range(100)"
    plans = [service.plan(session, text.replace("$n", str(number))) for number, session in enumerate(sessions)]
    assert Counter(race(sessions, lambda session, number: plans[number].start())) == {100: 1, 0: _AT_ONCE - 1}
    assert rows(sqe, "SELECT count(*), count(DISTINCT a) FROM planned") == [(100, 1)]


def test_what_need_not_exist_is_made_once(sqe: EmbeddedSqe, sessions: list[Session]) -> None:
    sqe.execute("CREATE TABLE model (a integer)").close()
    for text in (
        "CREATE TABLE IF NOT EXISTS made (a integer)",
        "CREATE TABLE IF NOT EXISTS alike (LIKE model)",
        "CREATE VIEW IF NOT EXISTS seen AS SELECT $n AS a",
        "CREATE SCHEMA IF NOT EXISTS places",
    ):
        assert race(sessions, statement(sqe, text)) == [None] * _AT_ONCE


def test_the_last_one_replaces_a_view(sqe: EmbeddedSqe, sessions: list[Session]) -> None:
    check_replaced(race(sessions, statement(sqe, "CREATE OR REPLACE VIEW shown AS SELECT $n AS a")), None)
    assert rows(sqe, "SELECT count(*) FROM shown") == [(1,)]


def test_no_table_replaces_a_view(sqe: EmbeddedSqe) -> None:
    sqe.execute("CREATE VIEW in_the_way AS SELECT 1 AS a").close()
    ones = pa.table({"a": [1]})
    request = IngestRequest(table="in_the_way", mode=IngestMode.REPLACE)
    for run in (
        lambda: sqe.execute("CREATE OR REPLACE TABLE in_the_way AS SELECT 2 AS a"),
        lambda: sqe.sqe.service.ingest(sqe.session, request, ones.schema, iter(ones.to_batches())),
    ):
        with pytest.raises(UserError) as caught:
            run()
        assert caught.value.message == "iceberg.default.in_the_way is a view, not a table"
        assert caught.value.hint == "drop it first: DROP VIEW iceberg.default.in_the_way"
