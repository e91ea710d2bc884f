"""The circuit breaker: closed, open, one probe, and closed again."""

from __future__ import annotations

import pytest
from testbed.clocks import StoppedClock

from sqe_http.breaker import Breaker, BreakerState
from sqe_http.errors import HttpFailedError, Reason

CLOSED, HALF_OPEN, OPEN = BreakerState.CLOSED, BreakerState.HALF_OPEN, BreakerState.OPEN


class Watched:
    """A breaker for two failures and ten seconds, and the states that it told."""

    def __init__(self) -> None:
        self.clock = StoppedClock(100.0)
        self.states: list[BreakerState] = []
        self.breaker = Breaker("OPA", 2, 10, monotonic=self.clock, changed=self.states.append)

    def fail(self, times: int = 1) -> None:
        for _ in range(times):
            self.breaker.failed(probe=self.breaker.enter())

    def refuses(self) -> bool:
        try:
            self.breaker.enter()
        except HttpFailedError as error:
            return error.reason is Reason.SPARED
        return False


@pytest.fixture
def watched() -> Watched:
    return Watched()


def test_failures_in_a_row_open_it(watched: Watched) -> None:
    watched.fail()
    assert watched.breaker.enter() is False
    watched.fail()
    assert watched.states == [OPEN]
    assert watched.refuses()


def test_a_success_begins_the_count_anew(watched: Watched) -> None:
    for _ in range(3):
        watched.fail()
        watched.breaker.succeeded(probe=watched.breaker.enter())
    assert watched.states == []


def test_the_refusal_names_who_does_not_answer(watched: Watched) -> None:
    watched.fail(2)
    with pytest.raises(HttpFailedError, match=r"^OPA did not answer several times and is not asked now") as refused:
        watched.breaker.enter()
    assert refused.value.reason is Reason.SPARED


def test_one_probe_is_let_through_when_the_time_is_over(watched: Watched) -> None:
    watched.fail(2)
    watched.clock.now += 9.9
    assert watched.refuses()
    watched.clock.now += 0.1
    assert watched.breaker.enter() is True
    assert watched.states == [OPEN, HALF_OPEN]
    assert watched.refuses()


def test_a_probe_that_succeeds_closes_it(watched: Watched) -> None:
    watched.fail(2)
    watched.clock.now += 10
    watched.breaker.succeeded(probe=watched.breaker.enter())
    assert watched.states == [OPEN, HALF_OPEN, CLOSED]
    watched.fail()
    assert watched.breaker.enter() is False


def test_a_probe_that_fails_opens_it_for_as_long_again(watched: Watched) -> None:
    watched.fail(2)
    watched.clock.now += 10
    watched.fail()
    assert watched.states == [OPEN, HALF_OPEN, OPEN]
    watched.clock.now += 9.9
    assert watched.refuses()
    watched.clock.now += 0.1
    assert watched.breaker.enter() is True


def test_what_was_sent_before_it_opened_neither_closes_it_nor_keeps_it_open_longer(watched: Watched) -> None:
    early = [watched.breaker.enter() for _ in range(4)]
    watched.fail(2)
    watched.clock.now += 5
    watched.breaker.succeeded(probe=early[0])
    watched.breaker.failed(probe=early[1])
    assert watched.refuses()
    watched.clock.now += 5
    assert watched.breaker.enter() is True
    watched.breaker.succeeded(probe=early[2])
    watched.breaker.failed(probe=early[3])
    assert watched.states == [OPEN, HALF_OPEN]
