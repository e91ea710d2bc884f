"""A large result, read batch by batch: time to the first batch, memory of all processes, prompt cancel."""

from __future__ import annotations

import argparse
import os
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sqe_core.bootstrap import EmbeddedSqe, open_embedded
from sqe_core.spi.errors import SqeError

NAME = "stream"
_MAX_GROWTH_MB = 200
_MAX_CANCEL_SECS = 1.0
_ROW_BYTES = 1024


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--megabytes", type=int, default=1024, help="size of the result (1024)")


def run(arguments: argparse.Namespace) -> Mapping[str, Any]:
    """Measure and print."""
    with tempfile.TemporaryDirectory(prefix="sqe-bench-") as folder:
        sqe = open_embedded(Path(folder))
        try:
            return _measure(sqe, arguments.megabytes)
        finally:
            sqe.close()


def wide_query(megabytes: int) -> str:
    """Return a query whose result has that size."""
    rows = megabytes * 1024 * 1024 // _ROW_BYTES
    # Incompressible-looking text of 1,008 characters and an id: the encoder cannot cheat.
    return f"SELECT id, concat({', '.join(['md5(cast(id as varchar))'] * 32)}) AS text FROM range({rows}) AS r(id)"


def _measure(sqe: EmbeddedSqe, megabytes: int) -> Mapping[str, Any]:
    for _ in sqe.execute(wide_query(64)):  # warm: heap and buffers have their usual size
        pass
    before = tree_memory_mb(os.getpid())
    with MemoryWatch() as memory:
        started = time.perf_counter()
        result = sqe.execute(wide_query(megabytes))
        first, rows, size, unfinished = None, 0, 0, None
        for batch in result:
            if first is None:
                first = time.perf_counter() - started
                progress = result.progress()
                unfinished = progress.tasks_done < progress.tasks
            rows += batch.num_rows
            size += batch.nbytes
        total = time.perf_counter() - started
    growth = memory.peak_mb - before
    cancel = _cancel_secs(sqe, megabytes)
    megabytes_read = size / 1e6
    print(f"{megabytes_read:.0f} MB in {rows} rows at {megabytes_read / total:.0f} MB/s")
    print(f"first batch after {first:.2f} s, the last after {total:.2f} s")
    print(f"first batch before the last task was done: {'yes' if unfinished else 'no'}")
    print(f"memory of the process tree: {before:.0f} MB before, {growth:+.0f} MB at the peak")
    print(f"cancel: slots free after {cancel:.2f} s")
    passed = bool(unfinished) and growth < _MAX_GROWTH_MB and cancel < _MAX_CANCEL_SECS
    return {
        "passed": passed,
        "bytes": size,
        "rows": rows,
        "first_batch_secs": first,
        "total_secs": total,
        "first_batch_before_last_task": unfinished,
        "memory_before_mb": before,
        "memory_growth_mb": growth,
        "cancel_secs": cancel,
    }


def _cancel_secs(sqe: EmbeddedSqe, megabytes: int) -> float:
    """Cancel in the middle of a result; return how long until no task of it runs."""
    result = sqe.execute(wide_query(megabytes))
    batches = iter(result)
    next(batches)
    started = time.perf_counter()
    sqe.cancel()
    try:
        for _ in batches:
            pass
    except SqeError:
        pass
    while result.progress().tasks_active and time.perf_counter() - started < 60:
        time.sleep(0.01)
    return time.perf_counter() - started


class MemoryWatch:
    """Looks at the memory of this process and everything below it until it is left."""

    def __init__(self) -> None:
        self.peak_mb = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> MemoryWatch:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(0.05):
            self.peak_mb = max(self.peak_mb, tree_memory_mb(os.getpid()))


def tree_memory_mb(root: int) -> float:
    """Return the resident memory of a process and all its descendants, in MB, from /proc."""
    parents: dict[int, int] = {}
    resident: dict[int, int] = {}
    page = os.sysconf("SC_PAGE_SIZE")
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text().rpartition(")")[2].split()
                resident[int(entry.name)] = int((entry / "statm").read_text().split()[1]) * page
            except (OSError, IndexError):
                continue  # it ended while we looked
            parents[int(entry.name)] = int(stat[1])
    total = 0
    for process in resident:
        ancestor = process
        while ancestor not in (0, root):
            ancestor = parents.get(ancestor, 0)
        if ancestor == root:
            total += resident[process]
    return total / 1e6
