"""Slots and deadlines."""

import gc
import threading
import weakref
from types import SimpleNamespace
from typing import cast

import pytest

from sqe_core.engine.port import ResultStream
from sqe_core.query.parts import QueryParts
from sqe_core.query.run.admission import Admission, DeadlineWatch, QueryLimits
from sqe_core.query.run.running import EndReason, RunningStatement, new_query_id
from sqe_core.query.service import QueryService
from sqe_core.session.session import Session
from sqe_core.spi.errors import (
    EngineLostError,
    ErrorCode,
    ErrorKind,
    InternalError,
    QueryCancelledError,
    ResourcesError,
    ShuttingDownError,
    SqeError,
)
from sqe_core.spi.identity import Identity


def person(name: str, issuer: str = "idp") -> Identity:
    return Identity(issuer=issuer, subject=name, username=name, provider="test")


def statement() -> RunningStatement:
    return RunningStatement(new_query_id())


def test_a_user_has_so_many_slots_and_gets_them_back() -> None:
    admission = Admission(QueryLimits(max_concurrent_per_user=2))
    leave = admission.enter(person("alice"), statement())
    admission.enter(person("alice"), statement())
    with pytest.raises(ResourcesError, match="Too many concurrent queries") as raised:
        admission.enter(person("alice"), statement())
    assert raised.value.code is ErrorCode.RESOURCE_EXHAUSTED
    leave()
    leave()  # giving a slot back twice must not free two
    admission.enter(person("alice"), statement())
    with pytest.raises(ResourcesError):
        admission.enter(person("alice"), statement())


@pytest.mark.rule("SESS-4")
def test_the_same_name_of_two_issuers_is_two_users() -> None:
    admission = Admission(QueryLimits(max_concurrent_per_user=1))
    admission.enter(person("alice", "first"), statement())
    admission.enter(person("alice", "second"), statement())


def test_the_server_has_so_many_slots() -> None:
    admission = Admission(QueryLimits(max_concurrent_queries=1))
    admission.enter(person("alice"), statement())
    with pytest.raises(ResourcesError, match="limit"):
        admission.enter(person("bob"), statement())


def test_deadlines_fire_in_their_order_unless_forgotten() -> None:
    watch = DeadlineWatch()
    done = threading.Event()
    fired: list[str] = []
    watch.after(0.06, lambda: (fired.append("late"), done.set()))
    watch.after(0.02, lambda: fired.append("early"))
    watch.after(0.03, lambda: fired.append("forgotten"))()
    assert done.wait(5)
    assert fired == ["early", "late"]


