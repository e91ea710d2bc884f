"""Trino's clients read a name with each error: it tells no more than the sentence does.

The hostile analyst asks the same question about what is denied, hidden and missing, and compares names; brings a
policy's filter to overflow.
"""

from __future__ import annotations

import pytest
from governed import Govern, allow
from testbed.trino_governed import TrinoGoverned

from sqe_core.bootstrap import EmbeddedSqe
from sqe_core.spi.policy import Decision


@pytest.fixture(scope="module")
def analyst(sqe: EmbeddedSqe, govern: Govern) -> TrinoGoverned:
    for sql in (
        "CREATE TABLE denied_names (a integer)",
        "CREATE TABLE shown_names (a integer, secret integer)",
        "INSERT INTO shown_names VALUES (1, 2000000000), (2, 1)",
        "CREATE TABLE overflowing (a integer, secret integer)",
        "INSERT INTO overflowing VALUES (1, 2000000000), (2, 1)",
        "CREATE SCHEMA denied_area",
        "CREATE TABLE denied_area.t (a integer)",
    ):
        sqe.execute(sql).close()
    denied = Decision.deny("a secret")
    hidden = allow(hidden=frozenset({"secret"}))
    # A filter that overflows in one row.
    overflows = allow("secret * 2 > 5", hidden=frozenset({"secret"}))
    found = govern(
        {"denied_names": denied, "denied_area": denied, "t": denied, "shown_names": hidden, "overflowing": overflows}
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
