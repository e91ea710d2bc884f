"""Moto as a stand-in for AWS, on loopback: its own process, because it changes botocore wherever it is imported.

It checks signatures and keys of the users and roles that a test makes, once `check_keys` has been called. It does not
look at the time: neither of a signature nor of a session of a role.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import boto3
import psutil

ACCOUNT = "123456789012"
REGION = "eu-west-1"
_START_SECS = 60


class Moto:
    """A running moto."""

    def __init__(self) -> None:
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - stop() closes it
        command = [sys.executable, "-W", "ignore", "-c", "from moto.server import main; main()"]
        self._process = subprocess.Popen(
            [*command, "-H", "127.0.0.1", "-p", "0"], stdout=subprocess.DEVNULL, stderr=self._log
        )
        try:
            self.url = f"http://127.0.0.1:{self._port()}"
        except BaseException:
            self.stop()
            raise

    def _port(self) -> int:
        deadline = time.monotonic() + _START_SECS
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                self._log.seek(0)
                raise RuntimeError(f"moto ended: {self._log.read()[-2000:]}")
            for connection in psutil.Process(self._process.pid).net_connections("tcp4"):
                if connection.status == psutil.CONN_LISTEN:
                    return int(connection.laddr.port)
            time.sleep(0.05)
        raise RuntimeError("moto did not start to listen")

    def client(self, service: str) -> Any:
        """A client of a service with keys that are good as long as nobody checks."""
        keys = {"aws_access_key_id": "setup", "aws_secret_access_key": "setup"}
        return boto3.client(service, endpoint_url=self.url, region_name=REGION, **keys)

    def check_keys(self, *, after: int = 0) -> None:
        """Check keys, signatures and rights from now on, or after some more requests."""
        self._post("reset-auth", str(after))

    def ignore_keys(self) -> None:
        """Take any key."""
        self._post("reset-auth", "1000000000")

    def _post(self, path: str, body: str) -> None:
        request = urllib.request.Request(
            f"{self.url}/moto-api/{path}", data=body.encode(), headers={"Content-Type": "text/plain"}, method="POST"
        )
        with urllib.request.urlopen(request, timeout=10):
            pass

    def stop(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        self._log.close()


@contextmanager
def running_moto() -> Iterator[Moto]:
    """Run moto for the length of a block."""
    moto = Moto()
    try:
        yield moto
    finally:
        moto.stop()
