"""Typed literals and rows of ours, as the bridge reads them."""

from __future__ import annotations

import base64
import json
import struct
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from arrow_headers import renamed

from sqe_core.engine.spark import literals
from sqe_core.engine.spark.literals import encode, encode_parameters, encode_rows, spark_type
from sqe_core.spi.errors import ErrorCode, UserError

MICROS_2024 = 1_704_067_200_000_000
WORDS = pa.dictionary(pa.int8(), pa.string())
MAP = pa.map_(pa.string(), pa.int8())
UUIDS = pa.ListArray.from_arrays([0, 2], pa.array([UUID(int=7).bytes, None], pa.uuid()))[0]


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
        (pa.scalar(None, pa.dictionary(pa.int8(), pa.string())), "string", None),
        (pa.scalar(1_704_067_200_000_000_000, pa.timestamp("ns")), "timestamp_ntz", MICROS_2024),
        (pa.scalar(-1000, pa.timestamp("ns", "UTC")), "timestamp_ltz", -1),
        (pa.scalar(1_704_067_200_000, pa.timestamp("ms")), "timestamp_ntz", MICROS_2024),
        (pa.scalar(-2, pa.duration("ms")), "interval day to second", -2000),
        (pa.scalar(3_723_004, pa.time32("ms")), "time(6)", 3_723_004_000_000),
        (pa.scalar(3_723_000_004_000, pa.time64("ns")), "time(6)", 3_723_000_004_000),
        (pa.scalar(pa.MonthDayNano([0, -1, 1000])), "interval day to second", -86_399_999_999),
        (pa.scalar(pa.MonthDayNano([-14, 0, 0])), "interval year to month", -14),
        (pa.scalar((1 << 31) - 1, pa.date32()), "date", (1 << 31) - 1),
        (pa.scalar(-86_400_000, pa.date64()), "date", -1),
        (UUID(int=7), "string", "00000000-0000-0000-0000-000000000007"),
        (pa.scalar(None, pa.uuid()), "string", None),
        (pa.scalar('{"a": 1}', pa.json_()), "string", '{"a": 1}'),
        (UUIDS, "array<string>", ["00000000-0000-0000-0000-000000000007", None]),
        (pa.scalar("x", pa.string_view()), "string", "x"),
        (pa.scalar(b"x", pa.binary_view()), "binary", "eA=="),
        (pa.scalar([b"x"], pa.list_(pa.binary_view())), "array<binary>", ["eA=="]),
        (pa.array([["x", None]], pa.list_(WORDS))[0], "array<string>", ["x", None]),
        (pa.scalar(1.5, pa.float16()), "float", "1.5"),
        (pa.scalar((1 << 64) - 1, pa.uint64()), "decimal(20,0)", (1 << 64) - 1),
        (pa.scalar(Decimal("12300"), pa.decimal128(5, -2)), "decimal(7,0)", "12300"),
        (pa.scalar(Decimal("12300"), pa.decimal128(38, -2)), "decimal(38,0)", "12300"),
        (pa.scalar(Decimal("1.50"), pa.decimal256(76, 2)), "decimal(38,2)", "1.50"),
        (pa.scalar(Decimal("9" * 38), pa.decimal128(38, 0)), "decimal(38,0)", "9" * 38),
        (pa.scalar(Decimal("-" + "9" * 36 + ".99"), pa.decimal128(38, 2)), "decimal(38,2)", "-" + "9" * 36 + ".99"),
        (pa.scalar(Decimal("1.50"), pa.decimal32(3, 2)), "decimal(3,2)", "1.50"),
        (pa.scalar([None, None]), "array<void>", [None, None]),
        (pa.scalar([("k", [1])], pa.map_(pa.string(), pa.list_(pa.int32()))), "map<string,array<int>>", [["k", [1]]]),
    ],
)
def test_values(value: Any, type_name: str, encoded: Any) -> None:
    assert encode(value) == {"type": type_name, "value": encoded}


@pytest.mark.parametrize("value", [object(), Decimal("NaN"), Decimal(10) ** 40, 10**40])
def test_values_that_are_no_sql(value: Any) -> None:
    with pytest.raises(UserError):
        encode(value)


NANOSECONDS = "A parameter has nanoseconds, which times in SQL do not have"
TIME, INTERVAL = pa.time64("us"), pa.month_day_nano_interval()


