"""Lineage events: made of query events, and given to each sink by a thread of its own."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from sqe_core.spi.events import ColumnSource, QueryEvent, QueryPhase
from sqe_core.spi.factory import Metrics
from sqe_core.spi.lineage import (
    ColumnLineage,
    Dataset,
    InputField,
    LineageEvent,
    LineageEventType,
    LineageJob,
    LineageSink,
    Transformation,
)
from sqe_core.spi.names import ObjectName
from sqe_core.spi.policy import Action, ResourceType

_log = logging.getLogger(__name__)

_STOP_SECS = 5.0
# A sink that drops says so again after this long.
_SILENCE_SECS = 60.0
_DEFAULT_PRODUCER = "https://pypi.org/project/sqe-core/"
_ENDS = {
    QueryPhase.FINISHED: LineageEventType.COMPLETE,
    QueryPhase.FAILED: LineageEventType.FAIL,
    QueryPhase.CANCELLED: LineageEventType.ABORT,
}
_READS = frozenset({Action.SELECT, Action.DESCRIBE})
_CHANGES: dict[Action, Literal["CREATE", "ALTER", "DROP", "TRUNCATE"]] = {
    Action.CREATE: "CREATE",
    Action.CREATE_VIEW: "CREATE",
    Action.ALTER: "ALTER",
    Action.ALTER_VIEW: "ALTER",
    Action.DROP: "DROP",
    Action.DROP_VIEW: "DROP",
    Action.TRUNCATE: "TRUNCATE",
}

DatasetOf = Callable[[ObjectName], tuple[str, str]]
"""Returns namespace and name of a table's dataset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineageOptions:
    """What every event carries, and which there are."""

    job_namespace: str = "sqe"
    producer: str = ""
    emit_selects: bool = False
    capacity: int = 10_000


class Lineage:
    """Makes lineage events of query events, for sinks that may be slow, fail, or hang: nobody waits for them.

    Args:
        sinks: the sinks by name; closed by `stop`.
        dataset_of: how tables are called there.
        options: what the configuration says.
        metrics: where dropped and failed events are counted.
    """

    def __init__(
        self,
        sinks: Sequence[tuple[str, LineageSink]],
        *,
        dataset_of: DatasetOf,
        options: LineageOptions,
        metrics: Metrics,
    ) -> None:
        self._dataset_of = dataset_of
        self._options = options
        self._lock = threading.Lock()
        # Statements that run: when they were received, and whether their START was told.
        self._running: dict[str, tuple[datetime, bool]] = {}
        self._feeds = [_Feed(name, sink, options.capacity, metrics) for name, sink in sinks]

    def start(self) -> None:
        for feed in self._feeds:
            feed.start()

    def stop(self) -> None:
        """Deliver what waits, for a few seconds at most over all sinks, and close them."""
        until = time.monotonic() + _STOP_SECS
        for feed in self._feeds:
            feed.end()
        for feed in self._feeds:
            feed.join(max(0.0, until - time.monotonic()))

    def observe(self, event: QueryEvent) -> None:
        """Take a query event. Returns at once."""
        with self._lock:
            if event.phase is QueryPhase.RECEIVED:
                self._running[event.query_id] = (event.time, False)
                return
            received, started = self._running.get(event.query_id, (event.time, False))
            if event.phase.final:
                self._running.pop(event.query_id, None)
            else:
                self._running[event.query_id] = (received, True)
        inputs, outputs = self._datasets(event)
        if not outputs and not (self._options.emit_selects and event.statement_kind == "query"):
            return
        if not started:
            # A statement that failed before it ran has begun too.
            self._give(self._event(LineageEventType.START, event, received, inputs, outputs, at=received))
        if event.phase.final:
            self._give(self._event(_ENDS[event.phase], event, received, inputs, outputs, at=event.time))

    def _give(self, event: LineageEvent) -> None:
        for feed in self._feeds:
            feed.put(event)

    def _event(
        self,
        kind: LineageEventType,
        event: QueryEvent,
        received: datetime,
        inputs: tuple[Dataset, ...],
        outputs: tuple[Dataset, ...],
        *,
        at: datetime,
    ) -> LineageEvent:
        name = f"{event.statement_kind or 'unknown'}:{event.sql_hash}"
        return LineageEvent(
            type=kind,
            time=at,
            run_id=event.query_id,
            job=LineageJob(namespace=self._options.job_namespace, name=name, sql=event.sql),
            producer=self._options.producer or _DEFAULT_PRODUCER,
            inputs=inputs,
            outputs=outputs,
            nominal_time=received,
            error_message=event.error_message if kind is LineageEventType.FAIL else None,
        )

    def _datasets(self, event: QueryEvent) -> tuple[tuple[Dataset, ...], tuple[Dataset, ...]]:
        """What is read and what is written; each object once on each side."""
        inputs: dict[ObjectName, Dataset] = {}
        outputs: dict[ObjectName, Dataset] = {}
        for each in event.objects:
            if not isinstance(each.name, ObjectName) or each.type is ResourceType.SCHEMA:
                continue
            if each.action in _READS:
                inputs.setdefault(each.name, self._dataset(each.name, None))
            else:
                outputs.setdefault(each.name, self._dataset(each.name, _CHANGES.get(each.action)))
        # Whoever drops a table needs the right to read it, and reads nothing.
        read = (
            dataset for name, dataset in inputs.items() if name not in outputs or not outputs[name].lifecycle_change
        )
        columns = tuple(
            ColumnLineage(column=column, inputs=self._fields(sources, "DIRECT"))
            for column, sources in event.columns.items()
        )
        conditions = self._fields(event.conditions, "INDIRECT")
        return tuple(read), tuple(
            replace(each, column_lineage=columns, dataset_inputs=conditions) for each in outputs.values()
        )

    def _fields(self, sources: Iterable[ColumnSource], type: Literal["DIRECT", "INDIRECT"]) -> tuple[InputField, ...]:
        """Return each column once, with all that is done with it."""
        found: dict[tuple[ObjectName, str], list[Transformation]] = {}
        for each in sources:
            found.setdefault((each.name, each.column), []).append(Transformation(type=type, subtype=each.kind))
        return tuple(
            InputField(
                dataset_namespace=namespace, dataset_name=called, column=column, transformations=tuple(transformations)
            )
            for (name, column), transformations in found.items()
            for namespace, called in (self._dataset_of(name),)
        )

    def _dataset(self, name: ObjectName, change: Literal["CREATE", "ALTER", "DROP", "TRUNCATE"] | None) -> Dataset:
        namespace, called = self._dataset_of(name)
        return Dataset(namespace=namespace, name=called, source_name=name.catalog, lifecycle_change=change)


