"""`sqe-cli` as people start it: real processes, a real engine, a warehouse that is still there the next time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

SQE_CLI = [sys.executable, "-m", "sqe_core.cli.main"]


def run_cli(*arguments: str, script: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*SQE_CLI, *arguments],
        input=script,
        stdin=subprocess.DEVNULL if script is None else None,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def test_data_is_there_after_a_restart(tmp_path: Path) -> None:
    warehouse = ["--warehouse", str(tmp_path / "lake")]
    script = """
        CREATE TABLE trips (id bigint, started timestamp, km double, tags array(varchar), price decimal(10, 2));
        INSERT INTO trips VALUES
            (1, TIMESTAMP '2026-04-01 08:30:00', 12.5, ARRAY['a', 'b'], DECIMAL '3.50'), (2, NULL, 3.25, NULL, NULL);
        SELECT * FROM trips ORDER BY id;
    """
    first = run_cli(*warehouse, script=script)
    assert (first.returncode, first.stderr) == (0, "")
    assert first.stdout.splitlines() == [
        "CREATE TABLE",
        "INSERT: 2 rows",
        "id  | started             | km   | tags       | price",
        "----+---------------------+------+------------+-------",
        "1   | 2026-04-01 08:30:00 | 12.5 | ['a', 'b'] | 3.50",
        "2   | NULL                | 3.25 | NULL       | NULL",
        "(2 rows)",
    ]

    second = run_cli(
        *warehouse, "-f", "json", "-e", "SELECT * FROM trips WHERE id = 1; SELECT * FROM tripz; SELECT 3 AS three"
    )
    assert second.returncode == 1
    rows, end = json.JSONDecoder().raw_decode(second.stdout)
    assert rows == [
        {"id": 1, "started": "2026-04-01 08:30:00", "km": 12.5, "tags": ["a", "b"], "price": 3.5},
    ]
    assert json.loads(second.stdout[end:]) == [{"three": 3}]
    assert second.stderr.splitlines()[0].startswith("USER_ERROR TABLE_NOT_FOUND: line 1:49: ")


def test_stop_on_error_and_commands_of_a_script(tmp_path: Path) -> None:
    file = tmp_path / "script.sql"
    file.write_text(
        "CREATE TABLE t AS SELECT * FROM (VALUES (1, 'a'), (2, NULL), (2, 'b')) AS v(id, name);\n"
        ".tables\n.schema t\n.summarize t\nSELECT nothing FROM t;\nSELECT 'never';\n"
    )
    done = run_cli("--memory", "-f", "csv", "--stop-on-error", "--file", str(file))
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "table",
        "t",
        "column_name,data_type,is_nullable",
        "id,integer,YES",
        "name,varchar,YES",
        "column_name,data_type,min,max,approx_distinct,null_fraction,row_count",
        "id,integer,1,2,2,0.0,3",
        "name,varchar,a,b,2,0.3333,3",
    ]
    assert f"USER_ERROR COLUMN_NOT_FOUND: {file}, line 5:8: " in done.stderr


def test_ctrl_c_cancels_the_statement_and_leaves_no_process_behind() -> None:
    endless = "SELECT count(*) FROM range(1000000000) AS a CROSS JOIN range(1000) AS b WHERE a.id % 7 = b.id % 5"
    cli = subprocess.Popen(
        [*SQE_CLI, "--memory", "-f", "csv", "-e", f"SELECT 1 AS one; {endless}; SELECT 2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    watchdog = threading.Timer(240, cli.kill)
    watchdog.start()
    try:
        assert cli.stdout is not None
        assert [cli.stdout.readline() for _ in range(2)] == ["one\n", "1\n"]
        children = Path(f"/proc/{cli.pid}/task/{cli.pid}/children").read_text().split()
        # The second statement may be planning, running, or not begun at all: it has to end in each case.
        cli.send_signal(signal.SIGINT)
        out, err = cli.communicate(timeout=60)
    finally:
        watchdog.cancel()
        cli.kill()
        cli.wait()
    assert (cli.returncode, out) == (130, "")
    assert err == "" or "QUERY_CANCELLED" in err
    assert not [child for child in children if os.path.exists(f"/proc/{child}")]