@pytest.mark.rule("LIM-7")
def test_a_statement_that_cannot_be_ended_leaves_the_others_their_deadlines(caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> None:
        raise EngineLostError("gone")

    watch, later = DeadlineWatch(), statement()
    ended = threading.Event()
    watch.after(0.01, broken)
    watch.after(0.03, lambda: (later.cancel(EndReason.TIMEOUT), ended.set()))
    assert ended.wait(5), "one failure turned every deadline off"
    assert later.reason is EndReason.TIMEOUT
    assert "could not be ended at its deadline" in caplog.text


@pytest.mark.rule("LIM-7")
def test_a_dead_watch_is_started_again(caplog: pytest.LogCaptureFixture) -> None:
    watch, ended = DeadlineWatch(), threading.Event()
    dead = threading.Thread(target=lambda: None)
    dead.start()
    dead.join()
    watch._thread = dead
    watch.after(0.01, ended.set)
    assert ended.wait(5)
    assert "had died" in caplog.text


class Ended:
    """A session, or the result of a statement, that counts its ends."""

    def __init__(self, error: Exception | None = None) -> None:
        self.count = 0
        self._error = error

    def cancel(self) -> None:
        self.count += 1
        if self._error is not None:
            raise self._error

    close = cancel


def service_with(session: Ended, *results: Ended) -> tuple[QueryService, list[RunningStatement]]:
    """A service in which a session runs statements with these results."""
    service = QueryService(cast(QueryParts, SimpleNamespace(limits=QueryLimits())))
    statements = [statement() for _ in results]
    for running, result in zip(statements, results, strict=True):
        running.attach_stream(cast(ResultStream, result), counted=True)
        service._running[running.query_id] = (cast(Session, session), running)
    return service, statements


@pytest.mark.rule("SESS-6", "LIM-12")
def test_every_statement_of_a_session_is_ended_whatever_one_of_them_says() -> None:
    session, silent, other = Ended(), Ended(InternalError("the bridge does not answer")), Ended()
    service, statements = service_with(session, silent, other)
    service.close_session(cast(Session, session), reason=EndReason.KILLED)
    assert [each.reason for each in statements] == [EndReason.KILLED] * 2
    assert (silent.count, other.count, session.count) == (1, 1, 1)


def test_a_server_that_ends_tells_every_statement_whatever_one_of_them_says() -> None:
    silent, other = Ended(InternalError("the bridge does not answer")), Ended()
    service, statements = service_with(Ended(), silent, other)
    service.end_all(0)
    assert [each.reason for each in statements] == [EndReason.SHUTDOWN] * 2
    assert other.count == 1


def test_a_closed_door_lets_nobody_in_and_waits_for_who_is_inside() -> None:
    admission = Admission(QueryLimits())
    leave = admission.enter(person("alice"), statement())
    admission.close()
    with pytest.raises(ShuttingDownError, match="The server is shutting down") as raised:
        admission.enter(person("bob"), statement())
    assert raised.value.code is ErrorCode.SERVER_SHUTTING_DOWN
    assert raised.value.kind is ErrorKind.RESOURCES
    assert admission.running == 1
    assert not admission.wait_idle(0.05)
    threading.Timer(0.1, leave).start()
    assert admission.wait_idle(5)
    assert admission.running == 0


def enter_later(admission: Admission, who: str, order: list[str]) -> threading.Thread:
    """Wait for a slot in a thread of its own, note who got one, and give it back."""

    def run() -> None:
        try:
            leave = admission.enter(person(who), statement())
        except (ResourcesError, ShuttingDownError) as error:
            order.append(f"{who} refused: {error.message}")
            return
        order.append(who)
        leave()

    before = admission.queued
    thread = threading.Thread(target=run)
    thread.start()
    while thread.is_alive() and admission.queued == before:
        threading.Event().wait(0.005)
    return thread


@pytest.mark.rule("LIM-7")
def test_a_queue_is_served_in_order_and_has_a_length() -> None:
    admission = Admission(QueryLimits(max_concurrent_queries=1, max_queued_queries=2, queue_timeout_secs=30))
    leave = admission.enter(person("alice"), statement())
    order: list[str] = []
    threads = [enter_later(admission, who, order) for who in ("bob", "carol")]
    assert admission.queued == 2
    with pytest.raises(ResourcesError, match="limit"):
        admission.enter(person("dave"), statement())
    leave()
    for thread in threads:
        thread.join(10)
    assert order == ["bob", "carol"]
    assert (admission.queued, admission.running) == (0, 0)


def test_who_is_at_their_own_limit_holds_up_nobody_else() -> None:
    limits = QueryLimits(
        max_concurrent_queries=2, max_concurrent_per_user=1, max_queued_queries=5, queue_timeout_secs=30
    )
    admission = Admission(limits)
    leave_alice, leave_bob = admission.enter(person("alice"), statement()), admission.enter(person("bob"), statement())
    order: list[str] = []
    again = enter_later(admission, "alice", order)
    other = enter_later(admission, "carol", order)
    leave_bob()
    other.join(10)
    assert order == ["carol"]
    leave_alice()
    again.join(10)
    assert order == ["carol", "alice"]


def test_waiting_ends_with_the_time_and_with_the_server() -> None:
    limits = QueryLimits(max_concurrent_queries=1, max_queued_queries=5, queue_timeout_secs=0.05)
    admission = Admission(limits)
    admission.enter(person("alice"), statement())
    with pytest.raises(ResourcesError, match=r"none ended in 0\.05 s"):
        admission.enter(person("bob"), statement())
    assert admission.queued == 0
    patient = Admission(QueryLimits(max_concurrent_queries=1, max_queued_queries=5))
    patient.enter(person("alice"), statement())
    order: list[str] = []
    waiting = enter_later(patient, "bob", order)
    patient.close()
    waiting.join(10)
    assert order == ["bob refused: The server is shutting down"]


@pytest.mark.rule("LIM-7")
@pytest.mark.parametrize(
    ("reason", "kind"), [(EndReason.CANCELLED, QueryCancelledError), (EndReason.SHUTDOWN, ShuttingDownError)]
)
def test_a_statement_that_is_ended_waits_no_longer(reason: EndReason, kind: type[SqeError]) -> None:
    admission = Admission(QueryLimits(max_concurrent_queries=1, max_queued_queries=5, queue_timeout_secs=30))
    leave = admission.enter(person("alice"), statement())
    waiting, order, ended = statement(), list[str](), list[SqeError]()

    def wait() -> None:
        try:
            admission.enter(person("bob"), waiting)
        except SqeError as error:
            ended.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    while not admission.queued:
        threading.Event().wait(0.005)
    behind = enter_later(admission, "carol", order)
    waiting.cancel(reason)
    thread.join(1)
    assert [type(error) for error in ended] == [kind]
    assert admission.queued == 1, "nobody else leaves the queue"
    leave()
    behind.join(10)
    assert order == ["carol"]


def test_a_statement_that_was_ended_before_takes_no_slot() -> None:
    admission = Admission(QueryLimits())
    over = statement()
    over.cancel()
    with pytest.raises(QueryCancelledError):
        admission.enter(person("alice"), over)
    assert admission.running == 0


def test_a_deadline_that_is_forgotten_holds_nothing() -> None:
    class EngineSession:
        def cancel(self) -> None:
            raise AssertionError("it was forgotten")

    watch, held = DeadlineWatch(), EngineSession()
    seen = weakref.ref(held)
    forget = watch.after(3600, held.cancel)
    del held
    assert seen() is not None
    forget()
    gc.collect()
    assert seen() is None, "an engine session would stay open until the statement's time is over"


def test_deadlines_that_are_forgotten_do_not_pile_up() -> None:
    watch = DeadlineWatch()
    for _ in range(3000):
        watch.after(3600, threading.Event().set)()
    assert len(watch._due) < 2000
