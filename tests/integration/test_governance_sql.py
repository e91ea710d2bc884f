"""Governance in SQL, from the statement to what others then read (POL-15, META-1 to META-3, ERR-5)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from testbed.users import ROOT, Users, granted

from sqe_core.engine.spark.engine import SparkEngine
from sqe_core.policy.builtin import AllowAllEnforcer
from sqe_core.query.run.execution import Execution
from sqe_core.query.run.judging import Judging
from sqe_core.spi.errors import ErrorCode, ObjectNotFoundError, SqeError
from sqe_core.spi.protocol import IngestMode, IngestRequest
from sqe_core.testing import make_identity

OWEN = make_identity("owen")
ALICE = make_identity("alice", roles=["analyst"])
BOB = make_identity("bob", roles=["auditor"])
MALLORY = make_identity("mallory", roles=["intern"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lake")


@pytest.fixture(scope="module")
def made(engine: SparkEngine, folder: Path) -> None:
    """The tables, made once; who may see them is decided anew in each test."""
    lake = Users(granted(engine, folder, enforcers=[AllowAllEnforcer()]))
    lake.root(
        "CREATE TABLE people (id integer, name varchar, ssn varchar, region varchar, salary integer)",
        "INSERT INTO people VALUES (1, 'ann', '123-45-6789', 'EU', 50123), (2, 'bob', '987-65-4321', 'US', 60456)",
        "CREATE TABLE orders (id integer)",
        "INSERT INTO orders VALUES (7)",
        "CREATE VIEW names AS SELECT id, name FROM people",
    )
    lake.close()


@pytest.fixture
def lake(engine: SparkEngine, folder: Path, made: None) -> Iterator[Users]:
    lake = Users(granted(engine, folder))
    yield lake
    lake.close()


# Grants


def test_a_grant_shows_on_the_next_query_and_a_revoke_too(lake: Users) -> None:
    lake.root("GRANT SELECT ON people TO auditor")
    missing = lake.refusal(ALICE, "SELECT * FROM no_table_here")
    assert str(lake.refusal(ALICE, "SELECT * FROM people")) == str(missing).replace("no_table_here", "people")
    lake.root("GRANT SELECT ON TABLE lake.default.people TO ROLE analyst")
    assert len(lake.run(ALICE, "SELECT * FROM people")) == 2
    lake.root("REVOKE SELECT ON people FROM analyst")
    assert str(lake.refusal(ALICE, "SELECT * FROM people")) == str(missing).replace("no_table_here", "people")


def test_columns_masks_and_rows_of_one_grant(lake: Users) -> None:
    lake.root(
        "GRANT SELECT (id, salary MASKED WITH 'RANGE(10000)', ssn MASKED WITH 'REDACT') ROWS WHERE region = 'EU'"
        " ON people TO analyst"
    )
    assert lake.run(ALICE, "SELECT * FROM people") == [(1, "***", 50000)]
    lake.root("REVOKE ROWS ON people FROM analyst")
    assert lake.run(ALICE, "SELECT id FROM people ORDER BY id") == [(1,), (2,)]
    lake.root("REVOKE SELECT (salary) ON people FROM analyst")
    assert lake.run(ALICE, "SELECT * FROM people WHERE id = 1") == [(1, "***")]


def test_the_other_spellings_mean_the_same(lake: Users) -> None:
    lake.root(
        "GRANT SELECT (id, ssn) ON people TO ROLE analyst"
        " ROWS WHERE region = 'EU' MASKED WITH (ssn = '***-**-' || right(ssn, 4))"
    )
    assert lake.run(ALICE, "SELECT * FROM people") == [(1, "***-**-6789")]


def test_granted_rows_restrict_and_give_nothing(lake: Users) -> None:
    lake.root("GRANT SELECT (id) ON people TO USER alice", "GRANT ROWS WHERE region = 'EU' ON people TO PUBLIC")
    assert lake.run(ALICE, "SELECT * FROM people") == [(1,)]
    lake.refusal(BOB, "SELECT * FROM people")


def test_a_deny_wins_and_is_lifted(lake: Users) -> None:
    lake.root("GRANT SELECT ON SCHEMA default TO analyst", "DENY SELECT ON orders TO USER alice")
    assert len(lake.run(ALICE, "SELECT * FROM people")) == 2
    lake.refusal(ALICE, "SELECT * FROM orders")
    lake.root("REVOKE DENY SELECT ON orders FROM USER alice")
    assert lake.run(ALICE, "SELECT * FROM orders") == [(7,)]
    lake.root("DENY SELECT (ssn, salary) ON people TO analyst")
    assert lake.run(ALICE, "SELECT * FROM people WHERE id = 1") == [(1, "ann", "EU")]


def test_a_whole_schema_and_a_view(lake: Users) -> None:
    lake.root("GRANT SELECT ON ALL TABLES IN SCHEMA default TO analyst", "GRANT SELECT ON VIEW names TO analyst")
    assert lake.run(ALICE, "SELECT name FROM names ORDER BY id") == [("ann",), ("bob",)]


@pytest.mark.rule("POL-12")
@pytest.mark.parametrize(("mask", "length"), [("REDACT", 3), ("HASH", 64)])
def test_masked_json_is_json(lake: Users, mask: str, length: int) -> None:
    lake.root(
        "CREATE TABLE documents (id integer, doc variant) WITH (format_version = 3)",
        """INSERT INTO documents SELECT 1, JSON '{"a": "secret"}'""",
        "INSERT INTO documents SELECT 2, NULL",
        f"GRANT SELECT (id, doc MASKED WITH '{mask}') ON documents TO analyst",
    )
    shown = lake.run(ALICE, "SELECT length(json_extract_scalar(doc, '$')), doc FROM documents WHERE id = 1")
    assert shown[0][0] == length
    assert len(json.loads(shown[0][1])) == length
    assert "secret" not in shown[0][1]
    assert lake.run(ALICE, "DESCRIBE documents")[1] == lake.run(ROOT, "DESCRIBE documents")[1]
    if mask == "HASH":
        assert lake.run(ALICE, "SELECT doc FROM documents WHERE id = 2") == [(None,)]
        lake.root("""INSERT INTO documents SELECT 3, JSON '{"a":   "secret"}'""")
        assert lake.run(ALICE, "SELECT count(DISTINCT json_format(doc)) FROM documents") == [(1,)]
    lake.root("DROP TABLE documents")


@pytest.mark.rule("POL-15")
@pytest.mark.parametrize(
    "sql",
    [
        "GRANT SELECT ON people TO analyst ROWS WHERE regin = 'EU'",
        "GRANT SELECT ON names TO analyst ROWS WHERE nam = 'x'",
        "GRANT SELECT (ssn MASKED WITH right(snn, 4)) ON people TO analyst",
        "CREATE POLICY p ON TABLE people ROW FILTER TO ROLE analyst USING (upper(regin) = 'EU')",
        "CREATE POLICY p ON TABLE people COLUMN MASK CUSTOM TO ROLE analyst ON COLUMN ssn USING (concat(snn, 'x'))",
    ],
)
def test_an_unknown_column_of_a_policy_is_named_to_its_author(lake: Users, sql: str) -> None:
    refused = lake.refusal(ROOT, sql)
    table, wrong, meant = ("names", "nam", "name") if "names" in sql else ("people", "regin", "region")
    wrong, meant = ("snn", "ssn") if "snn" in sql else (wrong, meant)
    assert refused.code is ErrorCode.COLUMN_NOT_FOUND
    assert refused.message == f"Column {wrong} of lake.default.{table} does not exist"
    assert refused.hint == (f'did you mean "{meant}"?' if meant != "ssn" else None)
    told = lake.refusal(MALLORY, sql)
    assert (told.code, told.hint) == (ErrorCode.ACCESS_DENIED, None)


@pytest.mark.rule("VIEW-2", "POL-15")
def test_rows_and_masks_of_a_view(lake: Users) -> None:
    """They hold above the view, besides what holds for the tables that it reads."""
    lake.root(
        "GRANT SELECT (id, name MASKED WITH upper(name)) ROWS WHERE id < 2 ON VIEW names TO analyst",
        "GRANT SELECT ON people TO analyst",
    )
    assert lake.run(ALICE, "SELECT * FROM names") == [(1, "ANN")]
    assert lake.run(ALICE, "SELECT count(*) FROM names WHERE name = 'ann' OR 1 / (id - 2) > 5") == [(0,)]
    assert lake.run(ALICE, "SELECT name FROM people ORDER BY id") == [("ann",), ("bob",)]
    lake.root("GRANT ROWS WHERE region = 'US' ON people TO analyst")
    assert lake.run(ALICE, "SELECT * FROM names") == []
    lake.root(
        "CREATE POLICY shout ON TABLE names COLUMN MASK CUSTOM TO ROLE auditor ON COLUMN name USING ({col} || '!')",
        "CREATE POLICY late ON TABLE names ROW FILTER TO ROLE auditor USING (id > 1)",
        "GRANT SELECT ON names TO auditor",
        "GRANT SELECT ON people TO auditor",
    )
    assert lake.run(BOB, "SELECT * FROM names") == [(2, "bob!")]
    assert lake.run(BOB, "SHOW EFFECTIVE POLICY ON names") == [
        ("row_filter", None, "1", None),
        ("column_mask", "name", "custom", None),
    ]
    for sql in (
        "GRANT ROWS WHERE region = 'EU' ON VIEW names TO intern",
        "GRANT ROWS WHERE id + 1 ON VIEW names TO intern",
        "GRANT SELECT (nope MASKED WITH 'NULL') ON VIEW names TO intern",
        "GRANT ROWS WHERE id IN (SELECT id FROM orders) ON VIEW names TO intern",
        "CREATE POLICY p ON TABLE names ROW FILTER TO ROLE intern USING (max(id) > 1)",
    ):
        assert lake.refusal(ROOT, sql).kind.value == "USER_ERROR", sql


@pytest.mark.rule("VIEW-2", "STMT-8")
def test_no_view_has_the_rights_of_its_owner(lake: Users) -> None:
    """dbt writes the clause into every view: it is kept, and whoever reads the view still needs what it reads."""
    lake.root(
        "GRANT SELECT ON people TO service_admin",
        "CREATE VIEW leak SECURITY DEFINER AS SELECT ssn FROM people",
        "CREATE VIEW plain SECURITY INVOKER AS SELECT ssn FROM people",
        "GRANT SELECT ON leak TO PUBLIC",
        "GRANT SELECT ON plain TO PUBLIC",
    )
    try:
        assert lake.run(ROOT, "SELECT count(*) AS n FROM leak") == [(2,)]
        said = {lake.refusal(ALICE, f"SELECT * FROM {view}").message.replace(view, "v") for view in ("leak", "plain")}
        assert said == {"View lake.default.v is out of date, or needs what you may not see"}
        ((kept,),) = lake.run(ROOT, "SHOW CREATE VIEW leak")
        assert "\nSECURITY DEFINER AS\n" in kept
        assert "SECURITY" not in str(lake.run(ROOT, "SHOW CREATE VIEW plain"))
        lake.root(kept.replace("CREATE VIEW", "CREATE OR REPLACE VIEW"))
        assert lake.run(ROOT, "SHOW CREATE VIEW leak") == [(kept,)]
    finally:
        lake.root("DROP VIEW leak", "DROP VIEW plain")


@pytest.fixture
def mapping(lake: Users) -> Iterator[None]:
    """Who may see which region; nobody but administrators is granted anything on it."""
    lake.root(
        "CREATE TABLE regions (who varchar, region varchar)",
        "INSERT INTO regions VALUES ('alice', 'EU'), ('bob', 'US'), ('bob', 'EU'), (NULL, 'US')",
        "GRANT SELECT ON regions TO service_admin",
        "GRANT SELECT ON people TO PUBLIC",
        "GRANT ROWS WHERE region IN (SELECT r.region FROM lake.default.regions AS r WHERE r.who = current_user)"
        " ON people TO PUBLIC",
    )
    yield
    lake.root("DROP TABLE regions")


@pytest.mark.rule("POL-5")
def test_a_filter_looks_into_a_mapping_table_that_its_readers_may_not_read(lake: Users, mapping: None) -> None:
    assert lake.run(ALICE, "SELECT id FROM people") == [(1,)]
    assert lake.run(BOB, "SELECT id FROM people ORDER BY id") == [(1,), (2,)]
    assert lake.run(MALLORY, "SELECT id FROM people") == []
    lake.refusal(ALICE, "SELECT * FROM regions")
    # What is looked up is of the moment, in joins, views and hostile conditions, too.
    assert lake.run(ALICE, "SELECT count(*) FROM people a JOIN people b ON a.id <> b.id OR 1 / (b.id - 2) > 5") == [
        (0,)
    ]
    assert lake.run(ALICE, "SELECT id FROM names WHERE 1 / (id - 2) < 5") == [(1,)]
    lake.root("INSERT INTO regions VALUES ('mallory', 'US')")
    assert lake.run(MALLORY, "SELECT id FROM people") == [(2,)]
    assert "regions" not in str(lake.run(ALICE, "EXPLAIN SELECT id FROM people"))
    assert lake.run(ALICE, "SHOW EFFECTIVE POLICY ON people") == [("row_filter", None, "1", None)]
    lake.root("GRANT INSERT ON people TO PUBLIC")
    lake.refusal(ALICE, "INSERT INTO people VALUES (3, 'eve', 's', 'US', 1)")
    assert lake.run(BOB, "SELECT count(*) FROM people") == [(2,)]


@pytest.mark.rule("POL-5")
def test_a_filter_asks_whether_a_row_of_a_mapping_table_exists(lake: Users, mapping: None) -> None:
    looked_up = "SELECT 1 FROM lake.default.regions AS r WHERE r.region = region AND r.who = current_user"
    for word, alices, mallorys in (("EXISTS", [(1,)], []), ("NOT EXISTS", [(2,)], [(1,), (2,)])):
        lake.root("REVOKE ROWS ON people FROM PUBLIC", f"GRANT ROWS WHERE {word} ({looked_up}) ON people TO PUBLIC")
        assert lake.run(ALICE, "SELECT id FROM people") == alices
        assert lake.run(MALLORY, "SELECT id FROM people ORDER BY id") == mallorys


@pytest.mark.rule("POL-5")
def test_names_in_a_mapping_query_are_the_mapping_tables_own(lake: Users, mapping: None) -> None:
    """Neither a temporary view nor a column of the reader's query is meant by them; no rows are no error."""
    lake.run(ALICE, "CREATE TEMPORARY VIEW regions AS SELECT 'alice' AS who, 'US' AS region")
    assert lake.run(ALICE, "WITH regions AS (SELECT 'US' AS region) SELECT id FROM people") == [(1,)]
    lake.root(
        "REVOKE ROWS ON people FROM PUBLIC",
        "CREATE POLICY off ON TABLE people ROW FILTER TO PUBLIC"
        " USING (region NOT IN (SELECT region FROM lake.default.regions WHERE who = current_user))",
    )
    assert lake.run(ALICE, "SELECT id FROM people") == [(2,)]
    assert lake.run(MALLORY, "SELECT id FROM people ORDER BY id") == [(1,), (2,)]
    for sql in (
        "GRANT ROWS WHERE region IN (SELECT people.region FROM lake.default.regions) ON people TO intern",
        "GRANT ROWS WHERE region IN (SELECT region FROM regions) ON people TO intern",
        "GRANT ROWS WHERE region IN (SELECT name FROM lake.default.names) ON people TO intern",
        'GRANT ROWS WHERE region IN (SELECT operation FROM lake.default."regions$snapshots") ON people TO intern',
        "GRANT ROWS WHERE region IN (SELECT table_name FROM lake.information_schema.tables) ON people TO intern",
        "GRANT ROWS WHERE region IN (SELECT region FROM lake.default.regions ORDER BY who LIMIT 1) ON people TO intern",
        "GRANT ROWS WHERE EXISTS (SELECT 1 FROM lake.default.regions r WHERE r.region = region OR true)"
        " ON people TO intern",
        "GRANT ROWS WHERE region = (SELECT max(region) FROM lake.default.regions) ON people TO intern",
        "GRANT ROWS WHERE region IN (SELECT region FROM lake.default.regions WHERE EXISTS"
        " (SELECT 1 FROM lake.default.people)) ON people TO intern",
        "GRANT ROWS WHERE id IN (SELECT region FROM lake.default.regions WHERE rand() < 2) ON people TO intern",
        "GRANT SELECT (id MASKED WITH CASE WHEN id IN (SELECT 1 FROM lake.default.regions) THEN 1 END) ON people"
        " TO intern",
    ):
        assert lake.refusal(ROOT, sql).kind.value == "USER_ERROR", sql


