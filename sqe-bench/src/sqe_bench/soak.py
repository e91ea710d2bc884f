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
from sqe_core.bootstrap import EmbeddedSqe

NAME = "soak"
_ROWS = 500
_MOST_DESCRIPTORS, _MOST_THREADS, _MOST_MB = 30, 30, 100
_WARM = 0.3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--minutes", type=float, default=10, help="how long (10)")
    parser.add_argument("--clients", type=int, default=16, help="processes that work at the same time (16)")
    parser.add_argument("--seed", type=int, default=1, help="of the kills (1)")


def run(arguments: argparse.Namespace) -> Mapping[str, Any]:
    """Work, kill, count."""
    with tempfile.TemporaryDirectory(prefix="sqe-bench-") as folder, serving(Path(folder)) as (embedded, endpoint):
        embedded.execute("CREATE TABLE loaded (batch varchar, n bigint)").close()
        embedded.execute(
            "CREATE TABLE big AS SELECT id, md5(cast(id as varchar)) AS text FROM range(1000000) r(id)"
        ).close()
        acknowledged = Path(folder) / "acknowledged"
        acknowledged.mkdir()
        chance = random.Random(arguments.seed)  # noqa: S311 - which client is killed is no secret
        crowd = _Crowd(endpoint.port, acknowledged, arguments.clients, chance)
        # What is made once has been made when a first crowd has gone: threads, buffers, code.
        crowd.work(arguments.minutes * 60 * _WARM)
        before = _settled(embedded)
        crowd.work(arguments.minutes * 60 * (1 - _WARM))
        after = _settled(embedded)
        lost, doubled = _compare(embedded, acknowledged)
        print(f"{crowd.started} clients, {crowd.kills} of them killed; unexpected errors: {len(crowd.faults)}")
        for fault in crowd.faults[:10]:
            print(f"  {fault}")
        changes = ", ".join(f"{name} {before[name]:.0f} -> {after[name]:.0f}" for name in before)
        print(changes)
        print(f"acknowledged batches that are missing: {lost}, batches that are there in part or twice: {doubled}")
        passed = (
            not crowd.faults
            and not lost
            and not doubled
            and not after["running"]
            and after["descriptors"] <= before["descriptors"] + _MOST_DESCRIPTORS
            and after["threads"] <= before["threads"] + _MOST_THREADS
            and after["mb"] <= before["mb"] + _MOST_MB
        )
        return {
            "passed": passed,
            "kills": crowd.kills,
            "faults": crowd.faults,
            "lost": lost,
            "doubled": doubled,
            "before": dict(before),
            "after": dict(after),
        }


class _Crowd:
    """Clients that work at the same time; now and then one is killed and another comes."""

    def __init__(self, port: int, acknowledged: Path, size: int, chance: random.Random) -> None:
        self._port = port
        self._acknowledged = acknowledged
        self._size = size
        self._chance = chance
        self.started = self.kills = 0
        self.faults: list[str] = []

    def work(self, seconds: float) -> None:
        """Let them work, then send them home."""
        ends = time.monotonic() + seconds
        clients = [self._one_more() for _ in range(self._size)]
        while time.monotonic() < ends:
            time.sleep(self._chance.uniform(0.2, 1.5))
            victim = self._chance.randrange(self._size)
            clients[victim].send_signal(signal.SIGKILL)
            self.faults += _said(clients[victim])
            self.kills += 1
            clients[victim] = self._one_more()
        for client in clients:
            client.terminate()
        for client in clients:
            self.faults += _said(client)

    def _one_more(self) -> subprocess.Popen[str]:
        self.started += 1
        return _client(self._port, self._acknowledged, self.started)


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


def _settled(embedded: EmbeddedSqe) -> Mapping[str, float]:
    """Wait until the server has noticed that everybody is gone."""
    deadline, known = time.monotonic() + 60, -1
    while True:
        now = {**held(), "running": embedded.sqe.service.running}
        if (not now["running"] and now["descriptors"] == known) or time.monotonic() > deadline:
            return now
        known = now["descriptors"]
        time.sleep(3)


def _compare(embedded: Any, acknowledged: Path) -> tuple[int, int]:
    counts = {
        row["batch"]: row["n"]
        for row in embedded.execute("SELECT batch, count(*) AS n FROM loaded GROUP BY batch").read_all().to_pylist()
    }
    promised = {file.name for file in acknowledged.iterdir()}
    return len(promised - counts.keys()), sum(count != _ROWS for count in counts.values())
