"""Types through the whole pipeline: what is announced is what comes, what is sent is what is stored."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import datetime, time
from typing import Any

import pyarrow as pa
import pytest

from sqe_core.bootstrap import EMBEDDED_CATALOG, OWNER, EmbeddedSqe
from sqe_core.spi.errors import ErrorCode, NotSupportedError, SqeError
from sqe_core.spi.protocol import IngestMode, IngestRequest

CLOCK, LATER = time(1, 2, 3, 4), time(23, 59, 59, 999999)


class Client:
    def __init__(self, sqe: EmbeddedSqe) -> None:
        self.sqe = sqe
        self.service = sqe.sqe.service
        self.session = sqe.sqe.open_session(OWNER, catalog=EMBEDDED_CATALOG, protocol="test")

    def run(self, sql: str, parameters: Any = ()) -> pa.Table:
        result = self.service.execute(self.session, sql, parameters=parameters)
        if result.schema is None:
            result.close()
            return pa.table({})
        return result.read_all()

    def send(self, table: str, rows: pa.Table, mode: IngestMode = IngestMode.APPEND) -> None:
        request = IngestRequest(table=table, mode=mode)
        self.service.ingest(self.session, request, rows.schema, iter(rows.to_batches())).close()


@pytest.fixture
def client(sqe: EmbeddedSqe) -> Iterator[Client]:
    opened = Client(sqe)
    yield opened
    opened.service.close_session(opened.session)


@pytest.fixture
def table() -> str:
    return f"t_{uuid.uuid4().hex[:8]}"


def test_times_beside_nested_columns(client: Client, table: str) -> None:
    client.run(f"CREATE TABLE {table} (id bigint, t time(6), r row(at time(6), n integer), a array(time(6)))")
    client.run(
        f"INSERT INTO {table} VALUES (1, TIME '01:02:03.000004', "
        "CAST(ROW(TIME '23:59:59.999999', 1) AS row(at time(6), n integer)), ARRAY[TIME '01:02:03.000004', NULL])"
    )
    client.run(f"INSERT INTO {table} (id) VALUES (2)")
    found = client.run(f"SELECT * FROM {table} ORDER BY id")
    assert found.to_pylist() == [
        {"id": 1, "t": CLOCK, "r": {"at": LATER, "n": 1}, "a": [CLOCK, None]},
        {"id": 2, "t": None, "r": None, "a": None},
    ]
    assert found.schema.field("t").type == pa.time64("us")
    assert client.run(f"SELECT id FROM {table} WHERE t = ?", [pa.scalar(CLOCK)]).to_pylist() == [{"id": 1}]
    client.run(f"INSERT INTO {table} (id, t) VALUES (3, ?)", [pa.scalar(LATER, pa.time64("us"))])
    assert client.run(f"SELECT max(t) AS t FROM {table}").to_pylist() == [{"t": LATER}]


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE {} SET id = 2",
        "DELETE FROM {} WHERE id = 1",
        "MERGE INTO {} AS t USING (VALUES 1) AS s(id) ON t.id = s.id WHEN MATCHED THEN DELETE",
    ],
)
def test_rows_beside_times_are_not_changed(client: Client, table: str, sql: str) -> None:
    client.run(f"CREATE TABLE {table} (id bigint, t time(6))")
    with pytest.raises(NotSupportedError) as refused:
        client.run(sql.format(table))
    command = sql.split()[0]
    assert refused.value.message == f"The table does not support {command} while it has times or nanoseconds"


def test_times_are_ingested(client: Client, table: str) -> None:
    rows = pa.table(
        {
            "id": pa.array([1, 2]),
            "t": pa.array([CLOCK, None], pa.time64("us")),
            "s": pa.array([time(1, 2, 3), None], pa.time32("s")),
            "a": pa.array([[LATER, None], None], pa.list_(pa.time64("ns"))),
        }
    )
    client.send(table, rows, IngestMode.CREATE)
    client.send(table, rows)
    found = client.run(f"SELECT * FROM {table} WHERE id = 1")
    assert found.to_pylist() == [rows.to_pylist()[0]] * 2
    assert found.schema.types[1:3] == [pa.time64("us")] * 2
    with pytest.raises(SqeError) as refused:
        client.send(table, pa.table({"t": pa.array([1], pa.time64("ns"))}))
    assert refused.value.code is ErrorCode.INVALID_CAST


def test_intervals_of_months_are_parameters_too(client: Client) -> None:
    months = pa.scalar(pa.MonthDayNano([14, 0, 0]), pa.month_day_nano_interval())
    found = client.run("SELECT ? AS i, DATE '2024-01-31' + ? AS d", [months, months])
    assert found.to_pylist() == [{"i": pa.MonthDayNano([14, 0, 0]), "d": datetime(2025, 3, 31).date()}]


def test_comments_come_with_the_columns(client: Client, table: str) -> None:
    client.run(f"CREATE TABLE {table} (id bigint NOT NULL COMMENT 'the key', name varchar)")
    schema = client.run(f"SELECT id AS key, name, id + 1 AS more FROM {table}").schema
    origin = {b"table_catalog": b"iceberg", b"table_schema": b"default", b"table_name": table.encode()}
    assert schema.field("key").metadata == {b"comment": b"the key", b"sql_type": b"bigint", **origin}
    assert not schema.field("key").nullable
    assert schema.field("name").metadata == {b"sql_type": b"varchar", **origin}
    assert b"comment" not in schema.field("more").metadata


def test_only_plain_columns_name_their_table(client: Client, table: str) -> None:
    client.run(f"CREATE TABLE {table} (id bigint, name varchar)")
    client.run(f"CREATE VIEW {table}_view AS SELECT id AS key, upper(name) AS name FROM {table}")
    named = {
        f"SELECT id, x.name, id + 1, upper(name) FROM {table} AS x WHERE id > 0 ORDER BY id LIMIT 3": [
            table,
            table,
            None,
            None,
        ],
        f"SELECT a.id, b.key FROM {table} AS a JOIN {table}_view AS b ON a.id = b.key": [table, f"{table}_view"],
        f"WITH c AS (SELECT id AS i, count(*) AS n FROM {table} GROUP BY id) SELECT i, n FROM c": [table, None],
        f"SELECT id FROM {table} UNION ALL SELECT id FROM {table}": [None],
        f"SELECT key, name FROM (SELECT * FROM {table}_view) AS v": [f"{table}_view"] * 2,
        "SELECT table_name FROM information_schema.tables": ["tables"],
        "SELECT 1": [None],
    }
    for sql, tables in named.items():
        found = [(each.metadata or {}).get(b"table_name") for each in client.run(sql).schema]
        assert found == [None if each is None else each.encode() for each in tables], sql


def test_nested_variants_and_places(client: Client) -> None:
    found = client.run("SELECT ARRAY[JSON '{\"a\": 1}'] AS v")
    assert (found.schema.field("v").type, found["v"].to_pylist()) == (pa.string(), ['[{"a":1}]'])
