"""Every statement of the embedded warehouse, through the whole pipeline, on real Iceberg tables."""

from __future__ import annotations

import pyarrow as pa
import pytest
from testbed.users import refusal, rows, run

from sqe_core.bootstrap import EmbeddedSqe
from sqe_core.spi.errors import ErrorCode, UserError
from sqe_core.sql.statement import StatementKind


@pytest.fixture(scope="module", autouse=True)
def _schema(sqe: EmbeddedSqe) -> None:
    run(
        sqe,
        "CREATE SCHEMA st",
        "USE st",
        "CREATE TABLE people (id bigint NOT NULL, name varchar COMMENT 'who', dept varchar, pay decimal(10,2))",
        "INSERT INTO people VALUES (1, 'ann', 'eng', 100.5), (2, 'bob', 'eng', 90), (3, 'cat', 'ops', NULL)",
    )


def test_a_new_warehouse_has_the_schema_default(sqe: EmbeddedSqe) -> None:
    assert ("default",) in rows(sqe, "SHOW SCHEMAS")


def test_select_in_many_shapes(sqe: EmbeddedSqe) -> None:
    assert rows(sqe, "SELECT 1 AS one, 'x' AS x") == [(1, "x")]
    assert rows(sqe, "SELECT name FROM people WHERE id = 2") == [("bob",)]
    assert rows(sqe, "SELECT p.name FROM people p JOIN people q ON p.id = q.id + 1 ORDER BY 1") == [("bob",), ("cat",)]
    assert rows(sqe, "SELECT people.id, st.people.id, iceberg.st.people.id FROM people ORDER BY 1 LIMIT 1") == [
        (1, 1, 1)
    ]
    assert rows(sqe, "WITH people AS (SELECT 7 AS id) SELECT id FROM people") == [(7,)]
    assert rows(sqe, "WITH a AS (SELECT id FROM people), b AS (SELECT max(id) AS m FROM a) SELECT m FROM b") == [(3,)]
    assert rows(sqe, "SELECT dept, count(*) FROM people GROUP BY dept ORDER BY dept") == [("eng", 2), ("ops", 1)]
    assert rows(sqe, "SELECT name FROM people WHERE id IN (SELECT max(id) FROM people)") == [("cat",)]
    assert rows(sqe, "SELECT name FROM people p WHERE EXISTS (SELECT 1 FROM people q WHERE q.id = p.id + 2)") == [
        ("ann",)
    ]
    assert rows(sqe, "SELECT id FROM people UNION ALL SELECT 9 ORDER BY 1") == [(1,), (2,), (3,), (9,)]
    assert rows(sqe, "SELECT name, rank() OVER (ORDER BY id DESC) FROM people ORDER BY 2 LIMIT 1") == [("cat", 1)]
    assert rows(sqe, "VALUES (1, 'a'), (2, 'b')") == [(1, "a"), (2, "b")]
    assert rows(sqe, "SELECT n FROM (VALUES 3, 1, 2) AS t(n) ORDER BY n") == [(1,), (2,), (3,)]
    assert rows(
        sqe, "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 4) SELECT sum(n) FROM t"
    ) == [(10,)]
    assert rows(sqe, "SELECT x.m FROM people p, LATERAL (SELECT p.id * 10 AS m) x ORDER BY 1") == [(10,), (20,), (30,)]
    assert rows(sqe, "SELECT count(*) FROM people") == [(3,)]


def test_an_empty_result_keeps_its_columns(sqe: EmbeddedSqe) -> None:
    table = sqe.execute("SELECT id, name FROM people WHERE false").read_all()
    assert (table.schema.names, table.num_rows) == (["id", "name"], 0)


def test_nested_and_odd_values_arrive_as_arrow(sqe: EmbeddedSqe) -> None:
    table = sqe.execute(
        "SELECT ARRAY[1, 2] AS a, MAP(ARRAY['k'], ARRAY[1]) AS m, DATE '2026-01-02' AS d, "
        "TIMESTAMP '2026-01-02 03:04:05' AS t, CAST(1.50 AS decimal(5,2)) AS n, CAST(NULL AS varchar) AS z"
    ).read_all()
    assert table.column("a").to_pylist() == [[1, 2]]
    assert table.column("m").to_pylist() == [[("k", 1)]]
    assert pa.types.is_timestamp(table.schema.field("t").type)
    assert table.schema.field("t").type.tz is None
    assert str(table.column("n")[0].as_py()) == "1.50"


