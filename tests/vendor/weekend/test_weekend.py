"""The engine keeps SQE's contract."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from acme_weekend import WeekendConfig, WeekendFactory
from sqe_core.spi import Effect, ObjectName, PluginContext, PolicyRequest
from sqe_core.testing import PluginContract, PolicyEnforcerContract, make_identity, make_policy_request

PEOPLE = ObjectName(catalog="lake", namespace=("hr",), name="people")
SATURDAY = datetime(2026, 1, 3, 23, tzinfo=UTC)


class TestWeekendPlugin(PluginContract):
    plugin_name = "acme-weekend"


class TestWeekend(PolicyEnforcerContract):
    capabilities = frozenset({"denies", "abstains"})

    @pytest.fixture
    def factory(self) -> WeekendFactory:
        return WeekendFactory()

    @pytest.fixture
    def config(self) -> WeekendConfig:
        return WeekendConfig()

    @pytest.fixture
    def allowed(self) -> PolicyRequest:
        return make_policy_request(PEOPLE)

    @pytest.fixture
    def denied(self) -> PolicyRequest:
        return make_policy_request(PEOPLE, now=SATURDAY)


def test_an_answer_ends_with_its_day() -> None:
    enforcer = WeekendFactory().create("weekend", WeekendConfig(), PluginContext())
    (decision,) = enforcer.decide(make_policy_request(PEOPLE, now=SATURDAY)).decisions
    assert decision.ttl_secs == 3600


def test_who_is_on_call_is_somebody_elses_to_judge() -> None:
    enforcer = WeekendFactory().create("weekend", WeekendConfig(on_call=("ops",)), PluginContext())
    request = make_policy_request(PEOPLE, now=SATURDAY)
    on_call = replace(request, principal=make_identity("ann", roles=["ops"]))
    assert [enforcer.decide(each).decisions[0].effect for each in (request, on_call)] == [Effect.DENY, Effect.ABSTAIN]
