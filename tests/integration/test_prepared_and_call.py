"""PREPARE, EXECUTE and CALL over Spark: the types of parameters, and a table that is what it was."""

from __future__ import annotations

import datetime

import pytest
from testbed.users import rows, run

from sqe_core.bootstrap import EmbeddedSqe
from sqe_core.spi.errors import ErrorCode, UserError


@pytest.fixture(scope="module", autouse=True)
def _tables(sqe: EmbeddedSqe) -> None:
    run(sqe, "CREATE SCHEMA prepared", "USE prepared", "CREATE TABLE t (id integer, day date, n decimal(10,2))")
    run(sqe, "INSERT INTO t VALUES (1, DATE '2026-01-02', 1.50)", "INSERT INTO t VALUES (2, NULL, NULL)")


def test_values_and_types(sqe: EmbeddedSqe) -> None:
    run(sqe, "PREPARE p FROM SELECT id, n FROM t WHERE id = ? OR day = ? LIMIT ?")
    assert rows(sqe, "EXECUTE p USING 7, DATE '2026-01-02', 5")[0][0] == 1
    assert rows(sqe, "DESCRIBE INPUT p") == [(0, "integer"), (1, "date"), (2, "bigint")]
    assert [row[:1] + row[4:5] for row in rows(sqe, "DESCRIBE OUTPUT p")] == [("id", "integer"), ("n", "decimal(10,2)")]
    run(
        sqe,
        "PREPARE i FROM INSERT INTO t VALUES (?, ?, ?)",
        "EXECUTE i USING 3, DATE '2026-02-03', 2.25",
        "DEALLOCATE PREPARE i",
    )
    assert rows(sqe, "SELECT day FROM t WHERE id = 3") == [(datetime.date(2026, 2, 3),)]
    assert rows(sqe, "EXECUTE IMMEDIATE 'SELECT count(*) FROM t WHERE id > ?' USING 1") == [(2,)]
    run(sqe, "DELETE FROM t WHERE id = 3")


@pytest.mark.rule("STMT-6")
def test_a_table_is_rolled_back_to_an_ancestor(sqe: EmbeddedSqe) -> None:
    run(sqe, "CREATE TABLE r AS SELECT 1 AS id")
    (first,) = rows(sqe, 'SELECT snapshot_id FROM "r$snapshots"')[0]
    run(sqe, "INSERT INTO r VALUES (2)")
    second = next(each for (each,) in rows(sqe, 'SELECT snapshot_id FROM "r$snapshots"') if each != first)
    (told,) = rows(sqe, f"CALL system.rollback_to_snapshot('prepared.r', {first})")
    assert (told[0], told[1].rpartition(".")[2], told[-1]) == ("rollback_to_snapshot", "r", "ok")
    assert rows(sqe, "SELECT * FROM r") == [(1,)]
    with pytest.raises(UserError, match="is no ancestor") as caught:
        run(sqe, f"CALL system.rollback_to_snapshot(table => 'prepared.r', snapshot_id => {second})")
    assert caught.value.code is ErrorCode.INVALID_ARGUMENTS
    run(sqe, "INSERT INTO r VALUES (3)")
    assert sorted(rows(sqe, "SELECT * FROM r")) == [(1,), (3,)]
