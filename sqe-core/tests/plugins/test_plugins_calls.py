"""Observers are called one by one; a failing one fails nobody else."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

import pytest

from sqe_core.plugins.calls import HookCalls
from sqe_core.spi import PluginError, QueryEvent, QueryPhase, SqePlugin, hookimpl
from sqe_core.testing import RecordingMetrics, make_identity

EVENT = QueryEvent(
    query_id="q1",
    phase=QueryPhase.FINISHED,
    time=datetime(2026, 1, 1, tzinfo=UTC),
    principal=make_identity(),
    protocol="test",
    session_hash="h",
    statement_kind="query",
    sql="SELECT ?",
    sql_hash="s",
)


class Observer(SqePlugin):
    def __init__(self, seen: list[str], name: str) -> None:
        self.seen = seen
        self.name = name

    @hookimpl
    def sqe_on_query_event(self, event: QueryEvent) -> None:
        self.seen.append(f"{self.name} {event.query_id}")


class Failing(SqePlugin):
    @hookimpl
    def sqe_on_query_event(self, event: QueryEvent) -> None:
        raise RuntimeError("no disk")


class Uninterested(SqePlugin):
    called = 0

    @hookimpl
    def sqe_on_query_event(self) -> None:  # type: ignore[override]
        type(self).called += 1


def test_failures_are_logged_and_counted_and_others_run(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[str] = []
    metrics = RecordingMetrics()
    calls = HookCalls(metrics)
    calls.register(Observer(seen, "first"), "plugin first")
    calls.register(Failing(), "plugin failing")
    calls.register(Observer(seen, "last"), "plugin last")
    with caplog.at_level(logging.ERROR):
        calls.query_event(EVENT)
    assert seen == ["first q1", "last q1"]
    assert metrics.values == {"sqe_plugin_observer_errors_total": 1}
    assert "plugin failing failed to observe a statement" in caplog.text


def test_an_implementation_may_leave_the_argument_out() -> None:
    calls = HookCalls()
    calls.register(Uninterested(), "plugin uninterested")
    calls.query_event(EVENT)
    assert Uninterested.called == 1


def test_says_whether_anybody_observes() -> None:
    calls = HookCalls()
    assert not calls.observed
    calls.register(SqePlugin(), "plugin silent")
    assert not calls.observed
    calls.register(Failing(), "plugin failing")
    assert calls.observed
    calls.unregister("plugin failing")
    assert not calls.observed


def test_registering_twice_is_a_plugin_error() -> None:
    calls = HookCalls()
    calls.register(SqePlugin(), "plugin a")
    with pytest.raises(PluginError, match="The plugin a does not fit the hooks"):
        calls.register(SqePlugin(), "plugin a")
