"""Statements and metadata requests a minute: who waits, for how long, and for whom it counts."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from types import MappingProxyType

import pytest

from sqe_core.session.rate_limits import RateLimiter, RateLimits, Traffic
from sqe_core.spi.errors import ErrorCode, ErrorKind, ResourcesError
from sqe_core.spi.factory import NoMetrics
from sqe_core.spi.identity import Identity

LIMITS = RateLimits(statements_per_user=6, statements_of_all=15, metadata_per_user=12)
HERE = "10.0.0.1"


def person(name: str, *, personal: bool = True) -> Identity:
    return Identity(issuer="test", subject=name, username=name, provider="test", personal=personal)


ALICE, BOB, CAROL = person("alice"), person("bob"), person("carol")
EVERYBODY = person("anonymous", personal=False)


class Counted(NoMetrics):
    def __init__(self) -> None:
        self.refused: list[str] = []

    def count(self, name: str, amount: float = 1, labels: Mapping[str, str] = MappingProxyType({})) -> None:
        assert name == "sqe_rate_limited_total"
        self.refused.append(labels["limit"])


@pytest.fixture
def counted() -> Counted:
    return Counted()


@pytest.fixture
def limiter(time, counted: Counted) -> RateLimiter:  # type: ignore[no-untyped-def]
    return RateLimiter(LIMITS, metrics=counted, monotonic=time.monotonic)


def take(limiter: RateLimiter, who: Identity, times: int = 1, address: str | None = HERE) -> None:
    for _ in range(times):
        limiter.take(Traffic.STATEMENT, who, address)


def refused(limiter: RateLimiter, who: Identity, traffic: Traffic = Traffic.STATEMENT) -> ResourcesError:
    with pytest.raises(ResourcesError) as caught:
        limiter.take(traffic, who, HERE)
    return caught.value


@pytest.mark.rule("LIM-1")
def test_the_seventh_statement_of_a_minute_waits_until_there_is_one_again(limiter: RateLimiter, time) -> None:  # type: ignore[no-untyped-def]
    take(limiter, ALICE, 6)
    error = refused(limiter, ALICE)
    assert (error.code, error.kind) == (ErrorCode.RESOURCE_EXHAUSTED, ErrorKind.RESOURCES)
    assert error.message == "Too many statements: 6 per minute are allowed for one user"
    assert (error.hint, error.retry_after_secs) == ("try again in 10 s", 10)
    time.advance(9)
    assert refused(limiter, ALICE).retry_after_secs == 1
    time.advance(1)
    take(limiter, ALICE)
    refused(limiter, ALICE)


def test_who_waited_a_minute_has_a_full_bucket_and_no_more(limiter: RateLimiter, time) -> None:  # type: ignore[no-untyped-def]
    take(limiter, ALICE, 6)
    time.advance(1000)
    take(limiter, ALICE, 6)
    refused(limiter, ALICE)


@pytest.mark.rule("LIM-1")
def test_users_do_not_pay_for_each_other(limiter: RateLimiter, counted: Counted) -> None:
    take(limiter, ALICE, 6)
    refused(limiter, ALICE)
    take(limiter, BOB, 6)
    assert counted.refused == ["user"]


@pytest.mark.rule("LIM-1")
def test_all_together_are_bounded_too(limiter: RateLimiter, counted: Counted, time) -> None:  # type: ignore[no-untyped-def]
    take(limiter, ALICE, 6)
    take(limiter, BOB, 6)
    take(limiter, CAROL, 3)
    error = refused(limiter, CAROL)
    assert error.message == "Too many statements: 15 per minute are allowed for all users together"
    assert error.retry_after_secs == 4
    assert counted.refused == ["all"]
    time.advance(4)
    take(limiter, CAROL)


def test_what_is_refused_counts_for_nobody(limiter: RateLimiter, time) -> None:  # type: ignore[no-untyped-def]
    take(limiter, ALICE, 6)
    for _ in range(20):
        refused(limiter, ALICE)
    take(limiter, BOB, 6)
    take(limiter, CAROL, 3)  # the fifteenth
    for _ in range(20):
        refused(limiter, CAROL)
    time.advance(12)  # three more for all; Carol's own three are untouched
    take(limiter, CAROL, 3)


def test_metadata_has_a_bound_of_its_own(limiter: RateLimiter, counted: Counted) -> None:
    take(limiter, ALICE, 6)
    for _ in range(12):
        limiter.take(Traffic.METADATA, ALICE, HERE)
    assert "12 per minute" in refused(limiter, ALICE, Traffic.METADATA).message
    assert counted.refused == ["metadata"]
    take(limiter, BOB, 6)


@pytest.mark.rule("LIM-1")
def test_a_person_is_one_wherever_they_are_and_a_shared_identity_one_in_each_place(limiter: RateLimiter) -> None:
    for number in range(6):
        take(limiter, ALICE, address=f"10.0.0.{number}")
    refused(limiter, ALICE)
    take(limiter, EVERYBODY, 6, address="10.0.0.2")
    with pytest.raises(ResourcesError):
        take(limiter, EVERYBODY, address="10.0.0.2")
    take(limiter, EVERYBODY, address="10.0.0.3")


def test_nobody_is_two_clients_with_the_addresses_of_one_network(limiter: RateLimiter) -> None:
    for number in range(6):
        take(limiter, EVERYBODY, address=f"2001:db8::{number}")
    with pytest.raises(ResourcesError):
        take(limiter, EVERYBODY, address="2001:db8::ffff")


@pytest.mark.rule("LIM-10")
def test_what_is_long_ago_is_forgotten(limiter: RateLimiter, time) -> None:  # type: ignore[no-untyped-def]
    take(limiter, ALICE)
    limiter.take(Traffic.METADATA, BOB, HERE)
    assert limiter.remembered == 2
    time.advance(61)
    take(limiter, CAROL)
    assert limiter.remembered == 1


@pytest.mark.rule("LIM-10")
def test_the_map_is_bounded(time, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr("sqe_core.session.rate_limits._MOST_ENTRIES", 50)
    limiter = RateLimiter(RateLimits(statements_of_all=100_000), monotonic=time.monotonic)
    for number in range(500):
        take(limiter, person(f"user-{number}"))
    assert limiter.remembered == 50


def test_without_limits_nothing_is_counted(time) -> None:  # type: ignore[no-untyped-def]
    limiter = RateLimiter(None, monotonic=time.monotonic)
    take(limiter, ALICE, 5000)
    assert limiter.remembered == 0


def test_many_threads_get_no_more_than_there_is() -> None:
    limiter = RateLimiter(RateLimits(statements_per_user=50, statements_of_all=1000), monotonic=lambda: 1.0)
    passed: list[None] = []

    def run() -> None:
        for _ in range(20):
            try:
                take(limiter, ALICE)
            except ResourcesError:
                continue
            passed.append(None)

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(passed) == 50
