"""Trino's clients read a name with each error: it tells no more than the sentence does.

The hostile analyst asks the same question about what is denied, hidden and missing, and compares names; brings a
policy's filter to overflow.
"""

from __future__ import annotations

import pytest
from governed import Govern, allow
from testbed.trino_governed import TrinoGoverned

from sqe_core.bootstrap import EmbeddedSqe
from sqe_core.spi.errors import SqeError
from sqe_core.spi.policy import Decision


@pytest.fixture(scope="module")
def analyst(sqe: EmbeddedSqe, govern: Govern) -> TrinoGoverned:
    for sql in (
        "CREATE TABLE denied_names (a integer)",
        "CREATE TABLE shown_names (a integer, secret integer)",
        "INSERT INTO shown_names VALUES (1, 2000000000), (2, 1)",
        "CREATE TABLE overflowing (a integer, secret integer)",
        "INSERT INTO overflowing VALUES (1, 2000000000), (2, 1)",
        "CREATE TABLE nonsense_rows (a integer, z varchar, n bigint)",
        "INSERT INTO nonsense_rows VALUES (1, 'UTC', 1), (2, 'nonsense', -9223372036854775807), (3, NULL, 0)",
        "CREATE SCHEMA denied_area",
        "CREATE TABLE denied_area.t (a integer)",
    ):
        sqe.execute(sql).close()
    denied = Decision.deny("a secret")
    hidden = allow(hidden=frozenset({"secret"}))
    # A filter that overflows in one row.
    overflows = allow("secret * 2 > 5", hidden=frozenset({"secret"}))
    # What the hidden rows hold makes most functions fail.
    sensible = allow("a = 1")
    found = govern(
        {
            "nonsense_rows": sensible,
            "denied_names": denied,
            "denied_area": denied,
            "t": denied,
            "shown_names": hidden,
            "overflowing": overflows,
        }
    )
    assert isinstance(found, TrinoGoverned)
    return found


def name_of(analyst: TrinoGoverned, sql: str) -> tuple[str, str | None]:
    analyst.names.clear()
    error = analyst.refusal(sql, dialect="trino")
    (name,) = analyst.names
    return name, error.condition


@pytest.mark.rule("ERR-5", "ERR-7")
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM {}",
        "SELECT count(*) + 2147483647 + 1 FROM {}",
        "SELECT sum(count(*)) FROM {}",
        "SELECT a, b FROM {} GROUP BY a",
        "INSERT INTO {} VALUES (1, 2, 3)",
        "INSERT INTO {} SELECT 1 / 0",
        "UPDATE {} SET a = CAST('x' AS integer)",
        "DELETE FROM {} WHERE a = 'x'",
        "MERGE INTO {} m USING (VALUES 1, 1) s(a) ON m.a = s.a WHEN MATCHED THEN UPDATE SET a = 3",
        "ALTER TABLE {} ADD COLUMN a integer",
        "ALTER TABLE {} SET PROPERTIES nosuch = 1",
        "ALTER TABLE {} EXECUTE optimize",
        "DROP TABLE {}",
        "SHOW CREATE TABLE {}",
        "SHOW STATS FOR {}",
        "DESCRIBE {}",
        "ANALYZE {}",
        "TRUNCATE TABLE {}",
        "COMMENT ON TABLE {} IS 'x'",
        "CREATE VIEW v_names AS SELECT * FROM {}",
    ],
)
def test_what_is_denied_has_the_name_of_what_is_missing(analyst: TrinoGoverned, sql: str) -> None:
    names = {
        table: name_of(analyst, sql.format(table))
        for table in ("denied_names", "missing_names", "denied_area.t", "missing_area.t", "missing_catalog.s.t")
    }
    assert set(names.values()) == {("TABLE_NOT_FOUND", None)} or len(set(names.values())) == 1, names


@pytest.mark.rule("ERR-5")
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT {} FROM shown_names",
        "SELECT a FROM shown_names WHERE {} * 2 > 5",
        "SELECT a, {} FROM shown_names GROUP BY a",
        "SELECT sum(sum({})) FROM shown_names",
        "SELECT CAST({} AS tinyint) FROM shown_names",
        "SELECT DISTINCT a FROM shown_names ORDER BY {}",
    ],
)
def test_what_is_hidden_has_the_name_of_what_is_missing(analyst: TrinoGoverned, sql: str) -> None:
    assert name_of(analyst, sql.format("secret")) == name_of(analyst, sql.format("nothing"))