class LikePandas(datetime):
    """A pandas.Timestamp is a datetime too, and has what a datetime cannot have."""

    nanosecond = 1


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (pa.scalar(1001, pa.timestamp("ns")), NANOSECONDS),
        (pa.scalar(-1, pa.timestamp("ns", "UTC")), NANOSECONDS),
        (pa.scalar([1001], pa.list_(pa.timestamp("ns"))), NANOSECONDS),
        (pa.scalar(1001, pa.duration("ns")), NANOSECONDS),
        (pa.scalar(1001, pa.time64("ns")), NANOSECONDS),
        (pa.scalar(pa.MonthDayNano([0, 0, 1001])), NANOSECONDS),
        (LikePandas(1970, 1, 1), NANOSECONDS),
        (pa.scalar(1 << 62, pa.timestamp("s")), "A parameter is a time that 64 bits of microseconds cannot hold"),
        (pa.scalar(-(1 << 62), pa.duration("ms")), "A parameter is a time that 64 bits of microseconds cannot hold"),
        (
            pa.scalar(pa.MonthDayNano([0, (1 << 31) - 1, 0])),
            "A parameter is a time that 64 bits of microseconds cannot hold",
        ),
        (
            pa.scalar(pa.MonthDayNano([1, 1, 0])),
            "A parameter is an interval of months and of days or seconds",
        ),
        (pa.scalar(86_400_000_000, TIME), "A parameter is no time of a day"),
        (pa.scalar(-1000, TIME), "A parameter is no time of a day"),
        (pa.array([1]).view(pa.date64())[0], "A parameter is no date: it has hours, or is too far away"),
        (pa.array([86_400_000 << 32]).view(pa.date64())[0], "A parameter is no date: it has hours, or is too far away"),
        (pa.scalar(10**38, pa.decimal256(39, -1)), "A parameter is a decimal of more than 38 digits"),
        (pa.scalar(Decimal("9" * 37), pa.decimal256(76, 2)), "A parameter is a decimal of more than 38 digits"),
        (pa.scalar(Decimal(0), pa.decimal256(76, 39)), "A parameter is a decimal of more than 38 digits"),
        (pa.scalar([("a", 1), ("a", 2)], MAP), "A parameter is a map with a key twice, or with NULL as a key"),
        (
            pa.scalar([(0.0, 1), (-0.0, 2)], pa.map_(pa.float64(), pa.int8())),
            "A parameter is a map with a key twice, or with NULL as a key",
        ),
        (
            pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], ["a", "A"])[0],
            "A parameter is a row with fields of no name, or of the same one",
        ),
        (
            pa.StructArray.from_arrays([pa.array([1])], [""])[0],
            "A parameter is a row with fields of no name, or of the same one",
        ),
        ("x" * 20_000_001, "A parameter is longer than 20000000 characters, or 15000000 bytes"),
        ("\N{GRINNING FACE}" * 10_000_001, "A parameter is longer than 20000000 characters, or 15000000 bytes"),
        (b"x" * 15_000_001, "A parameter is longer than 20000000 characters, or 15000000 bytes"),
        (
            pa.array(["\udcff".encode("utf-8", "surrogatepass")]).view(pa.string())[0],
            "A parameter is text that is no UTF-8",
        ),
        ("\udcff", "A parameter holds a lone surrogate, which is not text"),
        ([1 << 64], "A parameter cannot be a list"),
        (timedelta.max, "A parameter cannot be a timedelta"),
    ],
)
def test_what_does_not_fit_is_refused(value: Any, message: str) -> None:
    with pytest.raises(UserError) as caught:
        encode(value)
    assert (caught.value.message, caught.value.code) == (message, ErrorCode.INVALID_ARGUMENTS)
    assert caught.value.hint


@pytest.mark.parametrize(
    "type",
    [
        pa.list_view(pa.int8()),
        pa.run_end_encoded(pa.int32(), pa.int8()),
        pa.bool8(),
        pa.list_(INTERVAL),
        pa.dense_union([pa.field("a", pa.int8())]),
    ],
    ids=str,
)
def test_types_that_are_no_sql(type: pa.DataType) -> None:
    with pytest.raises(UserError, match=r"^A parameter has the Arrow type .*, which parameters cannot have$") as caught:
        encode(pa.nulls(1, type)[0])
    assert caught.value.code is ErrorCode.NOT_SUPPORTED


