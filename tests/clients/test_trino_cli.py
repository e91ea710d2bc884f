"""trino-cli 476: its formats, files, exit codes, and a terminal at which somebody types."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from testbed.terminal import PtyShell

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def command(java: str, trino_cli: Path, tls_server: Any) -> list[str]:
    """The way that most people start it."""
    return [
        *(java, "-XX:TieredStopAtLevel=1", "-jar", str(trino_cli)),
        *("--server", f"https://localhost:{tls_server.trino_port}", "--truststore-path", str(tls_server.authority)),
        *("--user", "etl", "--password", "--catalog", "iceberg", "--schema", "default"),
    ]


@pytest.fixture
def run(command: list[str], tls_server: Any, tmp_path: Path) -> Run:
    def ran(*arguments: str, password: str | None = None) -> subprocess.CompletedProcess[str]:
        login = {"TRINO_PASSWORD": password or tls_server.keys["etl"], "HOME": str(tmp_path)}
        return subprocess.run(
            [*command, *arguments],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            env={**os.environ, **login},
        )

    return ran


ROWS = "SELECT * FROM (VALUES (1, 'a \"b\", c', 1.5, DATE '2026-02-03'), (2, NULL, NULL, NULL)) AS t(id, t, p, d)"
FORMATS = {
    "CSV": '"1","a ""b"", c","1.5","2026-02-03"\n"2","","",""\n',
    "CSV_HEADER": '"id","t","p","d"\n"1","a ""b"", c","1.5","2026-02-03"\n"2","","",""\n',
    "CSV_UNQUOTED": '1,a "b", c,1.5,2026-02-03\n2,,,\n',
    "CSV_HEADER_UNQUOTED": 'id,t,p,d\n1,a "b", c,1.5,2026-02-03\n2,,,\n',
    "TSV": '1\ta "b", c\t1.5\t2026-02-03\n2\t\t\t\n',
    "TSV_HEADER": 'id\tt\tp\td\n1\ta "b", c\t1.5\t2026-02-03\n2\t\t\t\n',
    "ALIGNED": (
        " id |    t     |  p   |     d      \n----+----------+------+------------\n"
        '  1 | a "b", c |  1.5 | 2026-02-03 \n  2 | NULL     | NULL | NULL       \n(2 rows)\n'
    ),
    "VERTICAL": (
        '-[ RECORD 1 ]--\nid | 1\nt  | a "b", c\np  | 1.5\nd  | 2026-02-03\n'
        "-[ RECORD 2 ]--\nid | 2\nt  | NULL\np  | NULL\nd  | NULL\n"
    ),
    "MARKDOWN": (
        "| id | t        |    p | d          |\n| --:| -------- | ----:| ---------- |\n"
        '|  1 | a "b", c |  1.5 | 2026-02-03 |\n|  2 | NULL     | NULL | NULL       |\n'
    ),
    "NULL": "",
}


def test_every_format(run: Run) -> None:
    with ThreadPoolExecutor(3) as threads:
        asked = {name: threads.submit(run, "--output-format", name, "--execute", ROWS) for name in [*FORMATS, "JSON"]}
        done = {name: each.result() for name, each in asked.items()}
    assert {name: each.returncode for name, each in done.items()} == dict.fromkeys(done, 0)
    assert {name: done[name].stdout for name in FORMATS} == FORMATS
    lines = [json.loads(line) for line in done["JSON"].stdout.splitlines()]
    assert lines[0] == {"id": 1, "t": 'a "b", c', "p": "1.5", "d": "2026-02-03"} or lines[0]["p"] == 1.5
    assert lines[1] == {"id": 2, "t": None, "p": None, "d": None}


def test_files_and_several_statements(run: Run, tmp_path: Path, table: str) -> None:
    (tmp_path / "all.sql").write_text(
        f"CREATE TABLE {table} (id bigint, name varchar); -- a comment\n"
        f"INSERT INTO {table} VALUES (1, 'a;b'), (2, NULL);\nSELECT * FROM {table} ORDER BY id;\n"
        f"SHOW TABLES LIKE '{table}';\nDROP TABLE {table};\n"
    )
    done = run("--file", str(tmp_path / "all.sql"))
    assert done.returncode == 0, done.stderr
    assert done.stdout == f'"1","a;b"\n"2",""\n"{table}"\n'


def test_exit_codes_and_errors(run: Run) -> None:
    failed = run("--execute", "SELECT 1; SELECT\n  nope FROM (VALUES 1) AS t(x); SELECT 2")
    assert (failed.returncode, failed.stdout) == (1, '"1"\n')
    assert re.search(r"Query \S+ failed: line 2:3: Column nope does not exist", failed.stderr)
    assert "LINE 2:   nope FROM" in failed.stderr
    ignored = run("--ignore-errors", "--execute", "SELECT nope; SELECT 2")
    assert ignored.stdout == '"2"\n'
    refused = run("--execute", "SELECT 1", password="sqe_wrong")
    assert refused.returncode == 1
    assert "Authentication failed" in refused.stderr


def test_properties_of_the_session(run: Run) -> None:
    done = run(
        *("--session", "query_max_run_time=7m", "--client-tags", "a,b", "--source", "nightly", "--timezone", "UTC"),
        *("--execute", "SHOW SESSION LIKE 'query_max_run_time'; SELECT current_catalog, current_schema"),
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0].startswith('"query_max_run_time","7m"')
    assert done.stdout.splitlines()[1] == '"iceberg","default"'


@pytest.fixture
def terminal(command: list[str], tls_server: Any, tmp_path: Path) -> Iterator[PtyShell]:
    login = {
        "TRINO_PASSWORD": tls_server.keys["etl"],
        "TRINO_PAGER": "",
        "TRINO_HISTORY_FILE": str(tmp_path / "history"),
    }
    shell = PtyShell(tmp_path, command=command, **login)
    yield shell
    shell.close()


LONG = "SELECT count(*) FROM range(100000) AS a(x) JOIN range(900000000) AS b(y) ON x <> y;"


def test_somebody_types(terminal: PtyShell) -> None:
    terminal.expect(r"trino:default> ", 60)
    shown = terminal.run("SELECT id, id * 2 AS twice FROM range(3) AS r(id) ORDER BY 1;", r"trino:default> ")
    assert re.search(r"2 \| +4", shown)
    assert "(3 rows)" in shown
    shown = terminal.run("SELECT count(*) FROM range(5000000) AS r(id) WHERE id % 7 = 0;", r"trino:default> ")
    assert "714286" in shown
    assert re.search(r"Query \S+, FINISHED, 1 node\s+Splits: \d+ total, \d+ done \(100.00%\)", shown)
    assert "rows/s" in shown
    terminal.run("USE iceberg.information_schema;", r"trino:information_schema> ")
    assert "Table nowhere does not exist" in terminal.run("SELECT * FROM nowhere;", r"trino:information_schema> ")
    # The progress is drawn while it runs, now and then, and Ctrl-C ends the statement, not the client.
    before = len(terminal.raw)
    terminal.type(LONG + "\r")
    terminal.expect(r"(?s)Query \S+, RUNNING, 1 node, [1-9]\d* splits.*rows/s.*\n *0\.+R ", 60)
    assert len(terminal.raw) - before < 50_000
    terminal.type("\x03")
    terminal.expect(r"(?s)aborted by user.*trino:information_schema> ", 30)
    # The client may take the interrupt for its next request once more.
    shown = [terminal.run("SELECT 3 + 4;", r"trino:information_schema> ") for _ in range(2)]
    assert re.search(r"\b7\b", shown[1])
    terminal.type("quit\r")
    assert terminal.end() == 0
