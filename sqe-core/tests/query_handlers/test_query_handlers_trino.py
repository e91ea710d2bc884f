"""Statements of Trino's clients: their shapes, and that nobody learns by them what is hidden."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from handler_lake import ALICE, BOB, ROOT

from sqe_core.catalog.registry import Mount
from sqe_core.catalog.visible import VisibleCatalogs
from sqe_core.query.answers.trino_plans import graphviz_plan, json_plan
from sqe_core.query.run.running import RunningStatement
from sqe_core.spi.catalog import Column, PartitionField
from sqe_core.spi.errors import ErrorCode, QueryCancelledError
from sqe_core.spi.names import ObjectName

if TYPE_CHECKING:
    from conftest import Trino

SHAPES = {
    "SHOW CATALOGS LIKE 'l%'": (["Catalog"], [("lake",)]),
    "SHOW SCHEMAS LIKE 'information$_%' ESCAPE '$'": (["Schema"], [("information_schema",)]),
    "SHOW SCHEMAS FROM system": (
        ["Schema"],
        [("information_schema",), ("jdbc",), ("metadata",), ("runtime",)],
    ),
    "SHOW TABLES": (["Table"], [("people",)]),
    "SHOW COLUMNS FROM people LIKE 'n%'": (["Column", "Type", "Extra", "Comment"], [("name", "varchar", "", "")]),
    "DESCRIBE hr.pay": (
        ["Column", "Type", "Extra", "Comment"],
        [("id", "integer", "", ""), ("amount", "varchar", "", "")],
    ),
    "DESC system.jdbc.table_types": (
        ["Column", "Type", "Extra", "Comment"],
        [("table_type", "varchar", "", "")],
    ),
    "SHOW FUNCTIONS LIKE 'uppe_'": (
        ["Function", "Return Type", "Argument Types", "Function Type", "Deterministic", "Description"],
        [("upper", "varchar", "string", "scalar", True, "upper(string) -> varchar")],
    ),
    "SHOW CREATE SCHEMA hr": (["Create Schema"], [("CREATE SCHEMA lake.hr",)]),
    "SHOW CURRENT ROLES": (["Role"], [("analyst",)]),
    "SHOW ROLES": (["Role"], [("analyst",)]),
    "SHOW ROLE GRANTS": (["Role Grants"], [("analyst",)]),
}


@pytest.mark.parametrize("sql", SHAPES)
def test_shapes(trino: Trino, sql: str) -> None:
    assert trino.ask(ALICE, sql) == SHAPES[sql]


def test_the_other_dialect_keeps_its_own(trino: Trino) -> None:
    assert trino.lake.run(ALICE, "SHOW CATALOGS") == [("lake",), ("other",)]
    assert trino.lake.run(ALICE, "SHOW SCHEMAS FROM system") == [("runtime",)]
    assert trino.lake.refusal(ALICE, "SELECT * FROM system.jdbc.tables").code is ErrorCode.TABLE_NOT_FOUND


def test_a_backslash_escapes_only_when_it_is_said(trino: Trino) -> None:
    trino.lake.root("CREATE TABLE a_b AS SELECT id FROM hr.pay", "CREATE TABLE axb AS SELECT id FROM hr.pay")
    assert trino.rows(ALICE, r"SHOW TABLES LIKE 'a\_b'") == []
    assert trino.rows(ALICE, r"SHOW TABLES LIKE 'a\_b' ESCAPE '\'") == [("a_b",)]
    assert trino.rows(ALICE, "SHOW TABLES LIKE 'a##_b' ESCAPE '#'") == []


def test_show_create_table(trino: Trino) -> None:
    people = trino.lake.engine.catalogs["lake"].tables
    table, rows = people[("default",), "people"]
    people[("default",), "people"] = (
        replace(
            table,
            columns=(*table.columns[:2], Column(name="My City", type="string", nullable=False, comment="it's home")),
            partitioning=(
                PartitionField(name="d", source="id", transform="bucket[4]"),
                PartitionField(name="n", source="name", transform="identity"),
            ),
            properties={
                "write.parquet.compression-codec": "zstd",
                "write.target-file-size-bytes": "536870912",
                "write.delete.mode": "merge-on-read",
                "write.metadata.path": "s3://secret",
                "owner": "root",
            },
            comment="who",
        ),
        rows,
    )
    ((text,),) = trino.rows(ALICE, "SHOW CREATE TABLE people")
    assert text == (
        "CREATE TABLE lake.default.people (\n"
        "   id integer,\n"
        "   name varchar,\n"
        "   \"My City\" varchar NOT NULL COMMENT 'it''s home'\n"
        ")\n"
        "COMMENT 'who'\n"
        "WITH (\n"
        "   format = 'PARQUET',\n"
        "   format_version = 2,\n"
        "   partitioning = ARRAY['bucket(id, 4)','name'],\n"
        "   compression_codec = 'ZSTD',\n"
        "   target_max_file_size = '512MB',\n"
        "   extra_properties = MAP(ARRAY['write.delete.mode'], ARRAY['merge-on-read'])\n"
        ")"
    )


def test_grants(trino: Trino) -> None:
    trino.lake.root("GRANT SELECT ON people TO ROLE analyst WITH GRANT OPTION", "GRANT SELECT ON hr.pay TO USER bob")
    row = ("root", "USER", "analyst", "ROLE", "lake", "default", "people", "SELECT", "YES", None)
    assert trino.rows(ALICE, "SHOW GRANTS ON people") == [row]
    assert trino.rows(ALICE, "SHOW GRANTS") == [row]
    assert trino.rows(ALICE, "SELECT * FROM information_schema.table_privileges") == [row]
    assert len(trino.rows(ROOT, "SELECT * FROM information_schema.table_privileges")) == 2


JDBC_COLUMNS = (
    "SELECT TABLE_CAT, TABLE_SCHEM, TABLE_NAME, COLUMN_NAME, DATA_TYPE, TYPE_NAME, COLUMN_SIZE, ORDINAL_POSITION\n"
    "FROM system.jdbc.columns\n"
    r"WHERE TABLE_CAT = 'lake' AND TABLE_SCHEM LIKE 'def\%' ESCAPE '\' AND TABLE_NAME LIKE '%' ESCAPE '\'"
    "\nORDER BY TABLE_CAT, TABLE_SCHEM, TABLE_NAME, ORDINAL_POSITION"
)


def test_what_drivers_ask_needs_no_engine(trino: Trino) -> None:
    for sql, expected in {
        "SELECT TABLE_CAT FROM system.jdbc.catalogs ORDER BY TABLE_CAT": [("lake",), ("other",), ("system",)],
        "SELECT table_type FROM system.jdbc.table_types": [("TABLE",), ("VIEW",)],
        "SELECT TABLE_NAME, TABLE_TYPE FROM system.jdbc.tables WHERE TABLE_CAT = 'lake' AND TABLE_SCHEM = 'hr'": [
            ("pay", "TABLE")
        ],
        "SELECT * FROM system.jdbc.udts": [],
        "SELECT * FROM system.metadata.materialized_views": [],
        "SELECT count(*) FROM system.jdbc.types WHERE type_name IN ('bigint', 'varchar')": [(2,)],
        "SELECT schema_name FROM information_schema.schemata WHERE NOT schema_name LIKE 'info%' ORDER BY 1 DESC": [
            ("hr",),
            ("default",),
        ],
        "SELECT DISTINCT table_schema FROM lake.information_schema.tables WHERE table_schema <> 'hr'": [
            ("default",),
            ("information_schema",),
        ],
        "SELECT table_name FROM information_schema.tables ORDER BY table_name OFFSET 1 LIMIT 2": [
            ("columns",),
            ("enabled_roles",),
        ],
        JDBC_COLUMNS: [],
        JDBC_COLUMNS.replace(r"def\%", "def%").replace(", COLUMN_SIZE", "", 1): [
            ("lake", "default", "people", "id", 4, "integer", 1),
            ("lake", "default", "people", "name", 12, "varchar", 2),
            ("lake", "default", "people", "city", 12, "varchar", 3),
        ],
        "SELECT comment FROM system.metadata.table_comments WHERE catalog_name = 'lake' AND schema_name = 'hr'": [
            (None,)
        ],
    }.items():
        assert trino.rows(ALICE, sql) == expected, sql
    assert trino.lake.engine.executed == []


def test_values_of_parameters(trino: Trino) -> None:
    sql = 'SELECT "column_name", UPPER("is_nullable") AS "is_nullable" FROM information_schema.columns'
    where = ' WHERE "table_schema" = ? AND "table_name" = ? ORDER BY ordinal_position DESC'
    expected = [("amount", "YES"), ("id", "YES")]
    assert trino.rows(ALICE, sql + where, pa.scalar("hr"), pa.scalar("pay")) == expected
    assert trino.rows(ALICE, f"EXECUTE IMMEDIATE '{sql}{where}' USING 'hr', 'pay'") == expected
    assert trino.rows(ALICE, sql + where, "hr", "pay' OR '1' = '1") == []
    assert trino.lake.engine.executed == []


def test_names_are_as_they_were_written(trino: Trino) -> None:
    names, _ = trino.ask(ALICE, 'SELECT TABLE_CAT, table_cat AS "Cat", upper(table_cat) FROM system.jdbc.catalogs')
    assert names == ["TABLE_CAT", "Cat", "_col2"]


def test_unknown_columns_and_types_are_told_as_ever(trino: Trino) -> None:
    assert trino.refusal(ALICE, "SELECT nothing FROM information_schema.tables").kind.value == "USER_ERROR"
    assert trino.refusal(ALICE, "SELECT * FROM information_schema.nothing").code is ErrorCode.TABLE_NOT_FOUND
    assert trino.refusal(ALICE, "SELECT * FROM system.jdbc.nothing").code is ErrorCode.TABLE_NOT_FOUND


HIDDEN = [
    "SELECT table_name FROM information_schema.tables WHERE table_schema = 'hr'",
    "SELECT column_name FROM information_schema.columns WHERE table_schema = 'hr' AND table_name = 'pay'",
    "SELECT table_name FROM system.jdbc.tables WHERE table_cat = 'lake' AND table_schem = 'hr' AND table_name = 'pay'",
    "SELECT column_name FROM system.jdbc.columns WHERE table_schem LIKE 'h%' AND table_name = 'pay'",
    "SELECT comment FROM system.metadata.table_comments WHERE schema_name = 'hr' AND table_name = 'pay'",
    "SELECT table_name FROM information_schema.table_privileges WHERE table_name = 'pay'",
    "SHOW TABLES FROM hr LIKE 'pay'",
]


@pytest.mark.rule("STMT-9", "ERR-5")
@pytest.mark.parametrize("sql", HIDDEN)
def test_a_hidden_table_is_nowhere(trino: Trino, sql: str) -> None:
    trino.lake.root("GRANT SELECT ON hr.pay TO USER alice")
    assert trino.rows(ALICE, sql) != []
    assert trino.rows(BOB, sql) == []
    trino.lake.root("DENY SELECT ON hr.pay TO USER alice")
    assert trino.rows(ALICE, sql) == []


@pytest.mark.rule("STMT-9")
def test_a_hidden_column_is_nowhere(trino: Trino) -> None:
    trino.lake.root("GRANT SELECT (id, name) ON people TO USER alice")
    for sql, expected in {
        "SELECT column_name FROM information_schema.columns WHERE table_name = 'people'": [("id",), ("name",)],
        "SELECT column_name FROM system.jdbc.columns WHERE table_name = 'people'": [("id",), ("name",)],
        "SELECT count(*) FROM system.jdbc.columns WHERE table_name = 'people' AND column_name = 'city'": [(0,)],
    }.items():
        assert trino.rows(ALICE, sql) == expected
    assert [row[0] for row in trino.rows(ALICE, "DESCRIBE people")] == ["id", "name"]
    ((text,),) = trino.rows(ALICE, "SHOW CREATE TABLE people")
    assert "city" not in text


@pytest.mark.rule("NAME-4", "NAME-6")
@pytest.mark.parametrize(
    "name", ["people$files", "_sqe_metadata_files", "../hr/pay", "people#x", "PEOPLE", "people.x", "", "default.people"]
)
def test_names_that_are_none_find_nothing(trino: Trino, name: str) -> None:
    for schema in ("default", "default.x", "../default", "_sqe_x"):
        sql = "SELECT column_name FROM information_schema.columns WHERE table_schema = ? AND table_name = ?"
        assert trino.rows(ALICE, sql, schema, name) == []


def test_rows_come_while_they_are_looked_for(trino: Trino, monkeypatch: pytest.MonkeyPatch) -> None:
    """A listing of everything holds no more of it than a batch, and ends when nobody reads on."""
    catalog = trino.lake.engine.catalogs["lake"]
    rows = pa.table({"id": pa.array([1], pa.int32())})
    for number in range(3000):
        catalog.put("many", f"t{number:05}", rows)
    loaded: list[str] = []
    load = type(catalog).load_table

    def counting(catalog: object, namespace: tuple[str, ...], name: str) -> object:
        loaded.append(name)
        return load(catalog, namespace, name)  # type: ignore[arg-type]

    monkeypatch.setattr(type(catalog), "load_table", counting)
    sql = "SELECT * FROM information_schema.columns WHERE table_schema = 'many'"
    service, session = trino.lake.sqe.service, trino.lake.session(ALICE)
    result = service.execute(session, sql, dialect="trino")
    assert service.is_running(session)
    first = next(iter(result))
    assert first.num_rows == 1000
    assert len(loaded) < 1100
    result.close()
    assert not service.is_running(session)
    loaded.clear()
    assert len(trino.rows(ALICE, sql)) == 3000
    loaded.clear()
    assert trino.rows(ALICE, f"{sql} AND table_name = 't00007'")[0][2] == "t00007"
    assert loaded == ["t00007"]


def test_the_comment_of_a_column_is_there_for_who_names_it(trino: Trino) -> None:
    tables = trino.lake.engine.catalogs["lake"].tables
    for place in ((("default",), "people"), (("hr",), "pay")):
        table, rows = tables[place]
        noted = tuple(replace(column, comment=f"the {column.name}") for column in table.columns)
        tables[place] = replace(table, columns=noted), rows
    where = "FROM information_schema.columns WHERE table_name = 'people' AND column_name = 'id'"
    assert trino.rows(ALICE, f"SELECT column_name, comment, extra_info {where}") == [("id", "the id", None)]
    assert "comment" not in trino.ask(ALICE, f"SELECT * {where}")[0]
    by_comment = "SELECT column_name FROM information_schema.columns WHERE comment = 'the amount'"
    trino.lake.root("GRANT SELECT ON hr.pay TO USER alice")
    assert trino.rows(ALICE, by_comment) == [("amount",)]
    assert trino.rows(BOB, by_comment) == []


# EXPLAIN


def test_explain(trino: Trino) -> None:
    for options in ("", "(TYPE LOGICAL)", "(TYPE DISTRIBUTED, FORMAT TEXT)", "(FORMAT GRAPHVIZ)", "(FORMAT JSON)"):
        names, rows = trino.ask(ALICE, f"EXPLAIN {options} SELECT id FROM people")
        assert (names, len(rows)) == (["Query Plan"], 1)
    assert trino.ask(ALICE, "EXPLAIN (TYPE VALIDATE) SELECT id FROM people") == (["Valid"], [(True,)])
    assert trino.refusal(ALICE, "EXPLAIN (TYPE VALIDATE) SELECT id FROM nothing").code is ErrorCode.TABLE_NOT_FOUND
    assert trino.refusal(ALICE, "EXPLAIN ANALYZE SELECT id FROM people").code is ErrorCode.NOT_SUPPORTED
    assert trino.refusal(ALICE, "EXPLAIN (TYPE IO, FORMAT TEXT) SELECT 1 AS one").code is ErrorCode.NOT_SUPPORTED
    assert trino.lake.engine.executed == []


def test_explain_what_is_read_and_written(trino: Trino) -> None:
    ((text,),) = trino.rows(ALICE, "EXPLAIN (TYPE IO) CREATE TABLE more AS SELECT id FROM people")
    plan = json.loads(text)
    assert [each["table"]["schemaTable"]["table"] for each in plan["inputTableColumnInfos"]] == ["people"]
    assert plan["outputTable"] == {"catalog": "lake", "schemaTable": {"schema": "default", "table": "more"}}


def test_a_plan_is_a_tree() -> None:
    plan = 'Join\n:- Project [a]\n:  +- Table "t"\n+- Table u'
    tree = json.loads(json_plan(plan))
    assert (tree["name"], [child["name"] for child in tree["children"]]) == ("Join", ["Project", "Table"])
    assert tree["children"][0]["children"][0]["details"] == ['Table "t"']
    graph = graphviz_plan(plan)
    assert graph.count("->") == 3
    assert '\\"t\\"' in graph


@pytest.mark.rule("VIEW-4")
def test_the_comment_of_a_view_is_for_who_may_read_its_text(trino: Trino) -> None:
    """It may say what the text does; SHOW CREATE VIEW and information_schema.views keep both from the others."""
    trino.lake.root(
        "CREATE VIEW pays COMMENT 'of those below 9000' AS SELECT id FROM hr.pay", "GRANT SELECT ON pays TO USER alice"
    )
    trino.lake.root("GRANT SELECT ON hr.pay TO USER alice")
    sql = "SELECT table_name, comment FROM system.metadata.table_comments WHERE table_name = 'pays'"
    assert trino.rows(ALICE, sql) == [("pays", "of those below 9000")]
    trino.lake.root("REVOKE SELECT ON hr.pay FROM USER alice", "GRANT SELECT ON hr.pay TO USER alice ROWS WHERE id < 0")
    assert trino.rows(ALICE, "SELECT view_definition FROM information_schema.views") == [(None,)]
    assert trino.rows(ALICE, sql) == [("pays", None)]


@pytest.mark.rule("LIM-7")
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM system.jdbc.columns WHERE remarks = 'nothing'",
        "SELECT count(*) FROM system.metadata.table_comments WHERE comment = 'nothing'",
    ],
)
def test_a_listing_without_rows_can_be_ended(trino: Trino, sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It loads every table that there is, and gives no row before the end."""
    for n in range(20):
        trino.lake.engine.catalogs["lake"].put("many", f"t{n}", pa.table({"id": [1]}))
    loaded: list[str] = []
    running: list[RunningStatement] = []
    load, made = VisibleCatalogs.load, RunningStatement.__init__

    def remembered(one: RunningStatement, *args: object) -> None:
        made(one, *args)  # type: ignore[arg-type]
        running.append(one)

    def found(visible: VisibleCatalogs, mount: Mount, name: ObjectName) -> object:
        loaded.append(name.name)
        running[-1].cancel()
        return load(visible, mount, name)

    monkeypatch.setattr(RunningStatement, "__init__", remembered)
    monkeypatch.setattr(VisibleCatalogs, "load", found)
    assert isinstance(trino.refusal(ROOT, sql), QueryCancelledError)
    assert len(loaded) == 1


