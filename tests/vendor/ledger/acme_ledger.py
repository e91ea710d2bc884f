"""A lineage sink: `[[lineage.sinks]]` with `type = "ledger"` keeps every event in a SQLite file."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqe_core.spi import (
    LineageEvent,
    LineageSink,
    LineageSinkFactory,
    PluginContext,
    SqePlugin,
    StartupContext,
    StartupError,
    hookimpl,
    required,
    setting,
    to_run_event,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerConfig:
    """The keys of a sink of `type = "ledger"`."""

    path: Path = required("the SQLite file; made when it is missing")
    timeout_secs: float = setting(5, "how long a locked file is waited for", minimum=0)


class Ledger(LineageSink):
    """One row for each event."""

    def __init__(self, config: LedgerConfig, *, rehearsal: bool = False) -> None:
        self._lock = threading.Lock()
        try:
            path = ":memory:" if rehearsal else config.path
            self._file = sqlite3.connect(path, timeout=config.timeout_secs, check_same_thread=False)
            with self._file:
                self._file.execute("CREATE TABLE IF NOT EXISTS events (run TEXT, type TEXT, document TEXT)")
        except sqlite3.Error as error:
            raise StartupError(f"The ledger {config.path} cannot be opened: {error}") from error

    def emit(self, event: LineageEvent) -> None:
        """Write the event; the token of its user stays out."""
        row = (event.run_id, event.type.value, json.dumps(to_run_event(event), ensure_ascii=False))
        with self._lock, self._file:
            self._file.execute("INSERT INTO events VALUES (?, ?, ?)", row)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class LedgerFactory(LineageSinkFactory[LedgerConfig]):
    """Makes sinks of `type = "ledger"`."""

    kind = "ledger"
    config_type = LedgerConfig

    def create(self, name: str, config: LedgerConfig, context: PluginContext) -> Ledger:
        """Open the file."""
        return Ledger(config, rehearsal=context.rehearsal)


class LedgerPlugin(SqePlugin):
    """Registers it."""

    @hookimpl
    def sqe_provide_lineage_sinks(self, context: StartupContext) -> Sequence[LineageSinkFactory[Any]]:
        """Contribute `ledger`."""
        return (LedgerFactory(),)
