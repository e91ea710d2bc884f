"""What a batch becomes is known before anything of it is decoded (FLT-7)."""

from __future__ import annotations

import ast
import struct
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import sqe_core
from sqe_core.query.ingest import rows as ingest_rows
from sqe_core.query.ingest.insert_rows import RowInsert
from sqe_core.query.ingest.rows import IngestLimits, RowFiles
from sqe_core.query.ingest.types import converted
from sqe_core.spi.batch_bytes import MOST_DICTIONARY_ENTRIES, BatchBytes, _view_lengths, batch_bytes
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


def without_width(type: pa.DataType, count: int) -> pa.Array:
    """Any number of values in no bytes."""
    if pa.types.is_struct(type):
        return pa.Array.from_buffers(type, count, [None], children=[])
    if pa.types.is_fixed_size_list(type):
        return pa.Array.from_buffers(type, count, [None], children=[pa.array([], type.value_type)])
    return pa.Array.from_buffers(type, count, [None, pa.py_buffer(b"")])


def in_one_list(values: pa.Array) -> pa.Array:
    offsets = pa.py_buffer(struct.pack("<ii", 0, len(values)))
    return pa.Array.from_buffers(pa.list_(values.type), 1, [None, offsets], children=[values])


def without_offsets(depth: int) -> pa.Array:
    """No lists, in no lists: of these Arrow says that they need no offsets."""
    if not depth:
        return pa.array([], pa.int32())
    inner = without_offsets(depth - 1)
    return pa.Array.from_buffers(pa.large_list(inner.type), 0, [None, None], children=[inner])


def lists_of_none(rows: int, depth: int = 2) -> pa.Array:
    inner = without_offsets(depth)
    offsets = pa.py_buffer(bytes(4 * (rows + 1)))
    return pa.Array.from_buffers(pa.list_(inner.type), rows, [None, offsets], children=[inner])


NOTHING = [pa.struct([]), pa.binary(0), pa.list_(pa.int8(), 0)]


@contextmanager
def allocated_at_most(bytes: int) -> Iterator[None]:
    before = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(before)
    pa.set_memory_pool(pool)
    try:
        yield
    finally:
        pa.set_memory_pool(before)
    assert pool.max_memory() <= bytes


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
        (pa.nulls(500), 4_000),
        (pa.array([[None] * 500]), 4_000),
        (pa.DictionaryArray.from_arrays(pa.array([0] * 500), views(WORD.encode(), 1)), 500_000),
    ],
)
def test_what_is_used_often_counts_each_time(values: pa.Array, bytes: int) -> None:
    assert grown(values) == bytes


@pytest.mark.rule("FLT-7")
@pytest.mark.parametrize("type", NOTHING, ids=str)
def test_values_without_a_width_count(type: pa.DataType) -> None:
    many = 200_000_000
    values = without_width(type, many)
    with allocated_at_most(10_000):
        assert grown(in_one_list(values)) == 8 * many
        assert grown(values) == 8 * many
        assert grown(pa.StructArray.from_arrays([values], ["a"])) == 2 * 8 * many
        assert grown(in_one_list(in_one_list(values))) == 8 * many + 4
        # Those that no list has are not counted.
        assert grown(pa.ListArray.from_arrays(pa.array([5, 8], pa.int32()), values)) == 8 * 3


@pytest.mark.rule("FLT-7")
@pytest.mark.parametrize(
    ("elements", "lacking"),
    [
        (pa.array([True] * 800), 6_300),
        (pa.array([1] * 800, pa.int8()), 5_600),
        (pa.array([1.5] * 800, pa.float32()), 3_200),
        (pa.array([1] * 800), 0),
        (pa.array([1] * 800, pa.decimal128(38, 0)), 0),
        (pa.array([""] * 800), 3_200),
        (pa.array([""] * 800).dictionary_encode(), 3_200),
        (pa.array([{"a": True}] * 800), 6_300 + 6_300),
    ],
    ids=lambda value: str(getattr(value, "type", value)),
)
def test_every_element_counts(elements: pa.Array, lacking: int) -> None:
    """To the client it may be a bit. Each is something to the engine, and to Python an object."""
    assert grown(elements) == 0
    assert grown(in_one_list(elements)) == lacking
    assert grown(pa.FixedSizeListArray.from_arrays(elements, 800)) == lacking
    keys = pa.array(range(800))
    assert grown(pa.MapArray.from_arrays(pa.array([0, 800], pa.int32()), keys, elements)) == lacking


