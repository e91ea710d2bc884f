"""Plans through the real bridge: what is described, what a rewrite does to every shape, and what analysis then says."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from testbed.clocks import PROMPT_SECS

from sqe_core.engine.port import (
    AnalysedPlan,
    EngineExecutionError,
    EnginePlan,
    InlinedPlan,
    InlinedRows,
    PlanDescription,
    RelationKind,
    RenamedTarget,
    Replacement,
    SecuredTable,
)
from sqe_core.engine.spark.engine import SparkEngine
from sqe_core.engine.spark.plan import SparkAnalysedPlan
from sqe_core.engine.spark.session import SparkEngineSession
from sqe_core.spi.errors import QueryCancelledError, UserError


@dataclass(frozen=True, slots=True)
class Lake:
    """A session with one mounted catalog that has the tables ns.t, ns.u and ns.w."""

    session: SparkEngineSession
    alias: str

    def name(self, *parts: str) -> tuple[str, ...]:
        return (self.alias, *parts)

    def text(self, *parts: str) -> str:
        return ".".join(f"`{part}`" for part in self.name(*parts))

    def sql(self, text: str) -> None:
        """Run a statement outside of the port, to lay the ground."""
        sessions = self.session.context._jvm.org.apache.spark.sql.classic.SparkSession
        sessions.setActiveSession(self.session.spark._jsparkSession)
        self.session.spark._jsparkSession.sql(text).collectAsList()
        sessions.clearActiveSession()

    def secure_all(self, plan: EnginePlan, **more: Replacement) -> EnginePlan:
        """Replace every relation: targets get the internal name, all others a secured table of the same last part."""
        replacements: list[Replacement] = []
        for relation in plan.description.relations:
            if relation.cte or relation.kind is RelationKind.OTHER:
                continue
            internal = self.name("ns", relation.parts[-1])
            visible = ("lake", "ns", relation.parts[-1])
            if relation.kind is RelationKind.NAMESPACE:
                internal = self.name(relation.parts[-1])
            if relation.kind is not RelationKind.RELATION or relation.field in ("table", "targetTable"):
                replacements.append(RenamedTarget(index=relation.index, parts=internal, visible_name=visible))
            else:
                sql = f"SELECT m.* FROM {self.text('ns', relation.parts[-1])} AS m"
                replacements.append(SecuredTable(index=relation.index, sql=sql, visible_name=visible))
        return self.session.rewrite(plan, replacements)

    def analyse(self, sql: str, parameters: Mapping[str, Any] | None = None) -> SparkAnalysedPlan:
        plan = self.secure_all(self.session.parse(sql, parameters or {}))
        analysed = self.session.analyse(plan, tag=uuid.uuid4().hex)
        assert isinstance(analysed, SparkAnalysedPlan)
        return analysed


@pytest.fixture(scope="module")
def lake(engine: SparkEngine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    folder = tmp_path_factory.mktemp("bridge_plan")
    session = engine.open_session()
    assert isinstance(session, SparkEngineSession)
    lake = Lake(session, f"_sqe_c_{uuid.uuid4().hex}")
    session.mount(lake.alias, sqlite_catalog(folder))
    session.catalog(lake.alias).create_namespace(("ns",), {})
    lake.sql(f"CREATE TABLE {lake.text('ns', 't')} (id BIGINT, name STRING, ts TIMESTAMP_NTZ, arr ARRAY<INT>)")
    lake.sql(f"CREATE TABLE {lake.text('ns', 'u')} (id BIGINT NOT NULL, dept STRING)")
    lake.sql(f"CREATE TABLE {lake.text('ns', 'w')} (id BIGINT, dept STRING) PARTITIONED BY (dept)")
    lake.sql(f"INSERT INTO {lake.text('ns', 't')} VALUES (1, 'a', TIMESTAMP_NTZ '2024-01-01 00:00:00', array(1))")
    yield lake
    session.close()


def sqlite_catalog(folder: Path) -> Mapping[str, str]:
    return {
        "catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
        "uri": f"jdbc:sqlite:{folder}/catalog.db",
        "warehouse": f"file://{folder}/warehouse",
        "jdbc.schema-version": "V1",
        "sqe.catalog-name": "local",
    }


def shown(description: PlanDescription) -> list[str]:
    """Each relation as `holder.field name`, with its marks."""
    lines = []
    for relation in description.relations:
        marks = [
            relation.kind.value if relation.kind is not RelationKind.RELATION else "",
            "cte" if relation.cte else "",
            "aliased" if relation.aliased else "",
            "stream" if relation.streaming else "",
            f"options={dict(relation.options)}" if relation.options else "",
        ]
        if relation.time_travel is not None:
            travel = relation.time_travel
            marks.append(f"at={travel.version or travel.timestamp}" if travel.literal else "at=expression")
        words = [f"{relation.holder}.{relation.field}", ".".join(relation.parts), *filter(None, marks)]
        lines.append(" ".join(words))
    return lines


# What is described

SHAPES: dict[str, list[str]] = {
    "SELECT * FROM a": ["Project.child a"],
    "TABLE a": [". a"],
    "SELECT * FROM c.a.b AS x": ["Project.child c.a.b aliased"],
    "SELECT * FROM a x (p, q)": ["UnresolvedSubqueryColumnAliases.child a aliased"],
    "SELECT * FROM a TABLESAMPLE (10 PERCENT) AS x": ["Sample.child a aliased"],
    "SELECT * FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.i = a.i)": ["Filter.child b", "Filter.child a"],
    "SELECT * FROM a WHERE x IN (SELECT y FROM b)": ["Project.child b", "Filter.child a"],
    "SELECT (SELECT max(x) FROM b) FROM a": ["Project.child b", "Project.child a"],
    "SELECT * FROM a, LATERAL (SELECT * FROM b WHERE b.i = a.i)": ["LateralJoin.left a", "Filter.child b"],
    "SELECT * FROM a JOIN b USING (i) LEFT SEMI JOIN c ON a.i = c.i": ["Join.left a", "Join.right b", "Join.right c"],
    "SELECT * FROM a UNION ALL SELECT * FROM b": ["Project.child a", "Project.child b"],
    "SELECT x FROM a GROUP BY x HAVING x > (SELECT min(y) FROM b)": ["Project.child b", "Aggregate.child a"],
    "SELECT * FROM a PIVOT (sum(v) FOR k IN ('x', 'y'))": ["Pivot.child a"],
    "SELECT * FROM a UNPIVOT (v FOR k IN (x, y))": ["Unpivot.child a"],
    "SELECT * FROM VALUES (1), ((SELECT max(i) FROM a)) AS t(x)": ["Project.child a"],
    "SELECT transform(arr, e -> e + (SELECT max(i) FROM b)) FROM a": ["Project.child b", "Project.child a"],
    "SELECT sum(x) FILTER (WHERE y IN (SELECT z FROM b)) OVER (PARTITION BY (SELECT 1 FROM c)) FROM a": [
        "Project.child b",
        "Project.child c",
        "Project.child a",
    ],
    "SELECT * FROM a ORDER BY (SELECT max(i) FROM b) LIMIT (SELECT 1 FROM c)": [
        "Project.child c",
        "Project.child b",
        "Project.child a",
    ],
    "SELECT * FROM a LATERAL VIEW explode((SELECT arr FROM b)) v AS x": ["Project.child b", "Generate.child a"],
    # Time travel
    "SELECT * FROM a VERSION AS OF 5": ["Project.child a at=5"],
    "SELECT * FROM a FOR VERSION AS OF 'tag' AS x": ["Project.child a aliased at=tag"],
    "SELECT * FROM a FOR SYSTEM_TIME AS OF '2024-01-01'": ["Project.child a at=2024-01-01 00:00:00"],
    "SELECT * FROM a TIMESTAMP AS OF TIMESTAMP_NTZ '2024-01-01 01:02:03.5'": [
        "Project.child a at=2024-01-01 01:02:03.500000"
    ],
    "SELECT * FROM a TIMESTAMP AS OF CAST('2024-01-02' AS DATE)": ["Project.child a at=2024-01-02 00:00:00"],
    "SELECT * FROM a TIMESTAMP AS OF current_timestamp()": ["Project.child a at=expression"],
    "SELECT * FROM a TIMESTAMP AS OF (SELECT max(t) FROM b)": ["Project.child a at=expression", "Project.child b"],
    # Common table expressions
    "WITH a AS (SELECT * FROM b) SELECT * FROM a": ["Project.child a cte", "Project.child b"],
    "WITH a AS (SELECT * FROM a) SELECT * FROM A": ["Project.child A cte", "Project.child a"],
    "WITH a AS (SELECT 1), b AS (SELECT * FROM a, b) SELECT * FROM b, x.a": [
        "Join.left b cte",
        "Join.right x.a",
        "Join.left a cte",
        "Join.right b",
    ],
    "WITH b AS (SELECT * FROM a), a AS (SELECT 1) SELECT * FROM b": ["Project.child b cte", "Project.child a"],
    "WITH a AS (WITH a AS (SELECT * FROM a) SELECT * FROM a) SELECT * FROM a": [
        "Project.child a cte",
        "Project.child a cte",
        "Project.child a",
    ],
    "SELECT * FROM (WITH a AS (SELECT 1) SELECT * FROM a), a": ["Project.child a cte", "Join.right a"],
    "WITH a AS (SELECT 1) SELECT * FROM b WHERE x IN (SELECT * FROM a)": ["Project.child a cte", "Filter.child b"],
    "WITH RECURSIVE r(n) AS (SELECT i FROM a UNION ALL SELECT n + 1 FROM r) SELECT * FROM r": [
        "Project.child r cte",
        "Project.child a",
        "Project.child r cte",
    ],
    "WITH a AS (SELECT 1) SELECT * FROM a VERSION AS OF 1": ["Project.child a cte at=1"],
    "WITH a AS (SELECT 1 AS i) SELECT * FROM `a `": ["Project.child a "],
    # Table functions, streams, dynamic names
    "SELECT * FROM range(3)": [],
    "SELECT * FROM f(TABLE(a), 1)": ["FunctionTableSubqueryArgumentExpression.plan a"],
    "SELECT * FROM f(TABLE(SELECT * FROM a))": ["Project.child a"],
    "SELECT * FROM STREAM(a)": ["Project.child a stream"],
    "SELECT * FROM STREAM a": ["Project.child a stream"],
    "SELECT * FROM a WITH ('k' = 'v')": ["Project.child a options={'k': 'v'}"],
    "SELECT * FROM IDENTIFIER('c.a')": ["Project.child c.a"],
    "SELECT * FROM IDENTIFIER('c' || '.a')": [],
    # Statements
    "EXPLAIN EXTENDED SELECT * FROM a": ["Project.child a"],
    "DESCRIBE QUERY SELECT * FROM a": ["Project.child a"],
    "CACHE TABLE x AS SELECT * FROM a": ["Project.child a"],
    "INSERT INTO t SELECT * FROM a": ["InsertIntoStatement.table t", "Project.child a"],
    "INSERT INTO t (x) VALUES ((SELECT max(i) FROM a))": ["InsertIntoStatement.table t", "Project.child a"],
    "INSERT INTO t BY NAME SELECT * FROM a": ["InsertIntoStatement.table t", "Project.child a"],
    "INSERT OVERWRITE t PARTITION (k = 'v') SELECT * FROM a": ["InsertIntoStatement.table t", "Project.child a"],
    "INSERT INTO t REPLACE WHERE k > (SELECT 1 FROM b) SELECT * FROM a": [
        "OverwriteByExpression.table t",
        "Project.child b",
        "Project.child a",
    ],
    "INSERT INTO t WITH t AS (SELECT 1) SELECT * FROM t": ["InsertIntoStatement.table t", "Project.child t cte"],
    "WITH t AS (SELECT 1) INSERT INTO t SELECT * FROM t": ["InsertIntoStatement.table t", "Project.child t cte"],
    "FROM a INSERT INTO t SELECT x INSERT INTO u SELECT y": [
        "InsertIntoStatement.table t",
        "Project.child a",
        "InsertIntoStatement.table u",
    ],
    "UPDATE t SET x = (SELECT max(i) FROM a) WHERE y IN (SELECT z FROM b)": [
        "UpdateTable.table t",
        "Project.child a",
        "Project.child b",
    ],
    "UPDATE t AS z SET x = 1": ["UpdateTable.table t aliased"],
    "DELETE FROM t WHERE EXISTS (SELECT 1 FROM a)": ["DeleteFromTable.table t", "Project.child a"],
    "MERGE INTO t USING a ON t.i = a.i WHEN MATCHED THEN UPDATE SET x = (SELECT 1 FROM b)": [
        "MergeIntoTable.targetTable t",
        "MergeIntoTable.sourceTable a",
        "Project.child b",
    ],
    "MERGE INTO t x USING (SELECT * FROM a) y ON x.i = y.i WHEN NOT MATCHED THEN INSERT *": [
        "MergeIntoTable.targetTable t aliased",
        "Project.child a",
    ],
    "CREATE TABLE n (i INT)": ["CreateTable.name n identifier"],
    "CREATE TABLE n AS SELECT * FROM a": ["CreateTableAsSelect.name n identifier", "Project.child a"],
    "CREATE OR REPLACE TABLE n AS SELECT * FROM a": ["ReplaceTableAsSelect.name n identifier", "Project.child a"],
    "CREATE VIEW v AS SELECT * FROM a": ["CreateView.child v identifier", "Project.child a"],
    "DROP TABLE n": ["DropTable.child n identifier"],
    "DROP VIEW v": ["DropView.child v identifier"],
    "TRUNCATE TABLE t": ["TruncateTable.table t table"],
    "DESCRIBE TABLE t": ["DescribeRelation.relation t table_or_view"],
    "SHOW CREATE TABLE t": ["ShowCreateTable.child t table_or_view"],
    "ALTER TABLE t ADD COLUMN c INT DEFAULT 5": ["AddColumns.table t table"],
    "ALTER TABLE t ALTER COLUMN c TYPE BIGINT": ["AlterColumns.table t table"],
    "ALTER TABLE t DROP COLUMN a.b": ["DropColumns.table t table"],
    "ALTER TABLE t RENAME COLUMN a TO b": ["RenameColumn.table t table"],
    "ALTER TABLE t SET TBLPROPERTIES ('k' = 'v')": ["SetTableProperties.table t table"],
    "ALTER VIEW v SET TBLPROPERTIES ('k' = 'v')": ["SetViewProperties.child v view"],
    "ALTER TABLE t ADD PARTITION FIELD bucket(4, id)": ["AddPartitionField.table t table"],
    "ALTER TABLE t DROP PARTITION FIELD x": ["DropPartitionField.table t table"],
    "ALTER TABLE t REPLACE PARTITION FIELD x WITH days(ts)": ["ReplacePartitionField.table t table"],
    "ALTER TABLE t CREATE BRANCH b RETAIN 5 DAYS": ["CreateOrReplaceBranch.table t table"],
    "ALTER TABLE t DROP TAG IF EXISTS b": ["DropTag.table t table"],
    "ALTER TABLE t SET IDENTIFIER FIELDS id": ["SetIdentifierFields.table t table"],
    "ALTER TABLE t WRITE ORDERED BY id": ["SetWriteDistributionAndOrdering.table t table"],
    "COMMENT ON TABLE t IS 'x'": ["CommentOnTable.table t table"],
    "CREATE NAMESPACE c.n": ["CreateNamespace.name c.n namespace"],
    "DROP NAMESPACE c.n CASCADE": ["DropNamespace.namespace c.n namespace"],
    "CALL c.system.expire_snapshots(table => 'x')": ["Call.procedure c.system.expire_snapshots other"],
    "REFRESH TABLE t": ["RefreshTable.child t table_or_view"],
    "ANALYZE TABLE t COMPUTE STATISTICS": ["AnalyzeTable.child t table_or_view"],
}


@pytest.mark.parametrize("sql", SHAPES, ids=lambda sql: sql[:60])
def test_every_relation_is_described(lake: Lake, sql: str) -> None:
    assert shown(lake.session.parse(sql).description) == SHAPES[sql]


def test_nodes_form_a_tree_with_parents_first(lake: Lake) -> None:
    description = lake.session.parse(
        "WITH a AS (SELECT * FROM b) SELECT x, (SELECT max(y) FROM c) FROM a WHERE z IN (SELECT 1) ORDER BY 1"
    ).description
    assert description.root.parent == -1
    assert all(node.id == place for place, node in enumerate(description.nodes))
    assert all(0 <= node.parent < node.id for node in description.nodes[1:])
    slots = {node.slot for node in description.nodes}
    assert {"child", "cteRelations", "subquery"} <= slots
    assert description.expression_count > 5
    assert description.depth > 5


def test_positions_count_code_points(lake: Lake) -> None:
    sql = "SELECT '😀ü', f(1) FROM `😀`, b"
    description = lake.session.parse(sql).description
    assert [sql[relation.start :].split(",")[0] for relation in description.relations] == ["`😀`", "b"]
    assert sql[description.functions[0].start :].startswith("f(1)")


def test_functions_with_their_literal_arguments(lake: Lake) -> None:
    description = lake.session.parse(
        "SELECT repeat('a', -5), lpad(x, 1.5, true), from_json(j, 'a INT', map('mode', 'FAILFAST')), ns.g(p => 3), "
        "from_csv(j, Schema_Of_Csv('1')) "
        "FROM range(1, 10) LATERAL VIEW OUTER explode(y) v AS z"
    ).description
    found = {".".join(call.parts): call for call in description.functions}
    assert found["repeat"].literals == ("a", -5)
    assert found["lpad"].literals == (None, 1.5, True)
    assert found["from_json"].literals == (None, "a INT", {"mode": "FAILFAST"})
    assert found["ns.g"].literals == (3,)
    assert found["from_csv"].literals == (None, None)
    assert found["from_csv"].calls == {1: "schema_of_csv"}
    assert found["from_json"].calls == {2: "map"}
    assert found["range"].table_valued
    assert found["range"].literals == (1, 10)
    assert found["explode"].table_valued
    assert not found["repeat"].table_valued


def test_hints_and_their_numbers(lake: Lake) -> None:
    description = lake.session.parse("SELECT /*+ REPARTITION(7, a), NOSUCH(b) */ * FROM t").description
    assert description.hints == ("REPARTITION", "NOSUCH")
    hint = next(node for node in description.nodes if node.fields.get("name") == "REPARTITION")
    assert hint.fields["parameters"][0] == {"class": "Literal", "value": 7, "type": "int"}


def test_create_table_shows_every_clause(lake: Lake) -> None:
    root = lake.session.parse(
        "CREATE TABLE IF NOT EXISTS t (a INT NOT NULL DEFAULT 5 COMMENT 'x', b INT GENERATED ALWAYS AS (a + 1)) "
        "USING iceberg OPTIONS (o 'p') PARTITIONED BY (bucket(4, a), days(b)) COMMENT 'c' LOCATION 'l' "
        "TBLPROPERTIES ('k' = 'v')"
    ).description.root
    spec, columns = root.fields["tableSpec"], root.fields["columns"]
    assert root.simple_type == "CreateTable"
    assert root.fields["ignoreIfExists"] is True
    assert (spec["provider"], spec["location"], spec["comment"]) == ("iceberg", "l", "c")
    assert spec["properties"] == {"k": "v"}
    assert spec["optionExpression"]["options"] == [["o", {"class": "Literal", "value": "p", "type": "string"}]]
    assert (columns[0]["name"], columns[0]["dataType"], columns[0]["nullable"]) == ("a", "int", False)
    assert columns[0]["comment"] == "x"
    assert columns[0]["defaultValue"]["child"] == {"class": "Literal", "value": 5, "type": "int"}
    assert columns[1]["generationExpression"] == "a + 1"
    assert [partition["text"] for partition in root.fields["partitioning"]] == ["bucket(4, a)", "days(b)"]


def test_other_dangerous_statements_name_their_class(lake: Lake) -> None:
    for sql, name in {
        "SELECT TRANSFORM(a) USING 'id -un' FROM t": "ScriptTransformation",
        "INSERT OVERWRITE DIRECTORY '/tmp/x' USING parquet SELECT 1": "InsertIntoDir",
        "ADD JAR '/x.jar'": "AddJarsCommand",
        "SET a = b": "SetCommand",
        "RESET": "ResetCommand",
        "EXECUTE IMMEDIATE 'SELECT 1'": "UnresolvedExecuteImmediate",
        "CREATE TEMPORARY VIEW x USING csv OPTIONS (path '/etc/passwd')": "CreateTempViewUsing",
    }.items():
        assert name in {node.simple_type for node in lake.session.parse(sql).description.nodes}, sql


# Parameters


def test_parameters_become_typed_literals(lake: Lake) -> None:
    values = {
        "i": 5,
        "big": 1 << 40,
        "text": "it's \\ 😀",
        "num": Decimal("-1.50"),
        "day": date(2024, 2, 29),
        "moment": datetime(2024, 1, 2, 3, 4, 5, 678),
        "none": None,
        "yes": True,
        "half": 0.5,
        "bytes": b"\x00\xff",
        "list": pa.scalar([1, None], pa.list_(pa.int64())),
        "map": pa.scalar([("k", 1)], pa.map_(pa.string(), pa.int32())),
        "row": pa.scalar({"a": 1, "b": "x"}),
        "nothing": pa.scalar(None, pa.int64()),
    }
    plan = lake.session.parse("SELECT " + ", ".join(f":{name} AS `{name}`" for name in values), values)
    assert plan.description.parameters == ()
    analysed = lake.session.analyse(plan, tag="parameters")
    assert dict(zip(values, analysed.column_types, strict=True)) == {
        "i": "int",
        "big": "bigint",
        "text": "string",
        "num": "decimal(3,2)",
        "day": "date",
        "moment": "timestamp_ntz",
        "none": "void",
        "yes": "boolean",
        "half": "double",
        "bytes": "binary",
        "list": "array<bigint>",
        "map": "map<string,int>",
        "row": "struct<a:bigint,b:string>",
        "nothing": "bigint",
    }
    project = next(node for node in analysed.description.nodes if node.simple_type == "Project")
    assert "'it\\'s \\\\ 😀' AS text" in project.fields["projectList"]
    assert "DATE '2024-02-29' AS day" in project.fields["projectList"]


def test_parameters_count_rows(lake: Lake) -> None:
    plan = lake.session.parse("SELECT 1 LIMIT :n OFFSET :o", {"n": pa.scalar(5), "o": pa.scalar(2, pa.int16())})
    lake.session.analyse(plan, tag="rows")  # Spark refuses 64 bits here


def test_a_parameter_cannot_be_text_that_is_parsed(lake: Lake) -> None:
    plan = lake.session.parse("SELECT * FROM VALUES ('x') AS t(c) WHERE c = :p", {"p": "x' OR 1=1 --"})
    analysed = lake.session.analyse(plan, tag="injection")
    condition = next(node for node in analysed.description.nodes if node.simple_type == "Filter").fields["condition"]
    assert condition == "(t.c = 'x\\' OR 1=1 --')"


def test_unbound_markers_are_reported(lake: Lake) -> None:
    description = lake.session.parse("SELECT :a, :b, ? FROM t WHERE x IN (SELECT 1 + :c)", {"a": 1}).description
    assert set(description.parameters) >= {"b", "c"}
    assert len(description.parameters) == 3


def test_a_parameter_of_no_sql_type_is_the_users_error(lake: Lake) -> None:
    with pytest.raises(UserError, match="cannot be a"):
        lake.session.parse("SELECT :p", {"p": object()})


# Rewriting


def test_a_name_that_nobody_replaced_resolves_to_nothing(lake: Lake) -> None:
    for sql in ("SELECT * FROM ns.t", "SELECT * FROM lake.ns.t", "SELECT * FROM t", "SELECT * FROM spark_catalog.a.t"):
        with pytest.raises(EngineExecutionError) as refused:
            lake.session.analyse(lake.session.parse(sql), tag="missing")
        assert refused.value.failure.condition == "TABLE_OR_VIEW_NOT_FOUND"
    created = lake.session.analyse(lake.session.parse("CREATE TABLE z (i INT)"), tag="missing")
    assert created.description.nodes[1].fields["catalog"] == "_sqe_none"


def test_the_visible_name_qualifies_columns_in_all_its_lengths(lake: Lake) -> None:
    analysed = lake.analyse("SELECT t.id, ns.t.id, lake.ns.t.id, id, ns.t.* FROM ns.t")
    assert analysed.schema.names == ["id", "id", "id", "id", "id", "name", "ts", "arr"]
    aliased = lake.analyse("SELECT x.id FROM ns.t AS x")
    assert aliased.schema.names == ["id"]
    for sql in ("SELECT t.id FROM ns.t AS x", "SELECT m.id FROM ns.t", "SELECT _file FROM ns.t"):
        with pytest.raises(EngineExecutionError) as refused:
            lake.analyse(sql)
        assert refused.value.failure.condition.startswith("UNRESOLVED_COLUMN")


def test_a_hidden_column_does_not_come_back(lake: Lake) -> None:
    plan = lake.session.parse("SELECT id FROM t ORDER BY name")
    text = f"SELECT m.id FROM {lake.text('ns', 't')} AS m"
    secured = lake.session.rewrite(plan, [SecuredTable(index=0, sql=text, visible_name=("lake", "ns", "t"))])
    with pytest.raises(EngineExecutionError) as refused:
        lake.session.analyse(secured, tag="hidden")
    assert refused.value.failure.condition == "UNRESOLVED_COLUMN.WITH_SUGGESTION"
    assert refused.value.failure.parameters["objectName"] == "`name`"
    assert refused.value.failure.fragment == "name"


QUERIES = {
    "SELECT a.id FROM ns.t AS a JOIN u ON a.id = u.id WHERE dept IN (SELECT dept FROM w)": ["id"],
    "WITH t AS (SELECT * FROM t) SELECT t.name FROM t": ["name"],
    "WITH a AS (SELECT id FROM t), b AS (SELECT a.id FROM a, u) SELECT count(*) AS n FROM b": ["n"],
    "SELECT t.id, x.dept FROM t, LATERAL (SELECT dept FROM u WHERE u.id = t.id) AS x": ["id", "dept"],
    "SELECT id FROM t UNION SELECT id FROM u EXCEPT SELECT id FROM w": ["id"],
    "SELECT * FROM (SELECT id, dept FROM u) PIVOT (count(id) FOR dept IN ('x' AS x, 'y' AS y))": ["x", "y"],
    "WITH RECURSIVE r(n) AS (SELECT id FROM t UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT * FROM r": ["n"],
    "SELECT (SELECT max(id) FROM u) AS m, explode(arr) AS e FROM t": ["m", "e"],
    "SELECT id FROM t WHERE id = (SELECT max(id) FROM u WHERE u.id = t.id)": ["id"],
    "SELECT row_number() OVER (PARTITION BY name ORDER BY id) AS r FROM t": ["r"],
    "SELECT id FROM IDENTIFIER('ns.t')": ["id"],
    "SELECT t1.id FROM t t1, t t2, t t3 WHERE t1.id = t2.id AND t2.id = t3.id": ["id"],
    "SELECT * FROM t TABLESAMPLE (50 PERCENT) AS x (a, b, c, d)": ["a", "b", "c", "d"],
    "TABLE u": ["id", "dept"],
}


@pytest.mark.parametrize("sql", QUERIES, ids=lambda sql: sql[:60])
def test_secured_queries_analyse_to_the_same_columns(lake: Lake, sql: str) -> None:
    secured = lake.secure_all(lake.session.parse(sql))
    left = [relation for relation in secured.description.relations if not relation.cte]
    assert left
    assert all(relation.parts[0] == lake.alias for relation in left)
    analysed = lake.session.analyse(secured, tag=uuid.uuid4().hex)
    assert analysed.schema.names == QUERIES[sql]
    assert not analysed.is_command
    covers = [node for node in analysed.description.nodes if node.fields.get("secured")]
    tables = [node for node in analysed.description.nodes if node.simple_type == "DataSourceV2Relation"]
    assert len(covers) == len(tables) == len(left)


COMMANDS = [
    "INSERT INTO u SELECT id, name FROM t",
    "INSERT INTO u (dept, id) VALUES ('x', 1)",
    "INSERT INTO u BY NAME SELECT 1 AS id, 'x' AS dept",
    "INSERT OVERWRITE u SELECT id, name FROM t",
    "INSERT INTO w PARTITION (dept = 'x') SELECT id FROM t",
    "INSERT INTO u WITH q AS (SELECT id, name FROM t) SELECT * FROM q",
    "WITH q AS (SELECT id, name FROM t) INSERT INTO u SELECT * FROM q",
    "DELETE FROM u WHERE u.id = 1",
    "DELETE FROM ns.u WHERE ns.u.id IN (SELECT id FROM t) AND lake.ns.u.dept = 'x'",
    "DELETE FROM u AS z WHERE z.id = 1",
    "UPDATE u SET dept = upper(u.dept) WHERE EXISTS (SELECT 1 FROM t WHERE t.id = u.id)",
    "MERGE INTO u USING t ON u.id = t.id WHEN MATCHED THEN UPDATE SET u.dept = t.name WHEN NOT MATCHED THEN "
    "INSERT (id, dept) VALUES (t.id, t.name) WHEN NOT MATCHED BY SOURCE THEN DELETE",
    "MERGE INTO u AS z USING (SELECT * FROM t) AS y ON z.id = y.id WHEN MATCHED THEN DELETE",
    "CREATE TABLE fresh (a INT DEFAULT 5, b STRING) PARTITIONED BY (bucket(4, a))",
    "CREATE TABLE fresh AS SELECT id FROM t",
    "CREATE OR REPLACE TABLE u AS SELECT id FROM t",
    "DROP TABLE u",
    "TRUNCATE TABLE u",
    "ALTER TABLE u ADD COLUMN z INT",
    "ALTER TABLE u ALTER COLUMN dept COMMENT 'x'",
    "ALTER TABLE u RENAME COLUMN dept TO d",
    "ALTER TABLE u SET TBLPROPERTIES ('k' = 'v')",
    "ALTER TABLE u ADD PARTITION FIELD bucket(4, id)",
    "ALTER TABLE u CREATE BRANCH b",
    "ALTER TABLE u SET IDENTIFIER FIELDS id",
    "ALTER TABLE u WRITE ORDERED BY id",
    "COMMENT ON TABLE u IS 'x'",
    "CREATE NAMESPACE fresh",
    "DROP NAMESPACE ns",
]


@pytest.mark.parametrize("sql", COMMANDS, ids=lambda sql: sql[:60])
def test_commands_find_their_targets_and_do_nothing(lake: Lake, sql: str) -> None:
    catalog = lake.session.catalog(lake.alias)
    before = (catalog.list_tables(("ns",)), catalog.list_namespaces(), catalog.load_table(("ns",), "u"))
    analysed = lake.analyse(sql)
    assert analysed.is_command
    assert len(analysed.schema) == 0
    assert before == (catalog.list_tables(("ns",)), catalog.list_namespaces(), catalog.load_table(("ns",), "u"))


def test_time_travel_moves_inside(lake: Lake) -> None:
    plan = lake.session.parse("SELECT x.id FROM t VERSION AS OF 1 AS x")
    snapshot = lake.session.catalog(lake.alias).load_table(("ns",), "t").current_snapshot_id
    text = f"SELECT m.id FROM {lake.text('ns', 't')} VERSION AS OF {snapshot} AS m"
    secured = lake.session.rewrite(plan, [SecuredTable(index=0, sql=text, visible_name=("lake", "ns", "t"))])
    assert shown(secured.description) == [f"Project.child {lake.alias}.ns.t aliased at={snapshot}"]
    analysed = lake.session.analyse(secured, tag="travel")
    table = next(node for node in analysed.description.nodes if node.simple_type == "DataSourceV2Relation")
    assert table.fields["snapshotId"] == snapshot
    assert table.fields["timeTravel"] == f"VERSION AS OF '{snapshot}'"


def test_the_analysed_table_says_where_it_is_from(lake: Lake) -> None:
    analysed = lake.analyse("SELECT id FROM t")
    table = next(node for node in analysed.description.nodes if node.simple_type == "DataSourceV2Relation")
    current = lake.session.catalog(lake.alias).load_table(("ns",), "t").current_snapshot_id
    assert table.fields["catalog"] == lake.alias
    assert table.fields["identifier"] == ["ns", "t"]
    assert table.fields["output"] == ["id", "name", "ts", "arr"]
    assert (table.fields["snapshotId"], table.fields["timeTravel"], table.fields["branch"]) == (None, None, None)
    assert table.fields["pinnedSnapshotId"] == current
    assert table.fields["options"] == {}


def test_inlined_plans_with_renamed_columns(lake: Lake) -> None:
    view = lake.secure_all(lake.session.parse("WITH q AS (SELECT id, 1 + 1, name FROM t) SELECT * FROM q"))
    plan = lake.session.parse("WITH q AS (SELECT 5 AS z) SELECT v.n, v.two, q.z FROM s.v, q")
    index = next(relation.index for relation in plan.description.relations if relation.parts == ("s", "v"))
    inlined = InlinedPlan(index=index, plan=view, columns=(("name", "n"), ("(1 + 1)", "two")), visible_name=("s", "v"))
    analysed = lake.session.analyse(lake.session.rewrite(plan, [inlined]), tag="inlined")
    assert analysed.schema.names == ["n", "two", "z"]
    whole = InlinedPlan(index=0, plan=view, columns=None, visible_name=("v",))
    analysed = lake.session.analyse(lake.session.rewrite(lake.session.parse("SELECT * FROM v"), [whole]), tag="whole")
    assert analysed.schema.names == ["id", "(1 + 1)", "name"]


def test_inlined_rows_of_every_arrow_type(lake: Lake) -> None:
    rows = pa.table(
        {
            "small": pa.array([1, None], pa.uint8()),
            "text": pa.array(["ü", None], pa.large_string()),
            "word": pa.array(["a", "b"]).dictionary_encode(),
            "moment": pa.array([datetime(2024, 1, 1), None], pa.timestamp("ns", tz="Europe/Amsterdam")),
            "list": pa.array([[1], None], pa.list_(pa.uint32())),
            "row": pa.array([{"a": 1}, None], pa.struct([("a", pa.int64())])),
            "flag": pa.array([True, None]),
        }
    )
    plan = lake.session.parse("SELECT tables.*, i.tables.small FROM i.tables")
    secured = lake.session.rewrite(plan, [InlinedRows(index=0, rows=rows, visible_name=("i", "tables"))])
    node = next(node for node in secured.description.nodes if node.simple_type == "LocalRelation")
    assert node.fields == {"output": rows.column_names}
    analysed = lake.session.analyse(secured, tag="rows")
    assert analysed.schema.names == [*rows.column_names, "small"]
    assert analysed.column_types[:5] == ("smallint", "string", "string", "timestamp_ltz", "array<bigint>")


def test_no_rows_are_rows_too(lake: Lake) -> None:
    empty = pa.table({"a": pa.array([], pa.int32())})
    plan = lake.session.rewrite(
        lake.session.parse("SELECT * FROM r"), [InlinedRows(index=0, rows=empty, visible_name=("r",))]
    )
    assert lake.session.analyse(plan, tag="empty").schema == pa.schema([("a", pa.int32())])


def test_a_shared_source_is_replaced_in_every_place(lake: Lake) -> None:
    plan = lake.session.parse("FROM t INSERT INTO u SELECT id, name INSERT INTO w SELECT id, name")
    assert all(relation.parts[0] == lake.alias for relation in lake.secure_all(plan).description.relations)


def test_wrong_replacements_are_refused(lake: Lake) -> None:
    plan = lake.session.parse("CREATE TABLE a AS SELECT * FROM t")
    wrong: list[Sequence[Replacement]] = [
        [SecuredTable(index=0, sql="SELECT 1", visible_name=("a",))],
        [SecuredTable(index=7, sql="SELECT 1", visible_name=("a",))],
        [SecuredTable(index=1, sql="SELECT 1", visible_name=("a",))] * 2,
        [SecuredTable(index=1, sql="SELECT 1 FROM a,", visible_name=("a",))],
    ]
    for replacements in wrong:
        with pytest.raises(EngineExecutionError):
            lake.session.rewrite(plan, replacements)
    procedure = lake.session.parse("DESCRIBE FUNCTION f")
    with pytest.raises(EngineExecutionError):
        lake.session.rewrite(procedure, [RenamedTarget(index=0, parts=("g",), visible_name=("g",))])


def test_the_old_plan_is_not_touched(lake: Lake) -> None:
    plan = lake.session.parse("SELECT * FROM t WHERE id IN (SELECT id FROM u)")
    lake.secure_all(plan)
    lake.secure_all(plan)
    assert shown(lake.session.rewrite(plan, []).description) == shown(plan.description)


# Analysis


def test_types_that_readers_of_arrow_lack(lake: Lake) -> None:
    analysed = lake.analyse(
        "SELECT INTERVAL '1-2' YEAR TO MONTH AS ym, parse_json('{\"a\": 1}') AS v, array(parse_json('1')) AS vs, "
        "map('k', INTERVAL '3' MONTH) AS m, INTERVAL '1' DAY AS dt, TIME '10:00:00' AS clock, "
        "st_geomfromwkb(X'0101000000000000000000F03F0000000000000040') AS g ORDER BY ym"
    )
    types = dict(zip(analysed.schema.names, analysed.schema.types, strict=True))
    assert types["v"] == types["vs"] == pa.string()
    assert types["ym"] == types["m"].item_type == pa.month_day_nano_interval()
    assert types["dt"] == pa.duration("us")
    assert types["clock"] == pa.time64("us")
    assert types["g"] == pa.binary()
    assert analysed.column_types[:2] == ("interval year to month", "variant")
    assert analysed.column_types[5] == "time"


def test_settings_hold_for_one_statement(lake: Lake) -> None:
    def root(settings: Mapping[str, str]) -> AnalysedPlan:
        plan = lake.secure_all(lake.session.parse("INSERT OVERWRITE w SELECT id, name FROM t"))
        return lake.session.analyse(plan, tag=uuid.uuid4().hex, settings=settings)

    dynamic = root({"spark.sql.sources.partitionOverwriteMode": "dynamic"})
    assert dynamic.description.root.simple_type == "OverwritePartitionsDynamic"
    assert root({}).description.root.simple_type == "OverwriteByExpression"
    assert lake.session.check_settings()


def test_builtin_functions_show_no_invocation_of_their_own(lake: Lake) -> None:
    analysed = lake.analyse(
        "SELECT name BETWEEN 'a' AND 'b', url_encode(name), luhn_check(name), is_valid_utf8(name), parse_json(name) "
        "FROM t"
    )
    assert analysed.description.functions == ()
    names = {name.rsplit(".", 1)[-1] for name in analysed.description.expressions}
    assert {"Between", "UrlEncode"} <= names
    assert not names & {"StaticInvoke", "Invoke"}


def test_iceberg_functions_show(lake: Lake) -> None:
    plan = lake.session.parse(f"SELECT {lake.alias}.system.bucket(4, 1)")
    analysed = lake.session.analyse(plan, tag="transform")
    (call,) = analysed.description.functions
    assert call.parts[0].startswith("org.apache.iceberg.spark.functions.")


def test_lineage_by_column(lake: Lake) -> None:
    def sources(sql: str) -> dict[str, set[str]]:
        return {
            name: {f"{source.relation[-1]}.{source.column}" for source in sources}
            for name, sources in lake.analyse(sql).lineage().columns
        }

    assert sources("SELECT id, upper(name) AS n, 5 AS five FROM t") == {"id": {"t.id"}, "n": {"t.name"}, "five": set()}
    assert sources("SELECT t.id + u.id AS s FROM t JOIN u ON t.name = u.dept") == {"s": {"t.id", "u.id"}}
    assert sources("WITH q AS (SELECT id AS k FROM t) SELECT k FROM q UNION ALL SELECT id FROM u") == {
        "k": {"t.id", "u.id"}
    }
    assert sources("SELECT dept, (SELECT max(name) FROM t) AS m, count(id) OVER (ORDER BY dept) AS c FROM u") == {
        "dept": {"u.dept"},
        "m": {"t.name"},
        "c": {"u.id", "u.dept"},
    }
    assert sources("SELECT e FROM t LATERAL VIEW explode(arr) x AS e") == {"e": {"t.arr"}}
    assert sources(
        "WITH RECURSIVE r(n) AS (SELECT id FROM t UNION ALL SELECT n + (SELECT max(id) FROM u) FROM r WHERE n < 9) "
        "SELECT n FROM r"
    ) == {"n": {"t.id", "u.id"}}
    assert sources("SELECT dept, sum(id) AS s FROM u GROUP BY ROLLUP (dept)") == {"dept": {"u.dept"}, "s": {"u.id"}}
    assert sources("INSERT INTO u SELECT id, lower(name) FROM t") == {"id": {"t.id"}, "dept": {"t.name"}}
    assert sources("CREATE TABLE fresh AS SELECT id AS k FROM t") == {"k": {"t.id"}}
    merged = sources("MERGE INTO u USING t ON u.id = t.id WHEN MATCHED THEN UPDATE SET dept = t.name")
    assert merged == {"id": {"u.id"}, "dept": {"t.name", "u.dept"}}


def test_lineage_knows_its_kinds(lake: Lake) -> None:
    lineage = lake.analyse(
        "SELECT t.id, max(name) AS m FROM t JOIN u ON t.id = u.id WHERE dept = 'x' GROUP BY t.id ORDER BY m"
    ).lineage()
    kinds = {name: {(source.column, source.kind) for source in sources} for name, sources in lineage.columns}
    assert kinds == {"id": {("id", "IDENTITY")}, "m": {("name", "AGGREGATION")}}
    indirect = {(source.kind, source.column) for source in lineage.indirect}
    assert indirect == {("JOIN", "id"), ("FILTER", "dept"), ("GROUP_BY", "id"), ("SORT", "name")}


def test_the_policys_own_filter_is_no_lineage(lake: Lake) -> None:
    plan = lake.session.parse("SELECT id FROM t")
    text = f"SELECT m.id FROM {lake.text('ns', 't')} AS m WHERE m.name = 'secret'"
    secured = lake.session.rewrite(plan, [SecuredTable(index=0, sql=text, visible_name=("t",))])
    analysed = lake.session.analyse(secured, tag="lineage")
    assert analysed.lineage().indirect == ()


def test_explain_hides_what_is_secured(lake: Lake) -> None:
    plan = lake.session.parse("SELECT upper(name) AS n FROM t WHERE id > 5")
    text = f"SELECT m.id, m.name FROM {lake.text('ns', 't')} AS m WHERE m.name <> 'CANARY'"
    secured = lake.session.rewrite(plan, [SecuredTable(index=0, sql=text, visible_name=("lake", "ns", "t"))])
    rows = dict(lake.session.analyse(secured, tag="explain").explain())
    assert list(rows) == ["logical_plan", "physical_plan"]
    assert rows["logical_plan"].splitlines() == [
        "Project [upper(name) AS n]",
        "+- Filter (id > cast(5 as bigint))",
        "   +- Table lake.ns.t",
    ]
    assert "BatchScan" in rows["physical_plan"]
    assert lake.alias not in "".join(rows.values())


# Depth


def nested(depth: int) -> str:
    return " UNION ALL ".join(["SELECT 1"] * depth)


def test_a_plan_of_depth_20000_is_described_and_rewritten(lake: Lake) -> None:
    plan = lake.session.parse(nested(20_000) + " UNION ALL SELECT id FROM t")
    assert plan.description.depth > 20_000
    assert len(plan.description.nodes) > 60_000
    assert shown(lake.secure_all(plan).description) == [f"Project.child {lake.alias}.ns.t aliased"]


def condition_of(lake: Lake, sql: str) -> str | None:
    """How the engine refuses the statement; None when it takes it."""
    try:
        lake.session.analyse(lake.session.parse(sql), tag=uuid.uuid4().hex)
    except EngineExecutionError as error:
        return error.failure.condition
    return None


def test_deep_expressions_end_cleanly(lake: Lake) -> None:
    for sql in (
        "SELECT " + "(" * 1000 + "1" + ")" * 1000,
        "SELECT " + "NOT " * 5000 + "true",
        "SELECT " + " + ".join(["1"] * 20_000),
        "SELECT " + "CASE WHEN true THEN " * 300 + "1" + " END" * 300,
        "SELECT 1 WHERE " + " OR ".join(f"{number} = 1" for number in range(20_000)),
    ):
        condition = condition_of(lake, sql)
        assert condition in (None, "FAILED_TO_PARSE_TOO_COMPLEX", "StackOverflowError"), sql[:40]
    assert lake.session.alive


# Failures


def test_failures_carry_condition_parameters_and_place(lake: Lake) -> None:
    with pytest.raises(EngineExecutionError) as refused:
        lake.session.parse("SELECT *\nFROM t\nWHERE 😀 ((")
    assert refused.value.failure.condition == "PARSE_SYNTAX_ERROR"
    assert refused.value.failure.sql_state == "42601"
    assert refused.value.failure.start is not None
    with pytest.raises(EngineExecutionError) as refused:
        lake.analyse("SELECT '😀', nosuch FROM t")
    failure = refused.value.failure
    assert (failure.condition, failure.sql_state) == ("UNRESOLVED_COLUMN.WITH_SUGGESTION", "42703")
    assert (failure.start, failure.fragment, failure.generated) == (12, "nosuch", False)
    assert failure.parameters["objectName"] == "`nosuch`"
    assert str(refused.value) == failure.condition


def test_failures_in_text_of_ours_show_no_place(lake: Lake) -> None:
    plan = lake.session.parse("SELECT * FROM t")
    text = f"SELECT m.nosuch FROM {lake.text('ns', 't')} AS m"
    secured = lake.session.rewrite(plan, [SecuredTable(index=0, sql=text, visible_name=("t",))])
    with pytest.raises(EngineExecutionError) as refused:
        lake.session.analyse(secured, tag="generated")
    assert refused.value.failure.generated
    assert refused.value.failure.fragment is None
    assert refused.value.failure.start is None


def test_failures_in_a_views_text_show_no_place(lake: Lake) -> None:
    view = lake.secure_all(lake.session.parse("SELECT gone FROM t"))
    plan = lake.session.parse("SELECT * FROM v")
    inlined = InlinedPlan(index=0, plan=view, columns=None, visible_name=("v",))
    with pytest.raises(EngineExecutionError) as refused:
        lake.session.analyse(lake.session.rewrite(plan, [inlined]), tag="view")
    assert refused.value.failure.generated
    assert refused.value.failure.fragment is None


# Sessions


def test_sessions_are_apart(engine: SparkEngine, lake: Lake) -> None:
    other = engine.open_session()
    try:
        plan = other.parse(f"SELECT * FROM {lake.text('ns', 't')}")
        with pytest.raises(EngineExecutionError):
            other.analyse(plan, tag="other")
    finally:
        other.close()
    assert not other.alive
    assert lake.session.alive


def test_a_changed_setting_is_noticed(engine: SparkEngine) -> None:
    session = engine.open_session()
    assert isinstance(session, SparkEngineSession)
    assert session.check_settings()
    session.spark._jsparkSession.conf().set("spark.sql.ansi.enabled", "false")
    assert not session.check_settings()
    session.close()


def test_parsing_takes_the_settings_of_its_session(engine: SparkEngine, lake: Lake) -> None:
    """ENF-3: another session is active in the calling thread."""
    other = engine.open_session()
    assert isinstance(other, SparkEngineSession)
    sessions = other.context._jvm.org.apache.spark.sql.classic.SparkSession
    other.spark._jsparkSession.conf().set("spark.sql.timestampType", "TIMESTAMP_LTZ")
    sessions.setActiveSession(other.spark._jsparkSession)
    try:
        plan = lake.session.parse("SELECT TIMESTAMP '2024-01-01 00:00:00' AS x")
        assert lake.session.analyse(plan, tag="active").column_types == ("timestamp_ntz",)
        plan = other.parse("SELECT TIMESTAMP '2024-01-01 00:00:00' AS x")
        assert other.analyse(plan, tag="active2").column_types == ("timestamp_ltz",)
        assert sessions.getActiveSession().get().equals(other.spark._jsparkSession)
    finally:
        sessions.clearActiveSession()
        other.close()


def test_forgotten_plans_are_freed(lake: Lake) -> None:
    plan = lake.session.parse("SELECT 1")
    assert isinstance(plan.description, PlanDescription)
    handle = plan.handle  # type: ignore[attr-defined]  # of this engine
    del plan
    lake.session.parse("SELECT 2")
    with pytest.raises(Exception, match="plan"):
        lake.session.bridge.plan(handle)


# Cancelling


class SlowCatalog(BaseHTTPRequestHandler):
    """An Iceberg REST catalog that never answers when a table is loaded."""

    asked = threading.Event()
    ended = threading.Event()

    def do_GET(self) -> None:
        if "/tables/" in self.path:
            self.asked.set()
            self.ended.wait(60)
        body = b'{"defaults": {}, "overrides": {}}'
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def test_cancel_reaches_analysis(engine: SparkEngine) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), SlowCatalog)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    session = engine.open_session()
    try:
        session.mount(
            "_sqe_c_slow", {"type": "rest", "sqe.mount": "rest", "uri": f"http://127.0.0.1:{server.server_address[1]}"}
        )
        plan = session.parse("SELECT * FROM _sqe_c_slow.ns.t")

        def cancel() -> None:
            SlowCatalog.asked.wait(30)
            session.cancel("slow")

        threading.Thread(target=cancel, daemon=True).start()
        started = time.monotonic()
        with pytest.raises(QueryCancelledError):
            session.analyse(plan, tag="slow")
        assert time.monotonic() - started < PROMPT_SECS
        assert SlowCatalog.asked.is_set()
    finally:
        SlowCatalog.ended.set()
        session.close()
        server.shutdown()
        server.server_close()


def test_a_cancelled_tag_never_starts(lake: Lake) -> None:
    lake.session.cancel("too-early")
    plan = lake.session.parse("SELECT 1")
    with pytest.raises(QueryCancelledError):
        lake.session.analyse(plan, tag="too-early")
    lake.session.analyse(plan, tag="another")
