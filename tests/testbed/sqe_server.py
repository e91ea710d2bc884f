"""`sqe-server` as a process in front of tests: its ports on loopback, its log read as it comes, its end."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import psutil
from prometheus_client.parser import text_string_to_metric_families
from testbed.clocks import wait_for
from testbed.processes import free_ports

from sqe_core.auth.key_file import hash_key, make_key

BIN = Path(sys.executable).parent
NO_POLICY = '[policy]\nengine = "passthrough"\ni_understand_no_enforcement = true\n'


class SqeServer:
    """A started server; whoever enters it waits until it is ready.

    Args:
        folder: where it works, with its configuration.
        text: the configuration, but for what all servers of tests have: ports, memory, folders and, where it names
            none, a catalog in a file.
        environ: variables besides those of the test run.
    """

    def __init__(self, folder: Path, text: str = NO_POLICY, **environ: str) -> None:
        self.folder = folder
        (self.port,) = free_ports(1)
        self.metrics_port = _two_neighbours()
        self.health_port = self.metrics_port + 1
        self.log: list[dict[str, Any]] = []
        self.raw: list[str] = []
        if "[catalogs." not in text:
            text += f'\n[catalogs.lake]\ntype = "sqlite"\ndirectory = "{folder / "lake"}"\n'
        (folder / "sqe.toml").write_text(text)
        self.process = subprocess.Popen(
            [str(BIN / "sqe-server"), "--config", str(folder / "sqe.toml")],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            cwd=folder,
            env={
                **os.environ,
                "XDG_STATE_HOME": str(folder / "state"),
                "SQE_ENGINE__CLASS_ARCHIVE": "use",
                "SQE_COORDINATOR__BIND_ADDRESS": "127.0.0.1",
                "SQE_COORDINATOR__FLIGHT_SQL_PORT": str(self.port),
                "SQE_COORDINATOR__TRINO_HTTP_PORT": "0",
                "SQE_COORDINATOR__SPILL_DIR": str(folder / "spill"),
                "SQE_COORDINATOR__MEMORY_LIMIT": "1GB",
                "SQE_METRICS__PROMETHEUS_PORT": str(self.metrics_port),
                **environ,
            },
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.raw.append(line)
            if line.startswith("{"):
                self.log.append(json.loads(line))

    def __enter__(self) -> Self:
        try:
            self.event("ready", 300)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        children = self.children()
        self.process.terminate()
        try:
            self.process.wait(40)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(20)
        _, left = psutil.wait_procs(children, 20)
        self.settle()
        assert self.process.stderr is not None
        self.process.stderr.close()
        assert not left

    @property
    def uri(self) -> str:
        """Where clients of Flight find it."""
        return f"grpc://127.0.0.1:{self.port}"

    def event(self, name: str, secs: float = 120) -> dict[str, Any]:
        """Wait until the log has an event, and return it."""

        def found() -> list[dict[str, Any]]:
            return [entry for entry in list(self.log) if entry.get("event") == name]

        wait_for(lambda: bool(found()) or self.process.poll() is not None, secs)
        self.settle()
        assert found(), "".join(self.raw)
        return found()[0]

    def settle(self) -> None:
        """When the process has ended, its whole log has been read."""
        if self.process.poll() is not None:
            self._reader.join(10)

    def children(self) -> Sequence[psutil.Process]:
        """Return what it started."""
        with suppress(psutil.NoSuchProcess):
            return psutil.Process(self.process.pid).children(recursive=True)
        return []

    def ask(self, path: str, *, port: int | None = None, method: str = "GET") -> tuple[int, bytes]:
        """Return what a page of health says, or of another port."""
        connection = http.client.HTTPConnection("127.0.0.1", port or self.health_port, timeout=10)
        connection.request(method, path)
        response = connection.getresponse()
        body = response.read()
        connection.close()
        return response.status, body

    def samples(self) -> dict[tuple[str, tuple[str, ...]], float]:
        """Return its metrics by name and values of labels."""
        status, body = self.ask("/metrics", port=self.metrics_port)
        assert status == 200
        return {
            (sample.name, tuple(value for _, value in sorted(sample.labels.items()))): sample.value
            for family in text_string_to_metric_families(body.decode())
            for sample in family.samples
        }

    def end(self, number: int = signal.SIGTERM, secs: float = 40) -> int:
        """End it by a signal and return its exit code."""
        self.process.send_signal(number)
        code = self.process.wait(secs)
        self.settle()
        return code


def api_keys(folder: Path, *users: str, more: str = "") -> tuple[dict[str, str], str]:
    """Return keys for users, and the provider that takes them; `more` is written behind each."""
    keys = {user: make_key() for user in users}
    entries = (f'[[keys]]\nkey = "{hash_key(key)}"\nuser = "{user}"\n{more}' for user, key in keys.items())
    file = folder / "keys.toml"
    file.touch(0o600)
    file.write_text("".join(entries))
    provider = f'[[auth.providers]]\ntype = "api_key"\nkeys_file = "{file}"\n'
    return {user: key.reveal() for user, key in keys.items()}, provider


def _two_neighbours() -> int:
    """Health is the port after metrics."""
    while True:
        (first,) = free_ports(1)
        with suppress(OSError, OverflowError), socket.create_server(("127.0.0.1", first + 1)):
            return first
