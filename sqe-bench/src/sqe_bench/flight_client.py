"""The other side of `sqe-bench flight`: processes that read, that hold connections, and the bare server."""

from __future__ import annotations

import contextlib
import itertools
import json
import random
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.flight as flight

_MOST_TURNS = 20  # of an ingest that others overtake


def main(arguments: list[str]) -> None:
    """Do one thing and end."""
    match arguments:
        case ["read", port, sql]:
            read(int(port), sql)
        case ["ask", port, sql]:
            ask(int(port), sql)
        case ["work", port, folder, number, rows]:
            work(int(port), Path(folder), int(number), int(rows))
        case ["hold", port, count]:
            hold(int(port), int(count))
        case ["serve", file, repeats]:
            serve(Path(file), int(repeats))
        case _:
            raise SystemExit("this is a part of `sqe-bench flight` and `sqe-bench soak`")


def read(port: int, sql: str) -> None:
    """Read a result and print how long it took; without SQL the bare server is asked."""
    with flight.connect(f"grpc://127.0.0.1:{port}") as client:
        started = time.perf_counter()
        ticket = flight.Ticket(b"") if not sql else client.get_flight_info(_statement(sql)).endpoints[0].ticket
        first, size = None, 0
        for chunk in client.do_get(ticket):
            if first is None:
                first = time.perf_counter() - started
            size += chunk.data.nbytes
        took = time.perf_counter() - started
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    print(
        json.dumps(
            {
                "mb_per_sec": size / 1e6 / took,
                "first_secs": first,
                "secs": took,
                "client_mb": int(status["VmHWM"].split()[0]) / 1024,
            }
        )
    )


def ask(port: int, sql: str) -> None:
    """Run a statement through ADBC for each line that comes, and print its milliseconds."""
    import adbc_driver_flightsql
    import adbc_driver_manager

    with (
        adbc_driver_flightsql.connect(f"grpc://127.0.0.1:{port}") as database,
        adbc_driver_manager.AdbcConnection(database) as connection,
        adbc_driver_manager.AdbcStatement(connection) as statement,
    ):
        for _ in sys.stdin:
            started = time.perf_counter()
            statement.set_sql_query(sql)
            stream, _ = statement.execute_query()
            pa.RecordBatchReader._import_from_c(stream.address).read_all()
            print((time.perf_counter() - started) * 1000, flush=True)


def work(port: int, folder: Path, number: int, rows: int) -> None:
    """Do this and that until somebody ends it; print every error, and note each batch that the server acknowledged."""
    import adbc_driver_flightsql.dbapi as dbapi

    warnings.simplefilter("ignore")
    chance = random.Random(number)  # noqa: S311 - no secret
    with dbapi.connect(f"grpc://127.0.0.1:{port}", autocommit=True) as connection, connection.cursor() as cursor:
        for turn in itertools.count():
            try:
                match chance.choice(["small", "scan", "leave", "ingest", "metadata", "wrong"]):
                    case "small":
                        cursor.execute("SELECT 1 AS one")
                        cursor.fetchall()
                    case "scan":
                        cursor.execute("SELECT count(*) AS n, max(text) AS last FROM big WHERE id % 7 = 3")
                        cursor.fetchall()
                    case "leave":  # in the middle of a result
                        cursor.execute("SELECT * FROM big")
                        cursor.fetchone()
                    case "ingest":
                        batch = f"{number}-{turn}"
                        table = pa.table({"batch": [batch] * rows, "n": pa.array(range(rows), pa.int64())})
                        _ingest(cursor, table)
                        (folder / batch).touch()
                    case "metadata":
                        connection.adbc_get_objects(depth="tables").read_all()
                    case "wrong":
                        with contextlib.suppress(dbapi.ProgrammingError):
                            cursor.execute("SELECT nope FROM big")
            except dbapi.Error as error:
                print(f"{type(error).__name__}: {str(error)[:300]}".replace("\n", " "), flush=True)


def _ingest(cursor: Any, table: pa.Table) -> None:
    """Send rows, and again when somebody else's came first too often, as the server says to."""
    import adbc_driver_flightsql.dbapi as dbapi

    for turn in range(_MOST_TURNS):
        try:
            cursor.adbc_ingest("loaded", table, mode="append")
        except dbapi.Error as error:
            if "changed the table first" not in str(error) or turn == _MOST_TURNS - 1:
                raise
            time.sleep(0.1 * turn)
        else:
            return


def hold(port: int, count: int) -> None:
    """Open connections, say so, and hold them until a line comes."""
    clients = []
    for _ in range(count):
        # A pool of its own for each: gRPC would share one connection otherwise.
        client = flight.connect(f"grpc://127.0.0.1:{port}", generic_options=[("grpc.use_local_subchannel_pool", 1)])
        list(client.list_actions())
        clients.append(client)
    print(len(clients), flush=True)
    sys.stdin.readline()
    for client in clients:
        client.close()


class _Prepared(flight.FlightServerBase):  # type: ignore[misc]
    """Sends batches that lie in memory."""

    def __init__(self, batches: list[pa.RecordBatch], repeats: int) -> None:
        super().__init__("grpc://127.0.0.1:0")
        self._batches, self._repeats = batches, repeats

    def do_get(self, context: Any, ticket: Any) -> Any:
        def batches() -> Iterator[pa.RecordBatch]:
            for _ in range(self._repeats):
                yield from self._batches

        return flight.GeneratorStream(self._batches[0].schema, batches())


def serve(file: Path, repeats: int) -> None:
    """Serve the batches of a file, again and again."""
    with pa.ipc.open_file(file) as reader:
        server = _Prepared([reader.get_batch(number) for number in range(reader.num_record_batches)], repeats)
    print(server.port, flush=True)
    server.serve()


def _statement(sql: str) -> flight.FlightDescriptor:
    from google.protobuf.any_pb2 import Any as AnyMessage

    from sqe_core.protocols.flight.wire import flight_sql_pb2

    packed = AnyMessage()
    packed.Pack(flight_sql_pb2.CommandStatementQuery(query=sql))
    return flight.FlightDescriptor.for_command(packed.SerializeToString())


if __name__ == "__main__":
    main(sys.argv[1:])