def test_create_insert_update_delete_merge_truncate_count_rows(sqe: EmbeddedSqe) -> None:
    assert run(sqe, "CREATE TABLE dml (id bigint, v varchar)") is None
    assert run(sqe, "INSERT INTO dml VALUES (1, 'a'), (2, 'b'), (3, 'c')") == 3
    assert run(sqe, "INSERT INTO dml (v, id) SELECT 'd', 4") == 1
    assert run(sqe, "UPDATE dml SET v = 'z' WHERE id <= 2") == 2
    assert run(sqe, "DELETE FROM dml WHERE id = 3") == 1
    assert rows(sqe, "SELECT id, v FROM dml ORDER BY id") == [(1, "z"), (2, "z"), (4, "d")]
    merged = run(
        sqe,
        "MERGE INTO dml t USING (VALUES (1, 'm'), (9, 'n')) AS s(id, v) ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.v)",
    )
    assert merged == 2
    assert rows(sqe, "SELECT id, v FROM dml ORDER BY id") == [(1, "m"), (2, "z"), (4, "d"), (9, "n")]
    run(sqe, "TRUNCATE TABLE dml")
    assert rows(sqe, "SELECT count(*) FROM dml") == [(0,)]
    run(sqe, "DROP TABLE dml")
    assert refusal(sqe, "SELECT * FROM dml").code is ErrorCode.TABLE_NOT_FOUND
    run(sqe, "DROP TABLE IF EXISTS dml")


def test_dml_reads_other_tables_and_subqueries(sqe: EmbeddedSqe) -> None:
    run(sqe, "CREATE TABLE d2 AS SELECT id, name FROM people")
    assert run(sqe, "DELETE FROM d2 WHERE id IN (SELECT id FROM people WHERE dept = 'ops')") == 1
    assert run(sqe, "UPDATE d2 SET name = (SELECT max(name) FROM people) WHERE id = 1") == 1
    assert rows(sqe, "SELECT id, name FROM d2 ORDER BY id") == [(1, "cat"), (2, "bob")]
    run(sqe, "DROP TABLE d2")


def test_ctas_replace_and_no_data(sqe: EmbeddedSqe) -> None:
    assert run(sqe, "CREATE TABLE c1 AS SELECT * FROM people") == 3
    assert refusal(sqe, "CREATE TABLE c1 AS SELECT 1 AS a").code is ErrorCode.DUPLICATE_TABLE
    run(sqe, "CREATE TABLE IF NOT EXISTS c1 AS SELECT 1 AS a")
    run(sqe, "CREATE OR REPLACE TABLE c1 AS SELECT 1 AS a")
    assert rows(sqe, "SELECT * FROM c1") == [(1,)]
    run(sqe, "CREATE TABLE c2 AS SELECT * FROM people WITH NO DATA")
    assert rows(sqe, "SELECT count(*) FROM c2") == [(0,)]
    assert rows(sqe, 'SELECT count(*) FROM "c1$history"') == [(2,)]
    run(sqe, "DROP TABLE c1")
    run(sqe, "DROP TABLE c2")


def test_overwrite_replaces_the_partitions_that_occur(sqe: EmbeddedSqe) -> None:
    run(sqe, "CREATE TABLE parted (k varchar, v bigint) PARTITIONED BY (k)")
    run(sqe, "INSERT INTO parted VALUES ('a', 1), ('b', 2)")
    run(sqe, "INSERT OVERWRITE parted SELECT 'a', 10")
    assert rows(sqe, "SELECT k, v FROM parted ORDER BY k") == [("a", 10), ("b", 2)]
    run(sqe, "CREATE TABLE whole (v bigint)")
    run(sqe, "INSERT INTO whole VALUES 1, 2")
    run(sqe, "INSERT OVERWRITE whole SELECT 5")
    assert rows(sqe, "SELECT v FROM whole") == [(5,)]
    run(sqe, "DROP TABLE parted")
    run(sqe, "DROP TABLE whole")


