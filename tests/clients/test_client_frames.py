"""Data frames over ADBC: pandas, polars, DuckDB."""

from __future__ import annotations

from typing import Any

import adbc_driver_flightsql.dbapi as flight_sql
import duckdb
import pandas
import polars
import pytest

EVERYTHING = """
    SELECT CAST(1 AS bigint) AS id, CAST(0.5 AS double) AS ratio, 'ü€😀' AS name, DATE '2026-01-01' AS day,
           TIMESTAMP '2026-01-01 01:01:01.000005' AS ts, TIMESTAMP '2026-01-01 01:01:01.000005 UTC' AS tz,
           CAST(1.25 AS decimal(38,10)) AS price, X'00FF' AS raw, ARRAY[1, 2] AS list,
           CAST(ROW(1, 'x') AS ROW(a integer, b varchar)) AS struct
"""


def count(cursor: flight_sql.Cursor, table: str) -> int:
    cursor.execute(f"SELECT count(*) FROM {table}")
    ((number,),) = cursor.fetchall()
    return int(number)


@pytest.fixture
def roomy(connect: Any) -> flight_sql.Connection:
    """A connection for frames that go as one message."""
    return connect(**{"adbc.flight.sql.client_option.with_max_msg_size": str(128 << 20)})


# pandas


def test_pandas_reads(adbc: flight_sql.Connection) -> None:
    found = pandas.read_sql(EVERYTHING, adbc, dtype_backend="pyarrow")
    assert [str(type).removesuffix("[pyarrow]") for type in found.dtypes][:7] == [
        "int64",
        "double",
        "string",
        "date32[day]",
        "timestamp[us]",
        "timestamp[us, tz=UTC]",
        "decimal128(38, 10)",
    ]
    plain = pandas.read_sql(EVERYTHING, adbc)
    assert plain["name"].tolist() == ["ü€😀"]
    assert plain["ts"].dt.microsecond.tolist() == [5]
    assert str(plain["price"][0]) == "1.2500000000"


def test_pandas_writes(adbc: flight_sql.Connection, cursor: flight_sql.Cursor, table: str) -> None:
    frame = pandas.DataFrame(
        {
            "id": [1, 2],
            "name": ["ada", None],
            "at": pandas.to_datetime(["2026-01-01", None]),
            "kind": pandas.Categorical(["x", "y"]),
        }
    )
    assert frame.to_sql(table, adbc, index=False) == 2
    with pytest.raises(ValueError, match="already exists"):
        frame.to_sql(table, adbc, index=False)
    for mode, rows in (("append", 4), ("replace", 2), ("delete_rows", 2)):
        frame.to_sql(table, adbc, index=False, if_exists=mode)
        assert count(cursor, table) == rows
    found = pandas.read_sql(f"SELECT * FROM {table} ORDER BY id", adbc)
    assert found["id"].tolist() == [1, 2]
    assert found["name"].isna().tolist() == found["at"].isna().tolist() == [False, True]
    assert found["kind"].tolist() == ["x", "y"]
    assert pandas.read_sql_table(table, adbc).shape == (2, 4)


def test_pandas_has_no_parameters_and_chunks_over_adbc(adbc: flight_sql.Connection) -> None:
    """As docs/clients.md says."""
    with pytest.raises(NotImplementedError):
        pandas.read_sql("SELECT 1 AS one WHERE 1 = ?", adbc, params=(1,))
    with pytest.raises(NotImplementedError):
        pandas.read_sql("SELECT 1 AS one", adbc, chunksize=1)


def test_a_big_frame_wants_bigger_messages(
    adbc: flight_sql.Connection, roomy: flight_sql.Connection, cursor: flight_sql.Cursor, table: str
) -> None:
    frame = pandas.DataFrame({"id": range(1_000_000), "word": ["hello world"] * 1_000_000})
    with pytest.raises(Exception, match="Failed to insert"):
        frame.to_sql(table, adbc, index=False)
    assert frame.to_sql(table, roomy, index=False) == 1_000_000
    assert count(cursor, table) == 1_000_000


# polars


def test_polars_reads(adbc: flight_sql.Connection) -> None:
    found = polars.read_database(EVERYTHING, adbc)
    assert dict(found.schema) == {
        "id": polars.Int64,
        "ratio": polars.Float64,
        "name": polars.String,
        "day": polars.Date,
        "ts": polars.Datetime("us"),
        "tz": polars.Datetime("us", "UTC"),
        "price": polars.Decimal(38, 10),
        "raw": polars.Binary,
        "list": polars.List(polars.Int32),
        "struct": polars.Struct({"a": polars.Int32, "b": polars.String}),
    }
    assert found["name"].to_list() == ["ü€😀"]
    asked = {"parameters": [7]}
    assert polars.read_database(
        "SELECT id FROM range(9) AS r(id) WHERE id > ?", adbc, execute_options=asked
    ).rows() == [(8,)]


def test_polars_reads_in_batches(adbc: flight_sql.Connection) -> None:
    batches = polars.read_database("SELECT id FROM range(100000) AS r(id)", adbc, iter_batches=True, batch_size=1000)
    sizes = [len(batch) for batch in batches]
    assert len(sizes) > 1
    assert sum(sizes) == 100_000


def test_polars_writes(roomy: flight_sql.Connection, cursor: flight_sql.Cursor, table: str) -> None:
    frame = polars.DataFrame({"id": [1, 2], "name": ["ada", None], "tags": [["a"], []]})
    assert frame.write_database(f"iceberg.default.{table}", roomy) == 2
    assert frame.write_database(table, roomy, if_table_exists="append") == 2
    assert count(cursor, table) == 4
    assert polars.read_database(f"SELECT DISTINCT * FROM {table}", roomy).sort("id").equals(frame)
    big = polars.DataFrame({"id": range(1_000_000), "name": ["hello world"] * 1_000_000})
    assert big.write_database(table, roomy, if_table_exists="replace") == 1_000_000


# DuckDB


def test_duckdb_reads(cursor: flight_sql.Cursor) -> None:
    cursor.execute(EVERYTHING)
    found = cursor.fetch_record_batch()
    columns = duckdb.from_arrow(found)
    assert [str(type) for type in columns.types] == [
        "BIGINT",
        "DOUBLE",
        "VARCHAR",
        "DATE",
        "TIMESTAMP",
        "TIMESTAMP WITH TIME ZONE",
        "DECIMAL(38,10)",
        "BLOB",
        "INTEGER[]",
        "STRUCT(a INTEGER, b VARCHAR)",
    ]
    assert columns.project("name, price, list, struct").fetchall()[0][2:] == ([1, 2], {"a": 1, "b": "x"})


def test_duckdb_joins_and_stores(cursor: flight_sql.Cursor) -> None:
    with duckdb.connect() as local:
        local.execute("CREATE TABLE small AS SELECT range AS id FROM range(10)")
        cursor.execute("SELECT id, 'row ' || CAST(id AS varchar) AS name FROM range(300000) AS r(id)")
        remote = cursor.fetch_record_batch()
        local.register("remote", remote)
        local.execute("CREATE TABLE joined AS SELECT * FROM remote JOIN small USING (id)")
        assert local.execute("SELECT count(*), max(name) FROM joined").fetchall() == [(10, "row 9")]


def test_duckdb_writes(cursor: flight_sql.Cursor, table: str) -> None:
    with duckdb.connect() as local:
        rows = local.sql("SELECT range AS id, 'w' || range AS word FROM range(300000)").to_arrow_reader(10_000)
        assert cursor.adbc_ingest(table, rows, mode="create") == 300_000
    assert count(cursor, table) == 300_000
