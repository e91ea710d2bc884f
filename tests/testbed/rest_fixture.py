"""Iceberg's own REST catalog over SQLite, on loopback and without any login: plain protocol semantics and views."""

from __future__ import annotations

import os
import shutil
import tomllib
from pathlib import Path

from testbed.downloads import central_file
from testbed.processes import ServerProcess, free_ports

_HERE = Path(__file__).parent


def fixture_jars() -> list[Path]:
    """Return the verified jars of the server."""
    with (_HERE / "rest_fixture.lock.toml").open("rb") as lock:
        return [central_file(jar["path"], jar["sha256"]) for jar in tomllib.load(lock)["jar"]]


class RestFixture(ServerProcess):
    """A running catalog whose tables lie in a local folder. `ready` waits for it."""

    name = "the REST fixture"

    def __init__(self) -> None:
        super().__init__()
        try:
            (port,) = free_ports(1)
            self.url = f"http://127.0.0.1:{port}"
            self.warehouse = self.folder / "warehouse"
            self.warehouse.mkdir()
            java = shutil.which("java")
            if java is None:
                raise RuntimeError("The REST fixture needs a JDK in the PATH, which compiles its main class")
            self._run(
                [
                    *(java, "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
                    *(
                        "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
                        "-cp",
                        os.pathsep.join(map(str, fixture_jars())),
                    ),
                    *(_HERE / "RestFixture.java", port, "catalog-impl=org.apache.iceberg.jdbc.JdbcCatalog"),
                    *(f"uri=jdbc:sqlite:{self.folder}/catalog.db", "jdbc.schema-version=V1"),
                    f"warehouse=file://{self.warehouse}",
                ]
            )
        except BaseException:
            self.stop()
            raise

    def ready(self) -> RestFixture:
        """Wait until it answers."""
        self.wait_for(f"{self.url}/v1/config")
        return self