def test_alter_table(sqe: EmbeddedSqe) -> None:
    run(sqe, "CREATE TABLE alt (id integer, ts timestamp)")
    run(sqe, "ALTER TABLE alt ADD COLUMN note varchar")
    run(sqe, "ALTER TABLE alt RENAME COLUMN note TO remark")
    run(sqe, "ALTER TABLE alt ALTER COLUMN id SET DATA TYPE bigint")
    run(sqe, "ALTER TABLE alt ADD PARTITION FIELD day(ts)")
    run(sqe, "COMMENT ON COLUMN alt.remark IS 'a remark'")
    run(sqe, "COMMENT ON TABLE alt IS 'altered'")
    assert rows(sqe, "DESCRIBE alt") == [
        ("id", "bigint", "YES"),
        ("ts", "timestamp(6)", "YES"),
        ("remark", "varchar", "YES"),
    ]
    run(sqe, "INSERT INTO alt VALUES (1, TIMESTAMP '2026-01-01 00:00:00', 'x')")
    run(sqe, "ALTER TABLE alt DROP COLUMN remark")
    assert rows(sqe, "SELECT * FROM alt")[0][0] == 1
    run(sqe, "ALTER TABLE alt RENAME TO alt2")
    assert refusal(sqe, "SELECT * FROM alt").code is ErrorCode.TABLE_NOT_FOUND
    run(sqe, "ALTER TABLE IF EXISTS alt DROP COLUMN x")
    (text,) = rows(sqe, "SHOW CREATE TABLE alt2")[0]
    assert "COMMENT 'altered'" in text
    assert "day(ts)" in text
    run(sqe, "DROP TABLE alt2")


def test_column_defaults(sqe: EmbeddedSqe) -> None:
    run(sqe, "CREATE TABLE dft (id bigint, n integer DEFAULT 7)")
    run(sqe, "INSERT INTO dft (id) VALUES (1)")
    run(sqe, "ALTER TABLE dft ADD COLUMN s varchar DEFAULT 'new'")
    assert rows(sqe, "SELECT id, n, s FROM dft") == [(1, 7, "new")]
    run(sqe, "DROP TABLE dft")


def test_create_table_like(sqe: EmbeddedSqe) -> None:
    run(sqe, "CREATE TABLE twin (LIKE people)")
    assert [row[0] for row in rows(sqe, "DESCRIBE twin")] == ["id", "name", "dept", "pay"]
    run(sqe, "DROP TABLE twin")


def test_time_travel(sqe: EmbeddedSqe) -> None:
    run(sqe, "CREATE TABLE tt (id bigint)")
    run(sqe, "INSERT INTO tt VALUES 1")
    (first,) = rows(sqe, 'SELECT snapshot_id FROM "tt$snapshots"')[0]
    run(sqe, "ALTER TABLE tt ADD COLUMN extra varchar")
    run(sqe, "INSERT INTO tt VALUES (2, 'x')")
    assert rows(sqe, f"SELECT * FROM tt FOR VERSION AS OF {first}") == [(1,)]
    assert rows(sqe, f"SELECT t.id FROM tt FOR VERSION AS OF {first} AS t") == [(1,)]
    run(sqe, f"ALTER TABLE tt CREATE TAG one AS OF VERSION {first}")
    assert rows(sqe, "SELECT id FROM tt FOR VERSION AS OF 'one'") == [(1,)]
    (made,) = rows(sqe, f'SELECT cast(committed_at AS varchar) FROM "tt$snapshots" WHERE snapshot_id = {first}')[0]
    assert rows(sqe, f"SELECT id FROM tt FOR TIMESTAMP AS OF TIMESTAMP '{made[:26]}'") == [(1,)]
    assert refusal(sqe, "SELECT * FROM tt FOR VERSION AS OF 1").code is not ErrorCode.GENERIC_INTERNAL_ERROR
    assert refusal(sqe, "SELECT * FROM tt FOR VERSION AS OF (SELECT 1)").kind.value == "USER_ERROR"
    run(sqe, "DROP TABLE tt")


