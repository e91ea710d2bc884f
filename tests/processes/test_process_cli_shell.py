"""`sqe-cli` on a real engine: what its commands answer, what Ctrl-C leaves, and the shell at a terminal."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from testbed.clocks import wait_for
from testbed.terminal import PtyShell

SQE_CLI = [sys.executable, "-m", "sqe_core.cli.main"]
ENDLESS = "SELECT count(*) FROM range(1000000000) a(x) CROSS JOIN range(1000) b(y) WHERE x % 7 = y % 5"


def test_values_and_commands_of_a_script(tmp_path: Path) -> None:
    file = tmp_path / "script.sql"
    file.write_text(
        "CREATE TABLE t (id bigint, at timestamp, km double, tags array(varchar), price decimal(10, 2));\n"
        "INSERT INTO t VALUES (1, TIMESTAMP '2026-04-01 08:30:00', 12.5, ARRAY['a', NULL], DECIMAL '3.50'),\n"
        "  (2, NULL, 3.25, NULL, NULL);\n"
        "SELECT * FROM t ORDER BY id;\n"
        ".format csv\n.tables\n.schema t\n.summarize t\nSELECT nothing FROM t;\nSELECT 'never';\n"
    )
    done = subprocess.run(
        [*SQE_CLI, "--memory", "--stop-on-error", "--file", str(file)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "CREATE TABLE",
        "INSERT: 2 rows",
        "id  | at                  |   km | tags        | price",
        "----+---------------------+------+-------------+-------",
        " 1  | 2026-04-01 08:30:00 | 12.5 | ['a', NULL] |  3.50",
        " 2  | NULL                | 3.25 | NULL        |  NULL",
        "(2 rows)",
        "table",
        "t",
        "column_name,data_type,is_nullable",
        "id,bigint,YES",
        "at,timestamp(6),YES",
        "km,double,YES",
        "tags,array(varchar),YES",
        'price,"decimal(10,2)",YES',
        "column_name,data_type,min,max,approx_distinct,null_fraction,row_count",
        "id,bigint,1,2,2,0.0,2",
        "at,timestamp(6),2026-04-01 08:30:00,2026-04-01 08:30:00,1,0.5,2",
        "km,double,3.25,12.5,2,0.0,2",
        "tags,array(varchar),,,,0.5,2",
        'price,"decimal(10,2)",3.50,3.50,1,0.5,2',
    ]
    assert f"USER_ERROR COLUMN_NOT_FOUND: {file}, line 9:8: " in done.stderr


def test_ctrl_c_leaves_no_process_behind() -> None:
    cli = subprocess.Popen(
        [*SQE_CLI, "--memory", "-f", "csv", "-e", f"SELECT 1 AS one; {ENDLESS}; SELECT 2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    watchdog = threading.Timer(240, cli.kill)
    watchdog.start()
    try:
        assert cli.stdout is not None
        assert [cli.stdout.readline() for _ in range(2)] == ["one\n", "1\n"]
        children = _children(cli.pid)
        # The second statement may be planning, running, or not begun at all: it has to end in each case.
        cli.send_signal(signal.SIGINT)
        out, err = cli.communicate(timeout=60)
    finally:
        watchdog.cancel()
        cli.kill()
        cli.wait()
    assert (cli.returncode, out) == (130, "")
    assert err == "" or "QUERY_CANCELLED" in err
    assert children
    assert not [child for child in children if os.path.exists(f"/proc/{child}")]


def _children(pid: int) -> list[str]:
    """The processes that any thread of a process started."""
    return [child for file in Path(f"/proc/{pid}/task").glob("*/children") for child in file.read_text().split()]


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[PtyShell]:
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    opened = PtyShell(
        tmp_path, "--memory", command=SQE_CLI, **{**os.environ, "XDG_CACHE_HOME": cache, "HOME": str(tmp_path)}
    )
    yield opened
    opened.close()


def test_the_shell_at_a_terminal(shell: PtyShell, tmp_path: Path) -> None:
    def is_completed(begin: str, rest: str) -> bool:
        """Names are read in the background and at most some seconds old."""
        shell.type(f"{begin}\t")
        shell.expect(re.escape(begin))
        try:
            shell.expect(rest, 1)
        except AssertionError:
            shell.type("\x03")
            shell.expect("sqe>")
            return False
        return True

    shell.expect("sqe>")
    shell.type("SELECT 40 +\r")
    shell.expect(r"\.\.\.>")
    shell.type("2 AS answer;\r")
    shell.expect(r"answer\n-+\n +42\n\(1 row\)\nTime: ", 180)
    shell.expect("sqe>")
    shell.type("CREATE TABLE orders AS SELECT 1 AS order_id;\r")
    shell.expect("CREATE TABLE: 1 row", 60)
    shell.expect("sqe>")
    shell.type(f"{ENDLESS};\r")
    shell.expect("Ctrl-C cancels", 60)
    shell.type("\x03")
    shell.expect("QUERY_CANCELLED", 60)
    shell.expect("sqe>")
    wait_for(lambda: is_completed("SELECT * FROM ord", "ers"), 60)
    shell.type(";\r")
    shell.expect(r"order_id\n-+\n +1\n\(1 row\)", 60)
    shell.expect("sqe>")
    shell.type("\x04")
    shell.end(30)
    assert "orders" in (tmp_path / ".sqe_history").read_text()
