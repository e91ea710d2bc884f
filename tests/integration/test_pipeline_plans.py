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
        ("SELECT ? + ?, 1 + (? * ?), ? % ?, ? - NULL, ? - ? + ?", [pa.int64()] * 10),
        ("SELECT id FROM t WHERE id > ? + ?", [pa.int64()] * 2),
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


@pytest.mark.rule("FLT-4")
@pytest.mark.parametrize(
    ("sql", "values", "answer"),
    [
        ("SELECT CASE WHEN ? THEN 1 ELSE ? END", [True, 2], [1]),
        ("SELECT count(*) FROM t WHERE ?", [True], None),
        ("SELECT id FROM t WHERE ?", [False], []),
        ("SELECT a.id FROM t a JOIN t b ON ?", [False], []),
        ("SELECT contains(?, 1)", [[1, 2]], [True]),
        ("SELECT element_at(?, 1)", [["x"]], ["x"]),
        ("SELECT transform(?, e -> e + 1)", [[1]], [[2]]),
        ("SELECT * FROM unnest(?)", [[1, 2]], [1, 2]),
        ("SELECT * FROM generate_series(?, ?)", [1, 3], [1, 2, 3]),
        ("SELECT ntile(?) OVER (ORDER BY a) FROM (VALUES 1) v(a)", [2], [1]),
        ("SELECT nth_value(a, ?) OVER (ORDER BY a) FROM (VALUES 1) v(a)", [1], [1]),
        ("SELECT approx_percentile(a, ?) FROM (VALUES 1) v(a)", [0.5], [1]),
        ("SELECT lag(a, ?) OVER (ORDER BY a) FROM (VALUES 1) v(a)", [1], [None]),
        ("SELECT count(*) FILTER (WHERE ?) FROM (VALUES 1, 2) v(a)", [True], [2]),
    ],
)
def test_what_only_values_tell_is_told_by_them(
    sqe: EmbeddedSqe, sql: str, values: list[object], answer: list[object] | None
) -> None:
    shape = sqe.sqe.service.describe(sqe.session, sql)
    assert shape.statement_kind == "query"
    if answer is not None:
        assert shape.schema is None
        assert shape.parameters.types == [pa.null()] * len(values)
    answered = sqe.execute(sql, values).read_all()
    assert answer is None or answered.column(0).to_pylist() == answer


@pytest.mark.parametrize(("word", "columns"), [("EXPLAIN", ["plan_type", "plan"]), ("DESCRIBE", ["column_name"])])
def test_statements_about_a_statement_take_its_parameters(sqe: EmbeddedSqe, word: str, columns: list[str]) -> None:
    for sql, values in (("SELECT ? AS x", [1]), ("SELECT element_at(?, 1) AS x", [["a"]])):
        shape = sqe.sqe.service.describe(sqe.session, f"{word} {sql}")
        assert shape.schema is not None
        assert shape.schema.names[: len(columns)] == columns
        assert shape.parameters.types == [pa.null()]
        answered = sqe.execute(f"{word} {sql}", values).read_all()
        assert answered.schema.equals(shape.schema)
        assert "x" in str(answered.to_pylist())
        with pytest.raises(UserError, match="1 parameter, 0 given"):
            sqe.execute(f"{word} {sql}")
    with pytest.raises(UserError, match="Column nope does not exist"):
        sqe.sqe.service.describe(sqe.session, f"{word} SELECT nope FROM t WHERE id = ?")


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT * FROM nowhere WHERE ?", ErrorCode.TABLE_NOT_FOUND),
        ("SELECT nope, element_at(?, 1) FROM t", ErrorCode.COLUMN_NOT_FOUND),
        ("SELECT nope(element_at(?, 1)) FROM t", ErrorCode.FUNCTION_NOT_FOUND),
        ("SELECT element_at(?, 1, 2)", ErrorCode.INVALID_ARGUMENTS),
        ("SELECT id FROM t GROUP BY name HAVING ?", ErrorCode.SEMANTIC_ERROR),
        ("SELECT element_at(?, 1) FROM t WHERE nope = 1", ErrorCode.COLUMN_NOT_FOUND),
        ("INSERT INTO t (id) VALUES (1, ?)", ErrorCode.SEMANTIC_ERROR),
        ("INSERT INTO nowhere VALUES (element_at(?, 1))", ErrorCode.TABLE_NOT_FOUND),
    ],
)
def test_what_no_value_makes_right_is_refused_at_once(sqe: EmbeddedSqe, sql: str, code: ErrorCode) -> None:
    with pytest.raises(UserError) as caught:
        sqe.sqe.service.describe(sqe.session, sql)
    assert caught.value.code is code


def test_what_is_wrong_beside_such_a_parameter_is_told_when_it_has_a_value(sqe: EmbeddedSqe) -> None:
    """The engine says one thing at a time."""
    for sql in ("SELECT element_at(?, 1), nope FROM t", "INSERT INTO t (nope) VALUES (element_at(?, 1))"):
        assert sqe.sqe.service.describe(sqe.session, sql).schema is None
        with pytest.raises(UserError, match="Column nope does not exist"):
            sqe.execute(sql, [["a"]])


