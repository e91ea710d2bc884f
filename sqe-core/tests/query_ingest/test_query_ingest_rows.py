"""Batches of clients: damage and excess are refused, and what is written to files is what was sent."""

from __future__ import annotations

import shutil
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pytest

from sqe_core.query.ingest.rows import IngestLimits, RowFiles, check_batch
from sqe_core.spi.errors import QueryCancelledError, ResourcesError, SqeError, UserError

LIMITS = IngestLimits(
    total_bytes=1 << 20,
    batch_bytes=100_000,
    batch_rows=10_000,
    part_bytes=10_000,
    chunk_bytes=2_000,
    chunk_rows=100,
    disk_reserve_bytes=0,
)


def batch(**columns: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def refusal(bad: pa.RecordBatch, limits: IngestLimits = LIMITS) -> SqeError:
    with pytest.raises(SqeError) as caught:
        check_batch(bad, bad.schema, limits)
    return caught.value


def text_with(offsets: list[int], data: bytes) -> pa.Array:
    return pa.Array.from_buffers(
        pa.string(), len(offsets) - 1, [None, pa.array(offsets, pa.int32()).buffers()[1], pa.py_buffer(data)]
    )


@pytest.mark.rule("FLT-7")
@pytest.mark.parametrize(
    "damaged",
    [
        text_with([0, 2], b"\xff\xfe"),
        text_with([0, 5, 3], b"hello"),
        text_with([0, 1_000_000, 5], b"hello"),
        pa.DictionaryArray.from_arrays(pa.array([5], pa.int8()), pa.array(["a"]), safe=False),
    ],
    ids=["utf8", "descending", "beyond", "dictionary"],
)
def test_damaged_batches_are_refused(damaged: pa.Array) -> None:
    error = refusal(batch(c=damaged))
    assert isinstance(error, UserError)
    assert error.message == "A record batch is damaged"


@pytest.mark.rule("FLT-7")
def test_an_empty_list_inside_may_have_no_offsets(tmp_path: Path) -> None:
    """Arrow allows it, Java writes it, and pyarrow's `nbytes` crashes on it."""
    inner = pa.Array.from_buffers(pa.list_(pa.int32()), 0, [None, None], children=[pa.array([], pa.int32())])
    outer = pa.Array.from_buffers(pa.list_(inner.type), 1, [None, pa.py_buffer(b"\0" * 8)], children=[inner])
    sent = batch(c=outer)
    with RowFiles(tmp_path, sent=sent.schema, kept=sent.schema, limits=LIMITS, check=lambda: None) as files:
        files.append(sent)
        files.finish()
        assert pa.ipc.open_stream(files.files[0].read_bytes()).read_all().to_pydict() == {"c": [[]]}


def test_another_schema_is_refused() -> None:
    with pytest.raises(UserError, match="other columns"):
        check_batch(batch(a=pa.array([1])), pa.schema([("a", pa.int32())]), LIMITS)


def test_metadata_of_a_batch_does_not_matter() -> None:
    schema = pa.schema([pa.field("a", pa.int64(), metadata={"k": "v"})], metadata={"pandas": "{}"})
    check_batch(pa.RecordBatch.from_arrays([pa.array([1])], schema=schema), pa.schema([("a", pa.int64())]), LIMITS)


@pytest.mark.rule("FLT-7")
@pytest.mark.parametrize(
    "bomb",
    [
        pa.nulls(10_001),
        pa.array(range(20_000), pa.int64()),
        pa.DictionaryArray.from_arrays(pa.array([0] * 5_000, pa.int8()), pa.array(["x" * 1_000])),
        pa.array([["x" * 1_000] * 500] * 10).cast(pa.list_(pa.dictionary(pa.int32(), pa.string()))),
        pa.DictionaryArray.from_arrays(pa.array([0] * 5_000, pa.int8()), pa.array([b"x" * 1_000], pa.binary(1_000))),
    ],
    ids=["nulls", "rows", "dictionary", "nested dictionary", "fixed"],
)
def test_batches_that_are_or_become_too_big_are_refused(bomb: pa.Array) -> None:
    error = refusal(batch(c=bomb))
    assert isinstance(error, ResourcesError)
    assert error.hint == "send smaller batches"


@pytest.mark.rule("FLT-7")
def test_views_of_one_text_count_each_time() -> None:
    view = pa.array(["y" * 1_000]).cast(pa.string_view())
    one = view.buffers()[1].to_pybytes()
    many = pa.Array.from_buffers(pa.string_view(), 5_000, [None, pa.py_buffer(one[:16] * 5_000), *view.buffers()[2:]])
    assert isinstance(refusal(batch(c=many)), ResourcesError)
    check_batch(batch(c=view), pa.schema([("c", pa.string_view())]), LIMITS)


class Kept(NamedTuple):
    files: tuple[Path, ...]
    rows: pa.Table


def write(
    folder: Path, table: pa.Table, limits: IngestLimits = LIMITS, check: Callable[[], None] = lambda: None
) -> Kept:
    with RowFiles(folder, sent=table.schema, kept=table.schema, limits=limits, check=check) as files:
        for one in table.to_batches():
            files.append(one)
        files.finish()
        tables = [pa.ipc.open_stream(path.read_bytes()).read_all() for path in files.files]
        return Kept(files.files, pa.concat_tables(tables))


def test_rows_are_in_the_files_in_order(tmp_path: Path) -> None:
    table = pa.table({"n": list(range(9_000)), "t": [f"text {n}" for n in range(9_000)]})
    kept = write(tmp_path, table.slice(7), replace(LIMITS, batch_bytes=1 << 20))
    assert kept.rows.equals(table.slice(7).combine_chunks())
    assert len(kept.files) > 5
    assert max(path.stat().st_size for path in kept.files) < 2 * LIMITS.part_bytes
    stream = pa.ipc.open_stream(kept.files[0].read_bytes())
    assert max(one.num_rows for one in stream) <= LIMITS.chunk_rows


@pytest.mark.rule("ISO-12")
def test_files_are_private(tmp_path: Path) -> None:
    for path in write(tmp_path, pa.table({"n": [1]})).files:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_schema_can_be_read_before_any_row_came(tmp_path: Path) -> None:
    schema = pa.schema([("n", pa.int64())])
    with RowFiles(tmp_path, sent=schema, kept=schema, limits=LIMITS, check=lambda: None) as files:
        assert pa.ipc.open_stream(files.files[0].read_bytes()).schema == schema


def test_rows_are_kept_in_the_wanted_types(tmp_path: Path) -> None:
    sent, kept = pa.schema([("n", pa.uint8())]), pa.schema([("n", pa.int32())])
    with RowFiles(tmp_path, sent=sent, kept=kept, limits=LIMITS, check=lambda: None) as files:
        files.append(pa.RecordBatch.from_pydict({"n": [255, None]}, schema=sent))
        files.finish()
        found = pa.ipc.open_stream(files.files[0].read_bytes()).read_all()
    assert found.schema == kept
    assert found.to_pydict() == {"n": [255, None]}


@pytest.mark.rule("LIM-8")
def test_too_many_bytes_end_the_stream(tmp_path: Path) -> None:
    table = pa.table({"t": ["x" * 900] * 100})
    with pytest.raises(ResourcesError, match="more than 50000 bytes"):
        write(tmp_path, table, replace(LIMITS, total_bytes=50_000))
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 70_000


@pytest.mark.rule("LIM-8")
def test_the_last_of_the_disk_is_not_taken(tmp_path: Path) -> None:
    with pytest.raises(ResourcesError, match="no room"):
        write(tmp_path, pa.table({"n": [1]}), replace(LIMITS, disk_reserve_bytes=1 << 60))


def test_a_folder_that_vanished_is_no_fault_of_the_client(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    schema = pa.schema([("t", pa.string())])
    rows = pa.RecordBatch.from_pydict({"t": ["x" * 900] * 100}, schema=schema)
    with RowFiles(folder, sent=schema, kept=schema, limits=LIMITS, check=lambda: None) as files:
        shutil.rmtree(folder)
        with pytest.raises(ResourcesError, match="cannot keep"):
            files.append(rows)


def test_cancelling_ends_a_long_batch(tmp_path: Path) -> None:
    calls = 0

    def check() -> None:
        nonlocal calls
        calls += 1
        if calls > 3:
            raise QueryCancelledError("The statement was cancelled")

    with pytest.raises(QueryCancelledError):
        write(tmp_path, pa.table({"n": list(range(1_000))}), check=check)
