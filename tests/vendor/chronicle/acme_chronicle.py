"""An observer: a line for each statement that ended, written by a thread of its own."""

from __future__ import annotations

import json
import queue
import threading
from dataclasses import asdict, dataclass
from pathlib import Path

from sqe_core.spi import PluginContext, QueryEvent, SqePlugin, hookimpl, required, setting


@dataclass(frozen=True, slots=True, kw_only=True)
class ChronicleConfig:
    """`[plugins.acme-chronicle]`."""

    path: Path = required("the file that is appended to")
    most_waiting: int = setting(10_000, "events that wait at most", minimum=1)


class ChroniclePlugin(SqePlugin):
    """Writes what happened. Statements never wait for the disk: what does not fit is counted, and dropped."""

    config_type = ChronicleConfig

    def start(self, config: ChronicleConfig, context: PluginContext) -> None:
        """Begin to write."""
        self._metrics = context.metrics
        self._waiting: queue.Queue[QueryEvent | None] = queue.Queue(config.most_waiting)
        self._writer = threading.Thread(target=self._write, args=(config.path,), daemon=True)
        if not context.rehearsal:
            self._writer.start()

    @hookimpl
    def sqe_on_query_event(self, event: QueryEvent) -> None:
        """Put the event into the queue."""
        try:
            self._waiting.put_nowait(event)
        except queue.Full:
            self._metrics.count("sqe_chronicle_dropped_total")

    def stop(self) -> None:
        """Write what waits."""
        if self._writer.is_alive():
            self._waiting.put(None)
            self._writer.join()

    def _write(self, path: Path) -> None:
        with path.open("a", encoding="utf-8") as file:
            while (event := self._waiting.get()) is not None:
                file.write(json.dumps(_line(event), ensure_ascii=False) + "\n")


def _line(event: QueryEvent) -> dict[str, object]:
    return {
        "query_id": event.query_id,
        "phase": event.phase.value,
        "user": event.principal.username,
        "source": event.source,
        "trace_id": event.trace_id,
        "kind": event.statement_kind,
        "sql": event.sql,
        "error": event.error_code.name if event.error_code else None,
        **asdict(event.timings),
        **asdict(event.counts),
    }
