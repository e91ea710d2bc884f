"""Policies see the server's clock, at the moment of the question (POL-13)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from sqe_core.policy.authorizer import Authorizer, Circumstances
from sqe_core.spi.identity import Identity
from sqe_core.spi.names import ObjectName
from sqe_core.spi.policy import Action, Decision, PolicyEnforcer, PolicyRequest, PolicyResponse

ALICE = Identity(issuer="i", subject="alice", username="alice", provider="test")
NAME = ObjectName(catalog="c", namespace=("n",), name="t")


class Watching(PolicyEnforcer):
    def __init__(self) -> None:
        self.moments: list[datetime] = []

    def decide(self, request: PolicyRequest) -> PolicyResponse:
        self.moments.append(request.context.now)
        return PolicyResponse(decisions=tuple(Decision.allow() for _ in request.accesses))


@pytest.mark.rule("POL-13")
def test_an_engine_is_told_what_time_it_is() -> None:
    moment = datetime(2026, 3, 4, 5, 6, tzinfo=UTC)
    told, asked = Watching(), Circumstances(protocol="test", query_id="q")
    assert not Authorizer([told], now=lambda: moment).denies(ALICE, NAME, Action.SELECT, asked)
    Authorizer([told]).denies(ALICE, NAME, Action.SELECT, asked)
    assert told.moments[0] == moment
    assert abs(datetime.now(UTC) - told.moments[1]) < timedelta(minutes=1)