def test_metadata_tables(sqe: EmbeddedSqe) -> None:
    assert rows(sqe, 'SELECT operation FROM "people$snapshots"') == [("append",)]
    assert rows(sqe, 'SELECT sum(record_count) FROM st."people$files"') == [(3,)]
    assert rows(sqe, 'SELECT name, type FROM iceberg.st."people$refs"') == [("main", "BRANCH")]
    for kind in ("manifests", "history", "partitions"):
        assert len(rows(sqe, f'SELECT * FROM "people${kind}"')) >= 1
    assert refusal(sqe, 'SELECT * FROM "people$all_files"').code is ErrorCode.TABLE_NOT_FOUND


def test_views_are_expanded_by_us(sqe: EmbeddedSqe) -> None:
    run(sqe, "CREATE VIEW eng AS SELECT id, name FROM people WHERE dept = 'eng'")
    run(sqe, "CREATE VIEW eng2 (n) COMMENT 'names' AS SELECT upper(name) FROM eng")
    assert rows(sqe, "SELECT n FROM eng2 ORDER BY n") == [("ANN",), ("BOB",)]
    assert rows(sqe, "SELECT e.id FROM eng e JOIN people ON people.id = e.id ORDER BY 1") == [(1,), (2,)]
    run(sqe, "CREATE SCHEMA elsewhere")
    run(sqe, "USE elsewhere")
    try:
        assert rows(sqe, "SELECT count(*) FROM st.eng2") == [(2,)]
    finally:
        run(sqe, "USE st")
        run(sqe, "DROP SCHEMA elsewhere")
    assert rows(sqe, "SHOW VIEWS") == [("eng",), ("eng2",)]
    assert rows(sqe, "DESCRIBE eng2") == [("n", "varchar", "YES")]
    assert "SELECT upper(name) FROM eng" in rows(sqe, "SHOW CREATE VIEW eng2")[0][0]
    assert refusal(sqe, "CREATE VIEW eng AS SELECT 1 AS a").code is ErrorCode.DUPLICATE_TABLE
    assert refusal(sqe, "CREATE OR REPLACE VIEW eng AS SELECT * FROM eng").kind.value == "USER_ERROR"
    assert refusal(sqe, "INSERT INTO eng VALUES (1, 'x')").kind.value == "USER_ERROR"
    run(sqe, "CREATE OR REPLACE VIEW eng AS SELECT id, name FROM people WHERE dept = 'ops'")
    assert rows(sqe, "SELECT n FROM eng2") == [("CAT",)]
    run(sqe, "DROP VIEW eng2")
    run(sqe, "DROP VIEW eng")
    assert refusal(sqe, "DROP VIEW eng").code is ErrorCode.VIEW_NOT_FOUND


@pytest.mark.rule("VIEW-5")
def test_a_stored_star_keeps_the_columns_of_its_creation(sqe: EmbeddedSqe) -> None:
    run(sqe, "CREATE TABLE wide (a bigint)")
    run(sqe, "CREATE VIEW star AS SELECT * FROM wide")
    run(sqe, "ALTER TABLE wide ADD COLUMN b bigint")
    assert sqe.execute("SELECT * FROM star").read_all().schema.names == ["a"]
    run(sqe, "DROP VIEW star")
    run(sqe, "DROP TABLE wide")


@pytest.mark.rule("VIEW-1")
def test_views_that_read_each_other_in_a_circle_end_with_an_error(sqe: EmbeddedSqe) -> None:
    run(sqe, "CREATE VIEW ring_a AS SELECT 1 AS x")
    run(sqe, "CREATE VIEW ring_b AS SELECT x FROM ring_a")
    run(sqe, "CREATE OR REPLACE VIEW ring_a AS SELECT 2 AS x")
    assert "read itself" in refusal(sqe, "CREATE OR REPLACE VIEW ring_a AS SELECT x FROM ring_b").message
    run(sqe, "DROP VIEW ring_b")
    run(sqe, "DROP VIEW ring_a")


