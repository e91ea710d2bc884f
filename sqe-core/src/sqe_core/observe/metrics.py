"""What is counted, in the format that Prometheus scrapes.

Everybody counts through `sqe_core.spi.factory.Metrics`: the query pipeline, logins, sessions, protocols, plugins. This
is the object behind it. Nothing is global: one registry for each server. Counting never fails a statement, and the
number of series stays bounded whatever the labels hold (OBS-6).
"""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.exposition import choose_encoder

from sqe_http.listener import HttpAnswer, HttpRequest, Route

_log = logging.getLogger(__name__)

OTHER = "other"
"""What stands for every further value of a label that has too many."""

_MAX_SERIES = 500
_MAX_METRICS = 500
_MAX_LABEL_LENGTH = 64
_NAME = re.compile(r"sqe_[a-z][a-z0-9_]{0,80}")
_NO_LABELS: Mapping[str, str] = MappingProxyType({})
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800)

MetricKind = Literal["counter", "gauge", "histogram"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricDescription:
    """A metric of the core; those of plugins describe themselves at their first use."""

    name: str
    kind: MetricKind
    text: str
    labels: tuple[str, ...] = ()


def _counter(name: str, text: str, *labels: str) -> MetricDescription:
    return MetricDescription(name=name, kind="counter", text=text, labels=labels)


def _gauge(name: str, text: str, *labels: str) -> MetricDescription:
    return MetricDescription(name=name, kind="gauge", text=text, labels=labels)


def _seconds(name: str, text: str, *labels: str) -> MetricDescription:
    return MetricDescription(name=name, kind="histogram", text=text, labels=labels)


CORE_METRICS: tuple[MetricDescription, ...] = (
    _counter(
        "sqe_query_count_total",
        "Statements that ended, by outcome (success, failure, cancelled).",
        "status",
        "statement_type",
        "error_code",
    ),
    _counter("sqe_protocol_query_count_total", "Statements that ended, by protocol.", "protocol", "status"),
    _seconds("sqe_query_duration_seconds", "From admission to the end of the result.", "statement_type"),
    _seconds("sqe_time_to_first_row_seconds", "From admission to the first batch of a result."),
    _counter("sqe_query_refused_total", "Statements that found no slot, by reason.", "reason"),
    _counter("sqe_rate_limited_total", "Requests above [rate_limit], by bound (user, all, metadata, login).", "limit"),
    _counter("sqe_slow_query_count_total", "Statements above [query] slow_query_threshold_secs."),
    _counter("sqe_rows_returned_total", "Rows that clients received."),
    _counter("sqe_bytes_returned_total", "Bytes of the Arrow batches that clients received."),
    _counter("sqe_rows_written_total", "Rows inserted, updated and deleted."),
    _gauge("sqe_active_queries", "Statements that run."),
    _gauge("sqe_active_sessions", "Sessions that are open."),
    _counter("sqe_auth_attempts_total", "Logins, by provider and outcome.", "provider", "status"),
    _seconds("sqe_auth_duration_seconds", "How long logins take."),
    _counter("sqe_token_refresh_total", "Renewed access tokens, by outcome.", "status"),
    _seconds("sqe_catalog_request_duration_seconds", "Requests to catalogs.", "op", "status"),
    _gauge("sqe_catalog_circuit_breaker_state", "0 closed, 1 half open, 2 open.", "circuit"),
    _seconds("sqe_policy_resolve_duration_seconds", "Decisions of policy engines.", "backend", "status"),
    _counter("sqe_policy_cache_hits_total", "Decisions that were known.", "backend"),
    _counter("sqe_policy_cache_misses_total", "Decisions that had to be asked for.", "backend"),
    _gauge("sqe_policy_circuit_breaker_state", "0 closed, 1 half open, 2 open.", "backend"),
    _counter("sqe_lineage_dropped_events_total", "Lineage events that nobody could take."),
    _counter("sqe_lineage_sink_errors_total", "Failures of lineage sinks.", "sink"),
    _counter("sqe_audit_events_total", "Events in the audit log, by kind.", "kind"),
    _counter("sqe_audit_write_failures_total", "Events that could not be written when they happened."),
    _counter("sqe_audit_damage_total", "Times that the audit log was found changed by others."),
    _gauge("sqe_audit_writable", "1 while the audit log can be written, 0 while it cannot."),
    _gauge("sqe_protocol_connections", "Open connections.", "protocol"),
    _gauge("sqe_protocol_streams", "Results that clients are reading.", "protocol"),
    _gauge("sqe_engine_state", "1 for the state that the engine is in.", "state"),
    _counter("sqe_engine_restarts_total", "How often the engine was started again after it was lost."),
    _gauge("sqe_engine_rss_bytes", "Memory of the engine's process."),
    _gauge("sqe_coordinator_rss_bytes", "Memory of this process."),
    _gauge("sqe_coordinator_memory_limit_bytes", "[coordinator] memory_limit."),
    _gauge("sqe_server_state", "1 for the state that the server is in.", "state"),
    _gauge("sqe_build_info", "1, with the version.", "version"),
)

_Instrument = Counter | Gauge | Histogram


class _Series:
    """One metric and the label values that it has had."""

    def __init__(self, description: MetricDescription, registry: CollectorRegistry) -> None:
        self.description = description
        self._seen: set[tuple[str, ...]] = set()
        name, text, labels = description.name, description.text, description.labels
        self.instrument: _Instrument
        match description.kind:
            case "counter":
                self.instrument = Counter(name, text, labels, registry=registry)
            case "gauge":
                self.instrument = Gauge(name, text, labels, registry=registry)
            case "histogram":
                self.instrument = Histogram(name, text, labels, buckets=_SECONDS, registry=registry)

    def child(self, labels: Mapping[str, str], lock: threading.Lock) -> _Instrument:
        names = self.description.labels
        if set(labels) != set(names):
            raise ValueError(f"it has the labels {sorted(names)}, not {sorted(labels)}")
        if not names:
            return self.instrument
        values = tuple(str(labels[name])[:_MAX_LABEL_LENGTH] for name in names)
        with lock:
            if values not in self._seen:
                if len(self._seen) >= _MAX_SERIES:
                    values = (OTHER,) * len(names)
                self._seen.add(values)
        return self.instrument.labels(*values)


class PrometheusMetrics:
    """The metrics of one server: the core's `Metrics`, rendered for a scraper."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry(auto_describe=False)
        self._lock = threading.Lock()
        self._series = {each.name: _Series(each, self._registry) for each in CORE_METRICS}
        self._complained: set[str] = set()
        # CPU, open files, start time of this process, where the system tells.
        ProcessCollector(namespace="sqe", registry=self._registry)

    def count(self, name: str, amount: float = 1, labels: Mapping[str, str] = _NO_LABELS) -> None:
        self._use(name, "counter", labels, amount)

    def gauge(self, name: str, value: float, labels: Mapping[str, str] = _NO_LABELS) -> None:
        self._use(name, "gauge", labels, value)

    def observe(self, name: str, value: float, labels: Mapping[str, str] = _NO_LABELS) -> None:
        self._use(name, "histogram", labels, value)

    def watch(self, name: str, read: Callable[[], float], labels: Mapping[str, str] = _NO_LABELS) -> None:
        """Read a gauge whenever somebody scrapes, instead of setting it."""

        def safe() -> float:
            try:
                return float(read())
            except Exception:  # noqa: BLE001 - one value that cannot be read must not hide all others
                return float("nan")

        instrument = self._series[name].child(labels, self._lock)
        assert isinstance(instrument, Gauge)
        instrument.set_function(safe)

    def watch_states(self, name: str, states: Sequence[str], current: Callable[[], str]) -> None:
        """Read a gauge that is 1 for the current state and 0 for every other one."""
        for state in states:
            self.watch(name, lambda state=state: float(current() == state), {"state": state})  # type: ignore[misc]

    def render(self, accept: str) -> tuple[str, bytes]:
        """Return content type and text, in the format that the scraper prefers."""
        encode, content_type = choose_encoder(accept)
        return content_type, encode(self._registry)

    def _use(self, name: str, kind: MetricKind, labels: Mapping[str, str], value: float) -> None:
        try:
            instrument = self._find(name, kind, labels).child(labels, self._lock)
            match instrument:
                case Counter():
                    instrument.inc(value)
                case Gauge():
                    instrument.set(value)
                case Histogram():
                    instrument.observe(value)
        except ValueError as error:
            # A plugin's mistake costs its own numbers, and nobody's statement.
            with self._lock:
                first = len(self._complained) < _MAX_METRICS and name not in self._complained
                if first:
                    self._complained.add(name)
            if first:
                _log.warning("the metric %s cannot be counted: %s", name, error)

    def _find(self, name: str, kind: MetricKind, labels: Mapping[str, str]) -> _Series:
        with self._lock:
            series = self._series.get(name)
            if series is None:
                if not _NAME.fullmatch(name):
                    raise ValueError("names begin with sqe_ and have lower-case letters, digits and _")
                if len(self._series) >= _MAX_METRICS:
                    raise ValueError(f"there are {_MAX_METRICS} metrics already")
                description = MetricDescription(name=name, kind=kind, text="Of a plugin.", labels=tuple(sorted(labels)))
                series = self._series[name] = _Series(description, self._registry)
        if series.description.kind != kind:
            raise ValueError(f"it is a {series.description.kind}, not a {kind}")
        return series


def metrics_route(metrics: PrometheusMetrics) -> Mapping[str, Route]:
    def scrape(request: HttpRequest) -> HttpAnswer:
        content_type, body = metrics.render(request.headers.get("accept", ""))
        return HttpAnswer(body=body, content_type=content_type)

    return {"/metrics": scrape}


def resident_bytes(pid: int | None) -> float:
    """Return the memory of a process; 0 where the system does not tell."""
    if pid is None:
        return 0
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
