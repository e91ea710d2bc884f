"""`sqe-cli` and `sqe-server`, each a real process, with a real engine behind the server."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from testbed.clocks import wait_for
from testbed.sqe_server import BIN, SqeServer

BIG = "SELECT x, x * 2 AS y FROM range(300000) AS a(x)"
NEVER_ENDS = "SELECT count(*) AS n FROM range(40000) AS a(x) JOIN range(9000000000) AS b(y) ON x <> y"

RunCli = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqeServer]:
    with SqeServer(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}


@pytest.fixture
def run(server: SqeServer, environment: dict[str, str]) -> RunCli:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(BIN / "sqe-cli"), "--port", str(server.port), *arguments]
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False, env=environment
        )

    return run


def test_statements_of_every_kind(run: RunCli, tmp_path: Path) -> None:
    (tmp_path / "load.sql").write_text(
        """
        CREATE SCHEMA sales;
        USE sales;
        CREATE TABLE orders (id bigint, note varchar, amount decimal(10, 2));
        INSERT INTO orders VALUES (1, 'first', 1.5), (2, NULL, 20), (3, '', NULL);
        UPDATE orders SET note = 'changed' WHERE id = 3;
        DELETE FROM orders WHERE id = 2;
        .tables
        """
    )
    done = run("--file", str(tmp_path / "load.sql"), "-f", "table")
    assert (done.returncode, done.stderr) == (0, "")
    said = done.stdout.splitlines()
    assert said[:6] == ["CREATE SCHEMA", "USE", "CREATE TABLE", "INSERT: 3 rows", "UPDATE: 1 row", "DELETE: 1 row"]
    assert "orders" in said
    rows = run("--schema", "sales", "-f", "json", "-e", "SELECT * FROM orders ORDER BY id")
    assert rows.returncode == 0, rows.stderr
    assert json.loads(rows.stdout) == [
        {"id": 1, "note": "first", "amount": 1.5},
        {"id": 3, "note": "changed", "amount": None},
    ]
    described = run("-f", "csv", "-e", ".schema sales.orders")
    assert "id,bigint" in described.stdout
    assert run("--catalog", "lake", "-f", "csv", "-e", "SELECT count(*) AS n FROM sales.orders").stdout == "n\n2\n"


def test_errors_point_into_the_text(run: RunCli) -> None:
    done = run("-e", "SELECT 1 AS one;\nSELECT nope\nFROM (SELECT 1 AS one) t")
    assert done.returncode == 1
    assert done.stderr.startswith("USER_ERROR COLUMN_NOT_FOUND: line 2:8: ")
    assert "  2 | SELECT nope\n    |        ^\n" in done.stderr
    failed = run("--raw-errors", "-e", "SELECT 1 / 0 AS x")
    assert (failed.returncode, failed.stderr.split(":")[0]) == (1, "DIVISION_BY_ZERO")


def test_many_rows(run: RunCli) -> None:
    done = run("-f", "csv", "-e", BIG)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert len(lines) == 300_001
    assert sum(int(line.split(",")[1]) for line in lines[1:]) == 299_999 * 300_000


def test_ctrl_c_ends_the_statement_on_the_server(server: SqeServer, environment: dict[str, str]) -> None:
    command = [str(BIN / "sqe-cli"), "--port", str(server.port), "-e", f"{NEVER_ENDS}; SELECT 2 AS two"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as one:
        deadline = time.monotonic() + 30
        while server.samples()[("sqe_active_queries", ())] != 1:
            assert one.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
        one.send_signal(signal.SIGINT)
        out, told = one.communicate(timeout=30)
    assert (one.returncode, out) == (130, "")
    assert told.splitlines()[0] == "USER_ERROR QUERY_CANCELLED: The statement was cancelled"
    wait_for(lambda: server.samples()[("sqe_active_queries", ())] == 0, 20)
