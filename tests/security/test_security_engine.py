"""What keeps statements and sessions apart inside the engine, on a real one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sqe_core.bootstrap import EMBEDDED_CATALOG, OWNER, EmbeddedSqe
from sqe_core.catalog.backends import SqliteBackend
from sqe_core.engine.port import EngineExecutionError, EngineSession
from sqe_core.engine.spark.engine import SparkEngine
from sqe_core.query.judge import allowed
from sqe_core.query.judge.inspect import PlanLimits, inspect
from sqe_core.session.statement_session import StatementSession
from sqe_core.spi.errors import QueryCancelledError, SqeError
from sqe_core.sql.statement import StatementKind


@pytest.fixture
def spark(engine: SparkEngine) -> Iterator[EngineSession]:
    """A session of the engine, below the pipeline."""
    session = engine.open_session()
    yield session
    session.close()


def names_in(session: EngineSession, sql: str) -> set[str]:
    return {".".join(relation.parts) for relation in session.parse(sql).description.relations if not relation.cte}


@pytest.mark.rule("ENF-5")
@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("SELECT * FROM a TIMESTAMP AS OF (SELECT max(x) FROM b)", {"a", "b"}),
        ("SELECT (SELECT max(x) FROM b) FROM a", {"a", "b"}),
        ("SELECT * FROM a WHERE x IN (SELECT y FROM b) AND EXISTS (SELECT 1 FROM c)", {"a", "b", "c"}),
        ("SELECT * FROM a ORDER BY (SELECT max(x) FROM b) LIMIT (SELECT 1 FROM c)", {"a", "b", "c"}),
        (
            "SELECT sum(x) FILTER (WHERE x > (SELECT 1 FROM b)) OVER (ORDER BY (SELECT 1 FROM c)) FROM a",
            {"a", "b", "c"},
        ),
        ("SELECT * FROM a, LATERAL (SELECT * FROM b WHERE b.x = a.x)", {"a", "b"}),
        ("SELECT * FROM a LATERAL VIEW explode((SELECT collect_list(x) FROM b)) e AS y", {"a", "b"}),
        ("SELECT * FROM explode((SELECT collect_list(x) FROM b))", {"b"}),
        ("SELECT * FROM a JOIN b ON a.x = (SELECT 1 FROM c)", {"a", "b", "c"}),
        ("WITH x AS (SELECT * FROM a), y AS (SELECT * FROM x, b) SELECT * FROM y, c", {"a", "b", "c"}),
        ("WITH a AS (SELECT * FROM a) SELECT * FROM a", {"a"}),
        ("SELECT * FROM STREAM(a)", {"a"}),
        ("SELECT * FROM f(TABLE(a))", {"a"}),
        ("SELECT * FROM f(TABLE(SELECT * FROM a))", {"a"}),
        ("SELECT * FROM a PIVOT (sum(x) FOR y IN (1)) UNION SELECT * FROM b EXCEPT SELECT * FROM c", {"a", "b", "c"}),
        ("FROM a |> WHERE x > (SELECT 1 FROM b) |> JOIN c USING (x)", {"a", "b", "c"}),
        ("INSERT INTO a SELECT * FROM b", {"a", "b"}),
        ("INSERT INTO a REPLACE WHERE x > (SELECT 1 FROM c) SELECT * FROM b", {"a", "b", "c"}),
        ("UPDATE a SET x = (SELECT 1 FROM b) WHERE y IN (SELECT 1 FROM c)", {"a", "b", "c"}),
        ("DELETE FROM a WHERE x IN (SELECT 1 FROM b)", {"a", "b"}),
        (
            "MERGE INTO a USING b ON a.x = b.x WHEN MATCHED AND b.y > (SELECT 1 FROM c)"
            " THEN UPDATE SET x = (SELECT 1 FROM d) WHEN NOT MATCHED THEN INSERT (x) VALUES ((SELECT 1 FROM e))",
            {"a", "b", "c", "d", "e"},
        ),
        ("CREATE TABLE a AS SELECT * FROM b", {"a", "b"}),
        ("CREATE VIEW a AS SELECT * FROM b", {"a", "b"}),
        ("CREATE TABLE a (x INT DEFAULT (SELECT 1 FROM b))", {"a", "b"}),
        ("ALTER TABLE a ADD CONSTRAINT c CHECK (x > (SELECT 1 FROM b))", {"a", "b"}),
        ("EXPLAIN EXTENDED SELECT * FROM a", {"a"}),
        ("DESCRIBE SELECT * FROM a", {"a"}),
        ("EXPLAIN INSERT INTO a SELECT * FROM b", {"a", "b"}),
        ("CACHE TABLE a AS SELECT * FROM b", {"b"}),
        ("DECLARE x INT = (SELECT 1 FROM a)", {"a"}),
        ("SET VAR x = (SELECT 1 FROM a)", {"a"}),
    ],
)
def test_the_walk_finds_every_name(spark: EngineSession, sql: str, names: set[str]) -> None:
    assert names <= names_in(spark, sql)


@pytest.mark.rule("ENF-5", "LIM-4")
def test_the_walk_of_a_deep_plan_ends(spark: EngineSession) -> None:
    deep = "SELECT * FROM a"
    for number in range(60):
        deep = f"SELECT * FROM ({deep}) q{number}"
    description = spark.parse(deep).description
    assert description.depth > 60
    assert {relation.parts for relation in description.relations} == {("a",)}
    wide = "SELECT 1 FROM a WHERE " + " OR ".join(f"x = {number}" for number in range(5000))
    assert spark.parse(wide).description.expression_count > 10_000


@pytest.mark.rule("ENF-1", "STMT-1")
@pytest.mark.parametrize(
    "sql",
    [
        *("SHOW TABLES", "SHOW CATALOGS", "SHOW FUNCTIONS", "USE x", "SET x = 1", "RESET", "CLEAR CACHE", "LIST JARS"),
        *(
            "DESCRIBE t",
            "EXPLAIN SELECT 1",
            "DESCRIBE FUNCTION abs",
            "REFRESH '/x'",
            "CREATE NAMESPACE n",
            "DROP VIEW v",
        ),
        *(
            "CREATE VIEW v AS SELECT 1",
            "CREATE TEMPORARY VIEW v AS SELECT 1",
            "DROP NAMESPACE n CASCADE",
            "CALL c.s.p()",
        ),
        *(
            "ANALYZE TABLE t COMPUTE STATISTICS",
            "COMMENT ON SCHEMA n IS 'x'",
            "CREATE FUNCTION f AS 'x'",
            "ADD JAR '/x'",
        ),
        *("EXECUTE IMMEDIATE 'SELECT 1'", "BEGIN SELECT 1; END", "DECLARE x INT", "TRUNCATE TABLE t PARTITION (a = 1)"),
        *("ALTER TABLE t RENAME TO u", "ALTER TABLE t SET LOCATION '/x'", "ALTER VIEW v SET TBLPROPERTIES ('a' = 'b')"),
        *("LOAD DATA INPATH '/x' INTO TABLE t", "INSERT OVERWRITE DIRECTORY '/x' USING csv SELECT 1", "REPAIR TABLE t"),
    ],
)
def test_statements_that_never_reach_the_engine_are_refused_there_too(spark: EngineSession, sql: str) -> None:
    """The recogniser would not let them pass; were it wrong, the plan is judged again, whatever it was taken for."""
    try:
        description = spark.parse(sql).description
    except EngineExecutionError:
        return
    for kind in StatementKind:
        with pytest.raises(SqeError):
            inspect(description, kind=kind, limits=PlanLimits())


@pytest.mark.rule("ENF-3", "ISO-2")
def test_names_resolve_in_the_session_that_asks(engine: SparkEngine, tmp_path: Path) -> None:
    """Whichever session was active last, in this thread or another."""
    first, second = engine.open_session(), engine.open_session()
    try:
        for session, alias in ((first, "one"), (second, "two")):
            session.mount(alias, SqliteBackend.at(tmp_path / alias).spark_properties(OWNER))
            session.catalog(alias).create_namespace(("n",), {})
        outcomes: list[Any] = []

        def look(session: EngineSession, alias: str) -> None:
            plan = session.parse(f"CREATE TABLE {alias}.n.t (a INT)")
            try:
                node = session.analyse(plan, tag=f"tag-{alias}-{len(outcomes)}").description.nodes[-1]
                outcomes.append((session is first, alias, node.fields["catalog"]))
            except EngineExecutionError:
                outcomes.append((session is first, alias, None))

        for session, alias in [(first, "one"), (second, "two"), (first, "two"), (second, "one")] * 3:
            thread = threading.Thread(target=look, args=(session, alias))
            thread.start()
            thread.join()
            look(session, alias)
        for is_first, alias, found in outcomes:
            # In the other session the alias names nothing, or a schema of Spark's own empty catalog.
            assert (found == alias) == (is_first == (alias == "one")), outcomes
        assert len(outcomes) == 24
    finally:
        first.close()
        second.close()


@pytest.mark.rule("ENF-7")
def test_a_replaced_table_keeps_the_names_that_the_user_gave(sqe: EmbeddedSqe) -> None:
    sqe.execute("CREATE TABLE named AS SELECT 1 AS a").close()
    for sql in (
        "SELECT named.a FROM named",
        "SELECT default.named.a FROM default.named",
        "SELECT iceberg.default.named.a FROM iceberg.default.named",
        "SELECT x.a FROM named AS x",
        "SELECT x.b FROM named AS x (b)",
        "SELECT named.a FROM named TABLESAMPLE BERNOULLI (100)",
        "SELECT x.a FROM named FOR TIMESTAMP AS OF TIMESTAMP '2999-01-01 00:00:00' AS x",
        "SELECT l.a FROM named l JOIN named r ON l.a = r.a",
        "SELECT a FROM named WHERE named.a = (SELECT max(named.a) FROM named)",
        "WITH w AS (SELECT * FROM named) SELECT w.a FROM w",
    ):
        assert list(sqe.execute(sql).read_all().column(0).to_pylist()) == [1], sql
    for sql in ("SELECT named.a FROM named AS x", "SELECT other.a FROM named"):
        with pytest.raises(SqeError):
            sqe.execute(sql).read_all()


@pytest.mark.rule("ENF-2", "ENF-13")
def test_what_was_verified_is_what_runs(sqe: EmbeddedSqe, monkeypatch: pytest.MonkeyPatch) -> None:
    session = sqe.session.engine_session()
    parsed: list[str] = []
    analysed: list[object] = []
    executed: list[object] = []
    parse, analyse, execute = session.parse, session.analyse, session.execute
    monkeypatch.setattr(session, "parse", lambda sql, *a, **k: parsed.append(sql) or parse(sql, *a, **k))

    def remember(*args: Any, **named: Any) -> Any:
        assert not sqe.session.sides._idle, "nobody else works in it"
        analysed.append(analyse(*args, **named))
        return analysed[-1]

    def run(plan: Any, **named: Any) -> Any:
        assert not sqe.session.sides._idle, "nobody else works in it"
        executed.append(plan)
        return execute(plan, **named)

    monkeypatch.setattr(session, "analyse", remember)
    monkeypatch.setattr(session, "execute", run)
    assert sqe.execute("SELECT 41 + 1 AS x").read_all().column(0).to_pylist() == [42]
    assert len(executed) == 1
    assert executed[0] is analysed[-1]
    assert len(parsed) == 1


@pytest.mark.rule("ENF-13")
def test_statements_at_once_never_share_an_engine_session(sqe: EmbeddedSqe) -> None:
    with StatementSession(sqe.session).engine() as first:
        assert sqe.execute("SELECT 1 AS x").read_all().num_rows == 1
        assert sqe.session.engine_session() is first
        assert len(sqe.session.sides) == 2


@pytest.mark.rule("ISO-1", "ISO-6")
def test_nothing_else_runs_in_the_jvm(engine: SparkEngine) -> None:
    conf = engine.context._jvm.org.apache.spark.SparkEnv.get().conf()
    for key in (
        *("spark.plugins", "spark.extraListeners", "spark.sql.queryExecutionListeners", "spark.jars.packages"),
        *("spark.sql.streaming.streamingQueryListeners", "spark.connect.grpc.binding.port", "spark.jars.repositories"),
        *("spark.hadoop.hive.server2.thrift.port", "spark.submit.pyFiles", "spark.files", "spark.archives"),
    ):
        assert not conf.get(key, ""), key
    assert conf.get("spark.sql.extensions") == (
        "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions,sqe.bridge.boot.Extensions"
    )


@pytest.mark.rule("FUNC-1")
def test_every_function_of_the_engine_is_classified(engine: SparkEngine) -> None:
    """A function that a new Spark brings does not exist for users until somebody looked at it."""
    analysis = engine.context._jvm.org.apache.spark.sql.catalyst.analysis
    lists = allowed.functions()

    def names(registry: Any) -> set[str]:
        found = getattr(registry, "MODULE$").builtin().listFunction()
        return {str(found.apply(place).funcName()) for place in range(found.size())}

    scalar = names(getattr(analysis, "FunctionRegistry$"))
    table = names(getattr(analysis, "TableFunctionRegistry$"))
    assert len(scalar) > 500
    assert scalar == lists.callable | lists.denied.keys()
    assert table == lists.table | lists.denied_table.keys()
    assert not lists.callable & lists.denied.keys()
    assert not lists.table & lists.denied_table.keys()


@pytest.mark.rule("ISO-8")
def test_what_one_session_writes_another_sees_at_once(sqe: EmbeddedSqe) -> None:
    service = sqe.sqe.service
    other = sqe.sqe.open_session(OWNER, catalog=EMBEDDED_CATALOG, protocol="test")
    try:
        sqe.execute("CREATE TABLE fresh (n integer)").close()
        for count in range(3):
            rows = service.execute(other, "SELECT count(*) AS n FROM fresh").read_all()
            assert rows.column(0).to_pylist() == [count]
            sqe.execute(f"INSERT INTO fresh VALUES {count}").close()
    finally:
        service.close_session(other)


@pytest.mark.rule("ISO-9")
def test_cancelling_one_statement_leaves_the_others(sqe: EmbeddedSqe) -> None:
    service = sqe.sqe.service
    victim = sqe.sqe.open_session(OWNER, catalog=EMBEDDED_CATALOG, protocol="test")
    outcome: list[object] = []

    def run_for_long() -> None:
        try:
            service.execute(
                victim, "SELECT sum(a.n * b.n) AS s FROM range(10000000) a(n), range(1000000) b(n)"
            ).read_all()
            outcome.append("finished")
        except SqeError as error:
            outcome.append(error)

    thread = threading.Thread(target=run_for_long)
    thread.start()
    try:
        while service.progress(victim) is None and thread.is_alive():
            thread.join(0.05)
        bystander = service.execute(sqe.session, "SELECT count(*) AS n FROM range(20000000)")
        assert service.cancel(sqe.sqe.open_session(OWNER, catalog=EMBEDDED_CATALOG, protocol="test")) == 0
        assert service.cancel(victim) == 1
        assert bystander.read_all().column(0).to_pylist() == [20_000_000]
        thread.join(30)
        assert isinstance(outcome[0], QueryCancelledError), outcome
    finally:
        service.close_session(victim)
        thread.join(30)
