"""`sqe-server` as an operator sees it: a real process with a real engine, its ports, its log, its end."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import adbc_driver_flightsql.dbapi as flight_sql
import psutil
import pytest
from testbed.clocks import wait_for
from testbed.processes import free_ports
from testbed.sqe_server import NO_POLICY, SqeServer

# A wire protocol of a line: a statement in, its rows out as JSON. It stands in the place of one that is not installed.
LINE_PROTOCOL = """
import json, socket, socketserver, threading
from sqe_core.spi import (
    ClientInfo, Endpoint, NoConfig, NoCredential, ProtocolFactory, ProtocolServer, SqeError, SqePlugin,
    StatementRequest, hookimpl,
)

class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            try:
                session = self.server.gateway.authenticate(
                    NoCredential(), ClientInfo(protocol="quack", address=self.client_address[0])
                )
                with session.execute(StatementRequest(sql=line.decode().strip())) as result:
                    rows = [row for batch in result for row in batch.to_pylist()]
                answer = {"rows": rows}
            except SqeError as error:
                answer = {"error": error.code.name, "message": error.message}
            self.wfile.write(json.dumps(answer).encode() + b"\\n")

class Tcp(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False

class LineServer(ProtocolServer):
    def __init__(self, context):
        self.context, self.tcp = context, None

    def start(self, gateway):
        self.tcp = Tcp((self.context.bind_host, self.context.port), Handler)
        self.tcp.gateway = gateway
        threading.Thread(target=self.tcp.serve_forever, args=(0.1,), daemon=True).start()
        return Endpoint(protocol="quack", host=self.context.bind_host, port=self.tcp.server_address[1])

    def stop(self, drain_secs):
        tcp, self.tcp = self.tcp, None
        if tcp is not None:
            tcp.shutdown()
            tcp.server_close()

class LineFactory(ProtocolFactory):
    kind = "quack"
    config_type = NoConfig
    def create(self, name, config, context):
        return LineServer(context)

class Plugin(SqePlugin):
    @hookimpl
    def sqe_provide_protocols(self, context):
        return (LineFactory(),)
"""
ENTRY_POINTS = """
[sqe.plugins]
protocol-line = line_protocol:Plugin
[sqe.plugins.kinds]
protocol.quack = line_protocol:Plugin
[sqe.plugins.spi]
1.0 = line_protocol:Plugin
"""


class LineServer(SqeServer):
    """A server with the protocol of a line; nobody waits until it is ready."""

    def __init__(self, folder: Path, more: str = "", **environ: str) -> None:
        site = folder / "site"
        info = site / "sqe_protocol_line-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: sqe-protocol-line\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(ENTRY_POINTS)
        (site / "line_protocol.py").write_text(LINE_PROTOCOL)
        (self.line_port,) = free_ports(1)
        self.clients: list[LineClient] = []
        settings = {"PYTHONPATH": str(site), "SQE_COORDINATOR__QUACK_PORT": str(self.line_port), **environ}
        super().__init__(folder, NO_POLICY + more, **{"SQE_COORDINATOR__FLIGHT_SQL_PORT": "0", **settings})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for client in self.clients:
            client.close()
        super().__exit__()

    def connect(self) -> LineClient:
        self.clients.append(LineClient(self.line_port))
        return self.clients[-1]


class LineClient:
    """A connection of the protocol of a line."""

    def __init__(self, port: int) -> None:
        self._connection = socket.create_connection(("127.0.0.1", port), timeout=100)
        self._lines = self._connection.makefile("r", encoding="utf-8")

    def send(self, sql: str) -> None:
        self._connection.sendall(sql.encode() + b"\n")

    def receive(self) -> dict[str, Any]:
        return json.loads(self._lines.readline())

    def execute(self, sql: str) -> dict[str, Any]:
        self.send(sql)
        return self.receive()

    def close(self) -> None:
        self._lines.close()
        self._connection.close()


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LineServer]:
    """One server for the tests that only look."""
    with LineServer(tmp_path_factory.mktemp("server"), "[query]\nslow_query_threshold_secs = 1\n") as running:
        running.event("ready")
        yield running


def test_health_is_there_before_the_engine(tmp_path: Path) -> None:
    with LineServer(tmp_path) as running:
        listening = running.event("listening")
        assert {each["protocol"]: each["host"] for each in listening["endpoints"]} == {
            "quack": "127.0.0.1",
            "health": "127.0.0.1",
            "metrics": "127.0.0.1",
        }
        assert running.ask("/healthz") == (200, b"ok\n")
        status, body = running.ask("/readyz")
        assert (status, json.loads(body)) == (503, {"status": "unavailable", "failed": ["engine"]})
        assert json.loads(running.ask("/api/v1/status")[1])["state"] == "starting"
        assert running.samples()[("sqe_engine_state", ("ready",))] == 0
        # In the middle of its start it can be ended too.
        began = time.monotonic()
        assert running.end() == 0
        assert time.monotonic() - began < 20
        assert running.log[-1]["event"] == "stopped"


def test_it_gets_ready(ready: LineServer) -> None:
    assert ready.ask("/readyz") == (200, b'{"status": "ready"}\n')
    assert json.loads(ready.ask("/api/v1/status")[1])["state"] == "active"
    samples = ready.samples()
    assert samples[("sqe_engine_state", ("ready",))] == 1
    assert samples[("sqe_server_state", ("active",))] == 1
    assert samples[("sqe_coordinator_memory_limit_bytes", ())] == 1 << 30
    assert samples[("sqe_coordinator_rss_bytes", ())] > 10_000_000
    assert samples[("sqe_engine_rss_bytes", ())] > 50_000_000


def test_methods_and_paths(ready: LineServer) -> None:
    assert ready.ask("/healthz", method="HEAD") == (200, b"")
    assert ready.ask("/healthz", method="POST")[0] == 405
    assert ready.ask("/metrics")[0] == 404
    assert ready.ask("/healthz", port=ready.metrics_port)[0] == 404


def test_garbage_on_the_ports_harms_nobody(ready: LineServer) -> None:
    for port in (ready.health_port, ready.metrics_port):
        for garbage in (
            b"\x00" * 1000 + b"\r\n\r\n",
            b"\x16\x03\x01\r\n\r\n",
            os.urandom(5000) + b"\r\n\r\n",
            b"A" * 90_000,
        ):
            with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
                try:
                    connection.sendall(garbage)
                    connection.recv(1000)
                except OSError:
                    pass
    assert ready.ask("/healthz") == (200, b"ok\n")
    assert not [entry for entry in ready.log if "error" in entry]


def test_statements_are_answered_and_counted(ready: LineServer) -> None:
    client = ready.connect()
    before = ready.samples()
    assert client.execute("SELECT 1 AS one") == {"rows": [{"one": 1}]}
    assert client.execute("SELECT nope")["error"] == "COLUMN_NOT_FOUND"
    after = ready.samples()

    def more(name: str, *labels: str) -> float:
        return after.get((name, labels), 0) - before.get((name, labels), 0)

    assert more("sqe_query_count_total", "", "query", "success") == 1
    assert more("sqe_rows_returned_total") == 1
    assert more("sqe_bytes_returned_total") > 0
    assert more("sqe_protocol_query_count_total", "quack", "success") == 1
    assert more("sqe_protocol_query_count_total", "quack", "failure") == 1
    assert after[("sqe_active_sessions", ())] >= 1
    assert after[("sqe_active_queries", ())] == 0


@pytest.mark.rule("OBS-3")
def test_a_slow_statement_is_logged_without_its_literals(ready: LineServer) -> None:
    client = ready.connect()
    client.execute(
        "SELECT count(*) AS n, 'canary-51fa' AS c FROM range(400000) AS a(x) JOIN range(4000) AS b(y) ON x <> y"
    )
    slow = ready.event("slow_query")
    assert (slow["level"], slow["statement_type"], slow["protocol"]) == ("warning", "query", "quack")
    assert slow["duration_ms"] >= 1000
    assert slow["query_id"]
    assert "canary" not in "".join(ready.raw)


def test_sigterm_lets_statements_finish_and_takes_no_other(tmp_path: Path) -> None:
    """A statement is answered, a result that a client is reading arrives whole; new statements are refused."""
    (flight_port,) = map(str, free_ports(1))
    environ = {"SQE_COORDINATOR__FLIGHT_SQL_PORT": flight_port, "SQE_QUERY__MAX_RESULT_ROWS": "100000000"}
    with LineServer(tmp_path, "[coordinator]\nshutdown_drain_secs = 60\n", **environ) as running:
        running.event("ready")
        engine = running.children()
        assert engine
        busy, late = running.connect(), running.connect()
        assert late.execute("SELECT 1 AS one")["rows"]
        with (
            flight_sql.connect(f"grpc://127.0.0.1:{flight_port}", autocommit=True) as connection,
            connection.cursor() as reading,
        ):
            reading.execute("SELECT x FROM range(10000000) AS a(x)")
            batches = reading.fetch_record_batch()
            read = batches.read_next_batch().num_rows
            busy.send("SELECT count(*) AS n FROM range(300000) AS a(x) JOIN range(3000) AS b(y) ON x <> y")
            wait_for(lambda: running.samples()[("sqe_active_queries", ())] == 2)
            running.process.send_signal(signal.SIGTERM)
            running.event("draining")
            assert late.execute("SELECT 2 AS two")["error"] == "SERVER_SHUTTING_DOWN"
            with connection.cursor() as other, pytest.raises(flight_sql.Error, match=r"(?i)shutting down|unavailable"):
                other.execute("SELECT 1 AS one")
            assert running.ask("/healthz") == (200, b"ok\n")
            status, body = running.ask("/readyz")
            assert (status, json.loads(body)["failed"]) == (503, ["draining"])
            assert json.loads(running.ask("/api/v1/status")[1])["state"] == "draining"
            assert read + sum(batch.num_rows for batch in batches) == 10_000_000
        assert busy.receive() == {"rows": [{"n": 300000 * 3000 - 3000}]}
        assert running.process.wait(80) == 0
        running.settle()
        assert running.log[-1]["event"] == "stopped"
        assert not [process for process in engine if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]


def test_a_statement_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    with LineServer(tmp_path, "[coordinator]\nshutdown_drain_secs = 1\n") as running:
        running.event("ready")
        busy = running.connect()
        busy.send("SELECT count(*) AS n FROM range(40000) AS a(x) JOIN range(9000000000) AS b(y) ON x <> y")
        wait_for(lambda: running.samples()[("sqe_active_queries", ())] == 1)
        began = time.monotonic()
        running.process.send_signal(signal.SIGTERM)
        assert busy.receive()["error"] == "SERVER_SHUTTING_DOWN"
        assert running.process.wait(40) == 0
        assert time.monotonic() - began < 20


def test_a_second_signal_does_not_ask(tmp_path: Path) -> None:
    with LineServer(tmp_path) as running:
        running.event("ready")
        engine = running.children()
        busy = running.connect()
        busy.send("SELECT count(*) AS n FROM range(40000) AS a(x) JOIN range(9000000000) AS b(y) ON x <> y")
        wait_for(lambda: running.samples()[("sqe_active_queries", ())] == 1)
        running.process.send_signal(signal.SIGINT)
        running.event("draining")
        assert running.end(signal.SIGTERM, secs=5) == -signal.SIGTERM
        wait_for(lambda: not [each for each in engine if each.is_running() and each.status() != psutil.STATUS_ZOMBIE])


def test_an_engine_that_cannot_start_ends_the_server(tmp_path: Path) -> None:
    with LineServer(tmp_path, '[engine]\njava_home = "/nonexistent/java"\n') as running:
        assert running.process.wait(60) == 1
        running.settle()
        failed = running.event("engine_failed")
        assert (failed["level"], "/nonexistent/java" in failed["message"]) == ("critical", True)
        assert running.log[-1]["event"] == "stopped"


def test_a_taken_port_ends_the_server(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        with LineServer(tmp_path, SQE_COORDINATOR__QUACK_PORT=port) as running:
            assert running.process.wait(60) == 1
            running.settle()
            assert "Traceback" not in "".join(running.raw)
            assert "Address already in use" in running.raw[-1]


def test_a_taken_metrics_port_is_named(tmp_path: Path, ready: LineServer) -> None:
    port = str(ready.metrics_port)
    with LineServer(tmp_path, SQE_METRICS__PROMETHEUS_PORT=port) as running:
        assert running.process.wait(60) == 1
        running.settle()
        assert f"Cannot listen on 127.0.0.1:{int(port) + 1} (health)" in running.raw[-1]


def test_every_line_of_the_log_is_json(ready: LineServer) -> None:
    assert ready.raw
    assert len(ready.log) == len(ready.raw), "".join(ready.raw)
    assert all({"time", "level", "logger", "message"} <= entry.keys() for entry in ready.log)
