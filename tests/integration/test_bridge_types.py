"""Every type of Iceberg and SQL in exactly its Arrow type: announced, streamed and listed, bit for bit."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sqe_core.catalog.arrow_types import arrow_schema
from sqe_core.engine.port import EngineCatalog, EngineExecutionError
from sqe_core.engine.spark.engine import SparkEngine
from sqe_core.engine.spark.session import SparkEngineSession


@dataclass(frozen=True)
class Warehouse:
    session: SparkEngineSession
    catalog: EngineCatalog

    def run(self, sql: str) -> pa.Table:
        """The result, whose stream has the very schema that was announced for it."""
        tag = uuid.uuid4().hex
        plan = self.session.analyse(self.session.parse(sql), tag=tag)
        stream = self.session.execute(plan, tag=tag)
        batches = list(stream)
        assert stream.schema.serialize() == plan.schema.serialize()
        for batch in batches:
            assert batch.schema.serialize() == plan.schema.serialize()
            batch.validate(full=True)
        return pa.Table.from_batches(batches, stream.schema)

    def table(self, columns: str, **more: str) -> str:
        """A new table; `more` are columns in Iceberg's own words."""
        name = f"t{uuid.uuid4().hex[:8]}"
        self.run(f"CREATE TABLE types.s.{name} ({columns}) TBLPROPERTIES ('format-version'='3')")
        for column, type in more.items():
            self.catalog.add_column(("s",), name, column, type, default=None, comment=None)
        return f"types.s.{name}"

    def listed(self, table: str) -> pa.Schema:
        """The columns as the metadata of the catalog has them."""
        return arrow_schema(self.catalog.load_table(("s",), table.rpartition(".")[2]).columns)


@pytest.fixture(scope="module")
def warehouse(engine: SparkEngine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warehouse]:  # type: ignore[override]
    session = engine.open_session()
    assert isinstance(session, SparkEngineSession)
    session.mount("types", {"type": "hadoop", "warehouse": str(tmp_path_factory.mktemp("types"))})
    session.catalog("types").create_namespace(("s",), {})
    yield Warehouse(session, session.catalog("types"))
    session.close()


def required(name: str, type: pa.DataType) -> pa.Field:
    return pa.field(name, type, nullable=False)


UTC = datetime.UTC
MOMENT = datetime.datetime(2024, 2, 29, 1, 2, 3, 4)
# The SQL of a literal, its Arrow type, its value, the name of its type for users.
VALUES: list[tuple[str, pa.DataType, Any, str]] = [
    ("true", pa.bool_(), True, "boolean"),
    ("1Y", pa.int8(), 1, "tinyint"),
    ("1S", pa.int16(), 1, "smallint"),
    ("1", pa.int32(), 1, "integer"),
    ("1L", pa.int64(), 1, "bigint"),
    ("CAST(1.5 AS FLOAT)", pa.float32(), 1.5, "real"),
    ("1.5D", pa.float64(), 1.5, "double"),
    ("CAST(1.5 AS DECIMAL(38, 10))", pa.decimal128(38, 10), Decimal("1.5"), "decimal(38,10)"),
    ("'é'", pa.string(), "é", "varchar"),
    ("X'00FF'", pa.binary(), b"\x00\xff", "varbinary"),
    ("DATE '2024-02-29'", pa.date32(), MOMENT.date(), "date"),
    ("TIME '01:02:03.000004'", pa.time64("us"), MOMENT.time(), "time(6)"),
    ("TIMESTAMP_NTZ '2024-02-29 01:02:03.000004'", pa.timestamp("us"), MOMENT, "timestamp(6)"),
    (
        "TIMESTAMP_LTZ '2024-02-29 01:02:03.000004Z'",
        pa.timestamp("us", "UTC"),
        MOMENT.replace(tzinfo=UTC),
        "timestamp(6) with time zone",
    ),
    ("INTERVAL '1' DAY", pa.duration("us"), datetime.timedelta(days=1), "interval day to second"),
    (
        "INTERVAL -'1-2' YEAR TO MONTH",
        pa.month_day_nano_interval(),
        pa.MonthDayNano([-14, 0, 0]),
        "interval year to month",
    ),
    (
        "make_interval(0, 1, 0, 2, 0, 0, 3)",
        pa.month_day_nano_interval(),
        pa.MonthDayNano([1, 2, 3 * 10**9]),
        "interval",
    ),
    ("parse_json('{\"a\": 1}')", pa.string(), '{"a":1}', "json"),
    ("array(1, NULL)", pa.list_(pa.field("element", pa.int32())), [1, None], "array(integer)"),
    ("array(1)", pa.list_(required("element", pa.int32())), [1], "array(integer)"),
    (
        "array(TIME '01:02:03.000004')",
        pa.list_(required("element", pa.time64("us"))),
        [MOMENT.time()],
        "array(time(6))",
    ),
    (
        "map('k', INTERVAL '3' MONTH)",
        pa.map_(pa.string(), required("value", pa.month_day_nano_interval())),
        [("k", pa.MonthDayNano([3, 0, 0]))],
        "map(varchar, interval year to month)",
    ),
    (
        "named_struct('t', TIME '01:02:03.000004', 'n', CAST(NULL AS INT))",
        pa.struct([required("t", pa.time64("us")), pa.field("n", pa.int32())]),
        {"t": MOMENT.time(), "n": None},
        "row(t time(6), n integer)",
    ),
    (
        "array(named_struct('m', map(TIME '01:02:03.000004', array(X'01'))))",
        pa.list_(
            required(
                "element",
                pa.struct(
                    [
                        required(
                            "m",
                            pa.map_(pa.time64("us"), required("value", pa.list_(required("element", pa.binary())))),
                        )
                    ]
                ),
            )
        ),
        [{"m": [(MOMENT.time(), [b"\x01"])]}],
        "array(row(m map(time(6), array(varbinary))))",
    ),
    ("NULL", pa.null(), None, "unknown"),
]


