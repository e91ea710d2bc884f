"""Values as SQL text and as JSON."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal

import pyarrow as pa
import pytest

from sqe_core.cli.shell.values import Notation, write_values


def plain(array: pa.Array) -> list[str | None]:
    return write_values(array, Notation.PLAIN)


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array([True, False, None]), ["true", "false", None]),
        (pa.array([9223372036854775807, -1, None]), ["9223372036854775807", "-1", None]),
        (pa.array([1.0, 1.5, 1e300, -0.0]), ["1.0", "1.5", "1e+300", "-0.0"]),
        (pa.array([float("nan"), float("inf"), -float("inf")]), ["NaN", "Infinity", "-Infinity"]),
        (pa.array([0.1, 1.0], pa.float32()), ["0.1", "1.0"]),
        (
            pa.array([Decimal("0E-10"), Decimal("-1E-10"), Decimal("1.1")], pa.decimal128(38, 10)),
            ["0.0000000000", "-0.0000000001", "1.1000000000"],
        ),
        (pa.array(["", "a'b", None]), ["", "a'b", None]),
        (pa.array([b"\xde\xad", b""]), ["dead", ""]),
        (
            pa.array([0, -1, 19000, 2932897, -719529], pa.int32()).cast(pa.date32()),
            ["1970-01-01", "1969-12-31", "2022-01-08", "10000-01-01", "-0001-12-31"],
        ),
        (
            pa.array([0, 1, 1_500_000, -1], pa.timestamp("us")),
            [
                "1970-01-01 00:00:00",
                "1970-01-01 00:00:00.000001",
                "1970-01-01 00:00:01.5",
                "1969-12-31 23:59:59.999999",
            ],
        ),
        (pa.array([0], pa.timestamp("us", tz="Europe/Berlin")), ["1970-01-01 00:00:00+00:00"]),
        (pa.array([1], pa.timestamp("ns")), ["1970-01-01 00:00:00.000000001"]),
        (pa.array([253402300800], pa.timestamp("s")), ["10000-01-01 00:00:00"]),
        (pa.array([37_800_000_000, 1], pa.time64("us")), ["10:30:00", "00:00:00.000001"]),
        (pa.array([1000], pa.time32("ms")), ["00:00:01"]),
        (pa.array([90_061_000_000, -1_000_000], pa.duration("us")), ["1 01:01:01", "-0 00:00:01"]),
        (pa.array([(14, 0, 0), (0, 2, 1_000_000_000)], pa.month_day_nano_interval()), ["1-2", "2 00:00:01"]),
        (pa.nulls(2), [None, None]),
        (pa.array(["a", "b", "a"]).dictionary_encode(), ["a", "b", "a"]),
    ],
)
def test_scalars(array: pa.Array, expected: list[str | None]) -> None:
    assert plain(array) == expected


def test_dates_agree_with_python() -> None:
    days = [*range(-719162, 2932896, 997), -719162, 2932896]
    epoch = datetime.date(1970, 1, 1)
    expected = [(epoch + datetime.timedelta(days=day)).isoformat() for day in days]
    assert plain(pa.array(days, pa.int32()).cast(pa.date32())) == expected


def test_nested_values_are_written_like_sql() -> None:
    kind = pa.struct([("a", pa.list_(pa.string())), ("m", pa.map_(pa.string(), pa.int32()))])
    array = pa.array([{"a": ["x", None, "it's"], "m": [("k", 1)]}, None, {"a": [], "m": None}], kind)
    assert plain(array) == ["{a: ['x', NULL, 'it''s'], m: {'k': 1}}", None, "{a: [], m: NULL}"]


def test_nested_values_as_json_are_json() -> None:
    kind = pa.struct([("a", pa.list_(pa.date32())), ("m", pa.map_(pa.int32(), pa.float64()))])
    array = pa.array([{"a": [datetime.date(2024, 1, 2), None], "m": [(1, float("nan"))]}], kind)
    (text,) = write_values(array, Notation.JSON)
    assert text is not None
    assert json.loads(text) == {"a": ["2024-01-02", None], "m": {"1": "NaN"}}


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.int32()), pa.large_list(pa.int32()), pa.list_(pa.int32(), 2), pa.list_view(pa.int32())]
)
def test_slices_of_lists_keep_their_rows(kind: pa.DataType) -> None:
    array = pa.array([[1, 2], None, [3, 4], [5, 6]], kind).slice(1, 2)
    assert plain(array) == [None, "[3, 4]"]


def test_slices_of_maps_and_structs_keep_their_rows() -> None:
    maps = pa.array([[("a", 1)], None, [("b", 2)]], pa.map_(pa.string(), pa.int32())).slice(1)
    assert plain(maps) == [None, "{'b': 2}"]
    structs = pa.array([{"x": 1}, None, {"x": 3}]).slice(1)
    assert plain(structs) == [None, "{x: 3}"]


def test_text_that_is_no_utf8_is_shown_and_no_error() -> None:
    array = pa.array([b"a\xffb", None]).view(pa.string())
    assert plain(array) == ["a�b", None]
