"""Typed literals and rows of ours, as the bridge reads them."""

from __future__ import annotations

import base64
import json
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from sqe_core.engine.spark.literals import encode, encode_parameters, encode_rows, spark_type
from sqe_core.spi.errors import UserError

MICROS_2024 = 1_704_067_200_000_000


@pytest.mark.parametrize(
    ("value", "type_name", "encoded"),
    [
        (None, "void", None),
        (True, "boolean", True),
        (5, "int", 5),
        (-(1 << 31), "int", -(1 << 31)),
        (1 << 31, "bigint", 1 << 31),
        (1 << 63, "decimal(19,0)", "9223372036854775808"),
        (0.1, "double", "0.1"),
        (float("nan"), "double", "NaN"),
        (float("-inf"), "double", "-Infinity"),
        ("it's", "string", "it's"),
        (b"\x00\xff", "binary", "AP8="),
        (Decimal("1.50"), "decimal(3,2)", "1.50"),
        (Decimal("1E+3"), "decimal(4,0)", "1000"),
        (Decimal("0.001"), "decimal(3,3)", "0.001"),
        (Decimal("-0"), "decimal(1,0)", "-0"),
        (date(1969, 12, 31), "date", -1),
        (time(1, 2, 3, 4), "time(6)", 3_723_000_004_000),
        (datetime(2024, 1, 1), "timestamp_ntz", MICROS_2024),
        (datetime(2024, 1, 1, tzinfo=UTC), "timestamp_ltz", MICROS_2024),
        (datetime(2024, 1, 1, 1, tzinfo=ZoneInfo("Europe/Amsterdam")), "timestamp_ltz", MICROS_2024),
        (datetime(1960, 1, 1, 0, 0, 0, 1), "timestamp_ntz", -315_619_199_999_999),
        (timedelta(days=-1, microseconds=1), "interval day to second", -86_399_999_999),
        ([1, None], "array<bigint>", [1, None]),
        ({"a": 1, "b": None}, "struct<`a`:bigint,`b`:void>", [1, None]),
        (pa.scalar(5, pa.uint64()), "decimal(20,0)", 5),
        (pa.scalar(7, pa.int8()), "tinyint", 7),
        (pa.scalar(1.5, pa.float32()), "float", "1.5"),
        (pa.scalar(None, pa.int64()), "bigint", None),
        (pa.scalar("x", pa.dictionary(pa.int8(), pa.string())), "string", "x"),
        (pa.scalar(1_704_067_200_000_000_999, pa.timestamp("ns")), "timestamp_ntz", MICROS_2024),
        (pa.scalar([("k", [1])], pa.map_(pa.string(), pa.list_(pa.int32()))), "map<string,array<int>>", [["k", [1]]]),
    ],
)
def test_values(value: Any, type_name: str, encoded: Any) -> None:
    assert encode(value) == {"type": type_name, "value": encoded}


@pytest.mark.parametrize("value", [object(), Decimal("NaN"), Decimal(10) ** 40, 10**40])
def test_values_that_are_no_sql(value: Any) -> None:
    with pytest.raises(UserError):
        encode(value)


def test_parameters_are_one_json_object() -> None:
    assert json.loads(encode_parameters({"a": 1, "b": "ü"})) == {
        "a": {"type": "int", "value": 1},
        "b": {"type": "string", "value": "ü"},
    }


def test_field_names_are_quoted_in_types() -> None:
    assert spark_type(pa.struct([("a`b c", pa.int32())])) == "struct<`a``b c`:int>"


def test_rows_have_only_types_that_spark_reads() -> None:
    rows = pa.table(
        {
            "unsigned": pa.array([1, None], pa.uint32()),
            "huge": pa.array([(1 << 64) - 1, None], pa.uint64()),
            "seconds": pa.array([1, None], pa.timestamp("s", tz="Asia/Tokyo")),
            "word": pa.array(["a", None]).dictionary_encode(),
            "large": pa.array(["a", None], pa.large_string()),
            "nested": pa.array([[{"a": 1}], None], pa.large_list(pa.struct([("a", pa.uint8())]))),
        },
        schema=None,
    )
    table = pa.ipc.open_stream(base64.b64decode(encode_rows(rows))).read_all()
    assert table.schema == pa.schema(
        {
            "unsigned": pa.int64(),
            "huge": pa.decimal128(20, 0),
            "seconds": pa.timestamp("us", tz="UTC"),
            "word": pa.string(),
            "large": pa.string(),
            "nested": pa.list_(pa.struct([("a", pa.int16())])),
        }
    )
    assert table.column("huge").to_pylist() == [Decimal((1 << 64) - 1), None]
    assert table.column("seconds").to_pylist() == [datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), None]
    assert table.column("nested").to_pylist() == [[{"a": 1}], None]


def test_no_rows_keep_their_columns() -> None:
    rows = pa.table({"a": pa.array([], pa.int32())})
    assert pa.ipc.open_stream(base64.b64decode(encode_rows(rows))).read_all().schema == rows.schema