@pytest.mark.rule("POL-8")
def test_a_role_that_is_left_out_is_looked_up_too(lake: Users, mapping: None) -> None:
    lake.root(
        "REVOKE ROWS ON people FROM PUBLIC",
        "INSERT INTO regions VALUES ('intern', 'US')",
        "CREATE POLICY interns ON TABLE people ROW FILTER TO PUBLIC"
        " USING (region NOT IN (SELECT region FROM lake.default.regions WHERE who = current_role))",
    )
    assert lake.run(MALLORY, "SELECT id FROM people") == [(1,)]
    lake.run(MALLORY, "SET ROLE NONE")
    assert lake.run(MALLORY, "SELECT id FROM people") == [(1,)]


@pytest.mark.rule("POL-2", "ERR-1")
def test_a_filter_whose_mapping_table_is_gone_closes_the_table(lake: Users, mapping: None) -> None:
    lake.root("ALTER TABLE regions RENAME TO regions2")
    error = lake.refusal(BOB, "SELECT id FROM people")
    assert "regions" not in f"{error} {error.hint}"
    assert error.kind.value == "EXTERNAL"
    lake.root("ALTER TABLE regions2 RENAME TO regions")
    assert len(lake.run(BOB, "SELECT id FROM people")) == 2


@pytest.mark.rule("POL-15")
def test_expressions_are_stored_in_one_form(lake: Users) -> None:
    lake.root(
        "GRANT SELECT (id, name MASKED WITH upper(/* loud */ name))"
        " ROWS WHERE region  =  -- of the day\n 'E  U' ON people TO analyst",
        "GRANT SELECT (id, name MASKED WITH upper( name)) ROWS WHERE region = 'E  U' ON people TO analyst",
    )
    rows = lake.run(ROOT, "SHOW GRANTS ON people")
    assert [(row[5], row[8], row[9]) for row in rows] == [("root", "name: upper( name)", "region = 'E  U'")]


