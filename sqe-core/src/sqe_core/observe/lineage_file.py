"""The lineage sink `file`: OpenLineage events as JSON lines."""

from __future__ import annotations

import json
import os
import threading
from dataclasses import dataclass
from pathlib import Path

from sqe_core.spi.errors import StartupError
from sqe_core.spi.factory import PluginContext, required
from sqe_core.spi.lineage import LineageEvent, LineageSink, LineageSinkFactory
from sqe_core.spi.openlineage import to_run_event


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLineageConfig:
    file_path: Path = required("the file that events are appended to; its folder must exist")


class FileLineageSink(LineageSink):
    """Appends one line per event. Several sinks of one process may share a file: a line is written at once."""

    def __init__(self, config: FileLineageConfig) -> None:
        self._path = config.file_path
        self._lock = threading.Lock()
        try:
            # 0o600: statements and table names are nobody else's business.
            self._path.touch(mode=0o600, exist_ok=True)
            self._file = self._path.open("a", encoding="utf-8")
        except OSError as exc:
            raise StartupError(f"The lineage file {self._path} cannot be written: {exc.strerror}") from exc

    def emit(self, event: LineageEvent) -> None:
        line = json.dumps(to_run_event(event), ensure_ascii=False, separators=(",", ":"))
        with self._lock:
            self._file.write(line + "\n")
            self._file.flush()

    def close(self) -> None:
        with self._lock:
            self._file.close()


class FileLineageFactory(LineageSinkFactory[FileLineageConfig]):
    kind = "file"
    config_type = FileLineageConfig

    def create(self, name: str, config: FileLineageConfig, context: PluginContext) -> LineageSink:
        return _Rehearsal(config) if context.rehearsal else FileLineageSink(config)


class _Rehearsal(LineageSink):
    """Sees that the file could be written."""

    def __init__(self, config: FileLineageConfig) -> None:
        place = config.file_path if config.file_path.exists() else config.file_path.absolute().parent
        if not os.access(place, os.W_OK):
            raise StartupError(f"The lineage file {config.file_path} cannot be written")

    def emit(self, event: LineageEvent) -> None:
        """Deliver nothing."""