@pytest.mark.rule("ERR-3", "ERR-4")
def test_an_overflow_in_a_policy_is_no_error_that_could_have_a_name(analyst: TrinoGoverned) -> None:
    assert name_of(analyst, "SELECT a + 2147483647 FROM shown_names")[0] == "NUMERIC_VALUE_OUT_OF_RANGE"
    assert analyst.run("SELECT a FROM overflowing", dialect="trino") == []
    # What the analyst adds fails for rows that are shown, never for those that the filter hides.
    assert analyst.run("SELECT a + 2147483647 FROM overflowing", dialect="trino") == []


@pytest.mark.rule("ERR-5", "ERR-7")
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT {}.a FROM {}",
        "SELECT a FROM {} WHERE nosuch(a) = 1",
        "SELECT nosuch(a) FROM {}",
        "SELECT b FROM {}",
        "SELECT a FROM {} WHERE a = 'x' AND CAST('y' AS integer) = 1",
        'SELECT * FROM "{}$snapshots"',
        'SELECT * FROM "{}$nosuch"',
        "SELECT * FROM {} FOR VERSION AS OF 1",
        "SELECT * FROM {} FOR TIMESTAMP AS OF TIMESTAMP '1999-01-01 00:00:00 UTC'",
        "SELECT * FROM {} TABLESAMPLE BERNOULLI (200)",
        "SELECT (SELECT a FROM {}), (SELECT a, b FROM {})",
        "EXPLAIN SELECT * FROM {}",
        "EXPLAIN ANALYZE SELECT * FROM {}",
        "SHOW COLUMNS FROM {}",
        "ALTER TABLE {} EXECUTE expire_snapshots(retention_threshold => '0d')",
        "ALTER TABLE {} EXECUTE nosuch",
        "ALTER TABLE {} EXECUTE optimize WHERE b = 1",
        "ALTER TABLE {} RENAME TO shown_names",
        "ALTER TABLE {} DROP COLUMN b",
        "ALTER TABLE {} ALTER COLUMN b SET DATA TYPE bigint",
        "ANALYZE {} WITH (columns = ARRAY['b'])",
        "INSERT INTO {} (b) VALUES (1)",
        "COMMENT ON COLUMN {}.b IS 'x'",
        "GRANT SELECT ON {} TO USER x",
        "DROP VIEW {}",
        "SHOW CREATE VIEW {}",
        "ALTER VIEW {} RENAME TO v_names",
        "CREATE TABLE shown_names AS SELECT * FROM {}",
        "CREATE TABLE like_names (LIKE {})",
        "REFRESH MATERIALIZED VIEW {}",
        "CALL system.rollback_to_snapshot('{}', 1)",
    ],
)
def test_what_is_denied_is_told_in_every_word_as_what_is_missing(analyst: TrinoGoverned, sql: str) -> None:
    told = set()
    for table in ("denied_names", "missing_name"):  # of one length, for the places behind them
        analyst.names.clear()
        error = analyst.refusal(sql.replace("{}", table), dialect="trino")
        words = f"{error.message} | {error.hint}".replace(table, "T")
        told.add((tuple(analyst.names), error.condition, error.code, error.kind, str(error.position), words))
    assert len(told) == 1, told


@pytest.mark.rule("ERR-5")
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT {} FROM shown_names",
        "SELECT shown_names.{} FROM shown_names",
        "SELECT count({}) OVER () FROM shown_names",
        "SELECT a FROM shown_names GROUP BY a HAVING max({}) > 1",
        "SELECT nosuch({}) FROM shown_names",
        "SELECT {}.x FROM shown_names",
        "SELECT {}[1] FROM shown_names",
        "SELECT a FROM shown_names x JOIN shown_names y USING ({})",
        "SELECT * EXCLUDE ({}) FROM shown_names",
        "UPDATE shown_names SET {} = 1",
        "UPDATE shown_names SET {} = 'x'",
        "DELETE FROM shown_names WHERE {} = 'x'",
        "INSERT INTO shown_names ({}) VALUES (1)",
        "INSERT INTO shown_names (a, {}) VALUES (1, 'x')",
        "MERGE INTO shown_names m USING (VALUES 1) s(a) ON m.a = s.a WHEN MATCHED THEN UPDATE SET {} = 3",
        "ALTER TABLE shown_names EXECUTE optimize WHERE {} = 1",
        "ALTER TABLE shown_names DROP COLUMN {}",
        "ALTER TABLE shown_names RENAME COLUMN {} TO b",
        "ALTER TABLE shown_names ALTER COLUMN {} SET DATA TYPE bigint",
        "COMMENT ON COLUMN shown_names.{} IS 'x'",
        "CREATE VIEW v_hidden AS SELECT {} FROM shown_names",
    ],
)
def test_what_is_hidden_is_told_in_every_word_as_what_is_missing(analyst: TrinoGoverned, sql: str) -> None:
    told = set()
    for column in ("secret", "absent"):
        analyst.names.clear()
        error = analyst.refusal(sql.replace("{}", column), dialect="trino")
        words = f"{error.message} | {error.hint}".replace(column, "C")
        told.add((tuple(analyst.names), error.condition, error.code.name, str(error.position), words))
    assert len(told) == 1, told


