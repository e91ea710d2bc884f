"""The metadata commands of Flight SQL: the schemas that its definition gives, and the rows."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from raw_flight import Core, RawClient, descriptor, packed, read_stream

from sqe_core.protocols.flight.columns import described
from sqe_core.protocols.flight.wire import flight_pb2 as flight
from sqe_core.protocols.flight.wire import flight_sql_pb2 as sql
from sqe_core.spi.catalog import ObjectType
from sqe_core.spi.names import NamespaceName, ObjectName
from sqe_core.spi.protocol import TableFilter, TableListing

TEXT, INT = pa.string(), pa.int32()


def must(name: str, type: pa.DataType) -> pa.Field:
    return pa.field(name, type, nullable=False)


TABLES = [pa.field("catalog_name", TEXT), pa.field("db_schema_name", TEXT), must("table_name", TEXT)]
TABLES.append(must("table_type", TEXT))
KEYS = pa.schema(
    [
        pa.field("pk_catalog_name", TEXT),
        pa.field("pk_db_schema_name", TEXT),
        must("pk_table_name", TEXT),
        must("pk_column_name", TEXT),
        pa.field("fk_catalog_name", TEXT),
        pa.field("fk_db_schema_name", TEXT),
        must("fk_table_name", TEXT),
        must("fk_column_name", TEXT),
        must("key_sequence", INT),
        pa.field("fk_key_name", TEXT),
        pa.field("pk_key_name", TEXT),
        must("update_rule", pa.uint8()),
        must("delete_rule", pa.uint8()),
    ]
)
UNION = pa.dense_union(
    [
        pa.field("string_value", TEXT),
        pa.field("bool_value", pa.bool_()),
        pa.field("bigint_value", pa.int64()),
        pa.field("int32_bitmask", INT),
        pa.field("string_list", pa.list_(TEXT)),
        pa.field("int32_to_int32_list_map", pa.map_(INT, pa.list_(INT))),
    ]
)
# As the comments of FlightSql.proto have them.
SCHEMAS: list[tuple[Any, pa.Schema]] = [
    (sql.CommandGetCatalogs(), pa.schema([must("catalog_name", TEXT)])),
    (sql.CommandGetDbSchemas(), pa.schema([pa.field("catalog_name", TEXT), must("db_schema_name", TEXT)])),
    (sql.CommandGetTables(), pa.schema(TABLES)),
    (sql.CommandGetTables(include_schema=True), pa.schema([*TABLES, must("table_schema", pa.binary())])),
    (sql.CommandGetTableTypes(), pa.schema([must("table_type", TEXT)])),
    (
        sql.CommandGetPrimaryKeys(table="t"),
        pa.schema(
            [
                pa.field("catalog_name", TEXT),
                pa.field("db_schema_name", TEXT),
                must("table_name", TEXT),
                must("column_name", TEXT),
                pa.field("key_name", TEXT),
                must("key_sequence", INT),
            ]
        ),
    ),
    (sql.CommandGetExportedKeys(table="t"), KEYS),
    (sql.CommandGetImportedKeys(table="t"), KEYS),
    (sql.CommandGetCrossReference(pk_table="t", fk_table="u"), KEYS),
    (sql.CommandGetSqlInfo(), pa.schema([must("info_name", pa.uint32()), must("value", UNION)])),
    (
        sql.CommandGetXdbcTypeInfo(),
        pa.schema(
            [
                must("type_name", TEXT),
                must("data_type", INT),
                pa.field("column_size", INT),
                pa.field("literal_prefix", TEXT),
                pa.field("literal_suffix", TEXT),
                pa.field("create_params", pa.list_(must("item", TEXT))),
                must("nullable", INT),
                must("case_sensitive", pa.bool_()),
                must("searchable", INT),
                pa.field("unsigned_attribute", pa.bool_()),
                must("fixed_prec_scale", pa.bool_()),
                pa.field("auto_increment", pa.bool_()),
                pa.field("local_type_name", TEXT),
                pa.field("minimum_scale", INT),
                pa.field("maximum_scale", INT),
                must("sql_data_type", INT),
                pa.field("datetime_subcode", INT),
                pa.field("num_prec_radix", INT),
                pa.field("interval_precision", INT),
            ]
        ),
    ),
]
IDS = [f"{type(command).__name__}-{number}" for number, (command, _) in enumerate(SCHEMAS)]


@pytest.mark.parametrize(("command", "schema"), SCHEMAS, ids=IDS)
def test_the_schema_is_the_definitions_in_every_answer(alice: RawClient, command: Any, schema: pa.Schema) -> None:
    info = alice.info(command)
    assert pa.ipc.read_schema(pa.py_buffer(info.schema)).equals(schema, check_metadata=True)
    assert alice.one("GetSchema", descriptor(command), flight.SchemaResult).schema == info.schema
    poll = alice.one("PollFlightInfo", descriptor(command), flight.PollInfo)
    assert (poll.progress, poll.HasField("flight_descriptor")) == (1.0, False)
    assert poll.info.endpoint == info.endpoint
    messages = alice.call("DoGet", info.endpoint[0].ticket)
    assert flight.FlightData.FromString(messages[0]).data_header.rstrip(b"\0") == info.schema[8:].rstrip(b"\0")
    rows, _ = read_stream(messages)
    assert rows.schema.equals(schema, check_metadata=True)
    rows.validate(full=True)
    for field in schema:
        assert field.nullable or not rows[field.name].null_count


def test_metadata_may_be_fetched_again(alice: RawClient) -> None:
    info = alice.info(sql.CommandGetCatalogs())
    assert alice.fetch(info) == alice.fetch(info)


def rows_of(alice: RawClient, command: Any) -> list[dict[str, Any]]:
    return alice.fetch(alice.info(command)).to_pylist()


def test_catalogs_schemas_and_types(alice: RawClient) -> None:
    assert rows_of(alice, sql.CommandGetCatalogs()) == [{"catalog_name": "iceberg"}]
    assert rows_of(alice, sql.CommandGetDbSchemas()) == [{"catalog_name": "iceberg", "db_schema_name": "default"}]
    assert rows_of(alice, sql.CommandGetTableTypes()) == [
        {"table_type": kind} for kind in ("SYSTEM TABLE", "TABLE", "VIEW")
    ]


def test_keys_are_none(alice: RawClient) -> None:
    for command, _ in SCHEMAS[5:9]:
        assert rows_of(alice, command) == []


class Asked:
    """Notes what a session was asked for."""

    def __init__(self, core: Core, monkeypatch: pytest.MonkeyPatch) -> None:
        self.filters: list[TableFilter] = []
        self.schemas: list[tuple[str | None, str | None]] = []
        from raw_flight import CoreSession

        def tables(session: CoreSession, filter: TableFilter) -> list[TableListing]:
            self.filters.append(filter)
            return core.tables

        def schemas(session: CoreSession, catalog: str | None, pattern: str | None) -> list[NamespaceName]:
            self.schemas.append((catalog, pattern))
            return []

        monkeypatch.setattr(CoreSession, "tables", tables)
        monkeypatch.setattr(CoreSession, "schemas", schemas)


@pytest.fixture
def asked(core: Core, monkeypatch: pytest.MonkeyPatch) -> Asked:
    return Asked(core, monkeypatch)


def test_filters_reach_the_core_as_they_came(alice: RawClient, asked: Asked) -> None:
    rows_of(alice, sql.CommandGetDbSchemas())
    rows_of(alice, sql.CommandGetDbSchemas(catalog="", db_schema_filter_pattern=r"a\_%"))
    assert asked.schemas == [(None, None), ("", r"a\_%")]
    rows_of(alice, sql.CommandGetTables())
    rows_of(
        alice,
        sql.CommandGetTables(
            catalog="c", db_schema_filter_pattern="s%", table_name_filter_pattern="_t", table_types=["table"]
        ),
    )
    rows_of(alice, sql.CommandGetTables(catalog="", table_types=["GLOBAL TEMPORARY"]))
    assert asked.filters == [
        TableFilter(),
        TableFilter(catalog="c", schema_pattern="s%", table_pattern="_t", types=frozenset({ObjectType.TABLE})),
        TableFilter(catalog="", types=frozenset()),
    ]


def told_of(schema: pa.Schema) -> list[dict[str, str]]:
    prefix = b"ARROW:FLIGHT:SQL:"
    return [
        {
            key.removeprefix(prefix).decode(): value.decode()
            for key, value in (each.metadata or {}).items()
            if prefix in key
        }
        for each in schema
    ]


def test_results_say_what_drivers_want_to_know_of_columns(core: Core, alice: RawClient) -> None:
    origin = {"table_catalog": "iceberg", "table_schema": "a.b", "table_name": "t"}
    core.answers["select"] = pa.table(
        {"price": [Decimal("1.25")], "upper": ["X"], "list": [[1]]},
        pa.schema(
            [
                pa.field(
                    "price", pa.decimal128(10, 2), metadata={"sql_type": "decimal(10,2)", "comment": "in €", **origin}
                ),
                pa.field("upper", pa.string(), metadata={"sql_type": "varchar"}),
                pa.field("list", pa.list_(pa.int64())),
            ]
        ),
    )
    info = alice.plan("select")
    announced = pa.ipc.read_schema(pa.py_buffer(info.schema))
    fetched, _ = read_stream(alice.call("DoGet", info.endpoint[0].ticket))
    query = descriptor(sql.CommandStatementQuery(query="select"))
    described = alice.one("GetSchema", query, flight.SchemaResult).schema
    prepared = alice.prepare("select").dataset_schema
    for schema in (announced, *(pa.ipc.read_schema(pa.py_buffer(each)) for each in (described, prepared))):
        assert schema.equals(fetched.schema, check_metadata=True)
    always = {"IS_AUTO_INCREMENT": "0", "IS_SEARCHABLE": "1"}
    assert told_of(announced) == [
        {
            **always,
            "CATALOG_NAME": "iceberg",
            "SCHEMA_NAME": "a.b",
            "TABLE_NAME": "t",
            "TYPE_NAME": "decimal(10,2)",
            "PRECISION": "10",
            "SCALE": "2",
            "IS_CASE_SENSITIVE": "0",
            "IS_READ_ONLY": "0",
        },
        {**always, "TYPE_NAME": "varchar", "IS_CASE_SENSITIVE": "1", "IS_READ_ONLY": "1"},
        {**always, "IS_CASE_SENSITIVE": "0", "IS_READ_ONLY": "1"},
    ]
    assert b"table_name" not in announced.field("price").metadata


@pytest.mark.rule("FLT-5")
def test_tables_and_what_drivers_want_to_know_of_columns(core: Core, alice: RawClient) -> None:
    columns = pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False, metadata={"sql_type": "bigint", "comment": "the key"}),
            pa.field("price", pa.decimal128(38, 10)),
            pa.field("name", pa.string()),
        ]
    )
    name = ObjectName(catalog="iceberg", namespace=("a", "b"), name="Ünï t")
    core.tables = [
        TableListing(name=name, type=ObjectType.TABLE, columns=columns),
        TableListing(name=ObjectName(catalog="iceberg", namespace=("a",), name="v"), type=ObjectType.VIEW),
    ]
    table, view = rows_of(alice, sql.CommandGetTables(include_schema=True))
    assert [table[key] for key in ("catalog_name", "db_schema_name", "table_name", "table_type")] == [
        "iceberg",
        "a.b",
        "Ünï t",
        "TABLE",
    ]
    assert pa.ipc.read_schema(pa.py_buffer(view["table_schema"])) == pa.schema([])
    found = pa.ipc.read_schema(pa.py_buffer(table["table_schema"]))
    assert found.equals(columns)
    told = [{key.rpartition(b":")[2].decode(): value for key, value in each.metadata.items()} for each in found]
    assert told[0]["TABLE_NAME"] == "Ünï t".encode()
    assert (told[0]["TYPE_NAME"], told[0]["REMARKS"]) == (b"bigint", b"the key")
    assert (told[1]["PRECISION"], told[1]["SCALE"]) == (b"38", b"10")
    assert (told[0]["PRECISION"], told[0]["SCALE"], told[0]["IS_READ_ONLY"]) == (b"19", b"0", b"0")
    assert (told[1]["IS_CASE_SENSITIVE"], told[2]["IS_CASE_SENSITIVE"]) == (b"0", b"1")


def test_sql_info(alice: RawClient) -> None:
    found = {row["info_name"]: row["value"] for row in rows_of(alice, sql.CommandGetSqlInfo())}
    assert found[sql.FLIGHT_SQL_SERVER_NAME] == "SQE Coordinator"
    assert found[sql.FLIGHT_SQL_SERVER_VERSION] == "0"
    assert found[sql.FLIGHT_SQL_SERVER_READ_ONLY] is False
    assert found[sql.FLIGHT_SQL_SERVER_SUBSTRAIT] is False
    assert found[sql.FLIGHT_SQL_SERVER_TRANSACTION] == sql.SQL_SUPPORTED_TRANSACTION_NONE
    assert found[sql.FLIGHT_SQL_SERVER_CANCEL] is True
    assert found[sql.FLIGHT_SQL_SERVER_BULK_INGESTION] is True
    assert found[sql.SQL_IDENTIFIER_QUOTE_CHAR] == '"'
    assert found[sql.SQL_IDENTIFIER_CASE] == sql.SQL_CASE_SENSITIVITY_LOWERCASE
    assert found[sql.SQL_TRANSACTIONS_SUPPORTED] is False
    # Each number of the definition has its answer.
    numbers = {value.number for value in sql.SqlInfo.DESCRIPTOR.values}
    assert {sql.SqlInfo.Name(number) for number in numbers - found.keys()} == {
        "FLIGHT_SQL_SERVER_SUBSTRAIT_MIN_VERSION",
        "FLIGHT_SQL_SERVER_SUBSTRAIT_MAX_VERSION",
    }


def test_sql_info_of_some_numbers(alice: RawClient) -> None:
    wanted = [sql.SQL_KEYWORDS, 4_000_000_000, sql.SQL_SUPPORTS_CONVERT, sql.FLIGHT_SQL_SERVER_SQL]
    found = rows_of(alice, sql.CommandGetSqlInfo(info=wanted))
    assert [row["info_name"] for row in found] == [wanted[0], wanted[2], wanted[3]]
    assert "qualify" in found[0]["value"]
    assert rows_of(alice, sql.CommandGetSqlInfo(info=[4_000_000_000])) == []


def test_type_info(alice: RawClient) -> None:
    every = rows_of(alice, sql.CommandGetXdbcTypeInfo())
    assert [row["data_type"] for row in every] == sorted(row["data_type"] for row in every)
    assert {"bigint", "varchar", "decimal", "timestamp(6) with time zone"} <= {row["type_name"] for row in every}
    (bigint,) = rows_of(alice, sql.CommandGetXdbcTypeInfo(data_type=sql.XDBC_BIGINT))
    assert (bigint["type_name"], bigint["column_size"], bigint["num_prec_radix"]) == ("bigint", 19, 10)
    assert rows_of(alice, sql.CommandGetXdbcTypeInfo(data_type=12345)) == []
    assert [row["type_name"] for row in every if row["data_type"] == sql.XDBC_TIMESTAMP] == [
        "timestamp(6)",
        "timestamp(6) with time zone",
    ]


def test_the_actions_that_there_are(alice: RawClient) -> None:
    listed = [flight.ActionType.FromString(each) for each in alice.call("ListActions", flight.Empty())]
    assert {each.type for each in listed} == {
        "CreatePreparedStatement",
        "ClosePreparedStatement",
        "CancelFlightInfo",
        "CancelQuery",
        "RenewFlightEndpoint",
        "SetSessionOptions",
        "GetSessionOptions",
        "CloseSession",
        "RenewLogin",
    }
    assert all(each.description for each in listed)


def test_metadata_has_its_command_as_ticket(alice: RawClient) -> None:
    command = sql.CommandGetTables(catalog="iceberg")
    assert alice.info(command).endpoint[0].ticket.ticket == packed(command)


def test_a_time_is_as_long_in_every_zone() -> None:
    """A column of the dialect `trino` has the zone that its statement names."""
    columns = described(pa.schema([(zone, pa.timestamp("us", zone)) for zone in ("UTC", "Asia/Tokyo")]))
    zones = [column.metadata or {} for column in columns]
    assert zones[0] == zones[1]
    assert b"32" in zones[0].values()
