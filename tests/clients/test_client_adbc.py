"""ADBC for Python, the client of notebooks and of dbt: statements, parameters, metadata, bulk load, sign-in."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from datetime import time as clock
from decimal import Decimal
from typing import Any

import adbc_driver_flightsql
import adbc_driver_flightsql.dbapi as flight_sql
import adbc_driver_manager
import pandas
import pyarrow as pa
import pytest
from testbed.arrow_types import plain
from testbed.clocks import PROMPT_SECS

from sqe_core.protocols.flight.wire import flight_sql_pb2 as sql

Connect = Callable[..., flight_sql.Connection]
PEOPLE = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "name": ["ada", "bob", None]})


def rows(cursor: flight_sql.Cursor, text: str, parameters: Any = None) -> list[tuple[Any, ...]]:
    cursor.execute(text, parameters)
    return cursor.fetchall()


# Statements


def test_select(cursor: flight_sql.Cursor) -> None:
    assert rows(cursor, "SELECT 1 AS one, 'ü€😀' AS text, NULL AS nothing") == [(1, "ü€😀", None)]
    assert [column[0] for column in cursor.description] == ["one", "text", "nothing"]


def test_create_insert_update_delete(cursor: flight_sql.Cursor, table: str) -> None:
    cursor.execute(f"CREATE TABLE {table} (id bigint, name varchar)")
    cursor.execute(f"INSERT INTO {table} VALUES (1, 'ada'), (2, 'bob')")
    assert cursor.rowcount == 2
    cursor.execute(f"UPDATE {table} SET name = 'eve' WHERE id = 2")
    cursor.execute(f"DELETE FROM {table} WHERE id = 1")
    assert rows(cursor, f"SELECT * FROM {table}") == [(2, "eve")]
    cursor.execute(f"DROP TABLE {table}")
    with pytest.raises(flight_sql.ProgrammingError, match="does not exist"):
        cursor.execute(f"SELECT * FROM {table}")


def test_many_rows(cursor: flight_sql.Cursor) -> None:
    cursor.execute("SELECT id, id * 2 AS twice FROM range(300000) AS r(id)")
    found = cursor.fetch_arrow_table()
    assert found.num_rows == 300_000
    assert sorted(found["twice"].to_pylist()) == list(range(0, 600_000, 2))


def test_errors_say_what_is_wrong(cursor: flight_sql.Cursor) -> None:
    with pytest.raises(flight_sql.ProgrammingError, match="line 1:15: Table nope does not exist") as caught:
        cursor.execute("SELECT * FROM nope")
    assert caught.value.status_code is adbc_driver_manager.AdbcStatusCode.NOT_FOUND
    details = dict(caught.value.details)
    assert details[b"x-sqe-error-code"] == b"TABLE_NOT_FOUND"
    with pytest.raises(flight_sql.ProgrammingError, match="Unexpected SELEC") as caught:
        cursor.execute("SELEC 1")
    assert caught.value.status_code is adbc_driver_manager.AdbcStatusCode.INVALID_ARGUMENT
    with pytest.raises(flight_sql.Error, match=r"[Dd]ivision by zero"):
        rows(cursor, "SELECT 1 / (id - id) FROM range(3) AS r(id)")


# Parameters

VALUES: list[tuple[str, str, Any]] = [
    ("boolean", "boolean", True),
    ("bigint", "bigint", -(2**63)),
    ("double", "double", 0.1),
    ("varchar", "varchar", "o'neil; DROP TABLE x --"),
    ("varbinary", "varbinary", b"\x00\xff"),
    ("date", "date", date(2024, 2, 29)),
    ("timestamp", "timestamp", datetime(2026, 1, 2, 3, 4, 5, 6)),
    ("timestamp with time zone", "timestamp with time zone", datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)),
    ("decimal", "decimal(38,10)", Decimal("1234567890123456789012345678.0123456789")),
    ("time", "time(6)", clock(1, 2, 3, 4)),
]


@pytest.mark.parametrize(("name", "type", "value"), VALUES, ids=[name for name, _, _ in VALUES])
def test_a_parameter_of_each_type(cursor: flight_sql.Cursor, table: str, name: str, type: str, value: Any) -> None:
    column = pa.array([value]) if name != "decimal" else pa.array([value], pa.decimal128(38, 10))
    bound = pa.table({"1": column})
    cursor.execute(f"SELECT CAST(? AS {type}) AS x", bound)
    assert cursor.fetchone() == (value,)
    cursor.execute(f"CREATE TABLE {table} (x {type})")
    cursor.execute(f"INSERT INTO {table} VALUES (?)", bound)
    cursor.execute(f"INSERT INTO {table} VALUES (?)", pa.table({"1": pa.nulls(1, column.type)}))
    assert rows(cursor, f"SELECT x FROM {table} WHERE x = CAST(? AS {type})", bound) == [(value,)]
    assert rows(cursor, f"SELECT count(*) FROM {table} WHERE x IS NULL") == [(1,)]


def test_a_uuid_is_a_parameter(cursor: flight_sql.Cursor, table: str) -> None:
    one, other = uuid.uuid4(), uuid.uuid4()
    assert rows(cursor, "SELECT ? AS x", (one,)) == [(str(one),)]
    cursor.execute(f"CREATE TABLE {table} (id uuid, n bigint)")
    cursor.execute(f"INSERT INTO {table} VALUES (?, ?)", (one, 1))
    cursor.executemany(f"INSERT INTO {table} VALUES (?, ?)", [(other, 2), (None, 3)])
    assert rows(cursor, f"SELECT n FROM {table} WHERE id = ?", (one,)) == [(1,)]
    assert rows(cursor, f"SELECT n FROM {table} WHERE id = ?", (other,)) == [(2,)]


def test_nanoseconds_are_never_cut(cursor: flight_sql.Cursor, table: str) -> None:
    fits, cut = (pa.table({"1": pa.array([value], pa.timestamp("ns"))}) for value in (1000, 1001))
    assert rows(cursor, "SELECT ? AS x", fits) == [(datetime(1970, 1, 1, 0, 0, 0, 1),)]
    with pytest.raises(flight_sql.ProgrammingError, match=r"Parameter 1 has nanoseconds.*send microseconds"):
        rows(cursor, "SELECT ? AS x", cut)
    cursor.execute(f"CREATE TABLE {table} (at timestamp)")
    for values in (cut, pa.concat_tables([fits, cut])):
        with pytest.raises(flight_sql.ProgrammingError, match="Parameter 1 has"):
            cursor.executemany(f"INSERT INTO {table} VALUES (?)", values)
    assert rows(cursor, f"SELECT count(*) FROM {table}") == [(0,)]


def test_parameters_whose_types_only_values_tell(cursor: flight_sql.Cursor, table: str) -> None:
    assert rows(cursor, "SELECT CASE WHEN ? THEN 1 ELSE ? END", (True, 2)) == [(1,)]
    assert rows(cursor, "SELECT element_at(?, 2)", (["a", "b"],)) == [("b",)]
    assert rows(cursor, "SELECT * FROM generate_series(?, ?)", (1, 3)) == [(1,), (2,), (3,)]
    assert [row[0] for row in rows(cursor, "EXPLAIN SELECT ?", (1,))] == ["logical_plan", "physical_plan"]
    cursor.execute(f"CREATE TABLE {table} (name varchar)")
    cursor.executemany(f"INSERT INTO {table} VALUES (element_at(?, 1))", [(["a"],), (["b"],)])
    assert sorted(rows(cursor, f"SELECT name FROM {table} WHERE ?", (True,))) == [("a",), ("b",)]
    assert [field.type for field in cursor.adbc_prepare("SELECT element_at(?, 1)")] == [pa.null()]
    with pytest.raises(flight_sql.Error, match="did not provide schema"):
        cursor.adbc_execute_schema("SELECT element_at(?, 1)")


def test_executemany(cursor: flight_sql.Cursor, table: str) -> None:
    cursor.execute(f"CREATE TABLE {table} (id bigint, name varchar)")
    cursor.executemany(f"INSERT INTO {table} VALUES (?, ?)", [(1, "a"), (2, None), (3, "c")])
    assert cursor.rowcount == 3
    assert rows(cursor, f"SELECT * FROM {table} ORDER BY id") == [(1, "a"), (2, None), (3, "c")]
    cursor.executemany(f"DELETE FROM {table} WHERE id = ?", [(1,), (2,)])
    assert rows(cursor, f"SELECT id FROM {table}") == [(3,)]


def test_executemany_is_one_commit(cursor: flight_sql.Cursor, table: str) -> None:
    cursor.execute(f"CREATE TABLE {table} (id bigint, name varchar)")
    many = [(number, f"name {number}") for number in range(10_000)]
    began = time.monotonic()
    cursor.executemany(f"INSERT INTO {table} (id, name) VALUES (?, ?)", many)
    assert time.monotonic() - began < 15
    assert rows(cursor, f"SELECT count(*), count(DISTINCT name), max(id) FROM {table}") == [(10_000, 10_000, 9999)]
    assert rows(cursor, f'SELECT count(*) FROM "{table}$snapshots"') == [(1,)]
    with pytest.raises(flight_sql.Error):
        cursor.executemany(f"INSERT INTO {table} (id) VALUES (10 / ?)", [(1,), (0,)])
    assert rows(cursor, f"SELECT count(*) FROM {table}") == [(10_000,)]


def test_numbered_parameters(cursor: flight_sql.Cursor, table: str) -> None:
    assert rows(cursor, "SELECT $2 || ' ' || $1 || ' ' || $2", ("a", "b")) == [("b a b",)]
    assert [field.type for field in cursor.adbc_prepare("SELECT $2 || CAST($1 AS varchar)")] == [pa.string()] * 2
    cursor.execute(f"CREATE TABLE {table} (id bigint, name varchar)")
    cursor.executemany(f"INSERT INTO {table} (name, id) VALUES ($2, $1)", [(1, "a"), (2, None)])
    cursor.execute(f"UPDATE {table} SET name = $1 WHERE name IS NULL AND id > $2", ("b", 1))
    assert rows(cursor, f"SELECT * FROM {table} WHERE id >= $1 ORDER BY id", (1,)) == [(1, "a"), (2, "b")]
    with pytest.raises(flight_sql.Error, match=r"Parameter \$2 stands here, and one below it nowhere"):
        rows(cursor, "SELECT $2", (1,))


def test_a_query_runs_for_each_row_of_parameters(cursor: flight_sql.Cursor, table: str) -> None:
    cursor.execute(f"CREATE TABLE {table} AS SELECT id FROM range(5) AS r(id)")
    several = pa.table({"1": [3, 9, None, 1]})
    assert rows(cursor, f"SELECT id, 'x' FROM {table} WHERE id = ?", several) == [(3, "x"), (1, "x")]
    assert rows(cursor, "SELECT CAST(? AS bigint)", several) == [(3,), (9,), (None,), (1,)]
    named = pa.table({"low": [0, 3], "high": [1, 9]})
    assert rows(cursor, f"SELECT count(*) FROM {table} WHERE id BETWEEN :low AND :high", named) == [(2,), (2,)]
    with pytest.raises(flight_sql.Error, match="Division by zero"):  # the rows before were sent
        rows(cursor, "SELECT 1 / ?", pa.table({"1": [1, 0]}))
    with pytest.raises(flight_sql.Error, match=r"at most 1000 rows of parameters.*join with VALUES"):
        rows(cursor, "SELECT CAST(? AS bigint)", pa.table({"1": range(1001)}))
    with pytest.raises(flight_sql.Error, match=r"This statement returns rows \(send it as a query\)"):
        cursor.executemany("SELECT CAST(? AS bigint)", several)


def test_statements_that_are_prepared_in_sql(cursor: flight_sql.Cursor, connect: Connect, table: str) -> None:
    cursor.execute(f"CREATE TABLE {table} AS SELECT id FROM range(3) AS r(id)")
    snapshot = rows(cursor, f'SELECT snapshot_id FROM "{table}$snapshots"')[0][0]
    cursor.execute(f"PREPARE few FROM SELECT id, id * 2 AS twice FROM {table} WHERE id < ?")
    assert rows(cursor, "EXECUTE few USING 2") == [(0, 0), (1, 2)]
    assert rows(cursor, "DESCRIBE INPUT few") == [(0, "bigint")]
    described = rows(cursor, "DESCRIBE OUTPUT few")
    assert [(name, type) for name, *_, type, _, _ in described] == [("id", "bigint"), ("twice", "bigint")]
    cursor.execute(f"PREPARE more FROM INSERT INTO {table} VALUES (?)")
    cursor.execute("EXECUTE more USING 7")
    assert rows(cursor, f"EXECUTE IMMEDIATE 'SELECT max(id) FROM {table} WHERE id > ?' USING 1") == [(7,)]
    cursor.execute("DEALLOCATE PREPARE few")
    with pytest.raises(flight_sql.Error, match="few"):
        cursor.execute("EXECUTE few USING 2")
    back = f"CALL iceberg.system.rollback_to_snapshot('default', '{table}', {snapshot})"
    with pytest.raises(flight_sql.Error, match="it takes its owner"):
        rows(cursor, back)
    with connect("root").cursor() as administrator:
        assert rows(administrator, back)[0][-1] == "ok"
    assert rows(cursor, f"SELECT max(id) FROM {table}") == [(2,)]


def test_statements_of_one_session_run_side_by_side(connect: Connect, table: str) -> None:
    """Connections with the same login share a session; a long write holds up nobody."""
    first, second = connect(), connect()
    with first.cursor() as writing, second.cursor() as reading:
        writing.execute(f"CREATE TABLE {table} (id bigint)")
        over = threading.Event()

        def write() -> None:
            text = f"INSERT INTO {table} SELECT a.id FROM range(30000) AS a(id) CROSS JOIN range(20000) AS b(id)"
            writing.execute(f"{text} WHERE a.id + b.id = 1")
            over.set()

        rows(reading, "SELECT 1")
        thread = threading.Thread(target=write)
        thread.start()
        time.sleep(0.3)
        answered = 0
        while not over.is_set():
            assert rows(reading, "SELECT 40 + 2") == [(42,)]
            answered += not over.is_set()
        thread.join()
        assert answered >= 1
        assert rows(reading, f"SELECT count(*) FROM {table}") == [(2,)]


def test_wrong_parameters(cursor: flight_sql.Cursor) -> None:
    for values in ((), (1, 2)):
        with pytest.raises(flight_sql.Error, match="parameter"):
            rows(cursor, "SELECT CAST(? AS bigint)", values)
    with pytest.raises(flight_sql.Error):
        rows(cursor, "SELECT DATE '2026-01-01' + ?", ("no number",))


def test_prepared_statements_tell_their_parameters(cursor: flight_sql.Cursor, table: str) -> None:
    cursor.execute(f"CREATE TABLE {table} (id bigint, name varchar)")
    schema = cursor.adbc_prepare(f"SELECT name FROM {table} WHERE id = ? AND name = ?")
    assert [field.type for field in schema] == [pa.int64(), pa.string()]
    assert cursor.adbc_execute_schema(f"SELECT id, name FROM {table}").names == ["id", "name"]


# Types

TYPES: list[tuple[str, pa.DataType, str, Any]] = [
    ("boolean", pa.bool_(), "true", True),
    ("tinyint", pa.int8(), "CAST(-128 AS tinyint)", -128),
    ("smallint", pa.int16(), "CAST(32767 AS smallint)", 32767),
    ("integer", pa.int32(), "2147483647", 2147483647),
    ("bigint", pa.int64(), "9223372036854775807", 9223372036854775807),
    ("real", pa.float32(), "CAST(1.5 AS real)", 1.5),
    ("double", pa.float64(), "CAST(0.1 AS double)", 0.1),
    ("decimal(38,0)", pa.decimal128(38, 0), f"CAST('{'9' * 38}' AS decimal(38,0))", Decimal("9" * 38)),
    ("decimal(38,38)", pa.decimal128(38, 38), "CAST('0.5' AS decimal(38,38))", Decimal("0." + "5".ljust(38, "0"))),
    ("decimal(9,2)", pa.decimal128(9, 2), "CAST('-1.25' AS decimal(9,2))", Decimal("-1.25")),
    ("varchar", pa.string(), "'ü€😀'", "ü€😀"),
    ("varbinary", pa.binary(), "X'00FF'", b"\x00\xff"),
    ("date", pa.date32(), "DATE '0001-01-01'", date(1, 1, 1)),
    (
        "timestamp",
        pa.timestamp("us"),
        "TIMESTAMP '9999-12-31 23:59:59.999999'",
        datetime(9999, 12, 31, 23, 59, 59, 999999),
    ),
    (
        "timestamp with time zone",
        pa.timestamp("us", "UTC"),
        "TIMESTAMP '2026-01-02 03:04:05.000006 +02:00'",
        datetime(2026, 1, 2, 1, 4, 5, 6, tzinfo=UTC),
    ),
    ("interval day to second", pa.duration("us"), "INTERVAL '36' HOUR", timedelta(hours=36)),
    ("time", pa.time64("us"), "TIME '01:02:03.000004'", clock(1, 2, 3, 4)),
    (
        "interval year to month",
        pa.month_day_nano_interval(),
        "INTERVAL '1-2' YEAR TO MONTH",
        pa.MonthDayNano([14, 0, 0]),
    ),
    ("array", pa.list_(pa.int32()), "ARRAY[1, NULL]", [1, None]),
    (
        "row",
        pa.struct([("a", pa.int32()), ("b", pa.string())]),
        "CAST(ROW(1, 'x') AS ROW(a integer, b varchar))",
        {"a": 1, "b": "x"},
    ),
    ("map", pa.map_(pa.string(), pa.int32()), "MAP(ARRAY['a'], ARRAY[1])", [("a", 1)]),
    (
        "nested",
        pa.list_(pa.struct([("m", pa.map_(pa.string(), pa.list_(pa.int32())))])),
        "ARRAY[CAST(ROW(MAP(ARRAY['k'], ARRAY[ARRAY[1, 2]])) AS ROW(m map(varchar, array(integer))))]",
        [{"m": [("k", [1, 2])]}],
    ),
    ("nothing", pa.null(), "NULL", None),
]


@pytest.mark.parametrize(("name", "type", "literal", "value"), TYPES, ids=[name for name, *_ in TYPES])
def test_each_type_is_exactly_its_arrow_type(
    cursor: flight_sql.Cursor, name: str, type: pa.DataType, literal: str, value: Any
) -> None:
    cursor.execute(f"SELECT {literal} AS x")
    found = cursor.fetch_arrow_table()
    assert plain(found.schema.field("x").type) == plain(type)
    assert found["x"].to_pylist() == [value]
    if name != "nothing":
        cursor.execute(f"SELECT CASE WHEN n = 0 THEN {literal} END AS x FROM range(2) AS r(n) ORDER BY n")
        assert cursor.fetch_arrow_table()["x"].to_pylist() == [value, None]


STORED = """
    b boolean, i integer, l bigint, f real, d double, n decimal(38,10), s varchar, y varbinary, day date,
    ts timestamp, tz timestamp with time zone, a array(integer), m map(varchar, double), r row(x integer, y varchar)