@pytest.mark.rule("ERR-4")
@pytest.mark.parametrize(
    "condition",
    [
        "CAST(TIMESTAMP '2020-01-01 00:00:00 UTC' AT TIME ZONE z AS varchar) <> 'x'",
        "year(TIMESTAMP '2020-01-01 00:00:00 UTC' AT TIME ZONE z) > 1",
        "with_timezone(TIMESTAMP '2020-01-01 00:00:00', z) > TIMESTAMP '1999-01-01 00:00:00 UTC'",
        "CAST(concat('2020-01-01 00:00:00 ', z) AS timestamp with time zone) IS NOT NULL",
        "from_unixtime(n, z) > TIMESTAMP '1960-01-01 00:00:00 UTC'",
        "date_add('month', 1, from_unixtime(n)) IS NOT NULL",
        "date_diff('day', from_unixtime(n), TIMESTAMP '2020-01-01 00:00:00 UTC') > 0",
        "to_iso8601(from_unixtime(n)) <> 'x'",
        "from_iso8601_timestamp(concat('2020-01-01T00:00:00', if(z = 'UTC', 'Z', z))) IS NOT NULL",
        "parse_datetime(if(z = 'UTC', '2020', z), 'yyyy') IS NOT NULL",
        "date_parse(if(z = 'UTC', '2020', z), '%Y') IS NOT NULL",
        "json_parse(if(z = 'UTC', '1', z)) IS NOT NULL",
        "CAST(if(z = 'UTC', '1', z) AS integer) = 1",
        "CAST(if(z = 'UTC', '10.0.0.1', z) AS ipaddress) IS NOT NULL",
        "CAST(n AS tinyint) = 1",
        "n - 10 < 0",
        "abs(n - 10) > 0",
        "1 / n = 1",
        "n % (n - 0) = 0",
        "length(rpad('x', n, 'y')) = 1",
        "cardinality(sequence(1, n)) = 1",
        "cardinality(repeat('x', n)) = 1",
        "element_at(ARRAY[1], CAST(n AS integer)) = 1",
        "ARRAY[1][n] = 1",
        "chr(n) IS NOT NULL",
        "codepoint(substr(z, 1, n)) > 0",
        "from_base(if(z = 'UTC', '1', z), 10) = 1",
        "trim_array(ARRAY[1, 2], n) IS NOT NULL",
        "split_part(z, 'x', n) IS NOT NULL",
        "regexp_like('a', if(z = 'UTC', 'a', '(' || z))",
        "url_decode(if(z = 'UTC', 'a', '%' || z)) IS NOT NULL",
        "format_datetime(TIMESTAMP '2020-01-01 00:00:00', if(z = 'UTC', 'Y', 'b' || z)) IS NOT NULL",
    ],
)
def test_functions_fail_for_rows_that_are_shown_alone(analyst: TrinoGoverned, condition: str) -> None:
    for sql in (
        f"SELECT a FROM nonsense_rows WHERE {condition}",
        f"SELECT CASE WHEN {condition} THEN 1 END FROM nonsense_rows",
        f"SELECT count(*) FROM nonsense_rows GROUP BY {condition}",
        f"SELECT max(CASE WHEN {condition} THEN 1 ELSE 2 END) OVER () FROM nonsense_rows ORDER BY {condition}",
    ):
        assert analyst.run(sql, dialect="trino") in ([[1]], [(1,)], [[None]]), sql


@pytest.mark.rule("ERR-7")
@pytest.mark.parametrize("then", ["DESCRIBE OUTPUT asked", "DESCRIBE INPUT asked", "EXECUTE asked USING 1"])
def test_what_is_prepared_of_a_denied_table_is_told_as_of_a_missing_one(analyst: TrinoGoverned, then: str) -> None:
    told = set()
    for table in ("denied_names", "missing_name"):
        try:
            analyst.run(f"PREPARE asked FROM SELECT a FROM {table} WHERE a = ?", dialect="trino")
            rows = str(analyst.run(then, dialect="trino"))
        except SqeError as error:
            rows = f"{error.code} {error.condition} {error.message} {error.hint} {error.position}".replace(table, "T")
        told.add(rows)
    assert len(told) == 1, told
