"""What is counted, and that neither labels nor plugins can make it grow or break."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping

import pytest
from prometheus_client.parser import text_string_to_metric_families

from sqe_core.observe.metrics import CORE_METRICS, OTHER, PrometheusMetrics, metrics_route, resident_bytes
from sqe_http.listener import HttpRequest


def scraped(metrics: PrometheusMetrics) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    _, body = metrics.render("")
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(body.decode())
        for sample in family.samples
    }


def value(metrics: PrometheusMetrics, name: str, labels: Mapping[str, str] | None = None) -> float | None:
    return scraped(metrics).get((name, frozenset((labels or {}).items())))


@pytest.fixture
def metrics() -> PrometheusMetrics:
    return PrometheusMetrics()


def test_every_name_begins_alike_and_says_what_it_is(metrics: PrometheusMetrics) -> None:
    for each in CORE_METRICS:
        assert re.fullmatch(r"sqe_[a-z_]+", each.name)
        assert each.text.endswith(".") or each.name == "sqe_build_info"
        assert (each.kind == "counter") == each.name.endswith("_total")
    _, body = metrics.render("")
    names = {family.name for family in text_string_to_metric_families(body.decode())}
    assert names
    assert all(name.startswith("sqe_") for name in names)


@pytest.mark.rule("OBS-6")
def test_no_label_can_hold_a_user_or_a_table() -> None:
    allowed = {
        *("status", "statement_type", "error_code", "protocol", "reason", "provider", "op", "circuit", "backend"),
        *("sink", "state", "version", "limit", "kind"),
    }
    assert {label for each in CORE_METRICS for label in each.labels} <= allowed


def test_the_names_of_the_reference() -> None:
    names = {each.name for each in CORE_METRICS}
    assert names >= {
        "sqe_query_count_total",
        "sqe_query_duration_seconds",
        "sqe_rows_returned_total",
        "sqe_active_queries",
        "sqe_active_sessions",
        "sqe_time_to_first_row_seconds",
        "sqe_coordinator_memory_limit_bytes",
        "sqe_coordinator_rss_bytes",
        "sqe_auth_attempts_total",
        "sqe_auth_duration_seconds",
        "sqe_token_refresh_total",
        "sqe_catalog_request_duration_seconds",
        "sqe_catalog_circuit_breaker_state",
        "sqe_policy_resolve_duration_seconds",
        "sqe_policy_cache_hits_total",
        "sqe_policy_cache_misses_total",
        "sqe_policy_circuit_breaker_state",
        "sqe_lineage_dropped_events_total",
        "sqe_lineage_sink_errors_total",
    }


def test_counting(metrics: PrometheusMetrics) -> None:
    labels = {"status": "success", "statement_type": "query", "error_code": ""}
    metrics.count("sqe_query_count_total", labels=labels)
    metrics.count("sqe_query_count_total", 2, labels)
    metrics.gauge("sqe_protocol_connections", 7, {"protocol": "flight"})
    metrics.observe("sqe_query_duration_seconds", 0.2, {"statement_type": "query"})
    assert value(metrics, "sqe_query_count_total", labels) == 3
    assert value(metrics, "sqe_protocol_connections", {"protocol": "flight"}) == 7
    assert value(metrics, "sqe_query_duration_seconds_count", {"statement_type": "query"}) == 1
    assert value(metrics, "sqe_query_duration_seconds_sum", {"statement_type": "query"}) == pytest.approx(0.2)


def test_two_servers_count_apart(metrics: PrometheusMetrics) -> None:
    other = PrometheusMetrics()
    metrics.count("sqe_rows_returned_total", 5)
    assert (value(metrics, "sqe_rows_returned_total"), value(other, "sqe_rows_returned_total")) == (5, 0)


@pytest.mark.rule("OBS-6")
def test_label_values_are_bounded(metrics: PrometheusMetrics) -> None:
    for number in range(5000):
        metrics.count("sqe_auth_attempts_total", labels={"provider": f"p{number}", "status": "x" * 1000})
    series = [labels for name, labels in scraped(metrics) if name == "sqe_auth_attempts_total"]
    assert len(series) <= 501
    assert frozenset({("provider", OTHER), ("status", OTHER)}) in series
    assert max(len(text) for labels in series for _, text in labels) <= 64


def test_label_values_cannot_forge_a_line(metrics: PrometheusMetrics) -> None:
    forged = 'a"} 1\nsqe_forged_total 99'
    metrics.count("sqe_lineage_sink_errors_total", labels={"sink": forged})
    found = scraped(metrics)
    assert ("sqe_lineage_sink_errors_total", frozenset({("sink", forged)})) in found
    assert not [name for name, _ in found if name == "sqe_forged_total"]


def test_a_plugins_own_metric(metrics: PrometheusMetrics) -> None:
    metrics.count("sqe_acme_badges_total", labels={"colour": "red"})
    assert value(metrics, "sqe_acme_badges_total", {"colour": "red"}) == 1


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("acme_total", {}),
        ("sqe_Bad Name", {}),
        ("sqe_query_duration_seconds", {"statement_type": "query"}),  # a histogram
        ("sqe_query_count_total", {"user": "alice"}),
        ("sqe_x_total", {"bad label": "x"}),
        ("sqe_active_queries_total", {"le": "1"}),
        ("sqe_query_count", {}),  # clashes with the counter
    ],
)
def test_a_plugins_mistake_costs_only_its_number(
    metrics: PrometheusMetrics, caplog: pytest.LogCaptureFixture, name: str, labels: dict[str, str]
) -> None:
    for _ in range(3):
        metrics.count(name, labels=labels)
    complaints = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert len(complaints) <= 1
    assert value(metrics, "sqe_rows_returned_total") == 0


def test_the_number_of_metrics_is_bounded(metrics: PrometheusMetrics, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(2000):
        metrics.count(f"sqe_flood_{number}_total")
    assert len([1 for name, _ in scraped(metrics) if name.startswith("sqe_flood")]) < 2 * 500
    assert len(caplog.records) <= 500


def test_a_watched_value_is_read_at_each_scrape(metrics: PrometheusMetrics) -> None:
    values = [1.0, 2.0]
    metrics.watch("sqe_active_queries", lambda: values.pop(0))
    assert value(metrics, "sqe_active_queries") == 1
    assert value(metrics, "sqe_active_queries") == 2
    assert str(value(metrics, "sqe_active_queries")) == "nan"  # it cannot be read any more; the rest still is


def test_states(metrics: PrometheusMetrics) -> None:
    state = ["starting"]
    metrics.watch_states("sqe_engine_state", ["starting", "ready"], lambda: state[0])
    assert value(metrics, "sqe_engine_state", {"state": "starting"}) == 1
    state[0] = "ready"
    assert value(metrics, "sqe_engine_state", {"state": "starting"}) == 0
    assert value(metrics, "sqe_engine_state", {"state": "ready"}) == 1


def test_the_route_speaks_what_the_scraper_asks_for(metrics: PrometheusMetrics) -> None:
    route = metrics_route(metrics)["/metrics"]
    assert route(HttpRequest(path="/metrics", query="", headers={})).content_type.startswith("text/plain")
    modern = route(
        HttpRequest(path="/metrics", query="", headers={"accept": "application/openmetrics-text; version=1.0.0"})
    )
    assert modern.content_type.startswith("application/openmetrics-text")
    assert modern.body.endswith(b"# EOF\n")


def test_memory_of_processes() -> None:
    import os

    assert resident_bytes(None) == 0
    assert resident_bytes(2**22 + 7) == 0
    assert resident_bytes(os.getpid()) > 1_000_000
