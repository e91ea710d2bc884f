"""Latency of short statements, beside plain PySpark in the same JVM."""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from sqe_bench.plain import PlainSpark
from sqe_core.bootstrap import EmbeddedSqe, open_embedded

NAME = "latency"
_ROWS = 100_000
# The pipeline may add this share, or this many milliseconds, whichever is more.
_ALLOWED_SHARE, _ALLOWED_MS = 0.15, 5.0
_METADATA_MS = 5.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--rounds", type=int, default=200, help="measured rounds (200)")
    parser.add_argument("--warmup", type=int, default=60, help="rounds that are not counted (60)")


def run(arguments: argparse.Namespace) -> Mapping[str, Any]:
    """Measure and print."""
    with tempfile.TemporaryDirectory(prefix="sqe-bench-") as folder:
        sqe = open_embedded(Path(folder))
        try:
            return _measure(sqe, Path(folder), arguments.warmup, arguments.rounds)
        finally:
            sqe.close()


def _measure(sqe: EmbeddedSqe, folder: Path, warmup: int, rounds: int) -> Mapping[str, Any]:
    sqe.execute(f"CREATE TABLE points AS SELECT id, concat('name ', id) AS name FROM range({_ROWS}) AS r(id)").close()
    plain = PlainSpark(sqe, folder)
    point = f"SELECT name FROM points WHERE id = {_ROWS // 2}"
    pairs: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
        "SELECT 1": (lambda: sqe.execute("SELECT 1").read_all(), lambda: plain.read_all("SELECT 1")),
        "point query": (
            lambda: sqe.execute(point).read_all(),
            lambda: plain.read_all(point.replace("points", "iceberg.default.points")),
        ),
    }
    results: dict[str, Any] = {}
    passed = True
    print(f"{'statement':<14}{'':>10}{'median ms':>12}{'p95 ms':>10}{'added ms':>10}{'added':>8}")
    for name, (ours, theirs) in pairs.items():
        for _ in range(warmup):
            ours(), theirs()
        own, other = _in_turn(ours, theirs, rounds)
        added = statistics.median(own) - statistics.median(other)
        share = added / statistics.median(other)
        good = added <= max(_ALLOWED_MS, _ALLOWED_SHARE * statistics.median(other))
        passed &= good
        results[name] = {"sqe": _summary(own), "pyspark": _summary(other), "added_ms": added, "added_share": share}
        print(f"{name:<14}{'pyspark':>10}{statistics.median(other):>12.2f}{_p95(other):>10.2f}")
        print(f"{'':<14}{'sqe':>10}{statistics.median(own):>12.2f}{_p95(own):>10.2f}{added:>10.2f}{share:>8.0%}")
    jobs_before = plain.jobs()
    for statement in ("SHOW TABLES", "DESCRIBE points"):
        for _ in range(warmup):
            _answer(sqe, statement)
        times = [_timed(partial(_answer, sqe, statement)) for _ in range(rounds)]
        passed &= statistics.median(times) < _METADATA_MS
        results[statement] = {"sqe": _summary(times)}
        print(f"{statement:<14}{'sqe':>6}{statistics.median(times):>12.2f}{_p95(times):>10.2f}")
    jobs = plain.jobs() - jobs_before
    print(f"Spark jobs started by metadata statements: {jobs}")
    passed &= jobs == 0
    return {"passed": passed, "rounds": rounds, "metadata_jobs": jobs, "statements": results}


def _answer(sqe: EmbeddedSqe, sql: str) -> None:
    sqe.execute(sql).read_all()


def _in_turn(
    ours: Callable[[], Any], theirs: Callable[[], Any], rounds: int
) -> tuple[Sequence[float], Sequence[float]]:
    own: list[float] = []
    other: list[float] = []
    for place in range(rounds):
        # Who goes first changes, so that neither always finds the other's caches warm.
        order = ((ours, own), (theirs, other)) if place % 2 else ((theirs, other), (ours, own))
        for call, times in order:
            times.append(_timed(call))
    return own, other


def _timed(call: Callable[[], Any]) -> float:
    started = time.perf_counter()
    call()
    return (time.perf_counter() - started) * 1000


def _p95(times: Sequence[float]) -> float:
    return statistics.quantiles(times, n=20)[-1]


def _summary(times: Sequence[float]) -> Mapping[str, float]:
    return {"median_ms": statistics.median(times), "p95_ms": _p95(times), "min_ms": min(times)}
