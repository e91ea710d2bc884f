"""Statements that are judged first and run later, and statements that are only described."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from sqe_core.bootstrap import EmbeddedSqe
from sqe_core.spi.errors import ErrorCode, QueryCancelledError, SqeError, UserError


@pytest.fixture(scope="module", autouse=True)
def table(sqe: EmbeddedSqe) -> Iterator[None]:
    sqe.execute("CREATE TABLE t (id bigint, name varchar, d date, p decimal(10, 2), ts timestamp)").close()
    yield
    sqe.execute("DROP TABLE t").close()


@pytest.mark.rule("FLT-4")
@pytest.mark.parametrize(
    ("sql", "types"),
    [
        ("SELECT ? AS a", [pa.null()]),
        ("SELECT id FROM t WHERE id = ?", [pa.int64()]),
        ("SELECT id FROM t WHERE name LIKE ? AND d > ? AND p IN (?, ?)", ["string", "date", "decimal", "decimal"]),
        ("SELECT id FROM t WHERE name = ? AND ? <> name OR name > ?", ["string", "string", "string"]),
        ("SELECT id FROM t WHERE name BETWEEN ? AND ? AND upper(name) = ?", ["string", "string", "string"]),
        ("SELECT id FROM t WHERE d = ? AND p < ? AND ts = ?", ["date", "decimal", "timestamp"]),
        ("SELECT id + ? AS x FROM t LIMIT ?", [pa.int64(), pa.int64()]),
        ("SELECT CASE WHEN id > ? THEN ? ELSE 'a' END AS c FROM t", [pa.int64(), "string"]),
        ("SELECT name FROM t WHERE id BETWEEN :low AND :high", [pa.int64(), pa.int64()]),
        ("SELECT id FROM t WHERE id IN (SELECT id FROM t WHERE d = ?)", ["date"]),
        ("INSERT INTO t VALUES (?, ?, ?, ?, ?)", [pa.int64(), "string", "date", "decimal", "timestamp"]),
        ("INSERT INTO t (name, id) VALUES (?, ?), (?, ?)", ["string", pa.int64(), "string", pa.int64()]),
        ("UPDATE t SET name = ?, p = ? WHERE ts < ?", ["string", "decimal", "timestamp"]),
        ("DELETE FROM t WHERE id = ?", [pa.int64()]),
        (
            "MERGE INTO t USING (SELECT ? AS i, ? AS n) s ON t.id = s.i WHEN MATCHED THEN UPDATE SET name = s.n "
            "WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.i, s.n)",
            [pa.int64(), "string"],
        ),
        ("SELECT CAST(? AS varchar), CAST(? AS varchar(3)), TRY_CAST(? AS varchar)", ["string"] * 3),
        ("SELECT CAST(? AS bigint), CAST(? AS integer)", [pa.int64(), pa.int32()]),
        ("SELECT CAST(? AS smallint), TRY_CAST(? AS tinyint)", [pa.int16(), pa.int8()]),
        ("SELECT CAST(? AS time(6)), TRY_CAST(? AS time), CAST(? AS json)", [pa.time64("us")] * 2 + ["string"]),
        ("SELECT CAST(? AS date), CAST(? AS timestamp), CAST(? AS decimal(10, 2))", ["date", "timestamp", "decimal"]),
        ("SELECT CAST(? AS timestamp(3)), CAST(? AS boolean)", ["timestamp", pa.bool_()]),
        ("SELECT CAST(? AS varbinary), CAST(? AS uuid)", [pa.binary(), "string"]),
        ("SELECT CAST(? AS double), CAST(? AS real)", [pa.float64(), pa.float32()]),
        ("SELECT ? || 'x', 'x' || ?, upper(?), name LIKE ?, ? LIKE name FROM t", ["string"] * 5),
        ("SELECT id FROM t WHERE ? BETWEEN d AND d AND ? IN (name, 'a')", ["date", "string"]),
        ("SELECT nullif(?, name) FROM t", [pa.null()]),
        ("SHOW TABLES", []),
    ],
)
def test_the_types_of_parameters_are_found(sqe: EmbeddedSqe, sql: str, types: list[object]) -> None:
    named = {
        "string": pa.string(),
        "date": pa.date32(),
        "decimal": pa.decimal128(10, 2),
        "timestamp": pa.timestamp("us"),
    }
    shape = sqe.sqe.service.describe(sqe.session, sql)
    assert shape.parameters.types == [named.get(one, one) if isinstance(one, str) else one for one in types]
    assert (shape.schema is None) == sql.startswith(("INSERT", "UPDATE", "DELETE", "MERGE"))


def test_a_description_runs_nothing_and_says_what_is_wrong(sqe: EmbeddedSqe) -> None:
    shape = sqe.sqe.service.describe(sqe.session, "CREATE TABLE never AS SELECT id FROM t WHERE id = ?")
    assert shape.schema is None
    assert shape.parameters.types == [pa.int64()]
    assert sqe.execute("SHOW TABLES LIKE 'never'").read_all().num_rows == 0
    for sql in ("SELECT nope FROM t WHERE id = ?", "SELECT nope FROM t"):
        with pytest.raises(UserError, match="Column nope does not exist"):
            sqe.sqe.service.describe(sqe.session, sql)


def test_a_plan_changes_nothing_until_it_is_started(sqe: EmbeddedSqe) -> None:
    service = sqe.sqe.service
    plan = service.plan(sqe.session, "CREATE TABLE later AS SELECT 1 AS a")
    assert plan.schema is None
    assert sqe.execute("SHOW TABLES LIKE 'later'").read_all().num_rows == 0
    assert plan.start().affected_rows == 1
    with pytest.raises(UserError):
        plan.start()
    given_up = service.plan(sqe.session, "DROP TABLE later")
    given_up.close()
    with pytest.raises(UserError):
        given_up.start()
    assert sqe.execute("SELECT a FROM later").read_all().to_pylist() == [{"a": 1}]
    service.plan(sqe.session, "DROP TABLE later").start().close()


def test_the_schema_of_a_plan_is_that_of_its_result(sqe: EmbeddedSqe) -> None:
    for sql in ("SELECT 1 AS a, 'x' AS b, DATE '2026-01-01' AS c", "SHOW TABLES", "EXPLAIN SELECT 1", "DESCRIBE t"):
        plan = sqe.sqe.service.plan(sqe.session, sql)
        table = plan.start().read_all()
        assert table.schema.equals(plan.schema, check_metadata=True)


def test_a_plan_holds_no_slot_and_can_be_cancelled(sqe: EmbeddedSqe) -> None:
    service = sqe.sqe.service
    plans = [service.plan(sqe.session, "SELECT 1 AS a") for _ in range(30)]  # more than a user may run at once
    service.cancel(sqe.session)
    assert plans[0].start().read_all().num_rows == 1
    for plan in plans[1:]:
        plan.close()


def test_a_plan_of_yesterday_is_judged_again(sqe: EmbeddedSqe, monkeypatch: pytest.MonkeyPatch) -> None:
    service = sqe.sqe.service
    sqe.execute("CREATE TABLE moved (a bigint)").close()
    plan = service.plan(sqe.session, "SELECT * FROM moved")
    gone = service.plan(sqe.session, "SELECT * FROM moved")
    monkeypatch.setattr("sqe_core.query.run._PLAN_SECS", -1.0)
    sqe.execute("ALTER TABLE moved ADD COLUMN b bigint").close()
    with pytest.raises(UserError, match="has changed"):
        plan.start()
    sqe.execute("DROP TABLE moved").close()
    with pytest.raises(SqeError) as caught:
        gone.start()
    assert caught.value.code is ErrorCode.TABLE_NOT_FOUND


def test_an_ended_session_ends_its_plans(sqe: EmbeddedSqe) -> None:
    session = sqe.sqe.open_session(sqe.session.identity, catalog="iceberg", protocol="test")
    plan = sqe.sqe.service.plan(session, "SELECT 1 AS a")
    sqe.sqe.service.close_session(session)
    with pytest.raises((QueryCancelledError, UserError)):
        plan.start()


def test_merge_takes_its_rows_from_values_and_constants(sqe: EmbeddedSqe) -> None:
    sqe.execute("CREATE TABLE m (id bigint, name varchar)").close()
    matched = "WHEN MATCHED THEN UPDATE SET name = s.n WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.i, s.n)"
    for source in (
        "(SELECT 1 AS i, 'a' AS n)",
        "(VALUES (1, 'b'), (2, 'c'))",
        "(SELECT max(id) + 1 AS i, 'd' AS n FROM m)",
    ):
        alias = "s(i, n)" if "VALUES" in source else "s"
        sqe.execute(f"MERGE INTO m USING {source} {alias} ON m.id = s.i {matched}").close()
    rows = sqe.execute("SELECT id, name FROM m ORDER BY id").read_all().to_pylist()
    assert [tuple(row.values()) for row in rows] == [(1, "b"), (2, "c"), (3, "d")]
    sqe.execute("DROP TABLE m").close()


def test_the_history_knows_how_a_plan_ended(sqe: EmbeddedSqe) -> None:
    service, history = sqe.sqe.service, sqe.sqe.history

    def state(query_id: str) -> str:
        (entry,) = (entry for entry in history.entries() if entry.query_id == query_id)
        return entry.state

    fetched, dropped, waiting = (service.plan(sqe.session, "SELECT 1 AS a") for _ in range(3))
    fetched.start().read_all()
    dropped.close()
    assert [state(plan.query_id) for plan in (fetched, dropped, waiting)] == ["FINISHED", "CANCELED", "RUNNING"]
    waiting.close()
