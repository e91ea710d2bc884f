"""Hidden columns and denied tables, through the whole pipeline: they are as if they were not there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sqe_core.bootstrap import EMBEDDED_CATALOG, EmbeddedSqe, Sqe, build
from sqe_core.engine.spark.engine import SparkEngine
from sqe_core.query.gateway import ConnectedSession
from sqe_core.query.run.admission import QueryLimits
from sqe_core.session.session import Session
from sqe_core.spi.errors import ErrorCode, SqeError
from sqe_core.spi.identity import Identity
from sqe_core.spi.names import ObjectName
from sqe_core.spi.policy import Decision, Effect, PolicyEnforcer, PolicyRequest, PolicyResponse, VisibilityRequest
from sqe_core.spi.protocol import StatementRequest, TableFilter

ANALYST = Identity(issuer="test", subject="analyst", username="analyst", provider="test", personal=False)
# Distinctive, so that a trace of them anywhere is found (TEST-2).
HIDDEN = "salary_canary"
VALUE = "424242"
DENIED = "vault_canary"


class HidingEnforcer(PolicyEnforcer):
    """Hides one column of `pay`, all columns of `empty`, and the table `vault_canary`."""

    def decide(self, request: PolicyRequest) -> PolicyResponse:
        return PolicyResponse(decisions=tuple(self._decision(access.resource.name) for access in request.accesses))

    def visible(self, request: VisibilityRequest) -> list[Effect]:
        return [Effect.DENY if getattr(name, "name", "") == DENIED else Effect.ALLOW for name in request.names]

    @staticmethod
    def _decision(name: object) -> Decision:
        table = name.name if isinstance(name, ObjectName) else ""
        if table == DENIED:
            return Decision.deny("a secret")
        hidden = {"pay": frozenset({HIDDEN}), "empty": frozenset({"a", "b"})}.get(table, frozenset())
        return Decision(effect=Effect.ALLOW, hidden_columns=hidden)


@dataclass
class Analyst:
    sqe: Sqe
    session: Session

    def run(self, sql: str) -> list[list[Any]]:
        result = self.sqe.service.execute(self.session, sql)
        return [list(row.values()) for batch in result for row in batch.to_pylist()]

    def columns(self, sql: str) -> list[str]:
        result = self.sqe.service.execute(self.session, sql)
        assert result.schema is not None
        names = list(result.schema.names)
        result.close()
        return names

    def refusal(self, sql: str) -> SqeError:
        with pytest.raises(SqeError) as caught:
            self.run(sql)
        error = caught.value
        told = f"{error} {error.message} {error.hint}"
        for word in (HIDDEN, VALUE, DENIED):
            assert word not in (error.hint or "")
            assert word in sql or word not in told, told
        assert error.code is not ErrorCode.GENERIC_INTERNAL_ERROR, told
        return error


@pytest.fixture(scope="module")
def analyst(sqe: EmbeddedSqe, engine: SparkEngine, warehouse: Path) -> Iterator[Analyst]:
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
    mount = sqe.session.catalogs.find(EMBEDDED_CATALOG)
    assert mount is not None
    limits = QueryLimits(timeout_secs=60, max_result_rows=0, max_sql_bytes=1 << 20)
    restricted = build(engine=engine, mounts=[mount], enforcers=[HidingEnforcer()], limits=limits)
    session = restricted.open_session(ANALYST, catalog=EMBEDDED_CATALOG, protocol="test")
    yield Analyst(restricted, session)
    restricted.service.close_session(session)


@pytest.mark.rule("ENF-9")
def test_star_is_the_visible_columns(analyst: Analyst) -> None:
    assert analyst.run("SELECT * FROM pay ORDER BY id") == [[1, "ann"], [2, "bob"]]
    assert analyst.columns("SELECT * FROM pay") == ["id", "name"]
    assert analyst.columns("SELECT p.* FROM pay p") == ["id", "name"]
    assert analyst.run("SELECT count(*) AS n FROM pay") == [[2]]
    assert analyst.run("SELECT * FROM names ORDER BY id") == [[1, "ann"], [2, "bob"]]
    assert analyst.columns("WITH x AS (SELECT * FROM pay) SELECT * FROM x") == ["id", "name"]


@pytest.mark.rule("ENF-4")
@pytest.mark.rule("ERR-5")
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
def test_a_hidden_column_is_one_that_does_not_exist(analyst: Analyst, sql: str) -> None:
    hidden = analyst.refusal(sql.format(c=HIDDEN))
    missing = analyst.refusal(sql.format(c="missing_canary"))
    assert hidden.code is ErrorCode.COLUMN_NOT_FOUND
    assert (hidden.code, str(hidden).replace(HIDDEN, "x"), hidden.hint) == (
        missing.code,
        str(missing).replace("missing_canary", "x"),
        missing.hint,
    )


@pytest.mark.rule("ERR-5")
def test_hidden_names_are_not_suggested(analyst: Analyst) -> None:
    assert analyst.refusal("SELECT salary_canar FROM pay").hint is None
    assert analyst.refusal("SELECT nme FROM pay").hint == 'did you mean "name"?'
    assert analyst.refusal("SELECT * FROM vault_canar").hint in (None, 'did you mean "vault_canar"?')


@pytest.mark.rule("ENF-4")
def test_a_natural_join_does_not_see_a_hidden_column(analyst: Analyst) -> None:
    assert analyst.columns("SELECT * FROM pay NATURAL JOIN bonus") == ["id", "name", HIDDEN]


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
def test_a_denied_table_is_one_that_does_not_exist(analyst: Analyst, sql: str) -> None:
    denied = analyst.refusal(sql.format(t=DENIED))
    missing = analyst.refusal(sql.format(t="missing_table"))
    assert (denied.code, str(denied).replace(DENIED, "x"), denied.hint) == (
        missing.code,
        str(missing).replace("missing_table", "x"),
        missing.hint,
    )


@pytest.mark.rule("ENF-10")
def test_a_table_without_visible_columns_is_refused(analyst: Analyst) -> None:
    for sql in ("SELECT * FROM empty", "SELECT count(*) FROM empty", "SELECT 1 FROM empty", "SELECT a FROM empty"):
        assert analyst.refusal(sql).code is ErrorCode.TABLE_NOT_FOUND


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
def test_the_query_around_a_view_does_not_stand_in_for_its_columns(analyst: Analyst, sql: str) -> None:
    analyst.refusal(sql)


@pytest.mark.rule("ERR-5")
@pytest.mark.parametrize(
    ("sql", "similar"),
    [
        ("UPDATE bonus SET id = 1 WHERE idd = 1", "id"),
        ("DELETE FROM bonus WHERE ide = 1", "id"),
        ("UPDATE bonus SET id = 1 WHERE salary_canari = 1", HIDDEN),
    ],
)
def test_a_write_suggests_visible_columns(sqe: EmbeddedSqe, analyst: Analyst, sql: str, similar: str) -> None:
    with pytest.raises(SqeError) as caught:
        sqe.execute(sql)
    assert similar in (caught.value.hint or "")


@pytest.mark.rule("VIEW-2")
def test_a_view_gives_no_more_than_its_tables(analyst: Analyst) -> None:
    assert analyst.run("SELECT * FROM costs ORDER BY id") == [[1], [2]]
    analyst.refusal(f"SELECT {HIDDEN} FROM costs")
    analyst.refusal("SELECT * FROM sums")
    analyst.refusal("SELECT * FROM entry")


@pytest.mark.rule("STMT-9")
def test_listings_do_not_know_what_is_hidden(analyst: Analyst) -> None:
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


@pytest.mark.rule("META-4")
@pytest.mark.rule("NAME-3")
def test_metadata_of_a_restricted_table_is_not_told(analyst: Analyst) -> None:
    for kind in ("files", "partitions", "manifests", "snapshots", "history", "refs"):
        analyst.refusal(f'SELECT * FROM "pay${kind}"')
    analyst.refusal("SHOW STATS FOR pay")


@pytest.mark.rule("DML-2")
def test_a_restricted_table_is_not_written(analyst: Analyst) -> None:
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
        analyst.refusal(sql)
    assert analyst.run("SELECT count(*) AS n FROM pay") == [[2]]


@pytest.mark.rule("NAME-5")
def test_an_old_version_hides_the_same(analyst: Analyst, sqe: EmbeddedSqe) -> None:
    (snapshot,) = sqe.execute('SELECT max(snapshot_id) AS s FROM "pay$snapshots"').read_all().column("s").to_pylist()
    assert analyst.columns(f"SELECT * FROM pay FOR VERSION AS OF {snapshot}") == ["id", "name"]
    analyst.refusal(f"SELECT {HIDDEN} FROM pay FOR VERSION AS OF {snapshot}")


@pytest.fixture
def connected(analyst: Analyst) -> ConnectedSession:
    """The analyst behind a wire protocol."""
    live = SimpleNamespace(session=analyst.session, ensure_usable=lambda: None)
    return ConnectedSession(
        cast(Any, live), analyst.sqe.service, take=lambda traffic: None, renew=lambda credential: None
    )


@pytest.mark.rule("FLT-5")
def test_listed_columns_are_the_secured_ones(connected: ConnectedSession) -> None:
    listed = {table.name.name: table.columns for table in connected.tables(TableFilter(with_columns=True))}
    assert DENIED not in listed
    assert listed["pay"] is not None
    assert listed["pay"].names == ["id", "name"]
    assert HIDDEN not in str(listed["costs"])


@pytest.mark.rule("FLT-5")
@pytest.mark.parametrize("pattern", [DENIED, "vault%", "%lt_canary", r"\vault%"])
def test_patterns_find_no_denied_table(connected: ConnectedSession, pattern: str) -> None:
    assert list(connected.tables(TableFilter(table_pattern=pattern, with_columns=True))) == []


@pytest.mark.rule("FLT-4")
def test_what_is_prepared_is_described_by_its_secured_plan(connected: ConnectedSession) -> None:
    described = connected.begin(StatementRequest(sql="SELECT * FROM pay WHERE id = ?")).describe()
    assert described.schema is not None
    assert described.schema.names == ["id", "name"]
    plan = connected.begin(StatementRequest(sql="SELECT * FROM pay"))
    plan.plan()
    assert plan.schema is not None
    assert plan.schema.names == ["id", "name"]
    plan.close()
