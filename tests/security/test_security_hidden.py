"""Hidden columns and denied tables, through the whole pipeline: they are as if they were not there."""

from __future__ import annotations

import pytest
from governed import Govern, Governed, allow

from sqe_core.bootstrap import EmbeddedSqe
from sqe_core.spi.errors import ErrorCode, SqeError
from sqe_core.spi.policy import Decision
from sqe_core.spi.protocol import StatementRequest, TableFilter

# Distinctive, so that a trace of them anywhere is found (TEST-2).
HIDDEN = "salary_canary"
VALUE = "424242"
DENIED = "vault_canary"


@pytest.fixture(scope="module")
def analyst(sqe: EmbeddedSqe, govern: Govern) -> Governed:
    for sql in (
        f"CREATE TABLE pay (id integer, {HIDDEN} integer, name varchar)",
        f"INSERT INTO pay VALUES (1, {VALUE}, 'ann'), (2, 1, 'bob')",
        f"CREATE TABLE bonus (id integer, {HIDDEN} integer)",
        f"INSERT INTO bonus VALUES (1, {VALUE})",
        f"CREATE TABLE {DENIED} (a integer)",
        "CREATE TABLE empty (a integer, b integer)",
        "CREATE VIEW names AS SELECT id, name FROM pay",
        f"CREATE VIEW costs AS SELECT id, {HIDDEN} FROM pay",
        f"CREATE VIEW sums AS SELECT {HIDDEN} FROM pay",
        f"CREATE VIEW entry AS SELECT * FROM {DENIED}",
    ):
        sqe.execute(sql).close()
    denied = Decision.deny("a secret")
    hidden = {"pay": allow(hidden=frozenset({HIDDEN})), "empty": allow(hidden=frozenset({"a", "b"}))}
    return govern({**hidden, DENIED: denied}, canaries=frozenset({HIDDEN, VALUE, DENIED}))


def refusal(analyst: Governed, sql: str) -> SqeError:
    error = analyst.refusal(sql)
    assert not [canary for canary in analyst.canaries if canary in (error.hint or "")]
    return error


def columns(analyst: Governed, sql: str) -> list[str]:
    with analyst.execute(sql) as result:
        assert result.schema is not None
        return list(result.schema.names)


@pytest.mark.rule("ENF-9")
def test_star_is_the_visible_columns(analyst: Governed) -> None:
    assert analyst.run("SELECT * FROM pay ORDER BY id") == [[1, "ann"], [2, "bob"]]
    assert columns(analyst, "SELECT * FROM pay") == ["id", "name"]
    assert columns(analyst, "SELECT p.* FROM pay p") == ["id", "name"]
    assert analyst.run("SELECT count(*) AS n FROM pay") == [[2]]
    assert analyst.run("SELECT * FROM names ORDER BY id") == [[1, "ann"], [2, "bob"]]
    assert columns(analyst, "WITH x AS (SELECT * FROM pay) SELECT * FROM x") == ["id", "name"]


@pytest.mark.rule("ENF-4", "ERR-5")
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT {c} FROM pay",
        "SELECT pay.{c} FROM pay",
        "SELECT id FROM pay WHERE {c} > 1",
        "SELECT id FROM pay ORDER BY {c}",
        "SELECT id FROM pay GROUP BY id ORDER BY max({c})",
        "SELECT name, count(*) AS n FROM pay GROUP BY name HAVING max({c}) > 1",
        "SELECT count(*) AS n FROM pay GROUP BY {c}",
        "SELECT sum(id) OVER (ORDER BY {c}) AS s FROM pay",
        "SELECT (SELECT max({c}) FROM pay) AS m",
        "SELECT id FROM bonus b WHERE EXISTS (SELECT 1 FROM pay WHERE pay.{c} = b.id)",
        "SELECT p.id FROM pay p JOIN bonus b USING ({c})",
        "SELECT p.id FROM pay p JOIN bonus b ON p.{c} = b.id",
        "SELECT id FROM (SELECT * FROM pay) q WHERE q.{c} = 1",
        "SELECT id FROM names WHERE {c} = 1",
    ],
)
def test_a_hidden_column_is_one_that_does_not_exist(analyst: Governed, sql: str) -> None:
    hidden = refusal(analyst, sql.format(c=HIDDEN))
    missing = refusal(analyst, sql.format(c="missing_canary"))
    assert hidden.code is ErrorCode.COLUMN_NOT_FOUND
    assert (hidden.code, str(hidden).replace(HIDDEN, "x"), hidden.hint) == (
        missing.code,
        str(missing).replace("missing_canary", "x"),
        missing.hint,
    )


