"""Compile the Java bridge with Eclipse's compiler, which needs no JDK, into one jar, cached by what went into it.

`python -m sqe_core.engine.spark.compiler` compiles it and prints the errors.
"""

from __future__ import annotations

import hashlib
import logging
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from sqe_core.engine.spark.cache import check_private, drafted, forget_old, locked, make_private_folder
from sqe_core.engine.spark.java import Java, run_java
from sqe_core.engine.spark.options import EngineOptions, Report
from sqe_core.spi.errors import StartupError

_log = logging.getLogger(__name__)

COMPILER_JAR = "ecj-"
_COMPILER = "org.eclipse.jdt.internal.compiler.batch.Main"
# `--release` would read a file that only a JDK has. What the two Javas do not share, tests on both find.
_LANGUAGE = ("-source", "17", "-target", "17", "-encoding", "UTF-8", "-g", "-proc:none", "-nowarn")
_BRIDGE = Path(__file__).parent / "bridge"
_JANINO_JARS = ("commons-compiler-", "janino-")
_AWS_JAR = "iceberg-aws-bundle-"
_USES_AWS = b"\nimport software.amazon."
_TIMEOUT_SECS = 120
_KEPT_JARS = 5


def bridge_jar(
    java: Java,
    compiler: Path,
    class_path: Sequence[Path],
    folder: Path,
    report: Report = lambda step, share: None,
) -> Path:
    """Return the compiled bridge, compiling it when its sources, its class path or the Java are new."""
    sources = bridge_sources(class_path)
    jar = folder / f"sqe-bridge-{_fingerprint(java, (compiler, *class_path), sources)}.jar"
    if jar.exists():
        check_private(folder)
        return jar
    make_private_folder(folder)
    with locked(folder / "bridge.lock"):
        if not jar.exists():
            report("Compiling the engine's bridge", None)
            with tempfile.TemporaryDirectory(dir=folder) as classes, drafted(jar) as draft:
                compile_sources(java, compiler, class_path, sources, Path(classes))
                _pack(Path(classes), class_path, draft)
            forget_old(folder, "sqe-bridge-*.jar", kept=_KEPT_JARS)
    return jar


def bridge_sources(class_path: Sequence[Path]) -> Sequence[Path]:
    """Return the sources of the bridge; those that use the AWS SDK only where there is one."""
    sources = sorted(_BRIDGE.rglob("*.java"))
    if any(path.name.startswith(_AWS_JAR) for path in class_path):
        return sources
    return [source for source in sources if _USES_AWS not in source.read_bytes()]


def _fingerprint(java: Java, jars: Sequence[Path], sources: Sequence[Path]) -> str:
    """Name a bridge by everything that its compilation depends on; jars carry their version in their name."""
    digest = hashlib.sha256()
    for text in (str(java.major), *_LANGUAGE, *(path.name for path in jars)):
        digest.update(text.encode() + b"\0")
    for source in sources:
        digest.update(source.relative_to(_BRIDGE).as_posix().encode() + b"\0" + source.read_bytes() + b"\0")
    return digest.hexdigest()[:20]


def compile_sources(
    java: Java, compiler: Path, class_path: Sequence[Path], sources: Sequence[Path], classes: Path
) -> None:
    """Write the class files of `sources`; raise with every error, each with file, line and column."""
    log = classes / "log.xml"
    command = [
        str(java.executable),
        *("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xss4m", "-XX:-UsePerfData"),
        *("-cp", str(compiler), _COMPILER),
        *(*_LANGUAGE, "-log", str(log), "-d", str(classes), "-cp", os.pathsep.join(map(str, class_path))),
        *map(str, sources),
    ]
    try:
        result = run_java(command, _TIMEOUT_SECS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StartupError(f"The Java bridge cannot be compiled with {java.executable}: {error}") from error
    if result.returncode != 0:
        errors = "\n".join(_errors(log)) or result.stdout.strip()
        raise StartupError(f"The Java bridge does not compile:\n{errors or f'exit code {result.returncode}'}")


def _errors(log: Path) -> Iterator[str]:
    """Read the compiler's errors as `file:line:column: what is wrong`."""
    for source in ElementTree.parse(log).iter("source") if log.exists() else ():  # noqa: S314 - of our compiler
        path = Path(source.attrib["path"])
        for problem in source.iter("problem"):
            if problem.attrib["severity"] == "ERROR" and (message := problem.find("message")) is not None:
                before = path.read_text(encoding="utf-8")[: int(problem.attrib["charStart"])]
                column = len(before) - before.rfind("\n")
                yield f"{path}:{problem.attrib['line']}:{column}: {message.attrib['value']}"


def _pack(classes: Path, class_path: Sequence[Path], target: Path) -> None:
    """Write the jar. It also carries Janino's own classes, without the signature they have in Spark's jars.

    Classes of a signed jar are verified by digest one by one and never archived (archive.py), and Janino compiles
    something for nearly every first statement: 0.15 s and 0.4 s of processor time at each start.
    """
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as jar:
        jar.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\r\n\r\n")
        for path in sorted(classes.rglob("*.class")):
            jar.write(path, path.relative_to(classes).as_posix())
        for source in class_path:
            if not source.name.startswith(_JANINO_JARS):
                continue
            with zipfile.ZipFile(source) as original:
                for name in original.namelist():
                    if not name.startswith("META-INF/") and not name.endswith("/") and name not in jar.NameToInfo:
                        jar.writestr(name, original.read(name))


def main() -> int:
    """Compile the bridge with what is installed and print the jar, or the errors."""
    from sqe_core.engine.spark.preparation import prepare_launch

    try:
        plan = prepare_launch(EngineOptions())
    except StartupError as error:
        print(error, file=sys.stderr)
        return 1
    print(plan.class_path[0])
    return 0


if __name__ == "__main__":
    sys.exit(main())
