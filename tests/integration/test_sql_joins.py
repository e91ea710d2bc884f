"""Joins with a side that is bigger than Spark guesses: long texts, which it takes for twenty bytes each."""

from __future__ import annotations

import pytest
from testbed.users import rows, run

from sqe_core.bootstrap import EmbeddedSqe
from sqe_core.spi.errors import ResourcesError

ROWS = 30_000
LENGTH = 4_000
NUMBERS = " + ".join(f"n{n}" for n in range(8))


@pytest.fixture(scope="module", autouse=True)
def _tables(sqe: EmbeddedSqe) -> None:
    run(sqe, "CREATE SCHEMA joins", "USE joins")
    numbers = ", ".join(f"n + {n} AS n{n}" for n in range(8))  # so that `wide` is the side that is guessed to be small
    run(sqe, f"CREATE TABLE many AS SELECT n AS id, {numbers} FROM UNNEST(sequence(1, {ROWS})) AS t(n)")
    run(sqe, f"CREATE TABLE wide AS SELECT id, rpad('x', {LENGTH}, 'x') AS words FROM many")


def test_a_query(sqe: EmbeddedSqe) -> None:
    joined = f"SELECT {NUMBERS} AS n, words FROM many JOIN wide USING (id)"
    sums = f"SELECT count(*), count(DISTINCT n), sum(length(upper(words) || 'y')) FROM ({joined})"
    assert rows(sqe, sums) == [(ROWS, ROWS, ROWS * (LENGTH + 1))]
    assert rows(sqe, f"SELECT n, words FROM ({joined}) ORDER BY n LIMIT 1") == [(36, "x" * LENGTH)]
    assert len(rows(sqe, f"{joined} LIMIT 5")) == 5
    assert rows(sqe, f"SELECT (SELECT sum(length(words)) FROM ({joined} WHERE n0 > n1 - 2)), 1") == [(ROWS * LENGTH, 1)]


def test_new_tables_and_rows(sqe: EmbeddedSqe) -> None:
    joined = f"SELECT id, {NUMBERS} AS n, words FROM many JOIN wide USING (id)"
    assert run(sqe, f"CREATE TABLE made AS {joined}") == ROWS
    assert run(sqe, f"INSERT INTO made {joined}") == ROWS
    assert rows(sqe, "SELECT count(*), count(DISTINCT id), sum(length(words)) FROM made") == [
        (2 * ROWS, ROWS, 2 * ROWS * LENGTH)
    ]
    assert rows(sqe, 'SELECT count(*) FROM "made$snapshots"') == [(2,)]


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_changed_rows(sqe: EmbeddedSqe, mode: str) -> None:
    name = "changed_" + mode.replace("-", "_")
    changes = ", ".join(f"'write.{kind}.mode' = '{mode}'" for kind in ("merge", "update", "delete"))
    run(
        sqe,
        f"CREATE TABLE {name} TBLPROPERTIES ('format-version' = '2', {changes}) AS SELECT id, '' AS words FROM many",
    )
    run(sqe, f"DELETE FROM {name} WHERE id > {ROWS // 2}")
    merged = run(
        sqe,
        f"MERGE INTO {name} AS t USING wide AS w ON t.id = w.id"
        " WHEN MATCHED AND w.id % 2 = 0 THEN UPDATE SET words = w.words"
        " WHEN NOT MATCHED THEN INSERT (id, words) VALUES (w.id, 'new')",
    )
    assert merged == ROWS // 2 + ROWS // 4
    assert rows(sqe, f"SELECT words = 'new', length(words), count(*) FROM {name} GROUP BY 1, 2 ORDER BY 1, 2") == [
        (False, 0, ROWS // 4),
        (False, LENGTH, ROWS // 4),
        (True, 3, ROWS // 2),
    ]
    assert run(sqe, f"DELETE FROM {name} WHERE (id, words) IN (SELECT id, words FROM wide)") == ROWS // 4
    assert rows(sqe, f"SELECT count(*) FROM {name}") == [(ROWS - ROWS // 4,)]


def test_a_join_that_needs_the_whole_side_says_so(sqe: EmbeddedSqe) -> None:
    with pytest.raises(ResourcesError, match="One side of a join is too big to be kept in memory"):
        rows(sqe, "SELECT count(*) FROM many LEFT JOIN wide ON many.id < wide.id AND words <> CAST(n0 AS varchar)")