@pytest.mark.rule("ERR-5")
def test_hidden_names_are_not_suggested(analyst: Governed) -> None:
    assert refusal(analyst, "SELECT salary_canar FROM pay").hint is None
    assert refusal(analyst, "SELECT nme FROM pay").hint == 'did you mean "name"?'
    assert refusal(analyst, "SELECT * FROM vault_canar").hint in (None, 'did you mean "vault_canar"?')


@pytest.mark.rule("ENF-4")
def test_a_natural_join_does_not_see_a_hidden_column(analyst: Governed) -> None:
    assert columns(analyst, "SELECT * FROM pay NATURAL JOIN bonus") == ["id", "name", HIDDEN]


@pytest.mark.rule("ERR-5")
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM {t}",
        "SELECT * FROM default.{t}",
        "SELECT count(*) FROM iceberg.default.{t} x",
        "INSERT INTO {t} VALUES (1)",
        "UPDATE {t} SET a = 1",
        "DELETE FROM {t}",
        "DROP TABLE {t}",
        "TRUNCATE TABLE {t}",
        "ALTER TABLE {t} ADD COLUMN x integer",
        "DESCRIBE {t}",
        "SHOW COLUMNS FROM {t}",
        "SHOW CREATE TABLE {t}",
        'SELECT * FROM "{t}$snapshots"',
        "SELECT * FROM pay WHERE id IN (SELECT a FROM {t})",
        "CREATE VIEW x AS SELECT * FROM {t}",
        "CREATE TABLE x AS SELECT * FROM {t}",
        "EXPLAIN SELECT * FROM {t}",
        "ANALYZE {t}",
    ],
)
def test_a_denied_table_is_one_that_does_not_exist(analyst: Governed, sql: str) -> None:
    denied = refusal(analyst, sql.format(t=DENIED))
    missing = refusal(analyst, sql.format(t="missing_table"))
    assert (denied.code, str(denied).replace(DENIED, "x"), denied.hint) == (
        missing.code,
        str(missing).replace("missing_table", "x"),
        missing.hint,
    )


@pytest.mark.rule("ENF-10")
def test_a_table_without_visible_columns_is_refused(analyst: Governed) -> None:
    for sql in ("SELECT * FROM empty", "SELECT count(*) FROM empty", "SELECT 1 FROM empty", "SELECT a FROM empty"):
        assert refusal(analyst, sql).code is ErrorCode.TABLE_NOT_FOUND


@pytest.mark.rule("VIEW-3")
@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT (SELECT max({HIDDEN}) FROM sums) AS m FROM (SELECT 7 AS {HIDDEN}) o",
        "SELECT (SELECT count(*) FROM sums) AS m FROM bonus",
        "SELECT b.id FROM bonus b WHERE EXISTS (SELECT 1 FROM sums c)",
        "SELECT o.id FROM bonus o, LATERAL (SELECT * FROM sums) c",
    ],
)
def test_the_query_around_a_view_does_not_stand_in_for_its_columns(analyst: Governed, sql: str) -> None:
    refusal(analyst, sql)


@pytest.mark.rule("ERR-5")
@pytest.mark.parametrize(
    ("sql", "similar"),
    [
        ("UPDATE bonus SET id = 1 WHERE idd = 1", "id"),
        ("DELETE FROM bonus WHERE ide = 1", "id"),
        ("UPDATE bonus SET id = 1 WHERE salary_canari = 1", HIDDEN),
    ],
)
def test_a_write_suggests_visible_columns(sqe: EmbeddedSqe, analyst: Governed, sql: str, similar: str) -> None:
    with pytest.raises(SqeError) as caught:
        sqe.execute(sql)
    assert similar in (caught.value.hint or "")