@pytest.mark.parametrize(("literal", "type", "value", "name"), VALUES, ids=[each[0] for each in VALUES])
def test_a_value_of_each_type(warehouse: Warehouse, literal: str, type: pa.DataType, value: Any, name: str) -> None:
    found = warehouse.run(f"SELECT {literal} AS x")
    assert found.schema.field("x").type.equals(type, check_metadata=True)
    assert found.schema.field("x").metadata == {b"sql_type": name.encode()}
    assert found["x"].to_pylist() == [value]
    # Another way of execution, with tasks, and NULLs between the values.
    computed = warehouse.run(f"SELECT CASE WHEN id % 2 = 0 THEN {literal} END AS x FROM range(0, 4, 1, 2)")
    assert computed.schema.field("x").type == type
    assert computed["x"].to_pylist() == [value, None] * 2


def test_names_that_are_twice_in_a_row(warehouse: Warehouse) -> None:
    found = warehouse.run("SELECT named_struct('a', 1, 'a', 2) AS x")
    assert found["x"].to_pylist() == [{"a_0": 1, "a_1": 2}]


# Columns of tables

NESTED = """
    id BIGINT NOT NULL COMMENT 'the key',
    tags ARRAY<STRING> COMMENT 'words',
    place STRUCT<x: INT NOT NULL COMMENT 'left', y: DOUBLE, at: TIME(6)>,
    counts MAP<STRING, BIGINT>,
    clock TIME(6),
    clocks ARRAY<TIME(6)>,
    v VARIANT,
    n DECIMAL(38, 3),
    moment TIMESTAMP_NTZ,
    instant TIMESTAMP_LTZ
"""