WRONG = [
    ("GRANT SELECT ON no_such TO analyst", ErrorCode.TABLE_NOT_FOUND),
    ("GRANT SELECT ON SCHEMA no_such TO analyst", ErrorCode.SCHEMA_NOT_FOUND),
    ("GRANT SELECT (nope) ON people TO analyst", ErrorCode.COLUMN_NOT_FOUND),
    ("GRANT ROWS WHERE nope = 1 ON people TO analyst", ErrorCode.COLUMN_NOT_FOUND),
    ("GRANT ROWS WHERE id + 1 ON people TO analyst", ErrorCode.SEMANTIC_ERROR),
    ("GRANT ROWS WHERE id IN (SELECT id FROM orders) ON people TO analyst", None),
    ("GRANT ROWS WHERE rand() < 0.5 ON people TO analyst", None),
    ("GRANT ROWS WHERE (id = ON people TO analyst", ErrorCode.SYNTAX_ERROR),
    ("GRANT SELECT (ssn MASKED WITH max(ssn)) ON people TO analyst", None),
    ("GRANT INSERT ON names TO analyst", ErrorCode.NOT_SUPPORTED),
    ("GRANT SELECT ON VIEW people TO analyst", ErrorCode.SEMANTIC_ERROR),
    ('GRANT SELECT ON "people$snapshots" TO analyst', ErrorCode.TABLE_NOT_FOUND),
    ("GRANT SELECT ON information_schema.tables TO analyst", ErrorCode.TABLE_NOT_FOUND),
    ("REVOKE SELECT ON no_such FROM analyst", ErrorCode.TABLE_NOT_FOUND),
]