def test_partitioning_and_order_are_properties(trino: Trino) -> None:
    trino.rows(ALICE, "ALTER TABLE people SET PROPERTIES partitioning = ARRAY['bucket(id, 4)', 'city']")
    trino.rows(ALICE, "ALTER TABLE people SET PROPERTIES sorted_by = ARRAY['name DESC']")
    ((text,),) = trino.rows(ALICE, "SHOW CREATE TABLE people")
    assert "partitioning = ARRAY['bucket(id, 4)','city']" in text
    assert "sorted_by = ARRAY['name DESC NULLS LAST']" in text
    trino.rows(ALICE, "ALTER TABLE people SET PROPERTIES partitioning = ARRAY[], sorted_by = ARRAY[]")
    assert "ARRAY" not in trino.rows(ALICE, "SHOW CREATE TABLE people")[0][0]
    for bad in ("'nothing(id)'", "'bucket(id)'", "'bucket(id, 0)'", "'id, name'", "''"):
        error = trino.refusal(ALICE, f"ALTER TABLE people SET PROPERTIES partitioning = ARRAY[{bad}]")
        assert error.kind.value == "USER_ERROR"
    assert (
        trino.refusal(ALICE, "ALTER TABLE people SET PROPERTIES partitioning = ARRAY['id'], format_version = 2").code
        is ErrorCode.NOT_SUPPORTED
    )


@pytest.mark.rule("DML-4")
def test_nobody_partitions_what_they_see_in_part(trino: Trino) -> None:
    trino.lake.root("GRANT SELECT, MANAGE ON people TO USER alice ROWS WHERE id = 1")
    error = trino.refusal(ALICE, "ALTER TABLE people SET PROPERTIES partitioning = ARRAY['id']")
    assert "restricted" in error.message
