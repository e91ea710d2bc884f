"""Start the engine's JVM and learn where its gateway listens."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from sqe_core.engine.spark.java import Java
from sqe_core.spi.errors import StartupError

# Spark's JavaModuleOptions, but for the vector module, which the bundled runtime does not have (Spark only warns), and
# for the switch that turns off host name checks in every TLS client that is built on Netty.
_OPENED_PACKAGES = (
    "java.base/java.lang",
    "java.base/java.lang.invoke",
    "java.base/java.lang.reflect",
    "java.base/java.io",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "java.base/sun.nio.cs",
    "java.base/sun.security.action",
    "java.base/sun.util.calendar",
    "java.security.jgss/sun.security.krb5",
)
_MODULE_FLAGS = (
    *(f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED_PACKAGES),
    "--enable-native-access=ALL-UNNAMED",
    "-Djdk.reflect.useDirectMethodHandle=false",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
)
_INHERITED = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TMPDIR", "TZ")


class EngineProcess:
    """One JVM with a gateway."""

    def __init__(
        self,
        *,
        java: Java,
        spark_home: Path,
        class_path: Sequence[Path],
        settings: Mapping[str, str],
        memory_bytes: int,
        master: str,
        timeout_secs: float,
    ) -> None:
        self.run_dir = Path(tempfile.mkdtemp(prefix="sqe-engine-"))
        connection = self.run_dir / "connection"
        properties = self.run_dir / "spark.properties"
        properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        environment = {key: os.environ[key] for key in _INHERITED if key in os.environ}
        environment |= {
            "SPARK_HOME": str(spark_home),
            "_PYSPARK_DRIVER_CONN_INFO_PATH": str(connection),
            "PYSPARK_PIN_THREAD": "true",
        }
        command = [
            str(java.executable),
            f"-Xmx{memory_bytes >> 20}m",
            "-XX:+UseParallelGC",
            *_MODULE_FLAGS,
            "-Duser.timezone=UTC",
            "-Djava.awt.headless=true",
            "-cp",
            os.pathsep.join(map(str, class_path)),
            "org.apache.spark.deploy.SparkSubmit",
            *("--master", master, "--properties-file", str(properties)),
            *("--class", "org.apache.spark.api.python.PythonGatewayServer", "pyspark-shell"),
        ]
        self.log_file = self.run_dir / "engine.log"
        with self.log_file.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=environment,
                cwd=self.run_dir,
                start_new_session=True,
            )
        deadline = time.monotonic() + timeout_secs
        while not connection.exists():
            if self._process.poll() is not None:
                raise StartupError(f"The engine's Java ended at once:\n{self.log_file.read_text()[-2000:]}")
            if time.monotonic() > deadline:
                self.stop()
                raise StartupError("The engine's Java did not start in time")
            time.sleep(0.01)
        content = connection.read_bytes()
        self.port, length = struct.unpack(">ii", content[:8])
        self.secret = content[8 : 8 + length].decode()

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        return self._process.pid

    def stop(self) -> None:
        """End the JVM; it leaves by itself when its standard input closes."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self.run_dir, ignore_errors=True)
