"""Go's ADBC driver, and database/sql over it. The questions are in go/main.go."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from clients.go_toolchain import fetched_go

HERE = Path(__file__).parent

# The first build fetches and compiles Arrow and gRPC, which takes a minute.
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="session")
def program(go: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The questions, compiled without optimizing: that takes half the time."""
    built = tmp_path_factory.mktemp("go") / "check"
    quickly = ["-mod=readonly", "-buildvcs=false", "-gcflags=all=-N -l", "-ldflags=-s -w"]
    made = subprocess.run(
        [go, "build", *quickly, "-o", str(built), "."],
        cwd=HERE / "go",
        env={**os.environ, "GOTOOLCHAIN": "local", "GOWORK": "off", "GOFLAGS": "", "CGO_ENABLED": "0"},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert made.returncode == 0, made.stderr[-3000:]
    return built


def test_adbc_and_database_sql(program: Path, server: Any, table: str) -> None:
    ran = subprocess.run(
        [str(program), server.uri, "etl", server.keys["etl"], table],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    answers = dict(line.partition(" = ")[::2] for line in ran.stdout.splitlines())
    wrong = answers.pop("wrong key")
    missing = answers.pop("missing")
    transaction = answers.pop("database/sql transaction")
    assert answers == {
        "select": "[1|ü€😀|1.25|2026-01-02|[1,null]]",
        "create": "0",
        "insert": "2",
        "prepared insert": "2",
        "parameters": "int64 utf8",
        "ingest": "10000",
        "rows": "[1|ada 2|bob 3|gö 0 4|(null)]",
        "count": "[10004|10002]",
        "many rows": "200000",
        "schema": "id int64 utf8",
        "objects": "1",
        "table types": "[SYSTEM TABLE TABLE VIEW]",
        "deadline": "true true",
        "database/sql ping": "<nil>",
        "database/sql query": "[1:ada 2:bob 3:gö 0]",
        "database/sql exec": "10000",
        "database/sql values": "2026-01-02T03:04:05.000006Z true 0.5 [0 255]",
        "token": "etl",
    }
    assert "Authentication failed" in wrong
    assert "line 1:15: Table nowhere does not exist" in missing
    assert transaction.startswith("error")


def test_the_modules_are_those_of_the_checksums(go: str) -> None:
    """What go.sum says is what the proxy gave, and nothing is missing in it."""
    done = subprocess.run(
        [go, "mod", "verify"],
        cwd=HERE / "go",
        env={**os.environ, "GOTOOLCHAIN": "local", "GOWORK": "off", "GOFLAGS": "-mod=readonly"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_machine_without_go_gets_one() -> None:
    said = subprocess.run([fetched_go(), "version"], capture_output=True, text=True, check=True)
    assert said.stdout.startswith("go version go1.26.8 ")
