"""Each type's values, as Trino's clients read them."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from sqe_core.spi import ColumnType, NotSupportedError, ResultColumn, column_type
from sqe_protocol_trino.json_rows import json_chunks
from sqe_protocol_trino.json_times import month_text
from sqe_protocol_trino.type_signature import column, type_text

MOMENT = datetime(2020, 1, 2, 3, 4, 5, 678901)
LONG = 2**31 - 1


def written(values: pa.Array, type: ColumnType, *, parametric: bool = True) -> list[Any]:
    batch = pa.RecordBatch.from_arrays([values], names=["v"])
    texts = [text for _, text in json_chunks(batch, [type], parametric=parametric)]
    return [row[0] for row in json.loads(b"[" + b",".join(texts) + b"]")]


CASES: list[tuple[str, pa.DataType, list[Any], list[Any]]] = [
    ("boolean", pa.bool_(), [True, False], [True, False]),
    ("tinyint", pa.int8(), [-128, 127], [-128, 127]),
    ("bigint", pa.int64(), [-(2**63), 2**63 - 1], [-(2**63), 2**63 - 1]),
    ("real", pa.float32(), [0.1, 3.4028235e38], [0.1, 3.4028235e38]),
    (
        "double",
        pa.float64(),
        [0.1, -0.0, 1e300, float("nan"), float("inf"), float("-inf")],
        [0.1, -0.0, 1e300, "NaN", "Infinity", "-Infinity"],
    ),
    ("decimal(10,2)", pa.decimal128(10, 2), [Decimal("-0.01"), Decimal("12345678.90")], ["-0.01", "12345678.90"]),
    ("decimal(38,0)", pa.decimal128(38, 0), [Decimal(10**38 - 1)], [str(10**38 - 1)]),
    ("decimal(38,38)", pa.decimal128(38, 38), [Decimal("1e-38")], ["0." + "0" * 37 + "1"]),
    ("varchar", pa.string(), ["", 'a"b\\c', "\n\r\t\x00\x1f", "ü🦀"], ["", 'a"b\\c', "\n\r\t\x00\x1f", "ü🦀"]),
    ("varchar", pa.large_string(), ["a", '"'], ["a", '"']),
    ("char(3)", pa.string(), ["a", "ü", "abc"], ["a  ", "ü  ", "abc"]),
    ("varbinary", pa.binary(), [b"", b"\x00\xff"], ["", "AP8="]),
    (
        "date",
        pa.date32(),
        [date(1, 1, 1), date(1582, 10, 15), date(9999, 12, 31)],
        ["0001-01-01", "1582-10-15", "9999-12-31"],
    ),
    ("time(6)", pa.time64("us"), [time(23, 59, 59, 999999), time(0)], ["23:59:59.999999", "00:00:00.000000"]),
    ("time(0)", pa.time64("us"), [time(23, 59, 59)], ["23:59:59"]),
    (
        "timestamp(6)",
        pa.timestamp("us"),
        [MOMENT, datetime(1, 1, 1)],
        ["2020-01-02 03:04:05.678901", "0001-01-01 00:00:00.000000"],
    ),
    ("timestamp(3)", pa.timestamp("us"), [MOMENT.replace(microsecond=678000)], ["2020-01-02 03:04:05.678"]),
    ("timestamp(0)", pa.timestamp("us"), [MOMENT.replace(microsecond=0)], ["2020-01-02 03:04:05"]),
    ("timestamp(9)", pa.timestamp("ns"), [MOMENT], ["2020-01-02 03:04:05.678901000"]),
    ("timestamp(12)", pa.timestamp("us"), [MOMENT], ["2020-01-02 03:04:05.678901000000"]),
    (
        "timestamp(6) with time zone",
        pa.timestamp("us", "UTC"),
        [MOMENT.replace(tzinfo=UTC)],
        ["2020-01-02 03:04:05.678901 UTC"],
    ),
    (
        "timestamp(3) with time zone",
        pa.timestamp("us", "Europe/Amsterdam"),
        [datetime(2020, 7, 1, 10, tzinfo=UTC)],
        ["2020-07-01 12:00:00.000 Europe/Amsterdam"],
    ),
    (
        "interval day to second",
        pa.duration("us"),
        [timedelta(days=-1, hours=-2), timedelta(milliseconds=1), timedelta(days=99999)],
        ["-1 02:00:00.000", "0 00:00:00.001", "99999 00:00:00.000"],
    ),
    ("interval year to month", pa.string(), ["-1-2"], ["-1-2"]),
    ("json", pa.string(), ['{"a": "b"}'], ['{"a": "b"}']),
    ("unknown", pa.null(), [], []),
    ("array(integer)", pa.list_(pa.int32()), [[1, None], []], [[1, None], []]),
    ("array(varchar)", pa.large_list(pa.string()), [["a", None]], [["a", None]]),
    (
        "map(integer, varchar)",
        pa.map_(pa.int32(), pa.string()),
        [[(1, 'x"'), (2, None)], []],
        [{"1": 'x"', "2": None}, {}],
    ),
    (
        "map(row(a integer, b array(varchar)), boolean)",
        pa.map_(pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))]), pa.bool_()),
        [[({"a": 1, "b": ['"', None]}, True), ({"a": None, "b": []}, None)]],
        [{'[1, [", null]]': True, "[null, []]": None}],
    ),
    ("map(varchar, array(integer))", pa.map_(pa.string(), pa.list_(pa.int32())), [[('"k', [1])]], [{'"k': [1]}]),
    ("array(json)", pa.string(), ['[1,"x",null,{"a":1.5}]', None], [["1", '"x"', None, '{"a":1.5}'], None]),
    ("map(varchar, json)", pa.string(), ['{"k":[1]}'], [{"k": "[1]"}]),
    ("row(a json, b bigint)", pa.string(), ['{"a":"x","b":1}', '{"b":2}'], [['"x"', 1], [None, 2]]),
    ("date", pa.date32(), [0, 2932896, 2932897, None], ["1970-01-01", "9999-12-31", "+10000-01-01", None]),
    (
        "map(date, boolean)",
        pa.map_(pa.date32(), pa.bool_()),
        [[(date(2020, 1, 2), True)]],
        [{"2020-01-02": True}],
    ),
    (
        "row(a integer, b array(row(c varchar)))",
        pa.struct([("a", pa.int32()), ("b", pa.list_(pa.struct([("c", pa.string())])))]),
        [{"a": None, "b": [{"c": "x"}, None]}, {"a": 1, "b": None}],
        [[None, [["x"], None]], [1, None]],
    ),
]


@pytest.mark.parametrize(("text", "type", "values", "expected"), CASES, ids=[case[0] for case in CASES])
def test_values(text: str, type: pa.DataType, values: list[Any], expected: list[Any]) -> None:
    """As a whole, as a part of a larger buffer, and with NULL among them."""
    array = pa.array([None, *values, None], type)
    read = column_type(text, type)
    assert written(array, read) == [None, *expected, None]
    assert written(array.slice(1), read) == [*expected, None]
    assert written(array.slice(0, 0), read) == []


def test_json_that_is_nested_too_deeply_is_refused() -> None:
    deep = pa.array(["[" * 100_000 + "]" * 100_000])  # deeper than parsers in the same process may go
    with pytest.raises(NotSupportedError, match="too deeply"):
        written(deep, column_type("array(json)", pa.string()))


def test_zero_columns_are_rows_still() -> None:
    batch = pa.RecordBatch.from_struct_array(pa.array([{}, {}], pa.struct([])))
    assert list(json_chunks(batch, [])) == [(2, b"[],[]")]


def test_large_batches_come_in_pieces() -> None:
    batch = pa.RecordBatch.from_arrays([pa.array(range(100_000)), pa.array(["x" * 20] * 100_000)], names=["a", "b"])
    types = [column_type("bigint", pa.int64()), column_type("varchar", pa.string())]
    pieces = list(json_chunks(batch, types, at_most=100_000))
    assert sum(rows for rows, _ in pieces) == 100_000
    assert max(len(text) for _, text in pieces) < 300_000
    assert json.loads(b"[" + b",".join(text for _, text in pieces) + b"]")[-1] == [99_999, "x" * 20]


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        (datetime(2020, 1, 1, 0, 0, 0, 999_499), "2020-01-01 00:00:00.999"),
        (datetime(2020, 1, 1, 0, 0, 0, 999_500), "2020-01-01 00:00:01.000"),
        (datetime(1960, 1, 1, 0, 0, 0, 1_499), "1960-01-01 00:00:00.001"),
        (datetime(1960, 1, 1, 0, 0, 0, 1_500), "1960-01-01 00:00:00.002"),
    ],
)
def test_old_clients_read_milliseconds(moment: datetime, expected: str) -> None:
    """Who knows nothing of digits is told `timestamp`, and values are rounded."""
    type = column_type("timestamp(6)", pa.timestamp("us"))
    assert written(pa.array([moment], pa.timestamp("us")), type, parametric=False) == [expected]
    assert column(ResultColumn(name="t", type=type), parametric=False) == {
        "name": "t",
        "type": "timestamp",
        "typeSignature": {"rawType": "timestamp", "arguments": []},
    }


@pytest.mark.parametrize(("months", "expected"), [(0, "0-0"), (14, "1-2"), (-14, "-1-2"), (11, "0-11")])
def test_months(months: int, expected: str) -> None:
    assert month_text(months) == expected


def argument(kind: str, value: Any) -> dict[str, Any]:
    return {"kind": kind, "value": value}


@pytest.mark.parametrize(
    ("text", "type", "shown", "arguments"),
    [
        ("bigint", pa.int64(), "bigint", []),
        ("varchar", pa.string(), "varchar", [argument("LONG", LONG)]),
        ("varchar(5)", pa.string(), "varchar(5)", [argument("LONG", 5)]),
        ("char(5)", pa.string(), "char(5)", [argument("LONG", 5)]),
        ("decimal(10,2)", pa.decimal128(10, 2), "decimal(10,2)", [argument("LONG", 10), argument("LONG", 2)]),
        (
            "timestamp(6) with time zone",
            pa.timestamp("us", "UTC"),
            "timestamp(6) with time zone",
            [argument("LONG", 6)],
        ),
        ("variant", pa.string(), "json", []),
        (
            "array(integer)",
            pa.list_(pa.int32()),
            "array(integer)",
            [argument("TYPE", {"rawType": "integer", "arguments": []})],
        ),
        (
            'row(a integer, "b c" date)',
            pa.struct([("a", pa.int32()), ("b c", pa.date32())]),
            "row(a integer, b c date)",
            [
                argument(
                    "NAMED_TYPE", {"fieldName": {"name": name}, "typeSignature": {"rawType": raw, "arguments": []}}
                )
                for name, raw in (("a", "integer"), ("b c", "date"))
            ],
        ),
    ],
)
def test_types_are_told_twice(text: str, type: pa.DataType, shown: str, arguments: list[Any]) -> None:
    read = column_type(text, type)
    assert type_text(read) == shown
    assert column(ResultColumn(name="c", type=read), parametric=True)["typeSignature"]["arguments"] == arguments