@pytest.mark.rule("FLT-7")
@pytest.mark.parametrize("entries", [pa.nulls(1 << 24), without_width(pa.binary(0), 1 << 24)], ids=["null", "fixed"])
def test_what_a_dictionary_has_is_not_made_to_be_counted(entries: pa.Array) -> None:
    values = pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), entries)
    with allocated_at_most(10_000):
        assert 8 <= grown(values) <= 32


@pytest.mark.rule("FLT-7")
def test_dictionaries_have_a_bound_of_entries() -> None:
    entries = pa.nulls(MOST_DICTIONARY_ENTRIES + 1)
    values = pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), entries)
    for each in (values, in_one_list(values), pa.DictionaryArray.from_arrays(pa.array([0]), values)):
        with pytest.raises(ResourcesError, match="16777217 entries; 16777216 are allowed"):
            sizes(each)


@pytest.mark.rule("FLT-7")
def test_indices_are_counted_piece_by_piece() -> None:
    """All lengths at once would be eight times as big as the indices."""
    indices = pa.Array.from_buffers(pa.int8(), 4_000_000, [None, pa.py_buffer(bytes(4_000_000))])
    values = pa.DictionaryArray.from_arrays(indices, pa.array([WORD]))
    with allocated_at_most(2_000_000):
        assert grown(values) == 4_000_000_000
        assert grown(views(WORD.encode(), 100_000)) == 100_000_000


