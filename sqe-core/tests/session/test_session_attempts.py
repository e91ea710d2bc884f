"""Failed logins are counted, blocked and forgotten; nothing grows without bound."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import pytest

from sqe_core.session.addresses import client_network, is_loopback
from sqe_core.session.attempts import LoginAttempts
from sqe_core.spi.errors import ErrorKind, ResourcesError
from sqe_core.spi.factory import NoMetrics


@pytest.fixture
def attempts(time) -> LoginAttempts:
    return LoginAttempts(3, monotonic=time.monotonic)


def fail(attempts: LoginAttempts, address: str, account: str | None, times: int = 1) -> None:
    for _ in range(times):
        attempts.begin(address, account).failed()


def retry_after(attempts: LoginAttempts, address: str, account: str | None) -> int | None:
    with pytest.raises(ResourcesError) as caught:
        attempts.begin(address, account)
    assert caught.value.kind is ErrorKind.RESOURCES
    return caught.value.retry_after_secs


@pytest.mark.rule("AUTHN-7")
def test_failures_block_the_account_from_that_address_alone(attempts: LoginAttempts) -> None:
    fail(attempts, "10.0.0.1", "alice", 3)

    assert retry_after(attempts, "10.0.0.1", "alice") == 60
    attempts.begin("10.0.0.1", "bob").unjudged()
    attempts.begin("10.0.0.2", "alice").unjudged()


@pytest.mark.rule("AUTHN-7")
def test_the_delay_grows_and_is_bounded(attempts: LoginAttempts, time) -> None:
    delays = []
    for _ in range(7):
        fail(attempts, "10.0.0.1", "alice", 3)
        delay = retry_after(attempts, "10.0.0.1", "alice")
        assert delay is not None
        delays.append(delay)
        time.advance(delay)
    assert delays == [60, 120, 240, 480, 900, 900, 900]


def test_failures_of_long_ago_do_not_count(attempts: LoginAttempts, time) -> None:
    fail(attempts, "10.0.0.1", "alice", 2)
    time.advance(61)
    fail(attempts, "10.0.0.1", "alice", 2)
    attempts.begin("10.0.0.1", "alice").unjudged()


@pytest.mark.rule("AUTHN-7")
def test_an_address_that_tries_many_names_is_blocked(attempts: LoginAttempts) -> None:
    for number in range(15):
        fail(attempts, "10.0.0.1", f"user{number}")

    assert retry_after(attempts, "10.0.0.1", "somebody") == 60
    assert retry_after(attempts, "10.0.0.1", None) == 60
    attempts.begin("10.0.0.2", "somebody").unjudged()


@pytest.mark.rule("AUTHN-7")
def test_an_account_that_is_tried_from_many_addresses_is_blocked(attempts: LoginAttempts) -> None:
    for number in range(30):
        fail(attempts, f"10.0.1.{number}", "alice")

    assert retry_after(attempts, "10.0.2.1", "alice") == 60


def test_strangers_do_not_lock_somebody_out_where_they_log_in_from(attempts: LoginAttempts) -> None:
    attempts.begin("10.0.0.1", "alice").succeeded("alice")
    for number in range(30):
        fail(attempts, f"10.0.1.{number}", "alice")
    for number in range(15):
        fail(attempts, "10.0.0.1", f"user{number}")

    attempts.begin("10.0.0.1", "alice").unjudged()
    fail(attempts, "10.0.0.1", "alice", 3)
    assert retry_after(attempts, "10.0.0.1", "alice") == 60


@pytest.mark.rule("AUTHN-7")
def test_an_own_login_under_anothers_name_clears_nothing(attempts: LoginAttempts) -> None:
    fail(attempts, "10.0.0.1", "alice", 2)
    attempts.begin("10.0.0.1", "alice").succeeded("mallory")
    fail(attempts, "10.0.0.1", "alice")

    assert retry_after(attempts, "10.0.0.1", "alice") == 60


@pytest.mark.rule("AUTHN-7")
@pytest.mark.parametrize("spelling", ["ALICE", " alice ", "ａlice", "Alice"])
def test_spellings_of_a_name_are_one_account(attempts: LoginAttempts, spelling: str) -> None:
    fail(attempts, "10.0.0.1", "alice", 3)
    retry_after(attempts, "10.0.0.1", spelling)


@pytest.mark.rule("AUTHN-7")
def test_guesses_at_once_are_not_cheaper(attempts: LoginAttempts, race) -> None:
    begun = [attempts.begin("10.0.0.1", "alice") for _ in range(3)]

    assert retry_after(attempts, "10.0.0.1", "alice") == 1
    begun[0].unjudged()
    begun.append(attempts.begin("10.0.0.1", "alice"))
    answers = race(*[lambda: attempts.begin("10.0.0.1", "alice")] * 8)
    assert all(isinstance(answer, ResourcesError) for answer in answers)


@pytest.mark.rule("AUTHN-7")
@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("2001:db8::1", "2001:db8::ffff:2", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:10.0.0.1", "10.0.0.1", True),
        ("fe80::1%eth0", "fe80::1", True),
        ("10.0.0.1", "10.0.0.2", False),
    ],
)
def test_addresses_of_one_client(first: str, second: str, same: bool) -> None:
    assert (client_network(first) == client_network(second)) is same


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        (None, True),
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("10.0.0.1", False),
        ("::", False),
        ("0.0.0.0", False),
        ("localhost", False),
        ("127.0.0.1.evil.example", False),
        ("", False),
    ],
)
def test_loopback(address: str | None, expected: bool) -> None:
    assert is_loopback(address) is expected


@pytest.mark.rule("LIM-10")
def test_the_maps_are_bounded(attempts: LoginAttempts, time) -> None:
    for number in range(15_000):
        attempts.begin(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", f"user{number}").failed()
    assert attempts.remembered <= 30_003

    time.advance(7200)
    attempts.sweep()
    assert attempts.remembered == 0


@pytest.mark.rule("LIM-10")
def test_a_flood_of_names_does_not_wash_away_a_block(attempts: LoginAttempts) -> None:
    fail(attempts, "10.9.9.9", "alice", 3)
    for number in range(12_000):
        attempts.begin(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", f"user{number}").failed()

    assert retry_after(attempts, "10.9.9.9", "alice") == 60


def test_refusals_are_counted(time) -> None:  # type: ignore[no-untyped-def]
    refused: list[object] = []

    class Counted(NoMetrics):
        def count(self, name: str, amount: float = 1, labels: Mapping[str, str] = MappingProxyType({})) -> None:
            refused.append((name, dict(labels)))

    attempts = LoginAttempts(1, metrics=Counted(), monotonic=time.monotonic)
    fail(attempts, "10.0.0.1", "alice")
    assert not refused
    retry_after(attempts, "10.0.0.1", "alice")
    assert refused == [("sqe_rate_limited_total", {"limit": "login"})]
