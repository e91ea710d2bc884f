"""What the operator may choose about the engine; every value comes from the server's configuration, none from a client."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

_EMPTY: Mapping[str, str] = MappingProxyType({})


def default_cache_dir(environ: Mapping[str, str] | None = None) -> Path:
    """Return where SQE keeps what it can make again: `$XDG_CACHE_HOME/sqe`, else `~/.cache/sqe`."""
    environ = os.environ if environ is None else environ
    base = environ.get("XDG_CACHE_HOME", "")
    # The XDG specification says that a relative path is to be ignored.
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "sqe"


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """The `[engine]` table and what other tables say about the engine (features §17).

    Sizes are bytes. `settings` are Spark settings of the operator; they cannot change what CONF-1 and ISO pin.
    """

    master: str = "local[*]"
    memory_bytes: int = 1 << 30
    java_home: Path | None = None
    java_options: tuple[str, ...] = ()
    jar_dir: Path | None = None
    jar_mirror: str | None = None
    jar_groups: frozenset[str] = frozenset()
    cache_dir: Path = field(default_factory=default_cache_dir)
    local_dir: Path | None = None  # where shuffles and spills go; a private folder is made inside
    settings: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    class_archive: bool = True
    start_timeout_secs: float = 120.0
    restart_limit: int = 5  # restarts within `restart_window_secs`, then FAILED
    restart_window_secs: float = 600.0
