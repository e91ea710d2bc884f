"""Flight SQL: what the wire adds to the pipeline, how much goes through it, and how many connections it holds.

Each number stands beside its yardstick of the same run: the pipeline in the same process for latency, the engine's own
stream and a bare pyarrow.flight server that sends prepared batches from memory for throughput.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from sqe_bench.stream import MemoryWatch, tree_memory_mb, wide_query
from sqe_core.bootstrap import EmbeddedSqe, open_embedded, serve
from sqe_core.config.loading import load
from sqe_core.engine.spark.engine import EngineOptions, SparkEngine
from sqe_core.spi.protocol import Endpoint

NAME = "flight"
_LEAST_SHARE = 0.6
_MOST_FIRST_BATCH_SECS = 0.3
_MOST_ADDED_MS = 3.0
_MOST_METADATA_MS = 10.0
_MAX_GROWTH_MB = 200
_PREPARED_BATCHES = 64
_STREAM_ROUNDS = 3
_LINE_BYTES = 75
# Java compiles what it runs often: a statement is warm when thousands have gone before.
_WARM_ROUNDS = 1000
_SMALL = "SELECT 1 AS one"

_CONFIG = """\
[coordinator]
bind_address = "127.0.0.1"
flight_sql_port = {port}
trino_http_port = 0
[metrics]
prometheus_port = 0
[query]
max_result_rows = 100000000
max_concurrent_per_user = 100
max_queued_queries = 100
[session]
max_sessions_per_user = 10000
[catalogs.iceberg]
type = "sqlite"
directory = "{folder}"
file = "sqe.db"
[policy]
engine = "passthrough"
i_understand_no_enforcement = true
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--megabytes", type=int, default=2048, help="size of the large result (2048)")
    parser.add_argument("--rounds", type=int, default=200, help="rounds of the small statement (200)")
    parser.add_argument("--tables", type=int, default=1000, help="tables for the metadata calls (1000)")
    parser.add_argument("--connections", type=int, default=1000, help="connections that are held (1000)")


def run(arguments: argparse.Namespace) -> Mapping[str, Any]:
    """Measure and print."""
    with tempfile.TemporaryDirectory(prefix="sqe-bench-") as folder, serving(Path(folder)) as (embedded, endpoint):
        report: dict[str, Any] = {}
        for part in (_latency, _metadata, _throughput, _connections):
            report |= part(embedded, endpoint, arguments, Path(folder))
        report["passed"] = all(report[name] for name in report if name.startswith("passed_"))
        return report


@contextmanager
def serving(folder: Path) -> Iterator[tuple[EmbeddedSqe, Endpoint]]:
    """Serve a warehouse over Flight, and have it in this process too, on the same engine."""
    engine = SparkEngine(EngineOptions(memory_bytes=2 << 30))
    embedded = open_embedded(folder, engine=engine)
    config = folder / "sqe.toml"
    config.write_text(_CONFIG.format(port=_free_port(), folder=folder))
    server = serve(load(config, environ={}), engine=engine)
    try:
        server.start()
        engine.wait_ready(300)
        embedded.execute("SELECT 1").read_all()
        (endpoint,) = (found for found in server.endpoints if found.protocol == "flight")
        yield embedded, endpoint
    finally:
        embedded.close()
        server.stop(0)


def _latency(
    embedded: EmbeddedSqe, endpoint: Endpoint, arguments: argparse.Namespace, folder: Path
) -> Mapping[str, Any]:
    # In a process of its own, as clients are: in this one, client and server would wait for the same interpreter lock.
    client = _start("ask", str(endpoint.port), _SMALL, stdin=subprocess.PIPE)
    assert client.stdin is not None
    assert client.stdout is not None
    wire, pipeline = [], []
    for number in range(arguments.rounds + _WARM_ROUNDS):
        client.stdin.write("\n")
        client.stdin.flush()
        over_the_wire = float(client.stdout.readline())
        started = time.perf_counter()
        embedded.execute(_SMALL).read_all()
        if number >= _WARM_ROUNDS:
            wire.append(over_the_wire)
            pipeline.append((time.perf_counter() - started) * 1000)
    client.communicate(timeout=60)
    return _told_latency(statistics.median(wire), statistics.median(pipeline))


