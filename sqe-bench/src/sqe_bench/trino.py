"""Trino's protocol, through Trino's own Python client, beside a real Trino on the same files where one is named.

Each statement is sent to both in turn, from a process of its own, as clients do; the numbers are medians of one run. A
REST catalog that both mount has the tables; SQE makes them at the first run.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa

NAME = "trino"
_ROW_BYTES = 75
_LEAST_JSON_GAIN = 5.0
_LEAST_RESULT_GAIN = 2.0
_SLOWER = 1.0
_PLAIN, _SPOOLED = "", "json+zstd"  # who names an encoding gets segments
_SCHEMA_ROWS = 200_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--sqe", default="http://127.0.0.1:8080", help="SQE's Trino port")
    parser.add_argument("--beside", help="a real Trino, whose catalog of the same name has the same files")
    parser.add_argument("--catalog", default="lake", help="the catalog of both (lake)")
    parser.add_argument("--schema", default="bench", help="the schema of the tables, made where it is missing (bench)")
    parser.add_argument("--user", default="bench", help="the user's name (bench)")
    parser.add_argument("--megabytes", type=int, default=256, help="size of the large result (256)")
    parser.add_argument("--rounds", type=int, default=100, help="rounds of each small statement (100)")
    parser.add_argument("--tables", type=int, default=1000, help="tables that are listed (1000)")
    parser.add_argument("--clients", type=int, default=64, help="clients at once (64)")


def run(arguments: argparse.Namespace) -> Mapping[str, Any]:
    """Measure and print."""
    report: dict[str, Any] = _json()
    servers = [arguments.sqe, *([arguments.beside] if arguments.beside else [])]
    _prepare(arguments)
    for name, sql in _small(arguments).items():
        report |= _told(name, _in_turn(servers, arguments, sql), most=_SLOWER)
    for name, encoding in (("plain", _PLAIN), ("spooled", _SPOOLED)):
        found = [_large(server, arguments, encoding) for server in servers]
        for server, each in zip(servers, found, strict=True):
            print(
                f"  {server}: {each['mb_per_sec']:.0f} MB/s, first rows after {each['first_secs']:.2f} s,"
                f" the client itself was busy for {each['client_secs']:.1f} of {each['secs']:.1f} s"
            )
        report |= _told(name, [each["secs"] * 1000 for each in found], most=1 / _LEAST_RESULT_GAIN)
    report |= _told("clients", [_crowd(server, arguments) for server in servers], most=_SLOWER)
    report["passed"] = all(report[name] for name in report if name.startswith("passed_"))
    return report


def _told(name: str, millis: Sequence[float], *, most: float) -> dict[str, Any]:
    """Print what a statement took, and whether that is little enough beside Trino."""
    ratio = millis[0] / millis[1] if len(millis) > 1 else None
    beside = f", beside it {millis[1]:.1f} ms: {ratio:.2f} of that" if ratio is not None else ""
    print(f"{name}: {millis[0]:.1f} ms{beside}")
    report: dict[str, Any] = {f"{name}_ms": millis[0]}
    if ratio is not None:
        report |= {f"{name}_beside_ms": millis[1], f"passed_{name}": ratio <= most}
    return report


# --- rows as JSON, without a server


def _json() -> dict[str, Any]:
    from sqe_core.spi import column_type
    from sqe_protocol_trino.json_rows import json_chunks

    batch = _batch()
    types = [column_type(text, column.type) for text, column in zip(_TYPES, batch.columns, strict=True)]

    def by_columns() -> int:
        return sum(len(text) for _, text in json_chunks(batch, types))

    def by_rows() -> int:
        columns = [column.to_pylist() for column in batch.columns]
        rows = [
            [value if value is None or isinstance(value, int | float | str) else str(value) for value in row]
            for row in zip(*columns, strict=True)
        ]
        return len(json.dumps(rows).encode())

    size, ours, theirs = by_columns(), _best(by_columns), _best(by_rows)
    print(
        f"rows as JSON: by columns {size / ours / 1e6:.0f} MB/s, row by row {size / theirs / 1e6:.0f} MB/s:"
        f" {theirs / ours:.1f} times"
    )
    return {
        "json_mb_per_sec": size / ours / 1e6,
        "json_gain": theirs / ours,
        "passed_json": theirs / ours >= _LEAST_JSON_GAIN,
    }


_TYPES = ("bigint", "double", "varchar", "timestamp(6)", "decimal(15,2)", "date", "varchar")


def _batch() -> pa.RecordBatch:
    import pyarrow.compute as pc

    number = pa.array(range(_SCHEMA_ROWS), pa.int64())
    text = pc.binary_join_element_wise("customer ", number.cast(pa.string()), "")
    noted = pc.if_else(pc.equal(pc.bit_wise_and(number, 7), 0), None, pc.binary_join_element_wise('a "', text, '"', ""))
    columns = [
        number,
        pc.divide(number.cast(pa.float64()), 7.0),
        text,
        pc.multiply(number, 1_000_001).cast(pa.timestamp("us")),
        number.cast(pa.decimal128(21, 2)).cast(pa.decimal128(15, 2)),
        pc.bit_wise_and(number, 8191).cast(pa.int32()).cast(pa.date32()),
        noted,
    ]
    return pa.RecordBatch.from_arrays(columns, names=list("abcdefg"))


def _best(work: Any) -> float:
    """Return the seconds of the best of some rounds, on the processor: others use this machine."""
    took = []
    for _ in range(3):
        began = time.process_time()
        work()
        took.append(time.process_time() - began)
    return min(took)


# --- statements


def _small(arguments: argparse.Namespace) -> Mapping[str, str]:
    schema = f"{arguments.catalog}.{arguments.schema}"
    return {
        "select_1": "SELECT 1",
        "show_tables": f"SHOW TABLES FROM {schema}",
        "columns": (
            f"SELECT column_name, data_type FROM {arguments.catalog}.information_schema.columns"
            f" WHERE table_schema = '{arguments.schema}' AND table_name = 'wide'"
        ),
        "point_query": f"SELECT * FROM {schema}.wide WHERE id = 4711",
    }


def _prepare(arguments: argparse.Namespace) -> None:
    """Make what is missing, through SQE."""
    schema = f"{arguments.catalog}.{arguments.schema}"
    rows = arguments.megabytes * 1024 * 1024 // _ROW_BYTES
    with _Client(arguments.sqe, arguments) as client:
        client.ask(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        client.ask(
            f"CREATE TABLE IF NOT EXISTS {schema}.wide AS SELECT id, md5(to_utf8(cast(id AS varchar))) AS key,"
            " id * 0.25e0 AS amount, cast(id AS decimal(15,2)) AS price,"
            " date_add('second', id, TIMESTAMP '2020-01-01 00:00:00.000000') AS at"
            f" FROM TABLE(sequence(0, {rows - 1})) AS r(id)"
        )
        known = {row[0] for row in client.rows(f"SHOW TABLES FROM {schema}")}
        for number in range(arguments.tables):
            if f"t{number}" not in known:
                client.ask(f"CREATE TABLE {schema}.t{number} (id bigint, name varchar)")


def _in_turn(servers: Sequence[str], arguments: argparse.Namespace, sql: str) -> list[float]:
    clients = [_Client(server, arguments) for server in servers]
    took: list[list[float]] = [[] for _ in servers]
    warm = max(5, arguments.rounds // 2)
    for number in range(arguments.rounds + warm):
        for client, each in zip(clients, took, strict=True):
            millis = client.ask(sql)
            if number >= warm:
                each.append(millis)
    for client in clients:
        client.close()
    return [statistics.median(each) for each in took]


def _large(server: str, arguments: argparse.Namespace, encoding: str) -> Mapping[str, Any]:
    with _Client(server, arguments, encoding) as client:
        sql = f"SELECT * FROM {arguments.catalog}.{arguments.schema}.wide"
        client.ask(f"{sql} LIMIT 100000")
        found = client.large(sql)
    size = found["rows"] * _ROW_BYTES
    return {**found, "mb_per_sec": size / found["secs"] / 1e6}


def _crowd(server: str, arguments: argparse.Namespace) -> float:
    """Return the milliseconds that a statement of many clients takes, all of them counted."""
    sql = _small(arguments)["point_query"]
    clients = [_Client(server, arguments) for _ in range(arguments.clients)]
    for client in clients:
        client.ask(sql)
    began = time.perf_counter()
    rounds = max(3, arguments.rounds // 20)
    for client in clients:
        client.begin(sql, rounds)
    for client in clients:
        client.end()
    millis: float = (time.perf_counter() - began) * 1000 / (rounds * len(clients))
    for client in clients:
        client.close()
    return millis


class _Client:
    """A process with Trino's Python client: in this one, all of them would share an interpreter."""

    def __init__(self, server: str, arguments: argparse.Namespace, encoding: str = "") -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "sqe_bench.trino", server, arguments.user, arguments.catalog, encoding],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, sql: str) -> float:
        """Run a statement; return its milliseconds."""
        millis: float = self._command("ask", sql)
        return millis

    def rows(self, sql: str) -> list[list[Any]]:
        """Run a statement; return its rows."""
        found: list[list[Any]] = self._command("rows", sql)
        return found

    def large(self, sql: str) -> dict[str, Any]:
        """Run a statement and count its rows."""
        found: dict[str, Any] = self._command("large", sql)
        return found

    def begin(self, sql: str, rounds: int) -> None:
        """Run a statement several times."""
        self._send("many", sql, rounds)

    def end(self) -> None:
        """Wait for that."""
        self._read()

    def _command(self, *words: Any) -> Any:
        self._send(*words)
        return self._read()

    def _send(self, *words: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(words) + "\n")
        self._process.stdin.flush()

    def _read(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("a client of the benchmark failed")
        return json.loads(line)

    def close(self) -> None:
        """End the process."""
        self._process.communicate(timeout=60)

    def __enter__(self) -> _Client:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _serve_client(server: str, user: str, catalog: str, encoding: str) -> None:
    """Be that process: statements come in, numbers go out."""
    import trino

    parts = urlsplit(server)
    connect: Any = trino.dbapi.connect
    connection = connect(
        host=parts.hostname, port=parts.port, user=user, catalog=catalog, encoding=[encoding] if encoding else None
    )
    for line in sys.stdin:
        kind, sql, *more = json.loads(line)
        cursor = connection.cursor()
        began = time.perf_counter()
        if kind == "many":
            for _ in range(more[0]):
                connection.cursor().execute(sql).fetchall()
            answer: Any = None
        elif kind == "rows":
            answer = cursor.execute(sql).fetchall()
        elif kind == "large":
            answer = _counted(_batches(cursor.execute(sql)), began)
        else:
            cursor.execute(sql).fetchall()
            answer = (time.perf_counter() - began) * 1000
        print(json.dumps(answer), flush=True)


def _batches(cursor: Any) -> Iterator[int]:
    while rows := cursor.fetchmany(10_000):
        yield len(rows)


def _counted(batches: Iterator[int], began: float) -> Mapping[str, Any]:
    rows, first, busy = 0, 0.0, time.process_time()
    for count in batches:
        first = first or time.perf_counter() - began
        rows += count
    return {
        "rows": rows,
        "first_secs": first,
        "secs": time.perf_counter() - began,
        "client_secs": time.process_time() - busy,
    }


if __name__ == "__main__":
    _serve_client(*sys.argv[1:5])
