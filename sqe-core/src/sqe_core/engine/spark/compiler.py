"""Compile the Java bridge with the Janino that Spark ships, into one jar that is cached by what went into it."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from sqe_core.engine.spark.java import Java, find_java
from sqe_core.spi.errors import StartupError

# Runs the `main` of a class body that it compiles first: Janino's only usable entry point for a command line.
_RUNNER = "org.codehaus.commons.compiler.samples.ClassBodyDemo"
_BRIDGE = Path(__file__).parent / "bridge"
_DRIVER = _BRIDGE / "compile.janino"


def spark_home() -> Path:
    """Return the folder of the pyspark wheel without importing it."""
    import importlib.util

    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise StartupError("The pyspark package is not installed", hint="pip install 'pyspark==4.1.*'")
    return Path(spec.origin).parent


def bridge_jar(java: Java, class_path: Sequence[Path], folder: Path) -> Path:
    """Return the compiled bridge, compiling it if its sources or its class path are new."""
    sources = sorted(_BRIDGE.glob("*.java"))
    digest = hashlib.sha256(f"{java.major}".encode() + _DRIVER.read_bytes())
    for path in class_path:
        digest.update(path.name.encode())
    for source in sources:
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    jar = folder / f"sqe-bridge-{digest.hexdigest()[:20]}.jar"
    if jar.exists():
        return jar
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        classes = Path(scratch) / "classes"
        classes.mkdir()
        if sources:
            _compile(java, class_path, sources, classes)
        draft = Path(scratch) / "bridge.jar"
        with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\n")
            for path in sorted(classes.rglob("*.class")):
                archive.write(path, str(path.relative_to(classes)))
        os.replace(draft, jar)
    return jar


def _compile(java: Java, class_path: Sequence[Path], sources: Sequence[Path], classes: Path) -> None:
    janino = [path for path in class_path if path.name.startswith(("janino-", "commons-compiler-"))]
    command = [
        str(java.executable),
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseSerialGC",
        "-cp",
        os.pathsep.join(map(str, janino)),
        *(_RUNNER, f"@{_DRIVER}"),
        *(str(classes), os.pathsep.join(map(str, class_path))),
        *map(str, sources),
    ]
    result = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    output = result.stdout + result.stderr
    if result.returncode != 0 or output.strip():
        raise StartupError(f"The Java bridge does not compile:\n{_readable(output)}")


def _readable(output: str) -> str:
    return re.sub(r"File '([^']+)', Line (\d+), Column (\d+): ", r"\1:\2:\3: ", output.strip())


def main() -> int:
    """Compile the bridge with what is installed and print the errors."""
    from sqe_core.engine.spark.engine import prepare_class_path
    from sqe_core.engine.spark.options import EngineOptions

    try:
        jars = prepare_class_path(EngineOptions(), find_java(None))
    except StartupError as error:
        print(error, file=sys.stderr)
        return 1
    print(jars[-1])
    return 0


if __name__ == "__main__":
    sys.exit(main())