def _told_latency(wire: float, pipeline: float) -> Mapping[str, Any]:
    added = wire - pipeline
    print(f"SELECT 1: {wire:.1f} ms through ADBC, {pipeline:.1f} ms in the pipeline, {added:+.1f} ms")
    return {"adbc_ms": wire, "pipeline_ms": pipeline, "passed_latency": added <= _MOST_ADDED_MS}


def _metadata(
    embedded: EmbeddedSqe, endpoint: Endpoint, arguments: argparse.Namespace, folder: Path
) -> Mapping[str, Any]:
    import pyarrow.flight as flight

    from sqe_core.protocols.flight.wire import flight_sql_pb2 as sql

    embedded.execute("CREATE SCHEMA many").close()
    for number in range(arguments.tables):
        embedded.execute(f"CREATE TABLE many.t{number} (id bigint)").close()
    with flight.connect(f"grpc://{endpoint.host}:{endpoint.port}") as client:

        def ask(command: Any) -> Callable[[], None]:
            descriptor = flight.FlightDescriptor.for_command(_packed(command))

            def call() -> None:
                info = client.get_flight_info(descriptor)
                client.do_get(info.endpoints[0].ticket).read_all()

            return call

        commands = {
            "catalogs": sql.CommandGetCatalogs(),
            "schemas": sql.CommandGetDbSchemas(),
            "tables": sql.CommandGetTables(),
            "one_table": sql.CommandGetTables(table_name_filter_pattern="t1", include_schema=True),
        }
        rounds = max(arguments.rounds // 4, 10)
        found = dict(zip(commands, _medians(rounds, *map(ask, commands.values())), strict=True))
    told = ", ".join(f"{name.replace('_', ' ')} {took:.1f} ms" for name, took in found.items())
    print(f"metadata with {arguments.tables} tables: {told}")
    return {
        **{f"{name}_ms": took for name, took in found.items()},
        "passed_metadata": all(took <= _MOST_METADATA_MS for took in found.values()),
    }


def _throughput(
    embedded: EmbeddedSqe, endpoint: Endpoint, arguments: argparse.Namespace, folder: Path
) -> Mapping[str, Any]:
    embedded.execute(f"CREATE TABLE scanned AS {_lines(arguments.megabytes)}").close()
    prepared: list[pa.RecordBatch] = []
    for batch in embedded.execute("SELECT * FROM scanned"):  # warm, and something for the yardstick to send
        if len(prepared) < _PREPARED_BATCHES:
            prepared.append(batch)
    scan = _shares(embedded, endpoint, "SELECT * FROM scanned")
    # Rows of a kilobyte that cost next to nothing to make: the most that the wire can be asked for.
    text = _shares(embedded, endpoint, wide_query(arguments.megabytes))
    bare = _bare_server(prepared, folder, scan["bytes"])
    for name, found in (("table", scan), ("text", text)):
        print(
            f"{found['bytes'] / 1e6:.0f} MB of a {name}: the engine's stream {found['engine_mb_per_sec']:.0f} MB/s,"
            f" over Flight {found['flight_mb_per_sec']:.0f} MB/s, a share of {found['share']:.0%}"
        )
    growth = max(scan["memory_growth_mb"], text["memory_growth_mb"])
    print(f"  a bare pyarrow.flight server, the table's batches from memory: {bare['mb_per_sec']:.0f} MB/s")
    print(f"  first batch after {scan['first_secs']:.2f} s, memory of the server {growth:+.0f} MB at the peak")
    return {
        "scan": scan,
        "text": text,
        "bare_mb_per_sec": bare["mb_per_sec"],
        "passed_throughput": scan["share"] >= _LEAST_SHARE,
        "passed_first_batch": scan["first_secs"] < _MOST_FIRST_BATCH_SECS,
        "passed_memory": growth < _MAX_GROWTH_MB,
    }


def _lines(megabytes: int) -> str:
    """Return a query of rows like those of most big tables: keys, numbers, a date, and two short texts."""
    rows = megabytes * 1024 * 1024 // _LINE_BYTES
    return (
        "SELECT id, id * 7919 % 200000 AS part, CAST(id % 100000 AS decimal(12, 2)) AS price, CAST(id AS double) / 7 AS"
        " discount, date_add('day', CAST(id % 2500 AS integer), DATE '2020-01-01') AS shipped,"
        f" CAST(id * 31 AS varchar) AS code, concat('remark ', CAST(id % 1000 AS varchar)) AS remark"
        f" FROM range({rows}) AS r(id)"
    )


def _shares(embedded: EmbeddedSqe, endpoint: Endpoint, query: str) -> dict[str, Any]:
    """Read a result from the engine and over Flight, in turns; return the medians."""
    _client(endpoint.port, query)
    engine, wire, size = [], [], 0
    growth = 0.0
    for _ in range(_STREAM_ROUNDS):
        started, size = time.perf_counter(), 0
        for batch in embedded.execute(query):
            size += batch.nbytes
        engine.append(size / 1e6 / (time.perf_counter() - started))
        before = tree_memory_mb(os.getpid())  # of an engine that has just made the same rows
        with MemoryWatch() as memory:
            wire.append(_client(endpoint.port, query))
        # The last counts: Java fills the heap that it was given once, whatever runs.
        growth = memory.peak_mb - before - wire[-1]["client_mb"]
    rates = [read["mb_per_sec"] for read in wire]
    return {
        "bytes": size,
        "engine_mb_per_sec": statistics.median(engine),
        "flight_mb_per_sec": statistics.median(rates),
        "share": statistics.median(over / alone for over, alone in zip(rates, engine, strict=True)),
        "first_secs": statistics.median(read["first_secs"] for read in wire),
        "memory_growth_mb": growth,
    }


def _connections(
    embedded: EmbeddedSqe, endpoint: Endpoint, arguments: argparse.Namespace, folder: Path
) -> Mapping[str, Any]:
    before = held()
    clients = [
        _start("hold", str(endpoint.port), str(arguments.connections // 4), stdin=subprocess.PIPE) for _ in range(4)
    ]
    for client in clients:
        assert client.stdout is not None
        client.stdout.readline()
    during = held()
    answered = _client(endpoint.port, _SMALL)
    for client in clients:
        client.communicate("\n", timeout=60)
    deadline = time.monotonic() + 30
    while (after := held())["descriptors"] > before["descriptors"] + 20 and time.monotonic() < deadline:
        time.sleep(0.5)
    opened = during["descriptors"] - before["descriptors"]
    print(
        f"{opened} connections: {during['threads'] - before['threads']:+d} threads, "
        f"{during['mb'] - before['mb']:+.0f} MB; SELECT 1 beside them {answered['secs'] * 1000:.0f} ms; "
        f"afterwards {after['descriptors'] - before['descriptors']:+d} descriptors"
    )
    all_held = opened >= arguments.connections - 10
    gone = after["descriptors"] <= before["descriptors"] + 20
    return {"connections": opened, "passed_connections": all_held and gone}


def held() -> Mapping[str, Any]:
    """What this process holds."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return {
        "descriptors": len(list(Path("/proc/self/fd").iterdir())),
        "threads": int(status["Threads"]),
        "mb": int(status["VmRSS"].split()[0]) / 1024,
    }


def _medians(rounds: int, *calls: Callable[[], None]) -> Sequence[float]:
    """Return the median milliseconds of each call; they take turns, so that a busy machine is busy for all."""
    taken: list[list[float]] = [[] for _ in calls]
    for number in range(rounds + 10):
        for call, times in zip(calls, taken, strict=True):
            started = time.perf_counter()
            call()
            if number >= 10:
                times.append((time.perf_counter() - started) * 1000)
    return [statistics.median(times) for times in taken]


def _bare_server(batches: list[pa.RecordBatch], folder: Path, size: int) -> Mapping[str, Any]:
    file = folder / "prepared.arrow"
    with pa.ipc.new_file(file, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    repeats = max(1, size // sum(batch.nbytes for batch in batches))
    server = _start("serve", str(file), str(repeats))
    try:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        _client(port, "")
        return _client(port, "")
    finally:
        server.kill()
        server.wait()


def _client(port: int, sql: str) -> Mapping[str, Any]:
    """Read a result in a process of its own, as clients do."""
    client = _start("read", str(port), sql)
    out, _ = client.communicate(timeout=600)
    answer: Mapping[str, Any] = json.loads(out)
    return answer


def _start(*arguments: str, stdin: int | None = subprocess.DEVNULL) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "sqe_bench.flight_client", *arguments], stdin=stdin, stdout=subprocess.PIPE, text=True
    )


def _packed(command: Any) -> bytes:
    from google.protobuf.any_pb2 import Any as AnyMessage

    packed = AnyMessage()
    packed.Pack(command)
    return packed.SerializeToString()


def _free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