@pytest.mark.rule("POL-15")
def test_what_does_not_fit_is_refused_and_not_stored(lake: Users) -> None:
    for sql, code in WRONG:
        error = lake.refusal(ROOT, sql)
        assert error.kind.value == "USER_ERROR", (sql, error)
        assert code is None or error.code is code, (sql, error)
    assert lake.run(ROOT, "SHOW GRANTS") == []


FORBIDDEN = [
    "GRANT SELECT ON {t} TO USER mallory",
    "GRANT SELECT (id) ON {t} TO USER mallory",
    "GRANT SELECT ON SCHEMA {t} TO intern",
    "GRANT SELECT ON CATALOG {t} TO intern",
    "REVOKE SELECT ON {t} FROM analyst",
    "REVOKE ROWS ON {t} FROM intern",
    "REVOKE DENY SELECT ON {t} FROM intern",
    "DENY SELECT ON {t} TO analyst",
    "CREATE ROLE r1",
    "DROP ROLE IF EXISTS analyst",
    "GRANT service_admin TO USER mallory",
    "REVOKE analyst FROM USER alice",
    "CREATE POLICY p ON TABLE {t} ROW FILTER TO ROLE analyst USING (true)",
    "CREATE POLICY p ON TAG pii COLUMN MASK mask_none TO ROLE intern",
    "DROP POLICY IF EXISTS p",
    "ALTER TABLE {t} SET TAGS (id = 'PII')",
    "ALTER TABLE {t} UNSET TAGS (id)",
    "ALTER TABLE {t} ALTER COLUMN id SET MASKING POLICY p",
    "ALTER TABLE {t} OWNER TO USER mallory",
    "ALTER SCHEMA {t} SET AUTHORIZATION mallory",
    "SET ROLE service_admin",
    "SHOW GRANTS TO ROLE analyst",
    "SHOW EFFECTIVE GRANTS FOR USER alice",
    "SHOW EFFECTIVE POLICY FOR 'alice' ON {t}",
    "SHOW MASKING POLICIES",
    "CHECK ACCESS SELECT ON {t} FOR USER alice",
    "EXPLAIN ACCESS SELECT * FROM {t} FOR USER 'alice'",
]


@pytest.mark.rule("META-3", "POL-15", "ERR-5")
def test_others_than_administrators_are_refused_before_anything_is_looked_up(lake: Users) -> None:
    lake.root("GRANT SELECT ON people TO auditor", "GRANT ROWS WHERE region = 'EU' ON people TO intern")
    before = lake.run(ROOT, "SHOW GRANTS")
    for sql in FORBIDDEN:
        told = lake.refusal(MALLORY, sql.format(t="people"))
        assert told.code is ErrorCode.ACCESS_DENIED, (sql, told)
        of_missing = lake.refusal(MALLORY, sql.format(t="no_such_thing"))
        assert (told.message, told.hint) == (of_missing.message, of_missing.hint), sql
    assert lake.run(ROOT, "SHOW GRANTS") == before
    assert lake.run(ROOT, "SHOW ROLES") == [("service_admin",)]


def test_whoever_has_the_option_passes_on_no_more_than_that(lake: Users) -> None:
    lake.root("GRANT SELECT (id, name) ON people TO ROLE analyst WITH GRANT OPTION")
    lake.run(ALICE, "GRANT SELECT (id) ON people TO USER bob")
    assert lake.run(BOB, "SELECT * FROM people") == [(1,), (2,)]
    for sql in (
        "GRANT SELECT ON people TO USER bob",
        "GRANT SELECT (id, ssn) ON people TO USER bob",
        "GRANT INSERT ON people TO USER bob",
        "GRANT SELECT ON orders TO USER bob",
        "DENY SELECT ON people TO USER bob",
    ):
        assert lake.refusal(ALICE, sql).code is ErrorCode.ACCESS_DENIED, sql
    lake.root("REVOKE GRANT OPTION FOR SELECT ON people FROM analyst")
    assert lake.refusal(ALICE, "GRANT SELECT (id) ON people TO USER bob").code is ErrorCode.ACCESS_DENIED
    assert len(lake.run(ALICE, "SELECT * FROM people")) == 2


@pytest.mark.rule("POL-15")
def test_whoever_is_restricted_passes_nothing_on(lake: Users) -> None:
    lake.root(
        "GRANT SELECT ON people TO ROLE analyst WITH GRANT OPTION",
        "GRANT ROWS WHERE region = 'EU' ON people TO USER alice",
    )
    assert lake.refusal(ALICE, "GRANT SELECT ON people TO USER bob").code is ErrorCode.ACCESS_DENIED


@pytest.mark.rule("POL-15")
def test_whoever_has_the_option_lifts_no_filter_and_no_mask(lake: Users) -> None:
    lake.root(
        "GRANT SELECT ON people TO auditor WITH GRANT OPTION",
        "GRANT SELECT (id, ssn MASKED WITH 'NULL') ROWS WHERE region = 'EU' ON people TO analyst",
        "GRANT ROWS WHERE salary > 0 ON people TO analyst",
    )
    for sql in (
        "REVOKE ROWS ON people FROM analyst",
        "REVOKE SELECT ON people FROM analyst",
        "REVOKE SELECT (ssn) ON people FROM analyst",
    ):
        assert lake.refusal(BOB, sql).code is ErrorCode.ACCESS_DENIED, sql
    lake.run(BOB, "GRANT SELECT ON people TO analyst")
    assert lake.run(ALICE, "SELECT id, ssn FROM people") == [(1, None)]
    lake.run(BOB, "GRANT SELECT ON people TO intern")
    lake.run(BOB, "REVOKE SELECT ON people FROM intern")
    lake.refusal(MALLORY, "SELECT * FROM people")


