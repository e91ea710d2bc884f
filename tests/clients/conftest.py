"""One `sqe-server` for the official clients of Flight SQL, with API keys and anonymous users."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import adbc_driver_flightsql.dbapi
import psutil
import pyspark
import pytest
from clients.go_toolchain import fetched_go, installed_go

from sqe_core.engine.spark.jars import LockedJar, fetch_jars
from sqe_core.engine.spark.options import EngineOptions

HERE = Path(__file__).parent
SERVER = Path(sys.executable).with_name("sqe-server")
_FIRST_JAVA = 17  # the driver needs 11; the questions are written for this


@dataclass
class RunningServer:
    """A server process, and who may log in."""

    process: subprocess.Popen[str]
    port: int
    folder: Path
    keys: dict[str, str]
    log: list[dict[str, Any]] = field(default_factory=list)
    raw: list[str] = field(default_factory=list)

    secure: bool = False

    @property
    def uri(self) -> str:
        return f"{'grpc+tls' if self.secure else 'grpc'}://127.0.0.1:{self.port}"

    def read_log(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.raw.append(line)
            if line.startswith("{"):
                self.log.append(json.loads(line))

    def has_said(self, event: str) -> bool:
        return any(entry.get("event") == event for entry in list(self.log))

    def connect(self, user: str = "etl", **more: Any) -> adbc_driver_flightsql.dbapi.Connection:
        """A connection of ADBC in the way that most people make one."""
        login = {"username": user, "password": self.keys[user]} if user in self.keys else {}
        return adbc_driver_flightsql.dbapi.connect(self.uri, db_kwargs={**login, **more}, autocommit=True)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


@contextmanager
def serving(folder: Path, more: str = "") -> Iterator[RunningServer]:
    port = free_port()
    keys = {user: f"sqe_{secrets.token_urlsafe(32)}" for user in ("etl", "ana")}
    (folder / "keys.toml").write_text(
        "".join(f'[[keys]]\nkey = "{key}"\nuser = "{user}"\n' for user, key in keys.items())
    )
    (folder / "keys.toml").chmod(0o600)
    (folder / "sqe.toml").write_text(
        f"""
        [coordinator]
        bind_address = "127.0.0.1"
        flight_sql_port = {port}
        trino_http_port = 0
        memory_limit = "1GB"
        spill_dir = "{folder / "spill"}"
        {more}
        [metrics]
        prometheus_port = 0
        [catalogs.iceberg]
        type = "sqlite"
        directory = "{folder / "lake"}"
        [policy]
        engine = "passthrough"
        i_understand_no_enforcement = true
        [[auth.providers]]
        type = "api_key"
        keys_file = "{folder / "keys.toml"}"
        [[auth.providers]]
        type = "anonymous"
        """
    )
    process = subprocess.Popen(
        [str(SERVER), "--config", str(folder / "sqe.toml")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={**os.environ, "SQE_ENGINE__CLASS_ARCHIVE": "use"},
    )
    running = RunningServer(process, port, folder, keys, secure="tls" in more)
    reader = threading.Thread(target=running.read_log, daemon=True)
    reader.start()
    try:
        deadline = time.monotonic() + 300
        while not running.has_said("ready"):
            assert process.poll() is None, "".join(running.raw)
            assert time.monotonic() < deadline, "".join(running.raw)
            time.sleep(0.05)
        yield running
    finally:
        children = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
        process.terminate()
        try:
            process.wait(40)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(20)
        for child in children:
            child.wait(20)
        reader.join(10)
        assert process.stderr is not None
        process.stderr.close()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with serving(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture(scope="session")
def tls_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server whose certificate is its own authority, `certificate.pem` in its folder."""
    folder = tmp_path_factory.mktemp("tls")
    made = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    names = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "certificate.pem")]
    subprocess.run(["openssl", *made.split(), *names, *files], check=True, capture_output=True)
    tls = f'[coordinator.tls]\ncert_file = "{folder / "certificate.pem"}"\nkey_file = "{folder / "key.pem"}"'
    with serving(folder, tls) as running:
        yield running


@pytest.fixture
def connect(server: RunningServer) -> Iterator[Callable[..., adbc_driver_flightsql.dbapi.Connection]]:
    """Opens ADBC connections that end with the test."""
    opened: list[adbc_driver_flightsql.dbapi.Connection] = []

    def open_connection(user: str = "etl", **more: Any) -> adbc_driver_flightsql.dbapi.Connection:
        opened.append(server.connect(user, **more))
        return opened[-1]

    yield open_connection
    for connection in opened:
        connection.close()


@pytest.fixture
def adbc(connect: Callable[..., adbc_driver_flightsql.dbapi.Connection]) -> adbc_driver_flightsql.dbapi.Connection:
    return connect()


@pytest.fixture
def cursor(adbc: adbc_driver_flightsql.dbapi.Connection) -> Iterator[adbc_driver_flightsql.dbapi.Cursor]:
    with adbc.cursor() as cursor:
        yield cursor


@pytest.fixture
def table() -> str:
    """The name of a table that no other test has."""
    return "t_" + secrets.token_hex(6)


# What clients in other languages need


@pytest.fixture(scope="session")
def driver() -> Path:
    """The driver, fetched once into the cache and verified."""
    lock = tomllib.loads((HERE / "clients.lock.toml").read_text())["jar"]
    spark_jars = list((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"))
    (jar,) = fetch_jars(EngineOptions(), spark_jars, lock=[LockedJar(**entry) for entry in lock])
    return jar


@pytest.fixture(scope="session")
def java() -> str:
    """A Java that can compile; the one that SQE brings along cannot."""
    home = os.environ.get("JAVA_HOME")
    candidates = [str(Path(home) / "bin" / "java")] if home else []
    for candidate in [*candidates, *filter(None, [shutil.which("java")])]:
        modules = subprocess.run([candidate, "--list-modules"], capture_output=True, text=True, check=False)
        version = subprocess.run([candidate, "-version"], capture_output=True, text=True, check=False)
        found = re.search(r'version "(\d+)', version.stderr)
        if "jdk.compiler" in modules.stdout and found and int(found[1]) >= _FIRST_JAVA:
            return candidate
    pytest.fail(f"The tests of JDBC need a JDK {_FIRST_JAVA} or later in JAVA_HOME or on the PATH")


@pytest.fixture(scope="session")
def go() -> str:
    """The machine's Go, else one that is fetched."""
    return installed_go() or fetched_go()