def test_a_tables_columns_are_listed_as_they_arrive(warehouse: Warehouse) -> None:
    table = warehouse.table(NESTED, u="uuid", f="fixed(4)", ns="timestamp_ns", nsz="timestamptz_ns")
    listed = warehouse.listed(table)
    found = warehouse.run(f"SELECT * FROM {table}").schema
    assert listed.equals(found, check_metadata=False)
    for one, other in zip(listed, found, strict=True):
        assert one.type.equals(other.type, check_metadata=True), one
        assert one.metadata.get(b"comment") == other.metadata.get(b"comment")
    assert found.field("id").equals(pa.field("id", pa.int64(), nullable=False))
    told = {name.decode(): value.decode() for name, value in found.field("id").metadata.items()}
    assert (told["comment"], told["sql_type"], told["table_name"]) == ("the key", "bigint", table.rpartition(".")[2])
    assert found.field("place").type.field("x").metadata == {b"comment": b"left"}
    assert not found.field("place").type.field("x").nullable
    assert found.field("clocks").type.value_type == pa.time64("us")
    assert found.field("place").type.field("at").type == pa.time64("us")
    exact = {name: found.field(name).type for name in ("u", "f", "ns", "nsz", "clock")}
    assert exact == {
        "u": pa.string(),
        "f": pa.binary(4),
        "ns": pa.timestamp("ns"),
        "nsz": pa.timestamp("ns", "UTC"),
        "clock": pa.time64("us"),
    }
    names = {field.name: field.metadata[b"sql_type"].decode() for field in found}
    assert (names["u"], names["f"], names["ns"]) == ("uuid", "fixed(4)", "timestamp(9)")


UUID = "12345678-1234-5678-9abc-123456789abc"


def test_what_iceberg_says_more_stays_with_the_column_only(warehouse: Warehouse) -> None:
    table = warehouse.table("id INT", u="uuid", f="fixed(2)")
    warehouse.run(f"INSERT INTO {table} VALUES (1, '{UUID}', X'0102'), (2, NULL, NULL)")

    def types(sql: str) -> list[tuple[str, pa.DataType]]:
        found = warehouse.run(sql)
        return [(field.metadata[b"sql_type"].decode(), field.type) for field in found.schema]

    exact = [("uuid", pa.string()), ("fixed(2)", pa.binary(2))]
    loose = [("varchar", pa.string()), ("varbinary", pa.binary())]
    assert types(f"SELECT u AS a, f AS b FROM (SELECT * FROM {table}) WHERE id > 0 ORDER BY u LIMIT 5") == exact
    assert types(f"WITH w AS (SELECT u, f FROM {table}) SELECT x.u, y.f FROM w x LEFT JOIN w y ON x.u = y.u") == exact
    assert types(f"SELECT u, f FROM {table} GROUP BY u, f") == exact
    assert types(f"SELECT u, f FROM {table} UNION ALL SELECT u, f FROM {table}") == exact
    assert types(f"SELECT u, f FROM {table} UNION ALL SELECT 'no uuid', X'010203'") == loose
    assert types(f"SELECT * FROM (SELECT u AS c, f AS d FROM {table} UNION SELECT 'x', X'01') AS q") == loose
    assert types(f"SELECT upper(u), f || f FROM {table}") == loose
    assert types(f"SELECT coalesce(u, 'none'), coalesce(f, X'') FROM {table}") == loose
    assert warehouse.run(f"SELECT u, f FROM {table} WHERE id = 1").to_pylist() == [{"u": UUID, "f": b"\x01\x02"}]


# Times in tables

TIMES = "id INT, t TIME(6), s STRUCT<at: TIME(6), n: INT>, a ARRAY<TIME(6)>, m MAP<STRING, TIME(6)>"
CLOCK, LATER = datetime.time(1, 2, 3, 4), datetime.time(23, 59, 59, 999999)
ROW = {
    "id": 1,
    "t": CLOCK,
    "s": {"at": LATER, "n": 1},
    "a": [CLOCK, None, LATER],
    "m": [("k", CLOCK), ("l", None)],
}
INSERTED = """(1, TIME '01:02:03.000004', named_struct('at', TIME '23:59:59.999999', 'n', 1),
    array(TIME '01:02:03.000004', NULL, TIME '23:59:59.999999'), map('k', TIME '01:02:03.000004', 'l', NULL)),
    (2, NULL, NULL, NULL, NULL)"""


