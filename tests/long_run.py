"""The long lane: what no submission waits for. Each part that ends is recorded in tests/long-run.toml.

tox -e long                             every part, hours
tox -e long -- soak                     one of them
tox -e long -- mutations --part 1/12    with arguments of its own
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[1]
RECORD = Path(__file__).with_name("long-run.toml")
_HEAD = "# Written by `tox -e long`: how each part of the long lane ended when it ran last.\n"


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part of the lane."""

    command: tuple[str, ...]
    environ: dict[str, str] = field(default_factory=dict)


PARTS = {
    # Tests that are marked `long`; each says beside its mark what it proves, and which test of CI proves most of it.
    "tests": Part(
        command=(sys.executable, "-m", "pytest", "-q", "-m", "long", "sqe-core/tests", "sqe-plugins", "tests")
    ),
    # Governed tables against copies of what is visible: CI asks 120 questions.
    "differential": Part(
        command=(sys.executable, "-m", "pytest", "-q", "tests/security/test_policy_differential.py"),
        environ={"SQE_POLICY_CASES": "5040", "SQE_POLICY_CHANGES": "50"},
    ),
    # Statements about what is hidden against those about what never was: CI compares 200 pairs.
    "twins": Part(
        command=(sys.executable, "-m", "pytest", "-q", "-o", "timeout=1800", "tests/security/test_security_twins.py"),
        environ={"SQE_TWIN_CASES": "3000"},
    ),
    # Texts and messages that are nearly right: CI sends each kind for seconds. Another seed, other ones.
    "fuzz": Part(
        command=(
            *(sys.executable, "-m", "pytest", "-q", "-o", "timeout=1800", "-k", "fuzz or stumble or mutated"),
            *("sqe-core/tests/sql/test_sql_fuzz.py", "sqe-core/tests/protocols/test_flight_bad_input.py"),
        ),
        environ={"SQE_FUZZ_SEED": "1000", "SQE_FUZZ_TEXTS": "10000", "SQE_FUZZ_SECS": "60"},
    ),
    # Clients that come, work and are killed; nothing may be lost, doubled or held.
    "soak": Part(command=("sqe-bench", "soak", "--minutes", "10", "--clients", "64")),
    # Protections that are switched off, and must be missed by a test that needs an engine.
    "mutations": Part(command=(sys.executable, "tests/mutations/run.py", "--with-engine")),
    # What an analyst below policies is refused, through Trino's door: CI sends three files of it that way.
    "doors": Part(
        command=(sys.executable, "-m", "pytest", "-q", "-m", "not long", "tests/security"),
        environ={"SQE_TESTS_DOOR": "trino"},
    ),
}


def main(arguments: Sequence[str]) -> int:
    """Run one part or all of them; return how many failed."""
    names = list(PARTS) if not arguments else [arguments[0]]
    if unknown := [name for name in names if name not in PARTS]:
        raise SystemExit(f"{unknown[0]} is no part; the parts are {', '.join(PARTS)}")
    return sum(not run(name, arguments[1:]) for name in names)


def run(name: str, more: Sequence[str]) -> bool:
    """Run a part, show what it says, and record how it ended."""
    part, began = PARTS[name], time.monotonic()
    command = [*part.command, *more]
    commit = _git("describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")
    last, environ = "", {**part.environ, **os.environ}  # whoever says otherwise is told in the record
    with subprocess.Popen(
        command, cwd=ROOT, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            last = line.strip() or last
    passed = process.returncode == 0
    told = [f"{key}={environ[key]}" for key in part.environ] + [Path(command[0]).name, *command[1:]]
    entry = {
        "date": datetime.now(UTC).date().isoformat(),
        "commit": commit,
        "command": " ".join(told),
        "outcome": "passed" if passed else "failed",
        "seconds": round(time.monotonic() - began),
        "summary": last.strip("= "),
    }
    write({**read(), name: entry})
    return passed


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def read() -> dict[str, dict[str, str | int]]:
    """Return what is recorded, by part."""
    return tomllib.loads(RECORD.read_text("utf-8")) if RECORD.exists() else {}


def write(record: dict[str, dict[str, str | int]]) -> None:
    """Record it, in the order of the parts."""
    lines = [_HEAD]
    for name in PARTS:
        if name in record:
            lines.append(f"\n[{name}]\n")
            lines.extend(f"{key} = {_written(value)}\n" for key, value in record[name].items())
    RECORD.write_text("".join(lines), "utf-8")


def _written(value: str | int) -> str:
    if isinstance(value, int):
        return str(value)
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
