"""Parameters of every Arrow type through the whole pipeline: each arrives exactly, or is refused."""

from __future__ import annotations

import secrets
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from testbed.arrow_types import plain

from sqe_core.bootstrap import EmbeddedSqe
from sqe_core.spi.errors import ErrorCode, SqeError, UserError

_ID = uuid.UUID("01a1f422-d1e2-7888-9ac8-4af267eee018")
_INT64 = (1 << 63) - 1
_TEXTS = pa.list_(pa.string())

_EXACT: dict[str, tuple[pa.Scalar[Any], pa.DataType]] = {
    "int8": (pa.scalar(-128, pa.int8()), pa.int8()),
    "uint8": (pa.scalar(255, pa.uint8()), pa.int16()),
    "uint32": (pa.scalar((1 << 32) - 1, pa.uint32()), pa.int64()),
    "uint64": (pa.scalar((1 << 64) - 1, pa.uint64()), pa.decimal128(20, 0)),
    "float16": (pa.scalar(1.5, pa.float16()), pa.float32()),
    "float32": (pa.scalar(0.1, pa.float32()), pa.float32()),
    "the smallest double": (pa.scalar(5e-324), pa.float64()),
    "infinity": (pa.scalar(float("-inf")), pa.float64()),
    "decimal32": (pa.scalar(Decimal("1.25"), pa.decimal32(5, 2)), pa.decimal128(5, 2)),
    "decimal256": (pa.scalar(Decimal("12300.50"), pa.decimal256(60, 2)), pa.decimal128(38, 2)),
    "negative scale": (pa.scalar(Decimal("12300"), pa.decimal128(5, -2)), pa.decimal128(7, 0)),
    "the last date": (pa.scalar((1 << 31) - 1, pa.date32()), pa.date32()),
    "date64": (pa.scalar(-86_400_000, pa.date64()), pa.date32()),
    "time32": (pa.scalar(5, pa.time32("ms")), pa.time64("us")),
    "time64": (pa.scalar(5000, pa.time64("ns")), pa.time64("us")),
    "the last timestamp": (pa.scalar(_INT64, pa.timestamp("us")), pa.timestamp("us")),
    "the first instant": (pa.scalar(-_INT64 - 1, pa.timestamp("us", "UTC")), pa.timestamp("us", "UTC")),
    "timestamp in ns": (pa.scalar(-1000, pa.timestamp("ns")), pa.timestamp("us")),
    "duration in ns": (pa.scalar(-1000, pa.duration("ns")), pa.duration("us")),
    "string_view": (pa.scalar("x", pa.string_view()), pa.string()),
    "odd text": (pa.scalar("a\0b\N{GRINNING FACE}"), pa.string()),
    "long text": (pa.scalar("x" * 3_000_000), pa.string()),
    "binary_view": (pa.scalar(b"\0\xff", pa.binary_view()), pa.binary()),
    "binary(2)": (pa.scalar(b"\0\xff", pa.binary(2)), pa.binary()),
    "json": (pa.scalar('{"a": 1}', pa.json_()), pa.string()),
    "large_list": (pa.scalar([1, None], pa.large_list(pa.int32())), pa.list_(pa.int32())),
    "list(2)": (pa.scalar([1, None], pa.list_(pa.int32(), 2)), pa.list_(pa.int32())),
    "list of dictionary": (pa.array([["x", None]], pa.list_(pa.dictionary(pa.int8(), pa.string())))[0], _TEXTS),
    "no element": (pa.scalar([], _TEXTS), _TEXTS),
    "NULL for a list": (pa.scalar(None, _TEXTS), _TEXTS),
    "lists of nothing": (pa.scalar([[None], None]), pa.list_(pa.list_(pa.null()))),
    "row without fields": (pa.scalar({}, pa.struct([])), pa.struct([])),
    "odd name": (pa.scalar({"a`b:c, d>": 1}), pa.struct([("a`b:c, d>", pa.int64())])),
    "map": (
        pa.scalar([(b"a", 1), (b"b", None)], pa.map_(pa.binary(), pa.int32())),
        pa.map_(pa.binary(), pa.int32()),
    ),
}

_REFUSED: dict[str, tuple[pa.Scalar[Any], str]] = {
    "timestamp": (pa.scalar(1001, pa.timestamp("ns")), "has nanoseconds"),
    "duration": (pa.scalar(-1, pa.duration("ns")), "has nanoseconds"),
    "time": (pa.scalar(1001, pa.time64("ns")), "has nanoseconds"),
    "interval": (pa.scalar(pa.MonthDayNano([0, 1, 1])), "has nanoseconds"),
    "seconds": (pa.scalar(1 << 62, pa.timestamp("s")), "is a time that 64 bits of microseconds cannot hold"),
    "digits": (pa.scalar(Decimal("9" * 40), pa.decimal256(60, 2)), "is a decimal of more than 38 digits"),
    "keys": (pa.scalar([("a", 1), ("a", 2)], pa.map_(pa.string(), pa.int32())), "is a map with a key twice"),
    "elements": (pa.array([[True] * 1_000_001])[0], "has more than 1000000 elements"),
    "long": (pa.scalar(b"x" * 15_000_001), "is longer than"),
}