@pytest.mark.parametrize("format", ["parquet", "orc"])
@pytest.mark.parametrize("partition", ["", "PARTITIONED BY (t)", "PARTITIONED BY (bucket(4, t))"])
def test_times_are_written_and_read(warehouse: Warehouse, format: str, partition: str) -> None:
    table = f"types.s.t{uuid.uuid4().hex[:8]}"
    warehouse.run(f"CREATE TABLE {table} ({TIMES}) {partition} TBLPROPERTIES ('write.format.default'='{format}')")
    warehouse.run(f"INSERT INTO {table} VALUES {INSERTED}")
    nothing = dict.fromkeys(ROW) | {"id": 2}
    assert warehouse.run(f"SELECT * FROM {table} ORDER BY id").to_pylist() == [ROW, nothing]
    assert warehouse.run(f"SELECT t FROM {table} WHERE t = TIME '01:02:03.000004'").to_pylist() == [{"t": CLOCK}]
    assert warehouse.run(f"SELECT s.at AS x, a[2] AS y, m['k'] AS z FROM {table} WHERE id = 1").to_pylist() == [
        {"x": LATER, "y": LATER, "z": CLOCK}
    ]
    warehouse.run(f"INSERT INTO {table} (id, t) SELECT id + 10, t FROM {table}")
    assert warehouse.run(f"SELECT count(*) AS n, count(t) AS t FROM {table}").to_pylist() == [{"n": 4, "t": 2}]
    warehouse.run(f"INSERT OVERWRITE {table} SELECT * FROM {table} WHERE id = 1")
    assert warehouse.run(f"SELECT * FROM {table}").to_pylist() == [ROW]


def test_a_table_with_times_is_made_with_its_rows(warehouse: Warehouse) -> None:
    table = f"types.s.t{uuid.uuid4().hex[:8]}"
    row = "SELECT 1 AS id, TIME '01:02:03.000004' AS t, array(TIME '23:59:59.999999') AS a"
    for statement in ("CREATE TABLE", "CREATE OR REPLACE TABLE"):
        warehouse.run(f"{statement} {table} USING iceberg AS {row}")
        assert warehouse.run(f"SELECT * FROM {table}").to_pylist() == [{"id": 1, "t": CLOCK, "a": [LATER]}]


def test_other_engines_read_the_times(warehouse: Warehouse, engine: SparkEngine) -> None:
    table = f"types.s.t{uuid.uuid4().hex[:8]}"
    warehouse.run(f"CREATE TABLE {table} ({TIMES})")
    warehouse.run(f"INSERT INTO {table} VALUES {INSERTED}")
    location = Path(warehouse.catalog.load_table(("s",), table.rpartition(".")[2]).location.removeprefix("file:"))
    files = sorted(location.glob("data/**/*.parquet"))
    rows = pa.concat_tables(pq.read_table(file, partitioning=None) for file in files)
    assert sorted(rows.to_pylist(), key=lambda row: row["id"])[0] == ROW
    assert rows.schema.field("t").type == pa.time64("us")


def test_times_in_avro_files_are_refused(warehouse: Warehouse) -> None:
    table = f"types.s.t{uuid.uuid4().hex[:8]}"
    warehouse.run(f"CREATE TABLE {table} ({TIMES}) TBLPROPERTIES ('write.format.default'='avro')")
    with pytest.raises(EngineExecutionError) as refused:
        warehouse.run(f"INSERT INTO {table} VALUES {INSERTED}")
    assert refused.value.failure.condition == "SQE_TIMES_IN_AVRO"


def test_nanoseconds_are_integers_of_sql_and_timestamps_of_arrow(warehouse: Warehouse) -> None:
    table = warehouse.table("id INT", ns="timestamp_ns", nsz="timestamptz_ns")
    warehouse.run(f"INSERT INTO {table} VALUES (1, 1704067200000000001, 1704067200000000002), (2, NULL, NULL)")
    found = warehouse.run(f"SELECT ns, nsz, ns + 1 AS more FROM {table} ORDER BY id")
    assert found.schema.types == [pa.timestamp("ns"), pa.timestamp("ns", "UTC"), pa.int64()]
    assert found.cast(pa.schema([(name, pa.int64()) for name in found.column_names])).to_pylist() == [
        {"ns": 1704067200000000001, "nsz": 1704067200000000002, "more": 1704067200000000002},
        {"ns": None, "nsz": None, "more": None},
    ]