def test_an_update_stays_one_when_only_values_tell_its_types(sqe: EmbeddedSqe) -> None:
    for sql, kind in (
        ("INSERT INTO t (name) VALUES (element_at(?, 1))", "insert"),
        ("DELETE FROM t WHERE element_at(?, 1) = id", "delete"),
        ("UPDATE t SET name = 'x' WHERE ?", "update"),
    ):
        shape = sqe.sqe.service.describe(sqe.session, sql)
        assert (shape.statement_kind, shape.schema, shape.parameters.types) == (kind, None, [pa.null()])


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
    with pytest.raises(QueryCancelledError):
        given_up.start()
    assert sqe.execute("SELECT a FROM later").read_all().to_pylist() == [{"a": 1}]
    service.plan(sqe.session, "DROP TABLE later").start().close()


def test_the_schema_of_a_plan_is_that_of_its_result(sqe: EmbeddedSqe) -> None:
    for sql in ("SELECT 1 AS a, 'x' AS b, DATE '2026-01-01' AS c", "SHOW TABLES", "EXPLAIN SELECT 1", "DESCRIBE t"):
        plan = sqe.sqe.service.plan(sqe.session, sql)
        table = plan.start().read_all()
        assert table.schema.equals(plan.schema, check_metadata=True)


@pytest.mark.parametrize(
    ("sql", "constant"),
    [
        ("SELECT 1", True),
        ("SELECT 1 + 1 AS two, 'a' AS b, CAST('2026-01-01' AS date) AS day, NULL AS n", True),
        ("SELECT 1 / 0 AS wrong", True),
        ("SELECT current_user", True),
        ("SELECT current_timestamp, now(), current_date", True),
        # What reads something, has another number of rows, or may take long.
        ("SELECT id FROM planned_early", False),
        ("SELECT (SELECT max(id) FROM planned_early) AS m", False),
        ("SELECT 1 WHERE EXISTS (SELECT * FROM planned_early)", False),
        ("SELECT 1 WHERE 1 = 0", False),
        ("SELECT 1 UNION ALL SELECT 2", False),
        ("SELECT 1 LIMIT 0", False),
        ("SELECT n FROM UNNEST(sequence(1, 3)) AS u(n)", False),
        ("SELECT count(*) AS n", False),
        ("SELECT repeat('x', 10) AS x", False),
        ("SELECT regexp_replace(repeat('a', 30), '(a+)+$', 'b') AS x", False),
        ("SELECT reduce(sequence(1, 1000), BIGINT '0', (a, x) -> a + x) AS x", False),
        ("INSERT INTO planned_early SELECT 1", False),
    ],
)
def test_a_constant_is_nothing_but_literals(sqe: EmbeddedSqe, sql: str, constant: bool) -> None:
    sqe.execute("CREATE TABLE IF NOT EXISTS planned_early (id int)").close()
    plan = sqe.sqe.service.plan(sqe.session, sql)
    assert plan.is_constant is constant
    plan.close()


@pytest.mark.parametrize("dialect", ["trino", "spark"])
@pytest.mark.parametrize(
    "expression",
    [
        "NULL",
        "CAST(NULL AS varchar(5))",
        "1 + 2 * 3 - 4",
        "7 / 2",
        "7 % 3",
        "-7 % 3",
        "1.10 + 2.2",
        "CAST(1 AS decimal(38, 2)) / 3",
        "CAST('99999999999999999999999999999999999.5' AS decimal(38, 1))",
        "2147483647 + 1",
        "9223372036854775807 + 1",
        "1 / 0",
        "1e0 / 0",
        "CAST('x' AS integer)",
        "CAST(300 AS tinyint)",
        "CAST(' 12 ' AS bigint)",
        "CAST(1.5e0 AS varchar(20))",
        "CAST(DATE '2024-02-29' AS timestamp)",
        "CAST('2024-02-30' AS date)",
        "CAST('today' AS date)",
        "CAST('epoch' AS timestamp)",
        "CAST(TIMESTAMP '2024-01-01 12:00:00' AS date)",
        "TIMESTAMP '2024-01-01 00:00:00 Europe/Rome'",
        "CAST(TIMESTAMP '2024-01-01 00:00:00 Europe/Rome' AS varchar(40))",
        "INTERVAL '3' DAY",
        "CAST(current_date AS varchar(4)) = CAST(current_timestamp AS varchar(4))",
        "current_timestamp - current_timestamp",
        "CAST('a' AS varbinary)",
        "'abc'",
        "true",
    ],
)
def test_a_row_of_constants_is_what_the_optimizer_would_make_of_it(
    sqe: EmbeddedSqe, expression: str, dialect: str
) -> None:
    def answer(sql: str) -> object:
        try:
            with sqe.sqe.service.execute(sqe.session, sql, dialect=dialect) as result:
                return result.read_all()
        except SqeError as error:
            return (error.code, error.message)

    assert answer(f"SELECT {expression} AS a") == answer(f"SELECT {expression} AS a LIMIT 1")


def test_the_time_is_one_moment_in_a_row_of_constants(sqe: EmbeddedSqe) -> None:
    for _ in range(5):
        row = sqe.execute("SELECT current_timestamp AS a, current_timestamp AS b, current_date AS c").read_all()
        assert row["a"].equals(row["b"])


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
    monkeypatch.setattr("sqe_core.query.run.statement_run._PLAN_SECS", -1.0)
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
