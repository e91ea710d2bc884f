"""Observers to try their contract on, and enforcers that only object; read contract_fakes.py first."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar

from contract_variants import breaks, given, makes, undeclared

from sqe_core.spi import (
    Decision,
    Effect,
    NoConfig,
    ObjectName,
    PolicyEnforcer,
    PolicyEnforcerFactory,
    PolicyRequest,
    PolicyResponse,
    QueryEvent,
    QueryPhase,
    SqePlugin,
    VisibilityRequest,
    hookimpl,
)
from sqe_core.testing import ObserverContract, PolicyEnforcerContract, make_policy_request

HEARD: list[tuple[str, QueryPhase]] = []


class Diary(SqePlugin):
    """Keeps what it hears."""

    def start(self, config: Any, context: Any) -> None:
        HEARD.clear()

    @hookimpl
    def sqe_on_query_event(self, event: QueryEvent) -> None:
        self.keep(event)

    def keep(self, event: QueryEvent) -> None:
        HEARD.append((event.query_id, event.phase))


class TestDiary(ObserverContract):
    capabilities: ClassVar[frozenset[str]] = frozenset({"records"})
    plugin_class: type[SqePlugin] = Diary

    factory = given(lambda self: self.plugin_class)

    config = given(NoConfig)
    observed = given(lambda: lambda: HEARD)


@breaks(TestDiary, "test_observes", "test_records_in_order", "test_many_threads")
class Deaf(SqePlugin):
    pass


@breaks(TestDiary, "test_takes_every_event")
class WantsASource(Diary):
    def keep(self, event: QueryEvent) -> None:
        assert event.source is not None, "who was that?"
        super().keep(event)


@breaks(TestDiary, "test_holds_nobody_up")
class CallsHome(Diary):
    def keep(self, event: QueryEvent) -> None:
        time.sleep(0.03)
        super().keep(event)


@breaks(TestDiary, "test_records_in_order")
class LatestFirst(Diary):
    def keep(self, event: QueryEvent) -> None:
        HEARD.insert(0, (event.query_id, event.phase))


@breaks(TestDiary, "test_many_threads")
class TurnsBusyAway(Diary):
    busy = threading.Lock()

    def keep(self, event: QueryEvent) -> None:
        if self.busy.acquire(blocking=False):
            time.sleep(0.001)
            super().keep(event)
            self.busy.release()


@breaks(TestDiary, "test_stops_twice")
class StopsOnce(Diary):
    stopped = 0

    def stop(self) -> None:
        self.stopped += 1
        # The kit stops twice by itself where it reads what arrived.
        assert self.stopped < 2 or HEARD, "stopped twice"


@dataclass
class Changeable:
    webhook: str = ""


class HasAMutableConfig(Diary):
    config_type = Changeable


class TestHasAMutableConfig(TestDiary):
    plugin_class = HasAMutableConfig
    breaks = ("test_config_type_is_frozen", "test_config_keys_are_keyword_only")

    config = given(Changeable)


# An enforcer that only objects

PEOPLE = ObjectName(catalog="lake", namespace=("hr",), name="people")


class Weekend(PolicyEnforcer):
    """Nothing on Saturdays and Sundays."""

    def decide(self, request: PolicyRequest) -> PolicyResponse:
        return PolicyResponse(decisions=tuple(self.one(request, access.action.value) for access in request.accesses))

    def one(self, request: PolicyRequest, action: str) -> Decision:
        if request.context.now.weekday() < 5:
            return Decision.abstain()
        return Decision.deny("closed at weekends")


class TestWeekend(PolicyEnforcerContract):
    capabilities: ClassVar[frozenset[str]] = frozenset({"denies", "abstains"})
    enforcer_class: type[PolicyEnforcer] = Weekend

    factory = makes(PolicyEnforcerFactory, "enforcer_class")
    config = given(NoConfig)
    allowed = given(lambda: make_policy_request(PEOPLE))
    denied = given(lambda: make_policy_request(PEOPLE, now=datetime(2026, 1, 3, tzinfo=UTC)))


@breaks(
    TestWeekend, "test_allowed", "test_abstaining_allows_nothing", "test_visible_answers_in_order", "test_many_threads"
)
class AllowsOnWeekdays(Weekend):
    def one(self, request: PolicyRequest, action: str) -> Decision:
        decision = super().one(request, action)
        return Decision.allow() if decision.effect is Effect.ABSTAIN else decision


@breaks(TestWeekend, "test_abstaining_allows_nothing")
class AllowsDrop(Weekend):
    def one(self, request: PolicyRequest, action: str) -> Decision:
        return Decision.allow() if action == "drop" else super().one(request, action)


@breaks(TestWeekend, "test_denied_is_invisible")
class ListsAtWeekends(Weekend):
    def visible(self, request: VisibilityRequest) -> Sequence[Effect]:
        return [Effect.ABSTAIN for _ in request.names]


undeclared(TestWeekend, "abstains", breaks=("test_allowed", "test_visible_answers_in_order", "test_many_threads"))