def test_an_owner_keeps_access_and_gives_it_away(lake: Users) -> None:
    lake.run(OWEN, "CREATE TABLE owned AS SELECT 1 AS id")
    try:
        # By default only administrators grant (features §6.5).
        assert lake.refusal(OWEN, "GRANT SELECT ON owned TO analyst").code is ErrorCode.ACCESS_DENIED
        lake.root("GRANT SELECT ON owned TO analyst")
        assert lake.run(ALICE, "SELECT * FROM owned") == [(1,)]
        assert lake.run(OWEN, "SELECT * FROM owned") == [(1,)]
        lake.refusal(BOB, "SELECT * FROM owned")
        lake.run(OWEN, "ALTER TABLE owned SET AUTHORIZATION bob")
        assert lake.run(BOB, "SELECT * FROM owned") == [(1,)]
        lake.refusal(OWEN, "SELECT * FROM owned")
        assert lake.refusal(OWEN, "ALTER TABLE owned OWNER TO USER owen").code is ErrorCode.ACCESS_DENIED
    finally:
        lake.run(BOB, "DROP TABLE owned")
    assert lake.run(ROOT, "SHOW GRANTS") == []


@pytest.mark.rule("SESS-4")
def test_a_namesake_from_elsewhere_owns_nothing(lake: Users) -> None:
    lake.run(OWEN, "CREATE TABLE mine AS SELECT 1 AS id")
    namesake = replace(OWEN, issuer="https://elsewhere.test")
    try:
        lake.root("GRANT SELECT ON mine TO analyst")
        told = lake.refusal(namesake, "ALTER TABLE mine OWNER TO USER mallory")
        assert told.code is ErrorCode.ACCESS_DENIED
        lake.refusal(namesake, "SELECT * FROM mine")
        lake.run(OWEN, "ALTER TABLE mine OWNER TO USER owen")
    finally:
        lake.run(OWEN, "DROP TABLE mine")


def test_grants_follow_a_renamed_table(lake: Users) -> None:
    lake.run(OWEN, "CREATE TABLE first_name AS SELECT 1 AS id")
    lake.root("GRANT SELECT ON first_name TO analyst")
    lake.run(OWEN, "ALTER TABLE first_name RENAME TO last_name")
    try:
        assert lake.run(ALICE, "SELECT * FROM last_name") == [(1,)]
    finally:
        lake.run(OWEN, "DROP TABLE last_name")


# Roles


def test_roles_are_made_given_and_taken(lake: Users) -> None:
    lake.root("CREATE ROLE reader", "CREATE ROLE IF NOT EXISTS reader", "GRANT SELECT ON orders TO reader")
    lake.refusal(MALLORY, "SELECT * FROM orders")
    lake.root("GRANT reader TO USER mallory")
    assert lake.run(MALLORY, "SELECT * FROM orders") == [(7,)]
    assert lake.run(MALLORY, "SHOW CURRENT ROLES") == [("intern",), ("reader",)]
    assert lake.run(MALLORY, "SHOW ROLE GRANTS") == [
        ("intern", "user", "mallory", "NO"),
        ("reader", "user", "mallory", "NO"),
    ]
    assert lake.refusal(MALLORY, "GRANT reader TO USER bob").code is ErrorCode.ACCESS_DENIED
    lake.root("GRANT reader TO USER mallory WITH ADMIN OPTION")
    lake.run(MALLORY, "GRANT reader TO USER bob")
    assert lake.run(BOB, "SELECT * FROM orders") == [(7,)]
    lake.root("REVOKE ADMIN OPTION FOR reader FROM USER mallory")
    assert lake.refusal(MALLORY, "GRANT reader TO USER bob").code is ErrorCode.ACCESS_DENIED
    lake.root("REVOKE reader FROM USER mallory")
    lake.refusal(MALLORY, "SELECT * FROM orders")
    lake.root("DROP ROLE reader", "DROP ROLE IF EXISTS reader")
    assert "does not exist" in lake.refusal(ROOT, "DROP ROLE reader").message
    assert "does not exist" in lake.refusal(ROOT, "GRANT reader TO USER bob").message


@pytest.mark.rule("ENF-13", "POL-9")
@pytest.mark.parametrize("held_secs", [5.0, -1.0], ids=["at once", "later"])
def test_a_plan_does_not_outlive_a_role(lake: Users, monkeypatch: pytest.MonkeyPatch, held_secs: float) -> None:
    monkeypatch.setattr("sqe_core.query.run.statement_run._PLAN_SECS", held_secs)
    lake.root("CREATE ROLE reader", "GRANT SELECT ON orders TO reader", "GRANT reader TO USER mallory")
    service, session = lake.sqe.service, lake.session(MALLORY)
    planned = [service.plan(session, "SELECT id, current_role FROM orders") for _ in range(2)]
    assert planned[0].start().read_all()["id"].to_pylist() == [7]
    lake.root("REVOKE reader FROM USER mallory")
    with pytest.raises(ObjectNotFoundError):
        planned[1].start()


@pytest.mark.rule("ENF-13")
def test_a_plan_does_not_outlive_the_roles_of_a_login(lake: Users) -> None:
    lake.root("CREATE ROLE reader", "GRANT SELECT ON orders TO reader")
    service, session = lake.sqe.service, lake.session(MALLORY)
    session.identity = replace(MALLORY, roles=frozenset({"reader"}))
    planned = [service.plan(session, "SELECT * FROM orders") for _ in range(2)]
    assert planned[0].start().read_all().num_rows == 1
    session.identity = MALLORY  # as a renewed login with fewer roles does
    with pytest.raises(ObjectNotFoundError):
        planned[1].start()


@contextmanager
def made_meanwhile(lake: Users, monkeypatch: pytest.MonkeyPatch, taker: type, step: str) -> Iterator[None]:
    """Owen makes the table `fresh` right after this step of the next statement."""
    take_step, meanwhile = getattr(taker, step), ["CREATE TABLE fresh AS SELECT 2 AS id"]

    def before_another(run: object, *given: Any, **named: Any) -> Any:
        taken = take_step(run, *given, **named)
        if meanwhile:
            lake.run(OWEN, meanwhile.pop())
        return taken

    with monkeypatch.context() as patch:
        patch.setattr(taker, step, before_another)
        yield


