"""`sqe-cli` on a real engine: what its commands answer, what Ctrl-C leaves, and the shell at a terminal."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

SQE_CLI = [sys.executable, "-m", "sqe_core.cli.main"]
ENDLESS = "SELECT count(*) FROM range(1000000000) a(x) CROSS JOIN range(1000) b(y) WHERE x % 7 = y % 5"
_ESCAPES = re.compile(r"\x1b(?:\][^\x07\x1b]*\x07|\[[0-?]*[ -/]*[@-~]|[=>])")


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


def test_the_shell_at_a_terminal(tmp_path: Path) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        environment = {**os.environ, "TERM": "xterm-256color", "PAGER": "", "COLUMNS": "120", "LINES": "40"}
        environment["XDG_CACHE_HOME"] = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        os.execve(sys.executable, [*SQE_CLI, "--memory"], {**environment, "HOME": str(tmp_path)})
    shown, seen = "", 0

    def expect(pattern: str, seconds: float = 60) -> None:
        nonlocal shown, seen
        deadline = time.monotonic() + seconds
        while True:
            text = _ESCAPES.sub("", shown).replace("\r", "")
            match = re.search(pattern, text[seen:])
            if match:
                seen += match.end()
                return
            assert time.monotonic() < deadline, f"waited for {pattern!r}, got {text[seen:]!r}"
            if select.select([terminal], [], [], 0.1)[0]:
                data = os.read(terminal, 65536)
                for _ in range(data.count(b"\x1b[6n")):
                    os.write(terminal, b"\x1b[20;1R")
                shown += data.decode()

    def type_keys(keys: str) -> None:
        os.write(terminal, keys.encode())

    def completed(begin: str, rest: str) -> bool:
        type_keys(f"{begin}\t")
        expect(re.escape(begin))
        try:
            expect(rest, 1)
        except AssertionError:
            return False
        return True

    try:
        expect("sqe>", 20)
        type_keys("SELECT 40 +\r")
        expect(r"\.\.\.>")
        type_keys("2 AS answer;\r")
        expect(r"answer\n-+\n +42\n\(1 row\)\nTime: ", 180)
        expect("sqe>")
        type_keys("CREATE TABLE orders AS SELECT 1 AS order_id;\r")
        expect("CREATE TABLE: 1 row")
        expect("sqe>")
        type_keys(f"{ENDLESS};\r")
        expect("Ctrl-C cancels")
        type_keys("\x03")
        expect("QUERY_CANCELLED")
        expect("sqe>")
        # Names are read in the background and at most some seconds old.
        deadline = time.monotonic() + 60
        while not completed("SELECT * FROM ord", "ers"):
            assert time.monotonic() < deadline
            type_keys("\x03")
            expect("sqe>")
        type_keys(";\r")
        expect(r"order_id\n-+\n +1\n\(1 row\)")
        expect("sqe>")
        type_keys("\x04")
        expect_end = time.monotonic() + 30
        while os.waitpid(pid, os.WNOHANG)[0] == 0:
            assert time.monotonic() < expect_end
            if select.select([terminal], [], [], 0.05)[0]:
                _drain(terminal)
    finally:
        os.close(terminal)
        try:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass
    assert "orders" in (tmp_path / ".sqe_history").read_text()


def _drain(terminal: int) -> None:
    try:
        os.read(terminal, 65536)
    except OSError:
        pass
