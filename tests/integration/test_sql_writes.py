"""What INSERT, UPDATE and MERGE put into columns of other types, and statements in shapes that were once refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from testbed.users import rows, run

from sqe_core.bootstrap import EmbeddedSqe, open_embedded
from sqe_core.engine.spark.engine import SparkEngine
from sqe_core.spi.errors import ErrorCode, UserError


@pytest.fixture(scope="module", autouse=True)
def _tables(sqe: EmbeddedSqe) -> None:
    run(
        sqe,
        "CREATE SCHEMA writes",
        "USE writes",
        "CREATE TABLE t (i integer, b bigint, r real, f double, n decimal(10,2), d date, ts timestamp, s varchar,"
        " a array(integer), w row(x integer, y varchar))",
        "INSERT INTO t (i, b, ts) VALUES (1, 1, TIMESTAMP '2020-01-01 10:00:00')",
    )


LOSSY = [
    ("INSERT INTO t (i) VALUES (1.6)", "Column i is integer and cannot take decimal(2,1)"),
    ("INSERT INTO t (i) VALUES (1.0)", "Column i is integer and cannot take decimal(2,1)"),
    ("INSERT INTO t (b) VALUES (2.6e0)", "Column b is bigint and cannot take double"),
    ("INSERT INTO t (b) VALUES (REAL '2.6')", "Column b is bigint and cannot take real"),
    ("INSERT INTO t (i) SELECT n FROM t", "Column i is integer and cannot take decimal(10,2)"),
    ("INSERT INTO t (n) VALUES (1e0)", "Column n is decimal(10,2) and cannot take double"),
    ("INSERT INTO t (n) VALUES (1.999)", "Column n is decimal(10,2) and cannot take decimal(4,3)"),
    ("INSERT INTO t (r) SELECT f FROM t", "Column r is real and cannot take double"),
    ("INSERT INTO t (r) VALUES (1e0), (1e39)", "Column r is real and cannot take double"),
    ("INSERT INTO t (r) SELECT 1e0 UNION ALL SELECT f FROM t", "Column r is real and cannot take double"),
    ("UPDATE t SET r = 1e0 + f", "Column r is real and cannot take double"),
    ("INSERT INTO t (d) SELECT ts FROM t", "Column d is date and cannot take timestamp(6)"),
    ("INSERT INTO t (s) VALUES (X'00')", "Column s is varchar and cannot take varbinary"),
    ("INSERT INTO t (a) VALUES (ARRAY[1.5])", "Column a.element is integer and cannot take decimal(2,1)"),
    ("INSERT INTO t (w) VALUES (ROW(1.5, 'x'))", "Column w.x is integer and cannot take decimal(2,1)"),
    ("INSERT OVERWRITE t (i) VALUES (1.6)", "Column i is integer and cannot take decimal(2,1)"),
    ("UPDATE t SET i = 1.6", "Column i is integer and cannot take decimal(2,1)"),
    ("UPDATE t SET i = i * 1.5", "Column i is integer and cannot take decimal(12,1)"),
    ("UPDATE t SET d = ts WHERE i = 1", "Column d is date and cannot take timestamp(6)"),
    ("UPDATE t SET i = s.x FROM (VALUES 7.7) AS s(x)", "Column i is integer and cannot take decimal(2,1)"),
    (
        "MERGE INTO t USING (VALUES 1) AS s(x) ON t.i = s.x WHEN MATCHED THEN UPDATE SET i = 7.7",
        "Column i is integer and cannot take decimal(2,1)",
    ),
    (
        "MERGE INTO t USING (VALUES 1) AS s(x) ON t.i = s.x WHEN NOT MATCHED THEN INSERT (d) VALUES (t.ts)",
        None,
    ),
    (
        "MERGE INTO t USING (VALUES TIMESTAMP '2020-01-01 00:00:00') AS s(x) ON t.ts = s.x"
        " WHEN NOT MATCHED THEN INSERT (d) VALUES (s.x)",
        "Column d is date and cannot take timestamp(6)",
    ),
]


@pytest.mark.parametrize(("sql", "message"), LOSSY, ids=[one[0] for one in LOSSY])
def test_a_write_never_cuts_a_value(sqe: EmbeddedSqe, sql: str, message: str | None) -> None:
    before = rows(sqe, "SELECT count(*), max(i) FROM t")
    with pytest.raises(UserError) as caught:
        run(sqe, sql)
    if message is not None:
        assert caught.value.message == message
        assert caught.value.code is ErrorCode.TYPE_MISMATCH
        assert caught.value.hint == "write a CAST"
        assert caught.value.position is not None
    assert rows(sqe, "SELECT count(*), max(i) FROM t") == before


def test_what_fits_is_written(sqe: EmbeddedSqe) -> None:
    run(sqe, "CREATE TABLE fits (i integer, b bigint, r real, f double, n decimal(10,2), ts timestamp, s varchar)")
    run(sqe, "INSERT INTO fits VALUES (1, 2, 1.5, 2.5, 3.5, DATE '2020-01-01', 'x')")
    run(sqe, "INSERT INTO fits (i, b, f, n) SELECT b, i, n, i FROM fits")
    run(sqe, "INSERT INTO fits (i) VALUES (CAST(1.6 AS integer)), (NULL)")
    run(sqe, "INSERT INTO fits (i, b) VALUES (DECIMAL '4', DECIMAL '12345678901')")
    assert rows(sqe, "SELECT i FROM fits ORDER BY i") == [(1,), (2,), (2,), (4,), (None,)]
    too_big = ("VALUES (3000000000)", "VALUES (DECIMAL '3000000000')")
    for sql in (*(f"INSERT INTO fits (i) {values}" for values in too_big), "UPDATE fits SET i = b + 3000000000"):
        with pytest.raises(UserError, match="too big"):
            run(sqe, sql)


def test_a_double_that_somebody_wrote_fits_a_real(sqe: EmbeddedSqe) -> None:
    run(sqe, "CREATE TABLE reals (k integer, r real)")
    run(sqe, "INSERT INTO reals VALUES (1, 1.5e0), (2, -2.5e0), (3, NULL)")
    run(sqe, "INSERT INTO reals SELECT 4, 0.25e0")
    run(sqe, "UPDATE reals SET r = 8e0 WHERE k = 3")
    assert rows(sqe, "SELECT r FROM reals ORDER BY k") == [(1.5,), (-2.5,), (8.0,), (0.25,)]


def test_the_dialect_of_spark_writes_as_spark_does(sqe: EmbeddedSqe) -> None:
    run(sqe, "CREATE TABLE cut (i integer)")
    run(sqe, "SET SESSION dialect = 'spark'")
    try:
        run(sqe, "INSERT INTO cut VALUES (1.6)")
        assert rows(sqe, "SELECT i, 1 / 2, double('NaN') = double('NaN') FROM cut") == [(1, 0.5, True)]
    finally:
        run(sqe, "SET SESSION dialect = 'sqe'")


def test_constant_subqueries_in_changes(sqe: EmbeddedSqe) -> None:
    run(sqe, "CREATE TABLE ks (k integer)")
    run(sqe, "INSERT INTO ks VALUES (1), (2)")
    assert run(sqe, "DELETE FROM ks WHERE k IN (SELECT 99)") == 0
    assert run(sqe, "UPDATE ks SET k = k + 1 WHERE k = (SELECT 2)") == 1
    assert run(sqe, "DELETE FROM ks WHERE k IN (VALUES 1, 99)") == 1
    assert rows(sqe, "SELECT k FROM ks") == [(3,)]


def test_with_before_changes(sqe: EmbeddedSqe) -> None:
    run(sqe, "CREATE TABLE ws (k integer, v integer)")
    assert run(sqe, "WITH x(k) AS (VALUES 1, 2, 3) INSERT INTO ws SELECT k, 0 FROM x") == 3
    assert run(sqe, "WITH x(k) AS (VALUES 1) DELETE FROM ws WHERE k IN (SELECT k FROM x)") == 1
    assert run(sqe, "WITH x(k) AS (VALUES 2) UPDATE ws SET v = 5 WHERE k IN (SELECT k FROM x)") == 1
    assert run(sqe, "WITH x(k) AS (VALUES 3) UPDATE ws SET v = x.k FROM x WHERE ws.k = x.k") == 1
    merge = "MERGE INTO ws USING x ON ws.k = x.k WHEN NOT MATCHED THEN INSERT (k) VALUES (x.k)"
    assert run(sqe, f"WITH x(k) AS (VALUES 4) {merge}") == 1
    assert rows(sqe, "SELECT k, v FROM ws ORDER BY k") == [(2, 5), (3, 3), (4, None)]


def test_errors_about_groups_and_json_are_in_our_words(sqe: EmbeddedSqe) -> None:
    with pytest.raises(UserError) as caught:
        rows(sqe, "SELECT i, t.b FROM t GROUP BY i")
    assert caught.value.message == "Column b is neither aggregated nor in GROUP BY"
    assert str(caught.value.position) == "line 1:13"
    with pytest.raises(UserError, match="Values of type json cannot be grouped"):
        rows(sqe, "SELECT count(*) FROM (SELECT json_parse(s) AS j FROM t) GROUP BY j")


def test_a_list_of_many_rows(sqe: EmbeddedSqe) -> None:
    listed = ", ".join(f"({n}, {n + 1})" for n in range(3000))
    assert rows(sqe, f"SELECT (7, 8) IN ({listed}), (7, 9) IN ({listed}), (7, NULL) NOT IN ({listed})") == [
        (True, False, None)
    ]


def test_lists_of_rows_inside_of_lists_stay_small(sqe: EmbeddedSqe) -> None:
    listed = ", ".join(f"({n}, {n})" for n in range(40))
    value = "i"
    for _ in range(6):
        value = f"IF(({value}, {value}) IN ({listed}), 1, 2)"
    assert rows(sqe, f"SELECT {value} FROM t WHERE i = 1") == [(1,)]


def test_statistics_of_a_table(sqe: EmbeddedSqe) -> None:
    ((count,),) = rows(sqe, "SELECT count(*) FROM t")
    assert rows(sqe, "SHOW STATS FOR t")[-1][4] == count


def test_a_folder_that_was_mounted_beside_others_opens_alone(engine: SparkEngine, tmp_path: Path) -> None:
    first = open_embedded(tmp_path / "first", catalogs={"other": tmp_path / "x"}, engine=engine)
    run(first, "CREATE SCHEMA other.s")
    run(first, "CREATE TABLE other.s.t AS SELECT 7 AS a")
    first.close()
    assert sorted(one.name for one in (tmp_path / "x").glob("*.db")) == ["sqe.db"]
    alone = open_embedded(tmp_path / "x", engine=engine)
    assert rows(alone, "SELECT a FROM iceberg.s.t") == [(7,)]
    alone.close()


def test_the_text_of_a_table_makes_it_again(sqe: EmbeddedSqe) -> None:
    """Its rows have fields that are arrays, maps and rows."""
    fields = "a array(bigint), r row(array array(integer), m map(varchar, array(date))), l array(row(x array(varchar)))"
    run(sqe, f"CREATE TABLE nested (v row({fields}))")
    ((text,),) = rows(sqe, "SHOW CREATE TABLE nested")
    run(sqe, "DROP TABLE nested")
    run(sqe, text)
    assert rows(sqe, "SHOW CREATE TABLE nested") == [(text,)]
    assert rows(sqe, "SELECT CAST(ROW(ARRAY[1]) AS row(a array(bigint))).a") == [([1],)]
