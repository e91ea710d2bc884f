"""What a batch becomes is known before anything of it is decoded (FLT-7)."""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from sqe_core.batch_bytes import BatchBytes, _view_lengths, batch_bytes
from sqe_core.query import ingest_rows
from sqe_core.query.ingest_rows import IngestLimits, RowFiles
from sqe_core.query.ingest_types import converted
from sqe_core.query.insert_rows import RowInsert
from sqe_core.spi.errors import NotSupportedError, ResourcesError, UserError

WORD = "x" * 1_000
ONCE = pa.DictionaryArray.from_arrays(pa.array([0] * 500, pa.int32()), pa.array([WORD]))
LIMITS = IngestLimits(batch_bytes=100_000, chunk_bytes=10_000, chunk_rows=1_000, disk_reserve_bytes=0)


def sizes(values: pa.Array) -> BatchBytes:
    return batch_bytes(pa.record_batch([values], ["v"]))


def grown(values: pa.Array) -> int:
    found = sizes(values)
    return found.decoded - found.sent


def views(text: bytes, count: int) -> pa.Array:
    view = struct.pack("<i4sii", len(text), text[:4], 0, 0)
    return pa.Array.from_buffers(pa.string_view(), count, [None, pa.py_buffer(view * count), pa.py_buffer(text)])


def test_plain_columns_do_not_grow() -> None:
    for values in (
        pa.array([1, 2]),
        pa.array(["a", None]),
        pa.array([[1], []]),
        pa.array([{"a": 1}]),
        pa.array([True]),
    ):
        assert grown(values) == 0
        assert sizes(values).dictionaries == 0


@pytest.mark.rule("FLT-7")
@pytest.mark.parametrize(
    ("values", "bytes"),
    [
        (ONCE, 500_000),
        (ONCE[100:200], 100_000),
        (views(WORD.encode(), 500), 500_000),
        (pa.ListArray.from_arrays(pa.array([0, 100, 500], pa.int32()), ONCE), 500_000),
        (pa.StructArray.from_arrays([ONCE], ["a"]), 500_000),
        (pa.FixedSizeListArray.from_arrays(ONCE, 2), 500_000),
        (pa.nulls(500), 2_000),
        (pa.array([[None] * 500]), 2_000),
        (pa.DictionaryArray.from_arrays(pa.array([0] * 500), views(WORD.encode(), 1)), 500_000),
    ],
)
def test_what_is_used_often_counts_each_time(values: pa.Array, bytes: int) -> None:
    assert grown(values) == bytes


@pytest.mark.rule("FLT-7")
def test_a_value_that_is_a_list_may_be_all_of_the_dictionary() -> None:
    values = pa.DictionaryArray.from_arrays(pa.array([0] * 500, pa.int32()), pa.array([list(range(1_000))]))
    assert grown(values) > 500 * 8_000


@pytest.mark.rule("FLT-7")
@pytest.mark.parametrize(
    "values",
    [
        ONCE,
        pa.DictionaryArray.from_arrays(pa.array([None], pa.int8()), pa.array([WORD])),
        pa.ListArray.from_arrays(pa.array([0], pa.int32()), ONCE[:0]),
        pa.StructArray.from_arrays([ONCE], ["a"]),
    ],
    ids=["used", "not used", "in no list", "inside"],
)
def test_dictionaries_count_whether_they_are_used_or_not(values: pa.Array) -> None:
    assert 1_000 <= sizes(values).dictionaries < 2_000


@pytest.mark.rule("FLT-7")
@pytest.mark.parametrize(
    "values",
    [
        pa.array([[1]], pa.list_view(pa.int8())),
        pa.array([[1]], pa.large_list_view(pa.int8())),
        pa.RunEndEncodedArray.from_arrays(pa.array([1_000_000], pa.int32()), pa.array([1])),
        pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])]),
    ],
)
def test_other_ways_to_use_a_value_often_are_refused(values: pa.Array) -> None:
    for each in (values, pa.StructArray.from_arrays([values], ["a"])):
        with pytest.raises(NotSupportedError, match="not supported"):
            sizes(each)