class _Feed:
    """One sink, its bounded queue, and the thread that empties it."""

    def __init__(self, name: str, sink: LineageSink, capacity: int, metrics: Metrics) -> None:
        self._name = name
        self._sink = sink
        self._capacity = capacity
        self._metrics = metrics
        self._waiting: deque[LineageEvent] = deque()
        self._changed = threading.Condition()
        self._ended = False
        self._dropped = 0
        self._said_at = float("-inf")
        self._thread = threading.Thread(target=self._run, name=f"sqe-lineage-{name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def put(self, event: LineageEvent) -> None:
        """Keep an event, or drop it when too many wait."""
        with self._changed:
            if len(self._waiting) < self._capacity and not self._ended:
                self._waiting.append(event)
                self._changed.notify()
                return
            self._dropped += 1
            now = time.monotonic()
            tell = now - self._said_at >= _SILENCE_SECS
            if tell:
                self._said_at = now
        self._metrics.count("sqe_lineage_dropped_events_total")
        if tell:
            _log.warning("lineage sink %s is too slow: %d events were dropped so far", self._name, self._dropped)

    def end(self) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify()

    def join(self, secs: float) -> None:
        """Wait until everything was delivered and the sink is closed, but not longer."""
        if not self._thread.ident:
            self._sink.close()
            return
        self._thread.join(secs)
        if self._thread.is_alive():
            with self._changed:
                lost = len(self._waiting)
                self._waiting.clear()
            self._metrics.count("sqe_lineage_dropped_events_total", lost)
            _log.error("lineage sink %s does not end: %d events were dropped", self._name, lost)

    def _run(self) -> None:
        self._attempt("cannot deliver", self._sink.check)
        while (event := self._next()) is not None:
            self._attempt("failed to deliver an event", lambda event=event: self._sink.emit(event))  # type: ignore[misc]
        self._attempt("failed to close", self._sink.close)

    def _next(self) -> LineageEvent | None:
        with self._changed:
            while not self._waiting and not self._ended:
                self._changed.wait()
            return self._waiting.popleft() if self._waiting else None

    def _attempt(self, what: str, act: Callable[[], None]) -> None:
        try:
            act()
        except Exception as error:  # noqa: BLE001 - a plugin, whose failures concern no statement
            # Its text may hold an address with a login, or data.
            _log.warning("lineage sink %s %s: %s", self._name, what, type(error).__name__)
            self._metrics.count("sqe_lineage_sink_errors_total", labels={"sink": self._name})