def test_the_longest_text() -> None:
    assert len(encode("x" * 20_000_000)["value"]) == 20_000_000


def test_a_refusal_says_which_parameter_it_is() -> None:
    bad = pa.scalar(1001, pa.timestamp("ns"))
    for name, called in {"sqe_p2": "Parameter 2", "since": "Parameter :since", "_sqe_version": "A parameter"}.items():
        with pytest.raises(UserError, match=f"^{called} has nanoseconds") as caught:
            encode_parameters({"sqe_p1": 1, name: bad})
        assert (
            caught.value.hint == "send microseconds; a column timestamp(9) takes a bigint, the nanoseconds since 1970"
        )


def test_parameters_are_one_json_object() -> None:
    assert json.loads(encode_parameters({"a": 1, "b": "ü"})) == {
        "a": {"type": "int", "value": 1},
        "b": {"type": "string", "value": "ü"},
    }


def without_width(count: int) -> pa.Scalar[Any]:
    """A list of any number of elements in no bytes."""
    rows = pa.Array.from_buffers(pa.struct([]), count, [None], children=[])
    offsets = pa.py_buffer(struct.pack("<ii", 0, count))
    return pa.Array.from_buffers(pa.list_(rows.type), 1, [None, offsets], children=[rows])[0]


@pytest.mark.rule("FLT-7")
@pytest.mark.parametrize(
    "value",
    [
        without_width((1 << 31) - 1),
        without_width(1_000_001),
        pa.array([[True] * 1_000_001])[0],
        pa.array([[[True] * 500_000] * 2])[0],
        pa.array([[[1.5] * 500_001] * 2], pa.large_list(pa.list_(pa.float64(), 500_001)))[0],
        pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), pa.array([[0] * 1_000_001]))[0],
        pa.scalar([{"a": 1, "b": 2, "c": 3}] * 250_001),
        pa.scalar([(n, None) for n in range(1_000_001)], pa.map_(pa.int32(), pa.int8())),
    ],
    ids=["2 GiB", "rows", "bits", "lists", "fixed", "dictionary", "fields", "entries"],
)
def test_elements_are_counted_before_they_are_made(value: pa.Scalar[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    made = 0
    plain = literals._encode_plain

    def count(scalar: pa.Scalar[Any]) -> Any:
        nonlocal made
        made += 1
        return plain(scalar)

    monkeypatch.setattr(literals, "_encode_plain", count)
    with pytest.raises(UserError, match=r"^A parameter has more than 1000000 elements") as caught:
        encode(value)
    assert (caught.value.code, caught.value.hint) == (ErrorCode.INVALID_ARGUMENTS, "load them with bulk ingest")
    assert made < 1_000_000


@pytest.mark.rule("FLT-7")
def test_elements_of_all_parameters_count_together() -> None:
    half = pa.array([[None] * 500_000])[0]
    encode_parameters({"sqe_p1": half, "sqe_p2": half})
    with pytest.raises(UserError, match=r"^Parameter 3 has more than 1000000 elements"):
        encode_parameters({"sqe_p1": half, "sqe_p2": half, "sqe_p3": pa.scalar([1])})


@pytest.mark.parametrize(
    "type",
    [
        renamed(pa.struct([("QQQQ", pa.int8())])),
        renamed(pa.list_(pa.struct([("QQQQ", pa.int8())]))),
        renamed(pa.timestamp("us", "QQQQ")),
        renamed(pa.list_(pa.timestamp("us", "QQQQ"))),
    ],
    ids=["row", "rows", "zone", "zones"],
)
def test_names_that_are_no_utf_8_are_refused(type: pa.DataType) -> None:
    with pytest.raises(UserError, match=r"^A parameter has a name or a time zone that is no UTF-8$") as caught:
        encode(pa.nulls(1, type)[0])
    assert caught.value.code is ErrorCode.INVALID_ARGUMENTS


@pytest.mark.parametrize("digits", [0, 12])
def test_a_decimal_that_python_does_not_have(digits: int) -> None:
    type, sent = pa.decimal128(5, -2_147_483_645), pa.py_buffer(digits.to_bytes(16, "little"))
    with pytest.raises(UserError, match=r"^A parameter is a decimal of more than 38 digits$") as caught:
        encode(pa.Array.from_buffers(type, 1, [None, sent])[0])
    assert caught.value.code is ErrorCode.INVALID_ARGUMENTS


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
