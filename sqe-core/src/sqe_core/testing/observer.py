"""The contract of observers: plugins that hear of every statement."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

import pytest

from sqe_core.spi.errors import ErrorCode
from sqe_core.spi.events import ObjectDecision, QueryCounts, QueryEvent, QueryPhase, QueryTimings
from sqe_core.spi.factory import PluginContext
from sqe_core.spi.hooks import SqePlugin
from sqe_core.spi.names import ObjectName
from sqe_core.spi.policy import Action
from sqe_core.testing.contract import ConfigContract
from sqe_core.testing.fakes import make_identity

Observed = Callable[[], Sequence[tuple[str, QueryPhase]]]


def make_query_event(query: int = 1, phase: QueryPhase = QueryPhase.FINISHED, *, bare: bool = False) -> QueryEvent:
    """Return an event.

    Args:
        query: makes the statement's id.
        phase: what happened.
        bare: without anything that may be missing.
    """
    event = QueryEvent(
        query_id=f"0190e1c0-0000-7000-8000-{query:012d}",
        phase=phase,
        time=datetime(2026, 1, 1, tzinfo=UTC) + timedelta(milliseconds=query),
        principal=make_identity("zoë"),
        protocol="test",
        session_hash="5d1f",
        statement_kind="query",
        sql="SELECT näme FROM people WHERE id = ?",
        sql_hash="9f2c",
    )
    if bare:
        return event
    people = ObjectName(catalog="lake", namespace=("hr",), name="people")
    return replace(
        event,
        client_address="127.0.0.1",
        source="a notebook",
        trace_id="4bf92f3577b34da6a3ce929d0e0e4736",
        objects=(ObjectDecision(name=people, action=Action.SELECT, allowed=True, masked_columns=("näme",)),),
        policy_cache_hit=False,
        timings=QueryTimings(queued_ms=0.1, analysis_ms=2, policy_ms=1, planning_ms=3, execution_ms=4, total_ms=11),
        counts=QueryCounts(rows_returned=1, rows_scanned=10, bytes_scanned=1000),
        error_code=ErrorCode.GENERIC_INTERNAL_ERROR if phase is QueryPhase.FAILED else None,
        error_message="it broke" if phase is QueryPhase.FAILED else None,
    )


class ObserverContract(ConfigContract):
    """What every observer promises: it hears of a statement in that statement's thread, and does not hold it up.

    Fixtures to supply: `factory` (the plugin's class) and `config`, and with the capability `records` also `observed`:
    a function that returns id and phase of the events that arrived so far, in order, called after the plugin stopped.
    """

    KNOWN_CAPABILITIES: ClassVar[frozenset[str]] = frozenset({"records"})
    MOST_SECS: ClassVar[float] = 0.02
    """How long an event takes on average at most. Those of a statement come in its own thread."""

    @pytest.fixture
    def context(self) -> PluginContext:
        """What the core offers."""
        return PluginContext()

    @pytest.fixture
    def observed(self) -> Observed:
        """Returns what arrived."""
        raise NotImplementedError("supply the fixture 'observed', or do not declare 'records'")

    @pytest.fixture
    def plugin(self, factory: type[SqePlugin], config: Any, context: PluginContext) -> Iterator[SqePlugin]:
        """The plugin under test, started."""
        plugin = factory()
        plugin.start(config, context)
        yield plugin
        plugin.stop()

    def test_observes(self, plugin: SqePlugin) -> None:
        """It has the hook, without which nobody tells it anything."""
        assert isinstance(plugin, SqePlugin)
        assert type(plugin).sqe_on_query_event is not SqePlugin.sqe_on_query_event

    def test_takes_every_event(self, plugin: SqePlugin) -> None:
        """Whatever happened, and however little is known of it."""
        for phase in QueryPhase:
            plugin.sqe_on_query_event(make_query_event(1, phase))
            plugin.sqe_on_query_event(make_query_event(2, phase, bare=True))

    def test_holds_nobody_up(self, plugin: SqePlugin) -> None:
        """What takes long belongs into a thread of the plugin's own."""
        count = 50
        began = time.monotonic()
        for number in range(count):
            plugin.sqe_on_query_event(make_query_event(number))
        assert time.monotonic() - began < count * self.MOST_SECS

    def test_records_in_order(self, plugin: SqePlugin, request: pytest.FixtureRequest) -> None:
        """Everything arrives by the time that the plugin has stopped, in the order of the calls."""
        self.need("records")
        observed: Observed = request.getfixturevalue("observed")
        before = len(observed())
        events = [make_query_event(number, phase) for number in (1, 2) for phase in QueryPhase]
        for event in events:
            plugin.sqe_on_query_event(event)
        plugin.stop()
        assert list(observed())[before:] == [(event.query_id, event.phase) for event in events]

    def test_many_threads(self, plugin: SqePlugin, request: pytest.FixtureRequest) -> None:
        """Statements run side by side, and none is forgotten."""
        with ThreadPoolExecutor(max_workers=8) as pool:
            list(pool.map(lambda query: plugin.sqe_on_query_event(make_query_event(query)), range(200)))
        plugin.stop()
        if self.can("records"):
            observed: Observed = request.getfixturevalue("observed")
            assert len({query for query, _ in observed()}) == 200

    def test_stops_twice(self, factory: type[SqePlugin], config: Any, context: PluginContext) -> None:
        """Stopping is idempotent, also where nothing happened."""
        plugin = factory()
        plugin.start(config, context)
        plugin.stop()
        plugin.stop()
