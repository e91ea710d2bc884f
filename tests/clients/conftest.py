"""One `sqe-server` for the official clients of Flight SQL and of Trino, with API keys and anonymous users."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import subprocess
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import adbc_driver_flightsql.dbapi
import pyspark
import pytest
import trino
from clients.go_toolchain import fetched_go, installed_go
from testbed.downloads import central_file
from testbed.making import each_ended
from testbed.processes import free_ports
from testbed.sqe_server import NO_POLICY, SqeServer, api_keys

from sqe_core.engine.spark.jars import LockedJar, fetch_jars
from sqe_core.engine.spark.options import EngineOptions
from sqe_http.testing import make_certificate

HERE = Path(__file__).parent
_FIRST_JAVA = 17  # the driver needs 11; the questions are written for this


class RunningServer(SqeServer):
    """A server, and who may log in."""

    def __init__(self, folder: Path, more: str = "") -> None:
        self.keys, provider = api_keys(folder, "etl", "ana", "root")
        self.secure = "tls" in more
        lake = f'[catalogs.iceberg]\ntype = "sqlite"\ndirectory = "{folder / "lake"}"\n'
        rights = '[auth.role_mappings]\nroot = ["service_admin"]\n'
        (self.trino_port,) = free_ports(1)
        super().__init__(
            folder,
            f'{more}\n{lake}{NO_POLICY}{rights}{provider}[[auth.providers]]\ntype = "anonymous"\n',
            SQE_COORDINATOR__TRINO_HTTP_PORT=str(self.trino_port),
        )

    @property
    def uri(self) -> str:
        return super().uri.replace("grpc:", "grpc+tls:" if self.secure else "grpc:")

    def connect(self, user: str = "etl", **more: Any) -> adbc_driver_flightsql.dbapi.Connection:
        """A connection of ADBC in the way that most people make one."""
        login = {"username": user, "password": self.keys[user]} if user in self.keys else {}
        return adbc_driver_flightsql.dbapi.connect(self.uri, db_kwargs={**login, **more}, autocommit=True)

    @property
    def authority(self) -> Path:
        """Who vouches for its certificate."""
        return self.folder / "localhost.pem"

    def connect_trino(self, user: str | None = "etl", **more: Any) -> trino.dbapi.Connection:
        """A connection of Trino's Python client, which sends passwords over TLS only; None is nobody."""
        if user is not None:
            more = {"auth": trino.auth.BasicAuthentication(user, self.keys.get(user, "sqe_wrong")), **more}
        place = {"catalog": "iceberg", "schema": "default", "user": user or "me"}
        address = f"https://localhost:{self.trino_port}"
        return trino.dbapi.connect(address, **{**place, "verify": str(self.authority), **more})


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with RunningServer(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture(scope="session")
def tls_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server whose certificate is its own authority."""
    folder = tmp_path_factory.mktemp("tls")
    certificate, key = make_certificate(folder, "DNS:localhost", "IP:127.0.0.1")
    tls = f'[coordinator.tls]\ncert_file = "{certificate}"\nkey_file = "{key}"'
    with RunningServer(folder, tls) as running:
        yield running


@pytest.fixture
def connect(server: RunningServer) -> Iterator[Callable[..., adbc_driver_flightsql.dbapi.Connection]]:
    """Opens ADBC connections that end with the test."""
    yield from each_ended(lambda user="etl", **more: server.connect(user, **more))


@pytest.fixture
def adbc(connect: Callable[..., adbc_driver_flightsql.dbapi.Connection]) -> adbc_driver_flightsql.dbapi.Connection:
    return connect()


@pytest.fixture
def cursor(adbc: adbc_driver_flightsql.dbapi.Connection) -> Iterator[adbc_driver_flightsql.dbapi.Cursor]:
    with adbc.cursor() as cursor:
        yield cursor


@pytest.fixture
def connect_trino(tls_server: RunningServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    """Opens connections of Trino's Python client that end with the test."""
    # It counts for `requests` more than what a client says.
    monkeypatch.delenv("REQUESTS_CA_BUNDLE", raising=False)
    monkeypatch.delenv("CURL_CA_BUNDLE", raising=False)
    yield from each_ended(tls_server.connect_trino)


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


def trino_jar(file: str) -> Path:
    """A client of Trino that is one file, fetched once into the cache and verified."""
    lock = tomllib.loads((HERE / "clients.lock.toml").read_text())["trino"]
    (sha256,) = [entry["sha256"] for entry in lock if entry["file"] == file]
    name, version = file.split("-executable")[0].removesuffix(".jar").rsplit("-", 1)
    return central_file(f"io/trino/{name}/{version}/{file}", sha256)


@pytest.fixture(scope="session")
def trino_cli() -> Path:
    return trino_jar("trino-cli-476-executable.jar")


@pytest.fixture(scope="session")
def classes(java: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The questions of the folder java, compiled."""
    folder = tmp_path_factory.mktemp("classes")
    sources = [str(path) for path in sorted((HERE / "java").rglob("*.java"))]
    compiler = [java, "-m", "jdk.compiler/com.sun.tools.javac.Main", "-Werror", "-Xlint:all"]
    command = [*compiler, "-cp", str(trino_jar("trino-jdbc-483.jar")), "-d", str(folder), *sources]
    made = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert made.returncode == 0, made.stdout + made.stderr
    return folder


@pytest.fixture(scope="session")
def go() -> str:
    """The machine's Go, else one that is fetched."""
    return installed_go() or fetched_go()