@pytest.mark.rule("STMT-5")
def test_temporary_views_belong_to_the_session(sqe: EmbeddedSqe) -> None:
    run(sqe, "CREATE TEMPORARY VIEW mine AS SELECT id FROM people WHERE id > 1")
    assert rows(sqe, "SELECT id FROM mine ORDER BY id") == [(2,), (3,)]
    run(sqe, "INSERT INTO people VALUES (4, 'dan', 'ops', 1)")
    assert len(rows(sqe, "SELECT id FROM mine")) == 3
    run(sqe, "DELETE FROM people WHERE id = 4")
    assert ("mine",) in rows(sqe, "SHOW TABLES")
    assert "temporary view" in refusal(sqe, "CREATE VIEW kept AS SELECT * FROM mine").message
    run(sqe, "DROP VIEW mine")
    assert refusal(sqe, "SELECT * FROM mine").code is ErrorCode.TABLE_NOT_FOUND


def test_schemas(sqe: EmbeddedSqe) -> None:
    run(sqe, "CREATE SCHEMA IF NOT EXISTS s1")
    run(sqe, "CREATE SCHEMA IF NOT EXISTS s1")
    assert refusal(sqe, "CREATE SCHEMA s1").message.endswith("already exists")
    run(sqe, "CREATE TABLE s1.t AS SELECT 1 AS a")
    run(sqe, "CREATE VIEW s1.v AS SELECT a FROM s1.t")
    assert "not empty" in refusal(sqe, "DROP SCHEMA s1").message
    run(sqe, "DROP SCHEMA s1 CASCADE")
    assert ("s1",) not in rows(sqe, "SHOW SCHEMAS")
    assert refusal(sqe, "DROP SCHEMA s1").code is ErrorCode.SCHEMA_NOT_FOUND
    run(sqe, "DROP SCHEMA IF EXISTS s1")
    run(sqe, 'CREATE SCHEMA "a.b"') if ("a",) in rows(sqe, "SHOW SCHEMAS") else None


def test_show_and_describe(sqe: EmbeddedSqe) -> None:
    assert rows(sqe, "SHOW CATALOGS") == [("iceberg",)]
    assert ("people",) in rows(sqe, "SHOW TABLES")
    assert rows(sqe, "SHOW TABLES FROM st LIKE 'peo%'") == [("people",)]
    assert rows(sqe, "SHOW SCHEMAS LIKE 's_'") == [("st",)]
    assert rows(sqe, "DESCRIBE people") == [
        ("id", "bigint", "NO"),
        ("name", "varchar", "YES"),
        ("dept", "varchar", "YES"),
        ("pay", "decimal(10,2)", "YES"),
    ]
    assert rows(sqe, "SHOW COLUMNS FROM st.people LIKE 'p%'") == [("pay", "decimal(10,2)", "YES")]
    assert any(row[0] == "concat" for row in rows(sqe, "SHOW FUNCTIONS LIKE 'conc%'"))
    assert [row[0] for row in rows(sqe, "DESCRIBE SELECT id, name FROM people")] == ["id", "name"]


def test_explain_shows_visible_names_only(sqe: EmbeddedSqe) -> None:
    plan = rows(sqe, "EXPLAIN SELECT name FROM people WHERE id = 1")
    assert [kind for kind, _ in plan] == ["logical_plan", "physical_plan"]
    assert not any("_sqe_" in text for _, text in plan)
    assert refusal(sqe, "EXPLAIN SELECT nope FROM people").code is ErrorCode.COLUMN_NOT_FOUND
    assert rows(sqe, "EXPLAIN DELETE FROM people")
    assert rows(sqe, "SELECT count(*) FROM people") == [(3,)]


