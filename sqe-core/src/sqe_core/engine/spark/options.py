"""What the operator may choose about the engine; nothing of it ever comes from a client."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from types import MappingProxyType

from sqe_core.spi.catalog import Jar

_EMPTY: Mapping[str, str] = MappingProxyType({})
Report = Callable[[str, float | None], None]
"""Is told the steps of a preparation, and how far each is, if that is known."""


class ClassArchive(Enum):
    """What to do with the archive of loaded classes, which more than halves the time of a start."""

    MAKE = "make"  # use it; when there is none, make one in the background after the first run: what a product wants
    USE = "use"  # use it if it is there: what a test wants
    OFF = "off"


def default_cache_dir(environ: Mapping[str, str] | None = None) -> Path:
    """Return where SQE keeps what it can make again: `$XDG_CACHE_HOME/sqe`, else `~/.cache/sqe`."""
    environ = os.environ if environ is None else environ
    base = environ.get("XDG_CACHE_HOME", "")
    # The XDG specification says that a relative path is to be ignored.
    if os.path.isabs(base):
        return Path(base) / "sqe"
    home = home_dir()
    # A user id without a name and without HOME, as containers have it.
    return home / ".cache" / "sqe" if home else Path(tempfile.gettempdir()) / f"sqe-cache-{os.geteuid()}"


def home_dir() -> Path | None:
    try:
        return Path.home()
    except RuntimeError:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """The `[engine]` table and what other tables say about the engine.

    Attributes:
        master: where tasks run, as Spark writes it.
        memory_bytes: the heap of the engine's JVM.
        java_home: the Java to use; without it, `find_java` looks for one.
        java_options: further arguments of the JVM.
        jar_dir: a folder that holds the jars of the lock file; nothing is fetched for those.
        jar_mirror: a Maven repository to fetch from instead of the default one.
        jar_groups: jars beyond the base: `aws`, `postgresql`.
        plugin_jars: jars that plugins bring.
        cache_dir: fetched jars, the compiled bridge, class archives and the engine's logs.
        local_dir: where shuffles, spills and temporary files go, in a private folder that is removed at the end.
        settings: Spark settings; those that CONF-1 and ISO fix are refused.
        environment: variables for the JVM beside the few that it inherits. No secrets: any code there can read them.
        auth_secret: what the processes of a cluster prove to each other (ISO-11).
        class_archive: whether starts may use and make an archive of classes.
        start_timeout_secs: how long the JVM may take until it answers.
        stuck_secs: how long cancelled statements may hold half of the JVM's threads before it is replaced.
        restart_limit: how many times within `restart_window_secs` a lost JVM is replaced before the engine gives up.
    """

    master: str = "local[*]"
    memory_bytes: int = 1 << 30
    java_home: Path | None = None
    java_options: tuple[str, ...] = ()
    jar_dir: Path | None = None
    jar_mirror: str | None = None
    jar_groups: frozenset[str] = frozenset()
    plugin_jars: tuple[Jar, ...] = ()
    cache_dir: Path = field(default_factory=default_cache_dir)
    local_dir: Path | None = None
    settings: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    environment: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    auth_secret: str | None = field(default=None, repr=False)
    class_archive: ClassArchive = ClassArchive.USE
    start_timeout_secs: float = 120.0
    stuck_secs: float = 30.0
    restart_limit: int = 5
    restart_window_secs: float = 600.0
