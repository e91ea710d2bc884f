"""Slots and deadlines."""

import threading

import pytest

from sqe_core.query.admission import Admission, DeadlineWatch, QueryLimits
from sqe_core.spi.errors import ErrorCode, ErrorKind, ResourcesError, ShuttingDownError
from sqe_core.spi.identity import Identity


def person(name: str, issuer: str = "idp") -> Identity:
    return Identity(issuer=issuer, subject=name, username=name, provider="test")


def test_a_user_has_so_many_slots_and_gets_them_back() -> None:
    admission = Admission(QueryLimits(max_concurrent_per_user=2))
    leave = admission.enter(person("alice"))
    admission.enter(person("alice"))
    with pytest.raises(ResourcesError, match="Too many concurrent queries") as raised:
        admission.enter(person("alice"))
    assert raised.value.code is ErrorCode.RESOURCE_EXHAUSTED
    leave()
    leave()  # giving a slot back twice must not free two
    admission.enter(person("alice"))
    with pytest.raises(ResourcesError):
        admission.enter(person("alice"))


@pytest.mark.rule("SESS-4")
def test_the_same_name_of_two_issuers_is_two_users() -> None:
    admission = Admission(QueryLimits(max_concurrent_per_user=1))
    admission.enter(person("alice", "first"))
    admission.enter(person("alice", "second"))


def test_the_server_has_so_many_slots() -> None:
    admission = Admission(QueryLimits(max_concurrent_queries=1))
    admission.enter(person("alice"))
    with pytest.raises(ResourcesError, match="limit"):
        admission.enter(person("bob"))


def test_deadlines_fire_in_their_order_unless_forgotten() -> None:
    watch = DeadlineWatch()
    done = threading.Event()
    fired: list[str] = []
    watch.after(0.06, lambda: (fired.append("late"), done.set()))
    watch.after(0.02, lambda: fired.append("early"))
    watch.after(0.03, lambda: fired.append("forgotten"))()
    assert done.wait(5)
    assert fired == ["early", "late"]


def test_a_closed_door_lets_nobody_in_and_waits_for_who_is_inside() -> None:
    admission = Admission(QueryLimits())
    leave = admission.enter(person("alice"))
    admission.close()
    with pytest.raises(ShuttingDownError, match="The server is shutting down") as raised:
        admission.enter(person("bob"))
    assert raised.value.code is ErrorCode.SERVER_SHUTTING_DOWN
    assert raised.value.kind is ErrorKind.RESOURCES
    assert admission.running == 1
    assert not admission.wait_idle(0.05)
    threading.Timer(0.1, leave).start()
    assert admission.wait_idle(5)
    assert admission.running == 0
