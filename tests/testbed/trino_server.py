"""A real Trino 476 beside an Iceberg REST catalog, to record what it answers. tests/trino/record.py starts it."""

from __future__ import annotations

import fcntl
import os
import shutil
import tarfile
import urllib.request
from pathlib import Path

from testbed.downloads import cache_folder, central_file
from testbed.processes import ServerProcess, free_ports

from sqe_core.engine.spark.java import inspect_java

VERSION = "476"
JAVA = 24
_ARCHIVE = f"io/trino/trino-server/{VERSION}/trino-server-{VERSION}.tar.gz"
_SHA256 = "cfd5accde17e8ebd251eeeb78aed1f490e77bb3a164d95a0f454bf8a7c1cbd3f"
# Everything that lists functions, and the one connector.
_PLUGINS = frozenset(("iceberg", "geospatial", "ml", "teradata-functions"))
_JVM = (
    *("-Xms512m", "-Xmx3G", "-XX:+UseG1GC", "-XX:+ExitOnOutOfMemoryError", "-XX:ReservedCodeCacheSize=256M"),
    *("-Djdk.attach.allowAttachSelf=true", "-Dfile.encoding=UTF-8", "-Duser.timezone=UTC"),
    *("--sun-misc-unsafe-memory-access=allow", "--enable-native-access=ALL-UNNAMED"),
)


def trino_home() -> Path:
    """Return the unpacked server; several processes may ask at once."""
    home = cache_folder() / f"trino-{VERSION}"
    with home.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not home.exists():
            draft = home.with_suffix(".draft")
            shutil.rmtree(draft, ignore_errors=True)
            with tarfile.open(central_file(_ARCHIVE, _SHA256)) as archive:
                archive.extractall(draft, filter="data")
            (unpacked,) = draft.iterdir()
            # Jars of one plugin are links to those of another: unpacked as a whole, then thinned out.
            for plugin in (unpacked / "plugin").iterdir():
                if plugin.name not in _PLUGINS:
                    shutil.rmtree(plugin)
            os.replace(unpacked, home)
            shutil.rmtree(draft)
    return home


class TrinoServer(ServerProcess):
    """A running Trino whose catalog `lake` is that of a REST server with local files. `ready` waits for it.

    Args:
        java_home: a Java 24 or newer; JAVA_HOME, where it is not given.
        catalog_url: the REST catalog.
    """

    name = "Trino"

    def __init__(self, catalog_url: str, java_home: Path | None = None) -> None:
        super().__init__()
        try:
            java = inspect_java("java_home", java_home or Path(os.environ.get("JAVA_HOME", "")))
            if java.major < JAVA:
                raise RuntimeError(f"Trino {VERSION} needs a Java {JAVA} or newer, and this is {java}")
            (self.port,) = free_ports(1)
            self._write(catalog_url)
            home = trino_home()
            settings = {"node.environment": "testbed", "node.id": "testbed", "node.data-dir": self.folder / "data"}
            settings |= {"node.bind-ip": "127.0.0.1", "node.internal-address": "127.0.0.1"}
            settings |= {"config": "config.properties", "log.levels-file": "log.properties"}
            options = [f"-D{name}={value}" for name, value in settings.items()]
            self._run([java.executable, *_JVM, *options, "-cp", f"{home}/lib/*", "io.trino.server.TrinoServer"])
        except BaseException:
            self.stop()
            raise

    def _write(self, catalog_url: str) -> None:
        files = {
            "config.properties": (
                "coordinator=true\nnode-scheduler.include-coordinator=true\nweb-ui.enabled=false\n"
                f"http-server.http.port={self.port}\ndiscovery.uri=http://127.0.0.1:{self.port}\n"
                f"plugin.dir={trino_home()}/plugin\ncatalog.config-dir={self.folder}/catalogs\n"
                "query.max-memory=1GB\nquery.max-memory-per-node=1GB\nmemory.heap-headroom-per-node=1GB\n"
            ),
            "log.properties": "io.trino=WARN\n",
            "catalogs/lake.properties": (
                f"connector.name=iceberg\niceberg.catalog.type=rest\niceberg.rest-catalog.uri={catalog_url}\n"
                "fs.hadoop.enabled=true\n"
            ),
        }
        for name, text in files.items():
            file = self.folder / name
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)

    def ready(self) -> TrinoServer:
        """Wait until it takes statements."""

        def started() -> bool:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/v1/info", timeout=5) as answer:
                return b'"starting":false' in answer.read()

        self.until(started, 180)
        return self