@pytest.mark.rule("ENF-13", "POL-9")
@pytest.mark.parametrize("text", ["fresh AS SELECT 1 AS id", "fresh (id integer, mine integer)"])
def test_or_replace_does_not_replace_what_was_not_there(
    lake: Users, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    for user in ("mallory", "owen"):
        lake.root(f"GRANT CREATE ON SCHEMA lake.default TO USER {user}")
    with made_meanwhile(lake, monkeypatch, Judging, "judge"):
        error = lake.refusal(MALLORY, f"CREATE OR REPLACE TABLE {text}")
    assert error.code is ErrorCode.DUPLICATE_TABLE
    assert lake.run(OWEN, "SELECT * FROM fresh") == [(2,)]
    lake.run(OWEN, "DROP TABLE fresh")
    lake.run(MALLORY, f"CREATE OR REPLACE TABLE {text}")
    lake.run(MALLORY, f"CREATE OR REPLACE TABLE {text}")
    lake.run(MALLORY, "DROP TABLE fresh")


@pytest.mark.rule("POL-10")
@pytest.mark.parametrize("text", ["fresh AS SELECT 1 AS id", "fresh (id integer, mine integer)"])
def test_who_comes_second_owns_nothing(lake: Users, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """IF NOT EXISTS leaves the other one's table, and does not take it over."""
    for user in ("mallory", "owen"):
        lake.root(f"GRANT CREATE ON SCHEMA lake.default TO USER {user}")
    with made_meanwhile(lake, monkeypatch, Execution, "_new_tables"):
        lake.run(MALLORY, f"CREATE TABLE IF NOT EXISTS {text}")
    lake.root("GRANT SELECT ON fresh TO analyst")
    lake.refusal(MALLORY, "SELECT * FROM fresh")
    lake.refusal(MALLORY, "DROP TABLE fresh")
    assert lake.run(OWEN, "SELECT * FROM fresh") == [(2,)]
    lake.run(OWEN, "DROP TABLE fresh")


@pytest.mark.rule("ENF-13")
def test_an_ingest_does_not_outlive_a_role(lake: Users) -> None:
    lake.root(
        "CREATE TABLE IF NOT EXISTS inbox (id integer)",
        "CREATE ROLE loader",
        "GRANT SELECT, INSERT ON inbox TO loader",
        "GRANT loader TO USER mallory",
    )
    rows = pa.table({"id": pa.array([1], pa.int32())})

    def batches() -> Iterator[pa.RecordBatch]:
        yield from rows.to_batches()
        lake.root("REVOKE loader FROM USER mallory")

    request = IngestRequest(table="inbox", mode=IngestMode.APPEND)
    with pytest.raises(SqeError) as caught:
        lake.sqe.service.ingest(lake.session(MALLORY), request, rows.schema, batches())
    assert caught.value.code in (ErrorCode.TABLE_NOT_FOUND, ErrorCode.ACCESS_DENIED)
    assert lake.run(ROOT, "SELECT count(*) FROM inbox") == [(0,)]


def test_set_role_leaves_out_and_never_adds(lake: Users) -> None:
    lake.root(
        "CREATE ROLE one",
        "CREATE ROLE two",
        "GRANT one TO USER alice",
        "GRANT two TO USER alice",
        "GRANT SELECT ON people TO one",
        "GRANT SELECT ON orders TO two",
    )
    assert lake.run(ALICE, "SELECT count(*) FROM people, orders") == [(2,)]
    lake.run(ALICE, "SET ROLE one")
    assert lake.run(ALICE, "SELECT current_role") == [("one",)]
    assert lake.run(ALICE, "SELECT version() LIKE 'SQE _%'") == [(True,)]
    assert lake.run(ALICE, "SHOW CURRENT ROLES") == [("one",)]
    assert len(lake.run(ALICE, "SELECT * FROM people")) == 2
    lake.refusal(ALICE, "SELECT * FROM orders")
    assert lake.refusal(ALICE, "SET ROLE auditor").code is ErrorCode.ACCESS_DENIED
    lake.run(ALICE, "SET ROLE two")
    lake.refusal(ALICE, "SELECT * FROM people")
    lake.root("REVOKE two FROM USER alice")
    lake.refusal(ALICE, "SELECT * FROM orders")
    lake.run(ALICE, "SET ROLE NONE")
    assert lake.run(ALICE, "SHOW CURRENT ROLES") == []
    lake.refusal(ALICE, "SELECT * FROM people")
    lake.run(ALICE, "SET ROLE ALL")
    assert len(lake.run(ALICE, "SELECT * FROM people")) == 2


@pytest.mark.rule("POL-8")
def test_set_role_gets_rid_of_no_restriction(lake: Users) -> None:
    lake.root(
        "CREATE ROLE wide",
        "GRANT wide TO USER alice",
        "GRANT SELECT ON people TO wide",
        "GRANT SELECT ON orders TO wide",
        "GRANT ROWS WHERE region = 'EU' ON people TO analyst",
        "DENY SELECT ON orders TO analyst",
    )
    lake.run(ALICE, "SET ROLE wide")
    assert lake.run(ALICE, "SELECT id FROM people") == [(1,)]
    lake.refusal(ALICE, "SELECT * FROM orders")


def test_an_administrator_without_the_role_is_none(lake: Users) -> None:
    lake.run(ROOT, "SET ROLE NONE")
    assert lake.refusal(ROOT, "GRANT SELECT ON people TO analyst").code is ErrorCode.ACCESS_DENIED
    lake.run(ROOT, "SET ROLE ALL")
    lake.run(ROOT, "GRANT SELECT ON people TO analyst")


@pytest.mark.rule("POL-10")
@pytest.mark.parametrize("sql", ["CREATE VIEW {n} AS SELECT 1 AS a", "CREATE TABLE {n} (a integer)"])
def test_a_name_of_another_case_sheds_no_restriction(lake: Users, sql: str) -> None:
    lake.root(
        "GRANT SELECT ON SCHEMA default TO analyst",
        "GRANT CREATE, CREATE VIEW ON SCHEMA default TO USER owen",
        "GRANT ROWS WHERE region = 'EU' ON people TO analyst",
        "GRANT SELECT (id, ssn MASKED WITH 'NULL') ON people TO analyst",
        "GRANT SELECT ON people TO auditor",
    )
    kind = sql.split()[1]

    def unchanged() -> None:
        assert lake.run(ALICE, "SELECT id, ssn FROM people") == [(1, None)]
        assert len(lake.run(BOB, "SELECT * FROM people")) == 2

    lake.run(OWEN, sql.format(n='"PEOPLE"'))
    try:
        unchanged()
        lake.run(OWEN, f'ALTER {kind} "PEOPLE" RENAME TO other')
        unchanged()
        lake.run(OWEN, f'ALTER {kind} other RENAME TO "People"')
        unchanged()
        lake.run(OWEN, f'DROP {kind} "People"')
        unchanged()
    finally:
        for name in ('"PEOPLE"', "other", '"People"'):
            lake.run(OWEN, f"DROP {kind} IF EXISTS {name}")


@pytest.mark.rule("ENF-9")
def test_a_column_that_was_dropped_is_no_more_visible_in_old_versions(lake: Users) -> None:
    lake.root(
        "CREATE TABLE shrunk AS SELECT 1 AS id, 'ann' AS name, '123' AS ssn, 'x' AS note",
        "GRANT SELECT ON shrunk TO service_admin",
        "GRANT SELECT (id, name) ON shrunk TO analyst",
        "GRANT SELECT ON shrunk TO auditor",
        "GRANT SELECT (id, ssn MASKED WITH 'NULL') ON shrunk TO intern",
        "ALTER TABLE shrunk DROP COLUMN note",
    )
    try:
        [(old,)] = lake.run(ROOT, 'SELECT snapshot_id FROM "shrunk$snapshots"')
        travel = f"SELECT * FROM shrunk FOR VERSION AS OF {old}"
        assert lake.run(MALLORY, travel) == [(1, None)]
        lake.root("ALTER TABLE shrunk DROP COLUMN ssn")
        assert lake.run(ALICE, "SELECT * FROM shrunk") == [(1, "ann")]
        assert lake.run(ALICE, travel) == [(1, "ann")]
        for column in ("ssn", "note"):
            sql = f"SELECT {column} FROM shrunk FOR VERSION AS OF {old}"
            assert lake.refusal(ALICE, sql).code is ErrorCode.COLUMN_NOT_FOUND
        assert lake.run(BOB, travel) == [(1, "ann", "123", "x")]
        lake.root("GRANT ROWS WHERE id = 1 ON shrunk TO analyst")
        assert lake.run(ALICE, travel) == [(1, "ann")]
    finally:
        lake.root("DROP TABLE shrunk")


# Policies and tags


def test_policies_on_tables_and_tags(lake: Users) -> None:
    lake.root(
        "GRANT SELECT ON people TO analyst",
        "CREATE POLICY eu ON TABLE people ROW FILTER TO ROLE analyst USING (region = 'EU')",
        "CREATE POLICY last4 ON TABLE people COLUMN MASK CUSTOM TO ROLE analyst ON COLUMN ssn USING (right(ssn, 4))",
    )
    assert lake.run(ALICE, "SELECT id, ssn FROM people") == [(1, "6789")]
    lake.root("CREATE OR REPLACE POLICY last4 ON TABLE people COLUMN MASK MASK_NULL TO ROLE analyst ON COLUMN ssn")
    assert lake.run(ALICE, "SELECT id, ssn FROM people") == [(1, None)]
    assert lake.refusal(ROOT, "CREATE POLICY last4 ON TAG a COLUMN MASK HASH TO PUBLIC").code is not None
    assert lake.run(ROOT, "SHOW MASKING POLICY last4") == [
        ("last4", None, "lake.default", "people", "ssn", "NULL", None, "ROLE analyst", "true")
    ]
    lake.root("DROP POLICY eu", "DROP POLICY last4")
    assert len(lake.run(ALICE, "SELECT ssn FROM people WHERE ssn IS NOT NULL")) == 2
    lake.root("CREATE POLICY pii ON TAG PII COLUMN MASK 'REDACT' TO ROLE analyst")
    lake.root(
        "ALTER TABLE people SET TAGS (ssn = ('PII', 'id'))", "ALTER TABLE people ALTER COLUMN name SET TAG PII 'x'"
    )
    try:
        assert lake.run(ALICE, "SELECT name, ssn FROM people WHERE id = 1") == [("***", "***")]
        assert lake.run(ALICE, "SHOW TAGS ON people") == [
            ("name", "PII"),
            ("name", "PII=x"),
            ("ssn", "PII"),
            ("ssn", "id"),
        ]
        lake.root("ALTER TABLE people MODIFY COLUMN name UNSET TAG PII")
        assert lake.run(ALICE, "SELECT name, ssn FROM people WHERE id = 1") == [("ann", "***")]
    finally:
        lake.root("ALTER TABLE people UNSET TAGS (ssn, name)")
    assert lake.run(ALICE, "SELECT name, ssn FROM people WHERE id = 1") == [("ann", "123-45-6789")]
    lake.root("ALTER TABLE people ALTER COLUMN name SET MASKING POLICY pii")
    assert lake.run(ALICE, "SELECT name FROM people WHERE id = 1") == [("***",)]
    lake.root("ALTER TABLE people ALTER COLUMN name UNSET MASKING POLICY")
    assert lake.run(ALICE, "SELECT name FROM people WHERE id = 1") == [("ann",)]


@pytest.mark.rule("POL-6")
def test_a_tagged_column_that_is_renamed_closes_the_table(lake: Users) -> None:
    lake.root(
        "CREATE TABLE tagged AS SELECT 1 AS id, '123' AS ssn",
        "GRANT SELECT ON tagged TO analyst",
        "CREATE POLICY pii ON TAG PII COLUMN MASK REDACT TO ROLE analyst",
        "ALTER TABLE tagged SET TAGS (ssn = 'PII')",
    )
    try:
        assert lake.run(ALICE, "SELECT * FROM tagged") == [(1, "***")]
        lake.root("ALTER TABLE tagged RENAME COLUMN ssn TO number")
        assert lake.refusal(ALICE, "SELECT * FROM tagged").kind.value == "EXTERNAL"
        lake.root("ALTER TABLE tagged SET TAGS (number = 'PII')", "ALTER TABLE tagged UNSET TAGS (ssn)")
        assert lake.run(ALICE, "SELECT * FROM tagged") == [(1, "***")]
    finally:
        lake.root("DROP TABLE tagged")


@pytest.mark.rule("STMT-7")
def test_a_column_that_a_policy_names_is_for_administrators_to_drop(lake: Users) -> None:
    lake.root("CREATE TABLE watched AS SELECT 1 AS id, 'EU' AS region, '123' AS ssn, 'x' AS note, 'y' AS free")
    lake.root(
        "GRANT ALL PRIVILEGES ON watched TO USER bob",
        "GRANT SELECT ON watched TO analyst ROWS WHERE region = 'EU'",
        "CREATE POLICY last4 ON TABLE watched COLUMN MASK CUSTOM TO ROLE analyst ON COLUMN ssn USING (right({col}, 4))",
        "ALTER TABLE watched SET TAGS (note = 'PII')",
    )
    try:
        for column in ("region", "SSN", "note"):
            for sql in (
                f"ALTER TABLE watched DROP COLUMN {column}",
                f"ALTER TABLE watched RENAME COLUMN {column} TO b",
                f"ALTER TABLE watched DROP COLUMN IF EXISTS {column}",
            ):
                assert "only an administrator" in lake.refusal(BOB, sql).message
        lake.run(BOB, "ALTER TABLE watched RENAME COLUMN free TO freed")
        lake.run(BOB, "ALTER TABLE watched DROP COLUMN freed")
        lake.root("ALTER TABLE watched RENAME COLUMN ssn TO number")
        assert [row[0] for row in lake.run(BOB, "DESCRIBE watched")] == ["id", "region", "number", "note"]
    finally:
        lake.root("DROP POLICY last4", "DROP TABLE watched")


# Questions


@pytest.mark.rule("META-1", "META-2")
def test_show_grants(lake: Users) -> None:
    lake.root(
        "GRANT SELECT (id, ssn MASKED WITH 'HASH') ROWS WHERE region = 'EU' ON people TO analyst",
        "GRANT SELECT ON people TO auditor",
        "DENY SELECT (salary) ON people TO analyst",
    )
    shown = lake.run(ROOT, "SHOW GRANTS ON people")
    assert [(*row[:6], *row[7:]) for row in shown] == [
        (
            "SELECT",
            "lake.default.people",
            "role",
            "analyst",
            "allow",
            "root",
            "id, ssn",
            "ssn: 'HASH'",
            "region = 'EU'",
        ),
        ("SELECT", "lake.default.people", "role", "analyst", "deny", "root", "salary", None, None),
        ("SELECT", "lake.default.people", "role", "auditor", "allow", "root", None, None, None),
    ]
    mine = lake.run(ALICE, "SHOW GRANTS ON people")
    assert [(*row[:6], *row[7:]) for row in mine] == [
        ("SELECT", "lake.default.people", "role", "analyst", "allow", "root", "id, ssn", "ssn: hash", "(a row filter)")
    ]
    assert lake.run(ALICE, "SHOW GRANTS TO ROLE analyst") == mine
    assert lake.run(ALICE, "SHOW EFFECTIVE GRANTS") == [
        ("lake.default.people", "SELECT", "ROLE analyst", "(a row filter)", "ssn: hash")
    ]
    missing = lake.refusal(MALLORY, "SHOW GRANTS ON no_such")
    assert str(lake.refusal(MALLORY, "SHOW GRANTS ON people")) == str(missing).replace("no_such", "people")
    assert lake.run(ROOT, "SHOW EFFECTIVE GRANTS FOR USER bob") == []


@pytest.mark.rule("META-2")
def test_the_effective_policy(lake: Users) -> None:
    lake.root(
        "GRANT SELECT (id, ssn MASKED WITH 'HASH') ROWS WHERE region = 'EU' ON people TO USER alice",
    )
    assert lake.run(ALICE, "SHOW EFFECTIVE POLICY ON people") == [
        ("row_filter", None, "1", None),
        ("column_mask", "ssn", "hash", None),
    ]
    assert lake.run(ROOT, "SHOW EFFECTIVE POLICY FOR USER alice ON people") == [
        ("row_filter", None, "1", "granted"),
        ("column_mask", "ssn", "hash", "granted"),
        ("column_restriction", "name", None, "granted"),
        ("column_restriction", "region", None, "granted"),
        ("column_restriction", "salary", None, "granted"),
    ]
    assert lake.run(ROOT, "SHOW EFFECTIVE POLICY FOR 'bob' ON people") == [("denied", None, None, "not granted")]
    missing = lake.refusal(MALLORY, "SHOW EFFECTIVE POLICY ON no_such")
    assert str(lake.refusal(MALLORY, "SHOW EFFECTIVE POLICY ON people")) == str(missing).replace("no_such", "people")


@pytest.mark.rule("META-3")
def test_check_access(lake: Users) -> None:
    lake.root("GRANT SELECT ON people TO USER alice", "GRANT CREATE ON SCHEMA default TO USER alice")
    assert lake.run(ROOT, "CHECK ACCESS SELECT ON people FOR USER alice") == [(True, "granted")]
    assert lake.run(ROOT, "CHECK ACCESS INSERT ON people FOR USER alice") == [(False, "not granted")]
    assert lake.run(ROOT, "CHECK ACCESS SELECT ON no_such FOR USER alice") == [(False, "not allowed, or not there")]
    assert lake.run(ROOT, "CHECK ACCESS CREATE ON SCHEMA default FOR USER alice")[0][0] is True
    assert lake.run(ROOT, "CHECK ACCESS CREATE VIEW ON SCHEMA default FOR USER alice")[0][0] is False
    assert lake.run(ALICE, "CHECK ACCESS SELECT ON people") == [(True, "")]
    denied = lake.run(MALLORY, "CHECK ACCESS SELECT ON people")
    assert denied == lake.run(MALLORY, "CHECK ACCESS SELECT ON no_such") == [(False, "not allowed, or not there")]


def test_explain_access(lake: Users) -> None:
    lake.root(
        "GRANT SELECT (id, ssn MASKED WITH 'HASH') ROWS WHERE region = 'EU' ON people TO USER alice",
        "GRANT SELECT ON orders TO USER alice",
    )
    query = "SELECT * FROM people p JOIN orders o ON p.id = o.id"
    assert lake.run(ALICE, f"EXPLAIN ACCESS {query}") == [
        ("lake.default.people", "select", True, 1, "ssn: hash", None, None),
        ("lake.default.orders", "select", True, 0, "", None, None),
    ]
    assert lake.run(ROOT, f"EXPLAIN ACCESS {query} FOR USER 'alice'")[0] == (
        "lake.default.people",
        "select",
        True,
        1,
        "ssn: hash",
        "name, region, salary",
        "granted",
    )
    assert lake.run(ALICE, "EXPLAIN ACCESS INSERT INTO orders VALUES (1)") == [
        ("lake.default.orders", "insert", False, None, None, None, None)
    ]
    assert lake.run(ALICE, "EXPLAIN ACCESS DROP TABLE orders")[0][1:3] == ("drop", False)
    missing = lake.refusal(MALLORY, "EXPLAIN ACCESS SELECT * FROM no_such")
    assert str(lake.refusal(MALLORY, "EXPLAIN ACCESS SELECT * FROM people")) == str(missing).replace(
        "no_such", "people"
    )


def test_without_a_store_it_says_so(engine: SparkEngine, folder: Path, made: None) -> None:
    lake = Users(granted(engine, folder, enforcers=[AllowAllEnforcer()]))
    try:
        for sql in ("GRANT SELECT ON people TO r", "CREATE ROLE r", "SHOW GRANTS ON people", "DROP POLICY p"):
            error = lake.refusal(ROOT, sql)
            assert (error.code, error.message) == (ErrorCode.NOT_SUPPORTED, "Policy engine not configured"), sql
        assert lake.run(ROOT, "SHOW ROLES") == [("service_admin",)]
        assert lake.run(ROOT, "CHECK ACCESS SELECT ON people")[0][0] is True
    finally:
        lake.close()


def test_the_dialects_say_it_alike(lake: Users) -> None:
    lake.run(ROOT, 'GRANT SELECT ON "people" TO USER "alice"', dialect="trino")
    lake.run(ROOT, 'GRANT ROWS WHERE `region` = "EU" ON `people` TO USER alice', dialect="spark")
    assert lake.run(ALICE, "SELECT id FROM people") == [(1,)]