def test_session_statements(sqe: EmbeddedSqe) -> None:
    run(sqe, "SET SESSION query_max_run_time = '10m'")
    assert ("query_max_run_time", "10m") in [row[:2] for row in rows(sqe, "SHOW SESSION")]
    run(sqe, "RESET SESSION query_max_run_time")
    assert refusal(sqe, "SET SESSION nope = 1").code is ErrorCode.INVALID_SESSION_PROPERTY
    for text in ("BEGIN", "COMMIT", "ROLLBACK", "START TRANSACTION"):
        run(sqe, text)
    run(sqe, "USE iceberg.st")
    assert sqe.current == ("iceberg", "st")
    assert refusal(sqe, "USE nope").code is ErrorCode.SCHEMA_NOT_FOUND
    assert rows(sqe, "SELECT current_schema, current_catalog") == [("st", "iceberg")]


def test_the_dialect_is_the_sessions_choice(sqe: EmbeddedSqe) -> None:
    assert rows(sqe, "SELECT 7 / 2") == [(3,)]
    run(sqe, "SET SESSION dialect = 'spark'")
    try:
        assert rows(sqe, "SELECT `name` FROM `st`.`people` WHERE id = 1") == [("ann",)]
        assert rows(sqe, "SELECT 7 / 2") == [(3.5,)]
    finally:
        run(sqe, "RESET SESSION dialect")


def test_information_schema(sqe: EmbeddedSqe) -> None:
    assert rows(sqe, "SELECT table_name FROM information_schema.tables WHERE table_schema = 'st'") == [("people",)]
    assert rows(
        sqe,
        "SELECT column_name, data_type, is_nullable FROM iceberg.information_schema.columns "
        "WHERE table_name = 'people' AND table_schema = 'st' ORDER BY ordinal_position",
    ) == rows(sqe, "DESCRIBE people")
    assert ("st",) in rows(sqe, "SELECT schema_name FROM information_schema.schemata")
    assert refusal(sqe, "SELECT * FROM information_schema.nope").code is ErrorCode.TABLE_NOT_FOUND
    assert refusal(sqe, "INSERT INTO information_schema.tables VALUES ('a','b','c','d')").kind.value == "USER_ERROR"


@pytest.mark.rule("STMT-4")
def test_parameters_bind_as_values(sqe: EmbeddedSqe) -> None:
    assert rows(sqe, "SELECT name FROM people WHERE id = ? OR name = ? ORDER BY id", [1, "bob"]) == [("ann",), ("bob",)]
    assert rows(sqe, "SELECT :a || :b AS c", {"b": "y", "a": "x' OR 1=1 --"}) == [("x' OR 1=1 --y",)]
    assert rows(sqe, "SELECT name FROM people ORDER BY id LIMIT ?", [1]) == [("ann",)]
    assert isinstance(refusal(sqe, "SELECT ?", []), UserError)
    assert isinstance(refusal(sqe, "SELECT * FROM people WHERE id = ?", [1, 2]), UserError)


@pytest.mark.rule("ERR-5", "ERR-3")
def test_errors_point_into_the_users_text_and_suggest(sqe: EmbeddedSqe) -> None:
    missing = refusal(sqe, "SELECT id,\n  nmae\nFROM people")
    assert missing.code is ErrorCode.COLUMN_NOT_FOUND
    assert (missing.position.line, missing.position.column) == (2, 3)
    assert "name" in (missing.hint or "")
    table = refusal(sqe, "SELECT * FROM poeple")
    assert table.code is ErrorCode.TABLE_NOT_FOUND
    assert "people" in (table.hint or "")
    assert (table.position.line, table.position.column) == (1, 15)
    assert refusal(sqe, "SELECT nope(1)").code is ErrorCode.FUNCTION_NOT_FOUND
    assert refusal(sqe, "SELEC 1").code in (ErrorCode.SYNTAX_ERROR, ErrorCode.NOT_SUPPORTED)
    assert refusal(sqe, "SELECT 1 / 0").code is ErrorCode.DIVISION_BY_ZERO
    assert refusal(sqe, "SELECT CAST('x' AS integer)").code is ErrorCode.INVALID_CAST


def test_results_say_what_kind_of_statement_they_answer(sqe: EmbeddedSqe) -> None:
    with sqe.execute("SELECT 1") as result:
        assert result.kind is StatementKind.QUERY
    with sqe.execute("SHOW TABLES") as result:
        assert result.kind is StatementKind.SHOW