"""


@pytest.mark.parametrize("columns", [STORED, "t time(6), id bigint"])
def test_a_tables_announced_types_are_those_of_its_rows(
    adbc: flight_sql.Connection, cursor: flight_sql.Cursor, table: str, columns: str
) -> None:
    cursor.execute(f"CREATE TABLE {table} ({columns})")
    announced = adbc.adbc_get_table_schema(table)
    cursor.execute(f"SELECT * FROM {table}")
    found = cursor.fetch_arrow_table().schema
    assert announced.names == found.names
    assert {each.name: plain(each.type) for each in announced} == {each.name: plain(each.type) for each in found}


# Metadata


def test_objects(adbc: flight_sql.Connection, cursor: flight_sql.Cursor, table: str) -> None:
    cursor.execute(f"CREATE TABLE {table} (id bigint NOT NULL, price decimal(10,2))")
    cursor.execute(f"CREATE VIEW {table}_view AS SELECT id FROM {table}")

    def tables(**filters: Any) -> dict[str, str]:
        found = adbc.adbc_get_objects(depth="tables", **filters).read_all().to_pylist()
        return {
            each["table_name"]: each["table_type"]
            for catalog in found
            for schema in catalog["catalog_db_schemas"] or ()
            for each in schema["db_schema_tables"] or ()
        }

    assert tables(table_name_filter=f"{table}%") == {table: "TABLE", f"{table}_view": "VIEW"}
    assert tables(table_name_filter=f"{table}%", table_types_filter=["VIEW"]) == {f"{table}_view": "VIEW"}
    system = dict.fromkeys(("columns", "df_settings", "schemata", "tables", "views"), "SYSTEM TABLE")
    assert tables(catalog_filter="iceberg", db_schema_filter="information_schema") == system
    assert tables(catalog_filter="iceberg", table_types_filter=["SYSTEM TABLE"]) == system
    assert tables(table_name_filter=f"{table}%", db_schema_filter="nope") == {}
    assert tables(table_name_filter=f"{table}%", catalog_filter="nope") == {}
    catalogs = adbc.adbc_get_objects(depth="catalogs").read_all().to_pylist()
    assert "iceberg" in [each["catalog_name"] for each in catalogs]
    (catalog,) = adbc.adbc_get_objects(depth="all", table_name_filter=table).read_all().to_pylist()
    (found,) = [
        each
        for schema in catalog["catalog_db_schemas"]
        for each in schema["db_schema_tables"]
        if each["table_name"] == table
    ]
    assert [(each["column_name"], each["ordinal_position"]) for each in found["table_columns"]] == [
        ("id", 1),
        ("price", 2),
    ]


def test_table_types_schema_and_info(adbc: flight_sql.Connection, cursor: flight_sql.Cursor, table: str) -> None:
    assert adbc.adbc_get_table_types() == ["SYSTEM TABLE", "TABLE", "VIEW"]
    assert adbc.adbc_get_info()["vendor_name"] == "SQE Coordinator"
    cursor.execute(f"CREATE TABLE {table} (id bigint, name varchar)")
    assert adbc.adbc_get_table_schema(table).types == [pa.int64(), pa.string()]
    assert adbc.adbc_get_table_schema(table, catalog_filter="iceberg", db_schema_filter="default").names == [
        "id",
        "name",
    ]
    with pytest.raises(flight_sql.Error):
        adbc.adbc_get_table_schema("nope")


def test_current_catalog_and_schema(adbc: flight_sql.Connection, cursor: flight_sql.Cursor, table: str) -> None:
    assert (adbc.adbc_current_catalog, adbc.adbc_current_db_schema) == ("iceberg", "default")
    cursor.execute(f"CREATE SCHEMA {table}")
    adbc.adbc_current_db_schema = table
    cursor.execute("CREATE TABLE here (id bigint)")
    assert rows(cursor, "SELECT current_schema") == [(table,)]
    assert adbc.adbc_get_table_schema("here", db_schema_filter=table).names == ["id"]
    cursor.execute("USE iceberg.default")
    assert adbc.adbc_current_db_schema == "default"
    with pytest.raises(flight_sql.Error):
        adbc.adbc_current_catalog = "nope"


def test_options_of_the_session(adbc: flight_sql.Connection, cursor: flight_sql.Cursor) -> None:
    options = adbc.adbc_connection
    options.set_options(**{"adbc.flight.sql.session.option.dialect": "spark"})
    assert options.get_option("adbc.flight.sql.session.option.dialect") == "spark"
    assert rows(cursor, "SELECT `a` FROM (SELECT 1 AS `a`)") == [(1,)]
    options.set_options(**{"adbc.flight.sql.session.optionerase.dialect": ""})
    assert options.get_option("adbc.flight.sql.session.option.dialect") == "sqe"
    for name, value in (("nope", "x"), ("dialect", "klingon")):
        with pytest.raises(flight_sql.Error):
            options.set_options(**{f"adbc.flight.sql.session.option.{name}": value})


# Bulk load


def snapshots(cursor: flight_sql.Cursor, table: str) -> int:
    ((count,),) = rows(cursor, f'SELECT count(*) FROM "{table}$snapshots"')
    return int(count)


def test_ingest_in_each_mode(cursor: flight_sql.Cursor, table: str) -> None:
    assert cursor.adbc_ingest(table, PEOPLE, mode="create") == 3
    assert cursor.adbc_ingest(table, PEOPLE, mode="append") == 3
    assert rows(cursor, f"SELECT count(*), count(name) FROM {table}") == [(6, 4)]
    assert snapshots(cursor, table) == 2
    with pytest.raises(flight_sql.Error, match="already exists"):
        cursor.adbc_ingest(table, PEOPLE, mode="create")
    other = pa.table({"x": [1.5]})
    assert cursor.adbc_ingest(table, other, mode="replace") == 1
    assert rows(cursor, f"SELECT * FROM {table}") == [(1.5,)]
    assert cursor.adbc_ingest(table, other, mode="create_append") == 1
    assert rows(cursor, f"SELECT count(*) FROM {table}") == [(2,)]
    with pytest.raises(flight_sql.Error, match="does not exist"):
        cursor.adbc_ingest(f"{table}_none", PEOPLE, mode="append")
    with pytest.raises(flight_sql.Error, match="Temporary tables are not supported"):
        cursor.adbc_ingest(table, PEOPLE, mode="append", temporary=True)


def test_ingest_of_nothing(adbc: flight_sql.Connection, cursor: flight_sql.Cursor, table: str) -> None:
    """As docs/clients.md says: the driver sends nothing at all when there is no batch."""
    nothing = PEOPLE.schema.empty_table()
    for sent in (nothing, nothing.to_reader(), pa.RecordBatchReader.from_batches(PEOPLE.schema, [])):
        with pytest.raises(flight_sql.ProgrammingError, match=r"No rows were sent.*send at least one batch"):
            cursor.adbc_ingest(table, sent, mode="create")
    with pytest.raises(pandas.errors.DatabaseError, match="Failed to insert"):
        PEOPLE.to_pandas().head(0).to_sql(table, adbc, index=False)
    assert cursor.adbc_ingest(table, pa.RecordBatch.from_pylist([], schema=PEOPLE.schema), mode="create") == 0
    assert rows(cursor, f"SELECT * FROM {table}") == []


def test_ingest_into_another_schema(cursor: flight_sql.Cursor, table: str) -> None:
    cursor.execute(f"CREATE SCHEMA {table}")
    cursor.adbc_ingest("here", PEOPLE, mode="create", catalog_name="iceberg", db_schema_name=table)
    assert rows(cursor, f"SELECT count(*) FROM iceberg.{table}.here") == [(3,)]


def test_ingest_of_many_batches_is_one_commit(cursor: flight_sql.Cursor, table: str) -> None:
    batches = [pa.record_batch({"n": range(number * 1000, (number + 1) * 1000)}) for number in range(200)]
    reader = pa.RecordBatchReader.from_batches(batches[0].schema, iter(batches))
    assert cursor.adbc_ingest(table, reader, mode="create") == 200_000
    assert rows(cursor, f"SELECT count(*), count(DISTINCT n), sum(n) FROM {table}") == [
        (200_000, 200_000, 19_999_900_000)
    ]
    assert snapshots(cursor, table) == 1


def test_an_ingest_that_breaks_off_writes_nothing(cursor: flight_sql.Cursor, table: str) -> None:
    cursor.adbc_ingest(table, PEOPLE, mode="create")

    def broken() -> Any:
        yield PEOPLE.to_batches()[0]
        raise RuntimeError("the source of the rows is gone")

    reader = pa.RecordBatchReader.from_batches(PEOPLE.schema, broken())
    with pytest.raises(Exception, match=r"."):
        cursor.adbc_ingest(table, reader, mode="append")
    time.sleep(1)
    assert rows(cursor, f"SELECT count(*) FROM {table}") == [(3,)]


def test_every_type_goes_in_and_comes_out(cursor: flight_sql.Cursor, table: str) -> None:
    rows_in = pa.table(
        {
            "b": pa.array([True, None]),
            "i": pa.array([1, None], pa.int32()),
            "f": pa.array([1.5, None], pa.float32()),
            "n": pa.array([Decimal("1.0123456789"), None], pa.decimal128(38, 10)),
            "s": pa.array(["ü", None]),
            "y": pa.array([b"\x00", None]),
            "day": pa.array([date(2026, 1, 1), None]),
            "ts": pa.array([datetime(2026, 1, 1, 1, 1, 1, 1), None], pa.timestamp("us")),
            "tz": pa.array([datetime(2026, 1, 1, tzinfo=UTC), None], pa.timestamp("us", "UTC")),
            "a": pa.array([[1, None], None], pa.list_(pa.int32())),
            "m": pa.array([[("k", 1.0)], None], pa.map_(pa.string(), pa.float64())),
            "r": pa.array([{"x": 1, "y": ["z"]}, None]),
            "w": pa.array(["word", None]).dictionary_encode(),
        }
    )
    cursor.adbc_ingest(table, rows_in, mode="create")
    cursor.execute(f"SELECT * FROM {table} ORDER BY i NULLS LAST")
    found = cursor.fetch_arrow_table()
    assert found.to_pylist() == rows_in.to_pylist()


# Cancelling


def test_cancel(adbc: flight_sql.Connection) -> None:
    with adbc.cursor() as cursor:
        failed: list[BaseException] = []

        def run() -> None:
            try:
                cursor.execute("SELECT count(*) FROM range(40000) AS a(x) JOIN range(900000000) AS b(y) ON x <> y")
                cursor.fetchall()
            except BaseException as error:
                failed.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        time.sleep(1.5)
        began = time.monotonic()
        cursor.adbc_cancel()
        thread.join(PROMPT_SECS)
        assert time.monotonic() - began < PROMPT_SECS
        assert failed


# Sign-in


def test_a_key_is_a_password_or_a_bearer(server: Any, connect: Connect) -> None:
    header = {adbc_driver_flightsql.DatabaseOptions.AUTHORIZATION_HEADER.value: f"Bearer {server.keys['ana']}"}
    for connection in (connect("ana"), connect("nobody", **header)):
        with connection.cursor() as cursor:
            assert rows(cursor, "SELECT current_user") == [("ana",)]


def test_anonymous(connect: Connect) -> None:
    with connect("nobody").cursor() as cursor:
        assert rows(cursor, "SELECT current_user") == [("anonymous",)]


def test_cookies(connect: Connect) -> None:
    option = adbc_driver_flightsql.DatabaseOptions.WITH_COOKIE_MIDDLEWARE.value
    with connect("ana", **{option: "true"}).cursor() as cursor:
        assert rows(cursor, "SELECT current_user") == [("ana",)]


def test_a_wrong_key(server: Any) -> None:
    with pytest.raises(flight_sql.Error, match="Authentication failed") as caught:
        flight_sql.connect(server.uri, db_kwargs={"username": "etl", "password": "sqe_wrong"}).cursor().execute(
            "SELECT 1"
        )
    assert caught.value.status_code is adbc_driver_manager.AdbcStatusCode.UNAUTHENTICATED


def test_two_connections_have_two_sessions(connect: Connect) -> None:
    one, two = connect(), connect()
    one.adbc_connection.set_options(**{"adbc.flight.sql.session.option.dialect": "spark"})
    assert two.adbc_connection.get_option("adbc.flight.sql.session.option.dialect") == "sqe"


@pytest.mark.rule("SESS-2")
def test_roles_are_chosen_where_they_are_not_lost(server: Any, connect: Connect) -> None:
    """gRPC connects anew without a word: whoever gave up roles would have them again."""
    bearer = {adbc_driver_flightsql.DatabaseOptions.AUTHORIZATION_HEADER.value: f"Bearer {server.keys['ana']}"}
    named = bearer | {"adbc.flight.sql.rpc.call_header.x-session-id": "mine"}
    with connect("nobody", **bearer).cursor() as cursor:
        with pytest.raises(flight_sql.NotSupportedError, match=r"SET ROLE would be lost.*x-session-id"):
            cursor.execute("SET ROLE NONE")
        cursor.execute("SET ROLE ALL")
    for connection in (connect("ana"), connect("nobody", **named)):
        with connection.cursor() as cursor:
            cursor.execute("SET ROLE NONE")


def test_transactions_are_refused(adbc: flight_sql.Connection) -> None:
    with pytest.raises(adbc_driver_manager.NotSupportedError):
        adbc.adbc_connection.set_autocommit(False)
    assert sql.SQL_SUPPORTED_TRANSACTION_NONE == 0


# Data frames


def test_pandas(adbc: flight_sql.Connection, table: str) -> None:
    frame = pandas.DataFrame({"id": [1, 2], "name": ["ada", None]})
    assert frame.to_sql(table, adbc, index=False) == 2
    found = pandas.read_sql(f"SELECT id, name FROM {table} ORDER BY id", adbc)
    assert found["id"].tolist() == [1, 2]
    assert found["name"].isna().tolist() == [False, True]


def test_connections_with_one_token_are_independent(server: Any, table: str) -> None:
    """ADBC ends its session when a connection is closed: that of this connection, and no other."""
    login = {"adbc.flight.sql.authorization_header": f"Bearer {server.keys['etl']}"}

    def connect() -> adbc_driver_flightsql.dbapi.Connection:
        return adbc_driver_flightsql.dbapi.connect(server.uri, db_kwargs=login, autocommit=True)

    with connect() as first, first.cursor() as cursor, ThreadPoolExecutor(1) as aside:
        cursor.execute("USE iceberg.information_schema")
        with connect() as second, second.cursor() as other:
            other.execute("SELECT current_schema")
            assert other.fetchone() == ("default",)
            made = f"CREATE TABLE iceberg.default.{table} AS SELECT id, id % 7 AS day FROM range(30000000) AS r(id)"
            writing = aside.submit(cursor.execute, made)
            time.sleep(0.5)
            assert not writing.done(), "more rows are needed for this test"
        writing.result()
        cursor.execute(f"SELECT count(*) FROM iceberg.default.{table}")
        assert cursor.fetchone() == (30_000_000,)
        cursor.execute("SELECT current_schema")
        assert cursor.fetchone() == ("information_schema",)
