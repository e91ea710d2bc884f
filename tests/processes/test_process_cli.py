"""`sqe-cli` as a person or a script runs it: real processes, a real engine in each, one after the other."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

CLI = Path(sys.executable).with_name("sqe-cli")


def run(*arguments: object, text: str | None = None, home: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HOME": str(home), "XDG_CACHE_HOME": cache()}
    return subprocess.run(
        [str(CLI), *map(str, arguments)],
        input=text,
        stdin=subprocess.DEVNULL if text is None else None,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
        env=environment,
    )


def cache() -> str:
    """The jars and the bridge are those of the whole test run."""
    return os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


def test_the_default_warehouse_is_made_and_survives(home: Path) -> None:
    made = run(
        "-e",
        "CREATE TABLE trips AS SELECT 1 AS id, 12.5 AS km; INSERT INTO trips VALUES (2, 3.25); SELECT nope FROM trips",
        home=home,
    )
    assert made.returncode == 1
    assert (home / ".sqe" / "warehouse" / "sqe.db").exists()
    assert "COLUMN_NOT_FOUND" in made.stderr
    assert "Traceback" not in made.stderr
    again = run("-f", "json", "-e", "SELECT id, km FROM trips ORDER BY id", home=home)
    assert again.returncode == 0, again.stderr
    assert [row["id"] for row in json.loads(again.stdout)] == [1, 2]
    assert again.stderr == ""


def test_a_script_from_standard_input_is_clean_for_pipes(home: Path) -> None:
    script = "SHOW TABLES;\nSELECT count(*) AS n -- a comment; with a semicolon\nFROM trips;\n"
    answered = run("-f", "csv", text=script, home=home)
    assert answered.returncode == 0, answered.stderr
    assert answered.stdout == "table\ntrips\nn\n2\n"
    assert "\x1b" not in answered.stdout + answered.stderr


def test_stop_on_error_stops(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "script.sql"
    file.write_text("SELECT 1 AS a;\nSELECT * FROM nowhere;\nSELECT 3 AS c;\n")
    stopped = run("-f", "csv", "--stop-on-error", "--file", file, home=home)
    assert stopped.returncode == 1
    assert stopped.stdout == "a\n1\n"
    assert "TABLE_NOT_FOUND" in stopped.stderr
    assert "line 2:15" in stopped.stderr


def test_an_interrupt_ends_the_statement_and_the_script(home: Path) -> None:
    process = subprocess.Popen(
        [
            str(CLI),
            "--memory",
            "-e",
            "SELECT 'up' AS up; SELECT count(*) FROM range(9000000000) r(id) WHERE id % 7 = 9",
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "HOME": str(home), "XDG_CACHE_HOME": cache()},
    )
    assert process.stdout is not None
    while "(1 row)" not in process.stdout.readline():
        assert process.poll() is None
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    started = time.monotonic()
    _, errors = process.communicate(timeout=60)
    assert time.monotonic() - started < 20
    assert process.returncode in (1, 130)
    assert "Traceback" not in errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--file", "/nonexistent/x.sql"), "x.sql"),
        (("--nonsense",), "--nonsense"),
        (("--host", "localhost", "-e", "SELECT 1"), "not"),
        (("--warehouse", "/proc/nope", "-e", "SELECT 1"), "/proc/nope"),
        (("--memory-limit", "lots", "-e", "SELECT 1"), "lots"),
    ],
)
def test_wrong_usage_is_said_before_anything_starts(home: Path, arguments: tuple[str, ...], message: str) -> None:
    refused = run(*arguments, home=home)
    assert refused.returncode == 2
    assert message in refused.stderr
    assert "Traceback" not in refused.stderr
