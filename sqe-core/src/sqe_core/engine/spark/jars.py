"""The jars that SQE adds to Spark's own: fetched once, verified at every start."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from sqe_core.engine.spark.options import EngineOptions
from sqe_core.spi.errors import StartupError

_LOCK_FILE = Path(__file__).with_name("jars.lock.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedJar:
    """One line of the lock file."""

    group: str
    artifact: str
    size: int
    sha256: str

    @property
    def file_name(self) -> str:
        _, name, version = self.artifact.split(":")
        return f"{name}-{version}.jar"


def read_lock() -> tuple[LockedJar, ...]:
    """Return every jar that SQE knows."""
    with _LOCK_FILE.open("rb") as file:
        return tuple(LockedJar(**entry) for entry in tomllib.load(file)["jar"])


def locate_jars(options: EngineOptions) -> list[Path]:
    """Return the files of the wanted groups."""
    wanted = {"base", *options.jar_groups}
    found = []
    for jar in read_lock():
        if jar.group not in wanted:
            continue
        for folder in filter(None, (options.jar_dir, options.cache_dir / "jars")):
            if (folder / jar.file_name).exists():
                found.append(folder / jar.file_name)
                break
        else:
            raise StartupError(f"{jar.file_name} is missing")
    return found
