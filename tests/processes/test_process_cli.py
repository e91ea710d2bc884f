"""`sqe-cli` as a person or a script runs it: real processes, a real engine in each, one after the other."""

from __future__ import annotations

import os
import subprocess
import sys
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


def test_the_default_warehouse_is_made_and_survives_for_a_script_from_standard_input(home: Path) -> None:
    made = run(
        "-e",
        "CREATE TABLE trips AS SELECT 1 AS id, 12.50 AS km; INSERT INTO trips VALUES (2, 3.25); SELECT nope FROM trips",
        home=home,
    )
    assert made.returncode == 1
    assert (home / ".sqe" / "warehouse" / "sqe.db").exists()
    assert "COLUMN_NOT_FOUND" in made.stderr
    assert "Traceback" not in made.stderr
    script = "SHOW TABLES;\nSELECT id, km -- a comment; with a semicolon\nFROM trips ORDER BY id;\n"
    again = run("-f", "csv", text=script, home=home)
    assert again.returncode == 0, again.stderr
    # Clean for pipes.
    assert (again.stdout, again.stderr) == ("table\ntrips\nid,km\n1,12.50\n2,3.25\n", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--file", "/nonexistent/x.sql"), "x.sql"),
        (("--nonsense",), "--nonsense"),
        (("--protocol", "http", "-e", "SELECT 1"), "not built yet"),
        (("--warehouse", "/proc/nope", "-e", "SELECT 1"), "/proc/nope"),
        (("--memory-limit", "lots", "-e", "SELECT 1"), "lots"),
    ],
)
def test_wrong_usage_is_said_before_anything_starts(home: Path, arguments: tuple[str, ...], message: str) -> None:
    refused = run(*arguments, home=home)
    assert refused.returncode == 2
    assert message in refused.stderr
    assert "Traceback" not in refused.stderr