def query(sqe: EmbeddedSqe, sql: str, *parameters: Any) -> pa.Table:
    return sqe.execute(sql, parameters).read_all()


@pytest.fixture
def table(sqe: EmbeddedSqe) -> str:
    name = "t_" + secrets.token_hex(4)
    sqe.execute(f"CREATE TABLE {name} (id bigint) WITH (format_version = 3)").close()
    return name


def test_values_of_every_type_arrive_exactly(sqe: EmbeddedSqe) -> None:
    markers = ", ".join(f"? AS c{number}" for number in range(len(_EXACT)))
    found = query(sqe, f"SELECT {markers}", *(sent for sent, _ in _EXACT.values()))
    for (name, (sent, type)), column in zip(_EXACT.items(), found.columns, strict=True):
        assert plain(column.type) == type, name
        assert column[0].cast(sent.type) == sent or (not sent.is_valid and not column[0].is_valid), name


@pytest.mark.parametrize("name", _REFUSED)
def test_what_does_not_fit_is_refused(sqe: EmbeddedSqe, name: str) -> None:
    sent, fault = _REFUSED[name]
    with pytest.raises(UserError, match=f"^Parameter 2 {fault}") as caught:
        query(sqe, "SELECT ? AS a, ? AS b", 1, sent)
    assert caught.value.code is ErrorCode.INVALID_ARGUMENTS
    assert caught.value.hint
    with pytest.raises(UserError, match=f"^Parameter :late {fault}"):
        sqe.execute("SELECT :late AS a", {"late": sent})


def test_a_uuid_is_found_by_a_uuid(sqe: EmbeddedSqe, table: str) -> None:
    add_columns(sqe, table, u="uuid", w="string")
    for id, sent in enumerate([_ID, None]):
        given = pa.scalar(sent, pa.uuid())
        sqe.execute(f"INSERT INTO {table} (id, w, u) VALUES (?, ?, ?)", [id, given, given]).close()
    assert query(sqe, f"SELECT id FROM {table} WHERE w = ?", _ID).to_pylist() == [{"id": 0}]
    given = pa.ListArray.from_arrays([0, 1], pa.array([_ID.bytes], pa.uuid()))[0]
    assert query(sqe, f"SELECT id FROM {table} WHERE contains(?, w)", given).to_pylist() == [{"id": 0}]
    assert query(sqe, "SELECT CAST(? AS uuid) = ? AS same", _ID, str(_ID)).to_pylist() == [{"same": True}]
    assert query(sqe, f"SELECT id FROM {table} WHERE u = ?", _ID).to_pylist() == [{"id": 0}]


def test_nanoseconds_reach_a_column_of_them_whole_or_not_at_all(sqe: EmbeddedSqe, table: str) -> None:
    add_columns(sqe, table, ns="timestamp_ns")
    insert = f"INSERT INTO {table} (id, ns) VALUES (1, ?)"
    for sent in (1001, 1000):  # a timestamp is no bigint, so what fits is refused too
        with pytest.raises(SqeError) as caught:
            sqe.execute(insert, [pa.scalar(sent, pa.timestamp("ns"))]).close()
        assert caught.value.code in (ErrorCode.INVALID_ARGUMENTS, ErrorCode.TYPE_MISMATCH)
    rows = pa.table({"1": pa.array([1001, 2002], pa.timestamp("ns"))})
    with pytest.raises(SqeError, match=r"^Parameter 1 has a value that cannot be stored") as caught:
        sqe.sqe.service.insert_rows(sqe.session, insert, rows.to_batches())
    assert caught.value.code is ErrorCode.INVALID_CAST
    sqe.execute(insert, [1001]).close()
    found = query(sqe, f"SELECT ns FROM {table} WHERE ns = ?", 1001)
    assert found.column("ns").cast(pa.int64()).to_pylist() == [1001]


def add_columns(sqe: EmbeddedSqe, table: str, **columns: str) -> None:
    """Add columns of types that SQL cannot say and other engines make."""
    (mount,) = [each for each in sqe.sqe.catalogs.mounts() if each.name == sqe.session.catalog]
    catalog = sqe.session.engine_session().catalog(sqe.session.alias_of(mount))
    for name, type in columns.items():
        catalog.add_column(sqe.session.schema, table, name, type, default=None, comment=None)
