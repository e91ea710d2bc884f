"""A Flight server on a fake core as a process of its own: prints its port, and serves until its input ends.

Forks of a process that serves gRPC are in danger, so that tests with pseudo-terminals need it elsewhere.
"""

from __future__ import annotations

import sys

import pyarrow as pa

from sqe_core.protocols.flight.server import FlightConfig, FlightServer
from sqe_core.spi.catalog import ObjectType
from sqe_core.spi.errors import ErrorCode, ObjectNotFoundError, Position, UserError
from sqe_core.spi.names import ObjectName
from sqe_core.spi.protocol import ProtocolContext, QueryProgress, StatementState, TableListing
from sqe_core.testing import FakeAnswer, FakeGateway


def answers(gateway: FakeGateway) -> dict[str, pa.Table | FakeAnswer | Exception | None]:
    batch = pa.record_batch({"n": pa.array(range(100_000), pa.int64())})
    running = QueryProgress(state=StatementState.RUNNING, tasks=10, tasks_done=4, tasks_active=2, rows=1234)
    return {
        "SELECT 1 AS one": pa.table({"one": pa.array([1], pa.int32())}),
        "SELECT 2": pa.table({"n": [2]}),
        "SELECT nothing": pa.table({"n": pa.array([None], pa.int64()), "text": [""]}),
        "SELECT endless": FakeAnswer(
            table=pa.Table.from_batches([batch]), batches=lambda: (batch for _ in range(1_000_000))
        ),
        "SELECT slow": FakeAnswer(table=pa.table({"n": [1]}), waits=True, progress=running),
        "INSERT INTO t VALUES (1), (2), (3)": FakeAnswer(kind="insert", affected_rows=3),
        "INSERT slow": FakeAnswer(kind="insert", waits=True),
        "CREATE TABLE t (n bigint)": FakeAnswer(kind="create_table"),
        "SET SESSION x = 1": FakeAnswer(kind="session"),
        "USE sales": FakeAnswer(kind="use", on_run=lambda session: session.use(None, ("sales",))),
        'USE "iceberg"."sales"': FakeAnswer(kind="use", on_run=lambda session: session.use(None, ("sales",))),
        "EXPIRE": FakeAnswer(kind="utility", on_run=lambda session: gateway.sessions.clear()),
        "SHOW TABLES": pa.table({"table": ["orders"]}),
        'DESCRIBE "orders"': pa.table({"column_name": ["id"], "data_type": ["bigint"], "is_nullable": ["YES"]}),
        "MISSING orderz": ObjectNotFoundError(
            "Table 'orderz' does not exist", hint='did you mean "orders"?', position=Position(1, 9)
        ),
        "NONSENSE": UserError("mismatched input NONSENSE", code=ErrorCode.SYNTAX_ERROR, position=Position(1, 1)),
    }


def main() -> None:
    gateway = FakeGateway(anonymous=True)
    gateway.answers = answers(gateway)
    orders = ObjectName(catalog="iceberg", namespace=("default",), name="orders")
    columns = pa.schema([("order_id", pa.int64()), ("customer", pa.string())])
    gateway.tables = [TableListing(name=orders, type=ObjectType.TABLE, columns=columns)]
    server = FlightServer(FlightConfig(), ProtocolContext(port=0))
    print(server.start(gateway).port, flush=True)
    sys.stdin.read()
    server.stop(0)


if __name__ == "__main__":
    main()