class Conversions:
    """Conversions that are counted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rows: list[int] = []
        monkeypatch.setattr(ingest_rows, "converted", self._converted)

    def _converted(self, column: str, values: pa.Array, wanted: pa.DataType, **options: Any) -> pa.Array:
        self.rows.append(len(values))
        return converted(column, values, wanted, **options)


@pytest.fixture
def conversions(monkeypatch: pytest.MonkeyPatch) -> Conversions:
    return Conversions(monkeypatch)


@pytest.mark.rule("FLT-7")
def test_a_batch_is_converted_piece_by_piece(tmp_path: Path, conversions: Conversions) -> None:
    """One byte each becomes sixteen."""
    sent, kept = pa.schema({"n": pa.int8()}), pa.schema({"n": pa.decimal128(20, 0)})
    with RowFiles(tmp_path, sent=sent, kept=kept, limits=LIMITS, check=lambda: None) as files:
        files.append(pa.record_batch([pa.array([5] * 50_000, pa.int8())], schema=sent))
        files.finish()
        assert sum(len(pa.ipc.open_stream(path.read_bytes()).read_all()) for path in files.files) == 50_000
    assert max(conversions.rows) <= LIMITS.chunk_rows
    assert sum(conversions.rows) == 50_000


class Row:
    """An INSERT of one row of VALUES with a marker."""

    statement = SimpleNamespace(parameters=("1",))
    whole = frozenset({"1"})

    def over(self, source: str, columns: list[str | None]) -> object:
        return columns


@pytest.fixture
def insert(tmp_path: Path) -> RowInsert:
    @contextmanager
    def spool() -> Iterator[Any]:
        yield SimpleNamespace(folder=Path(tempfile.mkdtemp(dir=tmp_path)))

    made: Any = RowInsert(
        engine=SimpleNamespace(open_spool=spool),  # type: ignore[arg-type]
        limits=LIMITS,
        check=lambda: None,
        secure=lambda *given: SimpleNamespace(plan=SimpleNamespace(parameter_types={0: pa.string()})),  # type: ignore
        execute=lambda session, statement, secured: statement,  # type: ignore
    )
    return made


@pytest.mark.rule("FLT-7")
@pytest.mark.parametrize("bomb", [ONCE, views(WORD.encode(), 500)], ids=["dictionary", "views"])
def test_rows_of_parameters_are_checked_before_they_are_decoded(
    insert: RowInsert, conversions: Conversions, bomb: pa.Array
) -> None:
    session: Any = None
    row: Any = Row()
    fine, big = (pa.record_batch([values], ["0"]) for values in (bomb[:10], bomb))
    assert insert.run(session, row, [fine]) == ["_sqe_v_1"]
    assert conversions.rows
    conversions.rows.clear()
    with pytest.raises(ResourcesError, match="bytes when decoded"):
        insert.run(session, row, [big])
    assert not conversions.rows


def test_a_parameter_that_does_not_fit_is_told_by_its_number(insert: RowInsert) -> None:
    session: Any = None
    row: Any = Row()
    secured = SimpleNamespace(plan=SimpleNamespace(parameter_types={0: pa.decimal128(5, 1)}))
    numbers = replace(insert, secure=lambda *given: secured)  # type: ignore
    with pytest.raises(UserError, match="Parameter 1 has a value"):
        numbers.run(session, row, [pa.record_batch([pa.array([Decimal("1.25")])], ["0"])])


def test_the_lengths_of_views() -> None:
    words = pa.array(["", "ab", "x" * 40, None, "cd"], pa.string_view())
    assert (
        batch_bytes(pa.record_batch([words], ["w"])).decoded - batch_bytes(pa.record_batch([words], ["w"])).sent == 44
    )
    part = words.slice(1, 2)
    assert _view_lengths(part).to_pylist() == [2, 40]
    odd = pa.Array.from_buffers(pa.string_view(), 1, [None, pa.py_buffer(struct.pack("<i12s", 2, b"ab") + b"odd")])
    odd.validate(full=True)
    assert _view_lengths(odd).to_pylist() == [2]
