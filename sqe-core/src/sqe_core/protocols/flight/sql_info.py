"""What the server can do, in the numbers and words of `CommandGetSqlInfo`. Every value is true."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from sqe_core.protocols.flight.wire import flight_sql_pb2 as sql
from sqe_core.spi.protocol import ServerStatus

_VALUE = pa.dense_union(
    [
        pa.field("string_value", pa.string()),
        pa.field("bool_value", pa.bool_()),
        pa.field("bigint_value", pa.int64()),
        pa.field("int32_bitmask", pa.int32()),
        pa.field("string_list", pa.list_(pa.string())),
        pa.field("int32_to_int32_list_map", pa.map_(pa.int32(), pa.list_(pa.int32()))),
    ]
)
SQL_INFO_SCHEMA = pa.schema(
    [pa.field("info_name", pa.uint32(), nullable=False), pa.field("value", _VALUE, nullable=False)]
)
_STRING, _BOOL, _BIGINT, _BITMASK, _STRINGS, _MAP = range(6)
# Zero is "no limit, or unknown". Drivers fail where it is not said.
_UNLIMITED = (
    sql.SQL_MAX_BINARY_LITERAL_LENGTH,
    sql.SQL_MAX_CHAR_LITERAL_LENGTH,
    sql.SQL_MAX_COLUMN_NAME_LENGTH,
    sql.SQL_MAX_COLUMNS_IN_GROUP_BY,
    sql.SQL_MAX_COLUMNS_IN_INDEX,
    sql.SQL_MAX_COLUMNS_IN_ORDER_BY,
    sql.SQL_MAX_COLUMNS_IN_SELECT,
    sql.SQL_MAX_COLUMNS_IN_TABLE,
    sql.SQL_MAX_CONNECTIONS,
    sql.SQL_MAX_CURSOR_NAME_LENGTH,
    sql.SQL_MAX_INDEX_LENGTH,
    sql.SQL_DB_SCHEMA_NAME_LENGTH,
    sql.SQL_MAX_PROCEDURE_NAME_LENGTH,
    sql.SQL_MAX_CATALOG_NAME_LENGTH,
    sql.SQL_MAX_ROW_SIZE,
    sql.SQL_MAX_STATEMENT_LENGTH,
    sql.SQL_MAX_STATEMENTS,
    sql.SQL_MAX_TABLE_NAME_LENGTH,
    sql.SQL_MAX_TABLES_IN_SELECT,
    sql.SQL_MAX_USERNAME_LENGTH,
)


def sql_info(wanted: tuple[int, ...], status: ServerStatus) -> pa.Table:
    """Return the values that were asked for, all of them when none was named; unknown ones are left out."""
    known = _values(status.version)
    # Each once: a number is some bytes, and what is said of it some hundreds.
    numbers = [number for number in dict.fromkeys(wanted or sorted(known)) if number in known]
    kinds = [known[number][0] for number in numbers]
    children: list[list[Any]] = [[] for _ in range(6)]
    offsets = []
    for number in numbers:
        kind, value = known[number]
        offsets.append(len(children[kind]))
        children[kind].append(value)
    union = pa.UnionArray.from_dense(
        pa.array(kinds, pa.int8()),
        pa.array(offsets, pa.int32()),
        [pa.array(values, _VALUE.field(kind).type) for kind, values in enumerate(children)],
        [_VALUE.field(kind).name for kind in range(6)],
    )
    return pa.Table.from_batches(
        [pa.record_batch([pa.array(numbers, pa.uint32()), union.cast(_VALUE)], schema=SQL_INFO_SCHEMA)]
    )


def _bits(*numbers: int) -> int:
    return sum(1 << number for number in numbers)


def _values(version: str) -> dict[int, tuple[int, Any]]:
    everything = list(range(20))  # the types of SqlSupportsConvert
    text = (sql.SQL_CONVERT_CHAR, sql.SQL_CONVERT_VARCHAR, sql.SQL_CONVERT_LONGVARCHAR)
    return {
        sql.FLIGHT_SQL_SERVER_NAME: (_STRING, "SQE Coordinator"),
        sql.FLIGHT_SQL_SERVER_VERSION: (_STRING, version),
        sql.FLIGHT_SQL_SERVER_ARROW_VERSION: (_STRING, pa.__version__),
        sql.FLIGHT_SQL_SERVER_READ_ONLY: (_BOOL, False),
        sql.FLIGHT_SQL_SERVER_SQL: (_BOOL, True),
        sql.FLIGHT_SQL_SERVER_SUBSTRAIT: (_BOOL, False),
        sql.FLIGHT_SQL_SERVER_TRANSACTION: (_BITMASK, sql.SQL_SUPPORTED_TRANSACTION_NONE),
        sql.FLIGHT_SQL_SERVER_CANCEL: (_BOOL, True),
        sql.FLIGHT_SQL_SERVER_BULK_INGESTION: (_BOOL, True),
        sql.FLIGHT_SQL_SERVER_INGEST_TRANSACTIONS_SUPPORTED: (_BOOL, False),
        sql.FLIGHT_SQL_SERVER_STATEMENT_TIMEOUT: (_BITMASK, 0),
        sql.FLIGHT_SQL_SERVER_TRANSACTION_TIMEOUT: (_BITMASK, 0),
        sql.SQL_DDL_CATALOG: (_BOOL, False),
        sql.SQL_DDL_SCHEMA: (_BOOL, True),
        sql.SQL_DDL_TABLE: (_BOOL, True),
        sql.SQL_IDENTIFIER_CASE: (_BITMASK, sql.SQL_CASE_SENSITIVITY_LOWERCASE),
        sql.SQL_IDENTIFIER_QUOTE_CHAR: (_STRING, '"'),
        sql.SQL_QUOTED_IDENTIFIER_CASE: (_BITMASK, sql.SQL_CASE_SENSITIVITY_CASE_INSENSITIVE),
        sql.SQL_ALL_TABLES_ARE_SELECTABLE: (_BOOL, True),
        sql.SQL_NULL_ORDERING: (_BITMASK, sql.SQL_NULLS_SORTED_AT_END),
        sql.SQL_KEYWORDS: (_STRINGS, ["merge", "pivot", "qualify", "show", "tablesample", "unnest", "unpivot"]),
        sql.SQL_NUMERIC_FUNCTIONS: (
            _STRINGS,
            ["abs", "ceil", "exp", "floor", "ln", "log10", "mod", "power", "round", "sign", "sqrt"],
        ),
        sql.SQL_STRING_FUNCTIONS: (
            _STRINGS,
            ["concat", "length", "lower", "lpad", "replace", "rpad", "substr", "trim", "upper"],
        ),
        sql.SQL_SYSTEM_FUNCTIONS: (_STRINGS, ["coalesce", "current_user", "if", "nullif"]),
        sql.SQL_DATETIME_FUNCTIONS: (
            _STRINGS,
            ["current_date", "current_timestamp", "date_add", "date_diff", "date_trunc", "day", "month", "year"],
        ),
        sql.SQL_SEARCH_STRING_ESCAPE: (_STRING, "\\"),
        sql.SQL_EXTRA_NAME_CHARACTERS: (_STRING, ""),
        sql.SQL_SUPPORTS_COLUMN_ALIASING: (_BOOL, True),
        sql.SQL_NULL_PLUS_NULL_IS_NULL: (_BOOL, True),
        sql.SQL_SUPPORTS_CONVERT: (_MAP, [(kind, everything) for kind in text]),
        sql.SQL_SUPPORTS_TABLE_CORRELATION_NAMES: (_BOOL, True),
        sql.SQL_SUPPORTS_DIFFERENT_TABLE_CORRELATION_NAMES: (_BOOL, False),
        sql.SQL_SUPPORTS_EXPRESSIONS_IN_ORDER_BY: (_BOOL, True),
        sql.SQL_SUPPORTS_ORDER_BY_UNRELATED: (_BOOL, True),
        sql.SQL_SUPPORTED_GROUP_BY: (_BITMASK, _bits(sql.SQL_GROUP_BY_UNRELATED, sql.SQL_GROUP_BY_BEYOND_SELECT)),
        sql.SQL_SUPPORTS_LIKE_ESCAPE_CLAUSE: (_BOOL, True),
        sql.SQL_SUPPORTS_NON_NULLABLE_COLUMNS: (_BOOL, True),
        sql.SQL_SUPPORTED_GRAMMAR: (_BITMASK, _bits(sql.SQL_MINIMUM_GRAMMAR, sql.SQL_CORE_GRAMMAR)),
        sql.SQL_ANSI92_SUPPORTED_LEVEL: (_BITMASK, _bits(sql.ANSI92_ENTRY_SQL)),
        sql.SQL_SUPPORTS_INTEGRITY_ENHANCEMENT_FACILITY: (_BOOL, False),
        sql.SQL_OUTER_JOINS_SUPPORT_LEVEL: (_BITMASK, _bits(sql.SQL_FULL_OUTER_JOINS)),
        sql.SQL_SCHEMA_TERM: (_STRING, "schema"),
        sql.SQL_PROCEDURE_TERM: (_STRING, "procedure"),
        sql.SQL_CATALOG_TERM: (_STRING, "catalog"),
        sql.SQL_CATALOG_AT_START: (_BOOL, True),
        sql.SQL_SCHEMAS_SUPPORTED_ACTIONS: (_BITMASK, 0),
        sql.SQL_CATALOGS_SUPPORTED_ACTIONS: (_BITMASK, 0),
        sql.SQL_SUPPORTED_POSITIONED_COMMANDS: (_BITMASK, 0),
        sql.SQL_SELECT_FOR_UPDATE_SUPPORTED: (_BOOL, False),
        sql.SQL_STORED_PROCEDURES_SUPPORTED: (_BOOL, False),
        sql.SQL_SUPPORTED_SUBQUERIES: (
            _BITMASK,
            _bits(
                sql.SQL_SUBQUERIES_IN_COMPARISONS,
                sql.SQL_SUBQUERIES_IN_EXISTS,
                sql.SQL_SUBQUERIES_IN_INS,
                sql.SQL_SUBQUERIES_IN_QUANTIFIEDS,
            ),
        ),
        sql.SQL_CORRELATED_SUBQUERIES_SUPPORTED: (_BOOL, True),
        sql.SQL_SUPPORTED_UNIONS: (_BITMASK, _bits(sql.SQL_UNION, sql.SQL_UNION_ALL)),
        sql.SQL_DEFAULT_TRANSACTION_ISOLATION: (_BIGINT, sql.SQL_TRANSACTION_NONE),
        sql.SQL_TRANSACTIONS_SUPPORTED: (_BOOL, False),
        sql.SQL_SUPPORTED_TRANSACTIONS_ISOLATION_LEVELS: (_BITMASK, _bits(sql.SQL_TRANSACTION_NONE)),
        sql.SQL_DATA_DEFINITION_CAUSES_TRANSACTION_COMMIT: (_BOOL, True),
        sql.SQL_DATA_DEFINITIONS_IN_TRANSACTIONS_IGNORED: (_BOOL, False),
        **dict.fromkeys(_UNLIMITED, (_BIGINT, 0)),
        sql.SQL_MAX_ROW_SIZE_INCLUDES_BLOBS: (_BOOL, True),
        sql.SQL_SUPPORTED_CONCURRENCIES_FOR_RESULT_SET_UNSPECIFIED: (_BITMASK, 0),
        sql.SQL_SUPPORTED_CONCURRENCIES_FOR_RESULT_SET_FORWARD_ONLY: (
            _BITMASK,
            _bits(sql.SQL_RESULT_SET_CONCURRENCY_READ_ONLY),
        ),
        sql.SQL_SUPPORTED_CONCURRENCIES_FOR_RESULT_SET_SCROLL_SENSITIVE: (_BITMASK, 0),
        sql.SQL_SUPPORTED_CONCURRENCIES_FOR_RESULT_SET_SCROLL_INSENSITIVE: (_BITMASK, 0),
        sql.SQL_SUPPORTED_RESULT_SET_TYPES: (_BITMASK, _bits(sql.SQL_RESULT_SET_TYPE_FORWARD_ONLY)),
        sql.SQL_BATCH_UPDATES_SUPPORTED: (_BOOL, True),
        sql.SQL_SAVEPOINTS_SUPPORTED: (_BOOL, False),
        sql.SQL_NAMED_PARAMETERS_SUPPORTED: (_BOOL, True),
        sql.SQL_LOCATORS_UPDATE_COPY: (_BOOL, False),
        sql.SQL_STORED_FUNCTIONS_USING_CALL_SYNTAX_SUPPORTED: (_BOOL, False),
    }
