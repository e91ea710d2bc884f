"""Arrow types of clients: what tables keep them as, what they refuse, and values that do not fit."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from arrow_headers import renamed

from sqe_core.query.ingest.types import SchemaLimits, check_schema, converted, fitted, storable
from sqe_core.spi.errors import ErrorCode, NotSupportedError, ResourcesError, SqeError, UserError

LIMITS = SchemaLimits(columns=5, fields=12, depth=4, name_length=20)
BERLIN = pa.timestamp("ns", tz="Europe/Berlin")


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        (pa.bool_(), pa.bool_()),
        (pa.int8(), pa.int32()),
        (pa.int16(), pa.int32()),
        (pa.int64(), pa.int64()),
        (pa.uint8(), pa.int32()),
        (pa.uint16(), pa.int32()),
        (pa.uint32(), pa.int64()),
        (pa.uint64(), pa.decimal128(20, 0)),
        (pa.float16(), pa.float32()),
        (pa.float64(), pa.float64()),
        (pa.decimal32(5, 2), pa.decimal128(5, 2)),
        (pa.decimal64(12, 0), pa.decimal128(12, 0)),
        (pa.decimal128(5, -2), pa.decimal128(7, 0)),
        (pa.decimal128(2, 4), pa.decimal128(4, 4)),
        (pa.decimal256(38, 10), pa.decimal128(38, 10)),
        (pa.large_string(), pa.string()),
        (pa.string_view(), pa.string()),
        (pa.json_(), pa.string()),
        (pa.uuid(), pa.string()),
        (pa.binary(16), pa.binary()),
        (pa.large_binary(), pa.binary()),
        (pa.binary_view(), pa.binary()),
        (pa.date64(), pa.date32()),
        (pa.timestamp("s"), pa.timestamp("us")),
        (BERLIN, pa.timestamp("us", tz="UTC")),
        (pa.dictionary(pa.int8(), pa.large_string()), pa.string()),
        (pa.list_(pa.uint8(), 2), pa.list_(pa.int32())),
        (pa.large_list(pa.dictionary(pa.int8(), pa.string())), pa.list_(pa.string())),
        (pa.map_(pa.large_string(), pa.float16()), pa.map_(pa.string(), pa.float32())),
        (pa.struct([pa.field("a", pa.uint64(), nullable=False)]), pa.struct([("a", pa.decimal128(20, 0))])),
    ],
    ids=str,
)
def test_storable_types(sent: pa.DataType, kept: pa.DataType) -> None:
    assert storable("c", sent) == kept


@pytest.mark.parametrize(
    "sent",
    [
        pa.duration("us"),
        pa.month_day_nano_interval(),
        pa.decimal256(39, 2),
        pa.decimal128(38, -1),
        pa.null(),
        pa.list_(pa.null()),
        pa.list_(pa.uuid()),
        pa.struct([]),
        pa.list_view(pa.int32()),
        pa.run_end_encoded(pa.int32(), pa.string()),
        pa.dense_union([pa.field("a", pa.int32())]),
        pa.dictionary(pa.int8(), pa.list_(pa.int32())),
        pa.opaque(pa.binary(), "thing", "vendor"),
    ],
    ids=str,
)
def test_other_types_are_refused_by_column_and_type(sent: pa.DataType) -> None:
    with pytest.raises(NotSupportedError) as caught:
        storable("payload", sent)
    assert "payload" in caught.value.message
    assert str(sent)[:20].split("[")[0].split("<")[0] in caught.value.message or "list" in str(sent)


@pytest.mark.rule("FLT-7")
@pytest.mark.parametrize(
    ("schema", "code"),
    [
        (pa.schema([]), ErrorCode.INVALID_ARGUMENTS),
        (pa.schema([(f"c{n}", pa.int32()) for n in range(6)]), ErrorCode.RESOURCE_EXHAUSTED),
        (pa.schema([("a", pa.int32()), ("A", pa.int32())]), ErrorCode.INVALID_ARGUMENTS),
        (pa.schema([("", pa.int32())]), ErrorCode.INVALID_ARGUMENTS),
        (pa.schema([("a\n", pa.int32())]), ErrorCode.INVALID_ARGUMENTS),
        (pa.schema([("x" * 21, pa.int32())]), ErrorCode.INVALID_ARGUMENTS),
        (pa.schema([("s", pa.struct([("a", pa.int32()), ("A", pa.int32())]))]), ErrorCode.INVALID_ARGUMENTS),
        (pa.schema([("s", pa.list_(pa.struct([("", pa.int32())])))]), ErrorCode.INVALID_ARGUMENTS),
        (pa.schema([("l", pa.list_(pa.list_(pa.list_(pa.list_(pa.int8())))))]), ErrorCode.RESOURCE_EXHAUSTED),
        (pa.schema([("s", pa.struct([(f"f{n}", pa.int8()) for n in range(12)]))]), ErrorCode.RESOURCE_EXHAUSTED),
    ],
)
def test_schemas_are_bounded(schema: pa.Schema, code: ErrorCode) -> None:
    with pytest.raises(SqeError) as caught:
        check_schema(schema, LIMITS)
    assert caught.value.code is code
    assert caught.value.message.isprintable()


def test_a_usual_schema_passes() -> None:
    check_schema(pa.schema([("a b`.c", pa.int32()), ("é", pa.map_(pa.string(), pa.list_(pa.int8())))]), LIMITS)


@pytest.mark.parametrize("error", [UserError, ResourcesError])
def test_errors_of_schemas_are_of_two_kinds(error: type[SqeError]) -> None:
    bad = pa.schema([]) if error is UserError else pa.schema([(str(n), pa.int8()) for n in range(9)])
    with pytest.raises(error):
        check_schema(bad, LIMITS)


@pytest.mark.parametrize(
    ("stored", "target", "wanted"),
    [
        (pa.int64(), "int", pa.int32()),
        (pa.float64(), "bigint", pa.int64()),
        (pa.decimal128(10, 2), "int", pa.int32()),
        (pa.decimal128(10, 2), "decimal(5,1)", pa.decimal128(5, 1)),
        (pa.int64(), "double", pa.float64()),
        (pa.decimal128(10, 2), "double", pa.float64()),
        (pa.float64(), "float", pa.float32()),
        (pa.float64(), "decimal(5,1)", pa.decimal128(5, 1)),
        (pa.timestamp("us"), "date", pa.date32()),
        (pa.timestamp("us", "UTC"), "date", pa.timestamp("us", "UTC")),
        (pa.timestamp("us"), "timestamp_ns", pa.int64()),
        (pa.timestamp("us", "UTC"), "timestamptz_ns", pa.int64()),
        (pa.timestamp("us"), "timestamptz_ns", pa.timestamp("us")),
        (pa.list_(pa.int64()), "array<int>", pa.list_(pa.int32())),
        (pa.list_(pa.decimal128(30, 23)), "array<double>", pa.list_(pa.float64())),
        (pa.list_(pa.list_(pa.float64())), "array<array<decimal(5,1)>>", pa.list_(pa.list_(pa.decimal128(5, 1)))),
        (pa.map_(pa.int64(), pa.float64()), "map<int,float>", pa.map_(pa.int32(), pa.float32())),
        (
            pa.struct([("B", pa.int64()), ("a", pa.float64()), ("more", pa.int64())]),
            "struct<a:float,b:int>",
            pa.struct([("B", pa.int32()), ("a", pa.float32()), ("more", pa.int64())]),
        ),
        (pa.struct([("x:y,<`", pa.int64())]), "struct<a:int,`x:y,<```:double>", pa.struct([("x:y,<`", pa.float64())])),
        # The engine's own assignment judges these.
        (pa.int64(), "decimal(5,1)", pa.int64()),
        (pa.string(), "int", pa.string()),
        (pa.bool_(), "int", pa.bool_()),
        (pa.list_(pa.int64()), "int", pa.list_(pa.int64())),
        (pa.list_(pa.int64()), "map<int,int>", pa.list_(pa.int64())),
        (pa.struct([("a", pa.int64())]), "array<int>", pa.struct([("a", pa.int64())])),
        (pa.list_(pa.timestamp("us")), "array<date>", pa.list_(pa.timestamp("us"))),
        (pa.list_(pa.timestamp("us")), "array<timestamp_ns>", pa.list_(pa.timestamp("us"))),
    ],
    ids=str,
)
def test_fitted_types(stored: pa.DataType, target: str, wanted: pa.DataType) -> None:
    assert fitted(stored, target) == wanted


TIME = pa.time64("ns")
XY = ["x", None, "y"]
# As polars sends its categories.
CATEGORIES = pa.array(XY).dictionary_encode().cast(pa.dictionary(pa.uint32(), pa.string_view()))
IDENTIFIER = uuid.UUID("12345678-1234-5678-9abc-123456789abc")
RATES = pa.map_(pa.string(), pa.float64())


def once(value: Any, type: pa.DataType | None = None) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), pa.array([value], type))


def wrapped(values: pa.Array, wanted: pa.DataType) -> list[tuple[pa.Array, pa.DataType]]:
    """One value by itself and inside of everything that can be around it."""
    one, word = pa.array([0, 1], pa.int32()), pa.array(["k"])
    kept = [wanted, pa.list_(wanted), pa.list_(wanted), pa.list_(wanted), pa.struct([("a", wanted)])]
    return list(
        zip(
            [
                values,
                pa.ListArray.from_arrays(one, values),
                pa.LargeListArray.from_arrays(pa.array([0, 1], pa.int64()), values),
                pa.FixedSizeListArray.from_arrays(values, 1),
                pa.StructArray.from_arrays([values], ["a"]),
                pa.MapArray.from_arrays(one, word, values),
                pa.ListArray.from_arrays(one, pa.StructArray.from_arrays([values], ["a"])),
            ],
            [*kept, pa.map_(pa.string(), wanted), pa.list_(pa.struct([("a", wanted)]))],
            strict=True,
        )
    )


@pytest.mark.parametrize(
    ("values", "wanted", "expected"),
    [
        (pa.array([1, None], pa.uint64()), pa.decimal128(20, 0), [Decimal(1), None]),
        (pa.array([2**64 - 1], pa.uint64()), pa.decimal128(20, 0), [Decimal(2**64 - 1)]),
        (pa.array([1.5, None], pa.float16()), pa.float32(), [1.5, None]),
        (pa.array([IDENTIFIER.bytes, None], pa.uuid()), pa.string(), [str(IDENTIFIER), None]),
        (pa.array(['{"a": 1}'], pa.json_()), pa.string(), ['{"a": 1}']),
        (pa.array(["x", None, "x"]).dictionary_encode(), pa.string(), ["x", None, "x"]),
        (pa.array([1000], BERLIN), pa.timestamp("us", "UTC"), [datetime(1970, 1, 1, microsecond=1, tzinfo=UTC)]),
        (pa.array([datetime(2020, 1, 2)]), pa.date32(), [date(2020, 1, 2)]),
        (pa.array([[1, 2], None], pa.list_(pa.uint8(), 2)), pa.list_(pa.int32()), [[1, 2], None]),
        (pa.array([1.0, None]), pa.int32(), [1, None]),
        (pa.array([1], pa.timestamp("us")), pa.int64(), [1000]),
        (pa.array([1], pa.time32("s")), TIME, [time(0, 0, 1)]),
        (pa.array([1000, None], pa.time64("ns")), TIME, [time(0, 0, 0, 1), None]),
        (pa.array([[1], None], pa.list_(pa.time64("us"))), pa.list_(TIME), [[time(0, 0, 0, 1)], None]),
        (pa.array([None], pa.null()), pa.int32(), [None]),
        (pa.array([1.55, -0.0, None]), pa.decimal128(10, 2), [Decimal("1.55"), Decimal(0), None]),
        (pa.array([1.25], pa.float16()), pa.decimal128(10, 2), [Decimal("1.25")]),
        (pa.array([0.5, float("inf"), None]), pa.float32(), [0.5, float("inf"), None]),
        (pa.array([Decimal("1.1"), None]), pa.float64(), [1.1, None]),
        (CATEGORIES, pa.string(), ["x", None, "y"]),
        (CATEGORIES.cast(pa.dictionary(pa.uint32(), pa.binary_view())), pa.binary(), [b"x", None, b"y"]),
        (
            pa.StructArray.from_arrays([CATEGORIES], ["a"]),
            pa.struct([("a", pa.string())]),
            [{"a": each} for each in XY],
        ),
        (pa.ListArray.from_arrays([0, 1, 3], CATEGORIES), pa.list_(pa.string()), [["x"], [None, "y"]]),
        (once(1.5), pa.decimal128(5, 1), [Decimal("1.5")]),
        (once(1.5, pa.float16()), pa.decimal128(5, 1), [Decimal("1.5")]),
        (once(Decimal("1.5"), pa.decimal32(5, 2)), pa.decimal128(5, 1), [Decimal("1.5")]),
        (once(1500, pa.timestamp("ns")), pa.int64(), [1500]),
        (pa.DictionaryArray.from_arrays(pa.array([0, None], pa.int8()), once(0.5)), pa.float32(), [0.5, None]),
        (
            pa.array([[1.5, None], None], pa.list_(pa.float16())),
            pa.list_(pa.decimal128(5, 1)),
            [[Decimal("1.5"), None], None],
        ),
        (pa.array([[0.5], None, [float("nan")]])[:2], pa.list_(pa.float32()), [[0.5], None]),
        (pa.array([[0.1], [0.5]])[1:], pa.list_(pa.float32()), [[0.5]]),
        (pa.array([[0.1, 0.1], [0.5, 1]], pa.list_(pa.float64(), 2))[1:], pa.list_(pa.float32()), [[0.5, 1.0]]),
        (pa.array([[("k", 0.1)], [("l", 0.5)]], RATES)[1:], pa.map_(pa.string(), pa.float32()), [[("l", 0.5)]]),
        (pa.array([], pa.list_(pa.list_(pa.float64()))), pa.list_(pa.list_(pa.float32())), []),
    ],
    ids=lambda value: str(getattr(value, "type", value)),
)
def test_values_are_converted(values: pa.Array, wanted: pa.DataType, expected: list[Any]) -> None:
    result = converted("c", values, wanted)
    assert result.type == wanted
    assert result.to_pylist() == expected


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        (pa.array([1.5]), pa.int32()),
        (pa.array([1], pa.time64("ns")), TIME),
        (pa.array([[1]], pa.list_(pa.time64("ns"))), pa.list_(TIME)),
        (
            pa.array([{"a": [("k", 1)]}], pa.struct([("a", pa.map_(pa.string(), TIME))])),
            pa.struct([("a", pa.map_(pa.string(), TIME))]),
        ),
        (pa.array([float("nan")]), pa.int64()),
        (pa.array([float("nan")]), pa.decimal128(10, 2)),
        (pa.array([float("inf")]), pa.decimal128(10, 2)),
        (pa.array([1.555]), pa.decimal128(10, 2)),
        (pa.array([0.1]), pa.float32()),
        (pa.array([1e300]), pa.float32()),
        (pa.array([1e-60]), pa.float32()),
        (pa.array([Decimal("12345678901234567890.5")]), pa.float64()),
        (pa.array([3_000_000_000]), pa.int32()),
        (pa.array([2**53 + 1]), pa.float64()),
        (pa.array([Decimal("1.25")]), pa.decimal128(5, 1)),
        (pa.array([Decimal("123.25")]), pa.decimal128(4, 2)),
        (pa.array([1001], pa.timestamp("ns")), pa.timestamp("us")),
        (pa.array([datetime(2020, 1, 2, 3)]), pa.date32()),
        (pa.array([2**62], pa.timestamp("s")), pa.timestamp("us")),
        (pa.array([86_400_001]).view(pa.date64()), pa.date32()),
    ],
    ids=lambda value: str(getattr(value, "type", value)),
)
def test_a_value_that_would_lose_something_is_an_error(values: pa.Array, wanted: pa.DataType) -> None:
    with pytest.raises(UserError) as caught:
        converted("amount", values, wanted)
    assert caught.value.code is ErrorCode.INVALID_CAST
    assert "amount" in caught.value.message


@pytest.mark.parametrize("dictionary", [False, True], ids=["plain", "dictionary"])
@pytest.mark.parametrize(
    ("value", "type", "wanted"),
    [
        (1e300, None, pa.float32()),
        (0.1, None, pa.float32()),
        (1.55, None, pa.decimal128(5, 1)),
        (float("nan"), None, pa.decimal128(5, 1)),
        (0.1, pa.float32(), pa.decimal128(10, 5)),
        (1.5, None, pa.int64()),
        (2**53 + 1, None, pa.float64()),
        (16_777_217, pa.int32(), pa.float32()),
        (3_000_000_000, None, pa.int32()),
        (Decimal("0.12345678901234567890123"), None, pa.float64()),
        (Decimal("1.25"), None, pa.decimal128(5, 1)),
        (1001, pa.timestamp("ns"), pa.timestamp("us")),
        (86_399_000_000, pa.timestamp("us"), pa.date32()),
        (1, pa.time64("ns"), TIME),
    ],
    ids=str,
)
def test_wherever_a_value_is_it_is_kept_exactly(
    value: Any, type: pa.DataType | None, wanted: pa.DataType, dictionary: bool
) -> None:
    values = once(value, type) if dictionary else pa.array([value], type)
    for each, kept in wrapped(values, wanted):
        with pytest.raises(UserError, match="without loss") as caught:
            converted("amount", each, kept)
        assert caught.value.code is ErrorCode.INVALID_CAST


@pytest.mark.parametrize(
    "type",
    [
        renamed(pa.struct([("QQQQ", pa.int8())])),
        renamed(pa.list_(pa.struct([("QQQQ", pa.int8())]))),
        renamed(pa.timestamp("us", "QQQQ")),
        renamed(pa.list_(pa.timestamp("us", "QQQQ"))),
        renamed(pa.dictionary(pa.int8(), pa.timestamp("us", "QQQQ"))),
    ],
    ids=["row", "rows", "zone", "zones", "dictionary"],
)
def test_names_that_are_no_utf_8(type: pa.DataType) -> None:
    with pytest.raises(UserError, match=r"^Column payload has a name or a time zone that is no UTF-8$") as caught:
        storable("payload", type)
    assert caught.value.code is ErrorCode.INVALID_ARGUMENTS


def test_columns_of_names_that_are_no_utf_8() -> None:
    sent = pa.schema([("QQQQ", pa.int8())]).serialize().to_pybytes().replace(b"QQQQ", b"Q\xff\xfeQ")
    with pytest.raises(UserError, match="no UTF-8") as caught:
        check_schema(pa.ipc.read_schema(pa.py_buffer(sent)), LIMITS)
    assert caught.value.code is ErrorCode.INVALID_ARGUMENTS


def test_nan_stays_what_it_is() -> None:
    assert str(converted("c", pa.array([float("nan")]), pa.float32())[0]) == "nan"