@pytest.mark.rule("VIEW-2")
def test_a_view_gives_no_more_than_its_tables(analyst: Governed) -> None:
    assert analyst.run("SELECT * FROM costs ORDER BY id") == [[1], [2]]
    refusal(analyst, f"SELECT {HIDDEN} FROM costs")
    refusal(analyst, "SELECT * FROM sums")
    refusal(analyst, "SELECT * FROM entry")


@pytest.mark.rule("STMT-9")
def test_listings_do_not_know_what_is_hidden(analyst: Governed) -> None:
    for sql in (
        "SHOW TABLES",
        "DESCRIBE pay",
        "SHOW COLUMNS FROM pay",
        "SHOW CREATE TABLE pay",
        "SELECT * FROM information_schema.tables",
        "SELECT * FROM information_schema.columns WHERE table_name <> 'bonus' AND table_name <> 'costs'",
        "EXPLAIN SELECT * FROM pay",
    ):
        try:
            shown = str(analyst.run(sql))
        except SqeError as error:
            shown = str(error)
        assert DENIED not in shown, sql
        assert HIDDEN not in shown, sql


@pytest.mark.rule("META-4", "NAME-3")
def test_metadata_of_a_restricted_table_is_not_told(analyst: Governed) -> None:
    for kind in ("files", "partitions", "manifests", "snapshots", "history", "refs"):
        refusal(analyst, f'SELECT * FROM "pay${kind}"')
    rows = analyst.run("SHOW STATS FOR pay")
    assert {value for row in rows for value in row[1:]} == {None}
    assert HIDDEN not in str(rows)


@pytest.mark.rule("DML-2")
def test_a_restricted_table_is_not_written(analyst: Governed) -> None:
    for sql in (
        "INSERT INTO pay VALUES (3, 3, 'eve')",
        "UPDATE pay SET name = 'x'",
        "DELETE FROM pay WHERE id = 1",
        "MERGE INTO pay USING bonus b ON pay.id = b.id WHEN MATCHED THEN DELETE",
        "TRUNCATE TABLE pay",
        "ALTER TABLE pay DROP COLUMN name",
        f"ALTER TABLE pay RENAME COLUMN {HIDDEN} TO open",
        f"COMMENT ON COLUMN pay.{HIDDEN} IS 'x'",
    ):
        refusal(analyst, sql)
    assert analyst.run("SELECT count(*) AS n FROM pay") == [[2]]


@pytest.mark.rule("NAME-5")
def test_an_old_version_hides_the_same(analyst: Governed, sqe: EmbeddedSqe) -> None:
    (snapshot,) = sqe.execute('SELECT max(snapshot_id) AS s FROM "pay$snapshots"').read_all().column("s").to_pylist()
    assert columns(analyst, f"SELECT * FROM pay FOR VERSION AS OF {snapshot}") == ["id", "name"]
    refusal(analyst, f"SELECT {HIDDEN} FROM pay FOR VERSION AS OF {snapshot}")


@pytest.mark.rule("FLT-5")
def test_listed_columns_are_the_secured_ones(analyst: Governed) -> None:
    listed = {table.name.name: table.columns for table in analyst.connected.tables(TableFilter(with_columns=True))}
    assert DENIED not in listed
    assert listed["pay"] is not None
    assert listed["pay"].names == ["id", "name"]
    assert HIDDEN not in str(listed["costs"])


@pytest.mark.rule("FLT-5")
@pytest.mark.parametrize("pattern", [DENIED, "vault%", "%lt_canary", r"\vault%"])
def test_patterns_find_no_denied_table(analyst: Governed, pattern: str) -> None:
    assert list(analyst.connected.tables(TableFilter(table_pattern=pattern, with_columns=True))) == []


@pytest.mark.rule("FLT-4")
def test_what_is_prepared_is_described_by_its_secured_plan(analyst: Governed) -> None:
    connected = analyst.connected
    described = connected.begin(StatementRequest(sql="SELECT * FROM pay WHERE id = ?")).describe()
    assert described.schema is not None
    assert described.schema.names == ["id", "name"]
    plan = connected.begin(StatementRequest(sql="SELECT * FROM pay"))
    plan.plan()
    assert plan.schema is not None
    assert plan.schema.names == ["id", "name"]
    plan.close()
