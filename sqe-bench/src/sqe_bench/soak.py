"""Mixed work over Flight SQL from many processes, some of them killed: nothing leaks, no row is lost or doubled."""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sqe_bench.flight import held, serving

NAME = "soak"
_ROWS = 500
_MOST_DESCRIPTORS, _MOST_THREADS = 30, 30


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--minutes", type=float, default=10, help="how long (10)")
    parser.add_argument("--clients", type=int, default=16, help="processes that work at the same time (16)")
    parser.add_argument("--seed", type=int, default=1, help="of the kills (1)")


def run(arguments: argparse.Namespace) -> Mapping[str, Any]:
    """Work, kill, count."""
    chance = random.Random(arguments.seed)  # noqa: S311 - which client is killed is no secret
    with tempfile.TemporaryDirectory(prefix="sqe-bench-") as folder, serving(Path(folder)) as (embedded, endpoint):
        embedded.execute("CREATE TABLE loaded (batch varchar, n bigint)").close()
        embedded.execute(
            "CREATE TABLE big AS SELECT id, md5(cast(id as varchar)) AS text FROM range(1000000) r(id)"
        ).close()
        acknowledged = Path(folder) / "acknowledged"
        acknowledged.mkdir()
        clients = [_client(endpoint.port, acknowledged, number) for number in range(arguments.clients)]
        time.sleep(min(20.0, arguments.minutes * 15))  # what is made once has been made
        before, started = held(), len(clients)
        kills, faults = 0, []
        ends = time.monotonic() + arguments.minutes * 60
        while time.monotonic() < ends:
            time.sleep(chance.uniform(0.2, 1.5))
            victim = chance.randrange(len(clients))
            clients[victim].send_signal(signal.SIGKILL)
            faults += _said(clients[victim])
            kills += 1
            started += 1
            clients[victim] = _client(endpoint.port, acknowledged, started)
        for client in clients:
            client.terminate()
            faults += _said(client)
        after = _settled(before, embedded)
        lost, doubled = _compare(embedded, acknowledged)
        print(f"{started} clients, {kills} of them killed; unexpected errors: {len(faults)}")
        for fault in faults[:10]:
            print(f"  {fault}")
        changes = ", ".join(f"{name} {before[name]:.0f} -> {after[name]:.0f}" for name in before)
        print(f"{changes}; statements that still run: {after['running']}")
        print(f"acknowledged batches that are missing: {lost}, batches that are there in part or twice: {doubled}")
        passed = (
            not faults
            and not lost
            and not doubled
            and not after["running"]
            and after["descriptors"] <= before["descriptors"] + _MOST_DESCRIPTORS
            and after["threads"] <= before["threads"] + _MOST_THREADS
        )
        return {
            "passed": passed,
            "kills": kills,
            "faults": faults,
            "lost": lost,
            "doubled": doubled,
            "after": dict(after),
        }


def _client(port: int, acknowledged: Path, number: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "sqe_bench.flight_client",
            "work",
            str(port),
            str(acknowledged),
            str(number),
            str(_ROWS),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )


def _said(client: subprocess.Popen[str]) -> list[str]:
    """What a client that has ended complained about."""
    out, _ = client.communicate(timeout=60)
    return [line for line in out.splitlines() if line]


def _settled(before: Mapping[str, Any], embedded: Any) -> Mapping[str, Any]:
    """Wait until the server has noticed that everybody is gone."""
    deadline = time.monotonic() + 60
    while True:
        now = {**held(), "running": embedded.sqe.service.running}
        quiet = now["descriptors"] <= before["descriptors"] and not now["running"]
        if quiet or time.monotonic() > deadline:
            return now
        time.sleep(1)


def _compare(embedded: Any, acknowledged: Path) -> tuple[int, int]:
    counts = {
        row["batch"]: row["n"]
        for row in embedded.execute("SELECT batch, count(*) AS n FROM loaded GROUP BY batch").read_all().to_pylist()
    }
    promised = {file.name for file in acknowledged.iterdir()}
    return len(promised - counts.keys()), sum(count != _ROWS for count in counts.values())