@pytest.mark.rule("FLT-7")
def test_values_behind_nulls_count_and_cost_nothing() -> None:
    """To leave them out, Arrow makes a piece for each NULL among the others."""
    count = 100_000
    hidden = pa.py_buffer(b"\x55" * (count // 8))
    offsets = pa.array(range(count + 1), pa.int32()).buffers()[1]
    lists = pa.Array.from_buffers(
        pa.list_(pa.int64()), count, [hidden, offsets], children=[pa.array([7] * count, pa.int64())]
    )
    rows = pa.Array.from_buffers(pa.struct([("a", ONCE.type)]), 500, [hidden], children=[ONCE])
    with allocated_at_most(200_000):
        assert grown(lists) == 0
        assert grown(rows) == 500_000


@pytest.mark.parametrize("unit", [0, 1], ids=["months", "days"])
@pytest.mark.parametrize("nested", [False, True])
def test_types_that_pyarrow_has_no_arrays_of_are_refused(unit: int, nested: bool) -> None:
    """Java has them; pyarrow fails with a KeyError."""
    known = pa.month_day_nano_interval()
    sent = bytearray(pa.schema([("m", pa.list_(known) if nested else known)]).serialize().to_pybytes())
    ids = (pa.lib.Type_INTERVAL_MONTHS, pa.lib.Type_INTERVAL_DAY_TIME)
    for place in [place for place, byte in enumerate(sent) if byte == 2]:
        sent[place] = unit
        schema = None
        with suppress(pa.ArrowException, ValueError, OSError):
            schema = pa.ipc.read_schema(pa.py_buffer(bytes(sent)))
        if schema is not None and (schema.types[0].value_type if nested else schema.types[0]).id == ids[unit]:
            break
        sent[place] = 2
    else:
        pytest.fail("the unit is nowhere")
    batch: Any = SimpleNamespace(schema=schema)
    with pytest.raises(NotSupportedError, match="interval"):
        batch_bytes(batch)


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


@pytest.mark.rule("FLT-7")
@pytest.mark.parametrize("bomb", [ONCE, views(WORD.encode(), 500)], ids=["dictionary", "views"])
def test_each_batch_is_checked_before_it_is_decoded(tmp_path: Path, conversions: Conversions, bomb: pa.Array) -> None:
    batch, kept = pa.record_batch([bomb], ["w"]), pa.schema({"w": pa.string()})
    files = RowFiles(tmp_path, sent=batch.schema, kept=kept, limits=LIMITS, check=lambda: None)
    with files, pytest.raises(ResourcesError, match="bytes when decoded"):
        files.append(batch)
    assert not conversions.rows


class Row:
    """An INSERT of one row of VALUES with a marker."""

    statement = SimpleNamespace(parameters=("1",))
    whole = frozenset({"1"})

    def over(self, source: str, columns: list[str | None]) -> object:
        return columns


def judging(judge: Callable[[Any, Any], Any]) -> Any:
    """What judges a statement by its values alone."""
    return SimpleNamespace(judge=lambda statement, values=None, spooled=None: judge(statement, values))


def expecting(type: pa.DataType) -> Any:
    return SimpleNamespace(plan=SimpleNamespace(parameter_types={0: type}))


def run(insert: RowInsert, batch: pa.RecordBatch) -> Any:
    nothing: Any = None
    row: Any = Row()
    return insert.run(nothing, row, [batch], nothing)


@pytest.fixture
def insert(tmp_path: Path) -> RowInsert:
    @contextmanager
    def spool() -> Iterator[Any]:
        yield SimpleNamespace(folder=Path(tempfile.mkdtemp(dir=tmp_path)))

    engine = SimpleNamespace(open_spool=spool)
    context: Any = SimpleNamespace(
        parts=SimpleNamespace(engine=engine, limits=SimpleNamespace(ingest=LIMITS)),
        running=SimpleNamespace(check=lambda: None),
    )
    execution: Any = SimpleNamespace(run=lambda session, statement, judgement, ending: statement)
    return RowInsert(context, judging(lambda statement, values: expecting(pa.string())), execution)


@pytest.mark.rule("FLT-7")
@pytest.mark.parametrize("bomb", [ONCE, views(WORD.encode(), 500)], ids=["dictionary", "views"])
def test_rows_of_parameters_are_checked_before_they_are_decoded(
    insert: RowInsert, conversions: Conversions, bomb: pa.Array
) -> None:
    fine, big = (pa.record_batch([values], ["0"]) for values in (bomb[:10], bomb))
    assert run(insert, fine) == ["_sqe_v_1"]
    assert conversions.rows
    conversions.rows.clear()
    with pytest.raises(ResourcesError, match="bytes when decoded"):
        run(insert, big)
    assert not conversions.rows


@pytest.mark.rule("FLT-7")
def test_lists_without_offsets_are_values_as_others(insert: RowInsert) -> None:
    """What `nbytes` reads behind them may end the process."""
    given: list[Any] = []
    noting = replace(insert, judging=judging(lambda statement, values: given.append(values)))
    for depth in (1, 2, 5):
        assert run(noting, pa.record_batch([lists_of_none(2, depth)], ["0"])) == ["_sqe_v_1"]
        assert given[-2]["1"].as_py() == []


@pytest.mark.rule("FLT-7")
def test_a_long_value_is_judged_by_its_type(insert: RowInsert) -> None:
    """However few bytes it comes in."""
    given: list[Any] = []
    insert.context.parts.limits.ingest = IngestLimits(disk_reserve_bytes=0)  # type: ignore[misc]
    noting = replace(insert, judging=judging(lambda statement, values: given.append(values)))
    long, short = (in_one_list(without_width(pa.binary(0), count)) for count in (100_000, 10))
    for values in (long, short):
        run(noting, pa.record_batch([values], ["0"]))
    assert given[0]["1"] == pa.scalar(None, pa.list_(pa.binary()))
    assert given[2]["1"].as_py() == [b""] * 10


def test_no_source_asks_arrow_for_nbytes() -> None:
    """Of lists of no lists it reads offsets that need not be there; `batch_bytes` does not."""
    found = []
    for path in Path(sqe_core.__file__).parent.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found += [path for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr == "nbytes"]
    assert not found


def test_a_parameter_that_does_not_fit_is_told_by_its_number(insert: RowInsert) -> None:
    numbers = replace(insert, judging=judging(lambda statement, values: expecting(pa.decimal128(5, 1))))
    with pytest.raises(UserError, match="Parameter 1 has a value"):
        run(numbers, pa.record_batch([pa.array([Decimal("1.25")])], ["0"]))


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
